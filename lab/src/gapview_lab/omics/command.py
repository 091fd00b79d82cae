"""``gapview-lab omics``: experiments with omics data."""

from __future__ import annotations

import click

from .batches import batches
from .cells import cells
from .cohorts import cohorts

__all__ = ["omics"]


@click.group(short_help="Run experiments with omics data.")
def omics() -> None:
    """Run experiments with omics data."""


for _command in (batches, cells, cohorts):
    omics.add_command(_command)
