"""What there is to say of the fit: convergence, recovery of hidden views, samples in doubt, and how to repeat it."""

from __future__ import annotations

import math

from ...utils.words import NO_BREAK, counted, joined
from .._blocks import Block, Cell, Code, Drawing, Facts, Group, Row, Section, Table, Text, Tone
from ._recovery import Recovered
from ._summary import Summary
from .figures import draw_convergence
from .groups import DOUBTFUL
from .words import group_name, pattern_name, share, shorten

__all__ = ["convergence_section", "doubt_section", "recovery_section", "repeat_section"]

_IS = f"{NO_BREAK}={NO_BREAK}"


def convergence_section(summary: Summary) -> Section:
    """Show how the objective fell."""
    found = summary.convergence
    n_iterations = len(found.objective)
    if found.settled:
        text = (
            f"The objective settled after {counted(n_iterations, 'iteration')}: its last relative change, "
            f"{found.last_change:.1e}, was below tol{_IS}{found.tol:g}."
        )
    elif found.tol == 0:
        text = f"All {n_iterations} iterations were done, as tol{_IS}0 asks for."
    else:
        change = "" if math.isnan(found.last_change) else f" Its last relative change was {found.last_change:.1e}."
        text = (
            f"The objective had not settled to tol{_IS}{found.tol:g} after max_iter{_IS}{n_iterations}.{change} Raise "
            "max_iter: the groups may still change."
        )
    blocks: list[Block] = [Text(text)]
    drawn = draw_convergence(found)
    if drawn is not None:
        label = f"The objective falls from {found.objective[0]:.4g} to {found.objective[-1]:.4g}."
        blocks.append(Drawing(drawn, label, "The objective after every iteration; it never rises."))
    return Section("Convergence", tuple(blocks))


def recovery_section(summary: Summary) -> Section:
    """Show how well views are recovered that were hidden."""
    if len(summary.views) == 1:
        return Section("How well hidden views are recovered", (Text("There is one view: nothing to recover it from."),))
    text = (
        "Each view was hidden from some samples that have it and another one, these samples were taken out of what the "
        "model may look things up in, and the model was asked for the view. The error is a share of that of filling in "
        "the mean of the view: 100 % is no better than the mean, 0 % is perfect. The model was not fitted again, so "
        "that errors are slightly too small."
    )
    rows = tuple(_recovery_row(one) for one in summary.recovered)
    columns = ("view", "samples asked", "error, share of the mean’s", "95 % interval", "")
    return Section(
        "How well hidden views are recovered",
        (Text(text), Table("Recovery of hidden views", columns, (Group(rows),), numbers=True, narrow=True)),
    )


def _recovery_row(one: Recovered) -> Row:
    if one.reason:
        return Row((shorten(one.view),), ("0", "–", "–", one.reason))
    words = "no better than the mean" if one.high >= 1 else "better than the mean"
    words = "worse than the mean" if one.low > 1 else words
    tone: Tone = "up" if one.high < 1 else "down"
    interval = f"{100 * one.low:.0f} to {100 * one.high:.0f} %"
    return Row((shorten(one.view),), (f"{one.n_asked:,}", Cell(f"{100 * one.error:.0f} %", tone=tone), interval, words))


def doubt_section(summary: Summary) -> Section:
    """List the samples of the lowest confidence."""
    names = [view.name for view in summary.views]
    n_doubtful = sum(group.n_doubtful for group in summary.groups)
    text = (
        f"{counted(n_doubtful, 'sample')} of {summary.n_samples:,} have a confidence below {DOUBTFUL:g}. Look at the "
        "least certain ones before building on their groups: they may be mixtures, mistakes, or of a kind of their own."
    )
    if summary.sample_ids is None:
        return Section(
            "The samples to look at", (Text(text), Text("Sample ids are left out of this report.", quiet=True))
        )
    rows = tuple(
        Row(
            (shorten(str(one.name)),),
            (
                share(one.confidence),
                group_name(one.group),
                "–" if one.other is None else group_name(one.other),
                pattern_name(summary.gaps.patterns[one.pattern], names),
            ),
        )
        for one in summary.doubtful
    )
    columns = ("sample", "confidence", "group", "next nearest", "views present")
    table = Table(f"The {len(rows)} samples of the lowest confidence", columns, (Group(rows),))
    return Section("The samples to look at", (Text(text), table))


def repeat_section(summary: Summary) -> Section:
    """Say how to do it again."""
    repeat = summary.repeat
    blocks: list[Block] = [Code(repeat.command)] if repeat.command else []
    if repeat.command:
        blocks.append(Text("Or in Python, with the views in views:"))
    blocks.append(Code(repeat.python))
    if not repeat.seed:
        blocks.append(Text("No seed was given (random_state): another run may end a little differently."))
    elif not repeat.seed.isdigit():
        blocks.append(Text(f"random_state was a {repeat.seed}: only the same state of it gives the same groups."))
    views = joined([f"{shorten(view.name)} ({view.n_samples:,} × {view.n_features:,})" for view in summary.views])
    facts = [("data", f"{counted(summary.n_samples, 'sample')}; {views}"), ("digest of the data", repeat.digest)]
    facts += [*repeat.versions, *((name, shorten(value, 400)) for name, value in repeat.run[:60])]
    blocks.append(Facts(tuple(facts)))
    blocks.append(
        Text(
            "The digest is that of the numbers, of what is missing and of the names of the views, in this order of "
            "samples; ids do not count. The same data, settings, seed and versions give the same groups.",
            quiet=True,
        )
    )
    return Section("How to repeat it", tuple(blocks))
