"""The loop of Algorithm 1, its runs and their solutions.

An iteration is one pass over the data. The data do not depend on the penalties, the number of components or the start,
so that several runs share a pass. A :class:`Sweep` does the pass where the data are: in memory, on disk or on a
cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from array_api_compat import array_namespace

from ..compute.arrays import host
from ..progress import ITERATING, tell
from ..scaling import Scaling
from ..utils.types import Array
from ..views import Views
from .problem import Problem, demand_finite
from .steps import basis_step


@dataclass(frozen=True)
class Weights:
    """The two penalties of Eq. (4): λ1 ties the codes of a sample, λ2 makes them sparse."""

    consensus: float
    sparsity: float

    def __post_init__(self) -> None:
        # A NumPy scalar would turn codes of single precision into double.
        object.__setattr__(self, "consensus", float(self.consensus))
        object.__setattr__(self, "sparsity", float(self.sparsity))


@dataclass(frozen=True)
class Solution:
    """The result of one run of the loop; codes and consensus may be handles of values that lie elsewhere."""

    bases: list[Array]  # Uₖ, K × mₖ
    codes: list[Any]  # Pₖ, a row for each code of the view
    consensus: Any  # Z: for every sample the mean of its codes, zero where it has none
    objective: Array  # after every iteration, constant term included
    n_iter: int
    converged: bool

    def on_host(self) -> Solution:
        """Return the solution in NumPy arrays."""
        bases, codes = [host(basis) for basis in self.bases], [host(code) for code in self.codes]
        return replace(self, bases=bases, codes=codes, consensus=host(self.consensus))


@dataclass(eq=False)
class Run:
    """One run among those that share the passes."""

    weights: Weights
    n_components: int
    rows: slice = field(default_factory=lambda: slice(0))  # of its components among those of all runs
    bases: list[Array] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)
    converged: bool = False

    def add(self, value: float, tol: float) -> None:
        """Append the objective after an iteration; the run converges if its relative change is at most ``tol``."""
        self.objective.append(value)
        before = self.objective[-2:][0]
        self.converged = bool(tol > 0 and len(self.objective) > 1 and abs(before - value) <= tol * abs(before))

    def solution(self, bases: list[Array], codes: list[Any], consensus: Any) -> Solution:
        """Return the solution of the run, with the objective recorded so far."""
        return Solution(bases, codes, consensus, np.asarray(self.objective), len(self.objective), self.converged)


@dataclass
class LoopState:
    """The state of the loop between two iterations; the codes are in the sweep."""

    runs: list[Run]  # all of them
    active: list[Run]
    correlations: list[Array]  # (HᵀP)ᵀ for every view
    n_iter: int = 0
    ended: dict[int, Solution] = field(default_factory=dict)  # by the position of their run

    def to_dict(self) -> dict[str, Any]:
        """Return the state as lists, numbers and arrays."""
        return {
            "n_iter": self.n_iter,
            "active": [self.runs.index(run) for run in self.active],
            "objectives": [np.asarray(run.objective) for run in self.runs],
            "converged": [run.converged for run in self.runs],
            "correlations": self.correlations if self.active else [],
            "ended": [[place, s.bases, s.codes, s.consensus] for place, s in self.ended.items()],
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any], runs: list[Run]) -> LoopState:
        """Restore a state of the loop of these runs, which have their penalties and numbers of components only."""
        for run, objective, converged in zip(runs, state["objectives"], state["converged"], strict=True):
            run.objective, run.converged = np.asarray(objective).tolist(), converged
        active = [runs[place] for place in state["active"]]
        lay_out(active)
        ended = {place: runs[place].solution(bases, codes, mean) for place, bases, codes, mean in state["ended"]}
        return cls(runs, active, state["correlations"], state["n_iter"], ended)


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


def lay_out(runs: list[Run]) -> None:
    """Assign consecutive rows of the stacked codes to runs."""
    ends = np.cumsum([run.n_components for run in runs]).tolist()
    for run, end in zip(runs, ends, strict=True):
        run.rows = slice(end - run.n_components, end)


def new_runs(weights: Sequence[Weights], n_components: Sequence[int]) -> list[Run]:
    """Return runs with these penalties and numbers of components, which have done no iteration."""
    runs = [Run(*pair) for pair in zip(weights, n_components, strict=True)]
    lay_out(runs)
    return runs


def codes_of_present(
    solution: Solution, problem: Problem, views: Views, scalings: list[Scaling]
) -> tuple[list[Array], Array]:
    """Return the codes of all present rows, one array per view, and the consensus of all samples.

    Rows without an edge in the graph are projected on the basis (Remark 1).
    """
    codes, embedding = [], solution.consensus.copy()
    unreached = host(problem.n_codes) == 0
    for k, (term, basis, code) in enumerate(zip(problem.terms, solution.bases, solution.codes, strict=True)):
        rows, reached = views.rows(k), host(problem.rows[term.part])
        if len(reached) < len(rows):
            alone = ~np.isin(rows, reached)
            projected = np.asarray(host(scalings[k].apply(views[rows[alone]].matrices[k])) @ basis.T)
            whole = np.empty((len(rows), code.shape[1]), dtype=code.dtype)
            whole[alone], whole[~alone] = projected, code
            lost = unreached[rows[alone]]
            embedding[rows[alone][lost]] += projected[lost]
            code = whole
        codes.append(code)
    embedding[unreached] /= views.mask[unreached].sum(axis=1, keepdims=True).astype(embedding.dtype)
    return codes, embedding


def codes_of_all(problem: Problem, solution: Solution) -> list[Array]:
    """Return one code per sample and view; zeros for samples that the graph does not reach."""
    codes = []
    for term, reached in zip(problem.terms, solution.codes, strict=True):
        if len(reached) < problem.n_samples:
            everyone = np.zeros((problem.n_samples, reached.shape[1]), dtype=reached.dtype)
            everyone[host(problem.rows[term.part])] = reached
            reached = everyone
        codes.append(reached)
    return codes
