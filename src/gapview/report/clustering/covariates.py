"""Comparison of the groups in every column of a table of covariates, survival included."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import stats

from ...utils.types import Array
from .covariate_table import Column, CovariateTable
from .groups import associate, holm

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


@dataclass(frozen=True)
class Covariates:
    """All comparisons, the columns left out with reasons, and the number of samples in the table."""

    comparisons: tuple[Comparison, ...]
    left_out: tuple[tuple[str, str], ...]
    n_matched: int
    n_unknown: int


def compare_covariates(
    table: CovariateTable, labels: Array, n_groups: int, survival: Sequence[tuple[str, str]] | None
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
    return Covariates(comparisons, (*table.left_out, *left_out), table.n_matched, table.n_unknown)


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
    quartiles = tuple(
        Quartiles(len(part), *(float(q) for q in np.percentile(part, [25, 50, 75]))) if len(part) else None
        for part in parts
    )
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


def _survival(table: CovariateTable, time: str, event: str, labels: Array, n_groups: int) -> Comparison | str:
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
