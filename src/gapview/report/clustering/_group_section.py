"""The groups, as a section of the page."""

from __future__ import annotations

import math

from ...trust import FeatureEffect
from ...utils.words import joined, percent
from .._blocks import Block, Cell, Details, Drawing, Group, Row, Section, Table, Text
from ._covariate_section import covariate_section
from ._summary import Summary
from .figures import draw_groups
from .groups import CLEAR, DOUBTFUL, GroupFacts
from .words import group_name, number, share, shorten, shown_groups

__all__ = ["group_section"]

_MOST_DETAILED = 50  # groups whose features are listed with their means
_N_BRIEF = 3  # features in the overview


def group_section(summary: Summary) -> Section:
    """Show size and confidence of the groups, and what sets them apart."""
    groups = shown_groups(summary)
    notes = [
        f"Confidence is a sample’s claim to be in its group, from 0 to 1; below {DOUBTFUL:g} the other groups together "
        "have the larger claim. It tells how firm a group is among these data, not whether it is real."
    ]
    if len(groups) < len(summary.groups):
        notes.append(f"Only the {len(groups)} largest of {len(summary.groups)} groups are listed.")
    rows = tuple(Row((group_name(group.number),), _group_cells(group, summary.n_samples)) for group in groups)
    columns = ("", "samples", "share", "mean confidence", f"at least {CLEAR:g}", f"below {DOUBTFUL:g}")
    blocks: list[Block] = [
        Table("Size and confidence", columns, (Group(rows),), notes=tuple(notes), numbers=True, narrow=True)
    ]
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
        "large. Groups are made to differ in these very features: the numbers describe them, they prove nothing."
    )
    table = Table("What sets each group apart in each view", ("", *named), (Group(rows),))
    return [Section("What sets each group apart", (Text(text), table, *_means(groups)))]


def _means(groups: list[GroupFacts]) -> tuple[Block, ...]:
    """List the means of the features, group by group, behind one line."""
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
    means = (number(effect.mean_inside), number(effect.mean_outside))
    return Row((shorten(effect.view, 30), _feature(effect)), (_signed(effect.effect), *means))
