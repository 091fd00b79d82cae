"""``gapview-lab large``: fits of large data by this version and another one, in turn on the same computer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from gapview import __version__
from gapview.commands.console import new_console
from gapview.report.page import Block, Code, Facts, Group, Row, Table, Text
from gapview.utils.storage import make_folder

from ..common.console import listed_numbers
from ..common.records import RecordStore
from ..common.run_file import RunFile, run_facts
from .machine import computer, versions
from .made import N_CLUSTERS, made_files
from .speed_page import seconds_text
from .versions import run_program

__all__ = ["LargeRun", "LargeStore", "large", "large_sections"]

_WIDTHS, _MISSING = (240, 76), 0.25
_NOW = "this version"
_UNKNOWN = float("nan")
# Runs in a process of its own, with the sources of one version first on the path
_PROGRAM = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
from pathlib import Path
import numpy as np
from sklearn.metrics import adjusted_rand_score
from gapview import BridgedGRMF

folder = Path(sys.argv[1])
arrays = [np.load(path) for path in sorted(folder.glob("view_*.npy"))]
model = BridgedGRMF(int(sys.argv[2]), random_state=0)
begin, processor = time.perf_counter(), time.process_time()
model.fit(arrays)
seconds, processor = time.perf_counter() - begin, time.process_time() - processor
with open("/proc/self/status") as lines:
    peak = next(int(line.split()[1]) / 2**10 for line in lines if line.startswith("VmHWM"))
target = np.load(folder / "target.npy")
print(json.dumps({
    "seconds": seconds, "processor_seconds": processor, "peak_mb": peak,
    "input_mb": sum(array.nbytes for array in arrays) / 2**20,
    "recall": min(report.recall for report in model.neighbor_search_),
    "ari": float(adjusted_rand_score(target, model.labels_)),
}))
"""


@dataclass(frozen=True)
class LargeRun:
    """Cost and quality of one fit by one version."""

    label: str  # of the version: its commit, or "this version"
    n_samples: int
    computer: str
    version: str = ""
    seconds: float = _UNKNOWN
    processor_seconds: float = _UNKNOWN  # of all threads: other load changes them less
    peak_mb: float = _UNKNOWN  # of the whole process
    input_mb: float = _UNKNOWN
    recall: float = _UNKNOWN  # of the least successful search for neighbours
    ari: float = _UNKNOWN  # with the true groups

    @property
    def task(self) -> tuple[str, int, str]:
        """What was run, and where."""
        return self.label, self.n_samples, self.computer


class LargeStore(RecordStore[LargeRun]):
    """All fits of a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "large.csv", __version__, LargeRun)


@click.command("large", short_help="Compare fits of large data with another version.")
@click.argument("before", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--sizes", multiple=True, callback=listed_numbers, default=("200000,1000000",), show_default=True, help="Samples."
)
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("large"), show_default=True)
def large(before: Path, sizes: tuple[int, ...], output: Path) -> None:
    """Fit BridgedGRMF to large data with another version, and with this one.

    BEFORE is a checkout of the other version, or its folder src. Time, processor time, memory, recall and adjusted Rand
    index of every fit. The data are made: two views of 240 and 76 features in 10 groups, float32, a quarter of every
    view missing. Every fit has a process of its own. Fits whose results are in the folder are not repeated.
    """
    console, folder = new_console(), make_folder(output)
    run_file, store = RunFile(folder), LargeStore(folder)
    sources = {_commit(before): before.resolve(), _NOW: Path(str(sys.modules["gapview"].__file__)).parents[1]}
    for size in sorted(set(sizes)):
        missing = [label for label in sources if (label, size, computer()) not in store.done()]
        if not missing:
            continue
        data = folder / ".made-data"
        with made_files(data, size, _WIDTHS, _MISSING):
            for label in missing:
                found = run_program(sources[label], f"{size:,} samples", _PROGRAM, str(data.resolve()), str(N_CLUSTERS))
                run = LargeRun(label, size, computer(), __version__, **found)
                store.add([run])
                console.print(
                    f"{label}, {size:,} samples: {run.processor_seconds:.0f} s of processor time, memory "
                    f"{run.peak_mb / run.input_mb:.2f} × the input, recall {run.recall:.3f}, ARI {run.ari:.4f}",
                    highlight=False,
                )
    command = f"gapview-lab large BEFORE --sizes {','.join(map(str, sizes))} -o RESULTS"
    run_facts_of = run_file.describe(command, len(store.records), 1)
    run_facts_of |= {"computer": computer(), "programs": versions(), "before": next(iter(sources))}
    run_file.write(run_facts_of, "", [folder / "large.csv"])


def _commit(sources: Path) -> str:
    """Return the commit of a folder, or its name where there is none."""
    words = ["git", "-C", str(sources), "rev-parse", "--short=7", "HEAD"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return sources.resolve().name


def large_sections(runs: Sequence[LargeRun], run: dict[str, Any]) -> tuple[Block, ...]:
    """Return the part of the page on this comparison."""
    before = {one.n_samples: one for one in runs if one.label == run["before"]}
    rows = []
    for one in sorted(runs, key=lambda one: (one.n_samples, one.label == _NOW)):
        compared = before.get(one.n_samples)
        ratio = (
            "–" if compared is None or compared is one else f"{one.processor_seconds / compared.processor_seconds:.2f}"
        )
        times = seconds_text(one.seconds), seconds_text(one.processor_seconds), ratio
        found = f"{one.peak_mb / one.input_mb:.2f}", f"{one.recall:.3f}", f"{one.ari:.4f}"
        rows.append(Row((one.label, f"{one.n_samples:,}"), (*times, *found)))
    heads = ("", "samples", "time", "processor", "ratio", "peak / input", "recall", "ARI")
    notes = (
        f"Ratio: processor time over that of commit {run['before']}.",
        "Recall: the least of all searches, as they estimate it. ARI: adjusted Rand index with the truth.",
    )
    lead = (
        "Default BridgedGRMF on (240 + 76) float32 features, 25 % of every view missing, one run each. Where other "
        "work runs on the computer, compare processor time."
    )
    facts = Facts((("processor", str(run["computer"])), ("programs", str(run["programs"]))))
    table = Table("From arrays to labels", heads, (Group(tuple(rows)),), notes=notes, numbers=True)
    return Text(lead), table, Code(str(run["command"])), facts, run_facts(run)
