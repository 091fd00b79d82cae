"""Events of a fit for a listener, and the beginning and end of its phases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

ITERATING = "Iterating"  # the only phase that occurs within others: trials of settings iterate, too


@dataclass(frozen=True)
class Event:
    """One step of a fit.

    Examples
    --------
    >>> from gapview.progress import Event
    >>> Event("Trying settings", done=3, total=18).total
    18
    """

    phase: str  # a short text for users
    done: int | None = None  # number of finished steps of the phase, if they are counted
    total: int | None = None  # number of all steps; of iterations the largest possible number
    objective: float | None = None  # after the iteration; the smallest of runs that iterate together


Listener = Callable[[Event], None]
SpanListener = Callable[[str, bool], None]  # the name of a phase, and whether it begins (True) or ends (False)
_listener: ContextVar[Listener | None] = ContextVar("gapview_listener", default=None)
_span_listener: ContextVar[SpanListener | None] = ContextVar("gapview_span_listener", default=None)


@contextmanager
def set_within(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Set a context variable for the code within."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def listening(listener: Listener) -> AbstractContextManager[None]:
    """Call ``listener`` with every :class:`Event` of the fits within.

    An error that it raises stops the fit, and leaves the model as it was before. Of several nested listeners, the
    innermost is called. Events in other threads or processes (``n_jobs``) are not reported.

    Parameters
    ----------
    listener : callable
        A function of one :class:`Event`. It is called often, and should return quickly.

    Examples
    --------
    >>> from gapview import GRMF
    >>> from gapview.datasets import make_views
    >>> from gapview.progress import listening
    >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> events = []
    >>> with listening(events.append):
    ...     model = GRMF(n_clusters=2, random_state=0).fit(views)
    >>> [event.phase for event in events][:2], events[-2].done == model.n_iter_
    (['Looking for neighbours', 'Iterating'], True)
    """
    return set_within(_listener, listener)


def silent() -> AbstractContextManager[None]:
    """Report none of the events within, such as those of fits that are steps of other work.

    Examples
    --------
    >>> from gapview.progress import listening, silent, tell
    >>> with listening(lambda event: print(event.phase)):
    ...     with silent():
    ...         tell("Finding groups")
    ...     tell("Repeating the fit")
    Repeating the fit
    """
    return set_within(_listener, _ignore)


@contextmanager
def unreported() -> Iterator[None]:
    """Report neither the events nor the phases within, which belong to one of several threads."""
    with set_within(_listener, _ignore), set_within(_span_listener, None):
        yield


def _ignore(event: Event) -> None:
    """Do nothing: set as listener, it also keeps fits within from showing a bar."""


def has_listener() -> bool:
    """Return whether events are received, or ignored on purpose."""
    return _listener.get() is not None


def tell(phase: str, done: int | None = None, total: int | None = None, objective: float | None = None) -> None:
    """Call the listener of :func:`listening`, if there is one, with an :class:`Event`.

    Parameters
    ----------
    phase, done, total, objective
        As in :class:`Event`.

    Examples
    --------
    >>> from gapview.progress import listening, tell
    >>> with listening(lambda event: print(event.phase, event.done, "of", event.total)):
    ...     tell("Reading files", 1, 3)
    Reading files 1 of 3
    """
    listener = _listener.get()
    if listener is not None:
        listener(Event(phase, done, total, objective))


def timing(listener: SpanListener) -> AbstractContextManager[None]:
    """Call ``listener`` when a phase of a fit within begins and when it ends, to measure where the time goes.

    The phases of a fit in memory or on disk are reading, to the device, scaling, neighbours, bridge, choice, smoothing,
    start, iterations, k-means and confidence. A phase may contain others: a bridge contains searches for neighbours, a
    choice contains whole fits. Of several nested listeners, the innermost is called. Phases in other threads or
    processes are not reported.

    Parameters
    ----------
    listener : callable
        A function of the name of the phase and of True at its beginning, False at its end.

    Examples
    --------
    >>> from gapview import GRMF
    >>> from gapview.datasets import make_views
    >>> from gapview.progress import timing
    >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> begun = []
    >>> with timing(lambda name, begins: begun.append(name) if begins else None):
    ...     model = GRMF(n_clusters=2, random_state=0).fit(views)
    >>> ", ".join(begun)
    'reading, scaling, neighbours, smoothing, start, iterations, k-means, confidence'
    """
    return set_within(_span_listener, listener)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Report to the listener of :func:`timing` when the work within begins and ends; without one, do nothing.

    Parameters
    ----------
    name : str
        Name of the phase.

    Examples
    --------
    >>> from gapview.progress import phase, timing
    >>> with timing(print), phase("scaling"):
    ...     pass
    scaling True
    scaling False
    """
    listener = _span_listener.get() or (lambda name, begins: None)
    listener(name, True)
    try:
        yield
    finally:
        listener(name, False)
