"""Single runs of ``gapview-lab scale``: one method at one size, in a process of its own."""

from __future__ import annotations

import json
import math
import os
import signal
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from gapview.baselines import BipartiteSpectral, ImputedSpectral
from gapview.compute.arrays import to_device
from gapview.datasets import make_views
from gapview.estimators import GRMF, BridgedGRMF

from ..common.records import RecordStore
from ..league.runs import reason_of
from .made import N_CLUSTERS, read_made
from .peers import PEERS, MeanMiniBatch, OfPackage
from .phases import PhaseClock, clocked_phases, memory_now, peak_memory

__all__ = ["DONE", "METHODS", "RIVALS", "ScaleRun", "ScaleStore", "ScaleTask", "ScaleWork"]

DONE = "done"
_UNKNOWN = float("nan")
_OVER_TIME = int(getattr(signal, "SIGXCPU", 0))  # signal that ends a process over its limit of processor time
METHODS: Mapping[str, Callable[..., Any]] = {
    "GRMF": GRMF,
    "GRMF-data": lambda count, **more: GRMF(count, init="data", **more),
    "BridgedGRMF": BridgedGRMF,
    "BridgedGRMF-fixed": lambda count, **more: BridgedGRMF(count, selection="fixed", **more),
    "BipartiteSpectral": BipartiteSpectral,
    "ImputedSpectral": ImputedSpectral,
    "MeanMiniBatch": MeanMiniBatch,
    **{name: partial(OfPackage, kind) for name, kind in PEERS.items()},
}
# On the processor only, and without goals
RIVALS = ("BipartiteSpectral", "ImputedSpectral", "MeanMiniBatch", *PEERS)
# Rough seconds for 100,000 samples of 316 features on two cores, for the time left before anything is measured
_COSTS = {"GRMF": 60.0, "GRMF-data": 60.0, "BridgedGRMF": 150.0, "BridgedGRMF-fixed": 130.0, "BipartiteSpectral": 15.0}
_USUAL_COST = 100.0
_N_WARM = 6000  # samples of a fit before one on a device; more than those on which settings are tried


@dataclass(frozen=True)
class ScaleTask:
    """One method at one size."""

    method: str
    n_samples: int
    features: str  # of the views, such as "240+76"
    missing_rate: float  # of every view
    device: str  # "": the processor
    watched: int  # 1: memory is noted by phase, too
    computer: str

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of features of every view."""
        return tuple(int(width) for width in self.features.split("+"))

    @property
    def cost(self) -> float:
        """Rough seconds."""
        return _COSTS.get(self.method, _USUAL_COST) * self.n_samples / 1e5 * sum(self.widths) / 316

    @property
    def kind(self) -> tuple[str, int]:
        """Key of tasks that take about the same time."""
        return self.method, self.n_samples


@dataclass(frozen=True)
class ScaleRun:
    """Cost and quality of a run."""

    method: str
    n_samples: int
    features: str
    missing_rate: float
    device: str
    watched: int
    computer: str
    status: str = DONE  # else what went wrong, in words
    seconds: float = _UNKNOWN  # from arrays, on the device if there is one, to labels
    input_mb: float = _UNKNOWN  # the arrays, missing rows included
    before_mb: float = _UNKNOWN  # the process with everything imported, before the arrays
    peak_mb: float = _UNKNOWN  # of the whole process
    device_mb: float = _UNKNOWN  # most memory held on the device
    paired: float = _UNKNOWN  # share of the samples that have all views
    recall: float = _UNKNOWN  # of the least successful search for neighbours, if the method reports it
    ari: float = _UNKNOWN  # with the true groups
    n_iter: int = 0
    seconds_by_phase: str = "{}"
    memory_by_phase: str = "{}"
    version: str = ""
    processor_seconds: float = _UNKNOWN  # of all threads: other load changes them less
    warm_up: float = _UNKNOWN  # seconds of a small fit before, which loads the programs of a device

    @property
    def task(self) -> ScaleTask:
        """The task that this is the result of."""
        return ScaleTask(**{field.name: getattr(self, field.name) for field in fields(ScaleTask)})

    @property
    def phases(self) -> dict[str, float]:
        """Seconds by phase."""
        return {name: float(value) for name, value in json.loads(self.seconds_by_phase).items()}

    @property
    def memory(self) -> dict[str, float]:
        """Largest memory by phase, in MB."""
        return {name: float(value) for name, value in json.loads(self.memory_by_phase).items()}


class ScaleStore(RecordStore[ScaleRun]):
    """All runs of a folder. Failed runs count as not done, except those over a limit as long as the current one."""

    def __init__(self, path: Path, version: str, time_limit: float) -> None:
        super().__init__(path, version, ScaleRun, added=("processor_seconds", "warm_up"))
        self._time_limit = time_limit

    def last(self) -> dict[ScaleTask, ScaleRun]:
        """Return the latest result of every task."""
        return {run.task: run for run in self.records}

    def done(self) -> set[ScaleTask]:
        """Return the tasks whose results are here."""
        return {task for task, run in self.last().items() if run.status == DONE or run.seconds >= self._time_limit}


@dataclass(frozen=True)
class ScaleWork:
    """How runs are done; see :class:`gapview_lab.common.runner.Work`."""

    folder: Path  # with the made data
    n_threads: int
    version: str
    processor_limit: float | None = None  # seconds of all threads
    memory_limit: float | None = None  # GB

    def run(self, task: ScaleTask) -> list[ScaleRun]:
        """Do one run; an error becomes a record, so that the other sizes continue."""
        blank = ScaleRun(**vars(task), version=self.version)
        try:
            # The runner keeps its processes to one thread, which is right for many at a time; so do fits in a process
            # of a pool, unless they are told otherwise
            os.environ["OMP_NUM_THREADS"] = str(self.n_threads)
            _limit_process(self.processor_limit, self.memory_limit)
            with warnings.catch_warnings(), threadpool_limits(self.n_threads):
                warnings.simplefilter("ignore")
                return [replace(blank, **self._measured(task))]
        except (Exception, MemoryError) as error:
            return [replace(blank, status=reason_of(error))]

    def lost(self, task: ScaleTask, reason: str, seconds: float) -> list[ScaleRun]:
        """Return the record of a run whose process has ended."""
        if self.processor_limit is not None and f"code {-_OVER_TIME}" in reason:
            reason = f"over the limit of {self.processor_limit:g} s of processor time"
        return [ScaleRun(**vars(task), status=reason, seconds=seconds, version=self.version)]

    def _measured(self, task: ScaleTask) -> dict[str, Any]:
        more = {"device": task.device} if task.device else {}
        model = METHODS[task.method](N_CLUSTERS, random_state=0, **more)
        wait, device_memory = _device_clock(task.device)
        warm_up = _warm_up(task, model) if task.device else _UNKNOWN
        before = memory_now()
        arrays, target = read_made(self.folder)
        n_bytes = sum(array.nbytes for array in arrays)
        paired = float(np.all([~np.isnan(array[:, 0]) for array in arrays], axis=0).mean())
        if task.device:
            arrays = [to_device(arrays.pop(0), task.device) for _ in range(len(arrays))]
        clock = PhaseClock(wait, watch_memory=bool(task.watched))
        processor = process_time()
        with clocked_phases(clock):
            model.fit(arrays)
        processor = process_time() - processor
        return {
            "seconds": clock.total,
            "processor_seconds": processor,
            "warm_up": warm_up,
            "input_mb": n_bytes / 2**20,
            "before_mb": before,
            "peak_mb": peak_memory(),
            "device_mb": device_memory(),
            "paired": paired,
            "recall": min((report.recall for report in getattr(model, "neighbor_search_", ())), default=_UNKNOWN),
            "ari": float(adjusted_rand_score(target, model.labels_)),
            "n_iter": int(getattr(model, "n_iter_", 0)),
            "seconds_by_phase": json.dumps({name: round(value, 6) for name, value in clock.seconds.items()}),
            "memory_by_phase": json.dumps({name: round(value, 1) for name, value in clock.memory.items()}),
        }


def _warm_up(task: ScaleTask, model: Any) -> float:
    """Fit few samples on the device, and return the seconds: the first fit loads its programs."""
    made = make_views(_N_WARM, task.widths, n_clusters=N_CLUSTERS, missing_rate=0.25, dtype="float32", random_state=0)
    views = made.views.to_device(task.device)
    begin = perf_counter()
    clone(model).fit(views)
    return perf_counter() - begin


def _limit_process(processor: float | None, memory: float | None) -> None:
    """Limit the processor time and the memory of this process; where the system cannot, nothing is limited."""
    if processor is None and memory is None:
        return
    import resource

    if processor is not None:
        soft = math.ceil(process_time() + processor)
        resource.setrlimit(resource.RLIMIT_CPU, (soft, soft + 60))
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (int(memory * 2**30),) * 2)


def _device_clock(device: str) -> tuple[Callable[[], Any], Callable[[], float]]:
    """Return functions that synchronise a device and read its peak memory."""
    if not device.startswith("cuda"):
        return lambda: None, lambda: _UNKNOWN
    import torch

    return torch.cuda.synchronize, lambda: torch.cuda.max_memory_allocated() / 2**20
