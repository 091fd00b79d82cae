"""What a block holds while the iterations go on, and what happens to it on the workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...compute import one_by_one, single_threaded_blas
from ...factorization.problem import Problem
from ...factorization.runs import Run, Solution, Stack
from ...factorization.sweep import Sweep
from ...utils.types import Array
from .sizes import measured

__all__ = ["BlockSolution", "Stand", "State", "Step", "advanced", "cut", "first", "replayed", "shares_of", "taken"]

measured(Solution)

State = tuple[list[Array], list[Array]]  # codes; shares of (HᵀP)ᵀ for every view, and of the objective


@dataclass(frozen=True)
class BlockSolution:
    """Where the loop ended: codes and consensus on the cluster, all else here."""

    blocks: list[Any]  # handles of Solutions
    bases: list[Array]
    objective: Array
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class Stand:
    """Where a fit stands between two iterations."""

    state: list[Any]  # handles of the codes
    runs: list[Run]  # those that go on
    correlations: list[Array]  # (HᵀP)ᵀ for every view
    n_iter: int
    found: list[BlockSolution]  # the best run that has ended, if any has


@dataclass(frozen=True)
class Step:
    """One step of all runs that went on then: an iteration with its bases, or the end of some of them."""

    runs: list[Run]
    bases: list[list[Array]] | None = None
    ended: Sequence[int] = ()


def first(problem: Problem, starts: Sequence[Sequence[Array]], *, runs: list[Run]) -> State:
    """Put the starting codes of all runs together."""
    stack = Stack.of(problem, [run.weights for run in runs], starts)
    with single_threaded_blas():
        shares = Sweep(problem, 1, one_by_one).correlate(stack)
    return stack.codes, [*shares, np.zeros(len(runs))]


def advanced(problem: Problem, state: State, bases: list[list[Array]], *, runs: list[Run], n_rounds: int) -> State:
    """Bring one block up to date with the bases; what it was made from stays as it is."""
    with_bases = [replace(run, bases=own) for run, own in zip(runs, bases, strict=True)]
    stack = Stack(problem, with_bases, [codes.copy() for codes in state[0]])
    with single_threaded_blas():  # the cluster keeps all cores busy
        shares, values = Sweep(problem, n_rounds, one_by_one).iterate(stack)
    return stack.codes, [*shares, np.asarray(values)]


def cut(problem: Problem, state: State, *, runs: list[Run], ended: Sequence[int]) -> State:
    """Keep the runs that go on."""
    own = [replace(run) for run in runs]  # which are given new places
    return Stack(problem, own, state[0]).without([own[place] for place in ended], [])[0].codes, state[1]


def replayed(problem: Problem, state: State, steps: Sequence[Step], *, n_rounds: int) -> State:
    """Go through steps once more."""
    for step in steps:
        if step.bases is None:
            state = cut(problem, state, runs=step.runs, ended=step.ended)
        else:
            state = advanced(problem, state, step.bases, runs=step.runs, n_rounds=n_rounds)
    return state


def shares_of(state: State) -> list[Array]:
    """Return what a block adds to the sums."""
    return state[1]


def taken(problem: Problem, state: State, *, runs: list[Run], place: int) -> Solution:
    """Take one run out."""
    return Stack(problem, runs, state[0]).solution(runs[place])
