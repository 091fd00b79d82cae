"""Write a page as Markdown: the same text and tables as in HTML, without the figures."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapview.report.page import (
    Block,
    Cell,
    Code,
    Details,
    Drawing,
    Facts,
    Items,
    Legend,
    Page,
    Section,
    Table,
    Text,
)

__all__ = ["render_markdown"]


def render_markdown(page: Page) -> str:
    """Write a page as Markdown; what only HTML can show, figures and colours, is left out.

    Parameters
    ----------
    page : Page
        What to show.

    Returns
    -------
    str
        The document.

    Examples
    --------
    >>> from gapview.report.page import Page, Section, Text
    >>> from gapview_lab.common.markdown import render_markdown
    >>> print(render_markdown(Page("Groups", ("Two groups.",), (Section("Sizes", (Text("5 < 7"),)),))))
    # Groups
    <BLANKLINE>
    Two groups.
    <BLANKLINE>
    ## Sizes
    <BLANKLINE>
    5 &lt; 7
    <BLANKLINE>
    """
    parts = [f"# {_plain(page.title)}", *map(_plain, page.lead), *_blocks(page.sections, 2)]
    return "\n\n".join([*parts, *([_plain(page.footer)] if page.footer else [])]) + "\n"


def _blocks(blocks: tuple[Block, ...], level: int) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Section):
            yield f"{'#' * min(level, 6)} {_plain(block.title)}"
            yield from _blocks(block.blocks, level + 1)
        elif isinstance(block, Details):
            yield f"**{_plain(block.summary)}**"
            yield from _blocks(block.blocks, level)
        elif isinstance(block, Text):
            yield _plain(block.text)
        elif isinstance(block, Code):
            yield f"```sh\n{block.text}\n```"
        elif isinstance(block, Table):
            yield from _table(block)
        elif isinstance(block, Items | Facts):
            yield _list(block)
        else:
            assert isinstance(block, Drawing | Legend)  # pages of the lab have no other blocks


def _list(block: Items | Facts) -> str:
    items = block.items if isinstance(block, Items) else [(f"{term}:", value) for term, value in block.facts]
    shown = [_plain(item) if isinstance(item, str) else f"**{_plain(item[0])}** {_plain(item[1])}" for item in items]
    return "\n".join(f"* {item}" for item in shown)


def _table(table: Table) -> Iterator[str]:
    width = len(table.columns)
    over = f" Columns: {table.over}." if table.over else ""
    yield f"*{_plain(table.caption)}.*{_plain(over)}"
    lines = [_line([_plain(column) for column in table.columns]), "|" + "---|" * width]
    for group in table.groups:
        if group.title:
            remark = f" {_plain(group.remark)}" if group.remark else ""
            lines.append(_line([f"**{_plain(group.title)}**{remark}", *[""] * (width - 1)]))
        lines += [_line([*map(_plain, row.headers), *map(_cell, row.cells)]) for row in group.rows]
    yield "\n".join(lines)
    if table.notes:
        yield "\n".join(f"* {_plain(note)}" for note in table.notes)


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(cell: Cell | str) -> str:
    if isinstance(cell, str):
        return _plain(cell)
    text = _plain(cell.text)
    shown = [f"**{text}**" if cell.best and text else text, _plain(cell.detail)]
    mark = f"({_plain(cell.mark)})" if cell.mark else ""
    return " ".join(part for part in (*shown, mark) if part)


def _plain(text: str) -> str:
    """Return a text on one line, with Markdown characters escaped."""
    return re.sub(r"([\\`*|\[\]])", r"\\\1", " ".join(text.split())).replace("<", "&lt;")
