"""Hazard ratios of the groups by Cox regression, adjusted for covariates; needs ``lifelines``."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import stats

from ..errors import InputError, extra
from ..utils.messages import counted, joined
from ..utils.types import Array
from .association import SIGNIFICANT, holm

_EVENTS_EACH = 10  # for every coefficient: fewer make hazard ratios imprecise (Peduzzi and others 1995)
_MOST_LEVELS = 10  # of a category in a model


@dataclass(frozen=True)
class HazardRatio:
    """Hazard ratio of one coefficient with its 95 % interval and Wald test; ``group`` is None for covariates.

    Attributes
    ----------
    name : str
        ``"group 1"``, the name of a covariate, or ``"name = value"`` for a category against its most frequent value.
    group : int or None
        The group, which is compared with the reference group.
    ratio, low, high, p_value : float
        The hazard ratio, its interval, and the p-value.

    Examples
    --------
    >>> from gapview.trust.hazards import HazardRatio
    >>> HazardRatio("group 1", 1, 2.0, 1.2, 3.4, 0.01).ratio
    2.0
    """

    name: str
    group: int | None
    ratio: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True)
class CoxModel:
    """Cox regression on the groups, and on covariates if it is adjusted.

    Attributes
    ----------
    n_samples, n_events : int
        Samples of the model, which have all covariates, and their events.
    ratios : tuple of HazardRatio
        Groups first, then covariates.
    statistic, degrees, p_value : float, int, float
        Likelihood-ratio test of the groups, given the covariates.
    proportional_p : float
        Smallest Holm-adjusted p-value of the tests for proportional hazards of the groups (Grambsch and Therneau 1994).
    """

    n_samples: int
    n_events: int
    ratios: tuple[HazardRatio, ...]
    statistic: float
    degrees: int
    p_value: float
    proportional_p: float


@dataclass(frozen=True)
class Hazards:
    """Hazard ratios of the groups against a reference group, the largest with an event.

    Attributes
    ----------
    reference : int
        The reference group.
    unadjusted, adjusted : CoxModel or None
        The model of the groups alone, and with the covariates; None if it was not asked for, or has no estimate.
    covariates : tuple of str
        The covariates of the adjusted model.
    notes : tuple of str
        What was left out, and what limits the estimates.
    """

    reference: int
    unadjusted: CoxModel | None
    adjusted: CoxModel | None
    covariates: tuple[str, ...]
    notes: tuple[str, ...]

    def row(self, group: int) -> dict[str, float]:
        """Return the hazard ratios of a group with their intervals and p-values; 1 for the reference, NaN if unknown.

        Names of the adjusted model begin with ``adjusted_``.
        """
        row: dict[str, float] = {}
        models = {"": self.unadjusted} | ({"adjusted_": self.adjusted} if self.covariates else {})
        for prefix, model in models.items():
            found = {one.group: one for one in model.ratios} if model else {}
            values = [1.0, np.nan, np.nan, np.nan] if group == self.reference else [np.nan] * 4
            if group in found:
                one = found[group]
                values = [one.ratio, one.low, one.high, one.p_value]
            names = ("hazard_ratio", "hazard_ratio_low", "hazard_ratio_high", "hazard_ratio_p_value")
            row |= {prefix + name: float(value) for name, value in zip(names, values, strict=True)}
        return row


def has_lifelines() -> bool:
    """Return whether ``lifelines`` is installed."""
    return find_spec("lifelines") is not None


def hazard_ratios(times: Array, events: Array, groups: Array, covariates: Mapping[str, Any]) -> Hazards:
    """Return hazard ratios of the groups, unadjusted and adjusted for covariates.

    Samples of groups, or of categories, without events have a hazard ratio of 0: they are left out, which does not
    change the other estimates, since the likelihood has its limit there.
    """
    extra("lifelines", "survival", "Computing hazard ratios")
    dead = np.unique(groups[events == 1])
    sizes = [int((groups == g).sum()) for g in dead]
    reference = int(dead[int(np.argmax(sizes))])
    silent = [f"group {g}" for g in np.setdiff1d(groups, dead)]
    notes = [f"No events in {joined(silent)}: the hazard ratio is 0, without an interval."] if silent else []
    used = np.isin(groups, dead)
    data = times[used], events[used], groups[used]
    unadjusted = _fitted(*data, reference, {}, notes)
    adjusted = None
    if covariates:
        columns, known = _encode({name: own[used] for name, own in covariates.items()}, data[1], notes)
        if not known.all():
            notes.append(
                f"The adjusted model has the {int(known.sum()):,} of {len(known):,} samples with all covariates."
            )
        columns = {name: own[known] for name, own in columns.items()}
        adjusted = _fitted(data[0][known], data[1][known], data[2][known], reference, columns, notes)
    return Hazards(reference, unadjusted, adjusted, tuple(covariates), tuple(notes))


def _encode(columns: Mapping[str, Any], events: Array, notes: list[str]) -> tuple[dict[str, Array], Array]:
    """Return numeric columns, and which samples have values in all; categories have a column for each value but one."""
    values: dict[str, tuple[bool, list[Any]]] = {}
    known = np.ones(len(events), dtype=bool)
    for name, own in columns.items():
        cells = [None if cell is None or cell != cell else cell for cell in own.tolist()]
        numeric = all(isinstance(cell, int | float) for cell in cells if cell is not None)
        values[name] = numeric, [cell if numeric or cell is None else str(cell) for cell in cells]
        known &= np.array([cell is not None for cell in cells])
    for name, (numeric, cells) in values.items():
        if numeric:
            continue
        dying = {cell for cell, dead, has in zip(cells, events, known, strict=True) if dead and has}
        if silent := sorted({cell for cell, has in zip(cells, known, strict=True) if has} - dying):
            notes.append(f"No events where {name} is {joined(silent)}: these samples do not contribute.")
            known &= np.array([cell in dying for cell in cells])
    encoded: dict[str, Array] = {}
    for name, (numeric, cells) in values.items():
        if numeric:
            encoded[name] = np.array([np.nan if cell is None else float(cell) for cell in cells])
            continue
        levels = [level for level, _ in Counter(c for c, has in zip(cells, known, strict=True) if has).most_common()]
        if len(levels) > _MOST_LEVELS:
            raise InputError(
                f"The covariate {name!r} has {len(levels)} different values, too many to adjust for; at most "
                f"{_MOST_LEVELS} are allowed. Combine them, or leave it out."
            )
        encoded |= {f"{name} = {level}": np.array([float(cell == level) for cell in cells]) for level in levels[1:]}
    return {name: own for name, own in encoded.items() if known.any() and np.ptp(own[known])}, known


def _fitted(
    times: Array, events: Array, groups: Array, reference: int, columns: Mapping[str, Array], notes: list[str]
) -> CoxModel | None:
    """Return the model; None, with a note, if it has no estimate."""
    others = [int(g) for g in np.unique(groups) if g != reference]
    kind = "adjusted" if columns else "unadjusted"
    dead = set(groups[events == 1].tolist())
    if not others or dead != {reference, *others}:
        notes.append(f"No {kind} hazard ratios: at least two groups, all with events, are needed among the samples.")
        return None
    names = [f"group {g}" for g in others] + list(columns)
    design = [(groups == g).astype(float) for g in others] + list(columns.values())
    if len(names) * _EVENTS_EACH > events.sum():
        notes.append(
            f"The {kind} model has {counted(len(names), 'coefficient')} and {int(events.sum()):,} events, fewer than "
            f"{_EVENTS_EACH} for each: its ratios are imprecise, and may be biased."
        )
    try:
        model = _cox(design, times, events)
        reduced = _cox(design[len(others) :], times, events).log_likelihood_ if columns else None
    except (ArithmeticError, ValueError, np.linalg.LinAlgError):  # also errors of convergence
        notes.append(f"The {kind} model has no estimate: its columns are collinear, or separate the events.")
        return None
    statistic = 2 * (model.log_likelihood_ - reduced) if columns else model.log_likelihood_ratio_test().test_statistic
    statistic = max(float(statistic), 0.0)
    bounds = np.exp(model.confidence_intervals_.to_numpy())
    figures = zip(model.hazard_ratios_, bounds[:, 0], bounds[:, 1], model.summary["p"], strict=True)
    ratios = tuple(
        HazardRatio(name, group, *map(float, own))
        for name, group, own in zip(names, [*others, *[None] * len(columns)], figures, strict=True)
    )
    proportional = _proportional(model, design, times, events)[: len(others)]
    smallest = min(holm(proportional))
    if smallest < SIGNIFICANT:
        notes.append(
            f"Hazards are not proportional in the {kind} model (smallest Holm-adjusted p = {smallest:.2g}): its ratios "
            "are averages over time."
        )
    p = float(stats.chi2.sf(statistic, len(others)))
    return CoxModel(len(times), int(events.sum()), ratios, statistic, len(others), p, smallest)


def _cox(design: list[Array], times: Array, events: Array) -> Any:
    lifelines = extra("lifelines", "survival", "Computing hazard ratios")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lifelines.CoxPHFitter().fit(_frame(design, times, events), "time", "event")


def _proportional(model: Any, design: list[Array], times: Array, events: Array) -> list[float]:
    tests = extra("lifelines.statistics", "survival", "Computing hazard ratios")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = tests.proportional_hazard_test(model, _frame(design, times, events), time_transform="rank")
    return [float(p) for p in np.atleast_1d(found.p_value)]


def _frame(design: list[Array], times: Array, events: Array) -> Any:
    pd = extra("pandas", "survival", "Computing hazard ratios")
    return pd.DataFrame({f"x{i:03d}": own for i, own in enumerate(design)} | {"time": times, "event": events})
