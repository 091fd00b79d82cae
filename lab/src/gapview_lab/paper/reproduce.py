"""The paper's experiments from one call: run what is missing, then tables, figures and a page."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gapview import __version__
from gapview.errors import DataFileError, GapviewError, ParameterError
from gapview.utils.storage import make_folder, write_whole

from ..common.figures import figure_files
from ..common.run_file import RunFile
from ..common.runner import Progress, run_all
from .figures import draw_figure2, draw_figure3, draw_figure4, draw_figure5
from .page import reproduction_page
from .published import PAPER_DATA, find_file, load_paper_data
from .store import PaperStore
from .tables import PaperTable, make_tables, markdown
from .tasks import FIGURE_DATA, PaperPlan, PaperWork, figure_tasks, first_tasks, second_tasks

__all__ = ["ReproduceOutcome", "ReproduceRequest", "reproduce"]

FIGURES = (2, 3, 4, 5)
TABLES = tuple(data.table for data in PAPER_DATA.values())


@dataclass(frozen=True)
class ReproduceRequest:
    """Tables, figures, data and output folder of a reproduction."""

    output: Path  # folder for the results
    data_dir: Path  # folder with the data sets
    data: tuple[str, ...] = tuple(PAPER_DATA)  # their names
    tables: tuple[int, ...] = TABLES  # numbers of the paper's tables
    figures: tuple[int, ...] = FIGURES  # numbers of its figures
    n_folds: int = 5  # ways of hiding views
    quick: bool = False  # a first look, not the result
    n_jobs: int = os.cpu_count() or 1  # processes

    def plan(self, found: Sequence[str]) -> PaperPlan:
        """Return the plan for the available data sets.

        Parameters
        ----------
        found : sequence of str
            The data sets that are there.
        """
        if not self.quick:
            return PaperPlan(tuple(found), n_folds=self.n_folds)
        return PaperPlan(
            tuple(found),
            rates=(0.1, 0.5, 0.9),
            n_folds=min(self.n_folds, 2),
            n_settings=3,
            n_starts=1,
            consensus_weights=(1.0, 100.0),
            sparsity_weights=(1e-3, 1e-1),
            n_iter=20,
        )


@dataclass(frozen=True)
class ReproduceOutcome:
    """Files, skipped data sets, tables and cost of a call."""

    files: list[Path]  # what was written
    skipped: dict[str, str]  # data sets left out, and why
    tables: list[PaperTable]  # the tables, beside print
    run: dict[str, Any]  # what run.json holds
    n_new: int  # runs done by this call


def reproduce(request: ReproduceRequest, progress: Progress, say: Callable[[str], None]) -> ReproduceOutcome:
    """Run the experiments that are not in the folder yet, and write tables, figures and a page.

    ``progress`` hears of runs done, ``say`` of what is left out. An interrupt loses nothing that was finished.

    Parameters
    ----------
    request : ReproduceRequest
        What to run, and where the results go.
    progress : callable
        Called with the runs done, the runs in all and the seconds left.
    say : callable
        Hears in a line of what is left out.
    """
    output = make_folder(request.output)
    run_file = RunFile(output)
    if run_file.old.get("command", _command(request)) != _command(request):
        raise DataFileError(
            f"The folder {str(output)!r} holds the results of another command: {run_file.old['command']}. "
            "Give another folder with --output, so that they are not overwritten."
        )
    if not _wanted(request):
        raise ParameterError(
            "No data set belongs to both the tables or figures and the data asked for: nothing to run."
        )
    skipped = {key: reason for key in _wanted(request) if (reason := _why_not(key, request.data_dir))}
    for line in skipped.values():
        say(line)
    plan = request.plan([key for key in _wanted(request) if key not in skipped])
    if not plan.data:
        raise DataFileError(
            f"None of the data sets asked for can be read in {str(request.data_dir)!r}; nothing to run."
        )
    table_plan = replace(plan, data=tuple(key for key in plan.data if key in _in_tables(request)))
    store = PaperStore(output / "results.csv", __version__)
    before = len(store.done())
    _run(request, plan, table_plan, store, progress)
    n_new = len(store.done()) - before
    tables = make_tables(store.records, table_plan)
    fingerprint = hashlib.sha256(
        f"{plan} {_command(request)} {(output / 'results.csv').read_text()}".encode()
    ).hexdigest()
    known = run_file.unchanged(fingerprint)
    if n_new == 0 and known:
        return ReproduceOutcome(known, skipped, tables, run_file.old, 0)
    run = run_file.describe(_command(request), len(store.done()), request.n_jobs)
    files = _write(request, plan, store, tables, skipped, run)
    run_file.write(run, fingerprint, files)
    return ReproduceOutcome([*files, run_file.path], skipped, tables, run, n_new)


def _in_tables(request: ReproduceRequest) -> list[str]:
    return [key for key in request.data if PAPER_DATA[key].table in request.tables or 2 in request.figures]


def _wanted(request: ReproduceRequest) -> list[str]:
    alone = [key for key in FIGURE_DATA if set(request.figures) & {3, 4, 5}]
    return [key for key in request.data if key in _in_tables(request) or key in alone]


def _why_not(key: str, folder: Path) -> str:
    """Return why a data set is skipped; an empty text if it can be used."""
    data = PAPER_DATA[key]
    if find_file(data, folder) is None:
        return f"Table {data.table} ({data.title}): there is no {data.files[0]} (or .mat). Expected: {data.form}."
    try:
        load_paper_data(key, folder)
    except GapviewError as error:
        return f"Table {data.table} ({data.title}): {error}"
    return ""


def _run(
    request: ReproduceRequest, plan: PaperPlan, table_plan: PaperPlan, store: PaperStore, progress: Progress
) -> None:
    def run(tasks: Any) -> None:
        run_all(tasks, store, PaperWork(request.data_dir, __version__), request.n_jobs, progress)

    run([*first_tasks(table_plan), *figure_tasks(plan, request.figures)])
    run(second_tasks(table_plan, store.records))  # which settings these are is known only now


def _write(
    request: ReproduceRequest,
    plan: PaperPlan,
    store: PaperStore,
    tables: list[PaperTable],
    skipped: dict[str, str],
    run: dict[str, Any],
) -> list[Path]:
    # Drawing needs the extra "report", running does not

    output = request.output
    drawers = {
        2: lambda: draw_figure2(tables),
        3: lambda: draw_figure3(store.records, plan),
        4: lambda: draw_figure4(store.records, plan),
        5: lambda: draw_figure5(store.records, plan),
    }
    drawn = {number: drawers[number]() for number in request.figures}
    figures = {number: figure for number, figure in drawn.items() if figure is not None}
    page = reproduction_page(tables, figures, plan, skipped, run)
    files = [output / "results.csv", output / "reproduction.html"]
    write_whole(files[1], page.encode())
    if tables:
        write_whole(output / "tables.md", markdown(tables).encode())
        files.append(output / "tables.md")
    if figures:
        folder = make_folder(output / "figures")
        for number, figure in figures.items():
            files += figure_files(figure, folder / f"figure-{number}")
    return files


def _command(request: ReproduceRequest) -> str:
    """Return the command that repeats the run, with placeholders for folders."""
    whole = set(request.tables) == set(TABLES) and set(request.figures) == set(FIGURES)
    options = [f"--data {key}" for key in request.data if set(request.data) != set(PAPER_DATA)]
    if not whole:
        options += [f"--table {number}" for number in request.tables]
        options += [f"--figure {number}" for number in request.figures]
    options += [f"--folds {request.n_folds}"] + (["--quick"] if request.quick else [])
    return " ".join(["gapview-lab reproduce", *options, "--data-dir DATA -o RESULTS"])
