"""Results at the end of a cell: a short table as text, and as HTML in notebooks, in place of pages of arrays."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from html import escape
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from .messages import counted, printable, shorten

_MOST_ROWS = 20
_LONGEST = 40  # characters of a cell
_WIDTH = 100  # of a line of text
_FLAGS = (bool, np.bool_)
_NUMBER, _TEXT = ' style="text-align:right"', ' style="text-align:left"'


class Table(NamedTuple):
    """A title in a sentence or two, named columns, rows of values, and notes below."""

    title: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()
    notes: Sequence[str] = ()


class Shown:
    """Show a result as a table in consoles and notebooks; a subclass defines ``_shown_as``.

    Of a dataclass the class must be created with ``repr=False``.

    Examples
    --------
    >>> from gapview.utils.shown import Shown, Table
    >>> class Sizes(Shown):
    ...     def _shown_as(self):
    ...         return Table("Sizes of the groups", ["group", "samples", "share"], [["a<b", 1200, 2 / 3]])
    >>> Sizes()
    Sizes of the groups
    group  samples  share
    a<b      1,200  0.667
    >>> "a&lt;b" in Sizes()._repr_html_()
    True
    """

    def _shown_as(self) -> Table:
        """Return what is shown."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return as_text(self._shown_as())

    def _repr_html_(self) -> str:
        return as_html(self._shown_as())


def table_of(result: Any) -> Table:
    """Return what a result shows of itself."""
    return result._shown_as()  # type: ignore[no-any-return]


def as_text(table: Table) -> str:
    """Return a table with aligned columns."""
    rows, notes = _within(table)
    cells = [list(map(str, table.columns)), *([_cell(value) for value in row] for row in rows)]
    lines = textwrap.wrap(printable(table.title), _WIDTH)
    if table.columns:
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        is_right = [_is_number([row[place] for row in rows]) for place in range(len(widths))]
        for row in cells:
            parts = zip(row, widths, is_right, strict=True)
            lines.append("  ".join(f"{c:>{w}}" if right else f"{c:<{w}}" for c, w, right in parts).rstrip())
    return "\n".join([*lines, *(line for note in notes for line in textwrap.wrap(note, _WIDTH))])


def as_html(table: Table) -> str:
    """Return a table as HTML in which no text of the user is markup."""
    rows, notes = _within(table)
    is_right = [_is_number([row[place] for row in rows]) for place in range(len(table.columns))]
    looks = [_NUMBER if right else _TEXT for right in is_right]
    heads = zip(table.columns, looks, strict=True)
    head = "".join(f'<th scope="col"{look}>{escape(_cell(name))}</th>' for name, look in heads)
    body = "".join(_html_row(row, looks) for row in rows)
    parts = [f"<p><strong>{escape(printable(table.title))}</strong></p>"]
    if table.columns:
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    return "<div>" + "".join([*parts, *(f"<p>{escape(note)}</p>" for note in notes)]) + "</div>"


def _html_row(row: Sequence[Any], looks: Sequence[str]) -> str:
    cells = zip(row, looks, strict=True)
    return "<tr>" + "".join(f"<td{look}>{escape(_cell(value))}</td>" for value, look in cells) + "</tr>"


def _within(table: Table) -> tuple[Sequence[Sequence[Any]], list[str]]:
    """Return the rows that are shown, and the notes, first of all on the number of other rows."""
    n_more = len(table.rows) - _MOST_ROWS
    more = [f"… and {counted(n_more, 'more row')}"] if n_more > 0 else []
    return table.rows[:_MOST_ROWS], [printable(note) for note in (*more, *table.notes)]


def _is_number(values: Sequence[Any]) -> bool:
    return any(isinstance(value, Real) and not isinstance(value, _FLAGS) for value in values)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, _FLAGS):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{int(value):,}"
    if isinstance(value, Real):
        return _rounded(float(value))
    text = str(value)
    return printable(shorten(text, _LONGEST)).replace("\n", "\\n")


def _rounded(value: float) -> str:
    """Return a number with about three digits, a dash for NaN; usual numbers of a column have the same decimals."""
    if math.isnan(value):
        return "–"
    size = abs(value)
    if size >= 1000:
        text = f"{value:,.0f}" if size < 1e6 else f"{value:.3g}"
    else:
        text = f"{value:.3g}" if 0 < size < 0.001 else f"{value:.3f}" if size < 10 else f"{value:.1f}"
    return text.replace("-", "−").replace("inf", "∞")
