"""Fits of views that stay on disk: inside the budget, with the labels of the fit in memory, and nothing left behind."""

from __future__ import annotations

import os
import resource
import tempfile
from functools import partial

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import gapview.backends.disk.backend as workspace
from disk_problems import fit_in_process, saved, with_gaps
from gapview import GRMF, BridgedGRMF
from gapview.backends.disk.budget import fit_size, plan_memory
from gapview.backends.disk.files import FileRows
from gapview.datasets import make_views
from gapview.errors import DataFileError, ParameterError, ParameterTypeError

UNION = {"selection": "fixed", "bridge": "union", "scale": "center+unit", "view_weights": None}


def budget_for(model, views):
    """Return the least budget, at which views do not stay in memory."""
    plan = plan_memory(fit_size(model, views))
    assert plan.least < plan.in_memory
    return plan.least


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    data = make_views(1500, (300, 200), n_clusters=4, missing_rate=0.3, random_state=3)
    return data, saved(tmp_path_factory.mktemp("small"), with_gaps(data.views))


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    data = make_views(12_000, (1000, 600), n_clusters=5, missing_rate=0.4, dtype="float32", random_state=1)
    folder = tmp_path_factory.mktemp("large")
    return data.views, folder, saved(folder, with_gaps(data.views))


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("GRMF", {"init": "data"}),
        pytest.param("BridgedGRMF", UNION, marks=pytest.mark.slow),
        pytest.param("BridgedGRMF", UNION | {"bridge": "both"}, marks=pytest.mark.slow),
    ],
)
def test_three_times_the_budget_stays_inside_and_gives_the_same_labels(large, method, settings):
    views, folder, maps = large
    common = {"n_clusters": 5, "n_components": 5, "n_neighbors": 5, "search": "approximate", "random_state": 0}
    common["max_iter"] = 100
    settings = {**common, **settings}
    budget = sum(view.nbytes for view in maps) // 3
    labels, seen = fit_in_process(folder, method, 2, memory_budget=budget, **settings)
    assert seen["peak"] < budget
    assert len(seen["recalls"]) == (5 if settings.get("bridge") == "both" else 2)
    assert min(seen["recalls"]) >= 0.95
    in_memory = {"GRMF": GRMF, "BridgedGRMF": BridgedGRMF}[method](**settings).fit(views).labels_
    assert adjusted_rand_score(labels, in_memory) >= 0.99


@pytest.mark.filterwarnings("ignore:No sample links")  # half of two views is missing
def test_many_narrow_rows_stay_inside_the_budget(tmp_path):
    data = make_views(20_000, (60, 40), n_clusters=5, missing_rate=0.5, dtype="float32", random_state=2)
    saved(tmp_path, with_gaps(data.views))
    settings = {"n_clusters": 5, "init": "data", "max_iter": 30, "tol": 1e-4, "random_state": 0}
    budget = budget_for(GRMF(**settings), data.views)
    labels, seen = fit_in_process(tmp_path, "GRMF", 2, memory_budget=budget, **settings)
    assert seen["peak"] < budget < 24e6
    assert adjusted_rand_score(labels, GRMF(**settings).fit(data.views).labels_) >= 0.99


def test_settings_are_chosen_on_a_part(small):
    data, maps = small
    model = BridgedGRMF(4, random_state=0)
    model.set_params(memory_budget=budget_for(model, data.views)).fit(maps)
    assert model.selection_.setting == model.setting_
    assert {trial.setting.bridge for trial in model.selection_.trials} == {"union", "joint", "both"}
    assert 500 <= model.selection_.n_samples < 1500
    assert adjusted_rand_score(model.labels_, data.target) > 0.95


@pytest.mark.parametrize("bridge", ["joint", "both"])
def test_views_are_completed_on_disk_within_the_budget(small, bridge):
    data, maps = small
    settings = {"n_clusters": 4, "bridge": bridge, "search": "exact", "selection": "fixed", "random_state": 0}
    budget = budget_for(BridgedGRMF(**settings), data.views)
    model = BridgedGRMF(memory_budget=budget, **settings).fit(maps)
    assert isinstance(model.views_.matrices[0], FileRows)
    theirs = BridgedGRMF(**settings).fit(data.views)
    np.testing.assert_array_equal(model.labels_, theirs.labels_)
    np.testing.assert_allclose(model.graph_.toarray(), theirs.graph_.toarray(), atol=1e-12)


def test_the_union_bridge_needs_less_memory_for_many_narrow_rows():
    sizes = [
        fit_size(BridgedGRMF(5, bridge=bridge), make_views(30_000, (9, 5), dtype="float32", random_state=0).views)
        for bridge in ("union", "auto")
    ]
    union, joint = map(plan_memory, sizes)
    assert union.least < joint.least
    with pytest.raises(ParameterError, match="bridge='union'"):
        joint.check(union.least)


def test_a_budget_that_is_large_enough_keeps_views_in_memory(small):
    data, maps = small
    model = GRMF(4, max_iter=30, tol=0, random_state=0, memory_budget="1GB").fit(maps)
    assert not any(isinstance(matrix, FileRows) for matrix in model.views_.matrices)
    assert np.array_equal(model.labels_, GRMF(4, max_iter=30, tol=0, random_state=0).fit(data.views).labels_)


@pytest.mark.parametrize("method", [GRMF, partial(BridgedGRMF, bridge="union"), partial(BridgedGRMF, bridge="both")])
def test_budgets_that_cannot_be_met_are_refused_before_the_work(small, method, monkeypatch):
    data, maps = small
    monkeypatch.setattr(workspace, "scale_alike", None)  # nothing may start
    budget = budget_for(method(4), data.views)
    with pytest.raises(ParameterError, match=r"this needs \d+ MB, you gave \d+ MB: use a larger budget, fewer n_"):
        method(4, memory_budget=budget - 1).fit(maps)
    with pytest.raises(ParameterError, match=r"views in memory this needs .* you gave 9 MB: use .* np.load\(path"):
        method(4, memory_budget="9 MB").fit(data.views)


@pytest.mark.parametrize("budget", ["lots", "", "-2GB", "2 GBs", "nan", 0, -1, float("nan"), float("inf"), "0GB"])
def test_wrong_budgets(budget):
    with pytest.raises(ParameterError, match="memory_budget must be None, a finite number of bytes"):
        GRMF(2, memory_budget=budget).fit([np.eye(4)])


@pytest.mark.parametrize("budget", [True, [1], {}, b"2GB"])
def test_budgets_of_a_wrong_type(budget):
    with pytest.raises(ParameterTypeError, match="memory_budget must be None"):
        BridgedGRMF(2, memory_budget=budget).fit([np.eye(4)])


def open_files():
    return len(os.listdir("/proc/self/fd"))


def test_scratch_files_are_gone_afterwards(small, tmp_path, monkeypatch):
    data, maps = small
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before, model = (
        open_files(),
        GRMF(4, max_iter=30, tol=0, random_state=0, memory_budget=budget_for(GRMF(4), data.views)),
    )
    model.fit(maps)
    assert (os.listdir(tmp_path), open_files()) == ([], before)
    labels = model.labels_

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(workspace, "build_problem", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(maps)
    assert (os.listdir(tmp_path), open_files()) == ([], before)
    assert model.labels_ is labels  # a fit that fails leaves the model as it was


def test_a_full_disk_is_reported(small, monkeypatch):
    data, maps = small
    model = GRMF(4, max_iter=30, tol=0, random_state=0, memory_budget=budget_for(GRMF(4), data.views))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, limits[1]))
    try:
        with pytest.raises(DataFileError, match="Cannot write scratch files to the folder .*TMPDIR"):
            model.fit(maps)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("usage", (), {"free": 1000}))
    with pytest.raises(DataFileError, match=r"needs \d+ MB for scratch files in .* where 1 kB are free"):
        model.fit(maps)


def test_missing_and_changed_files_are_reported(tmp_path):
    data = make_views(1500, (300, 200), n_clusters=4, random_state=3)
    maps = saved(tmp_path, list(data.views.matrices))
    model = GRMF(4, max_iter=30, tol=0, random_state=0, memory_budget=budget_for(GRMF(4), data.views)).fit(maps)
    with open(tmp_path / "1.npy", "ab") as file:
        file.write(b"more")
    with pytest.raises(DataFileError, match=r"1\.npy', which holds view 'view_1', has changed since it was opened"):
        model.recover()
    (tmp_path / "0.npy").unlink()
    with pytest.raises(DataFileError, match=r"0\.npy', which holds view 'view_0', cannot be read: No such file"):
        model.fit(maps)
    assert model.labels_.shape == (1500,)


@pytest.mark.parametrize("order", ["C", "F"])
def test_files_that_were_replaced_before_the_fit_are_refused(tmp_path, order):
    """The values of a map are read from its file, which must still be the file that was mapped."""
    data = make_views(300, (300, 200), n_clusters=3, random_state=0).views
    maps = saved(tmp_path, data.matrices, order)
    model = GRMF(3, init="data", max_iter=5, tol=0, random_state=0)
    model.memory_budget = budget_for(model, data)
    labels = model.fit(maps).labels_
    other = data.matrices[1].copy()
    other[7, 3] += 1000
    np.save(tmp_path / "new.npy", np.asarray(other, order=order))
    status = os.stat(tmp_path / "1.npy")
    os.utime(tmp_path / "new.npy", ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(tmp_path / "new.npy", tmp_path / "1.npy")
    replaced = r"1\.npy', which holds view 'view_1', has been replaced since it was opened"
    with pytest.raises(DataFileError, match=replaced):
        model.fit(maps)
    np.save(tmp_path / "new.npy", np.asarray(data.matrices[1][::-1], order=order))
    os.replace(tmp_path / "new.npy", tmp_path / "1.npy")
    again = np.load(tmp_path / "1.npy", mmap_mode="r")  # the new file is open too
    with pytest.raises(DataFileError, match=replaced):
        model.fit(maps)
    assert model.fit([maps[0], again]).labels_.shape == labels.shape


def test_files_replaced_by_longer_or_shorter_ones_are_refused(tmp_path):
    data = make_views(300, (300, 200), n_clusters=3, random_state=0).views
    model = GRMF(3, init="data", max_iter=5, tol=0, random_state=0)
    model.memory_budget = budget_for(model, data)
    for change in (np.s_[:-1], np.s_[[*range(300), 3]]):
        maps = saved(tmp_path, data.matrices)
        np.save(tmp_path / "new.npy", data.matrices[1][change])
        os.replace(tmp_path / "new.npy", tmp_path / "1.npy")
        with pytest.raises(DataFileError, match=r"1\.npy'.* has been replaced"):
            model.fit(maps)
