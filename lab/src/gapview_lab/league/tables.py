"""The tables of the league, for the page and for Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gapview.report.page import Cell, Group, Legend, Row, Table, Tone
from gapview.utils.messages import counted

from ..common.words import setting_text, signed
from ..paper.methods import read_setting
from .data import HIDINGS, LeagueCell, Source
from .entrants import Entrant
from .findings import NAMES, NEAR
from .runs import SCORES
from .summary import Difference, HeldOut, Lead, LeagueSummary, Ranking, Score

__all__ = [
    "LEGEND",
    "data_table",
    "difference_table",
    "held_out_table",
    "lead_table",
    "method_table",
    "ranking_table",
    "score_table",
    "seconds_table",
    "setting_table",
]

LEGEND = Legend(
    (
        ("up-strong", f"more than {NEAR:g} points ahead of the best rival"),
        ("up", "ahead"),
        ("down", f"behind by at most {NEAR:g}"),
        ("down-strong", f"more than {NEAR:g} points behind"),
    )
)


def ranking_table(ranking: Ranking, caption: str) -> Table:
    """Show the methods in the order of their mean accuracy."""
    columns = {name: [place.mean[name] for place in ranking.places] for name in SCORES}
    columns["by data"] = [place.mean_by_data for place in ranking.places]
    rows = []
    for k, place in enumerate(ranking.places):
        means = [Cell(f"{values[k]:.1f}", best=_top(values[k], values)) for values in columns.values()]
        rest = (f"{place.mean_rank:.1f}", str(place.n_best), _seconds(place.seconds))
        rows.append(Row((f"{place.rank}", place.method), (*means, *rest)))
    heads = ("", "method", *NAMES.values(), "ACC, data sets alike", "mean rank", "best in", "seconds")
    note = (
        "Means over the cells; “data sets alike” averages every data set first, so that one with many rates does not "
        "count more. Mean rank and “best in” (number of cells) are by ACC within the cells. Seconds: median of a run."
    )
    return Table(caption, heads, (Group(tuple(rows)),), notes=(note,), numbers=True)


def difference_table(summary: LeagueSummary) -> Table:
    """Show how far ours is ahead of every rival, with intervals."""
    by_rival: dict[str, dict[str, Difference]] = {}
    for difference in summary.differences:
        by_rival.setdefault(difference.rival, {})[difference.score] = difference
    rows = []
    for rival, found in sorted(by_rival.items(), key=lambda pair: pair[1]["accuracy"].mean):
        first = found["accuracy"]
        cells = [_interval(found[score]) for score in SCORES]
        rows.append(Row((rival,), (*cells, f"{first.n_ahead} / {first.n_behind}", f"{first.n_cells} / {first.n_data}")))
    heads = ("rival", *NAMES.values(), "ahead / behind", "cells / data")
    caption = f"{summary.ours} minus rival in points, over the cells in which both ran, with 95 % interval"
    note = (
        "Views are hidden alike for both in every run, so that differences are paired. The interval draws whole data "
        "sets anew (bootstrap), since cells of one data set are not independent; it says nothing about data unlike "
        "these, and data sets that stem from one source count as several. “Ahead / behind” counts cells by ACC; the "
        "last column says how many cells of how many data sets."
    )
    return Table(caption, heads, (Group(tuple(rows)),), notes=(note,), numbers=True)


def _interval(difference: Difference) -> Cell:
    known = difference.low == difference.low
    detail = f"({signed(difference.low)} to {signed(difference.high)})" if known else "(no interval)"
    clear = known and (difference.low > 0 or difference.high < 0)
    tone: Tone = "plain" if not clear else "up" if difference.mean > 0 else "down"
    return Cell(signed(difference.mean), detail, tone=tone)


def lead_table(summary: LeagueSummary) -> Table:
    """Compare ours with the best rival, cell by cell, the worst first."""
    nmi = {lead.cell: lead for lead in summary.leads_in("nmi")}
    rows = [
        Row((lead.cell.text,), (*_lead_cells(lead), *_lead_cells(nmi[lead.cell])))
        for lead in summary.leads_in("accuracy")
    ]
    heads = ("cell", "ACC", "best rival", "lead", "NMI", "best rival", "lead")
    caption = f"{summary.ours} beside the best rival of every cell, in % and points, the worst cell first"
    return Table(caption, heads, (Group(tuple(rows)),), numbers=True)


def held_out_table(summary: LeagueSummary) -> Table:
    """Compare ours with the best rival of every cell, chosen with other seeds, the worst cell first."""
    found = {NAMES[score]: summary.held_out(score) for score in ("accuracy", "nmi", "ari")}
    rows = [
        Row((cell.text,), tuple(shown for leads in found.values() for shown in _lead_cells(leads[cell])))
        for cell in found["ACC"]
    ]
    heads = ("cell", *(head for name in found for head in (name, "best rival", "lead")))
    caption = f"{summary.ours} beside the best rival of every cell, chosen with other seeds, in % and points"
    note = (
        "With at least four seeds, the first half of the seeds chooses the best rival of every cell and score, and the "
        "figures are those of the second half; with two or three, every seed is compared with the rival that is best "
        "with the others. ±: standard error of the lead, which is paired by seed. ‡: behind by more than "
        f"{NEAR:g} points and two standard errors."
    )
    return Table(caption, heads, (Group(tuple(rows)),), notes=(note,), numbers=True)


def _lead_cells(lead: Lead | HeldOut) -> tuple[Cell, ...]:
    far = abs(lead.points) > NEAR
    tone: Tone = ("up-strong" if far else "up") if lead.points > 0 else ("down-strong" if far else "down")
    shown, text, detail = tone if lead.points else "plain", signed(lead.points), ""
    if isinstance(lead, HeldOut):
        text, detail = text + (" ‡" if lead.is_behind_by(NEAR) else ""), f"±{lead.error:.1f}"
    return Cell(f"{lead.ours:.1f}"), Cell(f"{lead.theirs:.1f}", lead.rival), Cell(text, detail, tone=shown)


def score_table(summary: LeagueSummary, data: str, scores: Sequence[str]) -> Table:
    """Show some scores of all methods on one data set."""
    cells = [cell for cell in summary.cells if cell.data == data]
    groups = []
    for name in scores:
        rows = [
            Row((method,), tuple(_score(summary, cell, method, name) for cell in cells)) for method in summary.methods
        ]
        groups.append(Group(tuple(rows), NAMES[name]))
    names = ", ".join(NAMES[name] for name in scores)
    caption = f"{data}, {summary.way}: {names} in %, mean and standard deviation over the seeds"
    heads = ("method", *(cell.rate_text for cell in cells))
    return Table(caption, heads, tuple(groups), notes=_problems(summary, cells), numbers=True)


def _score(summary: LeagueSummary, cell: LeagueCell, method: str, name: str) -> Cell:
    score = summary.scores[cell, method]
    if not score.mean:
        return Cell("absent †", tone="problem", tip=score.problem)
    others = [summary.scores[cell, other].mean for other in summary.methods]
    best = _top(score.mean[name], [mean[name] for mean in others if mean])
    spread = f"±{score.spread[name]:.1f}" if score.n_seeds > 1 else ""
    return Cell(f"{score.mean[name]:.1f}", spread, best=best)


def _problems(summary: LeagueSummary, cells: Sequence[LeagueCell]) -> tuple[str, ...]:
    found: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        for method in summary.methods:
            problem = summary.scores[cell, method].problem
            if problem:
                found.setdefault((method, problem), []).append(cell.rate_text)
    return tuple(f"† {method} ({', '.join(where)}): {problem}" for (method, problem), where in found.items())


def seconds_table(summary: LeagueSummary) -> Table:
    """Show the mean time of a run, data set by data set."""
    data = list(dict.fromkeys(cell.data for cell in summary.cells))
    rows = []
    for method in summary.methods:
        times = [
            [
                summary.scores[cell, method].seconds
                for cell in summary.cells
                if cell.data == name and _ran(summary, cell, method)
            ]
            for name in data
        ]
        rows.append(Row((method,), tuple(_seconds(sum(own) / len(own)) if own else "–" for own in times)))
    caption = f"Seconds of one run on one thread, mean over cells and seeds, {summary.way}"
    return Table(caption, ("method", *data), (Group(tuple(rows)),), numbers=True)


def _ran(summary: LeagueSummary, cell: LeagueCell, method: str) -> bool:
    return bool(summary.scores[cell, method].mean)


def setting_table(summary: LeagueSummary) -> Table:
    """Show which settings the labels chose."""
    groups = []
    for data in dict.fromkeys(cell.data for cell in summary.cells):
        cells = [cell for cell in summary.cells if cell.data == data]
        rows = [
            Row((method, cell.rate_text), (_chosen(summary.scores[cell, method]),))
            for method in summary.methods
            for cell in cells
        ]
        groups.append(Group(tuple(rows), data))
    return Table("Settings chosen by labels", ("method", "rate", "setting"), tuple(groups))


def _chosen(score: Score) -> str:
    if not score.mean:
        return "absent"
    setting = read_setting(score.setting)
    return setting_text(setting) if setting else "default"


def data_table(sources: Sequence[Source], n_seeds: int) -> Table:
    """Describe the data, and how views were hidden."""
    rows = []
    for source in sources:
        origin = "embedded or made" if source.path is None else "file"
        rates = ", ".join(cell.rate_text for cell in source.cells)
        seeds = min(n_seeds, source.n_seeds)
        drawn = source.n_published is not None and source.n_published < seeds
        shown = f"{seeds}, the first {source.n_published} as published" if drawn else str(seeds)
        rows.append(Row((source.name,), (origin, source.contents, f"{source.hiding}: {rates}", shown)))
    notes = tuple(
        f"{hiding}: {words}." for hiding, words in HIDINGS.items() if any(s.hiding == hiding for s in sources)
    )
    return Table("Data", ("data set", "from", "contents", "hidden", "seeds"), (Group(tuple(rows)),), notes=notes)


def method_table(entrants: Sequence[Entrant], programs: Mapping[str, str], tuned: bool) -> Table:
    """List the methods, and how many settings were tried."""
    rows = []
    for entrant in entrants:
        count = counted(len(entrant.settings), "setting") if tuned else "not tuned"
        rows.append(Row((entrant.name,), (programs[entrant.name], count, entrant.note)))
    return Table("Methods", ("method", "program", "tried with labels", "remark"), (Group(tuple(rows)),))


def _top(value: float, values: Sequence[float]) -> bool:
    return round(value, 1) >= round(max(values), 1)


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds < 10 else f"{seconds:.0f}"
