"""``gapview bench``: how good, how fast and how large."""

from __future__ import annotations

import os
from pathlib import Path

import click
from rich.console import Console

from ..experiments import (
    LeagueOutcome,
    LeagueRequest,
    ScaleOutcome,
    ScaleRequest,
    SpeedOutcome,
    SpeedRequest,
    run_league,
    run_scale,
    run_speed,
)
from ._console import new_console, runs_shown, say, say_files, say_runs
from ._options import data_option, results_option

__all__ = ["bench"]


@click.group(short_help="Measure quality, speed and size.")
def bench() -> None:
    """Measure quality, speed and size."""


def _listed(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Read a list that was given with commas, by repeating the option, or both."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _listed_rates(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[float, ...]:
    try:
        rates = tuple(float(text) for text in _listed(context, parameter, values))
    except ValueError:
        raise click.BadParameter("give numbers from 0 to 1, such as 0.1,0.5") from None
    if not all(0 <= rate <= 1 for rate in rates):
        raise click.BadParameter("give numbers from 0 to 1, such as 0.1,0.5")
    return rates


@bench.command(
    short_help="Compare how well all methods cluster.",
    epilog="Example: gapview bench quality --data mine.npz --methods GRMF,ImputedSpectral --seeds 3 -o league",
)
@results_option("gapview-league")
@data_option(".npz files")
@click.option("--data", multiple=True, help="Only this data set, by its name, or a file of yours (may be repeated).")
@click.option("--methods", multiple=True, callback=_listed, help="Only these methods, separated by commas.")
@click.option("--rates", multiple=True, callback=_listed_rates, help="Only these rates, of those a data set has.")
@click.option("--seeds", type=click.IntRange(1), help="Ways of hiding views; by default 5, with --quick 1.")
@click.option(
    "--tuned", is_flag=True, help="Also the best of 12 settings by the true labels: an upper bound, 12 × time."
)
@click.option("--quick", is_flag=True, help="Small made data, one rate and seed, few methods: to see whether it runs.")
@click.option(
    "--time-limit",
    type=click.FloatRange(0, min_open=True),
    default=600.0,
    show_default=True,
    help="Seconds after which a run is ended; its method is absent there.",
)
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True, help="Processes.")
def quality(
    output: Path,
    data_dir: Path | None,
    data: tuple[str, ...],
    methods: tuple[str, ...],
    rates: tuple[float, ...],
    seeds: int | None,
    tuned: bool,
    quick: bool,
    time_limit: float,
    jobs: int,
) -> None:
    """Compare all methods on data with missing views: the league.

    Without labels every method runs at its defaults; labels only score. Data are all labelled .npz files of the folder,
    the embedded digits and made data; how views are hidden follows from what a file holds. Methods of other packages
    take part if they are installed: pip install 'gapview[rivals]'
    """
    request = LeagueRequest(output, data_dir, data, methods, rates, seeds, tuned, quick, time_limit, jobs)
    console = new_console()
    with runs_shown(console) as progress:
        outcome = run_league(request, progress, lambda line: say(console, "Left out", line))
    _print_league(console, outcome)


def _print_league(console: Console, outcome: LeagueOutcome) -> None:
    say_runs(console, outcome)
    for summary in outcome.summaries:
        common, steady = summary.common, summary.steady
        tables = {f"{len(common.cells)} cells in which all methods ran": common}
        if steady.cells != common.cells and steady.places:
            tables[f"all {len(steady.cells)} cells, methods that ran everywhere"] = steady
        for where, table in tables.items():
            for score, name in (("accuracy", "ACC"), ("nmi", "NMI")):
                order = sorted(table.places, key=lambda place: -place.mean[score])
                means = ", ".join(f"{place.method} {place.mean[score]:.1f}" for place in order)
                say(console, name, f"{summary.way}, {where}, mean in %: {means or 'none'}.")
    say_files(console, outcome.files)


@bench.command(
    short_help="Measure how fast fits are.",
    epilog="Example: gapview bench speed --data-dir data -o speed",
)
@results_option("gapview-speed")
@data_option("handwritten_2v.npz, bbcsport_2v.npz and hdigit10000.npz")
@click.option("--quick", is_flag=True, help="Small made data and matrices: to see whether it runs.")
def speed(output: Path, data_dir: Path | None, quick: bool) -> None:
    """Measure how fast fits are, each figure against a reference in the same run.

    First what the computer itself can do: matrix products and copies. Then whole fits against the plain dense algorithm
    and against KNNImputer + SpectralClustering, the iterations against the matrix-product speed, with a profile, the
    passes that a start from the data saves, and what approximate neighbours and float32 cost in accuracy. Nothing else
    should run on the computer meanwhile.
    """
    console = new_console()
    with runs_shown(console) as progress:
        outcome = run_speed(
            SpeedRequest(output, data_dir, quick), progress, lambda line: say(console, "Left out", line)
        )
    _print_speed(console, outcome)


def _print_speed(console: Console, outcome: SpeedOutcome) -> None:
    say_runs(console, outcome)
    for goal in outcome.goals:
        verdict = "met" if goal.met else "not met"
        say(console, "Goal", f"{goal.text}: {goal.measured}, asked for {goal.asked}, {verdict}.")
    say_files(console, outcome.files)


def _listed_sizes(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[int, ...]:
    try:
        return tuple(int(text.replace("_", "")) for text in _listed(context, parameter, values))
    except ValueError:
        raise click.BadParameter("give whole numbers of samples, such as 50000,100000") from None


@bench.command(
    short_help="Measure how cost grows with the samples.",
    epilog="Example: gapview bench scale --sizes 50000,100000,200000 --methods GRMF -o sizes",
)
@results_option("gapview-scale")
@click.option(
    "--sizes", multiple=True, callback=_listed_sizes, help="Numbers of samples; by default 50,000 to 1,000,000."
)
@click.option(
    "--methods",
    multiple=True,
    callback=_listed,
    default=("GRMF,BridgedGRMF",),
    show_default=True,
    help="Also GRMF-data (start from the data) and BridgedGRMF-fixed (one setting).",
)
@click.option(
    "--missing-rate",
    type=click.FloatRange(0, 0.5),
    default=0.25,
    show_default=True,
    help="Share of every view that is missing; at 0.5 no sample has both, at 0.25 half of them.",
)
@click.option("--memory", is_flag=True, help="Also the largest memory in every phase; costs a little time.")
@click.option("--device", help="Where to compute, such as cuda; by default the processor.")
@click.option(
    "--time-limit",
    type=click.FloatRange(0, min_open=True),
    default=3600.0,
    show_default=True,
    help="Seconds after which a run is ended; larger sizes are then left out.",
)
@click.option("--quick", is_flag=True, help="Few and small samples: to see whether it runs.")
def scale(
    output: Path,
    sizes: tuple[int, ...],
    methods: tuple[str, ...],
    missing_rate: float,
    memory: bool,
    device: str | None,
    time_limit: float,
    quick: bool,
) -> None:
    """Measure time by phase, memory, recall and quality at growing numbers of samples.

    The data are made: two views of 240 and 76 features in 10 groups, float32, rows missing at random. Every run has a
    process of its own; sizes that do not fit into memory or time are said and left out.
    """
    request = ScaleRequest(output, sizes, methods, missing_rate, memory, device, time_limit, quick)
    console = new_console()
    with runs_shown(console) as progress:
        outcome = run_scale(request, progress, lambda line: say(console, "Left out", line))
    _print_scale(console, outcome)


def _print_scale(console: Console, outcome: ScaleOutcome) -> None:
    say_runs(console, outcome)
    for growth in outcome.growths:
        power = growth.power()
        grows = f"; time grows with n to the power of {power.exponent:.2f}" if power else ""
        last = f"{growth.sizes[-1]:,} samples in {growth.totals[-1]:.1f} s"
        say(console, "Growth", f"{growth.method}: {last}{grows}.")
    say_files(console, outcome.files)
