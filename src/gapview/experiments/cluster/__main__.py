"""``python -m gapview.experiments.cluster``: measure fits on a Dask cluster."""

from __future__ import annotations

import click

from ._faults import client_killed, faults
from ._measures import memory, recall, same, traffic


@click.group()
def main() -> None:
    """Measure fits on a Dask cluster; every command adds a line of JSON to a file for each figure."""


for command in (same, recall, traffic, memory, faults, client_killed):
    main.add_command(command)

if __name__ == "__main__":
    main()
