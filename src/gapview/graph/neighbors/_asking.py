"""Queries that are the points themselves but for their last column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...compute import is_tensor
from ...utils.types import Array


@dataclass(frozen=True)
class WithoutLast:
    """Rows of which the last column counts as 0; a copy of all is made only where all are needed at once."""

    rows: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows and of columns."""
        return self.rows.shape

    @property
    def dtype(self) -> Any:
        """Type of the values."""
        return self.rows.dtype

    def __getitem__(self, part: Any) -> Array:
        """Return some of the rows in a matrix of their own."""
        asked = np.array(self.rows[part])
        asked[:, -1] = 0
        return asked

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self[:], dtype=dtype)


def without_last(points: Any) -> Any:
    """Let points ask for their nearest by all columns but the last, which adds to the distance from anybody to them.

    Parameters
    ----------
    points : array or tensor of shape (n_points, n_features)
        The points.

    Returns
    -------
    queries for :func:`gapview.graph.neighbors.nearest`

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.graph.neighbors import nearest, without_last
    >>> points = np.array([[0.0, 9.0], [1.0, 0.0], [3.0, 0.0]])
    >>> nearest(points, 1, without_last(points))[1].ravel()
    array([1, 1, 2])
    """
    if not is_tensor(points):
        return WithoutLast(points)
    asking = points.clone()
    asking[:, -1] = 0
    return asking
