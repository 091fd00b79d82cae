"""Threads of our own instead of those of BLAS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController, threadpool_limits

__all__ = ["one_thread_each", "without_helpers"]


@cache
def _libraries() -> Any:
    return ThreadpoolController().select(user_api="blas")


class _Loan:
    """The threads of BLAS while somebody else uses the cores.

    The limit holds for the whole process. Where several fits run at once, the first sets it and the last lifts it, so
    that none finds it set for good by another.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.n_borrowers = 0
        self.n_threads = 1
        self.limiter: Any = None

    def take(self) -> int:
        with self.lock:
            if not self.n_borrowers:
                libraries = _libraries()
                self.n_threads = max((library.num_threads for library in libraries.lib_controllers), default=1)
                self.limiter = libraries.limit(limits=1)
            self.n_borrowers += 1
            return self.n_threads

    def give_back(self) -> None:
        with self.lock:
            self.n_borrowers -= 1
            if not self.n_borrowers:
                self.limiter.restore_original_limits()


_loan = _Loan()


@contextmanager
def one_thread_each() -> Iterator[int]:
    """Keep BLAS on the calling thread, and give the number of threads it would have used."""
    n_threads = _loan.take()
    try:
        yield n_threads
    finally:
        _loan.give_back()


@contextmanager
def without_helpers() -> Iterator[None]:
    """Keep the libraries beneath on the calling thread: for small work, in which threads would wait for each other."""
    with one_thread_each(), threadpool_limits(1, user_api="openmp"):
        yield
