"""Parts that go from many blocks to many others, and rows of other blocks: everyone gets those it needs and no others.

Were there a task for every pair of B blocks, the scheduler would have B² of them. So parts travel in two stages: those
of about √B senders for a group of receivers meet in one task, which then has a part for each receiver. That takes of
the order of B √B tasks, and every part travels twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...utils.types import Array
from .tasks import Tasks

__all__ = ["Exchange", "crossed", "exchanged", "flat", "waves_of"]

_FEW = 16  # senders whose parts go straight to the receivers
_MOST_WAVES = 32


def exchanged(tasks: Tasks, name: str, whole: list[Any], n_receivers: int) -> list[list[Any]]:
    """Bring parts together by receiver.

    ``whole`` holds for every sender a handle of a list with a part for each receiver. Gives for every receiver handles
    of lists of parts, which one after the other are in the order of the senders; see :func:`flat`.
    """
    n_groups = 1 if len(whole) <= _FEW else math.ceil(math.sqrt(n_receivers))
    edges = np.linspace(0, n_receivers, n_groups + 1).astype(int).tolist()
    received = []
    for begin, end in pairwise(edges):
        bundles = whole
        if n_groups > 1:
            bundles = tasks.map(f"{name}-sort", _between, whole, [begin] * len(whole), [end] * len(whole))
        received += crossed(tasks, name, bundles, end - begin)
    return received


def crossed(tasks: Tasks, name: str, bundles: list[Any], n_receivers: int) -> list[list[Any]]:
    """Do the same for a group of receivers: the bundles of several senders meet, and are handed out from there."""
    receivers = range(n_receivers)
    if len(bundles) <= _FEW:
        places = [(bundle, place) for place in receivers for bundle in bundles]
        parts = tasks.map(f"{name}-part", _alone, [bundle for bundle, _ in places], [place for _, place in places])
        return [parts[place * len(bundles) : (place + 1) * len(bundles)] for place in receivers]
    size = math.ceil(math.sqrt(len(bundles)))
    chunks = [bundles[begin : begin + size] for begin in range(0, len(bundles), size)]
    met = tasks.map(f"{name}-meet", _by_receiver, chunks)
    places = [(bundle, place) for place in receivers for bundle in met]
    parts = tasks.map(f"{name}-part", _one, [bundle for bundle, _ in places], [place for _, place in places])
    return [parts[place * len(met) : (place + 1) * len(met)] for place in receivers]


def flat(groups: Sequence[Sequence[Any]]) -> list[Any]:
    """Put lists of parts one after the other."""
    return [part for group in groups for part in group]


def _between(parts: Sequence[Any], begin: int, end: int) -> Sequence[Any]:
    return parts[begin:end]


def _alone(parts: Sequence[Any], place: int) -> list[Any]:
    return [parts[place]]


def _by_receiver(bundles: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [list(parts) for parts in zip(*bundles, strict=True)]


def _one(parts: Sequence[Any], place: int) -> Any:
    return parts[place]


def waves_of(groups: Sequence[Sequence[int]]) -> list[list[int]]:
    """Take from every group a few members at a time: what is on its way to them is all that has to be held at once.

    Examples
    --------
    >>> from gapview.backends.dask.exchange import waves_of
    >>> waves_of([[0, 1, 4], [2, 3]])
    [[0, 2], [1, 3], [4]]
    """
    n_waves = min(_MOST_WAVES, max(len(group) for group in groups))
    sizes = [math.ceil(len(group) / n_waves) for group in groups]
    waves = [
        [member for group, size in zip(groups, sizes, strict=True) for member in group[size * i : size * (i + 1)]]
        for i in range(n_waves)
    ]
    return [wave for wave in waves if wave]


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
        self.tasks, self.n_blocks = tasks, len(needed)
        whole = tasks.map("who-needs-whom", _by_block, needed, starts=starts)
        # For every block which of its rows each block wants
        self.wanted = tasks.map("who-needs-whom", flat, exchanged(tasks, "who-needs-whom", whole, self.n_blocks))
        tasks.wait(self.wanted)

    def rows(self, name: str, values: list[Any], pick: Callable[..., Array], **common: Any) -> list[list[Any]]:
        """Send rows where they are needed, all at once: for values with few columns.

        ``pick(value, places, **common)`` takes rows out of the value of one block. Gives for every block handles of
        lists, whose rows one below the other are those of the samples needed; see :func:`gapview.backends.dask.graph.
        stacked`.
        """
        sent = self.tasks.map(name, _picked, values, self.wanted, pick=pick, **common)
        return exchanged(self.tasks, name, sent, self.n_blocks)

    def in_waves(
        self,
        name: str,
        values: list[Any],
        pick: Callable[..., Array],
        use: Callable[[list[int], list[list[Any]]], list[Any]],
        **common: Any,
    ) -> list[Any]:
        """Send rows to some blocks of every worker at a time, and have them used before the next are sent.

        ``use(blocks, received)`` gives a handle for each of these blocks, which must not need what it received later.
        """
        results: list[Any] = [None] * self.n_blocks
        for wave in waves_of(self.tasks.groups(values)):
            sent = self.tasks.map(name, _picked, values, self.wanted, pick=pick, only=wave, **common)
            received = crossed(self.tasks, name, sent, len(wave))
            del sent  # so that parts are let go as soon as they have arrived
            used = use(wave, received)
            del received
            self.tasks.wait(used)
            for block, result in zip(wave, used, strict=True):
                results[block] = result
        return results


def _by_block(needed: Array, *, starts: Array) -> list[Array]:
    edges = np.searchsorted(needed, starts)
    return [(needed[edges[c] : edges[c + 1]] - starts[c]).astype(np.int32) for c in range(len(starts) - 1)]


def _picked(
    value: Any, wanted: Sequence[Array], *, pick: Callable[..., Array], only: Sequence[int] | None = None, **common: Any
) -> list[Array]:
    blocks = range(len(wanted)) if only is None else only
    return [pick(value, wanted[block], **common) for block in blocks]
