"""``gapview-lab league``: compare how well all methods cluster."""

from __future__ import annotations

import os
from pathlib import Path

import click
from rich.console import Console

from gapview.commands.console import new_console, print_files, print_line

from ..common.console import data_option, listed, results_option, runs_shown, say_runs
from .findings import rare_words
from .league import LeagueOutcome, LeagueRequest, run_league
from .published_tables import brief_lines

__all__ = ["league"]


def _listed_rates(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[float, ...]:
    try:
        rates = tuple(float(text) for text in listed(context, parameter, values))
    except ValueError:
        raise click.BadParameter("give numbers from 0 to 1, such as 0.1,0.5") from None
    if not all(0 <= rate <= 1 for rate in rates):
        raise click.BadParameter("give numbers from 0 to 1, such as 0.1,0.5")
    return rates


@click.command(
    short_help="Compare how well all methods cluster.",
    epilog="Example: gapview-lab league --data mine.npz --methods GRMF,ImputedSpectral --seeds 3 -o league",
)
@results_option("gapview-league")
@data_option(".npz files")
@click.option("--data", multiple=True, help="Only this data set, by its name, or a file of yours (may be repeated).")
@click.option("--methods", multiple=True, callback=listed, help="Only these methods, separated by commas.")
@click.option("--rates", multiple=True, callback=_listed_rates, help="Only these rates, of those a data set has.")
@click.option(
    "--seeds",
    type=click.IntRange(1),
    help="Ways of hiding views; by default 5, with --quick 1. From 4 on, the best rival of a cell is chosen with the "
    "first half and compared with the second.",
)
@click.option(
    "--published",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="CSV file of figures that papers print: run BridgedGRMF in the same cells, and print both side by side.",
)
@click.option("--complete-view", is_flag=True, help="Hide nothing of the first view, 30, 50 and 70 % of the others.")
@click.option(
    "--tuned", is_flag=True, help="Also the best of 12 settings by the true labels: an upper bound, 12 × time."
)
@click.option("--tables-only", is_flag=True, help="Run nothing: tables of the runs in the folder; others are absent.")
@click.option("--quick", is_flag=True, help="Small made data, one rate and seed, few methods: to see whether it runs.")
@click.option(
    "--time-limit",
    type=click.FloatRange(0, min_open=True),
    default=600.0,
    show_default=True,
    help="Seconds after which a run is ended; its method is absent there.",
)
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True, help="Processes.")
def league(
    output: Path,
    data_dir: Path | None,
    data: tuple[str, ...],
    methods: tuple[str, ...],
    rates: tuple[float, ...],
    seeds: int | None,
    published: Path | None,
    complete_view: bool,
    tuned: bool,
    tables_only: bool,
    quick: bool,
    time_limit: float,
    jobs: int,
) -> None:
    """Compare all methods on data with missing views: the league.

    Without labels every method runs at its defaults; labels only score. Data are all labelled .npz files of the folder,
    the embedded digits and made data; how views are hidden follows from what a file holds. Methods of other packages
    take part if they are installed: pip install 'gapview-lab[rivals]'

    With --published, the cells are those of a file of printed figures: data, views, protocol and rate.
    """
    request = LeagueRequest(
        output,
        data_dir,
        data,
        methods,
        rates,
        seeds,
        complete_view,
        tuned,
        quick,
        time_limit,
        jobs,
        published,
        tables_only,
    )
    console = new_console()
    with runs_shown(console) as progress:
        outcome = run_league(request, progress, lambda line: print_line(console, "Left out", line))
    _print_league(console, outcome)


def _print_league(console: Console, outcome: LeagueOutcome) -> None:
    say_runs(console, outcome)
    if outcome.comparisons:
        for head, line in brief_lines(outcome.comparisons):
            print_line(console, head, line)
        print_files(console, outcome.files)
        return
    for summary in outcome.summaries:
        common, steady = summary.common, summary.steady
        tables = {f"{len(common.cells)} cells in which all {len(common.places)} methods ran": common}
        if steady.cells != common.cells and steady.places:
            tables[f"all {len(steady.cells)} cells, methods that ran everywhere"] = steady
        for where, table in tables.items():
            for score, name in (("accuracy", "ACC"), ("nmi", "NMI")):
                order = sorted(table.places, key=lambda place: -place.mean[score])
                means = ", ".join(f"{place.method} {place.mean[score]:.1f}" for place in order)
                print_line(console, name, f"{summary.way}, {where}, mean in %: {means or 'none'}.")
        if summary.rare:
            print_line(console, "Absent", rare_words(summary))
    print_files(console, outcome.files)
