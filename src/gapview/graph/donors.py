"""Samples to borrow a view from: those nearest in the other views."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from ..compute import FEW_ROWS, csr, is_tensor, like, row_blocks
from ..progress import phase
from ..scaling import row_lengths, times_power
from ..utils.types import Array, Matrix
from ..views import Views
from .knn import comparable_rows, only_directions
from .neighbors import Search, nearest

__all__ = [
    "N_SOURCES",
    "KnownRows",
    "asking_views",
    "judged_samples",
    "known_views",
    "mean_row",
    "mean_square",
    "nearest_sources",
    "neighbor_means",
    "slope_of",
]

N_SOURCES = 5  # samples that a missing row is averaged from
_N_CANDIDATES = 4  # times as many samples are considered in each of several views
_N_JUDGED = 2000  # rows that are there, and are recovered all the same to see how well it goes
_MANY_ROWS, _TALL = 2**16, 20  # rows, and rows for every feature, from which leading directions come from products
_N_PAIRS = 20_000  # pairs of rows whose distance is taken at a time


@dataclass(frozen=True)
class KnownRows:
    """The rows of one view that say something: directions, or rows in units of the standard deviation of the view."""

    samples: Array  # whose they are
    points: Matrix
    position: Array  # for every sample where its row stands, −1 if nowhere
    unit: float
    weight: float = 1.0  # how much squared distances in this view count


def known_views(
    scaled: Iterable[Matrix], views: Views, view_weights: Sequence[float] | None = None, *, n_most: int | None = None
) -> list[KnownRows]:
    """Keep the rows of every view that have a direction, if wished in at most ``n_most`` dimensions."""
    weights = [1.0] * views.n_views if view_weights is None else view_weights
    tables = []
    for k, (matrix, weight) in enumerate(zip(scaled, weights, strict=True)):
        points, samples, position = _placed(matrix, views, k)
        # Directions are comparable as they are; other rows may be in any unit
        unit = 1.0 if only_directions(points) else _deviation(points)
        points = points if n_most is None else _leading_directions(points, n_most)
        tables.append(KnownRows(samples, _divided(points, unit), position, unit, weight))
    return tables


def asking_views(scaled: Sequence[Matrix], views: Views, tables: Sequence[KnownRows]) -> list[KnownRows]:
    """Lay out the rows of other samples, in the units of ``tables``."""
    asking = []
    for k, (matrix, table) in enumerate(zip(scaled, tables, strict=True)):
        points, samples, position = _placed(matrix, views, k)
        asking.append(KnownRows(samples, _divided(points, table.unit), position, table.unit, table.weight))
    return asking


def _placed(matrix: Matrix, views: Views, view: int) -> tuple[Matrix, Array, Array]:
    kept = comparable_rows(matrix)
    xp = array_namespace(kept)
    samples = like(views.rows(view), kept)[kept]
    position = xp.full(views.n_samples, -1, dtype=xp.int64, device=kept.device)
    position[samples] = xp.arange(len(kept), device=kept.device)
    return matrix if len(kept) == matrix.shape[0] else matrix[kept], samples, position


def _deviation(points: Matrix) -> float:
    """Return the root of the total variance; if there is none, the largest value."""
    largest = _largest(points)
    if not largest:
        return 1.0
    shrunk = _divided(points, largest)  # squares of huge or tiny numbers stay finite
    if sparse.issparse(shrunk):
        center = np.asarray(shrunk.mean(axis=0, dtype=np.float64)).ravel()
        variance = float(shrunk.multiply(shrunk).sum(dtype=np.float64)) / shrunk.shape[0] - float(center @ center)
    else:
        variance = mean_square(shrunk, mean_row(shrunk))
    return largest * variance**0.5 if variance > np.finfo(np.float32).eps else largest


def _largest(points: Matrix) -> float:
    if not points.shape[0]:
        return 0.0
    return float(abs(points).max()) if sparse.issparse(points) else max(float(points.max()), -float(points.min()))


def _divided(points: Matrix, unit: float) -> Matrix:
    # First by a power of 2, since the unit itself may be too small for the type
    fraction, exponent = np.frexp(unit)
    return points if unit == 1 else times_power(points, -int(exponent)) / float(fraction)


def mean_row(points: Array) -> Array:
    """Return the mean of the rows, summed in double precision."""
    xp = array_namespace(points)
    total = sum(xp.sum(points[block], axis=0, dtype=xp.float64) for block in row_blocks(points))
    return xp.astype(total / points.shape[0], points.dtype)  # type: ignore[no-any-return]


def _leading_directions(matrix: Matrix, n_most: int) -> Array:
    if matrix.shape[1] <= n_most:
        return matrix.toarray() if sparse.issparse(matrix) else matrix  # type: ignore[no-any-return]
    if is_tensor(matrix):
        return _leading_directions_of_tensor(matrix, n_most)  # type: ignore[no-any-return]
    if not sparse.issparse(matrix) and matrix.shape[0] >= max(_MANY_ROWS, _TALL * matrix.shape[1]):
        return _leading_directions_of_many(matrix, n_most)
    # Random directions among the features, never among the samples, whose order must not matter
    left, values, _ = randomized_svd(matrix, min(n_most, *matrix.shape), n_iter=4, random_state=0, transpose=False)
    return np.asarray(left * values, dtype=matrix.dtype)


def _leading_directions_of_many(matrix: Array, n_most: int) -> Array:
    """Find them from the products of the features, which takes two passes over the rows and no room beside the result.

    Squared numbers know small directions less well, but the leading ones are asked for.
    """
    size = _largest(matrix) or 1.0  # squares of huge or tiny numbers stay finite
    products = np.zeros((matrix.shape[1], matrix.shape[1]))
    for block in row_blocks(matrix, FEW_ROWS):
        rows = (matrix[block] / size).astype(np.float64)
        products += rows.T @ rows
    directions = np.linalg.eigh(products)[1][:, ::-1][:, :n_most].astype(matrix.dtype)
    leading = np.empty((matrix.shape[0], n_most), dtype=matrix.dtype)
    for block in row_blocks(matrix, FEW_ROWS):
        leading[block] = matrix[block] @ directions
    return leading


def _leading_directions_of_tensor(matrix: Any, n_most: int) -> Any:
    import torch

    with torch.random.fork_rng(devices=[matrix.device] if matrix.is_cuda else []):
        torch.manual_seed(0)
        left, values, _ = torch.svd_lowrank(matrix, min(n_most, *matrix.shape), niter=4)
    return left * values


def mean_square(rows: Array, center: Array | float = 0.0) -> float:
    """Return the mean squared distance of the rows from a centre."""
    xp = array_namespace(rows)
    totals = [float(xp.sum(xp.square(rows[block] - center), dtype=xp.float64)) for block in row_blocks(rows)]
    return sum(totals) / max(int(rows.shape[0]), 1)


def judged_samples(table: KnownRows) -> Array:
    """Choose samples that have a view, spread over all, on which to see how well it would have been completed."""
    chosen = np.unique(np.linspace(0, len(table.samples) - 1, _N_JUDGED).astype(np.int64))
    return table.samples[like(chosen, table.samples)]  # type: ignore[no-any-return]


def slope_of(expected: Matrix, actual: Matrix) -> float:
    """Say by how much of what is expected the actual rows move along with it, between 0 and 1."""
    largest = _largest(expected)
    if not largest:
        return 0.0
    expected, actual = _divided(expected, largest), _divided(actual, largest)  # squares stay finite
    return min(1.0, max(0.0, _inner(expected, actual) / _inner(expected, expected)))


def _inner(first: Matrix, second: Matrix) -> float:
    products = first.multiply(second) if sparse.issparse(first) else first * second
    return float(products.sum())


def neighbor_means(points: Matrix, position: Array, sources: Array) -> tuple[Matrix, Array]:
    """Average the rows of the sources of every query; also say which queries have any."""
    xp = array_namespace(sources)
    found = sources >= 0
    counts = xp.sum(xp.astype(found, xp.int64), axis=1)
    rows = xp.nonzero(found)[0]
    shares = xp.astype(1 / xp.clip(counts, 1), points.dtype)[rows]
    averaging = csr(rows, position[sources[found]], shares, (sources.shape[0], points.shape[0]))
    return averaging @ points, counts > 0


def nearest_sources(
    tables: Sequence[KnownRows],
    view: int,
    asking: Sequence[KnownRows],
    queries: Array,
    search: Search | None = None,
) -> Array:
    """Find for every query the samples nearest to it that have the view, by the other views that both have.

    Considered are the samples that are among the nearest in at least one of these views.

    Parameters
    ----------
    tables : sequence of KnownRows
        Where to look, one for each view.
    view : int
        The view that the samples must have.
    asking : sequence of KnownRows
        The rows of those who ask; if they are ``tables`` themselves, no sample is a source of its own.
    queries : int array of shape (n_queries,)
        Which of them ask.
    search : Search, optional
        How to look for neighbours.

    Returns
    -------
    int array of shape (n_queries, N_SOURCES)
        Nearest first, by the mean squared distance in the views shared, each counted by its weight; −1 where there are
        no more.
    """
    xp = array_namespace(queries)
    others = [k for k in range(len(tables)) if k != view]
    if not others or not len(queries):
        return xp.full((len(queries), N_SOURCES), -1, device=queries.device)  # type: ignore[no-any-return]
    # Itself may be among the nearest, and who is near in one of several views need not be in all of them
    count = (N_SOURCES + 1) * (1 if len(others) == 1 else _N_CANDIDATES)
    found = [_candidates(tables[k], tables[view], asking[k], queries, count, search) for k in others]
    candidates = xp.sort(xp.concat(found, axis=1), axis=1)
    repeated = xp.zeros_like(candidates, dtype=xp.bool)
    repeated[:, 1:] = candidates[:, 1:] == candidates[:, :-1]
    if asking is tables:
        repeated |= candidates == queries[:, None]
    candidates[repeated] = -1
    total = xp.zeros_like(candidates, dtype=xp.float64)
    shared = xp.zeros_like(total)
    for k in others:
        _add_distances(tables[k], asking[k], queries, candidates, total, shared)
    none = xp.full_like(total, xp.inf)
    distances = xp.where(shared > 0, total / xp.where(shared > 0, shared, xp.ones_like(shared)), none)
    best = xp.argsort(distances, axis=1, stable=True)[:, :N_SOURCES]
    chosen = xp.take_along_axis(candidates, best, axis=1)
    chosen[xp.isinf(xp.take_along_axis(distances, best, axis=1))] = -1
    return chosen  # type: ignore[no-any-return]


def _candidates(
    table: KnownRows, wanted: KnownRows, asking: KnownRows, queries: Array, count: int, search: Search | None
) -> Array:
    """Find in one view those samples nearest to every query that have the wanted view, too."""
    xp = array_namespace(queries)
    sources = table.samples[wanted.position[table.samples] >= 0]
    found = xp.full((len(queries), count), -1, device=queries.device)
    having = xp.nonzero(asking.position[queries] >= 0)[0]
    count = min(count, len(sources))
    if count and len(having):
        points, asked = table.points[table.position[sources]], asking.points[asking.position[queries[having]]]
        with phase("neighbours"):
            found[having, :count] = sources[nearest(points, count, asked, search=search)[1]]
    return found  # type: ignore[no-any-return]


def _add_distances(
    table: KnownRows, asking: KnownRows, queries: Array, candidates: Array, total: Array, shared: Array
) -> None:
    """Add the squared distances in one view, and its weight, to those pairs of queries and candidates that have it."""
    xp = array_namespace(queries)
    first, second = asking.position[queries], table.position[candidates]
    rows, columns = xp.nonzero((candidates >= 0) & (first[:, None] >= 0) & (second >= 0))
    shared[rows, columns] += table.weight
    for begin in range(0, len(rows), _N_PAIRS):
        i, j = rows[begin : begin + _N_PAIRS], columns[begin : begin + _N_PAIRS]
        gaps = asking.points[first[i]] - table.points[second[i, j]]
        total[i, j] += table.weight * xp.astype(row_lengths(gaps), xp.float64) ** 2
