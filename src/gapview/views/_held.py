"""Views that stay in the user's own arrays: their present rows are copied when they are asked for, and not before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scipy import sparse

from ..compute import like
from ..utils.types import Array, Matrix

_LARGE = 2**27  # bytes: smaller ones are copied once and for all


@dataclass(frozen=True)
class ChosenRows:
    """Some rows of a large matrix, by reference."""

    whole: Matrix
    rows: Array

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return len(self.rows), int(self.whole.shape[1])

    def __getitem__(self, part: slice) -> Matrix:
        """Return some of the rows in a matrix of their own."""
        return self.whole[like(self.rows[part], self.whole)]

    def copied(self) -> Matrix:
        """Return the rows in a matrix of their own."""
        return self[:]


def chosen(matrix: Matrix, rows: Array) -> Any:
    """Take rows of a matrix, by reference if they are many."""
    size = 0 if sparse.issparse(matrix) else len(rows) * matrix.shape[1] * matrix.dtype.itemsize
    lazily = ChosenRows(matrix, rows)
    return lazily if size >= _LARGE else lazily.copied()
