"""BipartiteSpectral: the graph and its spectrum against dense versions, objective, gaps, anchors, new samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, sparse

from gapview import Views
from gapview.baselines import BipartiteSpectral
from gapview.baselines.bipartite import anchor_links, fuse_graphs, singular_vectors
from gapview.baselines.partition import view_weights
from gapview.datasets import make_views
from gapview.errors import ParameterError
from gapview.metrics import clustering_accuracy
from gapview.scaling import unit_rows
from problems import random_mask


def naive_links(matrix, anchors, n_neighbors, samples, n_samples):
    """The weights of links sample by sample, in a dense matrix."""
    links = np.zeros((n_samples, len(anchors)))
    for row, sample in zip(matrix, samples, strict=True):
        distances = np.linalg.norm(anchors - row, axis=1)
        near = np.argsort(distances, kind="stable")[:n_neighbors]
        weights = np.exp(-(distances[near] ** 2) / (2 * distances[near].max() ** 2))
        links[sample, near] = weights / weights.sum()
    return links


def naive_fusion(graphs, n_vectors, exponent, n_rounds):
    """Eigenvectors of the whole graph of samples and anchors, and the trace of every view's Laplacian."""
    n_samples, n_anchors = graphs[0].shape
    traces = [1.0] * len(graphs)
    objective = []
    for _ in range(n_rounds):
        weights = view_weights(np.array(traces), exponent)
        fused = sum(weight**exponent * graph for weight, graph in zip(weights, graphs, strict=True))
        whole = np.block([[np.zeros((n_samples, n_samples)), fused], [fused.T, np.zeros((n_anchors, n_anchors))]])
        vectors = linalg.eigh(whole)[1][:, -n_vectors:]
        traces = []
        for graph in graphs:
            own = np.block([[np.zeros((n_samples, n_samples)), graph], [graph.T, np.zeros((n_anchors, n_anchors))]])
            traces.append(np.trace(vectors.T @ (np.eye(len(own)) - own) @ vectors) + 0.01 * n_vectors)
        objective.append(weights**exponent @ traces)
    return vectors[:n_samples], np.array(objective)


def random_graphs(seed):
    rng = np.random.RandomState(seed)
    n_samples, n_anchors = rng.randint(20, 40), rng.randint(5, 12)
    mask = random_mask(rng, n_samples, 2, rng.choice([1.0, 0.6]), 5)
    graphs = []
    for k in range(2):
        rows, anchors = rng.normal(size=(n_samples, 4)), rng.normal(size=(n_anchors, 4))
        links = naive_links(rows[mask[:, k]], anchors, 4, np.flatnonzero(mask[:, k]), n_samples)
        sums = links.sum(axis=0)
        graphs.append(links * np.where(sums > 0, 1 / np.sqrt(np.where(sums > 0, sums, 1)), 0))
    return graphs


@given(st.integers(0, 2**16), st.integers(1, 6))
@settings(max_examples=40)
def test_links_against_a_naive_version(seed, n_neighbors):
    rng = np.random.RandomState(seed)
    matrix, anchors = rng.normal(size=(15, 3)), rng.normal(size=(8, 3))
    samples = np.sort(rng.permutation(20)[:15])
    links = anchor_links(matrix, anchors, n_neighbors, samples, 20)
    np.testing.assert_allclose(links.toarray(), naive_links(matrix, anchors, n_neighbors, samples, 20), atol=1e-12)
    sums = np.asarray(links.sum(axis=1)).ravel()
    np.testing.assert_allclose(sums, np.isin(np.arange(20), samples))


def test_links_to_anchors_that_coincide_with_the_sample():
    links = anchor_links(np.ones((2, 3)), np.ones((4, 3)), 2, np.arange(2), 2).toarray()
    np.testing.assert_allclose(links[links > 0], 0.5)


@given(st.integers(0, 2**16), st.sampled_from([1.5, 3.0, 5.0]))
@settings(max_examples=40)
def test_the_spectrum_against_the_whole_graph(seed, exponent):
    graphs = random_graphs(seed)
    found = fuse_graphs([sparse.csr_array(graph) for graph in graphs], 3, exponent, 6, 0.0)
    vectors, objective = naive_fusion(graphs, 3, exponent, 6)
    np.testing.assert_allclose(found.objective, objective, rtol=1e-6)
    assert (np.diff(found.objective) <= 1e-9 * found.objective[:-1]).all()
    ours, theirs = (linalg.qr(each, mode="economic")[0] for each in (found.vectors, vectors))
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-4)  # the same space


@given(st.integers(0, 2**16))
@settings(max_examples=20)
def test_singular_vectors_against_lapack(seed):
    rng = np.random.RandomState(seed)
    matrix = rng.uniform(size=(30, 7)) * (rng.uniform(size=(30, 7)) < 0.5)
    left, values, right = singular_vectors(sparse.csr_array(matrix), 4)
    np.testing.assert_allclose(values, linalg.svdvals(matrix)[:4], rtol=1e-6)
    np.testing.assert_allclose(left.T @ left, np.eye(4), atol=1e-6)
    np.testing.assert_allclose(matrix @ right, left * values, atol=1e-9)


def test_singular_values_of_zero():
    left, values, _ = singular_vectors(sparse.csr_array(np.outer(np.arange(1.0, 6), [1.0, 2.0, 0.0])), 3)
    assert values[0] > 1
    assert np.isfinite(left).all()
    np.testing.assert_array_equal(left[:, 1:], 0)


@given(st.integers(0, 2**16))
@settings(max_examples=20)
def test_the_objective_never_rises_and_weights_sum_to_1(seed):
    rng = np.random.RandomState(seed)
    n_samples, n_views = rng.randint(15, 60), rng.randint(1, 4)
    matrices = [rng.normal(size=(n_samples, rng.randint(2, 6))) for _ in range(n_views)]
    mask = random_mask(rng, n_samples, n_views, rng.choice([1.0, 0.7, 0.4]), 3)
    model = BipartiteSpectral(3, tol=0, max_iter=10, random_state=seed).fit(matrices, mask=mask)
    assert (np.diff(model.objective_) <= 1e-9 * np.abs(model.objective_[:-1])).all()
    assert model.view_weights_.sum() == pytest.approx(1)
    assert len({len(anchors) for anchors in model.anchors_}) == 1


def test_training_samples_are_placed_where_the_fit_has_them():
    data = make_views(150, (6, 5, 4), n_clusters=3, separation=2, missing_rate=0.4, random_state=0)
    model = BipartiteSpectral(3, random_state=0).fit(data.views)
    np.testing.assert_array_equal(model.predict(data.views), model.labels_)


def test_samples_of_one_view_each_are_joined_by_the_anchors():
    """Most samples have a single view; groups still cover both views."""
    data = make_views(300, (8, 8), n_clusters=3, separation=4, random_state=0)
    mask = np.ones((300, 2), dtype=bool)
    order = np.random.RandomState(0).permutation(300)
    mask[order[:120], 0] = mask[order[120:240], 1] = False
    model = BipartiteSpectral(3, random_state=0).fit(data.views.matrices, mask=mask)
    assert clustering_accuracy(data.target, model.labels_) > 0.95
    new = make_views(300, (8, 8), n_clusters=3, separation=4, random_state=0).views.matrices
    labels = model.predict([new[0], None])
    assert clustering_accuracy(data.target, labels) > 0.95


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_places_agree_also_if_the_iterations_have_not_converged(max_iter):
    views = make_views(150, (6, 5), n_clusters=3, separation=2, missing_rate=0.4, random_state=0).views
    model = BipartiteSpectral(3, weight_exponent=1.2, max_iter=max_iter, tol=0, random_state=0).fit(views)
    np.testing.assert_array_equal(model.predict(views), model.labels_)


@pytest.mark.parametrize(("n_anchors", "expected"), [("auto", 12), (5, 5), (500, 50)])
def test_the_number_of_anchors(n_anchors, expected):
    views = make_views(50, n_clusters=3, random_state=0).views
    model = BipartiteSpectral(3, n_anchors=n_anchors, random_state=0).fit(views)
    assert [len(anchors) for anchors in model.anchors_] == [expected] * 2


def test_anchors_of_many_samples_come_from_some_of_them():
    """30 samples per anchor are drawn; a view that few samples have is among them."""
    rng = np.random.RandomState(0)
    target = rng.randint(3, size=4000)
    matrices = [
        np.eye(3, 6)[target] * 5 + rng.normal(size=(4000, 6)),
        np.eye(3, 4)[target] * 5 + rng.normal(size=(4000, 4)),
    ]
    mask = np.ones((4000, 2), dtype=bool)
    mask[60:, 1] = False
    model = BipartiteSpectral(3, n_anchors=20, random_state=0).fit(Views(matrices, mask=mask))
    assert clustering_accuracy(target, model.labels_) > 0.95
    assert clustering_accuracy(target, model.predict([None, matrices[1]])) > 0.9


def test_bad_parameters():
    views = make_views(30, n_clusters=2, random_state=0).views
    for setting in ({"n_anchors": 0}, {"n_anchors": 1}, {"n_neighbors": 1}, {"weight_exponent": 1.0}, {"tol": -1.0}):
        with pytest.raises(ParameterError, match=next(iter(setting))):
            BipartiteSpectral(2, **setting).fit(views)


@pytest.mark.data
def test_real_data(dataset):
    data = dataset("handwritten_2v")
    model = BipartiteSpectral(10, random_state=0).fit(data.views)
    assert 0.65 < clustering_accuracy(data.target, model.labels_) < 0.95
    scaled = [unit_rows(matrix) for matrix in data.views.matrices]
    assert all(anchors.shape == (141, matrix.shape[1]) for anchors, matrix in zip(model.anchors_, scaled, strict=True))
