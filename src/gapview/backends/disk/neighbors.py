"""Nearest neighbours among rows on disk: rows are stored by cells of near rows, and a few cells are read at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np

from ...graph.neighbors import Search, cells
from ...graph.neighbors.distances import common_exponent
from ...graph.neighbors.search import CellKernel, CellSetting, RecallSample, run_search
from ...scaling import largest_magnitude, times_power
from ...utils.types import Array
from .files import FileRows, Scratch

_N_PER_CELL, _LEAST_PER_CELL = 40, 10  # rows by which the centre of a cell is fitted
_SHARE = 8  # parts of the memory: for queries, for rows compared with them, and for intermediate results


class RescaledRows(FileRows):
    """Some rows of a matrix, divided by a power of 2 so that their squares neither overflow nor underflow."""

    def __init__(self, matrix: FileRows, rows: Array, exponent: int) -> None:
        self.shape, self.dtype = (len(rows), matrix.shape[1]), matrix.dtype
        self._matrix, self._rows, self._exponent = matrix, rows, exponent

    def _select(self, rows: Array) -> Array:
        return np.asarray(times_power(self._matrix[self._rows[rows]], -self._exponent))


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
    largest = max(largest_magnitude(matrix[block]) for block in matrix.blocks(n_bytes // _SHARE))
    points = RescaledRows(matrix, rows, common_exponent([np.array([[largest]])]))
    with closing(StoredCells(points, n_neighbors, n_bytes, scratch)) as kernel:
        return run_search(kernel, search)  # type: ignore[no-any-return]


class StoredCells(CellKernel):
    """Rows in a scratch file, cell by cell; a few cells are read at a time."""

    engine = exact_engine = "scikit-learn"

    def __init__(self, points: FileRows, n_neighbors: int, n_bytes: int, scratch: Scratch) -> None:
        self.n_points = self.n_queries = len(points)
        self.n_neighbors, self.n_cells, self._n_bytes = n_neighbors, 0, n_bytes
        self._points, self._stored = points, scratch.matrix(points.shape, points.dtype)

    def close(self) -> None:
        """Free the disk space."""
        self._stored.close()

    def divide(self, n_cells: int, seed: int) -> None:
        """Fit the centres of the cells to a sample of the rows, and store all rows cell by cell."""
        points, most = self._points, max(_LEAST_PER_CELL, self._n_bytes // 4 // self._points.row_bytes)
        n_cells = min(n_cells, most // _LEAST_PER_CELL)
        n_drawn = min(self.n_points, n_cells * _N_PER_CELL, most)
        drawn = np.sort(np.random.RandomState(seed).choice(self.n_points, n_drawn, replace=False))
        self._centers = cells.cell_centers(points[drawn], n_cells, seed)
        self.n_cells = len(self._centers)
        cell = np.empty(self.n_points, dtype=np.int32)
        for block in points.blocks(self._n_bytes // _SHARE):
            cell[block] = cells.nearest_centers(points[block], self._centers, 1)[:, 0]
        order, self._cells = cells.grouped(cell, self.n_cells)
        self._store(order)

    def _store(self, order: Array) -> None:
        """Write the rows to the scratch file in another order."""
        self._order = order.astype(np.int32)  # for every stored row its number among the points
        self._place = np.empty_like(self._order)  # for every point its place in the file
        self._place[order] = np.arange(self.n_points)
        for part in self._points.blocks(self._n_bytes // _SHARE):
            sequence = np.argsort(self._place[part])
            block, to = self._points[part][sequence], self._place[part][sequence]
            # Rows of one cell go to consecutive places
            runs = np.flatnonzero(np.diff(to, prepend=-2) != 1)
            for first, last in zip(runs, [*runs[1:], len(to)], strict=True):
                self._stored.write_rows(int(to[first]), block[first:last])

    def true_neighbors(self, rows: Array) -> tuple[Array, Array]:
        """Return distances, and the neighbours as places in the file."""
        return self._nearest(self._stored[self._place[rows]], self._place[rows], None)

    def _nearest(self, queries: Array, places: Array, n_probes: int | None) -> tuple[Array, Array]:
        """Search the nearest cells of some rows or, if ``n_probes`` is None, all rows."""
        if n_probes is None:
            parts = self._read(slice(0, self.n_points), slice(None))
            return cells.nearest_others(queries, places, self.n_neighbors, parts)
        visited = cells.visits(cells.nearest_centers(queries, self._centers, n_probes), self.n_cells)
        parts = (part for cell, visitors in visited for part in self._read(self._cells[cell], visitors))
        distances, found = cells.nearest_others(queries, places, self.n_neighbors, parts)
        short = np.flatnonzero((found < 0).any(axis=1))
        if len(short):  # the cells near these rows hold too few rows
            distances[short], found[short] = self._nearest(queries[short], places[short], None)
        return distances, found

    def _read(self, rows: slice, queries: Array | slice) -> Iterator[cells.Part]:
        """Yield stored rows, to be compared with some queries, in pieces that fit into memory."""
        step = max(1, self._n_bytes // _SHARE // self._stored.row_bytes)
        for begin in range(rows.start, rows.stop, step):
            stop = min(begin + step, rows.stop)
            yield self._stored[begin:stop], np.arange(begin, stop), queries

    def cell_ranks(self, sample: RecallSample) -> Array:
        """Return the ranks of the cells of the true neighbours."""
        own = np.searchsorted([cell.stop for cell in self._cells], sample.neighbors, side="right")
        return cells.cell_ranks(self._points[sample.rows], self._centers, own)  # type: ignore[no-any-return]

    def search(self, setting: CellSetting, rows: Array) -> tuple[Array, Array]:
        """Return the neighbours of all rows, and the distances of those of some rows."""
        return self._search_all(setting.n_probes, self._place[rows])

    def exact(self) -> Array:
        """Return the neighbours of all rows."""
        if not self.n_cells:
            self._store(np.arange(self.n_points))
        return self._search_all(None, np.empty(0, dtype=np.intp))[0]

    def _search_all(self, n_probes: int | None, sample: Array) -> tuple[Array, Array]:
        count = self.n_neighbors
        found = np.empty((self.n_points, count), dtype=np.int32)
        reached = np.empty((len(sample), count))
        step = max(1, self._n_bytes // _SHARE // (self._stored.row_bytes + 100 * (count + 1) + 40 * (n_probes or 0)))
        for begin in range(0, self.n_points, step):
            places = np.arange(begin, min(begin + step, self.n_points))
            distances, near = self._nearest(self._stored[begin : begin + step], places, n_probes)
            found[self._order[places]] = np.sort(self._order[near], axis=1)
            here = (sample >= begin) & (sample < begin + step)
            reached[here] = distances[sample[here] - begin]
        return found, reached
