"""Measure agreement with fits in memory, recall, traffic and memory."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from gapview import GRMF, BridgedGRMF
from gapview.graph.bridges import BRIDGES
from gapview.graph.neighbors import Search
from gapview.progress import Event, listening
from gapview.views import Views

from .setup import as_blocks, cluster_of, data_argument, data_set, made_blocks, output_option, timed, untied, write

_CONSTANT = 400  # MB that a worker may take besides three times its share of the data
_OF_ITERATIONS = ("iterate", "shares", "sum-shares", "bases")


@click.command()
@data_argument
@click.option("--workers", type=int, multiple=True, default=(1, 2, 4), show_default=True)
@output_option
def same(data: Path, workers: tuple[int, ...], output: Path) -> None:
    """Compare labels and objective with those in memory, on the same graph, with uneven blocks."""
    views, n_clusters = data_set(data)
    views = untied(views)
    plain = GRMF(n_clusters, init="data", random_state=0).fit(views)
    settings: dict[str, Any] = {"selection": "fixed", "random_state": 0}
    bridged = [BridgedGRMF(n_clusters, bridge=bridge, **settings).fit(views) for bridge in BRIDGES]
    chosen = BridgedGRMF(n_clusters, random_state=0).fit(views)
    for n_workers in workers:
        with cluster_of(n_workers):
            blocks = as_blocks(views, (0.1, 0.37, 0.6, 0.62, 0.8))
            for theirs in (plain, *bridged, chosen):
                model: Any = clone(theirs)
                record: dict[str, Any] = {"data": data.stem, "method": type(model).__name__, "workers": n_workers}
                if theirs is plain:
                    model.set_params(graph=plain.graphs_)
                else:
                    record["bridge"] = model.bridge
                with timed(record):
                    labels = model.fit(blocks).labels_.compute()
                record["adjusted_rand"] = round(adjusted_rand_score(theirs.labels_, labels), 6)
                record["objective_off_by"] = abs(model.objective_[-1] / theirs.objective_[-1] - 1)
                write(output, "same", record)


@click.command()
@click.option(
    "--data", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A data set; else made data."
)
@click.option("--samples", type=int, default=500_000, show_default=True)
@click.option("--widths", type=int, multiple=True, default=(40,), show_default=True)
@click.option("--block", type=int, default=62_500, show_default=True)
@click.option("--workers", type=int, default=2, show_default=True)
@output_option
def recall(data: Path | None, samples: int, widths: tuple[int, ...], block: int, workers: int, output: Path) -> None:
    """Search neighbours of every view across blocks by cells, and write the recall and the time."""
    with cluster_of(workers):
        if data is None:
            found = [made_blocks(samples, (width,), 10, block) for width in widths]
        else:
            found = [as_blocks(Views([matrix]), (0.25, 0.5, 0.75)) for matrix in data_set(data)[0].matrices]
        for k, blocks in enumerate(found):
            record: dict[str, Any] = {"data": data.stem if data else "made", "view": k, "workers": workers}
            begun: dict[str, float] = {}

            def note(event: Event, begun: dict[str, float] = begun) -> None:
                begun.setdefault(event.phase, time.perf_counter())

            model = GRMF(10, n_neighbors=10, search=Search(method="approximate"), tol=0, max_iter=1, random_state=0)
            with listening(note), warnings.catch_warnings(action="ignore"):
                model.fit(blocks)
            record["seconds"] = round(begun["Smoothing views"] - begun["Looking for neighbours"], 1)
            told = model.neighbor_search_[0]
            record |= {"points": told.n_points, "features": blocks[0].shape[1], "method": told.method}
            record |= {"recall": round(told.recall, 4), "cells": told.n_cells, "probes": told.n_probes}
            write(output, "recall", record)


@click.command()
@click.option("--samples", type=int, multiple=True, default=(2000, 16000), show_default=True)
@click.option("--workers", type=int, multiple=True, default=(2, 4), show_default=True)
@click.option("--iterations", type=int, default=8, show_default=True)
@click.option("--stealing", is_flag=True, help="Let Dask move blocks from busy workers to idle ones.")
@output_option
def traffic(samples: tuple[int, ...], workers: tuple[int, ...], iterations: int, stealing: bool, output: Path) -> None:
    """Sum the bytes that workers send to each other in an iteration, and compare with the formula."""
    widths, n_clusters = (60, 40), 10
    for n_workers in workers:
        for n_samples in samples:
            with cluster_of(n_workers, stealing=stealing) as client:
                blocks = made_blocks(n_samples, widths, n_clusters, n_samples // (4 * n_workers))
                used: set[str] = set()

                def note(event: Event, client: Any = client, used: set[str] = used) -> None:
                    if event.phase == "Iterating":
                        used.update(client.run_on_scheduler(_holders))

                with listening(note):
                    GRMF(n_clusters, tol=0, max_iter=iterations, random_state=0).fit(blocks)
                # The codes of the start give a sum, too
                moved = sum(client.run(_fetched).values()) / (iterations + 0.5)
                formula = 2 * (len(used) - 1) * 4 * n_clusters * sum(widths)
                record = {"samples": n_samples, "workers": n_workers, "workers_with_blocks": len(used)}
                record["stealing"] = stealing
                record |= {"bytes": round(moved), "formula": formula, "share": round(moved / max(formula, 1), 3)}
                write(output, "traffic", record)


def _holders(dask_scheduler: Any) -> list[str]:
    """Return the addresses of the workers that hold codes."""
    tasks = [task for key, task in dask_scheduler.tasks.items() if str(key).startswith("gapview-iterate-")]
    return sorted({worker.address for task in tasks for worker in task.who_has or ()})


def _fetched(dask_worker: Any) -> int:
    """Return the bytes that tasks of iterations have fetched from other workers."""
    prefixes = tuple(f"gapview-{name}-" for name in _OF_ITERATIONS)
    entries = [entry["keys"].items() for entry in dask_worker.transfer_incoming_log]
    return sum(size for entry in entries for key, size in entry if str(key).startswith(prefixes))


@click.command()
@click.option("--samples", type=int, default=200_000, show_default=True)
@click.option("--widths", type=int, multiple=True, default=(120, 80), show_default=True)
@click.option("--block", type=int, default=3125, show_default=True)
@click.option("--workers", type=int, default=2, show_default=True)
@click.option("--iterations", type=int, default=15, show_default=True)
@click.option("--limit", default="640MB", show_default=True, help="Memory limit of a worker.")
@click.option("--bridged", is_flag=True, help="BridgedGRMF in place of GRMF.")
@click.option("--bridge", type=click.Choice(BRIDGES), default="union", show_default=True, help="Of BridgedGRMF.")
@output_option
def memory(
    samples: int,
    widths: tuple[int, ...],
    block: int,
    workers: int,
    iterations: int,
    limit: str,
    bridged: bool,
    bridge: str,
    output: Path,
) -> None:
    """Fit with a memory limit on the workers, and report the peak memory of each."""
    with cluster_of(workers, limit) as client:
        before = max(client.run(peak_memory).values())
        blocks = made_blocks(samples, widths, 10, block)
        record: dict[str, Any] = {"method": "BridgedGRMF" if bridged else "GRMF", "samples": samples, "widths": widths}
        record |= {"workers": workers, "blocks": -(-samples // block), "limit": limit}
        phases: list[Any] = []
        limits: dict[str, Any] = {"random_state": 0, "tol": 0, "max_iter": iterations}
        model: Any = GRMF(10, init="data", **limits)
        if bridged:
            model, record["bridge"] = BridgedGRMF(10, bridge=bridge, selection="fixed", **limits), bridge

        def note(event: Event) -> None:
            if event.done is None:
                phases.append([event.phase, round(max(client.run(peak_memory).values()) / 1e6)])

        with timed(record), listening(note):
            model.fit(blocks)
            np.asarray(model.labels_[:1])
        peak = max(client.run(peak_memory).values())
        share = samples * sum(widths) * 4 / workers
        record |= {"share_mb": round(share / 1e6), "idle_mb": round(before / 1e6), "peak_mb": round(peak / 1e6)}
        record["constant_mb"] = _CONSTANT
        record |= {"peak_less_idle_by_share": round((peak - before) / share, 2), "peak_mb_before_phase": phases}
        record["recall"] = [round(told.recall, 4) for told in model.neighbor_search_]
        write(output, "memory", record)


def peak_memory() -> int:
    """Return the largest number of bytes that this process has held so far."""
    import resource  # which Windows has not

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
