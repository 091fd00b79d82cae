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
_N_DISTANCES = 2**26  # distances held at a time on a device
_STEPS_BETWEEN = 4  # iterations on a device between two tests of whether they end, for which the host waits
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
    """Cluster the rows of a tensor; see :func:`kmeans_of_tensors`."""
    labels, centers = kmeans_of_tensors(points[None], n_clusters, n_init, seed)
    return labels[0], centers[0]


def kmeans_of_tensors(points: Any, n_clusters: int, n_init: int, seed: int) -> tuple[Any, Any]:
    """Cluster the rows of several data sets by Lloyd's algorithm; the start with the smallest inertia of each counts.

    All starts of all data sets run at once, since one alone would leave a device idle. First centres are those of
    :func:`kmeans_plus_plus`, among a sample if there are many rows.

    Parameters
    ----------
    points : tensor of shape (n_sets, n_points, n_features)
        The rows.
    n_clusters : int
        Number of groups.
    n_init : int
        Number of starts.
    seed : int
        Random seed; the same for all data sets.

    Returns
    -------
    labels, centers
        Tensors on the device of the points, of shape (n_sets, n_points) and (n_sets, n_clusters, n_features).
    """
    import torch

    source = np.random.RandomState(seed)
    n_sets, n_points, _ = points.shape
    drawn = points
    if n_points > _N_SEEDED:
        drawn = points[:, torch.as_tensor(source.permutation(n_points)[:_N_SEEDED], device=points.device)]
    centers = _first_centers(drawn, n_clusters, n_init, source)
    tolerance = _TOLERANCE * points.var(dim=1, correction=0).mean(dim=1, keepdim=True)
    active = torch.ones(centers.shape[:2], dtype=torch.bool, device=points.device)
    for done in range(1, _MOST_ITERATIONS + 1):
        _, sums, counts = _assign(points, centers)
        moved = torch.where((counts > 0) & active[..., None, None], sums / counts.clamp(min=1), centers)
        active = active & ((moved - centers).square().sum(dim=(2, 3)) > tolerance)
        centers = moved
        if done % _STEPS_BETWEEN == 0 and not bool(active.any()):
            break
    inertia = _assign(points, centers)[0]
    # The first of those that are equal up to rounding, which may differ from run to run
    best = (inertia <= inertia.amin(dim=1, keepdim=True) * (1 + _ROUNDING)).int().argmax(dim=1)
    chosen = centers[torch.arange(n_sets, device=points.device), best]
    parts = points.split(_rows_at_a_time(n_sets * n_clusters), dim=1)
    return torch.cat([_products(part, chosen).argmax(dim=2) for part in parts], dim=1), chosen


def _rows_at_a_time(n_centers: int) -> int:
    return max(1, _N_DISTANCES // n_centers)


def _products(points: Any, centers: Any) -> Any:
    """Return x·c − |c|²/2, which is largest for the nearest centre: sets × rows × centres."""
    half = centers.square().sum(dim=2) / 2
    return (-half[:, None]).baddbmm(points, centers.transpose(1, 2))


def _first_centers(points: Any, n_clusters: int, n_init: int, source: np.random.RandomState) -> Any:
    """Return the first centres of :func:`kmeans_plus_plus` for all starts: sets × starts × centres × features."""
    import torch

    n_trials = 2 + int(np.log(n_clusters))
    numbers = source.random_sample((n_init, 1 + (n_clusters - 1) * n_trials))
    draws = torch.as_tensor(numbers, device=points.device)
    n_sets, n_points, _ = points.shape
    sets, wide = torch.arange(n_sets, device=points.device)[:, None], points.double()
    squares = wide.square().sum(dim=2)[:, None]

    def distances(rows: Any) -> Any:
        chosen = wide[sets, rows]
        found = chosen.square().sum(dim=2, keepdim=True) + squares
        return found.baddbmm(chosen, wide.transpose(1, 2), alpha=-2).clamp(min=0)

    chosen = [(draws[:, 0] * n_points).long().expand(n_sets, -1)]
    nearest = distances(chosen[0])
    for k in range(1, n_clusters):
        ends = nearest.cumsum(dim=2)
        wanted = draws[:, k * n_trials - n_trials + 1 : k * n_trials + 1] * ends[:, :, -1:]
        found = torch.searchsorted(ends, wanted).clamp(max=n_points - 1)
        tried = distances(found.flatten(1)).unflatten(1, (n_init, n_trials))
        tried = torch.minimum(tried, nearest[:, :, None])
        best = tried.sum(dim=3).argmin(dim=2, keepdim=True)
        nearest = tried.gather(2, best[..., None].expand(-1, -1, 1, n_points))[:, :, 0]
        chosen.append(found.gather(2, best)[:, :, 0])
    return points[sets[..., None], torch.stack(chosen, dim=2)]


def _assign(points: Any, centers: Any) -> tuple[Any, Any, Any]:
    """Return for every start its inertia, and sum and number of the rows nearest to each centre."""
    import torch

    n_sets, n_init, n_clusters, _ = centers.shape
    flat = centers.flatten(1, 2)
    inertia = torch.zeros((n_sets, n_init), dtype=torch.float64, device=points.device)
    sums = torch.zeros_like(flat)
    counts = torch.zeros_like(flat[:, :, :1])
    for rows in points.split(_rows_at_a_time(n_sets * n_init * n_clusters), dim=1):
        largest, labels = _products(rows, flat).unflatten(2, (n_init, n_clusters)).max(dim=3)
        squares = rows.square().sum(dim=2, keepdim=True)
        inertia += (squares - 2 * largest).clamp(min=0).sum(dim=1, dtype=torch.float64)
        # Matrix products with 0 and 1, since sums by index are not reproducible on a GPU
        members = torch.zeros((*labels.shape, n_clusters), dtype=points.dtype, device=points.device)
        members = members.scatter_(3, labels[..., None], 1).flatten(2).transpose(1, 2)
        sums += members @ rows
        counts += members.sum(dim=2, keepdim=True)
    return inertia, sums.reshape(centers.shape), counts.reshape(n_sets, n_init, n_clusters, 1)
