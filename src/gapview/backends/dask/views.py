"""Views in blocks of rows on the cluster: reading and checking Dask collections, scaling, samples of the rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any
from uuid import uuid4

import numpy as np
from scipy import sparse

from ...errors import InputError, InputTypeError
from ...kinds import Preparation, fit_kind_blocks, prepared_views
from ...scaling import BlockedRows, Scaling, check_variation, fit_blocks, scale_per_view
from ...utils.messages import check_choice
from ...utils.packing import as_objects
from ...utils.types import Array
from ...views import Views
from ...views.cells import N_OF_EVERY_VIEW, PARTIAL_ROWS, count_missing_cells, draw_samples, row_summary
from ...views.checks import demand_present, demand_samples
from ...views.containers import (
    RawView,
    demand_distinct_columns,
    demand_two_dimensions,
    descends,
    named_views,
)
from ...views.core import check_joined, check_orientation_of, completed, demand_features, read
from ...views.joining import demand_equal_length, demand_ids_everywhere
from ...views.reading import Reading, read_views
from ...views.tables import report_row_numbers
from ..support import unsupported
from . import dask_kind
from .tasks import Tasks, flatten, register_size, send, split_by_block, spread

_MOST_CHECKED = 10**7  # rows of which the client can hold the summaries
_BY_INDEX = Reading(id_column=True)
_ROWS_INSPECTED = 10_000  # of each view, to detect ids and columns of numbers
_MOST_IDS = 2 * 10**6  # that the client checks
_NUMBER = re.compile(r"[+-]?[0-9]{1,400}([.,][0-9]*)?([eE][+-]?[0-9]{1,2})?")  # text that may be a whole number

register_size(Views)


@dataclass(frozen=True)
class BlockedViews:
    """Samples in blocks, each a ``Views`` on the cluster, and what the client knows of all of them."""

    blocks: list[Any]  # handles of Views
    starts: Array  # first sample of every block, and the number of samples
    present: Array  # blocks × views: number of samples that have the view
    low: list[Array]  # smallest value of every feature, per view
    high: list[Array]  # largest value
    template: Views  # the same views without samples
    dtype: Any  # the most precise of the views

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the views."""
        return self.template.names

    @property
    def n_views(self) -> int:
        """Number of views."""
        return self.template.n_views

    @property
    def n_samples(self) -> int:
        """Number of samples, complete or not."""
        return int(self.starts[-1])

    @property
    def n_present(self) -> tuple[int, ...]:
        """Number of samples that have every view."""
        return tuple(int(count) for count in self.present.sum(axis=0))

    @property
    def n_features(self) -> tuple[int, ...]:
        """Number of features of every view."""
        return self.template.n_features

    @property
    def sizes(self) -> list[int]:
        """Number of samples in every block."""
        return [int(size) for size in np.diff(self.starts)]


def describe_blocks(tasks: Tasks, blocks: list[Any]) -> BlockedViews:
    """Return blocks of views with what the client has to know of them; empty blocks are left out."""
    described = tasks.collect("describe", _describe, blocks)
    kept = [place for place, (size, *_) in enumerate(described) if size]
    if not kept:
        demand_samples(0)
    sizes, present, low, high, dtypes = zip(*(described[place] for place in kept), strict=True)
    template = tasks.gather(tasks.submit("describe", _select, blocks[kept[0]], slice(0)))
    dtype = max((dtype for own in dtypes for dtype in own), key=lambda kind: kind.itemsize)
    lows = [np.min(of_view, axis=0) for of_view in zip(*low, strict=True)]
    highs = [np.max(of_view, axis=0) for of_view in zip(*high, strict=True)]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return BlockedViews([blocks[place] for place in kept], starts, np.array(present), lows, highs, template, dtype)


def _describe(views: Views) -> tuple[int, list[int], list[Array], list[Array], list[Any]]:
    return views.n_samples, list(views.n_present), *_extremes(views), [matrix.dtype for matrix in views.matrices]


def _extremes(views: Views) -> tuple[list[Array], list[Array]]:
    """Return the smallest and the largest value of every feature, per view; infinity if there are no rows."""
    return (
        [matrix.min(axis=0, initial=np.inf).astype(np.float64) for matrix in views.matrices],
        [matrix.max(axis=0, initial=-np.inf).astype(np.float64) for matrix in views.matrices],
    )


def _select(views: Views, rows: Any) -> Views:
    return views[rows]


def drop_features(tasks: Tasks, views: BlockedViews, view: int | None = None) -> None:
    """Replace the blocks by views without features, or without those of one view; they still define its samples."""
    bare = tasks.map("describe", _without_features, views.blocks, view=view)
    tasks.wait(bare)
    views.blocks[:] = bare


def _without_features(views: Views, *, view: int | None) -> Views:
    matrices = enumerate(views.matrices)
    return views.with_matrices([matrix[:, :0].copy() if view in (None, k) else matrix for k, matrix in matrices])


# -- kinds and scaling -----------------------------------------------------------------------------------------


def prepare_views(
    tasks: Tasks, views: BlockedViews, kinds: Sequence[str | None], n_top: Sequence[int | None]
) -> tuple[BlockedViews, list[Preparation]]:
    """Transform every view by its kind; see :mod:`gapview.kinds`."""
    rows = [rows_of(tasks, views, k) for k in range(views.n_views)]
    rules = [fit_kind_blocks(*each) for each in zip(rows, kinds, n_top, strict=True)]
    if all(rule.is_identity for rule in rules):
        return views, rules
    return describe_blocks(tasks, tasks.map("prepare", prepared_views, views.blocks, rules=rules)), rules


def scale_views(
    tasks: Tasks, views: BlockedViews, scale: str | Sequence[str | None] | None
) -> tuple[BlockedViews, list[Scaling]]:
    """Scale every view on its present rows, all in the most precise type; see :mod:`gapview.scaling`."""
    scales = scale_per_view(scale, views.n_views)
    rows = [rows_of(tasks, views, k) for k in range(views.n_views)]
    scalings = [fit_blocks(own, way) for own, way in zip(rows, scales, strict=True)]
    blocks = tasks.map("scale", _apply, views.blocks, scalings=scalings, dtype=views.dtype)
    lows, highs = zip(*tasks.collect("describe", _extremes, blocks), strict=True)
    for k, (own, way) in enumerate(zip(rows, scales, strict=True)):
        extremes = [np.min([low[k] for low in lows], axis=0), np.max([high[k] for high in highs], axis=0)]
        check_variation(own.name, np.stack(extremes).astype(own.dtype), way)
    return replace(views, blocks=blocks), scalings


def rows_of(tasks: Tasks, views: BlockedViews, view: int) -> BlockedRows:
    """Return the rows of one view in the blocks that have some."""
    blocks = [block for block, count in zip(views.blocks, views.present[:, view], strict=True) if count]

    def reduce(function: Callable[[Array], Any], combine: Callable[[Sequence[Any]], Any]) -> Any:
        return tasks.total("moments", combine, tasks.map("moments", _of_view, blocks, view=view, compute=function))

    shape = views.n_present[view], views.n_features[view]
    return BlockedRows(views.names[view], shape, views.template.matrices[view].dtype, reduce)


def _of_view(views: Views, *, view: int, compute: Callable[[Array], Any]) -> Any:
    return compute(views.matrices[view])


def _apply(views: Views, *, scalings: Sequence[Scaling], dtype: Any) -> Views:
    pairs = zip(scalings, views.matrices, strict=True)
    return views.with_matrices([scaling.apply(matrix).astype(dtype, copy=False) for scaling, matrix in pairs])


# -- samples on the client -------------------------------------------------------------------------------------


def draw_rows(tasks: Tasks, views: BlockedViews, n_rows: int, seed: int) -> Array:
    """Draw samples, some of them with each view, in ascending order; see :func:`gapview.views.cells.draw_samples`."""

    def rare_rows(drawn: Array) -> list[Array]:
        counts = sum(tasks.collect("sample", _count_present, views.blocks, split_by_block(drawn, views.starts)))
        return [_all_rows(tasks, views, int(k)) for k in np.flatnonzero(counts < N_OF_EVERY_VIEW)]

    return draw_samples(views.n_samples, n_rows, seed, rare_rows)


def _count_present(views: Views, rows: Array) -> Array:
    return np.asarray(views.mask[rows].sum(axis=0))


def _all_rows(tasks: Tasks, views: BlockedViews, view: int) -> Array:
    """Return all samples that have a view."""
    found = tasks.collect("sample", Views.rows, views.blocks, [view] * len(views.blocks))
    return np.concatenate([rows + start for rows, start in zip(found, views.starts[:-1], strict=True)])


def collect_samples(tasks: Tasks, views: BlockedViews, samples: Array) -> Views:
    """Return samples, in ascending order, to the client; they must fit into its memory."""
    places = split_by_block(samples, views.starts)
    blocks, chosen = zip(*[pair for pair in zip(views.blocks, places, strict=True) if len(pair[1])], strict=True)
    parts = tasks.collect("sample", _select, blocks, chosen)
    matrices = [np.concatenate([part.matrices[k] for part in parts]) for k in range(views.n_views)]
    mask, ids = np.concatenate([part.mask for part in parts]), np.concatenate([part.sample_ids for part in parts])
    return views.template.with_matrices(matrices, mask, ids)


# -- reading ---------------------------------------------------------------------------------------------------


def read_blocks(tasks: Tasks, data: Any, mask: Any, partial_rows: str) -> BlockedViews:
    """Align the views on common blocks of rows, and check them as all data are checked."""
    check_choice("partial_rows", partial_rows, PARTIAL_ROWS)
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
    views = read(given, mask, None, ids, _BY_INDEX)
    if partial_rows == "fill" and any(count_missing_cells(matrix).any() for matrix in views.matrices):
        raise unsupported("filling on a cluster")
    return completed(views, partial_rows)


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
        (view,) = read_views([(name, chunk)], _BY_INDEX)
        summary = row_summary(view.values)
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
    rows = tuple(size for size in widest.chunks[0] if size) or (0,)
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
        demand_present(name, 0)
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
        return da.from_array(values.toarray() if sparse.issparse(values) else np.asarray(values), chunks=-1)
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
    partitions, heads = _with_ids(tasks, names, tasks.read(list(frames)))
    of_views = []
    senders = [tasks.located(own) for own in partitions]
    receivers = spread(sorted({worker for own in senders for worker in own}), n_blocks)
    for own, held in zip(partitions, senders, strict=True):
        received = send(tasks, "sort-ids", split_by_hash, held, receivers, own, n_blocks=n_blocks)
        of_views.append(tasks.map("join-ids", _stack_frames, received))
    chunks = [list(own) for own in zip(*of_views, strict=True)]
    _check_ids(tasks, heads, chunks)
    return chunks


def _with_ids(
    tasks: Tasks, names: Sequence[str], partitions: Sequence[list[Any]]
) -> tuple[list[list[Any]], list[RawView]]:
    """Return the partitions of every view with sample ids as index and columns of numbers, and its first rows.

    Ids and columns are detected from the first rows of each view, as those of frames in memory are from all rows.
    """
    heads = [_first_rows(tasks, own) for own in partitions]
    raw = read_views(list(zip(names, heads, strict=True)), is_sample=True)
    check_orientation_of(raw)
    demand_ids_everywhere(raw)
    found = []
    for view, head, own in zip(raw, heads, partitions, strict=True):
        columns = list(view.container.columns or ())
        is_ready = view.id_label is None and len(columns) == head.shape[1]
        found.append(own if is_ready else tasks.map("read", _selected, own, label=view.id_label, columns=columns))
    return found, raw


def _first_rows(tasks: Tasks, partitions: Sequence[Any]) -> Any:
    """Return the first rows of the first partition that has any."""
    for partition in partitions:
        head = tasks.gather(tasks.submit("read", _head, partition))
        if len(head):
            break
    return head


def _head(frame: Any) -> Any:
    return frame.head(_ROWS_INSPECTED)


def _selected(frame: Any, *, label: Any, columns: Sequence[Any]) -> Any:
    return (frame if label is None else frame.set_index(label))[list(columns)]


def _check_ids(tasks: Tasks, heads: Sequence[RawView], chunks: Sequence[Any]) -> None:
    """Check ids as those of frames in memory are checked; of very many, those in the first blocks.

    A block holds the rows of all views with its ids, so that some blocks are a random sample of the samples.
    """
    n_rows = np.array(tasks.collect("check", _lengths, chunks))
    names = [head.name for head in heads]
    if heads[0].ids is None:
        lengths = n_rows.sum(axis=0).tolist()
        raw = [RawView(name, np.broadcast_to(0.0, (n, 1))) for name, n in zip(names, lengths, strict=True)]
        demand_equal_length(raw, lengths[0], f"view '{names[0]}'")
        return
    n_checked = max(1, int((n_rows.sum(axis=1).cumsum() <= _MOST_IDS).sum()))
    indices = tasks.collect("check", _ids_of, chunks[:n_checked])
    ids = [as_objects([key for block in own for key in block]) for own in zip(*indices, strict=True)]
    numbered = [f"view '{head.name}'" for head in heads if head.may_be_row_numbers]
    report_row_numbers(numbered, [frozenset(map(str, own)) for own in ids])
    check_joined([RawView(name, np.empty((len(own), 0)), own) for name, own in zip(names, ids, strict=True)], "raise")


def _lengths(chunks: Sequence[Any]) -> list[int]:
    return [len(chunk) for chunk in chunks]


def _ids_of(chunks: Sequence[Any]) -> list[list[Any]]:
    return [chunk.index.tolist() for chunk in chunks]


def split_by_hash(frame: Any, *, n_blocks: int) -> list[Any]:
    """Return the rows of a frame for every block, by a hash of their ids; the index of each part holds objects."""
    import pandas as pd

    keys = frame.index.astype(object)
    hashed = np.array([_hash_key(key) for key in keys], dtype=object)
    block = pd.util.hash_array(hashed, categorize=False) % n_blocks
    frame = frame.set_axis(keys, axis=0)
    return [frame[block == number] for number in range(n_blocks)]


def _hash_key(key: Any) -> str:
    """Return text that is the same for ids that may be one sample, such as 1, 1.0, "1" and "1.0".

    Other ids may have the same text, such as 1 and "001": it selects the block, in which ids are then compared. It
    depends on one id alone, since partitions of a frame may have ids of different types.
    """
    if isinstance(key, np.generic):
        key = key.item()
    if isinstance(key, int) or (isinstance(key, float) and key.is_integer()):
        return str(int(key))
    text = key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key)
    text = text.strip().removesuffix(" 00:00:00")  # of a date
    if not _NUMBER.fullmatch(text):
        return text
    number = Decimal(text.replace(",", "."))
    return str(int(number)) if number == int(number) else text


def _stack_frames(received: Any) -> Any:
    frames = flatten(received)
    filled = [frame for frame in frames if len(frame)] or frames[:1]
    stacked = _concatenate(filled)
    return stacked.set_axis(stacked.index.astype(object).rename(filled[0].index.name), axis=0)
