"""Weights of the views, chosen from the data."""

from __future__ import annotations

import os

import numpy as np
import pytest

from gapview import BridgedGRMF
from gapview.datasets import fetch_coread
from gapview.metrics import clustering_scores


def shared_and_private(seed: int, n_samples: int = 120) -> tuple[list[np.ndarray], np.ndarray]:
    """Draw two views with the same two groups, and a third one with a clearer split of its own."""
    source = np.random.RandomState(seed)
    shared, private = (2 * source.randint(2, size=(n_samples, 1)) - 1 for _ in range(2))
    views = [source.normal(size=(n_samples, n_features)) for n_features in (60, 60, 40)]
    for view, n_features, shift in zip(views, (8, 8, 20), (0.8 * shared, 0.8 * shared, 1.5 * private), strict=True):
        view[:, :n_features] += shift
    return views, (shared[:, 0] > 0).astype(int)


@pytest.mark.parametrize("seed", range(2))
def test_a_clear_split_of_one_view_does_not_outweigh_the_groups_of_the_others(seed):
    views, target = shared_and_private(seed)
    model = BridgedGRMF(2, random_state=seed).fit(views)
    assert clustering_scores(target, model.labels_)["ari"] > 0.9
    assert model.view_weights_.tolist() == [1.0, 1.0, 1.0]


def test_given_weights_are_kept():
    views, target = shared_and_private(0)
    model = BridgedGRMF(2, view_weights=[0.1, 0.1, 2.8], random_state=0).fit(views)
    assert clustering_scores(target, model.labels_)["ari"] < 0.1
    np.testing.assert_allclose(model.view_weights_, [0.1, 0.1, 2.8])


def test_a_view_of_noise_still_has_little_weight():
    views, target = shared_and_private(0)
    views[0][:, :8] += 2 * (2 * target[:, None] - 1)
    views[1][:, :8] += 2 * (2 * target[:, None] - 1)
    noise = np.random.RandomState(1).normal(size=(120, 40))
    model = BridgedGRMF(2, random_state=0).fit([*views[:2], noise])
    assert model.view_weights_[2] < 0.5
    assert clustering_scores(target, model.labels_)["ari"] > 0.9


@pytest.mark.data
@pytest.mark.skipif("GAPVIEW_DATA" not in os.environ, reason="GAPVIEW_DATA is not set")
def test_copy_numbers_do_not_outweigh_genes_and_mutations_of_colorectal_tumours():
    data = fetch_coread()
    model = BridgedGRMF(2, random_state=0).fit(data.views)
    assert clustering_scores(data.target, model.labels_)["ari"] > 0.35
