"""Nearest points of queries that are not these points, across blocks: all pairs up to a size, near cells beyond it.

Points and queries are rows of the same blocks. They are selected where they are used, and are not copied before: a
block may be large, and be searched in several ways. The plan is that of :mod:`gapview.backends.dask.neighbors`. A
point is sent to the region of its cell, and a query to the regions of the cells that it visits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import getitem, itemgetter
from typing import Any

import numpy as np

from ...compute.engine import single_threaded
from ...graph.neighbors import Search
from ...graph.neighbors.cells import Part, merge_nearest, nearest_others
from ...graph.neighbors.distances import common_exponent, nearest_listed
from ...graph.neighbors.search import CellKernel, CellSetting, RecallSample, run_search
from ...scaling import largest_magnitude, times_power
from ...utils.types import Array
from . import cells
from .tasks import Tasks, exchange_group, exchange_parts, flatten, split_by_block, split_into_waves

_N_TOGETHER = 4096  # queries that are compared with others in one task
_MOST_CELLS = 4096  # each of them is known to all tasks
_N_PER_CELL = 32  # rows by which the centre of a cell is fitted

Visits = tuple[Array, ...]  # rows, samples and cells of points; rows, samples and cells of queries


@dataclass(frozen=True)
class Chosen:
    """Some rows of a block, and the samples that they belong to, ascending."""

    rows: Any  # all rows of the block
    places: Array  # of the chosen ones
    samples: Array

    def points(self, part: Any = ..., *, exponent: int = 0) -> cells.Points:
        """Return copies of the rows, or of a part of them, divided by a power of 2; and the samples."""
        return times_power(self.rows[self.places[part]], -exponent), self.samples[part]


Select = Callable[[Any], Chosen]


def find_nearest(
    tasks: Tasks, blocks: list[Any], starts: Array, points: Select, queries: Select, count: int, search: Search
) -> list[Any]:
    """Find the nearest points of queries; no point is its own neighbour.

    Parameters
    ----------
    tasks : Tasks
        Runs the tasks.
    blocks : list
        For every block a handle, or a list of handles.
    starts : array
        First sample of every block, and the number of samples.
    points, queries : callables
        Select the points, and the queries, of a block.
    count : int
        How many points to find for every query.
    search : Search
        Settings of the search for neighbours.

    Returns
    -------
    list of handles
        For every block (samples of the queries, their points nearest first); −1 where there are no more.
    """
    kernel = QueryKernel(tasks, blocks, starts, points, queries, count)
    if not (kernel.n_points and kernel.n_queries and count):
        return tasks.map("find-neighbours", _nothing, blocks, select=queries)
    return run_search(kernel, search)  # type: ignore[no-any-return]


class QueryKernel(CellKernel):
    """Points and queries in blocks; see :func:`find_nearest`."""

    engine, exact_engine = "dask", "scikit-learn"

    def __init__(
        self, tasks: Tasks, blocks: list[Any], starts: Array, points: Select, queries: Select, count: int
    ) -> None:
        self._tasks, self._blocks, self._starts, self._n_blocks = tasks, blocks, starts, len(blocks)
        n_points, counts, largest = zip(
            *tasks.collect("describe", _describe, blocks, points=points, queries=queries), strict=True
        )
        exponent = common_exponent([np.array([[max(largest)]])])
        self._points: dict[str, Any] = {"select": points, "exponent": exponent}
        self._queries: dict[str, Any] = {"select": queries, "exponent": exponent}
        self._both: dict[str, Any] = {"points": points, "queries": queries, "exponent": exponent}
        self._counts = np.array(counts)
        self.n_points, self.n_queries = sum(n_points), int(self._counts.sum())
        self.n_neighbors = min(count, self.n_points)

    def exact(self) -> list[Any]:
        """Compare queries with the points of every block, those of small blocks taken together."""
        tasks, groups = self._tasks, [[0]]
        for number in range(1, self._n_blocks):
            if self._counts[[*groups[-1], number]].sum() > _N_TOGETHER:
                groups.append([])
            groups[-1].append(number)
        found = []
        for group in groups:
            own = [self._blocks[number] for number in group]
            queries = tasks.submit("find-neighbours", cells.stack, tasks.map("queries", _rows_of, own, **self._queries))
            merged = self._compare("find-neighbours", queries, cells.nearest_in_block)
            begins, ends = self._starts[group], self._starts[1:][group]
            pairs = [queries] * len(group), [merged] * len(group), begins.tolist(), ends.tolist()
            found += tasks.map("find-neighbours-merge", _of_block, *pairs)
            tasks.wait(found)  # so that the queries of one group are held at a time
        return found

    def _compare(self, name: str, queries: Any, compare: Callable[..., Any], *more: Any) -> Any:
        """Compare some queries with the points of every block; return a handle of the nearest of all."""
        arguments = [[handle] * self._n_blocks for handle in (queries, *more)]
        settings = self._points | {"compare": compare, "count": self.n_neighbors}
        parts = self._tasks.map(name, _compared, self._blocks, *arguments, **settings)
        return self._tasks.reduce(name, merge_nearest, parts)

    def divide(self, n_cells: int, seed: int) -> None:
        """Fit the centres of the cells to a sample of the points, and assign neighbouring cells to regions."""
        tasks, blocks, n_cells = self._tasks, self._blocks, min(n_cells, _MOST_CELLS)
        seeds, share = [seed + 1000 * block for block in range(self._n_blocks)], n_cells * _N_PER_CELL / self.n_points
        drawn = tasks.map("cells-sample", _draw, blocks, seeds, share=share, **self._points)
        self._centers = tasks.submit("cells", cells.find_centers, drawn, n_cells, seed)
        self._cells = tasks.map("cells", _cells_of, blocks, [self._centers] * self._n_blocks, count=1, **self._points)
        centers = tasks.gather(self._centers)
        self.n_cells = len(centers)
        sizes = sum(tasks.collect("cells-count", _cell_sizes, self._cells, n_cells=self.n_cells))
        self._region = cells.regions_of(centers, sizes, self._n_blocks)

    def true_neighbors(self, rows: Array) -> tuple[Array, Any]:
        """Return distances, and handles of the queries and of their true neighbours."""
        tasks = self._tasks
        drawn = tasks.map("true-neighbours", _some_rows, self._blocks, self._places(rows), **self._queries)
        queries = tasks.submit("true-neighbours", cells.stack, drawn)
        truth = self._truth(queries)
        return tasks.gather(tasks.submit("true-neighbours", getitem, truth, 0)), (queries, truth)

    def _places(self, rows: Array) -> list[Array]:
        """Return for every block the positions in it of some queries."""
        return split_by_block(rows, np.concatenate([[0], np.cumsum(self._counts)]))

    def _truth(self, queries: Any) -> Any:
        """Find the points of a few queries, and the cells of these, by comparing them with all points."""
        return self._compare("true-neighbours", queries, cells.true_neighbors, self._centers)

    def cell_ranks(self, sample: RecallSample) -> Array:
        """Return the ranks of the cells of the true neighbours."""
        ranks = self._tasks.submit("cells-of-neighbours", cells.true_cell_ranks, *sample.neighbors, self._centers)
        return self._tasks.gather(ranks)  # type: ignore[no-any-return]

    def search(self, setting: CellSetting, rows: Array) -> tuple[list[Any], Array]:
        """Return for every block a handle of (samples, their points), and the distances of some queries."""
        found = self._search_regions(setting.n_probes)
        sampled = self._tasks.collect("recall", cells.select, found, self._places(rows))
        found = self._tasks.map("find-neighbours-merge", itemgetter(0, 2), found)
        return found, np.concatenate([distances for _, distances, _ in sampled])

    def _search_regions(self, n_probes: int) -> list[Any]:
        """Send points and queries to regions, some at a time, and what was found to the blocks of the queries."""
        tasks, blocks, n_blocks, count = self._tasks, self._blocks, self._n_blocks, self.n_neighbors
        centers = [self._centers] * n_blocks
        visited = tasks.map("to-regions", _cells_of, blocks, centers, count=n_probes, **self._queries)
        n_regions, n_workers = int(self._region.max()) + 1, len(tasks.groups(visited))
        back: list[Any] = []
        of_workers = [range(first, n_regions, n_workers) for first in range(min(n_workers, n_regions))]
        for wave in split_into_waves(of_workers):
            common = self._both | {"region": self._region, "wave": wave}
            sent = tasks.map("to-regions", _visits_by_region, blocks, self._cells, visited, **common)
            arrived = exchange_group(tasks, "to-regions", sent, len(wave))
            del sent
            back += tasks.map("find-neighbours", _search_region, arrived, count=count, starts=self._starts)
            del arrived
            tasks.wait(back)
        received = exchange_parts(tasks, "find-neighbours", back, n_blocks)
        found = tasks.map("find-neighbours-merge", _merged, blocks, received, count=count, **self._queries)
        short = tasks.map("lonely", _rows_with_few, blocks, found, **self._queries)
        if not sum(tasks.collect("lonely", _n_points, short)):
            return found
        queries = tasks.submit("lonely", cells.stack, short)
        truth = self._truth(queries)
        return tasks.map("lonely", cells.replace_found, found, [queries] * n_blocks, [truth] * n_blocks)


# -- on the workers --------------------------------------------------------------------------------------------


def _describe(block: Any, *, points: Select, queries: Select) -> tuple[int, int, float]:
    """Return the numbers of points and of queries, and the largest absolute value."""
    chosen = points(block), queries(block)
    largest = max(largest_magnitude(own.points()[0]) for own in chosen)
    return len(chosen[0].samples), len(chosen[1].samples), largest


def _nothing(block: Any, *, select: Select) -> tuple[Array, Array]:
    samples = select(block).samples
    return samples, np.empty((len(samples), 0), dtype=np.int64)


def _rows_of(block: Any, *, select: Select, exponent: int) -> cells.Points:
    return select(block).points(exponent=exponent)


def _some_rows(block: Any, part: Any, *, select: Select, exponent: int) -> cells.Points:
    return select(block).points(part, exponent=exponent)


def _n_points(points: cells.Points) -> int:
    return len(points[1])


def _compared(
    block: Any,
    queries: cells.Points,
    *more: Any,
    select: Select,
    exponent: int,
    compare: Callable[..., Any],
    count: int,
) -> Any:
    return compare(queries, select(block).points(exponent=exponent), *more, count=count)


def _of_block(queries: cells.Points, merged: Sequence[Array], begin: int, end: int) -> tuple[Array, Array]:
    own = slice(*np.searchsorted(queries[1], [begin, end]))
    return queries[1][own], _ordered(merged[0][own], merged[1][own])[1]


def _ordered(distances: Array, found: Array) -> tuple[Array, Array]:
    """Return distances and points of every query, nearest first."""
    return nearest_listed(distances, found, distances.shape[1], None)


def _draw(block: Any, seed: int, *, share: float, select: Select, exponent: int) -> Array:
    return cells.draw_points(select(block).points(exponent=exponent), seed, share=share)


def _cells_of(block: Any, centers: Array, *, count: int, select: Select, exponent: int) -> Array:
    return cells.nearest_cells(select(block).points(exponent=exponent), centers, count=count)


def _cell_sizes(own: Array, *, n_cells: int) -> Array:
    return np.bincount(own[:, 0], minlength=n_cells)


def _visits_by_region(
    block: Any, own: Array, visited: Array, *, points: Select, queries: Select, exponent: int, region: Array, wave: Any
) -> list[Visits]:
    """Return for some regions their points, and the queries that visit their cells; other cells are −1."""
    members, visitors = points(block), queries(block)
    pieces: list[Visits] = []
    of_points, of_queries = region[own[:, 0]], region.astype(np.int16)[visited]
    for number in wave:
        here, inside = of_points == number, of_queries == number
        visits = inside.any(axis=1)
        near = np.where(inside[visits], visited[visits], np.int16(-1))
        pieces.append(
            (*members.points(here, exponent=exponent), own[here, 0], *visitors.points(visits, exponent=exponent), near)
        )
    return pieces


@single_threaded()  # the tasks use all cores
def _search_region(groups: Sequence[Sequence[Visits]], *, count: int, starts: Array) -> list[cells.Found]:
    """Compare queries with the points of the cells that they visit; return what was found by block of the query."""
    points, numbers, own, rows, samples, visited = cells.stack(flatten(groups))

    def parts() -> Iterator[Part]:
        visitor, place = np.nonzero(visited >= 0)
        cell = visited[visitor, place]
        order, by_cell = np.argsort(cell, kind="stable"), np.argsort(own, kind="stable")
        for visits in np.split(order, np.flatnonzero(np.diff(cell[order])) + 1):
            if len(visits):
                number = cell[visits[0]]
                members = by_cell[slice(*np.searchsorted(own[by_cell], [number, number + 1]))]
                yield points[members], numbers[members], visitor[visits]

    distances, found = nearest_others(rows, samples, count, parts())
    found = found.astype(cells.index_type(int(starts[-1])))
    order = np.argsort(samples, kind="stable")
    blocks = np.split(order, np.searchsorted(samples[order], starts[1:-1]))
    return [(samples[mine], distances[mine], found[mine]) for mine in blocks]


def _merged(block: Any, groups: Sequence[Sequence[cells.Found]], *, count: int, select: Select, exponent: int) -> Any:
    """Return what was found for the queries of a block in all regions, nearest first."""
    samples = select(block).samples
    _, distances, found = cells.merge_regions((samples, samples), groups, count=count)
    return samples, *_ordered(distances, found)


def _rows_with_few(block: Any, found: cells.Found, *, select: Select, exponent: int) -> cells.Points:
    return select(block).points(np.any(found[2] < 0, axis=1), exponent=exponent)
