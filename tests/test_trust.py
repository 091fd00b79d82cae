"""Confidence, stability, agreement of views and effect sizes against versions written from their definitions."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import spearmanr

from gapview import GRMF, Views
from gapview.datasets import make_views, paired_split
from gapview.errors import InputError, ParameterError
from gapview.graph import knn_graph
from gapview.metrics import clustering_accuracy
from gapview.trust import cluster_stability, feature_effects, sample_confidence, top_features, view_agreement
from problems import cases, hidden


def joint_graph(graphs, mask):
    """Put the graphs of the views into one over all samples."""
    total = sparse.csr_array((len(mask), len(mask)))
    for k, graph in enumerate(graphs):
        rows, edges = np.flatnonzero(mask[:, k]), graph.tocoo()
        total = total + sparse.csr_array((edges.data, (rows[edges.row], rows[edges.col])), shape=total.shape)
    return total


def random_graph(rng, n_rows, share=0.3):
    weights = rng.uniform(size=(n_rows, n_rows)) * (rng.uniform(size=(n_rows, n_rows)) < share)
    weights[rng.randint(n_rows)] = 0  # somebody without neighbours
    return sparse.csr_array(weights)


# -- confidence ----------------------------------------------------------------------------------------------


@st.composite
def clusterings(draw):
    rng = np.random.RandomState(draw(st.integers(0, 2**16)))
    n_samples, n_groups, depth = draw(st.integers(2, 25)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
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
            claims[group] = np.exp(-4 * distance(points[i] - centers[group]) / np.mean(own)) * reach
        if points[i].any() and sum(claims.values()) > 0:
            confidence[i] = claims[labels[i]] / sum(claims.values())
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
    points = np.column_stack([np.linspace(0, 1, 11), np.ones(11)])
    confidence = sample_confidence(points, centers, np.r_[np.zeros(6), np.ones(5)].astype(int))
    assert (np.diff(confidence[:6]) < 0).all()
    assert confidence[5] == pytest.approx(0.5)
    assert (np.diff(confidence[6:]) > 0).all()


def test_confidence_at_its_limits():
    points = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(sample_confidence(points, points[1:], [0, 0, 1]), 1)  # all on their centres
    np.testing.assert_array_equal(sample_confidence(points, points[:1], [0, 0, 0]), 1)  # one group
    # An empty group on top of another takes nothing from it
    np.testing.assert_array_equal(sample_confidence(points, points, [0, 0, 2]), 1)
    graph = sparse.csr_array(([1.0], ([0], [2])), shape=(3, 3))  # the only neighbour is of the other group
    assert sample_confidence(points, points[1:], [0, 0, 1], graph)[0] == 0


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


# -- stability -----------------------------------------------------------------------------------------------


def naive_stability(labels, draws):
    """Follow the definitions with sets, and try every one-to-one match."""
    n_groups = max(labels) + 1
    jaccards, stays, drawn = [], np.zeros(len(labels)), np.zeros(len(labels))
    for rows, found in draws:
        old = [{i for i in rows if labels[i] == group} for group in range(n_groups)]
        new = [{i for i, label in zip(rows, found, strict=True) if label == group} for group in range(n_groups)]
        jaccards.append([max(len(a & b) / len(a | b) for b in new if a | b) if a else np.nan for a in old])
        matches = itertools.permutations(new)
        best = max(sum(len(a & b) for a, b in zip(old, match, strict=True)) for match in matches)
        drawn[rows] += 1
        stays[0] += best  # several matches may be best: only the number of samples that stay is certain
    return np.array(jaccards), stays.sum(), drawn


@given(st.integers(0, 2**16), st.integers(1, 4), st.sampled_from([0.3, 0.8, 1.0]))
def test_stability_is_what_its_definition_says(seed, n_groups, share):
    rng = np.random.RandomState(seed)
    labels = np.r_[rng.randint(n_groups, size=rng.randint(1, 20)), n_groups - 1]
    draws, seeds = [], set()

    def fit(rows, seed):
        seeds.add(seed)
        draws.append((rows, np.random.RandomState(seed).randint(n_groups, size=len(rows))))
        return draws[-1][1]

    stability = cluster_stability(fit, labels, n_resamples=4, share=share, random_state=seed)
    jaccards, n_stays, drawn = naive_stability(labels, draws)
    np.testing.assert_allclose(stability.jaccards, jaccards)
    for group, mean in enumerate(stability.jaccard):
        known = jaccards[:, group][np.isfinite(jaccards[:, group])]
        np.testing.assert_allclose(mean, known.mean() if known.size else np.nan)
    np.testing.assert_array_equal(stability.n_drawn, drawn)
    assert np.nansum(stability.stays * drawn) == pytest.approx(n_stays)
    np.testing.assert_array_equal(np.isnan(stability.stays), drawn == 0)
    assert len(seeds) == 4
    assert all((np.diff(rows) > 0).all() and len(rows) == max(1, int(share * len(labels))) for rows, _ in draws)


def test_stability_of_groups_that_are_there_and_of_one_that_is_not():
    labels = np.repeat([0, 1, 2], 20)

    def fit(rows, seed):  # group 2 is split at random each time, the others are renamed
        split = 2 + np.random.RandomState(seed).randint(2, size=len(rows))
        return np.where(labels[rows] == 2, split, 1 - labels[rows])

    stability = cluster_stability(fit, labels, random_state=0)
    np.testing.assert_array_equal(stability.jaccard[:2], 1)
    np.testing.assert_array_equal(stability.stays[:40], 1)
    assert 0.5 <= stability.jaccard[2] < 0.75
    assert 0.5 <= stability.stays[40:].mean() < 0.75
    again = cluster_stability(fit, labels, random_state=0)
    np.testing.assert_array_equal(again.jaccards, stability.jaccards)
    assert (cluster_stability(fit, labels, random_state=1).jaccards != stability.jaccards).any()


def test_stability_of_a_model_with_repeated_samples():
    data = make_views(n_samples=60, n_clusters=3, missing_rate=0.3, random_state=0)
    views = data.views[np.repeat(np.arange(60), 2)]
    model = GRMF(n_clusters=3, init="data", random_state=0).fit(views)

    def fit(rows, seed):
        return GRMF(n_clusters=3, init="data", random_state=seed).fit_predict(views[rows])

    stability = cluster_stability(fit, model.labels_, n_resamples=4, random_state=0)
    assert (stability.jaccard > 0.9).all()
    assert stability.n_drawn.sum() == 4 * 96


def test_stability_refuses_what_does_not_fit():
    with pytest.raises(InputError, match="one label for each of the 3 samples it was given; got shape"):
        cluster_stability(lambda rows, seed: [0], [0, 0, 1, 1])
    with pytest.raises(ParameterError, match="share must be a finite number above 0 and at most 1"):
        cluster_stability(lambda rows, seed: rows, [0, 1], share=0)
    with pytest.raises(ParameterError, match="n_resamples"):
        cluster_stability(lambda rows, seed: rows, [0, 1], n_resamples=0)


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


# -- features that set groups apart --------------------------------------------------------------------------


def naive_effects(matrix, labels, n_groups):
    sizes = np.full((n_groups, matrix.shape[1]), np.nan)
    for group, j in itertools.product(range(n_groups), range(matrix.shape[1])):
        inside, outside = matrix[labels == group, j], matrix[labels != group, j]
        degrees = len(matrix) - 2
        if len(inside) and len(outside) and degrees >= 2:
            spread = np.sqrt((len(inside) * inside.var() + len(outside) * outside.var()) / degrees)
            sizes[group, j] = (inside.mean() - outside.mean()) / spread * (1 - 3 / (4 * degrees - 1))
    return sizes


@given(cases())
def test_effects_are_what_their_definition_says(case):
    labels = np.random.RandomState(case.seed).randint(case.n_clusters, size=len(case.mask))
    whole = feature_effects(hidden(case.matrices, case.mask), labels)
    for k, effects in enumerate(whole):
        rows = case.mask[:, k]
        expected = naive_effects(case.matrices[k][rows], labels[rows], labels.max() + 1)
        np.testing.assert_allclose(effects.sizes, expected, rtol=1e-7, atol=1e-9)
        for group in np.flatnonzero(np.isfinite(effects.mean_inside[:, 0])):
            inside, outside = rows & (labels == group), rows & (labels != group)
            np.testing.assert_allclose(effects.mean_inside[group], case.matrices[k][inside].mean(axis=0), rtol=1e-7)
            np.testing.assert_allclose(effects.mean_outside[group], case.matrices[k][outside].mean(axis=0), rtol=1e-7)


@given(cases(), st.sampled_from([np.float32, np.float64]))
def test_effects_of_sparse_views_are_those_of_dense_ones(case, dtype):
    labels = np.random.RandomState(case.seed).randint(case.n_clusters, size=len(case.mask))
    dense = [np.where(np.abs(m) > np.median(np.abs(m)), m, 0).astype(dtype) for m in case.matrices]
    views = Views([sparse.csr_array(matrix) for matrix in dense], mask=case.mask)
    same = feature_effects(Views(dense, mask=case.mask), labels)
    for ours, theirs in zip(feature_effects(views, labels), same, strict=True):
        np.testing.assert_allclose(ours.sizes, theirs.sizes, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(ours.mean_outside, theirs.mean_outside, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize(("factor", "shift"), [(1e-300, 0), (1e300, 0), (-3, 0), (1, 1e6)])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_effects_do_not_depend_on_units(factor, shift, as_sparse):
    rng = np.random.RandomState(0)
    matrix, labels = rng.normal(size=(30, 4)), rng.randint(3, size=30)
    changed = sparse.csr_array(matrix * factor + shift) if as_sparse else matrix * factor + shift
    expected = np.sign(factor) * feature_effects([matrix], labels)[0].sizes
    np.testing.assert_allclose(feature_effects([changed], labels)[0].sizes, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_effects_at_their_limits(as_sparse):
    n_samples = 2000
    labels = np.r_[0:3, np.random.RandomState(0).randint(5, size=n_samples - 3)]
    matrix = np.column_stack(
        [np.full(n_samples, 0.1), np.zeros(n_samples), np.where(labels == 1, 0.3, 0.1), np.arange(n_samples)]
    )
    views = Views([sparse.csr_array(matrix) if as_sparse else matrix, matrix, matrix], mask=np.ones((n_samples, 3)))
    mask = np.column_stack([np.ones(n_samples), labels == 0, np.arange(n_samples) < 3])
    first, second, third = feature_effects(views.hide(mask), labels)
    np.testing.assert_array_equal(first.sizes[:, :2], 0)
    assert first.sizes[1, 2] == np.inf
    assert np.isfinite(first.sizes[0]).all()
    assert np.isnan(second.sizes).all()  # the view knows one group alone
    assert np.isnan(third.sizes).all()  # three samples
    np.testing.assert_array_equal(third.mean_inside[:, 3], [0, 1, 2, np.nan, np.nan])
    strongest = [row for row in top_features([first, second, third], 2) if row.cluster == 1]
    assert [(row.feature, row.effect) for row in strongest] == [(2, np.inf), (3, first.sizes[1, 3])]


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize(("n_samples", "n_groups", "seed"), [(100, 3, 2), (2000, 5, 1), (20_000, 3, 0)])
def test_effects_without_any_spread_are_infinite_in_spite_of_rounding(n_samples, n_groups, seed, as_sparse):
    labels = np.random.RandomState(seed).randint(n_groups, size=n_samples)
    column = np.where(labels == 1, 0.3, 0.1)[:, None]
    effects = feature_effects([sparse.csr_array(column) if as_sparse else column], labels)[0]
    assert effects.sizes[1] == np.inf
    np.testing.assert_allclose(effects.mean_inside[:2, 0], [0.1, 0.3], rtol=1e-15)


def test_effects_of_values_that_are_stored_in_parts():
    parts = sparse.csr_array(([1.0, 2.0, 4.0, 9.0, 7.0], [0, 0, 0, 0, 0], [0, 2, 3, 4, 5]), shape=(4, 1))
    whole = feature_effects([np.array([[3.0], [4.0], [9.0], [7.0]])], [0, 0, 1, 1])[0].sizes
    np.testing.assert_allclose(feature_effects([parts], [0, 0, 1, 1])[0].sizes, whole)


def test_top_features_have_the_names_of_the_data():
    rng = np.random.RandomState(0)
    labels = np.repeat([0, 1, 2], 20)
    frame = pd.DataFrame(
        rng.normal(size=(60, 3)), columns=["age", "height", "weight"], index=[f"s{i}" for i in range(60)]
    )
    frame.loc[labels == 1, "height"] -= 5
    frame.loc[labels == 2, "weight"] += 5
    scans = pd.DataFrame(rng.normal(size=(60, 2)) + labels[:, None], index=frame.index)
    rows = top_features(feature_effects({"body": frame, "scans": scans}, labels), n_top=1)
    assert [(row.cluster, row.view) for row in rows] == [(g, v) for g in range(3) for v in ("body", "scans")]
    assert [rows[2].feature, rows[4].feature] == ["height", "weight"]
    assert rows[2].effect < -2 < 2 < rows[4].effect
    assert list(pd.DataFrame(rows).columns) == [
        "cluster", "view", "feature", "effect", "mean_inside", "mean_outside"
    ]  # fmt: skip
    assert [type(row.feature) for row in top_features(feature_effects([np.asarray(frame)], labels), 1)] == [int] * 3
    with pytest.raises(ParameterError, match="n_top must be an integer of at least 1; got 0"):
        top_features([], 0)
    with pytest.raises(InputError, match="labels must give 60 whole numbers"):
        feature_effects([frame], labels[:-1])


# -- size, and real data -------------------------------------------------------------------------------------


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
