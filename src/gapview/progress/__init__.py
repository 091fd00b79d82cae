"""Progress of fits: a bar in terminals and notebooks, events for a listener, and the time of each phase.

A fit that lasts longer than two seconds shows a progress bar, if standard error is a terminal or the fit runs in a
notebook. ``gapview.progress.bar(False)`` switches it off, and so does the environment variable ``GAPVIEW_PROGRESS=0``.
Pipes, threads and worker processes show nothing.

Estimators keep the signatures of scikit-learn: a listener is not passed to ``fit`` but set around it. So it receives
the events of all fits within, also those inside a pipeline or a grid search; of the fits of ``cluster_stability``, it
receives one event each.

Examples
--------
A callback is any function of one :class:`Event`:

>>> from gapview import BridgedGRMF
>>> from gapview.datasets import make_views
>>> from gapview.progress import listening
>>> def show(event):
...     if event.total is None:
...         print(event.phase)
>>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
>>> with listening(show):
...     model = BridgedGRMF(n_clusters=2, selection="fixed", random_state=0).fit(views)
Weighing views
Refining groups
Looking for neighbours
Finding groups
"""

from .display import bar, showing
from .events import ITERATING, Event, Listener, SpanListener, listening, phase, silent, tell, timing

__all__ = [
    "ITERATING",
    "Event",
    "Listener",
    "SpanListener",
    "bar",
    "listening",
    "phase",
    "showing",
    "silent",
    "tell",
    "timing",
]
