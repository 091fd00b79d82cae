"""Saving models: whole or not at all, or refused with a reason; what a file says of itself; joblib and pipelines."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
import tracemalloc

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from test_model_files import DATA, SIZE, VIEWS, assert_same, fitted, loaded, with_positive_values

import gapview
from gapview import GRMF, BridgedGRMF, describe
from gapview.baselines import Concat
from gapview.errors import DataFileError, GapviewError, InputError, InputTypeError, NotFittedError
from gapview.report import write_clustering_report


def test_joblib_pickle_and_pipelines_work_beside(tmp_path):
    views = DATA.views
    first = FunctionTransformer(with_positive_values)
    pipeline = make_pipeline(first, GRMF(3, init="data", random_state=0)).fit(views)
    joblib.dump(pipeline, tmp_path / "pipeline.joblib")
    again = joblib.load(tmp_path / "pipeline.joblib")
    assert_same(again.predict(views), pipeline.predict(views))
    pipeline[-1].save(tmp_path / "last.gapview")
    rebuilt = make_pipeline(first, gapview.load(tmp_path / "last.gapview"))
    assert_same(rebuilt.predict(views), pipeline.predict(views))
    assert_same(rebuilt.transform(views), pipeline.transform(views))
    assert_same(pickle.loads(pickle.dumps(gapview.load(tmp_path / "last.gapview"))), pipeline[-1])


def test_set_output_survives(tmp_path):
    pd = pytest.importorskip("pandas")
    model = fitted("GRMF").set_output(transform="pandas")
    again = loaded(model, tmp_path)
    pd.testing.assert_frame_equal(again.transform(VIEWS), model.transform(VIEWS))


def test_a_random_state_goes_on_where_it_was(tmp_path):
    model = fitted("GRMF, own random state")
    again = loaded(model, tmp_path)
    assert_same(model.random_state.normal(size=3), again.random_state.normal(size=3))


def test_the_header_alone_describes_the_model(tmp_path):
    path = tmp_path / "model.gapview"
    model = fitted("GRMF, given graph and start")
    model.save(path)
    found = describe(path)
    assert (found.method, found.n_samples, found.gapview_version) == ("GRMF", SIZE, gapview.__version__)
    assert found.n_complete == int(model.views_.mask.all(axis=1).sum())
    assert [(view.name, view.n_samples, view.n_features) for view in found.views] == [
        (name, matrix.shape[0], matrix.shape[1])
        for name, matrix in zip(model.views_.names, model.views_.matrices, strict=True)
    ]
    assert list(found.group_sizes) == [int((model.labels_ == group).sum()) for group in range(3)]
    assert (found.settings["n_clusters"], found.settings["scale"], found.settings["init"]) == (3, None, "list of 2")
    assert "48 samples" in str(found)
    content = bytearray(path.read_bytes())
    content[-100] ^= 1  # among the arrays, which are not read
    path.write_bytes(content)
    assert describe(path) == found
    with pytest.raises(DataFileError, match="checksum of its contents"):
        gapview.load(path)


def test_loading_takes_little_more_memory_than_the_file(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "large.gapview"
    Concat(2, n_init=1, random_state=0).fit([rng.normal(size=(2000, 300)), rng.normal(size=(2000, 200))]).save(path)
    gapview.load(path)  # what is imported on the way does not count
    tracemalloc.start()
    try:
        gapview.load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.2 * path.stat().st_size


def test_what_cannot_be_saved_is_named(tmp_path):
    pd = pytest.importorskip("pandas")
    path = tmp_path / "model.gapview"
    with pytest.raises(NotFittedError):
        GRMF(3).save(path)
    model = fitted("GRMF")
    for name, value in {"graph": [pd.DataFrame(np.eye(3))], "init": len, "random_state": np.random, "tol": 1j}.items():
        with pytest.raises(GapviewError, match=name):
            clone(model).fit(VIEWS).set_params(**{name: value}).save(path)
    model.remark = "mine"
    with pytest.raises(InputTypeError, match="model.remark"):
        model.save(path)
    del model.remark
    model.labels_ = model.labels_[1:]
    with pytest.raises(InputError, match="labels_ has the shape"):
        model.save(path)

    class Mine(GRMF):
        pass

    with pytest.raises(InputTypeError, match="Mine"):
        Mine(2).fit(VIEWS).save(path)
    assert not path.exists()


def test_bad_paths(tmp_path):
    model = fitted("Concat")
    for path in (tmp_path / "no folder" / "model.gapview", tmp_path, "a\0b", tmp_path / ("long" * 100)):
        with pytest.raises(DataFileError):
            model.save(path)
        with pytest.raises(DataFileError):
            gapview.load(path)
    for path in (3, None, b"model.gapview"):
        for call in (model.save, gapview.load, describe):
            with pytest.raises(InputTypeError, match="path"):
                call(path)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.gapview"
    fitted("Concat").save(path)
    before = path.read_bytes()

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataFileError, match="No space left"):
        fitted("ImputedKMeans").save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_process_that_dies_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.gapview"
    fitted("Concat").save(path)
    before = path.read_bytes()
    program = (
        "import os, sys, gapview\n"
        "model = gapview.load(sys.argv[1])\n"
        "os.fsync = lambda handle: os._exit(9)\n"
        "model.save(sys.argv[1])"
    )
    assert subprocess.run([sys.executable, "-c", program, str(path)]).returncode == 9
    assert path.read_bytes() == before
    assert describe(path).method == "Concat"


def test_the_header_names_what_was_chosen_and_why(tmp_path):
    path = tmp_path / "auto.gapview"
    model = BridgedGRMF("auto", max_clusters=3, random_state=0).fit(DATA.views)
    model.save(path)
    chosen = describe(path).chosen
    assert chosen["scales"] == dict(zip(DATA.views.names, model.setting_.scales, strict=True))
    assert (chosen["bridge"], chosen["reach"]) == (model.setting_.bridge, model.setting_.reach)
    assert list(chosen["view_weights"]) == list(DATA.views.names)
    assert chosen["selection"] == str(model.selection_)
    assert chosen["cluster_count"] == model.cluster_count_.reason()
    text = str(describe(path))
    for words in (
        "chosen reach: ",
        "reason for the settings: ",
        "reason for the number of groups: ",
        " clusters rather",
    ):
        assert words in text
    assert gapview.load(path).setting_ == model.setting_
    fitted("Concat").save(path)
    assert describe(path).chosen == {}


@pytest.mark.parametrize("method", [GRMF(3, init="data"), BridgedGRMF(3, selection="fixed"), Concat(3)])
def test_a_model_of_bootstrap_rows_is_saved(method, tmp_path):
    views = DATA.views[np.random.RandomState(0).randint(len(DATA.views), size=len(DATA.views))]
    assert len(set(views.sample_ids)) < len(views)
    model = clone(method).set_params(random_state=0).fit(views)
    model.save(tmp_path / "model")
    again = gapview.load(tmp_path / "model")
    assert_same(again.labels_, model.labels_)
    assert again.sample_ids_.tolist() == views.sample_ids.tolist()
    if not isinstance(model, Concat):
        assert_same(again.predict(DATA.views), model.predict(DATA.views))
        write_clustering_report(again, tmp_path / "report.html", assess=False)
