"""The iterations against Algorithm 1 as written."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from ..factorization import Weights, solve
from ..graph import knn_graph
from ..problem import build_problem
from ..scaling import scale_views
from ..starts import random_start
from ..views import Views
from ._plain import plain_algorithm

__all__ = ["IterationSpeed", "compare_iterations"]

_N_RUNS = 3  # of the fast version, the best of which counts: it takes a tenth of a second, and machines are noisy


@dataclass(frozen=True)
class IterationSpeed:
    """Seconds per iteration of both versions, and how far their codes are apart in the end."""

    plain: float
    fast: float
    difference: float

    @property
    def ratio(self) -> float:
        """How many times faster the library's loop is."""
        return self.plain / self.fast


def compare_iterations(views: Views, n_clusters: int, n_iter: int, n_plain_iter: int | None = None) -> IterationSpeed:
    """Time both versions on the same problem from the same start, paired samples first.

    Both evaluate the objective in every iteration, as a stopping rule needs it. The library's time includes the product
    H = WX, which it needs once.
    """
    ordered = views[np.argsort(~views.mask.all(axis=1), kind="stable")]
    n_paired = int(ordered.mask.all(axis=1).sum())
    scaled, _ = scale_views(ordered, "unit")
    graphs = [knn_graph(matrix, 10) for matrix in scaled]
    rows = [ordered.rows(k) for k in range(ordered.n_views)]
    weights = Weights(consensus=100.0, sparsity=1e-3)
    start = random_start(build_problem(scaled, graphs, rows, len(ordered)), n_clusters, np.random.RandomState(0))

    times = []
    for _ in range(_N_RUNS):
        begin = perf_counter()
        problem = build_problem(scaled, graphs, rows, len(ordered))
        solution = solve(problem, weights, start, n_iter, tol=0)
        times.append((perf_counter() - begin) / n_iter)
    fast = min(times)

    dense = [graph.toarray() for graph in graphs]
    n_plain = n_plain_iter or n_iter
    begin = perf_counter()
    _, codes, _, _ = plain_algorithm(scaled, dense, n_paired, start, weights.consensus, weights.sparsity, n_plain)
    plain = (perf_counter() - begin) / n_plain
    same = solution.codes if n_plain == n_iter else solve(problem, weights, start, n_plain, tol=0).codes
    difference = max(float(np.abs(a - b).max()) for a, b in zip(same, codes, strict=True))
    return IterationSpeed(plain, fast, difference)
