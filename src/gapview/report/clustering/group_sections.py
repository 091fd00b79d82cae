"""The groups: sizes and confidence as a table, and the section on their features with the heat map."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ...trust import Assessment, FeatureEffect
from ...utils.messages import joined, percent, shorten
from ...utils.types import Array
from ..coloring import Coloring
from ..drawing import MOST_BARS, SMALL_WIDTH
from ..heatmap import heat_map, view_bars
from ..page import Cell, Details, Drawing, Group, Row, Section, Table, Text, simple_table
from ..style import PAPER, SERIES, new_figure
from .features import in_order
from .map_section import codes_of, levels_of
from .samples import CLEAR, DOUBTFUL, GroupFacts
from .summary import MOST_DETAILED, Summary, feature_name, group_name, rounded, share, signed

# -- groups ------------------------------------------------------------------------------------------------------------


_N_BRIEF = 3  # features in the overview
_MOST_BRIEF = 12  # groups up to which it is not folded away
_MOST_COLUMNS = 1000  # samples in the heat map: more than it has pixels
_MOST_COVARIATE_BARS = 5
_MOST_LEVELS = 8  # of a covariate above it


def size_table(summary: Summary) -> Details:
    """Return size and confidence of the groups as a table and a figure, hidden until they are opened."""
    groups = summary.shown_groups()
    notes = [
        "Confidence estimates the probability that a sample is kept: in a fit to 80 % of the samples and features, it "
        "is in the same group, and the group is found again (Jaccard similarity of at least 0.5). It does not show "
        "whether the group matters."
        if summary.is_calibrated
        else f"Confidence measures from 0 to 1 how clearly a sample belongs to its group; below {DOUBTFUL:g} the other "
        "groups together are more likely. It describes the groups in these data, not whether they are real."
    ]
    if len(groups) < len(summary.groups):
        notes.append(f"Only the {len(groups)} largest of {len(summary.groups)} groups are listed.")
    rows = [_group_row(group, summary.n_samples) for group in groups]
    columns = ["", "samples", "share", "mean confidence", f"at least {CLEAR:g}", f"below {DOUBTFUL:g}"]
    found = summary.assessment
    if found is not None and len(found.group_stability) == len(summary.groups) > 1:
        columns.append("stability")
        rows = [(*row, _stability_cell(found, group.number)) for row, group in zip(rows, groups, strict=True)]
        notes.append(
            "Stability: mean Jaccard similarity of the group with the most similar group found in resamples of 80 % of "
            f"the samples. Of groups of null data, 95 % are below {share(found.null_group_stability)}. Marked: below "
            "0.75 and not more stable than groups of null data (p > 0.05)."
        )
    drawing = _draw_groups(summary)
    table = simple_table("Size and confidence", columns, rows, notes)
    return Details("Sizes and confidence of the groups as a table", (table, *((drawing,) if drawing else ())))


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


def _stability_cell(found: Assessment, group: int) -> Cell:
    is_unstable = group in found.unstable_groups
    return Cell(share(float(found.group_stability[group])), tone="down" if is_unstable else "plain")


def feature_section(summary: Summary) -> Section:
    """Return the section on what sets each group apart: heat map, strongest features, and means."""
    groups = summary.shown_groups()
    named = [shorten(view.name) for view in summary.views]
    rows = [(group_name(group.number), *(_in_brief(group, view.name) for view in summary.views)) for group in groups]
    text = (
        "Features whose mean in the group differs most from their mean in all other samples that have the view, in "
        "standard deviations (Hedges’ g): + above the others, − below. 0.2 is commonly called small, 0.5 medium, 0.8 "
        "large. The groups were computed from these features: the numbers describe the groups, and are no "
        "evidence that they exist."
    )
    table = simple_table("What sets each group apart in each view", ("", *named), rows, numbers=False)
    brief = table if len(groups) <= _MOST_BRIEF else Details("The strongest features of every group", (table,))
    return Section.of("What sets each group apart", _heat_map(summary), Text(text), brief, _means(groups))


def _heat_map(summary: Summary) -> Drawing | None:
    """Draw the strongest features in the samples in order of group, or in the groups if samples are not identified."""
    found, shown = summary.features, summary.sample_map.samples
    if not found.names:
        return None
    values, labels = found.standardised, summary.labels[shown]
    bars: list[Coloring] = []
    if summary.sample_ids is None:
        groups = np.unique(labels)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # groups without the view
            values = np.stack([np.nanmean(values[:, labels == g], axis=1) for g in groups], axis=1)
        what = "Means of the groups"
    else:
        columns = in_order(labels, summary.confidence[shown], _MOST_COLUMNS)
        values, groups = values[:, columns], labels[columns]
        bars = [bar.at(shown[columns]) for bar in _bars(summary)]
        part = f"{len(columns):,} of the " if len(columns) < summary.n_samples else ""
        what = f"{part}{summary.n_samples:,} samples, one column each, in order of group and confidence"
        what += "; the bars above show groups, missing views, confidence and covariates"
    parts = [summary.views[view].name for view in found.views]
    caption = (
        f"{what}. The features with the largest effects in any group and view: red above the mean of the feature, blue "
        "below, grey where the view is missing."
    )
    label = "Heat map of the strongest features in every group; their means are in the tables below."
    return Drawing(heat_map(values, found.names, parts, groups, bars), label, caption)


def _bars(summary: Summary) -> list[Coloring]:
    """Return the annotations of the heat map: views present, confidence, and the covariates that differ most."""
    present = np.array([pattern.present for pattern in summary.gaps.patterns])[summary.gaps.codes]
    bars = view_bars(present, [view.name for view in summary.views])
    bars.append(Coloring("confidence", summary.confidence, limits=(0.0, 1.0)).as_bar())
    given = {} if summary.covariates is None else summary.covariates.columns
    tested = () if summary.covariates is None else summary.covariates.comparisons
    ordered = [one.column for one in sorted(tested, key=lambda one: one.p_value) if one.column in given]
    for name in ordered[:_MOST_COVARIATE_BARS]:
        column = given[name]
        if column.is_number:
            bars.append(Coloring(name, column.numbers).as_bar())
        elif 0 < len(levels := levels_of(column)) <= _MOST_LEVELS:
            names = tuple(shorten(level, 24) for level in levels)
            bars.append(Coloring(name, codes_of(column, levels), names).as_bar())
    return bars


def _means(groups: list[GroupFacts]) -> Details | None:
    """Return the means of the features of every group, hidden until they are opened."""
    largest = sorted(groups, key=lambda group: -group.n_samples)[:MOST_DETAILED]
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
