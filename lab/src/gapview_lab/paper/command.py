"""``gapview-lab reproduce``: run the experiments of the paper."""

from __future__ import annotations

import os
from pathlib import Path

import click
from rich.console import Console

from gapview.commands.console import new_console, print_files, print_line
from gapview.errors import ParameterError

from ..common.console import data_option, results_option, runs_shown, say_runs
from .published import PAPER_DATA
from .reproduce import ReproduceOutcome, ReproduceRequest
from .reproduce import reproduce as run_reproduction

__all__ = ["reproduce"]


@click.command(
    short_help="Run the paper's experiments.",
    epilog="Example: gapview-lab reproduce --data-dir data --data buaa --quick -o paper",
)
@results_option("gapview-paper")
@data_option("the data sets")
@click.option(
    "--data", multiple=True, type=click.Choice(list(PAPER_DATA)), help="Only this data set (may be repeated)."
)
@click.option("--table", multiple=True, type=click.IntRange(2, 5), help="Only this table (may be repeated).")
@click.option("--figure", multiple=True, type=click.IntRange(2, 5), help="Only this figure (may be repeated).")
@click.option("--folds", type=click.IntRange(1, 30), default=5, show_default=True, help="Ways of hiding views.")
@click.option("--quick", is_flag=True, help="Fewer rates, settings and folds: a first look, not the result.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True, help="Processes.")
def reproduce(
    output: Path,
    data_dir: Path | None,
    data: tuple[str, ...],
    table: tuple[int, ...],
    figure: tuple[int, ...],
    folds: int,
    quick: bool,
    jobs: int,
) -> None:
    """Run the experiments of the IMC_GRMF paper and compare the results with the published ones."""
    if data_dir is None:
        raise ParameterError(
            "The folder with the data sets is not known: give --data-dir, or set the environment variable GAPVIEW_DATA."
        )
    everything = not table and not figure
    request = ReproduceRequest(
        output=output,
        data_dir=data_dir,
        data=data or tuple(PAPER_DATA),
        tables=(2, 3, 4, 5) if everything else table,
        figures=(2, 3, 4, 5) if everything else figure,
        n_folds=folds,
        quick=quick,
        n_jobs=jobs,
    )
    console = new_console()
    with runs_shown(console) as progress:
        outcome = run_reproduction(request, progress, lambda line: print_line(console, "Left out", line))
    _print_outcome(console, outcome)


def _print_outcome(console: Console, outcome: ReproduceOutcome) -> None:
    say_runs(console, outcome)
    for table in outcome.tables:
        best = [_best(table.mean_accuracy(choice)) for choice in ("by labels", "fixed")]
        print_line(
            console,
            f"Table {table.data.table}",
            f"{table.data.title}, mean ACC in %: settings by labels, {best[0]}; fixed settings, {best[1]}.",
        )
    print_files(console, outcome.files)


def _best(means: dict[str, float]) -> str:
    """Name the best method, and GRMF beside it; methods that failed somewhere have no mean."""
    if not means:
        return "no method ran at all rates"
    winner = max(means, key=lambda method: means[method])
    ours = f" (GRMF {means['GRMF']:.1f})" if "GRMF" in means else ""
    return f"best {winner} {means[winner]:.1f}{ours}"
