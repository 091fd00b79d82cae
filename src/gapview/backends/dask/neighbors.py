"""Nearest neighbours across blocks: all pairs of blocks up to a size, the nearest cells of every sample beyond it.

Cells are defined in two levels. K-means on a sample of the points finds the centres of coarse cells. Neighbouring ones
are assigned to *regions*, at most 16 for each worker. Each region receives a sample of its points, and k-means finds
the centres of the cells within each of its coarse cells. So no task fits or compares all centres: a point is compared
with those in its nearest coarse cells.

A task holds one region: its members, and the samples of other regions whose nearest cells are in it. So most samples
are sent to two or three tasks, whatever the number of cells that they visit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import getitem
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
from .tasks import MOST_WAVES, Tasks, on_workers, send, split_by_block, split_into_waves, spread
from .views import BlockedViews

_N_TOGETHER = 4096  # rows that are compared with others in one task
POINTS_IN_CELL = 1500  # points in a cell where there are many: the work for each of them then stays the same
CELL_SAMPLE = 32  # rows by which the centre of a cell is fitted
_N_REGIONS = 16  # of each worker if there are few, else as many as there may be waves
_FEW_WORKERS = 8
_MOST_MERGES = 8  # of what was found in regions
_MERGED = 2**27  # bytes found on a worker that are not worth another merge
_LOST = 0.001  # share of the neighbours that may be lost by comparing points with few coarse cells


def knn_blocks(tasks: Tasks, scaled: BlockedViews, n_neighbors: Sequence[int], search: Search) -> list[list[Any]]:
    """Build the neighbour graph of every view, with a handle for each block; see :func:`gapview.graph.knn_graph`."""
    graphs = []
    for k, count in enumerate(n_neighbors):
        found = find_neighbors(tasks, scaled, k, count, search)
        graphs.append(link_blocks(tasks, found, scaled.starts, scaled.dtype))
    return graphs


def find_neighbors(tasks: Tasks, scaled: BlockedViews, view: int, n_neighbors: int, search: Search) -> list[Any]:
    """Find the neighbours of the rows of a view; return for every block a handle: samples first, neighbours last."""
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
        self.queries = self.blocks
        self._counts = np.array(tasks.collect("describe", cells.count_points, self.blocks))
        self.n_points = self.n_queries = int(self._counts.sum())
        self.n_neighbors = min(n_neighbors, self.n_points - 1)
        self._row_bytes = scaled.n_features[view] * scaled.dtype.itemsize

    def exact(self) -> list[Any]:
        """Compare every block with all others, small ones taken together."""
        groups: list[list[int]] = []
        for number, size in enumerate(self._counts):
            if not groups or self._counts[groups[-1]].sum() + size > _N_TOGETHER:
                groups.append([])
            groups[-1].append(number)
        others = self._tasks.map("points", cells.stack, [[self.blocks[number] for number in own] for own in groups])
        found = []
        for queries in self.queries:
            pairs = [queries] * len(others), others
            parts = self._tasks.map("find-neighbours", cells.nearest_in_block, *pairs, count=self.n_neighbors)
            found.append(self._tasks.submit("find-neighbours-merge", _merge, queries, parts))
        return found

    def divide(self, n_cells: int, seed: int) -> None:
        """Fit the centres of coarse cells, and of the cells within each, to samples of the points."""
        tasks, blocks, n_blocks = self._tasks, self.blocks, self._n_blocks
        self._homes = homes = tasks.located(blocks)
        n_cells = max(n_cells, self.n_points // POINTS_IN_CELL)
        n_regions = number_of_regions(n_blocks, len(homes))
        n_coarse = number_of_coarse_cells(n_cells, n_regions)
        seeds = [seed + 1000 * block for block in range(n_blocks)]
        drawn = tasks.map("cells-sample", cells.draw_points, blocks, seeds, share=self._share(n_coarse))
        coarse = tasks.submit("cells", cells.find_coarse, drawn, n_coarse, n_regions, seed)
        self._regions, share = spread(homes, n_regions), self._share(n_cells)
        settings = {"share": share, "n_regions": n_regions}
        of_blocks = blocks, [seed + 1 for seed in seeds], [coarse] * n_blocks
        received = send(tasks, "cells", cells.draw_by_region, homes, self._regions, *of_blocks, **settings)
        settings = {"per_cell": share * self.n_points / n_cells, "seed": seed}
        of_regions = received, list(range(n_regions)), [coarse] * n_regions
        self._cells = tasks.submit(
            "cells", cells.join_cells, tasks.map("cells", cells.find_cells, *of_regions, **settings), coarse
        )
        self.n_cells = tasks.gather(tasks.submit("cells", cells.count_cells, self._cells))

    def _share(self, n_cells: int) -> float:
        """Return the share of the points that are drawn to fit so many centres."""
        return min(1.0, n_cells * CELL_SAMPLE / self.n_points)

    def true_neighbors(self, rows: Array) -> tuple[Array, Any]:
        """Return distances, and handles of the queries and of their true neighbours."""
        tasks = self._tasks
        drawn = tasks.map("true-neighbours", cells.select, self.queries, self._places(rows))
        queries = tasks.submit("true-neighbours", cells.stack, drawn)
        truth = self._truth(queries)
        return tasks.gather(tasks.submit("true-neighbours", getitem, truth, 0)), (queries, truth)

    def _places(self, rows: Array) -> list[Array]:
        """Return for every block the positions in it of some points."""
        return split_by_block(rows, np.concatenate([[0], np.cumsum(self._counts)]))

    def _truth(self, queries: Any) -> Any:
        """Find the neighbours of a few samples by comparing them with all points."""
        lists = [queries] * self._n_blocks, self.blocks
        parts = self._on_blocks("true-neighbours", cells.nearest_in_block, *lists, count=self.n_neighbors)
        return self._tasks.reduce("true-neighbours", merge_nearest, parts, list(self._homes.values()))

    def _on_blocks(self, name: str, function: Callable[..., Any], *lists: Sequence[Any], **common: Any) -> list[Any]:
        """Call a function for each block on its worker, rather than on one that holds what is common to all."""
        return self._tasks.map_at(name, function, self._homes, *lists, **common)

    def cell_ranks(self, sample: RecallSample) -> Array:
        """Return the ranks of the cells of the true neighbours."""
        tasks, (queries, truth) = self._tasks, sample.neighbors
        shared = [truth] * self._n_blocks, [self._cells] * self._n_blocks
        parts = self._on_blocks("cells-of-neighbours", cells.cells_of_neighbors, self.blocks, *shared)
        found = tasks.reduce("cells-of-neighbours", sum, parts, list(self._homes.values()))
        ranks = tasks.submit("cells-of-neighbours", cells.true_cell_ranks, queries, found, self._cells)
        self._ranks, self._coarse_ranks = tasks.gather(ranks)
        return np.asarray(self._ranks)

    def _n_coarse(self, n_probes: int) -> int:
        """Return with how many coarse cells to compare points so that hardly any of the cells visited are lost."""
        visited = np.sort(self._coarse_ranks[self._ranks < n_probes])
        return int(visited[max(1, math.ceil(len(visited) - _LOST * self._ranks.size)) - 1]) + 1

    def search(self, setting: CellSetting, rows: Array) -> tuple[list[Any], Array]:
        """Return for every block a handle of (samples, their distances, neighbours), and the distances of some."""
        found = self._search_regions(setting.n_probes)
        sampled = self._tasks.collect("recall", cells.select, found, self._places(rows))
        return found, np.concatenate([distances for _, distances, _ in sampled])

    def _search_regions(self, n_probes: int) -> list[Any]:
        """Send points to regions, some regions at a time, compare them there, and send what was found to the blocks."""
        tasks, n_blocks, count = self._tasks, self._n_blocks, self.n_neighbors
        visited = self._visited(n_probes)
        n_visits = n_probes * self.n_points / len(self._homes)  # at most, to the regions of a worker
        waves = split_into_waves(list(self._regions.values()), n_visits * self._row_bytes)
        found: list[Any] = [None] * n_blocks
        for some in waves_together(waves, n_visits * found_bytes(count)):
            back: list[Any] = []
            for wave in some:
                back += self._search_wave(visited, wave)
                tasks.wait(back)
            by_block, held = cells.found_by_block, tasks.workers_of(back)
            received = send(tasks, "find-neighbours", by_block, held, self._homes, back, starts=self._starts)
            del back
            found = tasks.map("find-neighbours-merge", cells.merge_regions, self.queries, found, received, count=count)
            del received
            tasks.wait(found)
        if not sum(tasks.collect("lonely", cells.count_few, found)):
            return found
        short = tasks.map("lonely", cells.points_with_few, self.queries, found)
        queries = tasks.submit("lonely", cells.stack, short)
        truth = self._truth(queries)
        return tasks.map("lonely", cells.replace_found, found, [queries] * n_blocks, [truth] * n_blocks)

    def _visited(self, n_probes: int) -> list[Any]:
        """Return for every block a handle of the cells that its queries visit."""
        shared, near = [self._cells] * self._n_blocks, {"count": n_probes, "n_coarse": self._n_coarse(n_probes)}
        return self._tasks.map("to-regions", cells.nearest_cells, self.queries, shared, **near)

    def _sent(self, rows: list[Any], visited: list[Any], wave: Sequence[int]) -> list[Any]:
        """Send rows to those of some regions whose cells they visit."""
        of_blocks = rows, visited, [self._cells] * self._n_blocks
        receivers = on_workers(self._regions, wave)
        return send(self._tasks, "to-regions", cells.visits_by_region, self._homes, receivers, *of_blocks, wave=wave)

    def _search_wave(self, visited: list[Any], wave: Sequence[int]) -> list[Any]:
        """Return handles of what is found in some regions; the samples that visit a region include its members."""
        common = {"count": self.n_neighbors, "n_samples": self._starts[-1]}
        arrived = self._sent(self.queries, visited, wave)
        return self._tasks.map("find-neighbours", cells.search_region, arrived, **common)


def number_of_regions(n_blocks: int, n_workers: int) -> int:
    """Return the number of regions: the more workers, the more regions share a sample's neighbours."""
    return min(n_blocks, n_workers * (_N_REGIONS if n_workers <= _FEW_WORKERS else MOST_WAVES))


def number_of_coarse_cells(n_cells: int, n_regions: int) -> int:
    """Return the number of coarse cells: about as many as there are cells in each, and some in every region."""
    return min(n_cells, max(2 * round(math.sqrt(n_cells)), 2 * n_regions))


def found_bytes(n_neighbors: int) -> int:
    """Return the bytes of what is found for a sample in a region: distances, neighbours, and the sample."""
    return 12 * n_neighbors + 8


def waves_together(waves: list[list[int]], n_bytes: float) -> list[list[list[int]]]:
    """Return lists of waves after which what was found is merged, if that may be so many bytes in all on a worker."""
    size = math.ceil(len(waves) / max(1, min(_MOST_MERGES, math.ceil(n_bytes / _MERGED))))
    return [waves[begin : begin + size] for begin in range(0, len(waves), size)]


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


def _merge(queries: cells.Points, parts: Any) -> tuple[Array, ...]:
    return queries[1], *merge_nearest(parts)


def _without_neighbors(points: cells.Points) -> tuple[Array, Array]:
    return points[1], np.empty((len(points[1]), 0), dtype=np.int64)
