"""The command line: parsing and printing only."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from .. import __version__
from ..errors import GapviewError
from .cluster import cluster
from .console import command_words, new_console, print_files, print_line, printable, show_progress
from .demo import DemoResult, run_demo
from .interruption import signals_interrupt
from .options import folder_option, force_option, seed_option, typed_arguments
from .predict import predict
from .recover import recover
from .report import info, report

_BENCH = {"quality": "league", "speed": "speed", "scale": "scale"}
_LAB_COMMAND = {"hidden": True, "context_settings": {"ignore_unknown_options": True, "help_option_names": []}}


class _GapviewGroup(click.Group):
    """Prints errors of the library as one plain message, with exit code 1."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        context.obj = tuple(arguments)  # as they were typed, for the record of a run
        return super().parse_args(context, arguments)

    def invoke(self, context: click.Context) -> object:
        try:
            with signals_interrupt():
                return super().invoke(context)
        except GapviewError as error:
            raise click.ClickException(printable(command_words(_with_notes(str(error), error)))) from None
        except MemoryError as error:
            text = "There is not enough memory for this. Leave out features or samples, or use a larger machine."
            raise click.ClickException(printable(_with_notes(text, error))) from None
        except KeyboardInterrupt as error:
            none = "Nothing was written, and nothing is left behind; run the same command again to start again."
            noted = _with_notes("", error).strip()
            click.echo(printable(f"Stopped. {noted or none}"), err=True)
            raise SystemExit(getattr(error, "exit_code", 130)) from None


def _with_notes(text: str, error: BaseException) -> str:
    """Return a text with the notes of an error."""
    return " ".join([text, *getattr(error, "__notes__", [])])


@click.group(cls=_GapviewGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gapview")
def main() -> None:
    """Group samples described by several feature sets when many samples lack some of them."""


for _command in (cluster, predict, recover, report, info):
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
@seed_option
@force_option("results of other commands that are in the folder")
def demo(output: Path, paired_rate: float, seed: int, force: bool) -> None:
    """Cluster the embedded handwritten digits with many of their views hidden."""
    console = new_console()
    with show_progress(console):
        result = run_demo(output, paired_rate, seed, force=force, arguments=typed_arguments())
    _print_demo(console, result)


def _print_demo(console: Console, result: DemoResult) -> None:
    views, model = result.views, result.model
    sizes = " and ".join(f"{name} ({m} features)" for name, m in zip(views.names, views.n_features, strict=True))
    both = views.mask.all(axis=1)
    single = ", ".join(f"{int((views.mask[:, k] & ~both).sum())} only {name}" for k, name in enumerate(views.names))
    scores = {name: f"{100 * score:.1f} %" for name, score in result.scores.items()}
    lines = [
        ("Data", f"{views.n_samples} handwritten digits in two views: {sizes}."),
        ("Hidden", f"{int(both.sum())} samples keep both views, {single}."),
        (
            "Groups",
            f"BridgedGRMF put all {views.n_samples} samples into {model.n_clusters} groups "
            f"in {result.seconds:.1f} s, the choice of its settings included.",
        ),
        ("Settings", str(model.selection_)),
        (
            "Scores",
            f"against the true digits, which the method never saw: accuracy {scores['accuracy']}, "
            f"NMI {scores['nmi']}, purity {scores['purity']}.",
        ),
    ]
    for name, share in result.recovery.items():
        change = f"{100 * abs(1 - share):.0f} % {'below' if share < 1 else 'above'}"
        lines.append(("Recover", f"hidden {name}: error {change} that of filling in the mean."))
    for head, text in lines:
        print_line(console, head, text)
    print_files(console, result.files)
    if result.report is None:
        print_line(console, "Left out", f"the report. {result.without_report}")
    else:
        print_line(console, "Report", str(result.report))


@main.command(**_LAB_COMMAND)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def reproduce(words: tuple[str, ...]) -> None:
    """Print the command of gapview-lab to use instead, and exit with code 2."""
    _name_lab_command("reproduce", "reproduce")


@main.command(**_LAB_COMMAND)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def bench(words: tuple[str, ...]) -> None:
    """Print the command of gapview-lab to use instead, and exit with code 2."""
    known = [word for word in words if word in _BENCH][:1]
    _name_lab_command(" ".join(["bench", *known]), _BENCH[known[0]] if known else "--help")


def _name_lab_command(old: str, new: str) -> None:
    click.echo(f"`gapview {old}` is now `gapview-lab {new}` (in the lab/ folder of the repository).", err=True)
    raise SystemExit(2)
