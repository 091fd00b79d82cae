"""Sparse matrices between samples: those of SciPy, and the same of tensors of PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse

from ._arrays import host, is_tensor, like

__all__ = [
    "TensorGraph",
    "added",
    "coordinates",
    "csr",
    "divided",
    "graph_like",
    "host_graph",
    "row_parts",
    "spread_out",
    "weights_of",
]

_N_PARTS = 16  # of a sparse matrix, for threads to take one after the other


def graph_like(graph: sparse.csr_array, other: Any) -> Any:
    """Bring a sparse matrix of SciPy to the kind and the place of an array."""
    if not is_tensor(other):
        return graph
    rows, columns, values = (like(part, other) for part in coordinates(graph))
    return csr(rows.long(), columns.long(), values.to(other.dtype), graph.shape)


def csr(rows: Any, columns: Any, values: Any, shape: Any) -> Any:
    """Make a sparse matrix in rows; values in the same place are added up."""
    if not is_tensor(values):
        index = sparse.get_index_dtype(maxval=max(*shape, len(values)))  # numbers of 8 bytes only where they are needed
        places = rows.astype(index, copy=False), columns.astype(index, copy=False)
        return sparse.csr_array((values, places), shape=shape)
    return TensorGraph.of(rows, columns, values, tuple(shape))


def weights_of(graph: Any) -> Any:
    """Return the values of a sparse matrix that are not zero, in the order of its rows."""
    return graph.values if isinstance(graph, TensorGraph) else graph.data


def divided(graph: Any, of_rows: Any, of_columns: Any) -> Any:
    """Divide every value of a sparse matrix by a number that belongs to its row, and one that belongs to its column."""
    if isinstance(graph, TensorGraph):
        values = graph.values / (of_rows[graph.rows] * of_columns[graph.columns])
        return csr(graph.rows, graph.columns, values, graph.shape)
    values = np.repeat(of_rows, np.diff(graph.indptr))  # in place from here on, and the pattern is shared
    values *= of_columns[graph.indices]
    np.divide(graph.data, values, out=values)
    return sparse.csr_array((values, graph.indices, graph.indptr), shape=graph.shape)


def spread_out(graph: Any, samples: Any, n_samples: int, weight: float) -> Any:
    """Write a square sparse matrix over some samples, in ascending order, as one over all, times a weight."""
    shape = (n_samples, n_samples)
    if isinstance(graph, TensorGraph):
        places = like(samples, graph.values)
        return csr(places[graph.rows], places[graph.columns], graph.values * weight, shape)
    starts = np.zeros(n_samples + 1, dtype=graph.indptr.dtype)
    starts[samples + 1] = np.diff(graph.indptr)
    columns = samples.astype(graph.indices.dtype)[graph.indices]
    return sparse.csr_array((graph.data * weight, columns, np.cumsum(starts, dtype=starts.dtype)), shape=shape)


def row_parts(graph: sparse.csr_array) -> list[tuple[slice, sparse.csr_array]]:
    """Cut a sparse matrix into parts of its rows that threads can multiply by themselves; nothing is copied."""
    edges = np.linspace(0, graph.shape[0], _N_PARTS + 1).astype(int).tolist()
    parts = []
    for begin, end in pairwise(edges):
        first, last = graph.indptr[begin], graph.indptr[end]
        own = graph.data[first:last], graph.indices[first:last], graph.indptr[begin : end + 1] - first
        parts.append((slice(begin, end), sparse.csr_array(own, shape=(end - begin, graph.shape[1]))))
    return parts


def added(graphs: Sequence[Any]) -> Any:
    """Add up sparse matrices of one shape."""
    if not isinstance(graphs[0], TensorGraph):
        return reduce(add, graphs)
    parts = zip(*(coordinates(graph) for graph in graphs), strict=True)
    rows, columns, values = (array_namespace(part[0]).concat(part) for part in parts)
    return csr(rows, columns, values, graphs[0].shape)


def coordinates(graph: Any) -> tuple[Any, Any, Any]:
    """Return rows, columns and values of a sparse matrix."""
    if isinstance(graph, TensorGraph):
        return graph.rows, graph.columns, graph.values
    places = graph.tocoo()
    return places.row, places.col, places.data


def host_graph(graph: Any) -> sparse.csr_array:
    """Bring a sparse matrix to where SciPy can see it."""
    if not isinstance(graph, TensorGraph):
        return graph
    parts = (graph.values, graph.compressed.col_indices(), graph.compressed.crow_indices())
    return sparse.csr_array(tuple(host(part) for part in parts), shape=graph.shape)


@dataclass(frozen=True)
class TensorGraph:
    """A sparse matrix of tensors that can be multiplied, turned and cut like one of SciPy."""

    rows: Any  # with the columns in ascending order, each pair once
    columns: Any
    values: Any
    shape: tuple[int, int]
    compressed: Any  # the same as PyTorch multiplies it

    @classmethod
    def of(cls, rows: Any, columns: Any, values: Any, shape: tuple[int, int]) -> TensorGraph:
        """Make one of values in any order; those in the same place are added up."""
        import torch

        with warnings.catch_warnings():  # that sparse tensors are young, and that what we give them is not checked
            warnings.simplefilter("ignore", UserWarning)
            placed = torch.sparse_coo_tensor(torch.stack([rows, columns]), values, shape, check_invariants=False)
            placed = placed.coalesce()
            indices = placed.indices()
            return cls(indices[0], indices[1], placed.values(), shape, placed.to_sparse_csr())

    @property
    def T(self) -> TensorGraph:
        """Rows and columns exchanged."""
        return TensorGraph.of(self.columns, self.rows, self.values, self.shape[::-1])

    def __getitem__(self, part: tuple[slice, Any]) -> TensorGraph:
        """Keep some of the columns, by a mask over them."""
        kept = like(part[1], self.values)
        inside = kept[self.columns]
        columns = (kept.cumsum(dim=0) - 1)[self.columns[inside]]
        shape = (self.shape[0], int(kept.sum()))
        return TensorGraph.of(self.rows[inside], columns, self.values[inside], shape)

    def __matmul__(self, values: Any) -> Any:
        """Add up the rows of ``values``, weighted."""
        return self.compressed @ values
