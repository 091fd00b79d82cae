"""Links to files outside of the pages, such as measured results: they are copied beside the site."""

from __future__ import annotations

import re
from typing import Any

_RESULTS = re.compile(r"\]\(((?:\.\./)+results/[^)#\s]+)(?:#[^)\s]*)?\)")


def link_results(app: Any, page: str, source: list[str]) -> None:
    """Make links to pages of results links to files, since these pages are not part of the site."""
    source[0] = _RESULTS.sub(r"](path:\1)", source[0])


def open_reports(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Make links to HTML files open them; other files next to a page are downloads."""
    if "body" in context:
        context["body"] = re.sub(r' download=""(?= href="[^"]+\.html")', "", context["body"])


def setup(app: Any) -> dict[str, bool]:
    """Register both steps."""
    app.connect("source-read", link_results)
    app.connect("html-page-context", open_reports)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
