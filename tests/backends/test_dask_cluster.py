"""Fits on a cluster of processes: the same labels, few bytes on the way, and a worker that is killed."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from gapview import GRMF, BridgedGRMF, Views
from gapview.datasets import make_views
from gapview.progress import listening

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

from distributed_problems import unevenly, written_out  # noqa: E402
from gapview.backends.dask import joint, sweep  # noqa: E402


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    settings = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0", "memory_limit": "1GB"}
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with (
        distributed.LocalCluster(n_workers=2, silence_logs=logging.CRITICAL, **settings) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def made() -> Views:
    return make_views(n_samples=400, n_clusters=4, noise=2.0, missing_rate=0.3, random_state=0).views


def _moved(client: Any) -> float:
    """Add up the bytes that the tasks of iterations have fetched from other workers."""

    def log(dask_worker: Any) -> int:
        names = tuple(f"gapview-{name}-" for name in ("iterate", "shares", "sum-shares", "bases"))
        entries = [entry["keys"].items() for entry in dask_worker.transfer_incoming_log]
        return sum(size for entry in entries for key, size in entry if str(key).startswith(names))

    return sum(client.run(log).values())


def _remembered(client: Any, name: str) -> int:
    """Count the tasks of a name that the scheduler remembers."""
    tasks = client.run_on_scheduler(lambda dask_scheduler: [str(key) for key in dask_scheduler.tasks])
    return sum(key.startswith(f"gapview-{name}-") for key in tasks)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_cluster_finds_what_memory_finds_and_little_travels(client: Any, made: Views, tmp_path: Any) -> None:
    arrays = written_out(made)
    settings = {"n_clusters": 4, "init": "data", "tol": 0, "max_iter": 12, "random_state": 0}
    theirs = GRMF(**settings).fit(arrays)
    ours = GRMF(**settings).fit(unevenly(arrays, 0.2, 0.6), checkpoint=tmp_path / "fit")
    np.testing.assert_allclose(ours.objective_, theirs.objective_, rtol=1e-9)
    assert adjusted_rand_score(ours.labels_.compute(), theirs.labels_) == 1
    # Iterations × up and down × bytes × components × features, for two workers; and some for each of the messages
    assert 0 < _moved(client) <= 13 * 2 * (8 * 4 * 50 + 600)
    assert _remembered(client, "iterate") == 0  # what came before the checkpoint is forgotten


@pytest.mark.parametrize("n_workers", [1, 2, 4])
@pytest.mark.filterwarnings("ignore:Creating scratch directories")  # on a busy computer
def test_every_bridge_has_the_labels_of_memory(n_workers: int) -> None:
    views = make_views(300, (20, 9, 30), n_clusters=4, noise=2.0, missing_rate=0.5, random_state=0).views
    arrays = written_out(views)
    settings = {"n_clusters": 4, "selection": "fixed", "random_state": 0}
    workers = {"n_workers": n_workers, "processes": False, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.Client(**workers):
        for bridge in ("union", "joint", "both"):
            theirs = BridgedGRMF(bridge=bridge, **settings).fit(arrays)
            ours = BridgedGRMF(bridge=bridge, **settings).fit(unevenly(arrays, 0.1, 0.15, 0.5, 0.8))
            np.testing.assert_array_equal(ours.labels_.compute(), theirs.labels_)
            np.testing.assert_allclose(ours.objective_, theirs.objective_, rtol=1e-9)


@pytest.mark.parametrize("search", [1, 3])
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_worker_that_dies_during_the_joint_bridge_costs_time_and_not_the_result(
    client: Any, made: Views, monkeypatch: pytest.MonkeyPatch, search: int
) -> None:
    """Killed while donors of the first view are searched, and when all views are complete."""
    find_nearest, n_done = joint.find_nearest, 0

    def killing(*arguments: Any) -> Any:
        nonlocal n_done
        n_done += 1
        if n_done == search:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        return find_nearest(*arguments)

    monkeypatch.setattr(joint, "find_nearest", killing)
    arrays = written_out(made)
    settings = {"n_clusters": 4, "bridge": "both", "selection": "fixed", "random_state": 0}
    theirs = BridgedGRMF(**settings).fit(arrays)
    ours = BridgedGRMF(**settings).fit(unevenly(arrays, 0.2, 0.6))
    assert n_done == 3
    np.testing.assert_array_equal(ours.labels_.compute(), theirs.labels_)
    np.testing.assert_allclose(ours.objective_, theirs.objective_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_worker_that_dies_costs_time_and_not_the_result(client: Any, made: Views) -> None:
    """After codes were held, and when the fit has long ended; and the scheduler forgets what it can."""
    blocks = unevenly(written_out(made), 0.2, 0.6)
    settings = {"n_clusters": 4, "init": "data", "tol": 0, "max_iter": 14, "random_state": 0}
    undisturbed = GRMF(**settings).fit(written_out(made))
    remembered = {}

    def kill(event: Any) -> None:
        if event.phase != "Iterating":
            return
        remembered[event.done] = _remembered(client, "iterate") + _remembered(client, "hold")
        if event.done == 13:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

    with listening(kill):
        model = GRMF(**settings).fit(blocks)
    np.testing.assert_allclose(model.objective_, undisturbed.objective_, rtol=1e-9)
    assert adjusted_rand_score(model.labels_.compute(), undisturbed.labels_) == 1
    assert max(remembered.values()) <= 3 * 11  # three blocks, ten iterations, and what these start from
    assert remembered[14] < remembered[10]
    embedding = model.embedding_.compute()
    for victim in client.run(os.getpid).values():
        os.kill(victim, signal.SIGKILL)
    np.testing.assert_array_equal(model.embedding_.compute(), embedding)


def test_tasks_are_forgotten_though_codes_were_not_where_they_are_looked_for(
    made: Views, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy worker may hand a task to one that does not hold its codes: these are then fetched or computed again."""
    in_memory, looked_for, remembered = sweep._in_memory, [], {}

    def lost(key: str) -> Any:
        looked_for.append(key)
        return in_memory(key) if len(looked_for) > 3 else None

    monkeypatch.setattr(sweep, "_in_memory", lost)
    settings = {"n_clusters": 4, "init": "data", "tol": 0, "max_iter": 12, "random_state": 0}
    with distributed.Client(n_workers=2, processes=False, threads_per_worker=1, dashboard_address=":0") as client:

        def count(event: Any) -> None:
            if event.phase == "Iterating":
                remembered[event.done] = _remembered(client, "iterate")

        with listening(count):
            model = GRMF(**settings).fit(unevenly(written_out(made), 0.2, 0.6))
        assert len(looked_for) > 3
        assert remembered[12] < remembered[10]
        undisturbed = GRMF(**settings).fit(written_out(made))
        np.testing.assert_allclose(model.objective_, undisturbed.objective_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_views_that_were_fitted_can_be_predicted_though_they_are_cut_anew(client: Any, made: Views) -> None:
    """Dask gives the same names to both cuts, and the tasks of the fit are released."""
    arrays = written_out(made)
    views = [da.from_array(array, chunks=(size, -1)) for array, size in zip(arrays, (150, 130), strict=True)]
    model = GRMF(n_clusters=4, init="data", random_state=0).fit(views)
    assert adjusted_rand_score(model.predict(views).compute(), model.labels_.compute()) > 0.8
