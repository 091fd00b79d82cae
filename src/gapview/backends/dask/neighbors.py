"""Nearest neighbours across blocks: all pairs of blocks up to a size, the nearest cells of every sample beyond it.

Cells are defined by centres that k-means finds on a sample. Neighbouring cells are assigned to *regions*, about as many
as there are blocks. A task holds one region: its members, and the samples of other regions whose nearest cells are in
it. So most samples are sent to two or three tasks, whatever the number of cells that they visit.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import getitem, itemgetter
from typing import Any

import numpy as np

from ...graph.knn import has_unit_rows
from ...graph.neighbors import Search
from ...graph.neighbors.cells import merge_nearest
from ...graph.neighbors.distances import common_exponent
from ...graph.neighbors.search import CellKernel, CellSetting, RecallSample, run_search
from ...scaling import row_lengths, times_power
from ...utils.types import Array
from ...views import Views
from . import cells
from .graph import link_blocks
from .tasks import Tasks, exchange_group, exchange_parts, split_by_block, split_into_waves
from .views import BlockedViews

_N_TOGETHER = 4096  # rows that are compared with others in one task
_MOST_CELLS = 4096  # each of them is known to all tasks
_N_PER_CELL = 32  # rows by which the centre of a cell is fitted


def knn_blocks(tasks: Tasks, scaled: BlockedViews, n_neighbors: Sequence[int], search: Search) -> list[list[Any]]:
    """Build the neighbour graph of every view, with a handle for each block; see :func:`gapview.graph.knn_graph`."""
    graphs = []
    for k, count in enumerate(n_neighbors):
        found = find_neighbors(tasks, scaled, k, count, search)
        graphs.append(link_blocks(tasks, found, scaled.starts, scaled.dtype))
    return graphs


def find_neighbors(tasks: Tasks, scaled: BlockedViews, view: int, n_neighbors: int, search: Search) -> list[Any]:
    """Find the neighbours of the rows of a view; return for every block a handle of (samples, their neighbours)."""
    kernel = BlockKernel(tasks, scaled, view, n_neighbors)
    if kernel.n_neighbors < 1:
        return tasks.map("find-neighbours", _without_neighbors, kernel.blocks)
    return run_search(kernel, search)  # type: ignore[no-any-return]


class BlockKernel(CellKernel):
    """The rows of one view that can have neighbours, in blocks of points, divided by a common power of 2."""

    engine, exact_engine = "dask", "scikit-learn"

    def __init__(self, tasks: Tasks, scaled: BlockedViews, view: int, n_neighbors: int) -> None:
        directions, largest = zip(*tasks.collect("describe", _describe, scaled.blocks, view=view), strict=True)
        common = {"directions": all(directions), "exponent": common_exponent([np.array([largest])])}
        self._tasks, self._starts, self._n_blocks = tasks, scaled.starts, len(scaled.blocks)
        self.blocks = tasks.map("points", _points, scaled.blocks, scaled.starts[:-1].tolist(), view=view, **common)
        self._counts = np.array(tasks.collect("describe", _count, self.blocks))
        self.n_points = self.n_queries = int(self._counts.sum())
        self.n_neighbors = min(n_neighbors, self.n_points - 1)

    def exact(self) -> list[Any]:
        """Compare every block with all others, small ones taken together."""
        groups: list[list[int]] = []
        for number, size in enumerate(self._counts):
            if not groups or self._counts[groups[-1]].sum() + size > _N_TOGETHER:
                groups.append([])
            groups[-1].append(number)
        others = self._tasks.map("points", cells.stack, [[self.blocks[number] for number in own] for own in groups])
        found = []
        for queries in self.blocks:
            pairs = [queries] * len(others), others
            parts = self._tasks.map("find-neighbours", cells.nearest_in_block, *pairs, count=self.n_neighbors)
            found.append(self._tasks.submit("find-neighbours-merge", _merge, queries, parts))
        return found

    def divide(self, n_cells: int, seed: int) -> None:
        """Fit the centres of the cells to a sample of the points, and assign neighbouring cells to regions."""
        tasks, blocks, n_cells = self._tasks, self.blocks, min(n_cells, _MOST_CELLS)
        seeds, share = [seed + 1000 * block for block in range(self._n_blocks)], n_cells * _N_PER_CELL / self.n_points
        drawn = tasks.map("cells-sample", cells.draw_points, blocks, seeds, share=share)
        self._centers = tasks.submit("cells", cells.find_centers, drawn, n_cells, seed)
        sizes = sum(tasks.collect("cells-count", cells.cell_sizes, blocks, [self._centers] * self._n_blocks))
        self.n_cells, self._region = len(sizes), cells.regions_of(tasks.gather(self._centers), sizes, self._n_blocks)

    def true_neighbors(self, rows: Array) -> tuple[Array, Any]:
        """Return distances, and handles of the queries and of their true neighbours."""
        tasks = self._tasks
        drawn = tasks.map("true-neighbours", cells.select, self.blocks, self._places(rows))
        queries = tasks.submit("true-neighbours", cells.stack, drawn)
        truth = self._truth(queries)
        return tasks.gather(tasks.submit("true-neighbours", getitem, truth, 0)), (queries, truth)

    def _places(self, rows: Array) -> list[Array]:
        """Return for every block the positions in it of some points."""
        return split_by_block(rows, np.concatenate([[0], np.cumsum(self._counts)]))

    def _truth(self, queries: Any) -> Any:
        """Find the neighbours of a few samples, and the cells of these, by comparing them with all points."""
        queries, centers = ([handle] * self._n_blocks for handle in (queries, self._centers))
        settings = {"count": self.n_neighbors}
        parts = self._tasks.map("true-neighbours", cells.true_neighbors, queries, self.blocks, centers, **settings)
        return self._tasks.reduce("true-neighbours", merge_nearest, parts)

    def cell_ranks(self, sample: RecallSample) -> Array:
        """Return the ranks of the cells of the true neighbours."""
        ranks = self._tasks.submit("cells-of-neighbours", cells.true_cell_ranks, *sample.neighbors, self._centers)
        return self._tasks.gather(ranks)  # type: ignore[no-any-return]

    def search(self, setting: CellSetting, rows: Array) -> tuple[list[Any], Array]:
        """Return for every block a handle of (samples, their neighbours), and the distances of some points."""
        found = self._search_regions(setting.n_probes)
        sampled = self._tasks.collect("recall", cells.select, found, self._places(rows))
        found = self._tasks.map("find-neighbours-merge", itemgetter(0, 2), found)
        return found, np.concatenate([distances for _, distances, _ in sampled])

    def _search_regions(self, n_probes: int) -> list[Any]:
        """Send points to regions, some regions at a time, compare them there, and send what was found to the blocks."""
        tasks, blocks, n_blocks, count = self._tasks, self.blocks, self._n_blocks, self.n_neighbors
        visited = tasks.map("to-regions", cells.nearest_cells, blocks, [self._centers] * n_blocks, count=n_probes)
        n_regions, n_workers = int(self._region.max()) + 1, len(tasks.groups(blocks))
        back: list[Any] = []
        of_workers = [range(first, n_regions, n_workers) for first in range(min(n_workers, n_regions))]
        for wave in split_into_waves(of_workers):
            sent = tasks.map("to-regions", cells.visits_by_region, blocks, visited, region=self._region, wave=wave)
            arrived = exchange_group(tasks, "to-regions", sent, len(wave))
            del sent
            back += tasks.map("find-neighbours", cells.search_region, arrived, count=count, starts=self._starts)
            del arrived
            tasks.wait(back)
        received = exchange_parts(tasks, "find-neighbours", back, n_blocks)
        found = tasks.map("find-neighbours-merge", cells.merge_regions, blocks, received, count=count)
        short = tasks.map("lonely", cells.points_with_few, blocks, found)
        if not sum(tasks.collect("lonely", _count, short)):
            return found
        queries = tasks.submit("lonely", cells.stack, short)
        truth = self._truth(queries)
        return tasks.map("lonely", cells.replace_found, found, [queries] * n_blocks, [truth] * n_blocks)


def _describe(views: Views, *, view: int) -> tuple[bool, float]:
    """Return whether all rows but those of zeros have unit length, and the largest absolute value."""
    matrix = views.matrices[view]
    return has_unit_rows(matrix), max(float(matrix.max(initial=0)), -float(matrix.min(initial=0)))


def _points(views: Views, begin: int, *, view: int, directions: bool, exponent: int) -> cells.Points:
    """Return rows and their samples; rows of zeros are left out among rows of unit length."""
    matrix, samples = times_power(views.matrices[view], -exponent), views.rows(view) + begin
    if directions and len(matrix):
        filled = row_lengths(matrix) > 0
        if not filled.all():
            return matrix[filled], samples[filled]
    return matrix, samples


def _count(points: cells.Points) -> int:
    return len(points[1])


def _merge(queries: cells.Points, parts: Any) -> tuple[Array, Array]:
    return queries[1], merge_nearest(parts)[1]


def _without_neighbors(points: cells.Points) -> tuple[Array, Array]:
    return points[1], np.empty((len(points[1]), 0), dtype=np.int64)
