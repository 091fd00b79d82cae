"""Tables as they stand in a file, and the features in their columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import extra, some
from ..utils.messages import counted
from ..utils.types import Array
from . import _detect
from ._sources import READING
from ._view_file import SourceFormat


def arrow(part: str = "") -> Any:
    """Import pyarrow, or one of its parts."""
    return extra("pyarrow" + (f".{part}" if part else ""), "tables", "Reading and writing tables")


@dataclass(frozen=True)
class RawTable:
    """Columns of a file with their types, and where a row stands in the file."""

    file: Path
    names: list[str]  # as they stand in the file: some may be empty or repeat
    columns: list[Any]  # pyarrow arrays
    n_rows: int
    format: SourceFormat
    index: int | None = None  # position of the column that is the index of a pandas frame
    written: Callable[[int], list[Any]] | None = None  # the cells of a column as text, before any conversion
    lines: Callable[[], list[int]] | None = None  # line of the file for every row
    notes: list[str] = field(default_factory=list)

    def cells(self, position: int) -> list[Any]:
        """Return the cells of a column as they are written: text stripped, None for a missing value."""
        column = self.columns[position]
        converted = not arrow().types.is_string(column.type)
        raw = self.written(position) if self.written and converted else column.to_pylist()
        return [_plain(cell) for cell in raw]

    def places(self, rows: Sequence[int]) -> str:
        """Return the positions of rows in words: ``line(s) 3, 7``, or ``row(s) …`` counted from 1."""
        if self.lines is None:
            return row_numbers(rows)
        lines = self.lines()
        return f"line(s) {some([lines[row] for row in rows])}"


def row_numbers(rows: Sequence[int]) -> str:
    """Return the positions of rows in words, counted from 1."""
    return f"row(s) {some([row + 1 for row in rows])}"


def _plain(cell: Any) -> Any:
    if not isinstance(cell, str):
        return None if cell is None or cell != cell else cell
    return None if _detect.is_missing(cell) else cell.strip()


_EMPTY = "without any value"


@dataclass
class Features:
    """The columns of numbers of a table, and notes on the other columns."""

    names: list[str] = field(default_factory=list)
    columns: list[Array] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)  # kind of column: names
    notes: list[str] = field(default_factory=list)

    def add(self, name: str, column: Array) -> None:
        """Add a column of numbers, unless it is empty."""
        if np.isnan(column).all():
            self.leave_out(_EMPTY, name)
        else:
            self.names.append(name)
            self.columns.append(column)

    def leave_out(self, kind: str, name: str) -> None:
        """Record a column that is left out."""
        self.left_out.setdefault(kind, []).append(name)

    def matrix(self) -> Array:
        """Return the columns as a matrix, in single precision if all of them have it."""
        with np.errstate(invalid="ignore"):  # a damaged file may hold signalling NaN
            return np.stack(self.columns).T

    @property
    def empty(self) -> tuple[str, ...]:
        """Names of the columns without any value."""
        return tuple(self.left_out.get(_EMPTY, ()))


def find_features(table: RawTable, skip: Set[int], encode: bool) -> Features:
    """Return the columns of numbers of a table, except those at the positions in ``skip``."""
    names, repeated = _detect.unique_names(table.names)
    found = Features()
    if repeated:
        found.notes.append(
            f"{counted(len(repeated), 'column')} had the name of another and got a number: {some(repeated)}."
        )
    for position, (name, column) in enumerate(zip(names, table.columns, strict=True)):
        if position not in skip:
            _read_column(table, position, name, column, encode, found)
    for kind, left_out in found.left_out.items():
        advice = " Columns of text can be encoded as columns of 0 and 1 (encode)." if kind == "of text" else ""
        found.notes.append(f"{counted(len(left_out), 'column')} {kind} left out: {some(left_out)}.{advice}")
    return found


def _read_column(table: RawTable, position: int, name: str, column: Any, encode: bool, found: Features) -> None:
    pa, kinds = arrow(), arrow().types
    kind = column.type
    if column.null_count == len(column):
        if table.names[position]:  # a separator at the end of every line makes a column without a name
            found.leave_out(_EMPTY, name)
    elif any(is_one(kind) for is_one in (kinds.is_boolean, kinds.is_integer, kinds.is_floating, kinds.is_decimal)):
        single = kinds.is_floating(kind) and kind.bit_width <= 32
        # Unsafe, so that integers beyond 2**53 are rounded
        found.add(name, column.cast(pa.float32() if single else pa.float64(), safe=False).to_numpy())
    elif kinds.is_temporal(kind):
        found.leave_out("of dates or times", name)
    elif kinds.is_string(kind) or kinds.is_large_string(kind) or "string_view" in str(kind):
        _read_text_column(table, position, name, encode, found)
    else:
        found.leave_out(f"of type {kind}" if len(str(kind)) < 30 else "of nested values", name)


def _read_text_column(table: RawTable, position: int, name: str, encode: bool, found: Features) -> None:
    """Detect numbers, true and false, dates or categories in a column that the parser read as text."""
    cells = table.cells(position)
    rows = [row for row, cell in enumerate(cells) if cell is not None]
    present = [cells[row] for row in rows]
    own = table.format.decimal
    other = "." if own == "," else ","
    numbers = _detect.as_numbers(present, own)
    if numbers is None and _detect.looks_like_thousands(present):
        example = next(cell for cell in present if other in cell or own in cell)
        found.notes.append(
            f"Column '{name}' left out: it is not clear whether '{example}' has a decimal mark or a mark of thousands. "
            f"Write its numbers with a decimal '{own}' and without marks of thousands."
        )
        return
    if numbers is None:
        numbers = _detect.as_numbers(present, other) or _detect.as_booleans(present)
    if numbers is not None:
        spread = np.full(table.n_rows, np.nan)
        spread[rows] = numbers
        found.add(name, spread)
    elif _detect.looks_like_dates(present):
        found.leave_out("of dates or times", name)
    elif not _note_stray_words(table, name, cells, found) and not (encode and _encode(name, cells, found)):
        found.leave_out("of text" if not encode else "of text with too many different words", name)


def _note_stray_words(table: RawTable, name: str, cells: list[Any], found: Features) -> bool:
    """Add a note on the cells that are no numbers, if most of the others are; return whether there is one."""
    present = [cell for cell in cells if cell is not None]
    strays = [row for row, cell in enumerate(cells) if cell is not None and not _detect.is_number(cell)]
    if 2 * len(strays) >= len(present):
        return False
    reason = "some of its numbers have a decimal point, some a comma."
    if strays:
        words = some(dict.fromkeys(cells[row] for row in strays), 3)
        reason = (
            f"{len(present) - len(strays)} of its {len(present)} cells are numbers, but not {words} "
            f"({table.places(strays)}). Write a number there, or nothing if the value is missing."
        )
    found.notes.append(f"Column '{name}' left out: {reason}")
    return True


def _encode(name: str, cells: list[Any], found: Features) -> bool:
    """Add a column of 0 and 1 for every word, if there are not too many; return whether there are."""
    words = sorted({cell for cell in cells if cell is not None})
    if len(words) > READING.limits.categories:
        return False
    for word in words:
        found.add(f"{name}={word}", np.array([np.nan if cell is None else float(cell == word) for cell in cells]))
    found.notes.append(f"Column '{name}' encoded as {counted(len(words), 'column')} of 0 and 1: {some(words, 20)}.")
    return True
