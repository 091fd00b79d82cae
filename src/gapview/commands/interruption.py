"""Interruption of a command: Ctrl-C, a signal that ends the process, or a closed terminal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NoReturn

_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Ended(KeyboardInterrupt):
    """A signal has ended the process; handled like Ctrl-C, with the exit code of the signal."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = 128 + number


def _end(number: int, frame: Any) -> NoReturn:
    raise Ended(number)


def signals_interrupt() -> AbstractContextManager[None]:
    """Raise :class:`Ended` on signals that end the process, so that temporary files are removed as on Ctrl-C."""
    return _handled(_ENDING, _end)


def signals_ignored() -> AbstractContextManager[None]:
    """Ignore Ctrl-C and these signals: for short steps that must be completed, such as moving results."""
    return _handled([signal.SIGINT, *_ENDING], signal.SIG_IGN)


@contextmanager
def _handled(signals: list[Any], handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {}
    try:
        for number in signals:
            # Signals that are ignored already (nohup) stay ignored
            if handler is signal.SIG_IGN or signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, handler)
        yield
    finally:
        for number, handled in before.items():
            signal.signal(number, handled if handled is not None else signal.SIG_DFL)
