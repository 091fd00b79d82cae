"""Goals, and whether the figures meet them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..common.words import signed
from .fits import CHOSEN_FIT, FIXED_FIT, IMPUTED, PAPER_FIT, PLAIN
from .iterations import STARTS
from .passes import PASSES
from .quality import BY_CHANCE
from .results import Figure

__all__ = ["Goal", "speed_goals"]


@dataclass(frozen=True)
class Goal:
    """One goal, with the worst figure."""

    text: str
    asked: str
    measured: str
    met: bool


def speed_goals(figures: Sequence[Figure]) -> list[Goal]:
    """Return the goals for which there are figures."""
    goals = []
    for reference, least in ((PLAIN, 40.0), (IMPUTED, 5.0)):
        found = [one for one in figures if one.name == PAPER_FIT and one.reference == reference]
        text = f"{PAPER_FIT}: the whole fit against {reference}"
        goals += _goal(text, f"≥ {least:g} ×", found, least, "{:.1f} ×".format)
    goals += _choice_goals([one for one in figures if one.reference == IMPUTED])
    five = [one for one in figures if one.name == STARTS[5] and " + " not in one.case]
    text = f"iterations, {STARTS[5]}: share of the matrix-product speed"
    goals += _goal(text, "≥ 50 %", five, 0.5, lambda share: f"{100 * share:.1f} %")
    passes = [one.value for one in figures if one.name == PASSES]
    if passes:
        text = "passes from the start from the data to the objective of the paper's iteration after 100"
        goals.append(Goal(text, "≤ 20", f"{max(passes):g}", max(passes) <= 20))
    losses = [one for one in figures if one.part == "quality" and one.name != BY_CHANCE]
    text = "ACC with approximate neighbours and float32 against exact and float64, but for random starts"
    return goals + _goal(text, "≥ −0.5 points", losses, -0.5, lambda value: f"{signed(value, 2)} points")


def _choice_goals(figures: Sequence[Figure]) -> list[Goal]:
    """Return the goals of a fit with the choice of settings, where few views are complete for the second."""
    fixed = {one.case: one.value for one in figures if one.name == FIXED_FIT}
    chosen = [one for one in figures if one.name == CHOSEN_FIT]
    if not chosen or not fixed:
        return []
    most = max(one.value / fixed[one.case] for one in chosen)
    few = [one for one in chosen if "90 %" not in one.case]
    first = Goal(f"{CHOSEN_FIT}: in fits with a fixed setting", "≤ 5", f"{most:.1f}", most <= 5)
    text = f"{CHOSEN_FIT}: the whole fit against {IMPUTED}, at most half of the samples paired"
    return [first, *_goal(text, "≥ 2 ×", few, 2.0, "{:.1f} ×".format)]


def _goal(text: str, asked: str, found: Sequence[Figure], least: float, shown: Callable[[float], str]) -> list[Goal]:
    if not found:
        return []
    worst = min(one.compared for one in found)
    return [Goal(text, asked, shown(worst), worst >= least)]
