"""Refinement of groups by discriminants: formulas against plain versions, when groups are kept, and real data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone

from gapview import BridgedGRMF, Views
from gapview.datasets import make_views
from gapview.errors import ParameterTypeError
from gapview.graph import knn_graph
from gapview.metrics import clustering_accuracy
from gapview.refinement import Refinement, refine, transition_of, walk


def refined(
    views: Views, labels: np.ndarray, explained: float = 1.0, seed: int = 0, parts: np.ndarray | None = None
) -> Refinement:
    """Refine groups with a graph that links every sample with itself alone."""
    graph = sparse.csr_array(sparse.eye_array(views.n_samples))
    parts = np.zeros(views.n_samples, dtype=int) if parts is None else parts
    return refine(views.matrices, views, graph, [labels], parts, explained, seed)


def groups_of(found: Refinement, views: Views) -> np.ndarray:
    assert found.discriminants is not None
    present = [views.rows(k) for k in range(views.n_views)]
    return found.discriminants.shares(views.matrices, present, views.n_samples)


@pytest.fixture(scope="module")
def data():
    return make_views(300, (12, 20), n_clusters=4, separation=4.0, noise=1.0, missing_rate=0.3, random_state=1)


def noisy(target: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    """Give some of the samples the group of another one."""
    source = np.random.RandomState(seed)
    labels = target.copy()
    wrong = source.permutation(len(labels))[: int(share * len(labels))]
    labels[wrong] = labels[source.permutation(wrong)]
    return labels


@pytest.mark.parametrize("n_samples", [300, 1600])  # linear, and of a kernel
def test_wrong_labels_are_corrected(n_samples):
    data = make_views(n_samples, (12, 20), n_clusters=4, separation=5.0, missing_rate=0.3, random_state=2)
    labels = noisy(data.target, 0.3)
    shares = groups_of(refined(data.views, labels), data.views)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-6)
    before, after = (clustering_accuracy(data.target, own) for own in (labels, shares.argmax(axis=1)))
    assert before < 0.85
    assert after > 0.97


def test_scores_are_those_of_discriminant_analysis():
    """With means and one covariance of all groups, which is shrunk to a multiple of the identity."""
    data = make_views(200, (6, 8), n_clusters=3, separation=12.0, noise=0.5, random_state=3)
    found = refined(data.views, data.target).discriminants
    assert found is not None
    rows, is_in = data.views.matrices[0], np.eye(3)[data.target]
    means = is_in.T @ rows / is_in.sum(axis=0)[:, None]
    apart = rows - means[data.target]
    within = apart.T @ apart / 200
    shrunk = 0.8 * within + 0.2 * np.trace(within) / 6 * np.eye(6)
    centred = means - rows.mean(axis=0)
    weights = np.linalg.solve(shrunk, centred.T)
    expected = (rows - rows.mean(axis=0)) @ weights - (centred.T * weights).sum(axis=0) / 2
    np.testing.assert_allclose(found.views[0].scores(rows), expected, rtol=1e-4, atol=1e-4)


def test_rows_in_blocks_and_sparse_rows_have_the_same_shares(data, monkeypatch):
    found = refined(data.views, data.target).discriminants
    assert found is not None
    present = [data.views.rows(k) for k in range(2)]
    whole = found.shares(data.views.matrices, present, 300)
    monkeypatch.setattr("gapview.refinement._VALUES_AT_A_TIME", 7 * 600)
    np.testing.assert_allclose(found.shares(data.views.matrices, present, 300), whole, atol=1e-7)
    as_sparse = [sparse.csr_array(matrix) for matrix in data.views.matrices]
    np.testing.assert_allclose(found.shares(as_sparse, present, 300), whole, atol=1e-6)


def test_groups_of_views_that_contradict_each_other_are_kept():
    source = np.random.RandomState(0)
    first, second = (source.randint(3, size=240) for _ in range(2))
    rows = [5 * np.eye(3)[labels] + source.normal(size=(240, 3)) for labels in (first, second)]
    views = Views([np.hstack([own, source.normal(size=(240, 5))]) for own in rows])
    found = refined(views, first, explained=0.0)
    assert found.discriminants is None
    assert abs(found.agreement) < 0.3
    agreeing = refined(Views([views.matrices[0]] * 2), first, explained=0.0)
    assert agreeing.agreement == pytest.approx(1, abs=0.05)
    assert agreeing.discriminants is not None


def test_groups_of_one_view_and_of_one_group_are_kept(data):
    only = Views([data.views.matrices[0]])
    assert refined(only, np.arange(only.n_samples) % 2).discriminants is None
    assert refined(data.views, np.zeros(300, dtype=int)).discriminants is None


def test_no_group_is_lost():
    """Of forty groups of a few samples some have none in a round; they are given their nearest samples."""
    data = make_views(200, (10, 12), n_clusters=40, separation=2.0, noise=2.0, missing_rate=0.3, random_state=5)
    shares = groups_of(refined(data.views, data.target), data.views)
    assert len(np.unique(shares.argmax(axis=1))) == 40


def test_the_seed_decides_and_large_units_do_not(data):
    one, same = (groups_of(refined(data.views, data.target, seed=4), data.views) for _ in range(2))
    np.testing.assert_array_equal(one, same)
    huge = data.views.with_matrices([matrix * 1e200 for matrix in data.views.matrices])
    np.testing.assert_allclose(groups_of(refined(huge, data.target, seed=4), huge), one, atol=1e-6)


def test_a_view_with_fewer_rows_than_folds_takes_part(data):
    rare = np.zeros(300, dtype=bool)
    rare[[3, 50, 200]] = True
    mask = np.column_stack([np.ones(300, dtype=bool), rare])
    views = Views(
        [np.asarray(matrix) for matrix in make_views(300, (12, 20), n_clusters=4, random_state=1).views.matrices]
    )
    found = refined(views.hide(mask), noisy(data.target, 0.1))
    assert groups_of(found, views.hide(mask)).shape == (300, 4)


@pytest.mark.parametrize("n_wrong", [1, 4])
@pytest.mark.parametrize("many", [1500, 300])  # samples from which discriminants are those of a kernel
def test_the_clearest_of_several_starts_is_taken(data, n_wrong, many, monkeypatch):
    monkeypatch.setattr("gapview.refinement._MANY_SAMPLES", many)
    source = np.random.RandomState(0)
    merged = np.where(data.target == 1, 0, data.target)  # two groups in one, and another one in two
    merged[(data.target == 2) & (source.uniform(size=300) < 0.5)] = 1
    graph = sum(
        sparse.csr_array((np.ones(len(rows) * 5), (rows.repeat(5), rows[near.ravel()])), shape=(300, 300))
        for rows, near in (
            (data.views.rows(k), np.argsort(cdist(matrix, matrix), axis=1)[:, 1:6])
            for k, matrix in enumerate(data.views.matrices)
        )
    )
    parts, right = np.zeros(300, dtype=int), noisy(data.target, 0.1)
    starts = [*[noisy(merged, 0.05 * turn, turn) for turn in range(n_wrong)], right]
    found = refine(data.views.matrices, data.views, graph, starts, parts, 1.0, 0)
    assert clustering_accuracy(data.target, groups_of(found, data.views).argmax(axis=1)) > 0.95


def test_parts_keep_their_groups():
    data = make_views(200, (8, 8, 8, 8), n_clusters=2, separation=6.0, random_state=6)
    parts = np.arange(200) % 2
    mask = np.column_stack([parts == 0, parts == 0, parts == 1, parts == 1])
    views = data.views.hide(mask)
    labels = data.target + 2 * parts
    shares = groups_of(refined(views, noisy(data.target, 0.2) + 2 * parts, parts=parts), views)
    assert clustering_accuracy(labels, shares.argmax(axis=1)) > 0.97
    assert (shares.argmax(axis=1) // 2 == parts).all()


def test_a_walk_averages_over_neighbours():
    rows = np.random.default_rng(0).normal(size=(40, 3))
    graph = sparse.csr_array(sparse.diags_array(np.arange(40) > 0, dtype=float) @ knn_graph(rows, 4))
    transition = transition_of(graph)
    dense = graph.toarray() / np.maximum(graph.toarray().sum(axis=1, keepdims=True), 1e-300)
    shares = np.random.default_rng(1).uniform(size=(40, 2))
    np.testing.assert_allclose(walk(shares, transition), shares + dense @ shares + dense @ dense @ shares)


def test_a_fit_says_whether_it_has_refined_and_can_be_told_not_to(data):
    found, kept = (
        BridgedGRMF(4, selection="fixed", refine=flag, random_state=0).fit(data.views) for flag in (True, False)
    )
    assert found.refined_
    assert not kept.refined_
    means = [found.latent_points(found.embedding_)[found.labels_ == group].mean(axis=0) for group in range(4)]
    np.testing.assert_allclose(found.cluster_centers_, means, atol=1e-9)
    with pytest.raises(ParameterTypeError, match="refine"):
        BridgedGRMF(4, refine="yes").fit(data.views)


def test_images_gain_much(dataset):
    images = dataset("msrcv1_3v")  # a tenth of the samples lacks views
    model = BridgedGRMF(7, random_state=0)
    after, before = (
        clustering_accuracy(images.target, clone(model).set_params(refine=flag).fit(images.views).labels_)
        for flag in (True, False)
    )
    assert after > 0.88
    assert after > before + 0.04
