"""The loop of Algorithm 1.

An iteration is one pass over the data. The data do not depend on the penalties, the number of components or the start,
so that several runs share a pass. A :class:`Sweep` does the pass where the data are: in memory, on disk or on a
cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
from array_api_compat import array_namespace

from ..compute import engine_for
from ..progress import ITERATING, tell
from ..utils.types import Array
from .problem import Problem, demand_finite
from .runs import LoopState, Run, Solution, Weights, lay_out
from .steps import basis_step
from .sweep import ArraySweep

__all__ = ["Solution", "Sweep", "Weights", "array_sweep", "iterate", "new_runs", "solve", "solve_together"]


class Sweep(Protocol):
    """The passes over the data of one problem. It holds the codes of all active runs, wherever the data are."""

    constant: float  # of the objective
    dtype: Any  # of the codes

    def correlate(self) -> list[Array]:
        """Return (HᵀP)ᵀ for every view."""

    def iterate(self, runs: Sequence[Run]) -> tuple[list[Array], list[float]]:
        """Update the codes by the bases of the runs; return (HᵀP)ᵀ for every view, and the objective of every run."""

    def solution(self, run: Run) -> Solution:
        """Return the solution of a run with its present codes."""

    def keep(self, runs: Sequence[Run]) -> None:
        """Discard the codes of all other runs; the codes of these runs move together, in order."""

    def resume(self, runs: list[Run]) -> LoopState | None:
        """Return the state of the loop of these runs from a checkpoint, and restore the codes; None without one."""

    def save(self, state: LoopState) -> None:
        """Write the state of the loop and the codes to the checkpoint, if there is one and a write is due."""


@np.errstate(over="ignore", invalid="ignore")  # demand_finite reports overflow in its results
def iterate(
    sweep: Sweep, runs: list[Run], max_iter: int, tol: float, *, best_only: bool = False
) -> dict[int, Solution]:
    """Run Algorithm 1 until all runs have ended; return their solutions by the positions of the runs.

    Every step minimises the objective over one block of variables with the others fixed, so the objective never rises
    (Theorem 1), up to rounding in the type of the codes. A run ends when the relative change of its objective is at
    most ``tol``; with ``tol=0`` after ``max_iter`` iterations. With ``best_only``, only the solution with the smallest
    objective is kept.

    Raises
    ------
    SolutionError
        If numbers arise that are too large for the type of the codes.
    """
    state = sweep.resume(runs) or LoopState(runs, runs, sweep.correlate())
    while state.active:
        for run in state.active:
            run.bases = [basis_step(correlation[run.rows].T) for correlation in state.correlations]
        state.correlations, values = sweep.iterate(state.active)
        state.n_iter += 1
        for run, value in zip(state.active, values, strict=True):
            demand_finite(np.isfinite(value), sweep.dtype)
            run.add(sweep.constant + value, tol)
        tell(ITERATING, state.n_iter, max_iter, min(run.objective[-1] for run in state.active))
        _end_runs(sweep, state, max_iter)
        if best_only and len(state.ended) > 1:
            best = min(state.ended, key=lambda place: (state.ended[place].objective[-1], place))
            state.ended = {best: state.ended[best]}
        sweep.save(state)
    return state.ended


def _end_runs(sweep: Sweep, state: LoopState, max_iter: int) -> None:
    """Store the solutions of runs that have converged or reached the limit, and discard their codes."""
    ended = [run for run in state.active if run.converged or state.n_iter == max_iter]
    if not ended:
        return
    state.ended |= {state.runs.index(run): sweep.solution(run) for run in ended}
    state.active = [run for run in state.active if run not in ended]
    if state.active:
        xp = array_namespace(state.correlations[0])
        state.correlations = [xp.concat([own[run.rows] for run in state.active]) for own in state.correlations]
        sweep.keep(state.active)
        lay_out(state.active)


def new_runs(weights: Sequence[Weights], n_components: Sequence[int]) -> list[Run]:
    """Return runs with these penalties and numbers of components, which have done no iteration."""
    runs = [Run(*pair) for pair in zip(weights, n_components, strict=True)]
    lay_out(runs)
    return runs


@contextmanager
def array_sweep(problem: Problem, starts: Iterable[Sequence[Array]], record: Any = None) -> Iterator[ArraySweep]:
    """Open the passes over a problem in arrays; starts from an iterator are discarded once they are copied.

    ``record``, a :class:`gapview.persist.checkpoints.StateRecord`, stores the state of the loop from time to time.
    """
    xp, given = array_namespace(problem.degrees), list(starts)
    codes = [xp.concat([start[k].T for start in given], axis=0) for k in range(len(problem.terms))]
    given.clear()
    n_operations = 4 * len(codes[0]) * sum(len(problem.rows[t.part]) * t.n_features for t in problem.terms)
    with engine_for(problem.degrees).working(n_operations) as each:
        yield ArraySweep(problem, codes, each, record)


def solve_together(
    problem: Problem, weights: Sequence[Weights], starts: Iterable[Sequence[Array]], max_iter: int, tol: float
) -> list[Solution]:
    """Run Algorithm 1 from several starts, with penalties for each, in the same passes over the data.

    Every run gives the result of :func:`solve`, up to rounding, and stops in the same iteration.
    """
    given = list(starts)
    runs = new_runs(weights, [start[0].shape[1] for start in given])
    with array_sweep(problem, given) as sweep:
        ended = iterate(sweep, runs, max_iter, tol)
    return [ended[place] for place in range(len(runs))]


def solve(problem: Problem, weights: Weights, start: Sequence[Array], max_iter: int, tol: float) -> Solution:
    """Run Algorithm 1 from the given codes, one array per view; see :func:`iterate`."""
    return solve_together(problem, [weights], [start], max_iter, tol)[0]
