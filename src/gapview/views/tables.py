"""Tables of named columns, of files and of frames: the column of sample ids, and the columns that are left out."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from ..errors import InputError, ParameterTypeError, some
from ..utils.messages import counted, joined, warn_user
from ..utils.types import Array
from .keys import as_keys, with_lost_digits, with_rounded_digits
from .numerals import is_numeral, looks_like_dates, looks_like_quantities

_NEARLY_DISTINCT = 0.9  # the least share of distinct cells in a column of ids: repeats are then reported
_MOST = 0.5  # the least share of common values of columns of numbers that are taken as ids because of their common name
_FEWEST_ROWS = 5  # in fewer rows, whole numbers of a feature are distinct by chance
MOST_CATEGORIES = 20  # of a column that is encoded as columns of 0 and 1
_NO_IDS = "No column of sample ids was found: rows are matched by their position."
_RECOVERED = ("gapview_recovered", "gapview_filled_cells")  # columns that ``gapview recover`` writes

_OF_EMBEDDING = re.compile(r"[a-z]*(?:grmf|nmf|pvc|gpmvc|img|mic|spectral|kmeans|concat|view)\d+")

_OF_LABELS = re.compile(r"label|confidence|distance|(has|contribution|support)_.+")

# Without spaces, underscores and the like; the second list only counts for columns without repeats
_ID_NAMES = {
    *("id", "ids", "uid", "uuid", "guid", "sid", "pid", "eid", "mrn", "sample", "samples", "sampleid", "sampleids"),
    *("samplename", "samplecode", "patient", "patientid", "patientno", "subject", "subjectid", "participant"),
    *("participantid", "individual", "individualid", "person", "personid", "caseid", "donor", "donorid", "specimenid"),
    *("recordid", "barcode", "cellid", "rowid", "rowname", "rownames", "obsnames", "sampleno", "samplenumber"),
}
_WEAK_ID_NAMES = {"case", "name", "key", "cell", "specimen", "row", "code", "no", "nr", "number", "accession"}
# A word "id" at the end or the beginning, as in Patienten-ID, subjectId or ID_REF; "lipid" and "ACID" have none
_ID_WORD = re.compile(r"(?:^|[^A-Za-z])(?:ID|Id|id)s?$|[a-z](?:ID|Id)s?$|^(?:ID|Id|id)(?:[^A-Za-z]|$)")

# The order in which columns are taken as ids; repeated values lower it by _REPEATED
_DECLARED, _NAMED, _ROW_NAMES, _WEAKLY_NAMED, _TEXT = 5.0, 4.0, 3.0, 2.0, 1.0
_LEFT_OVER, _COUNTER = 0.0, -0.25  # numbers of rows: some, or all
_UNKNOWN, _ELSEWHERE = -1.0, -2.0  # other whole numbers in the first column of numbers, or in a later one
_REPEATED = 1.5
_CONTRADICTED = 0.1  # the least share of rows that two columns match with different rows


class Table(Protocol):
    """A table with named columns, of a file or a frame; a declared index is one of the columns."""

    @property
    def title(self) -> str:
        """The table in a message: ``'blood.csv'`` or ``view 'blood'``."""

    @property
    def names(self) -> Sequence[str]:
        """Names of all columns as they are given: some may be empty or repeat."""

    @property
    def index(self) -> int | None:
        """Position of the column that is the index of a frame."""

    @property
    def has_header(self) -> bool:
        """Whether the names are given, and not made from the positions."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    def kind(self, position: int) -> str:
        """Return ``"text"``, ``"numbers"`` or ``"other"``."""

    def cells(self, position: int) -> list[Any]:
        """Return the cells of a column: text stripped, None for a missing value."""

    def numbers(self, position: int) -> Array | None:
        """Return the values of a column of numbers, or None if they are no plain numbers."""


@dataclass(frozen=True)
class IdColumn:
    """The column of sample ids of a table; ``position`` is None if it has none."""

    position: int | None
    skip: frozenset[int] = frozenset()  # columns that are no features, that of the ids included
    notes: tuple[str, ...] = ()
    may_be_row_numbers: bool = False

    def of_features(self) -> IdColumn:
        """Return the same column in a table whose rows are features: without the note on sample ids."""
        return replace(self, notes=self.notes[:-1] if self.position is None else self.notes[1:])


@dataclass(frozen=True)
class _Candidate:
    """A column that may hold ids."""

    position: int
    name: str  # in lower case, empty for row names
    strength: float
    keys: frozenset[str]
    rows: dict[str, int]  # row of every key
    is_distinct: bool


_Overlap = Callable[[Sequence[_Candidate]], bool]


def looks_like_id(name: str, *, weak: bool = False) -> bool:
    """Return whether a column has a name that is common for sample ids.

    >>> [looks_like_id(name) for name in ("Patienten-ID", "sample id", "lipid", "tumour")]
    [True, True, False, False]
    """
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    return plain in _WEAK_ID_NAMES if weak else plain in _ID_NAMES or _ID_WORD.search(name.strip()) is not None


def is_unnamed(name: str) -> bool:
    """Return whether a column has no name, or the one that pandas gives to such a column or index."""
    return not name or re.fullmatch(r"Unnamed: \d+|__index_level_\d+__|index", name) is not None


def check_id_column(id_column: Any) -> list[str] | bool | None:
    """Return the names that the column of ids may have; True: the index; False: there are no ids; None: detect it."""
    if id_column is None or isinstance(id_column, bool):
        return id_column
    names = [id_column] if isinstance(id_column, str) else id_column
    if not isinstance(names, Sequence) or not names or not all(isinstance(name, str) for name in names):
        raise ParameterTypeError(
            "id_column must be the name of a column, a list of names, True for the index, or False for rows that are "
            f"matched by their position; got {id_column!r}."
        )
    return list(names)


def find_id_columns(
    tables: Sequence[Table], wanted: list[str] | bool | None, *, is_sample: bool = False
) -> list[IdColumn]:
    """Return the column of sample ids of every table, chosen for all of them together.

    Parameters
    ----------
    tables : sequence of tables
        The tables that are joined.
    wanted : list of str, bool or None
        As returned by :func:`check_id_column`.
    is_sample : bool, default=False
        Whether tables hold only some of the rows: then columns of one name are taken to have common values.
    """
    if wanted is False:
        return [_unread(table) for table in tables]
    if wanted is True:
        return [_without_ids(table) if table.index is None else _in_index(table.index) for table in tables]
    if isinstance(wanted, list):
        return [_taken(table, find_column(table, wanted)) for table in tables]
    found = [_candidates(table) for table in tables]
    best = [_strongest(own) for own in found]
    overlap = (lambda group: True) if is_sample else _overlap
    is_open = all(one is None or one.strength <= _LEFT_OVER for one in best)
    if is_open and (common := _common_columns(tables, is_sample=is_sample)):
        found = [_candidates(table, common) for table in tables]
        best = [_strongest(own) for own in found]
    groups = _shared(found, overlap, _ELSEWHERE if is_open else _LEFT_OVER)
    is_shared = _belong_together(best, overlap)
    if groups and not is_shared:
        strongest = max(groups, key=lambda group: sum(one.strength for one in group))
        best, is_shared = [*strongest], True
    _demand_agreement(best, groups)
    ids = [_decided(*of_table, is_shared=is_shared) for of_table in zip(tables, found, best, strict=True)]
    if not is_sample:
        numbered = [table.title for table, own in zip(tables, ids, strict=True) if own.may_be_row_numbers]
        report_row_numbers(numbered, [one.keys for one in best if one is not None])
    return ids


def find_column(table: Table, wanted: Sequence[str]) -> int:
    """Return the position of the first wanted column that a table has."""
    for name in wanted:
        for same in (str, str.lower):
            found = [position for position, other in enumerate(table.names) if same(other) == same(name)]
            if len(found) == 1:
                return found[0]
            if found:
                raise InputError(
                    f"The column of sample ids must have a unique name; {table.title} has {len(found)} columns "
                    f"'{name}'. Rename the others."
                )
    raise InputError(
        f"There is no column {some(wanted)} in {table.title} to take the sample ids from; it has "
        f"{some([name for name in table.names if name], 8)}. Name one of these (id_column)."
    )


def _strongest(found: Sequence[_Candidate]) -> _Candidate | None:
    return max((one for one in found if one.strength != _COUNTER), key=lambda one: one.strength, default=None)


def _common_columns(tables: Sequence[Table], *, is_sample: bool) -> set[str]:
    """Return the names of columns of distinct whole numbers or dates that all tables have, with common values."""
    if len(tables) < 2:
        return set()
    places = [{name: position for position, name in reversed(list(enumerate(table.names)))} for table in tables]
    found = set()
    for name in set.intersection(*map(set, places)):
        columns: list[Array] = []
        for table, place in zip(tables, places, strict=True):
            values = _distinct_values(table, place[name])
            if values is None:
                break
            columns.append(values)
        if len(columns) == len(tables) and (is_sample or _have_most_in_common(columns)):
            found.add(name)
    return found


def _distinct_values(table: Table, position: int) -> Array | None:
    """Return the whole numbers of a column, or its dates as text; None if some are repeated, missing or others."""
    kind = table.kind(position)
    if kind == "numbers":
        values = table.numbers(position)
        if values is None:
            return None
        if values.dtype.kind == "f" and not (np.isfinite(values).all() and (values == np.floor(values)).all()):
            return None
    elif kind == "other":
        cells = table.cells(position)
        if not _are_dates(cells):
            return None
        values = np.asarray(as_keys(cells), dtype=np.str_)
    else:
        return None
    return values if len(np.unique(values)) == len(values) else None


def _are_dates(cells: Sequence[Any]) -> bool:
    if all(isinstance(cell, str) for cell in cells):
        return looks_like_dates(cells)
    return all(isinstance(cell, datetime.date) for cell in cells)


def _have_most_in_common(columns: Sequence[Array]) -> bool:
    return all(
        any(
            len(np.intersect1d(one, other)) > _MOST * min(len(one), len(other))
            for place, other in enumerate(columns)
            if place != own
        )
        for own, one in enumerate(columns)
    )


# -- candidates ------------------------------------------------------------------------------------------------------


def _candidates(table: Table, common: Set[str] = frozenset()) -> list[_Candidate]:
    """Return the columns of a table that may hold ids, those of the names in ``common`` included."""
    unnamed = _row_names(table)
    found = []
    columns = [k for k in range(len(table.names)) if k not in (table.index, unnamed)]
    first_numbers = next((k for k in columns if table.kind(k) == "numbers"), None)
    for position, name in enumerate(table.names):
        kind = table.kind(position)
        is_named = looks_like_id(name) or looks_like_id(name, weak=True) or (bool(name) and is_unnamed(name))
        is_common = name in common and kind != "text"
        if kind != "text" and not is_named and not is_common and position not in (table.index, unnamed, first_numbers):
            continue
        cells = table.cells(position)
        if position in (table.index, unnamed):
            strength = _strength_of_row_names(table, position, cells)
        else:
            is_leading, is_first = position == columns[0], position == first_numbers
            strength = _strength(name, cells, is_leading=is_leading, is_first_of_numbers=is_first)
        if strength is None:
            continue
        keys = as_keys(cells)
        own = frozenset(key for key in keys if key)
        is_distinct = len(own) == len(keys)
        is_row_name = is_unnamed(name) or position == unnamed
        strength -= 0 if is_distinct else _REPEATED
        rows = {key: row for row, key in enumerate(keys) if key}
        found.append(_Candidate(position, "" if is_row_name else name.casefold(), strength, own, rows, is_distinct))
    return found


def _strength_of_row_names(table: Table, position: int, cells: list[Any]) -> float | None:
    """Return how likely the index, or a first column without a name, holds the ids, or None if it does not."""
    present = [cell for cell in cells if cell is not None]
    if is_unnamed(table.names[position]) and present and _are_whole(present):
        return None if counts_rows(cells) else (_LEFT_OVER if _are_few(present) else _ROW_NAMES)
    if position == table.index:
        return _DECLARED
    is_distinct = len(set(map(str, present))) >= _NEARLY_DISTINCT * len(cells)
    return _ROW_NAMES if is_distinct or table.n_rows < _FEWEST_ROWS or _are_text(present) else None


def _strength(name: str, cells: list[Any], *, is_leading: bool, is_first_of_numbers: bool) -> float | None:
    """Return how likely a column holds the ids, or None if it does not.

    ``is_leading`` says that no other column stands before it, ``is_first_of_numbers`` that no other of numbers does.
    """
    present = [cell for cell in cells if cell is not None]
    share = len(set(map(str, present))) / len(cells) if present else 0.0
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    is_text = _are_text(present)
    if present and plain in _ID_NAMES:
        return _NAMED if share >= _NEARLY_DISTINCT or not is_text else _LEFT_OVER + _REPEATED
    if share < _NEARLY_DISTINCT:
        return None
    is_long, is_distinct = len(cells) >= _FEWEST_ROWS, share == 1
    if is_text:
        if is_distinct and (looks_like_id(name) or plain in _WEAK_ID_NAMES):
            return _NAMED if looks_like_id(name) else _WEAKLY_NAMED
        if looks_like_dates(present):
            return _ELSEWHERE if is_long and is_distinct else None
        if not is_leading and looks_like_quantities(present):
            return None
        return _TEXT if is_leading or is_long else None
    if is_long and is_distinct and _are_dates(present):
        return _ELSEWHERE
    if not is_distinct or not _are_whole(present):
        return None
    if looks_like_id(name):
        return _NAMED
    if is_leading and is_long and counts_rows(cells):
        return _COUNTER
    if is_leading and plain in _WEAK_ID_NAMES:
        return _LEFT_OVER if _increases(cells) else _WEAKLY_NAMED
    if not is_long:
        return None
    return _UNKNOWN if is_first_of_numbers else _ELSEWHERE


def _are_whole(cells: Sequence[Any]) -> bool:
    return not _are_text(cells) and all(key.lstrip("+-").isdigit() for key in as_keys(cells) if key)


def _row_names(table: Table) -> int | None:
    """Return the first column if it has no name, as pandas and R write the names of rows."""
    position = table.index or 0
    if not table.has_header or len(table.names) < 2 or not is_unnamed(table.names[position]):
        return None
    return position


def counts_rows(cells: Sequence[Any]) -> bool:
    """Return whether ids only number the rows, from 0 or 1."""
    keys = as_keys(cells)
    return any(keys == [str(row + start) for row in range(len(keys))] for start in (0, 1))


def may_be_row_numbers(ids: Sequence[Any]) -> bool:
    """Return whether ids without a name may be left-over row numbers of a larger table: small whole numbers."""
    return len(ids) > 0 and _are_whole(ids) and _are_few(ids) and not counts_rows(ids)


def _increases(cells: Sequence[Any]) -> bool:
    """Return whether whole numbers increase and may be row numbers."""
    numbers = [int(key) for key in as_keys(cells) if key]
    return _are_few(cells) and all(before < after for before, after in pairwise(numbers))


def _are_few(cells: Sequence[Any]) -> bool:
    """Return whether distinct whole numbers are as small as row numbers of a table of a plausible size."""
    numbers = {int(key) for key in as_keys(cells) if key}
    return len(numbers) == len(cells) and min(numbers) >= 0 and max(numbers) < 10 * len(numbers)


def _are_text(cells: Sequence[Any]) -> bool:
    """Return whether most cells are no numbers, or all are and some have leading zeros, as '001'."""
    if not cells or not all(isinstance(cell, str) for cell in cells):
        return False
    numbers = sum(map(is_numeral, cells))
    return 2 * numbers < len(cells) or (numbers == len(cells) and any(re.fullmatch("0[0-9]+", cell) for cell in cells))


# -- the choice ------------------------------------------------------------------------------------------------------


def _shared(found: Sequence[Sequence[_Candidate]], overlap: _Overlap, least: float) -> list[list[_Candidate]]:
    """Return the candidates that have the same name in every table and overlapping values, by name.

    One of them must have at least the strength ``least``.
    """
    if len(found) < 2 or not all(found):
        return []
    by_name = [{one.name: one for one in reversed(own)} for own in found]
    groups = [[own[name] for own in by_name] for name in by_name[0] if name and all(name in own for own in by_name)]
    strong = [group for group in groups if max(one.strength for one in group) >= least]
    return [group for group in strong if any(one.strength != _COUNTER for one in group) and overlap(group)]


def _demand_agreement(best: Sequence[_Candidate | None], groups: Sequence[Sequence[_Candidate]]) -> None:
    """Raise an error if another column that all tables have matches the rows in another way."""
    chosen = [one for one in best if one is not None]
    for group in groups:
        if len(chosen) == len(group) and group[0].strength >= _TEXT and _contradict(chosen, group):
            raise InputError(
                f"The columns '{chosen[0].name}' and '{group[0].name}' are in every table, and both may hold sample "
                "ids, but they match different rows. Name the one that holds the ids (id_column)."
            )


def _contradict(one: Sequence[_Candidate], other: Sequence[_Candidate]) -> bool:
    """Return whether two columns that all tables have match the rows of the first tables in different ways."""
    to_first = {row: key for key, row in other[0].rows.items()}
    pairs = [
        (match, other[1].rows[second])
        for key, row in one[0].rows.items()
        if (match := one[1].rows.get(key)) is not None
        and (second := to_first.get(row)) is not None
        and second in other[1].rows
    ]
    return sum(first != second for first, second in pairs) > _CONTRADICTED * len(pairs)


def _overlap(group: Sequence[_Candidate]) -> bool:
    """Return whether values of every column occur in another one; of numbers under an unknown name, most of them."""
    least = _MOST if any(one.strength <= _UNKNOWN for one in group) else 0.0
    return all(
        any(
            len(one.keys & other.keys) > least * min(len(one.keys), len(other.keys))
            for other in group
            if other is not one
        )
        for one in group
    )


def _belong_together(best: Sequence[_Candidate | None], overlap: _Overlap) -> bool:
    """Return whether the best columns of all tables have one name, or are indices with common values."""
    if any(one is None for one in best):
        return False
    group = [one for one in best if one is not None]
    if len({one.name for one in group}) == 1 and group[0].name:
        return overlap(group)
    return all(one.strength == _DECLARED for one in group) and overlap(group)


def _decided(table: Table, found: Sequence[_Candidate], best: _Candidate | None, *, is_shared: bool) -> IdColumn:
    """Return the id column of one table; raise an error if its first column of numbers may hold ids."""
    counters = {one.position for one in found if one.strength == _COUNTER and one is not best}
    unknown = next((one for one in found if one.strength == _UNKNOWN), None)
    if unknown is not None and not is_shared and (best is None or best.strength <= _TEXT):
        of_text = (_TEXT, _TEXT - _REPEATED)
        if best is None or best.strength not in of_text or best.position > unknown.position:
            raise _unclear(table, unknown)
    if best is None or (best.strength in (_UNKNOWN, _ELSEWHERE) and not is_shared):
        return _without_ids(table, counters=counters)
    others = [
        one.position
        for one in found
        if one is not best and one.is_distinct and (one.strength > _LEFT_OVER or is_unnamed(table.names[one.position]))
    ]
    counting = {position for position in (_row_names(table), table.index) if position is not None}
    taken = _taken(table, best.position, {*others, *counting} - {best.position})
    if counters:
        listed = some([table.names[position] for position in sorted(counters)])
        note = f"Left out, since it counts the rows: {listed}."
        taken = replace(taken, skip=taken.skip | counters, notes=(*taken.notes, note))
    is_left_over = not best.name and best.strength in (_LEFT_OVER, _LEFT_OVER - _REPEATED)
    notes = taken.notes
    repeated = next(
        (one for one in found if one.position == table.index and not one.is_distinct and one is not best), None
    )
    if repeated is not None:
        notes += (f"The index of the table, '{table.names[repeated.position]}', has repeated values and is left out.",)
    return replace(taken, notes=notes, may_be_row_numbers=is_left_over)


def report_row_numbers(titles: Sequence[str], keys: Sequence[Set[str]]) -> None:
    """Warn if tables are matched by numbers that may only be the row numbers of a larger table.

    Parameters
    ----------
    titles : sequence of str
        The tables with such numbers.
    keys : sequence of sets of str
        The ids of all tables.
    """
    if titles and any(own != keys[0] for own in keys[1:]):
        warn_user(
            f"The rows of {joined(titles)} have numbers without a name, as if they were selected from a larger table. "
            "Samples are matched by these numbers. If they are row numbers and no ids, set the ids as the index or "
            "name their column (id_column). If they are ids, give the index a name."
        )


def _unclear(table: Table, column: _Candidate) -> InputError:
    name = table.names[column.position]
    called = f"column '{name}'" if table.has_header and name else f"column {column.position + 1}"
    advice = f"id_column='{name}'" if table.has_header and name else "id_column='…' with a header in the file"
    return InputError(
        f"The {called} of {table.title} may hold sample ids: every row has another whole number, such as "
        f"{some(sorted(column.keys, key=int)[:3])}, and no other column is known to hold ids. If these are the ids, "
        f"give {advice}; if they are a feature, give id_column=False, and rows are matched by their position."
    )


def _without_ids(table: Table, note: str = _NO_IDS, counters: Set[int] = frozenset()) -> IdColumn:
    if counters:
        listed = some([table.names[position] for position in sorted(counters)])
        return IdColumn(None, frozenset(counters), (f"Left out, since it counts the rows: {listed}.", note))
    position = _row_names(table)
    if position is None or position == table.index or not counts_rows(table.cells(position)):
        return IdColumn(None, frozenset(), (note,))
    return IdColumn(None, frozenset({position}), ("A column without a name counts the rows: it is left out.", note))


def _unread(table: Table) -> IdColumn:
    """Return that a table has no ids, as requested; columns that look like ids or row numbers are left out."""
    note = "Sample ids are not read, as requested."
    found = _candidates(table, frozenset())
    counters = {one.position for one in found if one.strength == _COUNTER}
    without = _without_ids(table, note, counters)
    others = {
        one.position
        for one in found
        if one.is_distinct and (one.strength > _LEFT_OVER or is_unnamed(table.names[one.position]))
    } - {table.index}
    if not others:
        return without
    left = some([table.names[position] or "the one without a name" for position in sorted(others)])
    return IdColumn(
        None, without.skip | others, (f"Left out, since every row has another value: {left}.", *without.notes)
    )


def _in_index(position: int) -> IdColumn:
    return IdColumn(position, frozenset({position}))


def _taken(table: Table, position: int, others: Set[int] = frozenset()) -> IdColumn:
    name = table.names[position]
    place = "index" if position == table.index else "column"
    note = f"Sample ids are in the {place} '{name}'." if not is_unnamed(name) else "Sample ids are in the first column."
    if position == table.index and is_unnamed(name):
        note = "Sample ids are in the index."
    notes = [note]
    left = [table.names[other] or "the one without a name" for other in sorted(others) if other != table.index]
    if left:
        notes.append(f"Left out, since every row has another value, as in ids: {some(left)}.")
    return IdColumn(position, frozenset({position, *others}), tuple(notes))


def demand_digits(title: str, cells: Sequence[Any], bits: int = 53) -> None:
    """Raise an error on ids that were stored as floats too large for whole numbers; warn of rounded ones.

    Parameters
    ----------
    title : str
        The table in a message.
    cells : sequence
        The ids as they are stored, or as text.
    bits : int, default=53
        Bits of the mantissa of the floats.
    """
    if lost := with_lost_digits(cells, bits):
        raise InputError(
            f"The sample ids of {title} are stored as floats of 2**{bits} or more, such as {lost[0]!r}, whose last "
            "digits are lost. Store the ids as text or as integers, from the original data."
        )
    if rounded := with_rounded_digits(cells):
        warn_user(
            f"Sample ids of {title} are in scientific notation with rounded digits: {some(rounded, 3)}. They may not "
            "match other ids. Write the ids in full."
        )


# -- columns that are left out ---------------------------------------------------------------------------------------


def read_drop(drop: Any, names: Sequence[str]) -> list[frozenset[str]]:
    """Return for every view the names of the columns to leave out.

    Parameters
    ----------
    drop : str, sequence of str, or mapping of views to these
        Names of columns, of any view or of the views named.
    names : sequence of str
        Names of the views.
    """
    if isinstance(drop, Mapping):
        unknown = [view for view in drop if view not in names]
        if unknown:
            raise InputError(f"drop names the views {some(unknown)}; there are {some(names, 10)}. Name one of these.")
        return [_names_of_columns(drop.get(view)) for view in names]
    return [_names_of_columns(drop)] * len(names)


def _names_of_columns(given: Any) -> frozenset[str]:
    names = [] if given is None else [given] if isinstance(given, str) else given
    names = list(names) if isinstance(names, Iterable) else [names]
    if not all(isinstance(name, str) for name in names):
        raise ParameterTypeError(
            f"drop must be the name of a column, a list of names, or a dict with these for each view; got {given!r}."
        )
    return frozenset(names)


def check_dropped(drop: Mapping[str, Set[str]], tables: Mapping[str, Sequence[str]]) -> None:
    """Raise an error if a column that is to be left out is in none of the tables.

    Parameters
    ----------
    drop : mapping of str to set of str
        Names of the views, and of the columns to leave out of each.
    tables : mapping of str to sequence of str
        Names of the views, and of all columns of each.
    """
    known = {column for view, columns in tables.items() for column in columns if column in drop.get(view, ())}
    unknown = sorted({column for columns in drop.values() for column in columns} - known)
    if unknown:
        listed = "; ".join(f"'{view}' has {some(columns, 8)}" for view, columns in tables.items())
        raise InputError(
            f"drop (--drop) names {some(unknown)}, which no table has: {listed}. Name a column as it is written."
        )


def own_columns(table: Table, candidates: Iterable[int]) -> set[int]:
    """Return the columns that ``gapview recover`` has added to a table; warn of one that may be such a column."""
    positions = list(candidates)
    names = {table.names[k] for k in positions}
    is_sure = names & {"confidence", "distance"} or any(name.startswith("contribution_") for name in names)
    if "label" in names and is_sure and all(_OF_LABELS.fullmatch(name) for name in names):
        raise InputError(
            f"The columns of {table.title} are the groups that gapview has written, not measurements. Give the tables "
            "from which they were computed; rename the columns to use them as a view."
        )
    if positions and all(_OF_EMBEDDING.fullmatch(table.names[k]) for k in positions):
        raise InputError(
            f"The columns of {table.title} are those of an embedding that gapview has written, not measurements. Give "
            "the tables from which it was computed; rename the columns to use them as a view."
        )
    found = {k for k in positions if re.sub(r"_\d+$", "", table.names[k]) in _RECOVERED}
    doubtful = [k for k in positions[-2:] if table.names[k] == "recovered" and _is_flag(table.cells(k))]
    if doubtful:
        warn_user(
            f"The last column of {table.title} is 'recovered', with 0 and 1, as gapview 0.1 wrote it to mark recovered "
            "rows: it is left out. Rename it if it is a feature."
        )
    return found | set(doubtful)


def _is_flag(cells: Sequence[Any]) -> bool:
    return set(as_keys(cells)) <= {"0", "1"}


# -- columns of words ------------------------------------------------------------------------------------------------


def encoded(name: str, cells: Sequence[Any]) -> dict[str, list[float]] | None:
    """Return a column of 0 and 1 for every word of a column, NaN where it is missing; None if there are too many."""
    words = sorted({str(cell) for cell in cells if cell is not None})
    if len(words) > MOST_CATEGORIES:
        return None
    return {
        f"{name}={word}": [float("nan") if cell is None else float(str(cell) == word) for cell in cells]
        for word in words
    }


def warn_left_out(title: str, left_out: Mapping[str, Sequence[str]]) -> None:
    """Warn of columns that are no numbers and therefore left out, by kind."""
    for kind, names in left_out.items():
        if names:
            advice = (
                "Encode it (encode=True), or silence this warning (drop)."
                if kind == "of text"
                else ("Silence this warning (drop), or turn it into numbers.")
            )
            advice = advice if len(names) == 1 else advice.replace(" it ", " them ")
            warn_user(f"{counted(len(names), 'column')} {kind} of {title} left out: {some(names)}. {advice}")
