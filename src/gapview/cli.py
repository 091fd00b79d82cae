"""The command line: parsing and printing only."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from . import __version__
from .demo import DemoResult, run_demo
from .errors import GapviewError

__all__ = ["main"]


class _Commands(click.Group):
    """Turns the library's errors into one plain message and exit code 1."""

    def invoke(self, context: click.Context) -> object:
        try:
            return super().invoke(context)
        except GapviewError as error:
            raise click.ClickException(str(error)) from None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gapview")
def main() -> None:
    """Group samples described by several feature sets when many samples lack some of them."""


@main.command(epilog="Example: gapview demo --paired-rate 0.3 -o out")
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
def demo(output: Path, paired_rate: float, seed: int) -> None:
    """Cluster the embedded handwritten digits with many of their views hidden."""
    _print_demo(run_demo(output, paired_rate, seed))


def _print_demo(result: DemoResult) -> None:
    console = Console(soft_wrap=True, highlight=False)
    views, model = result.views, result.model
    sizes = " and ".join(f"{name} ({m} features)" for name, m in zip(views.names, views.n_features, strict=True))
    both = views.mask.all(axis=1)
    single = ", ".join(f"{int((views.mask[:, k] & ~both).sum())} only {name}" for k, name in enumerate(views.names))
    scores = {name: f"{100 * score:.1f} %" for name, score in result.scores.items()}
    console.print(f"[bold]Data[/]     {views.n_samples} handwritten digits in two views: {sizes}.")
    console.print(f"[bold]Hidden[/]   {int(both.sum())} samples keep both views, {single}.")
    console.print(
        f"[bold]Groups[/]   GRMF put all {views.n_samples} samples into {model.n_clusters} groups "
        f"in {result.seconds:.1f} s ({model.n_iter_} iterations)."
    )
    console.print(
        f"[bold]Scores[/]   against the true digits, which the method never saw: accuracy {scores['accuracy']}, "
        f"NMI {scores['nmi']}, purity {scores['purity']}."
    )
    for name, share in result.recovery.items():
        console.print(
            f"[bold]Recover[/]  hidden {name}: error {100 * abs(1 - share):.0f} % {'below' if share < 1 else 'above'} "
            "that of filling in the mean."
        )
    for file in result.files:
        console.print(f"[bold]Wrote[/]    {file}", markup=True)
