"""Algorithm 1 over blocks: the one loop of :mod:`gapview.factorization.loop`, with its passes made on the cluster.

In an iteration every block brings its codes up to date and gives its share of HᵀP. What travels are these sums, one
from each worker, and the bases that follow from them; neither grows with the samples.

The codes of a block follow from H, from its codes at the start or in the last checkpoint, and from the bases since. So
a block that is lost with its worker is brought up to date by itself; see :mod:`gapview.backends.dask.trail`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...factorization.problem import Problem, demand_finite
from ...factorization.runs import Run, Weights, lay_out
from ...factorization.steps import basis_step
from ...factorization.sweep import summed
from ...progress import ITERATING, tell
from ...utils.types import Array
from .states import BlockSolution, Stand, Step, advanced, cut, first, shares_of, taken
from .store import Store
from .tasks import Tasks
from .trail import Lost, Trail

__all__ = ["solve_blocks"]


def solve_blocks(
    tasks: Tasks,
    problems: list[Any],
    weights: Weights,
    starts: list[list[Any]],
    n_components: int,
    max_iter: int,
    tol: float,
    *,
    n_rounds: int = 1,
    groups: list[list[int]],
    store: Store | None = None,
) -> BlockSolution:
    """Run Algorithm 1 from several starts in the same passes; the one with the smallest objective counts.

    ``starts`` holds for every start a handle for each block, and is emptied. ``groups`` says which blocks lie together
    on a worker.
    """
    constant, dtype = tasks.gather(tasks.summed("constant", _added, tasks.map("constant", _constant, problems)))
    kept = store.load(tasks, problems) if store else None
    found: list[BlockSolution] = []
    if kept is None:
        runs = [Run(weights, n_components) for _ in starts]
        lay_out(runs)
        of_blocks = [list(own) for own in zip(*starts, strict=True)]
        state = tasks.map("start", first, problems, of_blocks, runs=runs)
        correlations, n_iter = _total(tasks, state, groups)[0], 0
        of_blocks.clear()
    else:
        state, runs, correlations, n_iter, found = kept.state, kept.runs, kept.correlations, kept.n_iter, kept.found
    starts.clear()
    homes = tasks.homes(state)
    trail = Trail(tasks, problems, state, n_rounds)
    going = list(runs)
    while going:
        ended = [run for run in going if n_iter and (run.converged or n_iter == max_iter)]
        if ended:
            state = trail.kept(state)
            found = _best([*found, *(_solution(tasks, problems, state, going, run) for run in ended)])
            state, going, correlations = _without(tasks, problems, state, going, ended, correlations, trail)
        if not going:
            break
        for run in going:
            run.bases = [basis_step(correlation[run.rows].T) for correlation in correlations]
        step = Step([_bare(run) for run in going], [run.bases for run in going])
        try:
            state, correlations, values = _iterated(tasks, problems, state, step, n_rounds, homes)
        except Lost:
            state = trail.kept(state)
            state, correlations, values = _iterated(tasks, problems, state, step, n_rounds, tasks.homes(state))
        trail.add(step)
        homes = tasks.homes(state)  # the next sums are made where the blocks are now
        n_iter += 1
        for run, value in zip(going, values, strict=True):
            demand_finite(np.isfinite(value), dtype)
            run.add(constant + float(value), tol)
        tell(ITERATING, n_iter, max_iter, min(run.objective[-1] for run in going))
        last = all(run.converged for run in going) or n_iter == max_iter
        saved = None
        if store and (last or store.is_due(n_iter)):
            stand = Stand(state, going, correlations, n_iter, found)
            try:
                saved = store.save(tasks, problems, stand)
            except Lost:
                state = trail.kept(state)
                saved = store.save(tasks, problems, replace(stand, state=state))
        if saved is not None:
            state, found = saved.state, saved.found
            trail.begin_at(state)
        elif trail.is_due and not last:
            state = trail.held(state)
    return found[0]


def _best(found: list[BlockSolution]) -> list[BlockSolution]:
    return [min(found, key=lambda solution: float(solution.objective[-1]))]


def _iterated(
    tasks: Tasks, problems: list[Any], state: list[Any], step: Step, n_rounds: int, homes: dict[Any, list[int]]
) -> tuple[list[Any], list[Array], Array]:
    known = tasks.share("bases", step.bases)
    settings = {"runs": step.runs, "n_rounds": n_rounds}
    state = tasks.map_at("iterate", advanced, homes, problems, state, [known] * len(problems), **settings)
    return state, *_total(tasks, state, list(homes.values()))


def _total(tasks: Tasks, state: list[Any], groups: list[list[int]]) -> tuple[list[Array], Array]:
    """Add up what the blocks give: (HᵀP)ᵀ for every view, and a value for every run."""
    shares = tasks.map("shares", shares_of, state)
    *correlations, values = tasks.gather(tasks.summed("sum-shares", summed, shares, groups))
    return correlations, values


def _bare(run: Run) -> Run:
    """Return what the blocks need of a run, but for its bases."""
    return Run(run.weights, run.n_components, run.rows)


def _solution(tasks: Tasks, problems: list[Any], state: list[Any], going: list[Run], run: Run) -> BlockSolution:
    bare = [_bare(each) for each in going]
    blocks = tasks.map("codes", taken, problems, state, runs=bare, place=going.index(run))
    tasks.wait(blocks)
    return BlockSolution(blocks, run.bases, np.asarray(run.objective), len(run.objective), run.converged)


def _without(
    tasks: Tasks,
    problems: list[Any],
    state: list[Any],
    going: list[Run],
    ended: list[Run],
    correlations: list[Array],
    trail: Trail,
) -> tuple[list[Any], list[Run], list[Array]]:
    """Keep the runs that go on."""
    kept = [run for run in going if run not in ended]
    if not kept:
        return state, kept, correlations
    step = Step([_bare(run) for run in going], ended=[going.index(run) for run in ended])
    state = tasks.map("codes", cut, problems, state, runs=step.runs, ended=step.ended)
    trail.add(step)
    correlations = [np.concatenate([stacked[run.rows] for run in kept]) for stacked in correlations]
    lay_out(kept)
    return state, kept, correlations


def _constant(problem: Problem) -> tuple[float, Any]:
    return problem.constant, problem.degrees.dtype


def _added(parts: Any) -> tuple[float, Any]:
    return sum(constant for constant, _ in parts), parts[0][1]
