"""Sections on the groups: sizes, confidence, features, and the map of the samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...trust import Assessment, FeatureEffect
from ...utils.messages import counted, joined, percent, shorten
from ...utils.types import Array
from ..drawing import MOST_BARS, MOST_PATTERNS, SMALL_WIDTH, group_sign
from ..page import Cell, Details, Drawing, Facet, Group, Row, Scatter, Section, Table, Text, simple_table
from ..style import PAPER, SERIES, new_figure
from .covariate_section import covariate_section
from .samples import CLEAR, DOUBTFUL, GroupFacts
from .summary import MOST_DETAILED, Summary, feature_name, group_name, rounded, share, signed

# -- groups ------------------------------------------------------------------------------------------------------------


_N_BRIEF = 3  # features in the overview


def group_section(summary: Summary) -> Section:
    """Return the section on size, confidence and features of the groups."""
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


def _stability_cell(found: Assessment, group: int) -> Cell:
    is_unstable = group in found.unstable_groups
    return Cell(share(float(found.group_stability[group])), tone="down" if is_unstable else "plain")


def _feature_section(summary: Summary, groups: list[GroupFacts]) -> Section:
    named = [shorten(view.name) for view in summary.views]
    rows = [(group_name(group.number), *(_in_brief(group, view.name) for view in summary.views)) for group in groups]
    text = (
        "Features whose mean in the group differs most from their mean in all other samples that have the view, in "
        "standard deviations (Hedges’ g): + above the others, − below. 0.2 is commonly called small, 0.5 medium, 0.8 "
        "large. The groups were computed from these features: the numbers describe the groups, and are no "
        "evidence that they exist."
    )
    table = simple_table("What sets each group apart in each view", ("", *named), rows, numbers=False)
    return Section.of("What sets each group apart", Text(text), table, _means(groups))


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
