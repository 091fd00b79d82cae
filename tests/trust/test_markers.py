"""Markers: the right test, effects and shares, false discoveries in noise, sparse views, what cannot be tested."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.cluster import KMeans

from gapview import GRMF, BridgedGRMF
from gapview.baselines import Concat
from gapview.datasets import make_views
from gapview.errors import GapviewWarning, ParameterTypeError, SolutionError
from gapview.trust import find_markers

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, 90)
BLOOD = np.round(RNG.normal(size=(90, 5)), 1)
BLOOD[RNG.random(BLOOD.shape) < 0.4] = 0
BLOOD[:, 0] += 3 * (LABELS == 1)
MASK = RNG.random((90, 2)) < 0.8
MASK[~MASK.any(axis=1)] = True


def cell(markers, view, feature, group):
    columns = markers.columns
    (row,) = np.flatnonzero((columns["view"] == view) & (columns["feature"] == feature) & (columns["group"] == group))
    return {name: column[row] for name, column in columns.items()}


def k_means(views, seed):
    return KMeans(2, n_init=3, random_state=seed).fit_predict(np.hstack(views.matrices))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_every_row_is_the_test_of_scipy(kind):
    markers = find_markers({"blood": kind(BLOOD)}, LABELS)
    assert len(markers) == 15
    assert np.isnan(markers.agreement)
    for group in range(3):
        inside, outside = BLOOD[group == LABELS], BLOOD[group != LABELS]
        expected = stats.mannwhitneyu(inside, outside, axis=0, method="asymptotic").pvalue
        for j in range(5):
            row = cell(markers, "blood", j, group)
            # Of the same direction in ranks and in means; else the p-value is 1
            assert row["p_value"] == pytest.approx(expected[j]) or row["p_value"] == 1
            assert row["mean_inside"] == pytest.approx(inside[:, j].mean())
            assert row["nonzero_inside"] == pytest.approx((inside[:, j] != 0).mean())
            assert row["nonzero_outside"] == pytest.approx((outside[:, j] != 0).mean())
    first = cell(markers, "blood", 0, 1)
    assert (first["direction"], first["fdr"] < 1e-6) == ("up", True)
    known = stats.false_discovery_control(markers.columns["p_value"])
    np.testing.assert_allclose(markers.columns["fdr"], known)


def test_rows_are_sorted_and_shares_of_views_are_those_of_the_group():
    views = [np.where(column[:, None], BLOOD, np.nan) for column in MASK.T]
    markers = find_markers(dict(zip("ab", views, strict=True)), LABELS)
    order = [(row[0], row[1]) for row in zip(markers.columns["group"], markers.columns["view"], strict=True)]
    assert order == sorted(order)
    for group, view in set(order):
        own = (markers.columns["group"] == group) & (markers.columns["view"] == view)
        assert (np.diff(markers.columns["p_value"][own]) >= 0).all()
        share = MASK[group == LABELS, "ab".index(view)].mean()
        np.testing.assert_allclose(markers.columns["share_observed"][own], share)
    assert len(markers.top(2)) == 3 * 2 * 2
    assert markers.top(2).columns["p_value"][0] == markers.columns["p_value"][0]


def test_noise_has_markers_unless_groups_are_found_without_the_feature():
    """Of true null hypotheses, about 5 % have p < 0.05 in the split test; of the same groups, far more."""
    split, same = [], []
    for seed in range(12):
        noise = np.random.default_rng(seed).normal(size=(120, 30))
        labels = KMeans(2, n_init=3, random_state=seed).fit_predict(noise)
        split.append((find_markers([noise], labels, k_means, random_state=seed).columns["p_value"] < 0.05).mean())
        same.append((find_markers([noise], labels).columns["p_value"] < 0.05).mean())
    assert np.mean(split) < 0.07
    assert np.mean(same) > 0.25


def test_features_that_differ_are_found_and_others_are_not():
    data = make_views(n_samples=200, n_clusters=3, missing_rate=0.3, random_state=0)
    noise = np.random.default_rng(1).normal(size=(200, 40))
    views = [*(np.where(has[:, None], 0.0, np.nan) for has in data.views.mask.T), noise]
    for view, matrix, k in zip(views, data.views.matrices, range(2), strict=False):
        views[k] = np.repeat(view, matrix.shape[1], axis=1)
        views[k][data.views.rows(k)] = matrix
    for model in (BridgedGRMF(3, random_state=0), Concat(3, random_state=0)):
        markers = model.fit(views).markers()
        is_noise, is_small = markers.columns["view"] == "view_2", markers.columns["fdr"] < 0.05
        assert is_small[~is_noise].mean() > 0.5
        assert is_small[is_noise].mean() < 0.03
        assert markers.agreement > 0.8
        assert "found without it" in markers.caveat


def test_same_groups_carry_the_caveat():
    views = make_views(n_samples=90, n_clusters=3, random_state=0).views
    model = GRMF(3, init="data", random_state=0).fit(views)
    assert "p-values are too small" in str(model.markers(split=False))
    with pytest.raises(ParameterTypeError, match="split"):
        model.markers(split="no")


def test_other_groups_from_half_of_the_features_are_reported():
    noise = np.random.default_rng(3).normal(size=(100, 20))
    labels = KMeans(2, n_init=3, random_state=0).fit_predict(noise)
    markers = find_markers([noise], labels, k_means)
    assert "other groups (adjusted Rand index" in markers.caveat


def test_what_cannot_be_tested_has_no_p_value():
    one = RNG.normal(size=(90, 1))
    markers = find_markers({"one": one, "blood": BLOOD}, LABELS, lambda views, seed: LABELS)
    is_one = markers.columns["view"] == "one"
    assert np.isnan(markers.columns["p_value"][is_one]).all()
    assert np.isfinite(markers.columns["effect"]).all()
    assert np.isfinite(markers.columns["p_value"][~is_one]).all()

    def fail(views, seed):
        raise SolutionError("the codes are zero")

    with pytest.warns(GapviewWarning, match="the codes are zero"):
        assert np.isnan(find_markers([BLOOD], LABELS, fail).columns["fdr"]).all()


def test_constant_features_do_not_differ():
    matrix = np.column_stack([np.ones(90), np.zeros(90), BLOOD[:, 0]])
    columns = find_markers([matrix], LABELS).columns
    is_constant = columns["feature"] != 2
    assert (columns["p_value"][is_constant] == 1).all()
    assert (columns["direction"][is_constant] == "").all()


def test_few_samples_are_drawn_for_the_fits(monkeypatch):
    monkeypatch.setattr("gapview.trust.markers._MOST_TESTED", 40)
    seen = []

    def fit(views, seed):
        seen.append((views.n_samples, views.n_features[0]))
        return (views.matrices[0][:, 0] > 0).astype(int)

    find_markers([BLOOD], LABELS, fit)
    assert sorted(seen) == [(40, 2), (40, 3)]


def test_as_a_frame():
    pytest.importorskip("pandas")
    frame = find_markers({"blood": BLOOD}, LABELS).to_frame()
    assert frame.columns[:4].tolist() == ["view", "feature", "group", "effect"]
    assert len(frame) == 15
