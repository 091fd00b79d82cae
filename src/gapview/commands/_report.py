"""``gapview report``: one HTML file about a model, to read, to print and to send."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from ..methods import load
from ..progress import tell
from ..utils.storage import make_folder
from ._console import Say, new_console, progress_shown, saying, warnings_said
from ._covariates import read_covariates
from ._folder import demand_new_file
from ._options import arguments_typed, file_option, force_option, id_option, model_argument
from ._pages import demand_packages, write_report
from ._record import described_run, shown_run

__all__ = ["ReportRequest", "report", "report_model"]


@dataclass(frozen=True)
class ReportRequest:
    """A model, what else is known of its samples, and where the report goes."""

    model: Path
    output: Path
    covariates: Path | None = None
    id_columns: tuple[str, ...] = ()
    survival: tuple[tuple[str, str], ...] = ()  # columns of times and of events; none: they are found by their names
    no_ids: bool = False
    title: str | None = None
    force: bool = False
    arguments: tuple[str, ...] = ()


def report_model(request: ReportRequest, say: Say) -> Path:
    """Write the report of a model; return its path."""
    demand_packages()
    inputs = [request.model, *([request.covariates] if request.covariates else [])]
    demand_new_file(request.output, inputs, force=request.force)
    with warnings_said(say):
        tell("Loading the model")
        model = load(request.model)
        table = None
        if request.covariates is not None:
            table = read_covariates(request.covariates, request.id_columns, model.views_, say)
        tell("Writing the report")
        make_folder(request.output.parent)
        return write_report(
            model,
            request.output,
            covariates=table,
            survival=list(request.survival) or None,
            no_ids=request.no_ids,
            title=request.title,
            run=shown_run(described_run(request.arguments)),
        )


@click.command(
    short_help="Write a report about a model.",
    epilog="Example: gapview report out/model.gapview --covariates patients.csv --no-ids -o report.html",
)
@model_argument
@file_option("report.html")
@click.option(
    "--covariates",
    type=click.Path(path_type=Path),
    metavar="TABLE",
    help="Table of what else is known of the samples, such as age, stage or survival time: how the groups go with it.",
)
@id_option
@click.option(
    "--survival",
    nargs=2,
    multiple=True,
    metavar="TIME EVENT",
    help="Columns of the table with times and with events (1 seen, 0 not). By default they are found by their names.",
)
@click.option("--no-ids", is_flag=True, help="Leave out every sample id, for a report that leaves the house.")
@click.option("--title", help="Title of the report.")
@force_option("a file that is there")
def report(
    model: Path,
    output: Path,
    covariates: Path | None,
    id_columns: tuple[str, ...],
    survival: tuple[tuple[str, str], ...],
    no_ids: bool,
    title: str | None,
    force: bool,
) -> None:
    """Write one HTML file about the groups of a model: it needs no network, and can be sent by e-mail."""
    if survival and covariates is None:
        raise click.UsageError("--survival names columns of a table: give the table with --covariates.")
    console = new_console()
    say = saying(console)
    request = ReportRequest(model, output, covariates, id_columns, survival, no_ids, title, force, arguments_typed())
    with progress_shown(console):
        written = report_model(request, say)
    say("Report", str(written))
