"""Survival of the groups: Kaplan-Meier curves, log-rank tests of all groups and of pairs, Cox hazard ratios."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from ..errors import InputError, InputTypeError, ParameterError, described
from ..utils.messages import p_value
from ..utils.shown import Shown, Table
from ..utils.types import Array
from ..views.containers import is_missing
from ..views.sample_columns import match_column
from .association import holm
from .hazards import Hazards, hazard_ratios

_LEVEL = 0.95  # of intervals
_ROUNDING = 1e-10  # relative
_MOST_COMPARED = 20  # groups: of more, only curves and the test of all groups are computed


# -- results -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """Kaplan-Meier estimate of one group.

    Attributes
    ----------
    group, n_samples, n_events : int
        The label of the group, the number of its samples with a known time, and of its events.
    median, median_low, median_high : float
        Time at which half of the group had the event, and its 95 % interval (Brookmeyer and Crowley 1982); NaN where
        the curve, or its bound, does not fall to one half.
    times, share, low, high : arrays
        Times of the samples, the share without the event from each time on, and its pointwise 95 % interval (log-log);
        NaN once the share is 0.
    last, censored : arrays
        Time of every sample, sorted, and those without the event.

    Examples
    --------
    >>> from gapview.trust import survival_by_group
    >>> curve = survival_by_group([0] * 4 + [1] * 4, [1, 2, 3, 4, 5, 6, 7, 8], [1, 1, 0, 1, 0, 1, 0, 1]).curves[0]
    >>> curve.median, curve.at_risk([0, 2.5]).tolist(), curve.censored.tolist()
    (2.0, [4, 2], [3.0])
    """

    group: int
    n_samples: int
    n_events: int
    median: float
    median_low: float
    median_high: float
    times: Array = field(repr=False)
    share: Array = field(repr=False)
    low: Array = field(repr=False)
    high: Array = field(repr=False)
    last: Array = field(repr=False)
    censored: Array = field(repr=False)

    def at_risk(self, times: Any) -> Array:
        """Return the number of samples at risk at given times: neither event nor censored before."""
        return len(self.last) - np.searchsorted(self.last, np.asarray(times, dtype=float), side="left")

    def share_at(self, times: Any) -> Array:
        """Return the share without the event at given times."""
        steps = np.concatenate([[1.0], self.share])
        return steps[np.searchsorted(self.times, np.asarray(times, dtype=float), side="right")]


@dataclass(frozen=True)
class PairTest:
    """Log-rank test of two groups; ``adjusted`` is the p-value adjusted for the number of pairs (Holm)."""

    group: int
    other: int
    statistic: float
    p_value: float
    adjusted: float


@dataclass(frozen=True, repr=False)
class GroupSurvival(Shown):
    """Survival of the groups; see :func:`survival_by_group`.

    Attributes
    ----------
    n_samples, n_events : int
        Number of samples with a known time and event, and of events observed.
    statistic, degrees, p_value : float, int, float
        Chi-square of the log-rank test of all groups, its degrees of freedom and its p-value.
    curves : tuple of Curve
        One for every group that has samples.
    pairs : tuple of PairTest
        Log-rank tests of all pairs of up to 20 groups.
    hazards : Hazards or None
        Cox hazard ratios; None if they were not asked for, or if there are more than 20 groups.

    Examples
    --------
    >>> from gapview.trust import survival_by_group
    >>> found = survival_by_group([0] * 4 + [1] * 4, [1, 2, 3, 4, 5, 6, 7, 8], [1, 1, 0, 1, 0, 1, 0, 1])
    >>> [row["n_events"] for row in found.table]
    [3, 2]
    """

    n_samples: int
    n_events: int
    statistic: float
    degrees: int
    p_value: float
    curves: tuple[Curve, ...]
    pairs: tuple[PairTest, ...]
    hazards: Hazards | None = None

    @property
    def table(self) -> list[dict[str, Any]]:
        """One row for every group: medians and, if known, hazard ratios; ``pandas.DataFrame`` shows it."""
        names = ("group", "n_samples", "n_events", "median", "median_low", "median_high")
        rows = [{name: getattr(curve, name) for name in names} for curve in self.curves]
        return rows if self.hazards is None else [row | self.hazards.row(row["group"]) for row in rows]

    def _shown_as(self) -> Table:
        """Return the test of all groups, and the median of each."""
        return Table(str(self), tuple(self.table[0]) if self.table else (), [tuple(row.values()) for row in self.table])

    def __str__(self) -> str:
        return (
            f"Log-rank test of {len(self.curves)} groups: χ² = {self.statistic:.3g}, df = {self.degrees}, "
            f"{p_value(self.p_value)} ({self.n_samples:,} samples, {self.n_events:,} events)."
        )


# -- comparison --------------------------------------------------------------------------------------------------------


def survival_by_group(
    labels: Any, time: Any, event: Any, *, covariates: Any = None, hazards: bool | None = None
) -> GroupSurvival:
    """Compare the survival of groups, with censoring, and adjusted for covariates if these are given.

    Parameters
    ----------
    labels : fitted clusterer, or array-like of shape (n_samples,)
        A model, whose ``labels_`` are compared, or the group of every sample, an integer of at least 0.
    time : array-like or pandas Series of shape (n_samples,)
        Time to the event, or of the last follow-up. If ``labels`` is a model or a Series, a Series with ids as its
        index is matched by id; everything else is in the order of the samples. Samples without a time or event (NaN)
        are left out.
    event : array-like or pandas Series of shape (n_samples,)
        1 or True if the event was observed, 0 or False if the sample was censored.
    covariates : mapping or pandas DataFrame, optional
        Columns for which hazard ratios are adjusted, in the same order or keyed by sample id: numbers and ordered
        categories (by rank) have one coefficient, other categories one for each value but the most frequent. Samples
        that lack one of them are left out of the adjusted model.
    hazards : bool, optional
        Whether to fit Cox models, with ``lifelines`` (``gapview[survival]``). By default if covariates are given.

    Returns
    -------
    GroupSurvival

    Raises
    ------
    InputError
        If fewer than two groups have samples with a time and an event, or values are not times and events.
    MissingExtraError
        If ``lifelines`` is needed and not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.trust import survival_by_group
    >>> state = np.random.RandomState(0)
    >>> labels = np.repeat([0, 1], 50)
    >>> death, followed = state.exponential(10 * (1 + 2 * labels)), state.uniform(5, 30, 100)
    >>> found = survival_by_group(labels, np.minimum(death, followed), death <= followed)
    >>> print(found)
    Log-rank test of 2 groups: χ² = 5.08, df = 1, p = 0.024 (100 samples, 71 events).
    """
    groups = _check_labels(np.asarray(getattr(labels, "labels_", labels)))
    ids = getattr(labels, "sample_ids_", getattr(labels, "index", None))  # of a model, or of a Series
    times, events = (
        _floats(_matched(one, groups, ids, name), name) for name, one in (("time", time), ("event", event))
    )
    _check_outcome(times, events)
    columns = {} if covariates is None else _columns(covariates, groups, ids)
    wanted = bool(columns) if hazards is None else hazards
    if columns and not wanted:
        raise ParameterError("covariates adjust hazard ratios; got hazards=False. Leave one of them out.")
    found = compare_survival(times, events, groups, columns if wanted else None)
    if found is None:
        raise InputError(
            "A comparison of survival needs at least two groups with known times, and one event while both are at "
            f"risk; {int((np.isfinite(times) & np.isfinite(events)).sum()):,} of {len(times):,} samples have a time "
            "and an event. Check both columns."
        )
    return found


def compare_survival(
    times: Array, events: Array, groups: Array, adjust: Mapping[str, Any] | None = None
) -> GroupSurvival | None:
    """Return the comparison of groups; None if there is nothing to test. ``adjust`` is None to fit no Cox models."""
    known = np.isfinite(times) & np.isfinite(events)
    times, events, groups = times[known], events[known], groups[known]
    tested = log_rank(times, events, groups) if known.any() else None
    if tested is None:
        return None
    kinds = np.unique(groups).tolist()
    curves = tuple(kaplan_meier(times[groups == g], events[groups == g], g) for g in kinds)
    few = len(kinds) <= _MOST_COMPARED
    pairs = []
    for one, other in combinations(kinds if few else [], 2):
        both = (groups == one) | (groups == other)
        pair = log_rank(times[both], events[both], groups[both])
        pairs.append((one, other, *((pair[0], pair[2]) if pair else (float("nan"), 1.0))))
    adjusted = holm([pair[-1] for pair in pairs])
    tests = tuple(PairTest(*pair, p) for pair, p in zip(pairs, adjusted, strict=True))
    columns = None if adjust is None or not few else {name: np.asarray(own)[known] for name, own in adjust.items()}
    ratios = None if columns is None else hazard_ratios(times, events, groups, columns)
    return GroupSurvival(len(times), int(events.sum()), *tested, curves, tests, ratios)


def kaplan_meier(times: Array, events: Array, group: int = 0) -> Curve:
    """Return the Kaplan-Meier estimate; censored samples are at risk until their time."""
    curve = stats.ecdf(stats.CensoredData.right_censored(times, events == 0)).sf
    share = curve.probabilities
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the interval is not defined where the share is 0 or 1
        low, high = (np.asarray(own.probabilities) for own in curve.confidence_interval(_LEVEL, method="log-log"))
    low, high = (np.where(share == 1, 1.0, own) for own in (low, high))
    median, first, last = (_first_half(curve.quantiles, own) for own in (share, low, high))
    counts = int(group), len(times), int(events.sum())
    samples = np.sort(times), np.sort(times[events == 0])
    return Curve(*counts, median, first, last, curve.quantiles, share, low, high, *samples)


def _first_half(times: Array, share: Array) -> float:
    """Return the first time at which a share is at most one half; NaN if there is none."""
    reached = np.flatnonzero(share <= 0.5 + 1e-12)
    return float(times[reached[0]]) if reached.size else float("nan")


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


# -- checks ------------------------------------------------------------------------------------------------------------


def _check_labels(labels: Array) -> Array:
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or (labels.size and labels.min() < 0):
        raise InputTypeError(
            "labels must be a fitted model, or one integer of at least 0 for each sample; got "
            f"{described(labels)} of {labels.dtype} with shape {labels.shape}."
        )
    return labels


def _floats(cells: Sequence[Any], name: str) -> Array:
    try:
        return np.array([np.nan if cell is None else float(cell) for cell in cells])
    except (TypeError, ValueError):
        odd = next(cell for cell in cells if cell is not None and not isinstance(cell, int | float | np.number))
        raise InputTypeError(f"{name} must hold numbers, NaN where it is not known; got {odd!r}.") from None


def _check_outcome(times: Array, events: Array) -> None:
    if (times < 0).any() or np.isinf(times).any():
        raise InputError(f"time must hold finite numbers of at least 0; got {times[(times < 0) | np.isinf(times)][0]}.")
    odd = events[~np.isin(events, (0, 1)) & ~np.isnan(events)]
    if odd.size:
        raise InputError(f"event must be 1 if the event was observed and 0 if not; got {odd[0]:g}. Recode it.")


def _matched(column: Any, groups: Array, ids: Any, name: str) -> list[Any]:
    """Return the value of every sample, None if it is missing; columns are in order where samples have no ids."""
    if ids is None or callable(ids):  # a list has a method of the name index
        column, ids = getattr(column, "to_numpy", lambda: column)(), np.arange(len(groups))
    cells = match_column(column, np.asarray(ids), name)
    return [None if is_missing(cell) else cell for cell in cells]


def _columns(covariates: Any, groups: Array, ids: Any) -> dict[str, Any]:
    """Return the columns in the order of the samples; ordered categories as their rank."""
    if not isinstance(covariates, Mapping) and not hasattr(covariates, "columns"):
        raise InputTypeError(
            "covariates must be a mapping of names to columns, or a pandas frame, whose index holds the sample ids; "
            f"got {described(covariates)}."
        )
    names = list(covariates) if isinstance(covariates, Mapping) else list(covariates.columns)
    columns = {}
    for name in names:
        column = covariates[name]
        if getattr(getattr(column, "dtype", None), "ordered", False):
            column = column.cat.codes.astype(float).where(column.notna())
        columns[str(name)] = np.array(_matched(column, groups, ids, str(name)), dtype=object)
    return columns
