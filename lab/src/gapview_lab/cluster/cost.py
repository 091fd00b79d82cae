"""Tasks, bytes and memory of fits of several sizes, measured and as planned; plans of any size."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gapview import GRMF, BridgedGRMF
from gapview.graph.neighbors import Search
from gapview.progress import ITERATING, Event, listening

from .measures import peak_memory
from .setup import cluster_of, made_blocks, output_option, timed, write
from .tasks import Counting

if TYPE_CHECKING:
    from gapview.backends.dask.plan import ClusterPlan

_N_NEIGHBORS = 10
_N_GROUPS = 10  # of the made data
_N_STEPS = 4
# samples, features of the views, workers, blocks
_SIZES = (
    (20_000, (60, 40), 2, 16),
    (40_000, (120, 80), 4, 32),
    (60_000, (240, 160), 2, 64),
    (120_000, (120, 80), 2, 64),
)


@click.command()
@click.option("--size", type=click.IntRange(1, len(_SIZES)), multiple=True, help="Number of a size; default: all.")
@click.option("--bridged", is_flag=True, help="BridgedGRMF in place of GRMF.")
@output_option
def cost(size: tuple[int, ...], bridged: bool, output: Path) -> None:
    """Measure tasks and bytes before the iterations, and peak memory, of fits of four sizes; compare with the plan."""
    for number in size or range(1, len(_SIZES) + 1):
        write(output, "cost", _measured(*_SIZES[number - 1], bridged=bridged))


def _measured(samples: int, widths: tuple[int, ...], workers: int, n_blocks: int, *, bridged: bool) -> dict[str, Any]:
    record: dict[str, Any] = {"method": "BridgedGRMF" if bridged else "GRMF", "samples": samples, "widths": widths}
    record |= {"workers": workers, "blocks": n_blocks}
    settings: dict[str, Any] = {"n_neighbors": _N_NEIGHBORS, "random_state": 0, "tol": 0, "max_iter": 3}
    settings["search"] = Search(method="approximate")
    plain = GRMF(_N_GROUPS, **settings)
    union = BridgedGRMF(_N_GROUPS, bridge="union", selection="fixed", reach=_N_STEPS, **settings)
    model: Any = union if bridged else plain
    with cluster_of(workers, stealing=False) as client:
        counting = Counting("gapview-")
        client.cluster.scheduler.add_plugin(counting, name="counting")
        idle = max(client.run(peak_memory).values())

        def note(event: Event) -> None:
            if event.phase == ITERATING and event.done == 1:
                record["tasks"] = counting.n_done
                record["bytes"] = sum(client.run(_sent).values())

        with timed(record), listening(note):
            model.fit(made_blocks(samples, widths, _N_GROUPS, math.ceil(samples / n_blocks)))
        record["memory"] = max(client.run(peak_memory).values())
    record["idle_mb"] = round(idle / 1e6)
    record["recall"] = [round(report.recall, 4) for report in model.neighbor_search_]
    record["probes"] = [report.n_probes for report in model.neighbor_search_]
    return record


def planned(record: dict[str, Any]) -> ClusterPlan:
    """Return the plan of a fit that was measured; of two views, each is present for two thirds of the samples."""
    from gapview.backends.dask.plan import plan_fit  # needs the extra dask

    n_steps = _N_STEPS if record["method"] == "BridgedGRMF" else 0
    size = record["samples"], record["widths"], record["workers"], record["blocks"]
    return plan_fit(*size, n_neighbors=_N_NEIGHBORS, n_groups=_N_GROUPS, n_steps=n_steps, present=2 / 3)


def _sent(dask_worker: Any) -> int:
    """Return the bytes of the results that a worker has sent to others."""
    return int(dask_worker.transfer_outgoing_bytes_total)


@click.command()
@click.option("--samples", type=float, required=True, help="Number of samples, such as 100e6.")
@click.option("--features", type=int, multiple=True, required=True, help="Features of a view; once for each view.")
@click.option("--workers", type=int, required=True, help="Worker processes of one thread.")
@click.option("--blocks", type=int, required=True, help="Blocks of samples.")
@click.option("--neighbors", type=int, default=_N_NEIGHBORS, show_default=True)
@click.option("--reach", type=int, default=0, show_default=True, help="Of BridgedGRMF; 0 for GRMF.")
@click.option("--present", type=float, default=1.0, show_default=True, help="Share of the samples that have a view.")
@click.option("--groups", type=int, default=_N_GROUPS, show_default=True)
def plan(
    samples: float,
    features: tuple[int, ...],
    workers: int,
    blocks: int,
    neighbors: int,
    reach: int,
    present: float,
    groups: int,
) -> None:
    """Print tasks, bytes between workers, and memory of a fit of any size, without running it."""
    from gapview.backends.dask.plan import plan_fit  # needs the extra dask

    given: dict[str, Any] = {"n_neighbors": neighbors, "n_steps": reach, "present": present, "n_groups": groups}
    found = plan_fit(int(samples), features, workers, blocks, **given)
    click.echo(f"tasks until the first iteration ends: {found.tasks:,}")
    click.echo(f"bytes between workers until then:     {found.bytes_moved:,.0f}")
    click.echo(f"tasks of each further iteration:      {found.tasks_per_iteration:,}")
    click.echo(f"bytes between workers in it:          {found.bytes_per_iteration:,.0f}")
    click.echo(f"share of the views on a worker, MB:   {found.share / 1e6:,.0f}")
    click.echo(f"peak memory of a worker, MB:          {found.worker_memory / 1e6:,.0f}")
