"""``run.json``: how the results in a folder were computed, updated by each call."""

from __future__ import annotations

import json
import math
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from gapview import __version__
from gapview.report.page import Facts
from gapview.utils.messages import duration
from gapview.utils.storage import write_whole

__all__ = ["RunFile", "largest_process", "run_facts"]

_KINDS = {"command": str, "seconds": float, "peak_memory_mb": float, "files": list, "fingerprint": str}


class RunFile:
    """Description of the runs in a folder; the clock starts with the instance."""

    def __init__(self, output: Path) -> None:
        self._output, self._begin = output, perf_counter()
        self.path = output / "run.json"
        self.old = _read(self.path)

    def describe(self, command: str, n_runs: int, n_jobs: int) -> dict[str, Any]:
        """Return what was run, where, and its cost, earlier calls included."""
        return {
            "version": __version__,
            "command": command,
            "n_runs": n_runs,
            "n_jobs": n_jobs,
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
            "python": platform.python_version(),
            "peak_memory_mb": max(self.old.get("peak_memory_mb", 0.0), largest_process()),
            "finished": datetime.now(UTC).date().isoformat(),
            "seconds": self.old.get("seconds", 0.0) + perf_counter() - self._begin,
        }

    def unchanged(self, fingerprint: str) -> list[Path]:
        """Return the files in the folder if the fingerprint has not changed, otherwise none."""
        known = [self._output / name for name in self.old.get("files", [])]
        same = self.old.get("fingerprint") == fingerprint and all(os.path.exists(file) for file in known)
        return known if same else []

    def write(self, run: dict[str, Any], fingerprint: str, files: Sequence[Path]) -> None:
        """Write the file; call this after all other files are written."""
        run |= {"fingerprint": fingerprint, "files": [str(file.relative_to(self._output)) for file in files]}
        write_whole(self.path, json.dumps(run, indent=2).encode())


def run_facts(run: Mapping[str, Any]) -> Facts:
    """Return the cost of a run as a block for the end of a page."""
    memory = float(run["peak_memory_mb"])
    jobs = "one process" if run["n_jobs"] == 1 else f"{run['n_jobs']} processes"
    return Facts(
        (
            ("gapview", str(run["version"])),
            ("runs", str(run["n_runs"])),
            ("time", f"{duration(run['seconds'])} with {jobs}"),
            ("largest process", f"{memory:.0f} MB" if math.isfinite(memory) else "not known"),
            ("machine", str(run["machine"])),
            ("finished", str(run["finished"])),
        )
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    usable = isinstance(found, dict) and all(isinstance(found.get(name), kind) for name, kind in _KINDS.items())
    return found if usable and all(isinstance(name, str) for name in found["files"]) else {}


def largest_process() -> float:
    """Return the memory of the largest process, workers included, in MB; NaN where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return float("nan")
    largest = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return largest / (2**20 if sys.platform == "darwin" else 2**10)
