"""Nearest neighbours among rows on disk: rows are stored by cells of near rows, and a few cells are read at a time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from ...graph.neighbors import Search, SearchReport
from ...graph.neighbors import search as _search
from ...graph.neighbors.distances import common_exponent, far_center, nearest_listed
from ...graph.neighbors.exact import RecallSample, exact, fewest_probes, sampled_rows
from ...graph.neighbors.search import number_of_cells
from ...scaling import times_power
from ...utils.messages import duration, warn_user
from ...utils.types import Array
from ..cells import cell_centers
from .files import FileRows, Scratch, ScratchMatrix

__all__ = ["nearest_rows"]

_N_PER_CELL, _LEAST_PER_CELL = 40, 10  # rows by which the centre of a cell is fitted
_N_CHECKED = 1000  # rows by which the distance of all rows from the origin is estimated
_TABLE_BYTES = 2**20  # of distances to centres, computed at a time
_MANY_PAIRS = 2**16  # from which the overhead of a call to scikit-learn is small
_SHARE = 8  # parts of the memory: for queries, for rows compared with them, and for intermediate results

Part = tuple[slice, Array | slice]  # stored rows, and the queries to compare with them


class RescaledRows(FileRows):
    """Some rows of a matrix, divided by a power of 2 and shifted, so that their squares do not overflow or cancel.

    The order of the distances between them stays the same.
    """

    def __init__(self, matrix: FileRows, rows: Array, exponent: int, center: Array | None = None) -> None:
        self.shape, self.dtype = (len(rows), matrix.shape[1]), matrix.dtype
        self._matrix, self._rows, self._exponent, self._center = matrix, rows, exponent, center

    def _select(self, rows: Array) -> Array:
        values = times_power(self._matrix[self._rows[rows]], -self._exponent)
        return np.asarray(values if self._center is None else (values - self._center).astype(self.dtype, copy=False))


def _rescaled(matrix: FileRows, rows: Array, n_bytes: int) -> RescaledRows:
    largest = 0.0
    for block in matrix.blocks(n_bytes):
        values = matrix[block]
        largest = max(largest, float(values.max()), -float(values.min()))
    exponent = common_exponent([np.array([[largest]])])
    points = RescaledRows(matrix, rows, exponent)
    center = far_center(points[np.unique(np.linspace(0, len(rows) - 1, _N_CHECKED).astype(np.intp))])
    return points if center is None else RescaledRows(matrix, rows, exponent, center.astype(matrix.dtype))


@dataclass(frozen=True)
class StoredCells:
    """Rows in a scratch file, cell by cell."""

    stored: ScratchMatrix
    order: Array  # for every stored row its number among the points
    starts: Array  # first stored row of every cell, and the number of rows
    centers: Array
    n_bytes: int  # memory for a search

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.centers)

    def all_rows(self) -> Iterator[Part]:
        """Yield all rows, to be compared with all queries, in pieces that fit into memory."""
        return ((piece, slice(None)) for piece in self._pieces(0, len(self.order)))

    def visited_rows(self, visited: Array) -> Iterator[Part]:
        """Yield the rows of every visited cell in pieces, with the queries that visit it."""
        order = visited.ravel().argsort(kind="stable")
        cells, starts = np.unique(visited.ravel()[order], return_index=True)
        for cell, queries in zip(cells, np.split(order // visited.shape[1], starts[1:]), strict=True):
            for piece in self._pieces(int(self.starts[cell]), int(self.starts[cell + 1])):
                yield piece, queries

    def _pieces(self, begin: int, stop: int) -> Iterator[slice]:
        step = max(1, self.n_bytes // _SHARE // self.stored.row_bytes)
        return (slice(first, min(first + step, stop)) for first in range(begin, stop, step))


def nearest_rows(
    matrix: FileRows, rows: Array, n_neighbors: int, search: Search, n_bytes: int, scratch: Scratch
) -> Array:
    """Find the nearest neighbours of some rows of a matrix among these rows.

    The search is exact up to the size at which :func:`gapview.graph.neighbors.nearest` is exact. Beyond it, only the
    nearest cells are searched; their number is set so that the recall estimated on a sample reaches that of ``search``.

    Parameters
    ----------
    matrix : FileRows
        The matrix.
    rows : int array of shape (n_rows,)
        The rows to compare, in ascending order.
    n_neighbors : int
        Number of neighbours per row, fewer than there are rows.
    search : Search
        Settings of the search; a report is appended to its ``done``.
    n_bytes : int
        Memory for the search besides its result.
    scratch : Scratch
        Where the rows are stored in the order in which they are searched.

    Returns
    -------
    int32 array of shape (n_rows, n_neighbors)
        Positions in ``rows``, ascending per row.
    """
    points = _rescaled(matrix, rows, n_bytes // _SHARE)
    found = None
    if not search.is_exact(len(rows), len(rows), _search.EXACT_PAIRS):
        found = _search_cells(points, n_neighbors, search, n_bytes, scratch)
    if found is None:
        order = np.arange(len(rows))
        with closing(_store(points, order, n_bytes, scratch)) as stored:
            one_cell = StoredCells(stored, order, np.array([0, len(rows)]), np.empty((1, 0)), n_bytes)
            indices = _search_all(one_cell, None, n_neighbors)[0]
        found = indices, SearchReport("exact", "scikit-learn", len(rows), len(rows), n_neighbors)
    search.done.append(found[1])
    return found[0]


def _search_cells(
    points: FileRows, n_neighbors: int, search: Search, n_bytes: int, scratch: Scratch
) -> tuple[Array, SearchReport] | None:
    """Search the nearest cells of every row; None if more than half of the cells are needed for the recall."""
    cells = _divide(points, search.seed, n_bytes, scratch)
    with closing(cells.stored):
        sample = np.sort(np.argsort(cells.order)[sampled_rows(len(points), search.seed)])
        queries = cells.stored[sample]
        begin = time.perf_counter()
        distances, true = _nearest_stored(cells.stored, queries, sample, n_neighbors, cells.all_rows())
        seconds = (time.perf_counter() - begin) * len(points) / len(sample)
        cells_of_true = np.searchsorted(cells.starts, true, side="right") - 1
        ordered = _nearest_centers(queries, cells.centers, cells.n_cells)
        n_probes, recall = fewest_probes(ordered, cells_of_true, search.recall), 0.0
        if n_probes is not None:
            found, reached = _search_all(cells, n_probes, n_neighbors, sample)
            recall = float(RecallSample(sample, distances[:, -1]).hits(reached).mean())
    if n_probes is None or recall < search.recall:  # the second if rounding decides which cells are near
        if len(points) ** 2 > _search.EXACT_PAIRS:
            warn_user(
                f"The neighbours of {len(points)} samples are searched by computing all distances: this will take "
                f"about {duration(seconds)}. No cheaper way finds {search.recall:.0%} of the neighbours in these data; "
                "fewer may do (recall=...)."
            )
        return None
    size = len(points), len(points), n_neighbors
    count = round(n_probes * len(points) / cells.n_cells)
    return found, SearchReport("approximate", "scikit-learn", *size, recall, cells.n_cells, n_probes, count)


def _divide(points: FileRows, seed: int, n_bytes: int, scratch: Scratch) -> StoredCells:
    """Fit the centres of the cells to a sample of the rows, and store all rows cell by cell."""
    n_rows, most = len(points), max(_LEAST_PER_CELL, n_bytes // 4 // points.row_bytes)
    n_cells = min(number_of_cells(n_rows), most // _LEAST_PER_CELL)
    n_drawn = min(n_rows, n_cells * _N_PER_CELL, most)
    drawn = np.sort(np.random.RandomState(seed).choice(n_rows, n_drawn, replace=False))
    centers = cell_centers(points[drawn], n_cells, seed)
    cell = np.empty(n_rows, dtype=np.int32)
    for block in points.blocks(n_bytes // _SHARE):
        cell[block] = _nearest_centers(points[block], centers, 1)[:, 0]
    order = np.argsort(cell, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=n_cells))])
    return StoredCells(_store(points, order, n_bytes, scratch), order, starts, centers, n_bytes)


def _nearest_centers(rows: Array, centers: Array, count: int) -> Array:
    """Return the cells with the nearest centres to every row, nearest first."""
    found = np.empty((len(rows), count), dtype=np.int32)
    step = max(1, _TABLE_BYTES // (24 * len(centers)))
    for begin in range(0, len(rows), step):
        table = np.square(centers).sum(axis=1) - 2 * (rows[begin : begin + step] @ centers.T)
        near = np.argpartition(table, count - 1, axis=1)[:, :count]
        order = np.take_along_axis(table, near, axis=1).argsort(axis=1)
        found[begin : begin + step] = np.take_along_axis(near, order, axis=1)
    return found


def _store(points: FileRows, order: Array, n_bytes: int, scratch: Scratch) -> ScratchMatrix:
    """Write rows to a scratch file in another order."""
    stored = scratch.matrix(points.shape, points.dtype)
    position = np.empty(len(points), dtype=np.int64)
    position[order] = np.arange(len(points))
    for part in points.blocks(n_bytes // _SHARE):
        block, to = points[part], position[part]
        sequence = np.argsort(to)
        block, to = block[sequence], to[sequence]
        # Rows of one cell go to consecutive positions
        runs = np.flatnonzero(np.diff(to, prepend=-2) != 1)
        for first, last in zip(runs, [*runs[1:], len(to)], strict=True):
            stored.write_rows(int(to[first]), block[first:last])
    return stored


def _search_all(
    cells: StoredCells, n_probes: int | None, n_neighbors: int, sample: Array | None = None
) -> tuple[Array, Array]:
    """Find the neighbours of all rows, in the nearest cells or in all; also return the distances of a sample."""
    n_rows, stored = len(cells.order), cells.stored
    found = np.empty((n_rows, n_neighbors), dtype=np.int32)
    sample = np.empty(0, dtype=np.intp) if sample is None else sample
    reached = np.empty((len(sample), n_neighbors))
    step = max(1, cells.n_bytes // _SHARE // (stored.row_bytes + 100 * (n_neighbors + 1) + 40 * (n_probes or 0)))
    for begin in range(0, n_rows, step):
        numbers = np.arange(begin, min(begin + step, n_rows))
        queries = stored[begin : begin + step]
        parts = cells.all_rows()
        if n_probes is not None:
            parts = cells.visited_rows(_nearest_centers(queries, cells.centers, n_probes))
        distances, near = _nearest_stored(stored, queries, numbers, n_neighbors, parts)
        short = np.flatnonzero((near < 0).any(axis=1))
        if len(short):  # the cells near these rows hold too few rows
            exact_parts = cells.all_rows()
            distances[short], near[short] = _nearest_stored(
                stored, queries[short], numbers[short], n_neighbors, exact_parts
            )
        found[cells.order[numbers]] = np.sort(cells.order[near], axis=1)
        here = (sample >= begin) & (sample < begin + step)
        reached[here] = distances[sample[here] - begin]
    return found, reached


def _nearest_stored(
    stored: ScratchMatrix, queries: Array, own: Array, n_neighbors: int, parts: Iterable[Part]
) -> tuple[Array, Array]:
    """Find the nearest of the rows in parts of the file, each part for its queries; ``own`` are the queries' rows."""
    distances = np.full((len(queries), n_neighbors + 1), np.inf)
    numbers = np.full(distances.shape, -1, dtype=np.int64)
    for part, visitors in parts:
        members = stored[part]
        near, places = _nearest_members(members, min(n_neighbors + 1, len(members)), queries[visitors])
        listed = np.concatenate([distances[visitors], near], axis=1)
        numbered = np.concatenate([numbers[visitors], places + part.start], axis=1)
        distances[visitors], numbers[visitors] = nearest_listed(listed, numbered, n_neighbors + 1, None)
    return nearest_listed(distances, numbers, n_neighbors, own)


def _nearest_members(members: Array, count: int, queries: Array) -> tuple[Array, Array]:
    """Find the nearest of a few rows for a few queries, without the overhead of a call to scikit-learn."""
    if len(members) * len(queries) > _MANY_PAIRS:
        return exact(members, count, queries)
    center = members.mean(axis=0, dtype=np.float64)  # a cell is small around its mean: products round little
    there, here = members - center, queries - center
    table = np.square(there).sum(axis=1) - 2 * (here @ there.T)
    near = np.argpartition(table, count - 1, axis=1)[:, :count]
    squares = np.take_along_axis(table, near, axis=1) + np.square(here).sum(axis=1)[:, None]
    return np.sqrt(np.maximum(squares, 0.0)), near
