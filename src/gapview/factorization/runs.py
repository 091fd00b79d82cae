"""Runs of Algorithm 1 that go through the data together: their penalties, their codes, and where they end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np
from array_api_compat import array_namespace

from ..compute import engine_for, host
from ..utils.types import Array
from .problem import Problem

__all__ = ["Run", "Solution", "Stack", "Weights", "lay_out"]


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
    """Where the loop ended."""

    bases: list[Array]  # Uₖ, K × mₖ
    codes: list[Array]  # Pₖ, a row for each code of the view
    consensus: Array  # Z: for every sample the mean of its codes, zero where it has none
    objective: Array  # after every iteration, constant term included
    n_iter: int
    converged: bool

    def on_host(self) -> Solution:
        """Return the same in arrays of NumPy."""
        bases, codes = [host(basis) for basis in self.bases], [host(code) for code in self.codes]
        return replace(self, bases=bases, codes=codes, consensus=host(self.consensus))


@dataclass(eq=False)
class Run:
    """One run among those that share the passes."""

    weights: Weights
    n_components: int
    rows: slice = field(default_factory=lambda: slice(0))  # where its components stand in the stack
    bases: list[Array] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)
    converged: bool = False

    def add(self, value: float, tol: float) -> None:
        """Note the objective after an iteration; the run has converged if it has hardly changed."""
        self.objective.append(value)
        before = self.objective[-2:][0]
        self.converged = tol > 0 and len(self.objective) > 1 and abs(before - value) <= tol * abs(before)


@dataclass(frozen=True)
class Stack:
    """Codes of all runs that go on, their components one below the other, a column for each sample of the view.

    The consensus is the mean of the codes of a sample, Eq. (15), and is not kept.
    """

    problem: Problem
    runs: list[Run]
    codes: list[Array]

    @classmethod
    def of(cls, problem: Problem, weights: Sequence[Weights], starts: Iterable[Sequence[Array]]) -> Stack:
        """Put the starting codes together."""
        xp = array_namespace(problem.degrees)
        given = list(starts)
        runs = [Run(weight, start[0].shape[1]) for weight, start in zip(weights, given, strict=True)]
        codes = [xp.concat([start[k].T for start in given], axis=0) for k in range(len(problem.terms))]
        lay_out(runs)
        return cls(problem, runs, codes)

    @property
    def n_components(self) -> int:
        """Number of components of all runs together."""
        return len(self.codes[0])

    def alike(self) -> list[tuple[Weights, slice]]:
        """Return runs that stand one below the other and have the same penalties, as these and where they stand."""
        together = [list(group) for _, group in groupby(self.runs, key=lambda run: run.weights)]
        return [(runs[0].weights, slice(runs[0].rows.start, runs[-1].rows.stop)) for runs in together]

    def without(self, ended: list[Run], correlations: list[Array]) -> tuple[Stack, list[Array]]:
        """Keep the runs that go on."""
        xp = array_namespace(self.codes[0])
        runs = [run for run in self.runs if run not in ended]
        codes, correlations = (
            [xp.concat([stacked[run.rows] for run in runs], axis=0) for stacked in arrays]
            for arrays in (self.codes, correlations)
        )
        lay_out(runs)
        return Stack(self.problem, runs, codes), correlations

    def solution(self, run: Run) -> Solution:
        """Take one run out, with a row for each sample again."""
        contiguous = engine_for(self.codes[0]).contiguous
        codes = [contiguous(code[run.rows].T) for code in self.codes]
        return Solution(
            run.bases, codes, _mean(self.problem, codes), np.asarray(run.objective), len(run.objective), run.converged
        )


def _mean(problem: Problem, codes: list[Array]) -> Array:
    """Return the consensus of all samples, zero where one has no code."""
    xp = array_namespace(problem.degrees)
    shape = (problem.n_samples, codes[0].shape[1])
    consensus = xp.zeros(shape, dtype=codes[0].dtype, device=codes[0].device)
    for term, code in zip(problem.terms, codes, strict=True):
        if len(code) == problem.n_samples:
            consensus += code  # without the copies that numbers of rows would cost
        else:
            consensus[problem.rows[term.part], :] += code
    consensus /= xp.astype(xp.clip(problem.n_codes, 1, None), consensus.dtype)[:, None]
    return consensus  # type: ignore[no-any-return]


def lay_out(runs: list[Run]) -> None:
    """Put the components of runs one below the other."""
    ends = np.cumsum([run.n_components for run in runs]).tolist()
    for run, end in zip(runs, ends, strict=True):
        run.rows = slice(end - run.n_components, end)
