"""Scaling, neighbours, graphs and metrics against naive versions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from gapview import Views
from gapview.clusters import balancing
from gapview.errors import InputError
from gapview.graph.knn import knn_graph, modularity, neighbor_rule
from gapview.graph.neighbors import distance_to_distinct, nearest
from gapview.metrics import clustering_accuracy, clustering_scores, purity
from gapview.scaling import fit_scaling, row_lengths, scale_views, unit_rows

MATRICES = arrays(np.float64, st.tuples(st.integers(2, 12), st.integers(1, 6)), elements=st.floats(-100, 100, width=32))


@given(MATRICES)
def test_unit_rows(matrix):
    scaled = unit_rows(matrix)
    lengths = np.linalg.norm(scaled, axis=1)
    zero = ~matrix.any(axis=1)
    np.testing.assert_allclose(lengths[~zero], 1, atol=1e-12)
    np.testing.assert_array_equal(scaled[zero], 0)
    np.testing.assert_allclose(unit_rows(sparse.csr_array(matrix)).toarray(), scaled, atol=1e-12)


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_unit_rows_at_any_size(size):
    np.testing.assert_allclose(unit_rows(np.array([[3.0, -4.0]]) * size), [[0.6, -0.8]], rtol=1e-12)
    np.testing.assert_allclose(row_lengths(np.array([[3.0, -4.0]]) * size), 5 * size, rtol=1e-12)
    np.testing.assert_allclose(unit_rows(sparse.csr_array([[3.0, -4.0]]) * size).toarray(), [[0.6, -0.8]], rtol=1e-12)


@given(MATRICES)
def test_standard_features_and_back(matrix):
    scaling = fit_scaling("x", matrix, "standard")
    scaled = scaling.apply(matrix)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-7)
    spread = scaled.std(axis=0)
    assert np.all((np.abs(spread - 1) < 1e-6) | (spread < 1e-6))
    np.testing.assert_allclose(scaling.undo(scaled), matrix, atol=1e-9)


def test_undoing_unit_rows_gives_the_mean_length():
    matrix = np.array([[3.0, 4.0], [0.0, 1.0]])
    scaling = fit_scaling("x", matrix, "unit")
    np.testing.assert_allclose(np.linalg.norm(scaling.undo(scaling.apply(matrix)), axis=1), 3.0)
    both = fit_scaling("x", matrix, "standard+unit")
    assert np.isfinite(both.undo(both.apply(matrix))).all()


def test_scaling_leaves_the_input_alone():
    matrix = np.arange(6.0).reshape(3, 2)
    kept = matrix.copy()
    for scale in ("unit", "center+unit", "standard", "standard+view", "standard+unit", None):
        scale_views(Views([matrix]), scale)
    np.testing.assert_array_equal(matrix, kept)


def test_single_precision_stays_single():
    matrix = np.arange(6, dtype=np.float32).reshape(3, 2)
    for scale in ("unit", "center+unit", "standard", "standard+view", "standard+unit", None):
        assert scale_views(Views([matrix]), scale)[0][0].dtype == np.float32


def test_constant_once_scaled():
    with pytest.raises(InputError, match="constant once scaled"):
        scale_views(Views([np.array([[1.0, 2.0], [2.0, 4.0]])]), "unit")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_constant_once_scaled_but_for_rounding(dtype, as_sparse):
    ray = np.outer(np.random.RandomState(0).uniform(1, 9, size=50), [1.0, 3.0, 7.0]).astype(dtype)
    with pytest.raises(InputError, match="constant once scaled"):
        scale_views(Views([sparse.csr_array(ray) if as_sparse else ray]), "unit")


def test_large_constant_feature_does_not_hide_the_others():
    matrix = np.column_stack([np.full(4, 1.7e18), np.arange(4.0)])  # a time stamp beside a small number
    np.testing.assert_array_equal(scale_views(Views([matrix]), None)[0][0], matrix)


def test_scaling_near_the_end_of_the_type():
    scaling = fit_scaling("x", np.full((40, 1), 1.7e308) * np.linspace(0.9, 1, 40)[:, None], "unit")
    assert scaling.row_length == pytest.approx(1.7e308 * 0.95)
    ends = np.array([[1.7e308, 1.7e308], [-1.7e308, 1.0], [1.7e308, 1.7e308]])
    for scale in ("unit", "standard", "standard+unit"):
        with pytest.raises(InputError, match="'view_0' holds values so large .*Divide the view by its largest value"):
            scale_views(Views([ends]), scale)


@settings(max_examples=30)
@given(MATRICES, st.integers(1, 3), st.booleans())
def test_nearest_against_all_distances(matrix, k, as_sparse):
    k = min(k, len(matrix) - 1)
    distances, indices = nearest(sparse.csr_array(matrix) if as_sparse else matrix, k)
    table = np.linalg.norm(matrix[:, None] - matrix[None], axis=2)
    np.fill_diagonal(table, np.inf)
    np.testing.assert_allclose(distances, np.sort(table, axis=1)[:, :k], atol=1e-4)
    assert (indices != np.arange(len(matrix))[:, None]).all()


@settings(max_examples=30)
@given(MATRICES, st.integers(1, 3))
def test_graph_is_binary_symmetric_without_loops(matrix, k):
    k = min(k, len(matrix) - 1)
    graph = knn_graph(matrix, k).toarray()
    assert set(np.unique(graph)) <= {0.0, 1.0}
    np.testing.assert_array_equal(graph, graph.T)
    assert not graph.diagonal().any()
    lengths = np.linalg.norm(matrix, axis=1)
    if np.allclose(lengths[lengths > 0], 1, atol=1e-3, rtol=0):  # directions, among which rows of zeros have no place
        assert not graph[lengths == 0].any()
        k, graph = min(k, int((lengths > 0).sum()) - 1), graph[lengths > 0]
    assert (graph.sum(axis=1) >= k).all()


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_zeros_are_nobodys_neighbours_among_directions(as_sparse, dtype):
    """At distance 1 from every direction they would be nearer than most rows."""
    directions = unit_rows(np.random.RandomState(0).normal(size=(20, 60)).astype(dtype))
    matrix = np.insert(directions, [0, 7, 20], 0, axis=0)
    kept = matrix.any(axis=1)
    graph = knn_graph(sparse.csr_array(matrix) if as_sparse else matrix, 3).toarray()
    assert graph.dtype == dtype
    assert not graph[~kept].any()
    np.testing.assert_array_equal(graph[np.ix_(kept, kept)], knn_graph(directions, 3).toarray())


def test_rows_of_zeros_keep_their_place_among_other_rows():
    matrix = np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 5.0], [5.0, 5.1]])
    np.testing.assert_array_equal(knn_graph(matrix, 1).toarray()[0], [0, 1, 0, 0])


def test_graph_of_few_directions():
    few = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    np.testing.assert_array_equal(np.argwhere(knn_graph(few, 3).toarray()), [[1, 2], [2, 1]])
    assert knn_graph(few[[0, 1, 3]], 2).nnz == 0


@pytest.mark.parametrize("change", [lambda x: x + 1e8, lambda x: x * 1e160, lambda x: x * 1e-170, lambda x: x * 1e300])
def test_nearest_at_any_place_and_size(change):
    points = np.random.RandomState(0).normal(size=(200, 5))
    distances, indices = nearest(points, 3)
    found, places = nearest(change(points), 3)
    np.testing.assert_array_equal(places, indices)
    stretch = change(np.ones(1))[0] - change(np.zeros(1))[0]
    np.testing.assert_allclose(found, distances * stretch, rtol=1e-6)
    np.testing.assert_array_equal(nearest(change(points), 1, change(points[:5]))[1][:, 0], np.arange(5))


def test_nearest_of_sparse_points_at_any_size():
    values = np.random.RandomState(0).normal(size=(60, 30))
    points = sparse.csr_array(np.where(values > 0.5, values, 0))
    for size in (1e160, 1e-170):
        np.testing.assert_array_equal(nearest(points * size, 2)[1], nearest(points, 2)[1])


def test_nearest_of_nothing_and_beyond_the_type():
    distances, indices = nearest(np.eye(4), 2, np.empty((0, 4)))
    assert distances.shape == indices.shape == (0, 2)
    np.testing.assert_array_equal(nearest(np.array([[-1.7e308], [1.7e308]]), 1)[0], np.inf)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distance_to_distinct_skips_duplicates(dtype):
    rng = np.random.RandomState(0)
    rows = unit_rows(rng.normal(size=(30, 6)).astype(dtype))
    twice = unit_rows(np.repeat(rows, 3, axis=0) * rng.uniform(1, 9, size=(90, 1)).astype(dtype))
    np.testing.assert_allclose(distance_to_distinct(twice, rows), nearest(rows, 1)[0][:, 0], rtol=1e-4)
    assert np.isinf(distance_to_distinct(twice[:3], twice[:3])).all()


def test_neighbor_rule():
    assert [neighbor_rule(n, 10) for n in (10, 50, 60, 90, 140, 141, 10_000)] == [2, 2, 2, 5, 10, 10, 10]


def test_modularity_against_its_definition():
    rng = np.random.RandomState(0)
    weights = np.triu(rng.uniform(size=(8, 8)) * (rng.uniform(size=(8, 8)) < 0.5), 1)
    weights = weights + weights.T
    labels = rng.randint(3, size=8)
    degree, total = weights.sum(axis=1), weights.sum()
    expected = sum(
        (weights[i, j] - degree[i] * degree[j] / total) / total
        for i in range(8)
        for j in range(8)
        if labels[i] == labels[j]
    )
    assert modularity(sparse.csr_array(weights), labels) == pytest.approx(expected, abs=1e-12)
    assert modularity(sparse.csr_array(weights), np.zeros(8)) == pytest.approx(0, abs=1e-12)
    assert modularity(sparse.csr_array((3, 3)), np.zeros(3)) == 0.0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=20))
def test_accuracy_is_the_best_match(pairs):
    true, found = np.array(pairs).T
    best = max(np.mean(np.array(names)[found] == true) for names in itertools.permutations(range(4)))
    assert clustering_accuracy(true, found) == pytest.approx(best)
    expected = sum(np.bincount(true[found == label]).max() for label in set(found)) / len(true)
    assert purity(true, found) == pytest.approx(expected)
    assert clustering_accuracy(true, found) <= purity(true, found) + 1e-12


def test_nmi_divides_by_the_larger_entropy():
    scores = clustering_scores([0, 0, 1, 1], [0, 1, 2, 3])
    assert scores["nmi"] == pytest.approx(0.5)  # 1 bit shared, entropies of 1 and 2 bits
    assert clustering_scores([0, 1], [1, 0]) == {"accuracy": 1.0, "nmi": 1.0, "purity": 1.0, "ari": 1.0}


def test_metrics_refuse_unequal_lengths():
    with pytest.raises(InputError, match="same length"):
        clustering_scores([0, 1], [0])
    with pytest.raises(InputError, match="at least 1"):
        clustering_scores([], [])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_balancing_leaves_out_directions_of_rounding(dtype):
    rng = np.random.RandomState(0)
    flat = (rng.normal(size=(500, 3)) @ rng.normal(size=(3, 8))).astype(dtype)
    balance = balancing(flat)
    assert balance.shape == (8, 3)
    strong = np.linalg.svd(flat.astype(np.float64), compute_uv=False)[:3]
    np.testing.assert_allclose(np.linalg.norm(flat @ balance, axis=0), np.sqrt(strong), rtol=1e-3)
