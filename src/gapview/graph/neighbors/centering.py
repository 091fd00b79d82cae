"""Bringing points to a size and place where squares of their values can be trusted, and distances back."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse

from ...compute import is_tensor
from ...scaling import times_power
from ...utils.types import Array, Matrix
from ._asking import WithoutLast

_FAR = 100.0  # squared distance of the points from the origin, in units of their variance, above which they are centred
_SAFE = 30  # powers of 2 up to which float32 and float64 hold squares and squared differences: no copy is needed


def within_reach(points: Matrix, queries: Matrix | None) -> tuple[Matrix, Matrix | None, int]:
    """Shrink arrays or tensors by a power of 2 where needed, and centre dense points that lie far from the origin.

    Distances come from squares and products of the values, which overflow or vanish at extreme sizes, and in which the
    distances drown where the points are far from the origin. Other points are left where they are, since centring them
    would only break exact ties by rounding; and sparse data would not stay sparse.
    """
    queries = np.asarray(queries) if isinstance(queries, WithoutLast) else queries
    given = [points] if queries is None else [points, queries]
    exponent = common_exponent(given)
    shrunk = [times_power(matrix, -exponent) for matrix in given]
    if not any(sparse.issparse(matrix) for matrix in shrunk):
        center = far_center(shrunk[0])
        if center is not None:
            shrunk = [matrix - array_namespace(matrix).astype(center, matrix.dtype) for matrix in shrunk]
    return shrunk[0], None if queries is None else shrunk[1], exponent


def common_exponent(matrices: list[Matrix]) -> int:
    """Return the power of 2 by which the values have to shrink: 0 if their squares can be trusted as they are."""
    exponent = int(np.frexp(max(_largest(matrix) for matrix in matrices))[1])
    return exponent if abs(exponent) > _SAFE else 0


def _largest(matrix: Matrix) -> float:
    values = matrix.data if sparse.issparse(matrix) else matrix
    return max(float(values.max()), -float(values.min())) if 0 not in values.shape else 0.0


def far_center(points: Array) -> Array | None:
    """Return the mean of dense points in float64 if they lie far from the origin, else None."""
    xp = array_namespace(points)
    center = xp.mean(points, axis=0, dtype=xp.float64)
    # Not the variance, which writes all differences out. Where the points are so far that this drowns in rounding, it
    # is nearly 0 either way.
    spread = _sum_of_squares(points) / len(points) - center @ center
    return center if center @ center > _FAR * spread else None


def _sum_of_squares(points: Any) -> Any:
    """Add up the squares of all values in double precision, without a copy of the values."""
    if is_tensor(points):
        return points.norm(dtype=array_namespace(points).float64) ** 2
    return np.einsum("ij,ij->", points, points, dtype=np.float64)


def stretch(distances: Array, exponent: int) -> Array:
    """Bring distances between shrunk points back to the size of the data."""
    with np.errstate(over="ignore"):  # a distance too large for the type is infinite
        return times_power(distances, exponent)  # type: ignore[no-any-return]
