"""The league from one call: find data and methods, run what is missing, then tables and a page."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gapview import __version__
from gapview.errors import DataFileError, ParameterError
from gapview.report.page import render
from gapview.utils.storage import make_folder, write_table, write_whole

from ..common.markdown import render_markdown
from ..common.run_file import RunFile
from ..common.runner import Progress, run_all
from .data import BUILT_IN, NATURE, QUICK, Source, find_sources, read_source
from .entrants import QUICK_METHODS, choose_entrants
from .page import league_page
from .published_figures import PrintedComparison, PublishedPlan, compare, plan_published
from .published_tables import published_page, published_rows
from .runs import SCORES, LeagueStore, LeagueWork, all_tasks
from .setup import Setup
from .summary import LABEL_FREE, LABEL_TUNED, LeagueSummary, summarise

__all__ = ["LeagueOutcome", "LeagueRequest", "run_league"]


@dataclass(frozen=True)
class LeagueRequest:
    """Methods, data and output folder of a league."""

    output: Path  # folder for the results
    data_dir: Path | None = None  # folder with .npz files
    data: tuple[str, ...] = ()  # names of data sets, or files; none: all
    methods: tuple[str, ...] = ()  # none: all that can run
    rates: tuple[float, ...] = ()  # none: all that a data set has
    n_seeds: int | None = None  # 5, or 1 if quick
    complete_view: bool = False  # hide nothing of the first view
    tuned: bool = False  # also with settings chosen by labels
    quick: bool = False  # a first look, not the result
    time_limit: float = 600.0  # seconds for each run
    n_jobs: int = os.cpu_count() or 1  # processes
    published: Path | None = None  # CSV file of figures that papers print: run these cells only, and compare
    tables_only: bool = False  # from the runs in the folder; what was not run is absent


@dataclass(frozen=True)
class LeagueOutcome:
    """Files, results and cost of a call."""

    files: list[Path]  # what was written
    summaries: list[LeagueSummary]  # what it shows, for every way to choose settings
    run: dict[str, Any]  # what run.json holds
    n_new: int  # runs done by this call
    comparisons: Sequence[PrintedComparison] = ()  # printed figures and ours, if a file of them was given


def run_league(request: LeagueRequest, progress: Progress, say: Callable[[str], None]) -> LeagueOutcome:
    """Run what is not in the folder yet, and write tables and pages.

    An interrupt loses nothing that was finished: the same call goes on where it stopped.

    Parameters
    ----------
    request : LeagueRequest
        What to compare on which data, and where the results go.
    progress : callable
        Hears of runs done, runs in all, and the seconds left.
    say : callable
        Hears, line by line, of data and methods that are left out, and why.

    Returns
    -------
    LeagueOutcome

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from gapview_lab.league import LeagueRequest, run_league
    >>> with TemporaryDirectory() as folder:
    ...     request = LeagueRequest(Path(folder), methods=("Concat", "ImputedKMeans"), quick=True, n_jobs=1)
    ...     outcome = run_league(request, lambda done, total, left: None, print)
    ...     outcome.n_new, sorted(path.name for path in outcome.files)[:3]
    (4, ['cells.csv', 'differences.csv', 'leads.csv'])
    """
    if request.n_seeds is not None and request.n_seeds < 1:
        raise ParameterError(f"n_seeds must be at least 1; got {request.n_seeds}.")
    if not request.time_limit > 0:
        raise ParameterError(f"time_limit must be above 0; got {request.time_limit}.")
    n_seeds = request.n_seeds or (1 if request.quick else 5)
    default = QUICK_METHODS if request.quick else ("BridgedGRMF",) if request.published is not None else ()
    methods = request.methods or default
    left_out: list[str] = []

    def leave_out(line: str) -> None:
        if line not in left_out:
            left_out.append(line)
            say(line)

    entrants = choose_entrants(methods, leave_out, runs=not request.tables_only)
    plan = _plan(request, request.published, leave_out) if request.published is not None else None
    sources = plan.sources if plan is not None else _sources(request, leave_out)
    for source in sources:
        if source.n_seeds < n_seeds:
            why = ", since no more were published" if source.n_published == source.n_seeds else ""
            leave_out(f"{source.name}: all but {source.n_seeds} of {n_seeds} seeds{why}")
    output = make_folder(request.output)
    run_file = RunFile(output)
    store = LeagueStore(output / "runs.csv", __version__, request.time_limit)
    tasks = all_tasks(sources, entrants, n_seeds, request.tuned)
    before = len(store.records)
    widths = {source.name: source.widths for source in sources}
    work = LeagueWork({source.name: source.path for source in sources}, __version__, widths)
    run_all(
        [] if request.tables_only else tasks,
        store,
        work,
        request.n_jobs,
        progress,
        time_limit=request.time_limit,
        instead=store.instead(work),
    )
    n_new = len(store.records) - before
    runs = store.last()
    ways = (LABEL_FREE, LABEL_TUNED) if request.tuned else (LABEL_FREE,)
    summaries = [summarise(runs, tasks, entrants, way) for way in ways]
    comparisons = compare(plan.figures, [runs[task] for task in tasks], entrants) if plan is not None else []
    state = f"{request} {left_out} {[runs.get(task) for task in tasks]} {comparisons or ''}"
    fingerprint = hashlib.sha256(state.encode()).hexdigest()
    known = run_file.unchanged(fingerprint)
    if n_new == 0 and known:
        return LeagueOutcome([*known, run_file.path], summaries, run_file.old, 0, comparisons)
    run = run_file.describe(_command(request), sum(task in runs for task in tasks), request.n_jobs)
    run |= {"left_out": left_out, "programs": {entrant.name: entrant.program for entrant in entrants}}
    setup = Setup(sources, entrants, n_seeds, request.tuned, request.time_limit, left_out)
    files = _write(output, summaries, setup, run) if plan is None else _write_published(output, comparisons, setup, run)
    run_file.write(run, fingerprint, files)
    return LeagueOutcome([*files, run_file.path], summaries, run, n_new, comparisons)


def _plan(request: LeagueRequest, path: Path, say: Callable[[str], None]) -> PublishedPlan:
    """Check that the other options fit, and plan the cells of the printed figures."""
    options = {
        "--rates": request.rates,
        "--complete-view": request.complete_view,
        "--tuned": request.tuned,
        "--quick": request.quick,
        "--tables-only": request.tables_only,
    }
    for name, value in options.items():
        if value:
            raise ParameterError(f"--published runs the cells that its file lists, at defaults. Leave {name} out.")
    if (request.output / "published.csv").resolve() == path.resolve():
        raise ParameterError(f"The results would replace {path.name!r}. Give another folder with --output.")
    return plan_published(path, request.data, request.data_dir, say)


def _sources(request: LeagueRequest, say: Callable[[str], None]) -> list[Source]:
    if request.data:
        found = [_named(name, request.data_dir) for name in dict.fromkeys(request.data)]
    elif request.quick:
        found = [read_source(name, None) for name in QUICK]
    else:
        if request.data_dir is None:
            say(
                "data in files: neither --data-dir nor GAPVIEW_DATA names a folder; only embedded and made data are run"
            )
        found = find_sources(request.data_dir, say)
    twice = {source.name for source in found if [other.name for other in found].count(source.name) > 1}
    if twice:
        raise ParameterError(f"Two of the data sets are called {twice.pop()!r}. Rename one of the files.")
    if request.complete_view:
        for source in found:
            if source.hiding == NATURE:
                say(f"{source.name}: views are missing by nature")
        found = [source.with_complete_view() for source in found if source.hiding != NATURE]
    kept = [replace(source, rates=_rates(source, request)) for source in found]
    for source in kept:
        if not source.rates:
            say(f"{source.name}: has none of the rates asked for")
    sources = [source for source in kept if source.rates]
    if not sources:
        raise ParameterError("No data set has any of the rates asked for: nothing to run. Leave --rates out.")
    return sources


def _named(name: str, folder: Path | None) -> Source:
    """Find a data set by its name, or a file by its path."""
    if name in BUILT_IN:
        return read_source(name, None)
    candidates = [Path(name)] + ([folder / f"{name}.npz", folder / name] if folder is not None else [])
    path = next((path for path in candidates if path.is_file()), None)
    if path is None:
        there = sorted(path.stem for path in folder.glob("*.npz")) if folder is not None else []
        raise DataFileError(
            f"There is no file and no data set {name!r}. Give the path of a .npz or .mat file, or one of: "
            f"{', '.join([*there, *BUILT_IN])}."
        )
    return read_source(path.stem, path.resolve())


def _rates(source: Source, request: LeagueRequest) -> tuple[float, ...]:
    if request.rates:
        return tuple(rate for rate in source.rates if any(abs(rate - asked) < 1e-9 for asked in request.rates))
    return source.rates[len(source.rates) // 2 :][:1] if request.quick else source.rates


def _write(output: Path, summaries: Sequence[LeagueSummary], setup: Setup, run: dict[str, Any]) -> list[Path]:
    # Drawing needs the extra "report", running does not

    texts = {
        "league.html": render(league_page(summaries, setup, run)),
        "league.md": render_markdown(league_page(summaries, setup, run, figures=False)),
    }
    write_table(output / "cells.csv", _CELLS, _cell_rows(summaries))
    write_table(output / "overall.csv", _OVERALL, _overall_rows(summaries))
    write_table(output / "differences.csv", _DIFFERENCES, _difference_rows(summaries))
    write_table(output / "leads.csv", _LEADS, _lead_rows(summaries))
    for name, text in texts.items():
        write_whole(output / name, text.encode())
    return [output / name for name in ("runs.csv", "cells.csv", "overall.csv", "differences.csv", "leads.csv", *texts)]


def _write_published(
    output: Path, comparisons: Sequence[PrintedComparison], setup: Setup, run: dict[str, Any]
) -> list[Path]:
    page = render_markdown(published_page(comparisons, setup, run))
    header, rows = published_rows(comparisons)
    write_table(output / "published.csv", header, rows)
    write_whole(output / "published.md", page.encode())
    return [output / name for name in ("runs.csv", "published.csv", "published.md")]


_CELLS = [
    *("way", "data", "hiding", "rate", "method", "setting", "n_settings", "n_seeds"),
    *(column for score in SCORES for column in (score, f"{score}_sd")),
    *("seconds", "problem"),
]
_OVERALL = [
    *("way", "cells", "n_cells", "n_data", "method", "rank", *SCORES),
    *("accuracy_data_sets_alike", "mean_rank", "n_best", "seconds"),
]
_DIFFERENCES = [
    *("way", "ours", "rival", "score", "difference", "low", "high", "n_cells", "n_data", "n_ahead", "n_behind"),
]
_LEADS = [
    *("way", "data", "hiding", "rate", "score", "ours", "rival", "theirs", "lead"),
    *("held_out_ours", "held_out_rival", "held_out_theirs", "held_out_lead", "held_out_error"),
]


def _cell_rows(summaries: Sequence[LeagueSummary]) -> Iterator[list[Any]]:
    for summary in summaries:
        for (cell, method), score in summary.scores.items():
            place = [summary.way, cell.data, cell.hiding, cell.rate, method, score.setting, score.n_settings]
            values = [part.get(name, "") for name in SCORES for part in (score.mean, score.spread)]
            yield [*place, score.n_seeds, *values, score.seconds if score.mean else "", score.problem]


def _overall_rows(summaries: Sequence[LeagueSummary]) -> Iterator[list[Any]]:
    for summary in summaries:
        for which, table in (("all methods ran", summary.common), ("all", summary.steady)):
            for place in table.places:
                means = [place.mean[name] for name in SCORES]
                where = [summary.way, which, len(table.cells), table.n_data, place.method, place.rank]
                yield [*where, *means, place.mean_by_data, place.mean_rank, place.n_best, place.seconds]


def _difference_rows(summaries: Sequence[LeagueSummary]) -> Iterator[list[Any]]:
    for summary in summaries:
        for one in summary.differences:
            found = [one.rival, one.score, one.mean, one.low, one.high]
            yield [summary.way, summary.ours, *found, one.n_cells, one.n_data, one.n_ahead, one.n_behind]


def _lead_rows(summaries: Sequence[LeagueSummary]) -> Iterator[list[Any]]:
    for summary in summaries:
        for lead in summary.leads:
            place = [summary.way, lead.cell.data, lead.cell.hiding, lead.cell.rate, lead.score]
            one = lead.held_out
            chosen = ["", "", "", "", ""] if one is None else [one.ours, one.rival, one.theirs, one.points, one.error]
            yield [*place, lead.ours, lead.rival, lead.theirs, lead.points, *chosen]


def _command(request: LeagueRequest) -> str:
    """Return the command that repeats the run, with placeholders for folders."""
    files = [name if name in BUILT_IN else Path(name).name for name in request.data]
    options = [f"--published {request.published.name}"] if request.published is not None else []
    options += [f"--data {name}" for name in files]
    options += [f"--methods {','.join(request.methods)}"] if request.methods else []
    options += [f"--rates {','.join(f'{rate:g}' for rate in request.rates)}"] if request.rates else []
    options += [f"--seeds {request.n_seeds}"] if request.n_seeds else []
    options += [f"--time-limit {request.time_limit:g}"]
    flags = {"--complete-view": request.complete_view, "--tuned": request.tuned, "--quick": request.quick}
    flags |= {"--tables-only": request.tables_only}
    options += [name for name, is_on in flags.items() if is_on]
    return " ".join(["gapview-lab league", *options, "--data-dir DATA -o RESULTS"])
