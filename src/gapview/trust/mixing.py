"""What the correction of batch effects has done: mixing of the batches, and neighbours within batches that are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors

from ..compute.arrays import host
from ..compute.engine import single_threaded
from ..correction import Correction, on_axes
from ..metrics import batch_mixing
from ..persist.registry import storable_record
from ..utils.messages import ignoring, shorten
from ..utils.shown import Shown, Table
from ..utils.types import Array, Matrix
from ..views import Views
from .association import associate

_MOST_ROWS = 5000
_N_NEIGHBORS = 15


@storable_record
@dataclass(frozen=True)
class ViewMixing:
    """The mixing of the batches in one view; all figures are NaN for a view whose samples are of one batch.

    Attributes
    ----------
    view : str
        Name of the view.
    n_batches : int
        Number of batches among the samples that have the view.
    before, after : float
        Median iLISI, scaled to [0, 1], before and after correction; see :func:`gapview.metrics.batch_mixing`.
    kept : float
        Share of the 15 nearest neighbours of a sample within its batch that are its neighbours after correction, too:
        structure within batches that the correction has preserved.
    strength : float
        Cramér's V of groups of the view before correction with the batches; 0 if it is not significant.

    Examples
    --------
    >>> from gapview.trust import ViewMixing
    >>> ViewMixing("blood", 2, 0.1, 0.8, 0.9, 0.7).is_grouped_by_batch
    True
    """

    view: str
    n_batches: int
    before: float
    after: float
    kept: float
    strength: float

    @property
    def is_grouped_by_batch(self) -> bool:
        """Whether the samples are largely grouped by batch before the correction."""
        return self.strength >= 0.5

    def __str__(self) -> str:
        if self.n_batches < 2:
            return f"view '{shorten(self.view)}' has samples of one batch and is not corrected"
        return (
            f"view '{shorten(self.view)}': {self.n_batches} batches, mixing {self.before:.2f} before and "
            f"{self.after:.2f} after, {self.kept:.0%} of the neighbours within batches kept"
        )


@storable_record
@dataclass(frozen=True, repr=False)
class BatchMixing(Shown):
    """The mixing of the batches before and after correction.

    Attributes
    ----------
    views : tuple of ViewMixing
        The mixing in every view.
    embedding : float
        Mixing in the representation in which groups are found; NaN if there is one batch only.
    n_unknown : int
        Number of samples whose batch is not known; they are not corrected.

    Examples
    --------
    >>> from gapview.trust import BatchMixing, ViewMixing
    >>> BatchMixing((ViewMixing("blood", 2, 0.1, 0.8, 0.9, 0.7),), 0.75, 0).sentences()[1]
    'In the representation of all views, the mixing is 0.75.'
    """

    views: tuple[ViewMixing, ...]
    embedding: float
    n_unknown: int

    def _shown_as(self) -> Table:
        """Return the mixing in every view."""
        columns = ("view", "batches", "before", "after", "neighbours kept", "Cramér’s V before")
        return Table("Mixing of batches", columns, [tuple(vars(one).values()) for one in self.views], self.sentences())

    def sentences(self) -> list[str]:
        """Return the figures in words."""
        of_views = "; ".join(map(str, self.views))
        found = [
            f"Batch effects are corrected (mixing is the median iLISI, from 0 to 1): {of_views}.",
            f"In the representation of all views, the mixing is {self.embedding:.2f}.",
        ]
        if self.n_unknown:
            found.append(f"The batch of {self.n_unknown:,} sample(s) is not known: they are not corrected.")
        return found

    def warnings(self) -> list[str]:
        """Return a warning for views whose samples are grouped by batch before correction; else an empty list."""
        found = [f"'{shorten(own.view)}' ({own.strength:.2f})" for own in self.views if own.is_grouped_by_batch]
        if not found:
            return []
        return [
            f"Without correction, samples are largely grouped by batch in {', '.join(found)} (Cramér's V). The data "
            "cannot show whether batches differ for technical reasons or hold different kinds of samples; the "
            "correction removes both. Compare with batch_correction='none', and look for the groups within one batch."
        ]


def measure_mixing(
    views: Views,
    scaled: Sequence[tuple[Callable[[Matrix], Matrix], Correction | None]],
    points: Array,
    n_groups: int,
) -> BatchMixing:
    """Return the mixing of the batches in every view before and after correction, and among points.

    At most 5000 samples of a view are compared, evenly spaced.

    Parameters
    ----------
    views : Views
        The training samples, with batches.
    scaled : sequence of (callable, Correction or None)
        For every view, the function that scales its rows, and its correction.
    points : array of shape (n_samples, n_dimensions)
        The samples in the latent space.
    n_groups : int
        Number of groups that are looked for in each view before correction.
    """
    batches = np.array([batch or "" for batch in views.batches or ()])
    known = np.flatnonzero(batches != "")
    with single_threaded():
        of_views = []
        for k, (scale, own) in enumerate(scaled):
            rows = views.rows(k)
            place = _some(np.flatnonzero(batches[rows] != ""))
            matrix = None if own is None else scale(views[rows[place]].matrices[k])
            of_views.append(_of_view(views.names[k], matrix, own, batches[rows[place]], n_groups))
        some = _some(known)
        return BatchMixing(tuple(of_views), batch_mixing(points[some], batches[some]), views.n_samples - len(known))


def _some(rows: Array) -> Array:
    return rows if len(rows) <= _MOST_ROWS else rows[np.linspace(0, len(rows) - 1, _MOST_ROWS).astype(np.intp)]


def _of_view(name: str, rows: Matrix | None, own: Correction | None, batches: Array, n_groups: int) -> ViewMixing:
    if own is None or rows is None:
        unknown = float("nan")
        return ViewMixing(name, len(np.unique(batches)), unknown, unknown, unknown, 0.0)
    before = on_axes(host(rows), own.size, own.center, own.axes)
    codes = np.searchsorted(own.batches, batches)
    after = own.corrected(before, codes)
    mixed = batch_mixing(before, batches), batch_mixing(after, batches)
    with ignoring("Number of distinct clusters"):
        groups = KMeans(max(2, min(n_groups, len(before))), n_init=3, random_state=0).fit_predict(before)
    tested = associate(groups, codes)
    strength = tested.strength if tested is not None and tested.p_value < 0.01 else 0.0
    return ViewMixing(name, len(own.batches), *mixed, _share_kept(before, after, codes), strength)


def _share_kept(before: Array, after: Array, codes: Array) -> float:
    """Return the share of the nearest neighbours within batches that are neighbours afterwards, too."""
    shares, counts = [], []
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        count = min(_N_NEIGHBORS, len(rows) - 1)
        if count < 1:
            continue
        first, second = (
            NearestNeighbors(n_neighbors=count).fit(points[rows]).kneighbors(return_distance=False)
            for points in (before, after)
        )
        shares.append(np.mean([len(np.intersect1d(*pair)) / count for pair in zip(first, second, strict=True)]))
        counts.append(len(rows))
    return float(np.average(shares, weights=counts)) if shares else float("nan")
