"""Euclidean distances that stay accurate for values of any size, and the nearest points by all distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse
from sklearn.metrics import pairwise_distances_chunked
from sklearn.neighbors import NearestNeighbors

from ...compute.arrays import is_tensor
from ...compute.engine import on_free_cores, single_threaded
from ...scaling import largest_magnitude, row_lengths, times_power
from ...utils.types import Array, Matrix

FAR = 100.0  # squared distance of the points from the origin, in units of their variance, above which they are centred
_SAFE = 30  # powers of 2 up to which float32 and float64 hold squares and squared differences: no copy is needed
_WORTH_A_THREAD = 1e8  # operations below which several threads are slower than one
_N_VALUES = 2**22  # values that are held at a time
_N_GROUPS, _MANY = 4, 12  # groups of columns, and columns, per value sought, where small values are sought among many


@dataclass(frozen=True)
class WithoutLast:
    """Rows whose last column counts as 0. All rows are copied only where all are needed at once."""

    rows: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows and of columns."""
        return self.rows.shape

    @property
    def dtype(self) -> Any:
        """Type of the values."""
        return self.rows.dtype

    def __getitem__(self, part: Any) -> Array:
        """Return a copy of some of the rows."""
        copied = array_namespace(self.rows).asarray(self.rows[part], copy=True)
        copied[:, -1] = 0
        return copied  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self.rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self[:], dtype=dtype)


def without_last(points: Any) -> Any:
    """Return points as queries whose last column is 0.

    The last column of a point then adds the same amount to its distance from every query.

    Parameters
    ----------
    points : array or tensor of shape (n_points, n_features)
        The points.

    Returns
    -------
    queries for :func:`gapview.graph.neighbors.nearest`

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.graph.neighbors import nearest, without_last
    >>> points = np.array([[0.0, 9.0], [1.0, 0.0], [3.0, 0.0]])
    >>> nearest(points, 1, without_last(points))[1].ravel()
    array([1, 1, 2])
    """
    return WithoutLast(points)


def conditioned(points: Matrix, queries: Matrix | None) -> tuple[Matrix, Matrix | None, int]:
    """Return points and queries whose squared distances are accurate, and the power of 2 they were divided by.

    Squares overflow or underflow for extreme values; values are divided by a power of 2 there. Distances computed from
    products lose all digits if the points lie far from the origin; dense points are centred there. Other points are
    not changed: centring would break exact ties by rounding, and sparse data would become dense.
    """
    if isinstance(queries, WithoutLast):
        queries = queries[:]
    given = [points] if queries is None else [points, queries]
    exponent = common_exponent(given)
    shrunk = [times_power(matrix, -exponent) for matrix in given]
    if not any(sparse.issparse(matrix) for matrix in shrunk):
        center = far_center(shrunk[0])
        if center is not None:
            shrunk = [matrix - array_namespace(matrix).astype(center, matrix.dtype) for matrix in shrunk]
    return shrunk[0], None if queries is None else shrunk[1], exponent


def common_exponent(matrices: list[Matrix]) -> int:
    """Return the power of 2 to divide the values by before they are squared; 0 if they can be squared as they are."""
    exponent = int(np.frexp(max(largest_magnitude(matrix) for matrix in matrices))[1])
    return exponent if abs(exponent) > _SAFE else 0


def far_center(points: Any) -> Array | None:
    """Return the mean of dense points in float64 if they lie far from the origin, else None."""
    xp = array_namespace(points)
    center = xp.mean(points, axis=0, dtype=xp.float64)
    # From the squares, since the variance would need a copy of all differences. If the points are so far out that
    # rounding dominates, the result is nearly 0 either way.
    if is_tensor(points):
        squares = points.norm(dtype=xp.float64) ** 2
    else:
        squares = np.einsum("ij,ij->", points, points, dtype=np.float64)
    variance = squares / len(points) - center @ center
    return center if center @ center > FAR * variance else None


def scaled_back(distances: Array, exponent: int) -> Array:
    """Return distances times a power of 2, infinite where they are too large for the type."""
    with np.errstate(over="ignore"):
        return times_power(distances, exponent)  # type: ignore[no-any-return]


def pair_distances(points: Matrix, queries: Matrix, indices: Array, exponent: int) -> Array:
    """Compute the distance of every query to the points in its row of ``indices`` from their differences.

    Parameters
    ----------
    points, queries : arrays or csr_arrays
        As in :func:`nearest`.
    indices : int array of shape (n_queries, n_candidates)
        Points; −1 stands for no point, at infinite distance.
    exponent : int
        Power of 2 by which the values are divided before they are squared.

    Returns
    -------
    float64 array of shape (n_queries, n_candidates)
    """
    is_sparse = sparse.issparse(points)
    width = points.nnz // points.shape[0] + 1 if is_sparse else points.shape[1]
    step = max(1, _N_VALUES // (indices.shape[1] * width + points.shape[1]))
    compute = _sparse_squares if is_sparse else _dense_squares
    squares = np.empty(indices.shape)
    for begin in range(0, len(indices), step):
        block = slice(begin, begin + step)
        candidates = np.maximum(indices[block], 0)
        rows = times_power(points[candidates.ravel()], -exponent)
        squares[block] = compute(rows, times_power(queries[block], -exponent), candidates.shape)
    return np.asarray(np.where(indices >= 0, scaled_back(np.sqrt(squares), exponent), np.inf))


def _dense_squares(rows: Array, queries: Array, shape: tuple[int, ...]) -> Array:
    gaps = (rows.reshape(*shape, -1) - queries[:, None]).astype(np.float64, copy=False)
    return np.asarray(np.einsum("ijk,ijk->ij", gaps, gaps))


def _sparse_squares(rows: sparse.csr_array, queries: sparse.csr_array, shape: tuple[int, ...]) -> Array:
    """Compute |p − q|² as |q|² plus the sum of p (p − 2q) over the stored values of p."""
    dense = queries.toarray().astype(np.float64)
    begin = np.repeat(np.arange(shape[0]) * dense.shape[1], np.diff(rows.indptr[:: shape[1]]))
    values = rows.data * (rows.data - 2 * dense.ravel().take(begin + rows.indices))
    squares = np.repeat(np.square(dense).sum(axis=1), shape[1])
    filled = np.flatnonzero(np.diff(rows.indptr))  # reduceat cannot sum over empty rows
    squares[filled] += np.add.reduceat(values, rows.indptr[filled]) if len(filled) else 0.0
    return np.asarray(np.maximum(squares.reshape(shape), 0.0))


def smallest(table: Any, count: int) -> tuple[Any, Any]:
    """Return the smallest values of every row, and their columns, in any order."""
    if is_tensor(table):
        return table.topk(count, largest=False, sorted=False)  # type: ignore[no-any-return]
    few = _few_smallest(table, count) if table.shape[1] > _MANY * count else None
    values = table if few is None else few[0]
    rows, kept = np.arange(len(table))[:, None], np.argpartition(values, count - 1, axis=1)[:, :count]
    return values[rows, kept], kept if few is None else few[1][rows, kept]


def _few_smallest(table: Array, count: int) -> tuple[Array, Array] | None:
    """Return few values of every row, the smallest among them, and their columns; None if many are equal.

    The columns are divided into groups. As many of the smallest values of the groups as are asked for are an upper
    bound of the values sought. Finding it, and what is below, takes an eighth of the time of sorting the whole row.
    """
    n_groups = _N_GROUPS * count
    size = table.shape[1] // n_groups
    in_groups = table[:, : size * n_groups].reshape(len(table), size, n_groups)
    bounds = np.partition(in_groups.min(axis=1), count - 1, axis=1)[:, count - 1]
    rows, columns = np.divmod(np.flatnonzero(table <= bounds[:, None]), table.shape[1])
    counts = np.bincount(rows, minlength=len(table))
    most = counts.max(initial=count)
    if most > _N_GROUPS * count:
        return None
    places = np.arange(len(rows)) - np.repeat(counts.cumsum() - counts, counts)
    values = np.full((len(table), most), np.inf, dtype=table.dtype)
    found = np.zeros((len(table), most), dtype=np.intp)
    values[rows, places], found[rows, places] = table[rows, columns], columns
    return values, found


def nearest_listed(distances: Any, indices: Any, count: int, own: Any) -> tuple[Any, Any]:
    """Return the nearest candidates of every query in order; −1 and infinite where there are too few.

    Parameters
    ----------
    distances, indices : arrays or tensors of shape (n_queries, n_candidates)
        The candidates; −1 is no point.
    count : int
        How many to return, at most ``n_candidates``.
    own : int array of shape (n_queries,) or None
        The index of every query among the points, if queries are points that must not be their own neighbours.
    """
    xp = array_namespace(distances)
    if own is not None:
        is_own = indices == own[:, None]
        distances, indices = xp.where(is_own, xp.inf, distances), xp.where(is_own, -1, indices)

    if count < distances.shape[1]:
        distances, kept = smallest(distances, count)
        indices = xp.take_along_axis(indices, kept, axis=1)
    by_index = xp.argsort(indices, axis=1)  # of equal distances the lowest index comes first
    by_distance = xp.argsort(xp.take_along_axis(distances, by_index, axis=1), axis=1, stable=True)
    order = xp.take_along_axis(by_index, by_distance, axis=1)
    return xp.take_along_axis(distances, order, axis=1), xp.take_along_axis(indices, order, axis=1)


def distance_to_distinct(points: Matrix, queries: Matrix) -> Array:
    """Compute the distance of every query to the nearest point that is no duplicate of it; infinite if there is none.

    Points that differ from the query by no more than rounding are duplicates.

    Parameters
    ----------
    points : matrix of shape (n_points, n_features)
        The points.
    queries : matrix of shape (n_queries, n_features)
        The queries.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.graph.neighbors import distance_to_distinct
    >>> points = np.array([[0.0], [0.0], [3.0]])
    >>> distance_to_distinct(points, points)
    array([3., 3., 3.])
    """
    given = queries
    points, queries, exponent = conditioned(points, queries)
    # Rounding of the values, and of the squares that distances are computed from, which the square root enlarges
    value_error = np.finfo(given.dtype).eps * row_lengths(times_power(given, -exponent))
    square_error = np.sqrt(np.finfo(np.float64).eps) * row_lengths(queries)
    tolerance = 10 * (value_error + square_error)[:, None]

    def smallest(block: Array, start: int) -> Array:
        return np.asarray(np.where(block > tolerance[start : start + len(block)], block, np.inf).min(axis=1))

    parts = pairwise_distances_chunked(queries, points, reduce_func=smallest)
    return scaled_back(np.concatenate(list(parts)), exponent)


def exact(points: Matrix, n_neighbors: int, queries: Matrix | None) -> tuple[Array, Array]:
    """Return distances and indices of the nearest points, from all distances, block by block."""
    points, queries, exponent = conditioned(points, queries)
    n_queries = (points if queries is None else queries).shape[0]
    is_small = n_queries * points.shape[0] * points.shape[1] < _WORTH_A_THREAD
    # Trees are slow in the many dimensions that views have; brute force uses matrix products
    search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(points)
    with single_threaded() if is_small else on_free_cores():
        distances, indices = search.kneighbors(queries)
    return scaled_back(distances, exponent), indices
