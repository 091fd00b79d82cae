"""Points divided into cells by faiss: candidates for neighbours come from the cells nearest to a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ...utils.types import Array

_N_ROWS = 2**16  # rows handed to faiss at a time
_N_PER_CELL = 64  # points on which the place of a cell is settled
_N_ITERATIONS = 10


@dataclass(frozen=True)
class Cells:
    """An index of faiss over rows of float32."""

    index: Any
    width: int  # of its rows: those of the points, made even by a column of zeros where codes need pairs
    n_cells: int
    is_coded: bool  # whether it holds the points in 4 bits for every 2 features, instead of the points themselves

    def candidates(self, rows: Array, n_probes: int, count: int) -> Array:
        """Find near points of every row, nearest first as far as the index can tell; −1 where there are no more."""
        self.index.nprobe = n_probes
        return np.asarray(self.index.search(_wide(rows, self.width), count)[1])

    def tour(self) -> Array:
        """Return the points cell by cell."""
        import faiss

        lists = self.index.invlists
        sizes = [lists.list_size(cell) for cell in range(self.n_cells)]
        return np.concatenate([faiss.rev_swig_ptr(lists.get_ids(c), size) for c, size in enumerate(sizes) if size])


def divide(points: Array, n_cells: int, *, is_coded: bool, seed: int) -> Cells:
    """Divide rows of float32 into cells.

    Codes are scanned ten times faster than rows and take a sixteenth of their memory, but give the distances only
    roughly: several times as many candidates are needed, which are then to be compared exactly.
    """
    import faiss

    width = points.shape[1] + (points.shape[1] % 2 if is_coded else 0)
    coarse = faiss.IndexFlatL2(width)
    if is_coded:
        index = faiss.IndexIVFPQFastScan(coarse, width, n_cells, width // 2, 4)
        _set(index.pq.cp, seed)
    else:
        index = faiss.IndexIVFFlat(coarse, width, n_cells)
    _set(index.cp, seed)
    n_seen = min(len(points), n_cells * _N_PER_CELL)
    seen = np.sort(np.random.RandomState(seed).choice(len(points), n_seen, replace=False))
    rows = _wide(points[seen], width)
    index.train_q1(len(rows), faiss.swig_ptr(rows), False, faiss.METRIC_L2)  # where the cells are
    with threadpool_limits(1, user_api="openmp"):  # codes of 2 features each: threads would only wait for each other
        index.train(rows)
    for begin in range(0, len(points), _N_ROWS):
        index.add(_wide(points[begin : begin + _N_ROWS], width))
    return Cells(index, width, n_cells, is_coded)


def _set(kmeans: Any, seed: int) -> None:
    kmeans.niter, kmeans.seed = _N_ITERATIONS, seed
    kmeans.min_points_per_centroid = 1  # it would print that it wants more


def squared_distances(points: Array, rows: Array, candidates: Array) -> Array:
    """Return the squared distances of float32 rows to their candidates; infinite where there is none (−1)."""
    import faiss

    rows, candidates = np.ascontiguousarray(rows), np.ascontiguousarray(candidates)
    squares = np.empty(candidates.shape, dtype=np.float32)
    pointers = [faiss.swig_ptr(array) for array in (squares, rows, points, candidates)]
    faiss.fvec_L2sqr_by_idx(*pointers, points.shape[1], *candidates.shape)
    return squares


def _wide(rows: Array, width: int) -> Array:
    if rows.shape[1] == width:
        return np.ascontiguousarray(rows)
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])))
