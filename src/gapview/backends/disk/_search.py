"""Nearest neighbours among rows that do not fit into memory: cells of near rows, read one at a time."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from ...errors import GapviewWarning
from ...graph.neighbors import Search, SearchReport
from ...graph.neighbors import search as _search
from ...graph.neighbors.distances import nearest_listed
from ...graph.neighbors.exact import RecallSample, exact, fewest_probes, sampled_rows
from ...graph.neighbors.search import number_of_cells
from ...utils.types import Array
from ...utils.warnings import warn_user
from ...utils.words import duration
from ._placed import placed
from ._rows import FileRows
from ._scratch import Scratch, ScratchMatrix

__all__ = ["nearest_rows"]

_N_PER_CELL, _LEAST_PER_CELL = 40, 10  # rows on which the place of a cell is settled
_N_ITERATIONS = 10
_TABLE_BYTES = 2**20  # of distances to centres, made at a time
_MANY_PAIRS = 2**16  # from which the time of a call to scikit-learn does not count
_SHARE = 8  # rows that ask, rows that are compared with them, and what is made of both: parts of the memory given


@dataclass(frozen=True)
class Cells:
    """Rows of a scratch file, cell by cell."""

    stored: ScratchMatrix
    order: Array  # which row stands in each place
    starts: Array  # where each cell begins, and the end of the last
    centers: Array

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.centers)


def nearest_rows(
    matrix: FileRows, rows: Array, n_neighbors: int, search: Search, n_bytes: int, scratch: Scratch
) -> Array:
    """Find for some rows of a matrix the nearest of these rows, each other than itself.

    The search is exact up to the size at which :func:`gapview.graph.neighbors.nearest` is exact. Beyond it, only the
    nearest cells are searched; their number is set so that the recall estimated on a sample reaches that of ``search``.

    Parameters
    ----------
    matrix : FileRows
        Where the rows are.
    rows : int array of shape (n_rows,)
        Which of them to compare, in ascending order.
    n_neighbors : int
        How many neighbours to find, fewer than there are rows.
    search : Search
        How to look; its ``done`` gets a line on what was done.
    n_bytes : int
        What the search may take besides its result.
    scratch : Scratch
        Where to write the rows anew, in the order in which they are searched.

    Returns
    -------
    int32 array of shape (n_rows, n_neighbors)
        Places in ``rows``, those of every row in ascending order.
    """
    points = placed(matrix, rows, n_bytes // _SHARE)
    found = None
    if not search.is_exact(len(rows), len(rows), _search.EXACT_PAIRS):
        found = _by_cells(points, n_neighbors, search, n_bytes, scratch)
    if found is None:
        order = np.arange(len(rows))
        with _stored(points, order, n_bytes, scratch) as stored:
            one_cell = Cells(stored, order, np.array([0, len(rows)]), np.empty((1, 0)))
            indices = _searched(one_cell, None, n_neighbors, n_bytes)[0]
        found = indices, SearchReport("exact", "scikit-learn", len(rows), len(rows), n_neighbors)
    search.done.append(found[1])
    return found[0]


def _by_cells(
    points: FileRows, n_neighbors: int, search: Search, n_bytes: int, scratch: Scratch
) -> tuple[Array, SearchReport] | None:
    """Search the cells that hold enough of the true neighbours of a sample; None if all distances cost less."""
    cells = _divided(points, search.seed, n_bytes, scratch)
    with cells.stored:
        places = np.sort(np.argsort(cells.order)[sampled_rows(len(points), search.seed)])
        asking = cells.stored[places]
        begin = time.perf_counter()
        distances, true = _among(cells.stored, asking, places, n_neighbors, _everything(cells, n_bytes))
        seconds = (time.perf_counter() - begin) * len(points) / len(places)
        n_probes = _probes_needed(cells, asking, true, search.recall)
        recall = 0.0
        if n_probes is not None:
            found, reached = _searched(cells, n_probes, n_neighbors, n_bytes, places)
            recall = float(RecallSample(places, distances[:, -1]).hits(reached).mean())
    if n_probes is None or recall < search.recall:  # or which cells are near is a matter of rounding
        _say_what_it_costs(len(points), seconds, search.recall)
        return None
    size = len(points), len(points), n_neighbors
    count = round(n_probes * len(points) / cells.n_cells)
    return found, SearchReport("approximate", "scikit-learn", *size, recall, cells.n_cells, n_probes, count)


def _say_what_it_costs(n_points: int, seconds: float, recall: float) -> None:
    if n_points**2 > _search.EXACT_PAIRS:
        warn_user(
            f"The neighbours of {n_points} samples are searched by computing all distances: this will take about "
            f"{duration(seconds)}. No cheaper way finds {recall:.0%} of the neighbours in these data; fewer may do "
            "(recall=...).",
            GapviewWarning,
        )


def _divided(points: FileRows, seed: int, n_bytes: int, scratch: Scratch) -> Cells:
    """Settle cells on a sample of the rows, and write all rows anew, cell by cell."""
    n_rows, most = len(points), max(_LEAST_PER_CELL, n_bytes // 4 // points.row_bytes)
    n_cells = min(number_of_cells(n_rows), most // _LEAST_PER_CELL)
    n_seen = min(n_rows, n_cells * _N_PER_CELL, most)
    seen = np.sort(np.random.RandomState(seed).choice(n_rows, n_seen, replace=False))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # rows that repeat leave cells empty, which does no harm
        fitted = KMeans(n_cells, init="random", n_init=1, max_iter=_N_ITERATIONS, random_state=seed, copy_x=False)
        centers = fitted.fit(points[seen]).cluster_centers_
    cell = np.empty(n_rows, dtype=np.int32)
    for block in points.blocks(n_bytes // _SHARE):
        cell[block] = _nearest_centers(points[block], centers, 1)[:, 0]
    order = np.argsort(cell, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=n_cells))])
    return Cells(_stored(points, order, n_bytes, scratch), order, starts, centers)


def _nearest_centers(rows: Array, centers: Array, count: int) -> Array:
    """Return the cells whose centres are nearest to every row, nearest first."""
    found = np.empty((len(rows), count), dtype=np.int32)
    step = max(1, _TABLE_BYTES // (24 * len(centers)))
    for begin in range(0, len(rows), step):
        table = np.square(centers).sum(axis=1) - 2 * (rows[begin : begin + step] @ centers.T)
        near = np.argpartition(table, count - 1, axis=1)[:, :count]
        order = np.take_along_axis(table, near, axis=1).argsort(axis=1)
        found[begin : begin + step] = np.take_along_axis(near, order, axis=1)
    return found


def _stored(points: FileRows, order: Array, n_bytes: int, scratch: Scratch) -> ScratchMatrix:
    """Write rows to a scratch file in another order."""
    stored = scratch.matrix(points.shape, points.dtype)
    place = np.empty(len(points), dtype=np.int64)
    place[order] = np.arange(len(points))
    for part in points.blocks(n_bytes // _SHARE):
        block, to = points[part], place[part]
        sequence = np.argsort(to)
        block, to = block[sequence], to[sequence]
        # Rows of one cell go to places that follow each other
        runs = np.flatnonzero(np.diff(to, prepend=-2) != 1)
        for first, last in zip(runs, [*runs[1:], len(to)], strict=True):
            stored.write_rows(int(to[first]), block[first:last])
    return stored


def _probes_needed(cells: Cells, asking: Array, true: Array, recall: float) -> int | None:
    """Say how many cells to search so that enough true neighbours lie in them; None if more than half."""
    ordered = _nearest_centers(asking, cells.centers, cells.n_cells)
    rank = np.empty_like(ordered)
    np.put_along_axis(rank, ordered, np.arange(cells.n_cells)[None], axis=1)
    cell_of_true = np.searchsorted(cells.starts, true, side="right") - 1
    return fewest_probes(np.take_along_axis(rank, cell_of_true, axis=1), cells.n_cells, recall)


def _searched(
    cells: Cells, n_probes: int | None, n_neighbors: int, n_bytes: int, judged: Array | None = None
) -> tuple[Array, Array]:
    """Search the neighbours of all rows, those of near cells together; also give the distances for some places."""
    n_rows = len(cells.order)
    found = np.empty((n_rows, n_neighbors), dtype=np.int32)
    reached = np.empty((0 if judged is None else len(judged), n_neighbors))
    step = max(1, n_bytes // _SHARE // (cells.stored.row_bytes + 100 * (n_neighbors + 1) + 40 * (n_probes or 0)))
    for begin in range(0, n_rows, step):
        places = np.arange(begin, min(begin + step, n_rows))
        asking = cells.stored[begin : begin + step]
        parts = _everything(cells, n_bytes)
        if n_probes is not None:
            parts = _visits(cells, _nearest_centers(asking, cells.centers, n_probes), n_bytes)
        distances, near = _among(cells.stored, asking, places, n_neighbors, parts)
        short = np.flatnonzero((near < 0).any(axis=1))
        if len(short):  # the cells near these rows hold too few
            everything = _everything(cells, n_bytes)
            distances[short], near[short] = _among(cells.stored, asking[short], places[short], n_neighbors, everything)
        found[cells.order[places]] = np.sort(cells.order[near], axis=1)
        if judged is not None:
            here = (judged >= begin) & (judged < begin + step)
            reached[here] = distances[judged[here] - begin]
    return found, reached


def _pieces(cells: Cells, begin: int, stop: int, n_bytes: int) -> Iterator[slice]:
    """Cut places into pieces that fit into memory."""
    step = max(1, n_bytes // _SHARE // cells.stored.row_bytes)
    return (slice(first, min(first + step, stop)) for first in range(begin, stop, step))


def _everything(cells: Cells, n_bytes: int) -> Iterator[tuple[slice, Array | slice]]:
    return ((piece, slice(None)) for piece in _pieces(cells, 0, len(cells.order), n_bytes))


def _visits(cells: Cells, probed: Array, n_bytes: int) -> Iterator[tuple[slice, Array]]:
    """Yield every cell that somebody visits, in pieces, with its visitors."""
    visits = probed.ravel().argsort(kind="stable")
    visited, starts = np.unique(probed.ravel()[visits], return_index=True)
    for cell, visitors in zip(visited, np.split(visits // probed.shape[1], starts[1:]), strict=True):
        for piece in _pieces(cells, int(cells.starts[cell]), int(cells.starts[cell + 1]), n_bytes):
            yield piece, visitors


def _among(
    stored: ScratchMatrix, asking: Array, own: Array, n_neighbors: int, parts: Iterable[tuple[slice, Array | slice]]
) -> tuple[Array, Array]:
    """Find the nearest of the rows in some parts of the file, each part for those who visit it."""
    distances = np.full((len(asking), n_neighbors + 1), np.inf)
    places = np.full(distances.shape, -1, dtype=np.int64)
    for part, visitors in parts:
        members = stored[part]
        near, numbers = _compared(members, min(n_neighbors + 1, len(members)), asking[visitors])
        listed = np.concatenate([distances[visitors], near], axis=1)
        numbered = np.concatenate([places[visitors], numbers + part.start], axis=1)
        distances[visitors], places[visitors] = nearest_listed(listed, numbered, n_neighbors + 1, None)
    return nearest_listed(distances, places, n_neighbors, own)


def _compared(members: Array, count: int, asking: Array) -> tuple[Array, Array]:
    """Find the nearest of a few rows for each of a few others, without the preparations that pay for many."""
    if len(members) * len(asking) > _MANY_PAIRS:
        return exact(members, count, asking)
    center = members.mean(axis=0, dtype=np.float64)  # around it a cell is small: products round little
    there, here = members - center, asking - center
    table = np.square(there).sum(axis=1) - 2 * (here @ there.T)
    near = np.argpartition(table, count - 1, axis=1)[:, :count]
    squares = np.take_along_axis(table, near, axis=1) + np.square(here).sum(axis=1)[:, None]
    return np.sqrt(np.maximum(squares, 0.0)), near
