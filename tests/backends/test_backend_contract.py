"""One contract for every backend: the same fit, the same results and the same errors, wherever the data are."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import gapview
from gapview import GRMF, BridgedGRMF
from gapview.datasets import make_views
from gapview.errors import GapviewError, GapviewWarning, InputError, NotFittedError, ParameterError
from gapview.metrics import clustering_accuracy
from places import NAMES, OTHERS, warned

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

N, N_NEW = 240, 40  # the fewest samples for which a fit from files needs less memory than a fit in memory
FIRST, LAST = int(0.2 * N), int(0.6 * N)  # end of the first Dask block, and begin of the last
ESTIMATORS = {"GRMF": GRMF, "BridgedGRMF": BridgedGRMF}
each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)
everywhere = pytest.mark.parametrize("where", NAMES)
elsewhere = pytest.mark.parametrize("where", OTHERS)


# -- data ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """Views of training samples and of new samples, over all samples; gaps are rows of NaN, or given by a mask."""

    views: list[np.ndarray]
    mask: np.ndarray | None
    new: list[np.ndarray]


def made(widths: tuple[int, ...], seed: int, dtype: str = "float64", missing_rate: float = 0.3) -> Data:
    options: dict[str, Any] = {"n_clusters": 3, "missing_rate": missing_rate, "dtype": dtype, "random_state": seed}
    views = make_views(N + N_NEW, widths, separation=4.0, noise=1.0, **options).views
    whole = []
    for k, matrix in enumerate(views.matrices):
        array = np.full((N + N_NEW, matrix.shape[1]), np.nan, dtype=dtype)
        array[views.rows(k)] = matrix
        whole.append(array)
    return Data([array[:N] for array in whole], None, [array[N:] for array in whole])


def with_mask(data: Data) -> Data:
    """Hide the gaps by a mask; the values behind it are infinite, and must not be read."""
    mask = np.column_stack([~np.isnan(view[:, 0]) for view in data.views])
    return Data([np.where(np.isnan(view), np.inf, view) for view in data.views], mask, data.new)


def with_rare_view(data: Data, n_present: int) -> Data:
    """Hide the second view of every third sample, and the last of all but a few after the first Dask block."""
    _, second, last = data.views
    second[::3] = np.nan
    last[: FIRST + 1], last[FIRST + 1 + 3 * n_present :] = np.nan, np.nan
    last[FIRST + 1 :][np.arange(N - FIRST - 1) % 3 != 0] = np.nan
    return data


def in_order(data: Data) -> Data:
    """Hide the second view in the first Dask block, and the first view in the last one."""
    first, second = data.views
    second[:FIRST], first[LAST:] = np.nan, np.nan
    return data


DATA = {
    "two": made((200, 120), 0),
    "three": with_mask(made((200, 90, 30), 1)),
    "float32": made((400, 240), 2, "float32"),
    "rare": with_rare_view(made((200, 90, 30), 3, missing_rate=0.0), 14),
    "ordered": in_order(made((200, 120), 4, missing_rate=0.0)),
}
PLAIN = made((200, 120), 5, missing_rate=0.0).views


# -- fits ------------------------------------------------------------------------------------------------------


def random_codes() -> list[np.ndarray]:
    return [np.random.RandomState(k).uniform(size=(N, 3)) for k in range(3)]


def random_graphs() -> list[sparse.csr_array]:
    """Return graphs between all samples that are not symmetric."""
    return [sparse.random_array((N, N), density=0.04, rng=seed).tocsr() for seed in range(2)]


# Every fit: a model, and the data. The settings together cover all scales.
COMMON: dict[str, Any] = {"search": "exact", "tol": 1e-7, "max_iter": 25, "random_state": 0}
SINGLE = COMMON | {"tol": 1e-5}  # changes of the objective that single precision can represent
FIXED: dict[str, Any] = {"selection": "fixed", "bridge": "union", **COMMON}
FITS = {
    "GRMF-two": (GRMF(3, init="data", **COMMON), "two"),
    "GRMF-three": (GRMF(3, init="data", scale="standard+unit", consensus_weight=1.0, **COMMON), "three"),
    "GRMF-float32": (GRMF(3, init="data", scale="center+unit", sparsity_weight=0.05, **SINGLE), "float32"),
    "GRMF-rare": (GRMF(3, init="data", scale="standard+view", n_components=6, **COMMON), "rare"),
    "GRMF-ordered": (GRMF(3, init="data", scale=None, n_neighbors=4, **COMMON), "ordered"),
    "GRMF-codes": (GRMF(3, init=random_codes(), consensus_weight=10.0, **COMMON), "three"),
    "GRMF-graphs": (GRMF(3, init="data", graph=random_graphs(), tol=1e-7, random_state=0), "two"),
    "BridgedGRMF-two": (BridgedGRMF(3, **FIXED), "two"),
    "BridgedGRMF-three": (BridgedGRMF(3, scale=["unit", "standard", None], view_weights=[1, 2, 3], **FIXED), "three"),
    "BridgedGRMF-float32": (BridgedGRMF(3, scale="standard+view", n_components=3, **FIXED | SINGLE), "float32"),
    "BridgedGRMF-rare": (BridgedGRMF(3, reach=9, **FIXED), "rare"),
    "BridgedGRMF-ordered": (BridgedGRMF(3, reach=1, consensus_weight=1.0, **FIXED), "ordered"),
    "BridgedGRMF-choice": (BridgedGRMF(3, bridge="union", **COMMON), "two"),
}
each_fit = pytest.mark.parametrize("fit", FITS)


@pytest.fixture(scope="module")
def fitted(places):
    """Return a function that returns the model of a fit by a backend; every fit is done once."""
    done = {}

    def model(fit, where):
        if (fit, where) not in done:
            estimator, name = FITS[fit]
            done[fit, where] = places(where).fit(estimator, DATA[name].views, DATA[name].mask)
        return done[fit, where]

    return model


def tolerance(fit: str) -> float:
    """Return the relative tolerance: single precision has about 7 digits, and sums of blocks are rounded apart."""
    return 2e-6 if "float32" in fit else 1e-9


def close(ours: Any, theirs: Any, share: float) -> None:
    """Check that arrays differ by no more than a share of the largest value."""
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=share * np.abs(theirs).max())


@each_fit
@elsewhere
def test_labels_are_those_of_memory(fit, where, fitted, places):
    labels, expected = places(where).host(fitted(fit, where).labels_), fitted(fit, "memory").labels_
    assert labels.dtype == expected.dtype
    assert clustering_accuracy(expected, labels) == 1


@each_fit
@everywhere
def test_the_objective_is_that_of_memory_and_never_rises(fit, where, fitted):
    model, expected = fitted(fit, where), fitted(fit, "memory")
    assert model.n_iter_ == expected.n_iter_ == len(model.objective_)
    np.testing.assert_allclose(model.objective_, expected.objective_, rtol=tolerance(fit))
    assert (np.diff(model.objective_) <= tolerance(fit) * np.abs(model.objective_[:-1])).all()


@each_fit
@elsewhere
def test_fitted_attributes_are_those_of_memory(fit, where, fitted, places):
    model, expected, host = fitted(fit, where), fitted(fit, "memory"), places(where).host
    share = 100 * tolerance(fit)
    for name in ("embedding_", "confidence_"):
        close(host(getattr(model, name)), getattr(expected, name), share)
    for name in ("bases_", "codes_"):
        for ours, theirs in zip(getattr(model, name), getattr(expected, name), strict=True):
            close(host(ours), theirs, share)
    for ours, theirs in zip(model.scalings_, expected.scalings_, strict=True):
        for name in ("center", "spread", "row_length"):
            assert (getattr(ours, name) is None) == (getattr(theirs, name) is None)
            if getattr(theirs, name) is not None:
                np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=share, atol=share)
    numbers = np.array([host(model.labels_)[expected.labels_ == group][0] for group in range(3)])
    close(model.cluster_centers_[numbers], expected.cluster_centers_, share)
    np.testing.assert_array_equal(host(model.sample_ids_), expected.sample_ids_)
    assert model.n_features_in_ == expected.n_features_in_
    assert [done.method for done in model.neighbor_search_] == [done.method for done in expected.neighbor_search_]
    if isinstance(model, BridgedGRMF):
        assert model.setting_ == expected.setting_
        np.testing.assert_allclose(model.view_weights_, expected.view_weights_)
        close(model.balance_, expected.balance_, share)


@elsewhere
def test_the_same_settings_are_tried_with_the_same_scores(where, fitted):
    ours, theirs = fitted("BridgedGRMF-choice", where).selection_, fitted("BridgedGRMF-choice", "memory").selection_
    assert ours.n_samples == theirs.n_samples
    assert len(ours.table) == len(theirs.table) > 5
    np.testing.assert_allclose([row["score"] for row in ours.table], [row["score"] for row in theirs.table])
    assert ours.reason == theirs.reason


# -- new samples -------------------------------------------------------------------------------------------------


def new_samples(fit: str) -> dict[str, Any]:
    """Return new samples with missing views: None in a list, some of the names in a dict, and rows of NaN."""
    views = DATA[FITS[fit][1]].new
    has = [~np.isnan(view[:, 0]) for view in views]
    return {
        "a list with None": [None, views[1][has[1]], *[None for _ in views[2:]]],
        "a dict with some names": {"view_0": views[0][has[0]]},
        "rows of NaN": views,
    }


each_new = pytest.mark.parametrize("new", ["a list with None", "a dict with some names", "rows of NaN"])
some_fits = pytest.mark.parametrize("fit", ["GRMF-two", "GRMF-three", "BridgedGRMF-two", "BridgedGRMF-three"])


@some_fits
@each_new
@elsewhere
def test_new_samples_are_those_of_memory(fit, new, where, fitted, places):
    model, expected, data, place = fitted(fit, where), fitted(fit, "memory"), new_samples(fit)[new], places(where)
    numbers = np.array([place.host(model.labels_)[expected.labels_ == group][0] for group in range(3)])
    for options in ({}, {"method": "centers"}):
        labels = place.call(model, "predict", data, **options)
        np.testing.assert_array_equal(labels, numbers[expected.predict(data, **options)])
    close(place.call(model, "transform", data), expected.transform(data), 1e-7)
    ours, theirs = place.call(model, "recover", data), expected.recover(data)
    assert type(ours) is type(theirs)
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        ours, theirs = list(ours.values()), list(theirs.values())
    for own, other in zip(ours, theirs, strict=True):
        close(own, other, 1e-7)


@some_fits
@elsewhere
def test_training_samples_are_recovered_as_in_memory(fit, where, fitted, places):
    ours, theirs = places(where).whole(fitted(fit, where)).recover(), fitted(fit, "memory").recover()
    for own, other in zip(ours, theirs, strict=True):
        close(own, other, 1e-7)


@some_fits
@everywhere
def test_a_saved_model_is_the_same(fit, where, fitted, places, tmp_path):
    model = places(where).whole(fitted(fit, where))
    model.save(tmp_path / "model.gapview")
    again, new = gapview.load(tmp_path / "model.gapview"), new_samples(fit)["rows of NaN"]
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    np.testing.assert_array_equal(again.transform(new), model.transform(new))
    for ours, theirs in zip(again.recover(), model.recover(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
