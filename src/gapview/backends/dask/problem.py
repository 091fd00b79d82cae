"""The problem in blocks: for the samples of each a :class:`gapview.factorization.problem.Problem` of its own.

H = AᵀX of a block takes rows of X from all blocks that it is linked with, and nothing else. The constant terms of the
blocks add up to that of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...factorization.problem import Problem, build_problem
from ...scaling import row_lengths
from ...utils.types import Array
from ...views import Views
from .blocks import BlockedViews
from .exchange import Exchange, flat
from .graph import BlockGraph, pick_rows, stacked
from .sizes import measured
from .tasks import Tasks

__all__ = ["bridged_problems", "view_problems"]

measured(Problem)


def view_problems(tasks: Tasks, scaled: BlockedViews, graphs: list[list[Any]]) -> list[Any]:
    """Set up the problem of the paper, with a graph for each view over the samples that have it."""
    parts = []
    for k, blocks in enumerate(graphs):
        exchange = Exchange(tasks, tasks.map("who-needs-whom", _needed, blocks), scaled.starts)

        def smooth(wave: list[int], received: list[Any], k: int = k, blocks: list[Any] = blocks) -> list[Any]:
            known, graph = ([handles[block] for block in wave] for handles in (scaled.blocks, blocks))
            return tasks.map("smooth", _smoothed, known, graph, received, view=k)

        parts.append(exchange.in_waves("send-features", scaled.blocks, _pick_present, smooth, view=k))
    return tasks.map("set-up", _joined, [list(own) for own in zip(*parts, strict=True)])


def _needed(graph: BlockGraph) -> Array:
    return graph.needed


def _pick_present(views: Views, places: Array, *, view: int) -> Array:
    where = np.cumsum(views.mask[:, view]) - 1
    return np.asarray(views.matrices[view][where[places]])


@np.errstate(over="ignore", invalid="ignore")  # build_problem raises an error where sums overflow
def _smoothed(views: Views, graph: BlockGraph, pieces: Any, *, view: int) -> Problem:
    """Set up one view of a block; the rows received are taken piece by piece, and never lie in one array."""
    rows, n_features = views.rows(view), views.n_features[view]
    weights = graph.weights[rows].tocsc()
    smoothed = np.zeros((len(rows), n_features), dtype=views.matrices[view].dtype)
    lengths, begin = [], 0
    for piece in flat(pieces):
        if len(piece):
            smoothed += weights[:, begin : begin + len(piece)] @ piece
        lengths.append(row_lengths(piece))
        begin += len(piece)
    degrees, row_weights = graph.degrees[rows], weights.T @ np.ones(len(rows), dtype=smoothed.dtype)
    # Of the rows themselves only their lengths count, besides what was just made of them
    reach = _Reached(smoothed, degrees, row_weights)
    problem = build_problem([np.concatenate(lengths)[:, None]], [reach], [rows], views.n_samples)
    return replace(problem, terms=(replace(problem.terms[0], n_features=n_features),))


def _joined(problems: Sequence[Problem]) -> Problem:
    """Put the views of one block together."""
    terms, begin = [], 0
    for problem in problems:
        term = problem.terms[0]
        size = len(problem.rows)
        terms.append(replace(term, part=slice(begin, begin + size)))
        begin += size
    return Problem(
        tuple(terms),
        np.concatenate([problem.rows for problem in problems]),
        np.concatenate([problem.degrees for problem in problems]),
        np.sum([problem.n_codes for problem in problems], axis=0),
        float(sum(problem.constant for problem in problems)),
    )


# -- with a bridge ---------------------------------------------------------------------------------------------


def bridged_problems(
    tasks: Tasks,
    scaled: BlockedViews,
    steps: list[Any],
    exchange: Exchange,
    n_steps: int,
    view_weights: Sequence[float],
) -> list[Any]:
    """Build the problem for A = I + T + … + Tʰ, one step along the graph at a time."""
    parts = []
    for k, weight in enumerate(view_weights):

        def walk(wave: list[int], received: list[Any], k: int = k) -> list[Any]:
            known, graph = ([handles[block] for block in wave] for handles in (scaled.blocks, steps))
            return tasks.map("reach", _further, graph, received, known, view=k)

        totals = tasks.map("reach", _start, scaled.blocks, view=k)
        for _ in range(n_steps):
            totals = exchange.in_waves("send-features", totals, pick_rows, walk)
        parts.append(tasks.map("smooth", _reached, scaled.blocks, totals, view=k, weight=float(weight)))
        tasks.wait(parts[-1])  # so that only one view is on its way at a time
    return tasks.map("set-up", _joined, [list(own) for own in zip(*parts, strict=True)])


def _start(views: Views, *, view: int) -> Array:
    """Features of all samples, 0 where they lack the view; whether they have it; and 1: their sums say the degrees."""
    matrix = views.matrices[view]
    start = np.zeros((views.n_samples, matrix.shape[1] + 2), dtype=matrix.dtype)
    start[views.rows(view), :-2] = matrix
    start[:, -2] = views.mask[:, view]
    start[:, -1] = 1
    return start


@np.errstate(over="ignore", invalid="ignore")  # build_problem raises an error where sums overflow
def _further(graph: BlockGraph, pieces: Any, views: Views, *, view: int) -> Array:
    return np.asarray(graph.weights @ stacked(pieces) + _start(views, view=view))


@dataclass(frozen=True)
class _Reached:
    """Weights whose products with the features and with ones are known already."""

    smoothed: Array
    degrees: Array  # of the columns
    row_weights: Array
    turned: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        shape = (len(self.row_weights), len(self.degrees))
        return shape[::-1] if self.turned else shape

    @property
    def T(self) -> _Reached:
        return replace(self, turned=not self.turned)

    def __getitem__(self, part: tuple[slice, Array]) -> _Reached:
        return replace(self, smoothed=self.smoothed[part[1]], degrees=self.degrees[part[1]])

    def __matmul__(self, values: Array) -> Array:
        if not self.turned:
            return self.row_weights
        return self.degrees if values.ndim == 1 else self.smoothed


@np.errstate(over="ignore", invalid="ignore")  # build_problem raises an error where sums overflow
def _reached(views: Views, total: Array, *, view: int, weight: float) -> Problem:
    total = total * total.dtype.type(weight)
    rows = views.rows(view)
    reach = _Reached(np.ascontiguousarray(total[:, :-2]), total[:, -2], total[rows, -1])
    return build_problem([views.matrices[view]], [reach], [np.arange(views.n_samples)], views.n_samples)
