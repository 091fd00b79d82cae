"""Time and memory of a fit by phase, from the events of :func:`gapview.progress.timing`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from gapview.progress import timing

from ..common.run_file import largest_process

__all__ = ["PHASES", "PhaseClock", "clocked_phases", "memory_now", "peak_memory"]

OTHER = "other"
CLOSED = "choice"  # tries whole fits on few samples: what they do belongs to the choice
PHASES: Mapping[str, str] = {
    "reading": "arrays are checked, and the rows that are present packed",
    "to the device": "views are copied to the device",
    "scaling": "rows or features are scaled",
    "neighbours": "nearest neighbours are found, and linked to graphs",
    "bridge": "views are completed and graphs over all samples put together, without the search for neighbours",
    "choice": "settings and weights of views are chosen, on 5000 samples at most",
    "refinement": "samples are assigned by the refinement that was learned with the choice",
    "smoothing": "H = AᵀX",
    "start": "starting codes",
    "iterations": "Algorithm 1",
    "k-means": "20 restarts, balancing included",
    "confidence": "confidence of every sample",
    OTHER: "what is left",
}
_PAUSE = 0.005  # seconds between two looks at the memory


class PhaseClock:
    """Clock that sums time by phase; the innermost phase counts.

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
        self._stack, self._since = [OTHER], 0.0

    @property
    def total(self) -> float:
        """Seconds of all phases."""
        return sum(self.seconds.values())

    @contextmanager
    def running(self) -> Iterator[None]:
        """Add the time since the last event to the current phase."""
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

    def listen(self, phase: str, begins: bool) -> None:
        """Switch to another phase; see :func:`gapview.progress.timing`."""
        self._note()
        if begins:
            self._stack.append(CLOSED if self._stack[-1] == CLOSED else phase)
        else:
            self._stack.pop()

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
    """Measure the phases of the fits in this context with a clock."""
    with clock.running(), timing(clock.listen):
        yield


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
        return largest_process()
