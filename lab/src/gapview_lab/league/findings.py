"""The results of the league in sentences that are computed from the figures."""

from __future__ import annotations

from collections.abc import Sequence

from gapview.utils.messages import counted, joined

from ..common.words import signed
from .summary import LABEL_FREE, Lead, LeagueSummary, Ranking

__all__ = ["NAMES", "NEAR", "answer", "failures", "rare_words"]

NEAR = 2.0  # points below the best rival that count as level with it
NAMES = {"accuracy": "ACC", "nmi": "NMI", "ari": "ARI", "purity": "purity"}
_HEADLINES = ("accuracy", "nmi")


def answer(summary: LeagueSummary) -> tuple[str, ...]:
    """Return sentences on the best method, and on ours overall and in its worst cell."""
    how = "Without labels" if summary.way == LABEL_FREE else "With settings chosen by labels, an upper bound"
    sentences = [_means(summary, summary.common, f"{how}, over the")]
    if summary.steady.cells != summary.common.cells and summary.steady.places:
        count = counted(len(summary.steady.places), "method")
        sentences.append(_means(summary, summary.steady, f"Counting only the {count} that ran everywhere, over all"))
    if summary.rare:
        sentences.append(rare_words(summary))
    if summary.ours is None:
        sentences.append("No method of ours took part, so that nothing is compared with it.")
    else:
        sentences += [_worst(summary, score) for score in _HEADLINES if summary.leads_in(score)]
        sentences += [_held_out(summary)] if summary.held_out("accuracy") else []
        absent = sum(not summary.scores[cell, summary.ours].mean for cell in summary.cells)
        if absent:
            sentences.append(f"{summary.ours} has no score in {counted(absent, 'cell')}, where it failed.")
    return tuple(sentences)


def rare_words(summary: LeagueSummary) -> str:
    """Return a sentence on the methods that ran in fewer than half of the cells."""
    found = joined([f"{method} ({n_cells} of {len(summary.cells)})" for method, n_cells in summary.rare.items()])
    return f"Methods that ran in fewer than half of the cells are in none of these means: {found}."


def _means(summary: LeagueSummary, table: Ranking, opening: str) -> str:
    if not table.places or not table.cells:
        n_methods = counted(len(summary.methods) - len(summary.rare), "method")
        return f"There is no cell in which all {n_methods} ran, so there are no means."
    where = f"{opening} {counted(len(table.cells), 'cell')} of {counted(table.n_data, 'data set')}"
    if summary.way == LABEL_FREE and table is summary.common:
        where += f" in which all {counted(len(table.places), 'method')} ran (a cell is one data set at one rate)"
    return f"{where}, {joined([_ranking(summary, table, score) for score in _HEADLINES])}."


def _ranking(summary: LeagueSummary, table: Ranking, score: str) -> str:
    """Return a clause on the best method by one score, and on ours or, if ours is best, the best rival."""
    order = sorted(table.places, key=lambda place: -place.mean[score])
    text = f"{order[0].method} has the highest mean {NAMES[score]}, {order[0].mean[score]:.1f}"
    names = [place.method for place in order]
    if summary.ours in names[1:]:
        place = names.index(summary.ours)
        return f"{text} ({summary.ours} is number {place + 1} of {len(order)} with {order[place].mean[score]:.1f})"
    rival = next((place for place in order[1:] if place.method in summary.rivals or summary.ours is None), None)
    return text if rival is None else f"{text} (the best rival is {rival.method}, {rival.mean[score]:.1f})"


def _worst(summary: LeagueSummary, score: str) -> str:
    leads = summary.leads_in(score)
    worst = leads[0]
    below, ahead = sum(lead.points < -NEAR for lead in leads), sum(lead.points > 0 for lead in leads)
    far = "in no cell" if not below else f"in {below} of {counted(len(leads), 'cell')}"
    return (
        f"In {NAMES[score]} {summary.ours} is {far} more than {NEAR:g} points below the best rival there, and ahead of "
        f"every rival in {ahead} of {len(leads)}; its worst cell is {_cell_words(worst)}."
    )


def _held_out(summary: LeagueSummary) -> str:
    """Return sentences on the leads over rivals that were chosen with other seeds than those compared."""
    found = {NAMES[score]: summary.held_out(score) for score in ("accuracy", "nmi", "ari")}
    n_cells = counted(len(found["ACC"]), "cell")
    means = {name: signed(sum(one.points for one in leads.values()) / len(leads)) for name, leads in found.items()}
    text = (
        f"Against the best rival of every cell, chosen with other seeds than those compared, {summary.ours} has a mean "
        f"lead of {joined([f'{mean} points in {name}' for name, mean in means.items()])}, over {n_cells}."
    )
    for name, leads in found.items():
        behind = [cell.text for cell, one in leads.items() if one.is_behind_by(NEAR)]
        share = f"{len(behind)} of {n_cells} ({100 * len(behind) / len(leads):.0f} %)"
        where = f": {'; '.join(behind)}" if behind else ""
        text += f" In {name} it is behind by more than {NEAR:g} points and two standard errors in {share}{where}."
    return text


def _cell_words(lead: Lead) -> str:
    side = "below" if lead.points < 0 else "above"
    return (
        f"{lead.cell.text}, {abs(lead.points):.1f} points {side} {lead.rival} ({lead.ours:.1f} and {lead.theirs:.1f})"
    )


def failures(summaries: Sequence[LeagueSummary]) -> tuple[tuple[str, str], ...]:
    """List where methods are absent and why, once for every method and reason."""
    where: dict[tuple[str, str], list[str]] = {}
    for summary in summaries:
        for (cell, method), score in summary.scores.items():
            if score.problem:
                places = where.setdefault((method, score.problem), [])
                places += [cell.text] if cell.text not in places else []
    return tuple((f"{method}:", f"{problem} ({'; '.join(cells)})") for (method, problem), cells in where.items())
