"""Links to files outside of the pages, such as measured results: links to HTML files open them."""

from __future__ import annotations

import re
from typing import Any


def open_reports(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Let links to HTML files open them; other files beside a page are downloads."""
    if "body" in context:
        context["body"] = re.sub(r' download=""(?= href="[^"]+\.html")', "", context["body"])


def setup(app: Any) -> dict[str, bool]:
    """Register the step."""
    app.connect("html-page-context", open_reports)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
