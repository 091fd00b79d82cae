"""The command line: parsing and printing only."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as ProgressBar

from . import __version__
from .commands import cluster, info, predict, recover, report
from .commands._console import command_words, new_console, printable, progress_shown
from .commands._console import say as _say
from .commands._options import arguments_typed, force_option
from .demo import DemoResult, run_demo
from .errors import GapviewError, ParameterError
from .experiments import (
    PAPER_DATA,
    LeagueOutcome,
    LeagueRequest,
    Outcome,
    Request,
    ScaleOutcome,
    ScaleRequest,
    SpeedOutcome,
    SpeedRequest,
    reproduce_paper,
    run_league,
    run_scale,
    run_speed,
)
from .experiments import Progress as ProgressOf

__all__ = ["main"]

_GOING_ON = ("reproduce", "bench")  # these write what is finished as they go


class _Commands(click.Group):
    """Turns the library's errors into one plain message and exit code 1."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        context.obj = tuple(arguments)  # as they were typed, for the record of a run
        return super().parse_args(context, arguments)

    def invoke(self, context: click.Context) -> object:
        try:
            return super().invoke(context)
        except GapviewError as error:
            raise click.ClickException(printable(command_words(str(error)))) from None
        except MemoryError:
            raise click.ClickException(
                "There is not enough memory for this. Leave out features or samples, or use a larger machine."
            ) from None
        except KeyboardInterrupt:
            kept = "What was finished is kept; run the same command again to go on."
            none = "Nothing was written, and nothing is left behind; run the same command again to start anew."
            click.echo(f"Stopped. {kept if context.invoked_subcommand in _GOING_ON else none}", err=True)
            raise SystemExit(130) from None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gapview")
def main() -> None:
    """Group samples described by several feature sets when many samples lack some of them."""


for _command in (cluster, predict, recover, report, info):
    main.add_command(_command)


@main.command(short_help="Cluster the embedded example.", epilog="Example: gapview demo --paired-rate 0.3 -o out")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("gapview-demo"),
    show_default=True,
    help="Folder for the results.",
)
@click.option(
    "--paired-rate",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="Share of the samples that keep both views.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed of all that is random."
)
@force_option("results of other commands that are in the folder")
def demo(output: Path, paired_rate: float, seed: int, force: bool) -> None:
    """Cluster the embedded handwritten digits with many of their views hidden."""
    console = new_console()
    with progress_shown(console):
        result = run_demo(output, paired_rate, seed, force=force, arguments=arguments_typed())
    _print_demo(console, result)


def _print_demo(console: Console, result: DemoResult) -> None:
    views, model = result.views, result.model
    sizes = " and ".join(f"{name} ({m} features)" for name, m in zip(views.names, views.n_features, strict=True))
    both = views.mask.all(axis=1)
    single = ", ".join(f"{int((views.mask[:, k] & ~both).sum())} only {name}" for k, name in enumerate(views.names))
    scores = {name: f"{100 * score:.1f} %" for name, score in result.scores.items()}
    _say(console, "Data", f"{views.n_samples} handwritten digits in two views: {sizes}.")
    _say(console, "Hidden", f"{int(both.sum())} samples keep both views, {single}.")
    _say(
        console,
        "Groups",
        f"BridgedGRMF put all {views.n_samples} samples into {model.n_clusters} groups "
        f"in {result.seconds:.1f} s, the choice of its settings included.",
    )
    _say(console, "Settings", str(model.selection_))
    _say(
        console,
        "Scores",
        f"against the true digits, which the method never saw: accuracy {scores['accuracy']}, "
        f"NMI {scores['nmi']}, purity {scores['purity']}.",
    )
    for name, share in result.recovery.items():
        _say(
            console,
            "Recover",
            f"hidden {name}: error {100 * abs(1 - share):.0f} % {'below' if share < 1 else 'above'} "
            "that of filling in the mean.",
        )
    for file in result.files:
        _say(console, "Wrote", str(file))
    if result.report is None:
        _say(console, "Left out", f"the report. {result.without_report}")
    else:
        _say(console, "Report", str(result.report))


def _results_option(default: str) -> Callable[[Any], Any]:
    return click.option(
        "-o",
        "--output",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path(default),
        show_default=True,
        help="Folder for the results; finished runs found there are not done again.",
    )


def _data_option(contents: str) -> Callable[[Any], Any]:
    return click.option(
        "--data-dir",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        envvar="GAPVIEW_DATA",
        help=f"Folder with {contents}; by default the environment variable GAPVIEW_DATA.",
    )


@main.command(
    short_help="Run the paper's experiments.",
    epilog="Example: gapview reproduce --data-dir data --data buaa --quick -o paper",
)
@_results_option("gapview-paper")
@_data_option("the data sets")
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
    """Run the experiments of the IMC_GRMF paper and set the results beside the published ones."""
    if data_dir is None:
        raise ParameterError(
            "The folder with the data sets is not known: give --data-dir, or set the environment variable GAPVIEW_DATA."
        )
    everything = not table and not figure
    request = Request(
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
    with _progress(console) as progress:
        outcome = reproduce_paper(request, progress, lambda line: _say(console, "Left out", line))
    _print_outcome(console, outcome)


@contextmanager
def _progress(console: Console) -> Iterator[ProgressOf]:
    """Show runs done and the time left, on a terminal only."""
    columns = (TextColumn("[bold]Running[/]"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with ProgressBar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        shown = bar.add_task("", total=None)

        def update(done: int, total: int, left: float) -> None:
            minutes, seconds = divmod(round(left), 60)
            bar.update(shown, completed=done, total=total, description=f"about {minutes} min {seconds:02d} s left")

        yield update


def _print_outcome(console: Console, outcome: Outcome) -> None:
    _say(console, "Runs", f"{outcome.n_new} done now, {outcome.run['n_runs']} in all.")
    for table in outcome.tables:
        best = [_best(table.mean_accuracy(choice)) for choice in ("by labels", "fixed")]
        _say(
            console,
            f"Table {table.data.table}",
            f"{table.data.title}, mean ACC in %: settings by labels, {best[0]}; fixed settings, {best[1]}.",
        )
    for file in outcome.files:
        _say(console, "Wrote", str(file))


def _best(means: dict[str, float]) -> str:
    """Name the best method, and GRMF beside it; methods that failed somewhere have no mean."""
    if not means:
        return "no method ran at all rates"
    winner = max(means, key=lambda method: means[method])
    ours = f" (GRMF {means['GRMF']:.1f})" if "GRMF" in means else ""
    return f"best {winner} {means[winner]:.1f}{ours}"


@main.group(short_help="Measure quality, speed and size.")
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
@_results_option("gapview-league")
@_data_option(".npz files")
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
    with _progress(console) as progress:
        outcome = run_league(request, progress, lambda line: _say(console, "Left out", line))
    _print_league(console, outcome)


def _print_league(console: Console, outcome: LeagueOutcome) -> None:
    _say(console, "Runs", f"{outcome.n_new} done now, {outcome.run['n_runs']} in all.")
    for summary in outcome.summaries:
        common, steady = summary.common, summary.steady
        tables = {f"{len(common.cells)} cells in which all methods ran": common}
        if steady.cells != common.cells and steady.places:
            tables[f"all {len(steady.cells)} cells, methods that ran everywhere"] = steady
        for where, table in tables.items():
            for score, name in (("accuracy", "ACC"), ("nmi", "NMI")):
                order = sorted(table.places, key=lambda place: -place.mean[score])
                means = ", ".join(f"{place.method} {place.mean[score]:.1f}" for place in order)
                _say(console, name, f"{summary.way}, {where}, mean in %: {means or 'none'}.")
    for file in outcome.files:
        _say(console, "Wrote", str(file))


@bench.command(
    short_help="Measure how fast fits are.",
    epilog="Example: gapview bench speed --data-dir data -o speed",
)
@_results_option("gapview-speed")
@_data_option("handwritten_2v.npz, bbcsport_2v.npz and hdigit10000.npz")
@click.option("--quick", is_flag=True, help="Small made data and matrices: to see whether it runs.")
def speed(output: Path, data_dir: Path | None, quick: bool) -> None:
    """Measure how fast fits are, each figure against a reference in the same run.

    First what the computer itself can do: matrix products and copies. Then whole fits against the plain dense algorithm
    and against KNNImputer + SpectralClustering, the iterations against the matrix-product speed, with a profile, the
    passes that a start from the data saves, and what approximate neighbours and float32 cost in accuracy. Nothing else
    should run on the computer meanwhile.
    """
    console = new_console()
    with _progress(console) as progress:
        outcome = run_speed(
            SpeedRequest(output, data_dir, quick), progress, lambda line: _say(console, "Left out", line)
        )
    _print_speed(console, outcome)


def _print_speed(console: Console, outcome: SpeedOutcome) -> None:
    _say(console, "Runs", f"{outcome.n_new} done now, {outcome.run['n_runs']} in all.")
    for goal in outcome.goals:
        verdict = "met" if goal.met else "not met"
        _say(console, "Goal", f"{goal.text}: {goal.measured}, asked for {goal.asked}, {verdict}.")
    for file in outcome.files:
        _say(console, "Wrote", str(file))


def _listed_sizes(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[int, ...]:
    try:
        return tuple(int(text.replace("_", "")) for text in _listed(context, parameter, values))
    except ValueError:
        raise click.BadParameter("give whole numbers of samples, such as 50000,100000") from None


@bench.command(
    short_help="Measure how cost grows with the samples.",
    epilog="Example: gapview bench scale --sizes 50000,100000,200000 --methods GRMF -o sizes",
)
@_results_option("gapview-scale")
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
    with _progress(console) as progress:
        outcome = run_scale(request, progress, lambda line: _say(console, "Left out", line))
    _print_scale(console, outcome)


def _print_scale(console: Console, outcome: ScaleOutcome) -> None:
    _say(console, "Runs", f"{outcome.n_new} done now, {outcome.run['n_runs']} in all.")
    for growth in outcome.growths:
        power = growth.power()
        grows = f"; time grows with n to the power of {power.exponent:.2f}" if power else ""
        last = f"{growth.sizes[-1]:,} samples in {growth.totals[-1]:.1f} s"
        _say(console, "Growth", f"{growth.method}: {last}{grows}.")
    for file in outcome.files:
        _say(console, "Wrote", str(file))
