"""``gapview-lab speed`` from one call: measure what is missing, then tables, drawings and a page."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from time import perf_counter
from typing import Any

from gapview import __version__
from gapview.errors import MissingExtraError
from gapview.report.page import render
from gapview.utils.storage import make_folder, write_table, write_whole

from ..common.figures import figure_files
from ..common.markdown import render_markdown
from ..common.run_file import RunFile
from ..common.runner import Progress
from .drawings import speed_drawings
from .goals import Goal, speed_goals
from .machine import computer, versions
from .plan import SpeedPlan, plan_speed
from .results import Figure, FigureStore, Measured
from .speed_page import speed_page

__all__ = ["SpeedOutcome", "SpeedRequest", "run_speed"]

_COLUMNS = ["part", "case", *(field.name for field in fields(Measured))]


@dataclass(frozen=True)
class SpeedRequest:
    """Data and output folder of a speed run."""

    output: Path  # folder for the results
    data_dir: Path | None = None  # folder with the data sets
    quick: bool = False  # a first look, not the result


@dataclass(frozen=True)
class SpeedOutcome:
    """Files, results and cost of a call."""

    files: list[Path]  # what was written
    goals: list[Goal]  # goals and measured values
    run: dict[str, Any]  # what run.json holds
    n_new: int  # measured by this call


def run_speed(request: SpeedRequest, progress: Progress, say: Callable[[str], None]) -> SpeedOutcome:
    """Measure what is not in the folder yet, and write tables and pages.

    Every figure is measured together with its reference. An interrupt loses nothing that was finished.

    Parameters
    ----------
    request : SpeedRequest
        Where the data are and where the results go.
    progress : callable
        Called with the measurements done, their total number, and the seconds left.
    say : callable
        Called with one line for each skipped measurement.

    Returns
    -------
    SpeedOutcome

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from gapview_lab.speed import SpeedRequest, run_speed
    >>> with TemporaryDirectory() as folder:
    ...     outcome = run_speed(SpeedRequest(Path(folder), quick=True), lambda done, total, left: None, print)
    ...     sorted(path.name for path in outcome.files)[:3]
    ['figures.csv', 'fits.png', 'fits.svg']
    """
    left_out: list[str] = []

    def leave_out(line: str) -> None:
        left_out.append(line)
        say(line)

    here = computer()
    plan = plan_speed(request.data_dir, request.quick, here, leave_out)
    output = make_folder(request.output)
    run_file = RunFile(output)
    store = FigureStore(output / "measured.csv", __version__)
    n_new = _measure(plan, store, progress, leave_out)
    figures = store.of(plan.works)
    goals = [] if request.quick else speed_goals(figures)
    fingerprint = hashlib.sha256(f"{request} {left_out} {figures}".encode()).hexdigest()
    known = run_file.unchanged(fingerprint)
    if n_new == 0 and known:
        return SpeedOutcome([*known, run_file.path], goals, run_file.old, 0)
    command = f"gapview-lab speed {'--quick ' if request.quick else ''}--data-dir DATA -o RESULTS"
    run = run_file.describe(command, len(plan.works), 1)
    run |= {"computer": here, "size": plan.sizes.name, "programs": versions(), "left_out": left_out}
    files = _write(output, figures, run)
    run_file.write(run, fingerprint, files)
    return SpeedOutcome([*files, run_file.path], goals, run, n_new)


def _measure(plan: SpeedPlan, store: FigureStore, progress: Progress, leave_out: Callable[[str], None]) -> int:
    """Measure what is not in the store; parts whose package is not installed are skipped."""
    done = store.done()
    todo = [task for task in plan.works if task not in done]
    n_new = 0
    for count, task in enumerate(todo):
        progress(count, len(todo), sum(plan.cost(later) for later in todo[count:]))
        begin = perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that a fit of a fixed number of iterations has not converged
                measured = plan.works[task]()
        except MissingExtraError as error:
            leave_out(f"{task.part}, {task.case}: {error}")
            continue
        store.keep(task, measured, perf_counter() - begin, __version__)
        n_new += 1
    if todo:
        progress(len(todo), len(todo), 0.0)
    return n_new


def _write(output: Path, figures: list[Figure], run: dict[str, Any]) -> list[Path]:
    # Drawing needs the extra "report", measuring does not

    drawings = speed_drawings(figures)
    texts = {
        "speed.html": render(speed_page(figures, run, drawings)),
        "speed.md": render_markdown(speed_page(figures, run, {})),
    }
    write_table(output / "figures.csv", _COLUMNS, [[getattr(one, name) for name in _COLUMNS] for one in figures])
    for name, text in texts.items():
        write_whole(output / name, text.encode())
    drawn = [path for name, figure in drawings.items() for path in figure_files(figure, output / name)]
    return [output / "measured.csv", output / "figures.csv", *drawn, *(output / name for name in texts)]
