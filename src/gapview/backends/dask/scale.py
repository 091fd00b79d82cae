"""Scaling of views in blocks, by the formulas of :mod:`gapview.scaling`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...scaling import (
    BlockedRows,
    Scaling,
    check_variation,
    fit_blocks,
    scale_per_view,
)
from ...utils.types import Array
from ...views import Views
from .blocks import BlockedViews, extremes
from .tasks import Tasks

__all__ = ["scaled_views"]


def scaled_views(
    tasks: Tasks, views: BlockedViews, scale: str | Sequence[str | None] | None
) -> tuple[BlockedViews, list[Scaling]]:
    """Scale every view on its present rows; all in the most precise type among them."""
    scales = scale_per_view(scale, views.n_views)
    rows = [_rows_of(tasks, views, k) for k in range(views.n_views)]
    scalings = [fit_blocks(own, way) for own, way in zip(rows, scales, strict=True)]
    blocks = tasks.map("scale", _apply, views.blocks, scalings=scalings, dtype=views.dtype)
    told = tasks.gather(tasks.map("describe", _extremes, blocks))
    for k, (own, way) in enumerate(zip(rows, scales, strict=True)):
        low, high = np.min([low[k] for low, _ in told], axis=0), np.max([high[k] for _, high in told], axis=0)
        check_variation(own.name, np.stack([low, high]).astype(own.dtype), way)
    return views.of(blocks), scalings


def _rows_of(tasks: Tasks, views: BlockedViews, view: int) -> BlockedRows:
    """Return the rows of one view in the blocks that have some."""
    blocks = [block for block, count in zip(views.blocks, views.present[:, view], strict=True) if count]

    def reduce(function: Callable[[Array], Any], combine: Callable[[Sequence[Any]], Any]) -> Any:
        parts = tasks.map("moments", _of_view, blocks, view=view, made=function)
        return tasks.gather(tasks.summed("moments", combine, parts))

    shape = views.n_present[view], views.n_features[view]
    return BlockedRows(views.names[view], shape, views.template.matrices[view].dtype, reduce)


def _of_view(views: Views, *, view: int, made: Callable[[Array], Any]) -> Any:
    return made(views.matrices[view])


def _apply(views: Views, *, scalings: Sequence[Scaling], dtype: Any) -> Views:
    pairs = zip(scalings, views.matrices, strict=True)
    matrices = tuple(scaling.apply(matrix).astype(dtype, copy=False) for scaling, matrix in pairs)
    return views._like(matrices, views.mask, views.sample_ids)


def _extremes(views: Views) -> tuple[list[Array], list[Array]]:
    return extremes(views.matrices)
