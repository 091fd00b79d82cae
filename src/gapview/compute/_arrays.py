"""The few things that arrays of NumPy with SciPy's sparse matrices and tensors of PyTorch do differently."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import MissingExtraError, ParameterError

__all__ = [
    "TensorGraph",
    "coordinates",
    "csr",
    "graph_like",
    "host",
    "host_graph",
    "is_tensor",
    "like",
    "row_blocks",
    "to_device",
]

_ROWS_AT_A_TIME = 2**16


def is_tensor(array: Any) -> bool:
    """Tell whether something is a tensor of PyTorch."""
    return any(c.__module__.partition(".")[0] == "torch" and c.__name__ == "Tensor" for c in type(array).__mro__)


def host(array: Any) -> Any:
    """Bring an array to where NumPy can see it."""
    return array.cpu().numpy() if is_tensor(array) else array


def like(array: Any, other: Any) -> Any:
    """Bring a NumPy array to the kind and the place of another."""
    if not is_tensor(other):
        return array
    import torch

    return torch.as_tensor(_shareable(array), device=other.device)


def _shareable(array: Any) -> Any:
    """Copy an array that PyTorch cannot share: one that is turned round, or that must not be written to."""
    if isinstance(array, np.ndarray) and (not array.flags.writeable or min(array.strides, default=0) < 0):
        return np.array(array)
    return array


def to_device(array: Any, device: Any) -> Any:
    """Bring an array to a device, as a tensor.

    Raises
    ------
    MissingExtraError
        If PyTorch is not installed.
    ParameterError
        If there is no such device.
    """
    try:
        import torch
    except ImportError:
        raise MissingExtraError("torch", "gpu", "Computing on a device") from None
    try:
        return torch.as_tensor(_shareable(array), device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise ParameterError(
            f"device must be None or the name of a device that PyTorch can use, such as 'cuda' or 'cpu'; got "
            f"{device!r}: {reason}."
        ) from None


def graph_like(graph: sparse.csr_array, other: Any) -> Any:
    """Bring a sparse matrix of SciPy to the kind and the place of an array."""
    if not is_tensor(other):
        return graph
    rows, columns, values = (like(part, other) for part in coordinates(graph))
    return csr(rows.long(), columns.long(), values.to(other.dtype), graph.shape)


def row_blocks(matrix: Any) -> list[slice]:
    """Cut a dense matrix into blocks of rows, so that what is made of them on the way stays small."""
    n_rows = matrix.shape[0]
    if sparse.issparse(matrix) or n_rows <= _ROWS_AT_A_TIME:
        return [slice(0, n_rows)]
    return [slice(begin, min(begin + _ROWS_AT_A_TIME, n_rows)) for begin in range(0, n_rows, _ROWS_AT_A_TIME)]


def csr(rows: Any, columns: Any, values: Any, shape: Any) -> Any:
    """Make a sparse matrix in rows; values in the same place are added up."""
    if not is_tensor(values):
        index = sparse.get_index_dtype(maxval=max(*shape, len(values)))  # numbers of 8 bytes only where they are needed
        places = rows.astype(index, copy=False), columns.astype(index, copy=False)
        return sparse.csr_array((values, places), shape=shape)
    return TensorGraph.of(rows, columns, values, tuple(shape))


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
