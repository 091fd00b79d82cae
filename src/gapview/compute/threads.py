"""Threads of BLAS and OpenMP: all fits of a process together use no more threads than there are cores."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock, local
from typing import Any

from threadpoolctl import ThreadpoolController

from ..utils.warnings import absent_leftovers, drop_leftovers

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
    """The number of threads in use by all fits, and the limit of BLAS to one thread while there are any.

    The limit holds for the whole process: the first of several fits sets it, and the last one lifts it. So it is with
    filters of warnings. Code that limits BLAS itself and restores what it found, such as k-means and neighbour search
    of scikit-learn, must run inside.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.here = local()  # depth: how often this thread has acquired; is_small: whether it is single-threaded
        self.n_users = 0
        self.n_busy = 0  # threads in use: those that have acquired, and their extra threads
        self.n_usual = 1  # threads of BLAS without the limit
        self.before: list[int] = []
        self.leftovers: list[Any] = []

    def acquire(self) -> int:
        with self.lock:
            if not self.n_users:
                self.before = [library.num_threads for library in _blas_libraries()]
                self.n_usual = max(self.before, default=1)
                _set_blas_threads([1] * len(self.before))
                self.leftovers = absent_leftovers()
            self.n_users += 1
            depth = getattr(self.here, "depth", 0)
            self.n_busy += depth == 0
            self.here.depth = depth + 1
            return self.n_threads

    def release(self) -> None:
        with self.lock:
            self.here.depth -= 1
            self.n_busy -= self.here.depth == 0
            self.n_users -= 1
            if not self.n_users:
                _set_blas_threads(self.before)
                drop_leftovers(self.leftovers)

    @property
    def n_threads(self) -> int:
        # A process of a pool takes one thread, unless the user has set the number of threads
        is_worker = multiprocessing.parent_process() is not None
        return 1 if is_worker and not any(os.environ.get(name) for name in THREAD_VARIABLES) else self.n_usual

    def acquire_extra(self) -> int:
        with self.lock:
            n_extra = max(0, self.n_threads - self.n_busy)
            self.n_busy += n_extra
            return n_extra

    def release_extra(self, n_extra: int) -> None:
        with self.lock:
            self.n_busy -= n_extra


_budget = _ThreadBudget()
if hasattr(os, "register_at_fork"):  # a forked process has none of the threads that would release theirs
    os.register_at_fork(after_in_child=_budget.__init__)  # type: ignore[misc]


@contextmanager
def single_threaded_blas() -> Iterator[int]:
    """Keep BLAS on the calling thread, and yield the number of threads it would have used."""
    n_threads = _budget.acquire()
    try:
        yield n_threads
    finally:
        _budget.release()


@contextmanager
def available_threads() -> Iterator[int]:
    """Keep BLAS on the calling thread, and yield the number of threads that may work instead, itself included.

    The first of several fits gets all cores, later ones the cores that are left.
    """
    with single_threaded_blas():
        n_extra = _budget.acquire_extra()
        try:
            yield 1 + n_extra
        finally:
            _budget.release_extra(n_extra)


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
