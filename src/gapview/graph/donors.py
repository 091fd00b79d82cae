"""Donors: the samples that have a view and are nearest, in the other views, to a sample that lacks it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from ..compute.arrays import FEW_ROWS, csr, host, is_tensor, like, row_blocks
from ..progress import phase
from ..scaling import ScaledRows, largest_magnitude, row_lengths, times_power
from ..utils.types import Array, Matrix
from ..views import Views
from .knn import comparable_rows, has_unit_rows
from .neighbors import Search, nearest

N_DONORS = 5  # samples that a missing row is averaged from
_N_CANDIDATES = 4  # times as many samples are considered in each of several views
_MANY_ROWS, _TALL = 2**16, 20  # rows, and rows per feature, from which a PCA is computed from the Gram matrix
_N_PAIRS, _N_PAIRS_TENSOR = 20_000, 2**20  # pairs of rows whose distance is computed at a time


@dataclass(frozen=True)
class ComparableRows:
    """The rows of one view in which distances can be added to those in other views.

    Rows of unit length are kept as they are, other rows are divided by the standard deviation of the view.
    """

    samples: Array  # that the rows belong to
    points: Matrix
    position: Array  # index of the row of every sample, −1 if it has none
    unit: float
    weight: float = 1.0  # of squared distances in this view


def training_rows(
    scaled: Iterable[Matrix], views: Views, view_weights: Sequence[float] | None = None, *, n_most: int | None = None
) -> list[ComparableRows]:
    """Return the comparable rows of every view, by default with all features, else with ``n_most`` components."""
    weights = [1.0] * views.n_views if view_weights is None else view_weights
    tables = []
    for k, (matrix, weight) in enumerate(zip(scaled, weights, strict=True)):
        points, samples, position = _located(matrix, views, k)
        unit = 1.0 if has_unit_rows(points) else _standard_deviation(points)
        points = points if n_most is None else _principal_components(points, n_most)
        tables.append(ComparableRows(samples, divide(points, unit), position, unit, weight))
    return tables


def query_rows(scaled: Sequence[Matrix], views: Views, training: Sequence[ComparableRows]) -> list[ComparableRows]:
    """Return the comparable rows of other samples, in the units of the training rows."""
    tables = []
    for k, (matrix, table) in enumerate(zip(scaled, training, strict=True)):
        points, samples, position = _located(matrix, views, k)
        tables.append(ComparableRows(samples, divide(points, table.unit), position, table.unit, table.weight))
    return tables


def _located(matrix: Matrix, views: Views, view: int) -> tuple[Matrix, Array, Array]:
    """Return the comparable rows of a view, their samples, and the position of every sample among them."""
    kept = comparable_rows(matrix)
    xp = array_namespace(kept)
    samples = like(views.rows(view), kept)[kept]
    position = xp.full(views.n_samples, -1, dtype=xp.int64, device=kept.device)
    position[samples] = xp.arange(len(kept), device=kept.device)
    return matrix if len(kept) == matrix.shape[0] else matrix[kept], samples, position


def _standard_deviation(points: Matrix) -> float:
    """Return the root of the total variance; the largest magnitude if there is none."""
    if isinstance(points, ScaledRows):
        variance = mean_square(points, mean_row(points))
        return variance**0.5 if variance > 0 else 1.0
    largest = largest_magnitude(points)
    if not largest:
        return 1.0
    shrunk = divide(points, largest)  # squares of huge or tiny numbers stay finite
    if sparse.issparse(shrunk):
        center = np.asarray(shrunk.mean(axis=0, dtype=np.float64)).ravel()
        variance = float(shrunk.multiply(shrunk).sum(dtype=np.float64)) / shrunk.shape[0] - float(center @ center)
    else:
        variance = mean_square(shrunk, mean_row(shrunk))
    return largest * variance**0.5 if variance > np.finfo(np.float32).eps else largest


def divide(points: Matrix, unit: float) -> Matrix:
    """Return points divided by a number that may be too small or too large for their type."""
    # First by a power of 2, since the unit itself may be outside the range of the type
    fraction, exponent = np.frexp(unit)
    return points if unit == 1 else times_power(points, -int(exponent)) / float(fraction)


def mean_row(points: Any) -> Array:
    """Return the mean of the rows, summed in double precision."""
    xp = array_namespace(points)
    total = sum(xp.sum(points[block], axis=0, dtype=xp.float64) for block in row_blocks(points))
    return xp.astype(total / points.shape[0], points.dtype)  # type: ignore[no-any-return]


def mean_square(rows: Any, center: Array | float = 0.0) -> float:
    """Return the mean squared distance of the rows from a centre."""
    xp = array_namespace(rows)
    totals = [float(xp.sum(xp.square(rows[block] - center), dtype=xp.float64)) for block in row_blocks(rows)]
    return sum(totals) / max(int(rows.shape[0]), 1)


def _principal_components(matrix: Matrix, n_most: int) -> Array:
    """Return the scores on the leading singular vectors of wide rows; narrow rows as a dense array."""
    is_tall = matrix.shape[0] >= max(_MANY_ROWS, _TALL * matrix.shape[1])
    if isinstance(matrix, ScaledRows) and not (is_tall and matrix.shape[1] > n_most):
        matrix = matrix.whole()
    if matrix.shape[1] <= n_most:
        return matrix.toarray() if sparse.issparse(matrix) else matrix  # type: ignore[no-any-return]
    if is_tall and not sparse.issparse(matrix):
        return _gram_components(matrix, n_most)
    if is_tensor(matrix):
        return _tensor_components(matrix, n_most)  # type: ignore[no-any-return]
    # Without transposition, so that the result does not depend on the order of the samples
    left, values, _ = randomized_svd(matrix, min(n_most, *matrix.shape), n_iter=4, random_state=0, transpose=False)
    return np.asarray(left * values, dtype=matrix.dtype)


def _gram_components(matrix: Array, n_most: int) -> Array:
    """Return the scores on the leading eigenvectors of XᵀX, computed in two passes over blocks of rows.

    Squaring makes small singular values inaccurate, but only the leading ones are used.
    """
    xp = array_namespace(matrix)
    # Squares of huge or tiny numbers stay finite
    size = max(largest_magnitude(matrix[block]) for block in row_blocks(matrix, FEW_ROWS)) or 1.0
    products = xp.zeros((matrix.shape[1], matrix.shape[1]), dtype=xp.float64, device=matrix.device)
    for block in row_blocks(matrix, FEW_ROWS):
        rows = xp.astype(matrix[block] / size, xp.float64)
        products += rows.T @ rows
    directions = np.ascontiguousarray(np.linalg.eigh(host(products))[1][:, ::-1][:, :n_most])
    directions = xp.astype(like(directions, products), matrix.dtype)
    scores = xp.empty((matrix.shape[0], n_most), dtype=matrix.dtype, device=matrix.device)
    for block in row_blocks(matrix, FEW_ROWS):
        scores[block] = matrix[block] @ directions
    return scores  # type: ignore[no-any-return]


def _tensor_components(matrix: Any, n_most: int) -> Any:
    import torch

    with torch.random.fork_rng(devices=[matrix.device] if matrix.is_cuda else []):
        torch.manual_seed(0)
        left, values, _ = torch.svd_lowrank(matrix, min(n_most, *matrix.shape), niter=4)
    return left * values


def donor_means(points: Matrix, position: Array, donors: Array) -> tuple[Matrix, Array]:
    """Return the mean row of the donors of every query, and whether it has any donor.

    Parameters
    ----------
    points : array or csr_array of shape (n_rows, n_features)
        The rows of the donors.
    position : int array of shape (n_samples,)
        Index of the row of every sample.
    donors : int array of shape (n_queries, n_donors)
        Samples; −1 stands for none.
    """
    xp = array_namespace(donors)
    found = donors >= 0
    counts = xp.sum(xp.astype(found, xp.int64), axis=1)
    rows = xp.nonzero(found)[0]
    shares = xp.astype(1 / xp.clip(counts, 1), points.dtype)[rows]
    averaging = csr(rows, position[donors[found]], shares, (donors.shape[0], points.shape[0]))
    return averaging @ points, counts > 0


def nearest_donors(
    training: Sequence[ComparableRows],
    view: int,
    queries: Sequence[ComparableRows],
    samples: Array,
    search: Search | None = None,
) -> Array:
    """Return for some samples the nearest training samples that have a view, by the other views that both have.

    Candidates are the training samples that are among the nearest in at least one of the other views.

    Parameters
    ----------
    training : sequence of ComparableRows
        The rows of the training samples, one for each view.
    view : int
        The view that donors must have.
    queries : sequence of ComparableRows
        The rows of the samples that need donors; if this is ``training`` itself, no sample is its own donor.
    samples : int array of shape (n_samples,)
        The samples among those of ``queries``.
    search : Search, optional
        Settings of the search for neighbours.

    Returns
    -------
    int array of shape (n_samples, N_DONORS)
        Nearest first, by the weighted mean of the squared distances in the views shared; −1 where there are no more.
    """
    xp = array_namespace(samples)
    others = [k for k in range(len(training)) if k != view]
    if not others or not len(samples):
        return xp.full((len(samples), N_DONORS), -1, device=samples.device)  # type: ignore[no-any-return]
    # One more than the donors, since a sample may find itself; and more, since the nearest in one of several views need
    # not be near in the others
    count = (N_DONORS + 1) * (1 if len(others) == 1 else _N_CANDIDATES)
    found = [_candidates(training[k], training[view], queries[k], samples, count, search) for k in others]
    candidates = xp.sort(xp.concat(found, axis=1), axis=1)
    repeated = xp.zeros_like(candidates, dtype=xp.bool)
    repeated[:, 1:] = candidates[:, 1:] == candidates[:, :-1]
    if queries is training:
        repeated |= candidates == samples[:, None]
    candidates[repeated] = -1
    total = xp.zeros_like(candidates, dtype=xp.float64)
    shared = xp.zeros_like(total)
    for k in others:
        _add_distances(training[k], queries[k], samples, candidates, total, shared)
    none = xp.full_like(total, xp.inf)
    distances = xp.where(shared > 0, total / xp.where(shared > 0, shared, xp.ones_like(shared)), none)
    best = xp.argsort(distances, axis=1, stable=True)[:, :N_DONORS]
    donors = xp.take_along_axis(candidates, best, axis=1)
    donors[xp.isinf(xp.take_along_axis(distances, best, axis=1))] = -1
    return donors  # type: ignore[no-any-return]


def _candidates(
    table: ComparableRows,
    wanted: ComparableRows,
    queries: ComparableRows,
    samples: Array,
    count: int,
    search: Search | None,
) -> Array:
    """Return the training samples nearest in one view among those that also have the wanted view."""
    xp = array_namespace(samples)
    donors = table.samples[wanted.position[table.samples] >= 0]
    found = xp.full((len(samples), count), -1, device=samples.device)
    having = xp.nonzero(queries.position[samples] >= 0)[0]
    count = min(count, len(donors))
    if count and len(having):
        points, rows = table.points[table.position[donors]], queries.points[queries.position[samples[having]]]
        with phase("neighbours"):
            found[having, :count] = donors[nearest(points, count, rows, search=search)[1]]
    return found  # type: ignore[no-any-return]


def _add_distances(
    table: ComparableRows, queries: ComparableRows, samples: Array, candidates: Array, total: Array, shared: Array
) -> None:
    """Add the squared distances in one view, and its weight, for the pairs of samples and candidates that have it."""
    xp = array_namespace(samples)
    first, second = queries.position[samples], table.position[candidates]
    rows, columns = xp.nonzero((candidates >= 0) & (first[:, None] >= 0) & (second >= 0))
    shared[rows, columns] += table.weight
    step = _N_PAIRS_TENSOR if is_tensor(candidates) else _N_PAIRS
    for begin in range(0, len(rows), step):
        i, j = rows[begin : begin + step], columns[begin : begin + step]
        gaps = queries.points[first[i]] - table.points[second[i, j]]
        total[i, j] += table.weight * xp.astype(row_lengths(gaps), xp.float64) ** 2
