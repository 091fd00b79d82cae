"""``python -m gapview.experiments.cluster``: measure fits on a Dask cluster."""

from __future__ import annotations

import click

from ._document import document
from ._faults import client_killed, faults
from ._measures import memory, recall, same, traffic
from ._tasks import count_tasks


@click.group()
def main() -> None:
    """Measure fits on a Dask cluster; every command but the last adds a line of JSON to a file for each figure."""


for command in (same, recall, traffic, count_tasks, memory, faults, client_killed, document):
    main.add_command(command)

if __name__ == "__main__":
    main()
