"""The runs of the league: tasks, how they are run, and their records."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.metrics import normalized_mutual_info_score
from threadpoolctl import threadpool_limits

from gapview.baselines import best_view_scores
from gapview.errors import GapviewError
from gapview.metrics import clustering_scores
from gapview.utils.types import Array

from ..common.records import RecordStore
from ..paper.methods import as_setting, read_setting
from .data import LeagueCell, Source, hidden, load
from .entrants import BY_LABELS, ENTRANTS, Entrant

__all__ = ["DEFAULT", "SCORES", "LeagueRun", "LeagueStore", "LeagueTask", "LeagueWork", "all_tasks", "reason_of"]

SCORES = ("accuracy", "nmi", "ari", "purity")
DEFAULT = as_setting({})
_OVER, _NOT_TRIED = "over the time limit", "not tried"
_GAPS = "it needs a complete view, and every view has gaps"


@dataclass(frozen=True)
class LeagueTask:
    """One method with one setting on one data set with views hidden in one way."""

    data: str
    fingerprint: str  # of the data
    hiding: str
    rate: float
    seed: int  # of the hiding, the order of the samples, and the method
    method: str
    setting: str  # as_setting of what differs from the default
    size: int  # samples × features

    @property
    def cell(self) -> LeagueCell:
        """What the run belongs to."""
        return LeagueCell(self.data, self.hiding, self.rate)

    @property
    def cost(self) -> float:
        """Rough seconds."""
        return ENTRANTS[self.method].cost * self.size / 1e6

    @property
    def kind(self) -> tuple[str, str]:
        """Key of tasks that take about the same time."""
        return self.data, self.method


@dataclass(frozen=True)
class LeagueRun:
    """Result of a run; scores are shares from 0 to 1."""

    data: str
    fingerprint: str
    hiding: str
    rate: float
    seed: int
    method: str
    setting: str
    size: int
    status: str = "done"  # else what went wrong, in words
    accuracy: float = float("nan")
    nmi: float = float("nan")
    ari: float = float("nan")
    purity: float = float("nan")
    nmi_arithmetic: float = float("nan")  # divided by the mean of the entropies, as most papers print it
    seconds: float = float("nan")
    program: str = ""  # package and version of the method
    version: str = ""  # of gapview

    @property
    def task(self) -> LeagueTask:
        """The task that this is the result of."""
        return LeagueTask(**{part.name: getattr(self, part.name) for part in fields(LeagueTask)})

    @property
    def is_over_time(self) -> bool:
        """Whether it exceeded the time limit, or was skipped because another seed did."""
        return _OVER in self.status


def all_tasks(sources: Sequence[Source], entrants: Sequence[Entrant], n_seeds: int, tuned: bool) -> list[LeagueTask]:
    """List every run; without ``tuned`` every method at its default alone."""
    return [
        LeagueTask(source.name, source.fingerprint, cell.hiding, cell.rate, seed, entrant.name, setting, source.size)
        for source in sources
        for cell in source.cells
        for entrant in entrants
        for setting in (entrant.settings if tuned else entrant.settings[:1])
        for seed in range(min(n_seeds, source.n_seeds))
    ]


@dataclass(frozen=True)
class LeagueWork:
    """How the runs are done; see :class:`gapview_lab.common.runner.Work`."""

    paths: Mapping[str, Path | None]  # of the data, None for those that are embedded or made
    version: str
    widths: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # of data of which some views are taken

    def run(self, task: LeagueTask) -> list[LeagueRun]:
        """Do one run; an error of a method becomes a record, so that the other runs continue."""
        loaded = load(task.data, self.paths[task.data], self.widths.get(task.data, ()))
        views, target = hidden(loaded, task.cell, task.seed)
        entrant = ENTRANTS[task.method]
        if entrant.needs_complete_view and not views.mask.all(axis=0).any():
            return [replace(self._blank(task), status=_GAPS)]
        setting = read_setting(task.setting)
        peek = setting.pop("view", None) == BY_LABELS
        begin = perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # thousands of runs: what counts is in the scores
                n_clusters = len(np.unique(target))
                model = entrant.make(n_clusters, random_state=task.seed, **dict(entrant.options), **setting)
                begin = perf_counter()
                with threadpool_limits(1):  # once more: making the model may have loaded another matrix library
                    model.fit(views)
            seconds = perf_counter() - begin
            scores = best_view_scores(model, target) if peek else _scores(target, model.labels_)
        except Exception as error:
            return [replace(self._blank(task), status=reason_of(error), seconds=perf_counter() - begin)]
        return [LeagueRun(**(vars(self._blank(task)) | scores | {"seconds": seconds}))]

    def lost(self, task: LeagueTask, reason: str, seconds: float) -> list[LeagueRun]:
        """Return the record of a run whose process has ended."""
        return [replace(self._blank(task), status=reason, seconds=seconds)]

    def _blank(self, task: LeagueTask) -> LeagueRun:
        return LeagueRun(**vars(task), program=ENTRANTS[task.method].program, version=self.version)


def _scores(target: Array, labels: Any) -> dict[str, float]:
    found = clustering_scores(target, labels)
    arithmetic = float(normalized_mutual_info_score(target, labels))
    return {name: found[name] for name in SCORES} | {"nmi_arithmetic": arithmetic}


def reason_of(error: Exception) -> str:
    """Return an error as one line, with its type if it is not an error of gapview."""
    text = " ".join(str(error).split())
    return text[:400] if isinstance(error, GapviewError) else f"{type(error).__name__}: {text}"[:400]


class LeagueStore(RecordStore[LeagueRun]):
    """All runs of a folder. Runs that exceeded a shorter time limit than the current one count as not done."""

    def __init__(self, path: Path, version: str, time_limit: float) -> None:
        super().__init__(path, version, LeagueRun, added=("nmi_arithmetic",))
        self._time_limit = time_limit
        self._hopeless: dict[LeagueTask, LeagueRun] = {}  # whatever the seed, which is set to 0
        self._learn(self.records)

    def last(self) -> dict[LeagueTask, LeagueRun]:
        """Return the latest result of every task."""
        return {run.task: run for run in self.records}

    def done(self) -> set[LeagueTask]:
        """Return the tasks whose results are here."""
        return {task for task, run in self.last().items() if not (run.is_over_time and run.seconds < self._time_limit)}

    def add(self, records: Iterable[LeagueRun]) -> None:
        """Append the records of one run, on disk when this returns."""
        new = list(records)
        super().add(new)
        self._learn(new)

    def _learn(self, records: Iterable[LeagueRun]) -> None:
        for run in records:
            if run.is_over_time and run.seconds >= self._time_limit and _NOT_TRIED not in run.status:
                self._hopeless[replace(run.task, seed=0)] = run

    def instead(self, work: LeagueWork) -> Callable[[LeagueTask], list[LeagueRun]]:
        """Make what the runner asks right before a run: one that cannot count any more is not begun.

        A method that is over the time limit with one seed is absent in that cell whatever its other seeds give.
        """

        def answer(task: LeagueTask) -> list[LeagueRun]:
            run = self._hopeless.get(replace(task, seed=0))
            if run is None:
                return []
            reason = f"{_NOT_TRIED}, since seed {run.seed} was {_OVER} of {run.seconds:g} s"
            return work.lost(task, reason, run.seconds)

        return answer
