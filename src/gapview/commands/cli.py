"""The command line: parsing and printing only."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path

import click
from rich.console import Console

from .. import __version__
from ..errors import GapviewError, ParameterError
from ..experiments import PAPER_DATA, Outcome, Request, reproduce_paper
from . import bench, cluster, info, predict, recover, report
from ._console import command_words, new_console, printable, progress_shown, runs_shown, say_files, say_runs
from ._console import say as _say
from ._options import arguments_typed, data_option, folder_option, force_option, results_option
from ._stopping import ending_heard
from .demo import DemoResult, run_demo

__all__ = ["main"]

_GOING_ON = ("reproduce", "bench")  # these write what is finished as they go


class _Commands(click.Group):
    """Turns the library's errors into one plain message and exit code 1."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        context.obj = tuple(arguments)  # as they were typed, for the record of a run
        return super().parse_args(context, arguments)

    def invoke(self, context: click.Context) -> object:
        try:
            # Those that go on have processes at work, which are told to end by the same signals
            with nullcontext() if context.obj and context.obj[0] in _GOING_ON else ending_heard():
                return super().invoke(context)
        except GapviewError as error:
            raise click.ClickException(printable(command_words(_with_notes(str(error), error)))) from None
        except MemoryError as error:
            text = "There is not enough memory for this. Leave out features or samples, or use a larger machine."
            raise click.ClickException(printable(_with_notes(text, error))) from None
        except KeyboardInterrupt as error:
            none = "Nothing was written, and nothing is left behind; run the same command again to start anew."
            if context.invoked_subcommand in _GOING_ON:
                none = "What was finished is kept; run the same command again to go on."
            noted = _with_notes("", error).strip()
            click.echo(printable(f"Stopped. {noted or none}"), err=True)
            raise SystemExit(getattr(error, "exit_code", 130)) from None


def _with_notes(text: str, error: BaseException) -> str:
    """Add what was noted on an error on its way here."""
    return " ".join([text, *getattr(error, "__notes__", [])])


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gapview")
def main() -> None:
    """Group samples described by several feature sets when many samples lack some of them."""


for _command in (bench, cluster, predict, recover, report, info):
    main.add_command(_command)


@main.command(short_help="Cluster the embedded example.", epilog="Example: gapview demo --paired-rate 0.3 -o out")
@folder_option("gapview-demo")
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
    say_files(console, result.files)
    if result.report is None:
        _say(console, "Left out", f"the report. {result.without_report}")
    else:
        _say(console, "Report", str(result.report))


@main.command(
    short_help="Run the paper's experiments.",
    epilog="Example: gapview reproduce --data-dir data --data buaa --quick -o paper",
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
    with runs_shown(console) as progress:
        outcome = reproduce_paper(request, progress, lambda line: _say(console, "Left out", line))
    _print_outcome(console, outcome)


def _print_outcome(console: Console, outcome: Outcome) -> None:
    say_runs(console, outcome)
    for table in outcome.tables:
        best = [_best(table.mean_accuracy(choice)) for choice in ("by labels", "fixed")]
        _say(
            console,
            f"Table {table.data.table}",
            f"{table.data.title}, mean ACC in %: settings by labels, {best[0]}; fixed settings, {best[1]}.",
        )
    say_files(console, outcome.files)


def _best(means: dict[str, float]) -> str:
    """Name the best method, and GRMF beside it; methods that failed somewhere have no mean."""
    if not means:
        return "no method ran at all rates"
    winner = max(means, key=lambda method: means[method])
    ours = f" (GRMF {means['GRMF']:.1f})" if "GRMF" in means else ""
    return f"best {winner} {means[winner]:.1f}{ours}"
