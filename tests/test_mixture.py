"""The mixture that follows k-means where groups are not refined by discriminants."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from gapview import BridgedGRMF, Views
from gapview.clusters import cluster_rows
from gapview.metrics import clustering_accuracy
from gapview.mixture import Mixture, fit_mixture

SIZES = (180, 30, 30)


def points(seed, noise=0.45):
    """Return unit rows of one large and two small groups, and their groups."""
    state, groups = np.random.RandomState(seed), np.repeat([0, 1, 2], SIZES)
    rows = np.eye(3, 4)[groups] + noise * state.normal(size=(len(groups), 4))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True), groups


def log_likelihood(mixture, rows):
    covariance = mixture.variance * np.eye(rows.shape[1])
    densities = [multivariate_normal(center, covariance).pdf(rows) for center in mixture.centers]
    return float(np.log(np.exp(mixture.log_weights) @ np.array(densities)).sum())


def test_shares_are_those_of_bayes():
    rows, _ = points(0)
    mixture = Mixture(np.eye(3, 4), np.log([0.5, 0.3, 0.2]), 0.2)
    densities = np.stack([multivariate_normal(center, 0.2 * np.eye(4)).pdf(rows) for center in mixture.centers], axis=1)
    expected = densities * [0.5, 0.3, 0.2]
    np.testing.assert_allclose(mixture.shares(rows), expected / expected.sum(axis=1, keepdims=True), rtol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_the_likelihood_does_not_rise_any_more(seed):
    rows, _ = points(seed)
    found = fit_mixture(rows, cluster_rows(rows, 3, np.random.RandomState(0)).centers)
    best, state = log_likelihood(found, rows), np.random.RandomState(seed)
    for _ in range(20):
        centers = found.centers + 0.02 * state.normal(size=found.centers.shape)
        other = Mixture(centers, found.log_weights, found.variance * np.exp(0.05 * state.normal()))
        assert log_likelihood(other, rows) < best


def test_unequal_groups_are_found_better_than_by_k_means():
    gains = []
    for seed in range(10):
        rows, groups = points(seed)
        found = cluster_rows(rows, 3, np.random.RandomState(0))
        weighed = fit_mixture(rows, found.centers).shares(rows).argmax(axis=1)
        gains.append(clustering_accuracy(groups, weighed) - clustering_accuracy(groups, found.labels))
    assert np.mean(gains) > 0.05
    assert min(gains) > -0.02


def contradicting_views(n_samples=120):
    """Return two views that explain nothing of each other, so that groups are not refined by discriminants."""
    state = np.random.RandomState(0)
    return Views([state.normal(size=(n_samples, 6)), state.normal(size=(n_samples, 7))])


def test_no_group_is_lost():
    for n_clusters in (2, 8, 30):
        model = BridgedGRMF(n_clusters, selection="fixed", random_state=0).fit(contradicting_views())
        assert not model.refined_
        assert len(np.unique(model.labels_)) == n_clusters


def test_refine_turns_it_off():
    views = contradicting_views()
    weighed, plain = (
        BridgedGRMF(6, selection="fixed", refine=refine, random_state=0).fit(views) for refine in (True, False)
    )
    assert not weighed.refined_
    assert (weighed.labels_ != plain.labels_).any()
    np.testing.assert_allclose(weighed.embedding_, plain.embedding_)
    np.testing.assert_array_equal(weighed.balance_, np.eye(weighed.embedding_.shape[1]))  # equal sizes are not favoured
    assert weighed.balance_.shape[0] == plain.balance_.shape[0]
    assert not np.array_equal(plain.balance_, np.eye(len(plain.balance_)))
