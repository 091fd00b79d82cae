"""What else is known of the samples: a table keyed by sample id, and how the groups go with its columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import stats

from ...utils.types import Array
from ._association import associate, holm
from ._covariate_table import Column, CovariateTable
from ._survival import Curve, find_pairs, kaplan_meier, log_rank

__all__ = ["Comparison", "Covariates", "Quartiles", "compare_covariates"]

_MOST_LEVELS = 20  # of a category; rarer ones are taken together
_LEAST_COMPARED = 5  # samples with a value


@dataclass(frozen=True)
class Quartiles:
    """The middle half of a column in one group."""

    n_samples: int
    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """How the groups go with one column, or with a pair of columns that tell of survival.

    Attributes
    ----------
    kind : {"numbers", "categories", "survival"}
        Compared by Kruskal-Wallis, by chi-square, or by log-rank.
    strength : float
        ε² = H / (n − 1) for numbers, Cramér's V for categories; NaN for survival.
    adjusted : float
        The p-value after Holm's correction for all columns compared.
    quartiles, counts, curves
        What was seen in every group: one of the three is filled. Rows of ``counts`` are groups, columns ``levels``.
    """

    column: str
    kind: str
    n_samples: int
    statistic: float
    strength: float
    p_value: float
    adjusted: float = float("nan")
    n_tables: int = 0
    quartiles: tuple[Quartiles | None, ...] = ()
    levels: tuple[str, ...] = ()
    counts: Array = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    curves: tuple[Curve | None, ...] = ()


@dataclass(frozen=True)
class Covariates:
    """All comparisons, the columns that could not be compared and why, and how many samples the table knows."""

    comparisons: tuple[Comparison, ...]
    left_out: tuple[tuple[str, str], ...]
    n_matched: int
    n_unknown: int


def compare_covariates(
    table: CovariateTable, labels: Array, n_groups: int, survival: Sequence[tuple[str, str]] | None
) -> Covariates:
    """Compare the groups in every column, and correct for the number of columns."""
    numbers = [name for name, column in table.columns.items() if column.is_number]
    flags = [name for name, column in table.columns.items() if column.flags is not None]
    pairs = find_pairs(numbers, flags) if survival is None else [table.demand_pair(*pair) for pair in survival]
    paired = {name for pair in pairs for name in pair}
    found: list[Comparison] = []
    left_out = list(table.left_out)
    for time, event in pairs:
        _sort(found, left_out, f"{time} / {event}", _survival(table, time, event, labels, n_groups))
    for name, column in table.columns.items():
        if name not in paired:
            compare = _numbers if column.is_number else _categories
            _sort(found, left_out, name, compare(column, labels, n_groups))
    corrected = holm([one.p_value for one in found])
    comparisons = tuple(replace(one, adjusted=p) for one, p in zip(found, corrected, strict=True))
    return Covariates(comparisons, tuple(left_out), table.n_matched, table.n_unknown)


def _sort(
    found: list[Comparison], left_out: list[tuple[str, str]], name: str, result: tuple[str, Comparison | None]
) -> None:
    reason, comparison = result
    if comparison is None:
        left_out.append((name, reason))
    else:
        found.append(replace(comparison, column=name))


def _numbers(column: Column, labels: Array, n_groups: int) -> tuple[str, Comparison | None]:
    known = np.isfinite(column.numbers)
    values, groups = column.numbers[known], labels[known]
    parts = [values[groups == g] for g in range(n_groups)]
    filled = [part for part in parts if len(part)]
    if len(values) < _LEAST_COMPARED or len(filled) < 2:
        return "too few samples have a value in at least two groups", None
    if not np.ptp(values):
        return "it is the same for all samples", None
    statistic, p_value = (float(value) for value in stats.kruskal(*filled))
    quartiles = tuple(
        Quartiles(len(part), *(float(q) for q in np.percentile(part, [25, 50, 75]))) if len(part) else None
        for part in parts
    )
    strength = min(max(statistic / (len(values) - 1), 0.0), 1.0)
    return "", Comparison("", "numbers", len(values), statistic, strength, p_value, quartiles=quartiles)


def _categories(column: Column, labels: Array, n_groups: int) -> tuple[str, Comparison | None]:
    known = np.array([text is not None for text in column.texts])
    texts, groups = [text for text in column.texts if text is not None], labels[known]
    frequent = Counter(texts).most_common()
    if len(frequent) < 2:
        return "it is the same for all samples" if frequent else "it is empty for all samples", None
    if len(frequent) > max(_MOST_LEVELS, len(texts) // 2):
        return "nearly every sample has a value of its own", None
    levels = [level for level, _ in frequent[: _MOST_LEVELS - (len(frequent) > _MOST_LEVELS)]]
    if len(frequent) > len(levels):
        levels.append(f"{len(frequent) - len(levels)} rarer values")
    place = {level: i for i, level in enumerate(levels)}
    codes = np.array([place.get(text, len(levels) - 1) for text in texts])
    tested = associate(groups, codes)
    if tested is None or len(texts) < _LEAST_COMPARED:
        return "too few samples have a value in at least two groups", None
    counts = np.zeros((n_groups, len(levels)), dtype=np.int64)
    np.add.at(counts, (groups, codes), 1)
    comparison = Comparison("", "categories", len(texts), tested.statistic, tested.strength, tested.p_value)
    return "", replace(comparison, n_tables=tested.n_tables, levels=tuple(levels), counts=counts)


def _survival(
    table: CovariateTable, time: str, event: str, labels: Array, n_groups: int
) -> tuple[str, Comparison | None]:
    times, flags = table.columns[time].numbers, table.columns[event].flags
    assert flags is not None
    known = np.isfinite(times) & np.isfinite(flags)
    times, events, groups = times[known], flags[known], labels[known]
    if len(times) and times.min() < 0:
        return "some of its times are negative", None
    tested = log_rank(times, events, groups) if len(times) >= _LEAST_COMPARED else None
    if tested is None:
        return "too few samples have times and events in at least two groups", None
    curves = tuple(
        kaplan_meier(times[groups == g], events[groups == g]) if (groups == g).any() else None for g in range(n_groups)
    )
    return "", Comparison("", "survival", len(times), tested[0], float("nan"), tested[2], curves=curves)
