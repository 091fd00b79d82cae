"""Figures of samples and groups from arrays, for models and for annotated objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..report.clustering.group_sections import draw_sizes
from ..report.clustering.samples import place_samples
from ..report.drawing import group_sign, legend_beside
from ..report.style import INK, PAPER, SERIES, axes_for, load_matplotlib
from ..utils.messages import counted
from ..utils.types import Array

VIEW_COLORS = [SERIES[place].color for place in (5, 3, 2, 4, 6, 1, 0)]  # of views, in order
_MARKERS = dict(zip(("circle", "square", "triangle", "diamond", "plus", "cross", "wedge"), "os^DPXv", strict=True))
_MOST_NAMED = 40  # groups in a legend; the map shows the numbers of all groups


def draw_map(
    labels: Array, points_of: Callable[[Array], Array], confidence: Array | None, codes: Array | None = None, *, ax: Any
) -> Any:
    """Draw samples projected to a plane; ``codes`` are strata from which they are drawn, beside the groups."""
    shown = place_samples(labels, points_of, confidence, np.zeros_like(labels) if codes is None else codes)
    groups = np.unique(labels)
    part = f"{len(shown.samples):,} of " if len(shown.samples) < len(labels) else ""
    title = f"{part}{len(labels):,} samples in {counted(len(groups), 'group')}"
    with axes_for(ax, 6.4, 4.6, title) as axes:
        look = {"s": np.clip(18_000 / len(labels), 6, 36), "edgecolors": PAPER, "linewidths": 0.3}
        look["rasterized"] = len(labels) > 5000
        rim = [load_matplotlib("patheffects").withStroke(linewidth=2.5, foreground=PAPER)]
        for group in groups.tolist():
            own = labels[shown.samples] == group
            x, y, sign = shown.x[own], shown.y[own], group_sign(group)
            axes.scatter(x, y, color=sign.color, marker=_MARKERS[sign.shape], label=f"group {group}", **look)
            at = np.argmin(np.hypot(x - np.median(x), y - np.median(y)))  # the position of a sample of the group
            axes.text(x[at], y[at], str(group), color=INK, weight="bold", ha="center", va="center", path_effects=rim)
        axes.set(xticks=[], yticks=[], xlabel=f"latent points, laid out by {shown.method}")
        axes.set_aspect("equal", adjustable="datalim")
        axes.grid(False)
        axes.spines[:].set_visible(False)
        if 1 < len(groups) <= _MOST_NAMED:
            legend_beside(axes, size=30)
    return axes


def draw_group_sizes(labels: Array, confidence: Array | None, *, ax: Any) -> Any:
    """Draw the number of samples of every group, by confidence if it is known."""
    sizes = np.bincount(labels)
    with axes_for(ax, 5.6, 1.0 + 0.26 * len(sizes), "Sizes of the groups") as axes:
        draw_sizes(axes, labels, confidence, len(sizes))
        for group, total in enumerate(sizes):
            place = {"xytext": (4, 0), "textcoords": "offset points", "va": "center", "fontsize": 8}
            axes.annotate(f"{total:,}", (total, group), **place)
        axes.set_xlim(0, 1.14 * sizes.max())  # with room for the numbers
        if confidence is not None:
            legend_beside(axes)
            axes.get_legend().set_title("confidence")
    return axes
