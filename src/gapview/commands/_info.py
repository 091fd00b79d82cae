"""``gapview info``: what is in a model file."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from ..methods import describe
from ._console import printable
from ._options import model_argument

__all__ = ["info"]


@click.command(short_help="Tell what is in a model file.", epilog="Example: gapview info out/model.gapview --json")
@model_argument
@click.option("--json", "as_json", is_flag=True, help="As JSON, for other programs.")
def info(model: Path, as_json: bool) -> None:
    """Tell what is in a model file: method, settings, views, samples and groups.

    Only the beginning of the file is read, which takes no time; the groups themselves are not checked.
    """
    found = describe(model)
    click.echo(json.dumps(asdict(found), indent=2) if as_json else printable(str(found)))
