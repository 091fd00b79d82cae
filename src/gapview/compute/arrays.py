"""Dense and sparse arrays of NumPy and SciPy, and the same of PyTorch: what the two do differently."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import MissingExtraError, ParameterError
from ..utils.messages import shown
from .tensor_graph import TensorGraph, tensor_graph

_ROWS_AT_A_TIME = 2**16
_CACHED_VALUES = 2**17
FEW_ROWS = 2**14  # rows at a time, where several copies of them are made
_BYTES_ON_DEVICE = 2**27  # of a block of rows there, at least: a step costs time, however few rows it has
_N_PARTS = 16  # of a sparse matrix, which threads multiply one after the other


def is_tensor(array: Any) -> bool:
    """Return whether an object is a tensor of PyTorch, without an import of it."""
    return any(c.__module__.partition(".")[0] == "torch" and c.__name__ == "Tensor" for c in type(array).__mro__)


def is_on_device(array: Any) -> bool:
    """Return whether an object is a tensor on another device than the processor."""
    return is_tensor(array) and array.device.type != "cpu"


def host(array: Any) -> Any:
    """Return an array of NumPy with the values of an array or a tensor."""
    return array.cpu().numpy() if is_tensor(array) else array


def like(array: Any, other: Any) -> Any:
    """Return an array of NumPy as a tensor on the device of ``other`` if that is a tensor, else as it is."""
    if not is_tensor(other):
        return array
    import torch

    return torch.as_tensor(_shareable(array), device=other.device)


def _shareable(array: Any) -> Any:
    """Return a copy of an array that PyTorch cannot share: one with negative strides, or one that is read-only."""
    if isinstance(array, np.ndarray) and (not array.flags.writeable or min(array.strides, default=0) < 0):
        return np.array(array)
    return array


def to_device(array: Any, device: Any) -> Any:
    """Return an array as a tensor on a device.

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
    except (RuntimeError, AssertionError, TypeError, ValueError, OverflowError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise ParameterError(
            f"device must be None or the name of a device that PyTorch can use, such as 'cuda' or 'cpu'; got "
            f"{shown(device)}: {reason}."
        ) from None


def row_blocks(matrix: Any, most: int | None = None) -> list[slice]:
    """Return slices of at most ``most`` rows, so that intermediate results stay small; one slice for sparse data."""
    most, n_rows = most or _ROWS_AT_A_TIME, matrix.shape[0]
    if sparse.issparse(matrix) or n_rows <= most:
        return [slice(0, n_rows)]
    if is_on_device(first := matrix[:1]):
        most = max(most, _BYTES_ON_DEVICE // max(first.nbytes, 1))
    return [slice(begin, min(begin + most, n_rows)) for begin in range(0, n_rows, most)]


def cached_blocks(matrix: Any) -> list[slice]:
    """Return slices of rows that stay in the cache, for steps on single rows; larger ones of tensors on a device."""
    if sparse.issparse(matrix) or is_tensor(matrix[:0]):
        return row_blocks(matrix, FEW_ROWS)
    return row_blocks(matrix, min(FEW_ROWS, max(_CACHED_VALUES // max(matrix.shape[1], 1), 1)))


def leading_directions(rows: Any, n_directions: int) -> Any:
    """Return the leading right singular vectors of dense rows in NumPy, as columns in double precision.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.compute.arrays import leading_directions
    >>> abs(leading_directions(np.array([[0.0, 2.0], [1.0, 0.0]]), 1)).tolist()
    [[0.0], [1.0]]
    """
    return np.linalg.eigh(rows.T.astype(np.float64) @ rows)[1][:, ::-1][:, :n_directions]


def drained(items: list[Any]) -> Iterator[Any]:
    """Yield the items of a list one by one and remove them from it, so that their memory can be freed.

    Examples
    --------
    >>> from gapview.compute.arrays import drained
    >>> items = [1, 2]
    >>> next(drained(items)), items
    (1, [2])
    """
    while items:
        yield items.pop(0)


def csr(rows: Any, columns: Any, values: Any, shape: Any) -> Any:
    """Return a sparse matrix in rows; values in the same place are added up."""
    if not is_tensor(values):
        index = sparse.get_index_dtype(maxval=max(*shape, len(values)))  # 8 bytes only where they are needed
        places = rows.astype(index, copy=False), columns.astype(index, copy=False)
        return sparse.csr_array((values, places), shape=shape)
    return TensorGraph.of(rows, columns, values, tuple(shape))


def graph_like(graph: sparse.csr_array, other: Any) -> Any:
    """Return a sparse matrix of SciPy as tensors on the device of ``other`` if that is a tensor, else as it is."""
    if not is_tensor(other):
        return graph
    return tensor_graph(graph, other)


def host_graph(graph: Any) -> sparse.csr_array:
    """Return a sparse matrix of SciPy with the values of a sparse matrix of either kind."""
    if not isinstance(graph, TensorGraph):
        return graph
    parts = graph.values, graph.columns, graph.starts
    return sparse.csr_array(tuple(host(part) for part in parts), shape=graph.shape)


def weights_of(graph: Any) -> Any:
    """Return the stored values of a sparse matrix, row by row."""
    return graph.values if isinstance(graph, TensorGraph) else graph.data


def divide_weights(
    graph: Any, row_divisors: Any, column_divisors: Any, factor: float = 1.0, *, overwrite: bool = False
) -> Any:
    """Return a sparse matrix with every value divided by the divisors of its row and column, times a factor.

    The pattern is shared with ``graph``. With ``overwrite``, the values of ``graph`` are changed in place.
    """
    if isinstance(graph, TensorGraph):
        return graph.divided(row_divisors, column_divisors, factor, overwrite=overwrite)
    values = graph.data if overwrite else np.empty(graph.nnz, dtype=row_divisors.dtype)
    for begin in range(0, graph.shape[0], FEW_ROWS):
        starts = graph.indptr[begin : begin + FEW_ROWS + 1]
        part = slice(starts[0], starts[-1])
        divisors = np.repeat(row_divisors[begin : begin + FEW_ROWS], np.diff(starts))
        divisors *= column_divisors[graph.indices[part]]
        np.divide(graph.data[part], divisors, out=values[part])
        values[part] *= factor
    return sparse.csr_array((values, graph.indices, graph.indptr), shape=graph.shape)


def expand_graph(graph: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    """Return a sparse matrix as a part of a larger one, in given rows and columns, both in ascending order.

    Values are shared with ``graph``.
    """
    if isinstance(graph, TensorGraph):
        return graph.expanded(like(rows, graph.values), like(columns, graph.values), shape)
    starts = np.zeros(shape[0] + 1, dtype=graph.indptr.dtype)
    starts[rows + 1] = np.diff(graph.indptr)
    indices = graph.indices if graph.shape[1] == shape[1] else columns.astype(graph.indices.dtype)[graph.indices]
    return sparse.csr_array((graph.data, indices, starts.cumsum(dtype=starts.dtype)), shape=shape)


def row_parts(graph: sparse.csr_array) -> list[tuple[slice, sparse.csr_array]]:
    """Return a sparse matrix in parts of its rows, without a copy, for threads to multiply."""
    edges = np.linspace(0, graph.shape[0], _N_PARTS + 1).astype(int).tolist()
    parts = []
    for begin, end in pairwise(edges):
        first, last = graph.indptr[begin], graph.indptr[end]
        part = sparse.csr_array((end - begin, graph.shape[1]), dtype=graph.dtype)
        # Set one by one, since the constructor copies parts of larger arrays
        part.data, part.indices = graph.data[first:last], graph.indices[first:last]
        part.indptr = graph.indptr[begin : end + 1] - first
        parts.append((slice(begin, end), part))
    return parts
