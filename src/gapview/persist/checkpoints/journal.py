"""Results of the steps of a fit, by name, written to a store from time to time.

Nothing here knows of files: a store is anything that loads and saves values by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any, Protocol, TypeVar

import numpy as np

from ...progress.events import set_within
from ...utils.messages import random_generator

T = TypeVar("T")

SECONDS = 10.0  # between two writes, at least: so much work can be lost
MOST_SHARE = 1 / 25  # of the time spent on writing: on a slow disk the writes are further apart
INSIDE = "/"  # between the name of a step and the names of its parts
MISSING: Any = object()


class ResultStore(Protocol):
    """Storage of results by name."""

    def load(self, key: str) -> Any:
        """Return the result saved under a name, or ``MISSING``."""

    def save(self, key: str, value: Any) -> None:
        """Save a result under a name, and remove the results of its parts."""


class Journal:
    """The results of one fit, by names that are the same in every run of the fit.

    The name of a step consists of the names of the steps around it, its own, and a count of steps of that name.

    Parameters
    ----------
    store : ResultStore
        Where results are saved.

    Examples
    --------
    >>> from gapview.persist.checkpoints.journal import Journal
    >>> class Memory(dict):
    ...     def load(self, key):
    ...         return self[key]
    ...     def save(self, key, value):
    ...         self[key] = value
    >>> Journal(Memory({"sum 1": 3})).step("sum", lambda: 1 + 1)
    3
    """

    def __init__(self, store: ResultStore) -> None:
        self._store = store
        self._around = ""
        self._counts: dict[str, int] = {}
        self._unwritten: dict[str, Any] = {}
        self._began = self._written = perf_counter()
        self._pause = SECONDS

    def resumed(self, name: str) -> tuple[str, Any]:
        """Return the full name of the next step called ``name``, and what is saved under it, or ``MISSING``."""
        whole = f"{self._around}{name}"
        self._counts[whole] = self._counts.get(whole, 0) + 1
        key = f"{whole} {self._counts[whole]}"
        return key, self._store.load(key)

    def step(self, name: str, compute: Callable[[], T], generator: np.random.RandomState | None = None) -> T:
        """Return the result of a step; see :func:`checkpointed`."""
        key, found = self.resumed(name)
        if found is not MISSING:
            if generator is not None:
                found, state = found
                generator.set_state(state)
            return found  # type: ignore[no-any-return]
        before, self._around = self._around, key + INSIDE
        try:
            value = compute()
        finally:
            self._around = before
        unwritten = self._unwritten.items()
        self._unwritten = {each: part for each, part in unwritten if not each.startswith(key + INSIDE)}
        self._unwritten[key] = value if generator is None else [value, generator.get_state(legacy=False)]
        if self.is_due():
            self.write()
        return value

    def is_due(self) -> bool:
        """Return whether enough time has passed since the last write."""
        return perf_counter() - self._written >= self._pause

    def write(self, more: dict[str, Any] | None = None) -> None:
        """Write the results that are not written yet, and ``more``."""
        begun = perf_counter()
        for key, value in (self._unwritten | (more or {})).items():
            self._store.save(key, value)
        self._unwritten.clear()
        self._written = perf_counter()
        self._pause = max(SECONDS, (self._written - begun) / MOST_SHARE)

    def close(self) -> None:
        """Write the results of an interrupted fit, unless it was so short that computing them again costs little."""
        if perf_counter() - self._began >= SECONDS and self._unwritten:
            self.write()


_journal: ContextVar[Journal | None] = ContextVar("gapview_journal", default=None)


def use_journal(journal: Journal | None) -> AbstractContextManager[None]:
    """Record the steps of the fit within in a journal; None records nothing."""
    return set_within(_journal, journal)


def is_recording() -> bool:
    """Return whether the steps of a fit are recorded, in their order."""
    return _journal.get() is not None


@contextmanager
def writing_every(seconds: float, most_share: float) -> Iterator[None]:
    """Set how often the fits within write their checkpoints; for experiments and tests.

    Parameters
    ----------
    seconds : float
        Least time between two writes; 10 by default.
    most_share : float
        Largest share of the time that is spent on writing; 1/25 by default.

    Examples
    --------
    >>> from gapview.persist.checkpoints import writing_every
    >>> with writing_every(0.0, 0.5):
    ...     pass  # fit with checkpoint=
    """
    global SECONDS, MOST_SHARE
    before = SECONDS, MOST_SHARE
    SECONDS, MOST_SHARE = seconds, most_share
    try:
        yield
    finally:
        SECONDS, MOST_SHARE = before


def checkpointed(name: str, compute: Callable[[], T], generator: np.random.RandomState | None = None) -> T:
    """Return the result of a step of a fit: read from its checkpoint, or computed and recorded there.

    Parameters
    ----------
    name : str
        Name of the step. Steps of the same name are distinguished by their order.
    compute : callable
        Computes the result, which consists of values that a model file can hold. The result must depend on the data,
        the settings and the seed alone, and must not be changed afterwards. Warnings are not repeated.
    generator : RandomState, optional
        The generator from which ``compute`` draws. Its state afterwards is restored together with the result.

    Examples
    --------
    >>> from gapview.persist.checkpoints import checkpointed
    >>> checkpointed("sum", lambda: 1 + 1)
    2
    """
    journal = _journal.get()
    return compute() if journal is None else journal.step(name, compute, generator)


def checkpointed_search(name: str, compute: Callable[[], T], search: Any) -> T:
    """Return the result of a step that searches neighbours; the reports that ``search`` collects are recorded, too.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.persist.checkpoints import checkpointed_search
    >>> from gapview.graph import knn_graph
    >>> checkpointed_search("neighbours", lambda: knn_graph(np.eye(3), 1), None).shape
    (3, 3)
    """
    done = [] if search is None else search.done
    n_before = len(done)
    value, done[n_before:] = checkpointed(name, lambda: (compute(), done[n_before:]))
    return value


class StateRecord:
    """The state of a computation of many small steps, recorded in the checkpoint of the fit from time to time.

    Parameters
    ----------
    name : str
        Name of the computation, as in :func:`checkpointed`.

    Attributes
    ----------
    last : object or None
        The last recorded state; None if there is none.

    Examples
    --------
    >>> from gapview.persist.checkpoints import StateRecord
    >>> record = StateRecord("iterations")
    >>> for n_done in range(record.last or 0, 3):
    ...     record.save(lambda: n_done + 1)
    """

    def __init__(self, name: str) -> None:
        self._journal = _journal.get()
        self._key, found = ("", MISSING) if self._journal is None else self._journal.resumed(name)
        self.last: Any = None if found is MISSING else found

    def save(self, state: Callable[[], Any]) -> None:
        """Write the state that ``state`` returns if a write is due; otherwise do not call it."""
        if self._journal is not None and self._journal.is_due():
            self._journal.write({self._key: state()})


def fit_generator(random_state: Any) -> np.random.RandomState:
    """Return the generator of a fit: a resumed fit draws the numbers that an uninterrupted one draws.

    Without a seed, a checkpoint records the one it drew. The state of a RandomState is part of the identity of the
    checkpoint, so that it is the same when the fit is resumed.

    Examples
    --------
    >>> from gapview.persist.checkpoints.journal import fit_generator
    >>> int(fit_generator(0).randint(100))
    44
    """
    generator = random_generator(random_state)
    if _journal.get() is not None and (random_state is None or random_state is np.random):
        return np.random.RandomState(checkpointed("seed", lambda: int(generator.randint(2**31 - 1))))
    return generator


@contextmanager
def restored_on_error(random_state: Any) -> Iterator[None]:
    """Reset a RandomState if the fit within fails, so that the same call resumes it; leave other seeds alone.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.persist.checkpoints.journal import restored_on_error
    >>> generator = np.random.RandomState(0)
    >>> try:
    ...     with restored_on_error(generator):
    ...         raise KeyError(generator.randint(100))
    ... except KeyError:
    ...     int(generator.randint(100))
    44
    """
    state = random_state.get_state(legacy=False) if isinstance(random_state, np.random.RandomState) else None
    try:
        yield
    except BaseException:
        if state is not None:
            random_state.set_state(state)
        raise
