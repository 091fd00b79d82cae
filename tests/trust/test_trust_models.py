"""What fitted models say of how far to trust them, the size of it, and real data."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import spearmanr

from gapview import GRMF, BridgedGRMF
from gapview.datasets import make_views, paired_split
from gapview.errors import GapviewWarning
from gapview.graph.knn import knn_graph
from gapview.metrics import clustering_accuracy
from gapview.trust import cluster_stability, feature_effects, sample_confidence, view_agreement


def joint_graph(graphs, mask):
    """Put the graphs of the views into one over all samples."""
    total = sparse.csr_array((len(mask), len(mask)))
    for k, graph in enumerate(graphs):
        rows, edges = np.flatnonzero(mask[:, k]), graph.tocoo()
        total = total + sparse.csr_array((edges.data, (rows[edges.row], rows[edges.col])), shape=total.shape)
    return total


@pytest.fixture(scope="module")
def made():
    return make_views(90, (8, 6), n_clusters=3, separation=2.5, missing_rate=0.3, random_state=0)


def same_agreement(first, second):
    return all(
        np.array_equal(getattr(first, name), getattr(second, name), equal_nan=True)
        for name in ("share", "chance", "pair_share", "pair_chance")
    )


METHODS = pytest.mark.parametrize(
    "make",
    [
        lambda **settings: GRMF(3, init="data", max_iter=1000, random_state=0, **settings),
        lambda **settings: BridgedGRMF(3, selection="fixed", random_state=0, **settings),
    ],
    ids=["GRMF", "BridgedGRMF"],
)


@METHODS
@pytest.mark.parametrize(("n_neighbors", "expected"), [(3, [3, 3]), (15, [15, 15]), ("auto", [10, 10])])
def test_agreement_asks_as_many_neighbors_as_the_fit(made, make, n_neighbors, expected):
    model = make(n_neighbors=n_neighbors).fit(made.views)
    scaled = [scaling.apply(matrix) for scaling, matrix in zip(model.scalings_, made.views.matrices, strict=True)]
    for counts in ([3, 3], [15, 15], [10, 10]):
        graphs = [knn_graph(matrix, count) for matrix, count in zip(scaled, counts, strict=True)]
        asked = view_agreement(graphs, made.views.mask, model.labels_)
        assert same_agreement(model.view_agreement(), asked) == (counts == expected)
    before = model.view_agreement()
    assert same_agreement(model.set_params(n_neighbors=1).view_agreement(), before)  # what comes next is for a new fit


@METHODS
def test_agreement_where_a_view_has_few_samples(made, make):
    mask = np.ones((90, 2), dtype=bool)
    mask[4:, 1] = False
    views = make_views(90, (8, 6), n_clusters=3, random_state=0).views.hide(mask)
    agreement = make().fit(views).view_agreement()
    scarce = np.isnan(agreement.share[:, 1])
    assert scarce.any()
    np.testing.assert_allclose(agreement.share[~scarce, 1], agreement.chance[~scarce, 1])  # all are neighbours


def test_agreement_asks_the_graph_of_the_user(made):
    rng = np.random.RandomState(0)
    graphs = [knn_graph(rng.normal(size=(n, 2)), 2) for n in made.views.mask.sum(axis=0)]
    model = GRMF(3, graph=graphs, init="data", max_iter=1000, random_state=0).fit(made.views)
    asked = view_agreement(graphs, made.views.mask, model.labels_)
    assert same_agreement(model.view_agreement(), asked)


def test_confidence_of_a_bridged_model_hears_its_graph(made):
    model = BridgedGRMF(3, selection="fixed", random_state=0).fit(made.views)
    coordinates = model.embedding_ @ model.balance_
    points = coordinates / np.linalg.norm(coordinates, axis=1, keepdims=True)
    heard = sample_confidence(points, model.cluster_centers_, model.labels_, model.graph_)
    np.testing.assert_allclose(model.confidence_, heard, atol=1e-9)
    assert np.abs(sample_confidence(points, model.cluster_centers_, model.labels_) - heard).max() > 0.01


@METHODS
def test_stability_does_not_repeat_what_the_fit_has_said(made, make):
    views = made.views.hide(np.ones((90, 2)))
    views.matrices[0][:3] = 0  # one of these samples has no other view
    with pytest.warns(GapviewWarning, match="nothing but zeros"):
        model = make(scale="unit").fit(views)
    assert model.cluster_stability(n_resamples=3, random_state=0).failures == ()  # a warning would be an error


def test_nothing_grows_with_the_square_of_the_samples():
    n_samples, rng = 20_000, np.random.RandomState(0)
    labels, columns = rng.randint(5, size=n_samples), rng.randint(n_samples, size=5 * n_samples)
    graph = sparse.csr_array((np.ones(5 * n_samples), columns, np.arange(0, 5 * n_samples + 1, 5)))
    points, mask = rng.normal(size=(n_samples, 5)), np.ones((n_samples, 2), dtype=bool)
    words = sparse.random_array((n_samples, 5000), density=1e-3, format="csr", rng=0)
    tracemalloc.start()
    sample_confidence(points, points[:5], labels, graph)
    view_agreement([graph, graph], mask, labels)
    cluster_stability(lambda rows, seed: labels[rows], labels, n_resamples=2)
    feature_effects([words], labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6  # a square of single bytes would be 400 MB, the words made dense 800 MB


@pytest.mark.data
@pytest.mark.parametrize("paired", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("name", "n_clusters"), [("handwritten_2v", 10), ("bbcsport_2v", 5)])
def test_confident_samples_are_right_more_often_and_stay_where_they_are(dataset, name, n_clusters, paired):
    data = dataset(name)
    views = paired_split(data.views, paired, random_state=0)
    model = GRMF(n_clusters, init="data", random_state=0).fit(views)
    points = model.embedding_ / np.linalg.norm(model.embedding_, axis=1, keepdims=True)
    graph = joint_graph(model.graphs_, views.mask)
    confidence = sample_confidence(points, model.cluster_centers_, model.labels_, graph)
    half = np.argsort(-confidence, kind="stable")[: len(confidence) // 2]
    accuracy = clustering_accuracy(data.target, model.labels_)
    gain = clustering_accuracy(data.target[half], model.labels_[half]) - accuracy
    assert gain > min(0.05, 0.9 * (1 - accuracy))  # five points, or nearly all that is left to gain

    def fit(rows, seed):
        return GRMF(n_clusters, init="data", random_state=seed).fit_predict(views[rows])

    stability = cluster_stability(fit, model.labels_, n_resamples=8, random_state=0)
    known = np.isfinite(stability.stays)
    assert spearmanr(confidence[known], stability.stays[known])[0] > 0.35
