"""Engines: how many rows to process at a time, how to process independent pieces of work, and on how many threads.

All fits of a process together use no more threads of BLAS and OpenMP than there are cores.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import copy_context
from functools import cache
from threading import Lock, local
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from ..progress.events import unreported
from ..utils.messages import absent_leftovers, drop_leftovers
from ..utils.types import Array
from .arrays import is_tensor

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
        """Return rows · basis, for many rows and a basis of few columns, multiplied in pieces."""
        count = _rows_of_a_piece(rows, basis.shape[1], _FEWEST_ROWS)
        if not count:
            return np.asarray(rows @ basis)
        whole = len(rows) // count * count
        result = np.empty((len(rows), basis.shape[1]), dtype=np.result_type(rows, basis))
        np.matmul(_pieces(rows[:whole], count), basis, out=_pieces(result[:whole], count))
        np.matmul(rows[whole:], basis, out=result[whole:])
        return result

    def inner(self, codes: Array, rows: Array) -> Array:
        """Return codes · rows, for few codes with one column for every one of many rows, multiplied in pieces."""
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
        """Prepare for rounds of this many operations; yield the function that has threads process the items of one."""
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


def on_free_threads(work: Callable[[Any], Any], items: Sequence[Any]) -> Generator[Any, None, None]:
    """Yield the results of independent work in order, done on the cores that other fits leave free.

    Each piece of work has one core and the context of the caller, but what it does is not reported.

    Examples
    --------
    >>> from gapview.compute.engine import on_free_threads
    >>> list(on_free_threads(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    with available_threads() as n_threads:
        if min(n_threads, len(items)) < 2:
            yield from map(work, items)
            return

        def alone(item: Any) -> Any:
            with single_threaded(), unreported():
                return work(item)

        with ThreadPoolExecutor(min(n_threads, len(items))) as pool:
            running = [pool.submit(copy_context().run, alone, item) for item in items]
            try:
                yield from (each.result() for each in running)
            finally:  # after an error the rest does not start
                for each in running:
                    each.cancel()


def trim_memory() -> None:
    """Return freed memory to the system, where the C library keeps it and can be told to return it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def engine_for(array: Any) -> NumpyEngine | TorchEngine:
    """Return the engine for the kind of array that holds the data.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.compute.engine import engine_for
    >>> type(engine_for(np.ones(3))).__name__
    'NumpyEngine'
    """
    return TorchEngine() if is_tensor(array) else NumpyEngine()


# -- threads of BLAS and OpenMP ------------------------------------------------------------------------------------

# Environment variables with which users set the number of threads
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


@cache
def _blas_libraries() -> list[Any]:
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@cache
def _openmp_controller(loaded: tuple[bool, ...]) -> Any:
    return ThreadpoolController().select(user_api="openmp")


def _limit_openmp(n_threads: int | None) -> Any:
    """Limit OpenMP in the calling thread.

    The search for libraries takes milliseconds, so it is repeated only when a package with its own OpenMP is loaded.
    """
    return _openmp_controller(tuple(name in sys.modules for name in ("faiss", "torch"))).limit(limits=n_threads)


def _set_blas_threads(numbers: list[int]) -> None:
    """Set the number of threads of every BLAS library for the whole process, from any thread.

    In newer threadpoolctl, only the first thread that sets it can change it later; calls from others are ignored. Here
    the last fit that ends restores the numbers, in whatever thread it runs.
    """
    for library, n_threads in zip(_blas_libraries(), numbers, strict=True):
        free = getattr(library, "clear_controlling_thread", lambda force: None)
        free(force=True)
        library.set_num_threads(n_threads)
        free(force=True)


class _ThreadBudget:
    """The number of threads in use by all fits, and the limit of BLAS to one thread while there are any."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.here = local()  # depth: how many limits this thread is in; is_small: whether it is single-threaded
        self.n_users = 0
        self.n_busy = 0  # threads in use: those inside the limit, and their extra threads
        self.n_usual = 1  # threads of BLAS without the limit
        self.before: list[int] = []
        self.leftovers: list[Any] = []

    @property
    def n_threads(self) -> int:
        # A process of a pool takes one thread, unless the user has set the number of threads
        is_worker = multiprocessing.parent_process() is not None
        return 1 if is_worker and not any(os.environ.get(name) for name in THREAD_VARIABLES) else self.n_usual


_budget = _ThreadBudget()
if hasattr(os, "register_at_fork"):  # a forked process has none of the threads that would release theirs
    os.register_at_fork(after_in_child=_budget.__init__)  # type: ignore[misc]


@contextmanager
def single_threaded_blas() -> Iterator[int]:
    """Keep BLAS on the calling thread, and yield the number of threads it would have used.

    The limit holds for the whole process: the first of several fits sets it, and the last one lifts it. So it is with
    filters of warnings. Code that limits BLAS itself and restores what it found, such as k-means and neighbour search
    of scikit-learn, must run inside.
    """
    with _budget.lock:
        if not _budget.n_users:
            _budget.before = [library.num_threads for library in _blas_libraries()]
            _budget.n_usual = max(_budget.before, default=1)
            _set_blas_threads([1] * len(_budget.before))
            _budget.leftovers = absent_leftovers()
        _budget.n_users += 1
        depth = getattr(_budget.here, "depth", 0)
        _budget.n_busy += depth == 0
        _budget.here.depth = depth + 1
        n_threads = _budget.n_threads
    try:
        yield n_threads
    finally:
        with _budget.lock:
            _budget.here.depth -= 1
            _budget.n_busy -= _budget.here.depth == 0
            _budget.n_users -= 1
            if not _budget.n_users:
                _set_blas_threads(_budget.before)
                drop_leftovers(_budget.leftovers)


@contextmanager
def available_threads() -> Iterator[int]:
    """Keep BLAS on the calling thread, and yield the number of threads that may work instead, itself included.

    The first of several fits gets all cores, later ones the cores that are left.
    """
    with single_threaded_blas():
        with _budget.lock:
            n_extra = max(0, _budget.n_threads - _budget.n_busy)
            _budget.n_busy += n_extra
        try:
            yield 1 + n_extra
        finally:
            with _budget.lock:
                _budget.n_busy -= n_extra


@contextmanager
def on_free_cores() -> Iterator[None]:
    """Limit OpenMP to the cores that other fits leave free; for calls of scikit-learn."""
    if getattr(_budget.here, "is_small", False):
        yield
        return
    with available_threads() as n_threads:
        n_most = n_threads if n_threads < _budget.n_usual else None
        with _limit_openmp(n_most):
            yield


@contextmanager
def single_threaded() -> Iterator[None]:
    """Keep BLAS and OpenMP on the calling thread; for small work, which several threads would slow down."""
    if getattr(_budget.here, "is_small", False):
        yield
        return
    with single_threaded_blas(), _limit_openmp(1):
        _budget.here.is_small = True
        try:
            yield
        finally:
            _budget.here.is_small = False
