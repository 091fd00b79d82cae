"""Large arrays with missing rows are held by reference, and nothing can be told from outside."""

import pickle

import numpy as np
import pytest

import gapview
from gapview import GRMF, BridgedGRMF, Views
from gapview.datasets import make_views
from gapview.views import _held
from problems import hidden


@pytest.fixture
def arrays():
    data = make_views(120, (6, 9), n_clusters=3, random_state=0)
    mask = np.random.RandomState(0).uniform(size=(120, 2)) < 0.6
    mask[~mask.any(axis=1), 0] = True
    return hidden(data.views.matrices, mask)


def both_ways(arrays, monkeypatch):
    copied = Views(arrays)
    monkeypatch.setattr(_held, "_LARGE", 0)
    referred = Views(arrays)
    assert all(isinstance(held, _held.ChosenRows) for held in referred._held)
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


def test_the_arrays_themselves_are_held(arrays, monkeypatch):
    monkeypatch.setattr(_held, "_LARGE", 0)
    views = Views(arrays)
    assert views._held[0].whole is arrays[0]
