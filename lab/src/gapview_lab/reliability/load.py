"""``load``: many fits in one process, and many at once; memory must not grow, results must not change."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import platform
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np
from threadpoolctl import threadpool_info

from gapview import GRMF, BridgedGRMF, __version__, load
from gapview.compute.engine import THREAD_VARIABLES
from gapview.datasets import make_views
from gapview.errors import GapviewError, GapviewWarning, ParameterError
from gapview.utils.messages import muted
from gapview.utils.storage import make_folder, write_whole

from .process import Watch, file_count, memory, thread_count

__all__ = ["AtOnce", "InARow", "Job", "at_once", "in_a_row", "load_test"]

MOST_KILOBYTES = 30.0  # by which one fit may make the process grow: a tenth of what its results take
_ESTIMATORS: tuple[Callable[..., Any], ...] = (
    partial(GRMF, 4),
    partial(GRMF, 4, init="data"),
    partial(BridgedGRMF, 4, selection="fixed"),
    partial(BridgedGRMF, 4),
    partial(BridgedGRMF, "auto", max_clusters=6),
)


@dataclass(frozen=True)
class Job:
    """A fit, and what is done with its model."""

    number: int
    n_samples: int

    def __call__(self) -> str:
        """Fit, predict, recover, save and load; return a checksum of all results.

        Examples
        --------
        >>> from gapview_lab.reliability.load import Job
        >>> Job(0, 60)() == Job(0, 60)()
        True
        """
        views = make_views(
            self.n_samples, n_clusters=4, missing_rate=0.4, separation=2.0, random_state=self.number
        ).views
        model = _ESTIMATORS[self.number % len(_ESTIMATORS)](random_state=self.number)
        with muted(GapviewWarning):  # such as of one group, with few samples
            model.fit(views)
        found = hashlib.sha256(model.predict(views).tobytes())
        for matrix in model.recover(method="neighbors"):  # "auto" warns of views that are hardly predicted
            found.update(matrix.tobytes())
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.gapview"
            model.save(path)
            found.update(path.read_bytes())
            found.update(load(path).predict(views).tobytes())
        return found.hexdigest()


@dataclass(frozen=True)
class InARow:
    """Resources of a process before and after fits in a row."""

    fits: int
    warm_up: int
    kilobytes_per_fit: float
    most_kilobytes_per_fit: float
    threads: tuple[int, int]
    open_files: tuple[int, int]
    temporary_files: int
    same: int  # fits with the results of the first of their kind
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether nothing has grown."""
        steady = self.threads[1] <= self.threads[0] and self.open_files[1] <= self.open_files[0]
        grown = self.kilobytes_per_fit > self.most_kilobytes_per_fit
        return steady and not grown and not self.temporary_files and self.same == self.fits


def in_a_row(
    n_fits: int, *, n_samples: int = 150, warm_up: int | None = None, n_kinds: int = len(_ESTIMATORS)
) -> InARow:
    """Fit repeatedly in this process, and measure what grows.

    Growth of memory is the median of the last third of the fits less that of the first third, by the fits between them.

    Examples
    --------
    >>> from gapview_lab.reliability.load import in_a_row
    >>> in_a_row(3, n_samples=50, warm_up=0).fits
    3
    """
    warm_up = n_fits // 4 if warm_up is None else warm_up
    jobs = [Job(number, n_samples) for number in range(n_kinds)]
    with _temporary_folder() as folder:
        begin = perf_counter()
        known = {job: job() for job in jobs}
        for number in range(warm_up):
            jobs[number % len(jobs)]()
        before = thread_count(), file_count()
        sizes, same = [], 0
        for number in range(n_fits):
            job = jobs[number % len(jobs)]
            same += job() == known[job]
            sizes.append(memory())
        after = thread_count(), file_count()
        left = len(list(folder.iterdir()))
        seconds = perf_counter() - begin
    third = max(1, n_fits // 3)
    growth = (np.median(sizes[-third:]) - np.median(sizes[:third])) / max(1, n_fits - third)
    threads, files = zip(before, after, strict=True)
    return InARow(
        n_fits, warm_up, round(float(growth), 2), MOST_KILOBYTES, threads, files, left, same, round(seconds, 1)
    )


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Use an empty folder for temporary files."""
    usual = tempfile.tempdir
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        try:
            yield Path(folder)
        finally:
            tempfile.tempdir = usual


@dataclass(frozen=True)
class AtOnce:
    """Concurrent fits, compared with the same fits one after the other."""

    kind: str
    fits: int
    cores: int  # threads that the libraries beneath would use
    same: int  # fits with the results they have alone
    most_busy: int  # threads that could run at a time; of processes, in any one of them
    allowed_busy: int
    limits_lifted: bool  # whether the libraries beneath have as many threads as before
    filters_kept: bool  # whether the filters of warnings are those of before
    seconds: float
    seconds_alone: float

    @property
    def holds(self) -> bool:
        """Whether all results are the same, and no more threads ran than there are cores."""
        undisturbed = self.same == self.fits and self.most_busy <= self.allowed_busy
        return undisturbed and self.limits_lifted and self.filters_kept


def at_once(kind: str, n_fits: int = 10, *, n_samples: int = 1500) -> AtOnce:
    """Run fits one after the other, then at the same time, in ``"threads"`` or in ``"processes"``.

    In threads, as many may be busy as there are fits or cores, whichever is more, and the one that
    hands out. In processes that were not told how
    many threads to use, one in each.

    Examples
    --------
    >>> from gapview_lab.reliability.load import at_once
    >>> at_once("threads", 2, n_samples=60).same
    2
    """
    jobs = [Job(number, n_samples) for number in range(n_fits)]
    begin = perf_counter()
    alone = [job() for job in jobs]
    seconds_alone = perf_counter() - begin
    before, filters = _pool_sizes(), list(warnings.filters)
    cores = max(before.values())
    begin = perf_counter()
    found, busy = (_in_threads if kind == "threads" else _in_processes)(jobs)
    seconds = perf_counter() - begin
    return AtOnce(
        kind=kind,
        fits=n_fits,
        cores=cores,
        same=sum(one == other for one, other in zip(alone, found, strict=True)),
        most_busy=busy,
        allowed_busy=max(n_fits, cores) + 1 if kind == "threads" else 1,
        limits_lifted=_pool_sizes() == before,
        filters_kept=sorted(map(str, filters)) == sorted(map(str, warnings.filters)),
        seconds=round(seconds, 1),
        seconds_alone=round(seconds_alone, 1),
    )


def _pool_sizes() -> dict[str, int]:
    return {each["filepath"]: each["num_threads"] for each in threadpool_info()}


def _in_threads(jobs: Sequence[Job]) -> tuple[list[str], int]:
    with Watch() as watch, ThreadPoolExecutor(len(jobs)) as pool:
        found = list(pool.map(lambda job: job(), jobs))
    return found, watch.most_busy


def _watched(job: Job) -> tuple[str, int]:
    job_of_the_same_kind = Job(job.number, 60)
    job_of_the_same_kind()  # what is loaded for the first time is not what is looked at
    with Watch() as watch:
        found = job()
    return found, watch.most_busy


def _in_processes(jobs: Sequence[Job]) -> tuple[list[str], int]:
    said = {name: os.environ.pop(name) for name in THREAD_VARIABLES if name in os.environ}
    try:
        with ProcessPoolExecutor(len(jobs), mp_context=multiprocessing.get_context("spawn")) as pool:
            results = list(pool.map(_watched, jobs))
    finally:
        os.environ.update(said)
    return [found for found, _ in results], max(busy for _, busy in results)


@click.command("load", epilog="Example: gapview-lab reliability load --fits 200 -o reliability")
@click.option("--fits", type=click.IntRange(10), default=200, show_default=True, help="Fits in a row.")
@click.option("--at-once", "n_at_once", type=click.IntRange(2), default=10, show_default=True, help="Fits at once.")
@click.option("--samples", type=click.IntRange(50), default=1500, show_default=True, help="Samples of those at once.")
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), default=Path("reliability"), show_default=True,
    help="Folder for load.json.",
)  # fmt: skip
def load_test(fits: int, n_at_once: int, samples: int, output: Path) -> None:
    """Fit many times in a row and many times at once; measure what grows, and compare the results."""
    try:
        if not Path("/proc/self/task").is_dir():
            raise ParameterError("What a process has is read from /proc, which this system has not.")
        make_folder(output)
        row = in_a_row(fits)
        click.echo(
            f"{row.fits} fits in a row: {row.kilobytes_per_fit:+.1f} kB each (at most "
            f"{row.most_kilobytes_per_fit:.0f}), threads {row.threads[0]} to {row.threads[1]}, "
            f"open files {row.open_files[0]} to {row.open_files[1]}, "
            f"{row.temporary_files} temporary files left, {row.same} times the same results, {row.seconds:.0f} s"
        )
        together = [at_once(kind, n_at_once, n_samples=samples) for kind in ("threads", "processes")]
    except GapviewError as error:
        raise click.ClickException(str(error)) from None
    for one in together:
        click.echo(
            f"{one.fits} fits at once in {one.kind}: {one.same} with the results they have alone, at most "
            f"{one.most_busy} threads busy{' in each' if one.kind == 'processes' else ''} ({one.allowed_busy} "
            f"allowed), limits {'lifted' if one.limits_lifted else 'left behind'}, "
            f"{one.seconds:.0f} s (one after the other {one.seconds_alone:.0f} s)"
        )
    holds = row.holds and all(one.holds for one in together)
    content = {
        "holds": holds,
        "in_a_row": asdict(row),
        "at_once": [asdict(one) for one in together],
        "versions": {"python": platform.python_version(), "gapview": __version__}
        | {package: version(package) for package in ("numpy", "scipy", "scikit-learn", "threadpoolctl")},
    }
    write_whole(output / "load.json", json.dumps(content, indent=2).encode())
    raise SystemExit(0 if holds else 1)
