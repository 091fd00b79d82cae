"""``numbers``: random problems for every clusterer; each must give a valid result or an error of gapview."""

from __future__ import annotations

import json
import multiprocessing
import platform
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from gapview import __version__
from gapview.errors import GapviewError, ParameterError
from gapview.utils.storage import make_folder, write_whole

from .made_problems import make_problem
from .made_settings import METHODS
from .promises import FitOutcome, outcome_of

__all__ = ["NumbersRequest", "numbers", "run_numbers"]

TIME_LIMIT = 120.0  # seconds for one problem, on a machine that may have other work
_N_KEPT = 3  # cases that are kept of every defect, the smallest
_PACKAGES = ("numpy", "scipy", "scikit-learn")


@dataclass
class _NumbersCount:
    """Counts for the problems of one clusterer."""

    cases: int = 0
    results: int = 0
    refused: Counter[str] = field(default_factory=Counter)  # kind of error: how often
    defects: Counter[str] = field(default_factory=Counter)  # what was wrong: how often
    seconds: float = 0.0
    slowest: float = 0.0

    def add(self, found: FitOutcome) -> None:
        """Count one more."""
        self.cases += 1
        self.seconds, self.slowest = self.seconds + found.seconds, max(self.slowest, found.seconds)
        if found.kind == "result":
            self.results += 1
        else:
            (self.refused if found.kind == "refused" else self.defects)[found.said] += 1


@dataclass(frozen=True)
class NumbersRequest:
    """Number of problems, seed, clusterers and output folder."""

    cases: int
    seed: int
    output: Path
    only: tuple[str, ...] = ()

    def method(self, index: int) -> str | None:
        """Return the clusterer of one problem; None for a random one."""
        return self.only[index % len(self.only)] if self.only else None


def run_numbers(request: NumbersRequest) -> dict[str, Any]:
    """Run all problems, write ``numbers.json``, and return what was written.

    A case is made again by ``make_problem([seed, case], method)``.
    """
    if unknown := [name for name in request.only if name not in METHODS]:
        raise ParameterError(f"There is no clusterer {unknown[0]!r}; there are {', '.join(map(repr, METHODS))}.")
    make_folder(request.output)
    begin = perf_counter()
    counts: dict[str, _NumbersCount] = {name: _NumbersCount() for name in request.only or METHODS}
    kept: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for index, found in _outcomes(request):
        made = make_problem([request.seed, index], request.method(index))
        counts[made.method].add(found)
        if found.kind == "defect":
            case = {"case": index, "said": found.said, "size": made.size, **made.described()}
            same = kept.setdefault((made.method, found.said), [])
            same.append(case)
            same.sort(key=lambda one: int(one["size"]))
            del same[_N_KEPT:]
    content = {
        "cases": sum(count.cases for count in counts.values()),
        "results": sum(count.results for count in counts.values()),
        "refused": sum(count.refused.total() for count in counts.values()),
        "defects": sum(count.defects.total() for count in counts.values()),
        "seconds": round(perf_counter() - begin, 1),
        "seed": request.seed,
        "versions": {"python": platform.python_version(), "gapview": __version__}
        | {package: version(package) for package in _PACKAGES},
        "estimators": {name: _rounded(vars(count)) for name, count in counts.items()},
        "smallest_defects": [case for same in kept.values() for case in same],
    }
    write_whole(request.output / "numbers.json", json.dumps(content, indent=2).encode())
    return content


def _rounded(count: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in count.items()}


def _outcomes(request: NumbersRequest) -> Iterator[tuple[int, FitOutcome]]:
    """Yield the outcome of every problem; a process that crashes or hangs is replaced."""
    following = 0
    processes = multiprocessing.get_context("spawn")
    while following < request.cases:
        ours, theirs = processes.Pipe(duplex=False)
        process = processes.Process(target=_work, args=(request, following, theirs), daemon=True)
        process.start()
        theirs.close()
        how = ""
        while following < request.cases and not how:
            try:
                how = "" if ours.poll(TIME_LIMIT) else f"no answer within {TIME_LIMIT:g} seconds"
                found = FitOutcome("defect", how, TIME_LIMIT) if how else ours.recv()
            except EOFError:
                process.join()
                how = f"its process ended with code {process.exitcode}"
                found = FitOutcome("defect", how, 0.0)
            yield following, found
            following += 1
        process.kill()
        process.join()
        ours.close()


def _work(request: NumbersRequest, start: int, sink: Any) -> None:
    for index in range(start, request.cases):
        sink.send(outcome_of(make_problem([request.seed, index], request.method(index))))


@click.command(epilog="Example: gapview-lab reliability numbers --cases 10000 --seed 1 -o results")
@click.option("--cases", type=click.IntRange(1), default=10_000, show_default=True, help="How many problems.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of all problems.")
@click.option("--estimator", "only", multiple=True, help="Only this one (may be repeated); by default all.")
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), default=Path("numbers"), show_default=True,
    help="Folder for numbers.json: the counts, and the smallest problems that show a defect.",
)  # fmt: skip
def numbers(cases: int, seed: int, only: tuple[str, ...], output: Path) -> None:
    """Generate problems of any shape, size, type and pattern, fit every clusterer, and count the outcomes."""
    try:
        content = run_numbers(NumbersRequest(cases, seed, output, only))
    except GapviewError as error:
        raise click.ClickException(str(error)) from None
    for name, count in content["estimators"].items():
        click.echo(
            f"{name:16} {count['cases']:6,} cases, {count['results']:6,} results, "
            f"{sum(count['refused'].values()):6,} refused, {sum(count['defects'].values()):3,} defects, "
            f"{count['seconds']:6.1f} s, the slowest {count['slowest']:.1f} s"
        )
        for said, times in count["defects"].items():
            click.echo(f"  {times} × {said}")
    click.echo(f"{content['cases']:,} cases, {content['defects']:,} defects, {content['seconds']:.0f} s")
    if content["defects"]:
        raise SystemExit(1)
