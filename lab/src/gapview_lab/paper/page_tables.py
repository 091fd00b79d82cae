"""The tables of the page of ``gapview-lab reproduce``."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gapview.report.page import Cell, Group, Legend, Row, Table, Tone
from gapview.utils.messages import counted, number

from ..common.words import setting_text, signed
from .findings import FAR, NEAR, Duel, duels, problems
from .methods import COMPARED, NOT_RUN, read_setting
from .published import METHODS, PaperData
from .tables import CHOICES, PaperCell, PaperTable
from .tasks import PaperPlan

__all__ = ["LEGEND", "data_table", "glance_table", "method_table", "score_table", "setting_table"]

_SCORES = {"ACC": "accuracy", "NMI": "nmi", "purity": "purity"}
_PRINTED = ("ACC", "NMI")  # what the paper prints, in its order
LEGEND = Legend(
    (
        ("plain", f"within {NEAR:g} points of print"),
        ("up", f"{NEAR:g} to {FAR:g} points above"),
        ("up-strong", f"more than {FAR:g} above"),
        ("down", f"{NEAR:g} to {FAR:g} points below"),
        ("down-strong", f"more than {FAR:g} below"),
    )
)


def glance_table(tables: Sequence[PaperTable]) -> Table:
    """Compare the ACC of GRMF with print, and with the best of the other methods."""
    groups = []
    for table in tables:
        rows = [Row(("print",), tuple(_printed(table, "GRMF", "ACC", rate) for rate in table.rates))]
        for choice in CHOICES:
            rows.append(Row((choice,), tuple(_score(table, choice, "GRMF", "ACC", rate) for rate in table.rates)))
        for choice in CHOICES:
            found = {duel.rate: duel for duel in duels([table], choice)}
            rows.append(Row((f"lead, {choice}",), tuple(_lead(found.get(rate)) for rate in table.rates)))
        groups.append(Group(tuple(rows), table.data.title, f"Table {table.data.table}"))
    caption = "ACC of GRMF in %, with its difference from print, and its lead over the paper’s other methods"
    columns = ("", *(f"{rate:g}" for rate in tables[0].rates))
    return Table(caption, columns, tuple(groups), "paired rate", numbers=True)


def _lead(duel: Duel | None) -> Cell:
    if duel is None:
        return Cell("–", tone="muted")
    tip = f"{duel.rival} {duel.theirs.mean['accuracy']:.2f}, GRMF {duel.ours.mean['accuracy']:.2f}"
    return Cell("", duel.rival, signed(duel.lead), tip=tip)


def score_table(table: PaperTable) -> Table:
    """Show all scores of all methods on one data set, print beside them."""
    groups = []
    for method in COMPARED:
        rows = []
        for score in _SCORES:
            if score in _PRINTED and method in METHODS:
                cells = tuple(_printed(table, method, score, rate) for rate in table.rates)
                rows.append(Row((score, "print"), cells))
            for choice in CHOICES:
                cells = tuple(_score(table, choice, method, score, rate) for rate in table.rates)
                rows.append(Row((score, choice), cells))
        count = table.cells["by labels", method, table.rates[0]].n_settings
        groups.append(Group(tuple(rows), method, "nothing to set" if count == 1 else f"{count} settings tried"))
    nothing = (Row(("–", "–"), tuple(Cell("–", tone="muted") for _ in table.rates)),)
    groups += [Group(nothing, method, reason) for method, reason in NOT_RUN.items()]
    columns = ("score", "settings", *(f"{rate:g}" for rate in table.rates))
    caption = f"{table.data.title}: scores in %, standard deviation over folds, difference from print in points"
    return Table(caption, columns, tuple(groups), "paired rate", problems(table), numbers=True)


def _printed(table: PaperTable, method: str, score: str, rate: float) -> Cell:
    values = {name: _in_print(table, name, score, rate) for name in METHODS}
    best = values[method] == max(values.values())
    return Cell(f"{values[method]:.2f}", tone="muted", best=best)


def _in_print(table: PaperTable, method: str, score: str, rate: float) -> float:
    printed = table.cells["fixed", method, rate].printed
    return math.nan if printed is None else printed[_PRINTED.index(score)]


def _score(table: PaperTable, choice: str, method: str, score: str, rate: float) -> Cell:
    cell = table.cells[choice, method, rate]
    if not cell.mean:
        return Cell(f"{'failed' if cell.problem.startswith('failed') else '–'} †", tone="problem", tip=cell.problem)
    mean = cell.mean[_SCORES[score]]
    others = [table.cells[choice, name, rate].mean for name in COMPARED]
    top = round(mean, 2) >= max(round(other[_SCORES[score]], 2) for other in others if other)
    spread = f"±{cell.spread[_SCORES[score]]:.1f}" if cell.n_folds > 1 else ""
    difference = cell.difference[_PRINTED.index(score)] if cell.difference and score in _PRINTED else None
    mark = "" if difference is None else signed(difference)
    failed = " †" if cell.problem else ""
    return Cell(f"{mean:.2f}{failed}", spread, mark, tone(difference), top, _tip(cell, method, choice))


def tone(difference: float | None) -> Tone:
    """Return the colour of a difference from print."""
    if difference is None or abs(difference) <= NEAR:
        return "plain"
    if difference > 0:
        return "up-strong" if difference > FAR else "up"
    return "down-strong" if difference < -FAR else "down"


def _tip(cell: PaperCell, method: str, choice: str) -> str:
    words = f"{method}, {choice}: {setting_text(read_setting(cell.setting))}; {counted(cell.n_folds, 'fold')}"
    return words + (f"; {cell.problem}" if cell.problem else "")


def setting_table(table: PaperTable) -> Table:
    """Show which setting the labels chose."""
    rows = []
    for method in COMPARED:
        cells = [table.cells["by labels", method, rate] for rate in table.rates]
        rows.append(Row((method,), tuple(setting_text(read_setting(cell.setting)) for cell in cells)))
    columns = ("method", *(f"{rate:g}" for rate in table.rates))
    return Table("Chosen by ACC on fold 0", columns, (Group(tuple(rows)),), "paired rate")


def data_table(data: Sequence[PaperData]) -> Table:
    """Describe the data and their preparation."""
    rows = tuple(Row((one.title,), (str(one.table), one.form, one.preprocessing)) for one in data)
    return Table("Data", ("data set", "table", "contents", "preparation"), (Group(rows),))


def method_table(plan: PaperPlan) -> Table:
    """List the settings of each method that were tried."""
    rows = []
    for name, compared in COMPARED.items():
        cells = (_grid_text(plan.settings(name)), setting_text(dict(compared.fixed)), compared.note)
        rows.append(Row((name,), cells))
    rows += [Row((name,), ("–", "–", reason)) for name, reason in NOT_RUN.items()]
    return Table("Methods", ("method", "tried by labels", "fixed", "remark"), (Group(tuple(rows)),))


def _grid_text(settings: Sequence[str]) -> str:
    read = [read_setting(text) for text in settings]
    if len(read) == 1:
        return setting_text(read[0])
    values = {name: sorted({setting[name] for setting in read}, key=_words_first) for name in read[0]}
    if math.prod(map(len, values.values())) != len(read):  # not a full grid: list what was tried
        return f"{len(read)} settings: " + " / ".join(setting_text(setting) for setting in read)
    texts = {name: [one if isinstance(one, str) else number(one) for one in found] for name, found in values.items()}
    axes = (f"{name.removesuffix('_weight').replace('_', ' ')} {', '.join(found)}" for name, found in texts.items())
    return f"{len(read)} settings: " + " × ".join(axes)


def _words_first(value: str | float) -> tuple[bool, str | float]:
    return not isinstance(value, str), value
