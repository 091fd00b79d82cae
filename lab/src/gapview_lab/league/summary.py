"""Summarise runs: cells, overall means, ranks, and paired differences with intervals.

Nobody is flattered by gaps. A method that fails with any seed is absent in that cell; means compare methods only over
cells in which all of them ran; and a difference of two methods is taken over the cells in which both did. A method that
ran in fewer than half of the cells is in no mean: the cells in which all others ran would be lost with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from gapview.utils.types import Array

from .data import LeagueCell
from .entrants import Entrant
from .runs import DEFAULT, SCORES, LeagueRun, LeagueTask

__all__ = [
    "LABEL_FREE",
    "LABEL_TUNED",
    "Difference",
    "HeldOut",
    "Lead",
    "LeagueSummary",
    "Place",
    "Ranking",
    "Score",
    "summarise",
]

LABEL_FREE, LABEL_TUNED = "label-free", "label-tuned"
N_RESAMPLES = 10_000


@dataclass(frozen=True)
class Score:
    """One method in one cell, scores in %."""

    mean: Mapping[str, float]  # empty if it is absent
    spread: Mapping[str, float]  # standard deviation over the seeds
    by_seed: Mapping[str, tuple[float, ...]]  # the score with every seed
    n_seeds: int
    seconds: float  # mean
    setting: str
    n_settings: int  # how many it was chosen from
    problem: str = ""  # why it is absent


@dataclass(frozen=True)
class Place:
    """One method over several cells, in %."""

    method: str
    rank: int  # by mean accuracy
    mean: Mapping[str, float]  # over the cells
    mean_by_data: float  # accuracy, every data set with the same weight
    mean_rank: float  # of accuracy, within the cells
    n_best: int  # cells in which no other has a higher accuracy
    seconds: float  # median over the cells


@dataclass(frozen=True)
class Ranking:
    """Methods compared over the cells in which all of them ran."""

    places: tuple[Place, ...]
    cells: tuple[LeagueCell, ...]

    @property
    def n_data(self) -> int:
        """Number of data sets the cells belong to."""
        return len({cell.data for cell in self.cells})

    def winner(self, score: str) -> Place:
        """Return the method with the highest mean of a score."""
        return max(self.places, key=lambda place: place.mean[score])


@dataclass(frozen=True)
class Difference:
    """Lead of ours over a rival, in points, over the cells in which both ran."""

    rival: str
    score: str
    mean: float
    low: float  # 95 % interval; NaN with a single data set
    high: float
    n_cells: int
    n_data: int
    n_ahead: int  # cells
    n_behind: int


@dataclass(frozen=True)
class HeldOut:
    """Ours and the best rival of one cell, chosen with some seeds and compared with others, in %.

    No rival is chosen by the scores that are compared, so that there is no bias towards the rivals. With at least four
    seeds the first half chooses and the second half compares. With two or three, every seed is compared with the rival
    that is best with the others.
    """

    rival: str  # with two or three seeds, all that were best
    ours: float
    theirs: float
    error: float  # standard error of the lead, which is paired by seed

    @property
    def points(self) -> float:
        """The lead; negative where ours is behind."""
        return self.ours - self.theirs

    def is_behind_by(self, points: float) -> bool:
        """Return whether ours is behind by more than these points and two standard errors."""
        return self.points < -points - 2 * self.error


@dataclass(frozen=True)
class Lead:
    """Lead of ours over the best rival in one cell, in points; negative where it is behind."""

    cell: LeagueCell
    score: str
    ours: float
    rival: str
    theirs: float
    held_out: HeldOut | None  # None with one seed

    @property
    def points(self) -> float:
        """The lead."""
        return self.ours - self.theirs


@dataclass(frozen=True)
class LeagueSummary:
    """Summary of all runs, for one way of choosing settings."""

    way: str
    cells: tuple[LeagueCell, ...]
    methods: tuple[str, ...]
    scores: Mapping[tuple[LeagueCell, str], Score]
    common: Ranking  # all methods but the rare ones, over the cells in which all of them ran
    steady: Ranking  # the methods that ran in every cell, over all cells
    rare: Mapping[str, int]  # methods that ran in fewer than half of the cells, and in how many
    ours: str | None  # the method that the others are compared with
    rivals: tuple[str, ...]  # those it is compared with: neither absent everywhere nor a variant of ours
    differences: tuple[Difference, ...]
    leads: tuple[Lead, ...]  # of accuracy, NMI and ARI, the worst first

    def leads_in(self, score: str) -> list[Lead]:
        """Return the leads in one score, the worst first."""
        return [lead for lead in self.leads if lead.score == score]

    def held_out(self, score: str) -> dict[LeagueCell, HeldOut]:
        """Return the leads over rivals that were chosen with other seeds, the worst first; none with one seed."""
        found = {lead.cell: lead.held_out for lead in self.leads_in(score) if lead.held_out is not None}
        return dict(sorted(found.items(), key=lambda pair: pair[1].points))


def summarise(
    runs: Mapping[LeagueTask, LeagueRun],
    tasks: Iterable[LeagueTask],
    entrants: Sequence[Entrant],
    way: str,
    *,
    random_state: int = 0,
    n_resamples: int = N_RESAMPLES,
) -> LeagueSummary:
    """Summarise the runs of a league."""
    grouped: dict[tuple[LeagueCell, str], dict[str, list[LeagueRun | None]]] = {}
    for task in tasks:
        if way == LABEL_TUNED or task.setting == DEFAULT:
            place = grouped.setdefault((task.cell, task.method), {})
            place.setdefault(task.setting, []).append(runs.get(task))
    scores = {place: _best({s: _score(found, s) for s, found in tried.items()}) for place, tried in grouped.items()}
    cells = tuple(dict.fromkeys(cell for cell, _ in scores))
    methods = tuple(entrant.name for entrant in entrants)
    n_ran = {name: sum(bool(scores[cell, name].mean) for cell in cells) for name in methods}
    somewhere = [name for name in methods if n_ran[name]]
    ranked = [name for name in somewhere if 2 * n_ran[name] >= len(cells)] or somewhere or list(methods)
    shared = [cell for cell in cells if all(scores[cell, name].mean for name in ranked)]
    everywhere = [name for name in methods if all(scores[cell, name].mean for cell in cells)]
    tuned = way == LABEL_TUNED  # then ours is the one that was tuned, too
    own = [e.name for e in sorted(entrants, key=lambda e: -len(e.settings) if tuned else 0) if e.is_ours]
    ours = next((name for name in (*own, "GRMF") if name in somewhere), None)
    rivals = [name for name in somewhere if name != ours and name not in own]
    differences = [
        difference
        for rival in rivals
        for score in SCORES
        if ours is not None
        and (difference := _difference(scores, cells, (ours, rival), score, random_state, n_resamples))
    ]
    leads = [lead for score in ("accuracy", "nmi", "ari") for lead in _leads(scores, cells, ours, rivals, score)]
    return LeagueSummary(
        way,
        cells,
        methods,
        scores,
        _table(scores, shared, ranked),
        _table(scores, cells, everywhere),
        {name: n_ran[name] for name in methods if name not in ranked},
        ours,
        tuple(rivals),
        tuple(differences),
        tuple(sorted(leads, key=lambda lead: lead.points)),
    )


def _score(found: Sequence[LeagueRun | None], setting: str) -> Score:
    runs = [run for run in found if run is not None]
    failed = [run.status for run in runs if run.status != "done"]
    if failed or len(runs) < len(found) or not runs:
        problem = f"run with {len(runs)} of {len(found)} seeds" if runs else "not run"
        problem = f"failed in {len(failed)} of {len(found)} runs: {failed[0]}" if failed else problem
        return Score({}, {}, {}, 0, float("nan"), setting, 1, problem)
    values = {name: [100 * getattr(run, name) for run in runs] for name in SCORES}
    return Score(
        {name: float(np.mean(found)) for name, found in values.items()},
        {name: float(np.std(found)) for name, found in values.items()},
        {name: tuple(found) for name, found in values.items()},
        len(runs),
        float(np.mean([run.seconds for run in runs])),
        setting,
        1,
    )


def _best(tried: Mapping[str, Score]) -> Score:
    """Return the setting with the highest mean accuracy, a choice by labels if there is more than one."""
    worked = [score for score in tried.values() if score.mean]
    chosen = max(worked, key=lambda score: score.mean["accuracy"]) if worked else next(iter(tried.values()))
    return Score(**(vars(chosen) | {"n_settings": len(tried)}))


Scores = Mapping[tuple[LeagueCell, str], Score]


def _table(scores: Scores, cells: Sequence[LeagueCell], methods: Sequence[str]) -> Ranking:
    if not cells or not methods:
        return Ranking((), tuple(cells))
    means = {
        name: np.array([[scores[cell, method].mean[name] for method in methods] for cell in cells]) for name in SCORES
    }
    accuracy = means["accuracy"]
    ranks = np.array([rankdata(-np.round(row, 9)) for row in accuracy])
    best = np.round(accuracy, 9) >= np.round(accuracy, 9).max(axis=1, keepdims=True)
    data = np.array([cell.data for cell in cells])
    by_data = np.array([accuracy[data == name].mean(axis=0) for name in dict.fromkeys(data)])
    seconds = np.array([[scores[cell, method].seconds for method in methods] for cell in cells])
    order = np.argsort(-accuracy.mean(axis=0), kind="stable")
    places = [
        Place(
            methods[k],
            rank,
            {name: float(values[:, k].mean()) for name, values in means.items()},
            float(by_data[:, k].mean()),
            float(ranks[:, k].mean()),
            int(best[:, k].sum()),
            float(np.median(seconds[:, k])),
        )
        for rank, k in enumerate(order, start=1)
    ]
    return Ranking(tuple(places), tuple(cells))


def _difference(
    scores: Scores,
    cells: Sequence[LeagueCell],
    pair: tuple[str, str],
    score: str,
    random_state: int,
    n_resamples: int,
) -> Difference | None:
    ours, rival = pair
    both = [cell for cell in cells if scores[cell, ours].mean and scores[cell, rival].mean]
    if not both:
        return None
    points = np.array([scores[cell, ours].mean[score] - scores[cell, rival].mean[score] for cell in both])
    names = [cell.data for cell in both]
    low, high = bootstrap_interval(points, names, random_state, n_resamples)
    ahead, behind = int((np.round(points, 9) > 0).sum()), int((np.round(points, 9) < 0).sum())
    return Difference(rival, score, float(points.mean()), low, high, len(both), len(set(names)), ahead, behind)


def bootstrap_interval(
    points: Any, data: Sequence[str], random_state: int, n_resamples: int = N_RESAMPLES
) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean, with whole data sets resampled.

    Cells of one data set are not independent of each other: drawing cells would promise more than is known. With one
    data set there is nothing to draw, and no interval.
    """
    groups = [np.flatnonzero(np.asarray(data) == name) for name in dict.fromkeys(data)]
    if len(groups) < 2:
        return float("nan"), float("nan")
    sums = np.array([points[group].sum() for group in groups])
    counts = np.array([len(group) for group in groups])
    drawn = np.random.RandomState(random_state).randint(len(groups), size=(n_resamples, len(groups)))
    low, high = np.percentile(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), [2.5, 97.5])
    return float(low), float(high)


def _leads(
    scores: Scores, cells: Sequence[LeagueCell], ours: str | None, rivals: Sequence[str], score: str
) -> list[Lead]:
    found = []
    for cell in cells:
        theirs = {name: scores[cell, name].mean[score] for name in rivals if scores[cell, name].mean}
        if ours is not None and theirs and scores[cell, ours].mean:
            rival = max(theirs, key=lambda name: theirs[name])
            by_seed = {name: np.array(scores[cell, name].by_seed[score]) for name in theirs}
            held_out = _held_out(np.array(scores[cell, ours].by_seed[score]), by_seed)
            found.append(Lead(cell, score, scores[cell, ours].mean[score], rival, theirs[rival], held_out))
    return found


def _held_out(ours: Array, theirs: Mapping[str, Array]) -> HeldOut | None:
    """Compare with rivals that are best with other seeds; scores of every seed are given."""
    compared = [seeds for _, seeds in _splits(len(ours))]
    if not compared:
        return None
    rivals = [max(theirs, key=lambda name: theirs[name][choosing].mean()) for choosing, _ in _splits(len(ours))]
    own = np.concatenate([ours[seeds] for seeds in compared])
    other = np.concatenate([theirs[name][seeds] for name, seeds in zip(rivals, compared, strict=True)])
    error = float(np.std(own - other, ddof=1) / np.sqrt(len(own)))
    return HeldOut(", ".join(dict.fromkeys(rivals)), float(own.mean()), float(other.mean()), error)


def _splits(n_seeds: int) -> list[tuple[list[int], list[int]]]:
    """Return pairs of the seeds that choose the rival and those that compare with it."""
    seeds, half = list(range(n_seeds)), n_seeds // 2
    if n_seeds >= 4:
        return [(seeds[:half], seeds[half:])]
    return [([other for other in seeds if other != seed], [seed]) for seed in seeds] if n_seeds > 1 else []
