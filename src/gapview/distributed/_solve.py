"""Algorithm 1 over blocks: the one loop of :mod:`gapview.factorization`, with its passes made on the cluster.

In an iteration every block brings its codes up to date and gives its share of HᵀP. What travels are these sums, one
from each worker, and the bases that follow from them; neither grows with the samples.

The codes of a block follow from the bases so far and from H alone. The bases are known to the scheduler, so that a
block that is lost with its worker is brought up to date by itself, from the start or from the last checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..compute._engine import _one_by_one
from ..compute._threads import one_thread_each
from ..passes import Sweep, _summed
from ..problem import Problem, demand_finite
from ..progress import ITERATING, tell
from ..runs import Run, Solution, Stack, Weights, lay_out
from ..steps import basis_step
from ..views import Array
from ._sizes import measured
from ._store import Store
from ._tasks import Tasks

__all__ = ["BlockSolution", "solve_blocks"]

measured(Solution)


@dataclass(frozen=True)
class BlockSolution:
    """Where the loop ended: codes and consensus on the cluster, all else here."""

    blocks: list[Any]  # handles of Solutions
    bases: list[Array]
    objective: Array
    n_iter: int
    converged: bool


def solve_blocks(
    tasks: Tasks,
    problems: list[Any],
    weights: Weights,
    starts: Sequence[list[Any]],
    n_components: int,
    max_iter: int,
    tol: float,
    *,
    n_rounds: int = 1,
    groups: list[list[int]],
    store: Store | None = None,
) -> BlockSolution:
    """Run Algorithm 1 from several starts in the same passes; the one with the smallest objective counts.

    ``starts`` holds for every start a handle for each block. ``groups`` says which blocks lie together on a worker.
    """
    constant, dtype = tasks.gather(tasks.summed("constant", _added, tasks.map("constant", _constant, problems)))
    kept = store.load(tasks, problems) if store else None
    if kept is None:
        runs = [Run(weights, n_components) for _ in starts]
        lay_out(runs)
        of_blocks = [list(own) for own in zip(*starts, strict=True)]
        state = tasks.map("start", _first, problems, of_blocks, runs=runs)
        correlations, n_iter = _total(tasks, state, groups)[0], 0
        groups = tasks.groups(state)
    else:
        state, runs, correlations, n_iter = kept
    going, found = list(runs), []
    while going:
        if n_iter:
            ended = [run for run in going if run.converged or n_iter == max_iter]
            found += [_solution(tasks, problems, state, going, run) for run in ended]
            state, going, correlations = _without(tasks, problems, state, going, ended, correlations)
            if not going:
                break
        for run in going:
            run.bases = [basis_step(correlation[run.rows].T) for correlation in correlations]
        known = tasks.share("bases", [run.bases for run in going])
        of_runs = [_bare(run) for run in going]
        state = tasks.map(
            "iterate", _advanced, problems, state, [known] * len(problems), runs=of_runs, n_rounds=n_rounds
        )
        correlations, values = _total(tasks, state, groups)
        groups = tasks.groups(state)  # the next sums are made where the blocks are now
        n_iter += 1
        for run, value in zip(going, values, strict=True):
            demand_finite(np.isfinite(value), dtype)
            run.add(constant + float(value), tol)
        tell(ITERATING, n_iter, max_iter, min(run.objective[-1] for run in going))
        last = all(run.converged for run in going) or n_iter == max_iter
        if store and len(going) == len(runs) and (last or store.is_due(n_iter)):
            state = store.save(tasks, problems, state, runs, correlations, n_iter)
    return min(found, key=lambda solution: float(solution.objective[-1]))


def _total(tasks: Tasks, state: list[Any], groups: list[list[int]]) -> tuple[list[Array], Array]:
    """Add up what the blocks give: (HᵀP)ᵀ for every view, and a value for every run."""
    shares = tasks.map("shares", _shares_of, state)
    *correlations, values = tasks.gather(tasks.summed("sum-shares", _summed, shares, groups))
    return correlations, values


def _bare(run: Run) -> Run:
    """Return what the blocks need of a run, but for its bases."""
    return Run(run.weights, run.n_components, run.rows)


def _solution(tasks: Tasks, problems: list[Any], state: list[Any], going: list[Run], run: Run) -> BlockSolution:
    bare = [_bare(each) for each in going]
    blocks = tasks.map("codes", _taken, problems, state, runs=bare, place=going.index(run))
    return BlockSolution(blocks, run.bases, np.asarray(run.objective), len(run.objective), run.converged)


def _without(
    tasks: Tasks, problems: list[Any], state: list[Any], going: list[Run], ended: list[Run], correlations: list[Array]
) -> tuple[list[Any], list[Run], list[Array]]:
    """Keep the runs that go on."""
    kept = [run for run in going if run not in ended]
    if not ended or not kept:
        return state, kept, correlations
    places, bare = [going.index(run) for run in ended], [_bare(run) for run in going]
    state = tasks.map("codes", _cut, problems, state, runs=bare, places=places)
    correlations = [np.concatenate([stacked[run.rows] for run in kept]) for stacked in correlations]
    lay_out(kept)
    return state, kept, correlations


# -- on the workers --------------------------------------------------------------------------------------------

State = tuple[list[Array], list[Array]]  # codes; shares of (HᵀP)ᵀ for every view, and of the objective


def _constant(problem: Problem) -> tuple[float, Any]:
    return problem.constant, problem.degrees.dtype


def _added(parts: Sequence[tuple[float, Any]]) -> tuple[float, Any]:
    return sum(constant for constant, _ in parts), parts[0][1]


def _first(problem: Problem, starts: Sequence[Sequence[Array]], *, runs: list[Run]) -> State:
    stack = Stack.of(problem, runs, starts)
    with one_thread_each():
        shares = Sweep(problem, 1, _one_by_one).correlate(stack)
    return stack.codes, [*shares, np.zeros(len(runs))]


def _advanced(problem: Problem, state: State, bases: list[list[Array]], *, runs: list[Run], n_rounds: int) -> State:
    """Bring one block up to date with the bases; what it was made from stays as it is."""
    with_bases = [replace(run, bases=own) for run, own in zip(runs, bases, strict=True)]
    stack = Stack(problem, with_bases, [codes.copy() for codes in state[0]])
    with one_thread_each():  # the cluster keeps all cores busy
        shares, values = Sweep(problem, n_rounds, _one_by_one).iterate(stack)
    return stack.codes, [*shares, np.asarray(values)]


def _shares_of(state: State) -> list[Array]:
    return state[1]


def _taken(problem: Problem, state: State, *, runs: list[Run], place: int) -> Solution:
    return Stack(problem, runs, state[0]).solution(runs[place])


def _cut(problem: Problem, state: State, *, runs: list[Run], places: list[int]) -> State:
    own = [replace(run) for run in runs]  # which are given new places
    ended = [own[place] for place in places]
    return Stack(problem, own, state[0]).without(ended, [])[0].codes, state[1]
