"""The passes of Algorithm 1 over blocks on the cluster.

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

from ...compute.engine import one_by_one, single_threaded_blas
from ...factorization.loop import LoopState, Run, Solution
from ...factorization.problem import Problem
from ...factorization.sweep import ArraySweep, summed
from ...utils.types import Array
from .checkpoint import BlockCodes, ClusterCheckpoint
from .problem import BlockedProblem
from .tasks import flat, register_size

_DETACH_EVERY = 10  # steps

register_size(Solution)


class BlockedSweep:
    """The passes over a problem in blocks; see :class:`gapview.factorization.loop.Sweep`.

    Parameters
    ----------
    problem : BlockedProblem
        The data.
    starts : list
        For every start a handle for each block; emptied.
    checkpoint : ClusterCheckpoint, optional
        Where the state of the loop is stored.
    """

    def __init__(
        self, problem: BlockedProblem, starts: list[list[Any]], checkpoint: ClusterCheckpoint | None = None
    ) -> None:
        self.tasks, self.problem, self.checkpoint = problem.tasks, problem, checkpoint
        self.dtype = self.tasks.gather(self.tasks.submit("constant", attrgetter("degrees.dtype"), problem.blocks[0]))
        self.constant = problem.total(attrgetter("constant"))
        self._starts = [list(own) for own in zip(*starts, strict=True)]
        starts.clear()

    def correlate(self) -> list[Array]:
        """Return (HᵀP)ᵀ for every view from the starting codes."""
        self._use(self.tasks.map("start", _first_codes, self.problem.blocks, self._starts))
        return self._totals(self.problem.groups)[0]

    def _use(self, codes: list[Any]) -> None:
        """Continue with codes that can be computed again."""
        self._starts = []
        self.codes = codes
        self.workers = self.tasks.workers_of(codes)
        self.history = CodeHistory(self.problem, codes)

    def iterate(self, runs: Sequence[Run]) -> tuple[list[Array], list[float]]:
        """Update the codes; return (HᵀP)ᵀ for every view, and the objective of every run."""
        step = Step([replace(_bare(run), bases=run.bases) for run in runs])
        try:
            results = self._iterate(step)
        except CodesLost:
            self._recover()
            results = self._iterate(step)
        self.history.add(step)
        self.workers = self.tasks.workers_of(self.codes)  # the next sums are computed on these workers
        return results

    def _iterate(self, step: Step) -> tuple[list[Array], list[float]]:
        before, sent = self.codes, [self.tasks.broadcast("bases", step)] * len(self.codes)
        self.codes = self.tasks.map_at("iterate", _advance, self.workers, self.problem.blocks, before, sent)
        try:
            return self._totals(list(self.workers.values()))
        except CodesLost:
            self.codes = before
            raise

    def _totals(self, groups: list[list[int]]) -> tuple[list[Array], list[float]]:
        """Add up the shares of the blocks: (HᵀP)ᵀ for every view, and a value for every run."""
        shares = self.tasks.map("shares", itemgetter(1), self.codes)
        *correlations, values = self.tasks.total("sum-shares", summed, shares, groups)
        return correlations, values.tolist()

    def _recover(self) -> None:
        """Compute lost codes again."""
        self.codes = self.history.recoverable(self.codes)
        self.workers = self.tasks.workers_of(self.codes)

    def solution(self, run: Run) -> Solution:
        """Return the solution of one run; its codes and its consensus are lists of handles."""
        self._recover()
        sent = [self.tasks.broadcast("run", _bare(run))] * len(self.codes)
        blocks = self.tasks.map("codes", _solution, self.problem.blocks, self.codes, sent)
        self.tasks.wait(blocks)
        return run.solution(run.bases, blocks, self._consensus(blocks))

    def _consensus(self, solutions: list[Any]) -> list[Any]:
        return self.tasks.map("embedding", attrgetter("consensus"), solutions)

    def keep(self, runs: Sequence[Run]) -> None:
        """Discard the codes of all other runs."""
        step = Step([_bare(run) for run in runs], is_iteration=False)
        sent = [self.tasks.broadcast("step", step)] * len(self.codes)
        self.codes = self.tasks.map("codes", _advance, self.problem.blocks, self.codes, sent)
        self.history.add(step)

    def resume(self, runs: list[Run]) -> LoopState | None:
        """Return the state of the loop in the checkpoint, if there is one, and use its codes."""
        found = None if self.checkpoint is None else self.checkpoint.load(self.tasks, self.problem.blocks)
        if found is None:
            return None
        state, codes = found
        state["ended"] = [[place, bases, own, self._consensus(own)] for place, bases, own in state["ended"]]
        if codes:
            self._use(codes)
        return LoopState.from_dict(state, runs)

    def save(self, state: LoopState) -> None:
        """Write the state to the checkpoint every few iterations; from then on its codes are read from there."""
        if self.checkpoint is not None and (not state.active or self.checkpoint.is_due(state.n_iter)):
            try:
                saved = self._save(state)
            except CodesLost:
                self._recover()
                saved = self._save(state)
            if saved:
                return
        if state.active and self.history.is_long:
            self.codes = self.history.detach(self.codes)

    def _save(self, state: LoopState) -> bool:
        assert self.checkpoint is not None
        saved = self.checkpoint.save(self.tasks, self.problem.blocks, state, self.codes)
        if saved is None:
            return False
        codes, ended = saved
        for place, blocks in ended.items():
            state.ended[place] = replace(state.ended[place], codes=blocks, consensus=self._consensus(blocks))
        if codes:
            self._use(codes)
        return True


def _bare(run: Run) -> Run:
    """Return a copy of a run without its bases and its objective."""
    return Run(run.weights, run.n_components, run.rows)


# -- on the workers --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """One step of the codes: an iteration of the runs with their bases, or the end of all other runs."""

    runs: list[Run]
    is_iteration: bool = True


def _first_codes(problem: Problem, starts: Sequence[Sequence[Array]]) -> BlockCodes:
    """Return the starting codes of all runs in one array per view, with their shares."""
    codes = [np.concatenate([start[k].T for start in starts]) for k in range(len(problem.terms))]
    with single_threaded_blas():
        shares = ArraySweep(problem, codes, one_by_one).correlate()
    return codes, [*shares, np.zeros(len(starts))]


def _advance(problem: Problem, state: BlockCodes, step: Step) -> BlockCodes:
    """Return the codes of a block after a step; the codes before are not changed."""
    sweep = ArraySweep(problem, [codes.copy() for codes in state[0]], one_by_one)
    if not step.is_iteration:
        sweep.keep(step.runs)
        return sweep.codes, state[1]
    with single_threaded_blas():  # the tasks use all cores
        shares, values = sweep.iterate(step.runs)
    return sweep.codes, [*shares, np.asarray(values)]


def _solution(problem: Problem, state: BlockCodes, run: Run) -> Solution:
    return ArraySweep(problem, state[0], one_by_one).solution(run)


# -- lost codes ------------------------------------------------------------------------------------------------


class CodesLost(Exception):
    """Detached codes are no longer in the memory of a worker."""


class CodeHistory:
    """The steps of all blocks since codes that can be computed again.

    Parameters
    ----------
    problem : BlockedProblem
        The data.
    codes : list of handles
        The codes of the blocks before the first step.
    """

    def __init__(self, problem: BlockedProblem, codes: list[Any]) -> None:
        self.tasks, self.problems = problem.tasks, problem.blocks
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
        keys = [handle.key for handle in codes]
        detached = self.tasks.map_at("hold", _local_codes, self.tasks.workers_of(codes), self.problems, keys)
        try:
            self.tasks.wait(detached)  # before the earlier tasks may be forgotten
        except CodesLost as lost:
            lost.__traceback__ = None  # its frames hold the handles, so that no earlier task would be forgotten
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


def _local_codes(problem: Problem, key: str) -> BlockCodes:
    # The problem is an argument so that this runs on the worker that holds the codes
    codes = _in_memory(key)
    if codes is None:
        raise CodesLost
    return codes


def _recover(problem: Problem, first: BlockCodes, key: str, parts: Sequence[Sequence[Step]]) -> BlockCodes:
    """Return codes from the memory of the worker, or computed again from the first codes."""
    codes = _in_memory(key)
    if codes is not None:
        return codes
    for step in flat(parts):
        first = _advance(problem, first, step)
    return first


def _in_memory(key: str) -> BlockCodes | None:
    from distributed import get_worker

    codes: BlockCodes | None = get_worker().data.get(key)
    return codes
