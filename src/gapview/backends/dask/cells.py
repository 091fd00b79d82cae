"""Neighbours by cells: every sample is compared with all samples of the cells nearest to it, wherever these came from.

Cells are laid around centres that k-means finds on a sample. Cells that lie together make a *region*, of which there
are about as many as blocks; a task holds one region: its members, and the visitors from elsewhere whose nearest cells
are in it. So most samples travel to two or three tasks however many cells they visit.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from ...compute import single_threaded
from ...graph.neighbors import Search, SearchReport, nearest
from ...graph.neighbors.exact import N_SAMPLED, RecallSample, fewest_probes
from ...graph.neighbors.search import number_of_cells
from ...utils.types import Array
from .exchange import crossed, exchanged, flat, waves_of
from .neighbors import _EXACT, Points, merged, nearest_within, stack, whole_numbers

__all__ = ["found_by_cells", "regions_of"]

_MOST_CELLS = 4096  # each of them is known to all tasks
_N_PER_CELL = 32  # rows on which the place of a cell is settled
_N_ITERATIONS = 10


@dataclass(frozen=True)
class _Plan:
    centers: Any  # a handle
    region: Array  # of every cell
    n_probes: int


def found_by_cells(points: Points, count: int, search: Search) -> list[Any] | None:
    """Find most of the nearest neighbours; None if no number of cells holds enough of them."""
    tasks, n_cells = points.tasks, min(number_of_cells(points.n_points), _MOST_CELLS)
    asking, truth = _truth(points, count, search.seed)
    seen = tasks.map(
        "cells-sample",
        _drawn,
        points.blocks,
        *_seeds(points, search.seed),
        share=n_cells * _N_PER_CELL / points.n_points,
    )
    centers = tasks.submit("cells", _centers, seen, n_cells, search.seed)
    n_cells = tasks.gather(tasks.submit("cells", len, centers))
    sizes = sum(tasks.gather(tasks.map("cells-count", _cell_sizes, points.blocks, [centers] * len(points.blocks))))
    home = tasks.gather(tasks.submit("cells-of-neighbours", _ranks_of, asking, truth, centers))
    n_probes = fewest_probes(home, n_cells, search.recall)
    region = regions_of(tasks.gather(centers), sizes, len(points.blocks))
    sample = tasks.gather(tasks.submit("cells-of-neighbours", _recall_sample, asking, truth))
    while n_probes is not None:
        found = _search(points, count, _Plan(centers, region, n_probes))
        recall = _recall(points, found, sample)
        if recall >= search.recall:
            size = points.n_points, points.n_points, count
            search.done.append(SearchReport("approximate", "dask", *size, recall, n_cells, n_probes, count))
            return tasks.map("find-neighbours-merge", _without_distances, found)
        n_probes = math.ceil(1.5 * n_probes) if n_probes < n_cells // 3 else None
    return None


def _seeds(points: Points, seed: int) -> list[list[int]]:
    return [[seed + 1000 * block for block in range(len(points.blocks))]]


# -- what is true of a sample ----------------------------------------------------------------------------------


def _truth(points: Points, count: int, seed: int) -> tuple[Any, Any]:
    """Choose some samples, and compare them with all others."""
    tasks, total = points.tasks, points.n_points
    chosen = np.sort(np.random.RandomState(seed).choice(total, min(N_SAMPLED, total), replace=False))
    edges = np.concatenate([[0], np.cumsum(points.counts)])
    places = [chosen[(chosen >= begin) & (chosen < end)] - begin for begin, end in pairwise(edges)]
    asking = tasks.submit("true-neighbours", stack, tasks.map("true-neighbours", _picked, points.blocks, places))
    return asking, _compared_with_all(points, asking, count)


def _compared_with_all(points: Points, asking: Any, count: int) -> Any:
    """Find the neighbours of a few samples exactly, and the rows of these neighbours."""
    parts = points.tasks.map("true-neighbours", _true_part, [asking] * len(points.blocks), points.blocks, count=count)
    return points.tasks.summed("true-neighbours", _true_merged, parts)


def _picked(points: tuple[Array, Array], places: Array) -> tuple[Array, Array]:
    return points[0][places], points[1][places]


def _true_part(asking: tuple[Array, Array], known: tuple[Array, Array], *, count: int) -> tuple[Array, Array, Array]:
    distances, found = nearest_within(asking, known, count=count)
    rows = np.zeros((*found.shape, known[0].shape[1]), dtype=known[0].dtype)
    rows[found >= 0] = known[0][np.searchsorted(known[1], found[found >= 0])]
    return distances, found, rows


def _true_merged(parts: Sequence[tuple[Array, Array, Array]]) -> tuple[Array, Array, Array]:
    distances, found, rows = (np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True))
    order = np.argsort(distances, axis=1, kind="stable")[:, : parts[0][0].shape[1]]
    taken = np.take_along_axis(rows, order[:, :, None], axis=1)
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(found, order, axis=1), taken


def _ranks_of(asking: tuple[Array, Array], truth: tuple[Array, Array, Array], centers: Array) -> Array:
    """Say for every true neighbour how many cells are nearer to the sample than the one that holds it."""
    order = _nearest_cells(asking[0], centers, len(centers))
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(len(centers)), order.shape), axis=1)
    shape = truth[1].shape
    cells = _nearest_cells(truth[2].reshape(-1, truth[2].shape[2]), centers, 1).reshape(shape)
    return np.take_along_axis(rank, cells, axis=1)


def _recall_sample(asking: tuple[Array, Array], truth: tuple[Array, Array, Array]) -> RecallSample:
    return RecallSample(asking[1], truth[0][:, -1])


def _recall(points: Points, found: list[Any], sample: RecallSample) -> float:
    parts = points.tasks.gather(points.tasks.map("recall", _distances_of, found, [sample.rows] * len(found)))
    return float(sample.hits(np.concatenate(parts)).mean())


def _distances_of(found: tuple[Array, Array, Array], samples: Array) -> Array:
    return found[1][np.isin(found[0], samples)]


def _without_distances(found: tuple[Array, Array, Array]) -> tuple[Array, Array]:
    return found[0], found[2]


# -- cells and regions -----------------------------------------------------------------------------------------


def _drawn(points: tuple[Array, Array], seed: int, *, share: float) -> Array:
    rows = points[0]
    n_drawn = min(len(rows), math.ceil(share * len(rows)))
    chosen = np.random.RandomState(seed).choice(len(rows), n_drawn, replace=False)
    return rows[np.sort(chosen)].astype(np.float32)


def _centers(seen: Sequence[Array], n_cells: int, seed: int) -> Array:
    rows = np.concatenate(seen)
    distinct = np.unique(rows, axis=0) if len(rows) < 10 * n_cells else rows
    n_cells = min(n_cells, len(distinct))
    with single_threaded(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # rows may repeat; some cells then stay empty
        fitted = KMeans(n_cells, init="random", n_init=1, max_iter=_N_ITERATIONS, random_state=seed).fit(rows)
    return np.asarray(fitted.cluster_centers_)


def _nearest_cells(rows: Array, centers: Array, count: int) -> Array:
    if not len(rows):
        return np.empty((0, count), dtype=np.intp)
    with single_threaded():
        return np.asarray(nearest(centers, count, rows.astype(np.float32), search=_EXACT)[1])


def _cell_sizes(points: tuple[Array, Array], centers: Array) -> Array:
    return np.bincount(_nearest_cells(points[0], centers, 1).ravel(), minlength=len(centers))


def regions_of(centers: Array, sizes: Array, n_regions: int) -> Array:
    """Put cells that lie together into regions of about as many samples each, by halving along the widest direction.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.backends.dask.cells import regions_of
    >>> regions_of(np.array([[0.0], [9.0], [1.0], [8.0]]), np.ones(4), 2)
    array([0, 1, 0, 1])
    """
    region = np.zeros(len(centers), dtype=np.intp)
    _halve(
        centers.astype(np.float64), np.asarray(sizes, dtype=np.float64), np.arange(len(centers)), 0, n_regions, region
    )
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


# -- the search ------------------------------------------------------------------------------------------------


def _search(points: Points, count: int, plan: _Plan) -> list[Any]:
    """Send samples to regions, some regions at a time, compare them there, and send what was found home."""
    tasks, n_blocks = points.tasks, len(points.blocks)
    probes = tasks.map("to-regions", _probed, points.blocks, [plan.centers] * n_blocks, n_probes=plan.n_probes)
    n_regions, n_workers = int(plan.region.max()) + 1, len(tasks.groups(points.blocks))
    back: list[Any] = []
    for wave in waves_of([range(first, n_regions, n_workers) for first in range(min(n_workers, n_regions))]):
        sent = tasks.map("to-regions", _by_region, points.blocks, probes, region=plan.region, wave=wave)
        arrived = crossed(tasks, "to-regions", sent, len(wave))
        del sent
        back += tasks.map("find-neighbours", _search_region, arrived, count=count, starts=points.starts)
        del arrived
        tasks.wait(back)
    home = exchanged(tasks, "find-neighbours", back, n_blocks)
    found = tasks.map("find-neighbours-merge", _brought_home, points.blocks, home, count=count)
    return _with_lonely(points, found, count)


def _probed(points: tuple[Array, Array], centers: Array, *, n_probes: int) -> Array:
    """Name the cells nearest to every row, the one it is a member of first."""
    return _nearest_cells(points[0], centers, n_probes).astype(np.int16)  # of which there are no more than 4096


def _by_region(
    points: tuple[Array, Array], probes: Array, *, region: Array, wave: Sequence[int]
) -> list[tuple[Array, Array, Array]]:
    """For some regions the rows that visit one of its cells, whose they are, and these cells; others are −1."""
    where = region.astype(np.int16)[probes]
    pieces = []
    for number in wave:
        inside = where == number
        visits = inside.any(axis=1)
        pieces.append((points[0][visits], points[1][visits], np.where(inside[visits], probes[visits], np.int16(-1))))
    return pieces


def _search_region(
    groups: Sequence[Sequence[tuple[Array, Array, Array]]], *, count: int, starts: Array
) -> list[tuple[Array, Array, Array]]:
    """Compare visitors with the members of the cells they visit; what was found is sorted by the block of who asked."""
    rows, samples, probes = stack(flat(groups))
    distances = np.full((len(samples), count), np.inf)
    found = np.full(distances.shape, -1, dtype=np.int64)
    # Who visits which cell; the nearest cell of a sample, its first, is the one it is a member of
    who, place = np.nonzero(probes >= 0)
    cells = probes[who, place]
    order = np.argsort(cells, kind="stable")
    edges = np.flatnonzero(np.diff(cells[order])) + 1
    for visits in np.split(order, edges):
        if not len(visits):
            continue
        visitors, members = who[visits], who[visits][place[visits] == 0]
        here = nearest_within((rows[visitors], samples[visitors]), (rows[members], samples[members]), count=count)
        distances[visitors], found[visitors] = merged([(distances[visitors], found[visitors]), here])
    order = np.argsort(samples, kind="stable")
    edges = np.searchsorted(samples[order], starts[1:-1])
    kind = whole_numbers(starts[-1])
    return [(samples[own], distances[own], found[own].astype(kind)) for own in np.split(order, edges)]


def _brought_home(
    points: tuple[Array, Array], groups: Sequence[Sequence[tuple[Array, Array, Array]]], *, count: int
) -> tuple[Array, Array, Array]:
    samples = points[1]
    distances, found = np.full((len(samples), count), np.inf), np.full((len(samples), count), -1, dtype=np.int64)
    for whose, far, which in flat(groups):
        rows = np.searchsorted(samples, whose)
        distances[rows], found[rows] = merged([(distances[rows], found[rows]), (far, which)])
    return samples, distances, found


def _with_lonely(points: Points, found: list[Any], count: int) -> list[Any]:
    """Compare samples whose cells held too few with all others."""
    tasks = points.tasks
    short = tasks.map("lonely", _short, points.blocks, found)
    n_short = sum(tasks.gather(tasks.map("lonely", _count_of, short)))
    if not n_short:
        return found
    asking = tasks.submit("lonely", stack, short)
    truth = _compared_with_all(points, asking, count)
    return tasks.map("lonely", _replaced, found, [asking] * len(found), [truth] * len(found))


def _short(points: tuple[Array, Array], found: tuple[Array, Array, Array]) -> tuple[Array, Array]:
    rows = (found[2] < 0).any(axis=1)
    return points[0][rows], points[1][rows]


def _count_of(points: tuple[Array, Array]) -> int:
    return len(points[1])


def _replaced(found: Any, asking: tuple[Array, Array], truth: tuple[Array, Array, Array]) -> tuple[Array, ...]:
    samples, distances, which = found[0], found[1].copy(), found[2].copy()
    mine = np.isin(asking[1], samples)
    rows = np.searchsorted(samples, asking[1][mine])
    distances[rows], which[rows] = truth[0][mine], truth[1][mine]
    return samples, distances, which
