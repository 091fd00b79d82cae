"""Results come back in the container that was asked for, with the ids of the samples; arrays stay the default."""

from __future__ import annotations

import builtins
import importlib

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline

import gapview
from gapview import GRMF, BridgedGRMF
from gapview.baselines import (
    DCNMF,
    GPMVC,
    IMG,
    MIC,
    PVC,
    BestSingleView,
    BipartiteSpectral,
    Concat,
    CoRegularizedSpectral,
    ImputedKMeans,
    ImputedSpectral,
    MeanFilledSpectral,
    RobustMultiViewKMeans,
)
from gapview.datasets import make_views
from gapview.errors import GapviewError, MissingExtraError

pd = pytest.importorskip("pandas")

N = 40
IDS = [f"s{i}" for i in range(N)]
LATENT = {"GRMF": GRMF(2, init="data"), "BridgedGRMF": BridgedGRMF(2, selection="fixed", random_state=0)}
OTHERS = {
    "BestSingleView": BestSingleView(2),
    "Concat": Concat(2),
    "DCNMF": DCNMF(2, max_iter=20),
    "GPMVC": GPMVC(2, max_iter=3, n_steps=5),
    "IMG": IMG(2, max_iter=10),
    "ImputedKMeans": ImputedKMeans(2),
    "ImputedSpectral": ImputedSpectral(2),
    "MIC": MIC(2, max_iter=3, n_steps=5),
    "PVC": PVC(2, sparsity_weight=1e-3),
    "BipartiteSpectral": BipartiteSpectral(2),
    "CoRegularizedSpectral": CoRegularizedSpectral(2),
    "MeanFilledSpectral": MeanFilledSpectral(2),
    "RobustMultiViewKMeans": RobustMultiViewKMeans(2),
}
QUIET = pytest.mark.filterwarnings(
    "ignore::gapview.errors.GapviewWarning", "ignore::sklearn.exceptions.ConvergenceWarning"
)
each_latent = pytest.mark.parametrize("name", LATENT)
each_method = pytest.mark.parametrize("name", [*LATENT, *OTHERS])


def model_of(name):
    return clone((LATENT | OTHERS)[name]).set_params(random_state=0)


@pytest.fixture(scope="module")
def matrices():
    return [np.abs(matrix) for matrix in make_views(N, (5, 4), n_clusters=2, random_state=0).views.matrices]


@pytest.fixture(scope="module")
def frames(matrices):
    """Two frames, each with samples of its own; ids in a named index."""
    index = pd.Index(IDS, name="patient")
    return {"a": pd.DataFrame(matrices[0], index=index).iloc[:30], "b": pd.DataFrame(matrices[1], index=index).iloc[8:]}


@QUIET
@each_method
def test_labels_become_a_series_on_request_only(name, frames):
    plain = model_of(name).fit_predict(frames)
    assert type(plain) is np.ndarray
    model = model_of(name).set_output(transform="pandas")
    groups = model.fit_predict(frames)
    assert isinstance(groups, pd.Series)
    assert (groups.name, groups.index.name, list(groups.index)) == ("cluster", "patient", IDS)
    assert type(model.labels_) is np.ndarray
    np.testing.assert_array_equal(groups, model.labels_)
    np.testing.assert_array_equal(groups, plain)
    placed = model.predict({"a": frames["a"].iloc[:5]})
    assert isinstance(placed, pd.Series)
    assert (placed.name, list(placed.index)) == ("cluster", IDS[:5])


@pytest.mark.parametrize("name", [*LATENT, "Concat", "ImputedKMeans"])
def test_labels_as_a_series_of_polars(name, frames):
    pl = pytest.importorskip("polars")
    model = model_of(name).set_output(transform="polars")
    groups = model.fit_predict(frames)
    assert isinstance(groups, pl.Series)
    assert groups.name == "cluster"
    assert groups.to_list() == model.labels_.tolist()


@each_latent
def test_new_samples_keep_their_ids(name, frames):
    model = model_of(name).fit(frames)
    new = {"b": frames["b"].iloc[::-3]}
    arrays = model.predict(new), model.transform(new)
    assert all(type(found) is np.ndarray for found in arrays)  # as in scikit-learn: frames on request
    model.set_output(transform="pandas")
    labels, shares = model.predict(new), model.predict_proba(new)
    table = model.transform(new)
    for found in (labels, shares, table, model.predict(new, method="centers")):
        assert found.index.equals(new["b"].index)
        assert found.index.name == "patient"
    assert (labels.name, list(shares.columns)) == ("cluster", ["cluster0", "cluster1"])
    assert model.place(new).to_frame().index.tolist() == new["b"].index.tolist()
    assert list(table.columns) == list(model.get_feature_names_out())
    np.testing.assert_array_equal(labels, arrays[0])
    np.testing.assert_array_equal(table, arrays[1])
    assert 0 <= model.score(frames, np.repeat([0, 1], N // 2)) <= 1


@each_latent
def test_fit_transform_keeps_the_ids(name, frames):
    model = model_of(name).set_output(transform="pandas")
    table = model.fit_transform(frames)
    assert list(table.index) == IDS
    np.testing.assert_array_equal(table, model.embedding_)


@each_latent
def test_polars_frames_for_transform(name, frames):
    pl = pytest.importorskip("polars")
    model = model_of(name).set_output(transform="polars")
    for table in (model.fit_transform(frames), model.transform(frames)):
        assert isinstance(table, pl.DataFrame)
        assert table.columns == list(model.get_feature_names_out())
        assert table.height == N
    labels, shares = model.predict(frames), model.predict_proba(frames)
    assert (labels.name, shares.columns, len(labels)) == ("cluster", ["cluster0", "cluster1"], N)


@each_latent
def test_recovered_views_come_back_as_they_came(name, frames):
    model = model_of(name).fit(frames)
    for found in (model.recover(), model.recover(frames)):
        assert list(found) == ["a", "b"]
        for view, frame in frames.items():
            assert list(found[view].index) == IDS
            assert found[view].index.name == "patient"
            assert list(found[view].columns) == list(frame.columns)
            pd.testing.assert_frame_equal(found[view].loc[frame.index], frame)
            assert not found[view].isna().any(axis=None)


def test_polars_frames_come_back_with_their_ids(matrices):
    pl = pytest.importorskip("polars")
    frames = {
        name: pl.DataFrame(matrix, schema=[f"x{j}" for j in range(matrix.shape[1])]).insert_column(
            0, pl.Series("patient", IDS)
        )
        for name, matrix in zip("ab", matrices, strict=True)
    }
    frames["a"] = frames["a"].head(30)
    found = GRMF(2, init="data", random_state=0).fit(frames).recover()["a"]
    assert found["patient"].to_list() == IDS
    assert found.head(30).equals(frames["a"])


def test_the_configuration_of_scikit_learn_counts(frames):
    model = model_of("GRMF")
    with sklearn.config_context(transform_output="pandas"):
        assert list(model.fit_predict(frames).index) == IDS
        assert isinstance(model.set_output(transform="default").predict(frames), np.ndarray)
        assert isinstance(Concat(2, random_state=0).fit_predict(frames), pd.Series)


def test_dates_and_numbers_stay_what_they_are(matrices):
    for index in (pd.date_range("2020-01-01", periods=N, name="day"), pd.Index(range(100, 100 + N))):
        frames = [pd.DataFrame(matrix, index=index) for matrix in matrices]
        found = GRMF(2, init="data", random_state=0).set_output(transform="pandas").fit_predict(frames)
        assert list(found.index) == list(index)
        assert found.index.inferred_type == index.inferred_type


def test_arrays_are_numbered(matrices):
    found = GRMF(2, init="data", random_state=0).set_output(transform="pandas").fit_predict(matrices)
    assert list(found.index) == list(range(N))


def test_the_request_survives(frames, tmp_path):
    for name in ("GRMF", "Concat"):
        model = model_of(name).set_output(transform="pandas")
        assert isinstance(clone(model).fit_predict(frames), pd.Series)
        model.fit(frames).save(tmp_path / "model.gapview")
        loaded = gapview.load(tmp_path / "model.gapview")
        assert loaded.set_output() is loaded  # None changes nothing
        assert isinstance(loaded.fit_predict(frames), pd.Series)


def test_pipelines_and_cross_validation(frames):
    views, target = gapview.Views(frames), model_of("GRMF").fit_predict(frames)
    found = cross_validate(model_of("GRMF").set_output(transform="pandas"), views, target, cv=2, error_score="raise")
    assert (found["test_score"] > 0.8).all()
    groups = make_pipeline("passthrough", model_of("GRMF")).set_output(transform="pandas").fit_predict(views)
    assert list(groups.index) == IDS


def test_a_mask_reaches_the_fit(matrices):
    mask = np.ones((N, 2), dtype=bool)
    mask[:9, 0] = False
    model = model_of("GRMF")
    model.fit_predict(matrices, mask=mask)
    assert model.views_.n_present == (N - 9, N)


def test_unknown_containers_are_refused(frames):
    with pytest.raises(GapviewError, match="transform must be one of None, 'default', 'pandas', 'polars'; got 'arrow'"):
        Concat(2).set_output(transform="arrow")


def test_without_the_library(monkeypatch, matrices):
    real = importlib.import_module
    monkeypatch.setattr(
        "gapview.errors.import_module",
        lambda name: builtins.__import__("no_such_package") if name == "polars" else real(name),
    )
    model = Concat(2, random_state=0).set_output(transform="polars")
    with pytest.raises(MissingExtraError, match=r"set_output\(transform='polars'\) needs.*gapview\[tables\]"):
        model.fit_predict(matrices)


class TestNotebooks:
    """Estimators show themselves as scikit-learn's do."""

    @QUIET
    @each_method
    def test_html(self, name, frames):
        model = model_of(name)
        before = model._repr_html_()
        assert "Not fitted" in before
        assert type(model).__name__ in before
        for data in (frames, gapview.Views(frames)):
            after = model.fit(data)._repr_html_()
            assert "<span>Fitted</span>" in after
            assert "n_clusters" in after
            assert len(after) < 100_000  # settings, not the data
        bundle = model._repr_mimebundle_()
        assert "<span>Fitted</span>" in bundle["text/html"]
        assert type(model).__name__ in bundle["text/plain"]

    def test_large_settings_are_cut(self, matrices):
        model = GRMF(2, init=[np.ones((N, 2))] * 2, max_iter=1000).fit(matrices)
        assert len(model._repr_html_()) < 100_000

    def test_views_show_themselves(self, frames):
        assert "'a' 30 × 5" in repr(gapview.Views(frames))
