"""The pictures of the report, apart from the map."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .._style import GRID, INK, PAPER, SERIES, SOFT, new_figure
from ._covariates import Comparison
from ._groups import CLEAR, DOUBTFUL
from ._history import Convergence
from ._signs import group_sign
from ._summary import Summary
from ._words import shorten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...counting import ClusterCount

__all__ = ["draw_convergence", "draw_counts", "draw_gaps", "draw_groups", "draw_survival"]

MOST_PATTERNS = 20  # columns of the picture of gaps
_MOST_BARS = 40  # groups in one picture
_MOST_CURVES = 10
_LEAST_DRAWN = 5  # iterations that make a line worth looking at
_WIDTH = 8.4  # inches: the text of the page and of the figure then have nearly the same size
_SMALL_WIDTH = 5.0  # still readable where it shrinks to a phone
_BLUE, _GREEN, _ORANGE, _RED = (SERIES[place].color for place in (5, 2, 3, 6))


def draw_groups(summary: Summary) -> Figure | None:
    """Draw how many samples of every group are clear, fair and doubtful."""
    groups = summary.groups
    if not 2 <= len(groups) <= _MOST_BARS:
        return None
    clear = np.array([group.n_clear for group in groups])
    doubtful = np.array([group.n_doubtful for group in groups])
    fair = np.array([group.n_samples for group in groups]) - clear - doubtful
    with new_figure(_SMALL_WIDTH, 0.9 + 0.24 * len(groups)) as figure:
        axes: Any = figure.subplots()
        left = np.zeros(len(groups))
        parts = (
            (clear, f"at least {CLEAR:g}", _BLUE, ""),
            (fair, f"{DOUBTFUL:g} to {CLEAR:g}", SERIES[1].color, "////"),
            (doubtful, f"below {DOUBTFUL:g}", _ORANGE, "xxxx"),
        )
        for values, label, color, hatch in parts:
            axes.barh(
                range(len(groups)), values, left=left, height=0.7, color=color, hatch=hatch, label=label, ec=PAPER
            )
            left = left + values
        axes.set_yticks(range(len(groups)), [f"group {group.number}" for group in groups])
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("samples, by confidence")
        axes.tick_params(axis="y", length=0)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, handlelength=1.6)
    return figure


def draw_gaps(summary: Summary) -> Figure | None:
    """Draw the patterns of gaps: how frequent each is, above a matrix of the views that it has."""
    patterns = summary.gaps.patterns[:MOST_PATTERNS]
    if len(summary.gaps.patterns) < 2 or len(summary.views) > _MOST_BARS:
        return None
    n_views, n_patterns = len(summary.views), len(patterns)
    matrix_height = 0.2 + 0.26 * n_views
    with new_figure(min(_WIDTH, 3.2 + 0.42 * n_patterns), 1.7 + matrix_height) as figure:
        parts: Any = figure.subplots(
            2,
            2,
            gridspec_kw={"width_ratios": [1.1, max(0.42 * n_patterns, 1.6)], "height_ratios": [1.5, matrix_height]},
        )
        parts[0, 0].axis("off")
        _pattern_bars(parts[0, 1], [pattern.n_samples for pattern in patterns])
        _view_bars(parts[1, 0], [view.n_samples for view in summary.views])
        _pattern_dots(parts[1, 1], np.array([pattern.present for pattern in patterns]))
        parts[1, 1].set_yticks(range(n_views), [shorten(view.name, 24) for view in summary.views])
        parts[1, 1].tick_params(axis="y", length=0, pad=6)
    return figure


def _pattern_bars(axes: Any, counts: list[int]) -> None:
    axes.bar(range(len(counts)), counts, width=0.6, color=_BLUE)
    for place, count in enumerate(counts):
        axes.text(place, count, f"{count:,}", ha="center", va="bottom", fontsize=8)
    axes.set_xlim(-0.6, len(counts) - 0.4)
    axes.margins(y=0.15)
    axes.set_xticks([])
    axes.grid(axis="x", visible=False)
    axes.set_ylabel("samples")


def _view_bars(axes: Any, counts: list[int]) -> None:
    axes.barh(range(len(counts)), counts, height=0.6, color=SERIES[0].color)
    for place, count in enumerate(counts):
        axes.text(count + 0.06 * max(counts), place, f"{count:,}", ha="right", va="center", fontsize=8)
    axes.set_ylim(len(counts) - 0.4, -0.6)
    axes.set_xlim(1.75 * max(counts), 0)  # grows to the left, with room for the numbers
    axes.axis("off")


def _pattern_dots(axes: Any, present: Any) -> None:
    n_patterns, n_views = present.shape
    axes.set_xlim(-0.6, n_patterns - 0.4)
    axes.set_ylim(n_views - 0.4, -0.6)
    for place in range(n_patterns):
        having = np.flatnonzero(present[place])
        axes.plot([place] * 2, [having.min(), having.max()], color=_BLUE, linewidth=1.6, zorder=2)
    grid_x, grid_y = np.meshgrid(range(n_patterns), range(n_views), indexing="ij")
    axes.scatter(grid_x[~present], grid_y[~present], s=34, facecolor=PAPER, edgecolor=SOFT, linewidth=0.9, zorder=3)
    axes.scatter(grid_x[present], grid_y[present], s=40, color=_BLUE, zorder=4)
    axes.set_xticks([])
    axes.grid(visible=False)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)


def draw_convergence(convergence: Convergence) -> Figure | None:
    """Draw the objective, and beside it how much it changed in every iteration."""
    n_iterations = len(convergence.objective)
    if n_iterations < _LEAST_DRAWN:
        return None
    with new_figure(_WIDTH, 2.5) as figure:
        left, right = figure.subplots(1, 2)
        left.plot(range(1, n_iterations + 1), convergence.objective, color=_BLUE)
        left.set_title("Objective")
        changes = convergence.changes
        seen = changes > 0  # a logarithm of nothing cannot be drawn
        right.plot(np.arange(2, n_iterations + 1)[seen], changes[seen], color=_BLUE)
        if convergence.tol > 0:
            right.axhline(convergence.tol, color=_RED, linestyle="--", linewidth=1.2)
            right.text(
                1, convergence.tol, "tol", color=_RED, ha="right", va="bottom", transform=right.get_yaxis_transform()
            )
        right.set_yscale("log")
        right.set_title("Relative change")
        for axes in (left, right):
            axes.set_xlabel("iteration")
            axes.set_xlim(1, n_iterations)
            axes.xaxis.get_major_locator().set_params(integer=True)
    return figure


def draw_counts(count: ClusterCount) -> Figure:
    """Draw what speaks for every number of groups."""
    with new_figure(_SMALL_WIDTH, 2.6) as figure:
        axes: Any = figure.subplots()
        for values, label, series in (
            (count.modularity, "modularity", SERIES[5]),
            (count.stability, "stability", SERIES[3]),
        ):
            axes.plot(count.counts, values, label=label, **series.options())
        axes.axvline(count.suggested, color=SOFT, linestyle=":", linewidth=1.4)
        axes.set_ylim(min(0.0, float(count.modularity.min())), 1.05)
        axes.set_xlabel("groups")
        axes.xaxis.get_major_locator().set_params(integer=True)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def draw_survival(one: Comparison) -> Figure | None:
    """Draw the survival of every group."""
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
        axes.set_ylim(0, 1.03)
        axes.set_xlim(left=0)
        axes.set_xlabel(shorten(one.column.split(" / ")[0], 40))
        axes.set_ylabel("share without the event")
        axes.grid(color=GRID)
        axes.tick_params(labelcolor=INK)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=min(4, len(curves)))
    return figure
