"""Neighbour graphs in blocks: for the samples of a block the weights to all others, wherever these are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ...graph.bridges import normalized_by
from ...utils.types import Array
from .exchange import Exchange, exchanged, flat
from .neighbors import whole_numbers
from .sizes import measured
from .tasks import Tasks

__all__ = ["BlockGraph", "given_graph", "linked_blocks", "n_edges", "union_blocks"]


@measured
@dataclass(frozen=True)
class BlockGraph:
    """Weights between the samples of one block (rows) and the samples they are linked with (columns)."""

    needed: Array  # the samples of the columns, ascending, as places among all samples
    weights: sparse.csr_array

    @property
    def degrees(self) -> Array:
        """Sum of the weights of every row."""
        return self.weights @ np.ones(self.weights.shape[1], dtype=self.weights.dtype)  # type: ignore[no-any-return]


def linked_blocks(tasks: Tasks, found: list[Any], starts: Array, dtype: Any) -> list[Any]:
    """Build the graph of :func:`gapview.graph.knn.symmetric_graph` in blocks.

    ``found`` holds for every block a pair of places among all samples: those who asked, and what each has found.
    """
    received = exchanged(tasks, "link", tasks.map("link", _edges_by_block, found, starts=starts), len(found))
    return tasks.map("link", _linked, received, starts[:-1].tolist(), np.diff(starts).tolist(), dtype=dtype)


def _edges_by_block(found: tuple[Array, Array], *, starts: Array) -> list[Array]:
    """Sort edges, each seen from both of its ends, by the block of the first."""
    kind = whole_numbers(int(starts[-1]))
    asked, ends = np.repeat(found[0].astype(kind), found[1].shape[1]), found[1].ravel().astype(kind)
    edges = np.concatenate([np.column_stack([asked, ends]), np.column_stack([ends, asked])])
    edges = edges[np.argsort(edges[:, 0], kind="stable")]
    return np.split(edges, np.searchsorted(edges[:, 0], starts[1:-1]))


def _linked(groups: Sequence[Sequence[Array]], begin: int, size: int, *, dtype: Any) -> BlockGraph:
    edges = np.concatenate(flat(groups))
    needed, columns = np.unique(edges[:, 1], return_inverse=True)
    keys = np.unique((edges[:, 0].astype(np.int64) - begin) * max(len(needed), 1) + columns)  # every edge once
    rows, columns = np.divmod(keys, max(len(needed), 1))
    shape = (size, len(needed))
    return BlockGraph(needed, sparse.csr_array((np.ones(len(keys), dtype=dtype), (rows, columns)), shape=shape))


def given_graph(weights: sparse.csr_array, samples: Array, starts: Array) -> list[BlockGraph]:
    """Cut a graph over the samples that have a view; its columns become the rows of the blocks."""
    across = sparse.csr_array(weights.T)
    edges = np.searchsorted(samples, starts)
    blocks = []
    for begin, stop, start, end in zip(edges[:-1], edges[1:], starts[:-1], starts[1:], strict=True):
        own = across[begin:stop].tocoo()
        used, columns = np.unique(own.col, return_inverse=True)
        places = samples[begin:stop][own.row] - start
        shape = (int(end - start), len(used))
        blocks.append(BlockGraph(samples[used], sparse.csr_array((own.data, (places, columns)), shape=shape)))
    return blocks


def n_edges(graph: BlockGraph) -> int:
    """Count the edges of a block."""
    return int(graph.weights.nnz)


# -- the union of the views ------------------------------------------------------------------------------------


def union_blocks(
    tasks: Tasks, graphs: list[list[Any]], view_weights: Sequence[float], starts: Array
) -> tuple[list[Any], Exchange]:
    """Add up the normalised graphs of the views over all samples, and normalise; see :mod:`gapview.graph.bridges`.

    ``graphs`` holds for every view a handle for each block. Gives a handle for each block, and who needs whose rows.
    """
    of_blocks = [list(own) for own in zip(*graphs, strict=True)]
    needed = tasks.map("bridge", _all_needed, of_blocks)
    exchange = Exchange(tasks, needed, starts)
    of_views = exchange.rows("bridge-degrees", tasks.map("bridge", _all_degrees, of_blocks), pick_rows)
    summed = tasks.map("bridge", _summed, of_blocks, needed, of_views, view_weights=tuple(view_weights))
    degrees = exchange.rows("bridge-degrees", tasks.map("bridge", _degrees, summed), pick_rows)
    return tasks.map("bridge", _normalized, summed, degrees), exchange


def pick_rows(values: Array, places: Array) -> Array:
    """Take rows of an array."""
    return values[places]


def stacked(groups: Sequence[Sequence[Array]]) -> Array:
    """Put rows that came from other blocks one below the other."""
    return np.concatenate(flat(groups))


def _all_needed(graphs: Sequence[BlockGraph]) -> Array:
    return np.unique(np.concatenate([graph.needed for graph in graphs]))


def _all_degrees(graphs: Sequence[BlockGraph]) -> Array:
    return np.column_stack([graph.degrees for graph in graphs])


def _degrees(graph: BlockGraph) -> Array:
    return graph.degrees


def _summed(graphs: Sequence[BlockGraph], needed: Array, pieces: Any, *, view_weights: Sequence[float]) -> BlockGraph:
    total, others = None, stacked(pieces)
    for k, (graph, weight) in enumerate(zip(graphs, view_weights, strict=True)):
        places = np.searchsorted(needed, graph.needed)
        own = normalized_by(graph.weights, graph.degrees, others[places, k]).tocoo()
        shape = (graph.weights.shape[0], len(needed))
        placed = sparse.csr_array((own.data * own.dtype.type(weight), (own.row, places[own.col])), shape=shape)
        total = placed if total is None else total + placed
    return BlockGraph(needed, sparse.csr_array(total))


def _normalized(graph: BlockGraph, pieces: Any) -> BlockGraph:
    return BlockGraph(graph.needed, normalized_by(graph.weights, graph.degrees, stacked(pieces)))
