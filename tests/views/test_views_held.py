"""Large arrays with missing rows are held by reference, and nothing can be told from outside."""

import pickle

import numpy as np
import pytest
from scipy import sparse

import gapview
from gapview import GRMF, BridgedGRMF, Views
from gapview.datasets import make_views
from gapview.scaling import ScaledRows, scale_views
from gapview.views import cells
from problems import hidden


@pytest.fixture
def arrays():
    data = make_views(120, (6, 9), n_clusters=3, random_state=0)
    mask = np.random.RandomState(0).uniform(size=(120, 2)) < 0.6
    mask[~mask.any(axis=1), 0] = True
    return hidden(data.views.matrices, mask)


def both_ways(arrays, monkeypatch):
    copied = Views(arrays)
    monkeypatch.setattr(cells, "LARGE", 0)
    referred = Views(arrays)
    assert all(isinstance(held, cells.SelectedRows) for held in referred._held)
    return copied, referred


def test_the_same_views(arrays, monkeypatch):
    copied, referred = both_ways(arrays, monkeypatch)
    assert repr(copied) == repr(referred)
    assert copied.n_features == referred.n_features
    assert copied.n_present == referred.n_present
    order = np.random.RandomState(1).permutation(120)[:50]
    keep = np.random.RandomState(2).uniform(size=(120, 2)) < 0.9
    keep[~(keep & copied.mask).any(axis=1)] = True
    for change in (lambda v: v, lambda v: v[order], lambda v: v.hide(keep), lambda v: pickle.loads(pickle.dumps(v))):
        for one, other in zip(change(copied).matrices, change(referred).matrices, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("method", [GRMF, BridgedGRMF])
def test_the_same_model(arrays, monkeypatch, method, tmp_path):
    copied, referred = both_ways(arrays, monkeypatch)
    one, other = (method(3, random_state=0).fit(views) for views in (copied, referred))
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_array_equal(one.embedding_, other.embedding_)
    other.save(tmp_path / "model.gapview")
    loaded = gapview.load(tmp_path / "model.gapview")
    for a, b, c in zip(one.recover(), other.recover(), loaded.recover(), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


def test_the_same_model_beside_a_sparse_view(arrays, monkeypatch):
    words = sparse.csr_array(np.random.RandomState(0).poisson(0.3, size=(120, 20)).astype(np.float64))
    copied = Views([*arrays, words])
    monkeypatch.setattr(cells, "LARGE", 0)
    referred = Views([*arrays, words])
    assert referred.by_reference
    one, other = (BridgedGRMF(3, random_state=0).fit(views) for views in (copied, referred))
    np.testing.assert_array_equal(one.embedding_, other.embedding_)


@pytest.mark.parametrize("scale", ["unit", "standard", "center+unit", "standard+view", None])
def test_rows_scaled_when_they_are_asked_for(arrays, monkeypatch, scale):
    _, referred = both_ways(arrays, monkeypatch)
    scaled, scalings = scale_views(referred, scale)
    for whole, scaling, view in zip(scaled, scalings, referred.in_parts(), strict=True):
        rows = ScaledRows(view, scaling, np.dtype(np.float32))
        assert rows.shape == whole.shape
        np.testing.assert_array_equal(rows[10:30], whole[10:30].astype(np.float32))


def test_the_same_model_of_tensors(arrays, monkeypatch):
    torch = pytest.importorskip("torch")
    copied, referred = both_ways([torch.as_tensor(array) for array in arrays], monkeypatch)
    one, other = (BridgedGRMF(3, random_state=0).fit(views) for views in (copied, referred))
    np.testing.assert_array_equal(one.embedding_, other.embedding_)


def test_the_arrays_themselves_are_held(arrays, monkeypatch):
    monkeypatch.setattr(cells, "LARGE", 0)
    views = Views(arrays)
    assert views._held[0].whole is arrays[0]


@pytest.mark.parametrize("scale", ["unit", "standard+unit", None])
def test_scaling_leaves_the_given_arrays_alone(arrays, monkeypatch, scale):
    before = [array.copy() for array in arrays]
    copied, referred = both_ways(arrays, monkeypatch)
    for one, other in zip(scale_views(copied, scale)[0], scale_views(referred, scale)[0], strict=True):
        np.testing.assert_array_equal(one, other)
    for array, own in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, own)


def test_tensors_on_a_device_are_copied_when_they_are_asked_for(arrays, monkeypatch):
    torch = pytest.importorskip("torch")
    copied = Views(arrays)
    whole = copied.to_device("cpu")
    parts = [cells.SelectedRows(torch.as_tensor(array), copied.rows(k)) for k, array in enumerate(arrays)]
    monkeypatch.setattr(cells, "LARGE", 0)
    monkeypatch.setattr(cells, "is_on_device", lambda rows: isinstance(rows, torch.Tensor))  # as if it had another
    for given in (whole, copied.with_matrices(parts)):
        referred = given.on_host()
        assert referred.by_reference
        assert referred.on_host() is referred
        for change in (lambda v: v, lambda v: v[np.arange(0, 120, 3)], lambda v: pickle.loads(pickle.dumps(v))):
            for one, other in zip(change(copied).matrices, change(referred).matrices, strict=True):
                assert isinstance(other, np.ndarray)
                np.testing.assert_array_equal(one, other)
        assert not pickle.loads(pickle.dumps(referred)).by_reference
