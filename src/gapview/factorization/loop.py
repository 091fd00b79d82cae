"""The loop of Algorithm 1.

An iteration is one pass over the data (:mod:`gapview.factorization.sweep`). The data do not depend on the penalties,
the number of components or the start, so that several runs share a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from ..compute import engine_for
from ..progress import ITERATING, tell
from ..utils.types import Array
from .problem import Problem, demand_finite
from .runs import Run, Solution, Stack, Weights, lay_out
from .steps import basis_step
from .sweep import Sweep

__all__ = [
    "LoopRecord",
    "LoopState",
    "Solution",
    "Weights",
    "add_objectives",
    "solve",
    "solve_together",
    "update_bases",
]


class LoopRecord(Protocol):
    """Where the loop records its state, so that it can resume after an interruption."""

    last: Any  # the last recorded state; None at the beginning

    def save(self, state: Callable[[], Any]) -> None:
        """Record the state that ``state`` returns, or skip it if the last one is recent."""


def solve(problem: Problem, weights: Weights, start: Sequence[Array], max_iter: int, tol: float) -> Solution:
    """Run Algorithm 1 from the given codes, one array per view.

    Every step minimises the objective over one block of variables with the others fixed, so the objective never rises
    (Theorem 1), up to rounding in the type of the codes. Stops when its relative change is at most ``tol``; with
    ``tol=0`` after ``max_iter`` iterations.

    Raises
    ------
    SolutionError
        If numbers arise that are too large for the type of the codes.
    """
    return solve_together(problem, [weights], [start], max_iter, tol)[0]


@np.errstate(over="ignore", invalid="ignore")  # demand_finite reports overflow in its results
def solve_together(
    problem: Problem,
    weights: Sequence[Weights],
    starts: Iterable[Sequence[Array]],
    max_iter: int,
    tol: float,
    *,
    record: LoopRecord | None = None,
) -> list[Solution]:
    """Run Algorithm 1 from several starts, with penalties for each, in the same passes over the data.

    Every run gives the result of :func:`solve`, up to rounding, and stops in the same iteration. Starts from an
    iterator are discarded once they are copied. With a ``record``, the loop resumes from the state recorded there and
    records its state after every iteration.
    """
    stack = Stack.of(problem, weights, starts)
    n_operations = 4 * len(stack.codes[0]) * sum(len(problem.rows[t.part]) * t.n_features for t in problem.terms)
    with engine_for(problem.degrees).working(n_operations) as each:
        sweep = Sweep(problem, each)
        if record is None or record.last is None:
            state = LoopState(list(stack.runs), stack, sweep.correlate(stack))
        else:
            state = LoopState.from_dict(record.last, stack)
        while not state.has_ended:
            active = state.stack.runs
            update_bases(active, state.correlations)
            state.correlations, values = sweep.iterate(state.stack)
            state.n_iter += 1
            add_objectives(active, values, problem.constant, problem.degrees.dtype, tol)
            tell(ITERATING, state.n_iter, max_iter, min(run.objective[-1] for run in active))
            state.end([run for run in active if run.converged or state.n_iter == max_iter])
            if record is not None:
                record.save(state.to_dict)
    return [state.ended[place] for place in range(len(state.runs))]


def update_bases(runs: Sequence[Run], correlations: Sequence[Array]) -> None:
    """Compute the bases of every run from (HᵀP)ᵀ of every view, Eq. (9)."""
    for run in runs:
        run.bases = [basis_step(correlation[run.rows].T) for correlation in correlations]


def add_objectives(runs: Sequence[Run], values: Iterable[float], constant: float, dtype: Any, tol: float) -> None:
    """Record the objective of every run after an iteration: the constant term and the value of the run."""
    for run, value in zip(runs, values, strict=True):
        demand_finite(np.isfinite(value), dtype)
        run.add(constant + value, tol)


@dataclass
class LoopState:
    """The state of the loop between two iterations."""

    runs: list[Run]  # all of them
    stack: Stack  # of the active runs; unchanged once all have ended
    correlations: list[Array]  # (HᵀP)ᵀ for every view
    n_iter: int = 0
    ended: dict[int, Solution] = field(default_factory=dict)  # by the position of their run

    @property
    def has_ended(self) -> bool:
        """Whether all runs have ended."""
        return len(self.ended) == len(self.runs)

    def end(self, runs: list[Run]) -> None:
        """Store the solutions of runs, and remove these runs from the stack."""
        self.ended |= {self.runs.index(run): self.stack.solution(run) for run in runs}
        if runs and not self.has_ended:
            self.stack, self.correlations = self.stack.without(runs, self.correlations)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as lists, numbers and arrays; the codes are no copy, and change with the next iteration."""
        active = [place for place in range(len(self.runs)) if place not in self.ended]
        return {
            "n_iter": self.n_iter,
            "active": active,
            "objectives": [np.asarray(run.objective) for run in self.runs],
            "converged": [run.converged for run in self.runs],
            "codes": self.stack.codes if active else [],
            "correlations": self.correlations if active else [],
            "ended": [[place, s.bases, s.codes, s.consensus] for place, s in self.ended.items()],
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any], start: Stack) -> LoopState:
        """Restore a state of runs that began with the stack ``start``."""
        runs = list(start.runs)
        for run, objective, converged in zip(runs, state["objectives"], state["converged"], strict=True):
            run.objective, run.converged = objective.tolist(), converged
        active = [runs[place] for place in state["active"]]
        lay_out(active)
        stack = replace(start, runs=active, codes=state["codes"])
        ended = {place: runs[place].solution(bases, codes, mean) for place, bases, codes, mean in state["ended"]}
        return cls(runs, stack, state["correlations"], state["n_iter"], ended)
