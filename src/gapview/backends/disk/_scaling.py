"""Scaling of views that do not fit into memory, by the formulas of :mod:`gapview.scaling`.

Features are standardised each by itself, which takes some columns of all rows at a time; rows are scaled each by
itself, which takes blocks of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...scaling import Scaling, demand_variation, fit_scaling, row_lengths
from ...views import Array, Views
from ._rows import FileRows
from ._scratch import Scratch, ScratchMatrix

__all__ = ["lengths_of", "scale_alike"]


def scale_alike(
    views: Views, scale: str | Sequence[str | None] | None, widths: Sequence[int], n_bytes: int, scratch: Scratch
) -> tuple[list[ScratchMatrix], list[Scaling]]:
    """Scale every view, and write it to a scratch file in tiles of so many columns, all in the most precise type.

    ``n_bytes`` is what a block of rows may take.
    """
    scales = [scale] * views.n_views if scale is None or isinstance(scale, str) else list(scale)
    dtype = max((matrix.dtype for matrix in views.matrices), key=lambda kind: kind.itemsize)
    scaled, scalings = [], []
    for name, matrix, way, width in zip(views.names, views.matrices, scales, widths, strict=True):
        tiles = scratch.matrix(matrix.shape, dtype, width)
        for block in matrix.blocks(n_bytes):
            tiles.write_rows(block.start, matrix[block])
        scaling = _fitted(name, tiles, matrix.dtype, way, n_bytes)
        _apply(scaling, tiles, matrix.dtype, way, n_bytes)
        scaled.append(tiles)
        scalings.append(scaling)
    return scaled, scalings


def _fitted(name: str, tiles: ScratchMatrix, dtype: np.dtype[Any], scale: str | None, n_bytes: int) -> Scaling:
    """Learn how to scale a view; ``dtype`` is the type it came in."""
    center = spread = row_length = None
    of_features, _, of_rows = (scale or "").partition("+")
    if of_features in ("standard", "center"):
        parts = [fit_scaling(name, tiles.columns(tile).astype(dtype, copy=False), of_features) for tile in tiles.tiles]
        center = np.concatenate([part.center for part in parts if part.center is not None])
        spread = np.concatenate([part.spread for part in parts if part.spread is not None])
        if of_rows == "view":
            spread = spread * np.sqrt(tiles.shape[1])
    if "unit" in (of_features, of_rows):
        moved = Scaling(name, center, spread, None)
        lengths = np.concatenate(
            [row_lengths(moved.apply(tiles[block].astype(dtype, copy=False))) for block in tiles.blocks(n_bytes)]
        )
        with np.errstate(invalid="ignore"):  # lengths that are not finite are refused there
            row_length = fit_scaling(name, lengths[:, None], "unit").row_length
    return Scaling(name, center, spread, row_length)


def _apply(scaling: Scaling, tiles: ScratchMatrix, dtype: np.dtype[Any], scale: str | None, n_bytes: int) -> None:
    """Scale a view where it is."""
    extremes: list[Array] = []
    for block in tiles.blocks(n_bytes):
        rows = scaling.apply(tiles[block].astype(dtype, copy=False))
        tiles.write_rows(block.start, rows)
        extremes = [
            np.min([*extremes[:1], rows.min(axis=0)], axis=0),
            np.max([*extremes[1:], rows.max(axis=0)], axis=0),
        ]
    demand_variation(scaling.name, np.stack(extremes), scale)


def lengths_of(matrix: FileRows, n_bytes: int) -> Array:
    """Return the length of every row."""
    return np.concatenate([row_lengths(matrix[block]) for block in matrix.blocks(n_bytes)])
