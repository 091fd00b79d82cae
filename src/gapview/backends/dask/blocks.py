"""Views in blocks of rows: what the client knows of them, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import numpy as np

from ...errors import InputError, InputTypeError, ParameterError
from ...utils.parameters import check_choice
from ...utils.types import Array
from ...views import Views, as_views
from ...views.cells import PARTIAL_ROWS, row_summary
from ...views.containers import RawView, demand_two_dimensions, descends, named_views, read_view
from ...views.core import completed, demand_features, read
from ...views.joining import demand_equal_length
from .frames import keyed_blocks
from .kinds import dask_kind
from .sizes import measured
from .tasks import Tasks

__all__ = [
    "BlockedViews",
    "aligned",
    "as_block",
    "extremes",
    "gathered",
    "ids_of",
    "known_sizes",
    "read_blocks",
    "without_features",
]

_MOST_CHECKED = 10**7  # rows whose digests the client can hold

measured(Views)


@dataclass(frozen=True)
class BlockedViews:
    """Samples in blocks, each a ``Views`` of its own that lies on the cluster, and what is known of all."""

    blocks: list[Any]  # handles of Views
    starts: Array  # where in the order of the samples each block begins, and the last one ends
    present: Array  # blocks × views: the samples that have the view
    low: list[Array]  # of every feature of every view
    high: list[Array]
    template: Views  # the same without samples
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

    def of(self, blocks: list[Any]) -> BlockedViews:
        """Return other values of the same samples."""
        return replace(self, blocks=blocks)


def read_blocks(tasks: Tasks, data: Any, mask: Any, partial_rows: str) -> BlockedViews:
    """Align the views on common blocks of rows, and check them as all data are checked."""
    check_choice("partial_rows", partial_rows, PARTIAL_ROWS)
    if partial_rows == "fill":
        raise ParameterError(
            "partial_rows='fill' looks for neighbours in the whole view, which no worker of a cluster holds. Use "
            "partial_rows='drop', or fill the gaps first."
        )
    pairs, _, outer = named_views(data)
    names, views = [name for name, _ in pairs], [view for _, view in pairs]
    common = {"names": names, "outer": outer, "partial_rows": partial_rows}
    masks = None
    if dask_kind(data) == "frame":
        if mask is not None:
            raise InputError("mask is for Dask arrays: a Dask dataframe says by its ids which samples it has.")
        chunks = keyed_blocks(tasks, names, views)
        more = []
    else:
        arrays = aligned(names, views, mask)
        edges = np.cumsum([0, *arrays[0].chunks[0]]).tolist()
        chunks = [list(own) for own in zip(*tasks.read(arrays), strict=True)]
        if mask is not None:
            masks = [own.pop() for own in chunks]
        more = [edges[:-1], masks or [None] * len(chunks)]
    try:
        return _described(tasks, tasks.map("read", as_block, chunks, *more, **common))
    except InputError:
        _check_together(tasks, chunks, masks, names, partial_rows)
        raise


def _check_together(
    tasks: Tasks, chunks: list[Any], masks: list[Any] | None, names: Sequence[str], partial_rows: str
) -> None:
    """Check all blocks at once on the client, so that messages count the rows of all, not of the first bad block."""
    digests = tasks.map("check", _digests, chunks, names=names)
    if sum(tasks.gather(tasks.map("check", _n_rows, digests))) > _MOST_CHECKED:
        return
    of_views = [_stacked(own) for own in zip(*tasks.gather(digests), strict=True)]
    mask = None if masks is None else np.concatenate(tasks.gather(masks))
    as_views(dict(zip(names, of_views, strict=True)), mask, partial_rows)


def _digests(chunks: Sequence[Any], *, names: Sequence[str]) -> list[Any]:
    """Return the digest of each view in a block, as a frame with the same ids if the view is one."""
    return [_digest_of(name, chunk) for name, chunk in zip(names, chunks, strict=True)]


def _digest_of(name: str, chunk: Any) -> Any:
    digest = row_summary(read_view(name, chunk, None).values)
    if not descends(chunk, "pandas", "DataFrame"):
        return digest
    import pandas as pd

    return pd.DataFrame(digest, index=chunk.index)


def _n_rows(digests: Sequence[Any]) -> int:
    return len(digests[0])


def _stacked(parts: Sequence[Any]) -> Any:
    if not descends(parts[0], "pandas", "DataFrame"):
        return np.concatenate(parts)
    import pandas as pd

    return pd.concat(parts)


def aligned(names: Sequence[str], views: Sequence[Any], mask: Any) -> list[Any]:
    """Cut arrays, and the mask after them, into common blocks of rows: those of the view with most values."""
    import dask.array as da

    arrays = [_read_array(name, view) for name, view in zip(names, views, strict=True)]
    widest = max(arrays, key=lambda array: array.shape[1] * array.dtype.itemsize)
    raw = [RawView(name, array) for name, array in zip(names, arrays, strict=True)]
    demand_equal_length(raw, len(arrays[0]), f"view '{names[0]}'")
    rows = tuple(size for size in widest.chunks[0] if size)
    if not rows:
        raise InputError("The views have no rows.")
    arrays = _cut(arrays, rows)
    if mask is None:
        return arrays
    shown = mask if descends(mask, "dask", "Array") else da.from_array(np.asarray(mask), chunks=-1)
    shown = known_sizes(shown)
    if shown.shape != (len(widest), len(names)):
        raise InputError(
            f"mask must have one row for each sample and one column for each view, shape {(len(widest), len(names))}; "
            f"got shape {shown.shape}."
        )
    return [*arrays, *_cut([shown], rows)]


def _cut(arrays: list[Any], rows: tuple[int, ...]) -> list[Any]:
    """Cut arrays into blocks of these rows, by tasks with names of their own.

    Dask gives the same names to the same cut. A fit lets its tasks go; the same views cut again, by ``predict``, would
    lean on tasks of which the scheduler knows some and has forgotten others.
    """
    return [
        array
        if array.chunks[0] == rows and len(array.chunks[1]) == 1
        else array.map_blocks(_same, meta=array._meta, name=f"gapview-view-{uuid4().hex}").rechunk(
            (rows, array.shape[1:])
        )
        for array in arrays
    ]


def _same(block: Any) -> Any:
    return block


def _read_array(name: str, view: Any) -> Any:
    import dask.array as da

    if view is None:
        raise InputError(f"View '{name}' is None. Leave it out of the fit.")
    array = known_sizes(view) if descends(view, "dask", "Array") else da.from_array(np.asarray(view), chunks=-1)
    demand_two_dimensions(name, array)
    demand_features(name, array.shape)
    if not isinstance(array._meta, np.ndarray):
        raise InputTypeError(
            f"View '{name}' is a Dask array of blocks of type {type(array._meta).__name__}; a fit on a cluster takes "
            "dense blocks of NumPy. Turn them with .map_blocks(lambda block: block.toarray()), or fit in memory."
        )
    return array


def known_sizes(array: Any) -> Any:
    """Find out sizes of blocks that are not known, by reading the array once."""
    if any(np.isnan(size) for sizes in array.chunks for size in sizes):
        return array.compute_chunk_sizes()
    return array


def as_block(
    chunks: Sequence[Any],
    begin: int | None = None,
    mask: Any = None,
    *,
    names: Sequence[str],
    outer: str,
    partial_rows: str,
) -> Views:
    """Read one block of all views, as the door for data reads whole views."""
    values: Any = dict(zip(names, chunks, strict=True))
    values = {"dict": values, "list": list(chunks), "single": chunks[0]}[outer]
    ids = None if begin is None else np.arange(begin, begin + len(chunks[0]))
    return completed(read(values, mask, None, ids, None), partial_rows)


def _described(tasks: Tasks, blocks: list[Any]) -> BlockedViews:
    told = tasks.gather(tasks.map("describe", _describe, blocks))
    kept = [place for place, (size, *_) in enumerate(told) if size]
    if not kept:
        raise InputError("The views have no samples.")
    sizes, present, low, high, dtypes = zip(*(told[place] for place in kept), strict=True)
    template = tasks.gather(tasks.submit("describe", _template, blocks[kept[0]]))
    dtype = max((dtype for own in dtypes for dtype in own), key=lambda kind: kind.itemsize)
    lows = [np.min(of_view, axis=0) for of_view in zip(*low, strict=True)]
    highs = [np.max(of_view, axis=0) for of_view in zip(*high, strict=True)]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return BlockedViews([blocks[place] for place in kept], starts, np.array(present), lows, highs, template, dtype)


def _describe(views: Views) -> tuple[int, list[int], list[Array], list[Array], list[Any]]:
    low, high = extremes(views.matrices)
    return views.n_samples, list(views.n_present), low, high, [matrix.dtype for matrix in views.matrices]


def extremes(matrices: Sequence[Array]) -> tuple[list[Array], list[Array]]:
    """Return the smallest and largest value of every feature; of no rows, infinity."""
    return (
        [matrix.min(axis=0, initial=np.inf).astype(np.float64) for matrix in matrices],
        [matrix.max(axis=0, initial=-np.inf).astype(np.float64) for matrix in matrices],
    )


def _template(views: Views) -> Views:
    return views[:0]


def gathered(tasks: Tasks, views: BlockedViews, rows: Array) -> Views:
    """Bring some samples to the client, in ascending order; there must be room for them."""
    edges = np.searchsorted(rows, views.starts)
    chosen = [
        (block, rows[begin:end] - start)
        for block, start, begin, end in zip(views.blocks, views.starts[:-1], edges[:-1], edges[1:], strict=True)
        if end > begin
    ]
    blocks, places = zip(*chosen, strict=True)
    parts = tasks.gather(tasks.map("sample", _some, list(blocks), list(places)))
    matrices = tuple(np.concatenate([part.matrices[k] for part in parts]) for k in range(views.n_views))
    mask, ids = np.concatenate([part.mask for part in parts]), np.concatenate([part.sample_ids for part in parts])
    return views.template._like(matrices, mask, ids)


def _some(views: Views, rows: Array) -> Views:
    return views[rows]


def ids_of(views: Views) -> Array:
    """Return the ids of the samples of a block."""
    return views.sample_ids


def without_features(views: Views) -> Views:
    """Return which samples have which views, and nothing of what these hold."""
    return views._like(tuple(matrix[:, :0] for matrix in views.matrices), views.mask, views.sample_ids)
