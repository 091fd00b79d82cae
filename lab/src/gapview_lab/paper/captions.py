"""Captions of the figures, computed from the numbers that they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gapview.utils.messages import NO_BREAK, counted, joined, number, spelled

from .published import METHODS, PAPER_DATA
from .tables import PaperTable
from .tasks import FIGURE_RATE, PaperPlan

__all__ = ["Descent", "caption2", "caption3", "caption4", "caption5", "descent"]

Range = tuple[float, float]


def caption2(tables: Sequence[PaperTable]) -> str:
    """Return the caption of Figure 2: where GRMF is ahead."""
    ahead = total = 0
    for table in tables:
        for rate in table.rates:
            cells = {method: table.cells["by labels", method, rate] for method in METHODS}
            scores = {method: cell.mean["purity"] for method, cell in cells.items() if cell.mean}
            if "GRMF" in scores and len(scores) > 1:
                total += 1
                ahead += all(scores["GRMF"] > score for method, score in scores.items() if method != "GRMF")
    return (
        f"Purity of the paper’s {spelled(len(METHODS))} methods against the share of samples that have both views, "
        f"mean over the folds, settings chosen by labels. GRMF has the highest purity at {ahead} of "
        f"{counted(total, 'point')} where it can be compared. The paper draws this figure without printing its numbers."
    )


def caption3(grids: Mapping[str, Any], plan: PaperPlan, searched: tuple[Range, Range]) -> str:
    """Return the caption of Figure 3: the best weights, and how much they matter."""
    words = [_grid_words(key, grid, plan, searched) for key, grid in grids.items() if not np.isnan(grid).all()]
    empty = sum(int(np.isnan(grid).sum()) for grid in grids.values())
    dashes = " A dash: no score there; the penalty shrinks all codes to zero, or it was not run." if empty else ""
    return (
        f"ACC of GRMF in % over the weights λ1 and λ2, {100 * FIGURE_RATE:g} % of the samples paired, mean over "
        f"{counted(plan.n_folds, 'fold')}; darker is higher, both panels on one scale. The frame is the range that "
        f"the paper searches. {' '.join(words)}{dashes}"
    )


def _grid_words(key: str, grid: Any, plan: PaperPlan, searched: tuple[Range, Range]) -> str:
    row, column = np.unravel_index(np.nanargmax(grid), grid.shape)
    best = f"λ1 = {number(plan.consensus_weights[row])}, λ2 = {number(plan.sparsity_weights[column])}"
    inside = np.outer(_within(plan.consensus_weights, searched[0]), _within(plan.sparsity_weights, searched[1]))
    framed = grid[inside & ~np.isnan(grid)]
    text = f"{PAPER_DATA[key].title}: highest {np.nanmax(grid):.1f} at {best}"
    return text + (f"; inside the frame from {framed.min():.1f} to {framed.max():.1f}." if framed.size else ".")


def caption4(curves: Mapping[str, Mapping[float, Any]], plan: PaperPlan, proper: Mapping[str, Range]) -> str:
    """Return the caption of Figure 4: ACC by number of neighbours, inside and outside the paper's range."""
    words = " ".join(_curve_words(PAPER_DATA[key].title, by_rate, proper[key]) for key, by_rate in curves.items())
    return (
        f"ACC of GRMF against the number of nearest neighbours, mean over {counted(plan.n_folds, 'fold')}, the band "
        f"one standard deviation to either side; shaded is the range that the paper calls proper. {words}"
    )


def _curve_words(title: str, by_rate: Mapping[float, Any], limits: Range) -> str:
    within, last = [], []
    for rate, (counts, mean, _) in by_rate.items():
        inside = mean[_within(counts, limits)]
        if inside.size:
            within.append(f"from {inside.min():.1f} to {inside.max():.1f} at {100 * rate:g}{NO_BREAK}% paired")
        last.append(f"{mean[-1]:.1f} at {100 * rate:g}{NO_BREAK}% with {counts[-1]:g}")
    inner = f"with {limits[0]:g} to {limits[1]:g} neighbours {joined(within)}; " if within else ""
    return f"{title}: {inner}{joined(last)}."


@dataclass(frozen=True)
class Descent:
    """Changes of an objective between iterations."""

    n_steps: int
    n_rises: int
    largest_rise: float  # the largest change; negative where every step falls
    relative_rise: float  # the same as a share of the value before it

    @property
    def falls(self) -> bool:
        """Whether every single step goes down."""
        return self.n_steps > 0 and self.largest_rise < 0

    @property
    def short(self) -> str:
        """Short text for the panel of a figure."""
        if self.n_steps == 0:
            return "one iteration only"
        steps = counted(self.n_steps, "step")
        if self.falls:
            return f"objective falls at each of {steps}, by at least {number(-self.largest_rise)}"
        if self.n_rises == 0:
            return f"objective never rises in {steps}"
        return f"objective rises at {self.n_rises} of {steps}, by up to {number(self.largest_rise)}"

    @property
    def words(self) -> str:
        """The same for a caption."""
        if self.n_steps == 0:
            return "there is one iteration only, so nothing can be said about its steps"
        if self.falls:
            least = f"at the flattest by {number(-self.relative_rise)} of its value"
            return f"the objective falls at every one of {counted(self.n_steps, 'step')} ({least})"
        if self.n_rises == 0:
            return f"the objective never rises in {counted(self.n_steps, 'step')}, though it does not fall at each"
        rounding = " – no more than rounding explains" if self.relative_rise < 1e-12 else ""
        return (
            f"the objective rises at {self.n_rises} of {counted(self.n_steps, 'step')}, by up to "
            f"{number(self.relative_rise)} of its value{rounding}"
        )


def descent(objective: Sequence[float]) -> Descent:
    """Measure the steps of an objective.

    >>> descent([3.0, 2.0, 1.5]).falls, descent([3.0, 2.0, 2.5]).falls
    (True, False)
    """
    values = np.asarray(objective, dtype=float)
    steps = np.diff(values)
    if not steps.size:
        return Descent(0, 0, float("nan"), float("nan"))
    largest = int(np.argmax(steps))
    relative = float(steps[largest] / max(abs(values[largest]), np.finfo(float).tiny))
    return Descent(len(steps), int((steps > 0).sum()), float(steps[largest]), relative)


def caption5(descents: Mapping[str, Descent], plan: PaperPlan) -> str:
    """Return the caption of Figure 5: whether the objective falls, as Theorem 1 states."""
    words = joined([f"on {PAPER_DATA[key].title} {found.words}" for key, found in descents.items()])
    if all(found.falls for found in descents.values()):
        verdict = "This is what Theorem 1 promises"
    elif all(found.n_rises == 0 for found in descents.values()):
        verdict = "This does not contradict Theorem 1"
    else:
        verdict = "Theorem 1 says that it never rises: these runs do not bear it out"
    return (
        f"Objective (left axis) and ACC (right axis) of GRMF after every iteration, {100 * FIGURE_RATE:g} % of the "
        f"samples paired, fixed setting, fold 0. Computed from the values shown, {words}. {verdict}."
    )


def _within(values: Sequence[float], limits: Range) -> Any:
    return (np.asarray(values) >= limits[0]) & (np.asarray(values) <= limits[1])
