"""Tables as they stand in a file, their sample ids, and the features in their columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataFileError, extra, some
from ..utils.messages import counted, warn_user
from ..utils.storage import unescape_formula
from ..utils.types import Array
from ..views import numerals as written
from ..views.numerals import looks_like_dates
from ..views.tables import encoded, warn_left_out
from . import _dialect
from ._view_file import SourceFormat

DUPLICATES = ("raise", "first", "mean")
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
    texts: Callable[..., list[Any]] | None = None  # columns as text, before any conversion
    head: list[list[str]] = field(default_factory=list)  # the first rows of a text table, their first columns only
    lines: Callable[[], list[int]] | None = None  # line of the file, or row of the sheet, for every row
    notes: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)  # columns that are left out though most cells are numbers

    def cells(self, position: int) -> list[Any]:
        """Return the cells of a column as they are written: text stripped, None for a missing value."""
        column = self.columns[position]
        converted = not arrow().types.is_string(column.type)
        if self.texts and converted:
            column, converted = self.texts(position)[0], False
        if converted:
            return [_plain(cell) for cell in column.to_pylist()]
        compute = arrow("compute")
        stripped = compute.utf8_trim_whitespace(column)
        missing = compute.is_in(compute.utf8_lower(stripped), arrow().array(_dialect.MISSING))
        cells = compute.if_else(missing, None, stripped).to_pylist()
        if self.format.kind != "text":
            return list(cells)
        return [cell if cell is None else unescape_formula(cell) for cell in cells]

    def numbers(self, position: int) -> Array | None:
        """Return the values of a column of numbers; missing ones are NaN."""
        column = self.columns[position]
        if arrow().types.is_decimal(column.type):
            column = column.cast(arrow().float64(), safe=False)
        return np.asarray(column.to_numpy(zero_copy_only=False) if hasattr(column, "offset") else column.to_numpy())

    @property
    def title(self) -> str:
        """The table in a message."""
        return repr(self.file.name) + (f" (sheet '{self.format.sheet}')" if self.format.sheet else "")

    @property
    def has_header(self) -> bool:
        """Whether the names are given, and not made from the positions."""
        return self.format.header != "none"

    def kind(self, position: int) -> str:
        """Return whether a column holds text, numbers or anything else."""
        kinds, kind = arrow().types, self.columns[position].type
        if kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind):
            return "numbers"
        return "text" if kinds.is_string(kind) or kinds.is_large_string(kind) or "string_view" in str(kind) else "other"

    def places(self, rows: Sequence[int]) -> str:
        """Return the positions of rows in words: ``line(s) 3, 7``, or ``row(s) …`` counted from 1."""
        if self.lines is None:
            return row_numbers(rows)
        lines, sheet = self.lines(), self.format.sheet
        numbers = some([lines[row] for row in rows])
        return f"line(s) {numbers}" if sheet is None else f"row(s) {numbers} of sheet '{sheet}'"


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
    encoded: list[str] = field(default_factory=list)  # columns of text that became columns of 0 and 1
    undecided: dict[str, str] = field(default_factory=dict)  # column whose marks may separate thousands: a number
    grouped: dict[str, str] = field(default_factory=dict)  # column with thousands separators: a number
    notes: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)  # columns that are left out though most cells are numbers

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
        """Return the columns as a matrix, in single precision if all of them have it, and remove them from here."""
        rows = np.empty((len(self.columns), len(self.columns[0])), np.result_type(*{c.dtype for c in self.columns}))
        with np.errstate(invalid="ignore"):  # a damaged file may hold signalling NaN
            for k in reversed(range(len(rows))):
                rows[k] = self.columns.pop()  # its memory is free for the next ones
        return rows.T

    def warn(self, title: str) -> None:
        """Warn of columns that are left out though they have values."""
        for doubt in self.doubts:
            warn_user(doubt)
        warn_left_out(title, {kind: names for kind, names in self.left_out.items() if kind != _EMPTY})

    @property
    def empty(self) -> tuple[str, ...]:
        """Names of the columns without any value."""
        return tuple(self.left_out.get(_EMPTY, ()))


class _Numerals:
    """The numbers in the columns of a text table, and which of their marks are decimal."""

    def __init__(self, table: RawTable, skip: Set[int], given: str | None) -> None:
        self.table, self.skip, self.given = table, skip, given
        self.own = table.format.decimal

    @cached_property
    def marks(self) -> written.Marks:
        """The evidence of the whole file, except the numbers that the parser converted after its first rows."""
        found = self._in_head()
        for position, column in enumerate(self.table.columns):
            if position not in self.skip and _is_text(column.type):
                found.add(self.table.cells(position))
        return found

    def _in_head(self) -> written.Marks:
        found = written.Marks()
        for row in self.table.head:
            found.add(cell for position, cell in enumerate(row) if position not in self.skip)
        return found

    def verdict(self, mark: str) -> str | None:
        """Return how to read a column whose marks stand where thousands separators do."""
        return self.marks.reading(mark, self.table.format.separator, self.given)

    def doubtful(self) -> dict[int, list[Any]]:
        """Return the cells of the converted columns in which all marks stand where thousands separators do.

        The texts are parsed again only if the first rows and the columns of text leave the decimal mark open.
        """
        kinds, texts = arrow().types, self.table.texts
        floats = [k for k, c in enumerate(self.table.columns) if k not in self.skip and kinds.is_floating(c.type)]
        if texts is None or not floats or self._in_head().settles(self.own) or self.verdict(self.own) == "decimal":
            return {}
        compute, found = arrow("compute"), {}
        for position, column in zip(floats, texts(*floats), strict=True):
            marked = column.filter(compute.match_substring(column, self.own))
            if len(marked) and compute.all(compute.match_substring_regex(marked, written.ONE_GROUP)).as_py():
                found[position] = [_plain(cell) for cell in column.to_pylist()]
            elif len(marked):
                self.marks.decimal.add(self.own)
        return found

    def read(self, cells: list[str], name: str, found: Features) -> list[float] | None:
        """Return a column of text as numbers, or None; record a column that cannot be decided."""
        mark = written.group_mark(cells)
        if mark is None:
            other = "." if self.own == "," else ","
            numbers = written.as_numbers(cells, self.own) or written.as_numbers(cells, other)
            if numbers is not None:
                return numbers
        for separator in (mark,) if mark else written.SEPARATORS:
            numbers = written.without_separators(cells, separator)
            if numbers is None:
                continue
            verdict = "thousands" if separator == written.SPACES else self.verdict(separator)
            example = next(cell for cell in cells if any(one in cell for one in separator))
            if verdict == "decimal":
                numbers = written.as_numbers(cells, separator)
            if verdict is None or numbers is None:
                found.undecided[name] = example
            elif verdict == "thousands":
                found.grouped[name] = example
            return numbers if verdict else None
        return None


def find_features(table: RawTable, skip: Set[int], encode: bool, decimal: str | None = None) -> Features:
    """Return the columns of numbers of a table, except those at the positions in ``skip``.

    ``decimal`` is the decimal mark of numbers such as ``1,234`` where nothing in the file decides it.
    """
    names, repeated = _dialect.unique_names(table.names)
    found = Features()
    if repeated:
        found.notes.append(
            f"{counted(len(repeated), 'column')} had the name of another and got a number: {some(repeated)}."
        )
    numerals = _Numerals(table, skip, decimal)
    doubtful = numerals.doubtful()
    for position, (name, column) in enumerate(zip(names, table.columns, strict=True)):
        if position in doubtful:
            _read_text_column(table, doubtful[position], name, encode, found, numerals)
        elif position not in skip:
            _read_column(table, position, name, column, encode, found, numerals)
    if found.grouped:
        pairs = [f"'{name}' ({example})" for name, example in found.grouped.items()]
        found.notes.append(
            f"Numbers with thousands separators in {', '.join(pairs[:5])}{' and others' * (len(pairs) > 5)}."
        )
    if found.empty:
        found.notes.append(f"{counted(len(found.empty), 'column')} {_EMPTY} left out: {some(found.empty)}.")
    return found


def _is_text(kind: Any) -> bool:
    kinds = arrow().types
    return kinds.is_string(kind) or kinds.is_large_string(kind) or "string_view" in str(kind)


def _read_column(
    table: RawTable, position: int, name: str, column: Any, encode: bool, found: Features, numerals: _Numerals
) -> None:
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
    elif _is_text(kind):
        _read_text_column(table, table.cells(position), name, encode, found, numerals)
    else:
        found.leave_out(f"of type {kind}" if len(str(kind)) < 30 else "of nested values", name)


def _read_text_column(
    table: RawTable, cells: list[Any], name: str, encode: bool, found: Features, numerals: _Numerals
) -> None:
    """Detect numbers, true and false, dates or categories in a column of text."""
    rows = [row for row, cell in enumerate(cells) if cell is not None]
    present = [cells[row] for row in rows]
    numbers = numerals.read(present, name, found)
    if name in found.undecided:
        return
    if numbers is None:
        numbers = _dialect.as_booleans(present)
    if numbers is not None:
        spread = np.full(table.n_rows, np.nan)
        spread[rows] = numbers
        found.add(name, spread)
    elif looks_like_dates(present):
        found.leave_out("of dates or times", name)
    elif not _note_stray_words(table, name, cells, found) and not (encode and _encode(name, cells, found)):
        found.leave_out("of text" if not encode else "of text with too many different words", name)


def _note_stray_words(table: RawTable, name: str, cells: list[Any], found: Features) -> bool:
    """Add a doubt about the cells that are no numbers, if most of the others are; return whether there is one."""
    present = [cell for cell in cells if cell is not None]
    strays = [row for row, cell in enumerate(cells) if cell is not None and not written.is_numeral(cell)]
    if 2 * len(strays) >= len(present):
        return False
    reason = "some of its numbers have a decimal point, some a comma."
    if strays:
        words = some(dict.fromkeys(cells[row] for row in strays), 3)
        reason = (
            f"{len(present) - len(strays)} of its {len(present)} cells are numbers, but not {words} "
            f"({table.places(strays)}). Write a number there, or nothing if the value is missing."
        )
    found.doubts.append(f"Column '{name}' of {table.title} left out: {reason}")
    return True


def _encode(name: str, cells: list[Any], found: Features) -> bool:
    """Add a column of 0 and 1 for every word, if there are not too many; return whether there are."""
    columns = encoded(name, cells)
    if columns is None:
        return False
    words = [column.removeprefix(name + "=") for column in columns]
    for column, numbers in columns.items():
        found.add(column, np.array(numbers))
    found.encoded.append(name)
    found.notes.append(f"Column '{name}' encoded as {counted(len(words), 'column')} of 0 and 1: {some(words, 20)}.")
    return True


def check_ids(
    file: Path,
    keys: Sequence[str | None],
    duplicates: str,
    places: Callable[[Sequence[int]], str],
    where: str = "",
) -> list[str]:
    """Return the ids that occur more than once; raise an error for these if ``duplicates`` is "raise".

    A row without an id is an error, too. ``where`` names the column of ids, for messages.
    """
    without = [row for row, key in enumerate(keys) if not key]
    if without:
        raise DataFileError(
            f"{file.name!r} has {counted(len(without), 'row')} without a sample id{where}, in {places(without)}. "
            "Fill in the ids, or remove these rows."
        )
    twice = [str(key) for key, count in Counter(keys).items() if count > 1]
    if twice and duplicates == "raise":
        rows = [row for row, key in enumerate(keys) if key in twice[:3]]
        raise DataFileError(
            f"{file.name!r} has {counted(len(twice), 'sample id')} more than once{where}: {some(twice)}, first in "
            f"{places(rows)}. Remove the repeats, or choose duplicates='first' (the first row of each is kept) or "
            "duplicates='mean' (their mean); if this is not the column of ids, name the right one (id_column)."
        )
    return twice
