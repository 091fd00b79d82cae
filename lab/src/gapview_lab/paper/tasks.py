"""The runs behind tables and figures: tasks, their cost, and how they are run."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from gapview.baselines import BestSingleView, best_view_scores
from gapview.datasets import Dataset, paired_split
from gapview.errors import GapviewError
from gapview.estimators import GRMF, MultiViewClusterer
from gapview.metrics import clustering_scores
from gapview.views import Views

from .methods import COMPARED, as_setting, read_setting
from .published import PAPER_DATA, RATES, load_paper_data

__all__ = [
    "FIGURE_DATA",
    "FIGURE_RATE",
    "PaperPlan",
    "PaperRecord",
    "PaperTask",
    "PaperWork",
    "chosen_settings",
    "figure_tasks",
    "first_tasks",
    "run_task",
    "second_tasks",
]


# Rough seconds of a run on thousands of samples, where it is more than half a second
_COSTS = {"GPMVC": 10.0, "IMG": 10.0, "MeanFilledSpectral": 3.0, "RobustMultiViewKMeans": 3.0, "DCNMF": 1.0, "PVC": 0.8}


@dataclass(frozen=True)
class PaperTask:
    """One run of one method with one setting on one data set with views hidden in one way."""

    experiment: str  # "tables", "figure3", "figure4" or "figure5"
    data: str
    method: str
    setting: str  # as_setting of it
    rate: float
    fold: int
    start: int = 0  # which of several random starts

    @property
    def cost(self) -> float:
        """Rough seconds: for the order of tasks and for first estimates of the time left."""
        base = _COSTS.get(self.method, 0.5)
        return (base if PAPER_DATA[self.data].is_large else base / 10) * (30 if self.experiment == "figure5" else 1)

    @property
    def kind(self) -> tuple[str, str, str]:
        """Key of tasks that take about the same time."""
        return self.experiment, self.data, self.method


@dataclass(frozen=True)
class PaperRecord:
    """Result of a run; scores are shares from 0 to 1. Figure 5 has a record for every iteration."""

    experiment: str
    data: str
    method: str
    setting: str
    rate: float
    fold: int
    start: int = 0
    status: str = "done"  # else what went wrong, in words
    iteration: int = 0  # 0: the end of the run
    accuracy: float = float("nan")
    nmi: float = float("nan")
    purity: float = float("nan")
    ari: float = float("nan")
    best_view_accuracy: float = float("nan")  # of BSV, for the view that the labels prefer
    best_view_nmi: float = float("nan")
    best_view_purity: float = float("nan")
    objective: float = float("nan")
    seconds: float = float("nan")
    version: str = ""

    @property
    def task(self) -> PaperTask:
        """The run that this record belongs to."""
        return PaperTask(**{field.name: getattr(self, field.name) for field in fields(PaperTask)})


@dataclass(frozen=True)
class PaperPlan:
    """Data sets, rates, folds and settings of a reproduction."""

    data: tuple[str, ...]
    rates: tuple[float, ...] = RATES
    n_folds: int = 5
    n_settings: int = 9
    n_starts: int = 5  # on small data sets, where chance moves scores by several points
    consensus_weights: tuple[float, ...] = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4)  # axes of Figure 3
    sparsity_weights: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
    n_iter: int = 50  # of Figure 5

    def starts(self, data: str) -> range:
        """Return the random starts of each run, whose scores are averaged."""
        return range(1 if PAPER_DATA[data].is_large else self.n_starts)

    def settings(self, method: str) -> list[str]:
        """Return the settings tried by labels; the fixed one is among them."""
        compared = COMPARED[method]
        tried = [as_setting(setting) for setting in compared.grid]
        fixed = as_setting(compared.fixed)
        return [fixed, *(setting for setting in tried if setting != fixed)][: self.n_settings]


FIGURE_DATA = ("handwritten", "buaa")
FIGURE_RATE = 0.7
NEIGHBOR_RATES = (0.5, 0.7)
NEIGHBORS = {"handwritten": (2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 25, 30), "buaa": (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15)}


def first_tasks(plan: PaperPlan) -> Iterator[PaperTask]:
    """Yield every setting on fold 0, and the fixed setting on every fold."""
    for data in plan.data:
        for method in COMPARED:
            fixed, *others = plan.settings(method)
            for rate in plan.rates:
                for start in plan.starts(data):
                    for fold in range(plan.n_folds):
                        yield PaperTask("tables", data, method, fixed, rate, fold, start)
                    for setting in others:
                        yield PaperTask("tables", data, method, setting, rate, 0, start)


def chosen_settings(records: Iterable[PaperRecord], plan: PaperPlan) -> dict[tuple[str, str, float], str]:
    """Choose by true labels, as the paper does: the setting with the highest mean accuracy on fold 0."""
    found: dict[tuple[str, str, float], dict[str, list[float]]] = {}
    for record in records:
        allowed = record.experiment == "tables" and record.fold == 0 and record.status == "done"
        asked = record.data in plan.data and record.rate in plan.rates  # the store may hold other runs as well
        if (
            allowed
            and asked
            and record.setting in plan.settings(record.method)
            and record.start in plan.starts(record.data)
        ):
            place = found.setdefault((record.data, record.method, record.rate), {})
            place.setdefault(record.setting, []).append(record.accuracy)
    return {
        place: max(scores, key=lambda setting: (float(np.mean(scores[setting])), setting))
        for place, scores in found.items()
    }


def second_tasks(plan: PaperPlan, records: Iterable[PaperRecord]) -> Iterator[PaperTask]:
    """Yield the settings chosen by labels on the other folds."""
    for (data, method, rate), setting in chosen_settings(records, plan).items():
        for fold in range(1, plan.n_folds):
            for start in plan.starts(data):
                yield PaperTask("tables", data, method, setting, rate, fold, start)


def figure_tasks(plan: PaperPlan, figures: Iterable[int]) -> Iterator[PaperTask]:
    """Yield what Figures 3 to 5 need beyond the tables: GRMF alone, on the two data sets of the paper's figures."""
    fixed = dict(COMPARED["GRMF"].fixed)
    for data in (key for key in FIGURE_DATA if key in plan.data):
        if 3 in figures:
            for consensus in plan.consensus_weights:
                for sparsity in plan.sparsity_weights:
                    setting = as_setting({"consensus_weight": consensus, "sparsity_weight": sparsity})
                    for fold in range(plan.n_folds):
                        yield PaperTask("figure3", data, "GRMF", setting, FIGURE_RATE, fold)
        if 4 in figures:
            for count in NEIGHBORS[data]:
                for rate in NEIGHBOR_RATES:
                    for fold in range(plan.n_folds):
                        setting = as_setting(fixed | {"n_neighbors": count})
                        yield PaperTask("figure4", data, "GRMF", setting, rate, fold)
        if 5 in figures:
            yield PaperTask("figure5", data, "GRMF", as_setting(fixed | {"max_iter": plan.n_iter}), FIGURE_RATE, 0)


@dataclass(frozen=True)
class PaperWork:
    """How the runs are done; see :class:`gapview_lab.common.runner.Work`."""

    folder: Path
    version: str

    def run(self, task: PaperTask) -> list[PaperRecord]:
        """Do one run."""
        return run_task(task, self.folder, self.version)

    def lost(self, task: PaperTask, reason: str, seconds: float) -> list[PaperRecord]:
        """Raise an error: no run of the paper should end its process."""
        raise GapviewError(
            f"A run was lost after {seconds:.0f} s ({task.method} on {task.data}): {reason}. What was finished is "
            "kept; run the same command again to go on, with fewer --jobs if memory was short."
        )


def run_task(task: PaperTask, folder: Path, version: str) -> list[PaperRecord]:
    """Do one run; an error of gapview becomes a record, so that the other runs continue."""
    views, target = _hidden(task, folder)
    base = PaperRecord(**asdict(task), version=version)
    begin = perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a hundred thousand settings: what counts is in the scores
            if task.experiment == "figure5":
                return list(_steps(task, base, views, target))
            model = make_model(task).fit(views)
    except GapviewError as error:
        return [_replace(base, status=str(error), seconds=perf_counter() - begin)]
    found: dict[str, Any] = dict(clustering_scores(target, model.labels_))
    if isinstance(model, BestSingleView):
        best = best_view_scores(model, target)
        found |= {f"best_view_{name}": best[name] for name in ("accuracy", "nmi", "purity")}
    objective = getattr(model, "objective_", None)
    found["objective"] = float("nan") if objective is None else float(objective[-1])
    return [_replace(base, **found, seconds=perf_counter() - begin)]


def _hidden(task: PaperTask, folder: Path) -> tuple[Views, Any]:
    """Hide views by the paper's protocol, samples in the order of the fold.

    The authors' program lays its samples out in this order, too. Where distances tie, as between pages with few words,
    neighbours are taken in the order of the samples, and a file sorted by class would favour some classes.
    """
    data = _load(task.data, folder)
    n_samples = data.views.n_samples
    folds = data.folds
    order = np.random.RandomState(task.fold).permutation(n_samples) if folds is None else folds[task.fold]
    assert data.target is not None
    return paired_split(data.views[order], task.rate, order=np.arange(n_samples)), data.target[order]


def make_model(task: PaperTask) -> MultiViewClusterer:
    """Return the estimator of a task, seeded by fold and start."""
    compared, data = COMPARED[task.method], PAPER_DATA[task.data]
    options = dict(compared.options) | dict(compared.large_options if data.is_large else {})
    if compared.nonnegative:
        options["nonnegative"] = "shift"
    options |= read_setting(task.setting)
    return compared.make(data.n_clusters, scale=data.scale, random_state=task.fold + 100 * task.start, **options)


def _steps(task: PaperTask, base: PaperRecord, views: Any, target: Any) -> Iterator[PaperRecord]:
    """Run one iteration at a time, each from the codes of the last: the same iterates as in one run."""
    setting = read_setting(task.setting)
    n_iter, codes = setting.pop("max_iter"), "random"
    data = PAPER_DATA[task.data]
    for iteration in range(1, n_iter + 1):
        model = GRMF(
            data.n_clusters, scale=data.scale, random_state=task.fold, init=codes, max_iter=1, tol=0, **setting
        ).fit(views)
        codes = model.codes_  # type: ignore[assignment]
        scores = clustering_scores(target, model.labels_)
        yield _replace(base, **scores, iteration=iteration, objective=float(model.objective_[-1]))


def _replace(record: PaperRecord, **changes: Any) -> PaperRecord:
    return PaperRecord(**(asdict(record) | changes))


@lru_cache(maxsize=4)
def _load(key: str, folder: Path) -> Dataset:
    return load_paper_data(key, folder)
