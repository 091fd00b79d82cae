"""How far a fit has come: events for whoever listens, and nothing at all for everybody else.

Estimators keep the signatures that scikit-learn knows, so that a listener is not handed to ``fit`` but set around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

__all__ = ["ITERATING", "Event", "Listener", "listening", "tell"]

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
_listener: ContextVar[Listener | None] = ContextVar("gapview_listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call ``listener`` with every :class:`Event` of the fits within.

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
    """Tell whoever listens how far the work has come."""
    listener = _listener.get()
    if listener is not None:
        listener(Event(phase, done, total, objective))
