"""Which samples lack which views, and whether that goes with the groups."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...utils.types import Array
from ...views import Views
from ._association import Association, associate, holm

__all__ = ["Gaps", "Pattern", "ViewGap", "count_patterns", "summarise_gaps"]


@dataclass(frozen=True)
class Pattern:
    """A set of views that some samples have, and no others."""

    present: tuple[bool, ...]
    n_samples: int


@dataclass(frozen=True)
class ViewGap:
    """Whether having one view goes with the groups; NaN and None where all or none have it."""

    view: str
    n_samples: int
    association: Association | None
    adjusted: float  # p-value corrected for the number of views


@dataclass(frozen=True)
class Gaps:
    """Which samples lack which views.

    Attributes
    ----------
    patterns : tuple of Pattern
        The most frequent first.
    codes : array of shape (n_samples,)
        The pattern of every sample.
    share : array of shape (n_groups, n_views)
        Share of the samples of a group that have the view; NaN for a group without samples.
    association : Association or None
        Patterns against groups; None where there is one pattern or one group only.
    """

    patterns: tuple[Pattern, ...]
    codes: Array = field(repr=False)
    views: tuple[ViewGap, ...]
    share: Array = field(repr=False)
    association: Association | None


def count_patterns(mask: Array) -> tuple[tuple[Pattern, ...], Array]:
    """Return the patterns, the most frequent first, and the pattern of every sample."""
    kinds, codes, counts = np.unique(mask, axis=0, return_inverse=True, return_counts=True)
    # Of equally frequent patterns, the one with more views comes first
    order = sorted(range(len(kinds)), key=lambda i: (-counts[i], -kinds[i].sum(), tuple(~kinds[i])))
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    return tuple(Pattern(tuple(kinds[i].tolist()), int(counts[i])) for i in order), place[codes.ravel()]


def summarise_gaps(views: Views, labels: Array, n_groups: int) -> Gaps:
    """Count the patterns, and test whether they go with the groups."""
    patterns, codes = count_patterns(views.mask)
    sizes = np.bincount(labels, minlength=n_groups)
    having = np.stack([np.bincount(labels, weights=column, minlength=n_groups) for column in views.mask.T], axis=1)
    share = np.where(sizes[:, None] > 0, having / np.maximum(sizes, 1)[:, None], np.nan)
    return Gaps(
        patterns,
        codes,
        _view_gaps(views, labels),
        share,
        associate(labels, codes, draw=True),
    )


def _view_gaps(views: Views, labels: Array) -> tuple[ViewGap, ...]:
    found = [associate(labels, column.astype(np.intp), draw=True) for column in views.mask.T]
    corrected = iter(holm([one.p_value for one in found if one is not None]))
    counts = views.mask.sum(axis=0).tolist()
    return tuple(
        ViewGap(name, count, one, float("nan") if one is None else next(corrected))
        for name, count, one in zip(views.names, counts, found, strict=True)
    )
