"""Bridges in blocks: graphs over all samples, their sums, and the smoothing of views along them.

A view is smoothed some columns at a time. While a few columns of all samples take their steps, the other columns are
held once only, smoothed or not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np
from scipy import sparse

from ...factorization.problem import Problem, join_views
from ...graph.bridges import add_graphs, normalized_by
from ...scaling import row_lengths
from ...utils.types import Array
from ...views import Views
from .graph import BlockGraph, problem_of_view
from .tasks import Exchange, Tasks, stack_rows
from .views import BlockedViews, drop_features

_N_PARTS = 4  # in which the columns of all views are smoothed, if they are many
_FEWEST_COLUMNS = 8


@dataclass(frozen=True)
class BlockedGraph:
    """A graph over all samples in blocks, and the exchange of the rows that they are linked with."""

    blocks: list[Any]  # handles of BlockGraphs
    exchange: Exchange


def union_blocks(tasks: Tasks, graphs: list[list[Any]], view_weights: Sequence[float], starts: Array) -> BlockedGraph:
    """Add up the normalised graphs of the views over all samples, and normalise; see :mod:`gapview.graph.bridges`.

    ``graphs`` holds for every view a handle for each block.
    """
    of_blocks = [list(own) for own in zip(*graphs, strict=True)]
    needed = tasks.map("bridge", _all_needed, of_blocks)
    exchange = Exchange(tasks, needed, starts)
    of_views = exchange.rows("bridge-degrees", tasks.map("bridge", _all_degrees, of_blocks))
    added = tasks.map("bridge", _add_normalized, of_blocks, needed, of_views, view_weights=tuple(view_weights))
    return _normalized(tasks, added, exchange)


def joint_blocks(tasks: Tasks, linked: list[Any], starts: Array) -> BlockedGraph:
    """Normalise the graph of all views together, given a handle for each block."""
    return _normalized(tasks, linked, Exchange(tasks, tasks.map("bridge", attrgetter("needed"), linked), starts))


def both_blocks(tasks: Tasks, graphs: Sequence[BlockedGraph], starts: Array) -> BlockedGraph:
    """Add up graphs over all samples, and normalise; see :func:`gapview.graph.bridges.both_graphs`."""
    of_blocks = [list(own) for own in zip(*(graph.blocks for graph in graphs), strict=True)]
    needed = tasks.map("bridge", _all_needed, of_blocks)
    added = tasks.map("bridge", _add, of_blocks, needed)
    return _normalized(tasks, added, Exchange(tasks, needed, starts))


def _normalized(tasks: Tasks, graphs: list[Any], exchange: Exchange) -> BlockedGraph:
    degrees = exchange.rows("bridge-degrees", tasks.map("bridge", attrgetter("degrees"), graphs))
    return BlockedGraph(tasks.map("bridge", _normalize, graphs, degrees), exchange)


def _all_needed(graphs: Sequence[BlockGraph]) -> Array:
    return np.unique(np.concatenate([graph.needed for graph in graphs]))


def _all_degrees(graphs: Sequence[BlockGraph]) -> Array:
    return np.column_stack([graph.degrees for graph in graphs])


def _add_normalized(
    graphs: Sequence[BlockGraph], needed: Array, pieces: Any, *, view_weights: Sequence[float]
) -> BlockGraph:
    others, own = stack_rows(pieces), []
    for k, (graph, weight) in enumerate(zip(graphs, view_weights, strict=True)):
        degrees = others[np.searchsorted(needed, graph.needed), k]
        own.append(BlockGraph(graph.needed, normalized_by(graph.weights, graph.degrees, degrees, float(weight))))
    return _add(own, needed)


def _add(graphs: Sequence[BlockGraph], needed: Array) -> BlockGraph:
    n_rows = graphs[0].weights.shape[0]

    def parts() -> Iterator[tuple[sparse.csr_array, Array, Array]]:
        for graph in graphs:
            yield graph.weights, np.arange(n_rows), np.searchsorted(needed, graph.needed)

    return BlockGraph(needed, add_graphs(parts(), (n_rows, len(needed))))


def _normalize(graph: BlockGraph, pieces: Any) -> BlockGraph:
    return BlockGraph(graph.needed, normalized_by(graph.weights, graph.degrees, stack_rows(pieces)))


# -- the problem -----------------------------------------------------------------------------------------------


def bridged_problems(
    tasks: Tasks, scaled: BlockedViews, graph: BlockedGraph, n_steps: int, view_weights: Sequence[float]
) -> list[Any]:
    """Build the problem for A = I + T + … + Tʰ; the scaled views are dropped one after the other."""
    problems = []
    for k, weight in enumerate(view_weights):
        columns = column_parts(scaled.n_features[k], sum(scaled.n_features))
        pieces = [_walked(tasks, scaled, graph, n_steps, k, part) for part in columns]
        common = {"view": k, "columns": columns, "weight": float(weight)}
        whole = tasks.map(
            "smooth", _reached_problem, scaled.blocks, [list(own) for own in zip(*pieces, strict=True)], **common
        )
        del pieces
        tasks.wait(whole)
        drop_features(tasks, scaled, k)
        problems.append(whole)
    return tasks.map("set-up", join_views, [list(own) for own in zip(*problems, strict=True)])


def column_parts(n_columns: int, n_all: int) -> list[slice]:
    """Return the columns of a view in parts that are smoothed one after the other: of about equal size.

    Examples
    --------
    >>> from gapview.backends.dask.bridges import column_parts
    >>> column_parts(100, 160)
    [slice(0, 33, None), slice(33, 66, None), slice(66, 100, None)]
    """
    n_parts = math.ceil(n_columns / max(_FEWEST_COLUMNS, math.ceil(n_all / _N_PARTS)))
    edges = [n_columns * i // n_parts for i in range(n_parts + 1)]
    return [slice(*pair) for pair in pairwise(edges)]


def _walked(
    tasks: Tasks, scaled: BlockedViews, graph: BlockedGraph, n_steps: int, view: int, columns: slice
) -> list[Any]:
    """Return handles of some columns of (I + T + … + Tʰ)X, one step along the graph at a time."""
    common = {"view": view, "columns": columns}

    def step(wave: list[int], received: list[Any]) -> list[Any]:
        views, own = ([handles[block] for block in wave] for handles in (scaled.blocks, graph.blocks))
        return tasks.map("reach", _step, own, received, views, **common)

    row_bytes = (columns.stop - columns.start + 2) * scaled.dtype.itemsize
    totals = tasks.map("reach", _first_values, scaled.blocks, **common)
    for _ in range(n_steps):
        totals = graph.exchange.in_waves("send-features", totals, step, row_bytes=row_bytes)
    return totals


def _first_values(views: Views, *, view: int, columns: slice) -> Array:
    """Return some features of all samples, 0 where they lack the view.

    The first part of the columns has two more: of presence, and of 1.
    """
    matrix, is_first = views.matrices[view], columns.start == 0
    width = columns.stop - columns.start
    start = np.zeros((views.n_samples, width + 2 * is_first), dtype=matrix.dtype)
    start[views.rows(view), :width] = matrix[:, columns]
    if is_first:
        start[:, -2] = views.mask[:, view]
        start[:, -1] = 1
    return start


@np.errstate(over="ignore", invalid="ignore")  # overflow is reported by problem_of_view
def _step(graph: BlockGraph, pieces: Any, views: Views, *, view: int, columns: slice) -> Array:
    following = graph.weights @ stack_rows(pieces)
    following += _first_values(views, view=view, columns=columns)
    return np.asarray(following)


@np.errstate(over="ignore", invalid="ignore")
def _reached_problem(
    views: Views, pieces: Sequence[Array], *, view: int, columns: Sequence[slice], weight: float
) -> Problem:
    matrix = views.matrices[view]
    factor = matrix.dtype.type(weight)
    smoothed = np.empty((views.n_samples, matrix.shape[1]), dtype=matrix.dtype)
    for part, values in zip(columns, pieces, strict=True):
        np.multiply(values[:, : part.stop - part.start], factor, out=smoothed[:, part])
    sums = pieces[0][:, -2:] * factor
    rows, lengths, everyone = views.rows(view), row_lengths(matrix), np.arange(views.n_samples)
    return problem_of_view(smoothed, sums[:, 0], everyone, sums[rows, 1], lengths, views.n_samples)
