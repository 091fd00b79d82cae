"""The rows of float32 in which candidates are searched, and the comparison of candidates in the data themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from ...scaling import row_lengths, times_power
from ...utils.types import Array, Matrix
from .distances import WithoutLast, common_exponent, far_center, nearest_listed, pair_distances, scaled_back

_N_DIRECTIONS = 255  # singular vectors onto which sparse rows are projected; with the residual, 256 columns
_N_SPARE = 4  # candidates kept beyond the neighbours
_N_ROWS = 2**14  # rows converted at a time


@dataclass(frozen=True)
class Space:
    """Points and queries as they were given, and as rows of float32."""

    points: Array  # of float32; the data themselves where possible
    convert: Callable[[Matrix], Array]  # from given rows to rows of float32
    is_reduced: bool  # whether the rows are projected; their last column is then the length of the residual
    exponent: int  # power of 2 by which values are divided
    given: Matrix  # the points
    queries: Matrix  # the points themselves if they are the queries
    is_own: bool  # whether they are, so that no point is its own neighbour

    def float32_queries(self, rows: Array) -> Array:
        """Return some of the queries as rows of float32."""
        queries = self.points[rows] if self.is_own else self.convert(self.queries[rows])
        if self.is_reduced:
            # Residuals of two rows are nearly orthogonal, so that their squares add up. The residual of the query adds
            # the same to the distance of every point, and is left out
            queries[:, -1] = 0
        return queries

    def distances(self, rows: Array, candidates: Array) -> Array:
        """Compute the distances of some queries to their candidates in the data as given, in their own type."""
        if sparse.issparse(self.given) or self.given.dtype != np.float32:
            return pair_distances(self.given, self.queries[rows], candidates, self.exponent)
        return scaled_back(np.sqrt(self._float32_squares(rows, candidates), dtype=np.float64), self.exponent)

    def nearest_of(self, rows: Array, candidates: Array, n_neighbors: int) -> tuple[Array, Array]:
        """Return distances and indices of the nearest candidates of some queries."""
        own = rows if self.is_own else None
        if not sparse.issparse(self.given) and self.given.dtype != np.float32:
            # First in float32, which is faster, with spare candidates because of its rounding
            squares = self._float32_squares(rows, candidates)
            count = min(n_neighbors + _N_SPARE, candidates.shape[1])
            candidates = nearest_listed(squares, candidates, count, own)[1]
        return nearest_listed(self.distances(rows, candidates), candidates, n_neighbors, own)

    def _float32_squares(self, rows: Array, candidates: Array) -> Array:
        """Compute the squared distances of some queries to their candidates, infinite where there is none (−1)."""
        import faiss

        queries, candidates = np.ascontiguousarray(self.float32_queries(rows)), np.ascontiguousarray(candidates)
        squares = np.empty(candidates.shape, dtype=np.float32)
        pointers = [faiss.swig_ptr(array) for array in (squares, queries, self.points, candidates)]
        faiss.fvec_L2sqr_by_idx(*pointers, self.points.shape[1], *candidates.shape)
        return squares


def search_space(points: Matrix, queries: Matrix | None, seed: int) -> Space:
    """Build the rows of float32 in which candidates are searched.

    Dense data are rounded, and centred if far from the origin. Sparse data of many features are projected onto their
    leading singular vectors; those of few features become dense.
    """
    others = [] if queries is None or isinstance(queries, WithoutLast) else [queries]
    exponent = common_exponent([points, *others])
    is_reduced = sparse.issparse(points) and points.shape[1] > _N_DIRECTIONS + 1
    given = points, points if queries is None else queries, queries is None
    if is_reduced:
        convert = _projection(points, exponent, seed)
    else:
        center = None if sparse.issparse(points) else far_center(times_power(points, -exponent))
        if not sparse.issparse(points) and center is None and exponent == 0 and points.dtype == np.float32:
            return Space(np.ascontiguousarray(points), np.asarray, False, 0, *given)
        convert = _rounding(center, exponent)
    n_points = points.shape[0]
    first = convert(points[: min(_N_ROWS, n_points)])
    rows = np.empty((n_points, first.shape[1]), dtype=np.float32)
    rows[: len(first)] = first
    for begin in range(len(first), n_points, _N_ROWS):
        rows[begin : begin + _N_ROWS] = convert(points[begin : begin + _N_ROWS])
    return Space(rows, convert, is_reduced, exponent, *given)


def _rounding(center: Array | None, exponent: int) -> Callable[[Matrix], Array]:
    """Return the function that rounds rows to dense rows of float32."""

    def convert(rows: Matrix) -> Array:
        shrunk = times_power(rows, -exponent)
        shrunk = shrunk.toarray() if sparse.issparse(shrunk) else shrunk
        return np.asarray(shrunk if center is None else shrunk - center, dtype=np.float32)

    return convert


def _projection(points: sparse.csr_array, exponent: int, seed: int) -> Callable[[sparse.csr_array], Array]:
    """Return the function that projects sparse rows onto singular vectors and appends the length of the residual."""
    shrunk = times_power(points, -exponent)
    size = min(_N_DIRECTIONS, points.shape[0])
    directions = randomized_svd(shrunk, size, n_iter=2, random_state=seed, transpose=False)[2].T

    def convert(rows: sparse.csr_array) -> Array:
        rows = times_power(rows, -exponent)
        leading = rows @ directions
        residual = np.square(row_lengths(rows)) - np.square(leading).sum(axis=1)
        return np.column_stack([leading, np.sqrt(np.maximum(residual, 0))]).astype(np.float32, copy=False)

    return convert
