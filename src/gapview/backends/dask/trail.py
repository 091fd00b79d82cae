"""The way that codes have come: those lost with a worker are made again, and the scheduler need not remember it all.

Every iteration makes the codes of a block from the ones before. Dask remembers all tasks that a result was made from:
one for each block and iteration. Every few iterations the codes are therefore *held*: by a task that knows nothing of
what was before, and takes the codes which lie on its worker. What came between is then forgotten. If codes that were
held are lost with a worker, nothing can be made from them; the client, which knows all bases, then has them made again
from the codes of the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...factorization.problem import Problem
from .exchange import flat
from .states import State, Step, replayed
from .tasks import Tasks

__all__ = ["Lost", "Trail"]

_EVERY = 10  # steps


class Lost(Exception):
    """Codes that were held are no longer there."""


class Trail:
    """What blocks have gone through since codes that can be made again in one go.

    Parameters
    ----------
    tasks : Tasks
        Where the blocks are.
    problems, state : lists of handles
        The blocks, and their codes at the start of the trail.
    n_rounds : int
        As in the estimator.
    """

    def __init__(self, tasks: Tasks, problems: list[Any], state: list[Any], n_rounds: int) -> None:
        self.tasks, self.problems, self.n_rounds = tasks, problems, n_rounds
        self.begin_at(state)

    def begin_at(self, state: list[Any]) -> None:
        """Forget the way to codes that can be made again without it."""
        self._base = state
        self._parts: list[Any] = []
        self._steps: list[Step] = []

    def add(self, step: Step) -> None:
        """Note a step."""
        if self.tasks.client is not None:
            self._steps.append(step)

    @property
    def is_due(self) -> bool:
        """Whether it has become long."""
        return len(self._steps) >= _EVERY

    def held(self, state: list[Any]) -> list[Any]:
        """Give handles of the same codes, without the way that they have come.

        If they are lost later, all that is made from them fails with :class:`Lost`; then ask for them by :meth:`kept`.
        """
        if not self._steps:
            return state
        held = self.tasks.map("hold", _held, self.problems, [handle.key for handle in state])
        try:
            self.tasks.wait(held)  # only then may what they were made from go
        except Lost:
            return self.kept(state)
        self._note()
        return held

    def kept(self, state: list[Any]) -> list[Any]:
        """Give handles of the same codes with the shortest way to them: where they are lost, they are made again.

        For this all bases since the start go to the workers.
        """
        if not self._steps and not self._parts:
            return state
        self._note()
        keys, n_blocks = [handle.key for handle in state], len(state)
        kept = self.tasks.map(
            "hold", _kept, self.problems, self._base, keys, [self._parts] * n_blocks, n_rounds=self.n_rounds
        )
        self.tasks.wait(kept)
        return kept

    def _note(self) -> None:
        if self._steps:
            self._parts.append(self.tasks.share("trail", self._steps))
        self._steps = []


def _held(problem: Problem, key: str) -> State:
    # The problem is an argument so that this runs where the codes are
    here = _lying_here(key)
    if here is None:
        raise Lost
    return here


def _kept(problem: Problem, base: State, key: str, trail: Sequence[Sequence[Step]], *, n_rounds: int) -> State:
    here = _lying_here(key)
    return replayed(problem, base, flat(trail), n_rounds=n_rounds) if here is None else here


def _lying_here(key: str) -> State | None:
    from distributed import get_worker

    lying: State | None = get_worker().data.get(key)
    return lying
