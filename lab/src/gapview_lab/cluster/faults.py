"""Kill workers and clients during a fit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np
from sklearn.metrics import adjusted_rand_score

from gapview import GRMF
from gapview.progress import Event, listening

from .setup import as_blocks, cluster_of, data_argument, data_set, output_option, timed, write

_MOMENTS = (
    ("Reading views", None, 0.3),
    ("Looking for neighbours", None, 0.5),
    ("Smoothing views", None, 0.3),
    ("Iterating", 5, 0.0),
    ("Iterating", 12, 0.1),
    ("Finding groups", None, 0.1),
)
_SHARES = (0.1, 0.37, 0.6, 0.8)


def _model(n_clusters: int) -> Any:
    return GRMF(n_clusters, random_state=0, tol=0, max_iter=25)


@click.command()
@data_argument
@click.option("--checkpoint", is_flag=True, help="With a checkpoint.")
@output_option
def faults(data: Path, checkpoint: bool, output: Path) -> None:
    """Kill a worker with SIGKILL in every phase of a fit, and compare the labels with those of an undisturbed one."""
    views, n_clusters = data_set(data)
    blocks = as_blocks(views, _SHARES)
    with cluster_of(2):
        undisturbed = _model(n_clusters).fit(blocks)
        labels = undisturbed.labels_.compute()
    for phase, done, delay in _MOMENTS:
        record: dict[str, Any] = {"data": data.stem, "phase": phase, "iteration": done, "checkpoint": checkpoint}
        with cluster_of(2) as client, TemporaryDirectory() as folder:
            path = Path(folder) / "fit" if checkpoint else None
            killing = _Killing(next(iter(client.run(os.getpid).values())), phase, done, delay)
            with timed(record), listening(killing):
                model = _model(n_clusters).fit(blocks, checkpoint=path)
                record["adjusted_rand"] = adjusted_rand_score(labels, model.labels_.compute())
        record["killed"] = killing.has_killed
        record["objective_off_by"] = float(np.abs(model.objective_ / undisturbed.objective_ - 1).max())
        write(output, "faults", record)


class _Killing:
    """Listener that kills a process once, shortly after a phase has begun."""

    def __init__(self, process: int, phase: str, done: int | None, delay: float) -> None:
        self.process, self.phase, self.done, self.delay = process, phase, done, delay
        self.has_begun = self.has_killed = False

    def __call__(self, event: Event) -> None:
        if self.has_begun or event.phase != self.phase or event.done != self.done:
            return
        self.has_begun = True
        threading.Timer(self.delay, self._kill).start()

    def _kill(self) -> None:
        os.kill(self.process, signal.SIGKILL)
        self.has_killed = True


@click.command(name="client")
@data_argument
@click.option("--one-fit", is_flag=True, hidden=True)
@output_option
def client_killed(data: Path, one_fit: bool, output: Path) -> None:
    """Kill the client and its cluster after a checkpoint; then restart the fit."""
    if one_fit:
        _fit_once(data, output)
        return
    with TemporaryDirectory() as folder:
        write(output, "client", _resumed(data, Path(folder)))


def _resumed(data: Path, folder: Path) -> dict[str, Any]:
    views, n_clusters = data_set(data)
    with cluster_of(2):
        undisturbed = _model(n_clusters).fit(as_blocks(views, _SHARES)).labels_.compute()
    command = [sys.executable, "-m", "gapview_lab", "cluster", "client", str(data), "--one-fit", "-o", str(folder)]
    process = subprocess.Popen(command, start_new_session=True)
    while not (folder / "fit" / "fit.npz").exists() and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    finished = (folder / "client.npz").exists()
    subprocess.run(command, check=True)
    with np.load(folder / "client.npz") as archive:
        return {
            "data": data.stem,
            "killed_before_the_end": not finished,
            "first_iteration_after": int(archive["first"]),
            "adjusted_rand": adjusted_rand_score(undisturbed, archive["labels"]),
        }


def _fit_once(data: Path, folder: Path) -> None:
    views, n_clusters = data_set(data)
    seen: list[int] = []
    with cluster_of(2), listening(lambda event: seen.append(event.done or 0) if event.phase == "Iterating" else None):
        model = _model(n_clusters).fit(as_blocks(views, _SHARES), checkpoint=folder / "fit")
        np.savez(folder / "client.npz", labels=model.labels_.compute(), first=seen[0] if seen else 0)
