"""The iterations of the package against the plain dense algorithm: the same figures, in less time."""

from __future__ import annotations

import numpy as np
import pytest

from gapview.datasets import paired_split
from gapview.factorization import Weights, build_problem, solve
from gapview.factorization.starts import random_start
from gapview.graph import knn_graph
from gapview.scaling import unit_rows
from gapview_lab.speed import compare_iterations, plain_algorithm


@pytest.mark.parametrize("n_paired", [0, 7, 30])
def test_agrees_with_the_plain_algorithm(n_paired):
    rng = np.random.RandomState(3)
    n_samples, n_first = 30, n_paired + (30 - n_paired) // 2
    rows = [np.arange(n_first), np.r_[np.arange(n_paired), np.arange(n_first, n_samples)]]
    scaled = [unit_rows(rng.normal(size=(len(row), m))) for row, m in zip(rows, (8, 11), strict=True)]
    graphs = [knn_graph(matrix, 3) for matrix in scaled]
    problem = build_problem(scaled, graphs, rows, n_samples)
    start = random_start(problem, 4, rng)
    solution = solve(problem, Weights(10.0, 0.05), start, 15, tol=0)
    dense = [graph.toarray() for graph in graphs]
    bases, codes, consensus, objective = plain_algorithm(scaled, dense, n_paired, start, 10.0, 0.05, 15)
    np.testing.assert_allclose(solution.objective, objective, rtol=1e-10)
    np.testing.assert_allclose(solution.consensus[:n_paired], consensus, atol=1e-10)
    for k in (0, 1):
        np.testing.assert_allclose(solution.codes[k], codes[k], atol=1e-10)
        np.testing.assert_allclose(solution.bases[k], bases[k], atol=1e-10)


@pytest.mark.data
def test_iterations_are_thirty_times_faster_than_as_written(dataset):
    data = dataset("handwritten_2v")
    views = paired_split(data.views, 0.5, order=data.folds[0])
    # The best of three: a busy machine slows the short run more than the long one.
    runs = [compare_iterations(views, n_clusters=10, n_iter=100, n_plain_iter=10) for _ in range(3)]
    assert max(run.difference for run in runs) < 1e-9
    assert max(run.ratio for run in runs) >= 30
