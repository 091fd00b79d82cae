"""The problem in blocks of samples on the cluster, and starting codes for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...compute.engine import available_threads, single_threaded
from ...factorization import starts
from ...factorization.problem import Problem
from ...factorization.sweep import summed
from ...utils.types import Array
from ...views import Views
from .tasks import Tasks
from .views import BlockedViews, as_dask_array

_N_TOGETHER = 8  # blocks whose results one task adds up
_N_DRAWN = 2**20  # numbers drawn at a time to advance a generator


@dataclass(frozen=True)
class BlockedProblem:
    """Problems of the blocks, on the cluster; see :class:`gapview.factorization.starts.ProblemBlocks`."""

    tasks: Tasks
    blocks: list[Any]  # handles of Problems
    n_features: tuple[int, ...]
    groups: list[list[int]]  # the numbers of the blocks on each worker
    is_dense = True

    def total(self, compute: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum over the blocks of ``compute(problem, *arguments)``.

        Results may be large: a task adds up those of several blocks of a worker, one after the other.
        """
        few = [group[i : i + _N_TOGETHER] for group in self.groups for i in range(0, len(group), _N_TOGETHER)]
        sent = [self.tasks.broadcast("arguments", arguments)] * len(few)
        parts = self.tasks.map("sums", _total, [[self.blocks[i] for i in own] for own in few], sent, compute=compute)
        return self.tasks.total("sums", _added, parts)

    def of_blocks(self, compute: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return a handle of ``compute(problem, *arguments)`` for every block."""
        sent = [self.tasks.broadcast("arguments", arguments)] * len(self.blocks)
        return self.tasks.map("start", _computed, self.blocks, sent, compute=compute)

    def without_data(self) -> BlockedProblem:
        """Return the problem itself: codes that are lost with a worker are computed again from its data."""
        return self


def _computed(problem: Problem, arguments: Sequence[Any], *, compute: Callable[..., Any]) -> Any:
    with single_threaded(), available_threads():  # all are taken, so that a task computes in its own thread alone
        return compute(problem, *arguments)


def _total(problems: Sequence[Problem], arguments: Sequence[Any], *, compute: Callable[..., Any]) -> Any:
    total = _computed(problems[0], arguments, compute=compute)
    for problem in problems[1:]:
        total = _added([total, _computed(problem, arguments, compute=compute)])
    return total


def _added(parts: Sequence[Any]) -> Any:
    return tuple(summed(parts)) if isinstance(parts[0], tuple) else sum(parts)


def random_start(problem: BlockedProblem, n_components: int, random_state: np.random.RandomState) -> list[Any]:
    """Draw codes uniformly from [0, 1): the numbers that :func:`gapview.factorization.starts.random_start` draws.

    The generator is advanced here, and its state before the numbers of each block is sent to the block.
    """
    sizes = problem.tasks.collect("start", _code_counts, problem.blocks)
    states: list[list[Any]] = [[] for _ in sizes]
    for k in range(len(problem.n_features)):
        for own, counts in zip(states, sizes, strict=True):
            own.append(deepcopy(random_state))
            _advance(random_state, counts[k] * n_components)
    return problem.tasks.map("start", _draw, problem.blocks, states, n_components=n_components)


def _code_counts(problem: Problem) -> list[int]:
    return [term.part.stop - term.part.start for term in problem.terms]


def _advance(random_state: np.random.RandomState, n_drawn: int) -> None:
    for begin in range(0, n_drawn, _N_DRAWN):
        random_state.uniform(size=min(_N_DRAWN, n_drawn - begin))


def _draw(problem: Problem, states: Sequence[Any], *, n_components: int) -> list[Array]:
    pairs, dtype = zip(states, _code_counts(problem), strict=True), problem.degrees.dtype
    return [deepcopy(state).uniform(size=(count, n_components)).astype(dtype) for state, count in pairs]


def given_start(problem: BlockedProblem, init: Any, views: BlockedViews, n_components: int) -> list[Any]:
    """Read the user's codes: for every view an array, or Dask array, for its samples or for all samples."""
    tasks, cut = problem.tasks, []
    for k, array in enumerate(starts.check_init(init, views, n_components, as_dask_array)):
        sizes = views.sizes if len(array) == views.n_samples else views.present[:, k].tolist()
        cut.append(array.rechunk((tuple(sizes), (n_components,))))
    blocks = [list(own) for own in zip(*tasks.read(cut), strict=True)]
    return tasks.map("start", _read_codes, problem.blocks, blocks, views.blocks)


def _read_codes(problem: Problem, codes: Sequence[Any], views: Views) -> list[Array]:
    return starts.given_start(problem, codes, views.names, views.mask)
