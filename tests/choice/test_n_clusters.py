"""The suggested number of clusters: right on clear groups, near on real ones, however the samples are given."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import eigsh

from gapview.choice import n_clusters as counting
from gapview.choice.n_clusters import ClusterCount, default_counts, suggest_n_clusters
from gapview.clusters import Clustering
from gapview.datasets import load_digits_views, make_views, paired_split
from gapview.errors import InputError, ParameterError, ParameterTypeError, SolutionError
from gapview.graph.knn import knn_graph, modularity, neighbor_rule
from gapview.scaling import scale_views


def clear_groups(n_clusters, n_samples=150, seed=0):
    data = make_views(n_samples, [20], n_clusters=n_clusters, separation=6.0, random_state=seed)
    points = data.views.matrices[0]
    return points, knn_graph(points, 5)


def touching_groups(n_clusters, spread=3.0, seed=0):
    rng = np.random.RandomState(seed)
    centers = np.repeat(8 * np.eye(n_clusters, n_clusters + 2), 60, axis=0)
    points = centers + rng.normal(scale=spread, size=centers.shape)
    return points, knn_graph(points, 5)


@pytest.mark.parametrize("n_clusters", [2, 3, 5, 8, 12])
def test_clear_groups_are_counted(n_clusters):
    points, graph = clear_groups(n_clusters)
    found = suggest_n_clusters(points, [graph], random_state=0)
    assert found.suggested == n_clusters


@pytest.mark.parametrize("seed", range(3))
def test_stability_keeps_modularity_from_cutting_groups_up(seed):
    points, graph = touching_groups(3, seed=seed)
    found = suggest_n_clusters(points, [graph], range(2, 13), random_state=0)
    assert found.counts[np.argmax(found.modularity)] > 3
    assert not found.flawless.any()
    assert found.suggested == 3


def test_flawless_groups_go_first():
    points, graph = clear_groups(2)  # two arcs on the circle: their halves come back too, and raise the modularity
    found = suggest_n_clusters(points, [graph], random_state=0)
    assert found.counts[np.argmax(found.score)] > 2
    assert found.counts[found.flawless].tolist() == [2]
    assert found.suggested == 2
    assert "well separated" in found.reason()


def test_modularity_keeps_stability_from_staying_coarse():
    # Three far groups, each of three near ones: the coarse division comes back just as well
    rng = np.random.RandomState(0)
    far = np.kron(np.eye(3), np.ones((3, 1)))
    near = np.tile(np.eye(3), (3, 1))
    centers = np.column_stack([3 * far, near])
    points = np.repeat(centers, 20, axis=0) + rng.normal(scale=0.1, size=(180, 6))
    found = suggest_n_clusters(points, [knn_graph(points, 5)], range(2, 13), random_state=0)
    assert found.stability[found.counts == 3] > 0.99
    assert found.suggested == 9


def test_evidence_is_what_it_says():
    points, graph = clear_groups(4, n_samples=60)
    wide = knn_graph(points, 20)
    found = suggest_n_clusters(points, [graph, wide], [5, 2, 4, 4], random_state=0)
    assert found.counts.tolist() == [2, 4, 5]
    np.testing.assert_allclose(found.score, found.modularity**3 * found.stability)
    target = make_views(60, [20], n_clusters=4, separation=6.0, random_state=0).target
    both = (modularity(graph, target) + modularity(wide, target)) / 2  # clear groups: k-means finds the true ones
    assert found.modularity[1] == pytest.approx(both)
    assert ((found.stability >= 0) & (found.stability <= 1)).all()
    most = 1 - 1 / found.counts
    assert found.flawless.tolist() == (found.modularity * found.stability >= 0.95 * most).tolist()
    assert (found.suggested, found.runner_up) == (4, 5)


def test_stability_is_the_jaccard_similarity_of_groups(monkeypatch):
    """Against the definition, with sets, for resamples whose centres are known."""
    centers = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    again = np.array([0, 0, 1, 1, 1, 2])
    points, labels = centers[again], np.array([0, 0, 0, 0, 1, 2])
    monkeypatch.setattr(counting, "cluster_rows", lambda *_, **__: Clustering(labels, centers))
    groups, new = ([set(np.flatnonzero(given == g)) for g in range(3)] for given in (labels, again))
    expected = sum(len(old) * max(len(old & other) / len(old | other) for other in new) for old in groups) / 6
    assert counting._stability(points, labels, 3, np.random.RandomState(0)) == pytest.approx(expected)


def test_the_same_seed_gives_the_same_evidence():
    points, graph = clear_groups(5)
    first, second, other = (suggest_n_clusters(points, [graph], range(4, 9), random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.score, second.score)
    assert not np.array_equal(first.score, other.score)
    assert first.suggested == other.suggested == 5


def test_order_of_samples_and_scale_do_not_matter():
    points, graph = touching_groups(4)
    expected = suggest_n_clusters(points, [graph], range(2, 9), random_state=0)
    order = np.random.RandomState(1).permutation(len(points))
    moved = suggest_n_clusters(points[order], [graph[order][:, order]], range(2, 9), random_state=0)
    assert moved.suggested == expected.suggested == 4
    # Powers of two change no digit, so that every draw and every distance is the same
    scaled = suggest_n_clusters(1024 * points, [0.25 * graph], range(2, 9), random_state=0)
    np.testing.assert_allclose(scaled.score, expected.score)


def test_default_range_follows_the_number_of_samples():
    assert default_counts(90) == range(2, 21)
    assert default_counts(9) == range(2, 4)
    with pytest.raises(InputError, match=r"at least 9 samples; there are 8. Give the number"):
        default_counts(8)
    points, graph = clear_groups(3, n_samples=24)
    assert suggest_n_clusters(points, [graph], random_state=0).counts.tolist() == list(range(2, 9))


@pytest.mark.parametrize(
    ("counts", "error", "message"),
    [
        ([], ParameterError, "at least two different integers"),
        ([3, 3], ParameterError, r"at least two different integers .* got \[3, 3\]"),
        ([1, 2], ParameterError, "at least 2; got 1"),
        (range(2, 40), ParameterError, "half the samples, .* here 30; got up to 39"),
        ([2.5, 3], ParameterTypeError, "integer"),
        ([True, 3], ParameterTypeError, "integer"),
        (7, ParameterTypeError, "got 7"),
        ("auto", ParameterTypeError, "got 'auto'"),
    ],
)
def test_bad_ranges_are_refused(counts, error, message):
    points, graph = clear_groups(3, n_samples=60)
    with pytest.raises(error, match=message):
        suggest_n_clusters(points, [graph], counts, random_state=0)


def test_graphs_that_do_not_fit_are_refused():
    points, graph = clear_groups(3, n_samples=60)
    for graphs in ([], [graph, graph[:50][:, :50]]):
        with pytest.raises(InputError, match=r"shape \(60, 60\)"):
            suggest_n_clusters(points, graphs, random_state=0)
    with pytest.raises(SolutionError, match="modularity above 0"):
        suggest_n_clusters(points, [sparse.csr_array((60, 60))], range(2, 5), random_state=0)


def test_samples_without_a_representation_and_repeated_points():
    points, graph = clear_groups(3, n_samples=60)
    points[:4] = 0
    assert suggest_n_clusters(points, [graph], range(2, 7), random_state=0).suggested in (
        3,
        4,
    )  # the empty ones: a group
    few = np.repeat(np.eye(3), 10, axis=0)  # three distinct points, asked for up to six groups
    assert suggest_n_clusters(few, [knn_graph(few, 5)], range(2, 7), random_state=0).suggested == 3


@pytest.mark.parametrize(
    ("modularities", "stabilities", "expected"),
    [
        ((0.6, 0.5), (0.9, 0.8), "more of the graph .*0.600 against 0.500.*, and .* better .*0.90 against 0.80"),
        ((0.6, 0.5), (0.8, 0.9), "more of the graph .*0.600 against 0.500.* outweighs that .* less well"),
        ((0.5, 0.51), (0.9, 0.5), "come back better .*0.90 against 0.50.* outweighs that less of the graph"),
        ((0.74, 0.79), (1.0, 0.9), "well separated .*0.740 against 0.790.*1.00 against 0.90"),
    ],
)
def test_reason_says_what_decided(modularities, stabilities, expected):
    found = ClusterCount(np.array([4, 5]), np.array(modularities), np.array(stabilities))
    assert found.suggested == 4
    text = found.reason().replace("\n", " ")
    assert text.startswith("4 clusters rather than 5: ")
    assert re.search(expected, text)
    for other in (4, 6):
        with pytest.raises(ParameterError, match=r"not suggested \(5\)"):
            found.reason(other)


def test_equal_scores_suggest_the_fewest():
    found = ClusterCount(np.array([2, 3, 4]), np.full(3, 0.3), np.full(3, 0.5))
    assert (found.suggested, found.runner_up) == (2, 3)


# -- real data -----------------------------------------------------------------------------------------------


def nearly_complete(data):
    """Return points and the graph of what was measured, nine tenths of the samples having both views."""
    order = np.random.RandomState(0).permutation(len(data.views)) if data.folds is None else data.folds[0]
    views = paired_split(data.views, 0.9, order=order)
    n_samples = views.n_samples
    scaled, _ = scale_views(views, "standard+unit")
    total = sparse.csr_array((n_samples, n_samples))
    for k, matrix in enumerate(scaled):
        rows = views.rows(k)
        edges = normalized(knn_graph(matrix, neighbor_rule(n_samples, math.isqrt(n_samples)))).tocoo()
        total = total + sparse.csr_array((edges.data, (rows[edges.row], rows[edges.col])), shape=total.shape)
    graph = normalized(total)
    values, vectors = eigsh(graph, 20, v0=np.ones(n_samples))
    return vectors * np.sqrt(np.maximum(values, 0)), graph


def normalized(graph):
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    scale = sparse.diags_array(1 / np.sqrt(np.where(degrees > 0, degrees, 1)))
    return sparse.csr_array(scale @ graph @ scale)


def test_digits_are_about_ten():
    data = load_digits_views()
    points, graph = nearly_complete(data)
    assert abs(suggest_n_clusters(points, [graph], random_state=0).suggested - 10) <= 1


@pytest.mark.data
@pytest.mark.parametrize("name", ["handwritten_2v", "bbcsport_2v", "buaa90"])
def test_real_groups_are_counted_within_one(dataset, name):
    data = dataset(name)
    points, graph = nearly_complete(data)
    found = suggest_n_clusters(points, [graph], random_state=0)
    assert abs(found.suggested - len(np.unique(data.target))) <= 1
