"""How the settings were chosen, as a section of the page."""

from __future__ import annotations

from ...utils.words import joined, percent
from .._blocks import Block, Cell, Details, Drawing, Group, Items, Row, Section, Table, Text
from ._summary import Summary
from .figures import draw_counts
from .history import Choices
from .words import shorten

__all__ = ["settings_section"]


def settings_section(summary: Summary) -> Section:
    """Show the settings, who chose them, and what else was tried."""
    choices = summary.choices
    blocks: list[Block] = []
    if choices.selection is not None:
        blocks.append(Text(choices.selection.reason))
        if choices.selection.n_samples < summary.n_samples:
            blocks.append(Text(f"Candidates were tried on {choices.selection.n_samples:,} of the samples."))
    else:
        blocks.append(Text(f"{summary.method} chooses nothing from the data: settings are given, or follow rules."))
    if choices.count is not None:
        blocks += [
            Text(" ".join(choices.count.reason().split())),
            Drawing(
                draw_counts(choices.count),
                f"Modularity and stability for {choices.count.counts[0]} to {choices.count.counts[-1]} groups.",
                "Modularity: how much more of the neighbour graph lies inside the groups than by chance. Stability: "
                "how well groups come back when samples are drawn anew. The dotted line is the number taken.",
                small=True,
            ),
        ]
    if choices.view_weights is not None and len(choices.view_weights) > 1:
        pairs = zip(summary.views, choices.view_weights, strict=True)
        weights = joined([f"{shorten(view.name)} {weight:.2f}" for view, weight in pairs])
        blocks.append(Text(f"How much every view counted, 1 on average: {weights}."))
    blocks += [_setting_table(choices), *_candidates(choices), *_searches(choices)]
    return Section("How the settings were chosen", tuple(blocks))


def _setting_table(choices: Choices) -> Table:
    rows = tuple(Row((fact.name,), (shorten(fact.value, 120), fact.origin)) for fact in choices.settings)
    return Table("Settings of the fit", ("setting", "value", "where from"), (Group(rows),))


def _candidates(choices: Choices) -> tuple[Block, ...]:
    if choices.selection is None or len(choices.selection.trials) < 2:
        return ()
    rows = tuple(
        Row(
            (f"{row['bridge']}, reach {row['reach']}",),
            (
                shorten(str(row["scale"]), 60),
                f"{row['union']:.3f}",
                f"{row['joint']:.3f}",
                f"{row['agreement']:.3f}",
                Cell(f"{row['score']:.3f}", best=row["chosen"]),
            ),
        )
        for row in choices.selection.table
    )
    columns = ("bridge", "scale", "within views", "in all views", "agreement", "score")
    notes = (
        "Modularity of the groups within the views and in all views together, as shares of the best candidate’s; "
        "agreement with the groups of the other candidates. No labels were used.",
    )
    table = Table("Candidates, best first", columns, (Group(rows),), notes=notes, numbers=True, narrow=True)
    return (Details(f"All {len(rows)} candidates", (table,)),)


def _searches(choices: Choices) -> tuple[Block, ...]:
    if choices.recall >= 1:
        return (Text("Neighbours were found exactly.", quiet=True),)
    text = (
        f"Neighbours were found by an index: at least {percent(choices.recall)} of the true ones, measured on a sample."
    )
    return (Text(text), Details("Every search", (Items(tuple(choices.searches[:100])),)))
