"""What there is to say of the views: who lacks which, and how well they agree on the groups."""

from __future__ import annotations

import math

import numpy as np

from ...utils.types import Array
from ...utils.words import counted, percent
from .._blocks import Block, Cell, Details, Drawing, Group, Row, Section, Table, Text, Tone
from ._summary import Summary
from .figures import MOST_PATTERNS, draw_gaps
from .words import bare_p, gap_sentence, group_name, pattern_name, share, shorten, shown_groups

__all__ = ["agreement_section", "gap_section"]

_FAR = 0.15  # difference between a group's share and that of all samples that is pointed out


def gap_section(summary: Summary) -> Section:
    """Show which samples lack which views, and whether that goes with the groups."""
    gaps = summary.gaps
    blocks: list[Block] = [Text(text) for text in gap_sentence(gaps, len(summary.views))]
    drawn = draw_gaps(summary)
    if drawn is not None:
        n_more = len(gaps.patterns) - MOST_PATTERNS
        caption = "Each column is a set of views that some samples have and no others: filled dots are views they have."
        caption += f" {counted(n_more, 'rarer set')} not shown." if n_more > 0 else ""
        label = "Sets of views that samples have, and how many samples have each; listed in the table below."
        blocks.append(Drawing(drawn, label, caption, small=len(gaps.patterns) <= 4))
    if len(gaps.patterns) > 1:
        blocks.append(Details("The same as a table", (_pattern_table(summary),)))
        if len(summary.groups) > 1:
            blocks += [_having_table(summary), _test_table(summary)]
    return Section("Which samples lack which views", tuple(blocks))


def _pattern_table(summary: Summary) -> Table:
    names = [view.name for view in summary.views]
    rows = tuple(
        Row((pattern_name(pattern, names),), (f"{pattern.n_samples:,}", percent(pattern.n_samples / summary.n_samples)))
        for pattern in summary.gaps.patterns[:100]
    )
    n_more = len(summary.gaps.patterns) - len(rows)
    notes = (f"{counted(n_more, 'rarer set')} not listed.",) if n_more else ()
    return Table(
        "Sets of views", ("views present", "samples", "share"), (Group(rows),), notes=notes, numbers=True, narrow=True
    )


def _having_table(summary: Summary) -> Table:
    overall = [gap.n_samples / summary.n_samples for gap in summary.gaps.views]
    rows = [
        Row((group_name(group.number),), tuple(map(_having, summary.gaps.share[group.number], overall)))
        for group in shown_groups(summary)
    ]
    rows.append(Row(("all samples",), tuple(Cell(_percent(value)) for value in overall)))
    notes = (f"▲ ▼ where a group has a view more or less often than all samples by {100 * _FAR:.0f} points or more.",)
    columns = ("", *(shorten(view.name, 30) for view in summary.views))
    caption = "Share of every group that has the view"
    return Table(caption, columns, (Group(tuple(rows)),), notes=notes, numbers=True, narrow=True)


def _test_table(summary: Summary) -> Table:
    rows = tuple(
        Row(
            (shorten(gap.view, 40),),
            (f"{gap.n_samples:,}", share(found.strength), bare_p(found.p_value), bare_p(gap.adjusted)),
        )
        for gap in summary.gaps.views
        if (found := gap.association) is not None
    )
    columns = ("view", "samples that have it", "Cramér’s V", "p", "p corrected")
    notes = ("p from random tables with the same margins; corrected for the number of views by Holm.",)
    caption = "Does having a view go with the groups?"
    return Table(caption, columns, (Group(rows),), notes=notes, numbers=True, narrow=True)


def _percent(value: float) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.0f} %"


def _having(value: float, usual: float) -> Cell:
    difference = value - usual
    mark = "▲" if difference >= _FAR else "▼" if difference <= -_FAR else ""
    return Cell(_percent(value), mark=mark, tone="up" if mark == "▲" else "down" if mark else "plain")


def agreement_section(summary: Summary) -> Section:
    """Show how well the groups hold in every view alone, and in pairs of views."""
    names = [view.name for view in summary.views]
    above = summary.agreement.above_chance
    text = (
        "Do a sample’s nearest neighbours in one view alone confirm its group? 0: no more than chance would; 1: all of "
        "them are of its group. Only samples that have the view are asked. The groups were made from these views, so "
        "high values say that a group can be seen in a view, not that it is real."
    )
    rows = [
        Row((group_name(group.number),), tuple(_level(value) for value in above[group.number]))
        for group in shown_groups(summary)
    ]
    means = [_weighted(above[:, k], summary) for k in range(len(names))]
    rows.append(Row(("mean over samples",), tuple(Cell(share(value)) for value in means)))
    columns = ("", *(shorten(name, 30) for name in names))
    blocks: list[Block] = [
        *([Text(_best_and_worst(names, means))] if len(names) > 1 else []),
        Text(text),
        Table(
            "How well each group holds in each view",
            columns,
            (Group(tuple(rows)),),
            notes=(_LEVELS,),
            numbers=True,
            narrow=True,
        ),
    ]
    if len(names) > 1:
        blocks.append(_pair_table(summary, names))
    return Section("How well the views agree", tuple(blocks))


_LEVELS = "Shaded dark from 0.75 on, light from 0.4 on; orange below 0.1."


def _level(value: float) -> Cell:
    if math.isnan(value):
        return Cell("–", tone="muted", tip="fewer than two samples of the group could be asked")
    tone: Tone = "up-strong" if value >= 0.75 else "up" if value >= 0.4 else "down" if value < 0.1 else "plain"
    return Cell(share(value), tone=tone)


def _weighted(values: Array, summary: Summary) -> float:
    sizes = np.array([group.n_samples for group in summary.groups], dtype=np.float64)
    known = ~np.isnan(values) & (sizes > 0)
    return float(np.average(values[known], weights=sizes[known])) if known.any() else float("nan")


def _best_and_worst(names: list[str], means: list[float]) -> str:
    known = [(mean, name) for mean, name in zip(means, names, strict=True) if not math.isnan(mean)]
    if len(known) < 2:
        return "In fewer than two views there are enough samples to ask."
    (low, worst), (high, best) = min(known), max(known)
    return (
        f"The groups hold best in {shorten(best)} ({share(high)} of the way from chance to certainty) and least in "
        f"{shorten(worst)} ({share(low)})."
    )


def _pair_table(summary: Summary, names: list[str]) -> Table:
    pairs = summary.agreement.pair_above_chance
    rows = tuple(
        Row((shorten(name, 30),), tuple(_level(_weighted(pairs[:, k, j], summary)) for j in range(len(names))))
        for k, name in enumerate(names)
    )
    notes = (
        "How often a neighbour in the one view and a neighbour in the other are of the same group, above chance, over "
        "samples that have both. A view with itself shows how much agreement there can be.",
    )
    columns = ("", *(shorten(name, 30) for name in names))
    return Table("How far each two views agree", columns, (Group(rows),), notes=notes, numbers=True, narrow=True)
