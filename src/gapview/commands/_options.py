"""Options that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from ..io import DUPLICATES
from ..views.cells import PARTIAL_ROWS
from ._inputs import Inputs
from ._samples import SamplesRequest

__all__ = [
    "arguments_typed",
    "duplicates_option",
    "file_option",
    "files_argument",
    "folder_option",
    "force_option",
    "id_option",
    "model_argument",
    "partial_rows_option",
    "samples_options",
]

Decorator = Callable[[Any], Any]

id_option = click.option(
    "--id",
    "id_columns",
    multiple=True,
    metavar="NAME",
    help="Column that holds the sample ids; repeat it where files call it differently. By default it is found.",
)
duplicates_option = click.option(
    "--duplicates",
    type=click.Choice(DUPLICATES),
    default="raise",
    show_default=True,
    help="Rows that share an id: refuse them, keep the first, or take their mean.",
)
model_argument = click.argument("model", type=click.Path(path_type=Path), metavar="MODEL")


def files_argument(*, required: bool) -> Decorator:
    """Files of views."""
    return click.argument("files", nargs=-1, required=required, metavar="FILES..." if required else "[FILES]...")


def folder_option(default: str, more: str = "") -> Decorator:
    """Folder for several results; ``more`` is added to its help."""
    return _output_option(default, f"Folder for the results{more}.", file_okay=False)


def file_option(default: str) -> Decorator:
    """File for one result."""
    return _output_option(default, "File for the result.", dir_okay=False)


def _output_option(default: str, text: str, **kinds: bool) -> Decorator:
    path = click.Path(path_type=Path, **kinds)
    return click.option("-o", "--output", type=path, default=Path(default), show_default=True, help=text)


def force_option(what: str) -> Decorator:
    """Leave to replace what is there."""
    return click.option("--force", is_flag=True, help=f"Replace {what}.")


def partial_rows_option(default: str | None) -> Decorator:
    """Rows with gaps; None stands for what the model was trained with."""
    return click.option(
        "--partial-rows",
        type=click.Choice(PARTIAL_ROWS),
        default=default,
        show_default=True if default else "as in training",
        help="Rows that have some but not all values: refuse them, fill their gaps, or drop them.",
    )


def arguments_typed() -> tuple[str, ...]:
    """Return what was typed after ``gapview``, for the record."""
    return tuple(click.get_current_context().find_root().obj or ())


def samples_options(output: Decorator, *, files_required: bool, replaces: str) -> Decorator:
    """Declare what all commands on new samples take; the command gets it as one request."""
    options = (
        model_argument,
        files_argument(required=files_required),
        output,
        id_option,
        duplicates_option,
        partial_rows_option(None),
        force_option(replaces),
    )

    def decorate(command: Callable[[SamplesRequest], None]) -> Any:
        @wraps(command)
        def run(
            model: Path,
            files: tuple[str, ...],
            output: Path,
            id_columns: tuple[str, ...],
            duplicates: str,
            partial_rows: str | None,
            force: bool,
        ) -> None:
            inputs = Inputs(files, id_columns, duplicates)
            command(SamplesRequest(model, inputs, output, partial_rows, force, arguments_typed()))

        declared: Any = run
        for option in reversed(options):  # as a stack of decorators, which works from below
            declared = option(declared)
        return declared

    return decorate
