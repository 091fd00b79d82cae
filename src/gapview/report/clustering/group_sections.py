"""Sections on the groups: sizes, confidence, features, and covariates."""

from __future__ import annotations

import math

import numpy as np

from ...trust import FeatureEffect
from ...utils.messages import counted, joined, percent
from ..blocks import Block, Cell, Details, Drawing, Group, Items, Row, Section, Table, Text, number_table
from .covariates import Comparison, Covariates
from .figures import draw_groups, draw_survival
from .groups import CLEAR, DOUBTFUL, GroupFacts
from .summary import Summary
from .words import bare_p, comparison_sentence, group_name, rounded, share, shorten, shown_groups

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
    rows = tuple(Row((group_name(group.number),), _group_cells(group, summary.n_samples)) for group in groups)
    columns = ("", "samples", "share", "mean confidence", f"at least {CLEAR:g}", f"below {DOUBTFUL:g}")
    blocks: list[Block] = [number_table("Size and confidence", columns, rows, notes)]
    drawn = draw_groups(summary)
    if drawn is not None:
        label = "Samples of every group by confidence; the same numbers as in the table."
        blocks.append(Drawing(drawn, label, "Samples of every group by their confidence.", small=True))
    blocks += _apart(summary, groups)
    if summary.covariates is not None:
        blocks.append(covariate_section(summary.covariates, summary))
    return Section("The groups", tuple(blocks))


def _group_cells(group: GroupFacts, n_samples: int) -> tuple[Cell | str, ...]:
    doubtful = Cell(f"{group.n_doubtful:,}", tone="down" if group.n_doubtful else "plain")
    shown = (f"{group.n_samples:,}", percent(group.n_samples / n_samples), share(group.confidence))
    return *shown, f"{group.n_clear:,}", doubtful


def _apart(summary: Summary, groups: list[GroupFacts]) -> list[Block]:
    if len(summary.groups) < 2:
        return []
    named = [shorten(view.name) for view in summary.views]
    rows = tuple(
        Row((group_name(group.number),), tuple(_in_brief(group, view.name) for view in summary.views))
        for group in groups
    )
    text = (
        "Features whose mean in the group differs most from their mean in all other samples that have the view, in "
        "standard deviations (Hedges’ g): + above the others, − below. 0.2 is commonly called small, 0.5 medium, 0.8 "
        "large. The groups were computed from these features: the numbers describe the groups, they are no evidence."
    )
    table = Table("What sets each group apart in each view", ("", *named), (Group(rows),))
    return [Section("What sets each group apart", (Text(text), table, *_means(groups)))]


def _means(groups: list[GroupFacts]) -> tuple[Block, ...]:
    """Return the means of the features of every group, hidden until they are opened."""
    largest = sorted(groups, key=lambda group: -group.n_samples)[:_MOST_DETAILED]
    parts = tuple(
        Group(tuple(_feature_row(effect) for effect in group.features), group_name(group.number).capitalize())
        for group in groups
        if group in largest and group.features
    )
    if not parts:
        return ()
    notes = (f"Only those of the {len(largest)} largest groups.",) if len(largest) < len(groups) else ()
    columns = ("view", "feature", "effect", "mean in the group", "mean of all others")
    table = Table("What sets the groups apart, with means", columns, parts, notes=notes, numbers=True, narrow=True)
    return (Details("More features, with their means", (table,)),)


def _in_brief(group: GroupFacts, view: str) -> str:
    strongest = [effect for effect in group.features if effect.view == view][:_N_BRIEF]
    return joined([f"{_feature(effect)} {_signed(effect.effect)}" for effect in strongest]) or "nothing stands out"


def _feature(effect: FeatureEffect) -> str:
    return shorten(str(effect.feature), 40) if isinstance(effect.feature, str) else f"feature {effect.feature}"


def _signed(value: float) -> str:
    text = "∞" if math.isinf(value) else f"{abs(value):.1f}"
    return ("+" if value > 0 else "−") + text


def _feature_row(effect: FeatureEffect) -> Row:
    means = (rounded(effect.mean_inside), rounded(effect.mean_outside))
    return Row((shorten(effect.view, 30), _feature(effect)), (_signed(effect.effect), *means))


# -- covariates --------------------------------------------------------------------------------------------------------


_FIRM = 0.05
_KINDS = {
    "numbers": "numbers: Kruskal-Wallis",
    "categories": "categories: chi-square",
    "survival": "survival: log-rank",
}


def covariate_section(covariates: Covariates, summary: Summary) -> Section:
    """Return the section on the comparison of the groups in every covariate."""
    blocks: list[Block] = [Text(text) for text in _covariate_words(covariates, summary)]
    if covariates.comparisons:
        ordered = sorted(covariates.comparisons, key=lambda one: one.p_value)
        blocks.append(_covariate_table(ordered))
        blocks += [_covariate_details(one, summary) for one in ordered[:_MOST_DETAILED]]
    if covariates.left_out:
        items = tuple((shorten(name), f"left out: {reason}.") for name, reason in covariates.left_out[:_MOST_DETAILED])
        n_more = len(covariates.left_out) - len(items)
        blocks += [Items((*items, f"and {n_more} more.") if n_more else items)]
    return Section("Covariates of the samples", tuple(blocks))


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
    return number_table("Differences between the groups in every column", columns, rows, notes)


def _covariate_details(one: Comparison, summary: Summary) -> Details:
    groups = [group.number for group in shown_groups(summary)]
    blocks: list[Block] = [Text(comparison_sentence(one))]
    drawn = draw_survival(one) if one.kind == "survival" else None
    if drawn is not None:
        caption = "Survival by Kaplan and Meier."
        blocks.append(Drawing(drawn, "Curves of survival by group; medians are in the table.", caption, small=True))
    cells = {"numbers": _quartile_cells, "categories": _count_cells, "survival": _median_cells}[one.kind]
    columns = {
        "numbers": ("samples", "median", "middle half"),
        "categories": tuple(shorten(level, 30) for level in one.levels),
        "survival": ("samples", "events", "median survival"),
    }
    rows = [Row((group_name(g),), cells(one, g)) for g in groups]
    return Details(
        shorten(one.column),
        (*blocks, number_table(f"{shorten(one.column)} by group", ("", *columns[one.kind]), rows)),
    )


def _quartile_cells(one: Comparison, group: int) -> tuple[Cell | str, ...]:
    found = one.quartiles[group]
    if found is None:
        return "0", "–", "–"
    return f"{found.n_samples:,}", rounded(found.median), f"{rounded(found.low)} to {rounded(found.high)}"


def _count_cells(one: Comparison, group: int) -> tuple[Cell | str, ...]:
    counts = one.counts[group]
    total = max(int(np.sum(counts)), 1)
    return tuple(Cell(f"{int(count):,}", detail=f"{100 * count / total:.0f} %") for count in counts)


def _median_cells(one: Comparison, group: int) -> tuple[Cell | str, ...]:
    curve = one.curves[group]
    if curve is None:
        return "0", "–", "–"
    median = "not reached" if math.isnan(curve.median) else rounded(curve.median)
    return f"{curve.n_samples:,}", f"{curve.n_events:,}", median
