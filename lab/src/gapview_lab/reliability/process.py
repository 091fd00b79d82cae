"""Resources of this process: memory, threads, open files, from /proc."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path
from typing import Self

__all__ = ["Watch", "file_count", "memory", "thread_count"]

_SELF = Path("/proc/self")
_PAUSE = 0.003  # seconds between two looks


def memory() -> float:
    """Return the memory of this process in kilobytes, after a garbage collection.

    Examples
    --------
    >>> from gapview_lab.reliability.process import memory
    >>> memory() > 1000
    True
    """
    gc.collect()
    return int((_SELF / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024


def thread_count() -> int:
    """Return the number of threads of this process, those of the libraries beneath included."""
    return len(os.listdir(_SELF / "task"))


def file_count() -> int:
    """Return the number of open files of this process."""
    return len(os.listdir(_SELF / "fd"))


class Watch:
    """Context that samples how many threads of this process are running.

    Examples
    --------
    >>> from gapview_lab.reliability.process import Watch
    >>> with Watch() as watch:
    ...     _ = sum(range(2_000_000))
    >>> watch.most_busy <= 1
    True
    """

    def __init__(self) -> None:
        self.most_busy = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        own = str(threading.get_native_id())
        while not self._ended.wait(_PAUSE):
            busy = sum(_can_run(task) for task in os.listdir(_SELF / "task") if task != own)
            self.most_busy = max(self.most_busy, busy)


def _can_run(task: str) -> bool:
    try:
        state = (_SELF / "task" / task / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:  # it has ended
        return False
    return state == "R"
