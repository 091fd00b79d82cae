"""The features that set groups apart, against a version written from the definition."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from gapview import Views
from gapview.errors import InputError, ParameterError
from gapview.trust import feature_effects, top_features
from problems import cases, hidden


def naive_effects(matrix, labels, n_groups):
    sizes = np.full((n_groups, matrix.shape[1]), np.nan)
    for group, j in itertools.product(range(n_groups), range(matrix.shape[1])):
        inside, outside = matrix[labels == group, j], matrix[labels != group, j]
        degrees = len(matrix) - 2
        if len(inside) and len(outside) and degrees >= 2:
            spread = np.sqrt((len(inside) * inside.var() + len(outside) * outside.var()) / degrees)
            sizes[group, j] = (inside.mean() - outside.mean()) / spread * (1 - 3 / (4 * degrees - 1))
    return sizes


@given(cases())
def test_effects_are_what_their_definition_says(case):
    labels = np.random.RandomState(case.seed).randint(case.n_clusters, size=len(case.mask))
    whole = feature_effects(hidden(case.matrices, case.mask), labels)
    for k, effects in enumerate(whole):
        rows = case.mask[:, k]
        expected = naive_effects(case.matrices[k][rows], labels[rows], labels.max() + 1)
        np.testing.assert_allclose(effects.sizes, expected, rtol=1e-7, atol=1e-9)
        for group in np.flatnonzero(np.isfinite(effects.mean_inside[:, 0])):
            inside, outside = rows & (labels == group), rows & (labels != group)
            np.testing.assert_allclose(effects.mean_inside[group], case.matrices[k][inside].mean(axis=0), rtol=1e-7)
            np.testing.assert_allclose(effects.mean_outside[group], case.matrices[k][outside].mean(axis=0), rtol=1e-7)


@given(cases(), st.sampled_from([np.float32, np.float64]))
def test_effects_of_sparse_views_are_those_of_dense_ones(case, dtype):
    labels = np.random.RandomState(case.seed).randint(case.n_clusters, size=len(case.mask))
    dense = [np.where(np.abs(m) > np.median(np.abs(m)), m, 0).astype(dtype) for m in case.matrices]
    views = Views([sparse.csr_array(matrix) for matrix in dense], mask=case.mask)
    same = feature_effects(Views(dense, mask=case.mask), labels)
    for ours, theirs in zip(feature_effects(views, labels), same, strict=True):
        np.testing.assert_allclose(ours.sizes, theirs.sizes, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(ours.mean_outside, theirs.mean_outside, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize(("factor", "shift"), [(1e-300, 0), (1e300, 0), (-3, 0), (1, 1e6)])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_effects_do_not_depend_on_units(factor, shift, as_sparse):
    rng = np.random.RandomState(0)
    matrix, labels = rng.normal(size=(30, 4)), rng.randint(3, size=30)
    changed = sparse.csr_array(matrix * factor + shift) if as_sparse else matrix * factor + shift
    expected = np.sign(factor) * feature_effects([matrix], labels)[0].sizes
    np.testing.assert_allclose(feature_effects([changed], labels)[0].sizes, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_effects_at_their_limits(as_sparse):
    n_samples = 2000
    labels = np.r_[0:3, np.random.RandomState(0).randint(5, size=n_samples - 3)]
    matrix = np.column_stack(
        [np.full(n_samples, 0.1), np.zeros(n_samples), np.where(labels == 1, 0.3, 0.1), np.arange(n_samples)]
    )
    views = Views([sparse.csr_array(matrix) if as_sparse else matrix, matrix, matrix], mask=np.ones((n_samples, 3)))
    mask = np.column_stack([np.ones(n_samples), labels == 0, np.arange(n_samples) < 3])
    first, second, third = feature_effects(views.hide(mask), labels)
    np.testing.assert_array_equal(first.sizes[:, :2], 0)
    assert first.sizes[1, 2] == np.inf
    assert np.isfinite(first.sizes[0]).all()
    assert np.isnan(second.sizes).all()  # the view knows one group alone
    assert np.isnan(third.sizes).all()  # three samples
    np.testing.assert_array_equal(third.mean_inside[:, 3], [0, 1, 2, np.nan, np.nan])
    strongest = [row for row in top_features([first, second, third], 2) if row.cluster == 1]
    assert [(row.feature, row.effect) for row in strongest] == [(2, np.inf), (3, first.sizes[1, 3])]


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize(("n_samples", "n_groups", "seed"), [(100, 3, 2), (2000, 5, 1), (20_000, 3, 0)])
def test_effects_without_any_spread_are_infinite_in_spite_of_rounding(n_samples, n_groups, seed, as_sparse):
    labels = np.random.RandomState(seed).randint(n_groups, size=n_samples)
    column = np.where(labels == 1, 0.3, 0.1)[:, None]
    effects = feature_effects([sparse.csr_array(column) if as_sparse else column], labels)[0]
    assert effects.sizes[1] == np.inf
    np.testing.assert_allclose(effects.mean_inside[:2, 0], [0.1, 0.3], rtol=1e-15)


def test_effects_of_values_that_are_stored_in_parts():
    parts = sparse.csr_array(([1.0, 2.0, 4.0, 9.0, 7.0], [0, 0, 0, 0, 0], [0, 2, 3, 4, 5]), shape=(4, 1))
    whole = feature_effects([np.array([[3.0], [4.0], [9.0], [7.0]])], [0, 0, 1, 1])[0].sizes
    np.testing.assert_allclose(feature_effects([parts], [0, 0, 1, 1])[0].sizes, whole)


def test_top_features_have_the_names_of_the_data():
    rng = np.random.RandomState(0)
    labels = np.repeat([0, 1, 2], 20)
    frame = pd.DataFrame(
        rng.normal(size=(60, 3)), columns=["age", "height", "weight"], index=[f"s{i}" for i in range(60)]
    )
    frame.loc[labels == 1, "height"] -= 5
    frame.loc[labels == 2, "weight"] += 5
    scans = pd.DataFrame(rng.normal(size=(60, 2)) + labels[:, None], index=frame.index)
    rows = top_features(feature_effects({"body": frame, "scans": scans}, labels), n_top=1)
    assert [(row.cluster, row.view) for row in rows] == [(g, v) for g in range(3) for v in ("body", "scans")]
    assert [rows[2].feature, rows[4].feature] == ["height", "weight"]
    assert rows[2].effect < -2 < 2 < rows[4].effect
    assert list(pd.DataFrame(rows).columns) == [
        "cluster", "view", "feature", "effect", "mean_inside", "mean_outside"
    ]  # fmt: skip
    assert [type(row.feature) for row in top_features(feature_effects([np.asarray(frame)], labels), 1)] == [int] * 3
    with pytest.raises(ParameterError, match="n_top must be an integer of at least 1; got 0"):
        top_features([], 0)
    with pytest.raises(InputError, match="labels must give 60 whole numbers"):
        feature_effects([frame], labels[:-1])
