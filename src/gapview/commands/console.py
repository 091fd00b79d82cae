"""Output of commands (lines with a head, warnings, progress), and interruption by Ctrl-C or by signals."""

from __future__ import annotations

import re
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console
from rich.text import Text
from sklearn.exceptions import ConvergenceWarning

from ..errors import GapviewWarning
from ..progress import listening, silent
from ..progress.display import LateBar, Terminal
from ..utils.messages import printable as printable

STANDARD_OUTPUT = Path("-")
Show = Callable[[str, str], None]  # prints a head and a text

_OTHER_RUN = "Run the same command as before to resume, or give --force to discard the checkpoint and start again"
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]

# Messages of the library name parameters; on the command line, they name options
_WORDS = (
    (r"partial_rows='(\w+)'", r"--partial-rows \1"),
    (r"duplicates='(\w+)'", r"--duplicates \1"),
    (r"(decimal|thousands)='([,.])'", r"--\1 \2"),
    (
        r"(?:\b(?:id_pattern|orient)=|\S+\.T\b)(?:(?!\(on the command).)*\(on the command line: (.*?)\)(?=[.,]? |\.?$)",
        r"\1",
    ),
    (r"\b(?:id_pattern|id_column|orient|drop) \((--[a-z-]+)\)", r"\1"),
    (r"\bscale='(\w+)'", r"--scale \1"),
    (r"\(\.T; on the command line: (--transpose)\)", r"(\1)"),
    (r"\(id_column, --id\)|\(id_column\)", "(--id)"),
    (r"id_column='([^' ]*)'", r"--id \1"),
    (r"id_column=('[^']*')", r"--id \1"),
    (r"id_column=False", "--no-id"),
    (r"\(encode(?:=True)?\)", "(--encode)"),
    (r"\(drop\)", "(--drop)"),
    (r"\bn_clusters=", "-k "),
    (r"\bn_samples=(\d+)", r"\1"),
    (r"Give (?:the path of )?a file that model\.save has written", "Give a model that gapview cluster has written"),
    (r"Raise max_iter or tol", "Raise them with --set max_iter=… or --set tol=…"),
    (r"Repeat that fit to resume it\. Give another folder, or delete this one to start again", _OTHER_RUN),
    (r"Give another folder, or delete this one to start again", "Delete that folder, or give --force"),
    (r"Read them with gapview\.io\.read_views", "Give the file without a name in front"),
)


def command_words(text: str) -> str:
    """Return a message of the library with options of the commands in place of parameters.

    >>> command_words("Remove the repeats, or choose duplicates='first'.")
    'Remove the repeats, or choose --duplicates first.'
    >>> command_words("If these are the ids, give id_column='No'; if not, give id_column=False.")
    'If these are the ids, give --id No; if not, give --no-id.'
    >>> command_words("Give orient='features' (on the command line: --transpose all) to transpose.")
    'Give --transpose all to transpose.'
    """
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)
    return text


def new_console(*, stderr: bool = False) -> Console:
    """Return the console that lines are printed on."""
    return Console(soft_wrap=True, highlight=False, stderr=stderr)


def print_line(console: Console, head: str, text: str) -> None:
    """Print one line, its head in bold."""
    # A Text, not markup: [brackets] or :colons: of a path must not be interpreted
    console.print(Text.assemble((head, "bold"), " " * (10 - len(head)), printable(text)))


def print_files(console: Console, files: Iterable[Any], head: str = "Wrote") -> None:
    """Print the paths of files that were written."""
    for file in files:
        print_line(console, "Report" if Path(file).name == "report.html" else head, str(file))


def show_notes(notes: Iterable[str], show: Show) -> None:
    """Print notes below the line that they belong to."""
    for note in notes:
        show("", note)


def run_command(work: Callable[..., list[Path]], *, head: str = "Wrote", **options: Any) -> None:
    """Do the work of a command while progress is shown; then print the files that it wrote.

    ``closing`` among the options gets the lines to print after them. Lines go to standard error if the result goes to
    standard output.
    """
    to_output = options["output"] == STANDARD_OUTPUT
    console = new_console(stderr=to_output)
    with show_progress(console):
        written = work(lambda head, text: print_line(console, head, command_words(text)), **options)
    if not to_output:
        print_files(console, written, head)
    lines = getattr(options.get("closing"), "lines", ())
    if lines:
        console.print()
    for head, text in lines:
        print_line(console, head, command_words(text))


@contextmanager
def show_warnings(show: Show) -> Iterator[list[str]]:
    """Print warnings of gapview as lines, each once; yield the list of them."""
    kept: list[str] = []
    with warnings.catch_warnings():
        before = warnings.showwarning

        def shown(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if not issubclass(category, GapviewWarning | ConvergenceWarning):
                before(message, category, *place, **more)
            elif str(message) not in kept:
                kept.append(str(message))
                show("Warning", str(message))

        warnings.simplefilter("always", GapviewWarning)
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.showwarning = shown
        yield kept


@contextmanager
def show_progress(console: Console) -> Iterator[None]:
    """Show a progress bar, on a terminal only; lines printed on ``console`` appear above it."""
    shown = console if console.is_terminal else Console(stderr=True)
    # With FORCE_COLOR, rich takes files for terminals
    if not shown.is_terminal or not shown.file.isatty():
        with silent():
            yield
        return
    bar = LateBar(Terminal(shown))
    try:
        with listening(bar):
            yield
    finally:
        bar.close()


# -- interruption ----------------------------------------------------------------------------------------------------


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
