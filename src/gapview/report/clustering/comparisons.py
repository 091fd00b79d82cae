"""Comparison of the groups in every covariate: numbers, ordered categories, categories and survival."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats

from ...errors import MissingExtraError, ParameterError, some
from ...trust import associate, holm
from ...trust.hazards import has_lifelines
from ...trust.survival import compare_survival
from ...utils.messages import warn_user
from ...utils.types import Array
from .covariates import Column, Comparison, Covariates, Quartiles
from .survival import NO_FOLLOW_UP, Outcome, find_outcomes, is_time_of_death, lacks_censored

_MOST_LEVELS = 20  # of a category; rarer ones are combined
_LEAST_COMPARED = 5  # samples with a value


def compare_covariates(
    table: Covariates,
    labels: Array,
    n_groups: int,
    survival: Sequence[tuple[str, str]] | None,
    adjust: Sequence[str] = (),
) -> Covariates:
    """Compare the groups in every column, with p-values corrected for the number of columns.

    Hazard ratios of survival are adjusted for the columns in ``adjust``.
    """
    numbers = [name for name, column in table.columns.items() if column.is_number]
    flags = [name for name, column in table.columns.items() if column.flags is not None]
    if survival is None:
        outcomes = find_outcomes(numbers, flags)
    else:
        outcomes = [Outcome(*table.check_pair(*pair)) for pair in survival]
    adjusting = _adjusting(table, adjust, outcomes)
    results: dict[str, Comparison | str] = {one.name: _survival(table, one, labels, adjusting) for one in outcomes}
    tested = [one for one in outcomes if not isinstance(results[one.name], str)]
    paired = {name for one in tested for name in (one.time, one.event, one.follow_up)}
    paired |= {one.time for one in outcomes}  # times are not compared as if all events had been observed
    if survival is None:
        deaths = [name for name in numbers if is_time_of_death(name) and name not in paired and _has_gaps(table, name)]
        results |= dict.fromkeys(deaths, NO_FOLLOW_UP)
    for name, column in table.columns.items():
        if name not in paired and name not in results:
            results[name] = _compare(column, labels, n_groups)
    found = [replace(one, column=name) for name, one in results.items() if isinstance(one, Comparison)]
    left_out = [(name, reason) for name, reason in results.items() if isinstance(reason, str)]
    corrected = holm([one.p_value for one in found])
    comparisons = tuple(replace(one, adjusted=p) for one, p in zip(found, corrected, strict=True))
    return replace(table, comparisons=comparisons, left_out=(*table.left_out, *left_out))


def _has_gaps(table: Covariates, name: str) -> bool:
    return bool(np.isfinite(table.columns[name].numbers).sum() < 0.95 * table.n_matched)


def _adjusting(table: Covariates, adjust: Sequence[str], outcomes: Sequence[Outcome]) -> dict[str, Any] | None:
    """Return the columns for which hazard ratios are adjusted; None if these cannot be computed."""
    table.check_columns("adjust", adjust)
    used = [name for one in outcomes for name in (one.time, one.event, one.follow_up) if name in adjust]
    if used:
        raise ParameterError(f"adjust must name other columns than those of survival; got {some(used)}.")
    if adjust and not outcomes:
        warn_user("adjust has no effect, since no columns of times and events were detected. Name them with survival.")
    if not has_lifelines():
        if adjust:
            raise MissingExtraError("lifelines", "survival", "Adjusting hazard ratios (adjust)")
        return None
    columns = {name: table.columns[name] for name in adjust}
    return {
        name: one.scores if one.ranks or one.is_number else np.array(one.texts, dtype=object)
        for name, one in columns.items()
    }


def _compare(column: Column, labels: Array, n_groups: int) -> Comparison | str:
    if len({text for text in column.texts if text is not None}) > _MOST_LEVELS and column.ranks:
        column = replace(column, ranks={})
    if np.unique(column.scores[np.isfinite(column.scores)]).size > 2 and column.ranks:
        return _ordered(column, labels, n_groups)
    return (_numbers if column.is_number else _categories)(column, labels, n_groups)


def _ordered(column: Column, labels: Array, n_groups: int) -> Comparison | str:
    """Compare ranks by Kruskal-Wallis, for a trend in any group; levels without a rank are listed, but not tested."""
    tested = _numbers(replace(column, numbers=column.scores), labels, n_groups)
    if isinstance(tested, str):
        return tested
    return replace(tested, kind="ordered", quartiles=(), **_counted(column, labels, n_groups))


def _counted(column: Column, labels: Array, n_groups: int) -> dict[str, Any]:
    """Return the levels of an ordered column that occur, lowest first, and the counts of them in every group."""
    known = np.array([text is not None for text in column.texts])
    texts = [text for text in column.texts if text is not None]
    levels = [level for level in column.ranks if level in set(texts)]
    place = {level: i for i, level in enumerate(levels)}
    codes = np.array([place[text] for text in texts])
    counts = stats.contingency.crosstab(labels[known], codes, levels=(range(n_groups), range(len(levels)))).count
    return {"levels": tuple(levels), "counts": counts}


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
    figures = len(values), statistic, len(filled) - 1, strength, p_value
    return Comparison("numbers", *figures, quartiles=quartiles)


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
    values = _counted(column, labels, n_groups) if column.ranks else {"levels": tuple(levels), "counts": counts}
    figures = len(texts), tested.statistic, tested.degrees, tested.strength, tested.p_value
    return Comparison("categories", *figures, n_tables=tested.n_tables, **values)


def _survival(table: Covariates, outcome: Outcome, labels: Array, adjusting: dict[str, Any] | None) -> Comparison | str:
    times, flags = table.columns[outcome.time].numbers, table.columns[outcome.event].flags
    assert flags is not None
    if outcome.follow_up is not None:
        times = np.where(flags == 1, times, table.columns[outcome.follow_up].numbers)
    if lacks_censored(times, flags):
        return NO_FOLLOW_UP
    known = np.isfinite(times) & np.isfinite(flags)
    if known.any() and times[known].min() < 0:
        return "some of its times are negative"
    found = compare_survival(times, flags, labels, adjusting) if known.sum() >= _LEAST_COMPARED else None
    if found is None:
        return "too few samples have times and events in at least two groups"
    figures = found.n_samples, found.statistic, found.degrees, float("nan"), found.p_value
    return Comparison("survival", *figures, survival=found, note=outcome.note)
