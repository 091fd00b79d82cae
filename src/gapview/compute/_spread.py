"""First centres for many starts of k-means at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

__all__ = ["spread_starts"]


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
    n_points, n_trials = len(points), 2 + int(np.log(n_clusters))
    first = random_state.random_sample((n_starts, 1 + (n_clusters - 1) * n_trials))
    draws = first[:, 1:].reshape(n_starts, n_clusters - 1, n_trials)
    distances = _Distances(points)
    chosen = np.empty((n_starts, n_clusters), dtype=np.intp)
    shares = np.full(n_points, 1 / n_points).cumsum()
    chosen[:, 0] = (shares / shares[-1]).searchsorted(first[:, 0], side="right")
    nearest = distances(chosen[:, 0])  # of every start: the squared distance of every row to the nearest centre
    totals = nearest.sum(axis=1)
    everyone = np.arange(n_starts)
    for k in range(1, n_clusters):
        ends = nearest.cumsum(axis=1)
        wanted = draws[:, k - 1] * totals[:, None]
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
        points = points.astype(np.float64, copy=False)
        squares, ones = np.square(points).sum(axis=1, keepdims=True), np.ones((len(points), 1))
        self.left = np.hstack([-2 * points, ones, squares])
        self.right = np.hstack([points, squares, ones]).T.copy()

    def __call__(self, rows: Array) -> Array:
        distances = self.left[rows] @ self.right
        return np.maximum(distances, 0, out=distances)  # type: ignore[no-any-return]
