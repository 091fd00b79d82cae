"""The drawings of speed and size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gapview.report import GRID, PAPER, SERIES, SOFT, new_figure

from .growth import Growth
from .profile import PARTS, STARTS
from .results import Figure as Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["scale_drawings", "speed_drawings"]

_WIDTH = 8.4  # inches: the text of the page and of the figure then have nearly the same size
_N_PHASES = 6  # drawn: the series that are left beside the total


def speed_drawings(figures: Sequence[Measurement]) -> dict[str, Figure]:
    """Draw the times of whole fits, and where the time of a pass goes; by the names of the files."""
    drawn = {
        "fits": _draw_fits([one for one in figures if one.part == "fit"]),
        "passes": _draw_passes([one for one in figures if one.part == "iterations"]),
    }
    return {name: figure for name, figure in drawn.items() if figure is not None}


def _draw_fits(figures: Sequence[Measurement]) -> Figure | None:
    names, cases = (list(dict.fromkeys(values)) for values in ([f.name for f in figures], [f.case for f in figures]))
    if not figures:
        return None
    with new_figure(_WIDTH, 1.2 + 0.36 * len(names)) as figure:
        axes: Any = figure.subplots()
        for case, series in zip(cases, reversed(SERIES), strict=False):
            values = {one.name: one.value for one in figures if one.case == case}
            options = series.options() | {"linestyle": "none"}
            axes.plot([values[name] for name in names], range(len(names)), label=case, **options)
        axes.set_xscale("log")
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.set_xlabel("seconds from views to labels")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=len(cases))
    return figure


def _draw_passes(figures: Sequence[Measurement]) -> Figure | None:
    cases = list(dict.fromkeys(one.case for one in figures))
    if not cases:
        return None
    shares = {(one.case, one.name): one.compared for one in figures}
    bars = [(case, start) for case in cases for start in STARTS.values()]
    with new_figure(_WIDTH, 1.4 + 0.42 * len(bars)) as figure:
        axes: Any = figure.subplots()
        left = np.zeros(len(bars))
        for part, series in zip(PARTS, SERIES, strict=True):
            widths = np.array([100 * shares[case, f"{start}: {part}"] for case, start in bars])
            axes.barh(range(len(bars)), widths, left=left, height=0.62, color=series.color, edgecolor=PAPER, label=part)
            left += widths
        axes.set_yticks(
            range(len(bars)), [f"{start}\n{case.partition(', K')[0]}" for case, start in bars], fontsize=7.5
        )
        axes.invert_yaxis()
        axes.set_xlabel("share of the time of a pass (%)")
        axes.grid(axis="y", visible=False)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def scale_drawings(growths: Sequence[Growth]) -> dict[str, Figure]:
    """Draw time against the number of samples, both in powers of ten, with the fitted lines; one for each method."""
    return {f"cost-{growth.method.lower()}": _draw_growth(growth) for growth in growths}


def _draw_growth(growth: Growth) -> Figure:
    largest = sorted(growth.phases, key=lambda name: -growth.phases[name][-1])[:_N_PHASES]
    with new_figure(_WIDTH, 4.6) as figure:
        axes: Any = figure.subplots()
        lines = {"total": growth.totals} | {name: growth.phases[name] for name in largest}
        for (name, seconds), series in zip(lines.items(), reversed(SERIES), strict=False):
            power = growth.power(name)
            label = f"{name}, n^{power.exponent:.2f}" if power else name
            shown = [value if value > 0 else np.nan for value in seconds]
            options = series.options() | {"linestyle": "none"}
            axes.plot(growth.sizes, shown, label=label, **options)
            if power:
                ends = np.array([growth.sizes[0], growth.sizes[-1]], dtype=float)
                axes.plot(ends, power.at(ends), color=series.color, linewidth=2.0 if name == "total" else 1.0)
        axes.set(xscale="log", yscale="log", xlabel="samples", ylabel="seconds", title=growth.method)
        axes.set_xticks(growth.sizes, [f"{size:,}" for size in growth.sizes])
        axes.minorticks_off()
        axes.tick_params(axis="x", labelsize=8, color=SOFT)
        axes.grid(color=GRID)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure
