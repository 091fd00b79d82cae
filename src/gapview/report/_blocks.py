"""What a page is made of. Every text is plain text: nothing here can carry markup into a page."""

from __future__ import annotations

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


@dataclass(frozen=True)
class Drawing:
    """A matplotlib figure with its caption, and with what a reader who cannot see it is told."""

    figure: Figure
    label: str
    caption: str
    title: str = ""


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


Block: TypeAlias = Text | Items | Facts | Code | Legend | Table | Drawing | Details | Section


@dataclass(frozen=True)
class Page:
    """A page: the title, the answer in a few sentences, and the sections."""

    title: str
    lead: tuple[str, ...]
    sections: tuple[Section, ...]
    footer: str = ""
