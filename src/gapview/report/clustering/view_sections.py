"""Sections on the samples and the views: the map, missing views, agreement of the views."""

from __future__ import annotations

import math

import numpy as np

from ...utils.messages import counted, percent
from ...utils.types import Array
from ..blocks import Cell, Details, Facet, Scatter, Section, Table, Text, Tone, drawing, present_blocks, simple_table
from .figures import MOST_PATTERNS, draw_gaps, group_sign
from .summary import Summary
from .words import bare_p, gap_sentence, group_name, pattern_name, share, shorten, shown_groups

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
        tuple(pattern_name(summary, number) for number in range(len(gaps.patterns))),
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
    return Section("Map of the samples", present_blocks(Text(remark) if subset else None, scatter))


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


# -- missing views -----------------------------------------------------------------------------------------------------


_LEVELS = "Shaded dark from 0.75 on, light from 0.4 on; orange below 0.1."
_FAR = 0.15  # difference between the share of a group and that of all samples that is marked


def gap_section(summary: Summary) -> Section:
    """Return the section on missing views and their association with the groups."""
    gaps = summary.gaps
    n_more = len(gaps.patterns) - MOST_PATTERNS
    caption = "Each column is a set of views, and the samples that have exactly these: filled dots are present views."
    caption += f" {counted(n_more, 'rarer set')} not shown." if n_more > 0 else ""
    label = "Sets of views that samples have, and how many samples have each; listed in the table below."
    several = len(gaps.patterns) > 1
    tables = (_having_table(summary), _test_table(summary)) if several and len(summary.groups) > 1 else ()
    blocks = present_blocks(
        *map(Text, gap_sentence(gaps, len(summary.views))),
        drawing(draw_gaps(summary), label, caption, small=len(gaps.patterns) <= 4),
        Details("The same as a table", (_pattern_table(summary),)) if several else None,
        *tables,
    )
    return Section("Which samples lack which views", blocks)


def _pattern_table(summary: Summary) -> Table:
    rows = [
        (pattern_name(summary, number), f"{pattern.n_samples:,}", percent(pattern.n_samples / summary.n_samples))
        for number, pattern in enumerate(summary.gaps.patterns[:100])
    ]
    n_more = len(summary.gaps.patterns) - len(rows)
    notes = (f"{counted(n_more, 'rarer set')} not listed.",) if n_more else ()
    return simple_table("Sets of views", ("views present", "samples", "share"), rows, notes)


def _having_table(summary: Summary) -> Table:
    overall = [gap.n_samples / summary.n_samples for gap in summary.gaps.views]
    rows = [
        (group_name(group.number), *map(_having, summary.gaps.share[group.number], overall))
        for group in shown_groups(summary)
    ]
    rows.append(("all samples", *(Cell(_percent(value)) for value in overall)))
    notes = (f"▲ ▼ where a group has a view more or less often than all samples by {100 * _FAR:.0f} points or more.",)
    return simple_table("Share of every group that has the view", _view_columns(summary), rows, notes)


def _view_columns(summary: Summary) -> tuple[str, ...]:
    return "", *(shorten(view.name, 30) for view in summary.views)


def _test_table(summary: Summary) -> Table:
    tested = [(gap, gap.association) for gap in summary.gaps.views if gap.association is not None]
    rows = [
        (shorten(gap.view, 40), f"{gap.n_samples:,}", share(one.strength), bare_p(one.p_value), bare_p(gap.adjusted))
        for gap, one in tested
    ]
    columns = ("view", "samples that have it", "Cramér’s V", "p", "p corrected")
    notes = ("p from random tables with the same margins; corrected for the number of views by Holm.",)
    return simple_table("Association of the presence of a view with the groups", columns, rows, notes)


def _percent(value: float) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.0f} %"


def _having(value: float, usual: float) -> Cell:
    difference = value - usual
    mark = "▲" if difference >= _FAR else "▼" if difference <= -_FAR else ""
    return Cell(_percent(value), mark=mark, tone="up" if mark == "▲" else "down" if mark else "plain")


def agreement_section(summary: Summary) -> Section:
    """Return the section on the agreement of the groups with every view and pair of views."""
    names = [view.name for view in summary.views]
    above = summary.agreement.above_chance
    text = (
        "How many of the nearest neighbours of a sample in a single view are of its group? 0: as many as by chance; 1: "
        "all of them. Only samples that have the view are counted. The groups were computed from these views: high "
        "values show that a group is visible in a view, not that it is real."
    )
    rows = [(group_name(group.number), *map(_level, above[group.number])) for group in shown_groups(summary)]
    means = [_weighted(values, summary) for values in above.T]
    rows.append(("mean over samples", *(Cell(share(value)) for value in means)))
    several = len(names) > 1
    blocks = present_blocks(
        Text(_best_and_worst(names, means)) if several else None,
        Text(text),
        simple_table("How well each group holds in each view", _view_columns(summary), rows, [_LEVELS]),
        _pair_table(summary) if several else None,
    )
    return Section("How well the views agree", blocks)


def _level(value: float) -> Cell:
    if math.isnan(value):
        return Cell("–", tone="muted", tip="too few samples of the group have the view")
    tone: Tone = "up-strong" if value >= 0.75 else "up" if value >= 0.4 else "down" if value < 0.1 else "plain"
    return Cell(share(value), tone=tone)


def _weighted(values: Array, summary: Summary) -> float:
    sizes = np.array([group.n_samples for group in summary.groups], dtype=np.float64)
    known = ~np.isnan(values) & (sizes > 0)
    return float(np.average(values[known], weights=sizes[known])) if known.any() else float("nan")


def _best_and_worst(names: list[str], means: list[float]) -> str:
    known = [(mean, name) for mean, name in zip(means, names, strict=True) if not math.isnan(mean)]
    if len(known) < 2:
        return "Fewer than two views have enough samples for a comparison."
    (low, worst), (high, best) = min(known), max(known)
    return (
        f"The groups hold best in {shorten(best)} ({share(high)} of the way from chance to certainty) and least in "
        f"{shorten(worst)} ({share(low)})."
    )


def _pair_table(summary: Summary) -> Table:
    columns, pairs = _view_columns(summary), summary.agreement.pair_above_chance
    rows = [
        (name, *(_level(_weighted(values, summary)) for values in pairs[:, k].T)) for k, name in enumerate(columns[1:])
    ]
    notes = (
        "How often a neighbour in one view and a neighbour in the other are of the same group, above chance, over "
        "samples that have both. The agreement of a view with itself is an upper bound.",
    )
    return simple_table("Agreement of each two views", columns, rows, notes)
