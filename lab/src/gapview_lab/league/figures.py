"""The figures of the league: every cell at a glance, and differences with their intervals."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gapview.report.drawing import fill_cells
from gapview.report.style import GRID, SERIES, SOFT, load_matplotlib, new_figure

from .findings import NAMES
from .summary import LeagueSummary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_cells", "draw_differences"]

_WIDTH = 8.4  # inches: the text of the page and of the figure then have nearly the same size
_FAR = 30.0  # points behind the best at which the colour ends


def draw_cells(summary: LeagueSummary) -> Figure | None:
    """Draw the accuracy of every method in every cell, coloured by how far it is behind the best of the cell."""
    values = np.array(
        [
            [summary.scores[cell, name].mean.get("accuracy", np.nan) for name in summary.methods]
            for cell in summary.cells
        ]
    )
    if np.isnan(values).all():
        return None
    n_cells, n_methods = values.shape
    best = np.array([np.nanmax(row) if not np.isnan(row).all() else np.nan for row in values])
    behind = np.clip(best[:, None] - values, 0, _FAR)
    scale = load_matplotlib("colors").Normalize(
        0, 1.6 * _FAR
    )  # light: dark cells would outweigh what is written in them
    with new_figure(_WIDTH, 1.3 + 0.21 * n_cells) as figure:
        axes: Any = figure.subplots()
        leads = np.round(values, 1) >= np.round(best, 1)[:, None]
        fill_cells(axes, _FAR - behind, scale, lambda at: f"{values[at]:.0f}", leads)
        axes.set_xticks(np.arange(n_methods) + 0.5, summary.methods, rotation=40, ha="left", rotation_mode="anchor")
        axes.set_yticks(np.arange(n_cells) + 0.5, [cell.text for cell in summary.cells], fontsize=7.5)
        axes.xaxis.tick_top()
        axes.invert_yaxis()
        _separate(axes, [cell.data for cell in summary.cells])
    return figure


def _separate(axes: Any, data: list[str]) -> None:
    """Draw a line between data sets."""
    for row, (one, other) in enumerate(pairwise(data), start=1):
        if one != other:
            axes.axhline(row, color=SOFT, linewidth=0.8)


def draw_differences(summary: LeagueSummary) -> Figure | None:
    """Draw the lead of ours over every rival in accuracy and NMI, with intervals."""
    found = {(one.rival, one.score): one for one in summary.differences}
    rivals = sorted({one.rival for one in summary.differences}, key=lambda rival: found[rival, "accuracy"].mean)
    if not rivals:
        return None
    with new_figure(0.85 * _WIDTH, 1.1 + 0.34 * len(rivals)) as figure:
        axes: Any = figure.subplots()
        axes.axvline(0, color=SOFT, linewidth=1.0)
        for score, series, shift in (("accuracy", SERIES[6], -0.13), ("nmi", SERIES[5], 0.13)):
            for row, rival in enumerate(rivals):
                one = found[rival, score]
                axes.plot([one.low, one.high], [row + shift] * 2, color=series.color, linewidth=1.4)
                label = NAMES[score] if row == 0 else None
                axes.plot(one.mean, row + shift, label=label, **(series.options() | {"linestyle": "none"}))
        axes.set_yticks(range(len(rivals)), rivals)
        axes.invert_yaxis()
        axes.set_xlabel(f"points by which {summary.ours} is ahead")
        axes.grid(axis="y", visible=False)
        axes.grid(axis="x", color=GRID)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure
