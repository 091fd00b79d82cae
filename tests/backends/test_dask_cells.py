"""Neighbours across blocks by cells in two levels, against all distances; the exchange between workers; plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gapview import GRMF, BridgedGRMF
from gapview.datasets import make_views
from gapview.graph.neighbors import Search
from gapview.utils.types import Array

da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")

from gapview.backends.dask.neighbors import find_neighbors  # noqa: E402
from gapview.backends.dask.plan import plan_fit  # noqa: E402
from gapview.backends.dask.tasks import Tasks, flatten, send, spread, stack_rows  # noqa: E402
from gapview.backends.dask.views import read_blocks  # noqa: E402

_IN_TWO_LEVELS = "gapview.backends.dask.cells._FEW_CELLS"


def _pretend_workers(monkeypatch: pytest.MonkeyPatch, count: Callable[[int], int]) -> None:
    """Place results on several workers by name, though all tasks run in this process."""

    def located(self: Tasks, handles: list[Any]) -> dict[Any, list[int]]:
        return spread(range(count(len(handles))), len(handles))

    monkeypatch.setattr(Tasks, "workers_of", located)


def _searched(arrays: list[Any], view: int = 0, n_neighbors: int = 6, **settings: Any) -> tuple[Array, Array, Search]:
    """Return samples, their neighbours, and the search, whose cells are visited however few points there are."""
    tasks, search = Tasks(), Search(method="approximate", **settings)
    views = read_blocks(tasks, arrays, None, "raise")
    found = find_neighbors(tasks, views, view, n_neighbors, search)
    samples, neighbors = (np.concatenate([own[i] for own in found]) for i in (0, -1))
    return samples, neighbors, search


def _true_distances(points: Array, n_neighbors: int) -> Array:
    """Return by how much the nearest other points are away, by all distances."""
    gaps = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(gaps, np.inf)
    return np.sort(gaps, axis=1)[:, :n_neighbors]


def _recall(points: Array, neighbors: Array) -> float:
    found = np.linalg.norm(points[:, None] - points[neighbors], axis=2)
    return float((found <= _true_distances(points, neighbors.shape[1])[:, -1:] * (1 + 1e-6)).mean())


@pytest.mark.parametrize("n_workers", [1, 3, 20])
def test_cells_within_cells_find_what_they_report(monkeypatch: pytest.MonkeyPatch, n_workers: int) -> None:
    monkeypatch.setattr(_IN_TWO_LEVELS, 0)
    _pretend_workers(monkeypatch, lambda n: min(n, n_workers))
    points = make_views(1500, [10], n_clusters=5, random_state=0).views.matrices[0]
    edges = np.unique([0, 3, *np.random.RandomState(0).randint(1500, size=18), 1499, 1500])
    samples, neighbors, search = _searched([da.from_array(points, chunks=(tuple(np.diff(edges).tolist()), -1))])
    np.testing.assert_array_equal(samples, np.arange(1500))  # no row is lost, none comes twice
    assert (neighbors != samples[:, None]).all()
    assert all(len(set(own)) == 6 for own in neighbors.tolist())
    (report,) = search.done
    assert (report.method, report.engine) == ("approximate", "dask")
    assert 1 <= report.n_probes < report.n_cells / 2
    assert report.recall >= 0.95
    assert abs(_recall(points, neighbors) - report.recall) < 0.03


def test_blocks_without_the_view_and_samples_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_IN_TWO_LEVELS, 0)
    _pretend_workers(monkeypatch, lambda n: min(n, 4))
    whole = make_views(900, [8, 3], n_clusters=4, random_state=1).views.matrices
    points, other = whole[0].copy(), whole[1]
    has_it = np.random.RandomState(0).uniform(size=900) < 0.7
    has_it[300:450] = False  # all samples of one block
    points[~has_it] = np.nan
    samples, neighbors, search = _searched([da.from_array(own, chunks=(150, -1)) for own in (points, other)])
    np.testing.assert_array_equal(samples, np.flatnonzero(has_it))
    assert has_it[neighbors].all()
    assert search.done[0].n_points == has_it.sum()
    place = np.full(900, -1)
    place[samples] = np.arange(len(samples))
    assert _recall(points[samples], place[neighbors]) >= 0.93


@pytest.mark.parametrize("n_copies", [2, 40])
def test_duplicates_are_neighbours_and_no_sample_is_its_own(monkeypatch: pytest.MonkeyPatch, n_copies: int) -> None:
    monkeypatch.setattr(_IN_TWO_LEVELS, 0)
    _pretend_workers(monkeypatch, lambda n: min(n, 5))
    distinct = np.random.RandomState(0).normal(size=(600 // n_copies, 5))
    points = np.tile(distinct, (n_copies, 1))
    samples, neighbors, _ = _searched([da.from_array(points, chunks=(70, -1))], n_neighbors=4)
    assert len(samples) == len(points)
    assert (neighbors != samples[:, None]).all()
    if n_copies > 5:
        np.testing.assert_array_equal(points[neighbors[:, 0]], points)


def test_all_rows_equal() -> None:
    samples, neighbors, _ = _searched([da.from_array(np.ones((300, 4)), chunks=(100, -1))], n_neighbors=3)
    assert len(samples) == 300
    assert (neighbors != samples[:, None]).all()
    assert (neighbors >= 0).all()


@pytest.mark.parametrize("n_points", [2, 5, 9])
def test_fewer_rows_than_neighbours_cells_or_workers(monkeypatch: pytest.MonkeyPatch, n_points: int) -> None:
    monkeypatch.setattr(_IN_TWO_LEVELS, 0)
    _pretend_workers(monkeypatch, lambda n: n)
    points = np.random.RandomState(0).normal(size=(n_points, 3))
    _, neighbors, _ = _searched([da.from_array(points, chunks=(1, -1))], n_neighbors=8)
    n_found = min(8, n_points - 1)
    expected = np.argsort(np.linalg.norm(points[:, None] - points, axis=2), axis=1)[:, 1 : 1 + n_found]
    np.testing.assert_array_equal(np.sort(neighbors, axis=1), np.sort(expected, axis=1))


def test_the_same_seed_gives_the_same_neighbours_on_any_number_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    points = da.from_array(make_views(700, [6], n_clusters=3, random_state=0).views.matrices[0], chunks=(50, -1))
    first, again = _searched([points], seed=3)[1], _searched([points], seed=3)[1]
    np.testing.assert_array_equal(first, again)


# -- what is sent between workers ------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_workers", "n_blocks"), [(1, 1), (2, 3), (16, 16), (17, 40), (60, 60), (300, 301)])
def test_parts_reach_their_receivers_in_the_order_of_the_senders(n_workers: int, n_blocks: int) -> None:
    """In one, two and three stages."""
    senders = spread(range(n_workers), n_blocks)
    receivers = spread(range(max(1, n_workers // 2)), n_blocks + 1)
    received = send(Tasks(), "test", _parts, senders, receivers, list(range(n_blocks)), n_receivers=n_blocks + 1)
    for receiver, own in enumerate(received):
        assert flatten(own.argument) == [(sender, receiver) for sender in range(n_blocks)]


def _parts(sender: int, *, n_receivers: int) -> list[tuple[int, int]]:
    return [(sender, receiver) for receiver in range(n_receivers)]


def test_rows_are_stacked_in_the_order_of_the_blocks() -> None:
    def rows(number: int) -> list[Array]:
        return [np.full((number, 2), number) for _ in range(3)]

    received = send(Tasks(), "test", rows, {"a": [0, 3], "b": [1, 2]}, {"b": [2, 0], "a": [1]}, list(range(4)))
    assert all(stack_rows(own.argument)[:, 0].tolist() == [1, 2, 2, 3, 3, 3] for own in received)


def test_results_do_not_depend_on_the_number_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = make_views(600, [5, 4], n_clusters=3, missing_rate=0.3, random_state=0).views
    given = [np.full((600, own.shape[1]), np.nan) for own in rows.matrices]
    for k, own in enumerate(rows.matrices):
        given[k][rows.rows(k)] = own
    models = GRMF(3, init="data", random_state=0), BridgedGRMF(3, bridge="union", selection="fixed", random_state=0)
    for model in models:
        objectives = []
        for n_workers in (1, 20):
            _pretend_workers(monkeypatch, lambda n, most=n_workers: min(n, most))
            model.fit([da.from_array(own, chunks=(20, -1)) for own in given])
            objectives.append(model.objective_[-1])
        np.testing.assert_allclose(objectives[0], objectives[1], rtol=1e-10)


# -- tasks and plans -------------------------------------------------------------------------------------------


def _counted(monkeypatch: pytest.MonkeyPatch, model: Any, n_blocks: int) -> int:
    """Count the tasks of a fit with 5 blocks on each worker, one iteration included."""
    really, n_tasks = Tasks.map, 0

    def counting(self: Tasks, name: str, function: Any, *lists: Any, **common: Any) -> list[Any]:
        nonlocal n_tasks
        n_tasks += len(lists[0])
        return really(self, name, function, *lists, **common)

    class Reached(Exception):
        pass

    def stop(self: Any) -> None:
        raise Reached

    monkeypatch.setattr(Tasks, "map", counting)
    monkeypatch.setattr("gapview.backends.dask.sweep.BlockedSweep.correlate", stop)
    _pretend_workers(monkeypatch, lambda n: max(1, min(n, n_blocks // 5)))
    rows = make_views(16 * n_blocks, [4], n_clusters=3, random_state=0).views.matrices[0]
    with pytest.raises(Reached):
        model.fit([da.from_array(rows, chunks=(16, -1))])
    monkeypatch.setattr(Tasks, "map", really)
    return n_tasks


@pytest.mark.parametrize("is_bridged", [False, True])
def test_tasks_grow_like_the_number_of_blocks(monkeypatch: pytest.MonkeyPatch, is_bridged: bool) -> None:
    settings: dict[str, Any] = {"search": "approximate", "random_state": 0}
    counts = {}
    for n_blocks in (40, 160):
        model = BridgedGRMF(3, bridge="union", selection="fixed", **settings) if is_bridged else GRMF(3, **settings)
        counts[n_blocks] = _counted(monkeypatch, model, n_blocks)
        planned = plan_fit(16 * n_blocks, [4], n_blocks // 5, n_blocks, n_steps=4 if is_bridged else 0).tasks
        assert abs(planned - 4 * n_blocks - counts[n_blocks]) < 0.06 * counts[n_blocks]
    assert counts[160] < 5 * counts[40]  # with √blocks tasks for each block, 8 × as many


def test_planned_tasks_grow_like_blocks_and_their_logarithm() -> None:
    def tasks(n_blocks: int, n_steps: int) -> int:
        return plan_fit(16 * n_blocks, [4], n_blocks // 5, n_blocks, n_steps=n_steps).tasks

    for n_steps in (0, 4):
        for n_blocks in (50, 500, 5000):
            assert tasks(10 * n_blocks, n_steps) < 10 * 1.35 * tasks(n_blocks, n_steps)
    assert plan_fit(64 * 60, [8], 2, 64).tasks < 5000


def test_a_plan_grows_with_samples_features_and_reach() -> None:
    small, large = plan_fit(100_000, [40], 4, 64), plan_fit(1_000_000, [40], 4, 64)
    assert 8 < large.bytes_moved / small.bytes_moved < 14
    assert large.worker_memory - small.worker_memory > 2 * (large.share - small.share)
    bridged, wide = plan_fit(100_000, [40], 4, 64, n_steps=4), plan_fit(100_000, [80], 4, 64)
    assert bridged.tasks > small.tasks
    assert bridged.bytes_moved > 2 * small.bytes_moved
    assert wide.share == 2 * small.share
    assert wide.bytes_per_iteration == 2 * small.bytes_per_iteration == 2 * 2 * 3 * 4 * 10 * 40
    assert plan_fit(100_000, [40], 1, 64).bytes_moved == 0
