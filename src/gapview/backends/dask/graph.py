"""Neighbour graphs and the problem in blocks.

A block holds the weights between its samples and all others, and a :class:`gapview.factorization.problem.Problem` of
its samples. H = AᵀX of a block needs the rows of X of the samples that the block is linked with, and no others. The
constant terms of the blocks add up to that of the whole problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from scipy import sparse

from ...factorization.problem import Problem, ViewTerm, demand_finite, join_views
from ...graph.knn import graph_of_edges
from ...scaling import row_lengths
from ...utils.types import Array
from ...views import Views
from .cells import index_type
from .tasks import Exchange, Tasks, few_rows, register_size, send, stack_rows
from .views import BlockedViews

register_size(Problem)


@register_size
@dataclass(frozen=True)
class BlockGraph:
    """Weights between the samples of one block (rows) and the samples that they are linked with (columns)."""

    needed: Array  # the samples of the columns, ascending, as positions among all samples
    weights: sparse.csr_array

    @property
    def degrees(self) -> Array:
        """Sum of the weights of every row."""
        return self.weights @ np.ones(self.weights.shape[1], dtype=self.weights.dtype)  # type: ignore[no-any-return]


def link_blocks(tasks: Tasks, found: list[Any], starts: Array, dtype: Any) -> list[Any]:
    """Link samples with their neighbours, in both directions, by weights of 1.

    The graph is that of :func:`gapview.graph.knn.symmetric_graph`.
    ``found`` holds for every block a handle of arrays: samples first, their neighbours last.
    """
    homes = tasks.located(found)
    received = send(tasks, "link", _edges_by_block, homes, homes, found, starts=starts)
    return tasks.map("link", _link, received, starts[:-1].tolist(), np.diff(starts).tolist(), dtype=dtype)


def _edges_by_block(found: Sequence[Array], *, starts: Array) -> list[Array]:
    """Return edges in both directions, by the block of their first sample."""
    kind = index_type(int(starts[-1]))
    samples, ends = np.repeat(found[0].astype(kind), found[-1].shape[1]), found[-1].ravel().astype(kind)
    edges = np.concatenate([np.column_stack([samples, ends]), np.column_stack([ends, samples])])
    edges = edges[np.argsort(edges[:, 0], kind="stable")]
    return np.split(edges, np.searchsorted(edges[:, 0], starts[1:-1]))


def _link(received: Any, begin: int, size: int, *, dtype: Any) -> BlockGraph:
    edges = stack_rows(received)
    needed, columns = np.unique(edges[:, 1], return_inverse=True)
    rows = edges[:, 0].astype(np.int64) - begin
    return BlockGraph(needed, graph_of_edges(rows, columns, (size, len(needed)), dtype))


def split_graph(weights: sparse.csr_array, samples: Array, starts: Array) -> list[BlockGraph]:
    """Split a graph over the samples that have a view into blocks of its columns, which become rows."""
    transposed = sparse.csr_array(weights.T)
    edges = np.searchsorted(samples, starts)
    blocks = []
    for begin, stop, start, end in zip(edges[:-1], edges[1:], starts[:-1], starts[1:], strict=True):
        own = transposed[begin:stop].tocoo()
        used, columns = np.unique(own.col, return_inverse=True)
        rows, shape = samples[begin:stop][own.row] - start, (int(end - start), len(used))
        blocks.append(BlockGraph(samples[used], sparse.csr_array((own.data, (rows, columns)), shape=shape)))
    return blocks


def n_edges(graph: BlockGraph) -> int:
    """Return the number of edges of a block."""
    return int(graph.weights.nnz)


# -- the problem -----------------------------------------------------------------------------------------------


def view_problems(tasks: Tasks, scaled: BlockedViews, graphs: list[list[Any]]) -> list[Any]:
    """Build the problem of the paper, with a graph for each view over the samples that have it."""
    parts = []
    for k, blocks in enumerate(graphs):
        exchange = Exchange(tasks, tasks.map("who-needs-whom", attrgetter("needed"), blocks), scaled.starts)

        def smooth(wave: list[int], received: list[Any], k: int = k, blocks: list[Any] = blocks) -> list[Any]:
            views, own = ([handles[block] for block in wave] for handles in (scaled.blocks, blocks))
            return tasks.map("smooth", _smooth, views, own, received, view=k)

        row_bytes = scaled.n_features[k] * scaled.dtype.itemsize
        parts.append(exchange.in_waves("send-features", scaled.blocks, smooth, _select_present, row_bytes, view=k))
    return tasks.map("set-up", join_views, [list(own) for own in zip(*parts, strict=True)])


def _select_present(views: Views, samples: Array, *, view: int) -> Array:
    rows = np.cumsum(views.mask[:, view]) - 1
    return np.asarray(views.matrices[view][rows[samples]])


@np.errstate(over="ignore", invalid="ignore")  # overflow is reported by problem_of_view
def _smooth(views: Views, graph: BlockGraph, pieces: Any, *, view: int) -> Problem:
    """Build the problem of one view in a block; the rows received are used piece by piece, without one array of all."""
    rows = views.rows(view)
    weights = graph.weights[rows].tocsc()
    smoothed = np.zeros((len(rows), views.n_features[view]), dtype=views.matrices[view].dtype)
    lengths, begin = [], 0
    for piece in few_rows(pieces):
        smoothed += weights[:, begin : begin + len(piece)] @ piece
        lengths.append(row_lengths(piece))
        begin += len(piece)
    row_weights = weights.T @ np.ones(len(rows), dtype=smoothed.dtype)
    return problem_of_view(smoothed, graph.degrees[rows], rows, row_weights, np.concatenate(lengths), views.n_samples)


def problem_of_view(
    smoothed: Array, degrees: Array, samples: Array, row_weights: Array, lengths: Array, n_samples: int
) -> Problem:
    """Return the problem of one view, given H = AᵀX and the row and column sums of A.

    :func:`gapview.factorization.problem.build_problem` does the same in memory.
    """
    constant = float(row_weights.astype(np.float64) @ lengths.astype(np.float64) ** 2)
    demand_finite(np.isfinite(constant), degrees.dtype)
    linked = degrees > 0  # other samples have no code from this view
    smoothed, rows = smoothed if linked.all() else smoothed[linked], samples[linked]
    term = ViewTerm(slice(0, len(rows)), smoothed.shape[1], smoothed)
    return Problem((term,), rows, degrees[linked], np.bincount(rows, minlength=n_samples), constant)
