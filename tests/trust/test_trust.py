"""Confidence of samples and agreement of views against versions written from their definitions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from gapview.errors import InputError
from gapview.graph.knn import knn_graph
from gapview.trust import sample_confidence, view_agreement
from problems import cases


def random_graph(rng, n_rows, share=0.3):
    weights = rng.uniform(size=(n_rows, n_rows)) * (rng.uniform(size=(n_rows, n_rows)) < share)
    weights[rng.randint(n_rows)] = 0  # somebody without neighbours
    return sparse.csr_array(weights)


# -- confidence ----------------------------------------------------------------------------------------------


@st.composite
def clusterings(draw):
    rng = np.random.RandomState(draw(st.integers(0, 2**16)))
    n_samples, n_groups, depth = draw(st.integers(2, 40)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    points, centers = rng.normal(size=(n_samples, depth)), rng.normal(size=(n_groups, depth))
    points[rng.randint(n_samples)] = 0
    graph = random_graph(rng, n_samples) if draw(st.booleans()) else None
    return points, centers, rng.randint(n_groups, size=n_samples), graph


def naive_confidence(points, centers, labels, graph):
    n_samples, distance = len(points), np.linalg.norm
    own = [distance(points[i] - centers[labels[i]]) for i in range(n_samples) if points[i].any()]
    confidence = np.zeros(n_samples)
    weights = np.zeros((n_samples, n_samples)) if graph is None else graph.toarray()
    np.fill_diagonal(weights, 0)
    walk = np.array([row / row.sum() if row.any() else np.eye(n_samples)[i] for i, row in enumerate(weights)])
    ends = np.linalg.matrix_power(walk, 4)
    for i in range(n_samples):
        claims = {}
        for group in set(labels.tolist()):
            reach = ends[i][labels == group].sum() if weights[i].any() else 1.0
            size = np.sum(labels == group)
            farther = size / (size - 1) if group == labels[i] and size > 1 else 1.0
            claims[group] = np.exp(-4 * farther * distance(points[i] - centers[group]) / np.mean(own)) * reach
        n_others = np.sum(labels == labels[i]) - 1
        enough = sum(math.comb(n_others, n) * 0.8**n * 0.2 ** (n_others - n) for n in range(4, n_others + 1))
        if points[i].any() and sum(claims.values()) > 0:
            confidence[i] = claims[labels[i]] / sum(claims.values()) * enough
    return confidence


@given(clusterings())
def test_confidence_is_what_its_definition_says(case):
    confidence = sample_confidence(*case)
    np.testing.assert_allclose(confidence, naive_confidence(*case), atol=1e-9)
    assert ((confidence >= 0) & (confidence <= 1)).all()
    assert (confidence[~case[0].any(axis=1)] == 0).all()


@given(clusterings(), st.integers(0, 100))
def test_confidence_does_not_depend_on_names_order_and_scale(case, seed):
    points, centers, labels, graph = case
    rng = np.random.RandomState(seed)
    order, names = rng.permutation(len(points)), rng.permutation(len(centers))
    shuffled = None if graph is None else 7 * graph[order][:, order]
    renamed = sample_confidence(3 * points[order], 3 * centers[np.argsort(names)], names[labels[order]], shuffled)
    np.testing.assert_allclose(renamed, sample_confidence(*case)[order], atol=1e-9)


def test_confidence_falls_from_the_centre_to_the_border():
    centers = np.array([[0.0, 1.0], [1.0, 1.0], [9.0, 1.0]])
    points = np.repeat(np.column_stack([np.linspace(0, 1, 11), np.ones(11)]), 100, axis=0)
    confidence = sample_confidence(points, centers, np.repeat([0, 1], [600, 500]))[::100]
    assert (np.diff(confidence[:6]) < 0).all()
    assert confidence[5] == pytest.approx(0.5, abs=0.01)
    assert (np.diff(confidence[6:]) > 0).all()


def test_confidence_at_its_limits():
    sizes = [80, 40]
    points, labels = np.repeat([[1.0, 0.0], [0.0, 1.0]], sizes, axis=0), np.repeat([0, 1], sizes)
    np.testing.assert_allclose(sample_confidence(points, np.eye(2), labels), 1)  # all on their centres
    np.testing.assert_allclose(sample_confidence(points, points[:1], 0 * labels), 1)  # one group
    # An empty group on top of another takes nothing from it
    np.testing.assert_allclose(sample_confidence(points, [[1.0, 0], [1.0, 0], [0, 1.0]], 2 * labels), 1)
    graph = sparse.csr_array(([1.0], ([0], [100])), shape=(120, 120))  # the only neighbour is of the other group
    assert sample_confidence(points, np.eye(2), labels, graph)[0] == 0


def test_small_groups_are_not_confident():
    sizes = [50, 12, 5, 4, 1]
    labels = np.repeat(range(5), sizes)
    confidence = sample_confidence(np.eye(5)[labels], np.eye(5), labels)
    np.testing.assert_allclose(confidence[np.cumsum(sizes) - 1], [1, 1, 0.8**4, 0, 0], atol=0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"centers": np.eye(3)}, "same number of columns"),
        ({"labels": [0, 1]}, "labels must give 3 whole numbers"),
        ({"labels": [0, 1, 2]}, "rows of centers, 0 to 1; got 2"),
        ({"labels": [0, 1, -1]}, "whole numbers from 0 on"),
        ({"labels": [0.0, 1.0, 1.0]}, "whole numbers from 0 on"),
        ({"points": [[np.nan, 0], [0, 1], [1, 0]]}, "must be finite"),
        ({"graph": np.eye(3)}, "SciPy sparse matrix of 3 × 3"),
        ({"graph": sparse.csr_array((2, 2))}, r"got a sparse matrix of shape \(2, 2\)"),
        ({"graph": -sparse.eye_array(3)}, "weights of at least 0"),
    ],
)
def test_confidence_refuses_what_does_not_fit(change, message):
    arguments = {"points": np.ones((3, 2)), "centers": np.eye(2), "labels": [0, 1, 1], "graph": None} | change
    with pytest.raises(InputError, match=message):
        sample_confidence(**arguments)


# -- agreement of views --------------------------------------------------------------------------------------


def naive_agreement(graphs, mask, labels):
    n_samples, n_views, n_groups = *mask.shape, max(labels) + 1
    votes = {}  # (view, sample) -> share of its neighbours in every group
    for k in range(n_views):
        rows, dense = np.flatnonzero(mask[:, k]), graphs[k].toarray()
        np.fill_diagonal(dense, 0)
        for place, sample in enumerate(rows):
            if dense[place].any():
                weights = [dense[place][labels[rows] == group].sum() for group in range(n_groups)]
                votes[k, sample] = np.array(weights) / dense[place].sum()
    share, chance = np.full((2, n_groups, n_views), np.nan)
    pairs = np.full((n_groups, n_views, n_views), np.nan)
    for group, k, other in itertools.product(range(n_groups), range(n_views), range(n_views)):
        members = [i for i in range(n_samples) if labels[i] == group and (k, i) in votes]
        both = [i for i in members if (other, i) in votes]
        if len(members) >= 2:
            share[group, k] = np.mean([votes[k, i][group] for i in members])
            chance[group, k] = (len(members) - 1) / (sum(view == k for view, _ in votes) - 1)
        if len(both) >= 2:
            pairs[group, k, other] = np.mean([votes[k, i] @ votes[other, i] for i in both])
    return share, chance, pairs


@given(cases())
def test_agreement_is_what_its_definition_says(case):
    rng = np.random.RandomState(case.seed)
    graphs = [random_graph(rng, n_rows) for n_rows in case.mask.sum(axis=0)]
    labels = rng.randint(case.n_clusters, size=len(case.mask))
    agreement = view_agreement(graphs, case.mask, labels)
    share, chance, pairs = naive_agreement(graphs, case.mask, labels)
    np.testing.assert_allclose(agreement.share, share, atol=1e-12)
    np.testing.assert_allclose(agreement.chance, chance)
    np.testing.assert_allclose(agreement.pair_share, pairs, atol=1e-12)


def test_chance_is_what_shuffled_groups_give():
    rng = np.random.RandomState(0)
    graphs, mask = [knn_graph(rng.normal(size=(40, 3)), 4) for _ in range(2)], np.ones((40, 2), dtype=bool)
    labels = np.repeat([0, 1], [10, 30])
    shuffled = [view_agreement(graphs, mask, rng.permutation(labels)) for _ in range(300)]
    expected = shuffled[0]
    np.testing.assert_allclose(np.mean([a.share for a in shuffled], axis=0), expected.chance, atol=0.02)
    mean_pair = np.mean([a.pair_share[:, 0, 1].mean() for a in shuffled])
    assert mean_pair == pytest.approx(expected.pair_chance[0, 1], abs=0.02)
    assert np.abs(np.mean([a.above_chance for a in shuffled], axis=0)).max() < 0.02


def test_agreement_at_its_limits():
    apart = knn_graph(np.array([[0.0], [0.1], [5.0], [5.1], [9.0], [9.1]]), 1)
    mask = np.ones((6, 2), dtype=bool)
    mask[4:, 1] = False
    agreement = view_agreement([apart, apart[:4][:, :4]], mask, [0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(agreement.above_chance, [[1, 1], [1, 1], [1, np.nan]])
    np.testing.assert_array_equal(agreement.pair_above_chance[2], [[1, np.nan], [np.nan, np.nan]])
    assert np.isnan(view_agreement([apart], mask[:, :1], [0] * 6).above_chance).all()  # one group: chance is certain
    with pytest.raises(InputError, match="column for each of the 1 graphs"):
        view_agreement([apart], mask, [0] * 6)
    with pytest.raises(InputError, match="The graph of view 1 must be a SciPy sparse matrix of 4 × 4"):
        view_agreement([apart, apart], mask, [0] * 6)
