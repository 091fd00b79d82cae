"""The page that ``gapview-lab reproduce`` writes: findings, runs, tables, figures, deviations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gapview.report.page import Block, Code, Details, Drawing, Items, Page, Section, Text, render
from gapview.utils.messages import counted, joined, spelled

from ..common.run_file import run_facts
from ..common.words import rates_text
from .findings import OURS, answer, deviations, far_words
from .methods import COMPARED
from .page_tables import LEGEND, data_table, glance_table, method_table, score_table, setting_table
from .published import METHODS, PAPER_DATA
from .tables import CHOICES, PaperTable
from .tasks import PaperPlan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["reproduction_page"]

_FIGURES = {
    2: ("Purity against the paired rate", "Lines of purity against the paired rate, one panel for each data set."),
    3: ("ACC over the two weights", "Heat maps of ACC, with numbers, over the weights λ1 and λ2 of GRMF."),
    4: ("ACC against the number of neighbours", "Lines of ACC against the number of nearest neighbours of GRMF."),
    5: ("Objective and ACC against the iteration", "Lines of objective and ACC of GRMF against the iteration."),
}
_ABOUT = (
    "This page re-runs the experiments of the paper on incomplete multi-view clustering with graph regularised matrix "
    "factorisation (IMC_GRMF; Wen, Zhang, Xu and Zhong, 2018) and sets every figure beside the printed one. The tables "
    f"also show {spelled(len(COMPARED) - len(METHODS))} methods that have no figures in print; Figure 2 does not."
)


def reproduction_page(
    tables: Sequence[PaperTable],
    figures: Mapping[int, Figure],
    plan: PaperPlan,
    skipped: Mapping[str, str],
    run: Mapping[str, Any],
) -> str:
    """Write the page.

    Parameters
    ----------
    tables : sequence of PaperTable
        The tables of this run; those without any score are left out.
    figures : dict of int to matplotlib figure
        The figures drawn, by their number in the paper, each with its caption as its label.
    plan : PaperPlan
        How much was run.
    skipped : dict of str to str
        For every data set that is absent, why.
    run : dict
        ``version``, ``seconds``, ``n_runs``, ``n_jobs``, ``machine``, ``peak_memory_mb``, ``finished``, and if it is
        known the ``command`` as typed.

    Returns
    -------
    str
        One self-contained HTML document.
    """
    shown = [table for table in tables if any(cell.mean for cell in table.cells.values())]
    drawings = tuple(_drawing(number, figure) for number, figure in sorted(figures.items()))
    sections = [
        Section("At a glance", (Text(_ABOUT), *_glance(shown), *_skip_lines(skipped))),
        _what_was_run(plan),
        *([Section("The tables", (*_reading(), *map(_table, shown)))] if shown else []),
        *([Section("The figures", drawings)] if drawings else []),
        _not_reproduced(shown, plan, skipped),
        _repeat(plan, run),
    ]
    footer = f"Made by gapview {run['version']} on {run['finished']}."
    return render(Page("The paper’s experiments, run again", answer(shown), tuple(sections), footer))


def _glance(tables: Sequence[PaperTable]) -> tuple[Block, ...]:
    return (glance_table(tables), LEGEND) if tables else ()


def _skip_lines(skipped: Mapping[str, str]) -> tuple[Block, ...]:
    names = [f"{PAPER_DATA[key].title} (Table {PAPER_DATA[key].table})" for key in skipped if key in PAPER_DATA]
    return (Text(f"Not run for want of data: {', '.join(names)}."),) if names else ()


def _what_was_run(plan: PaperPlan) -> Section:
    protocol = (
        f"From every data set views are hidden so that a share of the samples, the paired rate, keeps both views, and "
        f"half of the others keep only the first, half only the second. Rates {rates_text(plan.rates)}; "
        f"{counted(plan.n_folds, 'fold')}, each with other samples paired and another random start. {_starts(plan)}"
        "Scores are means over the folds, ± is the standard deviation over them."
    )
    choices = tuple((f"{choice}:", f"{words}.") for choice, words in CHOICES.items())
    return Section(
        "What was run",
        (
            Text(protocol),
            Text("Settings are chosen in two ways, and both are always shown:"),
            Items(choices),
            Text(
                "Choosing by labels uses what nobody has who needs to cluster, and fold 0 is both chosen on and "
                "scored: it flatters methods that have much to set. The fixed settings are what to expect in use."
            ),
            data_table([PAPER_DATA[key] for key in plan.data]),
            method_table(plan),
        ),
    )


def _starts(plan: PaperPlan) -> str:
    repeated = [key for key in plan.data if len(plan.starts(key)) > 1]
    if not repeated:
        return ""
    names = joined([PAPER_DATA[key].title for key in repeated])
    return (
        f"On {names} every run is done from {len(plan.starts(repeated[0]))} random starts, whose scores are averaged. "
    )


def _reading() -> tuple[Block, ...]:
    return (
        Text(
            "Scores in %. Behind every mean stands its standard deviation over the folds, then the difference from "
            "print in points. A star marks the best method at that rate, for the same score and way of choosing. The "
            f"paper prints no numbers for purity, and none for the methods below {METHODS[-1]}."
        ),
        LEGEND,
    )


def _table(table: PaperTable) -> Section:
    title = f"Table {table.data.table}: {table.data.title}"
    chosen = Details("Settings chosen by labels", (setting_table(table),))
    return Section(title, (Text(table.data.preprocessing), score_table(table), chosen))


def _drawing(number: int, figure: Figure) -> Drawing:
    title, label = _FIGURES[number]
    return Drawing(figure, label, str(figure.get_label()), f"Figure {number}. {title}.")


def _not_reproduced(tables: Sequence[PaperTable], plan: PaperPlan, skipped: Mapping[str, str]) -> Section:
    blocks: list[Block] = []
    for choice in CHOICES if tables else ():
        blocks.append(Text(far_words(tables, choice)))
        listed = deviations(tables, choice)
        if listed and choice == "by labels":
            blocks.append(Items(listed))
        elif listed:
            blocks.append(Details("Which ones, with fixed settings", (Items(listed),)))
    reasons = [*_reasons(tables, plan), *(("Data not at hand:", line) for line in skipped.values())]
    if reasons:
        blocks += [Text("Known reasons, and what is not the same as in the paper:"), Items(tuple(reasons))]
    return Section("What was not reproduced, and why", tuple(blocks))


def _reasons(tables: Sequence[PaperTable], plan: PaperPlan) -> list[tuple[str, str]]:
    """Return the known differences from the paper: preparation, settings, programs."""
    found = []
    unlike = [table.data for table in tables if table.data.scale != "unit"]
    found += [(f"{data.title}, preparation:", data.preprocessing) for data in unlike]
    for name in METHODS if tables else ():
        compared = COMPARED[name]
        if compared.note and len(compared.grid) > 1 and name != OURS:  # those with nothing to set differ in nothing
            found.append((f"{name}:", f"{compared.note}."))
    if tables and plan.n_settings < 9:
        most = counted(plan.n_settings, "setting")
        found.append(("Short run:", f"at most {most} for each method, where the full run has nine."))
    if tables and plan.n_folds < 5:
        found.append(("Few folds:", f"{counted(plan.n_folds, 'fold')}, where the paper has five."))
    found.append(
        ("Programs:", f"all {len(COMPARED)} methods are written anew in gapview, not taken from their authors.")
    )
    return found


def _repeat(plan: PaperPlan, run: Mapping[str, Any]) -> Section:
    command = run.get("command") or f"gapview-lab reproduce --folds {plan.n_folds} -o DIR"
    return Section(
        "How to repeat it",
        (
            Code(str(command)),
            Text(
                "The data sets are looked for in the folder that GAPVIEW_DATA or --data-dir names. Results are stored "
                "as they come: an interrupted run goes on where it stopped. The result of every single run stands in "
                "the CSV file beside this page."
            ),
            run_facts(run),
        ),
    )
