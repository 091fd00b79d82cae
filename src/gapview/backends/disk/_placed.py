"""Some rows of a file, brought to where squares of their values can be trusted."""

from __future__ import annotations

import numpy as np

from ...graph.neighbors.distances import common_exponent, far_center
from ...scaling import times_power
from ...utils.types import Array
from ._rows import FileRows

__all__ = ["PlacedRows", "placed"]

_N_SEEN = 1000  # rows that say whether all lie far from the origin


class PlacedRows(FileRows):
    """Some rows of a matrix, shrunk by a power of 2 and moved; distances between them keep their order."""

    def __init__(self, matrix: FileRows, rows: Array, exponent: int = 0, center: Array | None = None) -> None:
        self.shape, self.dtype = (len(rows), matrix.shape[1]), matrix.dtype
        self._matrix, self._rows, self._exponent, self._center = matrix, rows, exponent, center

    def _read(self, begin: int, stop: int) -> Array:
        return self._picked(np.arange(begin, stop))

    def _picked(self, rows: Array) -> Array:
        values = times_power(self._matrix[self._rows[rows]], -self._exponent)
        return np.asarray(values if self._center is None else (values - self._center).astype(self.dtype, copy=False))


def placed(matrix: FileRows, rows: Array, n_bytes: int) -> PlacedRows:
    """Settle from the size of the values, and from some rows, whether rows need to be shrunk or moved."""
    largest = 0.0
    for block in matrix.blocks(n_bytes):
        values = matrix[block]
        largest = max(largest, float(values.max()), -float(values.min()))
    shrunk = PlacedRows(matrix, rows, common_exponent([np.array([[largest]])]))
    seen = np.unique(np.linspace(0, len(rows) - 1, _N_SEEN).astype(np.intp))
    center = far_center(shrunk[seen])
    return shrunk if center is None else PlacedRows(matrix, rows, shrunk._exponent, center.astype(matrix.dtype))
