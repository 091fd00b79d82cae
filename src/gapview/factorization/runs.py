"""Runs of Algorithm 1 that share the passes over the data: penalties, codes and solutions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np
from array_api_compat import array_namespace

from ..compute import engine_for, host
from ..scaling import Scaling
from ..utils.types import Array
from ..views import Views
from .problem import Problem

__all__ = ["Run", "Solution", "Stack", "Weights", "codes_of_all", "codes_of_present", "lay_out"]


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
    """The result of one run of the loop."""

    bases: list[Array]  # Uₖ, K × mₖ
    codes: list[Array]  # Pₖ, a row for each code of the view
    consensus: Array  # Z: for every sample the mean of its codes, zero where it has none
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
    rows: slice = field(default_factory=lambda: slice(0))  # of its components in the stack
    bases: list[Array] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)
    converged: bool = False

    def add(self, value: float, tol: float) -> None:
        """Append the objective after an iteration; the run converges if its relative change is at most ``tol``."""
        self.objective.append(value)
        before = self.objective[-2:][0]
        self.converged = tol > 0 and len(self.objective) > 1 and abs(before - value) <= tol * abs(before)

    def solution(self, bases: list[Array], codes: list[Array], consensus: Array) -> Solution:
        """Return the solution of the run, with the objective recorded so far."""
        return Solution(bases, codes, consensus, np.asarray(self.objective), len(self.objective), self.converged)


@dataclass(frozen=True)
class Stack:
    """Codes of all active runs, one row per component of every run and one column per sample of the view.

    The consensus is the mean of the codes of a sample, Eq. (15), and is not stored.
    """

    problem: Problem
    runs: list[Run]
    codes: list[Array]

    @classmethod
    def of(cls, problem: Problem, weights: Sequence[Weights], starts: Iterable[Sequence[Array]]) -> Stack:
        """Return the stack of the starting codes of several runs."""
        xp = array_namespace(problem.degrees)
        given = list(starts)
        runs = [Run(weight, start[0].shape[1]) for weight, start in zip(weights, given, strict=True)]
        codes = [xp.concat([start[k].T for start in given], axis=0) for k in range(len(problem.terms))]
        lay_out(runs)
        return cls(problem, runs, codes)

    def alike(self) -> list[tuple[Weights, slice]]:
        """Return the penalties of neighbouring runs that have the same ones, with the rows of all these runs."""
        together = [list(group) for _, group in groupby(self.runs, key=lambda run: run.weights)]
        return [(runs[0].weights, slice(runs[0].rows.start, runs[-1].rows.stop)) for runs in together]

    def without(self, ended: list[Run], correlations: list[Array]) -> tuple[Stack, list[Array]]:
        """Return the stack and the correlations of the other runs."""
        xp = array_namespace(self.codes[0])
        runs = [run for run in self.runs if run not in ended]
        codes, correlations = (
            [xp.concat([stacked[run.rows] for run in runs], axis=0) for stacked in arrays]
            for arrays in (self.codes, correlations)
        )
        lay_out(runs)
        return Stack(self.problem, runs, codes), correlations

    def solution(self, run: Run) -> Solution:
        """Return the solution of one run, with one row per sample."""
        contiguous = engine_for(self.codes[0]).contiguous
        codes = [contiguous(code[run.rows].T) for code in self.codes]
        return run.solution(run.bases, codes, _consensus(self.problem, codes))


def _consensus(problem: Problem, codes: list[Array]) -> Array:
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
    """Assign consecutive rows of a stack to runs."""
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
