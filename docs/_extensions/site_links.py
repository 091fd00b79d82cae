"""Files that others write beside the pages: tables get a title, and links to reports open them."""

from __future__ import annotations

import re
from typing import Any

_TITLES = {"paper/tables": "The paper: all tables"}


def give_title(app: Any, page: str, source: list[str]) -> None:
    """Put a title over tables that are written without one."""
    if page in _TITLES and not source[0].startswith("# "):
        source[0] = f"# {_TITLES[page]}\n\n{source[0]}"


def open_reports(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Let links to HTML files lead there; other files beside a page are downloads."""
    if "body" in context:
        context["body"] = re.sub(r' download=""(?= href="[^"]+\.html")', "", context["body"])


def setup(app: Any) -> dict[str, bool]:
    """Register both steps."""
    app.connect("source-read", give_title)
    app.connect("html-page-context", open_reports)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
