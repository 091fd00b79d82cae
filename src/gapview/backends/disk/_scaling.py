"""Scaling of views that do not fit into memory, by the formulas of :mod:`gapview.scaling`, in blocks of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...scaling import Scaling, check_variation, fit_blocks, row_lengths, rows_in_blocks, scale_per_view
from ...utils.types import Array
from ...views import Views
from ._rows import FileRows
from ._scratch import Scratch, ScratchMatrix

__all__ = ["lengths_of", "scale_alike"]


def scale_alike(
    views: Views, scale: str | Sequence[str | None] | None, widths: Sequence[int], n_bytes: int, scratch: Scratch
) -> tuple[list[ScratchMatrix], list[Scaling]]:
    """Scale every view, and write it to a scratch file in tiles of so many columns, all in the most precise type.

    ``n_bytes`` is what a block of rows may take.
    """
    dtype = max((matrix.dtype for matrix in views.matrices), key=lambda kind: kind.itemsize)
    scaled, scalings = [], []
    scales = scale_per_view(scale, views.n_views)
    for name, matrix, way, width in zip(views.names, views.matrices, scales, widths, strict=True):
        scaling = fit_blocks(rows_in_blocks(name, matrix, lambda rows: rows.blocks(n_bytes)), way)
        tiles = scratch.matrix(matrix.shape, dtype, width)
        extremes = _write_scaled(scaling, matrix, tiles, n_bytes)
        check_variation(name, extremes, way)
        scaled.append(tiles)
        scalings.append(scaling)
    return scaled, scalings


def _write_scaled(scaling: Scaling, matrix: FileRows, tiles: ScratchMatrix, n_bytes: int) -> Array:
    """Write the scaled rows to the tiles; return the smallest and the largest value of every feature."""
    extremes: list[Array] = []
    for block in matrix.blocks(n_bytes):
        rows = scaling.apply(matrix[block])
        tiles.write_rows(block.start, rows)
        extremes = [
            np.min([*extremes[:1], rows.min(axis=0)], axis=0),
            np.max([*extremes[1:], rows.max(axis=0)], axis=0),
        ]
    return np.stack(extremes)


def lengths_of(matrix: FileRows, n_bytes: int) -> Array:
    """Return the length of every row."""
    return np.concatenate([row_lengths(matrix[block]) for block in matrix.blocks(n_bytes)])
