"""Tables as they stand in a file, their sample ids, and the features in their columns."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataFileError, ParameterTypeError, extra, some
from ..utils.messages import counted
from ..utils.types import Array
from . import _dialect
from ._sources import READING
from ._view_file import SourceFormat

DUPLICATES = ("raise", "first", "mean")
_WHOLE = re.compile(r"([+-]?[0-9]+)(?:[.,]0+)?")
_NEARLY_DISTINCT = 0.9  # the least share of distinct cells in a first column of text that holds ids
_EMPTY = "without any value"  # kind of column


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
    return None if _dialect.is_missing(cell) else cell.strip()


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
    names, repeated = _dialect.unique_names(table.names)
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
    numbers = _dialect.as_numbers(present, own)
    if numbers is None and _dialect.looks_like_thousands(present):
        example = next(cell for cell in present if other in cell or own in cell)
        found.notes.append(
            f"Column '{name}' left out: it is not clear whether '{example}' has a decimal mark or a mark of thousands. "
            f"Write its numbers with a decimal '{own}' and without marks of thousands."
        )
        return
    if numbers is None:
        numbers = _dialect.as_numbers(present, other) or _dialect.as_booleans(present)
    if numbers is not None:
        spread = np.full(table.n_rows, np.nan)
        spread[rows] = numbers
        found.add(name, spread)
    elif _dialect.looks_like_dates(present):
        found.leave_out("of dates or times", name)
    elif not _note_stray_words(table, name, cells, found) and not (encode and _encode(name, cells, found)):
        found.leave_out("of text" if not encode else "of text with too many different words", name)


def _note_stray_words(table: RawTable, name: str, cells: list[Any], found: Features) -> bool:
    """Add a note on the cells that are no numbers, if most of the others are; return whether there is one."""
    present = [cell for cell in cells if cell is not None]
    strays = [row for row, cell in enumerate(cells) if cell is not None and not _dialect.is_number(cell)]
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


@dataclass(frozen=True)
class Ids:
    """The sample ids of a table; ``keys`` is None if it has none."""

    keys: list[str | None] | None
    format: SourceFormat  # that of the table, with the place and type of the ids
    skip: set[int]  # columns that are no features
    notes: list[str]


def check_id_column(id_column: Any) -> list[str] | None:
    """Return the possible names of the column of ids as a list."""
    if id_column is None:
        return None
    names = [id_column] if isinstance(id_column, str) else id_column
    if not isinstance(names, Sequence) or not names or not all(isinstance(name, str) for name in names):
        raise ParameterTypeError(f"id_column must be the name of a column, or a list of names; got {id_column!r}.")
    return list(names)


def find_ids(table: RawTable, wanted: list[str] | None) -> Ids:
    """Return the sample ids: the wanted column, the index, one with a usual name, or a first one of distinct text."""
    if wanted is not None:
        return _ids_in(table, _position(table, wanted))
    unnamed = _unnamed(table)
    counting = {unnamed} if unnamed is not None and _counts_rows(table, unnamed) else set()
    if table.index is not None and table.index not in counting:
        return _ids_in(table, table.index)
    named = [position for position, name in enumerate(table.names) if _dialect.looks_like_id(name)]
    weak = [k for k, name in enumerate(table.names) if _dialect.looks_like_id(name, weak=True) and _are_ids(table, k)]
    named.sort(key=lambda position: _distinct_share(table, position) < 1)  # columns without repeats first
    candidates = [position for position in (*named, unnamed, *weak) if position is not None]
    chosen = next((position for position in candidates if position not in counting), None)
    if chosen is None and not counting and table.names and _is_distinct_text(table):
        chosen = 0
    if chosen is not None:
        others = {other for other in candidates if other != chosen and _distinct_share(table, other) == 1}
        return _ids_in(table, chosen, others)
    notes = ["No column of sample ids was found: rows are matched by their position."]
    if counting:
        notes.insert(0, "A column without a name counts the rows: it is left out.")
    return Ids(None, table.format, counting, notes)


def _ids_in(table: RawTable, position: int, others: Set[int] = frozenset()) -> Ids:
    cells = table.cells(position)
    whole = all(isinstance(cell, int) and not isinstance(cell, bool) for cell in cells if cell is not None)
    place = "index" if position == table.index else "column"
    name = table.names[position]
    notes = [f"Sample ids are in the column '{name}'." if name else "Sample ids are in the first column."]
    if others:
        left = [table.names[other] or "the one without a name" for other in sorted(others)]
        notes.append(f"Left out, since every row has another value, as in ids: {some(left)}.")
    source = replace(table.format, id_name=name, id_place=place, id_type="integer" if whole else "text")
    return Ids(as_keys(cells), source, {position, *others}, notes)


def _position(table: RawTable, wanted: list[str]) -> int:
    """Return the position of the first wanted column that the table has."""
    for name in wanted:
        for same in (str, str.lower):
            found = [position for position, other in enumerate(table.names) if same(other) == same(name)]
            if len(found) == 1:
                return found[0]
            if found:
                raise DataFileError(
                    f"{table.file.name!r} has {len(found)} columns '{name}'; the column of sample ids must have a "
                    "unique name."
                )
    raise DataFileError(
        f"{table.file.name!r} has no column {some(wanted)} to take the sample ids from; it has "
        f"{some(table.names, 8)}. Name one of these."
    )


def _unnamed(table: RawTable) -> int | None:
    """Return the index or first column if it has no name, as pandas and R write the names of rows."""
    position = table.index or 0
    if table.format.header == "none" or len(table.names) < 2 or not _dialect.is_unnamed(table.names[position]):
        return None
    return position


def _counts_rows(table: RawTable, position: int) -> bool:
    keys = as_keys(table.cells(position))
    return any(keys == [str(row + start) for row in range(table.n_rows)] for start in (0, 1))


def _distinct_share(table: RawTable, position: int) -> float:
    cells = table.cells(position)
    return 0.0 if not cells or None in cells else len(set(map(str, cells))) / len(cells)


def _are_ids(table: RawTable, position: int) -> bool:
    """Return whether a column holds distinct text or, as the first one, distinct integers."""
    if _distinct_share(table, position) < 1:
        return False
    cells = table.cells(position)
    return _are_text(cells) or (position == 0 and all(_WHOLE.fullmatch(str(cell)) for cell in cells))


def _is_distinct_text(table: RawTable) -> bool:
    cells = [cell for cell in table.cells(0) if cell is not None]
    if not _are_text(cells) or _dialect.looks_like_dates(cells):
        return False
    return len(set(cells)) / len(cells) >= _NEARLY_DISTINCT


def _are_text(cells: list[Any]) -> bool:
    """Return whether most cells are no numbers, or all are and some have leading zeros, as '001'."""
    if not cells or not all(isinstance(cell, str) for cell in cells):
        return False
    numbers = sum(map(_dialect.is_number, cells))
    return 2 * numbers < len(cells) or (numbers == len(cells) and any(re.fullmatch("0[0-9]+", cell) for cell in cells))


def as_keys(cells: Sequence[Any]) -> list[str | None]:
    """Return ids as text, so that 1, 1.0 and '1' are the same sample; '001' stays unchanged."""
    keys = [None if cell is None else _key(cell) for cell in cells]
    if all(key is None or _WHOLE.fullmatch(key) for key in keys):  # integers that a program wrote as 1.0
        return [None if key is None else _WHOLE.sub(r"\1", key) for key in keys]
    return keys


def _key(cell: Any) -> str:
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace").strip()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        return str(cell.date())
    return str(cell).strip()


def check_ids(
    file: Path, keys: Sequence[str | None], duplicates: str, places: Callable[[Sequence[int]], str]
) -> list[str]:
    """Return the ids that occur more than once; raise an error for these if ``duplicates`` is "raise".

    A row without an id is an error, too.
    """
    without = [row for row, key in enumerate(keys) if not key]
    if without:
        raise DataFileError(
            f"{file.name!r} has {counted(len(without), 'row')} without a sample id, in {places(without)}. "
            "Fill in the ids, or remove these rows."
        )
    twice = [str(key) for key, count in Counter(keys).items() if count > 1]
    if twice and duplicates == "raise":
        rows = [row for row, key in enumerate(keys) if key in twice[:3]]
        raise DataFileError(
            f"{file.name!r} has {counted(len(twice), 'sample id')} more than once: {some(twice)}, first in "
            f"{places(rows)}. Remove the repeats, or choose duplicates='first' (the first row of each is kept) or "
            "duplicates='mean' (their mean); if this is not the column of ids, name the right one (id_column)."
        )
    return twice
