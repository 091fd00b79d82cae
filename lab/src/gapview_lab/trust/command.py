"""``gapview-lab trust``: whether what gapview says about its own results is true."""

from __future__ import annotations

import click

from .batches import batches
from .calibration import calibration
from .outliers import outliers
from .recovery import recovery
from .structure import structure

__all__ = ["trust"]


@click.group(short_help="Check what gapview says about its own results.")
def trust() -> None:
    """Check what gapview says about its own results."""


for _command in (batches, calibration, outliers, recovery, structure):
    trust.add_command(_command)
