"""Cells of near points around centres, and the comparison of queries with the points of some cells.

All functions but :func:`cell_centers` take arrays of NumPy and tensors of PyTorch.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from ...compute.arrays import is_tensor
from ...utils.types import Array
from .distances import exact, nearest_listed, smallest

Part = tuple[Any, Any, Any]  # points, their numbers, and the queries to compare with them

N_ITERATIONS = 10  # of k-means
_MANY_PAIRS = 2**16  # from which the overhead of a call to scikit-learn is small
_N_VALUES = 2**16  # values held at a time in an array: more would not stay in the cache
_N_VALUES_TENSOR = 2**22
_N_VALUES_GPU = 2**26


def cell_centers(rows: Array, n_cells: int, seed: int) -> Array:
    """Return the centres of cells by k-means; ``rows``, a sample of the points, may be overwritten."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # if rows repeat, some cells stay empty, without harm
        settings = {"init": "random", "n_init": 1, "max_iter": N_ITERATIONS, "random_state": seed}
        return np.asarray(KMeans(min(n_cells, len(rows)), copy_x=False, **settings).fit(rows).cluster_centers_)


def rows_at_a_time(rows: Any, width: int) -> int:
    """Return how many rows to process at a time where each needs ``width`` values."""
    n_values = _N_VALUES_TENSOR if is_tensor(rows) else _N_VALUES
    return max(1, (_N_VALUES_GPU if getattr(rows, "is_cuda", False) else n_values) // max(1, width))


def relative_squares(points: Any, queries: Any) -> Any:
    """Return |p|² − 2 p·q for all points (columns) and queries (rows), which orders the points as |p − q|² does."""
    xp = array_namespace(points)
    if is_tensor(points):  # some rows at a time: the squares of all would be a copy of the points
        parts = [xp.sum(part * part, axis=1) for part in points.split(rows_at_a_time(points, points.shape[1]))]
        squares = parts[0] if len(parts) == 1 else xp.concat(parts)
        return squares.addmm(queries, points.T, alpha=-2)
    squares = xp.sum(points * points, axis=1)
    table = queries @ (points * -2).T
    table += squares
    return table


def nearest_centers(rows: Any, centers: Any, count: int) -> Any:
    """Return the cells with the nearest centres to every row, nearest first."""
    xp = array_namespace(rows)
    middle = xp.mean(centers, axis=0)  # products of rows far from the origin would round too much
    moved, step = centers - middle, rows_at_a_time(rows, len(centers))
    parts = []
    for begin in range(0, max(1, len(rows)), step):
        block = xp.astype(rows[begin : begin + step] - middle, centers.dtype, copy=False)
        squares, near = smallest(relative_squares(moved, block), count)
        parts.append(xp.take_along_axis(near, xp.argsort(squares, axis=1), axis=1))
    return xp.concat(parts)


def cell_ranks(queries: Any, centers: Any, cells: Any) -> Any:
    """Return for every query how many centres are nearer to it than the centres of given cells."""
    xp = array_namespace(queries)
    ordered = nearest_centers(queries, centers, len(centers))
    return xp.take_along_axis(xp.argsort(ordered, axis=1), cells, axis=1)


def grouped(cells: Any, n_cells: int) -> tuple[Any, list[slice]]:
    """Return the order that sorts by cell, and the part of it that belongs to every cell."""
    xp = array_namespace(cells)
    order = xp.argsort(cells, stable=True)
    numbers = xp.arange(n_cells + 1, dtype=cells.dtype, device=cells.device)
    return order, [slice(*ends) for ends in pairwise(xp.searchsorted(cells[order], numbers).tolist())]


def visits(visited: Any, n_cells: int) -> Iterator[tuple[int, Any]]:
    """Return every visited cell with the queries that visit it, given the cells that each query visits."""
    order, parts = grouped(array_namespace(visited).reshape(visited, (-1,)), n_cells)
    visitors = order // visited.shape[1]
    return ((cell, visitors[part]) for cell, part in enumerate(parts) if part.start < part.stop)


def merge_nearest(parts: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the nearest of several lists for the same queries, in any order.

    A list consists of the distances and of other arrays of the same shape. As many are returned as the first one holds.
    """
    xp = array_namespace(parts[0][0])
    distances, *others = (xp.concat(part, axis=1) for part in zip(*parts, strict=True))
    distances, kept = smallest(distances, parts[0][0].shape[1])
    return [distances, *(xp.take_along_axis(other, kept, axis=1) for other in others)]


def nearest_in_parts(queries: Any, count: int, parts: Iterable[Part]) -> tuple[Any, Any]:
    """Return distances and numbers of the nearest points, in any order; infinite and −1 where there are too few."""
    xp = array_namespace(queries)
    shape, device = (len(queries), count), queries.device
    distances = xp.full(shape, xp.inf, dtype=queries.dtype if is_tensor(queries) else xp.float64, device=device)
    numbers = xp.full(shape, -1, dtype=xp.int64, device=device)
    for points, numbered, visitors in parts:
        if len(points):
            near, places = _nearest_members(points, min(count, len(points)), queries[visitors])
            lists = (distances[visitors], numbers[visitors]), (near, numbered[places])
            distances[visitors], numbers[visitors] = merge_nearest(lists)
    return distances, numbers


def nearest_others(queries: Any, own: Any, count: int, parts: Iterable[Part]) -> tuple[Any, Any]:
    """Return the same in order for queries that are points with the numbers ``own``, without the query itself."""
    return nearest_listed(*nearest_in_parts(queries, count + 1, parts), count, own)


def _nearest_members(points: Any, count: int, queries: Any) -> tuple[Any, Any]:
    """Return distances and places of the nearest of a few points, in any order."""
    if not is_tensor(points) and len(points) * len(queries) > _MANY_PAIRS:
        return exact(points, count, queries)
    xp = array_namespace(points)
    # A cell is small around its mean, so that products round little
    center = xp.mean(points, axis=0, dtype=points.dtype if is_tensor(points) else xp.float64)
    queries = queries - center
    squares, near = smallest(relative_squares(points - center, queries), count)
    squares += xp.sum(queries * queries, axis=1)[:, None]
    return xp.sqrt(xp.clip(squares, 0)), near
