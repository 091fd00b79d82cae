"""The result of a test for structure: p-values, stability of groups, and what they mean in sentences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..persist.registry import storable_record
from ..utils.messages import counted, joined, warn_user
from ..utils.shown import Shown, Table
from ..utils.types import Array
from .confidence import read_labels
from .stability import best_jaccard, count_common

SMALL_GROUP = 5  # groups of fewer samples are reported
ROUNDING = 1e-9
_VALID = 0.75  # stability of a group
_KINDS = ("Gaussian", "uniform")  # null data


@storable_record
@dataclass(frozen=True, repr=False)
class Assessment(Shown):
    """Whether groups can be distinguished from data without groups; see :func:`gapview.trust.assess_structure`.

    Attributes
    ----------
    p_value : float
        The larger of ``p_values``; NaN if there is one group, so that nothing can be tested.
    p_values : array of shape (2,)
        For Gaussian and for uniform null data, (1 + number of null data sets with a statistic as large) / (1 + number
        of null data sets). Where 3 were as large before all were drawn, 3 / number drawn (Besag and Clifford 1991). NaN
        for uniform null data if Gaussian null data decide.
    statistic : float
        ``modularity``³ · ``stability``.
    stability : float
        Jaccard similarity of groups with the most similar group of a resample, averaged over groups and resamples.
    modularity : float
        Modularity of the groups on the neighbour graphs within the views, averaged over the views.
    null_statistics, null_stability : arrays of shape (2, n_null)
        The same of null data sets, Gaussian and uniform; NaN for those that were not drawn. Null data that were not
        resampled have no stability, and their modularity³ as statistic, which is below ``statistic``.
    null_groups : array of shape (2, n_null, n_groups)
        Stability of every group of the null data sets that were resampled.
    agreement : float
        Share of the neighbours of a sample in one view that are also neighbours in another view; NaN if no two views
        have 20 samples in common.
    agreement_p_value : float
        Share of permutations of the samples in which two views agree as much.
    group_stability, group_p_values : arrays of shape (n_groups,)
        Stability of the groups of the model, and p-value of each in the distribution of ``null_groups``.
    alpha : float
        Level of significance.
    n_samples : int
        Number of samples on which the groups were assessed.
    n_fits : int
        Number of fits. They repeat the setting of the model without refinement; one costs about 0.4 of a fit with
        ``selection="fixed"``.

    References
    ----------
    J. Besag, P. Clifford: Sequential Monte Carlo p-values. Biometrika 78, 1991.

    Examples
    --------
    >>> from gapview import BridgedGRMF
    >>> from gapview.datasets import make_views
    >>> views = make_views(n_samples=90, n_clusters=3, missing_rate=0.3, random_state=0).views
    >>> assessment = BridgedGRMF(n_clusters=3, random_state=0).fit(views).assess(random_state=0)
    >>> assessment.p_value, assessment.has_structure
    (0.05, True)
    """

    p_value: float
    p_values: Array
    statistic: float
    stability: float
    modularity: float
    null_statistics: Array
    null_stability: Array
    null_groups: Array
    agreement: float
    agreement_p_value: float
    group_stability: Array
    group_p_values: Array
    alpha: float
    n_samples: int
    n_fits: int

    @property
    def has_structure(self) -> bool:
        """Whether the groups can be distinguished from null data: ``p_value`` is at most ``alpha``."""
        return bool(self.p_value <= self.alpha + ROUNDING)

    @property
    def unstable_groups(self) -> list[int]:
        """The groups with a stability below 0.75 that are not more stable than groups of null data.

        From 0.75 on Hennig (2007) calls a group valid. With few groups, those of null data often are as stable.
        """
        is_like_null = self.group_p_values > self.alpha + ROUNDING
        return np.flatnonzero(is_like_null & (self.group_stability < _VALID)).tolist()

    @property
    def null_group_stability(self) -> float:
        """The 95 % quantile of the stability of groups of null data."""
        return float(np.nanquantile(self.null_groups, 0.95)) if np.isfinite(self.null_groups).any() else float("nan")

    def sentences(self) -> list[str]:
        """Return the result in sentences: structure, stability, agreement of the views."""
        if np.isnan(self.p_value):
            return ["There is one group, so that its structure is not tested."]
        counts = np.isfinite(self.null_statistics).sum(axis=1).tolist()
        drawn = joined([f"{count} {kind}" for count, kind in zip(counts, _KINDS, strict=True) if count])
        least = 1 / (1 + self.null_statistics.shape[1])
        at_least = ", the smallest possible value" if self.p_value <= least + ROUNDING else ""
        test = f"p = {self.p_value:.2g}{at_least}; {drawn} null data sets"
        can = "can" if self.has_structure else "cannot"
        found = [f"The groups {can} be distinguished from data without groups ({test})."]
        usual = float(np.nanmean(self.null_stability))
        found.append(
            f"In resamples of 80 % of the samples, groups come back with a mean Jaccard similarity of "
            f"{self.stability:.2f}; groups of null data with {usual:.2f}."
        )
        if self.has_structure and (unstable := self.unstable_groups):
            which = joined([str(group) for group in unstable[:10]]) + (" and others" if len(unstable) > 10 else "")
            many = len(unstable) > 1
            found.append(
                f"{'Groups' if many else 'Group'} {which} {'are' if many else 'is'} unstable: not more stable than "
                "groups of null data."
            )
        if not np.isnan(self.agreement_p_value):
            agree = "agree" if self.agreement_p_value <= self.alpha else "do not agree significantly"
            found.append(
                f"The views {agree} on which samples are neighbours (p = {self.agreement_p_value:.2g}, permutation "
                "test)."
            )
        return found

    def _shown_as(self) -> Table:
        """Return the sentences, and the stability of every group."""
        title, *notes = self.sentences()
        if not len(self.group_stability) or np.isnan(self.p_value):
            return Table(title, notes=notes)
        unstable, parts = self.unstable_groups, (self.group_stability.tolist(), self.group_p_values.tolist())
        rows = [(g, *row, g in unstable) for g, row in enumerate(zip(*parts, strict=True))]
        return Table(title, ("group", "stability", "p against null data", "unstable"), rows, notes)

    def __str__(self) -> str:
        return " ".join(self.sentences())


class Resamples(NamedTuple):
    """Groups found in resamples, with which the groups of a model are compared."""

    rows: Array  # samples that were assessed
    found: Array  # resamples × samples: the group in every resample, −1 for samples that were not drawn


def one_group(n_samples: int, alpha: float = 0.05) -> Assessment:
    """Return the assessment of a single group, of which nothing can be tested."""
    nan, none = float("nan"), np.full((2, 0), np.nan)
    one = np.array([nan])
    return Assessment(
        nan, np.full(2, nan), nan, nan, nan, none, none, none[:, :, None], nan, nan, one, one, alpha, n_samples, 0
    )


def add_groups(assessment: Assessment, resamples: Resamples, labels: Any) -> Assessment:
    """Return an assessment with the stability of the groups of ``labels``, and its p-values.

    Parameters
    ----------
    assessment : Assessment
        The assessment.
    resamples : Resamples
        The groups found in resamples.
    labels : array of shape (n_samples,)
        Group of every sample.
    """
    groups = read_labels(labels)
    n_groups = int(groups.max()) + 1
    own = groups[resamples.rows]
    jaccards = np.full((len(resamples.found), n_groups), np.nan)
    for turn, found in enumerate(resamples.found):
        drawn = found >= 0
        if drawn.any():
            jaccards[turn] = best_jaccard(count_common(own[drawn], found[drawn], n_groups))
    stability = np.ma.masked_invalid(jaccards).mean(axis=0).filled(np.nan)
    p_values = np.full(n_groups, np.nan)
    known = assessment.null_groups[~np.isnan(assessment.null_groups)]
    if known.size and n_groups > 1:
        as_large = (known[None, :] >= stability[:, None]).sum(axis=1)
        p_values = np.where(np.isnan(stability), np.nan, (1 + as_large) / (1 + known.size))
    return replace(assessment, group_stability=stability, group_p_values=p_values)


def warn_without_structure(assessment: Assessment) -> None:
    """Warn if groups cannot be distinguished from null data."""
    if not np.isnan(assessment.p_value) and not assessment.has_structure:
        warn_user(
            f"{assessment.sentences()[0]} They may divide one group at random: do not interpret them without other "
            "evidence."
        )


def small_groups(labels: Array) -> str | None:
    """Return a sentence about groups of fewer than 5 samples; None if there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.trust.assessment import small_groups
    >>> print(small_groups(np.array([0] * 20 + [1] * 3)))
    1 of 2 groups has fewer than 5 samples: too few to tell a group from chance.
    """
    sizes = np.bincount(labels)
    sizes = sizes[sizes > 0]
    n_small = int((sizes < SMALL_GROUP).sum())
    if not n_small:
        return None
    verb = "has" if n_small == 1 else "have"
    few = " Use fewer groups." if np.median(sizes) < SMALL_GROUP and len(sizes) > 1 else ""
    groups = counted(len(sizes), "group")
    return f"{n_small:,} of {groups} {verb} fewer than {SMALL_GROUP} samples: too few to tell a group from chance.{few}"
