"""The rows of float32 in which candidates are looked for, and the comparison of candidates in the data themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from ...scaling import row_lengths, times_power
from ...utils.types import Array, Matrix
from ._asking import WithoutLast
from ._cells import squared_distances
from .centering import common_exponent, far_center, stretch
from .pairs import nearest_listed, pair_distances

_N_DIRECTIONS = 255  # in which candidates among sparse rows are looked for; with the rest, 256 columns
_N_SPARE = 4  # candidates kept beyond the neighbours
_N_ROWS = 2**14  # rows converted at a time


@dataclass(frozen=True)
class Space:
    """Points and queries as they came, and as rows of float32."""

    points: Array  # of float32; the data themselves where they allow it
    convert: Callable[[Matrix], Array]  # makes such rows
    is_reduced: bool  # whether they leave something out; then their last column is how much
    exponent: int  # power of 2 by which values are shrunk
    given: Matrix
    queries: Matrix | None  # None if the points look for each other

    @property
    def asks_in_place(self) -> bool:
        """Tell whether a query stands where the point of its number does, or near it."""
        return self.queries is None or isinstance(self.queries, WithoutLast)

    @property
    def is_own(self) -> bool:
        """Tell whether the points look for each other."""
        return self.queries is None

    def asking(self, rows: Array) -> Array:
        """Return some of the queries as rows of float32."""
        asking = self.points[rows] if self.queries is None else self.convert(self.queries[rows])
        if self.is_reduced:
            # What is left out of two rows is nearly at right angles: its squares add up. That of the query is the same
            # for all points, and is left out here
            asking[:, -1] = 0
        return asking

    def distances(self, rows: Array, candidates: Array) -> Array:
        """Return the distances of some queries to their candidates, in the data and in their own type."""
        if sparse.issparse(self.given) or self.given.dtype != np.float32:
            asked = self.given if self.queries is None else self.queries
            return pair_distances(self.given, asked[rows], candidates, self.exponent)
        squares = squared_distances(self.points, self.asking(rows), candidates)
        return stretch(np.sqrt(squares, dtype=np.float64), self.exponent)

    def nearest_of(self, rows: Array, candidates: Array, n_neighbors: int) -> tuple[Array, Array]:
        """Find the nearest candidates of some queries."""
        own = rows if self.is_own else None
        if not sparse.issparse(self.given) and self.given.dtype != np.float32:
            # First in float32, which is faster, with some to spare for its rounding
            squares = squared_distances(self.points, self.asking(rows), candidates)
            count = min(n_neighbors + _N_SPARE, candidates.shape[1])
            candidates = nearest_listed(squares, candidates, count, own)[1]
        return nearest_listed(self.distances(rows, candidates), candidates, n_neighbors, own)


def space_of(points: Matrix, queries: Matrix | None, seed: int) -> Space:
    """Settle in which rows of float32 to look for candidates.

    Dense data: the data, centred if far from the origin. Sparse data of many features: their leading directions.
    """
    others = [] if queries is None or isinstance(queries, WithoutLast) else [queries]
    exponent = common_exponent([points, *others])
    is_reduced = sparse.issparse(points) and points.shape[1] > _N_DIRECTIONS + 1
    if is_reduced:
        convert = _reduction(points, exponent, seed)
    elif sparse.issparse(points):
        convert = _writing_out(exponent)
    else:
        rounded = _rounding(points, exponent)
        if rounded is None:
            return Space(np.ascontiguousarray(points), np.asarray, False, 0, points, queries)
        convert = rounded
    n_points = points.shape[0]
    first = convert(points[: min(_N_ROWS, n_points)])
    rows = np.empty((n_points, first.shape[1]), dtype=np.float32)
    rows[: len(first)] = first
    for begin in range(len(first), n_points, _N_ROWS):
        rows[begin : begin + _N_ROWS] = convert(points[begin : begin + _N_ROWS])
    return Space(rows, convert, is_reduced, exponent, points, queries)


def _rounding(points: Array, exponent: int) -> Callable[[Array], Array] | None:
    """Make the function that rounds dense rows to float32 where that loses least; None if there is nothing to do."""
    center = far_center(times_power(points, -exponent))
    if center is None and exponent == 0 and points.dtype == np.float32:
        return None

    def convert(rows: Array) -> Array:
        shrunk = times_power(rows, -exponent)
        return np.asarray(shrunk if center is None else shrunk - center, dtype=np.float32)

    return convert


def _writing_out(exponent: int) -> Callable[[sparse.csr_array], Array]:
    return lambda rows: np.asarray(times_power(rows, -exponent).toarray(), dtype=np.float32)


def _reduction(points: sparse.csr_array, exponent: int, seed: int) -> Callable[[sparse.csr_array], Array]:
    """Make the function that gives sparse rows in their leading directions, and the length of what is left of them."""
    shrunk = times_power(points, -exponent)
    size = min(_N_DIRECTIONS, points.shape[0])
    directions = randomized_svd(shrunk, size, n_iter=2, random_state=seed, transpose=False)[2].T

    def convert(rows: sparse.csr_array) -> Array:
        rows = times_power(rows, -exponent)
        leading = rows @ directions
        rest = np.square(row_lengths(rows)) - np.square(leading).sum(axis=1)
        return np.column_stack([leading, np.sqrt(np.maximum(rest, 0))]).astype(np.float32, copy=False)

    return convert
