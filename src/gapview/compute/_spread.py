"""First centres for many starts of k-means at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

__all__ = ["spread_starts"]

_DISTANCES_AT_A_TIME = 2**17  # that are held: more would not stay in the cache


def spread_starts(points: Array, n_clusters: int, n_starts: int, random_state: np.random.RandomState) -> Array:
    """Draw rows as first centres by k-means++ (Arthur and Vassilvitskii, 2007), for all starts side by side.

    Every further centre is the best of a few candidates, as scikit-learn has it. The numbers are drawn in its order,
    too, so that the starts are those of ``KMeans(n_init=n_starts)``, but for candidates that are equally good up to
    rounding; side by side they take a quarter of the time.

    Parameters
    ----------
    points : array of shape (n_points, n_features)
        The rows, not far from the origin for how far they are from each other.
    n_clusters : int
        Number of centres.
    n_starts : int
        Number of starts.
    random_state : RandomState
        Source of chance.

    Returns
    -------
    array of shape (n_starts, n_clusters)
        Which rows are the centres of every start.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.compute import spread_starts
    >>> starts = spread_starts(np.array([[0.0], [0.1], [5.0]]), 2, 3, np.random.RandomState(0))
    >>> [bool((start == 2).sum() == 1) for start in starts]
    [True, True, True]
    """
    n_trials = 2 + int(np.log(n_clusters))
    draws = random_state.random_sample((n_starts, 1 + (n_clusters - 1) * n_trials))
    distances = _Distances(points)
    count = max(1, _DISTANCES_AT_A_TIME // (n_trials * len(points)))
    groups = [draws[begin : begin + count] for begin in range(0, n_starts, count)]
    return np.concatenate([_spread(distances, n_clusters, n_trials, group) for group in groups])


def _spread(distances: _Distances, n_clusters: int, n_trials: int, draws: Array) -> Array:
    """Choose the centres of some starts by numbers between 0 and 1: one for the first, ``n_trials`` for each other."""
    n_starts, n_points = len(draws), distances.n_points
    chosen = np.empty((n_starts, n_clusters), dtype=np.intp)
    shares = np.full(n_points, 1 / n_points).cumsum()
    chosen[:, 0] = (shares / shares[-1]).searchsorted(draws[:, 0], side="right")
    nearest = distances(chosen[:, 0])  # of every start: the squared distance of every row to the nearest centre
    totals = nearest.sum(axis=1)
    everyone = np.arange(n_starts)
    for k in range(1, n_clusters):
        ends = nearest.cumsum(axis=1)
        wanted = draws[:, k * n_trials - n_trials + 1 : k * n_trials + 1] * totals[:, None]
        found = np.stack([end.searchsorted(value) for end, value in zip(ends, wanted, strict=True)])
        candidates = np.minimum(found, n_points - 1)  # the last sum may fall short of the total by rounding
        tried = distances(candidates.ravel()).reshape(n_starts, n_trials, n_points)
        np.minimum(tried, nearest[:, None], out=tried)
        of_tried = tried.sum(axis=2)
        best = everyone, of_tried.argmin(axis=1)
        nearest, totals, chosen[:, k] = tried[best], of_tried[best], candidates[best]
    return chosen


class _Distances:
    """Squared distances from some rows to all, by one product: (−2x, 1, |x|²) · (y, |y|², 1)."""

    def __init__(self, points: Array) -> None:
        self.n_points, width = points.shape
        self.all = np.ones((width + 2, self.n_points))
        self.all[:width] = points.T
        np.square(self.all[:width]).sum(axis=0, out=self.all[width])

    def __call__(self, rows: Array) -> Array:
        asked = self.all[:, rows].T * -2.0
        asked[:, -1] = asked[:, -2] / -2
        asked[:, -2] = 1
        distances = asked @ self.all
        return np.maximum(distances, 0, out=distances)
