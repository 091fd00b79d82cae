"""Nearest neighbours within a block, and cells of near samples: the functions that run on the workers.

Points are pairs of arrays: rows, and the samples that the rows belong to, ascending within a block.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...compute.engine import single_threaded
from ...graph.neighbors.cells import Part, cell_centers, cell_ranks, merge_nearest, nearest_centers, nearest_others
from ...utils.types import Array
from .tasks import flatten

Points = tuple[Array, Array]
# Samples, distances of their neighbours, and the neighbours; −1 where there are none
Found = tuple[Array, Array, Array]


@single_threaded()  # the tasks use all cores
def nearest_in_block(queries: Points, points: Points, *, count: int) -> tuple[Array, Array]:
    """Return distances and samples of the nearest points other than the query; −1 where there are too few points."""
    return nearest_others(*queries, count, [(*points, slice(None))])


def select(arrays: tuple[Array, ...], rows: Array) -> tuple[Array, ...]:
    """Return some of the rows of all arrays."""
    return tuple(array[rows] for array in arrays)


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


@single_threaded()
def find_centers(drawn: Sequence[Array], n_cells: int, seed: int) -> Array:
    """Return the centres of the cells."""
    return cell_centers(np.concatenate(drawn), n_cells, seed)


@single_threaded()
def nearest_cells(points: tuple[Array, ...], centers: Array, *, count: int = 1) -> Array:
    """Return the cells with the nearest centres to every point, nearest first, as int16: there are at most 4096."""
    return nearest_centers(points[0], centers, count).astype(np.int16)  # type: ignore[no-any-return]


def cell_sizes(points: Points, centers: Array) -> Array:
    """Return the number of points of a block in every cell."""
    return np.bincount(nearest_cells(points, centers)[:, 0], minlength=len(centers))


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


def true_neighbors(queries: Points, points: Points, centers: Array, *, count: int) -> tuple[Array, Array, Array]:
    """Return distances, samples and cells of the nearest points of one block."""
    distances, found = nearest_in_block(queries, points, count=count)
    cells = np.zeros(found.shape, dtype=np.int16)
    near = select(points, np.searchsorted(points[1], found[found >= 0]))
    cells[found >= 0] = nearest_cells(near, centers)[:, 0]
    return distances, found, cells


@single_threaded()
def true_cell_ranks(queries: Points, truth: Sequence[Array], centers: Array) -> Array:
    """Return the ranks of the cells of the true neighbours."""
    return cell_ranks(queries[0], centers, truth[2])  # type: ignore[no-any-return]


# -- search in regions -----------------------------------------------------------------------------------------


def visits_by_region(points: Points, cells: Array, *, region: Array, wave: Sequence[int]) -> list[Found]:
    """Return for some regions the rows that visit their cells, the samples, and these cells; other cells are −1."""
    where = region.astype(np.int16)[cells]
    pieces = []
    for number in wave:
        inside = where == number
        visits = inside.any(axis=1)
        pieces.append((points[0][visits], points[1][visits], np.where(inside[visits], cells[visits], np.int16(-1))))
    return pieces


@single_threaded()
def search_region(groups: Sequence[Sequence[Found]], *, count: int, starts: Array) -> list[Found]:
    """Compare visitors with the members of the cells that they visit; return what was found by block of the visitor."""
    rows, samples, visited = stack(flatten(groups))

    def parts() -> Iterator[Part]:
        visitor, place = np.nonzero(visited >= 0)
        cells = visited[visitor, place]
        order = np.argsort(cells, kind="stable")
        for visits in np.split(order, np.flatnonzero(np.diff(cells[order])) + 1):
            members = visitor[visits][place[visits] == 0]  # a sample is a member of its nearest cell, the first one
            yield rows[members], samples[members], visitor[visits]

    distances, found = nearest_others(rows, samples, count, parts())
    found = found.astype(index_type(starts[-1]))
    order = np.argsort(samples, kind="stable")
    blocks = np.split(order, np.searchsorted(samples[order], starts[1:-1]))
    return [(samples[own], distances[own], found[own]) for own in blocks]


def merge_regions(points: Points, groups: Sequence[Sequence[Found]], *, count: int) -> Found:
    """Return the nearest neighbours of the samples of a block among those found in all regions."""
    shape = len(points[1]), count
    distances, found = np.full(shape, np.inf), np.full(shape, -1)
    for own, far, near in flatten(groups):
        rows = np.searchsorted(points[1], own)
        distances[rows], found[rows] = merge_nearest([(distances[rows], found[rows]), (far, near)])
    return points[1], distances, found


def points_with_few(points: Points, found: Found) -> tuple[Array, ...]:
    """Return the points of a block whose cells hold fewer points than neighbours are searched."""
    return select(points, np.any(found[2] < 0, axis=1))


def replace_found(found: Found, queries: Points, truth: Sequence[Array]) -> Found:
    """Return what was found in a block, with the true neighbours for the queries in it."""
    samples, distances, neighbors = found[0], found[1].copy(), found[2].copy()
    own = np.isin(queries[1], samples)
    rows = np.searchsorted(samples, queries[1][own])
    distances[rows], neighbors[rows] = truth[0][own], truth[1][own]
    return samples, distances, neighbors
