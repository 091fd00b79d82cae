"""Rows of other blocks: every block names those it needs, and gets these and no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..views import Array
from ._tasks import Tasks

__all__ = ["Exchange"]


class Exchange:
    """Who needs which rows of whom; settled once, and then used for any values.

    Parameters
    ----------
    tasks : Tasks
        Where the blocks are.
    needed : list of handles
        For every block the samples it needs, ascending, as places among all samples.
    starts : array
        Where each block begins.
    """

    def __init__(self, tasks: Tasks, needed: list[Any], starts: Array) -> None:
        self.tasks, n_blocks = tasks, len(needed)
        self.wanted = tasks.split("who-needs-whom", _by_block, n_blocks, needed, starts=starts)
        counts = np.array(tasks.gather(tasks.map("who-needs-whom", _counts, needed, starts=starts)))
        self.pairs = [(block, other) for block in range(n_blocks) for other in range(n_blocks) if counts[block, other]]
        self.n_blocks = n_blocks

    def rows(self, name: str, values: list[Any], pick: Callable[..., Array], **common: Any) -> list[list[Any]]:
        """Send rows where they are needed.

        ``pick(value, places, **common)`` takes rows out of the value of one block. Gives for every block a list of
        handles, whose rows one below the other are those of the samples needed.
        """
        sources = [values[other] for _, other in self.pairs]
        places = [self.wanted[block][other] for block, other in self.pairs]
        pieces = self.tasks.map(name, pick, sources, places, **common)
        received: list[list[Any]] = [[] for _ in range(self.n_blocks)]
        for (block, _), piece in zip(self.pairs, pieces, strict=True):
            received[block].append(piece)
        return received


def _by_block(needed: Array, *, starts: Array) -> list[Array]:
    edges = np.searchsorted(needed, starts)
    return [needed[edges[c] : edges[c + 1]] - starts[c] for c in range(len(starts) - 1)]


def _counts(needed: Array, *, starts: Array) -> list[int]:
    return np.diff(np.searchsorted(needed, starts)).tolist()  # type: ignore[no-any-return]
