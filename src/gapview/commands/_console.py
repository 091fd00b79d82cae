"""What a command shows: lines with a head, warnings as such lines, and how far the work has come."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.text import Text
from sklearn.exceptions import ConvergenceWarning

from ..errors import GapviewWarning
from ..progress import ITERATING, Event, listening
from ..utils.words import duration

__all__ = [
    "Say",
    "command_words",
    "new_console",
    "printable",
    "progress_shown",
    "say",
    "say_files",
    "saying",
    "warnings_said",
]

Say = Callable[[str, str], None]  # a head and a text

_OTHER_RUN = "Run the same command as before to go on, or give --force to drop what was kept and start anew"

# The library speaks of its parameters; who types commands knows their options
_WORDS = (
    (r"partial_rows='(\w+)'", r"--partial-rows \1"),
    (r"duplicates='(\w+)'", r"--duplicates \1"),
    (r"\(id_column, --id\)|\(id_column\)", "(--id)"),
    (r"\(encode\)", "(--encode)"),
    (r"\bn_clusters=", "-k "),
    (r"\bn_samples=(\d+)", r"\1"),
    (r"Give a file that model\.save has written", "Give a model that gapview cluster has written"),
    (r"Raise max_iter or tol", "Raise them with --set max_iter=… or --set tol=…"),
    (r"Fit as before to go on\. Give another folder, or delete this one to start anew", _OTHER_RUN),
    (r"Give another folder, or delete this one to start anew", "Delete that folder, or give --force"),
    (r"Read them with gapview\.io\.read_views", "Give the file without a name in front"),
)


def command_words(text: str) -> str:
    """Say what the library says of its parameters with the options of the commands.

    >>> command_words("Remove the repeats, or choose duplicates='first'.")
    'Remove the repeats, or choose --duplicates first.'
    """
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)
    return text


def printable(text: str) -> str:
    r"""Write out what would move the cursor or change colours: names come from files, and files from anywhere.

    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return "".join(sign if sign.isprintable() or sign == "\n" else repr(sign)[1:-1] for sign in text)


def new_console() -> Console:
    """Make what lines are printed with."""
    return Console(soft_wrap=True, highlight=False)


def say(console: Console, head: str, text: str) -> None:
    """Print one line, its head in bold."""
    # As a Text and not as markup: a path may hold [brackets] or :colons:, which must come out as they are
    console.print(Text.assemble((head, "bold"), " " * (10 - len(head)), printable(text)))


def saying(console: Console) -> Say:
    """Return what prints lines with this console, in the words of the command line."""
    return lambda head, text: say(console, head, command_words(text))


@contextmanager
def warnings_said(say_line: Say) -> Iterator[list[str]]:
    """Say our warnings as lines, each once; yields the list that they are kept in."""
    kept: list[str] = []
    with warnings.catch_warnings():
        before = warnings.showwarning

        def shown(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if not issubclass(category, GapviewWarning | ConvergenceWarning):
                before(message, category, *place, **more)
            elif str(message) not in kept:
                kept.append(str(message))
                say_line("Warning", str(message))

        warnings.simplefilter("always", GapviewWarning)
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.showwarning = shown
        yield kept


@contextmanager
def progress_shown(console: Console) -> Iterator[None]:
    """Show how far the work within has come, on a terminal only; lines of ``console`` may come in between."""
    shown = console if console.is_terminal else Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[detail]}", markup=False),
    )
    # A file that FORCE_COLOR makes rich take for a terminal must not fill with bars
    quiet = not shown.is_terminal or not (sys.stdout if shown is console else sys.stderr).isatty()
    bar = Progress(*columns, console=shown, transient=True, disable=quiet, redirect_stdout=False, redirect_stderr=False)
    with bar, listening(_Display(bar)):
        yield


class _Display:
    """Turns events into one line: the phase, how far it is, the objective, the time left."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task("Starting", total=None, detail="")
        self._phase, self._began = Event("Starting"), perf_counter()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        inner = event.phase == ITERATING and self._phase.phase in ("Counting groups", "Weighing views", _TRIALS)
        if not inner:
            if event.phase != self._phase.phase or event.done == 0:  # steps are counted from here
                self._began = perf_counter()
            self._phase = event
        phase = self._phase
        self._bar.update(
            self._task,
            description=phase.phase,
            total=phase.total,
            completed=phase.done or 0,
            detail=_detail(phase, event, perf_counter() - self._began),
        )


_TRIALS = "Trying settings"


def _detail(phase: Event, event: Event, seconds: float) -> str:
    """Say what is known of a phase and of the iteration within it."""
    parts = []
    if phase.done is not None and phase.total:
        parts.append(f"{phase.done} of {'at most ' if phase.phase == ITERATING else ''}{phase.total}")
    if event.objective is not None:
        parts.append(f"objective {event.objective:.6g}")
    if phase.done and phase.total:
        left = duration(seconds / phase.done * (phase.total - phase.done))
        parts.append(f"{'at most' if phase.phase == ITERATING else 'about'} {left} left")
    return ", ".join(parts)


def say_files(console: Console, files: Iterable[Any]) -> None:
    """Say what was written."""
    for file in files:
        say(console, "Wrote", str(file))
