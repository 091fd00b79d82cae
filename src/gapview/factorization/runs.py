"""Runs of Algorithm 1 that share the passes over the data: penalties, state and solutions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from ..compute import host
from ..scaling import Scaling
from ..utils.types import Array
from ..views import Views
from .problem import Problem

__all__ = [
    "LoopState",
    "Run",
    "Solution",
    "Weights",
    "codes_of_all",
    "codes_of_present",
    "lay_out",
    "mean_codes",
]


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
        self.converged = tol > 0 and len(self.objective) > 1 and abs(before - value) <= tol * abs(before)

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


def mean_codes(problem: Problem, codes: list[Array]) -> Array:
    """Return the mean code of every sample, zero for samples without codes."""
    xp = array_namespace(problem.degrees)
    shape = (problem.n_samples, codes[0].shape[1])
    consensus = xp.zeros(shape, dtype=codes[0].dtype, device=codes[0].device)
    for term, code in zip(problem.terms, codes, strict=True):
        if len(code) == problem.n_samples:
            consensus += code  # no copy, unlike indexing
        else:
            consensus[problem.rows[term.part], :] += code
    consensus /= xp.astype(xp.clip(problem.n_codes, 1, None), consensus.dtype)[:, None]
    return consensus  # type: ignore[no-any-return]


def lay_out(runs: list[Run]) -> None:
    """Assign consecutive rows of the stacked codes to runs."""
    ends = np.cumsum([run.n_components for run in runs]).tolist()
    for run, end in zip(runs, ends, strict=True):
        run.rows = slice(end - run.n_components, end)


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
