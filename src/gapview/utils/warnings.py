"""Warnings that name the user's line of code, and suppression of warnings that is safe in threads.

``warnings.catch_warnings`` replaces the filters of the whole process and restores them later: two of them at once, in
threads, leave filters behind and lose each other's warnings. Fits use the functions of this module instead.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import sklearn

from ..errors import GapviewWarning

# Python 3.12 can skip these by itself (skip_file_prefixes); 3.11 cannot.
_FOLDERS = (Path(__file__).absolute().parents[1], Path(sklearn.__file__).absolute().parent)
_INSIDE = tuple(str(folder) + os.sep for folder in _FOLDERS)
_muted: ContextVar[tuple[type[Warning], ...]] = ContextVar("muted", default=())
_lock = Lock()
# Set for a moment by check_array, with catch_warnings
_LEFTOVERS: tuple[Any, ...] = (("error", None, np.exceptions.ComplexWarning, None, 0),)


def warn_user(message: str, category: type[Warning] = GapviewWarning) -> None:
    """Issue a warning that names the first caller outside gapview and scikit-learn."""
    if issubclass(category, _muted.get()):
        return
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def muted(category: type[Warning]) -> Iterator[None]:
    """Suppress warnings of :func:`warn_user` in this thread only: of trials whose results are not returned."""
    before = _muted.set((*_muted.get(), category))
    try:
        yield
    finally:
        _muted.reset(before)


def absent_leftovers() -> list[Any]:
    """Return the filters that threads in scikit-learn may leave behind and that are not set now."""
    return [each for each in _LEFTOVERS if each not in warnings.filters]


def drop_leftovers(leftovers: list[Any]) -> None:
    """Remove filters that were left behind."""
    for each in leftovers:
        if each in warnings.filters:
            warnings.filters.remove(each)  # type: ignore[attr-defined]


class _SharedFilter:
    """A filter of warnings by the start of their message, set as long as any thread is inside."""

    def __init__(self) -> None:
        self.n_users = 0
        self.places: list[list[Any]] = []  # lists with the filter: other code may replace the list in use
        self.filter: Any = None

    @contextmanager
    def set(self, message: str) -> Iterator[None]:
        with _lock:
            self.n_users += 1
            if self.filter not in warnings.filters:
                warnings.filterwarnings("ignore", message)
                self.filter = warnings.filters[0]
                self.places.append(warnings.filters)  # type: ignore[arg-type]
        try:
            yield
        finally:
            with _lock:
                self.n_users -= 1
                if not self.n_users:
                    for place in (*self.places, warnings.filters):
                        if self.filter in place:
                            place.remove(self.filter)  # type: ignore[attr-defined]
                    self.places.clear()


_by_message: defaultdict[str, _SharedFilter] = defaultdict(_SharedFilter)


@contextmanager
def ignoring(message: str) -> Iterator[None]:
    """Ignore a warning of a library by the start of its message, in all threads."""
    if getattr(sys.flags, "context_aware_warnings", False):  # each thread has its own filters
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message)
            yield
    else:
        with _by_message[message].set(message):
            yield
