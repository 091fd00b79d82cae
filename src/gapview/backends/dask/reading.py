"""Reading Dask collections: views are aligned on common blocks of rows, and checked as all data are checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import numpy as np

from ...errors import InputError, InputTypeError
from ...utils.messages import check_choice
from ...views import Views
from ...views.cells import PARTIAL_ROWS, row_summary
from ...views.containers import (
    RawView,
    demand_distinct_columns,
    demand_two_dimensions,
    descends,
    named_views,
    read_view,
)
from ...views.core import completed, demand_features, read
from ...views.joining import demand_equal_length
from ..support import unsupported
from . import dask_kind
from .tasks import Tasks, exchange_parts, flatten
from .views import BlockedViews, describe_blocks

__all__ = ["align_arrays", "as_dask_array", "read_blocks"]

_MOST_CHECKED = 10**7  # rows of which the client can hold the summaries


def read_blocks(tasks: Tasks, data: Any, mask: Any, partial_rows: str) -> BlockedViews:
    """Align the views on common blocks of rows, and check them as all data are checked."""
    check_choice("partial_rows", partial_rows, PARTIAL_ROWS)
    if partial_rows == "fill":
        raise unsupported("filling on a cluster")
    pairs, _, outer = named_views(data)
    names, views = [name for name, _ in pairs], [view for _, view in pairs]
    masks = None
    if dask_kind(data) == "frame":
        if mask is not None:
            raise InputError("mask is for Dask arrays: the index of a Dask dataframe defines its samples.")
        chunks, more = _join_frames(tasks, names, views), []
    else:
        arrays = align_arrays(names, views, mask)
        edges = np.cumsum([0, *arrays[0].chunks[0]]).tolist()
        chunks = [list(own) for own in zip(*tasks.read(arrays), strict=True)]
        if mask is not None:
            masks = [own.pop() for own in chunks]
        more = [edges[:-1], masks or [None] * len(chunks)]
    common = {"names": names, "outer": outer, "partial_rows": partial_rows}
    try:
        return describe_blocks(tasks, tasks.map("read", _read_block, chunks, *more, **common))
    except InputError:
        _check_together(tasks, chunks, masks, names, partial_rows)
        raise


def _read_block(
    chunks: Sequence[Any],
    begin: int | None = None,
    mask: Any = None,
    *,
    names: Sequence[str],
    outer: str,
    partial_rows: str,
) -> Views:
    """Read one block of all views, as whole views are read."""
    by_name = dict(zip(names, chunks, strict=True))
    given: Any = {"dict": by_name, "list": list(chunks), "single": chunks[0]}[outer]
    ids = None if begin is None else np.arange(begin, begin + len(chunks[0]))
    return completed(read(given, mask, None, ids, None), partial_rows)


def _check_together(
    tasks: Tasks, chunks: list[Any], masks: list[Any] | None, names: Sequence[str], partial_rows: str
) -> None:
    """Check summaries of all blocks on the client, so that messages count the rows of all blocks."""
    summaries = tasks.map("check", _summaries, chunks, names=names)
    if sum(tasks.collect("check", _n_rows, summaries)) > _MOST_CHECKED:
        return
    of_views = [_concatenate(own) for own in zip(*tasks.gather(summaries), strict=True)]
    mask = None if masks is None else np.concatenate(tasks.gather(masks))
    Views(dict(zip(names, of_views, strict=True)), mask=mask, partial_rows=partial_rows)


def _summaries(chunks: Sequence[Any], *, names: Sequence[str]) -> list[Any]:
    """Return the summary of the rows of each view in a block, as a frame with the same ids if the view is one."""
    summaries: list[Any] = []
    for name, chunk in zip(names, chunks, strict=True):
        summary = row_summary(read_view(name, chunk, None).values)
        summaries.append(type(chunk)(summary, index=chunk.index) if hasattr(chunk, "index") else summary)
    return summaries


def _n_rows(summaries: Sequence[Any]) -> int:
    return len(summaries[0])


def _concatenate(parts: Sequence[Any]) -> Any:
    if not descends(parts[0], "pandas", "DataFrame"):
        return np.concatenate(parts)
    import pandas as pd

    return pd.concat(parts)


# -- arrays ----------------------------------------------------------------------------------------------------


def align_arrays(names: Sequence[str], views: Sequence[Any], mask: Any) -> list[Any]:
    """Cut arrays and the mask into common blocks of rows: those of the widest view."""
    arrays = [_read_array(name, view) for name, view in zip(names, views, strict=True)]
    widest = max(arrays, key=lambda array: array.shape[1] * array.dtype.itemsize)
    raw = [RawView(name, array) for name, array in zip(names, arrays, strict=True)]
    demand_equal_length(raw, len(arrays[0]), f"view '{names[0]}'")
    rows = tuple(size for size in widest.chunks[0] if size)
    if not rows:
        raise InputError("The views have no rows.")
    if mask is not None:
        arrays.append(as_dask_array(mask))
        shape = (len(widest), len(names))
        if arrays[-1].shape != shape:
            raise InputError(
                f"mask must have one row for each sample and one column for each view, shape {shape}; got shape "
                f"{arrays[-1].shape}."
            )
    return [_cut(array, rows) for array in arrays]


def _cut(array: Any, rows: tuple[int, ...]) -> Any:
    """Cut an array into blocks of these rows, by tasks with unique names.

    Dask gives the same names to the same cut. A fit releases its tasks; the same views cut again, by ``predict``, would
    depend on tasks of which the scheduler knows some and has forgotten others.
    """
    if array.chunks[0] == rows and len(array.chunks[1]) == 1:
        return array
    renamed = array.map_blocks(np.asarray, meta=array._meta, name=f"gapview-view-{uuid4().hex}")
    return renamed.rechunk((rows, array.shape[1:]))


def _read_array(name: str, view: Any) -> Any:
    if view is None:
        raise InputError(f"View '{name}' is None. Leave it out of the fit.")
    array = as_dask_array(view)
    demand_two_dimensions(name, array)
    demand_features(name, array.shape)
    if not isinstance(array._meta, np.ndarray):
        raise InputTypeError(
            f"View '{name}' is a Dask array of blocks of type {type(array._meta).__name__}; a fit on a cluster takes "
            "dense NumPy blocks. Convert them with .map_blocks(lambda block: block.toarray()), or fit in memory."
        )
    return array


def as_dask_array(values: Any) -> Any:
    """Return values as a Dask array whose blocks have known sizes; unknown ones are computed by reading it once."""
    import dask.array as da

    if not descends(values, "dask", "Array"):
        return da.from_array(np.asarray(values), chunks=-1)
    is_unknown = any(np.isnan(size) for sizes in values.chunks for size in sizes)
    return values.compute_chunk_sizes() if is_unknown else values


# -- dataframes ------------------------------------------------------------------------------------------------


def _join_frames(tasks: Tasks, names: Sequence[str], frames: Sequence[Any]) -> list[list[Any]]:
    """Assign every sample to a block by a hash of its id, the same for all views, without sorting or gathering ids.

    There are as many blocks as the largest number of partitions of a frame. Within a block, samples are in the order in
    which their ids first appear, view after view. Returns for every block a handle of the frame of each view.
    """
    for name, frame in zip(names, frames, strict=True):
        if frame is None or not hasattr(frame, "npartitions") or not hasattr(frame, "columns"):
            raise InputError(f"View '{name}' must be a Dask dataframe like the others; got {type(frame).__name__}.")
        demand_distinct_columns(name, frame.columns)
    n_blocks = max(frame.npartitions for frame in frames)
    of_views = []
    for partitions in tasks.read(list(frames)):
        split = tasks.map("sort-ids", _split_by_hash, partitions, n_blocks=n_blocks)
        of_views.append(tasks.map("join-ids", _stack_frames, exchange_parts(tasks, "sort-ids", split, n_blocks)))
    return [list(own) for own in zip(*of_views, strict=True)]


def _split_by_hash(frame: Any, *, n_blocks: int) -> list[Any]:
    import pandas as pd

    # Numbers and text are hashed by their value, whatever the type of the index of a partition
    keys = frame.index.astype(object)
    block = pd.util.hash_array(keys.map(str).to_numpy(dtype=object), categorize=False) % n_blocks
    frame = frame.set_axis(keys, axis=0)
    return [frame[block == number] for number in range(n_blocks)]


def _stack_frames(groups: Sequence[Sequence[Any]]) -> Any:
    frames = flatten(groups)
    filled = [frame for frame in frames if len(frame)] or frames[:1]
    stacked = _concatenate(filled)
    return stacked.set_axis(stacked.index.astype(object).rename(filled[0].index.name), axis=0)
