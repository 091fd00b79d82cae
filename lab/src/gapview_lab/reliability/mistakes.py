"""``mistakes``: real tables with a known mistake; gapview must read them correctly, refuse them or warn."""

from __future__ import annotations

import json
import multiprocessing
import platform
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np

from gapview import __version__
from gapview.errors import DataFileError
from gapview.utils.storage import make_folder, write_whole

from ..common.console import data_option
from . import mistakes_ids, mistakes_joins, mistakes_texts, mistakes_values
from .mistakes_bases import BASES, load_base
from .mistakes_oracle import INTERFACES, judge
from .mistakes_predict import judge_new
from .mistakes_register import KEYED, MUTATIONS, SAME
from .mistakes_tables import NotApplicable, draw_problem

__all__ = ["MistakeCase", "MistakesRequest", "mistakes", "run_case", "run_mistakes"]

REGISTERED = (mistakes_ids, mistakes_joins, mistakes_texts, mistakes_values)  # modules with mutations, and predict
NONE = "none"  # no mutation
OUTCOMES = ("correct", "warned", "error", "silent", "foreign")
TIME_LIMIT = 60  # seconds for one case
_N_DRAWS = 40  # until a mutation applies
_SECOND = ("rows_shuffled", "rows_dropped", "lines_of_windows", "all_quoted")  # mutations that are added to others
_PACKAGES = ("numpy", "pandas", "polars", "pyarrow", "anndata", "dask")


@dataclass(frozen=True)
class MistakeCase:
    """One table problem and what came of it."""

    case: int
    mutation: str
    group: str
    allowed: str
    interface: str
    base: str
    ids: str
    outcome: str
    reason: str
    second: str = ""

    @property
    def wrong(self) -> bool:
        """Whether a wrong result came without an alarm, or an error that is not gapview's."""
        return self.outcome in ("silent", "foreign")

    @property
    def false_alarm(self) -> bool:
        """Whether gapview raised or warned although it had to read the tables."""
        return self.allowed == SAME and self.outcome in ("warned", "error")


@dataclass(frozen=True)
class MistakesRequest:
    """Folder of the data sets, number of mutated and of unchanged cases, seed, and the data sets and mutations used."""

    folder: Path | None
    runs: int
    unchanged: int
    seed: int
    bases: Sequence[str] = BASES
    only: Sequence[str] = ()

    def mutations(self) -> list[str]:
        """Return the names of the mutations; those of single ids are many and come once, the others twice."""
        return list(self.only) or [*MUTATIONS, *(name for name in MUTATIONS if not name.startswith("id_"))]


def run_case(request: MistakesRequest, index: int) -> MistakeCase:
    """Draw and judge one case; those from ``request.runs`` on have no mistake.

    Examples
    --------
    >>> from gapview_lab.reliability.mistakes import MistakesRequest, run_case
    >>> run_case(MistakesRequest(None, 1, 0, 0, ("made",), ("ids_repeated",)), 0).outcome
    'error'
    """
    rng = np.random.default_rng([request.seed, index])
    if index >= request.runs:
        every = list(product(KEYED, INTERFACES, request.bases))
        kind, interface, base = every[(index - request.runs) % len(every)]
        names, group, allowed = [NONE], NONE, SAME
    else:
        listed = request.mutations()
        chosen = MUTATIONS[listed[index % len(listed)]]
        interface = chosen.interfaces[(index // len(listed) + index) % len(chosen.interfaces)]
        names, group, allowed = [chosen.name], chosen.group, chosen.allowed
        if rng.random() < 0.15:
            names.append(str(rng.choice(_SECOND)))
    for _ in range(_N_DRAWS):
        if index < request.runs:
            kind, base = str(rng.choice(list(chosen.kinds))), str(rng.choice(list(request.bases)))
        try:
            problem = draw_problem(load_base(base, request.folder), interface, kind, rng, plain=names == [NONE])
            for name in reversed(names):
                if name != NONE:
                    MUTATIONS[name].change(problem, rng)
            with _limited():
                verdict = judge_new(problem) if problem.new else judge(problem)
        except NotApplicable:
            continue
        second = "".join(names[1:])
        return MistakeCase(
            index, names[0], group, allowed, interface, base, kind, verdict.outcome, verdict.reason, second
        )
    return MistakeCase(index, names[0], group, allowed, interface, "", "", "not applicable", "")


@contextmanager
def _limited() -> Iterator[None]:
    """Raise TimeoutError after a time, on systems that have alarms, in the main thread."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"no answer within {TIME_LIMIT} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(TIME_LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _run_some(request: MistakesRequest, start: int, step: int) -> list[MistakeCase]:
    return [run_case(request, index) for index in range(start, request.runs + request.unchanged, step)]


def run_mistakes(request: MistakesRequest, jobs: int = 1) -> list[MistakeCase]:
    """Run all cases, in several processes if wanted, and return them in order.

    Examples
    --------
    >>> from gapview_lab.reliability.mistakes import MistakesRequest, run_mistakes
    >>> len(run_mistakes(MistakesRequest(None, 2, 1, 0, ("made",))))
    3
    """
    if unknown := [name for name in request.only if name not in MUTATIONS]:
        raise DataFileError(f"There is no mutation {unknown[0]!r}; there are {', '.join(MUTATIONS)}.")
    if jobs == 1:
        return _run_some(request, 0, 1)
    n_parts = 8 * jobs
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        parts = pool.starmap(_run_some, [(request, start, n_parts) for start in range(n_parts)], chunksize=1)
    return sorted((case for part in parts for case in part), key=lambda case: case.case)


# -- results ---------------------------------------------------------------------------------------------------------


def _table(cases: Sequence[MistakeCase]) -> bytes:
    """Return the counts of outcomes per mutation and interface as CSV."""
    counts: dict[tuple[str, ...], Counter[str]] = {}
    for case in cases:
        counts.setdefault((case.mutation, case.group, case.allowed, case.interface), Counter())[case.outcome] += 1
    lines = [",".join(["mutation", "group", "allowed", "interface", "n", *OUTCOMES])]
    for key, found in counts.items():
        numbers = [sum(found[one] for one in OUTCOMES), *(found[one] for one in OUTCOMES)]
        if numbers[0]:
            lines.append(",".join([*key, *map(str, numbers)]))
    return ("\n".join(lines) + "\n").encode()


def summarised(cases: Sequence[MistakeCase], request: MistakesRequest, seconds: float) -> dict[str, Any]:
    """Return the counts of all cases, and the cases that went wrong."""
    mutated = [case for case in cases if case.mutation != NONE and case.outcome in OUTCOMES]
    unchanged = [case for case in cases if case.mutation == NONE and case.outcome in OUTCOMES]
    alarms = sum(case.outcome in ("warned", "error") for case in unchanged)
    return {
        "cases": len(mutated),
        "mutations": len({case.mutation for case in mutated}),
        "groups": {
            group: {one: sum(case.group == group and case.outcome == one for case in mutated) for one in OUTCOMES}
            for group in dict.fromkeys(case.group for case in mutated)
        },
        "outcomes": {one: sum(case.outcome == one for case in mutated) for one in OUTCOMES},
        "false_alarms_of_harmless_changes": sum(case.false_alarm for case in mutated),
        "harmless_changes": sum(case.allowed == SAME for case in mutated),
        "unchanged": len(unchanged),
        "false_alarms": alarms,
        "wrong_unchanged": sum(case.wrong for case in unchanged),
        "not_applicable": sum(case.outcome not in OUTCOMES for case in cases),
        "seconds": round(seconds, 1),
        "seed": request.seed,
        "versions": {"python": platform.python_version(), "gapview": __version__}
        | {package: version(package) for package in _PACKAGES},
        "wrong": [asdict(case) | {"reason": case.reason[:200]} for case in cases if case.wrong],
        "alarms": [asdict(case) | {"reason": case.reason[:200]} for case in cases if case.false_alarm],
    }


@click.command(epilog="Example: gapview-lab reliability mistakes --jobs 2 -o results/reliability/mistakes.csv")
@data_option("the data sets", required=True)
@click.option("--runs", type=click.IntRange(1), default=2000, show_default=True, help="Tables with a mistake.")
@click.option("--unchanged", type=click.IntRange(0), default=704, show_default=True, help="Tables without a mistake.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Random seed.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.option("--only", multiple=True, metavar="MUTATION", help="Only this mutation; may be repeated.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), default=Path("mistakes.csv"), show_default=True,
    help="Table of the outcomes; a .json file beside it has the summary and the cases that went wrong.",
)  # fmt: skip
def mistakes(
    data_dir: Path, runs: int, unchanged: int, seed: int, jobs: int, only: tuple[str, ...], output: Path
) -> None:
    """Make common mistakes in real tables, read them through every interface, and compare with the truth."""
    begin = perf_counter()
    request = MistakesRequest(data_dir, runs, unchanged, seed, only=only)
    cases = run_mistakes(request, jobs)
    found = summarised(cases, request, perf_counter() - begin)
    make_folder(output.parent)
    write_whole(output, _table(cases))
    write_whole(output.with_suffix(".json"), (json.dumps(found, indent=2, ensure_ascii=False) + "\n").encode())
    for name, times in Counter((case.mutation, case.outcome) for case in cases if case.wrong).items():
        click.echo(f"{name[0]:32} {name[1]:8} {times}")
    for group, counts in found["groups"].items():
        click.echo(f"{group:16} " + ", ".join(f"{count:4} {one}" for one, count in counts.items()))
    click.echo(
        f"{found['cases']:,} tables with mistakes: {found['outcomes']['silent']:,} silently wrong, "
        f"{found['outcomes']['foreign']:,} foreign errors; {found['false_alarms']:,} false alarms on "
        f"{found['unchanged']:,} unchanged tables, {found['false_alarms_of_harmless_changes']:,} on "
        f"{found['harmless_changes']:,} harmless changes; {found['seconds']:.0f} s"
    )
    if any(case.wrong for case in cases):
        raise SystemExit(1)
