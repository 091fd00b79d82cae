"""Views in blocks of rows on the cluster: what the client knows of them, scaling, and samples of their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import InputError
from ...scaling import BlockedRows, Scaling, check_variation, fit_blocks, scale_per_view
from ...utils.types import Array
from ...views import Views
from ...views.cells import N_OF_EVERY_VIEW, draw_samples
from .tasks import Tasks, register_size, split_by_block

__all__ = ["BlockedViews", "collect_samples", "describe_blocks", "draw_rows", "drop_features", "scale_views"]

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
        raise InputError("The views have no samples.")
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


def drop_features(tasks: Tasks, views: BlockedViews) -> None:
    """Replace the blocks by views without features, which still define the samples of each view."""
    bare = tasks.map("describe", _without_features, views.blocks)
    tasks.wait(bare)
    views.blocks[:] = bare


def _without_features(views: Views) -> Views:
    return views.with_matrices([matrix[:, :0] for matrix in views.matrices])


# -- scaling ---------------------------------------------------------------------------------------------------


def scale_views(
    tasks: Tasks, views: BlockedViews, scale: str | Sequence[str | None] | None
) -> tuple[BlockedViews, list[Scaling]]:
    """Scale every view on its present rows, all in the most precise type; see :mod:`gapview.scaling`."""
    scales = scale_per_view(scale, views.n_views)
    rows = [_rows_of(tasks, views, k) for k in range(views.n_views)]
    scalings = [fit_blocks(own, way) for own, way in zip(rows, scales, strict=True)]
    blocks = tasks.map("scale", _apply, views.blocks, scalings=scalings, dtype=views.dtype)
    lows, highs = zip(*tasks.collect("describe", _extremes, blocks), strict=True)
    for k, (own, way) in enumerate(zip(rows, scales, strict=True)):
        extremes = [np.min([low[k] for low in lows], axis=0), np.max([high[k] for high in highs], axis=0)]
        check_variation(own.name, np.stack(extremes).astype(own.dtype), way)
    return replace(views, blocks=blocks), scalings


def _rows_of(tasks: Tasks, views: BlockedViews, view: int) -> BlockedRows:
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
