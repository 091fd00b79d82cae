"""Tutorials as notebooks: made from the pages, with the output and the figures that these show."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

_PART = re.compile(r"^```(\w+)\n(.*?)^```$|^!\[([^\]]*)\]\(([^)]+)\)$", flags=re.M | re.S)
_RELATIVE = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:)[^)]+\)")


def notebook(path: Path) -> dict[str, Any]:
    """Return a page as a notebook: text, Python with its output, commands of the shell, figures."""
    source, cells, end = path.read_text(encoding="utf-8"), [], 0
    for part in _PART.finditer(source):
        _add_text(cells, source[end : part.start()])
        end, (kind, content, title, picture) = part.end(), part.groups()
        code = cells[-1] if cells and cells[-1]["cell_type"] == "code" else None
        if kind == "python":
            cells.append(_cell("code", content, len(cells)))
        elif kind == "console":
            commands = re.findall(r"^\$ (.*)$", content, flags=re.M)
            cells.append(_cell("code", "\n".join(f"!{command}" for command in commands), len(cells)))
        elif kind == "text" and code is not None:
            code["outputs"].append({"output_type": "stream", "name": "stdout", "text": _lines(content)})
        elif picture and code is not None:
            code["outputs"].append(_figure(path.parent / picture, title))
        else:
            _add_text(cells, part[0])
    _add_text(cells, source[end:])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def _add_text(cells: list[dict[str, Any]], text: str) -> None:
    """Add text; links to other pages, which a notebook does not have beside it, become plain words."""
    plain = _RELATIVE.sub(r"\1", text).strip()
    if plain:
        cells.append(_cell("markdown", plain, len(cells)))


def _cell(kind: str, source: str, number: int) -> dict[str, Any]:
    code = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": _lines(source.rstrip())} | code


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _figure(path: Path, title: str) -> dict[str, Any]:
    image = base64.b64encode(path.read_bytes()).decode()
    return {"output_type": "display_data", "data": {"image/png": image, "text/plain": _lines(title)}, "metadata": {}}


def link_notebook(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Write the notebook of a tutorial beside its page, and link to it below the heading."""
    if not page.startswith("tutorials/"):
        return
    path = Path(app.outdir) / f"{page}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook(Path(app.srcdir) / f"{page}.md"), indent=1) + "\n", encoding="utf-8")
    link = f'<p><a class="notebook" download href="{path.name}">Download this page as a notebook</a></p>'
    context["body"] = context["body"].replace("</h1>", "</h1>\n" + link, 1)


def setup(app: Any) -> dict[str, bool]:
    """Register the step."""
    app.connect("html-page-context", link_notebook)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
