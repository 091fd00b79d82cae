"""The paper's Figures 2 to 5. Every figure carries its caption, computed from what it shows, as its label."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gapview.report.drawing import draw_frame, draw_weight_cells
from gapview.report.style import GRID, SERIES, SOFT, load_matplotlib, new_figure

from .captions import caption2, caption3, caption4, caption5, descent
from .methods import read_setting
from .published import METHODS, PAPER_DATA
from .tables import PaperTable
from .tasks import FIGURE_DATA, PaperPlan, PaperRecord, figure_tasks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_figure2", "draw_figure3", "draw_figure4", "draw_figure5"]

_WIDTH = 8.4  # inches: the text of the page and of the figure then have nearly the same size
SEARCHED = ((1.0, 100.0), (1e-5, 1e-1))  # the paper's range of λ1 and λ2
PROPER = {"handwritten": (8, 18), "buaa": (2, 6)}  # numbers of neighbours that the paper calls proper

Panel = Callable[[Any, str], None]


def draw_figure2(tables: Sequence[PaperTable]) -> Figure | None:
    """Draw the purity of the paper's methods against the paired rate, settings chosen by labels."""
    shown = [table for table in tables if any(_purity(table, method)[0] for method in METHODS)]
    if not shown:
        return None
    n_rows = (len(shown) + 1) // 2
    with new_figure(_WIDTH, 2.9 * n_rows + 0.4) as figure:
        panels = figure.subplots(n_rows, 2, squeeze=False).ravel()
        for axes, table in zip(panels, shown, strict=False):
            for method, series in zip(METHODS, SERIES, strict=True):
                own = {"linewidth": 2.4, "markersize": 6.5, "zorder": 3} if method == "GRMF" else {}
                axes.plot(*_purity(table, method), label=method, **(series.options() | own))
            axes.set_title(table.data.title)
            axes.set_xticks(table.rates, [f"{rate:g}" for rate in table.rates])
            axes.set(xlabel="paired rate", ylabel="purity (%)")
        handles, names = panels[0].get_legend_handles_labels()
        if len(shown) % 2:
            panels[-1].axis("off")
            panels[-1].legend(handles, names, loc="center left", fontsize=9.5, labelspacing=0.7)
        else:
            figure.legend(handles, names, loc="outside lower center", ncols=len(names), columnspacing=1.2)
    figure.set_label(caption2(shown))
    return figure


def draw_figure3(records: Sequence[PaperRecord], plan: PaperPlan) -> Figure | None:
    """Draw the ACC of GRMF over the grid of λ1 and λ2, 70 % paired, mean over folds."""
    found = _by_data(records, plan, 3)
    grids = {key: accuracy_grid(runs, plan) for key, runs in found.items()}
    values = np.concatenate([grid.ravel() for grid in grids.values()]) if grids else np.array([np.nan])
    if np.isnan(values).all():
        return None
    # What matters happens among the good settings: the square gives them most of the colours
    scale = load_matplotlib("colors").PowerNorm(2, vmin=float(np.nanmin(values)), vmax=float(np.nanmax(values)))

    def panel(axes: Any, key: str) -> None:
        draw_weight_cells(axes, grids[key], plan.consensus_weights, plan.sparsity_weights, scale)
        _frame_searched(axes, plan)

    return _panels(list(found), panel, 3.9, caption3(grids, plan, SEARCHED))


def draw_figure4(records: Sequence[PaperRecord], plan: PaperPlan) -> Figure | None:
    """Draw the ACC of GRMF against the number of nearest neighbours, at 50 % and 70 % paired."""
    found = {key: runs for key, runs in _by_data(records, plan, 4).items() if any(map(_good, runs))}
    if not found:
        return None
    curves = {key: neighbor_curves(runs) for key, runs in found.items()}

    def panel(axes: Any, key: str) -> None:
        axes.axvspan(*PROPER[key], color=GRID, alpha=0.5, linewidth=0, label="range named in the paper")
        for (rate, (counts, mean, spread)), series in zip(curves[key].items(), (SERIES[5], SERIES[6]), strict=False):
            axes.fill_between(counts, mean - spread, mean + spread, color=series.color, alpha=0.15, linewidth=0)
            axes.plot(counts, mean, label=f"{100 * rate:g} % paired", **series.options())
        axes.set(xlabel="number of nearest neighbours", ylabel="ACC (%)")
        axes.xaxis.get_major_locator().set_params(integer=True)

    return _panels(list(found), panel, 3.3, caption4(curves, plan, PROPER))


def draw_figure5(records: Sequence[PaperRecord], plan: PaperPlan) -> Figure | None:
    """Draw the objective and the ACC of GRMF against the iteration, 70 % paired."""
    found = {
        key: [run for run in runs if _good(run) and run.iteration] for key, runs in _by_data(records, plan, 5).items()
    }
    found = {key: sorted(runs, key=lambda run: run.iteration) for key, runs in found.items() if runs}
    if not found:
        return None
    descents = {key: descent([run.objective for run in runs]) for key, runs in found.items()}

    def panel(axes: Any, key: str) -> None:
        steps = [run.iteration for run in found[key]]
        every = max(1, len(steps) // 12)
        right = axes.twinx()
        objective, accuracy = SERIES[6].options(), SERIES[5].options()
        axes.plot(steps, [run.objective for run in found[key]], markevery=every, label="objective (left)", **objective)
        accuracies = [100 * run.accuracy for run in found[key]]
        right.plot(steps, accuracies, markevery=every, label="ACC (right)", **accuracy)
        axes.plot([], [], label="ACC (right)", **accuracy)  # so that one legend names both
        right.grid(False)
        right.spines["right"].set_visible(True)
        axes.set(xlabel="iteration", ylabel="objective")
        right.set_ylabel("ACC (%)")
        axes.set_title(PAPER_DATA[key].title, pad=21)
        place = {"xycoords": "axes fraction", "xytext": (0, 6), "textcoords": "offset points"}
        axes.annotate(descents[key].short, (0, 1), fontsize=8, color=SOFT, **place)

    return _panels(list(found), panel, 3.3, caption5(descents, plan))


def accuracy_grid(runs: Iterable[PaperRecord], plan: PaperPlan) -> np.ndarray[Any, Any]:
    """Average ACC in % over the folds, one row for every λ1 and one column for every λ2; NaN where nothing worked."""
    scores: dict[tuple[float, float], list[float]] = {}
    for run in filter(_good, runs):
        setting = read_setting(run.setting)
        scores.setdefault((setting["consensus_weight"], setting["sparsity_weight"]), []).append(100 * run.accuracy)
    grid = [
        [scores.get((first, second), [np.nan]) for second in plan.sparsity_weights] for first in plan.consensus_weights
    ]
    return np.array([[float(np.mean(values)) for values in row] for row in grid])


def neighbor_curves(runs: Iterable[PaperRecord]) -> dict[float, tuple[Any, Any, Any]]:
    """Return for every rate the numbers of neighbours, and mean and spread of ACC in % over the folds."""
    scores: dict[float, dict[int, list[float]]] = {}
    for run in filter(_good, runs):
        count = int(read_setting(run.setting)["n_neighbors"])
        scores.setdefault(run.rate, {}).setdefault(count, []).append(100 * run.accuracy)
    curves = {}
    for rate, by_count in sorted(scores.items()):
        counts = sorted(by_count)
        means, spreads = ([f(by_count[count]) for count in counts] for f in (np.mean, np.std))
        curves[rate] = np.array(counts), np.array(means), np.array(spreads)
    return curves


def _purity(table: PaperTable, method: str) -> tuple[list[float], list[float]]:
    cells = {rate: table.cells["by labels", method, rate] for rate in table.rates}
    return [rate for rate, cell in cells.items() if cell.mean], [c.mean["purity"] for c in cells.values() if c.mean]


def _by_data(records: Sequence[PaperRecord], plan: PaperPlan, figure: int) -> dict[str, list[PaperRecord]]:
    """Return the records of a figure of this plan: a folder may hold records of other plans, too."""
    wanted = set(figure_tasks(plan, (figure,)))
    runs = [record for record in records if record.experiment == f"figure{figure}" and record.task in wanted]
    found = {key: [run for run in runs if run.data == key] for key in FIGURE_DATA}
    return {key: own for key, own in found.items() if own}


def _panels(keys: Sequence[str], panel: Panel, height: float, caption: str) -> Figure:
    with new_figure(_WIDTH if len(keys) > 1 else 0.55 * _WIDTH, height) as figure:
        axes = figure.subplots(1, len(keys), squeeze=False)[0]
        for place, key in zip(axes, keys, strict=True):
            place.set_title(PAPER_DATA[key].title)
            panel(place, key)
        handles, names = axes[0].get_legend_handles_labels()
        if names:
            figure.legend(handles, names, loc="outside lower center", ncols=len(names) if len(keys) > 1 else 2)
    figure.set_label(caption)
    return figure


def _frame_searched(axes: Any, plan: PaperPlan) -> None:
    """Frame the part of the grid that the paper searches."""
    (low1, high1), (low2, high2) = SEARCHED
    rows = [place for place, weight in enumerate(plan.consensus_weights) if low1 <= weight <= high1]
    columns = [place for place, weight in enumerate(plan.sparsity_weights) if low2 <= weight <= high2]
    if rows and columns:
        draw_frame(axes, columns[0], columns[-1] + 1, rows[0], rows[-1] + 1)


def _good(record: PaperRecord) -> bool:
    return record.status == "done"
