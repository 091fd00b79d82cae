"""Scaling of views in blocks, by the formulas of :mod:`gapview.scaling`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import InputError
from ...scaling import Scaling, _mean_length, _mean_of_blocks, demand_variation, moments_from, settle_scaling
from ...views import Array, Views
from .blocks import BlockedViews, extremes
from .tasks import Tasks

__all__ = ["demand_enough", "scaled_views"]


def demand_enough(views: BlockedViews, n_clusters: int) -> None:
    """Refuse what no groups can be learnt from, as for all training data."""
    if views.n_samples < max(2, n_clusters):
        raise InputError(
            f"n_clusters={n_clusters} needs as many samples, and at least 2: n_samples={views.n_samples}. Ask for "
            "fewer clusters."
        )
    for name, count, low, high in zip(views.names, views.n_present, views.low, views.high, strict=True):
        if count < 2:
            raise InputError(
                f"View '{name}' is present for {count} sample(s); at least 2 are needed to compare them. "
                "Leave this view out."
            )
        if (low == high).all():
            raise InputError(
                f"View '{name}' is constant: all its {count} rows are the same, so it tells nothing about the samples. "
                "Leave this view out."
            )


def scaled_views(
    tasks: Tasks, views: BlockedViews, scale: str | Sequence[str | None] | None
) -> tuple[BlockedViews, list[Scaling]]:
    """Scale every view on its present rows; all in the most precise type among them."""
    scales = [scale] * views.n_views if scale is None or isinstance(scale, str) else list(scale)
    scalings = [_fitted(tasks, views, k, way) for k, way in enumerate(scales)]
    blocks = tasks.map("scale", _apply, views.blocks, scalings=scalings, dtype=views.dtype)
    told = tasks.gather(tasks.map("describe", _extremes, blocks))
    for k, (name, way) in enumerate(zip(views.names, scales, strict=True)):
        low, high = np.min([low[k] for low, _ in told], axis=0), np.max([high[k] for _, high in told], axis=0)
        demand_variation(name, np.stack([low, high]).astype(views.dtype), way)
    return views.of(blocks), scalings


def _fitted(tasks: Tasks, views: BlockedViews, view: int, scale: str | None) -> Scaling:
    name, n_rows = views.names[view], views.n_present[view]

    def mean_of(values: Callable[[Array], Array]) -> Array:
        parts = tasks.map("moments", _sum_of, views.blocks, view=view, values=values)
        return np.asarray(tasks.gather(tasks.summed("moments", sum, parts)) / n_rows)

    def moments() -> tuple[Array, Array]:
        largest = np.maximum(views.high[view], -views.low[view])
        return moments_from(largest, float(np.finfo(views.template.matrices[view].dtype).eps), mean_of)

    def mean_length(of_features: Scaling) -> float:
        parts = tasks.map("moments", _length_of, views.blocks, view=view, of_features=of_features)
        return float(sum(tasks.gather(parts)) / n_rows)

    return settle_scaling(name, views.n_features[view], scale, moments, mean_length)


def _sum_of(views: Views, *, view: int, values: Callable[[Array], Array]) -> Any:
    matrix = views.matrices[view]
    return _mean_of_blocks(matrix, values) * len(matrix) if len(matrix) else np.zeros(matrix.shape[1])


def _length_of(views: Views, *, view: int, of_features: Scaling) -> float:
    matrix = views.matrices[view]
    return _mean_length(of_features.name, of_features.apply(matrix)) * len(matrix) if len(matrix) else 0.0


def _apply(views: Views, *, scalings: Sequence[Scaling], dtype: Any) -> Views:
    pairs = zip(scalings, views.matrices, strict=True)
    matrices = tuple(scaling.apply(matrix).astype(dtype, copy=False) for scaling, matrix in pairs)
    return views._like(matrices, views.mask, views.sample_ids)


def _extremes(views: Views) -> tuple[list[Array], list[Array]]:
    return extremes(views.matrices)
