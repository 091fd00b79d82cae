"""What has been finished in a fit: results by name, written now and then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any, Protocol, TypeVar

import numpy as np

__all__ = [
    "MISSING",
    "Journal",
    "Store",
    "Track",
    "journaling",
    "ongoing",
    "remember",
    "remember_search",
    "writing_every",
]

T = TypeVar("T")

SECONDS = 10.0  # of work that may be lost; what is younger waits to be written
_MOST_SHARE = 1 / 25  # of the time that may go into writing: where the disk is slow, more work may be lost
INSIDE = "/"  # between the name of a step and those of its parts
MISSING: Any = object()


class Store(Protocol):
    """Where results are kept."""

    def load(self, key: str) -> Any:
        """Return what was kept under a name, or ``MISSING``."""

    def save(self, key: str, value: Any) -> None:
        """Keep something under a name; what was kept of its parts is not needed any more."""


class Journal:
    """The results of one fit, by names that are the same every time the fit is made.

    A name is made of those of the steps around it, and of how often it has come there.

    Parameters
    ----------
    store : Store
        Where results are kept.

    Examples
    --------
    >>> from gapview.persist.checkpoints import Journal
    >>> class Memory(dict):
    ...     def load(self, key):
    ...         return self[key]
    ...     def save(self, key, value):
    ...         self[key] = value
    >>> Journal(Memory({"sum 1": 3})).remember("sum", lambda: 1 + 1)
    3
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._around = ""
        self._counts: dict[str, int] = {}
        self._waiting: dict[str, Any] = {}  # finished, and not on disk yet
        self._began = self._written = perf_counter()
        self._pause = SECONDS

    def key(self, name: str) -> str:
        """Name the next step that is called so."""
        whole = f"{self._around}{name}"
        self._counts[whole] = self._counts.get(whole, 0) + 1
        return f"{whole} {self._counts[whole]}"

    def load(self, key: str) -> Any:
        """Return what was kept under a name, or ``MISSING``."""
        return self._store.load(key)

    def remember(self, name: str, make: Callable[[], T], drawing: np.random.RandomState | None = None) -> T:
        """Return the result of a step, from the checkpoint if it is there."""
        key = self.key(name)
        found = self.load(key)
        if found is not MISSING:
            if drawing is None:
                return found  # type: ignore[no-any-return]
            value, after = found
            drawing.set_state(after.get_state())
            return value  # type: ignore[no-any-return]
        before, self._around = self._around, key + INSIDE
        try:
            value = make()
        finally:
            self._around = before
        for part in [each for each in self._waiting if each.startswith(key + INSIDE)]:
            del self._waiting[part]
        self._waiting[key] = value if drawing is None else [value, copied(drawing)]
        if self.is_due():
            self.write()
        return value

    def is_due(self) -> bool:
        """Tell whether so much work has been done since the last time that it is worth writing down."""
        return perf_counter() - self._written >= self._pause

    def write(self, more: dict[str, Any] | None = None) -> None:
        """Write what waits, and what else there is."""
        begun = perf_counter()
        for key, value in (self._waiting | (more or {})).items():
            self._store.save(key, value)
        self._waiting.clear()
        self._written = perf_counter()
        self._pause = max(SECONDS, (self._written - begun) / _MOST_SHARE)

    def close(self) -> None:
        """Write what waits when a fit has been cut off, unless it would take no time to do it all again."""
        if perf_counter() - self._began >= SECONDS and self._waiting:
            self.write()


def copied(state: np.random.RandomState) -> np.random.RandomState:
    """Return another source that will give the same numbers."""
    other = np.random.RandomState()
    other.set_state(state.get_state())
    return other


_journal: ContextVar[Journal | None] = ContextVar("gapview_journal", default=None)


@contextmanager
def journaling(journal: Journal | None) -> Iterator[None]:
    """Keep what is finished within in a journal, or nowhere."""
    token = _journal.set(journal)
    try:
        yield
    finally:
        _journal.reset(token)


@contextmanager
def writing_every(seconds: float, most_share: float) -> Iterator[None]:
    """Write checkpoints of the fits within more or less often than usual; for experiments and tests.

    Parameters
    ----------
    seconds : float
        Least time between two times of writing; 10 by default.
    most_share : float
        Largest share of the time that may go into writing; 1/25 by default.

    Examples
    --------
    >>> from gapview.persist.checkpoints import writing_every
    >>> with writing_every(0.0, 0.5):
    ...     pass  # fit with checkpoint=
    """
    global SECONDS, _MOST_SHARE
    before = SECONDS, _MOST_SHARE
    SECONDS, _MOST_SHARE = seconds, most_share
    try:
        yield
    finally:
        SECONDS, _MOST_SHARE = before


def current() -> Journal | None:
    """Return the journal of the fit that is going on, if it has one."""
    return _journal.get()


def remember(name: str, make: Callable[[], T], drawing: np.random.RandomState | None = None) -> T:
    """Return the result of a step of a fit: from its checkpoint, or made and kept there.

    Parameters
    ----------
    name : str
        What to call the step. Steps of one name are told apart by their order.
    make : callable
        Makes the result, of values that a model file can hold. It must follow from the data, the settings and the seed
        alone, warn of nothing, and not be changed afterwards.
    drawing : RandomState, optional
        The source of random numbers that ``make`` draws from. It is left as if the step had been made.

    Examples
    --------
    >>> from gapview.persist.checkpoints import remember
    >>> remember("sum", lambda: 1 + 1)
    2
    """
    journal = _journal.get()
    return make() if journal is None else journal.remember(name, make, drawing)


def remember_search(name: str, make: Callable[[], T], search: Any) -> T:
    """Do as :func:`remember` for a step that looks for neighbours: what ``search`` has noted is kept, too.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.persist.checkpoints import remember_search
    >>> from gapview.graph import knn_graph
    >>> remember_search("neighbours", lambda: knn_graph(np.eye(3), 1), None).shape
    (3, 3)
    """
    done = [] if search is None else search.done
    n_before = len(done)

    def made() -> list[Any]:
        return [make(), done[n_before:]]

    value, new = remember(name, made)
    done[n_before:] = new
    return value  # type: ignore[no-any-return]


class Track:
    """How far something has come that goes on in many small steps; made by :func:`ongoing`.

    Attributes
    ----------
    last : object or None
        Where it stood when that was last written; None at the beginning.

    Examples
    --------
    >>> from gapview.persist.checkpoints import ongoing
    >>> ongoing("iterations").last is None
    True
    """

    def __init__(self, journal: Journal | None, name: str) -> None:
        self._journal = journal
        self._key = "" if journal is None else journal.key(name)
        found = MISSING if journal is None else journal.load(self._key)
        self.last: Any = None if found is MISSING else found

    def note(self, standing: Callable[[], Any]) -> None:
        """Write where it stands, if that is due; ``standing`` is asked only then."""
        if self._journal is not None and self._journal.is_due():
            self._journal.write({self._key: standing()})


def ongoing(name: str) -> Track:
    """Return what is known of something that goes on in many small steps, and where to note how far it has come.

    Examples
    --------
    >>> from gapview.persist.checkpoints import ongoing
    >>> track = ongoing("iterations")
    >>> for n_done in range(track.last or 0, 3):
    ...     track.note(lambda: n_done + 1)
    """
    return Track(_journal.get(), name)
