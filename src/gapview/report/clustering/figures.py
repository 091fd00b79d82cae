"""Figures of the report, apart from the map."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...utils.types import Array
from ..blocks import Shape, Sign
from ..drawing import draw_change, draw_objective, draw_pattern_bars, draw_pattern_dots, draw_view_bars
from ..style import MORE_COLORS, PAPER, SERIES, SOFT, new_figure
from .covariates import Comparison
from .fit import Convergence
from .groups import CLEAR, DOUBTFUL
from .summary import Summary
from .words import shorten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...choice.n_clusters import ClusterCount


MOST_PATTERNS = 20  # columns of the picture of gaps
LONGEST_VIEW = 24  # characters of the name of a view in it
_MOST_BARS = 40  # groups in one picture
_MOST_CURVES = 10
_LEAST_DRAWN = 5  # iterations of a figure of convergence
_WIDTH = 8.4  # inches: texts of the page and of the figure have nearly the same size
_SMALL_WIDTH = 5.0  # readable on a phone


def draw_sizes(axes: Any, labels: Array, confidence: Array | None, n_groups: int) -> None:
    """Draw a stacked bar for every group: its number of samples, by confidence if it is known."""
    if confidence is None:
        kinds = {"samples": np.ones(len(labels), dtype=bool)}
    else:
        kinds = {
            f"at least {CLEAR:g}": confidence >= CLEAR,
            f"{DOUBTFUL:g} to {CLEAR:g}": (confidence >= DOUBTFUL) & (confidence < CLEAR),
            f"below {DOUBTFUL:g}": confidence < DOUBTFUL,
        }
    left = np.zeros(n_groups)
    looks = ((SERIES[5].color, ""), (SERIES[1].color, "////"), (SERIES[3].color, "xxxx"))
    for (label, chosen), (color, hatch) in zip(kinds.items(), looks, strict=False):
        values = np.bincount(labels[chosen], minlength=n_groups)
        axes.barh(range(n_groups), values, left=left, height=0.7, color=color, hatch=hatch, label=label, ec=PAPER)
        left = left + values
    axes.set_yticks(range(n_groups), [f"group {g}" for g in range(n_groups)])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("samples" if confidence is None else "samples, by confidence")


def draw_groups(summary: Summary) -> Figure | None:
    """Draw the number of samples of every group by confidence."""
    n_groups = len(summary.groups)
    if not 2 <= n_groups <= _MOST_BARS:
        return None
    with new_figure(_SMALL_WIDTH, 0.9 + 0.24 * n_groups) as figure:
        draw_sizes(figure.subplots(), summary.labels, summary.confidence, n_groups)
        figure.legend(loc="outside lower center", ncols=3, handlelength=1.6)
    return figure


def draw_gaps(summary: Summary) -> Figure | None:
    """Draw the patterns of missing views: frequencies above a matrix of the present views."""
    patterns = summary.gaps.patterns[:MOST_PATTERNS]
    if len(summary.gaps.patterns) < 2 or len(summary.views) > _MOST_BARS:
        return None
    n_views, n_patterns = len(summary.views), len(patterns)
    matrix_height = 0.2 + 0.26 * n_views
    ratios = {"width_ratios": [1.1, max(0.42 * n_patterns, 1.6)], "height_ratios": [1.5, matrix_height]}
    with new_figure(min(_WIDTH, 3.2 + 0.42 * n_patterns), 1.7 + matrix_height) as figure:
        parts: Any = figure.subplots(2, 2, gridspec_kw=ratios)
        parts[0, 0].axis("off")
        draw_pattern_bars(parts[0, 1], [pattern.n_samples for pattern in patterns])
        draw_view_bars(parts[1, 0], [view.n_samples for view in summary.views])
        names = [shorten(view.name, LONGEST_VIEW) for view in summary.views]
        draw_pattern_dots(parts[1, 1], np.array([pattern.present for pattern in patterns]), names)
    return figure


def draw_convergence(convergence: Convergence) -> Figure | None:
    """Draw the objective and its relative change in every iteration."""
    if len(convergence.objective) < _LEAST_DRAWN:
        return None
    with new_figure(_WIDTH, 2.5) as figure:
        left, right = figure.subplots(1, 2)
        draw_objective(left, convergence.objective)
        left.set_title("Objective")
        draw_change(right, convergence.changes, convergence.tol)
        right.set_title("Relative change")
    return figure


def draw_counts(count: ClusterCount) -> Figure:
    """Draw modularity and stability for every number of groups."""
    with new_figure(_SMALL_WIDTH, 2.6) as figure:
        axes: Any = figure.subplots()
        axes.plot(count.counts, count.modularity, label="modularity", **SERIES[5].options())
        axes.plot(count.counts, count.stability, label="stability", **SERIES[3].options())
        axes.axvline(count.suggested, color=SOFT, linestyle=":", linewidth=1.4)
        axes.set(xlabel="groups", ylim=(min(0.0, float(count.modularity.min())), 1.05))
        axes.xaxis.get_major_locator().set_params(integer=True)
        figure.legend(loc="outside lower center", ncols=2)
    return figure


def draw_survival(one: Comparison) -> Figure | None:
    """Draw the Kaplan-Meier curve of every group."""
    curves = [(g, curve) for g, curve in enumerate(one.curves) if curve is not None]
    if not 2 <= len(curves) <= _MOST_CURVES:
        return None
    styles: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (7, 1.5, 1.5, 1.5)))
    rows = math.ceil(len(curves) / 4)
    with new_figure(_SMALL_WIDTH, 2.8 + 0.2 * rows) as figure:
        axes: Any = figure.subplots()
        for g, curve in curves:
            times, shares = np.concatenate([[0.0], curve.times]), np.concatenate([[1.0], curve.share])
            line = {"color": group_sign(g).color, "linestyle": styles[g % len(styles)]}
            axes.step(times, shares, where="post", label=f"group {g}", **line)
        axes.set_xlim(left=0)
        time = shorten(one.column.split(" / ")[0], 40)
        axes.set(xlabel=time, ylabel="share without the event", ylim=(0, 1.03))
        figure.legend(loc="outside lower center", ncols=min(4, len(curves)))
    return figure


# Grey comes last: it is the least visible
_COLORS = (*((one.color, one.dark) for one in SERIES[1:]), *MORE_COLORS, (SERIES[0].color, SERIES[0].dark))
# 7 shapes and 11 colours have no common divisor, so that their combinations repeat after 77 groups
_SHAPES: tuple[Shape, ...] = ("circle", "square", "triangle", "diamond", "plus", "cross", "wedge")


def group_sign(number: int) -> Sign:
    """Return the colour and the shape of a group; the first 77 all differ."""
    return Sign(*_COLORS[number % len(_COLORS)], _SHAPES[number % len(_SHAPES)])
