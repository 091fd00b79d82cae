"""Sections on the fit: the number of groups, settings, convergence, samples of low confidence, repetition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...choice import ClusterCount, Selection
from ...trust import Assessment
from ...utils.messages import NO_BREAK, counted, joined, percent, shorten
from ..drawing import SMALL_WIDTH, WIDTH, draw_change, draw_objective
from ..page import Beside, Block, Cell, Code, Details, Drawing, Facts, Items, Section, Text, simple_table
from ..style import SERIES, SOFT, new_figure
from .fit import Choices, Convergence
from .samples import DOUBTFUL
from .summary import Summary, group_name, p_value, share

# -- settings ----------------------------------------------------------------------------------------------------------


def count_section(summary: Summary) -> Section:
    """Return the section on the number of groups, with its evidence."""
    count, n_groups = summary.choices.count, len(summary.groups)
    found = summary.assessment
    if count is None:
        text = f'n_clusters={n_groups} was given; n_clusters="auto" compares several numbers.'
    else:
        text = " ".join(count.reason().split())
    return Section.of(
        "How many groups",
        Text(text),
        Beside.of(
            None if count is None else _draw_counts(count),
            None if found is None or math.isnan(found.p_value) else _draw_null(found),
        ),
    )


def _draw_null(found: Assessment) -> Drawing:
    """Draw the statistic of the groups beside those of null data."""
    with new_figure(SMALL_WIDTH, 1.9) as figure:
        axes: Any = figure.subplots()
        for row, values in enumerate(found.null_statistics):
            known = values[np.isfinite(values)]
            axes.plot(known, np.full(len(known), row), "|", color=SERIES[0].color, markersize=13, markeredgewidth=1.4)
        axes.axvline(found.statistic, color=SERIES[6].color, linewidth=2.0)
        look = {"xytext": (0, 3), "textcoords": "offset points", "ha": "center", "fontsize": 8, "fontweight": "bold"}
        axes.annotate("these groups", (found.statistic, 1), xycoords=axes.get_xaxis_transform(), **look)
        axes.set_yticks([0, 1], ["Gaussian null data", "uniform null data"])
        axes.set(ylim=(-0.6, 1.6), xlabel="modularity³ × stability")
        axes.margins(x=0.08)
        axes.grid(axis="y", visible=False)
    label = f"modularity³ × stability: a line at {found.statistic:.3g} for these groups, a mark for each null data set."
    caption = (
        "Each mark is the best division of one data set without groups. Groups can be distinguished from these if the "
        f"line is to the right of nearly all marks ({p_value(found.p_value)})."
    )
    return Drawing(figure, label, caption, small=True)


def fit_section(summary: Summary) -> Section:
    """Return the section on settings and convergence, hidden until they are opened."""
    parts = (_settings(summary), _convergence(summary))
    return Section("Settings and convergence", tuple(Details(part.title, part.blocks) for part in parts))


def _settings(summary: Summary) -> Section:
    """Return the settings, their origin, and the candidates."""
    choices, selection = summary.choices, summary.choices.selection
    if selection is None:
        reasons = [f"{summary.method} chooses no settings from the data: they are given, or follow rules."]
    else:
        reasons = [selection.reason]
        if selection.n_samples < summary.n_samples:
            reasons.append(f"Candidates were tried on {selection.n_samples:,} of the samples.")
    pairs = zip(summary.views, choices.view_weights, strict=False)  # some methods have no weights
    weights = [f"{shorten(view.name)} {weight:.2f}" for view, weight in pairs]
    rows = [(fact.name, shorten(fact.value, 120), fact.origin) for fact in choices.settings]
    return Section.of(
        "How the settings were chosen",
        *map(Text, reasons),
        Text(f"Weights of the views, 1 on average: {joined(weights)}.") if len(weights) > 1 else None,
        simple_table("Settings of the fit", ("setting", "value", "origin"), rows, numbers=False),
        None if selection is None or len(selection.trials) < 2 else _candidates(selection),
        *_searches(choices),
    )


def _draw_counts(count: ClusterCount) -> Drawing:
    """Draw modularity and stability for every number of groups."""
    with new_figure(SMALL_WIDTH, 2.6) as figure:
        axes: Any = figure.subplots()
        axes.plot(count.counts, count.modularity, label="modularity", **SERIES[5].options())
        axes.plot(count.counts, count.stability, label="stability", **SERIES[3].options())
        axes.axvline(count.suggested, color=SOFT, linestyle=":", linewidth=1.4)
        axes.set(xlabel="groups", ylim=(min(0.0, float(count.modularity.min())), 1.05))
        axes.xaxis.get_major_locator().set_params(integer=True)
        figure.legend(loc="outside lower center", ncols=2)
    label = f"Modularity and stability for {count.counts[0]} to {count.counts[-1]} groups."
    caption = (
        "Modularity: how much more of the neighbour graph lies inside the groups than by chance. Stability: "
        "how similar the groups of resampled data are. The dotted line is the number chosen."
    )
    return Drawing(figure, label, caption, small=True)


def _candidates(selection: Selection) -> Details:
    rows = []
    for row in selection.table:
        parts = [f"{row[name]:.3f}" for name in ("union", "joint", "agreement")]
        score = Cell(f"{row['score']:.3f}", best=row["chosen"])
        rows.append((f"{row['bridge']}, reach {row['reach']}", shorten(str(row["scale"]), 60), *parts, score))
    columns = ("bridge", "scale", "within views", "in all views", "agreement", "score")
    notes = (
        "Modularity of the groups within the views and in all views together, as shares of the best candidate’s; "
        "agreement with the groups of the other candidates. No labels were used.",
    )
    return Details(f"All {len(rows)} candidates", (simple_table("Candidates, best first", columns, rows, notes),))


def _searches(choices: Choices) -> tuple[Block, ...]:
    recall = min((search.recall for search in choices.searches), default=1.0)
    if recall >= 1:
        return (Text("Neighbours were found exactly.", quiet=True),)
    text = f"Neighbours were found by an index: at least {percent(recall)} of the true ones, measured on a sample."
    return Text(text), Details("Every search", (Items(tuple(map(str, choices.searches[:100]))),))


# -- fit ---------------------------------------------------------------------------------------------------------------


_LEAST_DRAWN = 5  # iterations of a figure of convergence
_IS = f"{NO_BREAK}={NO_BREAK}"


def _convergence(summary: Summary) -> Section:
    """Return the objective, and whether it has converged."""
    found = summary.convergence
    n_iterations = len(found.objective)
    if found.settled:
        text = (
            f"The objective converged after {counted(n_iterations, 'iteration')}: its last relative change, "
            f"{found.last_change:.1e}, was below tol{_IS}{found.tol:g}."
        )
    elif found.tol == 0:
        text = f"All {n_iterations} iterations were done, since tol{_IS}0."
    else:
        change = "" if math.isnan(found.last_change) else f" Its last relative change was {found.last_change:.1e}."
        text = (
            f"The objective had not converged to tol{_IS}{found.tol:g} after max_iter{_IS}{n_iterations}.{change} "
            "Raise max_iter: the groups may still change."
        )
    return Section.of("Convergence", Text(text), _draw_convergence(found))


def _draw_convergence(found: Convergence) -> Drawing | None:
    """Draw the objective and its relative change in every iteration."""
    if len(found.objective) < _LEAST_DRAWN:
        return None
    with new_figure(WIDTH, 2.5) as figure:
        left, right = figure.subplots(1, 2)
        draw_objective(left, found.objective)
        left.set_title("Objective")
        draw_change(right, found.changes, found.tol)
        right.set_title("Relative change")
    label = f"The objective falls from {found.objective[0]:.4g} to {found.objective[-1]:.4g}."
    return Drawing(figure, label, "The objective after every iteration; it never rises.")


def doubt_section(summary: Summary) -> Section:
    """Return the section on the samples of the lowest confidence."""
    title, n_doubtful = "Samples of low confidence", sum(group.n_doubtful for group in summary.groups)
    text = (
        f"{counted(n_doubtful, 'sample')} of {summary.n_samples:,} have a confidence below {DOUBTFUL:g}. Check the "
        "least certain ones before you use their groups: they may be mixtures, errors in the data, or a rare type."
    )
    if summary.sample_ids is None:
        return Section(title, (Text(text), Text("Sample ids are left out of this report.", quiet=True)))
    rows = []
    for one in summary.doubtful:
        groups = group_name(one.group), "–" if one.other is None else group_name(one.other)
        rows.append((shorten(str(one.name)), share(one.confidence), *groups, summary.pattern_name(one.pattern)))
    columns = ("sample", "confidence", "group", "second nearest", "views present")
    caption = f"The {len(rows)} samples of the lowest confidence"
    return Section(title, (Text(text), simple_table(caption, columns, rows, numbers=False)))


def repeat_section(summary: Summary) -> Section:
    """Return the section on how to repeat the fit."""
    repeat = summary.repeat
    blocks: list[Block] = []
    if repeat.command:
        blocks += [Code(repeat.command), Text("Or in Python, with the views in views:")]
    blocks.append(Code(repeat.python))
    if not repeat.seed:
        blocks.append(Text("No seed was given (random_state): another run may give slightly different groups."))
    elif not repeat.seed.isdigit():
        blocks.append(Text(f"random_state was a {repeat.seed}: only the same state of it gives the same groups."))
    views = joined([f"{shorten(view.name)} ({view.n_samples:,} × {view.n_features:,})" for view in summary.views])
    facts = [("data", f"{counted(summary.n_samples, 'sample')}; {views}"), ("digest of the data", repeat.digest)]
    facts += [*repeat.versions, *((name, shorten(value, 400)) for name, value in repeat.run[:60])]
    text = (
        "The digest covers the values, the missing views and the names of the views, in this order of samples, but "
        "not the ids. The same data, settings, seed and versions give the same groups."
    )
    return Section("How to repeat it", (*blocks, Facts(tuple(facts)), Text(text, quiet=True)))
