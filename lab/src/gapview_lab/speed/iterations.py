"""The iterations against Algorithm 1 as written."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from gapview.factorization.loop import Weights, solve
from gapview.factorization.problem import Problem, build_problem
from gapview.factorization.starts import random_start
from gapview.graph.knn import knn_graph, resolve_n_neighbors
from gapview.scaling import scale_views
from gapview.utils.types import Array, Matrix
from gapview.views import Views

from .plain import plain_algorithm

__all__ = ["PAPER_WEIGHTS", "IterationSpeed", "PaperSetup", "compare_iterations", "paired_first", "set_up"]

PAPER_WEIGHTS = Weights(consensus=100.0, sparsity=1e-3)
_N_RUNS = 3  # of the fast version, the best of which counts: it takes a tenth of a second, and machines are noisy


@dataclass(frozen=True)
class PaperSetup:
    """Views made ready for Algorithm 1 as the paper has it."""

    scaled: list[Matrix]
    graphs: list[Any]
    rows: list[Array]
    n_samples: int

    @property
    def problem(self) -> Problem:
        """The problem, set up anew: the product H = WX is part of what is timed."""
        return build_problem(self.scaled, self.graphs, self.rows, self.n_samples)


def paired_first(views: Views) -> tuple[Views, int]:
    """Put the paired samples first, as Algorithm 1 is written for, and count them."""
    is_paired = views.mask.all(axis=1)
    return views[np.argsort(~is_paired, kind="stable")], int(is_paired.sum())


def set_up(views: Views, n_clusters: int) -> PaperSetup:
    """Scale the rows of all views to unit length and find the neighbours by the paper's rule."""
    scaled, _ = scale_views(views, "unit")
    counts = resolve_n_neighbors("auto", views, n_clusters)
    graphs = [knn_graph(matrix, count) for matrix, count in zip(scaled, counts, strict=True)]
    return PaperSetup(scaled, graphs, [views.rows(k) for k in range(views.n_views)], len(views))


@dataclass(frozen=True)
class IterationSpeed:
    """Seconds per iteration of both versions, and how far their codes are apart in the end."""

    plain: float  # seconds of an iteration as written in the paper
    fast: float  # seconds of one of the library
    difference: float  # largest between the codes of both

    @property
    def ratio(self) -> float:
        """How many times faster the library's loop is."""
        return self.plain / self.fast


def compare_iterations(views: Views, n_clusters: int, n_iter: int, n_plain_iter: int | None = None) -> IterationSpeed:
    """Time both versions on the same problem from the same start, paired samples first.

    Both evaluate the objective in every iteration, as a stopping rule needs it. The library's time includes the product
    H = WX, which it needs once.

    Parameters
    ----------
    views : Views
        The data.
    n_clusters : int
        Number of groups, and of components.
    n_iter : int
        Iterations of the library's version.
    n_plain_iter : int, optional
        Iterations of the plain version, which takes longer; by default as many.
    """
    ordered, n_paired = paired_first(views)
    setup = set_up(ordered, n_clusters)
    weights = PAPER_WEIGHTS
    start = random_start(setup.problem, n_clusters, np.random.RandomState(0))

    times = []
    for _ in range(_N_RUNS):
        begin = perf_counter()
        problem = setup.problem
        solution = solve(problem, weights, start, n_iter, tol=0)
        times.append((perf_counter() - begin) / n_iter)
    fast = min(times)

    dense = [graph.toarray() for graph in setup.graphs]
    n_plain = n_plain_iter or n_iter
    begin = perf_counter()
    _, codes, _, _ = plain_algorithm(setup.scaled, dense, n_paired, start, weights.consensus, weights.sparsity, n_plain)
    plain = (perf_counter() - begin) / n_plain
    same = solution.codes if n_plain == n_iter else solve(problem, weights, start, n_plain, tol=0).codes
    difference = max(float(np.abs(a - b).max()) for a, b in zip(same, codes, strict=True))
    return IterationSpeed(plain, fast, difference)
