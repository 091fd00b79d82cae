"""The results of the tables in sentences that are computed from the figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gapview.utils.messages import NO_BREAK, counted, joined, spelled

from ..common.words import rates_text, signed
from .methods import COMPARED
from .published import METHODS, PaperData
from .tables import CHOICES, PaperCell, PaperTable

__all__ = ["FAR", "NEAR", "OURS", "Duel", "answer", "deviations", "duels", "far_words", "problems"]

OURS = "GRMF"
NEAR, FAR = 2.0, 5.0  # points from print: up to NEAR counts as reproduced, beyond FAR as not
_SCORES = ("ACC", "NMI")
_WAYS = {"by labels": "With settings chosen by labels", "fixed": "With one fixed setting and no labels"}
_IN_SHORT = {"by labels": "by labels", "fixed": "with fixed settings"}


@dataclass(frozen=True)
class Duel:
    """GRMF against the best of the others, on one data set at one rate."""

    data: PaperData
    rate: float
    ours: PaperCell
    rival: str
    theirs: PaperCell

    @property
    def lead(self) -> float:
        """Points of ACC by which GRMF is ahead, negative where it is behind."""
        return self.ours.mean["accuracy"] - self.theirs.mean["accuracy"]

    @property
    def clear(self) -> bool:
        """Whether the lead is more than the spread over folds of either."""
        return self.lead > max(self.ours.spread["accuracy"], self.theirs.spread["accuracy"])


def duels(tables: Iterable[PaperTable], choice: str, methods: Iterable[str] = METHODS) -> list[Duel]:
    """Compare GRMF with the best other of some methods, by default the paper's, wherever both have a score."""
    rivals = [name for name in methods if name != OURS]
    found = []
    for table in tables:
        for rate in table.rates:
            ours = table.cells[choice, OURS, rate]
            scored = {name: cell for name in rivals if (cell := table.cells[choice, name, rate]).mean}
            if ours.mean and scored:
                rival = max(scored, key=lambda name: scored[name].mean["accuracy"])
                found.append(Duel(table.data, rate, ours, rival, scored[rival]))
    return found


def answer(tables: Sequence[PaperTable]) -> tuple[str, ...]:
    """Return sentences on how far the paper's tables were reproduced."""
    near = [text for choice in CHOICES if (text := _against_print(tables, choice))]
    if not near:
        return ("There are no scores of GRMF here, so nothing can be said about the paper's tables.",)
    return (f"{near[0]} (A cell is one data set at one share of paired samples.)", *near[1:], _rivals(tables))


def _against_print(tables: Sequence[PaperTable], choice: str) -> str:
    cells = (table.cells[choice, OURS, rate] for table in tables for rate in table.rates)
    differences = [cell.difference for cell in cells if cell.difference is not None]
    if not differences:
        return ""
    accuracy, nmi = (_sides([pair[place] for pair in differences]) for place in range(2))
    where = counted(len(differences), "cell")
    return (
        f"{_WAYS[choice]}, GRMF is within {NEAR:g} points of the printed ACC in {accuracy[0]} of {where}, higher in "
        f"{accuracy[1]} and lower in {accuracy[2]}; of the printed NMI in {nmi[0]}, higher in {nmi[1]} and lower in "
        f"{nmi[2]}."
    )


def _sides(values: Sequence[float]) -> tuple[int, int, int]:
    """Count what lies near print, above and below."""
    above, below = sum(value > NEAR for value in values), sum(value < -NEAR for value in values)
    return len(values) - above - below, above, below


def _rivals(tables: Sequence[PaperTable]) -> str:
    found = {choice: duels(tables, choice) for choice in CHOICES}
    if not any(found.values()):
        return "No other method has a score, so GRMF is compared with none."
    printed = [_printed_ahead(table, rate) for table in tables for rate in table.rates]
    claim = f"in print in {sum(printed)} of {len(printed)}"
    opening = f"Of the paper’s {spelled(len(METHODS))} methods, GRMF has the highest ACC {_best_in(found)}; {claim}."
    sentences = [opening]
    if len(tables) > 1:
        places = [
            f"{table.data.title} {' and '.join(_leads(found[way], table) for way in CHOICES)}" for table in tables
        ]
        sentences.append(f"Its leads data set by data set, by labels and with fixed settings: {'; '.join(places)}.")
    sentences += _gaps(tables)
    if any(table.mean_accuracy(choice).keys() - METHODS for table in tables for choice in CHOICES):
        everyone = {choice: duels(tables, choice, COMPARED) for choice in CHOICES}
        sentences.append(f"Of all {len(COMPARED)} methods of the tables, it has the highest ACC {_best_in(everyone)}.")
    return " ".join(sentences)


def _best_in(found: Mapping[str, Sequence[Duel]]) -> str:
    return joined([f"in {_ahead(found[choice])} {_IN_SHORT[choice]}" for choice in CHOICES])


def _gaps(tables: Sequence[PaperTable]) -> list[str]:
    """Return a sentence on the cells in which not all methods of the paper could be compared."""
    parts = []
    for choice in CHOICES:
        places = [(table, rate) for table in tables for rate in table.rates]
        gaps = sum(not all(table.cells[choice, name, rate].mean for name in METHODS) for table, rate in places)
        if gaps:
            parts.append(f"{counted(gaps, 'cell')} {_IN_SHORT[choice]}")
    return [f"In {joined(parts)} some method has no score; there only the others are compared."] if parts else []


def _ahead(found: Sequence[Duel]) -> str:
    """Count the cells in which GRMF leads, and those where folds alone would not explain it."""
    ahead = [duel for duel in found if duel.lead > 0]
    spread = any(duel.ours.n_folds > 1 for duel in ahead)
    clear = f" ({sum(duel.clear for duel in ahead)} by more than the spread over folds)" if spread else ""
    return f"{len(ahead)} of {counted(len(found), 'cell')}{clear}"


def _leads(found: Sequence[Duel], table: PaperTable) -> str:
    own = [duel.lead > 0 for duel in found if duel.data.key == table.data.key]
    return f"{sum(own)} of {len(own)}"


def _printed_ahead(table: PaperTable, rate: float) -> bool:
    printed = {name: cell.printed[0] for name in METHODS if (cell := table.cells["fixed", name, rate]).printed}
    return all(printed[OURS] > score for name, score in printed.items() if name != OURS)


def deviations(tables: Sequence[PaperTable], choice: str) -> tuple[tuple[str, str], ...]:
    """List, method by method, the scores more than FAR points from print."""
    listed = []
    for method in METHODS:
        parts = [text for table in tables if (text := _far_off(table, choice, method))]
        if parts:
            listed.append((f"{method}:", ". ".join(parts) + "."))
    return tuple(listed)


def _far_off(table: PaperTable, choice: str, method: str) -> str:
    """List the scores of a method far from print, such as ``Cornell: ACC lower at 0.1 (−6.2)``."""
    words = []
    for place, score in enumerate(_SCORES):
        cells = {rate: table.cells[choice, method, rate].difference for rate in table.rates}
        values = {rate: difference[place] for rate, difference in cells.items() if difference is not None}
        for side, sign in (("lower", -1), ("higher", 1)):
            far = {rate: value for rate, value in values.items() if sign * value > FAR}
            if far:
                words.append(f"{score} {side} at {_rates_and_values(far, len(table.rates))}")
    return f"{table.data.title}, {'; '.join(words)}" if words else ""


def _rates_and_values(far: dict[float, float], n_rates: int) -> str:
    if len(far) == n_rates > 2:
        return f"every rate (from {signed(min(far.values()))} to {signed(max(far.values()))})"
    return joined([f"{rate:g}{NO_BREAK}({signed(value)})" for rate, value in far.items()])


def far_words(tables: Sequence[PaperTable], choice: str) -> str:
    """Count the scores more than FAR points from print, by data set and sign."""
    differences = {table.data.title: _differences(table, choice) for table in tables}
    far = {title: [value for value in values if abs(value) > FAR] for title, values in differences.items()}
    everything = [value for values in far.values() for value in values]
    n_scores = sum(map(len, differences.values()))
    opening = (
        f"{_WAYS[choice]}, {len(everything)} of {n_scores} scores (ACC and NMI) are more than {FAR:g} points from print"
    )
    if not everything:
        return f"{opening}."
    above = sum(value > 0 for value in everything)
    where = joined([f"{len(values)} on {title}" for title, values in far.items() if values])
    return f"{opening}: {above} above and {len(everything) - above} below; {where}."


def _differences(table: PaperTable, choice: str) -> list[float]:
    cells = [cell for (way, _, _), cell in table.cells.items() if way == choice]
    return [value for cell in cells if cell.difference is not None for value in cell.difference]


def problems(table: PaperTable) -> tuple[str, ...]:
    """Return where methods failed, once for each method and message."""
    where: dict[tuple[str, str], dict[str, list[float]]] = {}
    for (choice, method, rate), cell in table.cells.items():
        if cell.problem:
            where.setdefault((method, cell.problem), {}).setdefault(choice, []).append(rate)
    return tuple(
        f"† {method}, {joined([f'{choice} at {rates_text(rates)}' for choice, rates in found.items()])}: {problem}"
        + ("" if problem.endswith(".") else ".")
        for (method, problem), found in where.items()
    )
