"""Pages: their blocks, and rendering as one HTML file without references to other files.

Every text of a block is plain text: markup in it is escaped.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from ..errors import extra
from ..utils.messages import free_name
from .points import Scatter
from .style import DARK_COLORS, inline_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# "up" and "down" are colours only: the text of the cell must contain the sign.
Tone: TypeAlias = Literal["plain", "muted", "up", "up-strong", "down", "down-strong", "problem"]
State: TypeAlias = Literal["good", "doubtful", "bad", "open"]


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    quiet: bool = False  # smaller and paler, for remarks


@dataclass(frozen=True)
class Items:
    """A list; each item is a text, or a term and a text."""

    items: tuple[str | tuple[str, str], ...]


@dataclass(frozen=True)
class Facts:
    """Names and values, one pair a line."""

    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Code:
    """Text to type or to copy, in a fixed-width font."""

    text: str


@dataclass(frozen=True)
class Legend:
    """The meaning of the colours of cells."""

    entries: tuple[tuple[Tone, str], ...]


@dataclass(frozen=True)
class Cell:
    """One cell of a table: a value, and details about it in smaller type."""

    text: str
    detail: str = ""  # such as a spread
    mark: str = ""  # such as a signed difference
    tone: Tone = "plain"
    best: bool = False  # the best of those it is compared with
    tip: str = ""  # tooltip; must not be the only place of an information


@dataclass(frozen=True)
class Row:
    """Headers on the left and cells; equal leading headers of consecutive rows are merged."""

    headers: tuple[str, ...]
    cells: tuple[Cell | str, ...]


@dataclass(frozen=True)
class Group:
    """Rows that belong together, with a title and a remark if they need any."""

    rows: tuple[Row, ...]
    title: str = ""
    remark: str = ""


@dataclass(frozen=True)
class Table:
    """A table; ``columns`` names all columns, including those of the headers on the left."""

    caption: str
    columns: tuple[str, ...]
    groups: tuple[Group, ...]
    over: str = ""  # title above the columns that are not headers
    notes: tuple[str, ...] = ()
    numbers: bool = False  # cells hold numbers: aligned on the right, without line breaks
    narrow: bool = False  # as wide as its contents; other tables fill the page


def simple_table(
    caption: str, columns: Iterable[str], rows: Iterable[Any], notes: Iterable[str] = (), *, numbers: bool = True
) -> Table:
    """Return a table of one group; the first entry of every row is its header. It is narrow if it holds numbers."""
    listed = tuple(Row((header,), tuple(cells)) for header, *cells in rows)
    return Table(caption, tuple(columns), (Group(listed),), notes=tuple(notes), numbers=numbers, narrow=numbers)


@dataclass(frozen=True)
class Drawing:
    """A matplotlib figure with its caption, and a label for screen readers."""

    figure: Figure
    label: str
    caption: str
    title: str = ""
    small: bool = False  # shrinks with the page; other figures scroll


@dataclass(frozen=True)
class Findings:
    """What was found, one remark each: whether it is good, a term, and a text."""

    remarks: tuple[tuple[State, str, str], ...]


@dataclass(frozen=True)
class Card:
    """One group in a few lines; ``number`` is its code in the first property of the scatter plot of the page."""

    title: str
    number: int
    facts: tuple[tuple[str, str, bool], ...]  # terms and values, and whether a value is a problem
    lists: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]  # titles, and pairs of a name and a figure


@dataclass(frozen=True)
class Cards:
    """Groups beside each other; a button on each selects its samples in the scatter plot."""

    cards: tuple[Card, ...]
    note: str = ""


@dataclass(frozen=True)
class Beside:
    """Blocks beside each other where the page is wide: in columns of the same width, or a map with cards beside it."""

    blocks: tuple[Block, ...]
    even: bool = True

    @classmethod
    def of(cls, *blocks: Block | None) -> Beside:
        """Return the blocks that are not None beside each other."""
        return cls(tuple(block for block in blocks if block is not None))


@dataclass(frozen=True)
class Details:
    """Blocks that are hidden until their summary is clicked."""

    summary: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Section:
    """A heading and its blocks, which may be sections of the next level."""

    title: str
    blocks: tuple[Block, ...]
    short: str = ""  # title in the contents, by default the same
    anchor: str = ""  # id on the page, set when it is rendered

    @classmethod
    def of(cls, title: str, *blocks: Block | None) -> Section:
        """Return a section of the blocks that are not None."""
        return cls(title, tuple(block for block in blocks if block is not None))


Block: TypeAlias = (
    Text | Items | Facts | Code | Legend | Table | Drawing | Scatter | Findings | Cards | Beside | Details | Section
)


@dataclass(frozen=True)
class Page:
    """A page: the title, the answer in a few sentences, blocks of the first screen, and the sections."""

    title: str
    lead: tuple[str, ...]
    sections: tuple[Section, ...]
    footer: str = ""
    first: tuple[Block, ...] = ()


# -- rendering ---------------------------------------------------------------------------------------------------------


_Nested = TypeVar("_Nested", bound=Block)
_SCATTER = ("signs", "plane", "picture", "properties", "rows", "scatter")


def render(page: Page) -> str:
    """Return a page as one HTML document that loads nothing; the same page always gives the same text.

    Only pages with a scatter plot have a script, which also saves figures and tables as files; the content security
    policy allows no other script.

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
    >>> from gapview.report.page import Page, Section, Text, render
    >>> html = render(Page("Groups", ("Two groups.",), (Section("Sizes", (Text("5 < 7"),)),)))
    >>> "5 &lt; 7" in html
    True
    """
    jinja2 = extra("jinja2", "report", "Writing pages")
    options = {"undefined": jinja2.StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    environment = jinja2.Environment(autoescape=True, **options)
    taken = {"content", "contents"}
    page = replace(page, sections=tuple(_anchored(section, taken) for section in page.sections))
    parts = (Section, Details, Beside)
    moves = any(isinstance(block, Scatter) for block in _within((*page.first, *page.sections), parts))
    script = _script() if moves else ""
    text: str = environment.from_string(_part("page.html.jinja")).render(
        page=page,
        style=_part("page.css") + (_part("scatter/scatter.css") if moves else ""),
        script=script,
        script_hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        classes_of=_classes_of,
        dark=DARK_COLORS,
        inner_sections=lambda blocks: [one for one in _within(blocks, (Details,)) if isinstance(one, Section)],
        new_id=lambda wanted: _new_id(wanted, taken),
        draw=inline_svg,
        headed=_headed,
        n_headers=_n_headers,
        slots=_slots,
    )
    return text.strip() + "\n"


def _new_id(wanted: str, taken: set[str]) -> str:
    """Return an id that no other element has: the wanted one, with a number if it is taken."""
    name = free_name(wanted, taken, "-")
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
    parts = [_part(name) for name in ("saving.js", *(f"scatter/{name}.js" for name in _SCATTER))]
    return "\n".join(['"use strict";', "{", *parts, "}", ""])


def _within(blocks: Iterable[Block], opened: tuple[type, ...]) -> Iterator[Block]:
    """Yield the blocks and, for those of the types in ``opened``, the blocks inside them."""
    for block in blocks:
        yield block
        if isinstance(block, opened):
            yield from _within(block.blocks, opened)  # type: ignore[union-attr]


def _classes_of(table: Table) -> str:
    """Return the classes of a table; on a phone, the cells of a row stand below each other unless it compares many."""
    is_stacked = not table.over and len(table.columns) > 2
    flags = {
        "numbers": table.numbers,
        "two": table.numbers and _n_headers(table) > 1,
        "narrow": table.numbers and table.narrow,
        "stacked": is_stacked,
    }
    return " ".join(name for name, holds in flags.items() if holds)


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
