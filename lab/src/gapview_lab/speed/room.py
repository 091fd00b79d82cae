"""Predict memory and time of a run from the next smaller size."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gapview.utils.messages import duration

from .scale_runs import DONE, ScaleRun, ScaleTask

__all__ = ["free_memory", "why_not"]


def why_not(task: ScaleTask, known: Mapping[ScaleTask, ScaleRun], time_limit: float) -> str:
    """Return why a run should be skipped; an empty text if it should not.

    Memory grows in step with the samples, and time at least so: what is too much by that rule is too much.
    """
    smaller = [
        run
        for other, run in known.items()
        if other.method == task.method and other.n_samples < task.n_samples and _same_place(other, task)
    ]
    if not smaller:
        return ""
    last = max(smaller, key=lambda run: run.n_samples)
    if last.status != DONE:
        return f"not begun, since {last.n_samples:,} samples were too many: {last.status}"
    times = task.n_samples / last.n_samples
    needed, free = last.before_mb + times * (last.peak_mb - last.before_mb), free_memory()
    if needed > free:
        return f"not begun, since it would take about {needed / 1024:.1f} GB of memory, and {free / 1024:.1f} are free"
    if times * last.seconds > time_limit:
        return f"not begun, since it would take at least {duration(times * last.seconds)}: over the time limit"
    return ""


def _same_place(other: ScaleTask, task: ScaleTask) -> bool:
    place = ("features", "missing_rate", "device", "computer")
    return all(getattr(other, name) == getattr(task, name) for name in place)


def free_memory() -> float:
    """Return the memory that is free, in MB; infinite where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(float(line.split()[1]) / 2**10 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20
    except (AttributeError, ValueError, OSError):
        return float("inf")
