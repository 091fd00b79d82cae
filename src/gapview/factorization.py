"""Algorithm 1: the one loop.

An iteration is one pass over the data, see :mod:`gapview.passes`. The data do not depend on the penalties, the number
of components or the start, so that several runs share a pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from .checkpoints import ongoing
from .compute import engine_for
from .passes import Sweep
from .problem import Problem, demand_finite
from .progress import ITERATING, tell
from .runs import Solution, Stack, Weights
from .standing import Standing
from .steps import basis_step
from .views import Array

__all__ = ["Solution", "Weights", "solve", "solve_together"]


def solve(
    problem: Problem, weights: Weights, start: Sequence[Array], max_iter: int, tol: float, *, n_rounds: int = 1
) -> Solution:
    """Run Algorithm 1 from the given codes, one array per view.

    Every step minimises the objective over one block of variables with the others fixed, so the objective never rises
    (Theorem 1), up to rounding in the type of the codes. Stops when its relative change is at most ``tol``; with
    ``tol=0`` after ``max_iter`` iterations. Codes and consensus take ``n_rounds`` turns in every iteration, which cost
    no further pass; the paper has one.

    Raises
    ------
    SolutionError
        If numbers arise that are too large for the type of the codes.
    """
    return solve_together(problem, [weights], [start], max_iter, tol, n_rounds=n_rounds)[0]


@np.errstate(over="ignore", invalid="ignore")  # found where its results arrive, and said in words
def solve_together(
    problem: Problem,
    weights: Sequence[Weights],
    starts: Iterable[Sequence[Array]],
    max_iter: int,
    tol: float,
    *,
    n_rounds: int = 1,
) -> list[Solution]:
    """Run Algorithm 1 from several starts, with penalties for each, in the same passes over the data.

    Every run is the one that :func:`solve` makes of it alone, up to rounding, and stops when that one stops. Starts
    from an iterator are let go once they are copied.
    """
    stack = Stack.of(problem, weights, starts)
    runs = list(stack.runs)
    iterations = ongoing("iterations")
    n_operations = 4 * stack.n_components * sum(len(problem.rows[t.part]) * t.n_features for t in problem.terms)
    with engine_for(problem.degrees).working(n_operations) as each:
        sweep = Sweep(problem, n_rounds, each)
        if iterations.last is None:
            now = Standing(runs, stack, sweep.correlate(stack))
        else:
            now = Standing.of(iterations.last, stack)
        while not now.has_ended:
            for run in now.stack.runs:
                run.bases = [basis_step(correlation[run.rows].T) for correlation in now.correlations]
            now.correlations, values = sweep.iterate(now.stack)
            now.n_iter += 1
            for run, value in zip(now.stack.runs, values, strict=True):
                demand_finite(np.isfinite(value), problem.degrees.dtype)
                run.add(problem.constant + value, tol)
            tell(ITERATING, now.n_iter, max_iter, min(run.objective[-1] for run in now.stack.runs))
            now.end([run for run in now.stack.runs if run.converged or now.n_iter == max_iter])
            iterations.note(now.state)
    return now.solutions()
