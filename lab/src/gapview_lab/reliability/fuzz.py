"""``fuzz``: damaged and forged files for every reader; each must give a result or an error of gapview."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from gapview import __version__
from gapview.errors import GapviewError, ParameterError
from gapview.utils.storage import make_folder, write_whole

from .fuzz_targets import TARGETS, case_of

__all__ = ["FuzzRequest", "fuzz", "run_fuzz"]

_PACKAGES = ("numpy", "scipy", "pandas", "pyarrow", "h5py", "anndata", "mudata")


@dataclass
class _FuzzCount:
    """Counts for the inputs of one target."""

    inputs: int = 0
    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)  # kind of error: how often
    contained: Counter[str] = field(default_factory=Counter)  # how a library ended its process: how often
    defects: Counter[str] = field(default_factory=Counter)  # what was wrong: how often
    seconds: float = 0.0
    slowest: float = 0.0


@dataclass(frozen=True)
class FuzzRequest:
    """Number of inputs, seed, targets and output folder."""

    inputs: int
    seed: int
    output: Path
    only: tuple[str, ...] = ()


def run_fuzz(request: FuzzRequest, say: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Run all inputs, and write ``fuzz.json`` and some inputs of every defect; return what was written."""
    if not hasattr(os, "fork"):
        raise ParameterError("Fuzzing needs processes that can be split (fork), which this system has not.")

    if unknown := [name for name in request.only if name not in TARGETS]:
        raise ParameterError(f"There is no target {unknown[0]!r}; there are {', '.join(map(repr, TARGETS))}.")
    chosen = {name: TARGETS[name].share for name in request.only or TARGETS}
    make_folder(request.output)
    begin = perf_counter()
    counts = {}
    for name, share in chosen.items():
        counts[name] = _count(name, max(1, round(request.inputs * share / sum(chosen.values()))), request)
        say(_line(name, counts[name]))
    content = {
        "inputs": sum(count.inputs for count in counts.values()),
        "accepted": sum(count.accepted for count in counts.values()),
        "refused": sum(count.refused.total() for count in counts.values()),
        "contained": sum(count.contained.total() for count in counts.values()),
        "defects": sum(count.defects.total() for count in counts.values()),
        "seconds": round(perf_counter() - begin, 1),
        "seed": request.seed,
        "versions": {"python": platform.python_version(), "gapview": __version__}
        | {package: version(package) for package in _PACKAGES},
        "targets": {name: vars(count) for name, count in counts.items()},
    }
    write_whole(request.output / "fuzz.json", json.dumps(content, indent=2).encode())
    return content


def _line(target: str, count: _FuzzCount) -> str:
    told = (
        f"{target:22} {count.inputs:7,} inputs, {count.accepted:6,} accepted, {count.refused.total():6,} refused, "
        f"{count.contained.total():4,} contained, {count.defects.total():3,} defects, {count.seconds:6.1f} s"
    )
    return "\n".join([told, *(f"  {times} × {said}" for said, times in count.defects.items())])


def _count(target: str, inputs: int, request: FuzzRequest) -> _FuzzCount:
    from .fuzz_runs import outcomes  # which needs modules that only Unix has

    case_of(target, 0, request.seed)  # what inputs are made from is made here, not in every process
    count = _FuzzCount()
    begin = perf_counter()
    for found in outcomes(target, inputs, request.seed):
        count.inputs += 1
        count.slowest = max(count.slowest, round(found.seconds, 3))
        if found.kind == "accepted":
            count.accepted += 1
            continue
        getattr(count, "defects" if found.kind == "defect" else found.kind)[found.said] += 1
        if found.kind == "defect" and count.defects[found.said] <= 3:
            _keep(target, found.index, request)
    count.seconds = round(perf_counter() - begin, 1)
    return count


def _keep(target: str, index: int, request: FuzzRequest) -> None:
    """Save an input that shows a defect."""
    case = case_of(target, index, request.seed)
    folder = make_folder(request.output / "defects" / f"{target.strip('.').replace(' ', '-')}-{index}")
    for name, content in case.files.items():
        write_whole(folder / name, content)
    write_whole(folder / "settings.txt", repr(dict(case.settings)).encode())


@click.command(epilog="Example: gapview-lab reliability fuzz --inputs 100000 --seed 1 -o results")
@click.option("--inputs", type=click.IntRange(1), default=100_000, show_default=True, help="How many inputs.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of all inputs.")
@click.option("--target", "only", multiple=True, help="Fuzz this reader alone (repeatable); by default all.")
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), default=Path("fuzz"), show_default=True,
    help="Folder for fuzz.json and the inputs that show a defect.",
)  # fmt: skip
def fuzz(inputs: int, seed: int, only: tuple[str, ...], output: Path) -> None:
    """Damage valid files, read them with every reader, and count the outcomes."""
    try:
        content = run_fuzz(FuzzRequest(inputs, seed, output, only), click.echo)
    except GapviewError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"{content['inputs']:,} inputs, {content['defects']:,} defects, {content['seconds']:.0f} s")
    if content["defects"]:
        raise SystemExit(1)
