"""Blocks of a page. Every text is plain text: markup in it is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# "up" and "down" are colours only: the text of the cell must contain the sign.
Tone: TypeAlias = Literal["plain", "muted", "up", "up-strong", "down", "down-strong", "problem"]


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


def drawing(figure: Figure | None, label: str, caption: str, *, small: bool = False) -> Drawing | None:
    """Return a figure with its caption; None where there is nothing to draw."""
    return None if figure is None else Drawing(figure, label, caption, small=small)


Shape: TypeAlias = Literal["circle", "square", "triangle", "diamond", "plus", "cross", "wedge"]


@dataclass(frozen=True)
class Sign:
    """The look of one kind of point, on a light page and on a dark one."""

    color: str
    dark: str
    shape: Shape


@dataclass(frozen=True)
class Facet:
    """A property by which points can be filtered: the names of its values, and the value of every point."""

    title: str
    names: tuple[str, ...]
    codes: Sequence[int]
    n_listed: int  # names from here on are filtered together
    counts: tuple[int, ...]  # of all samples, also those without a point


@dataclass(frozen=True)
class Scatter:
    """An interactive scatter plot with tooltips, filters and zoom; a sentence replaces it where scripts are disabled.

    ``signs`` and ``marks`` belong to the names of the first facet: the look of its points, and the label in their
    centre. The buttons "next" and "previous" follow the order of the points.
    """

    label: str
    caption: str
    noun: str  # what a point is, such as "sample"
    x: Sequence[int]
    y: Sequence[int]  # upwards
    facets: tuple[Facet, ...]
    signs: tuple[Sign, ...]
    marks: tuple[str, ...]
    values: tuple[tuple[str, Sequence[str]], ...] = ()  # more about every point: a title, and a text for each
    names: tuple[str, Sequence[str]] | None = None  # names of the points: a title, and a name for each


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
    anchor: str = ""  # id on the page, set when it is rendered


Block: TypeAlias = Text | Items | Facts | Code | Legend | Table | Drawing | Scatter | Details | Section


def present_blocks(*blocks: Block | None) -> tuple[Block, ...]:
    """Return the blocks that are not None."""
    return tuple(block for block in blocks if block is not None)


@dataclass(frozen=True)
class Page:
    """A page: the title, the answer in a few sentences, and the sections."""

    title: str
    lead: tuple[str, ...]
    sections: tuple[Section, ...]
    footer: str = ""
