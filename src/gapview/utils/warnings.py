"""Warnings that point at the user's own line, and those that are not meant for users.

``warnings.catch_warnings`` swaps the filters of the whole process, and puts them back: two of them at once, in threads,
leave filters behind, and lose each other's warnings. So fits use what is here instead.
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

# Python 3.12 can skip these by itself (skip_file_prefixes); 3.11 cannot.
_FOLDERS = (Path(__file__).absolute().parents[1], Path(sklearn.__file__).absolute().parent)
_INSIDE = tuple(str(folder) + os.sep for folder in _FOLDERS)
_muted: ContextVar[tuple[type[Warning], ...]] = ContextVar("muted", default=())
_lock = Lock()
# Set by check_array for a moment, with catch_warnings
_LEFTOVERS: tuple[Any, ...] = (("error", None, np.exceptions.ComplexWarning, None, 0),)


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn, and name the first caller outside gapview and scikit-learn, however many of their methods lie between."""
    if issubclass(category, _muted.get()):
        return
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def muted(category: type[Warning]) -> Iterator[None]:
    """Drop what :func:`warn_user` says here, and in no other thread: of trials whose results nobody sees."""
    before = _muted.set((*_muted.get(), category))
    try:
        yield
    finally:
        _muted.reset(before)


def absent_leftovers() -> list[Any]:
    """List filters that threads in scikit-learn may leave behind, and that are not there yet."""
    return [each for each in _LEFTOVERS if each not in warnings.filters]


def drop_leftovers(leftovers: list[Any]) -> None:
    """Take out what was left behind."""
    for each in leftovers:
        if each in warnings.filters:
            warnings.filters.remove(each)  # type: ignore[attr-defined]


class _Unheard:
    """A filter that is there as long as any thread wants it."""

    def __init__(self) -> None:
        self.n_wanting = 0
        self.places: list[list[Any]] = []  # lists that have got it: others may swap the one in use meanwhile
        self.filter: Any = None

    def add(self, message: str) -> None:
        with _lock:
            self.n_wanting += 1
            if self.filter not in warnings.filters:
                warnings.filterwarnings("ignore", message)
                self.filter = warnings.filters[0]
                self.places.append(warnings.filters)  # type: ignore[arg-type]

    def remove(self) -> None:
        with _lock:
            self.n_wanting -= 1
            if not self.n_wanting:
                for place in (*self.places, warnings.filters):
                    if self.filter in place:
                        place.remove(self.filter)  # type: ignore[attr-defined]
                self.places.clear()


_by_message: defaultdict[str, _Unheard] = defaultdict(_Unheard)


@contextmanager
def unheard(message: str) -> Iterator[None]:
    """Drop a warning of a library beneath, by how its message begins."""
    if getattr(sys.flags, "context_aware_warnings", False):  # each thread has filters of its own
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message)
            yield
        return
    kept = _by_message[message]
    kept.add(message)
    try:
        yield
    finally:
        kept.remove()
