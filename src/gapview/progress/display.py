"""The progress bar of long fits: one line with the phase and the time left, in terminals and in notebooks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from html import escape
from importlib import import_module
from multiprocessing import current_process
from threading import Lock, Timer, current_thread, main_thread
from time import perf_counter
from typing import Any, Protocol

from ..utils.messages import check_flag, check_real, duration
from .events import ITERATING, Event, has_listener, listening

SWITCH = "GAPVIEW_PROGRESS"  # environment variable
DELAY = 2.0  # seconds before a bar appears
_OFF = ("0", "false", "no", "off")
_TRIALS = ("Counting groups", "Weighing views", "Trying settings", "Assessing groups")  # phases that contain iterations
_LEAST_BETWEEN = 0.1  # seconds between two changes of what is shown within a phase
_is_on = True


def bar(shown: bool) -> None:
    """Switch the progress bar of long fits on or off.

    The environment variable ``GAPVIEW_PROGRESS=0`` switches it off, too.

    Parameters
    ----------
    shown : bool
        Whether fits show a bar if standard error is a terminal, or in a notebook. True at the beginning.

    Examples
    --------
    >>> import gapview
    >>> gapview.progress.bar(False)
    >>> gapview.progress.bar(True)
    """
    global _is_on
    check_flag("shown", shown)
    _is_on = bool(shown)


@contextmanager
def showing(delay: float = DELAY) -> Iterator[None]:
    """Show one progress bar for all fits within, once they have lasted some seconds.

    Fits do this by themselves, each with a bar of its own. Nothing is shown if a listener is set, if :func:`bar` is
    off, if standard error is neither a terminal nor that of a notebook, and in other threads and processes.

    Parameters
    ----------
    delay : float, default=2.0
        Seconds before the bar appears.

    Examples
    --------
    >>> from gapview import GRMF
    >>> from gapview.datasets import make_views
    >>> from gapview.progress import showing
    >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> with showing(delay=0):
    ...     models = [GRMF(n_clusters=2, random_state=seed).fit(views) for seed in range(3)]
    """
    check_real("delay", delay, low=0)
    display = None if has_listener() else _display()
    if display is None:
        yield
        return
    late = LateBar(display, delay)
    try:
        with listening(late):
            yield
    finally:
        late.close()


class Line:
    """The text of a bar: the phase, the number of steps done, the objective, the time left."""

    def __init__(self) -> None:
        self.phase = Event("Starting")
        self._objective: float | None = None
        self._began = perf_counter()

    def take(self, event: Event) -> bool:
        """Take an event; return whether another phase begins."""
        is_new = False
        if event.phase != ITERATING or self.phase.phase not in _TRIALS:
            is_new = event.phase != self.phase.phase
            if is_new or event.done == 0:  # steps are counted from here
                self._began = perf_counter()
            self.phase = event
        self._objective = event.objective
        return is_new

    @property
    def detail(self) -> str:
        """The steps done, the objective and the time left; only written when it is shown, since events are frequent."""
        done, total, most = self.phase.done, self.phase.total, self.phase.phase == ITERATING
        parts = []
        if done is not None and total:
            parts.append(f"{done} of {'at most ' if most else ''}{total}")
        if self._objective is not None:
            parts.append(f"objective {self._objective:.6g}")
        if done and total:
            left = (perf_counter() - self._began) / done * (total - done)
            parts.append(f"{'at most' if most else 'about'} {duration(left)} left")
        return ", ".join(parts)


class Display(Protocol):
    """A place where a bar is shown."""

    def start(self) -> None:
        """Show an empty bar."""

    def show(self, line: Line) -> None:
        """Show what the line says."""

    def stop(self) -> None:
        """Remove the bar."""


class Terminal:
    """A bar in the last line of a terminal, which is empty again afterwards.

    Lines that are printed on ``console`` appear above the bar; without a console, so do warnings.
    """

    def __init__(self, console: Any = None) -> None:
        self._console = console

    def start(self) -> None:
        """Show an empty bar, and start the thread of rich that moves it."""
        from rich.console import Console  # imported when a bar appears, since most fits show none
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

        form = [TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[detail]}")]
        columns = (SpinnerColumn(), form[0], BarColumn(bar_width=20), form[1])
        own = self._console is None
        shown = Console(stderr=True, soft_wrap=True) if own else self._console
        options: dict[str, Any] = {"transient": True, "redirect_stdout": False, "redirect_stderr": own}
        self._bar = Progress(*columns, console=shown, refresh_per_second=5, **options)
        self._task = self._bar.add_task("Starting", total=None, detail="")
        self._bar.start()

    def show(self, line: Line) -> None:
        """Show what the line says."""
        phase = line.phase
        self._bar.update(
            self._task, description=phase.phase, detail=line.detail, total=phase.total, completed=phase.done or 0
        )

    def stop(self) -> None:
        """Erase the line."""
        self._bar.stop()


class Notebook:
    """A bar in the output of a cell of a notebook, which is empty again afterwards."""

    def start(self) -> None:
        """Show an empty bar."""
        display = import_module("IPython.display").display

        self._shown = display(_bundle("", ""), raw=True, display_id=True)

    def show(self, line: Line) -> None:
        """Show what the line says."""
        known = f' value="{line.phase.done or 0}" max="{line.phase.total}"' if line.phase.total else ""
        text = f"{line.phase.phase} {line.detail}".strip()
        self._shown.update(_bundle(text, f"<progress{known}></progress> {escape(text)}"), raw=True)

    def stop(self) -> None:
        """Empty the output."""
        self._shown.update(_bundle("", ""), raw=True)


def _bundle(text: str, html: str) -> dict[str, str]:
    return {"text/plain": text, "text/html": html}


class LateBar:
    """A listener that shows a bar after some seconds, and little more often than can be read."""

    def __init__(self, display: Display, delay: float = 0.0) -> None:
        self._display, self._line = display, Line()
        self._lock, self._is_shown, self._is_closed, self._changed = Lock(), False, False, 0.0
        self._timer = Timer(delay, copy_context().run, [self._start])  # the context knows the cell of the notebook
        self._timer.daemon = True
        if delay > 0:
            self._timer.start()
        else:
            self._start()

    def _start(self) -> None:
        with self._lock:
            if not self._is_closed:
                self._display.start()
                self._display.show(self._line)
                self._is_shown = True

    def __call__(self, event: Event) -> None:
        """Take one event."""
        is_new = self._line.take(event)
        if self._is_shown and (is_new or perf_counter() - self._changed >= _LEAST_BETWEEN):
            self._changed = perf_counter()
            self._display.show(self._line)

    def close(self) -> None:
        """Remove the bar."""
        self._timer.cancel()
        with self._lock:
            self._is_closed = True
            if self._is_shown:
                self._is_shown = False
                self._display.stop()


def _display() -> Display | None:
    """Return the place for a bar; None where nothing should be shown."""
    if not _is_on or os.environ.get(SWITCH, "").strip().lower() in _OFF:
        return None
    if current_thread() is not main_thread() or current_process().name != "MainProcess":  # workers of joblib and Dask
        return None
    if _in_notebook():
        return Notebook()
    is_terminal = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    return Terminal() if is_terminal else None


def _in_notebook() -> bool:
    ipython: Any = sys.modules.get("IPython")
    return getattr(ipython.get_ipython() if ipython else None, "kernel", None) is not None
