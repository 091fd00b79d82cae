"""Sample ids: detecting their column, bringing them into one form, and finding repeated ones."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import DataFileError, ParameterTypeError, some
from ..utils.messages import counted
from ._detect import is_number, is_unnamed, looks_like_dates, looks_like_id
from ._tables import RawTable
from ._view_file import SourceFormat

DUPLICATES = ("raise", "first", "mean")
_WHOLE = re.compile(r"([+-]?[0-9]+)(?:[.,]0+)?")
_NEARLY_DISTINCT = 0.9  # the least share of distinct cells in a first column of text that holds ids


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
    named = [position for position, name in enumerate(table.names) if looks_like_id(name)]
    weak = [k for k, name in enumerate(table.names) if looks_like_id(name, weak=True) and _are_ids(table, k)]
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
    if table.format.header == "none" or len(table.names) < 2 or not is_unnamed(table.names[position]):
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
    return _are_text(cells) and len(set(cells)) / len(cells) >= _NEARLY_DISTINCT and not looks_like_dates(cells)


def _are_text(cells: list[Any]) -> bool:
    """Return whether most cells are no numbers, or all are and some have leading zeros, as '001'."""
    if not cells or not all(isinstance(cell, str) for cell in cells):
        return False
    numbers = sum(map(is_number, cells))
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
