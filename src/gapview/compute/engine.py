"""Engines: how many rows to process at a time, and how to process independent pieces of work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

import numpy as np

from ..utils.types import Array
from .arrays import is_tensor
from .threads import available_threads

Each = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]  # work and items to results, in order

# Of the data in a block: little more than the second-level cache of one core, since threads delay each other between
# short steps. No powers of 2, since rows of arrays with as many columns evict each other from the cache
_CACHED_BYTES = 1_600_000
_LEAST_ROWS, _MOST_ROWS = 1000, 8000
_DEVICE_BYTES = 2**29
_WORTH_A_THREAD = 1e8  # operations in a round, below which threads cost more time than they save

# BLAS copies large matrices into a layout of its own before it multiplies them. With few columns the copy takes as long
# as the product. OpenBLAS skips it for small products, and is then up to twice as fast; other libraries lose nothing
_SMALL = 1_000_000  # rows × columns × depth, up to which OpenBLAS multiplies without a copy
_FEWEST_ROWS = 8  # of a piece; with fewer, calls cost more than the copy
_FEWEST_ADDED = 100  # the same where the products of pieces are added up


class Engine(Protocol):
    """What the loop needs from the device it runs on."""

    def rows_at_a_time(self, row_bytes: int) -> int:
        """Return how many rows of this size to process at a time."""

    def contiguous(self, array: Any) -> Any:
        """Return a copy whose rows lie one after the other in memory."""

    def product(self, rows: Any, basis: Any) -> Any:
        """Return rows · basis, for many rows and a basis of few columns."""

    def inner(self, codes: Any, rows: Any) -> Any:
        """Return codes · rows, for few codes with one column for every one of many rows."""

    def working(self, n_operations: float) -> AbstractContextManager[Each]:
        """Prepare for rounds of this many operations; yield the function that processes the items of a round."""


class NumpyEngine:
    """Blocks that fit into the cache of a core, processed by threads.

    Every thread takes a whole block through all steps, with BLAS on one thread: the steps between the matrix products
    run in parallel, too, and a block is read from memory once.
    """

    def rows_at_a_time(self, row_bytes: int) -> int:
        """Return how many rows fill the cache, within bounds that keep the overhead of calls small."""
        return min(max(_CACHED_BYTES // max(row_bytes, 1), _LEAST_ROWS), _MOST_ROWS)

    def contiguous(self, array: Any) -> Any:
        """Return a copy whose rows lie one after the other in memory."""
        return array.copy()

    def product(self, rows: Array, basis: Array) -> Array:
        """Return rows · basis, multiplied in pieces."""
        count = _rows_of_a_piece(rows, basis.shape[1], _FEWEST_ROWS)
        if not count:
            return np.asarray(rows @ basis)
        whole = len(rows) // count * count
        result = np.empty((len(rows), basis.shape[1]), dtype=np.result_type(rows, basis))
        np.matmul(_pieces(rows[:whole], count), basis, out=_pieces(result[:whole], count))
        np.matmul(rows[whole:], basis, out=result[whole:])
        return result

    def inner(self, codes: Array, rows: Array) -> Array:
        """Return codes · rows, multiplied in pieces."""
        count = _rows_of_a_piece(rows, len(codes), _FEWEST_ADDED)
        if not count:
            return np.asarray(codes @ rows)
        whole = len(rows) // count * count
        code_pieces = codes[:, :whole].reshape(len(codes), -1, count).transpose(1, 0, 2)
        total: Array = np.matmul(code_pieces, _pieces(rows[:whole], count)).sum(axis=0)
        if whole < len(rows):
            total += codes[:, whole:] @ rows[whole:]
        return total

    @contextmanager
    def working(self, n_operations: float) -> Iterator[Each]:
        """Use the threads of BLAS for the items of a round."""
        with available_threads() as n_threads:
            if n_threads == 1 or n_operations < _WORTH_A_THREAD:
                yield one_by_one
            else:
                with ThreadPoolExecutor(n_threads) as pool:
                    yield lambda work, items: list(pool.map(work, items))


def _rows_of_a_piece(rows: Array, n_columns: int, fewest: int) -> int:
    """Return how many rows to multiply at a time; 0 for all at once."""
    n_pieces = -(-rows.shape[0] * rows.shape[1] * n_columns // _SMALL)
    count = len(rows) // max(n_pieces, 1)
    return count if n_pieces > 1 and count >= fewest and rows.flags.c_contiguous else 0


def _pieces(rows: Array, count: int) -> Array:
    return rows.reshape(-1, count, rows.shape[1])


class TorchEngine:
    """Large blocks one after the other, since a device is parallel by itself."""

    def rows_at_a_time(self, row_bytes: int) -> int:
        """Return how many rows keep intermediate results within bounds."""
        return max(_DEVICE_BYTES // max(row_bytes, 1), _LEAST_ROWS)

    def contiguous(self, array: Any) -> Any:
        """Return a copy whose rows lie one after the other in memory."""
        return array.contiguous()

    def product(self, rows: Any, basis: Any) -> Any:
        """Return rows · basis."""
        return rows @ basis

    def inner(self, codes: Any, rows: Any) -> Any:
        """Return codes · rows."""
        return codes @ rows

    def working(self, n_operations: float) -> AbstractContextManager[Each]:
        """Yield the function that processes the items one after the other."""
        return nullcontext(one_by_one)


def one_by_one(work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Return the results of a round of work done in the calling thread."""
    return [work(item) for item in items]


def engine_for(array: Any) -> Engine:
    """Return the engine for the kind of array that holds the data.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.compute import engine_for
    >>> type(engine_for(np.ones(3))).__name__
    'NumpyEngine'
    """
    return TorchEngine() if is_tensor(array) else NumpyEngine()
