"""The engines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

import array_api_compat.numpy

from ._products import inner, product
from ._threads import threads_to_use

Each = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]  # work and items to results, in order

# Of the data in a block: little more than the second-level cache of one core, since threads get in each other's way
# between short steps. No powers of 2: rows of arrays with as many columns push each other out of the cache
_CACHED_BYTES = 1_600_000
_LEAST_ROWS, _MOST_ROWS = 1000, 8000
_DEVICE_BYTES = 2**29
_WORTH_A_THREAD = 1e8  # operations in a round, below which handing out costs more than it saves


class Engine(Protocol):
    """What the loop needs of the place where it runs."""

    xp: Any  # the array namespace

    def rows_at_a_time(self, row_bytes: int) -> int:
        """Say how many rows of this size to take at a time."""

    def contiguous(self, array: Any) -> Any:
        """Copy an array so that its rows lie one after the other in memory."""

    def product(self, rows: Any, basis: Any) -> Any:
        """Return rows · basis, for a block of many rows and a basis of few columns."""

    def inner(self, codes: Any, rows: Any) -> Any:
        """Return codes · rows, for few codes that each have a number for every one of many rows."""

    def working(self, n_operations: float) -> AbstractContextManager[Each]:
        """Get ready for rounds of this much work; gives the function that carries one out, item by item."""


class NumpyEngine:
    """Blocks that fit into the cache of a core, shared out among threads.

    Every thread takes a whole block through all steps, with BLAS on one thread: the steps between the matrix products
    run in parallel, too, and a block is read from memory once.
    """

    xp = array_api_compat.numpy

    def rows_at_a_time(self, row_bytes: int) -> int:
        """Fill the cache, but for rows so wide or so narrow that calls would cost more than their work."""
        return min(max(_CACHED_BYTES // max(row_bytes, 1), _LEAST_ROWS), _MOST_ROWS)

    def contiguous(self, array: Any) -> Any:
        """Copy an array row by row."""
        return array.copy()

    def product(self, rows: Any, basis: Any) -> Any:
        """Multiply piece by piece."""
        return product(rows, basis)

    def inner(self, codes: Any, rows: Any) -> Any:
        """Multiply piece by piece."""
        return inner(codes, rows)

    @contextmanager
    def working(self, n_operations: float) -> Iterator[Each]:
        """Take over the threads of BLAS."""
        with threads_to_use() as n_threads:
            if n_threads == 1 or n_operations < _WORTH_A_THREAD:
                yield one_by_one
            else:
                with ThreadPoolExecutor(n_threads) as pool:
                    yield lambda work, items: list(pool.map(work, items))


class TorchEngine:
    """A device takes large blocks one after the other, and is parallel inside."""

    def __init__(self, device: Any) -> None:
        import array_api_compat.torch

        self.xp = array_api_compat.torch
        self.device = device

    def rows_at_a_time(self, row_bytes: int) -> int:
        """Bound what the steps between the products need."""
        return max(_DEVICE_BYTES // max(row_bytes, 1), _LEAST_ROWS)

    def contiguous(self, array: Any) -> Any:
        """Copy an array row by row."""
        return array.contiguous()

    def product(self, rows: Any, basis: Any) -> Any:
        """Multiply at once."""
        return rows @ basis

    def inner(self, codes: Any, rows: Any) -> Any:
        """Multiply at once."""
        return codes @ rows

    def working(self, n_operations: float) -> AbstractContextManager[Each]:
        """Queue the items; nothing is to be prepared."""
        return nullcontext(one_by_one)


def one_by_one(work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Carry out a round of work in the calling thread."""
    return [work(item) for item in items]
