"""Whether two divisions of the same samples go together, and what remains of many such tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from ...utils.types import Array

__all__ = ["Association", "associate", "holm"]

N_TABLES = 999
_CELLS_AT_A_TIME = 2_000_000
_ENOUGH = 5.0  # expected samples in every cell from which the chi-square distribution is near enough


@dataclass(frozen=True)
class Association:
    """How far two divisions of the same samples go together.

    Attributes
    ----------
    statistic : float
        Pearson's chi-square.
    strength : float
        Cramér's V less what chance would give (Bergsma 2013): 0, nothing in common; 1, the one follows from the other.
    p_value : float
        How often a statistic at least as large comes about if the two have nothing to do with each other.
    n_tables : int
        Random tables with the same margins that the p-value was counted on; 0 if it is from the chi-square
        distribution.
    """

    statistic: float
    strength: float
    p_value: float
    n_tables: int


def associate(rows: Array, columns: Array, *, seed: int = 0, draw: bool = False) -> Association | None:
    """Test whether two divisions, given as whole numbers for each sample, go together; None if one has one part only.

    The p-value comes from the chi-square distribution where every cell is expected to hold at least five samples, else,
    or with ``draw``, from random tables with the same margins, which is what shuffling the samples would give.
    """
    counts = np.zeros((int(rows.max(initial=-1)) + 1, int(columns.max(initial=-1)) + 1), dtype=np.int64)
    np.add.at(counts, (rows, columns), 1)
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    if min(counts.shape) < 2:
        return None
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    statistic = float((np.square(counts - expected) / expected).sum())
    if expected.min() >= _ENOUGH and not draw:
        degrees = (counts.shape[0] - 1) * (counts.shape[1] - 1)
        return Association(statistic, _strength(statistic, counts), float(stats.chi2.sf(statistic, degrees)), 0)
    return Association(statistic, _strength(statistic, counts), _drawn(statistic, counts, expected, seed), N_TABLES)


def _strength(statistic: float, counts: Array) -> float:
    n_samples, (n_rows, n_columns) = int(counts.sum()), counts.shape
    if n_samples < 2:
        return 0.0
    by_chance = (n_rows - 1) * (n_columns - 1) / (n_samples - 1)
    shape = [size - (size - 1) ** 2 / (n_samples - 1) for size in (n_rows, n_columns)]
    room = min(shape) - 1
    return float(np.sqrt(min(max(statistic / n_samples - by_chance, 0.0) / room, 1.0))) if room > 0 else 0.0


def _drawn(statistic: float, counts: Array, expected: Array, seed: int) -> float:
    """Count how many random tables with the same margins differ from what is expected at least as much."""
    random_tables = stats.random_table(counts.sum(axis=1), counts.sum(axis=0))
    state = np.random.RandomState(seed)
    at_a_time = max(1, min(N_TABLES, _CELLS_AT_A_TIME // counts.size))
    n_as_large = 0
    for begin in range(0, N_TABLES, at_a_time):
        tables = random_tables.rvs(min(at_a_time, N_TABLES - begin), random_state=state)
        differing = (np.square(tables - expected) / expected).sum(axis=(1, 2))
        n_as_large += int((differing >= statistic * (1 - 1e-9)).sum())  # equal but for rounding is as large
    return (1 + n_as_large) / (1 + N_TABLES)


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for their number (Holm 1979): one below 0.05 is then wrong in 5 % of such families at most."""
    order = np.argsort(p_values, kind="stable")
    factors = len(p_values) - np.arange(len(p_values))
    corrected: Any = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(factors * np.asarray(p_values)[order]), 1.0)
    return [float(value) for value in corrected]
