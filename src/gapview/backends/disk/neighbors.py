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


class QueryRows(RescaledRows):
    """The same rows as queries: their last column counts as 0."""

    def _select(self, rows: Array) -> Array:
        found = super()._select(rows)
        found[:, -1] = 0
        return found


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
    points = RescaledRows(matrix, rows, _exponent(n_bytes, matrix))
    with closing(StoredCells(points, n_neighbors, n_bytes, scratch)) as kernel:
        found: Array = run_search(kernel, search)
    found.sort(axis=1)
    return found


def nearest_of_queries(
    matrix: FileRows, rows: Array, queries: Array, count: int, search: Search, n_bytes: int, scratch: Scratch
) -> Array:
    """Find for some rows of a matrix the nearest of other rows, which may include them; no row is its own neighbour.

    Parameters are those of :func:`nearest_rows`, with ``queries``, the rows to find neighbours for, in any order. The
    result is nearest first; −1 stands for none.
    """
    exponent, own = _exponent(n_bytes, matrix), np.searchsorted(rows, queries)
    own[own == len(rows)] = 0
    own = np.where(rows[own] == queries, own, -1)
    points, asked = RescaledRows(matrix, rows, exponent), RescaledRows(matrix, queries, exponent)
    with closing(StoredCells(points, min(count, len(rows)), n_bytes, scratch, asked, own)) as kernel:
        return run_search(kernel, search)  # type: ignore[no-any-return]


def nearest_expected(matrix: FileRows, n_neighbors: int, search: Search, n_bytes: int, scratch: Scratch) -> Array:
    """Find the neighbours of all rows, with 0 in the last column of a query; see :func:`nearest_rows`."""
    exponent, everyone = _exponent(n_bytes, matrix), np.arange(len(matrix))
    points, asked = RescaledRows(matrix, everyone, exponent), QueryRows(matrix, everyone, exponent)
    with closing(StoredCells(points, n_neighbors, n_bytes, scratch, asked, everyone)) as kernel:
        return run_search(kernel, search)  # type: ignore[no-any-return]


def _exponent(n_bytes: int, matrix: FileRows) -> int:
    largest = max(largest_magnitude(matrix[block]) for block in matrix.blocks(n_bytes // _SHARE))
    return common_exponent([np.array([[largest]])])


class RowsByCell:
    """Rows that are copied to a scratch file, in the order of their cells."""

    def __init__(self, rows: FileRows, n_bytes: int, scratch: Scratch) -> None:
        self.rows, self._n_bytes = rows, n_bytes
        self.file = scratch.matrix(rows.shape, rows.dtype)
        self.order = self.place = np.empty(0, dtype=np.int32)

    def divide(self, centers: Array) -> None:
        """Store the rows cell by cell."""
        cell = np.empty(len(self.rows), dtype=np.int32)
        for block in self.rows.blocks(self._n_bytes // _SHARE):
            cell[block] = cells.nearest_centers(self.rows[block], centers, 1)[:, 0]
        order, self.cells = cells.grouped(cell, len(centers))
        self.store(order)

    def store(self, order: Array) -> None:
        """Write the rows in another order."""
        self.order = order.astype(np.int32)  # for every stored row its number
        self.place = np.empty_like(self.order)  # for every row its place in the file
        self.place[order] = np.arange(len(order))
        for part in self.rows.blocks(self._n_bytes // _SHARE):
            sequence = np.argsort(self.place[part])
            block, to = self.rows[part][sequence], self.place[part][sequence]
            # Rows of one cell go to consecutive places
            runs = np.flatnonzero(np.diff(to, prepend=-2) != 1)
            for first, last in zip(runs, [*runs[1:], len(to)], strict=True):
                self.file.write_rows(int(to[first]), block[first:last])


class StoredCells(CellKernel):
    """Rows in a scratch file, cell by cell; a few cells are read at a time.

    Parameters
    ----------
    points : FileRows
        The rows among which neighbours are searched.
    n_neighbors : int
        Neighbours of every query.
    n_bytes : int
        Memory for the search.
    scratch : Scratch
        Where the rows are stored.
    queries : FileRows, optional
        The rows to find neighbours for; by default the points.
    own : int array, optional
        With ``queries``, for each of them the point that is the same row; −1 if there is none.
    """

    engine = exact_engine = "scikit-learn"

    def __init__(
        self,
        points: FileRows,
        n_neighbors: int,
        n_bytes: int,
        scratch: Scratch,
        queries: FileRows | None = None,
        own: Array | None = None,
    ) -> None:
        self.n_points, self.n_queries = len(points), len(points if queries is None else queries)
        self.n_neighbors, self.n_cells, self._n_bytes = n_neighbors, 0, n_bytes
        self._points = self._queries = RowsByCell(points, n_bytes, scratch)
        if queries is not None:
            self._queries = RowsByCell(queries, n_bytes, scratch)
        self._own = own

    def close(self) -> None:
        """Free the disk space."""
        for stored in self._stored:
            stored.file.close()

    @property
    def _stored(self) -> list[RowsByCell]:
        return [self._points] if self._queries is self._points else [self._points, self._queries]

    def divide(self, n_cells: int, seed: int) -> None:
        """Fit the centres of the cells to a sample of the rows, and store all rows cell by cell."""
        points = self._points.rows
        most = max(_LEAST_PER_CELL, self._n_bytes // 4 // points.row_bytes)
        n_cells = min(n_cells, most // _LEAST_PER_CELL)
        n_drawn = min(self.n_points, n_cells * _N_PER_CELL, most)
        drawn = np.sort(np.random.RandomState(seed).choice(self.n_points, n_drawn, replace=False))
        self._centers = cells.cell_centers(points[drawn], n_cells, seed)
        self.n_cells = len(self._centers)
        for stored in self._stored:
            stored.divide(self._centers)

    def true_neighbors(self, rows: Array) -> tuple[Array, Array]:
        """Return distances, and the neighbours as places in the file of the points."""
        return self._nearest(self._queries.file[self._queries.place[rows]], self._own_places(rows), None)

    def _own_places(self, queries: Array) -> Array:
        """Return the places of some queries in the file of the points; −1 for queries that are not points."""
        if self._own is None:
            return self._points.place[queries]
        own = self._own[queries]
        return np.where(own >= 0, self._points.place[own], -1)

    def _nearest(self, queries: Array, places: Array, n_probes: int | None) -> tuple[Array, Array]:
        """Search the nearest cells of some rows or, if ``n_probes`` is None, all rows."""
        if n_probes is None:
            parts = self._read(slice(0, self.n_points), slice(None))
            return cells.nearest_others(queries, places, self.n_neighbors, parts)
        visited = cells.visits(cells.nearest_centers(queries, self._centers, n_probes), self.n_cells)
        parts = (part for cell, visitors in visited for part in self._read(self._points.cells[cell], visitors))
        distances, found = cells.nearest_others(queries, places, self.n_neighbors, parts)
        short = np.flatnonzero((found < 0).any(axis=1))
        if len(short):  # the cells near these rows hold too few rows
            distances[short], found[short] = self._nearest(queries[short], places[short], None)
        return distances, found

    def _read(self, rows: slice, queries: Array | slice) -> Iterator[cells.Part]:
        """Yield stored rows, to be compared with some queries, in pieces that fit into memory."""
        file = self._points.file
        step = max(1, self._n_bytes // _SHARE // file.row_bytes)
        for begin in range(rows.start, rows.stop, step):
            stop = min(begin + step, rows.stop)
            yield file[begin:stop], np.arange(begin, stop), queries

    def cell_ranks(self, sample: RecallSample) -> Array:
        """Return the ranks of the cells of the true neighbours."""
        own = np.searchsorted([cell.stop for cell in self._points.cells], sample.neighbors, side="right")
        return cells.cell_ranks(self._queries.rows[sample.rows], self._centers, own)  # type: ignore[no-any-return]

    def search(self, setting: CellSetting, rows: Array) -> tuple[Array, Array]:
        """Return the neighbours of all rows, and the distances of those of some rows."""
        return self._search_all(setting.n_probes, self._queries.place[rows])

    def exact(self) -> Array:
        """Return the neighbours of all rows."""
        if not self.n_cells:
            for stored in self._stored:
                stored.store(np.arange(len(stored.rows)))
        return self._search_all(None, np.empty(0, dtype=np.intp))[0]

    def _search_all(self, n_probes: int | None, sample: Array) -> tuple[Array, Array]:
        count, queries, order = self.n_neighbors, self._queries, self._points.order
        found = np.empty((self.n_queries, count), dtype=np.int32)
        reached = np.empty((len(sample), count))
        step = max(1, self._n_bytes // _SHARE // (queries.file.row_bytes + 100 * (count + 1) + 40 * (n_probes or 0)))
        for begin in range(0, self.n_queries, step):
            places = slice(begin, min(begin + step, self.n_queries))
            own = self._own_places(queries.order[places])
            distances, near = self._nearest(queries.file[places], own, n_probes)
            found[queries.order[places]] = np.where(near >= 0, order[near], -1)
            here = (sample >= begin) & (sample < begin + step)
            reached[here] = distances[sample[here] - begin]
        return found, reached
