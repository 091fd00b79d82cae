"""k-means: first centres for all restarts at once, and the whole algorithm, on arrays and on tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..utils.types import Array

_DISTANCES_AT_A_TIME = 2**17  # distances held at a time: more would not stay in the cache

_TABLE = 2**20  # distances of restarts that run at once; one restart alone may have twice as many
_MOST_ITERATIONS = 300
_N_SEEDED = 2**15  # rows among which the first centres are drawn
_N_DISTANCES = 2**28  # distances held at a time on a device
_ROUNDING = 1e-6
_TOLERANCE = 1e-4  # of the variance of the points, as in scikit-learn


def kmeans_plus_plus(points: Array, n_clusters: int, n_starts: int, random_state: np.random.RandomState) -> Array:
    """Draw rows as first centres by k-means++ (Arthur and Vassilvitskii, 2007), for all starts at once.

    Every further centre is the best of a few candidates, as in scikit-learn. Random numbers are drawn in its order, so
    that the starts are those of ``KMeans(n_init=n_starts)``, but for candidates that are equally good up to rounding.
    All starts at once take a quarter of the time.

    Parameters
    ----------
    points : array of shape (n_points, n_features)
        The rows. Their distance from the origin must not be large compared with the distances between them.
    n_clusters : int
        Number of centres.
    n_starts : int
        Number of starts.
    random_state : RandomState
        Source of random numbers.

    Returns
    -------
    array of shape (n_starts, n_clusters)
        Indices of the rows that are the centres of every start.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.compute.kmeans import kmeans_plus_plus
    >>> starts = kmeans_plus_plus(np.array([[0.0], [0.1], [5.0]]), 2, 3, np.random.RandomState(0))
    >>> [bool((start == 2).sum() == 1) for start in starts]
    [True, True, True]
    """
    n_trials = 2 + int(np.log(n_clusters))
    draws = random_state.random_sample((n_starts, 1 + (n_clusters - 1) * n_trials))
    distances = _SquaredDistances(points)
    count = max(1, _DISTANCES_AT_A_TIME // (n_trials * len(points)))
    groups = [draws[begin : begin + count] for begin in range(0, n_starts, count)]
    return np.concatenate([_drawn_centers(distances, n_clusters, n_trials, group) for group in groups])


def _drawn_centers(distances: _SquaredDistances, n_clusters: int, n_trials: int, draws: Array) -> Array:
    """Return the centres of some starts, given numbers in [0, 1): one for the first, ``n_trials`` for each other."""
    n_starts, n_points = len(draws), distances.n_points
    chosen = np.empty((n_starts, n_clusters), dtype=np.intp)
    shares = np.full(n_points, 1 / n_points).cumsum()
    chosen[:, 0] = (shares / shares[-1]).searchsorted(draws[:, 0], side="right")
    nearest = distances(chosen[:, 0])  # per start, the squared distance of every row to its nearest centre
    totals = nearest.sum(axis=1)
    starts = np.arange(n_starts)
    for k in range(1, n_clusters):
        ends = nearest.cumsum(axis=1)
        wanted = draws[:, k * n_trials - n_trials + 1 : k * n_trials + 1] * totals[:, None]
        found = np.stack([end.searchsorted(value) for end, value in zip(ends, wanted, strict=True)])
        candidates = np.minimum(found, n_points - 1)  # the last sum may be less than the total by rounding
        tried = distances(candidates.ravel()).reshape(n_starts, n_trials, n_points)
        np.minimum(tried, nearest[:, None], out=tried)
        trial_totals = tried.sum(axis=2)
        best = starts, trial_totals.argmin(axis=1)
        nearest, totals, chosen[:, k] = tried[best], trial_totals[best], candidates[best]
    return chosen


class _SquaredDistances:
    """Squared distances from some rows to all, by one product: (−2x, 1, |x|²) · (y, |y|², 1)."""

    def __init__(self, points: Array) -> None:
        self.n_points, width = points.shape
        self.all = np.ones((width + 2, self.n_points))
        self.all[:width] = points.T
        np.square(self.all[:width]).sum(axis=0, out=self.all[width])

    def __call__(self, rows: Array) -> Array:
        chosen = self.all[:, rows].T * -2.0
        chosen[:, -1] = chosen[:, -2] / -2
        chosen[:, -2] = 1
        distances = chosen @ self.all
        return np.maximum(distances, 0, out=distances)


def kmeans_of_array(
    points: Array, n_clusters: int, n_init: int, random_state: np.random.RandomState
) -> tuple[Array, Array] | None:
    """Cluster rows by Lloyd's algorithm from the starts of :func:`kmeans_plus_plus`; the smallest inertia counts.

    The result is that of ``KMeans(n_init=n_init)`` up to rounding, in less than half of the time: all restarts share
    their matrix products.

    Returns
    -------
    labels, centers
        None if a group loses all of its rows, or if there are too many distances for this way.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.compute.kmeans import kmeans_of_array
    >>> labels, centers = kmeans_of_array(np.array([[0.0], [0.2], [5.0]]), 2, 3, np.random.RandomState(0))
    >>> bool(labels[0] == labels[1]), np.sort(centers.ravel()).round(3).tolist()
    (True, [0.1, 5.0])
    """
    n_points, width = points.shape
    if n_clusters * n_points > 2 * _TABLE:
        return None
    middle = points.mean(axis=0, dtype=np.float64).astype(points.dtype)
    # A column of ones adds −|c|²/2 to x·c, which is then largest for the nearest centre, and counts the rows of a group
    rows = np.ones((n_points, width + 1), dtype=points.dtype)
    np.subtract(points, middle, out=rows[:, :width])
    starts = kmeans_plus_plus(rows[:, :width], n_clusters, n_init, random_state)
    total = float(np.square(rows[:, :width]).sum(dtype=np.float64))
    tolerance = _TOLERANCE * float(rows[:, :width].var(axis=0).mean())
    columns, best, least = np.ascontiguousarray(rows.T), None, np.inf
    count = max(1, _TABLE // (n_clusters * n_points))
    for begin in range(0, n_init, count):
        for inertia, centers in _lloyd(rows, columns, rows[starts[begin : begin + count]], tolerance, total):
            if centers is None:
                return None
            if inertia < least * (1 - _ROUNDING):
                best, least = centers, inertia
    if best is None:
        return None
    return (best @ columns).argmax(axis=0).astype(np.int32), best[:, :width] + middle


def _lloyd(
    rows: Array, columns: Array, centers: Array, tolerance: float, total: float
) -> Iterator[tuple[float, Array | None]]:
    """Yield inertia and centres of every restart when it ends, in any order; no centres if a group is empty.

    Parameters
    ----------
    rows, columns : arrays of shape (n_points, n_features + 1), (n_features + 1, n_points)
        The points with a column of ones, and the same transposed.
    centers : array of shape (n_starts, n_clusters, n_features + 1)
        The first centres.
    tolerance : float
        Squared change of the centres up to which a restart ends.
    total : float
        Sum of squares of the points.
    """
    shape, before = centers.shape[1:], None
    centers[:, :, -1] = _half_squares(centers)
    for done in range(1, _MOST_ITERATIONS + 1):
        table = (centers.reshape(-1, shape[1]) @ columns).reshape(len(centers), shape[0], -1)
        nearest = table.max(axis=1)
        belongs = table == nearest[:, None]
        sums = (belongs.reshape(-1, len(rows)).astype(rows.dtype) @ rows).reshape(centers.shape)
        counts = sums[:, :, -1:]
        if not counts.all() or counts.sum() != len(centers) * len(rows):  # an empty group, or equal distances
            yield np.inf, None
            return
        inertia = total - 2 * nearest.sum(axis=1, dtype=np.float64)
        moved = sums / counts
        change = np.square(moved[:, :, :-1] - centers[:, :, :-1]).sum(axis=(1, 2))
        moved[:, :, -1] = _half_squares(moved)
        ended = (change <= tolerance) | (done == _MOST_ITERATIONS)
        if before is not None:
            ended |= (belongs == before).all(axis=(1, 2))
        yield from zip(inertia[ended].tolist(), moved[ended], strict=True)
        centers, before = moved[~ended], belongs[~ended]
        if not len(centers):
            return


def _half_squares(centers: Array) -> Array:
    return -np.square(centers[:, :, :-1]).sum(axis=2) / 2  # type: ignore[no-any-return]


def kmeans_of_tensor(points: Any, n_clusters: int, n_init: int, seed: int) -> tuple[Any, Any]:
    """Cluster the rows of a tensor by Lloyd's algorithm; the start with the smallest inertia of ``n_init`` counts.

    All starts run at once, since one alone would leave a device idle. First centres are drawn as in k-means++ (Arthur
    and Vassilvitskii, 2007), among a sample of the rows.

    Returns
    -------
    labels, centers
        Tensors on the device of the points.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(len(points), generator=generator)[:_N_SEEDED].to(points.device)
    centers = torch.stack([_first_centers(points[chosen], n_clusters, generator) for _ in range(n_init)])
    tolerance = _TOLERANCE * float(points.var(dim=0, correction=0).mean())
    for _ in range(_MOST_ITERATIONS):
        _, sums, counts = _assign(points, centers)
        moved = torch.where(counts[..., None] > 0, sums / counts.clamp(min=1)[..., None], centers)
        change = float((moved - centers).square().sum(dim=(1, 2)).max())
        centers = moved
        if change <= tolerance:
            break
    inertia = _assign(points, centers)[0]
    # The first of those that are equal up to rounding, which may differ from run to run
    best = centers[int((inertia <= inertia.min() * (1 + _ROUNDING)).int().argmax())]
    return _nearest_center(points, best[None])[1][:, 0], best


def _first_centers(points: Any, n_clusters: int, generator: Any) -> Any:
    import torch

    first = int(torch.randint(len(points), (1,), generator=generator))
    centers = [points[first]]
    distances = (points - centers[0]).square().sum(dim=1)
    for _ in range(1, n_clusters):
        ends = distances.double().cumsum(dim=0)
        drawn = torch.rand(1, generator=generator, dtype=torch.float64).to(points.device) * ends[-1]
        centers.append(points[torch.searchsorted(ends, drawn).clamp(max=len(points) - 1)[0]])
        distances = torch.minimum(distances, (points - centers[-1]).square().sum(dim=1))
    return torch.stack(centers)


def _nearest_center(points: Any, centers: Any) -> tuple[Any, Any]:
    """Return for every row and start the squared distance to the nearest centre, and its index."""
    n_starts, n_clusters, _ = centers.shape
    flat = centers.reshape(n_starts * n_clusters, -1)
    squares = flat.square().sum(dim=1) - 2 * (points @ flat.T)
    smallest, labels = squares.reshape(len(points), n_starts, n_clusters).min(dim=2)
    return smallest + points.square().sum(dim=1, keepdim=True), labels


def _assign(points: Any, centers: Any) -> tuple[Any, Any, Any]:
    """Return for every start its inertia, and sum and number of the rows nearest to each centre."""
    import torch

    n_starts, n_clusters, width = centers.shape
    inertia = torch.zeros(n_starts, dtype=torch.float64, device=points.device)
    sums = torch.zeros((n_starts * n_clusters, width), dtype=points.dtype, device=points.device)
    counts = torch.zeros(n_starts * n_clusters, dtype=points.dtype, device=points.device)
    groups = torch.arange(n_clusters, device=points.device)
    for block in points.split(max(1, _N_DISTANCES // (n_starts * n_clusters))):
        distances, labels = _nearest_center(block, centers)
        inertia += distances.clamp(min=0).sum(dim=0, dtype=torch.float64)
        for start in range(n_starts):
            # A matrix product, since sums by index are not reproducible on a GPU
            members = (labels[:, start, None] == groups).to(points.dtype)
            part = slice(start * n_clusters, (start + 1) * n_clusters)
            sums[part] += members.T @ block
            counts[part] += members.sum(dim=0)
    return inertia, sums.reshape(centers.shape), counts.reshape(n_starts, n_clusters)
