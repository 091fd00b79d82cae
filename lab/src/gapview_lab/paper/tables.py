"""From records to the tables of the paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .methods import COMPARED, NOT_RUN, as_setting
from .published import PAPER_DATA, PaperData
from .tasks import PaperPlan, PaperRecord, chosen_settings

__all__ = ["CHOICES", "PaperCell", "PaperTable", "make_tables", "markdown"]

CHOICES = {
    "by labels": "the best of the settings tried, chosen by the true labels on fold 0 (as the paper does)",
    "fixed": "one setting for all data and rates; the defaults, some of which come from earlier looks at the digits",
}
_SCORES = ("accuracy", "nmi", "purity")


@dataclass(frozen=True)
class PaperCell:
    """Scores of one method at one rate, in %."""

    mean: dict[str, float]
    spread: dict[str, float]  # standard deviation over the folds
    n_folds: int
    setting: str
    n_settings: int  # how many were tried for it
    printed: tuple[float, float] | None  # ACC and NMI in the paper, if the method is in its tables
    problem: str = ""  # why there is no score, or in how many runs the method failed

    @property
    def difference(self) -> tuple[float, float] | None:
        """Points above print, ACC and NMI."""
        if self.printed is None or not self.mean:
            return None
        return self.mean["accuracy"] - self.printed[0], self.mean["nmi"] - self.printed[1]


@dataclass(frozen=True)
class PaperTable:
    """One of the Tables 2 to 5, both ways of choosing settings."""

    data: PaperData
    rates: tuple[float, ...]
    cells: dict[tuple[str, str, float], PaperCell]  # by choice, method and rate

    def mean_accuracy(self, choice: str) -> dict[str, float]:
        """Return the ACC of every method that has run at all rates, averaged over them."""
        found = {}
        for method in COMPARED:
            values = [self.cells[choice, method, rate].mean.get("accuracy") for rate in self.rates]
            scores = [value for value in values if value is not None]
            if len(scores) == len(values):
                found[method] = sum(scores) / len(scores)
        return found


def make_tables(records: Sequence[PaperRecord], plan: PaperPlan) -> list[PaperTable]:
    """Build the tables from the records."""
    chosen = chosen_settings(records, plan)
    by_place: dict[tuple[str, str, float, str], list[PaperRecord]] = {}
    for record in records:
        known = record.data in plan.data and record.start in plan.starts(record.data) and record.fold < plan.n_folds
        if record.experiment == "tables" and known:
            by_place.setdefault((record.data, record.method, record.rate, record.setting), []).append(record)
    tables = []
    for key in plan.data:
        cells = {}
        for method in COMPARED:
            fixed = as_setting(COMPARED[method].fixed)
            n_settings = len(plan.settings(method))
            for rate in plan.rates:
                printed = _in_print(PAPER_DATA[key], method, rate)
                picks = {"by labels": chosen.get((key, method, rate), fixed), "fixed": fixed}
                for choice, setting in picks.items():
                    found = by_place.get((key, method, rate, setting), [])
                    peek = choice == "by labels" and method == "BSV"
                    count = n_settings if choice == "by labels" else 1
                    cells[choice, method, rate] = _cell(found, setting, count, printed, peek)
        tables.append(PaperTable(PAPER_DATA[key], plan.rates, cells))
    return tables


def _in_print(data: PaperData, method: str, rate: float) -> tuple[float, float] | None:
    return data.printed[method][round((rate - 0.1) / 0.2)] if method in data.printed else None


def _cell(
    records: Iterable[PaperRecord], setting: str, n_settings: int, printed: tuple[float, float] | None, peek: bool
) -> PaperCell:
    runs = list(records)
    good = [record for record in runs if record.status == "done"]
    failed = [record.status for record in runs if record.status != "done"]
    problem = "not run" if not runs else (f"failed in {len(failed)} of {len(runs)} runs: {failed[0]}" if failed else "")
    if not good:
        return PaperCell({}, {}, 0, setting, n_settings, printed, problem)
    prefix = "best_view_" if peek else ""
    folds = sorted({record.fold for record in good})
    values = {
        name: [np.mean([100 * getattr(r, prefix + name) for r in good if r.fold == fold]) for fold in folds]
        for name in _SCORES
    }
    mean = {name: float(np.mean(found)) for name, found in values.items()}
    spread = {name: float(np.std(found)) for name, found in values.items()}
    return PaperCell(mean, spread, len(folds), setting, n_settings, printed, problem)


def markdown(tables: Sequence[PaperTable]) -> str:
    """Write the tables as Markdown: ACC / NMI / purity in %, with the spread over folds, print beside them."""
    return "\n\n".join(_markdown(table) for table in tables) + "\n"


def _markdown(table: PaperTable) -> str:
    lines = [f"## Table {table.data.table}: {table.data.title}", "", table.data.preprocessing, ""]
    lines += [
        "ACC / NMI / purity in %, mean ± standard deviation over the folds; *print* is ACC / NMI in the paper.",
        "",
        "| method | settings | " + " | ".join(f"{rate:g}" for rate in table.rates) + " |",
        "|---|---|" + "---|" * len(table.rates),
    ]
    for method in COMPARED:
        printed = " | ".join(_printed(table, method, rate) for rate in table.rates)
        lines.append(f"| **{method}** | *print* | {printed} |")
        for choice in CHOICES:
            shown = [table.cells[choice, method, rate] for rate in table.rates]
            count = shown[0].n_settings
            name = f"by labels (of {count})" if choice == "by labels" else choice
            lines.append(f"| | {name} | " + " | ".join(_text(cell) for cell in shown) + " |")
    for method, reason in NOT_RUN.items():
        lines.append(f"| **{method}** | {reason} | {' | '.join('–' * len(table.rates))} |")
    failures = {cell.problem for cell in table.cells.values() if cell.mean and cell.problem}
    return "\n".join([*lines, "", *(f"† {failure}" for failure in sorted(failures))]).rstrip()


def _printed(table: PaperTable, method: str, rate: float) -> str:
    printed = table.cells["fixed", method, rate].printed
    return "–" if printed is None else "{:.2f} / {:.2f}".format(*printed)


def _text(cell: PaperCell) -> str:
    if not cell.mean:
        return cell.problem.split(":")[0] or "–"
    scores = " / ".join(f"{cell.mean[name]:.2f}" for name in _SCORES)
    spread = f" (± {cell.spread['accuracy']:.1f})" if cell.n_folds > 1 else ""
    return scores + spread + (" †" if cell.problem else "")
