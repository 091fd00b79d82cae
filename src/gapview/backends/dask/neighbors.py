"""Nearest neighbours across blocks: all pairs of blocks up to a size, the nearest cells of every sample beyond it.

Cells are defined by centres that k-means finds on a sample. Neighbouring cells are assigned to *regions*, about as many
as there are blocks. A task holds one region: its members, and the samples of other regions whose nearest cells are in
it. So most samples are sent to two or three tasks, whatever the number of cells that they visit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...graph.knn import has_unit_rows
from ...graph.neighbors import Search, SearchReport
from ...graph.neighbors import search as _search
from ...graph.neighbors.distances import common_exponent
from ...graph.neighbors.exact import RecallSample, sampled_rows
from ...graph.neighbors.search import number_of_cells
from ...scaling import row_lengths, times_power
from ...utils.messages import warn_user
from ...utils.types import Array
from ...views import Views
from . import cells
from .graph import link_blocks
from .tasks import Tasks, exchange_group, exchange_parts, split_by_block, split_into_waves
from .views import BlockedViews

__all__ = ["BlockedPoints", "find_neighbors", "knn_blocks"]

_N_TOGETHER = 4096  # rows that are compared with others in one task
_MOST_CELLS = 4096  # each of them is known to all tasks
_N_PER_CELL = 32  # rows by which the centre of a cell is fitted


class BlockedPoints:
    """The rows of one view that can have neighbours, in blocks of points, divided by a common power of 2."""

    def __init__(self, tasks: Tasks, scaled: BlockedViews, view: int) -> None:
        directions, largest = zip(*tasks.collect("describe", _describe, scaled.blocks, view=view), strict=True)
        common = {"directions": all(directions), "exponent": common_exponent([np.array([largest])])}
        self.tasks, self.starts = tasks, scaled.starts
        self.blocks = tasks.map("points", _points, scaled.blocks, scaled.starts[:-1].tolist(), view=view, **common)
        self.counts = np.array(tasks.collect("describe", _count, self.blocks))

    @property
    def n_points(self) -> int:
        """Number of points."""
        return int(self.counts.sum())


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


def knn_blocks(tasks: Tasks, scaled: BlockedViews, n_neighbors: Sequence[int], search: Search) -> list[list[Any]]:
    """Build the neighbour graph of every view, with a handle for each block; see :func:`gapview.graph.knn_graph`."""
    graphs = []
    for k, count in enumerate(n_neighbors):
        found = find_neighbors(BlockedPoints(tasks, scaled, k), count, search)
        graphs.append(link_blocks(tasks, found, scaled.starts, scaled.dtype))
    return graphs


def find_neighbors(points: BlockedPoints, n_neighbors: int, search: Search) -> list[Any]:
    """Find the neighbours of all points; return for every block a handle of (samples, their neighbours)."""
    n_points = points.n_points
    count = min(n_neighbors, n_points - 1)
    if count < 1:
        return points.tasks.map("find-neighbours", _without_neighbors, points.blocks)
    if not search.is_exact(n_points, n_points, _search.EXACT_PAIRS):
        found = _search_cells(points, count, search)
        if found is not None:
            return found
        warn_user(
            f"No cells hold {search.recall:.0%} of the neighbours of {n_points} samples, so that all their distances "
            "are computed, block by block. Fewer may do: search=Search(recall=...)."
        )
    search.done.append(SearchReport("exact", "scikit-learn", n_points, n_points, count))
    return _search_all(points, count)


def _without_neighbors(points: cells.Points) -> tuple[Array, Array]:
    return points[1], np.empty((len(points[1]), 0), dtype=np.int64)


def _search_all(points: BlockedPoints, count: int) -> list[Any]:
    """Compare every block with all others, small ones taken together."""
    tasks, blocks = points.tasks, points.blocks
    groups: list[list[int]] = []
    for number, size in enumerate(points.counts):
        if not groups or points.counts[groups[-1]].sum() + size > _N_TOGETHER:
            groups.append([])
        groups[-1].append(number)
    others = tasks.map("points", cells.stack, [[blocks[number] for number in group] for group in groups])
    found = []
    for queries in blocks:
        parts = tasks.map("find-neighbours", cells.nearest_in_block, [queries] * len(others), others, count=count)
        found.append(tasks.submit("find-neighbours-merge", _merge, queries, parts))
    return found


def _merge(queries: cells.Points, parts: Any) -> tuple[Array, Array]:
    return queries[1], cells.merge_found(parts)[1]


def _search_cells(points: BlockedPoints, count: int, search: Search) -> list[Any] | None:
    """Find most of the nearest neighbours; None if more than half of the cells are needed for the recall."""
    tasks, blocks, n_blocks = points.tasks, points.blocks, len(points.blocks)
    n_cells = min(number_of_cells(points.n_points), _MOST_CELLS)
    seeds, share = [search.seed + 1000 * block for block in range(n_blocks)], n_cells * _N_PER_CELL / points.n_points
    drawn = tasks.map("cells-sample", cells.draw_points, blocks, seeds, share=share)
    centers = tasks.submit("cells", cells.find_centers, drawn, n_cells, search.seed)
    sizes = sum(tasks.collect("cells-count", cells.cell_sizes, blocks, [centers] * n_blocks))
    n_cells, region = len(sizes), cells.regions_of(tasks.gather(centers), sizes, n_blocks)
    chosen = sampled_rows(points.n_points, search.seed)
    places = split_by_block(chosen, np.concatenate([[0], np.cumsum(points.counts)]))
    queries = tasks.submit("true-neighbours", cells.stack, tasks.map("true-neighbours", _select, blocks, places))
    truth = _true_neighbors(points, queries, centers, count)
    planned = tasks.submit("cells-of-neighbours", cells.plan_probes, queries, truth, centers, search.recall)
    n_probes, sample = tasks.gather(planned)
    while n_probes is not None:
        found = _search_regions(points, count, centers, region, n_probes)
        distances = tasks.collect("recall", _distances_of, found, [sample] * n_blocks)
        recall = float(sample.hits(np.concatenate(distances)).mean())
        if recall >= search.recall:
            size = points.n_points, points.n_points, count
            search.done.append(SearchReport("approximate", "dask", *size, recall, n_cells, n_probes, count))
            return tasks.map("find-neighbours-merge", _without_distances, found)
        n_probes = math.ceil(1.5 * n_probes) if n_probes < n_cells // 3 else None
    return None


def _select(points: cells.Points, places: Array) -> cells.Points:
    return points[0][places], points[1][places]


def _distances_of(found: cells.Found, sample: RecallSample) -> Array:
    return found[1][np.isin(found[0], sample.rows)]


def _without_distances(found: cells.Found) -> tuple[Array, Array]:
    return found[0], found[2]


def _true_neighbors(points: BlockedPoints, queries: Any, centers: Any, count: int) -> Any:
    """Find the neighbours of a few samples by comparing them with all points."""
    repeated = [[handle] * len(points.blocks) for handle in (queries, centers)]
    parts = points.tasks.map(
        "true-neighbours", cells.true_neighbors, repeated[0], points.blocks, repeated[1], count=count
    )
    return points.tasks.reduce("true-neighbours", cells.merge_true, parts)


def _search_regions(points: BlockedPoints, count: int, centers: Any, region: Array, n_probes: int) -> list[Any]:
    """Send samples to regions, some regions at a time, compare them there, and return what was found to the blocks."""
    tasks, blocks, n_blocks = points.tasks, points.blocks, len(points.blocks)
    visited = tasks.map("to-regions", cells.cells_to_visit, blocks, [centers] * n_blocks, n_probes=n_probes)
    n_regions, n_workers = int(region.max()) + 1, len(tasks.groups(blocks))
    back: list[Any] = []
    for wave in split_into_waves([range(first, n_regions, n_workers) for first in range(min(n_workers, n_regions))]):
        sent = tasks.map("to-regions", cells.visits_by_region, blocks, visited, region=region, wave=wave)
        arrived = exchange_group(tasks, "to-regions", sent, len(wave))
        del sent
        back += tasks.map("find-neighbours", cells.search_region, arrived, count=count, starts=points.starts)
        del arrived
        tasks.wait(back)
    received = exchange_parts(tasks, "find-neighbours", back, n_blocks)
    found = tasks.map("find-neighbours-merge", cells.merge_regions, blocks, received, count=count)
    short = tasks.map("lonely", cells.points_with_few, blocks, found)
    if not sum(tasks.collect("lonely", _count, short)):
        return found
    queries = tasks.submit("lonely", cells.stack, short)
    truth = _true_neighbors(points, queries, centers, count)
    return tasks.map("lonely", cells.replace_found, found, [queries] * n_blocks, [truth] * n_blocks)
