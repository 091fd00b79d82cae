"""Covariates: tables matched to the samples, their columns, and the results of comparing the groups in these."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import InputError, InputTypeError, ParameterError, extra, some
from ...trust import GroupSurvival
from ...trust.association import SIGNIFICANT
from ...utils.messages import counted, joined, shorten
from ...utils.types import Array
from ...views.containers import descends, is_missing
from ...views.keys import as_keys
from .levels import order_levels

# -- tables ------------------------------------------------------------------------------------------------------------


# What TCGA, cBioPortal and the GDC write where nothing is known, besides any text in square brackets
_NOT_GIVEN = {"", "na", "n/a", "nan", "null", "--", "'--", "not reported", "not available", "not applicable", "unknown"}
_BRACKETED = re.compile(r"\[[^\]]*\]")
_MOST_STEPS = 10  # integers of a scale, from 0
_CODED = re.compile(r"([01]):.*", re.DOTALL)  # cBioPortal: 0:LIVING, 1:DECEASED
_YES = {"1", "1.0", "true", "yes", "y", "t", "dead", "deceased", "died", "event"}
_YES |= {"recurred", "progressed", "recurred/progressed", "progression", "relapse", "relapsed"}
_NO = {"0", "0.0", "false", "no", "n", "f", "alive", "living", "censored", "none", "diseasefree", "disease free"}


@dataclass(frozen=True)
class Column:
    """One column with a value for every sample: numbers, NaN if missing, or texts, None if missing."""

    numbers: Array | Any = field(repr=False)
    texts: list[str | None] = field(repr=False)
    is_number: bool
    flags: Array | None = field(repr=False)  # 0, 1 and NaN, if the column may hold events
    ranks: Mapping[str, float] = field(default_factory=dict, repr=False)  # of ordered texts, lowest first; NaN if none

    @property
    def scores(self) -> Array:
        """Ranks of an ordered column, or its numbers; NaN if missing."""
        if not self.ranks:
            return np.asarray(self.numbers)
        return np.array([np.nan if text is None else self.ranks[text] for text in self.texts])


@dataclass(frozen=True)
class Quartiles:
    """Quartiles of a column in one group."""

    n_samples: int
    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """Differences between the groups in one column, or in a pair of columns with times and events.

    Attributes
    ----------
    kind : {"numbers", "ordered", "categories", "survival"}
        Compared by Kruskal-Wallis, by Kruskal-Wallis on ranks, by chi-square, or by log-rank.
    statistic, degrees : float, int
        Kruskal-Wallis H, or chi-square of the contingency table or of the log-rank test, and degrees of freedom.
    strength : float
        ε² = H / (n − 1) for numbers and ordered categories, Cramér's V for categories; NaN for survival.
    adjusted : float
        The p-value after Holm's correction for all columns compared.
    quartiles, counts, survival
        Values of every group; one of the three is filled. Rows of ``counts`` are groups, columns ``levels``.
    note : str
        How the times of survival were combined, if they were.
    """

    kind: str
    n_samples: int
    statistic: float
    degrees: int
    strength: float
    p_value: float
    column: str = ""
    adjusted: float = float("nan")
    n_tables: int = 0
    quartiles: tuple[Quartiles | None, ...] = ()
    levels: tuple[str, ...] = ()
    counts: Array = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    survival: GroupSurvival | None = None
    note: str = ""


@dataclass(frozen=True)
class Covariates:
    """A table with one row for each sample, and the comparisons of the groups in its columns."""

    columns: Mapping[str, Column] = field(repr=False)
    left_out: tuple[tuple[str, str], ...]  # names of columns and reasons
    n_matched: int
    n_unknown: int  # rows that belong to no sample
    comparisons: tuple[Comparison, ...] = ()

    @property
    def sentence(self) -> str:
        """The columns in which the groups differ significantly."""
        n_tests = len(self.comparisons)
        if not n_tests:
            return "None of the columns can be compared between the groups."
        firm = [shorten(one.column) for one in self.comparisons if one.adjusted < SIGNIFICANT]
        named = joined(firm[:12]) + (f" and {len(firm) - 12} more" if len(firm) > 12 else "")
        found = f"At a Holm-adjusted p < {SIGNIFICANT:g} ({counted(n_tests, 'test')}), the groups differ in "
        return f"{found}{named or 'none of the columns'}."

    def check_columns(self, parameter: str, names: Sequence[str]) -> None:
        """Raise an error if a parameter names columns that the table does not have."""
        lacking = [name for name in names if name not in self.columns]
        if lacking:
            raise ParameterError(
                f"{parameter} names columns that covariates does not have: {some(lacking)}; it has "
                f"{some(self.columns, 30)}."
            )

    def check_pair(self, time: str, event: str) -> tuple[str, str]:
        """Return the names of two columns; raise an error unless they hold times and events."""
        self.check_columns("survival", (time, event))
        if not self.columns[time].is_number or self.columns[event].flags is None:
            raise ParameterError(
                "survival must name a column of times, as numbers, and a column of events, 1 if the event was observed "
                f"and 0 if not; got '{time}' and '{event}', which hold other values."
            )
        return time, event


def read_pairs(survival: Any) -> list[tuple[str, str]] | None:
    """Return the pairs of columns with times and events; None to detect them by name."""
    if survival is None:
        return None
    pairs = [survival] if isinstance(survival, tuple) and all(isinstance(name, str) for name in survival) else survival
    fitting = isinstance(pairs, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(name, str) for name in pair)
        for pair in pairs
    )
    if not fitting:
        raise ParameterError(
            "survival must be a pair of columns, (time, event), a list of such pairs, or None to find them by their "
            f"names; got {survival!r}."
        )
    return [(str(time), str(event)) for time, event in pairs]


def read_names(name: str, given: Any) -> tuple[str, ...]:
    """Return names of columns from one name or a sequence of them."""
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not all(isinstance(one, str) for one in names):
        raise ParameterError(f"{name} must be names of columns of covariates, such as ['age', 'stage']; got {given!r}.")
    return tuple(names)


def match_covariates(covariates: Any, sample_ids: Array, *, no_ids: bool) -> Covariates:
    """Return the columns of a frame in the order of the samples."""
    frame, wanted = _as_pandas(covariates), as_keys(sample_ids.tolist())
    keys, key_column = _row_keys(frame, wanted)
    row_of = {key: row for row, key in enumerate(keys) if key is not None}
    places = np.array([-1 if key is None else row_of.get(key, -1) for key in wanted])
    columns: dict[str, Column] = {}
    left_out: list[tuple[str, str]] = []
    for position, name in enumerate(map(str, frame.columns)):
        if position == key_column:
            continue
        column = _read_column(frame.iloc[:, position], places, set(wanted) if no_ids else set())
        if isinstance(column, str):
            left_out.append((name, column))
        elif name in columns:
            left_out.append((name, "there is another column of this name"))
        else:
            columns[name] = column
    n_matched = int((places >= 0).sum())
    return Covariates(columns, tuple(left_out), n_matched, len(keys) - n_matched)


def _as_pandas(covariates: Any) -> Any:
    if not descends(covariates, "pandas", "DataFrame") and not descends(covariates, "polars", "DataFrame"):
        raise InputTypeError(
            "covariates must be a pandas frame whose index holds the sample ids, or a pandas or polars frame with a "
            f"column of them; got {type(covariates).__name__}."
        )
    pd = extra("pandas", "tables", "Reading covariates")
    return covariates if isinstance(covariates, pd.DataFrame) else pd.DataFrame(covariates.to_dict(as_series=False))


def _row_keys(frame: Any, wanted: list[str | None]) -> tuple[list[str | None], int | None]:
    """Return the ids of the rows: the index, or if it matches no sample, the column that matches most and its place."""
    known = set(wanted)
    keys, position = as_keys(_cells(frame.index)), None
    if not known & set(keys):
        columns = [as_keys(_cells(frame.iloc[:, j])) for j in range(frame.shape[1])]
        n_known = [len(known & set(column)) for column in columns]
        if not any(n_known):
            raise InputError(
                "covariates has a row for none of the samples: neither its index nor a column holds their ids. The "
                f"samples are called {some(wanted)}; its index begins with {some(keys)}. Make the sample ids its index."
            )
        position = int(np.argmax(n_known))
        keys = columns[position]
    repeated = Counter(key for key in keys if key in known) - Counter(known)
    if repeated:
        raise InputError(
            f"covariates must have one row for each sample; {repeated.total()} row(s) repeat an id: "
            f"{some(repeated.elements())}. Keep one row of each."
        )
    return keys, position


def _cells(values: Any) -> list[Any]:
    """Return the cells of a column or an index, None for missing ones."""
    return [None if is_missing(cell) else cell for cell in values.astype(object).tolist()]


def _read_column(values: Any, places: Array, ids: set[str | None]) -> Column | str:
    """Return a column in the order of the samples, or the reason why it is left out."""
    if getattr(values.dtype, "kind", "O") in "mMc":
        return "dates, spans of time and complex numbers are not compared"
    raw = _cells(values)
    cells = _as_numbers(raw, [_given(cell) for cell in raw])
    ordered = [None if place < 0 else cells[place] for place in places]
    given = [cell for cell in ordered if cell is not None]
    if any(isinstance(cell, list | dict | set | tuple | np.ndarray) for cell in given):
        return "its cells are neither numbers nor text"
    if not given:
        return "it is empty for all samples"
    numeric = all(
        isinstance(cell, int | float | np.integer | np.floating) and not isinstance(cell, bool) for cell in given
    )
    # A column with two different numbers is a category, such as 0 and 1 for no and yes
    is_number = numeric and len(set(given)) > 2
    scale = _scale(values, given, numeric)
    texts = [None if cell is None else f"{cell:g}" if numeric else str(cell) for cell in ordered]
    if not is_number and _are_ids({text.strip() for text in texts if text is not None}, ids):
        return "it holds ids of samples"
    numbers = np.array([float(cell) if numeric and cell is not None else np.nan for cell in ordered])
    return Column(numbers, texts, is_number, _flags(texts), scale)


def _scale(values: Any, given: list[Any], numeric: bool) -> dict[str, float]:
    """Return the ranks of ordered values: of an ordered categorical, of a few small integers, or of clinical words."""
    different = dict.fromkeys(given)
    if getattr(values.dtype, "ordered", False):
        levels = [level for level in values.cat.categories if level in different]
        return {f"{level:g}" if numeric else str(level): float(place) for place, level in enumerate(levels)}
    if numeric:
        few = 2 < len(different) <= _MOST_STEPS and all(cell in range(_MOST_STEPS) for cell in different)
        return {f"{cell:g}": float(cell) for cell in sorted(different)} if few else {}
    return order_levels(map(str, different))


def _given(cell: Any) -> Any:
    """Return a cell, None if it is a text for a missing value."""
    if isinstance(cell, str):
        text = cell.strip()
        return None if text.lower() in _NOT_GIVEN or _BRACKETED.fullmatch(text) else cell
    return cell


def _as_numbers(cells: list[Any], given: list[Any]) -> list[Any]:
    """Return texts as numbers if texts for missing values are the only reason that they were read as text."""
    if given.count(None) == cells.count(None):
        return given
    try:
        return [float(cell) if isinstance(cell, str) else cell for cell in given]
    except ValueError:
        return given


def _flags(texts: list[str | None]) -> Array | None:
    """Return 1 for an event and 0 for none, NaN if missing; None if the column holds something else."""
    words = [None if text is None else _CODED.sub(r"\1", text.strip().lower()) for text in texts]
    different = {word for word in words if word is not None}
    if not different or not different <= _YES | _NO or not different & _YES:
        return None
    return np.array([np.nan if word is None else float(word in _YES) for word in words])


def _are_ids(texts: set[str], ids: set[str | None]) -> bool:
    named = texts & ids
    # 0 and 1 are ordinary values, even if they are ids; many different ids are not
    return any(not text.isdigit() for text in named if text) or (len(named) > 2 and 2 * len(named) > len(texts))
