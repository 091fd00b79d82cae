"""The loop against the text of the model: objective, steps, constraints."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

from gapview.errors import SolutionError
from gapview.factorization import Weights, build_problem, solve
from gapview.factorization.starts import data_start, random_start
from gapview.factorization.steps import basis_step
from gapview.graph.knn import knn_graph
from gapview.scaling import unit_rows
from gapview.views import Views
from problems import cases


def set_up(case, dtype=np.float64, as_sparse=False):
    views = Views([matrix.astype(dtype) for matrix in case.matrices], mask=case.mask)
    scaled = [unit_rows(matrix) for matrix in views.matrices]
    graphs = [knn_graph(matrix, case.n_neighbors) for matrix in scaled]
    if as_sparse:
        scaled = [sparse.csr_array(matrix) for matrix in scaled]
    rows = [views.rows(k) for k in range(views.n_views)]
    problem = build_problem(scaled, graphs, rows, views.n_samples)
    # A row without an edge has no code, and no term of the sums below holds it.
    linked = [np.flatnonzero(graph.sum(axis=1)) for graph in graphs]
    scaled = [matrix[keep] for matrix, keep in zip(scaled, linked, strict=True)]
    graphs = [graph[keep][:, keep] for graph, keep in zip(graphs, linked, strict=True)]
    return scaled, graphs, [problem.rows[term.part] for term in problem.terms], problem


def naive_objective(scaled, graphs, rows, bases, codes, weights, n_samples):
    """Eq. (4), sum by sum, as printed; views narrower than the latent space get their zero columns."""
    n_views = np.bincount(np.concatenate(rows), minlength=n_samples)
    total = np.zeros((n_samples, codes[0].shape[1]))
    for row, code in zip(rows, codes, strict=True):
        total[row] += code
    consensus = total / np.maximum(n_views, 1)[:, None]
    value = 0.0
    for x, w, row, u, p in zip(scaled, graphs, rows, bases, codes, strict=True):
        n_components, n_features = u.shape
        if n_features < n_components:
            x = np.pad(x, ((0, 0), (0, n_components - n_features)))
            u = np.column_stack([u, np.linalg.svd(u)[0][:, n_features:]])  # completed to an orthogonal matrix
        np.testing.assert_allclose(u @ u.T, np.eye(n_components), atol=1e-9)
        dense = w.toarray()
        for i in range(len(x)):
            for j in range(len(p)):
                value += dense[i, j] * np.sum((x[i] - p[j] @ u) ** 2)
        tied = n_views[row] >= 2
        value += weights.consensus * np.sum((p[tied] - consensus[row][tied]) ** 2)
        value += weights.sparsity * np.abs(p).sum()
    return value


@settings(max_examples=60)
@given(cases())
def test_objective_never_rises(case):
    """Theorem 1, over shapes, patterns, weights and seeds."""
    *_, problem = set_up(case)
    start = random_start(problem, case.n_components, np.random.RandomState(case.seed))
    solution = solve(problem, Weights(case.consensus_weight, case.sparsity_weight), start, 30, tol=0)
    rises = np.diff(solution.objective)
    assert rises.max() <= 1e-10 * max(problem.constant, 1.0)
    assert np.isfinite(solution.consensus).all()
    for basis in solution.bases:
        gram = basis @ basis.T if basis.shape[0] <= basis.shape[1] else basis.T @ basis
        np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-9)


@settings(max_examples=25)
@given(cases())
def test_objective_is_the_printed_one(case):
    scaled, graphs, rows, problem = set_up(case)
    weights = Weights(case.consensus_weight, case.sparsity_weight)
    start = random_start(problem, case.n_components, np.random.RandomState(case.seed))
    solution = solve(problem, weights, start, 3, tol=0)
    expected = naive_objective(scaled, graphs, rows, solution.bases, solution.codes, weights, problem.n_samples)
    assert solution.objective[-1] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=25)
@given(cases())
def test_each_step_is_optimal(case):
    """No small change of codes or basis lowers the objective right after its own step."""
    scaled, graphs, rows, problem = set_up(case)
    weights = Weights(case.consensus_weight, case.sparsity_weight)
    rng = np.random.RandomState(case.seed)
    solution = solve(problem, weights, random_start(problem, case.n_components, rng), 200, tol=0)

    def value(codes):
        return naive_objective(scaled, graphs, rows, solution.bases, codes, weights, problem.n_samples)

    here = value(solution.codes)
    for size in (1e-3, 1e-1):
        moved = [code + size * rng.normal(size=code.shape) for code in solution.codes]
        assert value(moved) >= here - 1e-3 * size


@settings(max_examples=20)
@given(cases())
def test_sparse_features_give_the_same(case):
    *_, dense = set_up(case)
    *_, thin = set_up(case, as_sparse=True)
    start = random_start(dense, case.n_components, np.random.RandomState(case.seed))
    weights = Weights(case.consensus_weight, case.sparsity_weight)
    a, b = (solve(problem, weights, start, 10, tol=0) for problem in (dense, thin))
    np.testing.assert_allclose(a.objective, b.objective, rtol=1e-9)


@settings(max_examples=20)
@given(cases())
def test_single_precision_stays_single_and_close(case):
    *_, double = set_up(case)
    *_, single = set_up(case, np.float32)
    start = random_start(double, case.n_components, np.random.RandomState(case.seed))
    weights = Weights(case.consensus_weight, case.sparsity_weight)
    a = solve(double, weights, start, 10, tol=0)
    b = solve(single, weights, [code.astype(np.float32) for code in start], 10, tol=0)
    assert b.consensus.dtype == np.float32
    assert all(code.dtype == np.float32 for code in [*b.codes, *b.bases])
    assert b.objective[-1] == pytest.approx(a.objective[-1], rel=2e-2, abs=1e-2)
    assert np.diff(b.objective).max() <= 1e-6 * max(single.constant, 1.0)  # Theorem 1 up to rounding


def test_weights_of_any_kind_keep_single_precision():
    rng = np.random.RandomState(0)
    matrix = unit_rows(rng.normal(size=(20, 5)).astype(np.float32))
    problem = build_problem([matrix] * 2, [knn_graph(matrix, 3)] * 2, [np.arange(20)] * 2, 20)
    start = random_start(problem, 2, rng)
    plain = solve(problem, Weights(0.5, 0.25), start, 5, tol=0)
    for kind in (np.float64, Fraction):
        solution = solve(problem, Weights(kind(0.5), kind(0.25)), start, 5, tol=0)
        assert solution.consensus.dtype == np.float32
        np.testing.assert_array_equal(solution.objective, plain.objective)


@pytest.mark.parametrize(("dtype", "size"), [(np.float64, 1e160), (np.float64, 1e300), (np.float32, 1e30)])
@pytest.mark.parametrize("start", [random_start, lambda problem, k, _: data_start(problem, k, Weights(1.0, 0.1))])
def test_numbers_too_large_are_refused_in_words(dtype, size, start):
    rng = np.random.RandomState(0)
    matrix = rng.normal(size=(20, 5)).astype(dtype) * dtype(size)

    def run():
        problem = build_problem([matrix], [knn_graph(matrix, 3)], [np.arange(20)], 20)
        return solve(problem, Weights(1.0, 0.1), start(problem, 2, rng), 10, tol=0)

    with pytest.raises(SolutionError, match=r"too large for float.*scale='unit'"):
        run()


def test_narrow_view_equals_the_padded_one():
    """A view with fewer features than components behaves as if it had columns of zeros."""
    rng = np.random.RandomState(0)
    narrow, wide = unit_rows(rng.normal(size=(20, 3))), unit_rows(rng.normal(size=(20, 9)))
    graphs = [knn_graph(narrow, 3), knn_graph(wide, 3)]
    rows = [np.arange(20)] * 2
    start = [rng.uniform(size=(20, 5)) for _ in range(2)]
    padded = np.pad(narrow, ((0, 0), (0, 2)))
    a, b = (
        solve(build_problem([first, wide], graphs, rows, 20), Weights(1.0, 0.01), start, 20, tol=0)
        for first in (narrow, padded)
    )
    np.testing.assert_allclose(a.objective, b.objective, rtol=1e-10)
    np.testing.assert_allclose(a.consensus, b.consensus, atol=1e-9)
    np.testing.assert_allclose(a.bases[0], b.bases[0][:, :3], atol=1e-9)


def test_samples_that_nothing_reaches_have_no_code():
    graph = sparse.csr_array(np.array([[0, 1.0, 0], [1.0, 0, 0], [0, 0, 0]]))
    problem = build_problem([np.eye(3)], [graph], [np.arange(3)], 3)
    assert problem.rows.tolist() == [0, 1]
    assert problem.n_codes.tolist() == [1, 1, 0]


def test_graph_may_reach_samples_without_the_view():
    """Weights between samples that have a view and any sample: the objective still never rises (bridges)."""
    rng = np.random.RandomState(1)
    features = [unit_rows(rng.normal(size=(12, 6))), unit_rows(rng.normal(size=(15, 7)))]
    weights = [sparse.csr_array(rng.uniform(size=(m, 20)) * (rng.uniform(size=(m, 20)) < 0.3)) for m in (12, 15)]
    problem = build_problem(features, weights, [np.arange(20)] * 2, 20)
    solution = solve(problem, Weights(1.0, 0.01), random_start(problem, 4, rng), 50, tol=0)
    assert np.diff(solution.objective).max() <= 1e-10
    by_hand = 0.0
    for x, a, u, term in zip(features, weights, solution.bases, problem.terms, strict=True):
        codes = np.zeros((20, 4))
        codes[problem.rows[term.part]] = solution.codes[problem.terms.index(term)]
        by_hand += sum(a.toarray()[i, j] * np.sum((x[i] - codes[j] @ u) ** 2) for i in range(len(x)) for j in range(20))
        tied = problem.n_codes[problem.rows[term.part]] >= 2
        rows = problem.rows[term.part]
        by_hand += np.sum((codes[rows] - solution.consensus[rows])[tied] ** 2) + 0.01 * np.abs(codes).sum()
    assert solution.objective[-1] == pytest.approx(by_hand, rel=1e-9)


def test_basis_step_survives_rank_deficiency():
    basis = basis_step(np.zeros((6, 3)))
    np.testing.assert_allclose(basis @ basis.T, np.eye(3), atol=1e-12)


@settings(max_examples=20)
@given(cases())
def test_data_start_is_free_of_chance_and_fits_the_problem(case):
    *_, problem = set_up(case)
    weights = Weights(case.consensus_weight, case.sparsity_weight)
    first, second = (data_start(problem, case.n_components, weights) for _ in range(2))
    for term, a, b in zip(problem.terms, first, second, strict=True):
        assert a.shape == (len(problem.rows[term.part]), case.n_components)
        np.testing.assert_array_equal(a, b)
        assert np.isfinite(a).all()


@pytest.mark.data
def test_data_start_begins_lower(dataset):
    from gapview.datasets import paired_split

    data = dataset("handwritten_2v")
    views = paired_split(data.views, 0.5, order=data.folds[0])
    scaled = [unit_rows(matrix) for matrix in views.matrices]
    rows = [views.rows(k) for k in (0, 1)]
    problem = build_problem(scaled, [knn_graph(matrix, 10) for matrix in scaled], rows, len(views))
    starts = [random_start(problem, 10, np.random.RandomState(0)), data_start(problem, 10, Weights(100.0, 1e-3))]
    plain, clever = (solve(problem, Weights(100.0, 1e-3), start, 100, tol=0).objective for start in starts)
    assert clever[19] <= plain[99]
