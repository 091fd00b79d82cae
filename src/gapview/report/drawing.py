"""Parts of figures, drawn on given axes; used by the report and by :mod:`gapview.plots`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..utils.messages import powers, shorten
from .points import Shape, Sign
from .style import INK, MORE_COLORS, PAPER, SERIES, SOFT, letters_on

WIDTH = 8.4  # inches: texts of the page and of the figure have nearly the same size
SMALL_WIDTH = 5.0  # readable on a phone
MOST_BARS = 40  # groups or views in one figure
MOST_PATTERNS = 20  # sets of views in one figure
_LONGEST_VIEW = 24  # characters of the name of a view in it
_MOST_BANDS = 5  # intervals of curves in one figure
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (7, 1.5, 1.5, 1.5)))
_FEW = 20  # iterations up to which points are marked
DIVERGING = "RdBu_r"  # safe for colour-blind readers
BLUE, RED = SERIES[5].color, SERIES[6].color
# Grey comes last: it is the least visible
_COLORS = (*((one.color, one.dark) for one in SERIES[1:]), *MORE_COLORS, (SERIES[0].color, SERIES[0].dark))
# 7 shapes and 11 colours have no common divisor, so that their combinations repeat after 77 groups
_SHAPES: tuple[Shape, ...] = ("circle", "square", "triangle", "diamond", "plus", "cross", "wedge")


def fill_cells(
    axes: Any, values: Any, norm: Any, write: Callable[[tuple[int, ...]], str], bold: Any = None, size: float = 7.5
) -> None:
    """Draw numbers in coloured cells; a dash for NaN."""
    mesh = axes.pcolormesh(np.ma.masked_invalid(values), cmap="Blues", norm=norm, edgecolors=PAPER)
    for place, value in np.ndenumerate(values):
        text, color = ("–", SOFT) if np.isnan(value) else (write(place), letters_on(mesh.to_rgba(value)))
        weight = "bold" if bold is not None and bold[place] else "normal"
        look = {"ha": "center", "va": "center", "fontsize": size, "fontweight": weight, "color": color}
        axes.text(place[1] + 0.5, place[0] + 0.5, text, **look)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def draw_weight_cells(
    axes: Any, grid: Any, consensus: Sequence[float], sparsity: Sequence[float], norm: Any, digits: int = 1
) -> None:
    """Draw scores over λ1 (consensus) and λ2 (sparsity): one row for every λ1 and one column for every λ2."""
    fill_cells(axes, grid, norm, lambda place: f"{grid[place]:.{digits}f}")
    axes.set_xticks(np.arange(len(sparsity)) + 0.5, powers(sparsity))
    axes.set_yticks(np.arange(len(consensus)) + 0.5, powers(consensus))
    axes.set(xlabel="λ2 (sparsity)", ylabel="λ1 (consensus)")


def draw_frame(axes: Any, left: float, right: float, bottom: float, top: float) -> None:
    """Draw a frame around cells: a light line under a dark one, visible on every colour."""
    corners = [left, right, right, left, left], [bottom, bottom, top, top, bottom]
    axes.plot(*corners, color=PAPER, linewidth=4.0, clip_on=False)
    axes.plot(*corners, color=INK, linewidth=1.6, clip_on=False)


def draw_patterns(
    bars: Any, dots: Any, beside: Any, patterns: Sequence[Any], views: Mapping[str, int], *, leftwards: bool = True
) -> None:
    """Draw sets of views on three axes: the samples of each set, its views, and the samples of each view.

    ``views`` holds the number of samples of each view; their bars grow to the left, or to the right.
    """
    present, sizes = np.array([one.present for one in patterns]), [one.n_samples for one in patterns]
    n_patterns, n_views = present.shape
    bars.bar(range(n_patterns), sizes, width=0.6, color=BLUE)
    for place, size in enumerate(sizes):
        bars.text(place, size, f"{size:,}", ha="center", va="bottom", fontsize=8)
    bars.set(xlim=(-0.6, n_patterns - 0.4), xticks=[], ylabel="samples")
    bars.margins(y=0.15)
    bars.grid(axis="x", visible=False)

    dots.set(xlim=(-0.6, n_patterns - 0.4), ylim=(n_views - 0.4, -0.6), xticks=[])
    for place, having in enumerate(map(np.flatnonzero, present)):
        dots.plot([place] * 2, [having.min(), having.max()], color=BLUE, linewidth=1.6, zorder=2)
    x, y = np.meshgrid(range(n_patterns), range(n_views), indexing="ij")
    dots.scatter(x[~present], y[~present], s=34, facecolor=PAPER, edgecolor=SOFT, linewidth=0.9, zorder=3)
    dots.scatter(x[present], y[present], s=40, color=BLUE, zorder=4)
    dots.set_yticks(range(n_views), [shorten(name, _LONGEST_VIEW) for name in views])
    dots.tick_params(axis="y", length=0, pad=6)
    dots.grid(visible=False)
    dots.spines[["left", "bottom"]].set_visible(False)

    counts, most = list(views.values()), max(views.values())
    beside.barh(range(n_views), counts, height=0.6, color=SERIES[0].color)
    for place, count in enumerate(counts):
        side = "right" if leftwards else "left"
        beside.text(count + 0.06 * most, place, f"{count:,}", ha=side, va="center", fontsize=8)
    ends = 1.75 * most, 0  # with room for the numbers
    beside.set(xlim=ends if leftwards else ends[::-1], ylim=(n_views - 0.4, -0.6))
    beside.axis("off")


def draw_objective(axes: Any, objective: Any) -> None:
    """Draw the objective after every iteration."""
    axes.plot(range(1, len(objective) + 1), objective, color=BLUE, **_marked(len(objective)))
    _count_iterations(axes, len(objective))


def draw_change(axes: Any, changes: Any, tol: float) -> None:
    """Draw the relative change of the objective from the second iteration on, and the tolerance."""
    seen = changes > 0  # 0 has no logarithm
    axes.plot(np.arange(2, len(changes) + 2)[seen], changes[seen], color=BLUE, **_marked(len(changes)))
    if tol > 0:
        axes.axhline(tol, color=RED, linestyle="--", linewidth=1.2)
        axes.text(1, tol, "tol", color=RED, ha="right", va="bottom", transform=axes.get_yaxis_transform())
    axes.set_yscale("log")
    _count_iterations(axes, len(changes) + 1)


def draw_survival(axes: Any, curves: Sequence[Any], time: str) -> None:
    """Draw Kaplan-Meier curves with marks for censored samples, and below them the numbers at risk.

    Intervals are drawn for few groups only, where they can be told apart.
    """
    for curve in curves:
        color, dashes = group_sign(curve.group).color, _DASHES[curve.group % len(_DASHES)]
        times, shares = np.concatenate([[0.0], curve.times]), np.concatenate([[1.0], curve.share])
        name = f"group {curve.group}"
        axes.step(times, shares, where="post", color=color, linestyle=dashes, label=name, zorder=3)
        axes.plot(curve.censored, curve.share_at(curve.censored), "|", color=color, markersize=6.5, zorder=4)
        if len(curves) <= _MOST_BANDS:
            low, high = (np.concatenate([[1.0], own]) for own in (curve.low, curve.high))
            axes.fill_between(times, low, high, step="post", color=color, alpha=0.13, linewidth=0, zorder=2)
    axes.set(xlabel=time, ylabel="share without the event", ylim=(0, 1.03))
    axes.set_xlim(0, max(max(curve.last[-1] for curve in curves), 1e-9) * 1.03)
    _count_at_risk(axes, curves)


def _count_at_risk(axes: Any, curves: Sequence[Any]) -> None:
    """Write the numbers at risk below the axis, at its ticks."""
    right = axes.get_xlim()[1]
    ticks = [tick for tick in axes.get_xticks() if 0 <= tick <= right][:: 1 + len(axes.get_xticks()) // 9]
    axes.set_xticks(ticks)
    look = {"textcoords": "offset points", "fontsize": 7.5, "va": "top", "annotation_clip": False}
    axes.annotate("at risk", (0, 0), xycoords="axes fraction", xytext=(-14, -32), ha="right", color=SOFT, **look)
    for row, curve in enumerate(curves):
        color, down = group_sign(curve.group).color, -43 - 11 * row
        side = {"xycoords": "axes fraction", "xytext": (-14, down), "ha": "right"}
        axes.annotate(f"group {curve.group}", (0, 0), color=color, **side, **look)
        for tick, count in zip(ticks, curve.at_risk(ticks), strict=True):
            place = {"xycoords": axes.get_xaxis_transform(), "xytext": (0, down), "ha": "center"}
            axes.annotate(f"{count:,}", (tick, 0), **place, **look)


def _marked(n_points: int) -> dict[str, Any]:
    """Return markers for short lines: a single point would be invisible."""
    return {"marker": "o", "markersize": 4.0, "clip_on": False} if n_points <= _FEW else {}


def _count_iterations(axes: Any, n_iterations: int) -> None:
    axes.set(xlabel="iteration", xlim=(1, max(n_iterations, 2)))
    axes.xaxis.get_major_locator().set_params(integer=True)


def group_sign(number: int) -> Sign:
    """Return the colour and the shape of a group; the first 77 all differ."""
    return Sign(*_COLORS[number % len(_COLORS)], _SHAPES[number % len(_SHAPES)])


def bare(axes: Any) -> None:
    """Remove the grid, the frame and the ticks of rows of cells."""
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(axis="y", length=0)


def legend_beside(axes: Any, size: float | None = None) -> None:
    """Draw a legend to the right of the axes; ``size`` sets the size of its markers."""
    _, names = axes.get_legend_handles_labels()
    n_columns = 1 + (len(names) - 1) // 20
    legend = axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), ncols=n_columns, handlelength=1.4, frameon=False)
    if size is not None:
        for handle in legend.legend_handles:
            handle.set_sizes([size])
