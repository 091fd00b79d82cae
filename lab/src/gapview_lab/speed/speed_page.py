"""The page of ``gapview-lab speed``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gapview.report.page import Block, Cell, Code, Drawing, Facts, Group, Items, Page, Row, Section, Table, Text

from ..common.run_file import run_facts
from ..common.words import signed
from .goals import Goal, speed_goals
from .iterations import READING, STARTS
from .passes import COST, PASSES
from .plan import PART_TITLES
from .quality import BY_CHANCE
from .results import Figure

__all__ = ["goal_table", "percent", "seconds_text", "speed_lead", "speed_page", "speed_sections"]

_QUICK = "A quick run on small made data: it shows that everything runs, not how fast it is."


def speed_page(figures: Sequence[Figure], run: Mapping[str, Any], drawings: Mapping[str, Any]) -> Page:
    """Build the page; without drawings for Markdown."""
    footer = f"Made by gapview {run['version']} on {run['finished']}."
    return Page("How fast gapview is", speed_lead(figures, run), speed_sections(figures, run, drawings), footer)


def speed_lead(figures: Sequence[Figure], run: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the summary."""
    if run["size"] == "quick":
        return (_QUICK,)
    goals = speed_goals(figures)
    met = sum(goal.met for goal in goals)
    missed = [f"{goal.text}: {goal.measured}, goal {goal.asked}" for goal in goals if not goal.met]
    lead = f"On {run['computer']}, {met} of {len(goals)} goals are met."
    return (lead, *([f"Not met: {'; '.join(missed)}."] if missed else []))


def speed_sections(
    figures: Sequence[Figure], run: Mapping[str, Any], drawings: Mapping[str, Any]
) -> tuple[Section, ...]:
    """Return the sections of the measured parts."""
    goals = speed_goals(figures) if run["size"] == "full" else []
    sections = [Section("Goals", (goal_table(goals),))] if goals else []
    makers = {"machine": _machine, "fit": _fits, "iterations": _iterations, "passes": _passes, "quality": _quality}
    for part, make in makers.items():
        own = [figure for figure in figures if figure.part == part]
        if own:
            sections.append(Section(PART_TITLES[part], make(own, drawings)))
    left_out: tuple[Block, ...] = (Text("Left out:"), Items(tuple(run["left_out"]))) if run["left_out"] else ()
    facts = Facts((("processor", str(run["computer"])), ("programs", str(run["programs"]))))
    repeat = Section("How to repeat it", (Code(str(run["command"])), *left_out, facts, run_facts(run)))
    return (*sections, repeat)


def goal_table(goals: Sequence[Goal]) -> Table:
    """Show each goal with the worst figure."""
    rows = [
        Row((goal.text,), (goal.asked, Cell(goal.measured, tone="up" if goal.met else "down"), _verdict(goal)))
        for goal in goals
    ]
    return Table("Goals, each with its worst figure", ("", "goal", "measured", ""), (Group(tuple(rows)),))


def _verdict(goal: Goal) -> str:
    return "met" if goal.met else "not met"


def seconds_text(seconds: float) -> str:
    """Return seconds as text.

    >>> seconds_text(0.00123), seconds_text(0.56), seconds_text(123.4)
    ('1.23 ms', '0.56 s', '123 s')
    """
    return f"{1000 * seconds:.3g} ms" if seconds < 0.1 else f"{seconds:.2f} s" if seconds < 100 else f"{seconds:.0f} s"


def percent(share: float) -> str:
    """Return a share as text.

    >>> percent(0.256)
    '26 %'
    """
    return f"{100 * share:.0f} %"


def _machine(figures: Sequence[Figure], drawings: Mapping[str, Any]) -> tuple[Block, ...]:
    rows = [Row((one.name,), (f"{one.value:.1f} {one.unit}", one.note)) for one in figures]
    return (Table("Measured first", ("", "speed", "how"), (Group(tuple(rows)),)),)


def _fits(figures: Sequence[Figure], drawings: Mapping[str, Any]) -> tuple[Block, ...]:
    cases, names = _in_order([one.case for one in figures]), _in_order([one.name for one in figures])
    rows = []
    for name in names:
        cells = []
        for case in cases:
            own = [one for one in figures if one.case == case and one.name == name]
            ratios = " / ".join(f"{one.compared:.1f} ×" for one in own if one.reference)
            cells.append(Cell(seconds_text(own[0].value), detail=ratios))
        rows.append(Row((name,), tuple(cells)))
    references = _in_order([one.reference for one in figures if one.reference])
    notes = (
        f"Ratios: how many times faster than {references[0]} / than {references[1]}, in the same run.",
        *(f"{one.name}: {one.note}." for one in figures if one.case == cases[0] and not one.reference),
    )
    table = Table("Seconds from views to labels, 20 restarts of k-means included", ("", *cases), (Group(tuple(rows)),))
    noted = Table(table.caption, table.columns, table.groups, notes=notes, numbers=True)
    return (noted, *_drawn(drawings, "fits", "Seconds of whole fits, as in the table, on a scale of powers of ten."))


def _iterations(figures: Sequence[Figure], drawings: Mapping[str, Any]) -> tuple[Block, ...]:
    cases = _in_order([one.case for one in figures])
    by_name = {(one.case, one.name): one for one in figures}
    rows = [Row((start,), tuple(_share(by_name[case, start]) for case in cases)) for start in STARTS.values()]
    reading = Row(("reading H once",), tuple(_reading(by_name[case, READING]) for case in cases))
    note = "An iteration has 4·n·m·K operations for each start: those of its two products with H."
    groups = (Group(tuple(rows), "Share of the matrix-product speed"), Group((reading,), "Memory"))
    return (Table("Iterations", ("", *cases), groups, notes=(note,), numbers=True),)


def _share(figure: Figure) -> Cell:
    return Cell(percent(figure.compared), detail=f"{figure.value:.0f} {figure.unit}")


def _reading(figure: Figure) -> Cell:
    return Cell(seconds_text(figure.value), detail=figure.note)


def _passes(figures: Sequence[Figure], drawings: Mapping[str, Any]) -> tuple[Block, ...]:
    cases = _in_order([one.case for one in figures])
    by_name = {(one.case, one.name): one for one in figures}
    rows = [
        Row(("passes until the objective is as low",), tuple(_count(by_name[case, PASSES].value) for case in cases)),
        Row(("cost of the start, in passes",), tuple(f"{by_name[case, COST].value:.1f}" for case in cases)),
        Row(("both together",), tuple(_count(_together(by_name, case), 1) for case in cases)),
        Row(("one pass",), tuple(seconds_text(by_name[case, "one pass"].value) for case in cases)),
    ]
    reference = by_name[cases[0], PASSES].reference
    note = f"As low as after 100 {reference}. The start takes its time in one pass over the data and on small matrices."
    return (Table("Passes", ("", *cases), (Group(tuple(rows)),), notes=(note,), numbers=True),)


def _count(passes: float, digits: int = 0) -> str:
    return f"{passes:.{digits}f}" if passes < float("inf") else "not in 100"


def _together(by_name: Mapping[tuple[str, str], Figure], case: str) -> float:
    return by_name[case, PASSES].value + by_name[case, COST].value


def _quality(figures: Sequence[Figure], drawings: Mapping[str, Any]) -> tuple[Block, ...]:
    rows = [
        Row(
            (one.case, one.name),
            (f"{one.reference_value:.2f}", f"{one.value:.2f}", signed(one.compared, 2), one.note),
        )
        for one in figures
    ]
    heads = ("", "", "exact, float64", "approximate, float32", "points", "")
    note = (
        f"{BY_CHANCE}: not judged. A difference in the last digit decides in which local minimum such a start ends. "
        "The standard error shows how far the scores of such minima differ; rows with a large one show little."
    )
    return (Table("ACC in %", heads, (Group(tuple(rows)),), notes=(note,)),)


def _drawn(drawings: Mapping[str, Any], name: str, caption: str) -> tuple[Block, ...]:
    return (Drawing(drawings[name], caption, caption),) if name in drawings else ()


def _in_order(values: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(values))
