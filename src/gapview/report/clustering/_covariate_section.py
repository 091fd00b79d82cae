"""How the groups go with what else is known of the samples, as a section of the page."""

from __future__ import annotations

import math

import numpy as np

from ...utils.words import counted, joined
from .._blocks import Block, Cell, Details, Drawing, Group, Items, Row, Section, Table, Text
from ._covariates import Comparison, Covariates
from ._summary import Summary
from .figures import draw_survival
from .words import bare_p, comparison_sentence, group_name, number, share, shorten, shown_groups

__all__ = ["covariate_section"]

_MOST_DETAILED = 50
_FIRM = 0.05
_KINDS = {
    "numbers": "numbers: Kruskal-Wallis",
    "categories": "categories: chi-square",
    "survival": "survival: log-rank",
}


def covariate_section(covariates: Covariates, summary: Summary) -> Section:
    """Show how the groups go with every column of the table of covariates."""
    blocks: list[Block] = [Text(text) for text in _covariate_words(covariates, summary)]
    if covariates.comparisons:
        ordered = sorted(covariates.comparisons, key=lambda one: one.p_value)
        blocks.append(_covariate_table(ordered))
        blocks += [_covariate_details(one, summary) for one in ordered[:_MOST_DETAILED]]
    if covariates.left_out:
        items = tuple((shorten(name), f"left out: {reason}.") for name, reason in covariates.left_out[:_MOST_DETAILED])
        n_more = len(covariates.left_out) - len(items)
        blocks += [Items((*items, f"and {n_more} more.") if n_more else items)]
    return Section("What else is known of the samples", tuple(blocks))


def _covariate_words(covariates: Covariates, summary: Summary) -> list[str]:
    matched = f"The table knows {covariates.n_matched:,} of the {counted(summary.n_samples, 'sample')}"
    unknown = f"; {counted(covariates.n_unknown, 'row')} of it belong to none of them" if covariates.n_unknown else ""
    n_tests = len(covariates.comparisons)
    if not n_tests:
        return [f"{matched}{unknown}. None of its columns can be compared between the groups."]
    firm = [shorten(one.column) for one in covariates.comparisons if one.adjusted < _FIRM]
    found = (
        f"After Holm’s correction for {counted(n_tests, 'test')}, the groups go with {joined(firm[:12])}"
        + (f" and {len(firm) - 12} more." if len(firm) > 12 else ".")
        if firm
        else f"After Holm’s correction for {counted(n_tests, 'test')}, the groups go with none of the columns for sure."
    )
    honest = (
        "The tests ask whether the groups differ in a column at all. With many columns, some differ by chance: rely on "
        "the corrected values. They assume that the columns were not among the features from which the groups were "
        "made, and take nothing else into account: groups that differ in age differ in all that goes with age. No "
        "difference for sure is not the same as no difference."
    )
    return [f"{matched}{unknown}.", found, honest]


def _covariate_table(ordered: list[Comparison]) -> Table:
    rows = tuple(
        Row(
            (shorten(one.column), _KINDS[one.kind]),
            (
                f"{one.n_samples:,}",
                share(one.strength),
                bare_p(one.p_value),
                Cell(bare_p(one.adjusted), tone="up" if one.adjusted < _FIRM else "plain", best=one.adjusted < _FIRM),
            ),
        )
        for one in ordered
    )
    notes = (
        "Strength: ε² of the ranks for numbers, Cramér’s V for categories, both from 0 to 1. A star: below 0.05 after "
        "Holm’s correction.",
    )
    columns = ("column", "test", "samples", "strength", "p", "p corrected")
    return Table("How the groups go with every column", columns, (Group(rows),), notes=notes, numbers=True, narrow=True)


def _covariate_details(one: Comparison, summary: Summary) -> Details:
    groups = [group.number for group in shown_groups(summary)]
    blocks: list[Block] = [Text(comparison_sentence(one))]
    drawn = draw_survival(one) if one.kind == "survival" else None
    if drawn is not None:
        caption = "Survival by Kaplan and Meier."
        blocks.append(Drawing(drawn, "Curves of survival by group; medians are in the table.", caption, small=True))
    tables = {"numbers": _quartile_table, "categories": _count_table, "survival": _median_table}
    return Details(shorten(one.column), (*blocks, tables[one.kind](one, groups)))


def _quartile_table(one: Comparison, groups: list[int]) -> Table:
    rows = []
    for g in groups:
        found = one.quartiles[g]
        cells = (
            ("0", "–", "–")
            if found is None
            else (f"{found.n_samples:,}", number(found.median), f"{number(found.low)} to {number(found.high)}")
        )
        rows.append(Row((group_name(g),), cells))
    columns = ("", "samples", "median", "middle half")
    return Table(f"{shorten(one.column)} by group", columns, (Group(tuple(rows)),), numbers=True, narrow=True)


def _count_table(one: Comparison, groups: list[int]) -> Table:
    rows = []
    for g in groups:
        counts = one.counts[g]
        total = max(int(np.sum(counts)), 1)
        rows.append(
            Row((group_name(g),), tuple(Cell(f"{int(c):,}", detail=f"{100 * c / total:.0f} %") for c in counts))
        )
    columns = ("", *(shorten(level, 30) for level in one.levels))
    return Table(f"{shorten(one.column)} by group", columns, (Group(tuple(rows)),), numbers=True, narrow=True)


def _median_table(one: Comparison, groups: list[int]) -> Table:
    rows = []
    for g in groups:
        curve = one.curves[g]
        cells = (
            ("0", "–", "–")
            if curve is None
            else (
                f"{curve.n_samples:,}",
                f"{curve.n_events:,}",
                "not reached" if math.isnan(curve.median) else number(curve.median),
            )
        )
        rows.append(Row((group_name(g),), cells))
    columns = ("", "samples", "events", "median survival")
    return Table(f"{shorten(one.column)} by group", columns, (Group(tuple(rows)),), numbers=True, narrow=True)
