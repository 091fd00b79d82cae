"""``gapview-lab cluster``: measure fits on a Dask cluster."""

from __future__ import annotations

import click

from .cost import cost, plan
from .document import document
from .faults import client_killed, faults
from .measures import memory, recall, same, traffic
from .tasks import count_tasks

__all__ = ["cluster"]


@click.group(short_help="Measure fits on a Dask cluster.")
def cluster() -> None:
    """Measure fits on a Dask cluster; every command but ``document`` and ``plan`` appends lines of JSON to a file."""


for _command in (same, recall, traffic, count_tasks, memory, cost, plan, faults, client_killed, document):
    cluster.add_command(_command)
