"""``gapview-lab scale`` from one call: run the sizes that are missing, then tables, drawings and a page."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from gapview import __version__
from gapview.compute.arrays import to_device
from gapview.errors import GapviewError, ParameterError
from gapview.report.page import render
from gapview.utils.storage import make_folder, write_table, write_whole

from ..common.figures import figure_files
from ..common.markdown import render_markdown
from ..common.run_file import RunFile
from ..common.runner import Progress, run_all
from .drawings import scale_drawings
from .growth import Growth
from .machine import computer, n_threads, versions
from .made import N_CLUSTERS, made_files
from .room import why_not
from .scale_page import scale_page
from .scale_runs import DONE, METHODS, RIVALS, ScaleRun, ScaleStore, ScaleTask, ScaleWork

__all__ = ["ScaleOutcome", "ScaleRequest", "growths_of", "run_scale"]

SIZES = (50_000, 100_000, 200_000, 500_000, 1_000_000)
_QUICK_SIZES = (400, 1600)
_FEATURES, _QUICK_FEATURES = "240+76", "24+16"
_LEAST = 20 * N_CLUSTERS
_PHASES = ["method", "device", "n_samples", "phase", "seconds", "share", "memory_mb", "exponent"]


@dataclass(frozen=True)
class ScaleRequest:
    """Methods, sizes and output folder of a scale run."""

    output: Path  # folder for the results
    sizes: tuple[int, ...] = ()  # none: 50,000 to 1,000,000
    methods: tuple[str, ...] = ("GRMF", "BridgedGRMF", "BipartiteSpectral")  # also GRMF-data and BridgedGRMF-fixed
    missing_rate: float = 0.25  # of every view
    memory: bool = False  # noted by phase, too
    device: str | None = None  # where to compute, if the method can; None: the processor
    time_limit: float = 3600.0  # seconds for each run
    quick: bool = False  # a first look, not the result
    processor_limit: float | None = None  # seconds of processor time for each run
    memory_limit: float | None = None  # GB for each run


@dataclass(frozen=True)
class ScaleOutcome:
    """Files, results and cost of a call."""

    files: list[Path]  # what was written
    runs: list[ScaleRun]  # every run
    growths: list[Growth]  # how time grows with the samples, by method
    run: dict[str, Any]  # what run.json holds
    n_new: int  # runs done by this call


def run_scale(request: ScaleRequest, progress: Progress, say: Callable[[str], None]) -> ScaleOutcome:
    """Run what is not in the folder yet, smallest first, and write tables and pages.

    Every run has a process of its own, so that the memory measured is its own. A size that does not fit into memory or
    time is said and left out. An interrupt loses nothing that was finished.

    Parameters
    ----------
    request : ScaleRequest
        Which methods at which sizes, and where the results go.
    progress : callable
        Hears of runs done, runs in all, and the seconds left.
    say : callable
        Hears, line by line, of what is left out, and why.

    Returns
    -------
    ScaleOutcome

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from gapview_lab.speed import ScaleRequest, run_scale
    >>> with TemporaryDirectory() as folder:
    ...     request = ScaleRequest(Path(folder), sizes=(200,), methods=("GRMF",), quick=True)
    ...     outcome = run_scale(request, lambda done, total, left: None, print)
    ...     [run.n_samples for run in outcome.runs]
    [200]
    """
    tasks = _tasks(request)
    output = make_folder(request.output)
    run_file = RunFile(output)
    store = ScaleStore(output / "runs.csv", __version__, request.time_limit)
    before = len(store.records)
    left_out = _run(tasks, store, request, progress, say)
    n_new = len(store.records) - before
    found = store.last()
    runs = [found[task] for task in tasks if task in found]
    growths = growths_of(runs)
    fingerprint = hashlib.sha256(f"{request} {left_out} {runs}".encode()).hexdigest()
    known = run_file.unchanged(fingerprint)
    if n_new == 0 and known:
        return ScaleOutcome([*known, run_file.path], runs, growths, run_file.old, 0)
    run = run_file.describe(_command(request), len(tasks), 1)
    run |= {"computer": computer(), "programs": versions(), "left_out": left_out, "tasks": [vars(t) for t in tasks]}
    files = _write(output, runs, growths, run)
    run_file.write(run, fingerprint, files)
    return ScaleOutcome([*files, run_file.path], runs, growths, run, n_new)


def _tasks(request: ScaleRequest) -> list[ScaleTask]:
    """List all runs, the small ones first."""
    sizes = request.sizes or (_QUICK_SIZES if request.quick else SIZES)
    for size in sizes:
        if size < _LEAST:
            raise ParameterError(f"a size must be an integer of at least {_LEAST}; got {size}.")
    if not 0 <= request.missing_rate <= 0.5:  # with more, some samples of two views have none
        raise ParameterError(f"missing_rate must be from 0 to 0.5; got {request.missing_rate}.")
    if not request.time_limit > 0:
        raise ParameterError(f"time_limit must be above 0; got {request.time_limit}.")
    unknown = [name for name in request.methods if name not in METHODS]
    if unknown or not request.methods:
        raise ParameterError(f"methods must be some of {', '.join(METHODS)}; got {', '.join(unknown) or 'none'}.")
    if request.device is not None:
        to_device(np.zeros(1), request.device)  # what is not there is said before anything is run
    place = {
        "features": _QUICK_FEATURES if request.quick else _FEATURES,
        "missing_rate": float(request.missing_rate),
        "watched": int(request.memory),
        "computer": computer(),
    }
    devices = {method: "" if method in RIVALS else request.device or "" for method in request.methods}
    return [
        ScaleTask(method, size, device=device, **place)  # type: ignore[arg-type]
        for size in sorted(set(sizes))
        for method, device in devices.items()
    ]


def _run(
    tasks: Sequence[ScaleTask],
    store: ScaleStore,
    request: ScaleRequest,
    progress: Progress,
    say: Callable[[str], None],
) -> list[str]:
    """Run what is not in the store; return what was skipped."""
    todo = [task for task in tasks if task not in store.done()]
    left_out: list[str] = []

    def leave_out(task: ScaleTask, why: str) -> None:
        left_out.append(f"{task.method} with {task.n_samples:,} samples: {why}")
        say(left_out[-1])

    folder = request.output / ".made-data"
    work = ScaleWork(folder.resolve(), n_threads(), __version__, request.processor_limit, request.memory_limit)
    for size, group in groupby(todo, key=lambda task: task.n_samples):
        own = list(group)
        problems = {task: why_not(task, store.last(), request.time_limit) for task in own}
        for task, problem in problems.items():
            if problem:
                leave_out(task, problem)
        possible = [task for task in own if not problems[task]]
        if not possible:
            continue
        try:
            with made_files(folder, size, own[0].widths, request.missing_rate):
                for task in possible:
                    place = todo.index(task)
                    # One at a time: each in a process of its own, which has held nothing before
                    run_all([task], store, work, 1, _part_of(progress, todo, place), time_limit=request.time_limit)
                    if store.records[-1].status != DONE:
                        leave_out(task, store.records[-1].status)
        except GapviewError as error:
            for task in possible:
                leave_out(task, str(error))
    return left_out


def _part_of(progress: Progress, todo: Sequence[ScaleTask], place: int) -> Progress:
    """Report the progress of one run as progress of all runs."""
    later = sum(task.cost for task in todo[place + 1 :])
    return lambda done, total, left: progress(place + done, len(todo), left + later)


def growths_of(runs: Sequence[ScaleRun]) -> list[Growth]:
    """Return the finished runs by method, smallest first."""
    growths = []
    for method in dict.fromkeys(run.method for run in runs):
        own = sorted((run for run in runs if run.method == method and run.status == DONE), key=lambda r: r.n_samples)
        if own:
            phases = {name: tuple(run.phases.get(name, 0.0) for run in own) for name in own[0].phases}
            taken = {name: seconds for name, seconds in phases.items() if any(seconds)}
            sizes, totals = tuple(run.n_samples for run in own), tuple(run.seconds for run in own)
            growths.append(Growth(method, sizes, totals, taken))
    return growths


def _write(output: Path, runs: Sequence[ScaleRun], growths: Sequence[Growth], run: dict[str, Any]) -> list[Path]:
    # Drawing needs the extra "report", running does not

    drawings = scale_drawings(growths, runs)
    texts = {
        "scale.html": render(scale_page(runs, growths, run, drawings)),
        "scale.md": render_markdown(scale_page(runs, growths, run, {})),
    }
    names = [field.name for field in fields(ScaleRun) if not field.name.endswith("_by_phase")]
    write_table(output / "sizes.csv", names, [[getattr(one, name) for name in names] for one in runs])
    write_table(output / "phases.csv", _PHASES, _phase_rows(runs, growths))
    for name, text in texts.items():
        write_whole(output / name, text.encode())
    drawn = [path for name, figure in drawings.items() for path in figure_files(figure, output / name)]
    tables = [output / name for name in ("runs.csv", "sizes.csv", "phases.csv")]
    return [*tables, *drawn, *(output / name for name in texts)]


def _phase_rows(runs: Sequence[ScaleRun], growths: Sequence[Growth]) -> Iterator[list[Any]]:
    powers = {(g.method, name): g.power(name) for g in growths for name in ("total", *g.phases)}
    for one in runs:
        if one.status == DONE:
            memory = one.memory | {"total": one.peak_mb}
            for name, seconds in {"total": one.seconds, **one.phases}.items():
                power = powers.get((one.method, name))
                place = [one.method, one.device, one.n_samples, name, seconds, seconds / one.seconds]
                yield [*place, memory.get(name, ""), power.exponent if power else ""]


def _command(request: ScaleRequest) -> str:
    """Return the command that repeats the run, with placeholders for folders."""
    options = [f"--sizes {','.join(map(str, request.sizes))}"] if request.sizes else []
    options += [f"--methods {','.join(request.methods)}"]
    options += [f"--missing-rate {request.missing_rate:g}"]
    options += [f"--device {request.device}"] if request.device else []
    limits = {"--processor-limit": request.processor_limit, "--memory-limit": request.memory_limit}
    options += [f"{name} {limit:g}" for name, limit in limits.items() if limit is not None]
    options += [name for name, is_on in (("--memory", request.memory), ("--quick", request.quick)) if is_on]
    return " ".join(["gapview-lab scale", *options, f"--time-limit {request.time_limit:g}", "-o RESULTS"])
