"""The command line: parsing and printing only."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from .. import __version__
from ..errors import GapviewError
from . import bench, cluster, info, predict, recover, report, reproduce
from ._console import command_words, new_console, printable, progress_shown, say_files
from ._console import say as _say
from ._options import arguments_typed, folder_option, force_option
from ._stopping import ending_heard
from .demo import DemoResult, run_demo

__all__ = ["main"]


class _Commands(click.Group):
    """Turns the library's errors into one plain message and exit code 1."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        context.obj = tuple(arguments)  # as they were typed, for the record of a run
        return super().parse_args(context, arguments)

    def invoke(self, context: click.Context) -> object:
        try:
            with ending_heard():
                return super().invoke(context)
        except GapviewError as error:
            raise click.ClickException(printable(command_words(_with_notes(str(error), error)))) from None
        except MemoryError as error:
            text = "There is not enough memory for this. Leave out features or samples, or use a larger machine."
            raise click.ClickException(printable(_with_notes(text, error))) from None
        except KeyboardInterrupt as error:
            none = "Nothing was written, and nothing is left behind; run the same command again to start anew."
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


for _command in (cluster, predict, recover, report, info, reproduce, bench):
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
