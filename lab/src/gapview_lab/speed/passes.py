"""Count the passes over the data that the start from the data saves."""

from __future__ import annotations

import numpy as np

from gapview.factorization import solve, solve_together
from gapview.factorization.starts import data_start, random_start
from gapview.utils.types import Array
from gapview.views import Views

from .iterations import PAPER_WEIGHTS, set_up
from .machine import best_of
from .results import Measured

__all__ = ["COST", "PASSES", "measure_passes", "passes_until"]

_N_ITERATIONS = 100
_N_STARTS = 3
PASSES, COST = "passes from the start from the data", "cost of the start, in passes"


def passes_until(objective: Array, target: float) -> float:
    """Return after how many passes the objective is at most the target; infinite if it never is.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview_lab.speed.passes import passes_until
    >>> passes_until(np.array([5.0, 3.0, 1.0]), 3.0), passes_until(np.array([5.0, 3.0]), 2.0)
    (2.0, inf)
    """
    reached = np.flatnonzero(objective <= target)
    return float(reached[0] + 1) if reached.size else float("inf")


def measure_passes(views: Views, n_clusters: int, n_runs: int) -> list[Measured]:
    """Count passes until the objective of the paper's iteration after 100 passes is reached.

    The paper's iteration starts from random codes; the lowest of several starts is the one to meet.
    """
    problem = set_up(views, n_clusters).problem
    starts = [random_start(problem, n_clusters, np.random.RandomState(seed)) for seed in range(_N_STARTS)]
    ended = solve_together(problem, [PAPER_WEIGHTS] * _N_STARTS, starts, _N_ITERATIONS, tol=0)
    target = min(float(solution.objective[-1]) for solution in ended)
    clever = data_start(problem, n_clusters, PAPER_WEIGHTS)
    solution = solve(problem, PAPER_WEIGHTS, clever, _N_ITERATIONS, tol=0)
    count = passes_until(solution.objective, target)
    start_seconds = best_of(n_runs, lambda: data_start(problem, n_clusters, PAPER_WEIGHTS))
    pass_seconds = best_of(n_runs, lambda: solve(problem, PAPER_WEIGHTS, clever, _N_ITERATIONS, tol=0)) / _N_ITERATIONS
    reference = f"passes of the paper's iteration, the lowest of {_N_STARTS} starts"
    return [
        Measured("one pass", pass_seconds, "s"),
        Measured("start from the data", start_seconds, "s", "one pass", pass_seconds, start_seconds / pass_seconds),
        Measured.share(PASSES, count, "passes", reference, _N_ITERATIONS),
        Measured.share(COST, start_seconds / pass_seconds, "passes", reference, _N_ITERATIONS),
    ]
