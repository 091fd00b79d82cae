"""Where the time and the memory of a fit go: clocks around the library's functions, put there from outside."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from time import perf_counter
from typing import Any

from gapview.bridges import both_graphs, joint_graph, union_graph
from gapview.clusters import balancing, cluster_rows
from gapview.completion import complete_views
from gapview.compute import to_device
from gapview.data_start import data_start
from gapview.estimators._plan import list_candidates, select, settle_weights, suggest_count
from gapview.factorization import solve_together
from gapview.graph import knn_graph
from gapview.neighbors import nearest
from gapview.problem import build_problem
from gapview.scaling import scale_alike
from gapview.selection import choose
from gapview.starts import random_start
from gapview.trust._confidence import confidence
from gapview.views._checks import training_views

__all__ = ["PHASES", "PhaseClock", "clocked_phases", "memory_now", "peak_memory"]

_FUNCTIONS: Mapping[Callable[..., Any], str] = {
    training_views: "reading",
    to_device: "to the device",
    scale_alike: "scaling",
    nearest: "neighbours",
    knn_graph: "neighbours",
    complete_views: "bridge",
    union_graph: "bridge",
    joint_graph: "bridge",
    both_graphs: "bridge",
    build_problem: "smoothing",
    random_start: "start",
    data_start: "start",
    solve_together: "iterations",
    balancing: "k-means",
    cluster_rows: "k-means",
    confidence: "confidence",
    list_candidates: "choice",
    settle_weights: "choice",
    select: "choice",
    suggest_count: "choice",
    choose: "choice",
}
_OTHER = "other"
_CLOSED = "choice"  # tries whole fits on few samples: what they do belongs to the choice
PHASES: Mapping[str, str] = {
    "reading": "arrays are checked, and the rows that are present packed",
    "to the device": "views are copied to the device",
    "scaling": "rows or features are scaled",
    "neighbours": "nearest neighbours are found, and linked to graphs",
    "bridge": "views are completed and graphs over all samples put together, without the search for neighbours",
    "choice": "settings and weights of views are chosen, on 5000 samples at most",
    "smoothing": "H = AᵀX",
    "start": "starting codes",
    "iterations": "Algorithm 1",
    "k-means": "20 restarts, balancing included",
    "confidence": "confidence of every sample",
    _OTHER: "what is left",
}
_PAUSE = 0.005  # seconds between two looks at the memory


class PhaseClock:
    """Adds up time by phase; the innermost phase counts.

    Parameters
    ----------
    settle : callable, optional
        Called before every look at the clock: a device is waited for.
    watch_memory : bool, default=False
        Also note the largest memory seen in every phase. A thread looks at it all the time, which costs a little.
    """

    def __init__(self, settle: Callable[[], Any] = lambda: None, *, watch_memory: bool = False) -> None:
        self.seconds: dict[str, float] = dict.fromkeys(PHASES, 0.0)
        self.memory: dict[str, float] = {}  # MB
        self._settle, self._watch_memory = settle, watch_memory
        self._stack, self._since = [_OTHER], 0.0
        self._thread = threading.get_ident()

    @property
    def total(self) -> float:
        """Seconds of all phases."""
        return sum(self.seconds.values())

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let time pass."""
        stop = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(stop,), daemon=True)
        if self._watch_memory:
            watcher.start()
        self._settle()
        self._since = perf_counter()
        try:
            yield
        finally:
            self._note()
            stop.set()
            if self._watch_memory:
                watcher.join()

    def around(self, phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Give a function whose time counts for a phase."""

        @wraps(function)
        def clocked(*arguments: Any, **more: Any) -> Any:
            if self._stack[-1] == _CLOSED or threading.get_ident() != self._thread:
                return function(*arguments, **more)
            self._note()
            self._stack.append(phase)
            try:
                return function(*arguments, **more)
            finally:
                self._note()
                self._stack.pop()

        return clocked

    def _note(self) -> None:
        self._settle()
        now = perf_counter()
        self.seconds[self._stack[-1]] += now - self._since
        self._since = now

    def _watch(self, stop: threading.Event) -> None:
        while not stop.wait(_PAUSE):
            phase = self._stack[-1]
            self.memory[phase] = max(self.memory.get(phase, 0.0), memory_now())


@contextmanager
def clocked_phases(clock: PhaseClock) -> Iterator[None]:
    """Put clocks around the functions of all phases, wherever they are imported, and take them away again."""
    places = list(_places())
    try:
        for owner, name, value in places:
            function = _plain(value)
            changed = clock.around(_FUNCTIONS[function], function)
            setattr(owner, name, changed if function is value else staticmethod(changed))
        with clock.running():
            yield
    finally:
        for owner, name, value in places:
            setattr(owner, name, value)


def _places() -> Iterator[tuple[Any, str, Any]]:
    """Find the functions of all phases in the modules of the library and in their classes."""
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "gapview"]
    classes = {value for module in modules for value in vars(module).values() if _is_ours(value)}
    wanted = {id(function) for function in _FUNCTIONS}
    for owner in (*modules, *classes):
        for name, value in list(vars(owner).items()):
            if id(_plain(value)) in wanted:
                yield owner, name, value


def _is_ours(value: Any) -> bool:
    return isinstance(value, type) and value.__module__.partition(".")[0] == "gapview"


def _plain(value: Any) -> Any:
    return value.__func__ if isinstance(value, staticmethod) else value


def memory_now() -> float:
    """Return the memory that this process holds, in MB; NaN where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return float("nan")
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def peak_memory() -> float:
    """Return the most memory that this process has held, in MB; NaN where the system does not tell.

    Linux counts the memory of the process that has started this one into ``ru_maxrss``, but not into this.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(float(line.split()[1]) / 2**10 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        from ..common.run_file import largest_process

        return largest_process()
