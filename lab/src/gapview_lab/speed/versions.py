"""Compare time, memory and results of fits between two versions of gapview, interleaved on the same computer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from gapview.commands.console import new_console
from gapview.errors import DataFileError
from gapview.utils.storage import make_folder, write_table

from .machine import computer

__all__ = ["run_program", "versions"]

# Runs in a process of its own, with the sources of one version first on the path
_PROGRAM = """
import hashlib, json, os, sys, tempfile, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from gapview import GRMF, BridgedGRMF
from gapview.datasets import load_views, make_views, paired_split

def memory(name):
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))

def on_disk(views):
    folder = tempfile.mkdtemp()
    maps = []
    for k, matrix in enumerate(views.matrices):
        whole = np.full((views.n_samples, matrix.shape[1]), np.nan, dtype=matrix.dtype)
        whole[views.rows(k)] = matrix
        np.save(f"{folder}/{k}.npy", whole)
        maps.append(np.load(f"{folder}/{k}.npy", mmap_mode="r"))
    return maps

def on_dask(views):
    import dask.array as da
    whole = [np.array(matrix) for matrix in on_disk(views)]
    return [da.from_array(matrix, chunks=(len(matrix) // 4, -1)) for matrix in whole]

def digits():
    return paired_split(load_views(os.path.join(sys.argv[2], "handwritten_2v.npz")).views, 0.5, random_state=0)

def made(n_samples):
    return make_views(n_samples, (240, 76), n_clusters=10, missing_rate=0.3, dtype="float32", random_state=0).views

CASES = {
    "GRMF, 100 iterations": (digits, lambda v: GRMF(10, max_iter=100, tol=0, random_state=0).fit(v)),
    "GRMF, five starts": (digits, lambda v: GRMF(10, n_init=5, max_iter=100, tol=0, random_state=0).fit(v)),
    "BridgedGRMF, fixed": (digits, lambda v: BridgedGRMF(10, selection="fixed", random_state=0).fit(v)),
    "BridgedGRMF": (digits, lambda v: BridgedGRMF(10, random_state=0).fit(v)),
    "GRMF, 50,000 samples": (
        lambda: made(50_000), lambda v: GRMF(10, init="data", max_iter=30, tol=0, random_state=0).fit(v)),
    "BridgedGRMF fixed, 50,000 samples": (
        lambda: made(50_000), lambda v: BridgedGRMF(10, selection="fixed", max_iter=30, tol=0, random_state=0).fit(v)),
    "GRMF on disk, 20,000 samples": (
        lambda: on_disk(made(20_000)),
        lambda v: GRMF(10, init="data", max_iter=30, tol=0, memory_budget="100 MB", random_state=0).fit(v)),
    "GRMF on Dask, 8,000 samples": (
        lambda: on_dask(made(8_000)), lambda v: GRMF(10, init="data", max_iter=30, tol=0, random_state=0).fit(v)),
}
prepare, fit = CASES[sys.argv[1]]
views = prepare()
small = make_views(300, (20, 30), n_clusters=3, missing_rate=0.3, random_state=0).views
GRMF(3, max_iter=5, random_state=0).fit(small), BridgedGRMF(3, max_iter=5, selection="fixed", random_state=0).fit(small)
before = memory("VmRSS")
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
begin = time.perf_counter()
model = fit(views)
seconds = time.perf_counter() - begin
digest = hashlib.sha256(np.asarray(model.labels_).tobytes()).hexdigest()[:12]
found = {"seconds": seconds, "megabytes": (memory("VmHWM") - before) / 1e6, "labels": digest,
         "objective": float(model.objective_[-1])}
print(json.dumps(found))
"""
# Counts the functions and files of one small fit, and the calls from one file of gapview to another
_TRACE = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
import gapview
from gapview import BridgedGRMF
from gapview.datasets import make_views

home = os.path.dirname(gapview.__file__)
views = make_views(120, n_clusters=3, missing_rate=0.3, random_state=0).views
functions, files, n_crossings = set(), set(), 0

def ours(frame):
    return frame.f_code.co_filename.startswith(home)

def count(frame, event, argument):
    global n_crossings
    if event != "call" or not ours(frame):
        return
    code, caller = frame.f_code, frame.f_back
    if not code.co_name.startswith("<"):  # comprehensions and lambdas belong to their functions
        functions.add(code)
    files.add(code.co_filename)
    while caller is not None and not ours(caller):
        caller = caller.f_back
    n_crossings += caller is not None and caller.f_code.co_filename != code.co_filename

BridgedGRMF(3, selection="fixed", random_state=0).fit(views)  # imports everything
sys.setprofile(count)
BridgedGRMF(3, selection="fixed", random_state=0).fit(views)
sys.setprofile(None)
print(json.dumps({"functions": len(functions), "files": len(files), "crossings": n_crossings}))
"""
CASES = (
    "GRMF, 100 iterations",
    "GRMF, five starts",
    "BridgedGRMF, fixed",
    "BridgedGRMF",
    "GRMF, 50,000 samples",
    "BridgedGRMF fixed, 50,000 samples",
    "GRMF on disk, 20,000 samples",
    "GRMF on Dask, 8,000 samples",
)
_HEADER = ("case", "seconds", "seconds before", "ratio", "MB", "MB before", "ratio of MB", "same labels", "objective")


@click.command("versions", short_help="Compare with another version.")
@click.argument("before", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--data-dir", type=click.Path(path_type=Path), envvar="GAPVIEW_DATA", required=True)
@click.option(
    "--turns", type=click.IntRange(min=1), default=5, show_default=True, help="Interleaved turns; the best counts."
)
@click.option("--case", "chosen", type=click.Choice(CASES), multiple=True, help="Only these cases.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("versions"), show_default=True)
def versions(before: Path, data_dir: Path, turns: int, chosen: Sequence[str], output: Path) -> None:
    """Compare this version with another one, in the folder BEFORE: a checkout, or its folder src.

    Each fit runs in a process of its own, the two versions in turn. The table holds the fastest turn and the smallest
    peak of memory of each. The first line counts the functions and files of one fit of 120 samples with fixed settings,
    and the calls between files.
    """
    console = new_console()
    now = Path(str(sys.modules["gapview"].__file__)).parents[1]
    counted = [run_program(source, "the trace", _TRACE) for source in (now, before.resolve())]
    counts = ", ".join(f"{counted[0][name]} {name} ({counted[1][name]})" for name in counted[0])
    console.print(f"One fit of 120 samples, before in brackets: {counts}", highlight=False)
    rows: list[Sequence[Any]] = []
    for case in chosen or CASES:
        found = [
            [run_program(source, repr(case), _PROGRAM, case, str(data_dir)) for source in (now, before.resolve())]
            for _ in range(turns)
        ]
        row = _row(case, [pair[0] for pair in found], [pair[1] for pair in found])
        rows.append(row)
        console.print(f"{case}: time × {row[3]:.2f}, memory × {row[6]:.2f}, same labels: {row[7]}", highlight=False)
    path = make_folder(output) / "versions.csv"
    write_table(path, _HEADER, rows)
    console.print(f"{computer()}, best of {turns}. Wrote {path}", highlight=False)


def run_program(given: Path, name: str, program: str, *options: str) -> dict[str, Any]:
    """Run a program with the sources of one version, a folder src or one that holds it; return the JSON of its end."""
    source = next((folder for folder in (given, given / "src") if (folder / "gapview").is_dir()), None)
    if source is None:
        raise DataFileError(f"{given.name!r} holds no sources of gapview. Give the folder of a checkout, or its src.")
    path = os.pathsep.join([str(source), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    arguments = [sys.executable, "-c", program, *options]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it was killed"])[-1]
        raise DataFileError(f"{name} with the sources in {str(source)!r} failed: {last}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _row(case: str, now: list[dict[str, Any]], before: list[dict[str, Any]]) -> tuple[Any, ...]:
    seconds = [min(run["seconds"] for run in runs) for runs in (now, before)]
    memory = [min(run["megabytes"] for run in runs) for runs in (now, before)]
    objective = now[0]["objective"] / before[0]["objective"] - 1
    same = now[0]["labels"] == before[0]["labels"]
    return (
        case,
        *(round(value, 4) for value in (*seconds, seconds[0] / seconds[1])),
        *(round(value, 2) for value in (*memory, memory[0] / memory[1])),
        same,
        f"{objective:.1e}",
    )
