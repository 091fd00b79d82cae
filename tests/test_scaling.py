"""The scale that suits a view."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA

from gapview import BridgedGRMF
from gapview.datasets import hide_views
from gapview.metrics import clustering_scores
from gapview.scaling import suitable_scale


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
