"""Covariates: tables matched to the samples, and the comparison of the groups in every column, survival included."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import stats

from ...errors import InputError, InputTypeError, ParameterError, extra, some
from ...utils.types import Array
from ...views.containers import descends
from ...views.keys import as_keys
from .samples import associate, holm

# -- tables ------------------------------------------------------------------------------------------------------------


_YES = {"1", "1.0", "true", "yes", "y", "t", "dead", "deceased", "died", "event"}
_NO = {"0", "0.0", "false", "no", "n", "f", "alive", "living", "censored", "none"}


@dataclass(frozen=True)
class Column:
    """One column with a value for every sample: numbers, NaN if missing, or texts, None if missing."""

    numbers: Array | Any = field(repr=False)
    texts: list[str | None] = field(repr=False)
    is_number: bool
    flags: Array | None = field(repr=False)  # 0, 1 and NaN, if the column may hold events


@dataclass(frozen=True)
class Covariates:
    """A table with one row for each sample, and the comparisons of the groups in its columns."""

    columns: Mapping[str, Column] = field(repr=False)
    left_out: tuple[tuple[str, str], ...]  # names of columns and reasons
    n_matched: int
    n_unknown: int  # rows that belong to no sample
    comparisons: tuple[Comparison, ...] = ()

    def check_pair(self, time: str, event: str) -> tuple[str, str]:
        """Return the names of two columns; raise an error unless they hold times and events."""
        lacking = [name for name in (time, event) if name not in self.columns]
        if lacking:
            raise ParameterError(
                f"survival names columns that covariates does not have: {some(lacking)}; it has {some(self.columns)}."
            )
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
    return [None if _is_missing(cell) else cell for cell in values.astype(object).tolist()]


def _is_missing(cell: Any) -> bool:
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell)


def _read_column(values: Any, places: Array, ids: set[str | None]) -> Column | str:
    """Return a column in the order of the samples, or the reason why it is left out."""
    if getattr(values.dtype, "kind", "O") in "mMc":
        return "dates, spans of time and complex numbers are not compared"
    cells = _cells(values)
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
    texts = [None if cell is None else str(cell) for cell in ordered]
    if not is_number and _are_ids({text.strip() for text in texts if text is not None}, ids):
        return "it holds ids of samples"
    numbers = np.array([float(cell) if numeric and cell is not None else np.nan for cell in ordered])
    return Column(numbers, texts, is_number, _flags(texts))


def _flags(texts: list[str | None]) -> Array | None:
    words = {text.strip().lower() for text in texts if text is not None}
    if not words or not words <= _YES | _NO or not words & _YES:
        return None
    return np.array([np.nan if text is None else float(text.strip().lower() in _YES) for text in texts])


def _are_ids(texts: set[str], ids: set[str | None]) -> bool:
    named = texts & ids
    # 0 and 1 are ordinary values, even if they are ids; many different ids are not
    return any(not text.isdigit() for text in named if text) or (len(named) > 2 and 2 * len(named) > len(texts))


# -- survival ----------------------------------------------------------------------------------------------------------


_TIME_WORDS = {"time", "times", "days", "months", "years", "duration", "followup"}
_EVENT_WORDS = {"event", "events", "status", "dead", "death", "died"}
_SHARED_WORDS = {"to", "of", "last", "survival", "follow", "up", "in", "until"}
_ROUNDING = 1e-10  # relative


@dataclass(frozen=True)
class Curve:
    """Kaplan-Meier curve of one group: the share without the event from each time on."""

    n_samples: int
    n_events: int
    median: float  # time at which half of the group had the event; NaN if never
    times: Array = field(repr=False)
    share: Array = field(repr=False)


def find_pairs(numbers: Sequence[str], flags: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of columns of times and events, matched by name, such as OS.time and OS, or days and event.

    ``numbers`` may hold times, ``flags`` have two values. Without the words for times and events, both names must be
    the same. No column is used twice.
    """
    pairs = []
    free = list(flags)
    for name in numbers:
        words = _words(name)
        if not words & _TIME_WORDS:
            continue
        fitting = [flag for flag in free if flag != name and _is_event_of(_words(flag), words)]
        if len(fitting) == 1:  # several are ambiguous
            pairs.append((name, fitting[0]))
            free.remove(fitting[0])
    return pairs


def _words(name: str) -> set[str]:
    return set(re.findall(r"[a-z]+|[0-9]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()))


def _is_event_of(flag: set[str], time: set[str]) -> bool:
    topic, other = (words - _TIME_WORDS - _EVENT_WORDS - _SHARED_WORDS for words in (time, flag))
    # Without a word for events, the name is the topic alone, such as OS for OS.time
    return topic == other and bool(flag & _EVENT_WORDS or other) and not flag & _TIME_WORDS


def kaplan_meier(times: Array, events: Array) -> Curve:
    """Return the Kaplan-Meier estimate; censored samples are at risk until their time."""
    curve = stats.ecdf(stats.CensoredData.right_censored(times, events == 0)).sf
    reached = np.flatnonzero(curve.probabilities <= 0.5 + 1e-12)
    median = float(curve.quantiles[reached[0]]) if reached.size else float("nan")
    return Curve(len(times), int(events.sum()), median, curve.quantiles, curve.probabilities)


def log_rank(times: Array, events: Array, groups: Array) -> tuple[float, int, float] | None:
    """Return chi-square, degrees of freedom and p-value of the log-rank test for equal survival in all groups.

    At every time with events, these are compared with the events expected from the shares of the groups among the
    samples at risk (Mantel 1966). None if the variance is 0, such as with one group only.
    """
    kinds, groups = np.unique(groups, return_inverse=True)
    moments, places = np.unique(times, return_inverse=True)
    left, died = np.zeros((2, len(moments), len(kinds)))
    np.add.at(left, (places, groups), 1)
    np.add.at(died, (places, groups), events)
    at_risk = np.cumsum(left[::-1], axis=0)[::-1]
    total, n_dead = at_risk.sum(axis=1), died.sum(axis=1)
    shares = at_risk / total[:, None]
    excess = died.sum(axis=0) - n_dead @ shares
    spread = n_dead * (total - n_dead) / np.maximum(total - 1, 1)
    variances, directions = np.linalg.eigh(np.diag(spread @ shares) - (spread * shares.T) @ shares)
    known = variances > _ROUNDING * spread.sum()  # the deviations of all groups sum to 0: at least one is rounding
    if not known.any():
        return None
    statistic = float((np.square(excess @ directions[:, known]) / variances[known]).sum())
    degrees = int(known.sum())
    return statistic, degrees, float(stats.chi2.sf(statistic, degrees))


# -- comparisons -------------------------------------------------------------------------------------------------------


_MOST_LEVELS = 20  # of a category; rarer ones are combined
_LEAST_COMPARED = 5  # samples with a value


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
    kind : {"numbers", "categories", "survival"}
        Compared by Kruskal-Wallis, by chi-square, or by log-rank.
    strength : float
        ε² = H / (n − 1) for numbers, Cramér's V for categories; NaN for survival.
    adjusted : float
        The p-value after Holm's correction for all columns compared.
    quartiles, counts, curves
        Values of every group; one of the three is filled. Rows of ``counts`` are groups, columns ``levels``.
    """

    kind: str
    n_samples: int
    statistic: float
    strength: float
    p_value: float
    column: str = ""
    adjusted: float = float("nan")
    n_tables: int = 0
    quartiles: tuple[Quartiles | None, ...] = ()
    levels: tuple[str, ...] = ()
    counts: Array = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    curves: tuple[Curve | None, ...] = ()


def compare_covariates(
    table: Covariates, labels: Array, n_groups: int, survival: Sequence[tuple[str, str]] | None
) -> Covariates:
    """Compare the groups in every column, with p-values corrected for the number of columns."""
    numbers = [name for name, column in table.columns.items() if column.is_number]
    flags = [name for name, column in table.columns.items() if column.flags is not None]
    pairs = find_pairs(numbers, flags) if survival is None else [table.check_pair(*pair) for pair in survival]
    paired = {name for pair in pairs for name in pair}
    results = {f"{time} / {event}": _survival(table, time, event, labels, n_groups) for time, event in pairs}
    for name, column in table.columns.items():
        if name not in paired:
            compare = _numbers if column.is_number else _categories
            results[name] = compare(column, labels, n_groups)
    found = [replace(one, column=name) for name, one in results.items() if isinstance(one, Comparison)]
    left_out = [(name, reason) for name, reason in results.items() if isinstance(reason, str)]
    corrected = holm([one.p_value for one in found])
    comparisons = tuple(replace(one, adjusted=p) for one, p in zip(found, corrected, strict=True))
    return replace(table, comparisons=comparisons, left_out=(*table.left_out, *left_out))


def _numbers(column: Column, labels: Array, n_groups: int) -> Comparison | str:
    known = np.isfinite(column.numbers)
    values, groups = column.numbers[known], labels[known]
    parts = [values[groups == g] for g in range(n_groups)]
    filled = [part for part in parts if len(part)]
    if len(values) < _LEAST_COMPARED or len(filled) < 2:
        return "too few samples have a value in at least two groups"
    if not np.ptp(values):
        return "it is the same for all samples"
    statistic, p_value = (float(value) for value in stats.kruskal(*filled))
    shares = [25, 50, 75]
    quartiles = tuple(Quartiles(len(p), *np.percentile(p, shares).tolist()) if len(p) else None for p in parts)
    strength = min(max(statistic / (len(values) - 1), 0.0), 1.0)
    return Comparison("numbers", len(values), statistic, strength, p_value, quartiles=quartiles)


def _categories(column: Column, labels: Array, n_groups: int) -> Comparison | str:
    known = np.array([text is not None for text in column.texts])
    texts, groups = [text for text in column.texts if text is not None], labels[known]
    frequent = Counter(texts).most_common()
    if len(frequent) < 2:
        return "it is the same for all samples" if frequent else "it is empty for all samples"
    if len(frequent) > max(_MOST_LEVELS, len(texts) // 2):
        return "nearly every sample has a value of its own"
    levels = [level for level, _ in frequent[: _MOST_LEVELS - (len(frequent) > _MOST_LEVELS)]]
    if len(frequent) > len(levels):
        levels.append(f"{len(frequent) - len(levels)} rarer values")
    place = {level: i for i, level in enumerate(levels)}
    codes = np.array([place.get(text, len(levels) - 1) for text in texts])
    tested = associate(groups, codes)
    if tested is None or len(texts) < _LEAST_COMPARED:
        return "too few samples have a value in at least two groups"
    counts = stats.contingency.crosstab(groups, codes, levels=(range(n_groups), range(len(levels)))).count
    figures = len(texts), tested.statistic, tested.strength, tested.p_value
    return Comparison("categories", *figures, n_tables=tested.n_tables, levels=tuple(levels), counts=counts)


def _survival(table: Covariates, time: str, event: str, labels: Array, n_groups: int) -> Comparison | str:
    times, flags = table.columns[time].numbers, table.columns[event].flags
    assert flags is not None
    known = np.isfinite(times) & np.isfinite(flags)
    times, events, groups = times[known], flags[known], labels[known]
    if len(times) and times.min() < 0:
        return "some of its times are negative"
    tested = log_rank(times, events, groups) if len(times) >= _LEAST_COMPARED else None
    if tested is None:
        return "too few samples have times and events in at least two groups"
    curves = tuple(
        kaplan_meier(times[groups == g], events[groups == g]) if (groups == g).any() else None for g in range(n_groups)
    )
    return Comparison("survival", len(times), tested[0], float("nan"), tested[2], curves=curves)
