"""The page of the league: the answer, the ranking, ours against each rival, every cell, what was run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gapview.report.page import Block, Code, Details, Drawing, Items, Page, Section, Text
from gapview.utils.messages import counted

from ..common.run_file import run_facts
from .entrants import N_SETTINGS
from .figures import draw_cells, draw_differences
from .findings import answer, failures
from .setup import Setup
from .summary import LABEL_TUNED, LeagueSummary
from .tables import (
    LEGEND,
    data_table,
    difference_table,
    held_out_table,
    lead_table,
    method_table,
    ranking_table,
    score_table,
    seconds_table,
    setting_table,
)

__all__ = ["league_page"]

_HEADLINES, _OTHERS = ("accuracy", "nmi"), ("ari", "purity")
_UPPER_BOUND = (
    "Chosen by labels: for every method and cell the setting with the highest mean ACC against the true groups. Nobody "
    "who needs a clustering has these labels. The figures are an upper bound of what the settings tried could give, "
    "not what to expect in use, and they flatter methods that have much to set."
)


def league_page(
    summaries: Sequence[LeagueSummary], setup: Setup, run: Mapping[str, Any], *, figures: bool = True
) -> Page:
    """Build the page; the first summary is the one without labels."""
    free = summaries[0]
    tuned = [summary for summary in summaries if summary.way == LABEL_TUNED]
    sections = [
        _glance(free, figures),
        *([_against(free, figures), _cell_by_cell(free)] if free.differences else []),
        Section("Every data set", (_READING, *(_data_section(free, source.name) for source in setup.sources))),
        *(_tuned_section(summary, setup) for summary in tuned),
        _what_was_run(setup, run),
        _failures(summaries),
        _repeat(run),
    ]
    footer = f"Made by gapview {run['version']} on {run['finished']}."
    return Page("Comparison of methods: clustering with missing views", answer(free), tuple(sections), footer)


_READING = Text(
    "Scores in %, mean and standard deviation over the seeds, every method at its defaults. A star marks the best of a "
    "cell. A method that failed with any seed is absent in that cell."
)


def _glance(summary: LeagueSummary, figures: bool) -> Section:
    cells, methods = counted(len(summary.common.cells), "cell"), counted(len(summary.common.places), "method")
    blocks: list[Block] = []
    if summary.common.places:
        blocks.append(ranking_table(summary.common, f"Label-free: the {cells} in which all {methods} ran"))
    if summary.steady.places and summary.steady.cells != summary.common.cells:
        every = counted(len(summary.steady.cells), "cell")
        blocks.append(ranking_table(summary.steady, f"Label-free: all {every}, methods that ran in every one of them"))
    drawn = draw_cells(summary) if figures else None
    if drawn is not None:
        caption = (
            "ACC in %, mean over the seeds, every method at its defaults. The darker, the nearer to the best method of "
            "the row, which is bold; a dash: absent."
        )
        blocks.append(Drawing(drawn, "Table of ACC, one row for every cell, one column for every method.", caption))
    return Section("At a glance", tuple(blocks))


def _against(summary: LeagueSummary, figures: bool) -> Section:
    drawn = draw_differences(summary) if figures else None
    caption = (
        f"Mean lead of {summary.ours} over each rival, with 95 % intervals from drawing data sets anew; no line where "
        "there is one data set only."
    )
    label = f"Points by which {summary.ours} is ahead of each rival, with intervals; the same as in the table."
    drawing = (Drawing(drawn, label, caption),) if drawn is not None else ()
    return Section(f"{summary.ours} against each rival", (*drawing, difference_table(summary)))


def _cell_by_cell(summary: LeagueSummary) -> Section:
    held_out = (held_out_table(summary),) if summary.held_out("accuracy") else ()
    return Section(f"{summary.ours} against the best rival of every cell", (lead_table(summary), *held_out, LEGEND))


def _data_section(summary: LeagueSummary, data: str) -> Section:
    return Section(
        data,
        (
            score_table(summary, data, _HEADLINES),
            Details("ARI and purity", (score_table(summary, data, _OTHERS),)),
        ),
    )


def _tuned_section(summary: LeagueSummary, setup: Setup) -> Section:
    fewer = [
        f"{entrant.name} {len(entrant.settings)}" for entrant in setup.entrants if len(entrant.settings) < N_SETTINGS
    ]
    equal = f"Every method has {N_SETTINGS} settings, its default among them" + (
        f", but for those that have fewer that matter: {', '.join(fewer)}." if fewer else "."
    )
    blocks: list[Block] = [Text(_UPPER_BOUND), Text(equal), *map(Text, answer(summary))]
    if summary.common.places:
        cells, methods = counted(len(summary.common.cells), "cell"), counted(len(summary.common.places), "method")
        caption = f"Label-tuned, an upper bound: the {cells} in which all {methods} ran"
        blocks.append(ranking_table(summary.common, caption))
    if summary.differences:
        blocks.append(difference_table(summary))
    for source in setup.sources:
        blocks.append(Details(source.name, (score_table(summary, source.name, (*_HEADLINES, *_OTHERS)),)))
    return Section(
        "Settings chosen by labels: an upper bound", (*blocks, Details("Settings", (setting_table(summary),)))
    )


def _what_was_run(setup: Setup, run: Mapping[str, Any]) -> Section:
    protocol = (
        "Every method is given the number of groups, and the seed as its random_state; nothing else is set unless its "
        "remark says so. From all "
        f"data views are hidden in up to {counted(setup.n_seeds, 'way')} (the seeds), the same for all methods, with "
        f"the samples in an order drawn with the seed. A run of more than {setup.time_limit:g} s is ended, and its "
        "method is absent in that cell. How views are hidden follows from what a data set holds: published folds or "
        "masks where there are any, else the number of its views and whether some are missing by nature. The methods "
        "of gapview were developed with its embedded, made and test data in sight, those of other packages were not."
    )
    blocks: list[Block] = [
        Text(protocol),
        data_table(setup.sources, setup.n_seeds),
        method_table(setup.entrants, run["programs"], setup.tuned),
    ]
    if setup.left_out:
        blocks += [Text("Left out:"), Items(tuple(setup.left_out))]
    return Section("What was run", tuple(blocks))


def _failures(summaries: Sequence[LeagueSummary]) -> Section:
    found = failures(summaries)
    blocks: tuple[Block, ...] = (Items(found),) if found else (Text("No method was absent in any cell."),)
    return Section("Where methods are absent, and why", (*blocks, seconds_table(summaries[0])))


def _repeat(run: Mapping[str, Any]) -> Section:
    return Section(
        "How to repeat it",
        (
            Code(str(run["command"])),
            Text(
                "Results are stored as they come: an interrupted league goes on where it stopped, and one that is "
                "asked for more runs only what is new. Every single run stands in runs.csv, every cell in cells.csv, "
                "the means in overall.csv, the differences in differences.csv."
            ),
            run_facts(run),
        ),
    )
