"""Sections on the groups: sizes, confidence, features, covariates, and the map of the samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...trust import FeatureEffect
from ...utils.messages import counted, joined, percent, shorten
from ...utils.types import Array
from ..drawing import MOST_BARS, MOST_PATTERNS, SMALL_WIDTH, group_sign
from ..page import Cell, Details, Drawing, Facet, Group, Items, Row, Scatter, Section, Table, Text, simple_table
from ..style import PAPER, SERIES, new_figure
from .covariates import Comparison, Covariates, Curve, Quartiles
from .samples import CLEAR, DOUBTFUL, SIGNIFICANT, GroupFacts
from .summary import Summary, bare_p, feature_name, group_name, p_value, rounded, share, signed, strength_word

# -- groups ------------------------------------------------------------------------------------------------------------


_MOST_DETAILED = 50  # groups and columns with details
_N_BRIEF = 3  # features in the overview


def group_section(summary: Summary) -> Section:
    """Return the section on size, confidence and features of the groups."""
    groups = summary.shown_groups()
    notes = [
        f"Confidence measures from 0 to 1 how clearly a sample belongs to its group; below {DOUBTFUL:g} the other "
        "groups together are more likely. It describes the groups in these data, not whether they are real."
    ]
    if len(groups) < len(summary.groups):
        notes.append(f"Only the {len(groups)} largest of {len(summary.groups)} groups are listed.")
    rows = [_group_row(group, summary.n_samples) for group in groups]
    columns = ("", "samples", "share", "mean confidence", f"at least {CLEAR:g}", f"below {DOUBTFUL:g}")
    return Section.of(
        "The groups",
        simple_table("Size and confidence", columns, rows, notes),
        _draw_groups(summary),
        _feature_section(summary, groups) if len(summary.groups) > 1 else None,
        None if summary.covariates is None else covariate_section(summary.covariates, summary),
    )


def _draw_groups(summary: Summary) -> Drawing | None:
    """Draw the number of samples of every group by confidence."""
    n_groups = len(summary.groups)
    if not 2 <= n_groups <= MOST_BARS:
        return None
    with new_figure(SMALL_WIDTH, 0.9 + 0.24 * n_groups) as figure:
        draw_sizes(figure.subplots(), summary.labels, summary.confidence, n_groups)
        figure.legend(loc="outside lower center", ncols=3, handlelength=1.6)
    label = "Samples of every group by confidence; the same numbers as in the table."
    return Drawing(figure, label, "Samples of every group by their confidence.", small=True)


def draw_sizes(axes: Any, labels: Array, confidence: Array | None, n_groups: int) -> None:
    """Draw a stacked bar for every group: its number of samples, by confidence if it is known."""
    if confidence is None:
        kinds = {"samples": np.ones(len(labels), dtype=bool)}
    else:
        kinds = {
            f"at least {CLEAR:g}": confidence >= CLEAR,
            f"{DOUBTFUL:g} to {CLEAR:g}": (confidence >= DOUBTFUL) & (confidence < CLEAR),
            f"below {DOUBTFUL:g}": confidence < DOUBTFUL,
        }
    left = np.zeros(n_groups)
    looks = ((SERIES[5].color, ""), (SERIES[1].color, "////"), (SERIES[3].color, "xxxx"))
    for (label, chosen), (color, hatch) in zip(kinds.items(), looks, strict=False):
        values = np.bincount(labels[chosen], minlength=n_groups)
        axes.barh(range(n_groups), values, left=left, height=0.7, color=color, hatch=hatch, label=label, ec=PAPER)
        left = left + values
    axes.set_yticks(range(n_groups), [f"group {g}" for g in range(n_groups)])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("samples" if confidence is None else "samples, by confidence")


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
    return Section.of("What sets each group apart", Text(text), table, _means(groups))


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
    named = [f"{feature_name(effect, 40)} {signed(effect.effect)}" for effect in strongest]
    return joined(named) or "nothing stands out"


def _feature_row(effect: FeatureEffect) -> Row:
    means = (rounded(effect.mean_inside), rounded(effect.mean_outside))
    return Row((shorten(effect.view, 30), feature_name(effect, 40)), (signed(effect.effect), *means))


# -- covariates --------------------------------------------------------------------------------------------------------


_MOST_CURVES = 10
_TESTS = {"numbers": "Kruskal-Wallis", "categories": "chi-square", "survival": "log-rank"}


def covariate_section(covariates: Covariates, summary: Summary) -> Section:
    """Return the section on the comparison of the groups in every covariate."""
    ordered = sorted(covariates.comparisons, key=lambda one: one.p_value)
    items = [(shorten(name), f"left out: {reason}.") for name, reason in covariates.left_out[:_MOST_DETAILED]]
    n_more = len(covariates.left_out) - len(items)
    return Section.of(
        "Covariates of the samples",
        *(Text(text) for text in _covariate_words(covariates, summary)),
        _covariate_table(ordered) if ordered else None,
        *(_covariate_details(one, summary) for one in ordered[:_MOST_DETAILED]),
        Items((*items, *([f"and {n_more} more."] if n_more else []))) if items else None,
    )


def _covariate_words(covariates: Covariates, summary: Summary) -> list[str]:
    matched = f"The table has rows for {covariates.n_matched:,} of the {counted(summary.n_samples, 'sample')}"
    unknown = f"; {counted(covariates.n_unknown, 'row')} of it belong to other samples" if covariates.n_unknown else ""
    n_tests = len(covariates.comparisons)
    if not n_tests:
        return [f"{matched}{unknown}. None of its columns can be compared between the groups."]
    firm = [shorten(one.column) for one in covariates.comparisons if one.adjusted < SIGNIFICANT]
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
    rows = []
    for one in ordered:
        firm = one.adjusted < SIGNIFICANT
        corrected = Cell(bare_p(one.adjusted), tone="up" if firm else "plain", best=firm)
        cells = (f"{one.n_samples:,}", share(one.strength), bare_p(one.p_value), corrected)
        rows.append(Row((shorten(one.column), f"{one.kind}: {_TESTS[one.kind]}"), cells))
    notes = (
        "Strength: ε² of the ranks for numbers, Cramér’s V for categories, both from 0 to 1. A star: below 0.05 after "
        "Holm’s correction.",
    )
    columns = ("column", "test", "samples", "strength", "p", "p corrected")
    caption = "Differences between the groups in every column"
    return Table(caption, columns, (Group(tuple(rows)),), notes=notes, numbers=True, narrow=True)


def _covariate_details(one: Comparison, summary: Summary) -> Details:
    kinds: dict[str, tuple[tuple[str, ...], Any, Any]] = {
        "numbers": (("samples", "median", "middle half"), one.quartiles, _quartile_cells),
        "categories": (tuple(shorten(level, 30) for level in one.levels), one.counts, _count_cells),
        "survival": (("samples", "events", "median survival"), one.curves, _median_cells),
    }
    columns, values, cells = kinds[one.kind]
    rows = []
    for number in (group.number for group in summary.shown_groups()):
        found = values[number]
        rows.append((group_name(number), *(("0", "–", "–") if found is None else cells(found))))
    name = shorten(one.column)
    table = simple_table(f"{name} by group", ("", *columns), rows)
    return Details(name, (Text(_comparison_sentence(one)), *_draw_survival(one), table))


def _comparison_sentence(one: Comparison) -> str:
    """Return a sentence about the differences between the groups in one column."""
    figures = f"{p_value(one.p_value)}, {p_value(one.adjusted)} after Holm’s correction"
    if one.kind == "survival":
        found, word = f"log-rank test, chi-square {rounded(one.statistic)}", "significantly"
    elif one.kind == "numbers":
        found = f"Kruskal-Wallis test, ε² {share(one.strength)}"
        word = strength_word(one.strength, (0.01, 0.08, 0.26))
    else:
        how = f"chi-square by {one.n_tables} random tables" if one.n_tables else "chi-square test"
        found, word = f"{how}, Cramér’s V {share(one.strength)}", strength_word(one.strength)
    related = f"differ {word}" if one.adjusted < SIGNIFICANT else "do not differ significantly"
    return f"The groups {related}: {found}; {figures}; {counted(one.n_samples, 'sample')}."


def _draw_survival(one: Comparison) -> tuple[Drawing, ...]:
    """Draw the Kaplan-Meier curve of every group; nothing if there are too few or too many."""
    curves = [(g, curve) for g, curve in enumerate(one.curves) if curve is not None]
    if not 2 <= len(curves) <= _MOST_CURVES:
        return ()
    styles: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (7, 1.5, 1.5, 1.5)))
    rows = math.ceil(len(curves) / 4)
    with new_figure(SMALL_WIDTH, 2.8 + 0.2 * rows) as figure:
        axes: Any = figure.subplots()
        for g, curve in curves:
            times, shares = np.concatenate([[0.0], curve.times]), np.concatenate([[1.0], curve.share])
            line = {"color": group_sign(g).color, "linestyle": styles[g % len(styles)]}
            axes.step(times, shares, where="post", label=f"group {g}", **line)
        axes.set_xlim(left=0)
        time = shorten(one.column.split(" / ")[0], 40)
        axes.set(xlabel=time, ylabel="share without the event", ylim=(0, 1.03))
        figure.legend(loc="outside lower center", ncols=min(4, len(curves)))
    label = "Curves of survival by group; medians are in the table."
    return (Drawing(figure, label, "Survival by Kaplan and Meier.", small=True),)


def _quartile_cells(found: Quartiles) -> tuple[str, ...]:
    return f"{found.n_samples:,}", rounded(found.median), f"{rounded(found.low)} to {rounded(found.high)}"


def _count_cells(counts: Array) -> tuple[Cell, ...]:
    total = max(int(counts.sum()), 1)
    return tuple(Cell(f"{count:,}", detail=f"{100 * count / total:.0f} %") for count in counts.tolist())


def _median_cells(curve: Curve) -> tuple[str, ...]:
    median = "not reached" if math.isnan(curve.median) else rounded(curve.median)
    return f"{curve.n_samples:,}", f"{curve.n_events:,}", median


# -- map ---------------------------------------------------------------------------------------------------------------


_MOST_LISTED = 60  # groups by which the map can be filtered one by one
_LONGEST_ID = 60


def map_section(summary: Summary) -> Section:
    """Return the section with the map of the samples."""
    shown, gaps, n_groups = summary.sample_map, summary.gaps, len(summary.groups)
    samples = shown.samples
    groups = Facet(
        "Group",
        tuple(group_name(g) for g in range(n_groups)),
        summary.labels[samples].tolist(),
        min(n_groups, _MOST_LISTED),
        tuple(group.n_samples for group in summary.groups),
    )
    patterns = Facet(
        "Views present",
        tuple(summary.pattern_name(number) for number in range(len(gaps.patterns))),
        gaps.codes[samples].tolist(),
        min(len(gaps.patterns), MOST_PATTERNS),
        tuple(pattern.n_samples for pattern in gaps.patterns),
    )
    ids = summary.sample_ids
    scatter = Scatter(
        f"Map of {counted(len(samples), 'sample')} in {n_groups} groups",
        _map_caption(summary),
        "sample",
        shown.x.tolist(),
        shown.y.tolist(),
        (groups, patterns),
        tuple(group_sign(g) for g in range(n_groups)),
        tuple(str(g) for g in range(n_groups)),
        (("Confidence", [share(float(value)) for value in summary.confidence[samples]]),),
        None if ids is None else ("Sample", [shorten(ids[i], _LONGEST_ID) for i in samples]),
    )
    remark = (
        f"The map shows {len(samples):,} of the {summary.n_samples:,} samples, drawn at random in proportion from "
        "every group and every pattern of missing views. The counts beside the filters and all other sections are "
        "about all samples."
    )
    subset = len(samples) < summary.n_samples
    return Section.of("Map of the samples", Text(remark) if subset else None, scatter)


def _map_caption(summary: Summary) -> str:
    shown = summary.sample_map
    if shown.method == "PCA":
        how = "The two directions in which the latent points differ most (PCA)."
    else:
        how = (
            "Latent points projected by t-SNE: samples that are near each other here are near in the latent space. "
            "Sizes of clouds and distances between them have no meaning."
        )
        if shown.n_landmarks < len(shown.samples):
            how += (
                f" t-SNE has placed {shown.n_landmarks:,} samples; the positions of the others are interpolated from "
                "the nearest of them in the latent space."
            )
    return f"{how} Numbers are in the centre of their group. Next and previous follow increasing confidence."
