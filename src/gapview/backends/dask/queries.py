"""Nearest points of queries that are not these points, across blocks.

Points and queries are rows of the same blocks. They are selected where they are used, and are not copied before: a
block may be large, and be searched in several ways. A point is sent to the region of its cell, and a query to the
regions of the cells that it visits; all else is as in :mod:`gapview.backends.dask.neighbors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...graph.neighbors import Search
from ...graph.neighbors.distances import common_exponent, nearest_listed
from ...graph.neighbors.search import CellSetting, run_search
from ...scaling import largest_magnitude, times_power
from ...utils.types import Array
from . import cells
from .neighbors import BlockKernel
from .tasks import Tasks, register_size


@register_size
class Chosen:
    """Some rows of a block, and the samples that they belong to, ascending: points that are copied when they are used.

    Parameters
    ----------
    rows : array, or an object that returns rows
        All rows of the block.
    places : int array
        The places of the chosen rows.
    samples : int array
        The samples of the chosen rows.
    exponent : int
        Rows are divided by this power of 2.
    """

    def __init__(self, rows: Any, places: Array, samples: Array, exponent: int = 0) -> None:
        self._rows, self._places, self._samples, self._exponent = rows, places, samples, exponent

    @property
    def nbytes(self) -> int:
        """Size besides that of the block."""
        return int(self._places.nbytes + self._samples.nbytes)

    def __getitem__(self, which: int) -> Array:
        return self._samples if which else self._copied()

    def __iter__(self) -> Iterator[Array]:
        return iter((self._copied(), self._samples))

    def _copied(self) -> Array:
        return np.asarray(times_power(np.asarray(self._rows[self._places]), -self._exponent))

    def divided(self, exponent: int) -> Chosen:
        """Return the same points with values divided by a power of 2."""
        return Chosen(self._rows, self._places, self._samples, exponent)

    def __reduce__(self) -> tuple[Any, ...]:  # the other rows are not sent
        return Chosen, (
            np.asarray(self._rows[self._places]),
            np.arange(len(self._places)),
            self._samples,
            self._exponent,
        )


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
        For every block: samples of the queries first, their points, nearest first, last; −1 where there are no more.
    """
    kernel = QueryKernel(tasks, blocks, starts, points, queries, count)
    if not (kernel.n_points and kernel.n_queries and count):
        return tasks.map("find-neighbours", _nothing, kernel.queries)
    return run_search(kernel, search)  # type: ignore[no-any-return]


class QueryKernel(BlockKernel):
    """Points and queries in blocks; see :func:`find_nearest`."""

    def __init__(
        self, tasks: Tasks, blocks: list[Any], starts: Array, points: Select, queries: Select, count: int
    ) -> None:
        self._tasks, self._starts, self._n_blocks = tasks, starts, len(blocks)
        chosen = [tasks.map("points", select, blocks) for select in (points, queries)]
        described = [tasks.collect("describe", _describe, own) for own in chosen]
        largest = max(largest for own in described for _, largest, _ in own)
        exponent = common_exponent([np.array([[largest]])])
        if exponent:
            chosen = [tasks.map("points", Chosen.divided, own, [exponent] * len(own)) for own in chosen]
        self.blocks, self.queries = chosen
        counts = [np.array([count for count, *_ in own]) for own in described]
        self._counts, self._row_bytes = counts[1], max(width for *_, width in described[0])
        self.n_points, self.n_queries = int(counts[0].sum()), int(counts[1].sum())
        self.n_neighbors = min(count, self.n_points)

    def exact(self) -> list[Any]:
        """Compare queries with all points."""
        return self._tasks.map("find-neighbours-merge", _ordered, super().exact())

    def search(self, setting: CellSetting, rows: Array) -> tuple[list[Any], Array]:
        """Return for every block a handle of (samples, distances, points), and the distances of some queries."""
        found, distances = super().search(setting, rows)
        return self._tasks.map("find-neighbours-merge", _ordered, found), distances

    def _visited(self, n_probes: int) -> list[Any]:
        shared = [self._cells] * self._n_blocks
        near = {"count": 1, "n_coarse": self._n_coarse(n_probes)}
        self._own = self._tasks.map("to-regions", cells.nearest_cells, self.blocks, shared, **near)
        return super()._visited(n_probes)

    def _search_wave(self, visited: list[Any], wave: Sequence[int]) -> list[Any]:
        """Return handles of what is found in some regions."""
        arrived = self._sent(self.queries, visited, wave), self._sent(self.blocks, self._own, wave)
        common = {"count": self.n_neighbors, "n_samples": self._starts[-1]}
        return self._tasks.map("find-neighbours", cells.search_region, *arrived, **common)


def _describe(chosen: Chosen) -> tuple[int, float, int]:
    """Return the number of rows, their largest absolute value, and the bytes of a row."""
    rows = chosen[0]
    return len(rows), largest_magnitude(rows), rows.shape[1] * rows.itemsize


def _nothing(chosen: Chosen) -> tuple[Array, Array]:
    return chosen[1], np.empty((len(chosen[1]), 0), dtype=np.int64)


def _ordered(found: Sequence[Array]) -> tuple[Array, ...]:
    """Return samples, distances and points of every query, nearest first."""
    samples, distances, points = found
    return samples, *nearest_listed(distances, points, points.shape[1], None)
