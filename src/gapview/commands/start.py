"""What commands print when they are called without the arguments that they need: how to start."""

from __future__ import annotations

from typing import Any

import click

HOW_TO_CLUSTER = """\
Every file is a view: a table with a row for each sample, a column for each feature, and a column of sample ids.
Samples may be missing from any of the files.

  gapview cluster rna.csv protein.csv -k auto -o out      the number of groups that the data suggest
  gapview cluster rna.csv protein.csv -k 3 -o out         three groups
  gapview cluster rna.csv -k 3 --transpose all -o out     a table with samples in columns
  gapview cluster cells.h5mu -k auto --kind auto -o out   counts of cells
  gapview demo -o out                                     no files yet: an embedded example
"""


class StartCommand(click.Command):
    """A command that shows how to start, instead of an error, if it is called without any of its arguments."""

    def __init__(self, *args: Any, start: str = "", **more: Any) -> None:
        super().__init__(*args, **more)
        self.start = start

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Return the arguments that are left; show how to start if there are none at all."""
        if not args and any(parameter.required for parameter in self.params):
            start = self.start or f"  {(self.epilog or '').removeprefix('Example: ')}\n"
            more = f"All options: {context.command_path} --help"
            click.echo(f"{context.get_usage()}\n\n{self.short_help}\n\n{start}\n{more}", err=True)
            context.exit(2)
        return super().parse_args(context, args)
