"""Fits on Dask collections, block by block in this process; what all backends share: test_backend_contract.py."""

from __future__ import annotations

import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from gapview import GRMF, BridgedGRMF, Views
from gapview.datasets import make_views
from gapview.errors import InputError, ParameterError
from gapview.graph.neighbors import Search, without_last

da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")

from distributed_problems import three_views, unevenly, written_out  # noqa: E402
from gapview.backends.dask.cells import regions_of  # noqa: E402
from gapview.backends.dask.neighbors import find_neighbors  # noqa: E402
from gapview.backends.dask.queries import Chosen, find_nearest  # noqa: E402
from gapview.backends.dask.tasks import Tasks, flatten, send  # noqa: E402
from gapview.backends.dask.views import read_blocks, split_by_hash  # noqa: E402


@pytest.fixture(scope="module")
def made() -> Views:
    return make_views(n_samples=240, n_clusters=3, missing_rate=0.3, random_state=3).views


@pytest.fixture(scope="module")
def three() -> Views:
    return three_views()


def _same(ours: Any, theirs: Any) -> None:
    """Check that both models are the same, up to rounding."""
    assert ours.n_iter_ == theirs.n_iter_
    np.testing.assert_allclose(ours.objective_, theirs.objective_, rtol=1e-9)
    assert adjusted_rand_score(ours.labels_.compute(), theirs.labels_) == 1
    np.testing.assert_allclose(ours.embedding_.compute(), theirs.embedding_, atol=1e-7)
    np.testing.assert_allclose(ours.confidence_.compute(), theirs.confidence_, atol=1e-5)
    for own, other in zip(ours.codes_, theirs.codes_, strict=True):
        np.testing.assert_allclose(own.compute(), other, atol=1e-7)


def test_many_blocks_exchange_in_two_stages(three: Views) -> None:
    arrays = written_out(three)
    blocks = unevenly(arrays, *np.linspace(0, 1, 24)[1:-1])
    settings = {"n_clusters": 4, "random_state": 0}
    for bridge in ("union", "joint", "both"):
        options = {"bridge": bridge, "selection": "fixed"}
        _same(BridgedGRMF(**settings, **options).fit(blocks), BridgedGRMF(**settings, **options).fit(arrays))
    _same(GRMF(**settings, init="data").fit(blocks), GRMF(**settings, init="data").fit(arrays))


def test_wide_views_are_completed_by_the_components_of_memory() -> None:
    """More features than are kept, in more rows than there are components, and in fewer."""
    views = make_views(320, (300, 40, 700), n_clusters=3, missing_rate=0.4, random_state=1).views
    arrays = written_out(views)
    settings = {"n_clusters": 3, "bridge": "joint", "selection": "fixed", "random_state": 0}
    _same(BridgedGRMF(**settings).fit(unevenly(arrays, 0.1, 0.7)), BridgedGRMF(**settings).fit(arrays))


def test_a_block_receives_the_rows_of_candidates_in_parts(three: Views, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gapview.backends.dask.joint._BYTES_RECEIVED", 1)
    arrays = written_out(three)
    blocks = unevenly(arrays, *np.linspace(0, 1, 40)[1:-1])  # candidates of a block are more than its own rows
    settings = {"n_clusters": 4, "bridge": "joint", "selection": "fixed", "random_state": 0}
    _same(BridgedGRMF(**settings).fit(blocks), BridgedGRMF(**settings).fit(arrays))


@pytest.mark.parametrize("method", ["exact", "approximate"])
def test_points_are_found_for_other_samples(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some queries are points; no point finds itself, and the last column of a query counts as 0."""
    monkeypatch.setattr("gapview.backends.dask.neighbors._N_TOGETHER", 500)
    rng, n = np.random.RandomState(0), 2400
    rows = make_views(n, [10], n_clusters=6, random_state=0).views.matrices[0]
    rows = np.column_stack([rows, rng.uniform(1, 3, size=n)])
    is_point, is_query, edges = rng.uniform(size=n) < 0.8, rng.uniform(size=n) < 0.5, np.array([0, 900, 1000, n])
    blocks = [
        (rows[begin:end], begin, is_point[begin:end], is_query[begin:end]) for begin, end in pairwise(edges.tolist())
    ]

    def points(block: Any) -> Chosen:
        place = np.flatnonzero(block[2])
        return Chosen(block[0], place, place + block[1])

    def queries(block: Any) -> Chosen:
        place = np.flatnonzero(block[3])
        return Chosen(without_last(block[0]), place, place + block[1])

    search = Search(method=method)
    found = find_nearest(Tasks(), blocks, edges, points, queries, 7, search)
    samples, near = np.concatenate([own[0] for own in found]), np.concatenate([own[-1] for own in found])
    np.testing.assert_array_equal(samples, np.flatnonzero(is_query))
    asked = rows[samples].copy()
    asked[:, -1] = 0
    distances = np.linalg.norm(asked[:, None] - rows, axis=2)
    distances[:, ~is_point], distances[np.arange(len(samples)), samples] = np.inf, np.inf
    true = np.argsort(distances, axis=1)[:, :7]
    assert search.done[0].method == method
    if method == "exact":
        np.testing.assert_array_equal(near, true)
    else:
        assert is_point[near].all()
        recall = np.mean([len(np.intersect1d(a, b)) / 7 for a, b in zip(near, true, strict=True)])
        assert recall > 0.94
        assert abs(recall - search.done[0].recall) < 0.03


def test_queries_far_from_all_cells_are_compared_with_all_points() -> None:
    rng = np.random.RandomState(0)
    far = np.repeat(rng.normal(size=(40, 6)) * 1000, 2, axis=0) + rng.normal(size=(80, 6))
    rows = np.concatenate([rng.normal(size=(1500, 6)), far])

    def select(block: Any) -> Chosen:
        return Chosen(block, np.arange(len(block)), np.arange(len(block)))

    blocks, edges = [rows], np.array([0, len(rows)])
    (found,) = find_nearest(Tasks(), blocks, edges, select, select, 5, Search(method="approximate"))
    assert (found[-1] >= 0).all()
    (few,) = find_nearest(Tasks(), [rows[:3]], np.array([0, 3]), select, select, 5, Search())
    np.testing.assert_array_equal(np.sort(few[-1], axis=1), [[-1, 1, 2], [-1, 0, 2], [-1, 0, 1]])


@pytest.mark.parametrize("model", [GRMF(3), BridgedGRMF(3)])
def test_batches_are_refused_before_anything_is_computed(made: Views, model: Any) -> None:
    arrays = [da.from_array(matrix) for matrix in written_out(made)]
    with pytest.raises(ParameterError, match="leave batch out"):
        model.fit(arrays, batch=np.arange(240) % 3)
    assert not hasattr(model, "labels_")


@pytest.mark.parametrize(("n_senders", "n_receivers"), [(1, 1), (3, 5), (16, 40), (17, 1), (30, 7), (40, 40)])
def test_parts_arrive_in_the_order_of_the_senders(n_senders: int, n_receivers: int) -> None:
    whole = [[(sender, receiver) for receiver in range(n_receivers)] for sender in range(n_senders)]
    received = send(Tasks(), "test", list, {0: list(range(n_senders))}, {0: list(range(n_receivers))}, whole)
    assert [flatten(own.argument) for own in received] == [
        [(sender, receiver) for sender in range(n_senders)] for receiver in range(n_receivers)
    ]


def test_tasks_before_the_iterations_grow_less_than_the_pairs_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = [0]
    really = Tasks.map

    def counting(self: Tasks, name: str, function: Any, *lists: Any, **common: Any) -> list[Any]:
        counted[0] += len(lists[0])
        return really(self, name, function, *lists, **common)

    monkeypatch.setattr(Tasks, "map", counting)
    monkeypatch.setattr(
        Tasks, "workers_of", lambda self, handles: {i: [*range(i, len(handles), 10)] for i in range(10)}
    )
    rows = make_views(1600, [4], n_clusters=3, random_state=0).views.matrices[0]
    for size, most in ((64, 4500), (16, 18_500)):  # 25 and 100 blocks; with a task for each pair 55,000
        counted[0] = 0
        model = GRMF(3, init="data", search="approximate", tol=0, max_iter=1, random_state=0)
        model.fit([da.from_array(rows, chunks=(size, -1))])
        assert counted[0] < most


def test_starting_codes_may_be_dask_arrays(three: Views) -> None:
    arrays, rng = written_out(three), np.random.RandomState(0)
    codes = [rng.uniform(size=(200, 4)) for _ in arrays]
    settings = {"n_clusters": 4, "random_state": 0, "max_iter": 30, "tol": 0}
    in_blocks = [da.from_array(own, chunks=(33, 2)) for own in codes]
    _same(GRMF(init=in_blocks, **settings).fit(unevenly(arrays, 0.3, 0.4)), GRMF(init=codes, **settings).fit(arrays))


def test_random_starts_do_not_depend_on_the_blocks_and_the_best_counts(three: Views) -> None:
    arrays, settings = written_out(three), {"n_clusters": 4, "max_iter": 30, "tol": 0}
    blocks = unevenly(arrays, 0.3, 0.4)
    alone = [GRMF(**settings, random_state=seed).fit(blocks) for seed in (0, 1)]
    together = GRMF(**settings, n_init=4, random_state=0).fit(blocks)
    assert together.objective_[-1] <= alone[0].objective_[-1] * (1 + 1e-12)
    assert alone[0].objective_[0] != alone[1].objective_[0]
    otherwise = GRMF(**settings, random_state=0).fit(unevenly(arrays, 0.77))
    np.testing.assert_allclose(otherwise.objective_, alone[0].objective_, rtol=1e-9)


def test_masks_blocks_of_unknown_size_and_more_features_than_are_written_out(made: Views) -> None:
    arrays = [np.nan_to_num(array) for array in written_out(made)]
    wide = [np.column_stack([array] * 24) + 0.0 for array in arrays]  # 1200 features
    settings = {"n_clusters": 3, "init": "data", "random_state": 0}
    theirs = GRMF(**settings).fit(wide, mask=made.mask)
    unknown = [block[da.from_array(np.ones(240, bool), chunks=100)] for block in unevenly(wide, 0.5)]
    assert np.isnan(unknown[0].shape[0])
    ours = GRMF(**settings).fit(unknown, mask=da.from_array(made.mask, chunks=(50, 1)))
    np.testing.assert_allclose(ours.objective_, theirs.objective_, rtol=1e-6)
    assert adjusted_rand_score(ours.labels_.compute(), theirs.labels_) == 1


def test_results_are_dask_arrays_and_new_samples_are_lazy(made: Views) -> None:
    arrays = written_out(made)
    blocks, whole = dict(zip("ab", unevenly(arrays, 0.2, 0.7), strict=True)), dict(zip("ab", arrays, strict=True))
    model = BridgedGRMF(3, bridge="union", selection="fixed", random_state=0).fit(blocks)
    for name in ("labels_", "embedding_", "confidence_", "sample_ids_"):
        assert isinstance(getattr(model, name), da.Array)
    assert model.labels_.chunks == ((48, 120, 72),)
    for result in (model.predict(blocks), model.transform(blocks), *model.recover(blocks).values()):
        assert isinstance(result, da.Array)
        assert result.chunks[0] == (48, 120, 72)
    present = made.mask[:, 1]
    np.testing.assert_array_equal(model.recover(blocks)["b"].compute()[present], arrays[1][present])
    # Views in memory, and Dask arrays for a model that was fitted in memory
    in_memory = BridgedGRMF(3, bridge="union", selection="fixed", random_state=0).fit(whole)
    np.testing.assert_array_equal(model.predict(whole), in_memory.predict(whole))
    np.testing.assert_array_equal(in_memory.predict(blocks).compute(), in_memory.predict(whole))


def test_a_reference_is_an_ordinary_model(made: Views, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gapview

    monkeypatch.setattr("gapview.backends.dask.backend.N_REFERENCE", 100)
    for model in (GRMF(3, init="data", random_state=0), BridgedGRMF(3, bridge="union", random_state=0)):
        model.fit(unevenly(written_out(made), 0.4))
        assert 100 <= model.reference_.views_.n_samples < 200
        model.reference_.save(tmp_path / "model.gapview")
        again = gapview.load(tmp_path / "model.gapview")
        new = {"view_1": made.matrices[1][:20]}
        np.testing.assert_array_equal(again.predict(new), model.predict(new))
        everyone = model.predict(unevenly(written_out(made), 0.5)).compute()
        assert adjusted_rand_score(everyone, model.labels_.compute()) > 0.9
        assert model.reference_.view_agreement().above_chance.shape == (3, 2)


def test_frames_are_joined_by_their_ids(made: Views) -> None:
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    ids = np.array([f"s{i:03d}" for i in range(240)])
    rng = np.random.RandomState(0)
    frames, dask_frames = {}, {}
    for k, (name, matrix) in enumerate(zip(("blood", "scans"), made.matrices, strict=True)):
        rows = rng.permutation(matrix.shape[0])
        frames[name] = pd.DataFrame(matrix[rows], index=ids[made.rows(k)][rows]).add_prefix("f")
        dask_frames[name] = dd.from_pandas(frames[name], npartitions=3 + k, sort=False)
    theirs = GRMF(3, init="data", random_state=0).fit(frames)
    ours = GRMF(3, init="data", random_state=0).fit(dask_frames)
    np.testing.assert_allclose(ours.objective_, theirs.objective_, rtol=1e-8)
    where = pd.Series(ours.labels_.compute(), index=ours.sample_ids_.compute())
    assert sorted(where.index) == sorted(theirs.sample_ids_)
    np.testing.assert_array_equal(where.loc[theirs.sample_ids_], theirs.labels_)
    groups = ours.predict({"blood": dask_frames["blood"]}).compute()
    assert groups.name == "cluster"
    assert list(groups.index) == list(frames["blood"].index)
    np.testing.assert_array_equal(groups.to_numpy(), ours.predict({"blood": frames["blood"]}))
    with pytest.raises(InputError, match="joined by their ids"):
        ours.predict(dask_frames)


@pytest.mark.parametrize("is_mixed", [False, True])
def test_whole_numbers_and_floats_are_the_same_ids(made: Views, is_mixed: bool) -> None:
    """Ids become floats where a table had gaps, or in some partitions only."""
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    ids = [np.arange(1000, 1240), np.arange(1000.0, 1240.0)]
    frames = [
        pd.DataFrame(matrix, index=pd.Index(own[made.rows(k)], name="sample")).add_prefix("f")
        for k, (matrix, own) in enumerate(zip(made.matrices, ids, strict=True))
    ]
    in_blocks = [dd.from_pandas(frame, npartitions=4 + k) for k, frame in enumerate(frames)]
    if is_mixed:
        half = frames[0].iloc[:80], frames[0].iloc[80:].set_axis(frames[0].index[80:].astype(float), axis=0)
        in_blocks[0] = dd.concat([dd.from_pandas(part, npartitions=2) for part in half])
    theirs, ours = (GRMF(3, init="data", random_state=0).fit(data) for data in (frames, in_blocks))
    where = pd.Series(ours.labels_.compute(), index=ours.sample_ids_.compute())
    assert sorted(where.index) == sorted(theirs.sample_ids_) == list(range(1000, 1240))
    np.testing.assert_array_equal(where.loc[theirs.sample_ids_], theirs.labels_)


@pytest.mark.parametrize(
    "same",
    [
        [7, 7.0, "7", " 7", "7.0", np.int8(7), np.float32(7), b"7"],
        [100000, "1e+05", 1e5, "100000.00"],
        [2**60, float(2**60), str(2**60)],
        [0, -0.0, "0", False],
        ["2024-05-01", datetime.datetime(2024, 5, 1)],
        [1.5, "1.5"],
        ["é-1", "é-1 "],
    ],
)
def test_ids_that_may_be_equal_meet_in_one_block(same: list[Any]) -> None:
    pd = pytest.importorskip("pandas")
    frames = [pd.DataFrame({"f": [0.0]}, index=pd.Index([key], dtype=object)) for key in same]
    blocks = {[len(part) for part in split_by_hash(frame, n_blocks=1000)].index(1) for frame in frames}
    assert len(blocks) == 1


def test_ids_of_any_text_are_spread_over_the_blocks() -> None:
    pd = pytest.importorskip("pandas")
    odd = ["", "nan", "inf", "-inf", "1e999999", "9" * 5000, "1_0", "٣", None, float("nan"), float("inf")]
    frame = pd.DataFrame({"f": np.zeros(2000 + len(odd))}, index=pd.Index([*odd, *range(2000)], dtype=object))
    sizes = [len(part) for part in split_by_hash(frame, n_blocks=4)]
    assert sum(sizes) == len(frame)
    assert min(sizes) > 400


def test_neighbours_by_cells_find_what_they_promise() -> None:
    points = make_views(3000, [12], n_clusters=6, random_state=0).views.matrices[0]
    tasks = Tasks()
    views = read_blocks(tasks, [da.from_array(points, chunks=((1000, 400, 1600), -1))], None, "raise")
    search = Search(method="approximate", seed=1)
    found = find_neighbors(tasks, views, 0, 8, search)
    samples, neighbors = (np.concatenate([own[i] for own in found]) for i in (0, -1))
    np.testing.assert_array_equal(samples, np.arange(3000))
    from gapview.graph.neighbors import nearest

    true = nearest(points, 8)[1]
    recall = np.mean([len(np.intersect1d(a, b)) / 8 for a, b in zip(neighbors, true, strict=True)])
    report = search.done[0]
    assert report.method == "approximate"
    assert 1 < report.n_probes < report.n_cells / 2
    assert report.recall >= 0.95
    assert recall >= 0.94
    assert abs(recall - report.recall) < 0.03
    assert (neighbors != samples[:, None]).all()
    model = GRMF(6, init="data", search="approximate", random_state=0).fit([da.from_array(points, chunks=900)])
    assert model.neighbor_search_[0].recall >= 0.95


def test_samples_in_cells_with_too_few_samples_are_compared_with_all() -> None:
    """Pairs of points far from all others are in cells that do not hold enough neighbours."""
    rng = np.random.RandomState(0)
    far = np.repeat(rng.normal(size=(40, 6)) * 1000, 2, axis=0) + rng.normal(size=(80, 6))
    points = np.concatenate([rng.normal(size=(1500, 6)), far])
    tasks = Tasks()
    views = read_blocks(tasks, [da.from_array(points, chunks=(500, -1))], None, "raise")
    found = find_neighbors(tasks, views, 0, 5, Search(method="approximate"))
    assert all((own[-1] >= 0).all() for own in found)


def test_k_means_on_many_samples_is_the_one_on_all(monkeypatch: pytest.MonkeyPatch, three: Views) -> None:
    monkeypatch.setattr("gapview.backends.dask.clusters._N_SAMPLED", 120)
    settings = {"n_clusters": 3, "init": "data", "random_state": 0}
    arrays = written_out(make_views(n_samples=400, n_clusters=3, missing_rate=0.3, random_state=0).views)
    ours, theirs = GRMF(**settings).fit(unevenly(arrays, 0.6)), GRMF(**settings).fit(arrays)
    assert adjusted_rand_score(ours.labels_.compute(), theirs.labels_) >= 0.99
    assert ours.labels_.dtype == theirs.labels_.dtype


def test_regions_hold_about_as_many_samples_each() -> None:
    rng = np.random.RandomState(0)
    sizes = rng.randint(1, 50, size=300)
    region = regions_of(rng.normal(size=(300, 4)), sizes, 7)
    held = np.bincount(region, weights=sizes)
    assert len(held) == 7
    assert held.max() < 1.3 * held.mean()


@pytest.mark.parametrize("settings", [{"n_init": 2, "tol": 0}, {"tol": np.float64(1e-5), "init": "data"}])
def test_numpy_scalars_and_other_generators(made: Views, settings: dict[str, Any], tmp_path: Path) -> None:
    def model() -> GRMF:
        return GRMF(3, max_iter=12, random_state=np.random.RandomState(np.random.PCG64(0)), **settings)

    ours = model().fit(unevenly(written_out(made)), checkpoint=tmp_path / "fit")
    _same(ours, model().fit(made))


def test_starting_codes_may_be_sparse_or_of_unknown_size(made: Views) -> None:
    codes = [np.random.RandomState(k).uniform(size=(len(made), 3)) for k in range(2)]
    expected = GRMF(3, init=codes, max_iter=5, tol=0, random_state=0).fit(made)
    unknown = [da.from_array(own, chunks=(100, -1)) for own in codes]
    for init in ([sparse.csr_array(own) for own in codes], [own[own[:, 0] >= 0] for own in unknown]):
        _same(GRMF(3, init=init, max_iter=5, tol=0, random_state=0).fit(unevenly(written_out(made))), expected)
