"""Sections on the views: missing views, batches, agreement, and recovery."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...estimators.recovery import LITTLE, ViewRecovery
from ...trust import BatchMixing, GroupAssociation
from ...trust.association import BATCH, SIGNIFICANT
from ...utils.messages import counted, joined, percent, shorten
from ...utils.types import Array
from ..drawing import MOST_BARS, MOST_PATTERNS, WIDTH, draw_patterns
from ..page import Beside, Cell, Details, Drawing, Section, Table, Text, Tone, simple_table
from ..style import new_figure
from .summary import Summary, bare_p, group_name, share

# -- missing views -----------------------------------------------------------------------------------------------------


_LEVELS = "Shaded dark from 0.75 on, light from 0.4 on; orange below 0.1."
_MOST_SHARES = 200  # groups in a table
_FAR = 0.15  # difference between the share of a group and that of all samples that is marked


def gap_section(summary: Summary) -> Section:
    """Return the section on missing views and their association with the groups."""
    gaps = summary.gaps
    several = len(gaps.patterns) > 1
    tables = (_having_table(summary), _test_table(summary)) if gaps.tested else ()
    return Section.of(
        "Which samples lack which views",
        *map(Text, _gap_sentences(summary)),
        Beside.of(_draw_gaps(summary), *tables) if several else None,
        _share_table(gaps.tested) if gaps.tested else None,
        Details("The sets of views as a table", (_pattern_table(summary),)) if several else None,
    )


def _draw_gaps(summary: Summary) -> Drawing | None:
    """Draw the patterns of missing views: frequencies above a matrix of the present views."""
    patterns = summary.gaps.patterns[:MOST_PATTERNS]
    if len(summary.gaps.patterns) < 2 or len(summary.views) > MOST_BARS:
        return None
    n_views, n_patterns = len(summary.views), len(patterns)
    matrix_height = 0.2 + 0.26 * n_views
    ratios = {"width_ratios": [1.1, max(0.42 * n_patterns, 1.6)], "height_ratios": [1.5, matrix_height]}
    with new_figure(min(WIDTH, 3.2 + 0.42 * n_patterns), 1.7 + matrix_height) as figure:
        parts: Any = figure.subplots(2, 2, gridspec_kw=ratios)
        parts[0, 0].axis("off")
        views = {view.name: view.n_samples for view in summary.views}
        draw_patterns(parts[0, 1], parts[1, 1], parts[1, 0], patterns, views)
    n_more = len(summary.gaps.patterns) - n_patterns
    caption = "Each column is a set of views, and the samples that have exactly these: filled dots are present views."
    caption += f" {counted(n_more, 'rarer set')} not shown." if n_more else ""
    label = "Sets of views that samples have, and how many samples have each; listed in the table below."
    return Drawing(figure, label, caption, small=n_patterns <= 4)


def _gap_sentences(summary: Summary) -> tuple[str, ...]:
    """Return sentences about the association of missing views with the groups."""
    gaps = summary.gaps
    if len(summary.views) == 1:
        return ("There is one view, and every sample has it.",)
    if len(gaps.patterns) == 1:
        return ("All samples have the same views: missing views cannot be associated with the groups.",)
    if gaps.tested is None:
        return ("There is one group only: missing views cannot be associated with the groups.",)
    sentences = _test_sentences(gaps.tested)
    both = zip(summary.views, gaps.views, strict=True)
    driving = [shorten(view.name) for view, gap in both if gap.adjusted < SIGNIFICANT]
    which = (f"Views whose presence is associated with the groups (Holm-adjusted): {joined(driving[:8])}.",)
    return (*sentences, *(which if driving else ()))


def _test_sentences(tested: GroupAssociation) -> tuple[str, ...]:
    """Return the result of a test of the groups against batches or missing views, its meaning and its limits."""
    limits = {
        0: "A weak association may still exist.",
        1: "It is more than by chance, but too little to explain the groups.",
    }
    meaning = limits.get(tested.association.level, tested.advice) if not tested.explained else tested.advice
    return tuple(filter(None, (tested.sentence, tested.group_sentence, meaning)))


def batch_section(tested: GroupAssociation, mixing: BatchMixing | None) -> Section:
    """Return the section on the association of the groups with batches, and on their correction."""
    corrected = () if mixing is None else (*mixing.sentences(), *mixing.warnings())
    return Section.of("Batches", *map(Text, (*corrected, *_test_sentences(tested))), _share_table(tested))


def _share_table(tested: GroupAssociation) -> Table:
    """Return the part in which every group is over-represented most."""
    largest = sorted(tested.groups, key=lambda one: -one.n_samples)[:_MOST_SHARES]
    rows = []
    for one in sorted(largest, key=lambda one: one.group):
        inside = Cell(_percent(one.share), tone="down" if one.is_explained else "plain")
        cells = (f"{one.n_samples:,}", shorten(one.part, 40), inside, _percent(one.expected), bare_p(one.adjusted))
        rows.append((group_name(one.group), *cells))
    part = "batch" if tested.factor == BATCH else "views present"
    columns = ("", "samples", f"{part}, most over-represented", "share of the group", "of all samples", "adjusted p")
    notes = (
        "Hypergeometric test of the group against all other samples, times the number of "
        f"{'batches' if tested.factor == BATCH else 'patterns'}, Holm-adjusted for the number of groups. Orange: p < "
        "0.01, and at least half of the way from the share of all samples to 100 %. A group of few samples cannot "
        "reach a small p.",
    )
    return simple_table(f"Every group by {tested.factor}", columns, rows, notes)


def _pattern_table(summary: Summary) -> Table:
    rows = [
        (summary.pattern_name(number), f"{pattern.n_samples:,}", percent(pattern.n_samples / summary.n_samples))
        for number, pattern in enumerate(summary.gaps.patterns[:100])
    ]
    n_more = len(summary.gaps.patterns) - len(rows)
    notes = (f"{counted(n_more, 'rarer set')} not listed.",) if n_more else ()
    return simple_table("Sets of views", ("views present", "samples", "share"), rows, notes)


def _having_table(summary: Summary) -> Table:
    overall = [view.n_samples / summary.n_samples for view in summary.views]
    rows = [
        (group_name(group.number), *map(_having, summary.gaps.share[group.number], overall))
        for group in summary.shown_groups()
    ]
    rows.append(("all samples", *(Cell(_percent(value)) for value in overall)))
    notes = (f"▲ ▼ where a group has a view more or less often than all samples by {100 * _FAR:.0f} points or more.",)
    return simple_table("Share of every group that has the view", _view_columns(summary), rows, notes)


def _view_columns(summary: Summary) -> tuple[str, ...]:
    return "", *(shorten(view.name, 30) for view in summary.views)


def _test_table(summary: Summary) -> Table:
    rows = [
        (shorten(view.name, 40), f"{view.n_samples:,}", share(one.strength), bare_p(one.p_value), bare_p(gap.adjusted))
        for view, gap in zip(summary.views, summary.gaps.views, strict=True)
        if (one := gap.association) is not None
    ]
    columns = ("view", "samples that have it", "Cramér’s V", "p", "adjusted p")
    notes = ("χ² test of presence by group, Holm-adjusted for the number of views.",)
    return simple_table("Association of the presence of a view with the groups", columns, rows, notes)


def _percent(value: float) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.0f} %"


def _having(value: float, usual: float) -> Cell:
    difference = value - usual
    mark = "▲" if difference >= _FAR else "▼" if difference <= -_FAR else ""
    return Cell(_percent(value), mark=mark, tone="up" if mark == "▲" else "down" if mark else "plain")


# -- agreement ---------------------------------------------------------------------------------------------------------


def agreement_section(summary: Summary) -> Section:
    """Return the section on the agreement of the groups with every view and pair of views."""
    names = [view.name for view in summary.views]
    above = summary.agreement.above_chance
    text = (
        "How many of the nearest neighbours of a sample in a single view are of its group? 0: as many as by chance; 1: "
        "all of them. Only samples that have the view are counted. The groups were computed from these views: high "
        "values show that a group is visible in a view, not that it is real."
    )
    rows = [(group_name(group.number), *map(_level, above[group.number])) for group in summary.shown_groups()]
    means = [_weighted(values, summary) for values in above.T]
    rows.append(("mean over samples", *(Cell(share(value)) for value in means)))
    several = len(names) > 1
    return Section.of(
        "How well the views agree",
        Text(_best_and_worst(names, means)) if several else None,
        Text(text),
        Beside.of(
            simple_table("Neighbours of the same group in each view", _view_columns(summary), rows, [_LEVELS]),
            _pair_table(summary) if several else None,
            _contribution_table(summary) if several and len(summary.groups) > 1 else None,
        ),
    )


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
        f"The mean agreement above chance is highest in {shorten(best)} ({share(high)}) and lowest in "
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


def _contribution_table(summary: Summary) -> Table:
    known = dict(enumerate(summary.contributions))
    rows = [
        (group_name(group.number), *(_percent(float(value)) for value in known[group.number]))
        for group in summary.shown_groups()
        if group.number in known
    ]
    notes = (
        "Share of a view in the support for the group of a sample, on average over the samples of the group that have "
        "several views. The support of a view is the share of the neighbours in it that are of the same group, above "
        "chance, times the weight of the view.",
    )
    return simple_table("What each view contributes", _view_columns(summary), rows, notes)


# -- recovery ----------------------------------------------------------------------------------------------------------


def recovery_section(summary: Summary) -> Section:
    """Return the section on the recovery of hidden views."""
    title = "How well hidden views are recovered"
    if len(summary.views) == 1:
        return Section(title, (Text("There is one view: nothing to recover it from."),))
    text = (
        "Each view was hidden from some samples that have it and another one, the model was fitted again, and the "
        "hidden rows were recovered by every method. R² is 1 minus the squared error over that of the mean of the "
        "view: 0 is no better than the mean, 1 is perfect. recover() uses the method in bold."
    )
    notes = ["R² holds for held-out samples as a whole; values recovered for a single sample are less certain."]
    weak = [shorten(one.view) for one in summary.recovered if one.r2 and one.best_r2 < LITTLE]
    if weak:
        notes.append(f"Recovered values of {joined(weak)} are about the mean of the view: do not use them.")
    methods = list(dict.fromkeys(method for one in summary.recovered for method in one.r2))
    rows = [(shorten(one.view), *_recovery_cells(one, methods)) for one in summary.recovered]
    columns = ("view", "samples tested", *(f"R², {_METHODS[way]}" for way in methods), "features: median, range")
    return Section(title, (Text(text), simple_table("Recovery of hidden views", columns, rows, notes)))


_METHODS = {
    "mean": "mean",
    "knn": "kNN",
    "ridge": "ridge",
    "neighbors": "latent neighbours",
    "bridge": "bridge",
    "blend": "blend",
}


def _recovery_cells(one: ViewRecovery, methods: list[str]) -> tuple[Cell | str, ...]:
    if one.reason:
        return "0", *("–" for _ in methods), one.reason
    cells = [Cell(f"{one.r2[way]:.2f}", best=way == one.method) for way in methods]
    low, middle, high = one.feature_range()
    return f"{one.n_tested:,}", *cells, f"{middle:.2f}, {low:.2f} to {high:.2f}"
