"""The drawings of speed and size."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from gapview.report.style import GRID, SERIES, SOFT, new_figure

from .growth import Growth
from .results import Figure as Measurement
from .scale_runs import DONE, RIVALS, ScaleRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["scale_drawings", "speed_drawings"]

_WIDTH = 8.4  # inches: the text of the page and of the figure then have nearly the same size
_N_PHASES = 6  # drawn: the series that are left beside the total


def speed_drawings(figures: Sequence[Measurement]) -> dict[str, Figure]:
    """Draw the times of whole fits, by the names of the files."""
    fits = [one for one in figures if one.part == "fit"]
    return {"fits": _draw_fits(fits)} if fits else {}


def _draw_fits(figures: Sequence[Measurement]) -> Figure:
    names, cases = (list(dict.fromkeys(values)) for values in ([f.name for f in figures], [f.case for f in figures]))
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


def scale_drawings(growths: Sequence[Growth], runs: Sequence[ScaleRun]) -> dict[str, Figure]:
    """Draw time against the number of samples, both in powers of ten, with the fitted lines; one for each method.

    If a method has come to its end, one more drawing shows which methods run at which size.
    """
    drawn = {f"cost-{growth.method.lower()}": _draw_growth(growth) for growth in growths if len(growth.phases) > 1}
    if growths and any(run.status != DONE for run in runs):
        drawn["who-runs"] = _draw_ends(runs)
    return drawn


def _draw_ends(runs: Sequence[ScaleRun]) -> Figure:
    """Draw the processor time of every method, and where it ends."""
    sizes = sorted({run.n_samples for run in runs})
    top = 1.5 * max(run.processor_seconds for run in runs if run.status == DONE)
    with new_figure(_WIDTH, 4.6) as figure:
        axes: Any = figure.subplots()
        methods = list(dict.fromkeys(run.method for run in runs))
        for method, series in zip(methods, cycle(reversed(SERIES)), strict=False):
            own = sorted((run for run in runs if run.method == method), key=lambda run: run.n_samples)
            done = [run for run in own if run.status == DONE]
            options = series.options() | {"linestyle": "-" if method not in RIVALS else "--"}
            axes.plot([r.n_samples for r in done], [r.processor_seconds for r in done], label=method, **options)
            failed = next((run for run in own if run.status != DONE), None)
            if failed is not None and done:
                ends = [done[-1].n_samples, failed.n_samples], [done[-1].processor_seconds, top]
                axes.plot(*ends, color=series.color, linestyle=":", linewidth=1.0)
                axes.plot([failed.n_samples], [top], color=series.color, marker="x", markersize=9, linestyle="none")
        axes.set(xscale="log", yscale="log", xlabel="samples", ylabel="seconds of processor time")
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.minorticks_off()
        axes.grid(color=GRID)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


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
