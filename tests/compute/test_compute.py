"""Products, sparse matrices and first centres of k-means, against plain versions."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from array_api_compat import array_namespace
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.cluster import KMeans, kmeans_plusplus

from gapview.compute import engine
from gapview.compute.arrays import divide_weights, drained, expand_graph, graph_like, host, host_graph
from gapview.compute.engine import NumpyEngine
from gapview.compute.kmeans import kmeans_of_array, kmeans_plus_plus
from gapview.factorization.problem import Problem, ViewTerm, build_problem
from gapview.factorization.sweep import Layout, array_sweep, columns_of, tied_consensus


@given(st.integers(1, 400), st.integers(1, 12), st.integers(1, 6), st.integers(1, 3000), st.integers(0, 2**32 - 1))
def test_products_in_pieces(n_rows: int, n_features: int, n_columns: int, small: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, basis = random.normal(size=(n_rows, n_features)), random.normal(size=(n_features, n_columns))
    codes = random.normal(size=(n_columns, n_rows + 7))[:, 3:-4]  # some columns of a longer array, as in the loop
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_SMALL", small)
        patch.setattr(engine, "_FEWEST_ADDED", 8)
        np.testing.assert_allclose(NumpyEngine().product(rows, basis), rows @ basis, atol=1e-12)
        np.testing.assert_allclose(NumpyEngine().inner(codes, rows), codes @ rows, atol=1e-12)
        turned = np.asfortranarray(rows)
        np.testing.assert_allclose(NumpyEngine().product(turned, basis), rows @ basis, atol=1e-12)


def test_products_are_computed_in_pieces_that_blas_does_not_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, basis = np.ones((1500, 240)), np.ones((240, 10))
    seen: list[tuple[int, ...]] = []
    matmul = np.matmul
    monkeypatch.setattr(np, "matmul", lambda a, b, **more: seen.append(a.shape) or matmul(a, b, **more))
    assert (NumpyEngine().product(rows, basis) == 240).all()
    assert (NumpyEngine().inner(np.ones((10, 1500)), rows) == 1500).all()
    assert seen == [(4, 375, 240), (0, 240), (4, 10, 375)]


def _graph(random: np.random.Generator, n: int) -> sparse.csr_array:
    return sparse.csr_array(np.where(random.random((n, n)) < 0.4, random.random((n, n)), 0.0))


def _kinds(graph: sparse.csr_array, *, tensors: bool) -> Any:
    if not tensors:
        return graph
    torch = pytest.importorskip("torch")
    return graph_like(graph, torch.zeros(1, dtype=torch.float64))


@pytest.mark.parametrize("tensors", [False, True])
def test_arithmetic_of_graphs(tensors: bool) -> None:
    random = np.random.default_rng(0)
    first, second = _graph(random, 6), _graph(random, 6)
    own, other = _kinds(first, tensors=tensors), _kinds(second, tensors=tensors)
    np.testing.assert_allclose(host_graph(own + other).toarray(), (first + second).toarray())
    divisors = random.random(6) + 1, random.random(6) + 1
    like_own = [array_namespace(getattr(own, "values", divisors[0])).asarray(each) for each in divisors]
    quotient = first.toarray() / np.outer(*divisors)
    np.testing.assert_allclose(host_graph(divide_weights(own, *like_own)).toarray(), quotient)
    np.testing.assert_array_equal(host_graph(own).toarray(), first.toarray())
    overwritten = divide_weights(own, *like_own, 0.5, overwrite=True)
    np.testing.assert_allclose(host_graph(overwritten).toarray(), quotient / 2)
    assert tensors or np.shares_memory(overwritten.data, own.data)
    samples = np.array([0, 2, 3, 5, 8, 9])
    expected = np.zeros((11, 11))
    expected[np.ix_(samples, samples)] = second.toarray()
    wide = host_graph(expand_graph(other, samples, samples, (11, 11)))
    np.testing.assert_allclose(wide.toarray(), expected)
    assert wide.has_sorted_indices


@given(st.integers(1, 4), st.integers(1, 40), st.integers(0, 2**32 - 1), st.booleans())
def test_means_of_tied_samples_in_a_block(n_views: int, n_samples: int, seed: int, paired_first: bool) -> None:
    random = np.random.default_rng(seed)
    mask = random.random((n_samples, n_views)) < 0.6
    mask[np.arange(n_samples), random.integers(n_views, size=n_samples)] = True
    if paired_first:
        mask = mask[np.argsort(-mask.sum(axis=1), kind="stable")]
    rows = [np.flatnonzero(having) for having in mask.T]
    edges = np.concatenate([[0], np.cumsum([len(own) for own in rows])])
    terms = [ViewTerm(slice(a, b), 1, np.zeros((b - a, 1))) for a, b in pairwise(edges)]
    problem = Problem(tuple(terms), np.concatenate(rows), np.ones(edges[-1]), mask.sum(axis=1), 0.0)
    codes = [random.normal(size=(2, len(own))) for own in rows]
    pieces, n_codes = Layout(problem, 1).pieces(0)
    tied = np.flatnonzero(mask.sum(axis=1) >= 2)
    np.testing.assert_array_equal(n_codes, mask.sum(axis=1)[tied])
    means = tied_consensus(codes, pieces, n_codes)
    if not len(tied):
        assert means is None
        return
    padded = np.full((n_views, 2, n_samples), np.nan)
    for k, (own, code) in enumerate(zip(rows, codes, strict=True)):
        padded[k][:, own] = code
    np.testing.assert_allclose(host(means), np.nanmean(padded, axis=0)[:, tied])
    for own, piece in zip(rows, pieces, strict=True):
        np.testing.assert_array_equal(piece.tied, np.isin(own, tied))
        if piece.back is not None:
            of_codes = columns_of(means, piece.back)[:, np.isin(own, tied)]
            np.testing.assert_array_equal(of_codes, columns_of(means, piece.ties))


def test_one_view_is_held_at_a_time() -> None:
    seen: list[weakref.ref[Any]] = []

    def features() -> Iterator[Any]:
        for width in (3, 2):
            assert all(matrix() is None for matrix in seen)
            matrix = np.ones((4, width))
            seen.append(weakref.ref(matrix))
            yield matrix
            del matrix

    everyone = np.arange(4)
    problem = build_problem(features(), [sparse.csr_array(np.eye(4))] * 2, [everyone] * 2, 4)
    assert [term.n_features for term in problem.terms] == [3, 2]
    assert all(matrix() is None for matrix in seen)


def test_starts_are_drained_once_they_are_stacked() -> None:
    terms = (ViewTerm(slice(0, 5), 2, np.ones((5, 2))),)
    problem = Problem(terms, np.arange(5), np.ones(5), np.ones(5, dtype=int), 0.0)
    starts = [[np.random.default_rng(seed).random((5, 2))] for seed in range(2)]
    expected = [start[0].copy() for start in starts]
    seen = [weakref.ref(start[0]) for start in starts]
    with array_sweep(problem, drained(starts)) as sweep:
        np.testing.assert_array_equal(sweep.codes[0], np.concatenate([start.T for start in expected]))
        assert all(start() is None for start in seen)


@settings(max_examples=30)
@given(st.integers(200, 400), st.integers(1, 6), st.integers(1, 9), st.integers(1, 7), st.integers(0, 2**31 - 1))
def test_starts_at_once_are_those_of_scikit_learn(
    n_points: int, n_features: int, n_clusters: int, n_starts: int, seed: int
) -> None:
    # Of two candidates that are near to each other alone, rounding decides: so many points that there are none
    points = np.random.RandomState(seed).normal(size=(n_points, n_features))
    ours, theirs = np.random.RandomState(seed), np.random.RandomState(seed)
    starts = kmeans_plus_plus(points, n_clusters, n_starts, ours)
    for start in starts:
        np.testing.assert_array_equal(start, kmeans_plusplus(points, n_clusters, random_state=theirs)[1])
    assert ours.random_sample() == theirs.random_sample()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_starts_among_mostly_equal_rows(dtype: type) -> None:
    points = np.zeros((30, 2), dtype=dtype)
    points[:2] = [[1, 0], [0, 1]]
    for start in kmeans_plus_plus(points, 5, 10, np.random.RandomState(0)):
        assert len(np.unique(points[start], axis=0)) == 3  # each of them found, though two are one row in thirty


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("n_points", "n_clusters", "n_init"), [(300, 4, 5), (900, 12, 20), (1500, 100, 10)])
def test_kmeans_of_all_restarts_is_that_of_scikit_learn(seed: int, n_points: int, n_clusters: int, n_init: int) -> None:
    source = np.random.RandomState(seed)
    points = (
        source.normal(size=(n_points, 5)) + 3 * source.normal(size=(n_clusters, 5))[np.arange(n_points) % n_clusters]
    )
    found = kmeans_of_array(points, n_clusters, n_init, np.random.RandomState(seed))
    expected = KMeans(n_clusters, n_init=n_init, random_state=seed).fit(points)
    assert found is not None
    labels, centers = found
    inertia = np.square(points - centers[labels]).sum()
    assert inertia <= expected.inertia_ * 1.02
    nearest = np.square(points[:, None] - centers).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(labels, nearest)


def test_kmeans_of_all_restarts_refuses_groups_without_rows() -> None:
    points = np.zeros((20, 2))
    points[:2] = [[1, 0], [0, 1]]
    assert kmeans_of_array(points, 5, 3, np.random.RandomState(0)) is None
