"""``python -m gapview.experiments.reliability``: experiments that try to break gapview."""

from __future__ import annotations

import click

from ._document import document
from ._fuzz import fuzz
from ._kill import kill
from ._load import load_test
from ._numbers import numbers


@click.group()
def main() -> None:
    """Try to break gapview, and count."""


main.add_command(document)
main.add_command(fuzz)
main.add_command(kill)
main.add_command(load_test)
main.add_command(numbers)

if __name__ == "__main__":
    main()
