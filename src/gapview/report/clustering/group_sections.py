"""Sections on the groups: sizes, confidence, features, and covariates."""

from __future__ import annotations

import math
from typing import Any

from ...trust import FeatureEffect
from ...utils.messages import counted, joined, percent
from ...utils.types import Array
from ..blocks import Cell, Details, Group, Items, Row, Section, Table, Text, drawing, present_blocks, simple_table
from .covariates import Comparison, Covariates, Curve, Quartiles
from .figures import draw_groups, draw_survival
from .groups import CLEAR, DOUBTFUL, GroupFacts
from .summary import Summary
from .words import bare_p, comparison_sentence, feature_name, group_name, rounded, share, shorten, shown_groups, signed

# -- groups ------------------------------------------------------------------------------------------------------------


_MOST_DETAILED = 50  # groups and columns with details
_N_BRIEF = 3  # features in the overview


def group_section(summary: Summary) -> Section:
    """Return the section on size, confidence and features of the groups."""
    groups = shown_groups(summary)
    notes = [
        f"Confidence measures from 0 to 1 how clearly a sample belongs to its group; below {DOUBTFUL:g} the other "
        "groups together are more likely. It describes the groups in these data, not whether they are real."
    ]
    if len(groups) < len(summary.groups):
        notes.append(f"Only the {len(groups)} largest of {len(summary.groups)} groups are listed.")
    rows = [_group_row(group, summary.n_samples) for group in groups]
    columns = ("", "samples", "share", "mean confidence", f"at least {CLEAR:g}", f"below {DOUBTFUL:g}")
    label = "Samples of every group by confidence; the same numbers as in the table."
    blocks = present_blocks(
        simple_table("Size and confidence", columns, rows, notes),
        drawing(draw_groups(summary), label, "Samples of every group by their confidence.", small=True),
        _feature_section(summary, groups) if len(summary.groups) > 1 else None,
        None if summary.covariates is None else covariate_section(summary.covariates, summary),
    )
    return Section("The groups", blocks)


def _group_row(group: GroupFacts, n_samples: int) -> tuple[Cell | str, ...]:
    doubtful = Cell(f"{group.n_doubtful:,}", tone="down" if group.n_doubtful else "plain")
    shown = (f"{group.n_samples:,}", percent(group.n_samples / n_samples), share(group.confidence))
    return group_name(group.number), *shown, f"{group.n_clear:,}", doubtful


def _feature_section(summary: Summary, groups: list[GroupFacts]) -> Section:
    named = [shorten(view.name) for view in summary.views]
    rows = [(group_name(group.number), *(_in_brief(group, view.name) for view in summary.views)) for group in groups]
    text = (
        "Features whose mean in the group differs most from their mean in all other samples that have the view, in "
        "standard deviations (Hedges’ g): + above the others, − below. 0.2 is commonly called small, 0.5 medium, 0.8 "
        "large. The groups were computed from these features: the numbers describe the groups, they are no evidence."
    )
    table = simple_table("What sets each group apart in each view", ("", *named), rows, numbers=False)
    return Section("What sets each group apart", present_blocks(Text(text), table, _means(groups)))


def _means(groups: list[GroupFacts]) -> Details | None:
    """Return the means of the features of every group, hidden until they are opened."""
    largest = sorted(groups, key=lambda group: -group.n_samples)[:_MOST_DETAILED]
    parts = tuple(
        Group(tuple(_feature_row(effect) for effect in group.features), group_name(group.number).capitalize())
        for group in groups
        if group in largest and group.features
    )
    if not parts:
        return None
    notes = (f"Only those of the {len(largest)} largest groups.",) if len(largest) < len(groups) else ()
    columns = ("view", "feature", "effect", "mean in the group", "mean of all others")
    table = Table("What sets the groups apart, with means", columns, parts, notes=notes, numbers=True, narrow=True)
    return Details("More features, with their means", (table,))


def _in_brief(group: GroupFacts, view: str) -> str:
    strongest = [effect for effect in group.features if effect.view == view][:_N_BRIEF]
    return (
        joined([f"{feature_name(effect, 40)} {signed(effect.effect)}" for effect in strongest]) or "nothing stands out"
    )


def _feature_row(effect: FeatureEffect) -> Row:
    means = (rounded(effect.mean_inside), rounded(effect.mean_outside))
    return Row((shorten(effect.view, 30), feature_name(effect, 40)), (signed(effect.effect), *means))


# -- covariates --------------------------------------------------------------------------------------------------------


_FIRM = 0.05
_TESTS = {"numbers": "Kruskal-Wallis", "categories": "chi-square", "survival": "log-rank"}


def covariate_section(covariates: Covariates, summary: Summary) -> Section:
    """Return the section on the comparison of the groups in every covariate."""
    ordered = sorted(covariates.comparisons, key=lambda one: one.p_value)
    items = [(shorten(name), f"left out: {reason}.") for name, reason in covariates.left_out[:_MOST_DETAILED]]
    n_more = len(covariates.left_out) - len(items)
    blocks = present_blocks(
        *(Text(text) for text in _covariate_words(covariates, summary)),
        _covariate_table(ordered) if ordered else None,
        *(_covariate_details(one, summary) for one in ordered[:_MOST_DETAILED]),
        Items((*items, *([f"and {n_more} more."] if n_more else []))) if items else None,
    )
    return Section("Covariates of the samples", blocks)


def _covariate_words(covariates: Covariates, summary: Summary) -> list[str]:
    matched = f"The table has rows for {covariates.n_matched:,} of the {counted(summary.n_samples, 'sample')}"
    unknown = f"; {counted(covariates.n_unknown, 'row')} of it belong to other samples" if covariates.n_unknown else ""
    n_tests = len(covariates.comparisons)
    if not n_tests:
        return [f"{matched}{unknown}. None of its columns can be compared between the groups."]
    firm = [shorten(one.column) for one in covariates.comparisons if one.adjusted < _FIRM]
    found = f"After Holm’s correction for {counted(n_tests, 'test')}, the groups differ "
    if firm:
        found += f"in {joined(firm[:12])}" + (f" and {len(firm) - 12} more." if len(firm) > 12 else ".")
    else:
        found += "significantly in none of the columns."
    limits = (
        "The null hypothesis of a test is that a column is the same in all groups. With many columns, some differ by "
        "chance: use the corrected p-values. The tests assume that the columns were not among the features from which "
        "the groups were computed, and adjust for no other column: groups that differ in age differ in everything that "
        "depends on age. A difference that is not significant may still exist."
    )
    return [f"{matched}{unknown}.", found, limits]


def _covariate_table(ordered: list[Comparison]) -> Table:
    rows = tuple(Row((shorten(one.column), f"{one.kind}: {_TESTS[one.kind]}"), _test_cells(one)) for one in ordered)
    notes = (
        "Strength: ε² of the ranks for numbers, Cramér’s V for categories, both from 0 to 1. A star: below 0.05 after "
        "Holm’s correction.",
    )
    columns = ("column", "test", "samples", "strength", "p", "p corrected")
    caption = "Differences between the groups in every column"
    return Table(caption, columns, (Group(rows),), notes=notes, numbers=True, narrow=True)


def _test_cells(one: Comparison) -> tuple[Cell | str, ...]:
    firm = one.adjusted < _FIRM
    corrected = Cell(bare_p(one.adjusted), tone="up" if firm else "plain", best=firm)
    return f"{one.n_samples:,}", share(one.strength), bare_p(one.p_value), corrected


def _covariate_details(one: Comparison, summary: Summary) -> Details:
    kinds: dict[str, tuple[tuple[str, ...], Any, Any]] = {
        "numbers": (("samples", "median", "middle half"), one.quartiles, _quartile_cells),
        "categories": (tuple(shorten(level, 30) for level in one.levels), one.counts, _count_cells),
        "survival": (("samples", "events", "median survival"), one.curves, _median_cells),
    }
    columns, values, cells = kinds[one.kind]
    rows = []
    for number in (group.number for group in shown_groups(summary)):
        found = values[number]
        rows.append((group_name(number), *(("0", "–", "–") if found is None else cells(found))))
    name, label = shorten(one.column), "Curves of survival by group; medians are in the table."
    blocks = present_blocks(
        Text(comparison_sentence(one)),
        drawing(draw_survival(one), label, "Survival by Kaplan and Meier.", small=True),
        simple_table(f"{name} by group", ("", *columns), rows),
    )
    return Details(name, blocks)


def _quartile_cells(found: Quartiles) -> tuple[str, ...]:
    return f"{found.n_samples:,}", rounded(found.median), f"{rounded(found.low)} to {rounded(found.high)}"


def _count_cells(counts: Array) -> tuple[Cell, ...]:
    total = max(int(counts.sum()), 1)
    return tuple(Cell(f"{count:,}", detail=f"{100 * count / total:.0f} %") for count in counts.tolist())


def _median_cells(curve: Curve) -> tuple[str, ...]:
    median = "not reached" if math.isnan(curve.median) else rounded(curve.median)
    return f"{curve.n_samples:,}", f"{curve.n_events:,}", median
