"""``gapview-lab reliability``: experiments that try to make gapview fail."""

from __future__ import annotations

import click

from .document import document
from .fuzz import fuzz
from .kill import kill
from .load import load_test
from .mistakes import mistakes
from .numbers import numbers

__all__ = ["reliability"]


@click.group(short_help="Try to make gapview fail, and count.")
def reliability() -> None:
    """Try to make gapview fail, and count the failures."""


for _command in (document, fuzz, kill, load_test, mistakes, numbers):
    reliability.add_command(_command)
