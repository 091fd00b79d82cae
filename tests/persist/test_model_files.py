"""Model files: every method comes back exactly, from any input, in any process."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import is_dataclass

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import gapview
from gapview import GRMF, BridgedGRMF, Views, baselines
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
    KernelCompletion,
    MeanFilledSpectral,
    RobustMultiViewKMeans,
)
from gapview.datasets import make_views
from gapview.estimators import MultiViewClusterer
from gapview.persist.registry import METHODS

SIZE = 48
DATA = make_views(SIZE, (7, 5), n_clusters=3, missing_rate=0.3, random_state=0)
RNG = np.random.RandomState(0)
CODES, BASES = [RNG.uniform(size=(SIZE, 3)) for _ in range(2)], [RNG.uniform(size=(3, m)) for m in (7, 5)]
RING = sparse.csr_matrix(np.roll(np.eye(SIZE), 1, axis=1) + np.roll(np.eye(SIZE), -1, axis=1))

MODELS = {
    "GRMF": GRMF(3),
    "GRMF, given graph and start": GRMF(3, graph=[RING, RING.tocoo()], init=CODES, scale=None, max_iter=40, tol=0),
    "GRMF, standard": GRMF(np.int64(3), scale="standard+unit", init="data", n_components=4),
    "GRMF, own random state": GRMF(3, random_state=np.random.RandomState(3)),
    "BridgedGRMF": BridgedGRMF(3),
    "BridgedGRMF, counting": BridgedGRMF("auto", selection="fixed", max_clusters=4),
    "BridgedGRMF, given": BridgedGRMF(3, scale={"view_0": "unit", "view_1": None}, view_weights=[1.0, 2.0], reach=2),
    "BestSingleView": BestSingleView(3),
    "Concat": Concat(3),
    "PVC": PVC(3, sparsity_weight=1e-3, init=(CODES[0], BASES)),
    "IMG": IMG(3, output="codes", tol=1e-6),
    "DCNMF": DCNMF(3, max_iter=50, consensus="soft", init=(CODES, BASES)),
    "GPMVC": GPMVC(3, max_iter=5, n_steps=20),
    "MIC": MIC(3, max_iter=5, n_steps=20),
    "ImputedSpectral": ImputedSpectral(3),
    "ImputedKMeans": ImputedKMeans(3),
    "CoRegularizedSpectral": CoRegularizedSpectral(3),
    "RobustMultiViewKMeans": RobustMultiViewKMeans(3),
    "BipartiteSpectral": BipartiteSpectral(3, n_anchors=12),
    "KernelCompletion": KernelCompletion(3, n_components=4),
    "MeanFilledSpectral": MeanFilledSpectral(3, filled_weight=0.2),
}
pytestmark = pytest.mark.filterwarnings("ignore:The neighbour graph of the filled:gapview.errors.GapviewWarning")


def fitted(name):
    model = clone(MODELS[name])
    if model.random_state is None:
        model.set_params(random_state=0)
    return model.fit(data_for(model))


def data_for(model):
    """Views that the method accepts: KernelCompletion needs a complete one."""
    return COMPLETE if isinstance(model, KernelCompletion) else VIEWS


def with_positive_values(views):
    """Values of at least 0, which all methods accept."""
    return views.with_matrices(tuple(np.abs(matrix) for matrix in views.matrices), views.mask, views.sample_ids)


VIEWS = with_positive_values(DATA.views)
COMPLETE = VIEWS[VIEWS.mask[:, 0]]


def assert_same(first, second, where="model"):
    """Compare two values down to types, layouts in memory and bits, by a way of its own."""
    assert type(first) is type(second), where
    if isinstance(first, np.ndarray):
        assert (first.dtype, first.shape) == (second.dtype, second.shape), where
        assert first.flags.f_contiguous == second.flags.f_contiguous or not first.flags.c_contiguous, where
        if first.dtype == object:
            assert_same(first.tolist(), second.tolist(), where)
        else:
            assert first.tobytes() == second.tobytes(), where
    elif sparse.issparse(first):
        assert first.shape == second.shape, where
        parts = ("data", "row", "col") if first.format == "coo" else ("data", "indices", "indptr")
        for part in parts:
            assert_same(getattr(first, part), getattr(second, part), f"{where}.{part}")
    elif isinstance(first, list | tuple):
        assert len(first) == len(second), where
        for i, pair in enumerate(zip(first, second, strict=True)):
            assert_same(*pair, f"{where}[{i}]")
    elif isinstance(first, dict):
        assert_same(list(first.items()), list(second.items()), where)
    elif isinstance(first, np.random.RandomState):
        assert_same(first.get_state(), second.get_state(), where)
    elif is_dataclass(first) or isinstance(first, Views | MultiViewClusterer):
        assert_same(vars(first), vars(second), where)
    else:
        assert first == second or (first != first and second != second), where


def answers(model, views):
    """Everything that a model can be asked."""
    placed = model.place(views)
    if not hasattr(model, "recover"):
        return [placed]
    centers = model.predict(views, method="centers")
    recovered = [model.recover(), model.recover(views), model.recover(method="basis")]
    trust = [model.view_agreement(), model.feature_effects(), model.get_feature_names_out()]
    return [placed, centers, model.transform(views), recovered, model.score(views), trust]


@pytest.mark.parametrize("name", MODELS)
def test_every_method_comes_back_exactly(name, tmp_path):
    model = fitted(name)
    model.save(tmp_path / "a.gapview")
    again = gapview.load(tmp_path / "a.gapview")
    assert_same(model, again)
    assert_same(answers(model, VIEWS[::2]), answers(again, VIEWS[::2]))
    again.save(tmp_path / "b.gapview")
    assert (tmp_path / "a.gapview").read_bytes() == (tmp_path / "b.gapview").read_bytes()
    assert_same(clone(model).fit(data_for(model)).labels_, clone(again).fit(data_for(model)).labels_)


def test_all_methods_are_known():
    public = {name for name in baselines.__all__ if isinstance(getattr(baselines, name), type)}
    assert set(METHODS) == {"GRMF", "BridgedGRMF"} | public
    assert {type(model).__name__ for model in MODELS.values()} == set(METHODS)


def test_what_is_one_array_stays_one(tmp_path):
    model = fitted("BestSingleView")
    model.save(tmp_path / "model")
    again = gapview.load(tmp_path / "model")
    assert again.sample_ids_ is again.views_.sample_ids
    assert again.labels_ is again.view_labels_[again.best_view_]
    again.labels_[0] = 2  # and can be written to, as after a fit
    assert model.labels_ is not again.labels_


def frames(kind):
    pd = pytest.importorskip("pandas")
    ids = {
        "text": [f"søren {i}" for i in range(SIZE)],
        "numbers": [10 * i for i in range(SIZE)],
        "floats": [i / 7 for i in range(SIZE)],
        "dates": pd.date_range("2020-01-01", periods=SIZE, tz="Europe/Berlin"),
        "levels": pd.MultiIndex.from_tuples([("a" if i % 2 else "b", i) for i in range(SIZE)]),
        "periods": pd.period_range("2020-01", periods=SIZE, freq="M"),
    }[kind]
    mask = DATA.views.mask
    rows = [np.zeros((SIZE, m)) for m in (7, 5)]
    for k in range(2):
        rows[k][mask[:, k]] = DATA.views.matrices[k]
    columns = [[f"gene {j}" for j in range(7)], pd.interval_range(0, 5)]
    return {
        name: pd.DataFrame(rows[k], index=pd.Index(ids, name="who"), columns=columns[k])[mask[:, k]]
        for k, name in enumerate("ab")
    }


def loaded(model, tmp_path):
    model.save(tmp_path / "model.gapview")
    return gapview.load(tmp_path / "model.gapview")


@pytest.mark.parametrize("kind", ["text", "numbers", "floats", "dates", "levels", "periods"])
def test_pandas_frames_come_back_as_they_went_in(kind, tmp_path):
    pd = pytest.importorskip("pandas")
    model = GRMF(3, init="data", random_state=0).fit(frames(kind)).set_output(transform="pandas")
    again = loaded(model, tmp_path)
    assert_same(model, again)
    for name, frame in again.recover().items():
        pd.testing.assert_frame_equal(frame, model.recover()[name])
    pd.testing.assert_frame_equal(again.transform(frames(kind)), model.transform(frames(kind)))


def as_anndata():
    anndata = pytest.importorskip("anndata")
    found = {}
    for name, table in frames("text").items():
        found[name] = anndata.AnnData(sparse.csr_matrix(table.to_numpy()))
        found[name].obs_names, found[name].var_names = table.index, [str(column) for column in table]
    return found


def as_polars():
    polars = pytest.importorskip("polars")
    tables = {name: table.set_axis([str(c) for c in table], axis=1) for name, table in frames("numbers").items()}
    return {
        name: polars.from_pandas(table.reset_index().rename(columns={"who": "id"})) for name, table in tables.items()
    }


def as_arrays(*makers):
    return [make(table.to_numpy()[:30]) for make, table in zip(makers, frames("text").values(), strict=False)]


CONTAINERS = {
    "AnnData": as_anndata,
    "polars": as_polars,
    "sparse": lambda: as_arrays(sparse.csr_matrix, sparse.coo_array),
    "layouts": lambda: as_arrays(lambda x: np.asfortranarray(x, dtype=np.float32), lambda x: x[:, ::-1]),
    "gaps": lambda: as_arrays(lambda x: np.repeat(x, 2, axis=1)[:, ::2], lambda x: np.repeat(x, 2, axis=0)[::2]),
    "single": lambda: as_arrays(np.asarray)[0],
}


@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("scale", ["unit", None])
def test_the_kind_of_container_is_remembered(kind, scale, tmp_path):
    model = GRMF(3, init="data", random_state=0, scale=scale).fit(CONTAINERS[kind]())
    again = loaded(model, tmp_path)
    assert_same(model, again)
    assert_same(answers(model, model.views_)[:3], answers(again, again.views_)[:3])
    before, after = model.recover(), again.recover()
    assert type(before) is type(after)
    pairs = zip(before.values(), after.values(), strict=True) if isinstance(before, dict) else [(before, after)]
    for one, other in pairs:
        if hasattr(one, "equals"):
            assert one.equals(other)
            assert list(one.columns) == list(other.columns)
        else:
            assert_same(one, other)


def test_a_fresh_process_gives_the_same(tmp_path):
    model = fitted("BridgedGRMF")
    model.save(tmp_path / "model.gapview")
    joblib.dump(VIEWS, tmp_path / "views.joblib")
    program = (
        "import sys, joblib, gapview\n"
        "model, views = gapview.load(sys.argv[1]), joblib.load(sys.argv[2])\n"
        "joblib.dump([model.labels_, model.predict(views), model.transform(views), model.recover()], sys.argv[3])"
    )
    paths = [tmp_path / name for name in ("model.gapview", "views.joblib", "answers.joblib")]
    subprocess.run([sys.executable, "-c", program, *map(str, paths)], check=True)
    expected = [model.labels_, model.predict(VIEWS), model.transform(VIEWS), model.recover()]
    assert_same(joblib.load(paths[2]), expected)
