"""Threads of our own instead of those of BLAS, and no more than there are cores, however many fits there are."""

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

__all__ = ["one_thread_each", "sharing_cores", "threads_to_use", "without_helpers"]

# Environment variables with which users set the number of threads
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


@cache
def _libraries() -> list[Any]:
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@cache
def _controller_of_openmp(bringing_their_own: tuple[bool, ...]) -> Any:
    return ThreadpoolController().select(user_api="openmp")


def _limit_openmp(n_threads: int | None) -> Any:
    """Limit OpenMP, for the calling thread alone; looking for the libraries takes milliseconds, so it is done once."""
    return _controller_of_openmp(tuple(name in sys.modules for name in ("faiss", "torch"))).limit(limits=n_threads)


def _set(library: Any, n_threads: int) -> None:
    """Set the threads of a library for all, from whatever thread this is called.

    With newer threadpoolctl, the first thread to set them stays the only one that can, and what others set is
    dropped in silence. But here the last to leave restores what the first has set.
    """
    free = getattr(library, "clear_controlling_thread", lambda force: None)
    free(force=True)
    library.set_num_threads(n_threads)
    free(force=True)


def _is_one_of_many() -> bool:
    """Tell whether this is a process of a pool that nobody has told how many threads to use: each then takes one."""
    return multiprocessing.parent_process() is not None and not any(os.environ.get(name) for name in THREAD_VARIABLES)


class _Loan:
    """The threads of BLAS while somebody else uses the cores.

    The limit holds for the whole process. Where several fits run at once, the first sets it and the last lifts it, so
    that none finds it set for good by another; so it is with filters of warnings. Whatever limits BLAS beneath us, as
    k-means and neighbour search of scikit-learn do, must be called inside the loan: it restores what it has found.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.here = local()  # how often this thread has borrowed
        self.n_borrowers = 0
        self.n_busy = 0  # threads at work: those that have borrowed, and those they have besides
        self.n_usual = 1  # threads of BLAS without us
        self.before: list[int] = []
        self.leftovers: list[Any] = []

    def take(self) -> int:
        with self.lock:
            if not self.n_borrowers:
                self.before = [library.num_threads for library in _libraries()]
                self.n_usual = max(self.before, default=1)
                self._set_all([1] * len(self.before))
                self.leftovers = absent_leftovers()
            self.n_borrowers += 1
            depth = getattr(self.here, "depth", 0)
            self.n_busy += depth == 0
            self.here.depth = depth + 1
            return self.n_threads

    def give_back(self) -> None:
        with self.lock:
            self.here.depth -= 1
            self.n_busy -= self.here.depth == 0
            self.n_borrowers -= 1
            if not self.n_borrowers:
                self._set_all(self.before)
                drop_leftovers(self.leftovers)

    def _set_all(self, numbers: list[int]) -> None:
        for library, n_threads in zip(_libraries(), numbers, strict=True):
            _set(library, n_threads)

    @property
    def n_threads(self) -> int:
        return 1 if _is_one_of_many() else self.n_usual

    def take_more(self) -> int:
        with self.lock:
            n_more = max(0, self.n_threads - self.n_busy)
            self.n_busy += n_more
            return n_more

    def give_back_more(self, n_more: int) -> None:
        with self.lock:
            self.n_busy -= n_more


_loan = _Loan()
if hasattr(os, "register_at_fork"):  # nobody is there in the child who could give anything back
    os.register_at_fork(after_in_child=_loan.__init__)  # type: ignore[misc]


@contextmanager
def one_thread_each() -> Iterator[int]:
    """Keep BLAS on the calling thread, and give the number of threads it would have used."""
    n_threads = _loan.take()
    try:
        yield n_threads
    finally:
        _loan.give_back()


@contextmanager
def threads_to_use() -> Iterator[int]:
    """Keep BLAS on the calling thread, and give the number of threads that may work instead, itself included.

    All cores if nobody else is at it; of fits at the same time, those that come later get what is left.
    """
    with one_thread_each():
        n_more = _loan.take_more()
        try:
            yield 1 + n_more
        finally:
            _loan.give_back_more(n_more)


@contextmanager
def sharing_cores() -> Iterator[None]:
    """Let OpenMP beneath use no more threads than are left by others; to be used around calls of scikit-learn."""
    if getattr(_loan.here, "is_small", False):
        yield
        return
    with threads_to_use() as n_threads:
        n_most = n_threads if n_threads < _loan.n_usual else None
        with _limit_openmp(n_most):
            yield


@contextmanager
def without_helpers() -> Iterator[None]:
    """Keep the libraries beneath on the calling thread: for small work, in which threads would wait for each other."""
    if getattr(_loan.here, "is_small", False):
        yield
        return
    with one_thread_each(), _limit_openmp(1):
        _loan.here.is_small = True
        try:
            yield
        finally:
            _loan.here.is_small = False
