"""``gapview report`` and ``gapview info``: an HTML report about a model, and a short description of a model file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from ..errors import DataFileError, InputTypeError, MissingExtraError, some
from ..estimators.latent import LatentSpaceMixin
from ..io import read_table
from ..methods import describe, load
from ..progress import tell
from ..report import write_clustering_report
from ..utils.storage import make_folder
from ..utils.words import counted
from ..views import Views
from .console import Show, printable, run_command, show_warnings
from .options import file_option, force_option, id_option, model_argument
from .results import check_new_file, report_facts, run_facts


def missing_package(purpose: str = "Writing a report") -> MissingExtraError | None:
    """Return the error about the first package that is not installed, if any."""
    missing = [package for package in ("jinja2", "matplotlib") if find_spec(package) is None]
    return MissingExtraError(missing[0], "report", purpose) if missing else None


def read_covariates(path: Path, id_columns: Sequence[str], views: Views, show: Show) -> Any:
    """Return the rows of a table that belong to samples of a model."""
    frame = read_table(path, id_column=list(id_columns) or None)
    own = dict.fromkeys(str(key) for key in views.sample_ids.tolist())
    common = [key for key in frame.index if key in own]
    if not common:
        raise DataFileError(
            f"{path.name!r} has no sample of the model: it has ids such as {some(frame.index, 3)}, the model such as "
            f"{some(list(own), 3)}. Name the column of ids (--id), or write the ids in the same way."
        )
    n_others = len(frame) - len(common)
    others = f"; {counted(n_others, 'row')} of other samples left out" if n_others else ""
    columns, n_samples = counted(frame.shape[1], "column"), f"{len(common):,} of the {views.n_samples:,} samples"
    show("Table", f"{path.name}: {columns} for {n_samples} of the model{others}.")
    return frame.loc[common]


def report_model(
    show: Show, model: Path, output: Path, covariates: Path | None, id_columns: Sequence[str], force: bool, **more: Any
) -> list[Path]:
    """Write the report of a model; return its path."""
    if missing := missing_package():
        raise missing
    check_new_file(output, [path for path in (model, covariates) if path], force=force)
    with show_warnings(show):
        tell("Loading the model")
        loaded = load(model)
        table = None if covariates is None else read_covariates(covariates, id_columns, loaded.views_, show)
        if not isinstance(loaded, LatentSpaceMixin):
            raise InputTypeError(
                f"A report needs a model of GRMF or BridgedGRMF; this is one of {type(loaded).__name__}. Cluster the "
                "data with one of the two."
            )
        tell("Writing the report")
        make_folder(output.parent)
        write_clustering_report(loaded, output, covariates=table, run=report_facts(run_facts()), **more)
    return [output]


@click.command(
    short_help="Write a report about a model.",
    epilog="Example: gapview report out/model.gapview --covariates patients.csv --no-ids -o report.html",
)
@model_argument
@file_option("report.html")
@click.option(
    "--covariates", type=click.Path(path_type=Path), metavar="TABLE",
    help="Table of covariates of the samples, such as age, stage or survival time; the groups are compared in each.",
)  # fmt: skip
@id_option
@click.option(
    "--survival", nargs=2, multiple=True, metavar="TIME EVENT",
    help="Columns of the table with times and events (1 observed, 0 censored). By default they are detected by name.",
)  # fmt: skip
@click.option("--no-ids", is_flag=True, help="Omit every sample id, for a report that is shared with others.")
@click.option("--title", help="Title of the report.")
@force_option("a file that is there")
def report(survival: Sequence[tuple[str, str]], **options: Any) -> None:
    """Write one HTML file about the groups of a model: it needs no network, and can be sent by e-mail."""
    if survival and options["covariates"] is None:
        raise click.UsageError("--survival names columns of a table: give the table with --covariates.")
    run_command(report_model, head="Report", survival=list(survival) or None, **options)


@click.command(short_help="Describe a model file.", epilog="Example: gapview info out/model.gapview --json")
@model_argument
@click.option("--json", "as_json", is_flag=True, help="As JSON, for other programs.")
def info(model: Path, as_json: bool) -> None:
    """Describe a model file: method, settings, views, samples and groups.

    Only the beginning of the file is read; the groups themselves are not checked.
    """
    found = describe(model)
    click.echo(json.dumps(asdict(found), indent=2) if as_json else printable(str(found)))
