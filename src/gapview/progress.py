"""How far a fit has come: events for whoever listens, and nothing at all for everybody else.

Estimators keep the signatures that scikit-learn knows, so that a listener is not handed to ``fit`` but set around it.
So it hears of everything that happens within: fits inside a pipeline, a grid search or ``cluster_stability`` as well.

Examples
--------
A callback is any function of one :class:`Event`:

>>> from gapview import BridgedGRMF
>>> from gapview.datasets import make_views
>>> from gapview.progress import listening
>>> def say(event):
...     if event.total is None:
...         print(event.phase)
>>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
>>> with listening(say):
...     model = BridgedGRMF(n_clusters=2, selection="fixed", random_state=0).fit(views)
Weighing views
Looking for neighbours
Finding groups
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

__all__ = ["ITERATING", "Event", "Listener", "SpanListener", "listening", "phase", "tell", "timing"]

ITERATING = "Iterating"  # the one phase that others contain: settings are tried by iterating, too


@dataclass(frozen=True)
class Event:
    """One step of a fit.

    Examples
    --------
    >>> from gapview.progress import Event
    >>> Event("Trying settings", done=3, total=18).total
    18
    """

    phase: str  # in words, as they can be shown
    done: int | None = None  # steps of the phase that are done, where they are counted
    total: int | None = None  # of so many; for iterations the most that there can be
    objective: float | None = None  # after the iteration; of runs that go on together, the smallest


Listener = Callable[[Event], None]
SpanListener = Callable[[str, bool], None]  # the name of a phase, and whether it begins (True) or ends (False)
_listener: ContextVar[Listener | None] = ContextVar("gapview_listener", default=None)
_span_listener: ContextVar[SpanListener | None] = ContextVar("gapview_span_listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call ``listener`` with every :class:`Event` of the fits within.

    An error that it raises ends the fit, and leaves the model as it was before: so a fit can be stopped. Of listeners
    around each other, the innermost hears. Work that other threads or processes do (``n_jobs``) is not heard of.

    Parameters
    ----------
    listener : callable
        A function of one :class:`Event`. It is called often, so that what takes long should not be done every time.

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
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(phase: str, done: int | None = None, total: int | None = None, objective: float | None = None) -> None:
    """Tell whoever listens how far the work has come; for functions of your own that belong to it.

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


@contextmanager
def timing(listener: SpanListener) -> Iterator[None]:
    """Call ``listener`` when a phase of a fit within begins and when it ends, to measure where the time goes.

    The phases of a fit in memory or on disk are reading, to the device, scaling, neighbours, bridge, choice, smoothing,
    start, iterations, k-means and confidence. A phase may contain others: a bridge contains searches for neighbours, a
    choice contains whole fits. Of several listeners around each other, the innermost is called. Phases in other threads
    or processes are not reported.

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
    token = _span_listener.set(listener)
    try:
        yield
    finally:
        _span_listener.reset(token)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Report to the listener of :func:`timing` when the work within begins and ends; without one, do nothing.

    Parameters
    ----------
    name : str
        What the work is called.

    Examples
    --------
    >>> from gapview.progress import phase, timing
    >>> with timing(print), phase("scaling"):
    ...     pass
    scaling True
    scaling False
    """
    listener = _span_listener.get()
    if listener is None:
        yield
        return
    listener(name, True)
    try:
        yield
    finally:
        listener(name, False)
