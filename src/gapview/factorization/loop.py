"""The loop of Algorithm 1.

An iteration is one pass over the data (:mod:`gapview.factorization.sweep`). The data do not depend on the penalties,
the number of components or the start, so that several runs share a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from ..compute import engine_for
from ..progress import ITERATING, tell
from ..utils.types import Array
from .problem import Problem, demand_finite
from .runs import Run, Solution, Stack, Weights
from .state import Standing
from .steps import basis_step
from .sweep import Sweep

__all__ = ["Solution", "Track", "Weights", "add_objectives", "solve", "solve_together", "update_bases"]


class Track(Protocol):
    """Where the loop records its state, so that it can resume after an interruption."""

    last: Any  # the last recorded state; None at the beginning

    def note(self, standing: Callable[[], Any]) -> None:
        """Record the state that ``standing`` returns, or skip it if the last one is recent."""


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
    track: Track | None = None,
) -> list[Solution]:
    """Run Algorithm 1 from several starts, with penalties for each, in the same passes over the data.

    Every run is the one that :func:`solve` makes of it alone, up to rounding, and stops when that one stops. Starts
    from an iterator are discarded once they are copied. With a ``track``, the loop resumes from the state recorded
    there and records its state after every iteration.
    """
    stack = Stack.of(problem, weights, starts)
    runs = list(stack.runs)
    n_operations = 4 * stack.n_components * sum(len(problem.rows[t.part]) * t.n_features for t in problem.terms)
    with engine_for(problem.degrees).working(n_operations) as each:
        sweep = Sweep(problem, n_rounds, each)
        if track is None or track.last is None:
            now = Standing(runs, stack, sweep.correlate(stack))
        else:
            now = Standing.of(track.last, stack)
        while not now.has_ended:
            update_bases(now.stack.runs, now.correlations)
            now.correlations, values = sweep.iterate(now.stack)
            now.n_iter += 1
            add_objectives(now.stack.runs, values, problem.constant, problem.degrees.dtype, tol)
            tell(ITERATING, now.n_iter, max_iter, min(run.objective[-1] for run in now.stack.runs))
            now.end([run for run in now.stack.runs if run.converged or now.n_iter == max_iter])
            if track is not None:
                track.note(now.state)
    return now.solutions()


def update_bases(runs: Sequence[Run], correlations: Sequence[Array]) -> None:
    """Compute the bases of every run from (HᵀP)ᵀ of every view, Eq. (9)."""
    for run in runs:
        run.bases = [basis_step(correlation[run.rows].T) for correlation in correlations]


def add_objectives(runs: Sequence[Run], values: Iterable[float], constant: float, dtype: Any, tol: float) -> None:
    """Record the objective of every run after an iteration: the constant term and the value of the run."""
    for run, value in zip(runs, values, strict=True):
        demand_finite(np.isfinite(value), dtype)
        run.add(constant + value, tol)
