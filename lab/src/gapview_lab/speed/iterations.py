"""Speed of the iterations: against Algorithm 1 as written, and as a share of the matrix-product speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from gapview.factorization import Weights, solve, solve_together
from gapview.factorization.problem import Problem, ViewTerm, build_problem
from gapview.factorization.starts import random_start
from gapview.graph.knn import knn_graph, resolve_n_neighbors
from gapview.scaling import scale_views
from gapview.utils.types import Array, Matrix
from gapview.views import Views

from .machine import PRODUCT, best_of, memory_speed, product_speed
from .plain import plain_algorithm
from .results import Measured

__all__ = [
    "PAPER_WEIGHTS",
    "READING",
    "STARTS",
    "IterationSpeed",
    "PaperSetup",
    "compare_iterations",
    "iteration_problem",
    "measure_iterations",
    "paired_first",
    "set_up",
]

PAPER_WEIGHTS = Weights(consensus=100.0, sparsity=1e-3)
STARTS = {1: "one start", 5: "five starts side by side"}
READING = "reading H once, by the memory speed"
_N_COMPONENTS = 10
_BLOCK = 16384
_N_RUNS = 3  # of the fast version, the best of which counts: it takes a tenth of a second, and machines are noisy


@dataclass(frozen=True)
class PaperSetup:
    """Views prepared for Algorithm 1 as in the paper."""

    scaled: list[Matrix]
    graphs: list[Any]
    rows: list[Array]
    n_samples: int

    @property
    def problem(self) -> Problem:
        """The problem, built on each access: the product H = WX is part of the measured time."""
        return build_problem(self.scaled, self.graphs, self.rows, self.n_samples)


def paired_first(views: Views) -> tuple[Views, int]:
    """Return the views with the paired samples first, as Algorithm 1 expects, and their number."""
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
    """Seconds per iteration of both versions, and the largest difference of their codes."""

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


def iteration_problem(n_samples: int, widths: Sequence[int]) -> Problem:
    """Build a problem of this size in single precision, with random numbers: they do not change the time."""
    state = np.random.default_rng(0)
    terms, rows = [], []
    for k, width in enumerate(widths):
        smoothed = np.empty((n_samples, width), dtype=np.float32)
        for begin in range(0, n_samples, _BLOCK):
            smoothed[begin : begin + _BLOCK] = state.standard_normal(smoothed[begin : begin + _BLOCK].shape)
        terms.append(ViewTerm(slice(k * n_samples, (k + 1) * n_samples), width, smoothed))
        rows.append(np.arange(n_samples))
    degrees = state.integers(10, 20, size=n_samples * len(terms)).astype(np.float32)
    constant = float(n_samples * sum(widths))  # about ‖H‖²
    return Problem(tuple(terms), np.concatenate(rows), degrees, np.full(n_samples, len(terms)), constant)


def measure_iterations(n_samples: int, widths: Sequence[int], n_iter: int, n_runs: int, size: int) -> list[Measured]:
    """Compare iterations with the matrix-product speed.

    The time is that of :func:`gapview.factorization.solve_together`, including the product before the first
    iteration, divided by the number of iterations. One iteration has 4·n·m·K operations for each start: those of the
    two products with H.
    """
    problem = iteration_problem(n_samples, widths)
    speeds = [product_speed(size, "float32")]
    seconds = {}
    for count in STARTS:
        starts = [random_start(problem, _N_COMPONENTS, np.random.RandomState(seed)) for seed in range(count)]
        _iterate(problem, starts, 1)  # start threads and allocate memory before the clock starts
        seconds[count] = best_of(n_runs, lambda starts=starts: _iterate(problem, starts, n_iter)) / n_iter  # type: ignore[misc]
        speeds.append(product_speed(size, "float32"))
    # The best of before, between and after: a slow reference would overstate the share
    reference = Measured(f"{PRODUCT}, float32", max(speeds), "GFLOP/s", note=f"{size} × {size}")
    operations = 4 * n_samples * sum(widths) * _N_COMPONENTS
    shares = [
        Measured.share(name, count * operations / seconds[count] / 1e9, reference.unit, reference.name, reference.value)
        for count, name in STARTS.items()
    ]
    n_bytes = 4 * n_samples * sum(widths)
    copied = memory_speed(max(n_bytes, 2**20))
    return [reference, *shares, Measured(READING, n_bytes / copied / 1e9, "s", note=f"{copied:.1f} GB/s")]


def _iterate(problem: Problem, starts: Sequence[Sequence[Array]], n_iter: int) -> None:
    solve_together(problem, [PAPER_WEIGHTS] * len(starts), starts, n_iter, tol=0)
