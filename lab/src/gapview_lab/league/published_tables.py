"""Tables of printed figures beside those here: a page, a CSV file, lines for the console."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gapview.report.page import Block, Cell, Code, Group, Items, Page, Row, Section, Table, Text
from gapview.utils.messages import counted

from ..common.run_file import run_facts
from ..common.words import signed
from .data import FEW_VIEWS, HIDINGS
from .published_figures import (
    COLUMNS,
    MEAN,
    NOT_STATED,
    PER_DATA,
    SCORE_COLUMNS,
    MeasuredHere,
    PrintedComparison,
    PrintedFigure,
)
from .setup import Setup

__all__ = ["brief_lines", "published_page", "published_rows"]

_HEADS = {"acc": "ACC", "nmi_arithmetic": "NMI", "ari": "ARI"}
_NOTES = (
    "All scores in %. Here: mean over the seeds (ways of hiding views, or masks) ± standard error; in parentheses here "
    "minus printed, in points. NMI divides by the arithmetic mean of the entropies, printed and here; the other pages "
    "of the league divide by the larger entropy.",
    "Methods run here have the number of groups and no labels: settings chosen by labels: no; missing views read: no, "
    "since hidden views are removed before a method gets the data. The methods of gapview were developed with some of "
    "these data in sight.",
    f"Settings chosen by labels: “yes” if true labels chose the settings or the epoch; “{PER_DATA}” if the settings "
    f"differ between data sets, so that the figure is not label-free; “{NOT_STATED}” if the file does not state it.",
    "A figure for one mask stands beside the mean over all masks run here; the note has the figure here for that mask.",
)


def brief_lines(comparisons: Sequence[PrintedComparison]) -> Iterator[tuple[str, str]]:
    """Yield a head and a line for every figure with an accuracy, then how often each method is ahead."""
    for one in comparisons:
        if "acc" in one.figure.printed:
            here = ", ".join(f"{part.method} {_value(part, one.figure, 'acc')}" for part in one.here)
            where = f"{one.figure.source}, {one.figure.protocol}"
            yield "ACC", f"{where}: {one.figure.method} {one.figure.printed['acc']:.1f}; here {here}"
    for line in _answer(comparisons):
        yield "Ahead", line


def _answer(comparisons: Sequence[PrintedComparison]) -> list[str]:
    lines = []
    for k, method in enumerate(part.method for part in comparisons[0].here):
        pairs = [(one.here[k].mean["acc"], one.figure.printed["acc"]) for one in comparisons if _both(one, k)]
        n_ahead = sum(round(ours - theirs, 1) > 0 for ours, theirs in pairs)
        lines.append(f"{method} has the higher mean ACC beside {n_ahead} of {counted(len(pairs), 'printed figure')}.")
    return lines


def _both(one: PrintedComparison, k: int) -> bool:
    return "acc" in one.figure.printed and "acc" in one.here[k].mean


def _cell(here: MeasuredHere, figure: PrintedFigure, column: str) -> Cell:
    if not here.mean:
        return Cell("absent", here.problem, tone="problem")
    mean, error = here.mean[column], here.error[column]
    if mean != mean:  # a run of an earlier version, which did not record this score
        return Cell("–")
    mark = signed(mean - figure.printed[column]) if column in figure.printed else ""
    return Cell(f"{mean:.1f}", "" if error != error else f"±{error:.1f}", mark)


def _value(here: MeasuredHere, figure: PrintedFigure, column: str) -> str:
    cell = _cell(here, figure, column)
    return " ".join(part for part in (cell.text, cell.detail, f"({cell.mark})" if cell.mark else "") if part)


def published_page(comparisons: Sequence[PrintedComparison], setup: Setup, run: Mapping[str, Any]) -> Page:
    """Build the page: one row for every printed figure."""
    methods = [entrant.name for entrant in setup.entrants]
    heads = ["data", "views", "protocol, rate", "method (year)", *(f"printed {head}" for head in _HEADS.values())]
    heads += ["settings chosen by labels?", "missing views read?"]
    for method in methods:
        heads += [*(f"{method} {head}" for head in _HEADS.values()), "seeds"]
    table = Table(
        "Published / here: printed figures, and the methods run here in the same cells, without labels",
        (*heads, "note"),
        (Group(tuple(map(_row, comparisons))),),
        notes=_NOTES,
        numbers=True,
    )
    protocols = {one.figure.row["protocol"]: one.figure for one in comparisons}
    words = tuple((f"{name}:", _protocol_words(figure)) for name, figure in protocols.items())
    blocks: list[Block] = [Items(words)]
    if setup.left_out:
        blocks += [Text("Left out:"), Items(tuple(setup.left_out))]
    sections = (
        Section("Published / here", (table,)),
        Section("What was run", tuple(blocks)),
        Section("How to repeat it", (Code(str(run["command"])), run_facts(run))),
    )
    footer = f"Made by gapview {run['version']} on {run['finished']}."
    return Page("Published figures, and the same cells here", tuple(_answer(comparisons)), sections, footer)


def _row(one: PrintedComparison) -> Row:
    figure = one.figure
    printed = (f"{figure.printed[column]:.1f}" if column in figure.printed else "" for column in SCORE_COLUMNS)
    place = (figure.row["data"], figure.row["views"], figure.protocol, figure.method)
    cells: list[Cell | str] = [*printed, figure.chosen_by_labels, figure.reads_missing]
    notes = [figure.row["how_chosen"], figure.row["note"]]
    for here in one.here:
        cells += [*(_cell(here, figure, column) for column in SCORE_COLUMNS), str(here.n_seeds)]
        if here.on_mask:
            alone = replace(here, mean=here.on_mask, error=dict.fromkeys(SCORE_COLUMNS, float("nan")))
            values = ", ".join(f"{_HEADS[column]} {_value(alone, figure, column)}" for column in figure.printed)
            notes.append(f"{here.method} on mask {figure.mask} alone: {values}")
    return Row(place, (*cells, "; ".join(note for note in notes if note)))


def _protocol_words(figure: PrintedFigure) -> str:
    words = HIDINGS[FEW_VIEWS if figure.hiding.startswith(FEW_VIEWS) else figure.hiding]
    if figure.row["protocol"] == MEAN:
        rates = ", ".join(f"{rate:g}" for rate in figure.rates)
        words = f"mean over the rates {rates}, read as shares of the samples: {words}"
    return f"{words}."


def published_rows(comparisons: Sequence[PrintedComparison]) -> tuple[list[str], list[list[Any]]]:
    """Return the header and the rows of the table as CSV: one row for every figure and method run here."""
    header = [*COLUMNS, "chosen_by_labels", "reads_missing", "method_here", "n_seeds_here"]
    for column in SCORE_COLUMNS:
        header += [f"{column}_here", f"{column}_standard_error", f"{column}_difference", f"{column}_on_mask"]
    rows = []
    for one in comparisons:
        figure = one.figure
        for here in one.here:
            row: list[Any] = [*(figure.row[name] for name in COLUMNS), figure.chosen_by_labels, figure.reads_missing]
            row += [here.method, here.n_seeds]
            for column in SCORE_COLUMNS:
                mean, printed = here.mean.get(column, float("nan")), figure.printed.get(column, float("nan"))
                values = (mean, here.error.get(column), mean - printed, here.on_mask.get(column))
                row += ["" if value is None or value != value else round(value, 4) for value in values]
            rows.append([*row, here.problem])
    return [*header, "problem"], rows
