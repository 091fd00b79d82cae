"""Donors: the samples that have a view and are nearest, in the other views, to a sample that lacks it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse

from ..compute.arrays import FEW_ROWS, csr, host, is_tensor, like, row_blocks
from ..progress import phase
from ..scaling import BlockedRows, ScaledRows, largest_magnitude, row_lengths, rows_in_blocks, times_power
from ..utils.types import Array, Matrix
from ..views import Views
from .knn import comparable_rows, has_unit_rows
from .neighbors import Search, nearest

N_DONORS = 5  # samples that a missing row is averaged from
_N_CANDIDATES = 4  # times as many samples are considered in each of several views
_MANY_ROWS, _TALL = 2**16, 20  # rows, and rows per feature, from which a PCA is computed from the Gram matrix
_N_SPARE, _N_ROUNDS = 10, 5  # otherwise: directions beyond those kept, and rounds of subspace iteration
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


@dataclass(frozen=True)
class RowUnits:
    """What makes the rows of one view comparable with those of the others."""

    is_unit: bool  # whether all rows but those of zeros have unit length
    unit: float  # divisor
    directions: Array | None = None  # features × components that wide rows are projected on


def fit_units(rows: BlockedRows, n_most: int | None = None) -> RowUnits:
    """Return the units of the rows of a view, and with ``n_most`` the directions of the leading components."""
    is_unit = rows.reduce(has_unit_rows, all)
    unit = 1.0 if is_unit else _standard_deviation(rows)
    is_wide = n_most is not None and rows.shape[1] > n_most
    return RowUnits(is_unit, unit, _leading_directions(rows, n_most) if is_wide else None)  # type: ignore[arg-type]


def comparable_view(matrix: Matrix, views: Views, view: int, units: RowUnits, weight: float = 1.0) -> ComparableRows:
    """Return the comparable rows of a view, all or a block, projected on the directions if there are any."""
    points, samples, position = _located(matrix, views, view, units.is_unit)
    return ComparableRows(samples, in_units(points, units), position, units.unit, weight)


def in_units(points: Matrix, units: RowUnits) -> Matrix:
    """Return rows projected on the directions, if there are any, and divided by the unit."""
    return divide(points if units.directions is None else _projected(points, units.directions), units.unit)


def training_rows(
    scaled: Iterable[Matrix], views: Views, view_weights: Sequence[float] | None = None, *, n_most: int | None = None
) -> list[ComparableRows]:
    """Return the comparable rows of every view, by default with all features, else with ``n_most`` components."""
    weights = [1.0] * views.n_views if view_weights is None else view_weights
    tables = []
    for k, (matrix, weight) in enumerate(zip(scaled, weights, strict=True)):
        is_in_blocks = n_most is not None and matrix.shape[1] > n_most and _is_tall(matrix.shape)
        if isinstance(matrix, ScaledRows) and not is_in_blocks:
            matrix = matrix.whole()
        uses_svd = is_tensor(matrix[:0]) and not is_in_blocks
        units = fit_units(rows_in_blocks(views.names[k], matrix), None if uses_svd else n_most)
        if n_most is not None and matrix.shape[1] <= n_most and sparse.issparse(matrix):
            matrix = matrix.toarray()
        elif n_most is not None and uses_svd:
            matrix = _tensor_components(matrix, n_most)
        tables.append(comparable_view(matrix, views, k, units, weight))
    return tables


def query_rows(scaled: Sequence[Matrix], views: Views, training: Sequence[ComparableRows]) -> list[ComparableRows]:
    """Return the comparable rows of other samples, in the units of the training rows."""
    tables = []
    for k, (matrix, table) in enumerate(zip(scaled, training, strict=True)):
        units = RowUnits(has_unit_rows(matrix), table.unit)
        tables.append(comparable_view(matrix, views, k, units, table.weight))
    return tables


def _located(matrix: Matrix, views: Views, view: int, is_unit: bool) -> tuple[Matrix, Array, Array]:
    """Return the comparable rows of a view, their samples, and the position of every sample among them."""
    kept = comparable_rows(matrix, is_unit=is_unit)
    xp = array_namespace(kept)
    samples = like(views.rows(view), kept)[kept]
    position = xp.full(views.n_samples, -1, dtype=xp.int64, device=kept.device)
    position[samples] = xp.arange(len(kept), device=kept.device)
    return matrix if len(kept) == matrix.shape[0] else matrix[kept], samples, position


def _standard_deviation(rows: BlockedRows) -> float:
    """Return the root of the total variance; the largest magnitude if there is none."""
    largest = float(rows.reduce(largest_magnitude, max))
    if not largest:
        return 1.0
    # Squares of huge or tiny numbers stay finite once they are divided
    center = rows.reduce(partial(_divided_sum, largest=largest), sum) / rows.shape[0]
    variance = float(rows.reduce(partial(_divided_squares, largest=largest, center=center), sum)) / rows.shape[0]
    return largest * variance**0.5 if variance > np.finfo(np.float32).eps else largest


def _divided_sum(matrix: Matrix, *, largest: float) -> Array:
    return sum_rows(divide(matrix, largest))


def _divided_squares(matrix: Matrix, *, largest: float, center: Array) -> float:
    return sum_squares(divide(matrix, largest), center)


def divide(points: Matrix, unit: float) -> Matrix:
    """Return points divided by a number that may be too small or too large for their type."""
    # First by a power of 2, since the unit itself may be outside the range of the type
    fraction, exponent = np.frexp(unit)
    return points if unit == 1 else times_power(points, -int(exponent)) / float(fraction)


def sum_rows(rows: Matrix) -> Array:
    """Return the sum of the rows in double precision."""
    if sparse.issparse(rows):
        return np.asarray(rows.sum(axis=0, dtype=np.float64)).ravel()
    xp = array_namespace(rows)
    return sum(xp.sum(rows[block], axis=0, dtype=xp.float64) for block in row_blocks(rows))  # type: ignore[no-any-return]


def sum_squares(rows: Matrix, center: Array | float = 0.0) -> float:
    """Return the sum of the squared distances of the rows from a centre, in double precision."""
    if sparse.issparse(rows):
        center = np.broadcast_to(center, rows.shape[1])
        products = float(rows.multiply(rows).sum(dtype=np.float64)) - 2 * float(sum_rows(rows) @ center)
        return float(products + rows.shape[0] * float(center @ center))
    xp = array_namespace(rows)
    middle = center if isinstance(center, float) else xp.astype(center, rows.dtype)
    return sum(float(xp.sum(xp.square(rows[block] - middle), dtype=xp.float64)) for block in row_blocks(rows))


def mean_row(points: Any) -> Array:
    """Return the mean of the rows, summed in double precision."""
    return array_namespace(points).astype(sum_rows(points) / points.shape[0], points.dtype)  # type: ignore[no-any-return]


def mean_square(rows: Any, center: Array | float = 0.0) -> float:
    """Return the mean squared distance of the rows from a centre."""
    return sum_squares(rows, center) / max(int(rows.shape[0]), 1)


def _leading_directions(rows: BlockedRows, n_most: int) -> Array:
    """Return the leading right singular vectors of all rows as columns, from sums over blocks of rows.

    Those of many rows are eigenvectors of XᵀX: squaring makes small singular values inaccurate, but only the leading
    ones are used. For wide rows XᵀX is too large, and they come from subspace iteration with a random start. Neither
    depends on the order of the rows.
    """
    n_rows, width = rows.shape
    largest = rows.reduce(largest_magnitude, max) or 1.0  # squares of huge or tiny numbers stay finite
    n_most = min(n_most, n_rows)
    if _is_tall(rows.shape):
        return _leading_vectors(host(rows.reduce(partial(_gram, largest=largest), sum)), n_most)
    basis = np.random.RandomState(0).normal(size=(width, min(n_most + _N_SPARE, width)))
    for _ in range(_N_ROUNDS):
        basis = np.linalg.qr(rows.reduce(partial(_gram_times, basis=basis, largest=largest), sum))[0]
    inner = rows.reduce(partial(_gram, largest=largest, basis=basis), sum)
    return np.asarray(basis @ _leading_vectors(inner, n_most))


def _is_tall(shape: tuple[int, int]) -> bool:
    return shape[0] >= max(_MANY_ROWS, _TALL * shape[1])


def _leading_vectors(matrix: Array, count: int) -> Array:
    return np.linalg.eigh(matrix)[1][:, ::-1][:, :count]


def _gram(matrix: Matrix, *, largest: float, basis: Array | None = None) -> Array:
    """Return BᵀXᵀXB for a basis B, or XᵀX."""
    width = matrix.shape[1] if basis is None else basis.shape[1]
    total: Any = np.zeros((width, width))
    xp = np if sparse.issparse(matrix) else array_namespace(matrix)
    if is_tensor(matrix):
        total = xp.zeros((width, width), dtype=xp.float64, device=matrix.device)
    for block in row_blocks(matrix, FEW_ROWS):
        rows = divide(matrix[block], largest)
        rows = xp.astype(rows, xp.float64) if is_tensor(rows) else rows.astype(np.float64)
        rows = rows if basis is None else rows @ basis
        total += rows.T @ rows
    return total  # type: ignore[no-any-return]


def _gram_times(matrix: Matrix, *, basis: Array, largest: float) -> Array:
    """Return XᵀXB."""
    total, own = np.zeros(basis.shape), basis.astype(matrix.dtype)
    for block in row_blocks(matrix, FEW_ROWS):
        rows = divide(matrix[block], largest)
        total += rows.T @ (rows @ own)
    return total


def _projected(matrix: Matrix, directions: Array) -> Array:
    scores: Any
    if is_tensor(matrix[:0]):
        xp = array_namespace(matrix)
        directions = xp.astype(like(np.ascontiguousarray(directions), matrix[:0]), matrix.dtype)
        scores = xp.empty((matrix.shape[0], directions.shape[1]), dtype=matrix.dtype, device=matrix.device)
    else:
        directions = directions.astype(matrix.dtype)
        scores = np.empty((matrix.shape[0], directions.shape[1]), dtype=matrix.dtype)
    for block in row_blocks(matrix, FEW_ROWS):
        scores[block] = matrix[block] @ directions
    return scores  # type: ignore[no-any-return]


def _tensor_components(matrix: Any, n_most: int) -> Any:
    """Return the scores of a tensor on the leading singular vectors of wide rows; narrow rows as they are."""
    if matrix.shape[1] <= n_most:
        return matrix
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
    count = n_candidates(len(others))
    found = [_candidates(training[k], training[view], queries[k], samples, count, search) for k in others]
    candidates = distinct(xp.concat(found, axis=1), samples if queries is training else None)
    total = xp.zeros_like(candidates, dtype=xp.float64)
    shared = xp.zeros_like(total)
    for k in others:
        table, first = training[k], queries[k].position[samples]
        second = xp.where(candidates >= 0, table.position[candidates], -1)
        add_distances(queries[k].points, first, table.points, second, table.weight, total)
        shared += table.weight * xp.astype((first[:, None] >= 0) & (second >= 0), xp.float64)
    return best_donors(candidates, total, shared)


def n_candidates(n_others: int) -> int:
    """Return how many of the nearest samples in each of the other views are considered as donors.

    One more than the donors, since a sample may find itself; and more, since the nearest in one of several views need
    not be near in the others.
    """
    return (N_DONORS + 1) * (1 if n_others == 1 else _N_CANDIDATES)


def distinct(candidates: Array, own: Array | None) -> Array:
    """Return the candidates of every sample in ascending order; −1 in place of repeated ones and of the sample."""
    xp = array_namespace(candidates)
    candidates = xp.sort(candidates, axis=1)
    repeated = xp.zeros_like(candidates, dtype=xp.bool)
    repeated[:, 1:] = candidates[:, 1:] == candidates[:, :-1]
    if own is not None:
        repeated |= candidates == own[:, None]
    candidates[repeated] = -1
    return candidates


def best_donors(candidates: Array, total: Array, shared: Array) -> Array:
    """Return the nearest candidates by the weighted mean of the squared distances in the views shared.

    Parameters
    ----------
    candidates : int array of shape (n_samples, n_candidates)
        Samples in ascending order; −1 stands for none.
    total, shared : arrays of the same shape
        Sums over views of the weighted squared distances, and of the weights.
    """
    xp = array_namespace(candidates)
    distances = xp.where(
        shared > 0, total / xp.where(shared > 0, shared, xp.ones_like(shared)), xp.full_like(total, xp.inf)
    )
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


def add_distances(own: Matrix, first: Array, others: Matrix, second: Array, weight: float, total: Array) -> None:
    """Add the weighted squared distances in one view, or in some of its features, to a total.

    Parameters
    ----------
    own, others : arrays or csr_arrays
        Rows of the samples, and rows of their candidates.
    first : int array of shape (n_samples,)
        Row of every sample; −1 if it lacks the view.
    second : int array of shape (n_samples, n_candidates)
        Row of every candidate; −1 if it lacks the view.
    weight : float
        Weight of the view.
    total : array of shape (n_samples, n_candidates)
        Changed in place.
    """
    xp = array_namespace(total)
    rows, columns = xp.nonzero((first[:, None] >= 0) & (second >= 0))
    step = _N_PAIRS_TENSOR if is_tensor(total) else _N_PAIRS
    for begin in range(0, len(rows), step):
        i, j = rows[begin : begin + step], columns[begin : begin + step]
        gaps = own[first[i]] - others[second[i, j]]
        total[i, j] += weight * xp.astype(row_lengths(gaps), xp.float64) ** 2
