"""Nearest neighbours behind one function."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.metrics import pairwise_distances_chunked
from sklearn.neighbors import NearestNeighbors

from ..scaling import row_lengths
from ..views import Array, Matrix

__all__ = ["distance_elsewhere", "nearest"]

_FAR = 100.0  # squared distance of the points from the origin, in units of their variance, above which they are centred


def nearest(points: Matrix, n_neighbors: int, queries: Matrix | None = None) -> tuple[Array, Array]:
    """Find the nearest points by Euclidean distance, exactly but for rounding.

    Distances below about 1e-8 of the extent of the points drown in rounding: such neighbours come in any order.

    Parameters
    ----------
    points : array or csr_array of shape (n_points, n_features)
        Where to look.
    n_neighbors : int
        How many neighbours to find.
    queries : array or csr_array of shape (n_queries, n_features), optional
        Whose neighbours to find; by default those of the points themselves, none of which counts as its own.

    Returns
    -------
    distances, indices : arrays of shape (n_queries, n_neighbors)
        Nearest first.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.neighbors import nearest
    >>> nearest(np.array([[0.0], [1.0], [3.0]]), 1)[1].ravel()
    array([1, 0, 1])
    """
    if queries is not None and queries.shape[0] == 0:
        return np.empty((0, n_neighbors)), np.empty((0, n_neighbors), dtype=np.intp)
    points, queries, exponent = _within_reach(points, queries)
    # Trees do not pay in the many dimensions that views have; brute force goes through the matrix product.
    search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(points)
    distances, indices = search.kneighbors(queries)
    return _stretch(distances, exponent), np.asarray(indices)


def distance_elsewhere(points: Matrix, queries: Matrix) -> Array:
    """Return for every query the distance to the nearest point in another place, infinite if there is none.

    Points that differ from the query by no more than rounding are in the same place.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.neighbors import distance_elsewhere
    >>> points = np.array([[0.0], [0.0], [3.0]])
    >>> distance_elsewhere(points, points)
    array([3., 3., 3.])
    """
    given = queries
    points, queries, exponent = _within_reach(points, queries)
    # Rounding of the values themselves, and of the squares that the distances come from, which the root makes larger
    of_values = np.finfo(given.dtype).eps * row_lengths(_times_power(given, -exponent))
    of_squares = np.sqrt(np.finfo(np.float64).eps) * row_lengths(queries)
    same = 10 * (of_values + of_squares)[:, None]

    def smallest(block: Array, start: int) -> Array:
        return np.asarray(np.where(block > same[start : start + len(block)], block, np.inf).min(axis=1))

    return _stretch(np.concatenate(list(pairwise_distances_chunked(queries, points, reduce_func=smallest))), exponent)


def _within_reach(points: Matrix, queries: Matrix | None) -> tuple[Matrix, Matrix | None, int]:
    """Shrink by a power of 2, and centre dense points that lie far from the origin.

    Distances come from squares and products of the values, which overflow or vanish at extreme sizes, and in which the
    distances drown where the points are far from the origin. Other points are left where they are, since centring them
    would only break exact ties by rounding; and sparse data would not stay sparse.
    """
    given = [points] if queries is None else [points, queries]
    exponent = int(np.frexp(max(float(abs(matrix).max()) for matrix in given))[1])
    shrunk = [_times_power(matrix, -exponent) for matrix in given]
    if not any(sparse.issparse(matrix) for matrix in shrunk):
        center = shrunk[0].mean(axis=0, dtype=np.float64)
        spread = np.var(shrunk[0], axis=0, dtype=np.float64).sum()
        if center @ center > _FAR * spread:
            shrunk = [matrix - center.astype(matrix.dtype) for matrix in shrunk]
    return shrunk[0], None if queries is None else shrunk[1], exponent


def _times_power(matrix: Matrix, exponent: int) -> Matrix:
    if sparse.issparse(matrix):
        return sparse.csr_array((np.ldexp(matrix.data, exponent), matrix.indices, matrix.indptr), shape=matrix.shape)
    return np.ldexp(matrix, exponent)


def _stretch(distances: Array, exponent: int) -> Array:
    with np.errstate(over="ignore"):  # a distance too large for the type is infinite
        return np.asarray(np.ldexp(distances, exponent))
