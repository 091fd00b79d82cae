"""Rendering of a page as one HTML file without references to other files."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.resources import files
from itertools import groupby
from typing import Any, TypeVar

from ..errors import extra
from .blocks import Block, Cell, Details, Group, Page, Scatter, Section, Table
from .style import figure_colors, inline_svg

_Nested = TypeVar("_Nested", bound=Block)


def render(page: Page) -> str:
    """Return a page as one HTML document that loads nothing; the same page always gives the same text.

    A script is included only for scatter plots; the content security policy allows no other script.

    Parameters
    ----------
    page : Page
        The page.

    Returns
    -------
    str
        The HTML document.

    Examples
    --------
    >>> from gapview.report.blocks import Page, Section, Text
    >>> from gapview.report.page import render
    >>> html = render(Page("Groups", ("Two groups.",), (Section("Sizes", (Text("5 < 7"),)),)))
    >>> "5 &lt; 7" in html
    True
    """
    jinja2 = extra("jinja2", "report", "Writing pages")
    options = {"undefined": jinja2.StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    environment = jinja2.Environment(autoescape=True, **options)
    taken = {"content", "contents"}
    page = replace(page, sections=tuple(_anchored(section, taken) for section in page.sections))
    moves = any(isinstance(block, Scatter) for block in _all_blocks(page.sections))
    script = _script() if moves else ""
    text: str = environment.from_string(_part("page.html.jinja")).render(
        page=page,
        style=_part("page.css") + (_part("scatter/scatter.css") if moves else ""),
        script=script,
        script_hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        scatter_data=_scatter_data,
        dark=figure_colors(),
        inner_sections=_inner_sections,
        new_id=lambda wanted: _new_id(wanted, taken),
        draw=inline_svg,
        kind=lambda block: type(block).__name__,
        headed=_headed,
        n_headers=_n_headers,
        slots=_slots,
    )
    return text.strip() + "\n"


def _new_id(wanted: str, taken: set[str]) -> str:
    """Return an id that no other element has: the wanted one, with a number if it is taken."""
    name, count = wanted, 1
    while name in taken:
        count += 1
        name = f"{wanted}-{count}"
    taken.add(name)
    return name


def _anchored(block: _Nested, taken: set[str]) -> _Nested:
    """Return a copy of a block in which every section has an id."""
    if isinstance(block, Section):
        slug = re.sub(r"[^a-z0-9]+", "-", block.title.lower()).strip("-") or "section"
        block = replace(block, anchor=_new_id(slug, taken))
    if isinstance(block, Section | Details):
        block = replace(block, blocks=tuple(_anchored(inner, taken) for inner in block.blocks))
    return block


def _part(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _script() -> str:
    """Return the script in one block scope, so that its names are not global."""
    parts = [_part(f"scatter/{name}.js") for name in ("signs", "plane", "picture", "scatter")]
    return "\n".join(['"use strict";', "{", *parts, "}", ""])


def _inner_sections(blocks: tuple[Block, ...]) -> Iterator[Section]:
    for block in blocks:
        if isinstance(block, Section):
            yield block
        elif isinstance(block, Details):
            yield from _inner_sections(block.blocks)


def _all_blocks(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        if isinstance(block, Section | Details):
            yield from _all_blocks(block.blocks)


def _scatter_data(block: Scatter) -> str:
    """Return the data of a scatter plot as JSON, escaped so that no text can end the script element."""
    content = {
        "noun": block.noun,
        "x": list(block.x),
        "y": list(block.y),
        "facets": [
            {"title": facet.title, "names": facet.names, "codes": list(facet.codes), "listed": facet.n_listed}
            for facet in block.facets
        ],
        "signs": [(sign.color, sign.dark, sign.shape) for sign in block.signs],
        "marks": block.marks,
        "values": [(title, list(texts)) for title, texts in block.values],
        "names": None if block.names is None else (block.names[0], list(block.names[1])),
    }
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=True)
    return re.sub("[<>&]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _n_headers(table: Table) -> int:
    return max((len(row.headers) for group in table.groups for row in group.rows), default=0)


def _slots(table: Table) -> tuple[bool, bool]:
    """Return whether any cell has a detail, and a mark: all other cells then leave room for them."""
    cells = [cell for group in table.groups for row in group.rows for cell in row.cells if isinstance(cell, Cell)]
    return any(cell.detail for cell in cells), any(cell.mark for cell in cells)


def _headed(group: Group) -> list[tuple[list[tuple[str, int, bool]], Any]]:
    """Return for every row its headers and cells; a header is a text, a number of rows, and whether it is the last."""
    starts: list[list[tuple[str, int, bool]]] = [[] for _ in group.rows]
    depth = max((len(row.headers) for row in group.rows), default=0)
    for level in range(depth):
        last = level == depth - 1
        first = 0
        for _, run in groupby(
            enumerate(group.rows), key=lambda pair: pair[0] if last else pair[1].headers[: level + 1]
        ):
            length = len(list(run))
            starts[first].append((group.rows[first].headers[level], length, last))
            first += length
    return [(start, row.cells) for start, row in zip(starts, group.rows, strict=True)]
