"""The scale that suits a view."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA

from gapview import BridgedGRMF
from gapview.datasets import hide_views
from gapview.metrics import clustering_scores
from gapview.scaling import SCALES, fit_scaling, rows_in_blocks, suitable_scale
from gapview.scaling import fit_blocks as fit_scaling_to_blocks


def test_scores_of_as_many_principal_components_as_samples_are_not_standardised():
    values = np.random.RandomState(0).normal(size=(80, 100)) * np.geomspace(100, 1, 100)
    scores = PCA().fit_transform(values)
    assert suitable_scale(values[:, :6] * [1, 1, 1, 1, 1, 1000]) == "standard+unit"
    assert suitable_scale(scores[:, :79]) == "center+unit"  # all samples would be equally distant
    assert suitable_scale(scores[:50, :79]) == "center+unit"
    assert suitable_scale(scores[:5, :79]) == "standard+unit"  # too few to compare


def test_views_with_one_strong_direction_keep_the_lengths_of_their_rows():
    generator = np.random.RandomState(0)
    brightness = generator.normal(size=(100, 1))
    pixels = 100 + 20 * brightness + generator.normal(size=(100, 9))
    assert suitable_scale(pixels) == "standard+view"
    assert suitable_scale(pixels * 1e-200) == "standard+view"
    assert suitable_scale(pixels[:5]) == "center+unit"  # too few to compare
    assert suitable_scale(np.c_[pixels, generator.normal(size=(100, 9)) * 15]) == "center+unit"


def test_groups_that_differ_in_one_direction_of_every_view_are_found():
    generator = np.random.RandomState(1)
    target = np.arange(240) % 4
    directions = (np.ones(8), np.linspace(1, 2, 8))
    views = [np.outer(3.0 * target, own) + generator.normal(size=(240, 8)) for own in directions]
    model = BridgedGRMF(n_clusters=4, random_state=0).fit(hide_views(views, 0.3, random_state=0))
    assert clustering_scores(target, model.labels_)["accuracy"] > 0.95


def shares(n_samples=60, n_features=8, seed=0):
    return np.random.RandomState(seed).dirichlet(np.linspace(0.2, 2, n_features), size=n_samples)


def test_shares_of_a_whole_are_scaled_after_square_roots():
    rows = shares()
    assert suitable_scale(rows).startswith("root+")
    assert suitable_scale(100 * rows).startswith("root+")  # percentages
    assert suitable_scale(sparse.csr_array(rows)) == suitable_scale(rows)
    assert not suitable_scale(rows * np.linspace(1, 2, 60)[:, None]).startswith("root+")  # totals differ
    assert not suitable_scale(rows - rows.mean(axis=0)).startswith("root+")  # values below zero
    assert suitable_scale(np.where(rows > 0.5, 1.0, 0.0)) != "root+unit"


def test_root_scales_compare_rows_by_the_hellinger_distance():
    rows = shares()
    scaled = fit_scaling("a", rows, "root+unit").apply(rows)
    hellinger = np.sqrt(np.square(np.sqrt(rows)[:, None] - np.sqrt(rows)[None]).sum(axis=2))
    assert np.allclose(cdist(scaled, scaled), hellinger)


@pytest.mark.parametrize("scale", [scale for scale in SCALES if scale and scale.startswith("root+")])
class TestRoots:
    def test_they_are_those_of_the_plain_scale_on_roots(self, scale):
        rows = shares()
        plain = scale.removeprefix("root+")
        wanted = fit_scaling("a", np.sqrt(rows), plain).apply(np.sqrt(rows))
        assert np.allclose(fit_scaling("a", rows, scale).apply(rows), wanted)
        assert np.allclose(fit_scaling("a", sparse.csr_array(rows), scale).apply(rows), wanted)

    def test_blocks_give_the_same_scaling(self, scale):
        rows = shares()
        cut = rows_in_blocks("a", rows, lambda _: [slice(0, 7), slice(7, 30), slice(30, 60)])
        whole = fit_scaling("a", rows, scale)
        assert np.allclose(fit_scaling_to_blocks(cut, scale).apply(rows), whole.apply(rows))

    def test_undo_returns_the_units_of_the_data(self, scale):
        rows = shares()
        scaling = fit_scaling("a", rows, scale)
        unscaled = scaling.undo(scaling.apply(rows))
        if scale == "root+unit":  # lengths of roots are those of the totals, which are all 1
            assert np.allclose(unscaled, rows)
        correlation = np.corrcoef(unscaled.ravel(), rows.ravel())[0, 1]
        assert correlation > 0.9

    def test_values_below_zero_of_new_samples_stay_finite_and_far(self, scale):
        rows = shares()
        scaling = fit_scaling("a", rows, scale)
        new = scaling.apply(-rows)
        assert np.isfinite(new).all()
        assert not np.allclose(new, scaling.apply(rows))


def test_groups_that_differ_in_small_shares_are_found():
    generator = np.random.RandomState(0)
    target = np.arange(180) % 3
    views = []
    for _ in range(2):
        small = generator.gamma(2.0, 0.01, size=(180, 9)) * np.where(np.arange(9) // 3 == target[:, None], 4, 1)
        large = generator.gamma(3.0, 1.0, size=(180, 3))  # the same in all groups
        both = np.hstack([small, large])
        views.append(both / both.sum(axis=1, keepdims=True))
    model = BridgedGRMF(n_clusters=3, random_state=0).fit(hide_views(views, 0.3, random_state=0))
    accuracy = clustering_scores(target, model.labels_)["accuracy"]
    given = BridgedGRMF(n_clusters=3, scale="center+unit", random_state=0).fit(hide_views(views, 0.3, random_state=0))
    assert accuracy > clustering_scores(target, given.labels_)["accuracy"] + 0.1
