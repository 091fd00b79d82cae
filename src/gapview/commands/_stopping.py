"""Stopping a command: by Ctrl-C, by a signal that ends a process, or by closing its terminal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

__all__ = ["Ended", "ending_heard", "undisturbed"]

_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Ended(KeyboardInterrupt):
    """The process was told to end: what Ctrl-C does is done, and the exit code says which signal it was."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = 128 + number


def _end(number: int, frame: Any) -> NoReturn:
    raise Ended(number)


@contextmanager
def ending_heard() -> Iterator[None]:
    """Take a signal that ends the process as Ctrl-C is taken, so that what lies about is cleared up."""
    with _handled(_ENDING, _end):
        yield


@contextmanager
def undisturbed() -> Iterator[None]:
    """Pass over all of these within: putting results in place and clearing up take a moment, and must be done whole."""
    with _handled([signal.SIGINT, *_ENDING], signal.SIG_IGN):
        yield


@contextmanager
def _handled(signals: list[Any], handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {}
    try:
        for number in signals:
            # What was started to outlive its terminal (nohup) goes on doing so
            if handler is signal.SIG_IGN or signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, handler)
        yield
    finally:
        for number, handled in before.items():
            signal.signal(number, handled if handled is not None else signal.SIG_DFL)
