"""RobustMultiViewKMeans: objective, closed forms against naive versions, gaps, outliers, new samples."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from gapview import Views
from gapview.baselines import BipartiteSpectral, Concat, RobustMultiViewKMeans
from gapview.baselines.partition import GappedRows, completed_rows, fit_partition, sample_weights, view_weights
from gapview.datasets import make_views
from gapview.errors import ParameterError
from gapview.metrics import clustering_accuracy, clustering_scores
from gapview.scaling import unit_rows
from problems import random_mask


def random_problem(seed):
    rng = np.random.RandomState(seed)
    n_samples, n_views = rng.randint(8, 40), rng.randint(1, 4)
    matrices = [rng.normal(size=(n_samples, rng.randint(2, 6))) for _ in range(n_views)]
    return rng, matrices, random_mask(rng, n_samples, n_views, rng.choice([1.0, 0.7, 0.4]), 3)


def naive_objective(matrices, mask, labels, centers, weights, exponent):
    """The printed problem, row by row; a missing row is in no mean."""
    value = 0.0
    for k, matrix in enumerate(matrices):
        present = np.flatnonzero(mask[:, k])
        middle = matrix[present].mean(axis=0)
        least = np.mean([np.linalg.norm(matrix[i] - middle) for i in present])
        own = np.mean([np.linalg.norm(matrix[i] - centers[k][labels[i]]) for i in present])
        value += weights[k] ** exponent * (own + 0.01 * least)
    return value


@given(st.integers(0, 2**16), st.sampled_from([1.1, 2.0, 5.0, 100.0]))
@settings(max_examples=60)
def test_the_objective_never_rises_and_is_that_of_the_problem(seed, exponent):
    _, matrices, mask = random_problem(seed)
    method = RobustMultiViewKMeans(3, weight_exponent=exponent, n_init=2, scale=None, tol=0, max_iter=15)
    model = method.set_params(random_state=seed).fit(matrices, mask=mask)
    assert (np.diff(model.objective_) <= 1e-9 * model.objective_[:-1]).all()
    value = naive_objective(matrices, mask, model.labels_, model.view_centers_, model.view_weights_, exponent)
    assert model.objective_[-1] == pytest.approx(value, rel=1e-9)
    assert model.view_weights_.sum() == pytest.approx(1)
    assert (model.view_weights_ >= 0).all()


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=4), st.sampled_from([1.05, 2.0, 7.0]))
@settings(max_examples=60)
def test_view_weights_are_the_best_on_the_simplex(sums, exponent):
    sums = np.array(sums)
    found = view_weights(sums, exponent)
    assert found.sum() == pytest.approx(1)
    best = found**exponent @ sums
    for other in np.random.RandomState(0).dirichlet(np.ones(len(sums)), size=200):
        assert best <= other**exponent @ sums * (1 + 1e-12)


def test_no_view_weight_is_zero():
    assert (view_weights(np.array([1.0, 2.0]), 1.0001) > 0).all()


def test_a_view_that_few_samples_have_does_not_decide():
    data = make_views(300, (8, 6), n_clusters=3, separation=2.5, random_state=2)
    mask = np.ones((300, 2), dtype=bool)
    mask[3:, 1] = False
    rare = RobustMultiViewKMeans(3, random_state=0).fit(data.views.matrices, mask=mask)
    alone = RobustMultiViewKMeans(3, random_state=0).fit([data.views.matrices[0]])
    assert clustering_accuracy(alone.labels_, rare.labels_) > 0.98
    assert rare.view_weights_.min() > 0.05


def test_weights_of_samples():
    np.testing.assert_allclose(sample_weights(np.array([0.5, 2.0])), [4.0, 1.0])  # as 1 / (2 × 0.5) and 1 / (2 × 2)
    np.testing.assert_array_equal(sample_weights(np.zeros(3)), 1)


@given(st.integers(0, 2**16))
@settings(max_examples=30)
def test_costs_means_and_residuals_against_loops(seed):
    rng, matrices, mask = random_problem(seed)
    views = Views(matrices, mask=mask)
    rows = GappedRows.of(list(views.matrices), views)
    centers = [rng.normal(size=(3, matrix.shape[1])) for matrix in matrices]
    factors, labels = rng.uniform(size=len(matrices)), rng.randint(3, size=len(mask))
    costs, pulls = rows.costs(centers, factors), [rng.uniform(size=n) for n in views.n_present]
    residuals, means = rows.residuals(centers, labels), rows.weighted_means(centers, labels, pulls)
    for i, group in product(range(len(mask)), range(3)):
        seen = np.flatnonzero(mask[i])
        expected = sum(factors[k] * np.linalg.norm(matrices[k][i] - centers[k][group]) for k in seen)
        expected /= factors[seen].sum()
        assert costs[i, group] == pytest.approx(expected)
    for k, matrix in enumerate(matrices):
        present = np.flatnonzero(mask[:, k])
        np.testing.assert_allclose(residuals[k], [np.linalg.norm(matrix[i] - centers[k][labels[i]]) for i in present])
        for group in range(3):
            chosen = labels[present] == group
            own = (
                np.average(matrix[present][chosen], axis=0, weights=pulls[k][chosen])
                if chosen.any()
                else centers[k][group]
            )
            np.testing.assert_allclose(means[k][group], own)
    thin = GappedRows([sparse.csr_array(matrix) for matrix in rows.matrices], rows.samples, rows.n_samples)
    np.testing.assert_allclose(thin.costs(centers, factors), costs)
    for first, second in zip(thin.weighted_means(centers, labels, pulls), means, strict=True):
        np.testing.assert_allclose(first, second)
    for first, second in zip(thin.residuals(centers, labels), residuals, strict=True):
        np.testing.assert_allclose(first, second)


def test_first_centres_are_rows_of_real_samples():
    views = make_views(60, (5, 4), n_clusters=3, missing_rate=0.4, random_state=0).views
    samples = np.arange(60)
    for k, rows in enumerate(completed_rows(list(views.matrices), views, samples)):
        known = {row.tobytes() for row in views.matrices[k]}
        assert all(row.tobytes() in known for row in rows)
        np.testing.assert_array_equal(rows[views.rows(k)], views.matrices[k])


def test_a_sample_without_donors_starts_at_the_mean():
    rng = np.random.RandomState(0)
    mask = np.repeat([[True, False], [False, True]], 10, axis=0)  # views that never meet
    views = Views([rng.normal(size=(20, 3)), rng.normal(size=(20, 2))], mask=mask)
    rows = completed_rows(list(views.matrices), views, np.array([0]))
    np.testing.assert_allclose(rows[1][0], views.matrices[1].mean(axis=0))


def test_groups_are_never_empty():
    rng = np.random.RandomState(0)
    rows = GappedRows([rng.normal(size=(12, 2))], [np.arange(12)], 12)
    far = [np.full((6, 2), 50.0) * np.arange(1, 7)[:, None]]  # all samples are nearest to the first
    found = fit_partition(rows, far, 2.0, 10, 0.0)
    assert set(found.labels) == set(range(6))
    assert (np.diff(found.objective) <= 1e-12).all()


def test_outliers_move_centres_less_than_in_kmeans():
    data = make_views(90, (6, 5), n_clusters=3, separation=6, random_state=0)
    matrices = [matrix.copy() for matrix in data.views.matrices]
    matrices[0][0] += 40  # one broken row
    robust = RobustMultiViewKMeans(3, scale=None, random_state=0).fit(matrices)
    plain = Concat(3, scale=None, random_state=0).fit(matrices)
    assert clustering_accuracy(data.target, robust.labels_) > 0.97
    mean = np.stack([matrices[0][1:][data.target[1:] == kind].mean(axis=0) for kind in range(3)])

    def shift(centers):
        return np.linalg.norm(centers[:, None] - mean[None], axis=2).min(axis=1).max()

    assert shift(robust.view_centers_[0]) < shift(plain.cluster_centers_[:, :6]) / 5


def test_training_samples_are_predicted_by_the_rule_of_the_fit():
    data = make_views(120, (6, 5), n_clusters=4, separation=2, missing_rate=0.3, random_state=1)
    model = RobustMultiViewKMeans(4, random_state=0).fit(data.views)
    np.testing.assert_array_equal(model.predict(data.views), model.labels_)
    np.testing.assert_array_equal(model.embedding_.argmin(axis=1), model.labels_)
    scaled = [unit_rows(matrix) for matrix in data.views.matrices]
    first = int(data.views.rows(0)[0])
    weights = model.view_weights_**5 / data.views.n_present
    parts = [
        (weights[k], np.linalg.norm(scaled[k][list(data.views.rows(k)).index(first)] - model.view_centers_[k][0]))
        for k in np.flatnonzero(data.views.mask[first])
    ]
    expected = sum(w * d for w, d in parts) / sum(w for w, _ in parts)
    assert model.embedding_[first, 0] == pytest.approx(expected)


@pytest.mark.parametrize("method", [RobustMultiViewKMeans, BipartiteSpectral])
def test_regression_rows_at_their_centres(method):
    rows = np.repeat([[1.0], [-1.0]], 20, axis=0)
    labels = method(2, random_state=0).fit([rows]).labels_
    assert clustering_accuracy(rows.ravel() > 0, labels) == 1


@pytest.mark.parametrize(("offset", "size", "dtype"), [(1e9, 1, float), (0, 1e30, np.float32), (0, 1e200, float)])
def test_regression_rows_far_from_the_origin_and_huge_ones(offset, size, dtype):
    rng = np.random.RandomState(0)
    target = np.repeat([0, 1, 2], 20)
    rows = offset + size * (9 * rng.normal(size=(3, 4))[target] + rng.normal(size=(60, 4)))
    model = RobustMultiViewKMeans(3, scale=None, tol=0, random_state=0).fit([rows.astype(dtype)])
    assert clustering_accuracy(target, model.labels_) == 1
    assert np.isfinite(model.embedding_).all()
    assert (np.diff(model.objective_) <= 1e-6 * model.objective_[:-1]).all()


def test_bad_exponents():
    views = make_views(30, n_clusters=2, random_state=0).views
    for value in (1.0, 0.5, 101.0, float("nan")):
        with pytest.raises(ParameterError, match="weight_exponent"):
            RobustMultiViewKMeans(2, weight_exponent=value).fit(views)


@pytest.mark.data
@pytest.mark.parametrize(("name", "least"), [("handwritten_2v", 0.88), ("bbcsport_2v", 0.75)])
def test_real_data(name, least, dataset):
    """On complete data, near k-means on both views side by side (0.91 and 0.85)."""
    data = dataset(name)
    model = RobustMultiViewKMeans(len(set(data.target)), random_state=0).fit(data.views)
    assert clustering_scores(data.target, model.labels_)["accuracy"] > least
