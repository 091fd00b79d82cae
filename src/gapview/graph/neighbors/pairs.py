"""Distances between given pairs, straight from the differences."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ...scaling import times_power
from ...utils.types import Array, Matrix
from .centering import stretch

_N_VALUES = 2**22  # values that are held at a time


def pair_distances(points: Matrix, queries: Matrix, indices: Array, exponent: int) -> Array:
    """Return the distance of every query to the points named in its row of ``indices``.

    Parameters
    ----------
    points, queries : arrays or csr_arrays
        As in :func:`nearest`.
    indices : int array of shape (n_queries, n_named)
        Points; those below 0 are none, and infinitely far.
    exponent : int
        Power of 2 by which the values are shrunk on the way.

    Returns
    -------
    float64 array of shape (n_queries, n_named)
    """
    is_sparse = sparse.issparse(points)
    width = points.nnz // points.shape[0] + 1 if is_sparse else points.shape[1]
    step = max(1, _N_VALUES // (indices.shape[1] * width + points.shape[1]))
    compute = _of_sparse if is_sparse else _of_dense
    squares = np.empty(indices.shape)
    for begin in range(0, len(indices), step):
        block = slice(begin, begin + step)
        named = np.maximum(indices[block], 0)
        theirs = times_power(points[named.ravel()], -exponent)
        squares[block] = compute(theirs, times_power(queries[block], -exponent), named.shape)
    return np.asarray(np.where(indices >= 0, stretch(np.sqrt(squares), exponent), np.inf))


def _of_dense(named: Array, queries: Array, shape: tuple[int, ...]) -> Array:
    gaps = (named.reshape(*shape, -1) - queries[:, None]).astype(np.float64, copy=False)
    return np.asarray(np.einsum("ijk,ijk->ij", gaps, gaps))


def _of_sparse(named: sparse.csr_array, queries: sparse.csr_array, shape: tuple[int, ...]) -> Array:
    """Go through the values of the points only: |p − q|² is |q|² and the sum of p (p − 2q) over them."""
    asking = queries.toarray().astype(np.float64)
    row = np.repeat(np.arange(shape[0]) * asking.shape[1], np.diff(named.indptr[:: shape[1]]))
    facing = asking.ravel().take(row + named.indices)
    values = named.data * (named.data - 2 * facing)
    squares = np.repeat(np.square(asking).sum(axis=1), shape[1])
    filled = np.flatnonzero(np.diff(named.indptr))  # reduceat knows no empty sums
    squares[filled] += np.add.reduceat(values, named.indptr[filled]) if len(filled) else 0.0
    return np.asarray(np.maximum(squares.reshape(shape), 0.0))


def nearest_listed(distances: Array, indices: Array, count: int, own: Array | None) -> tuple[Array, Array]:
    """Keep the nearest of the points listed for every query, in order; −1 and infinite where there are too few.

    Parameters
    ----------
    distances, indices : arrays of shape (n_queries, n_listed)
        What is listed; −1 is no point.
    count : int
        How many to keep, at most as many as listed.
    own : int array of shape (n_queries,) or None
        The queries themselves, if they are points that must not be their own neighbours.
    """
    if own is not None:
        is_own = indices == own[:, None]
        distances, indices = np.where(is_own, np.inf, distances), np.where(is_own, -1, indices)
    if count < distances.shape[1]:
        kept = np.argpartition(distances, count - 1, axis=1)[:, :count]
        distances, indices = np.take_along_axis(distances, kept, axis=1), np.take_along_axis(indices, kept, axis=1)
    order = np.lexsort((indices, distances), axis=1)
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(indices, order, axis=1)
