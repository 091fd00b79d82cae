"""Bringing views to a common scale, and back: fitted on the rows that are present."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from .errors import InputError
from .views import Array, Matrix, Views

SCALES = ("unit", "center+unit", "standard", "standard+view", "standard+unit", None)

_MOSTLY_ZERO = 0.9  # share of zeros from which a view tells what is there, as counts of words do
_NARROW = 3
_FEW_EFFECTIVE = 0.2  # share of the features that carry the variance, below which a few large ones drown the others

_ROUNDING = 8  # units in the last place that scaling rows may leave between values that are the same


def row_lengths(matrix: Matrix) -> Array:
    """Return the Euclidean length of every row, without overflow or underflow on the way.

    Infinite if the length itself is too large for the type.
    """
    largest = _row_maxima(matrix)
    divisor = np.where(largest > 0, largest, 1.0)
    shrunk = _divide_rows(matrix, divisor)
    squares = shrunk.multiply(shrunk) if sparse.issparse(shrunk) else np.square(shrunk)
    with np.errstate(over="ignore"):
        return np.asarray(np.sqrt(np.asarray(squares.sum(axis=1)).ravel()) * divisor)


def unit_rows(matrix: Matrix) -> Matrix:
    """Scale every row to unit length; rows of zeros stay as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.scaling import unit_rows
    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    largest = _row_maxima(matrix)
    # Two divisions instead of one: the length itself may be too small or too large for the type.
    shrunk = _divide_rows(matrix, np.where(largest > 0, largest, 1.0))
    lengths = row_lengths(shrunk)
    return _divide_rows(shrunk, np.where(lengths > 0, lengths, 1.0))


def _row_maxima(matrix: Matrix) -> Array:
    if matrix.shape[0] == 0:
        return np.zeros(0, dtype=matrix.dtype)
    if sparse.issparse(matrix):
        return np.asarray(abs(matrix).max(axis=1).toarray()).ravel()
    return np.asarray(np.maximum(matrix.max(axis=1), -matrix.min(axis=1)))


def _divide_rows(matrix: Matrix, divisor: Array) -> Matrix:
    if not sparse.issparse(matrix):
        return matrix / divisor.astype(matrix.dtype, copy=False)[:, None]
    data = matrix.data / np.repeat(divisor, np.diff(matrix.indptr)).astype(matrix.dtype, copy=False)
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def times_power(matrix: Matrix, exponent: int) -> Matrix:
    """Multiply by a power of 2, which changes no digit."""
    if sparse.issparse(matrix):
        return sparse.csr_array((np.ldexp(matrix.data, exponent), matrix.indices, matrix.indptr), shape=matrix.shape)
    return np.ldexp(matrix, exponent)


@dataclass(frozen=True)
class Scaling:
    """How one view was scaled: first its features, then its rows."""

    name: str
    center: Array | None  # mean and spread of the features, None if they were left alone
    spread: Array | None
    row_length: float | None  # mean length of the rows before they were scaled to 1, None if they were not

    def apply(self, matrix: Matrix) -> Matrix:
        """Scale rows of this view, seen in training or new."""
        if self.center is not None:
            matrix = matrix.toarray() if sparse.issparse(matrix) else matrix
            with np.errstate(over="ignore", invalid="ignore"):
                matrix = ((matrix - self.center) / self.spread).astype(matrix.dtype, copy=False)
            if not np.isfinite(matrix).all():
                raise _too_large(self.name, "its standardised features", matrix)
        return matrix if self.row_length is None else unit_rows(matrix)

    def undo(self, matrix: Array) -> Array:
        """Bring rows back to the user's units; rows that were scaled to unit length get the mean length."""
        if self.row_length is not None:
            matrix = matrix * self.row_length
        return matrix if self.center is None else np.asarray(matrix * self.spread + self.center)


def _too_large(name: str, what: str, matrix: Matrix) -> InputError:
    return InputError(
        f"View '{name}' holds values so large that {what} are not finite as {matrix.dtype}. Divide the view by its "
        "largest value first."
    )


def fit_scaling(name: str, matrix: Matrix, scale: str | None) -> Scaling:
    """Learn from the present rows of one view how to scale it."""
    center = spread = row_length = None
    if scale is not None and scale.startswith(("standard", "center")):
        matrix = _filled_in(name, matrix)
        center, spread = _feature_moments(matrix)
        if scale.startswith("center"):
            spread = np.ones_like(spread)
        elif scale.endswith("view"):
            spread = spread * np.sqrt(matrix.shape[1])
        matrix = Scaling(name, center, spread, None).apply(matrix)
    if scale is not None and scale.endswith("unit"):
        row_length = _mean_length(name, matrix)
    return Scaling(name, center, spread, row_length)


def _mean_length(name: str, matrix: Matrix) -> float:
    lengths = row_lengths(matrix).astype(np.float64)
    largest = float(lengths.max())
    if not np.isfinite(largest):
        raise _too_large(name, "the lengths of its rows", matrix)
    return largest * float(np.mean(lengths / largest)) if largest > 0 else 0.0  # the plain sum may overflow


def _filled_in(name: str, matrix: Matrix) -> Array:
    """Write out a sparse view that is not mostly zeros; one that is would grow many times."""
    if sparse.issparse(matrix) and is_mostly_zero(matrix):
        raise InputError(
            f"View '{name}' is sparse; centring or standardising its features would fill it with numbers. "
            "Use scale='unit', or pass the view as a dense array (.toarray()) if it fits into memory."
        )
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)


def is_mostly_zero(matrix: Matrix) -> bool:
    """Tell whether more than nine tenths of the values are zero, whatever the matrix is stored in."""
    filled = matrix.count_nonzero() if sparse.issparse(matrix) else np.count_nonzero(matrix)
    return bool(filled < (1 - _MOSTLY_ZERO) * matrix.shape[0] * matrix.shape[1])


def _feature_moments(matrix: Array) -> tuple[Array, Array]:
    # Divide by the largest value first, so that squares of huge or tiny numbers stay finite.
    largest = np.maximum(matrix.max(axis=0), -matrix.min(axis=0)).astype(np.float64)
    largest[largest == 0] = 1.0
    shrunk = matrix / largest
    center, spread = shrunk.mean(axis=0), shrunk.std(axis=0)
    spread[spread <= 10 * np.finfo(matrix.dtype).eps] = 1.0  # a constant feature stays constant, at zero
    return center * largest, spread * largest


def suitable_scale(matrix: Matrix, *, centered: bool) -> str:
    """Choose how to scale one view from what its values look like.

    * A view of mostly zeros, as counts of words are, says what is there; centring would turn every absence into a
      fact, so only its rows are scaled.
    * A view of three features or fewer would have no more than two angles left if its rows were scaled; its features
      are standardised, and the view as a whole is brought to rows of length 1 on average.
    * Where a few features carry nearly all of the variance, as measurements in different units and scores of principal
      components do, they would drown the others, so features are standardised before rows are scaled.
    * Any other view has features that belong together. Whether centring helps it does not show, and is left to the
      caller.

    How many features carry the variance is told by their participation ratio, (Σσ²)² / Σσ⁴, over their number.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.scaling import suitable_scale
    >>> values = np.random.default_rng(0).normal(size=(50, 6))
    >>> suitable_scale(values, centered=True), suitable_scale(values * [1, 1, 1, 1, 1, 1000], centered=True)
    ('center+unit', 'standard+unit')
    """
    if is_mostly_zero(matrix):
        return "unit"
    if matrix.shape[1] <= _NARROW:
        return "standard+view"
    matrix = np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)
    # Divided by the largest value first, so that fourth powers stay finite
    largest = float(np.abs(matrix).max())
    variances = (matrix / largest).var(axis=0, dtype=np.float64)
    top = float(variances.max())
    if top > 0:
        shares = variances / top
        if float(shares.sum() ** 2 / np.square(shares).sum()) < _FEW_EFFECTIVE * matrix.shape[1]:
            return "standard+unit"
    return "center+unit" if centered else "unit"


def scale_views(views: Views, scale: str | Sequence[str | None] | None) -> tuple[list[Matrix], list[Scaling]]:
    """Scale every view on its present rows, all in the same way or each in its own.

    Raises
    ------
    InputError
        If a view is the same for all samples once it is scaled, as a single positive feature is after its rows are
        scaled to unit length, up to rounding; or if its values are too large to be scaled.
    """
    scales = [scale] * views.n_views if scale is None or isinstance(scale, str) else list(scale)
    named = list(zip(views.names, views.matrices, scales, strict=True))
    scalings = [fit_scaling(name, matrix, way) for name, matrix, way in named]
    scaled = [scaling.apply(matrix) for scaling, matrix in zip(scalings, views.matrices, strict=True)]
    for (name, _, way), matrix in zip(named, scaled, strict=True):
        if _constant_but_for_rounding(matrix):
            raise InputError(
                f"View '{name}' is constant once scaled with scale={way!r}: all its rows point the same way. "
                "Use scale='standard', or leave this view out."
            )
    return scaled, scalings


def _constant_but_for_rounding(matrix: Matrix) -> bool:
    """Tell whether no feature varies, each judged by its own size: a large one must not hide the others."""
    low, high = matrix.min(axis=0), matrix.max(axis=0)
    if sparse.issparse(matrix):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    with np.errstate(over="ignore"):
        return bool((high - low <= _ROUNDING * np.finfo(matrix.dtype).eps * np.maximum(-low, high)).all())
