"""Matrices whose rows stay in a file until they are asked for."""

from __future__ import annotations

import math
import mmap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import array_api_compat.numpy
import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ...utils.types import Array

__all__ = ["FileRows", "gathered", "new_block"]

_SPAN_BYTES = 2**20  # read at a time where single rows are picked
_LARGE_BLOCK = 2**18  # bytes


def new_block(shape: tuple[int, ...], dtype: Any) -> Array:
    """Make an array to read into, whose memory goes back to the system as soon as nobody needs it.

    The allocator would keep some of it, and more with every thread.
    """
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    if n_bytes < _LARGE_BLOCK:
        return np.empty(shape, dtype=dtype)
    return np.frombuffer(mmap.mmap(-1, n_bytes), dtype=dtype).reshape(shape)


class FileRows(NDArrayOperatorsMixin, ABC):
    """Rows in a file: what is asked for is read, and nothing else.

    Slices and lists of rows give arrays; products with a matrix are made block by block. What else can be done with an
    array is done with the whole, read for it: a fit keeps away from that, and methods of the model may do it.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    ndim = 2
    device = "cpu"

    @abstractmethod
    def _read(self, begin: int, stop: int) -> Array:
        """Read some rows that follow each other."""

    def _picked(self, rows: Array) -> Array:
        """Read rows in ascending order."""
        return gathered(self._read, rows, self.shape[1], self.dtype, self.row_bytes)

    @property
    def row_bytes(self) -> int:
        """What one row takes in memory."""
        return self.shape[1] * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def blocks(self, n_bytes: int) -> Iterator[slice]:
        """Cut the rows into blocks of at most this size, of one row at least."""
        step = max(1, n_bytes // max(1, self.row_bytes))
        return (slice(begin, min(begin + step, len(self))) for begin in range(0, len(self), step))

    def __getitem__(self, rows: Any) -> Array:
        if isinstance(rows, slice) and rows.step in (None, 1):
            begin, stop, _ = rows.indices(len(self))
            return self._read(begin, max(begin, stop))
        if isinstance(rows, tuple):
            return np.asarray(np.asarray(self)[rows])
        chosen = np.arange(len(self))[rows]
        if chosen.ndim == 0:
            return np.asarray(self._read(int(chosen), int(chosen) + 1)[0])
        distinct, places = np.unique(chosen, return_inverse=True)
        found = self._picked(distinct)
        return found if np.array_equal(distinct, chosen) else found[places]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self._read(0, len(self)).astype(self.dtype if dtype is None else dtype, copy=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(np.asarray(self), name)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        whole = [np.asarray(given) if isinstance(given, FileRows) else given for given in inputs]
        return getattr(ufunc, method)(*whole, **settings)

    def __array_namespace__(self, api_version: str | None = None) -> ModuleType:
        return array_api_compat.numpy  # type: ignore[no-any-return]

    def __matmul__(self, other: Array) -> Array:
        product = np.empty((len(self), *other.shape[1:]), dtype=np.result_type(self.dtype, other.dtype))
        for block in self.blocks(_SPAN_BYTES):
            product[block] = self[block] @ other
        return product

    @property
    def T(self) -> Columns:
        """Rows and columns exchanged, for products."""
        return Columns(self)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """Return the same values in a type: itself if it has the type, else an array."""
        return self if self.dtype == dtype and not copy else np.asarray(self, dtype=dtype)


class Columns:
    """Rows of a file seen as columns; they can be multiplied."""

    def __init__(self, rows: FileRows) -> None:
        self._rows = rows

    def __matmul__(self, other: Array) -> Array:
        rows = self._rows
        total = np.zeros((rows.shape[1], *other.shape[1:]), dtype=np.result_type(rows.dtype, other.dtype))
        for block in rows.blocks(_SPAN_BYTES):
            total += rows[block].T @ other[block]
        return total


def gathered(read: Callable[[int, int], Array], rows: Array, width: int, dtype: Any, row_bytes: int) -> Array:
    """Pick rows in ascending order from a file that is read in short spans: what lies between is soon let go."""
    found = new_block((len(rows), width), dtype)
    step, begin = max(1, _SPAN_BYTES // max(1, row_bytes)), 0
    while begin < len(rows):
        first = int(rows[begin])
        stop = begin + int(np.searchsorted(rows[begin:], first + step))
        found[begin:stop] = read(first, int(rows[stop - 1]) + 1)[rows[begin:stop] - first]
        begin = stop
    return found
