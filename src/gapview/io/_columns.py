"""From the columns of a table to numbers: what each column holds, and what is left out."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import some
from ..utils.types import Array
from ..utils.words import counted
from . import _limits
from ._names import distinct
from ._table import Table, arrow
from ._words import as_booleans, as_numbers, is_number, looks_like_dates, looks_like_thousands

__all__ = ["Features", "find_features"]

_EMPTY = "without any value"


@dataclass
class Features:
    """The numbers of a table, and what was found on the way."""

    names: list[str] = field(default_factory=list)
    columns: list[Array] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)  # kind of column: names
    notes: list[str] = field(default_factory=list)

    def add(self, name: str, column: Array) -> None:
        """Add a column of numbers."""
        self.names.append(name)
        self.columns.append(column)

    def leave_out(self, kind: str, name: str) -> None:
        """Remember a column that is left out."""
        self.left_out.setdefault(kind, []).append(name)

    def matrix(self, n_rows: int) -> Array:
        """Put the columns side by side; single precision stays so if all columns have it."""
        single = bool(self.columns) and all(column.dtype == np.float32 for column in self.columns)
        values = np.empty((n_rows, len(self.columns)), np.float32 if single else np.float64, order="F")
        with np.errstate(invalid="ignore"):  # a damaged file may hold a kind of NaN that processors complain of
            for position, column in enumerate(self.columns):
                values[:, position] = column
        return values

    @property
    def empty(self) -> tuple[str, ...]:
        """Names of the columns without any value."""
        return tuple(self.left_out.get(_EMPTY, ()))

    def told(self) -> list[str]:
        """Say in sentences what was left out and why."""
        sentences = list(self.notes)
        for kind, names in self.left_out.items():
            sentence = f"{counted(len(names), 'column')} {kind} left out: {some(names)}."
            if kind == "of text":
                sentence += " Columns of text can be encoded as columns of 0 and 1 (encode)."
            sentences.append(sentence)
        return sentences


def find_features(table: Table, skip: Set[int], encode: bool) -> Features:
    """Take the columns of numbers of a table, all but those at the positions in ``skip``."""
    names, repeated = distinct(table.names)
    found = Features()
    if repeated:
        found.notes.append(
            f"{counted(len(repeated), 'column')} had the name of another and got a number: {some(repeated)}."
        )
    for position, (name, column) in enumerate(zip(names, table.columns, strict=True)):
        if position not in skip:
            _read_column(table, position, name, column, encode, found)
    return found


def _read_column(table: Table, position: int, name: str, column: Any, encode: bool, found: Features) -> None:
    pa, kinds = arrow(), arrow().types
    kind = column.type
    if column.null_count == len(column):
        if table.names[position]:  # a separator at the end of every line makes a column that nobody misses
            found.leave_out(_EMPTY, name)
    elif kinds.is_boolean(kind):
        found.add(name, _numbers(column.cast(pa.int8()), pa.float64()))
    elif kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind):
        single = kinds.is_floating(kind) and kind.bit_width <= 32
        numbers = _numbers(column, pa.float32() if single else pa.float64())
        if np.isnan(numbers).all():
            found.leave_out(_EMPTY, name)
        else:
            found.add(name, numbers)
    elif kinds.is_temporal(kind):
        found.leave_out("of dates or times", name)
    elif kinds.is_string(kind) or kinds.is_large_string(kind) or "string_view" in str(kind):
        _read_text_column(table, position, name, encode, found)
    else:
        found.leave_out(f"of type {kind}" if len(str(kind)) < 30 else "of nested values", name)


def _numbers(column: Any, kind: Any) -> Array:
    # Unsafe, since whole numbers beyond 2**53 are rounded as any of Python's conversions would
    return np.asarray(column.cast(kind, safe=False).to_numpy())


def _read_text_column(table: Table, position: int, name: str, encode: bool, found: Features) -> None:
    """Find numbers, true and false, dates or categories in a column that a parser took for text."""
    cells = table.cells(position)
    rows = [row for row, cell in enumerate(cells) if cell is not None]
    there = [cells[row] for row in rows]
    own = table.format.decimal
    other = "." if own == "," else ","
    numbers = as_numbers(there, own)
    if numbers is None and looks_like_thousands(there):
        example = next(cell for cell in there if other in cell or own in cell)
        found.notes.append(
            f"Column '{name}' left out: it is not clear whether '{example}' has a decimal mark or a mark of thousands. "
            f"Write its numbers with a decimal '{own}' and without marks of thousands."
        )
        return
    if numbers is None:
        numbers = as_numbers(there, other) or as_booleans(there)
    if not there:
        found.leave_out(_EMPTY, name)
    elif numbers is not None:
        found.add(name, _spread(numbers, rows, table.n_rows))
    elif looks_like_dates(there):
        found.leave_out("of dates or times", name)
    elif not _note_stray_words(table, name, cells, found) and not (encode and _encode(name, cells, found)):
        found.leave_out("of text" if not encode else "of text with too many different words", name)


def _spread(numbers: list[float], rows: list[int], n_rows: int) -> Array:
    column = np.full(n_rows, np.nan)
    column[rows] = numbers
    return column


def _note_stray_words(table: Table, name: str, cells: list[Any], found: Features) -> bool:
    """Name the cell that keeps a column from being numbers, if most of the others are."""
    there = [cell for cell in cells if cell is not None]
    strays = [row for row, cell in enumerate(cells) if cell is not None and not is_number(cell)]
    if 2 * len(strays) >= len(there):
        return False
    if not strays:
        found.notes.append(f"Column '{name}' left out: some of its numbers have a decimal point, some a comma.")
        return True
    found.notes.append(
        f"Column '{name}' left out: {len(there) - len(strays)} of its {len(there)} cells are numbers, but not "
        f"{some(list(dict.fromkeys(cells[row] for row in strays)), 3)} ({table.places(strays)}). "
        "Write a number there, or nothing if the value is missing."
    )
    return True


def _encode(name: str, cells: list[Any], found: Features) -> bool:
    """Make a column of 0 and 1 of every word, if there are not too many."""
    words = sorted({cell for cell in cells if cell is not None})
    if len(words) > _limits.LIMITS.categories:
        return False
    for word in words:
        found.add(f"{name}={word}", np.array([np.nan if cell is None else float(cell == word) for cell in cells]))
    found.notes.append(f"Column '{name}' encoded as {counted(len(words), 'column')} of 0 and 1: {some(words, 20)}.")
    return True
