"""Console output and options shared by the commands of the lab."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from gapview.commands.console import print_line

__all__ = ["data_option", "listed", "listed_numbers", "results_option", "runs_shown", "say_runs"]


def results_option(default: str) -> Callable[[Any], Any]:
    """Return the option for the folder of results."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path(default),
        show_default=True,
        help="Folder for the results; finished runs in it are not repeated.",
    )


def data_option(contents: str, *, required: bool = False) -> Callable[[Any], Any]:
    """Return the option for the folder with data sets."""
    return click.option(
        "--data-dir",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        envvar="GAPVIEW_DATA",
        required=required,
        help=f"Folder with {contents}; by default the environment variable GAPVIEW_DATA.",
    )


def listed(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the items of a list given with commas, by repeating the option, or both."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def listed_numbers(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[int, ...]:
    """Return the whole numbers of a list of numbers of samples, such as 50_000."""
    try:
        return tuple(int(text.replace("_", "")) for text in listed(context, parameter, values))
    except ValueError:
        raise click.BadParameter("give whole numbers of samples, such as 50000,100000") from None


@contextmanager
def runs_shown(console: Console) -> Iterator[Callable[[int, int, float], None]]:
    """Show runs done and the time left, on a terminal only."""
    columns = (TextColumn("[bold]Running[/]"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        shown = bar.add_task("", total=None)

        def update(done: int, total: int, left: float) -> None:
            minutes, seconds = divmod(round(left), 60)
            bar.update(shown, completed=done, total=total, description=f"about {minutes} min {seconds:02d} s left")

        yield update


def say_runs(console: Console, outcome: Any) -> None:
    """Print how many runs were done, now and in total."""
    print_line(console, "Runs", f"{outcome.n_new} done now, {outcome.run['n_runs']} in all.")
