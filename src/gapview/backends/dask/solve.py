"""Algorithm 1 over blocks: the loop of :mod:`gapview.factorization.loop`, with its passes on the cluster.

In an iteration every block updates its codes and returns its share of HᵀP. Only these sums, one from each worker, and
the bases computed from them are sent; neither grows with the samples.

The codes of a block depend on H, on its codes at the start or in the last checkpoint, and on the bases since. So the
codes of a block that is lost with its worker can be computed again without the other blocks. Dask remembers all tasks
that a result depends on, one for each block and iteration. Every few iterations the codes are therefore *detached*: by
a task that has no dependencies on earlier ones and takes the codes from the memory of its worker. The scheduler then
forgets the earlier tasks. If detached codes are lost with a worker, the client, which has all bases, has them computed
again from the codes of the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from ...compute import one_by_one, single_threaded_blas
from ...factorization.loop import add_objectives, update_bases
from ...factorization.problem import Problem
from ...factorization.runs import Run, Solution, Stack, Weights, lay_out
from ...factorization.sweep import Sweep, summed
from ...progress import ITERATING, tell
from ...utils.types import Array
from .checkpoint import BlockSolution, ClusterCheckpoint, ClusterState, State
from .tasks import Tasks, flatten, register_size

__all__ = ["solve_blocks"]

_DETACH_EVERY = 10  # steps

register_size(Solution)


def solve_blocks(
    tasks: Tasks,
    problems: list[Any],
    weights: Weights,
    starts: list[list[Any]],
    n_components: int,
    max_iter: int,
    tol: float,
    *,
    groups: list[list[int]],
    checkpoint: ClusterCheckpoint | None = None,
) -> BlockSolution:
    """Run Algorithm 1 from several starts in the same passes; return the solution with the smallest objective.

    ``starts`` holds for every start a handle for each block, and is emptied. ``groups`` holds the numbers of the blocks
    on each worker.
    """
    dtype = tasks.gather(tasks.submit("constant", attrgetter("degrees.dtype"), problems[0]))
    constant = tasks.total("constant", sum, tasks.map("constant", attrgetter("constant"), problems))
    now = checkpoint.load(tasks, problems) if checkpoint else None
    if now is None:
        runs = [Run(weights, n_components) for _ in starts]
        lay_out(runs)
        of_blocks = [list(own) for own in zip(*starts, strict=True)]
        codes = tasks.map("start", _first_codes, problems, of_blocks, runs=runs)
        now = ClusterState(codes, runs, _total(tasks, codes, groups)[0], 0, None)
        del of_blocks, codes
    starts.clear()
    workers = tasks.workers_of(now.codes)
    history = CodeHistory(tasks, problems, now.codes)
    while now.runs:
        ended = [run for run in now.runs if now.n_iter and (run.converged or now.n_iter == max_iter)]
        if ended:
            now.codes = history.recoverable(now.codes)
            _end_runs(tasks, problems, now, ended, history)
            continue
        update_bases(now.runs, now.correlations)
        step = Step([_without_bases(run) for run in now.runs], [run.bases for run in now.runs])
        try:
            values = _iterate(tasks, problems, now, step, workers)
        except CodesLost:
            now.codes = history.recoverable(now.codes)
            values = _iterate(tasks, problems, now, step, tasks.workers_of(now.codes))
        history.add(step)
        workers = tasks.workers_of(now.codes)  # the next sums are computed on these workers
        now.n_iter += 1
        add_objectives(now.runs, values.tolist(), constant, dtype, tol)
        tell(ITERATING, now.n_iter, max_iter, min(run.objective[-1] for run in now.runs))
        is_last = all(run.converged for run in now.runs) or now.n_iter == max_iter
        if checkpoint and (is_last or checkpoint.is_due(now.n_iter)):
            try:
                is_saved = checkpoint.save(tasks, problems, now)
            except CodesLost:
                now.codes = history.recoverable(now.codes)
                is_saved = checkpoint.save(tasks, problems, now)
            if is_saved:
                history.restart(now.codes)
                continue
        if history.is_long and not is_last:
            now.codes = history.detach(now.codes)
    assert now.best is not None
    return now.best


def _iterate(tasks: Tasks, problems: list[Any], now: ClusterState, step: Step, workers: dict[Any, list[int]]) -> Array:
    """Update the codes and (HᵀP)ᵀ; return the value of every run."""
    bases = [tasks.broadcast("bases", step.bases)] * len(problems)
    codes = tasks.map_at("iterate", _next_codes, workers, problems, now.codes, bases, runs=step.runs)
    now.correlations, values = _total(tasks, codes, list(workers.values()))
    now.codes = codes
    return values


def _total(tasks: Tasks, codes: list[Any], groups: list[list[int]]) -> tuple[list[Array], Array]:
    """Add up the shares of the blocks: (HᵀP)ᵀ for every view, and a value for every run."""
    shares = tasks.map("shares", itemgetter(1), codes)
    *correlations, values = tasks.total("sum-shares", summed, shares, groups)
    return correlations, values


def _without_bases(run: Run) -> Run:
    return Run(run.weights, run.n_components, run.rows)


def _end_runs(tasks: Tasks, problems: list[Any], now: ClusterState, ended: list[Run], history: CodeHistory) -> None:
    """Remove runs from the loop, and keep the best solution so far."""
    runs, places = [_without_bases(run) for run in now.runs], [now.runs.index(run) for run in ended]
    solutions = [now.best] if now.best else []
    for run, place in zip(ended, places, strict=True):
        blocks = tasks.map("codes", _solution, problems, now.codes, runs=runs, place=place)
        tasks.wait(blocks)
        solutions.append(BlockSolution(blocks, run.bases, np.asarray(run.objective), len(run.objective), run.converged))
    now.best = min(solutions, key=lambda solution: float(solution.objective[-1]))
    now.runs = [run for run in now.runs if run not in ended]
    if now.runs:
        now.codes = tasks.map("codes", _without_runs, problems, now.codes, runs=runs, ended=places)
        history.add(Step(runs, ended=places))
        now.correlations = [np.concatenate([stacked[run.rows] for run in now.runs]) for stacked in now.correlations]
        lay_out(now.runs)


# -- on the workers --------------------------------------------------------------------------------------------


def _first_codes(problem: Problem, starts: Sequence[Sequence[Array]], *, runs: list[Run]) -> State:
    """Return the starting codes of all runs in one array per view, with their shares."""
    stack = Stack.of(problem, [run.weights for run in runs], starts)
    with single_threaded_blas():
        shares = Sweep(problem, one_by_one).correlate(stack)
    return stack.codes, [*shares, np.zeros(len(runs))]


def _next_codes(problem: Problem, state: State, bases: list[list[Array]], *, runs: list[Run]) -> State:
    """Return the codes of a block after an iteration with these bases; the codes before are not changed."""
    with_bases = [replace(run, bases=own) for run, own in zip(runs, bases, strict=True)]
    stack = Stack(problem, with_bases, [codes.copy() for codes in state[0]])
    with single_threaded_blas():  # the tasks use all cores
        shares, values = Sweep(problem, one_by_one).iterate(stack)
    return stack.codes, [*shares, np.asarray(values)]


def _without_runs(problem: Problem, state: State, *, runs: list[Run], ended: Sequence[int]) -> State:
    own = [replace(run) for run in runs]  # their positions are changed
    return Stack(problem, own, state[0]).without([own[place] for place in ended], [])[0].codes, state[1]


def _solution(problem: Problem, state: State, *, runs: list[Run], place: int) -> Solution:
    return Stack(problem, runs, state[0]).solution(runs[place])


# -- lost codes ------------------------------------------------------------------------------------------------


class CodesLost(Exception):
    """Detached codes are no longer in the memory of a worker."""


@dataclass(frozen=True)
class Step:
    """One step of all runs of the loop: an iteration with its bases, or the end of some runs."""

    runs: list[Run]
    bases: list[list[Array]] | None = None
    ended: Sequence[int] = ()


class CodeHistory:
    """The steps of all blocks since codes that can be computed again.

    Parameters
    ----------
    tasks : Tasks
        Runs the tasks.
    problems, codes : lists of handles
        The blocks, and their codes before the first step.
    """

    def __init__(self, tasks: Tasks, problems: list[Any], codes: list[Any]) -> None:
        self.tasks, self.problems = tasks, problems
        self.restart(codes)

    def restart(self, codes: list[Any]) -> None:
        """Discard all steps: these codes can be computed again without them."""
        self._first = codes
        self._sent: list[Any] = []  # handles of lists of steps
        self._steps: list[Step] = []  # not sent to the cluster yet

    def add(self, step: Step) -> None:
        """Record a step."""
        if self.tasks.client is not None:
            self._steps.append(step)

    @property
    def is_long(self) -> bool:
        """Whether it is time to detach the codes."""
        return len(self._steps) >= _DETACH_EVERY

    def detach(self, codes: list[Any]) -> list[Any]:
        """Return handles of the same codes without dependencies on earlier tasks.

        If the codes are lost later, tasks that use them fail with :class:`CodesLost`; :meth:`recoverable` gets them
        back.
        """
        if not self._steps:
            return codes
        detached = self.tasks.map("hold", _local_codes, self.problems, [handle.key for handle in codes])
        try:
            self.tasks.wait(detached)  # before the earlier tasks may be forgotten
        except CodesLost:
            return self.recoverable(codes)
        self._send()
        return detached

    def recoverable(self, codes: list[Any]) -> list[Any]:
        """Return handles of the same codes that are computed again from the first codes if they are lost.

        All bases since the first codes are sent to the workers.
        """
        if not self._steps and not self._sent:
            return codes
        self._send()
        keys, steps = [handle.key for handle in codes], [self._sent] * len(codes)
        kept = self.tasks.map("hold", _recover, self.problems, self._first, keys, steps)
        self.tasks.wait(kept)
        return kept

    def _send(self) -> None:
        if self._steps:
            self._sent.append(self.tasks.broadcast("trail", self._steps))
        self._steps = []


def _local_codes(problem: Problem, key: str) -> State:
    # The problem is an argument so that this runs on the worker that holds the codes
    codes = _in_memory(key)
    if codes is None:
        raise CodesLost
    return codes


def _recover(problem: Problem, first: State, key: str, parts: Sequence[Sequence[Step]]) -> State:
    """Return codes from the memory of the worker, or computed again from the first codes."""
    codes = _in_memory(key)
    if codes is not None:
        return codes
    for step in flatten(parts):
        if step.bases is None:
            first = _without_runs(problem, first, runs=step.runs, ended=step.ended)
        else:
            first = _next_codes(problem, first, step.bases, runs=step.runs)
    return first


def _in_memory(key: str) -> State | None:
    from distributed import get_worker

    codes: State | None = get_worker().data.get(key)
    return codes
