"""Nearest neighbours within a block, and cells of near samples: the functions that run on the workers.

Points are pairs of arrays: rows, and the samples that the rows belong to, ascending within a block.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...compute.engine import single_threaded
from ...graph.neighbors import Search, nearest
from ...graph.neighbors.distances import nearest_listed
from ...graph.neighbors.exact import RecallSample, fewest_probes
from ...utils.types import Array
from ..cells import cell_centers
from .tasks import flatten

Points = tuple[Array, Array]
Found = tuple[
    Array, Array, Array
]  # samples, distances of their neighbours, and the neighbours; −1 where there are none

_EXACT = Search(method="exact")


def nearest_in_block(queries: Points, points: Points, *, count: int) -> tuple[Array, Array]:
    """Return distances and samples of the nearest points other than the query; −1 where there are too few points."""
    rows, samples = points
    distances, found = _nothing_found(len(queries[1]), count)
    most = min(count + 1, len(rows))  # one more, since the query may be among the points
    if not most or not len(distances):
        return distances, found
    with single_threaded():  # the tasks use all cores
        near, places = nearest(rows, most, queries[0], search=_EXACT)
    kept = min(count, most)
    distances[:, :kept], found[:, :kept] = nearest_listed(near, samples[places], kept, queries[1])
    return distances, found


def _nothing_found(n_queries: int, count: int) -> tuple[Array, Array]:
    return np.full((n_queries, count), np.inf), np.full((n_queries, count), -1, dtype=np.int64)


def merge_found(parts: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the nearest of the neighbours found in several blocks for the same queries."""
    distances, found = (np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True))
    return nearest_listed(distances, found, parts[0][0].shape[1], None)


def stack(parts: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Concatenate tuples of arrays."""
    return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True)) if len(parts) > 1 else parts[0]


def index_type(n_samples: int) -> Any:
    """Return the smallest integer type for the numbers of samples."""
    return np.int32 if n_samples < 2**31 else np.int64


# -- cells and regions -----------------------------------------------------------------------------------------


def draw_points(points: Points, seed: int, *, share: float) -> Array:
    """Return a random share of the rows of a block in single precision."""
    rows = points[0]
    n_drawn = min(len(rows), math.ceil(share * len(rows)))
    chosen = np.random.RandomState(seed).choice(len(rows), n_drawn, replace=False)
    return rows[np.sort(chosen)].astype(np.float32)


def find_centers(drawn: Sequence[Array], n_cells: int, seed: int) -> Array:
    """Return the centres of the cells, at most one for each distinct row."""
    rows = np.concatenate(drawn)
    distinct = np.unique(rows, axis=0) if len(rows) < 10 * n_cells else rows
    with single_threaded():
        return cell_centers(rows, min(n_cells, len(distinct)), seed)


def nearest_cells(rows: Array, centers: Array, count: int) -> Array:
    """Return the cells with the nearest centres to every row, nearest first."""
    if not len(rows):
        return np.empty((0, count), dtype=np.intp)
    with single_threaded():
        return np.asarray(nearest(centers, count, rows.astype(np.float32), search=_EXACT)[1])


def cell_sizes(points: Points, centers: Array) -> Array:
    """Return the number of points of a block in every cell."""
    return np.bincount(nearest_cells(points[0], centers, 1).ravel(), minlength=len(centers))


def regions_of(centers: Array, sizes: Array, n_regions: int) -> Array:
    """Assign neighbouring cells to regions with about as many samples each, by halving along the widest direction.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.backends.dask.cells import regions_of
    >>> regions_of(np.array([[0.0], [9.0], [1.0], [8.0]]), np.ones(4), 2)
    array([0, 1, 0, 1])
    """
    region = np.zeros(len(centers), dtype=np.intp)
    _halve(centers.astype(np.float64), np.asarray(sizes, dtype=float), np.arange(len(centers)), 0, n_regions, region)
    return region


def _halve(centers: Array, sizes: Array, cells: Array, first: int, n_regions: int, region: Array) -> None:
    if n_regions <= 1 or len(cells) <= 1:
        region[cells] = first
        return
    moved = centers[cells] - centers[cells].mean(axis=0)
    direction = np.linalg.svd(moved, full_matrices=False)[2][0]
    direction = direction * np.sign(direction[np.argmax(np.abs(direction))])
    cells = cells[np.argsort(moved @ direction, kind="stable")]
    left = n_regions // 2
    weight = np.cumsum(sizes[cells])
    cut = int(np.clip(np.searchsorted(weight, weight[-1] * left / n_regions) + 1, 1, len(cells) - 1))
    _halve(centers, sizes, cells[:cut], first, left, region)
    _halve(centers, sizes, cells[cut:], first + left, n_regions - left, region)


# -- true neighbours of a sample of queries --------------------------------------------------------------------


def true_neighbors(queries: Points, points: Points, centers: Array, *, count: int) -> Found:
    """Return distances, samples and cells of the nearest points of one block."""
    distances, found = nearest_in_block(queries, points, count=count)
    cells = np.full(found.shape, -1, dtype=np.intp)
    rows = points[0][np.searchsorted(points[1], found[found >= 0])]
    cells[found >= 0] = nearest_cells(rows, centers, 1).ravel()
    return distances, found, cells


def merge_true(parts: Sequence[Found]) -> list[Array]:
    """Return the same for the nearest points of several blocks."""
    arrays = [np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True)]
    order = np.argsort(arrays[0], axis=1, kind="stable")[:, : parts[0][0].shape[1]]
    return [np.take_along_axis(array, order, axis=1) for array in arrays]


def plan_probes(queries: Points, truth: Found, centers: Array, recall: float) -> tuple[int | None, RecallSample]:
    """Return how many cells to search for the recall, and the sample by which the recall is measured."""
    ordered = nearest_cells(queries[0], centers, len(centers))
    return fewest_probes(ordered, truth[2], recall), RecallSample(queries[1], truth[0][:, -1])


# -- search in regions -----------------------------------------------------------------------------------------


def cells_to_visit(points: Points, centers: Array, *, n_probes: int) -> Array:
    """Return the nearest cells of every row, first the cell that it belongs to."""
    return nearest_cells(points[0], centers, n_probes).astype(np.int16)  # there are at most 4096 cells


def visits_by_region(points: Points, cells: Array, *, region: Array, wave: Sequence[int]) -> list[Found]:
    """Return for some regions the rows that visit their cells, the samples, and these cells; other cells are −1."""
    where = region.astype(np.int16)[cells]
    pieces = []
    for number in wave:
        inside = where == number
        visits = inside.any(axis=1)
        pieces.append((points[0][visits], points[1][visits], np.where(inside[visits], cells[visits], np.int16(-1))))
    return pieces


def search_region(groups: Sequence[Sequence[Found]], *, count: int, starts: Array) -> list[Found]:
    """Compare visitors with the members of the cells that they visit; return what was found by block of the visitor."""
    rows, samples, visited = stack(flatten(groups))
    distances, found = _nothing_found(len(samples), count)
    # A sample is a member of its nearest cell, the first one
    visitor, place = np.nonzero(visited >= 0)
    cells = visited[visitor, place]
    order = np.argsort(cells, kind="stable")
    for visits in np.split(order, np.flatnonzero(np.diff(cells[order])) + 1):
        if len(visits):
            own, members = visitor[visits], visitor[visits][place[visits] == 0]
            here = nearest_in_block((rows[own], samples[own]), (rows[members], samples[members]), count=count)
            distances[own], found[own] = merge_found([(distances[own], found[own]), here])
    order = np.argsort(samples, kind="stable")
    edges = np.searchsorted(samples[order], starts[1:-1])
    kind = index_type(starts[-1])
    return [(samples[own], distances[own], found[own].astype(kind)) for own in np.split(order, edges)]


def merge_regions(points: Points, groups: Sequence[Sequence[Found]], *, count: int) -> Found:
    """Return the nearest neighbours of the samples of a block among those found in all regions."""
    samples = points[1]
    distances, found = _nothing_found(len(samples), count)
    for own, far, near in flatten(groups):
        rows = np.searchsorted(samples, own)
        distances[rows], found[rows] = merge_found([(distances[rows], found[rows]), (far, near)])
    return samples, distances, found


def points_with_few(points: Points, found: Found) -> Points:
    """Return the points of a block whose cells hold fewer points than neighbours are searched."""
    short = (found[2] < 0).any(axis=1)
    return points[0][short], points[1][short]


def replace_found(found: Found, queries: Points, truth: Found) -> Found:
    """Return what was found in a block, with the true neighbours for the queries in it."""
    samples, distances, neighbors = found[0], found[1].copy(), found[2].copy()
    own = np.isin(queries[1], samples)
    rows = np.searchsorted(samples, queries[1][own])
    distances[rows], neighbors[rows] = truth[0][own], truth[1][own]
    return samples, distances, neighbors
