"""Stability of clusters when the fit is repeated on random subsets of the samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..errors import GapviewError, InputError, SolutionError
from ..persist.registry import storable_record
from ..progress import silent, tell
from ..utils.messages import MOST_REPEATS, check_integer, check_real, counted, percent, random_generator, warn_user
from ..utils.shown import Shown, Table
from ..utils.types import Array
from ..views import Views
from .confidence import LEAST_SIZE, read_labels

_ROUNDING = 1e-9  # 0.8 of 10 samples is 8, even if the product is rounded down
_POWER = 3  # of the modularity, which varies less than the stability: 1 % of it weighs as much as 3 % of stability
FEWEST_RESAMPLES = 16  # from which their standard error is known
_SAME = 0.5  # Jaccard similarity from which two clusters are the same: at most one other cluster can be as similar


@storable_record
@dataclass(frozen=True, repr=False)
class Stability(Shown):
    """The result of :func:`cluster_stability`.

    Attributes
    ----------
    jaccard : array of shape (n_clusters,)
        Jaccard similarity of each cluster with the most similar cluster of a resample, averaged over the resamples; NaN
        for a cluster without a sample in any resample.
    jaccards : array of shape (n_resamples, n_clusters)
        The same in every resample; NaN where no sample of the cluster was drawn, and where the fit failed.
    stays : array of shape (n_samples,)
        Share of the resamples with the sample in which it stays in its cluster; NaN if it was never drawn.
    n_drawn : array of shape (n_samples,)
        Number of resamples with the sample, without those that were skipped.
    kept : array of shape (n_samples,)
        Share of the resamples with the sample in which it stays in its cluster and the cluster itself is found again:
        without the sample, the two have a Jaccard similarity of at least 0.5. Clusters of fewer than five drawn samples
        are not found again. NaN if the sample was never drawn.
    failures : tuple of str
        The error message of every resample that was skipped because the fit failed.

    Examples
    --------
    >>> from gapview.trust import cluster_stability
    >>> stability = cluster_stability(lambda rows, seed: rows // 3, [0, 0, 0, 1, 1, 1], random_state=0)
    >>> stability.jaccard
    array([1., 1.])
    """

    jaccard: Array
    jaccards: Array
    stays: Array
    n_drawn: Array
    kept: Array
    failures: tuple[str, ...] = ()

    @property
    def n_failed(self) -> int:
        """Number of resamples that were skipped because the fit failed."""
        return len(self.failures)

    def _shown_as(self) -> Table:
        """Return the stability of every cluster."""
        rows = [(group, value, _in_words(value)) for group, value in enumerate(self.jaccard.tolist())]
        n_used = len(self.jaccards) - self.n_failed
        title = f"Stability of {counted(len(rows), 'group')} in {counted(n_used, 'resample')}"
        notes = [
            "Jaccard similarity with the most similar group of a resample, on average: from 0.85 on stable, from 0.75 "
            "on valid, from 0.6 on a pattern with uncertain members, below it the group dissolves (Hennig 2007).",
            f"Samples stay in their group in {percent(float(np.nanmean(self.stays)))} of the resamples.",
        ]
        return Table(title, ("group", "Jaccard", "meaning"), rows, notes)


def _in_words(jaccard: float) -> str:
    """Return what the mean Jaccard similarity of a cluster means (Hennig 2007)."""
    levels = {0.85: "stable", 0.75: "valid", 0.6: "uncertain members", 0.0: "dissolves"}
    return next((words for least, words in levels.items() if jaccard >= least), "not drawn")


def cluster_stability(
    fit: Callable[[Array, int], Any],
    labels: Any,
    *,
    n_resamples: int = 20,
    share: float = 0.8,
    random_state: Any = None,
    mask: Any = None,
    n_least: int = 2,
    precision: float = 0.0,
) -> Stability:
    """Repeat a clustering on random subsets of the samples, and measure which clusters and samples are stable.

    In each resample a cluster is compared with the most similar cluster found there, by the Jaccard similarity on the
    samples drawn: common samples / samples in either (Hennig 2007). Hennig's interpretation of the mean: 0.85 or more,
    a stable cluster; 0.75, a valid cluster; 0.6, a pattern with uncertain members; below, the cluster dissolves. A
    cluster can also be stable only because it is far away from the rest.

    For the samples, the clusters of a resample are matched one to one with those of ``labels`` such that as many
    samples as possible stay in their cluster. ``stays`` counts samples in the matched cluster, whatever has become of
    it; ``kept`` counts them only where the matched cluster is similar.

    Samples are drawn without replacement, since a sample that is drawn twice would be its own neighbour. A resample on
    which the fit fails with an error of gapview is skipped, with a warning.

    Parameters
    ----------
    fit : callable
        ``fit(rows, seed)`` clusters the samples ``rows`` (positions, in ascending order) and returns their labels.
    labels : array of shape (n_samples,)
        The labels to assess, whole numbers from 0 on.
    n_resamples : int, default=20
        Number of resamples.
    share : float, default=0.8
        Share of the samples in a resample. With 1, resamples differ in their seed only.
    random_state : int, RandomState or None, default=None
        Seed of the subsets, and of the seeds given to ``fit``.
    mask : bool array of shape (n_samples, n_views), optional
        True where a sample has a view. If given, each resample has at least ``n_least`` samples of each view: where the
        draw has fewer, samples that have the view replace others; if that is not enough, the resample is larger than
        ``share``.
    n_least : int, default=2
        Minimum number of samples of each view in each resample, or ``share`` of those that have the view if these are
        fewer; at least 2. Only with ``mask``.
    precision : float, default=0.0
        From 16 resamples on no more are drawn, once the share of samples that a resample keeps has a standard error
        below this.

    Returns
    -------
    Stability

    Raises
    ------
    SolutionError
        If the fit fails on every resample.

    References
    ----------
    C. Hennig: Cluster-wise assessment of cluster stability. Computational Statistics & Data Analysis 52, 2007.

    Examples
    --------
    >>> from gapview import GRMF
    >>> from gapview.datasets import make_views
    >>> from gapview.trust import cluster_stability
    >>> views = make_views(n_samples=90, n_clusters=3, missing_rate=0.3, random_state=0).views
    >>> model = GRMF(n_clusters=3, init="data", random_state=0).fit(views)
    >>> def fit(rows, seed):
    ...     return GRMF(n_clusters=3, init="data", random_state=seed).fit_predict(views[rows])
    >>> stability = cluster_stability(fit, model.labels_, n_resamples=5, random_state=0)
    >>> stability.jaccard.shape, bool(stability.jaccard.min() > 0.9)
    ((3,), True)
    """
    check_integer("n_resamples", n_resamples, low=1, high=MOST_REPEATS)
    check_real("share", share, low=0, high=1, open_low=True)
    check_integer("n_least", n_least, low=2)
    check_real("precision", precision, low=0)
    groups = read_labels(labels)
    state = random_generator(random_state)
    n_samples, n_groups = len(groups), int(groups.max()) + 1
    having = _read_mask(mask, n_samples)
    size, needed = max(1, int(share * n_samples + _ROUNDING)), _least_counts(having, share, n_least)
    jaccards = np.full((n_resamples, n_groups), np.nan)
    n_stays, n_kept, n_drawn = np.zeros((3, n_samples), dtype=np.intp)
    failures: list[str] = []  # messages, since the errors would keep the data of the fits in memory
    shares_kept: list[float] = []
    for turn in range(n_resamples):
        if turn >= FEWEST_RESAMPLES and _standard_error(shares_kept) < precision:
            jaccards = jaccards[:turn]
            break
        rows = draw_samples(state, size, having, needed)
        tell("Repeating the fit", turn, n_resamples)
        try:
            with silent():
                answer = fit(rows, int(state.randint(2**31 - 1)))
        except GapviewError as error:
            failures.append(str(error))
            continue
        found = _read_found(answer, len(rows))
        common = count_common(groups[rows], found, n_groups)
        jaccards[turn] = best_jaccard(common)
        partner = partners(common)
        stays = partner[groups[rows]] == found
        kept = stays & _found_again(common, partner)[groups[rows]]
        shares_kept.append(float(kept.mean()))
        n_stays[rows] += stays
        n_kept[rows] += kept
        n_drawn[rows] += 1
    _report_failures(failures, len(jaccards))
    mean = np.ma.masked_invalid(jaccards).mean(axis=0).filled(np.nan)
    of_samples = np.where(n_drawn > 0, np.stack([n_stays, n_kept]) / np.maximum(n_drawn, 1), np.nan)
    return Stability(mean, jaccards, of_samples[0], n_drawn, of_samples[1], tuple(failures))


def _standard_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("inf")


def draw_features(views: Views, share: float, seed: int) -> Views:
    """Return the views with a random share of the features of each, at least one, in their order."""
    state = np.random.RandomState(seed)
    drawn = [
        np.sort(state.permutation(n_features)[: max(1, int(share * n_features + _ROUNDING))])
        for n_features in views.n_features
    ]
    return with_features(views, drawn)


def with_features(views: Views, kept: Sequence[Array]) -> Views:
    """Return the views with some of the features of each, given by their positions."""
    part = views.with_matrices([matrix[:, own] for matrix, own in zip(views.one_by_one(), kept, strict=True)])
    named = zip(views.feature_names, kept, strict=True)
    part.feature_names = tuple(None if names is None else names[own] for names, own in named)
    return part


def _read_mask(mask: Any, n_samples: int) -> Array:
    having = np.zeros((n_samples, 0), dtype=bool) if mask is None else np.asarray(mask, dtype=bool)
    if having.ndim != 2 or len(having) != n_samples:
        raise InputError(
            f"mask must have a row for each of the {n_samples} samples and a column for each view; got shape "
            f"{having.shape}."
        )
    return having


def _least_counts(having: Array, share: float, n_least: int) -> Array:
    """Return the number of samples of every view that each resample must have."""
    counts = having.sum(axis=0)
    shares = np.ceil(float(share) * counts - _ROUNDING).astype(np.intp)
    return np.asarray(np.minimum(counts, np.clip(shares, 2, n_least)))


def draw_samples(state: np.random.RandomState, size: int, having: Array, needed: Array) -> Array:
    """Draw samples and return them in ascending order; samples that a view needs are drawn before all others."""
    order = state.permutation(len(having))
    first = np.zeros(len(having), dtype=bool)
    for column, count in zip(having.T, needed, strict=True):
        first[order[column[order]][:count]] = True
    order = order[np.argsort(~first[order], kind="stable")]
    return np.sort(order[: max(size, int(first.sum()))])


def _report_failures(failures: list[str], n_resamples: int) -> None:
    if not failures:
        return
    reason = f"The first error: {failures[0]}"
    if len(failures) == n_resamples:
        raise SolutionError(
            f"The fit fails on every one of {n_resamples} resamples, so that the stability of the groups is unknown. "
            f"Raise share, so that resamples are more like all the data. {reason}"
        )
    warn_user(f"{len(failures)} of {n_resamples} resamples were skipped, since the fit fails on them. {reason}")


def _read_found(found: Any, size: int) -> Array:
    labels = np.asarray(found)
    if labels.shape != (size,):
        raise InputError(
            f"fit must return one label for each of the {size} samples it was given; got shape {labels.shape}."
        )
    return np.asarray(np.unique(labels, return_inverse=True)[1])


def count_common(groups: Array, found: Array, n_groups: int) -> Array:
    """Return the number of common samples for every pair of a cluster and a found cluster."""
    n_found = int(found.max()) + 1
    return np.bincount(groups * n_found + found, minlength=n_groups * n_found).reshape(n_groups, n_found)


def partners(common: Array) -> Array:
    """Return for every cluster the found cluster it is matched with, such that most samples stay; −1 if none."""
    partner = np.full(len(common), -1)
    kept, matched = linear_sum_assignment(-common)
    partner[kept] = matched
    return partner


def _found_again(common: Array, partner: Array) -> Array:
    """Return for every cluster whether it and its partner are similar, without one sample that is in both."""
    size, size_found = common.sum(axis=1), common.sum(axis=0)
    both = common[np.arange(len(common)), partner]
    either = size + size_found[partner] - both
    return np.asarray((partner >= 0) & (size >= LEAST_SIZE) & (both - 1 >= _SAME * (either - 1)))


def best_jaccard(common: Array) -> Array:
    """Return for every cluster its Jaccard similarity with the most similar found cluster; NaN if it is empty."""
    size, size_found = common.sum(axis=1), common.sum(axis=0)
    either = size[:, None] + size_found[None, :] - common
    return np.where(size > 0, (common / np.maximum(either, 1)).max(axis=1), np.nan)


def structure_score(modularity: Any, stability: Any) -> Array:
    """Return modularity³ · stability, 0 where the modularity is negative.

    It compares numbers of groups, and groups with those of null data.
    """
    return np.asarray(np.maximum(modularity, 0) ** _POWER * stability)
