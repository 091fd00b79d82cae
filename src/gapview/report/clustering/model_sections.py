"""Sections on the fit: settings, convergence, recovery of hidden views, samples of low confidence, repetition."""

from __future__ import annotations

import math

from ...choice.n_clusters import ClusterCount
from ...choice.selection import Selection
from ...utils.messages import NO_BREAK, counted, joined, percent
from ..blocks import Block, Cell, Code, Details, Facts, Items, Section, Text, drawing, present_blocks, simple_table
from .figures import draw_convergence, draw_counts
from .fit import Choices, Recovered
from .groups import DOUBTFUL
from .summary import Summary
from .words import group_name, pattern_name, share, shorten

# -- settings ----------------------------------------------------------------------------------------------------------


def settings_section(summary: Summary) -> Section:
    """Return the section on the settings, their origin, and the candidates."""
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
    blocks = present_blocks(
        *map(Text, reasons),
        *(() if choices.count is None else _count_blocks(choices.count)),
        Text(f"Weights of the views, 1 on average: {joined(weights)}.") if len(weights) > 1 else None,
        simple_table("Settings of the fit", ("setting", "value", "origin"), rows, numbers=False),
        None if selection is None or len(selection.trials) < 2 else _candidates(selection),
        *_searches(choices),
    )
    return Section("How the settings were chosen", blocks)


def _count_blocks(count: ClusterCount) -> tuple[Block | None, ...]:
    label = f"Modularity and stability for {count.counts[0]} to {count.counts[-1]} groups."
    caption = (
        "Modularity: how much more of the neighbour graph lies inside the groups than by chance. Stability: "
        "how similar the groups of resampled data are. The dotted line is the number chosen."
    )
    return Text(" ".join(count.reason().split())), drawing(draw_counts(count), label, caption, small=True)


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


_IS = f"{NO_BREAK}={NO_BREAK}"


def convergence_section(summary: Summary) -> Section:
    """Return the section on convergence."""
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
    label = f"The objective falls from {found.objective[0]:.4g} to {found.objective[-1]:.4g}."
    caption = "The objective after every iteration; it never rises."
    return Section("Convergence", present_blocks(Text(text), drawing(draw_convergence(found), label, caption)))


def recovery_section(summary: Summary) -> Section:
    """Return the section on the recovery of hidden views."""
    title = "How well hidden views are recovered"
    if len(summary.views) == 1:
        return Section(title, (Text("There is one view: nothing to recover it from."),))
    text = (
        "Each view was hidden from some samples that have it and another one, and recovered from all other samples. "
        "The error is relative to the error of the mean of the view: 100 % is no better than the mean, 0 % is perfect. "
        "The model was not fitted again, so that errors are slightly too small."
    )
    rows = [(shorten(one.view), *_recovery_cells(one)) for one in summary.recovered]
    columns = ("view", "samples tested", "error, share of the mean’s", "95 % interval", "")
    return Section(title, (Text(text), simple_table("Recovery of hidden views", columns, rows)))


def _recovery_cells(one: Recovered) -> tuple[Cell | str, ...]:
    if one.reason:
        return "0", "–", "–", one.reason
    words = "worse than the mean" if one.low > 1 else "no better than the mean"
    words = "better than the mean" if one.high < 1 else words
    error = Cell(f"{100 * one.error:.0f} %", tone="up" if one.high < 1 else "down")
    return f"{one.n_tested:,}", error, f"{100 * one.low:.0f} to {100 * one.high:.0f} %", words


def doubt_section(summary: Summary) -> Section:
    """Return the section on the samples of the lowest confidence."""
    title, n_doubtful = "The samples to look at", sum(group.n_doubtful for group in summary.groups)
    text = (
        f"{counted(n_doubtful, 'sample')} of {summary.n_samples:,} have a confidence below {DOUBTFUL:g}. Check the "
        "least certain ones before you use their groups: they may be mixtures, errors in the data, or a rare type."
    )
    if summary.sample_ids is None:
        return Section(title, (Text(text), Text("Sample ids are left out of this report.", quiet=True)))
    rows = []
    for one in summary.doubtful:
        groups = group_name(one.group), "–" if one.other is None else group_name(one.other)
        rows.append((shorten(str(one.name)), share(one.confidence), *groups, pattern_name(summary, one.pattern)))
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
