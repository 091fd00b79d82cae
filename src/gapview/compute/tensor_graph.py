"""Sparse matrices of tensors in compressed rows, built and changed in parts of few rows.

Indices take 4 bytes where that is enough, and temporary results have the size of a part: large graphs leave little
memory of a device to spare.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

_VALUES_AT_A_TIME = 2**25  # of a part
_LARGEST = 2**31 - 1  # index of 4 bytes


@dataclass(frozen=True)
class TensorGraph:
    """A sparse matrix of tensors that can be multiplied, transposed and sliced like one of SciPy.

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> from gapview.compute.tensor_graph import TensorGraph
    >>> rows, columns = torch.tensor([1, 0, 1]), torch.tensor([0, 1, 0])
    >>> graph = TensorGraph.of(rows, columns, torch.tensor([1.0, 2.0, 3.0]), (2, 2))
    >>> (graph @ torch.ones(2)).tolist(), (graph.T @ torch.ones(2)).tolist()
    ([2.0, 4.0], [4.0, 2.0])
    """

    starts: Any  # where the values of each row begin, and where those of the last row end
    columns: Any  # in ascending order within each row
    values: Any
    shape: tuple[int, int]
    is_symmetric: bool = False  # whether it is known to be

    @classmethod
    def of(cls, rows: Any, columns: Any, values: Any, shape: tuple[int, int]) -> TensorGraph:
        """Build one from values in any order; those in the same place are added up."""
        return _of_keys(_keys(rows, columns, shape), values, shape)

    @cached_property
    def _compressed(self) -> Any:
        """The same matrix in the format that PyTorch multiplies; it shares the memory."""
        import torch

        parts = self.starts, self.columns, self.values
        with warnings.catch_warnings():  # PyTorch warns that sparse tensors are in beta
            warnings.simplefilter("ignore", UserWarning)
            return torch.sparse_csr_tensor(*parts, size=self.shape, check_invariants=False)

    @property
    def T(self) -> TensorGraph:
        """The transposed matrix."""
        if self.is_symmetric:
            return self
        import torch

        order = torch.argsort(self.columns, stable=True)
        numbers = torch.arange(self.shape[1] + 1, device=order.device, dtype=self.columns.dtype)
        starts = torch.searchsorted(self.columns.index_select(0, order), numbers).to(self.starts.dtype)
        rows = self.rows_of(slice(0, self.shape[0])).to(self.columns.dtype)
        return TensorGraph(starts, rows.index_select(0, order), self.values.index_select(0, order), self.shape[::-1])

    def __getitem__(self, part: tuple[slice, Any]) -> TensorGraph:
        """Return some of the columns, given by a mask."""
        import torch

        kept = torch.as_tensor(part[1], device=self.values.device)
        inside = kept.index_select(0, self.columns)
        places = (kept.cumsum(dim=0) - 1).to(self.columns.dtype)
        counts = torch.zeros(len(inside) + 1, dtype=torch.int64, device=kept.device)
        torch.cumsum(inside, dim=0, out=counts[1:])
        starts = counts.index_select(0, self.starts).to(self.starts.dtype)
        columns = places.index_select(0, self.columns[inside])
        return TensorGraph(starts, columns, self.values[inside], (self.shape[0], int(kept.sum())))

    def __add__(self, other: TensorGraph) -> TensorGraph:
        """Return the sum with a matrix of the same shape."""
        import torch

        def merged(part: slice) -> TensorGraph:
            own = [(graph._keys_of(part), graph.values[graph._range_of(part)]) for graph in (self, other)]
            keys, values = (torch.cat(pair) for pair in zip(*own, strict=True))
            return _of_keys(keys, values, (part.stop - part.start, self.shape[1]))

        n_values = len(self.values) + len(other.values)
        return _in_parts(merged, self.shape, n_values, self.values.device)

    def __matmul__(self, values: Any) -> Any:
        """Return the product with a dense tensor."""
        return self._compressed @ values

    def rows_of(self, part: slice) -> Any:
        """Return the row of every value of some rows, as a position among these rows."""
        import torch

        counts = self.starts[part.start + 1 : part.stop + 1] - self.starts[part]
        numbers = torch.arange(len(counts), device=counts.device)
        size = self._range_of(part)
        return torch.repeat_interleave(numbers, counts, output_size=size.stop - size.start)

    def parts(self) -> Iterator[slice]:
        """Yield slices of rows with a bounded number of values on average."""
        return _row_parts(self.shape[0], len(self.values))

    def _range_of(self, part: slice) -> slice:
        """Return the values of some rows as a slice."""
        if part.start == 0 and part.stop == self.shape[0]:
            return slice(0, len(self.values))
        return slice(*self.starts[[part.start, part.stop]].tolist())

    def _keys_of(self, part: slice) -> Any:
        return self.rows_of(part) * max(self.shape[1], 1) + self.columns[self._range_of(part)]

    def divided(
        self, row_divisors: Any, column_divisors: Any, factor: float = 1.0, *, overwrite: bool = False
    ) -> TensorGraph:
        """Return the matrix with every value divided by the divisors of its row and column, times a factor."""
        values = self.values if overwrite else self.values.clone()
        for part in self.parts():
            where = self._range_of(part)
            values[where] /= row_divisors[part].index_select(0, self.rows_of(part))
            values[where] /= column_divisors.index_select(0, self.columns[where])
        if factor != 1:
            values *= factor
        return TensorGraph(self.starts, self.columns, values, self.shape)

    def expanded(self, rows: Any, columns: Any, shape: tuple[int, int]) -> TensorGraph:
        """Return the matrix as a part of a larger one, in given rows and columns, both in ascending order."""
        import torch

        counts = torch.zeros(shape[0] + 1, dtype=self.starts.dtype, device=self.starts.device)
        counts[rows + 1] = self.starts.diff()
        own = self.columns
        if shape[1] != self.shape[1]:
            own = columns.to(own.dtype).index_select(0, own)
        return TensorGraph(counts.cumsum(dim=0).to(self.starts.dtype), own, self.values, shape)

    def without_loops(self) -> TensorGraph:
        """Return the matrix without its diagonal and without values of 0; itself if it has neither."""
        import torch

        def is_link(part: slice) -> Any:
            where = self._range_of(part)
            rows = self.rows_of(part) + part.start
            return (self.columns[where] != rows) & (self.values[where] > 0)

        if bool(torch.stack([is_link(part).all() for part in self.parts()]).all()):
            return self
        whole = slice(0, self.shape[0])
        kept = is_link(whole)
        return TensorGraph.of(self.rows_of(whole)[kept], self.columns[kept], self.values[kept], self.shape)


def symmetric_links(origins: Any, ends: Any, n_rows: int, dtype: Any) -> TensorGraph:
    """Return the graph with a weight of 1, in both directions, between every origin and the ends in its row.

    Parameters
    ----------
    origins : int tensor of shape (n_origins,)
        Rows of the graph, in ascending order.
    ends : int tensor of shape (n_origins, n_ends)
        The rows to link with each of them.
    n_rows : int
        Size of the graph.
    dtype : dtype
        Type of the weights.
    """
    import torch

    shape, count = (n_rows, n_rows), ends.shape[1]
    index = _index_dtype(n_rows, 2 * ends.numel())
    reverse, order = ends.to(index).ravel().sort(stable=True)
    order = torch.div(order, count, rounding_mode="floor").to(index)  # the origin of every reversed edge
    edges = [part.start for part in _row_parts(n_rows, 2 * ends.numel())] + [n_rows]
    where = torch.tensor(edges, device=ends.device)
    first = torch.searchsorted(origins, where.to(origins.dtype)).tolist()
    second = torch.searchsorted(reverse, where.to(index)).tolist()
    places = iter(zip(pairwise(first), pairwise(second), strict=True))

    def linked(part: slice) -> TensorGraph:
        own, back = (slice(*pair) for pair in next(places))
        rows = torch.repeat_interleave(origins[own], count, output_size=(own.stop - own.start) * count)
        keys = _keys(rows - part.start, ends[own].ravel(), shape)
        reversed_keys = _keys(reverse[back].long() - part.start, origins.index_select(0, order[back]), shape)
        keys = torch.unique(torch.cat([keys, reversed_keys]))
        return _of_sorted(
            keys, torch.ones(len(keys), dtype=dtype, device=keys.device), (part.stop - part.start, n_rows)
        )

    return replace(_in_parts(linked, shape, 2 * ends.numel(), ends.device), is_symmetric=True)


def _row_parts(n_rows: int, n_values: int) -> Iterator[slice]:
    step = max(1, n_rows * _VALUES_AT_A_TIME // max(n_values, 1))
    return (slice(begin, min(begin + step, n_rows)) for begin in range(0, max(n_rows, 1), step))


def _in_parts(build: Callable[[slice], TensorGraph], shape: tuple[int, int], n_most: int, device: Any) -> TensorGraph:
    """Return the matrix whose parts of rows a function builds, with ``n_most`` values at most."""
    import torch

    parts = list(_row_parts(shape[0], n_most))
    if len(parts) == 1:
        return build(parts[0])
    index = _index_dtype(max(shape), n_most)
    starts = torch.zeros(shape[0] + 1, dtype=index, device=device)
    columns, values, n_done = [], [], 0
    for part in parts:
        own = build(part)
        starts[part.start + 1 : part.stop + 1] = own.starts[1:] + n_done
        n_done += len(own.values)
        columns.append(own.columns.to(index))
        values.append(own.values)
        del own
    joined = torch.cat(columns)
    columns.clear()  # before the values are joined
    return TensorGraph(starts, joined, torch.cat(values), shape)


def _keys(rows: Any, columns: Any, shape: Sequence[int]) -> Any:
    return rows.long() * max(shape[1], 1) + columns


def _of_keys(keys: Any, values: Any, shape: tuple[int, int]) -> TensorGraph:
    """Return the matrix with values at places row · width + column, in any order; repeated ones are added up."""
    import torch

    keys, order = keys.sort(stable=True)
    values = values.index_select(0, order)
    distinct, places = torch.unique_consecutive(keys, return_inverse=True)
    if len(distinct) < len(keys):
        values = torch.zeros(len(distinct), dtype=values.dtype, device=keys.device).index_add_(0, places, values)
    return _of_sorted(distinct, values, shape)


def _of_sorted(keys: Any, values: Any, shape: tuple[int, int]) -> TensorGraph:
    import torch

    width = max(shape[1], 1)
    index = _index_dtype(max(shape), len(keys))
    starts = torch.searchsorted(keys, torch.arange(shape[0] + 1, device=keys.device) * width)
    return TensorGraph(starts.to(index), (keys % width).to(index), values, shape)


def _index_dtype(*sizes: int) -> Any:
    import torch

    return torch.int32 if max(sizes) <= _LARGEST else torch.int64


def tensor_graph(graph: Any, values_like: Any) -> TensorGraph:
    """Return a csr_array as tensors with the type and on the device of other ones."""
    import torch

    graph = graph if graph.has_canonical_format else graph.copy()
    graph.sum_duplicates()
    index = _index_dtype(max(graph.shape), graph.nnz)
    given = graph.indptr, graph.indices, graph.data
    starts, columns, values = (torch.as_tensor(np.array(part), device=values_like.device) for part in given)
    return TensorGraph(starts.to(index), columns.to(index), values.to(values_like.dtype), graph.shape)
