"""What a page is made of. Every text is plain text: nothing here can carry markup into a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# "up" and "down" are colours only: whoever uses them also writes the sign.
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
    """Something to type or to copy, letter by letter."""

    text: str


@dataclass(frozen=True)
class Legend:
    """What the colours of cells mean."""

    entries: tuple[tuple[Tone, str], ...]


@dataclass(frozen=True)
class Cell:
    """One cell of a table: a value, and beside it smaller things about the value."""

    text: str
    detail: str = ""  # such as a spread
    mark: str = ""  # such as a signed difference
    tone: Tone = "plain"
    best: bool = False  # the best of those it is compared with
    tip: str = ""  # shown when pointed at; never the only place where a thing is said


@dataclass(frozen=True)
class Row:
    """Headers on the left and cells; equal leading headers of neighbouring rows become one."""

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
    """A table; ``columns`` names all columns, those of the headers on the left among them."""

    caption: str
    columns: tuple[str, ...]
    groups: tuple[Group, ...]
    over: str = ""  # stands above the columns that are not headers
    notes: tuple[str, ...] = ()
    numbers: bool = False  # cells hold numbers: aligned on the right, never broken
    narrow: bool = False  # as wide as what it holds, where others fill the page


@dataclass(frozen=True)
class Drawing:
    """A matplotlib figure with its caption, and with what a reader who cannot see it is told."""

    figure: Figure
    label: str
    caption: str
    title: str = ""
    small: bool = False  # few things in it: shrinks with the page, where others scroll


# What a point looks like, told apart by colour, and in grey by its shape.
Shape: TypeAlias = Literal["circle", "square", "triangle", "diamond", "plus", "cross", "wedge"]


@dataclass(frozen=True)
class Sign:
    """The look of one kind of point, on a light page and on a dark one."""

    color: str
    dark: str
    shape: Shape


@dataclass(frozen=True)
class Facet:
    """Something by which points can be filtered: the names it knows, and for every point which of them it has."""

    title: str
    names: tuple[str, ...]
    codes: Sequence[int]
    n_listed: int  # names from here on are filtered together
    counts: tuple[int, ...]  # of all there is, of which the points may be a part


@dataclass(frozen=True)
class Scatter:
    """Points on a plane that can be pointed at, filtered and zoomed into; with a script, and a sentence without.

    ``signs`` and ``marks`` go with the names of the first facet: how its points look, and what stands in their midst.
    Points can be walked through in the order in which they are given.
    """

    label: str
    caption: str
    noun: str  # what a point is, such as "sample"
    x: Sequence[int]
    y: Sequence[int]  # upwards
    facets: tuple[Facet, ...]
    signs: tuple[Sign, ...]
    marks: tuple[str, ...]
    values: tuple[tuple[str, Sequence[str]], ...] = ()  # more to be told of every point: a title, and a text for each
    names: tuple[str, Sequence[str]] | None = None  # what points are called: a title, and a name for each


@dataclass(frozen=True)
class Details:
    """Blocks behind one line that opens them."""

    summary: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it, sections of the next level included."""

    title: str
    blocks: tuple[Block, ...]


Block: TypeAlias = Text | Items | Facts | Code | Legend | Table | Drawing | Scatter | Details | Section


@dataclass(frozen=True)
class Page:
    """A page: the title, the answer in a few sentences, and the sections."""

    title: str
    lead: tuple[str, ...]
    sections: tuple[Section, ...]
    footer: str = ""
