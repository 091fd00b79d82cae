"""The measurements of ``gapview-lab speed``, and their data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gapview.errors import GapviewError

from ..league.data import PAIRED, QUICK, LeagueCell, Source, hidden, load, read_source
from .fits import measure_fits
from .iterations import measure_iterations
from .machine import measure_machine
from .passes import measure_passes
from .quality import measure_quality
from .results import Measured, SpeedTask

__all__ = ["PART_TITLES", "SpeedPlan", "plan_speed"]

PART_TITLES = {
    "machine": "The computer itself",
    "fit": "The whole fit",
    "iterations": "The iterations",
    "passes": "Passes from the start from the data",
    "quality": "What speed costs in quality",
}
_MAIN = "handwritten_2v"
_OTHERS = ("bbcsport_2v", "hdigit10000")
_FIT_RATES = (0.1, 0.5, 0.9)
_MISSING_RATE = 0.3  # where views are hidden at random: of two views half would leave no sample with both
_ROUGH_SECONDS = {"machine": 5.0, "fit": 40.0, "iterations": 40.0, "passes": 5.0, "quality": 60.0}


@dataclass(frozen=True)
class Sizes:
    """Sizes that the data do not determine."""

    name: str
    matrix: int
    copied_bytes: int
    n_samples: int
    n_iter: int
    n_runs: int
    n_seeds: int


FULL = Sizes("full", matrix=2048, copied_bytes=2**28, n_samples=200_000, n_iter=20, n_runs=3, n_seeds=3)
SMALL = Sizes("quick", matrix=128, copied_bytes=2**22, n_samples=2000, n_iter=3, n_runs=1, n_seeds=1)


@dataclass(frozen=True)
class SpeedPlan:
    """Tasks and their measuring functions, in order."""

    sizes: Sizes
    works: dict[SpeedTask, Callable[[], list[Measured]]]

    def cost(self, task: SpeedTask) -> float:
        """Return the rough seconds of a task."""
        return _ROUGH_SECONDS[task.part] if self.sizes is FULL else 1.0


def plan_speed(data_dir: Path | None, quick: bool, computer: str, say: Callable[[str], None]) -> SpeedPlan:
    """Return the measurements; missing data sets are skipped and reported."""
    sizes = SMALL if quick else FULL
    sources = [read_source(QUICK[0], None)] if quick else _sources(data_dir, say)
    main = next((source for source in sources if quick or source.name == _MAIN), None)
    works: dict[SpeedTask, Callable[[], list[Measured]]] = {}

    def add(part: str, case: str, work: Callable[..., list[Measured]], *arguments: Any) -> None:
        works[SpeedTask(part, case, computer, sizes.name)] = partial(work, *arguments)

    add("machine", "before everything else", measure_machine, sizes.matrix, sizes.copied_bytes)
    for cell in _cells(main, _FIT_RATES[1:2] if quick else _FIT_RATES):
        add("fit", cell.text, _on_views, main, cell, measure_fits, sizes.n_runs)
    for widths in ((256,), (128, 128)):
        case = f"{sizes.n_samples:,} × {' + '.join(map(str, widths))}, K = 10, float32"
        add("iterations", case, measure_iterations, sizes.n_samples, widths, sizes.n_iter, sizes.n_runs, sizes.matrix)
    for cell in main.cells if main is not None else []:
        add("passes", cell.text, _on_views, main, cell, measure_passes, sizes.n_runs)
    for source in sources:
        for cell in source.cells:
            if cell.rate != (_FIT_RATES[1] if cell.hiding == PAIRED else _MISSING_RATE):
                continue
            add("quality", cell.text, _on_all_ways, source, cell, sizes.n_seeds)
    return SpeedPlan(sizes, works)


def _sources(data_dir: Path | None, say: Callable[[str], None]) -> list[Source]:
    found = []
    for name in (_MAIN, *_OTHERS):
        path = data_dir / f"{name}.npz" if data_dir is not None else None
        if path is None or not path.is_file():
            where = "neither --data-dir nor GAPVIEW_DATA names a folder" if path is None else "no such file there"
            say(f"{name}.npz: {where}; what is measured on it is left out")
            continue
        try:
            found.append(read_source(name, path))
        except GapviewError as error:
            say(f"{name}.npz: {error}")
    return found


def _cells(source: Source | None, rates: tuple[float, ...]) -> list[LeagueCell]:
    return [cell for cell in source.cells if cell.rate in rates] if source is not None else []


def _on_views(source: Source, cell: LeagueCell, measure: Callable[..., list[Measured]], n_runs: int) -> list[Measured]:
    loaded = load(source.name, source.path)
    return measure(hidden(loaded, cell, 0)[0], len(np.unique(loaded.target)), n_runs)


def _on_all_ways(source: Source, cell: LeagueCell, n_seeds: int) -> list[Measured]:
    loaded = load(source.name, source.path)
    ways = [hidden(loaded, cell, seed) for seed in range(min(n_seeds, source.n_seeds))]
    return measure_quality(ways, len(np.unique(loaded.target)))
