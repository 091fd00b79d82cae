"""Section on the covariates of the samples: a test for every column, and its values in every group."""

from __future__ import annotations

import math
from typing import Any

from ...trust import GroupSurvival
from ...trust.association import SIGNIFICANT
from ...trust.hazards import CoxModel, Hazards, has_lifelines
from ...trust.survival import Curve
from ...utils.messages import counted, joined, shorten
from ...utils.types import Array
from ..drawing import SMALL_WIDTH, draw_survival
from ..page import Beside, Block, Cell, Details, Drawing, Group, Items, Row, Section, Table, Text, simple_table
from ..style import new_figure
from .covariates import Comparison, Covariates, Quartiles
from .summary import MOST_DETAILED, Summary, bare_p, group_name, p_value, rounded, share

_MOST_CURVES = 10
_TESTS = {
    "numbers": "Kruskal–Wallis H",
    "ordered": "Kruskal–Wallis H of ranks",
    "categories": "χ² of the contingency table",
    "survival": "log-rank χ²",
}


def covariate_section(covariates: Covariates, summary: Summary) -> Section:
    """Return the section on the comparison of the groups in every covariate."""
    ordered = sorted(covariates.comparisons, key=lambda one: one.p_value)
    items = [(shorten(name), f"left out: {reason}.") for name, reason in covariates.left_out[:MOST_DETAILED]]
    n_more = len(covariates.left_out) - len(items)
    return Section.of(
        "Covariates of the samples",
        *(Text(text) for text in _covariate_words(covariates, summary)),
        _covariate_table(ordered) if ordered else None,
        _covariate_details([one for one in ordered[:MOST_DETAILED] if one.survival is None], summary),
        *(_survival_section(one) for one in ordered[:MOST_DETAILED] if one.survival is not None),
        Items((*items, *([f"and {n_more} more."] if n_more else []))) if items else None,
    )


def _covariate_words(covariates: Covariates, summary: Summary) -> list[str]:
    matched = f"The table has rows for {covariates.n_matched:,} of the {counted(summary.n_samples, 'sample')}"
    unknown = f"; {counted(covariates.n_unknown, 'row')} of it belong to other samples" if covariates.n_unknown else ""
    if not covariates.comparisons:
        return [f"{matched}{unknown}. {covariates.sentence}"]
    limits = (
        "The null hypothesis of each test is that a column has the same distribution in all groups. A column that is "
        "among the features, or computed from them, differs by construction: the groups were computed from the same "
        "data. An association is no cause, and these tests do not adjust for other columns. Use the adjusted "
        "p-values, since some of many columns differ by chance. Tests with few samples or events in a group detect "
        "strong differences only."
    )
    return [f"{matched}{unknown}.", covariates.sentence, limits]


def _covariate_table(ordered: list[Comparison]) -> Table:
    rows = []
    for one in ordered:
        figures = (f"{one.degrees}", bare_p(one.p_value), _firm(one.adjusted), share(one.strength))
        rows.append(
            Row((shorten(one.column), _TESTS[one.kind]), (f"{one.n_samples:,}", rounded(one.statistic), *figures))
        )
    notes = (
        "Effect size: ε² = H / (n − 1) for numbers and ordered categories, Cramér’s V with bias correction for other "
        "categories, both from 0 to 1; none for survival. Adjusted p: by Holm for the number of columns; * below 0.05.",
    )
    columns = ("column", "statistic", "samples", "value", "df", "p", "adjusted p", "effect size")
    caption = "Differences between the groups in every column"
    return Table(caption, columns, (Group(tuple(rows)),), notes=notes, numbers=True, narrow=True)


def _covariate_details(compared: list[Comparison], summary: Summary) -> Details | None:
    """Return the values of every column in every group, hidden until they are opened."""
    blocks = [block for one in compared for block in _values_by_group(one, summary)]
    return Details("Values of every column by group", tuple(blocks)) if blocks else None


def _values_by_group(one: Comparison, summary: Summary) -> tuple[Text, Table]:
    counts = (tuple(shorten(level, 30) for level in one.levels), one.counts, _count_cells)
    kinds: dict[str, tuple[tuple[str, ...], Any, Any]] = {
        "numbers": (("samples", "median", "interquartile range"), one.quartiles, _quartile_cells),
        "ordered": counts,
        "categories": counts,
    }
    columns, values, cells = kinds[one.kind]
    rows = []
    for number in (group.number for group in summary.shown_groups()):
        found = values[number]
        rows.append((group_name(number), *(("0", "–", "–") if found is None else cells(found))))
    name = shorten(one.column)
    return Text(_comparison_sentence(one)), simple_table(f"{name} by group", ("", *columns), rows)


def _comparison_sentence(one: Comparison) -> str:
    """Return the result of the test of one column, with the usual names of its figures."""
    tests = {
        "survival": ("Log-rank test", "χ²", ""),
        "numbers": ("Kruskal–Wallis test", "H", f", ε² = {share(one.strength)}"),
        "ordered": ("Kruskal–Wallis test of the ranks of the ordered values", "H", f", ε² = {share(one.strength)}"),
        "categories": ("χ² test", "χ²", f", Cramér’s V = {share(one.strength)}"),
    }
    test, symbol, strength = tests[one.kind]
    figures = f"{symbol} = {rounded(one.statistic)}, df = {one.degrees}, {p_value(one.p_value)}"
    figures += f" from {one.n_tables} random tables" if one.n_tables else ""
    figures += f", Holm-adjusted {p_value(one.adjusted)}{strength}"
    sizes = f"{counted(one.n_samples, 'sample')}"
    if one.survival is not None:
        sizes += f", {counted(one.survival.n_events, 'event')}"
    differ = "differ significantly" if one.adjusted < SIGNIFICANT else "do not differ significantly"
    return " ".join(filter(None, (f"{test}: {figures} ({sizes}). The groups {differ} at 5 %.", one.note)))


# -- survival ----------------------------------------------------------------------------------------------------------


def _survival_section(one: Comparison) -> Section:
    """Return the section on one outcome: curves, medians, tests of pairs and hazard ratios."""
    name, found = shorten(one.column), one.survival
    assert found is not None
    medians = simple_table(
        f"{name} by group",
        ("", "samples", "events", "median (Kaplan–Meier)", "95 % interval"),
        [(group_name(curve.group), *_median_cells(curve)) for curve in found.curves],
    )
    blocks = (*_draw_survival(name, found), medians, *_pair_table(found), *_hazard_blocks(found.hazards))
    return Section(f"Survival: {name}", (Text(_comparison_sentence(one)), Beside(blocks)))


def _draw_survival(name: str, found: GroupSurvival) -> tuple[Drawing, ...]:
    """Draw the Kaplan-Meier curve of every group; nothing if there are too few or too many."""
    curves = found.curves
    if not 2 <= len(curves) <= _MOST_CURVES:
        return ()
    with new_figure(SMALL_WIDTH, 3.2 + 0.2 * math.ceil(len(curves) / 4) + 0.155 * len(curves)) as figure:
        draw_survival(figure.subplots(), curves, shorten(name.split(" / ")[0], 40))
        figure.legend(loc="outside lower center", ncols=min(4, len(curves)))
    label = "Kaplan–Meier curve of every group, with numbers at risk; medians are in the table."
    caption = "Kaplan–Meier estimate of every group. Marks: censored samples; bands: pointwise 95 % intervals."
    return (Drawing(figure, label, caption, small=True),)


def _pair_table(found: GroupSurvival) -> tuple[Table, ...]:
    if len(found.pairs) < 2:  # the test of two groups is that of all
        return ()
    rows = [
        (f"{group_name(one.group)} and {one.other}", rounded(one.statistic), bare_p(one.p_value), _firm(one.adjusted))
        for one in sorted(found.pairs, key=lambda one: one.p_value)[:MOST_DETAILED]
    ]
    notes = ["Adjusted p: by Holm for the number of pairs; * below 0.05."]
    if len(found.pairs) > len(rows):
        notes.append(f"Only the {len(rows)} smallest p-values of {len(found.pairs)} pairs are listed.")
    return (simple_table("Log-rank tests of pairs of groups", ("", "χ²", "p", "adjusted p"), rows, notes),)


def _hazard_blocks(found: Hazards | None) -> tuple[Block, ...]:
    if found is None and has_lifelines():  # too many groups
        return ()
    if found is None:
        return (Text("Hazard ratios need the package lifelines: pip install 'gapview[survival]'", quiet=True),)
    models = [("Not adjusted", found.unadjusted), (f"Adjusted for {joined(found.covariates)}", found.adjusted)]
    groups = tuple(_hazard_group(title, model) for title, model in models if model is not None)
    notes = [f"Cox regression. Ratios of groups are against {group_name(found.reference)}; p: Wald test.", *found.notes]
    if not found.covariates:
        notes.insert(1, "Name covariates to adjust for with --adjust, or adjust= in Python.")
    if not groups:
        return (Text(" ".join(notes[1:]), quiet=True),)
    columns = ("", "hazard ratio", "95 % interval", "p")
    return (Table("Hazard ratios", columns, groups, notes=tuple(notes), numbers=True, narrow=True),)


def _hazard_group(title: str, model: CoxModel) -> Group:
    rows = tuple(
        Row(
            (shorten(one.name, 40),),
            (rounded(one.ratio), f"{rounded(one.low)} to {rounded(one.high)}", bare_p(one.p_value)),
        )
        for one in model.ratios
    )
    test = (
        f"{counted(model.n_samples, 'sample')}, {counted(model.n_events, 'event')}; likelihood-ratio test of the "
        f"groups: χ² = {rounded(model.statistic)}, df = {model.degrees}, {p_value(model.p_value)}"
    )
    return Group(rows, title, test)


def _firm(adjusted: float) -> Cell:
    is_firm = adjusted < SIGNIFICANT
    return Cell(bare_p(adjusted), tone="up" if is_firm else "plain", mark="*" if is_firm else "")


# -- cells -------------------------------------------------------------------------------------------------------------


def _quartile_cells(found: Quartiles) -> tuple[str, ...]:
    return f"{found.n_samples:,}", rounded(found.median), f"{rounded(found.low)} to {rounded(found.high)}"


def _count_cells(counts: Array) -> tuple[Cell, ...]:
    total = max(int(counts.sum()), 1)
    return tuple(Cell(f"{count:,}", detail=f"{100 * count / total:.0f} %") for count in counts.tolist())


def _median_cells(curve: Curve) -> tuple[str, ...]:
    reached, *bounds = (
        "not reached" if math.isnan(value) else rounded(value)
        for value in (curve.median, curve.median_low, curve.median_high)
    )
    return f"{curve.n_samples:,}", f"{curve.n_events:,}", reached, " to ".join(bounds)
