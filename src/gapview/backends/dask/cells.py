"""Nearest neighbours within a block, and cells of near samples in two levels: the functions that run on the workers.

Points are pairs of arrays: rows, and the samples that the rows belong to, ascending within a block.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ...compute.engine import single_threaded
from ...graph.neighbors.cells import (
    Part,
    cell_centers,
    cell_ranks,
    nearest_centers,
    nearest_in_parts,
    nearest_others,
    visits,
)
from ...graph.neighbors.distances import smallest
from ...utils.types import Array
from .tasks import flatten, register_size

Points = tuple[Array, Array]
# Samples, distances of their neighbours, and the neighbours; −1 where there are none
Found = tuple[Array, Array, Array]

_FEW_CELLS = 1024  # with all of which points are compared
_N_RANKED = 16  # queries whose distances from all centres are held at a time


@single_threaded()  # the tasks use all cores
def nearest_in_block(queries: Points, points: Points, *, count: int) -> tuple[Array, Array]:
    """Return distances and samples of the nearest points other than the query; −1 where there are too few points."""
    return nearest_others(*queries, count, [(*points, slice(None))])


def count_points(points: Points) -> int:
    """Return the number of points."""
    return len(points[1])


def select(arrays: tuple[Array, ...], rows: Any) -> tuple[Array, ...]:
    """Return some of the rows of all arrays."""
    return tuple(array[rows] for array in arrays)


def stack(parts: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Concatenate tuples of arrays."""
    return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True)) if len(parts) > 1 else parts[0]


def index_type(n_samples: int) -> Any:
    """Return the smallest integer type for the numbers of samples."""
    return np.int32 if n_samples < 2**31 else np.int64


# -- cells in two levels ---------------------------------------------------------------------------------------


@register_size
@dataclass(frozen=True)
class Cells:
    """Centres of coarse cells, and of the cells within each of them."""

    coarse: Array
    centers: Array  # coarse cell by coarse cell
    edges: Array  # where the cells of every coarse cell begin
    region: Array  # of every cell

    def near(self, rows: Array, count: int, n_coarse: int) -> Array:
        """Return those within the nearest coarse cells that are nearest to every row, nearest first; −1 for none."""
        if n_coarse >= len(self.coarse) or len(self.centers) <= _FEW_CELLS:
            return nearest_centers(rows, self.centers, min(count, len(self.centers)))  # type: ignore[no-any-return]
        visited = nearest_centers(rows, self.coarse, n_coarse)
        numbers = np.arange(len(self.centers))
        inside = [slice(begin, end) for begin, end in pairwise(self.edges.tolist())]
        parts = (
            (self.centers[inside[cell]], numbers[inside[cell]], visitors)
            for cell, visitors in visits(visited, len(self.coarse))
        )
        distances, found = nearest_in_parts(rows, count, parts)
        return np.take_along_axis(found, np.argsort(distances, axis=1), axis=1)

    def coarse_of(self, cells: Array) -> Array:
        """Return the coarse cells that cells are in."""
        return np.searchsorted(self.edges, cells, side="right") - 1


@register_size
@dataclass(frozen=True)
class CoarseCells:
    """Centres of coarse cells, and the region that each of them is assigned to."""

    centers: Array
    region: Array


def draw_points(points: Points, seed: int, *, share: float) -> Array:
    """Return a random share of the rows of a block in single precision."""
    rows = points[0]
    n_drawn = min(len(rows), math.ceil(share * len(rows)))
    chosen = np.random.RandomState(seed).choice(len(rows), n_drawn, replace=False)
    return rows[np.sort(chosen)].astype(np.float32)


@single_threaded()
def find_coarse(drawn: Sequence[Array], n_cells: int, n_regions: int, seed: int) -> CoarseCells:
    """Return coarse cells, and assign neighbouring ones to regions."""
    rows = np.concatenate(drawn)
    centers = cell_centers(rows.copy(), n_cells, seed)
    sizes = np.bincount(nearest_centers(rows, centers, 1)[:, 0], minlength=len(centers))
    return CoarseCells(centers, regions_of(centers, sizes, n_regions))


@single_threaded()
def draw_by_region(
    points: Points, seed: int, coarse: CoarseCells, *, share: float, n_regions: int
) -> list[tuple[Array, Array]]:
    """Return for every region a random share of the rows that are in its coarse cells, and these cells."""
    rows = draw_points(points, seed, share=share)
    cells = nearest_centers(rows, coarse.centers, 1)[:, 0].astype(np.int32)
    return _split_at(coarse.region[cells], range(n_regions), rows, cells)


def _split_at(keys: Array, numbers: Sequence[int], *arrays: Array) -> list[Any]:
    """Return for every number the rows of the arrays that have it as key."""
    order = np.argsort(keys, kind="stable")
    arrays, edges = select(arrays, order), np.searchsorted(keys[order], [*numbers, numbers[-1] + 1])
    return [select(arrays, slice(*ends)) for ends in pairwise(edges.tolist())]


@single_threaded()
def find_cells(received: Any, number: int, coarse: CoarseCells, *, per_cell: float, seed: int) -> list[Array]:
    """Return for every coarse cell of a region the centres of the cells within it."""
    rows, cells = stack(flatten(received))
    found = []
    for cell in np.flatnonzero(coarse.region == number):
        own = rows[cells == cell]
        n_cells = max(1, round(len(own) / per_cell))
        found.append(cell_centers(own, n_cells, seed + int(cell)) if len(own) else coarse.centers[[cell]])
    return found


def join_cells(found: Sequence[Sequence[Array]], coarse: CoarseCells) -> Cells:
    """Return the cells of all regions."""
    of_regions = [iter(own) for own in found]
    centers = [next(of_regions[number]) for number in coarse.region]  # within a region, cells come in ascending order
    sizes = [len(own) for own in centers]
    edges = np.concatenate([[0], np.cumsum(sizes)])
    return Cells(coarse.centers, np.concatenate(centers).astype(np.float32), edges, np.repeat(coarse.region, sizes))


def count_cells(cells: Cells) -> int:
    """Return the number of cells."""
    return len(cells.centers)


@single_threaded()
def nearest_cells(points: Points, cells: Cells, *, count: int, n_coarse: int) -> Array:
    """Return the cells with the nearest centres to every point, nearest first; −1 where there are too few."""
    return cells.near(points[0], count, n_coarse).astype(np.int32)


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


@single_threaded()
def cells_of_neighbors(points: Points, truth: Sequence[Array], cells: Cells) -> Array:
    """Return the cells of those of the true neighbours that are in one block, and 0 for others."""
    found = np.zeros(truth[1].shape, dtype=np.int64)
    is_here = np.isin(truth[1], points[1])
    places, where = np.unique(np.searchsorted(points[1], truth[1][is_here]), return_inverse=True)
    if len(places):
        found[is_here] = cells.near(points[0][places], 1, len(cells.coarse))[where, 0]
    return found


@single_threaded()
def true_cell_ranks(queries: Points, found: Array, cells: Cells) -> tuple[Array, Array]:
    """Return the ranks of the cells of the true neighbours, and those of their coarse cells."""
    edges = range(0, len(found), _N_RANKED)
    parts = [slice(begin, begin + _N_RANKED) for begin in edges]
    ranks = [cell_ranks(queries[0][part], cells.centers, found[part]) for part in parts]
    coarse = [cell_ranks(queries[0][part], cells.coarse, cells.coarse_of(found[part])) for part in parts]
    return np.concatenate(ranks), np.concatenate(coarse)


# -- search in regions -----------------------------------------------------------------------------------------


def visits_by_region(points: Points, visited: Array, cells: Cells, *, wave: Sequence[int]) -> list[Found]:
    """Return for some regions the rows that visit their cells, the samples, and these cells; other cells are −1."""
    place = np.full(1 + max(int(cells.region.max()), *wave), -1)
    place[wave] = range(len(wave))
    where = np.where(visited >= 0, place[cells.region[visited]], -1)
    visitor, column = np.nonzero(where >= 0)
    number, rows = np.divmod(np.unique(where[visitor, column] * len(visited) + visitor), max(1, len(visited)))
    inside = np.where(where[rows] == number[:, None], visited[rows], np.int32(-1))
    edges = np.searchsorted(number, np.arange(len(wave) + 1)).tolist()
    sent = points[0][rows], points[1][rows], inside
    return [select(sent, slice(*ends)) for ends in pairwise(edges)]  # type: ignore[misc]


@single_threaded()
def search_region(received: Any, received_members: Any = None, *, count: int, n_samples: int) -> Found:
    """Compare visitors with the members of the cells that they visit; by default these are among the visitors."""
    rows, samples, visited = stack(flatten(received))
    points, numbers, homes = (rows, samples, visited) if received_members is None else stack(flatten(received_members))
    members = np.flatnonzero(homes[:, 0] >= 0)  # a sample is a member of its nearest cell, the first one
    members = members[np.argsort(homes[members, 0], kind="stable")]

    def parts() -> Iterator[Part]:
        visitor, place = np.nonzero(visited >= 0)
        cells = visited[visitor, place]
        order = np.argsort(cells, kind="stable")
        for own in np.split(order, np.flatnonzero(np.diff(cells[order])) + 1):
            if len(own):
                ends = np.searchsorted(homes[members, 0], [cells[own[0]], cells[own[0]] + 1])
                here = members[slice(*ends)]
                yield points[here], numbers[here], visitor[own]

    distances, found = nearest_others(rows, samples, count, parts())
    order = np.argsort(samples, kind="stable")
    return samples[order], distances[order], found[order].astype(index_type(n_samples))


def found_by_block(found: Found, *, starts: Array) -> list[Found]:
    """Return for every block what was found for its samples."""
    edges = pairwise(np.searchsorted(found[0], starts).tolist())
    return [select(found, slice(begin, end)) for begin, end in edges]  # type: ignore[misc]


def merge_regions(points: Points, before: Found | None, received: Any, *, count: int) -> Found:
    """Return the nearest neighbours of the samples of a block among those found in regions, and those before."""
    parts = flatten(received)
    own, far, near = stack(parts if before is None else [*parts, before])
    order = np.argsort(own, kind="stable")
    rows = np.searchsorted(points[1], own[order])
    visit = np.arange(len(rows)) - np.searchsorted(rows, rows)  # of several regions that a sample visits
    shape = len(points[1]), 1 + int(visit.max(initial=0)), count
    distances, found = np.full(shape, np.inf), np.full(shape, -1)
    distances[rows, visit], found[rows, visit] = far[order], near[order]
    flat = shape[0], shape[1] * count
    nearest, kept = smallest(distances.reshape(flat), count)
    return points[1], nearest, np.take_along_axis(found.reshape(flat), kept, axis=1)


def count_few(found: Found) -> int:
    """Return the number of samples whose cells hold fewer points than neighbours are searched."""
    return int(np.any(found[2] < 0, axis=1).sum())


def points_with_few(points: Points, found: Found) -> tuple[Array, ...]:
    """Return the points of a block that :func:`count_few` counts."""
    return select(points, np.any(found[2] < 0, axis=1))


def replace_found(found: Found, queries: Points, truth: Sequence[Array]) -> Found:
    """Return what was found in a block, with the true neighbours for the queries in it."""
    samples, distances, neighbors = found[0], found[1].copy(), found[2].copy()
    own = np.isin(queries[1], samples)
    rows = np.searchsorted(samples, queries[1][own])
    distances[rows], neighbors[rows] = truth[0][own], truth[1][own]
    return samples, distances, neighbors
