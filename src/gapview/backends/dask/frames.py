"""Dask dataframes: samples of all views brought together by their ids, without sorting or gathering them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import InputError
from ...views.containers import demand_distinct_columns
from .exchange import exchanged, flat
from .tasks import Tasks

__all__ = ["keyed_blocks"]


def keyed_blocks(tasks: Tasks, names: Sequence[str], frames: Sequence[Any]) -> list[list[Any]]:
    """Put every sample into a block that a hash of its id says, the same for all views.

    There are as many blocks as the frame with most partitions has. Within a block the order is that in which ids first
    appear, view after view. Gives for every block a handle of the frame of each view.
    """
    for name, frame in zip(names, frames, strict=True):
        if frame is None or not hasattr(frame, "npartitions") or not hasattr(frame, "columns"):
            raise InputError(f"View '{name}' must be a Dask dataframe like the others; got {type(frame).__name__}.")
        demand_distinct_columns(name, frame.columns)
    n_blocks = max(frame.npartitions for frame in frames)
    of_views = []
    for partitions in tasks.read(list(frames)):
        split = tasks.map("sort-ids", _by_hash, partitions, n_blocks=n_blocks)
        of_views.append(tasks.map("join-ids", _stacked, exchanged(tasks, "sort-ids", split, n_blocks)))
    return [list(own) for own in zip(*of_views, strict=True)]


def _by_hash(frame: Any, *, n_blocks: int) -> list[Any]:
    import pandas as pd

    # Numbers and text hash by their value, whatever type a partition holds them in
    keys = frame.index.astype(object)
    block = pd.util.hash_array(keys.map(str).to_numpy(dtype=object), categorize=False) % n_blocks
    frame = frame.set_axis(keys, axis=0)
    return [frame[block == number] for number in range(n_blocks)]


def _stacked(groups: Sequence[Sequence[Any]]) -> Any:
    import pandas as pd

    frames = flat(groups)
    filled = [frame for frame in frames if len(frame)] or frames[:1]
    stacked = pd.concat(filled)
    return stacked.set_axis(stacked.index.astype(object).rename(filled[0].index.name), axis=0)
