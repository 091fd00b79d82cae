"""Scaling of views, fitted on the rows that are present, and its inverse."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse
from scipy.spatial.distance import pdist

from .compute.arrays import cached_blocks, host, is_tensor, like, row_blocks
from .errors import InputError
from .utils.types import Array, Matrix
from .views import Views
from .views.cells import SelectedRows

WHITE, ROOT = "white+unit", "root+"
_PLAIN = ("unit", "center+unit", "standard", "standard+view", "standard+unit", WHITE)
SCALES = (*_PLAIN, *(f"{ROOT}{scale}" for scale in _PLAIN if scale.endswith("unit")), None)

_MOSTLY_ZERO = 0.9  # share of zeros from which zero means absence, as in counts of words
_NARROW = 3
_FEWEST_COMPARED, _MOST_COMPARED = 10, 300  # rows that are compared with each other
_LIKE_NOISE = 0.85  # of the variation of distances in noise
_FEW_EFFECTIVE = 0.2  # share of the features that carry the variance, below which a few features dominate
_FEW_DIRECTIONS = 2.0  # that carry the variance, below which rows of unit length have hardly an angle left

_EQUAL_TOTALS = 0.01  # variation of the totals of rows, below which rows are shares of a whole

_KEPT_VARIANCE = 0.95  # share of the variance of standardised features that is whitened; the rest is left out

_SMALL = 2**20  # values of a sparse view, up to which it is made dense
_ROUNDING = 8  # units in the last place by which equal values may differ after rows are scaled


def largest_magnitude(matrix: Matrix) -> float:
    """Return the largest absolute value of a matrix; 0 if it has none."""
    values = matrix.data if sparse.issparse(matrix) else matrix
    if 0 in values.shape:
        return 0.0
    if is_tensor(values):
        low, high = host(_namespace(values).stack(values.aminmax())).tolist()
        return float(max(high, -low))
    return max(float(values.max()), -float(values.min()))


def row_lengths(matrix: Matrix) -> Array:
    """Return the Euclidean length of every row, without overflow or underflow in intermediate results.

    It is infinite if the length itself is too large for the type.
    """
    xp = _namespace(matrix)
    parts = [_lengths(matrix[block]) for block in cached_blocks(matrix)]
    return parts[0] if len(parts) == 1 else xp.concat(parts)


def _lengths(matrix: Matrix) -> Array:
    xp = _namespace(matrix)
    largest = _row_maxima(matrix)
    divisor = xp.where(largest > 0, largest, xp.ones_like(largest))
    shrunk = _divide_rows(matrix, divisor)
    squares = shrunk.multiply(shrunk).sum(axis=1) if sparse.issparse(shrunk) else xp.sum(xp.square(shrunk), axis=1)
    with np.errstate(over="ignore"):
        return xp.sqrt(xp.reshape(xp.asarray(squares), (-1,))) * divisor  # type: ignore[no-any-return]


def unit_rows(matrix: Matrix, *, overwrite: bool = False) -> Matrix:
    """Return every row divided by its length; rows of zeros stay zero.

    Parameters
    ----------
    matrix : array or csr_array of shape (n_rows, n_features)
        The rows.
    overwrite : bool, default=False
        Whether a dense matrix may be changed in place.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.scaling import unit_rows
    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    if sparse.issparse(matrix):
        return _unit(matrix)
    scaled = matrix if overwrite else _namespace(matrix).empty_like(matrix)
    for block in cached_blocks(matrix):
        scaled[block] = _unit(matrix[block])
    return scaled


def _unit(matrix: Matrix) -> Matrix:
    xp = _namespace(matrix)
    largest = _row_maxima(matrix)
    # Two divisions, since the length itself may be too small or too large for the type
    shrunk = _divide_rows(matrix, xp.where(largest > 0, largest, xp.ones_like(largest)))
    lengths = _lengths(shrunk)
    return _divide_rows(shrunk, xp.where(lengths > 0, lengths, xp.ones_like(lengths)))


def _namespace(matrix: Matrix) -> Any:
    return array_namespace(matrix.data if sparse.issparse(matrix) else matrix)


def _row_maxima(matrix: Matrix) -> Array:
    xp = _namespace(matrix)
    if matrix.shape[0] == 0:
        return xp.zeros_like(matrix[:, 0]) if not sparse.issparse(matrix) else np.zeros(0, dtype=matrix.dtype)
    if sparse.issparse(matrix):
        return np.asarray(abs(matrix).max(axis=1).toarray()).ravel()
    return xp.maximum(xp.max(matrix, axis=1), -xp.min(matrix, axis=1))  # type: ignore[no-any-return]


def _divide_rows(matrix: Matrix, divisor: Array) -> Matrix:
    if not sparse.issparse(matrix):
        return matrix / _namespace(matrix).astype(divisor, matrix.dtype, copy=False)[:, None]
    data = matrix.data / np.repeat(divisor, np.diff(matrix.indptr)).astype(matrix.dtype, copy=False)
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def times_power(matrix: Matrix, exponent: int) -> Matrix:
    """Return a matrix times a power of 2, which rounds only extreme values; the same object for an exponent of 0."""
    if exponent == 0:
        return matrix
    if sparse.issparse(matrix):
        return sparse.csr_array((np.ldexp(matrix.data, exponent), matrix.indices, matrix.indptr), shape=matrix.shape)
    if is_tensor(matrix):
        first = exponent // 2  # in two steps, since the power itself may be too large or too small
        return matrix * 2.0**first * 2.0 ** (exponent - first)
    return np.ldexp(matrix, exponent)


@dataclass(frozen=True)
class Scaling:
    """The scaling of one view: first of its features, then of its rows."""

    name: str  # of the view
    center: Array | None = field(repr=False)  # mean of every feature; None if features are not scaled
    spread: Array | None = field(repr=False)  # divisor of every feature
    row_length: float | None  # mean length of the rows before they are scaled to 1; None if rows are not scaled
    axes: Array | None = field(default=None, repr=False)  # features × principal axes that are whitened
    sizes: Array | None = field(default=None, repr=False)  # standard deviation along each of them
    is_rooted: bool = False  # whether values are replaced by their square roots before all else

    def apply(self, matrix: Matrix, *, overwrite: bool = False) -> Matrix:
        """Return rows of this view scaled, those of the fit or new ones; ``overwrite`` allows to change dense rows."""
        if self.center is None or self.spread is None:
            if self.is_rooted:
                matrix, overwrite = _roots(matrix), True
            return matrix if self.row_length is None else unit_rows(matrix, overwrite=overwrite)
        matrix = matrix.toarray() if sparse.issparse(matrix) else matrix
        xp = _namespace(matrix)
        center, spread = like(self.center, matrix), like(self.spread, matrix)
        scaled = matrix if overwrite else xp.empty_like(matrix)
        is_spread = bool(np.any(self.spread != 1))
        for block in cached_blocks(matrix):
            with np.errstate(over="ignore", invalid="ignore"):
                rows = (_roots(matrix[block]) if self.is_rooted else matrix[block]) - center
                rows = xp.astype(self._whitened(rows / spread if is_spread else rows), matrix.dtype, copy=False)
            if not xp.all(xp.isfinite(rows)):
                raise _too_large(self.name, "its standardised features", matrix)
            scaled[block] = rows if self.row_length is None else _unit(rows)
        return scaled

    def _whitened(self, rows: Array) -> Array:
        """Return standardised rows with the same variance along all axes, as features; unchanged without axes."""
        if self.axes is None or self.sizes is None:
            return rows
        axes, sizes = (like(values, rows) for values in (self.axes, self.sizes))
        return (rows @ axes / sizes) @ axes.T  # type: ignore[no-any-return]

    def undo(self, matrix: Array) -> Array:
        """Return scaled rows in the units of the data; rows that were scaled to unit length get the mean length."""
        if self.row_length is not None:
            matrix = matrix * self.row_length
        if self.axes is not None and self.sizes is not None:
            matrix = (matrix @ self.axes * self.sizes) @ self.axes.T
        values = matrix if self.center is None else np.asarray(matrix * self.spread + self.center)
        return values * np.abs(values) if self.is_rooted else values


@dataclass(frozen=True)
class ScaledRows:
    """A view whose rows are scaled on access, so that a large view is not held in memory twice.

    Parameters
    ----------
    rows : array or other rows that can be taken as slices
        The present rows of the view.
    scaling : Scaling
        The scaling of the view.
    dtype : dtype
        Type of the scaled rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.scaling import ScaledRows, fit_scaling
    >>> rows = np.array([[3.0, 4.0], [0.0, 5.0]])
    >>> ScaledRows(rows, fit_scaling("a", rows, "unit"), rows.dtype)[:1]
    array([[0.6, 0.8]])
    """

    rows: Any
    scaling: Scaling
    dtype: Any

    ndim = 2

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.rows.shape  # type: ignore[no-any-return]

    @property
    def device(self) -> Any:
        """Device that holds the rows."""
        return self.rows[:0].device

    def __len__(self) -> int:
        return self.shape[0]

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return array_namespace(self.rows[:0])

    def __getitem__(self, part: slice) -> Array:
        """Return some of the rows, scaled."""
        scaled = self.scaling.apply(self.rows[part])
        return _namespace(scaled).astype(scaled, self.dtype, copy=False)  # type: ignore[no-any-return]

    def whole(self) -> Array:
        """Return all rows, scaled block by block."""
        xp = self.__array_namespace__()
        found = xp.empty(self.shape, dtype=self.dtype, device=self.device)
        for block in row_blocks(self):
            found[block] = self[block]
        return found  # type: ignore[no-any-return]


def _roots(matrix: Matrix) -> Matrix:
    """Return the square roots of values; of those below zero, which new samples can have, minus that of the size."""
    if sparse.issparse(matrix):
        return sparse.csr_array((_roots(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)
    xp = _namespace(matrix)
    return xp.sign(matrix) * xp.sqrt(xp.abs(matrix))


def has_roots(scale: str | None) -> bool:
    """Return whether a scale takes square roots first."""
    return scale is not None and scale.startswith(ROOT)


def is_white(scale: str | None) -> bool:
    """Return whether a scale whitens the features."""
    return scale is not None and scale.endswith(WHITE)


def whitened(scale: str | None) -> str | None:
    """Return a scale that whitens the features that the given one centres; others stay."""
    if scale is None or not scale.endswith(("center+unit", "standard+unit")):
        return scale
    return ROOT + WHITE if has_roots(scale) else WHITE


def _too_large(name: str, what: str, matrix: Matrix) -> InputError:
    return InputError(
        f"View '{name}' holds values so large that {what} are not finite as "
        f"{str(matrix.dtype).removeprefix('torch.')}. Divide the view by its "
        "largest value first."
    )


Reduce = Callable[[Callable[[Matrix], Any], Callable[[Sequence[Any]], Any]], Any]


@dataclass(frozen=True)
class BlockedRows:
    """The present rows of one view in blocks of at least one row, in memory or elsewhere.

    Parameters
    ----------
    name : str
        Name of the view, for messages.
    shape : tuple of int
        Number of rows and of features.
    dtype : dtype
        Type of the values.
    reduce : callable
        ``reduce(function, combine)`` applies ``function`` to every block, and ``combine`` to lists of the results until
        one is left.
    """

    name: str
    shape: tuple[int, int]
    dtype: Any
    reduce: Reduce


def rows_in_blocks(name: str, matrix: Any, cut: Callable[[Any], Iterable[slice]] = row_blocks) -> BlockedRows:
    """Return rows that can be sliced as :class:`BlockedRows`, in the blocks that ``cut`` returns."""

    def reduce(function: Callable[[Matrix], Any], combine: Callable[[Sequence[Any]], Any]) -> Any:
        parts = (function(matrix if sparse.issparse(matrix) else matrix[block]) for block in cut(matrix))
        return functools.reduce(lambda so_far, part: combine([so_far, part]), parts)

    return BlockedRows(name, matrix.shape, matrix.dtype, reduce)


def fit_scaling(name: str, matrix: Matrix, scale: str | None) -> Scaling:
    """Fit a scaling to the present rows of one view."""
    _demand_no_centring(name, matrix, scale)
    if sparse.issparse(matrix) and _is_centred(scale):
        matrix = matrix.toarray()
    return fit_blocks(rows_in_blocks(name, matrix), scale)


def _is_centred(scale: str | None) -> bool:
    return scale is not None and scale.removeprefix(ROOT).startswith(("standard", "center", "white"))


def _demand_no_centring(name: str, matrix: Any, scale: str | None) -> None:
    """Raise an error if a scale would make a view dense that is sparse and mostly zero."""
    if sparse.issparse(matrix) and _is_centred(scale) and is_mostly_zero(matrix):
        raise InputError(
            f"View '{name}' is sparse; centring or standardising its features would make it dense. Use "
            "scale='unit', or pass the view as a dense array (.toarray()) if it fits into memory."
        )


def fit_blocks(rows: BlockedRows, scale: str | None) -> Scaling:
    """Fit a scaling to the blocks of one view.

    Raises
    ------
    InputError
        If the values are so large that spreads of features or lengths of rows are not finite.
    """
    center = spread = row_length = axes = sizes = None
    is_rooted, scale = has_roots(scale), scale and scale.removeprefix(ROOT)
    if scale is not None and _is_centred(scale):
        center, spread = _feature_moments(_rooted(rows) if is_rooted else rows)
        spread = np.where(spread > 0, spread, 1.0)  # a constant feature stays constant, at zero
        if scale.startswith("center"):
            spread = np.ones_like(spread)
        elif scale.endswith("view"):
            with np.errstate(over="ignore"):
                spread = spread * np.sqrt(rows.shape[1])
            if not np.isfinite(spread).all():
                raise _too_large(rows.name, "the spreads of its features", spread)
    if scale is not None and scale.endswith("unit"):
        if scale == WHITE:
            axes, sizes = _principal_axes(rows, Scaling(rows.name, center, spread, None, is_rooted=is_rooted))
        of_features = Scaling(rows.name, center, spread, None, axes, sizes, is_rooted)
        _, row_length = rows.reduce(lambda block: _mean_length(of_features, block), _mean_of_means)
    return Scaling(rows.name, center, spread, row_length, axes, sizes, is_rooted)


def _rooted(rows: BlockedRows) -> BlockedRows:
    """Return the square roots of rows in blocks."""
    return replace(rows, reduce=lambda function, combine: rows.reduce(lambda block: function(_roots(block)), combine))


def _principal_axes(rows: BlockedRows, standardised: Scaling) -> tuple[Array, Array]:
    """Return the axes that hold most of the variance of standardised features, and the deviation along each."""

    def products(block: Matrix) -> Array:
        xp = _namespace(block)
        scaled = xp.astype(standardised.apply(block), xp.float64)
        return host(scaled.T @ scaled)  # type: ignore[no-any-return]

    values, vectors = np.linalg.eigh(rows.reduce(products, sum) / rows.shape[0])
    values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
    n_kept = int(np.searchsorted(np.cumsum(values), _KEPT_VARIANCE * values.sum())) + 1
    kept = values[:n_kept] > values[0] * rows.shape[1] * np.finfo(np.float64).eps
    n_kept = max(1, int(kept.sum()))
    return vectors[:, :n_kept].copy(), np.sqrt(np.where(values[:n_kept] > 0, values[:n_kept], 1.0))


def _mean_length(of_features: Scaling, matrix: Matrix) -> tuple[int, float]:
    """Return the number of rows, and their mean length after the features are scaled."""
    matrix = of_features.apply(matrix)
    lengths = host(row_lengths(matrix)).astype(np.float64)
    largest = float(lengths.max())
    if not np.isfinite(largest):
        raise _too_large(of_features.name, "the lengths of its rows", matrix)
    mean = largest * float(np.mean(lengths / largest)) if largest > 0 else 0.0  # the plain sum may overflow
    return len(lengths), mean


def _mean_of_means(parts: Sequence[tuple[int, float]]) -> tuple[int, float]:
    n_rows = sum(count for count, _ in parts)
    return n_rows, sum(count / n_rows * mean for count, mean in parts)


def is_small_sparse(matrix: Any) -> bool:
    """Return whether a matrix is sparse and so small that fits use it as a dense one."""
    return bool(sparse.issparse(matrix) and matrix.shape[0] * matrix.shape[1] <= _SMALL)


def is_mostly_zero(matrix: Matrix) -> bool:
    """Return whether more than nine tenths of the values are zero, stored or not."""
    xp = _namespace(matrix)
    filled = matrix.count_nonzero() if sparse.issparse(matrix) else int(xp.count_nonzero(matrix))
    return bool(filled < (1 - _MOSTLY_ZERO) * matrix.shape[0] * matrix.shape[1])


def _feature_moments(rows: BlockedRows) -> tuple[Array, Array]:
    """Return mean and standard deviation of every feature as NumPy arrays; 0 if it is constant up to rounding."""
    largest = rows.reduce(_feature_maxima, lambda parts: functools.reduce(_namespace(parts[0]).maximum, parts))
    xp = _namespace(largest)

    def mean(values: Callable[[Array], Array]) -> Array:
        total = rows.reduce(lambda block: xp.sum(values(block), axis=0, dtype=xp.float64), sum)
        return total / rows.shape[0]  # type: ignore[no-any-return]

    # Divide by the largest value first, so that squares of huge or tiny numbers stay finite
    largest = xp.where(largest == 0, xp.ones_like(largest), largest)
    center = mean(lambda block: block / largest)
    spread = xp.sqrt(mean(lambda block: xp.square(block / largest - center)))
    spread = xp.where(spread <= 10 * xp.finfo(rows.dtype).eps, xp.zeros_like(spread), spread)
    return host(center * largest), host(spread * largest)


def _feature_maxima(matrix: Array) -> Array:
    """Return the largest absolute value of every feature in double precision."""
    xp = _namespace(matrix)
    return xp.astype(xp.maximum(xp.max(matrix, axis=0), -xp.min(matrix, axis=0)), xp.float64)  # type: ignore[no-any-return]


def suitable_scale(matrix: Matrix) -> str:
    """Return the scale that suits one view, chosen from its values.

    * "unit" for a view of mostly zeros, such as counts of words. Zero means absence there, and centring would give
      every absence a value.
    * "standard+view" for a view of three features or fewer, and for one whose variance lies in fewer than two
      directions, such as neighbouring pixels. Rows of unit length would have hardly an angle left: what differs between
      samples is how long they are.
    * "standard+unit" if a few features carry nearly all of the variance, as with measurements in different units and
      scores of principal components. They would dominate the distances. Not if it makes all samples equally distant, as
      with about as many principal components as samples.
    * "center+unit" for any other view; "unit" may suit it as well.
    * the same after "root+" for shares of a whole: values from zero on, with the same total in all rows, such as
      histograms. Among square roots, as in the Hellinger distance, small shares count as well as large ones.

    The share of the features that carry the variance is their participation ratio, (Σσ²)² / Σσ⁴, over their number. The
    number of directions is the same ratio of the variances along the principal axes, (Σλ)² / Σλ².

    Parameters
    ----------
    matrix : array or csr_array of shape (n_present, n_features)
        The present rows of the view.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.scaling import suitable_scale
    >>> values = np.random.default_rng(0).normal(size=(50, 6))
    >>> suitable_scale(values), suitable_scale(values * [1, 1, 1, 1, 1, 1000])
    ('center+unit', 'standard+unit')
    """
    if is_mostly_zero(matrix):
        return "unit"
    if matrix.shape[1] <= _NARROW:
        return "standard+view"
    if _are_shares(matrix):
        scale = _suitable_plain_scale(_roots(matrix))
        return scale if scale.endswith("view") else ROOT + scale
    return _suitable_plain_scale(matrix)


def _suitable_plain_scale(matrix: Matrix) -> str:
    spreads = _feature_moments(rows_in_blocks("", matrix.toarray() if sparse.issparse(matrix) else matrix))[1]
    shares = np.square(spreads / (spreads.max() or 1.0))  # of the largest, so that fourth powers stay finite
    are_few = shares.any() and shares.sum() ** 2 / np.square(shares).sum() < _FEW_EFFECTIVE * matrix.shape[1]
    if matrix.shape[0] < _FEWEST_COMPARED or not shares.any():
        return "standard+unit" if are_few else "center+unit"
    rows = _drawn_rows(matrix)[:, spreads > 0]
    standardised = rows / spreads[spreads > 0]
    is_standard = are_few and not _equally_distant(standardised)
    if _n_directions(standardised if is_standard else rows / spreads.max()) < _FEW_DIRECTIONS:
        return "standard+view"
    return "standard+unit" if is_standard else "center+unit"


def _are_shares(matrix: Matrix) -> bool:
    """Return whether no value is below zero and all rows have the same total, up to a small variation."""
    xp = _namespace(matrix)
    totals = host(xp.reshape(xp.asarray(matrix.sum(axis=1)), (-1,))).astype(np.float64)
    mean = float(totals.mean())
    is_equal = 0 < mean < np.inf and float(np.abs(totals / mean - 1).max()) < _EQUAL_TOTALS
    return bool(is_equal and (matrix.min() >= 0))


def _drawn_rows(matrix: Matrix) -> Array:
    """Return some rows, evenly spaced, in double precision."""
    drawn = np.unique(np.linspace(0, matrix.shape[0] - 1, _MOST_COMPARED).astype(np.intp))
    rows = host(matrix[drawn])
    return np.asarray((rows.toarray() if sparse.issparse(rows) else rows).astype(np.float64))


def _equally_distant(rows: Array) -> bool:
    """Return whether distances between standardised rows vary less than those of noise, 1 / √(2 · features)."""
    distances = pdist(rows)
    return bool(distances.std() * np.sqrt(2 * rows.shape[1]) < _LIKE_NOISE * distances.mean())


def _n_directions(rows: Array) -> float:
    """Return the participation ratio of the variances of rows along their principal axes."""
    centred = rows - rows.mean(axis=0)
    total = float(np.square(centred).sum())
    return total**2 / float(np.square(centred @ centred.T).sum()) if total > 0 else np.inf


def scale_views(views: Views, scale: str | Sequence[str | None] | None) -> tuple[list[Matrix], list[Scaling]]:
    """Return every view scaled on its present rows, and the scalings.

    Parameters
    ----------
    views : Views
        The data.
    scale : str, None, or sequence of these with one for each view
        One of ``"unit"``, ``"center+unit"``, ``"standard"``, ``"standard+view"``, ``"standard+unit"``,
        ``"white+unit"``, one of those with unit rows after ``"root+"``, None.

    Raises
    ------
    InputError
        If a scaled view is the same for all samples up to rounding, as a single positive feature with rows of unit
        length is; or if its values are too large to be scaled.
    """
    scaled, scalings = [], []
    for name, held, way in zip(views.names, views.in_parts(), scale_per_view(scale, views.n_views), strict=True):
        given = _copied_unless_tensors(held)  # a large view, of which one copy is enough
        rows, scaling = scale_view(name, given, way, overwrite=given is not held)
        scaled.append(rows)
        scalings.append(scaling)
    return scaled, scalings


def _copied_unless_tensors(held: Any) -> Any:
    """Return rows without a reference to others; those on a device, which has less memory, are scaled in blocks."""
    return held.copied() if isinstance(held, SelectedRows) and not is_tensor(held[:0]) else held


def scale_per_view(scale: str | Sequence[str | None] | None, n_views: int) -> list[str | None]:
    """Return one scale for each view."""
    return [scale] * n_views if scale is None or isinstance(scale, str) else list(scale)


def scale_view(name: str, matrix: Matrix, scale: str | None, *, overwrite: bool = False) -> tuple[Matrix, Scaling]:
    """Return one view scaled on its present rows, and the scaling; ``overwrite`` allows to change the matrix."""
    scaling = fit_scaling(name, matrix, scale)
    if isinstance(matrix, SelectedRows):
        scaled = ScaledRows(matrix, scaling, matrix.dtype).whole()
    else:
        scaled = scaling.apply(matrix, overwrite=overwrite)
    check_variation(name, scaled, scale)
    return scaled, scaling


def check_variation(name: str, scaled: Matrix, scale: str | None) -> None:
    """Raise an error if a scaled view is the same for all samples; two rows of extremes can stand for the view."""
    if _constant_but_for_rounding(scaled):
        raise InputError(
            f"View '{name}' is constant once scaled with scale={scale!r}: all its rows point the same way. "
            "Use scale='standard', or leave this view out."
        )


def scale_alike(views: Views, scale: str | Sequence[str | None] | None) -> tuple[list[Matrix], list[Scaling]]:
    """Return what :func:`scale_views` does, with all views in the most precise type among them.

    Small sparse views become dense first, so that their results are those of the same numbers in a dense array: sums in
    another order would break ties between neighbours in another way.
    """
    for name, held, way in zip(views.names, views.in_parts(), scale_per_view(scale, views.n_views), strict=True):
        _demand_no_centring(name, held, way)
    held_dense = [held.toarray() if is_small_sparse(held) else held for held in views.in_parts()]
    scaled, scalings = scale_views(views.with_matrices(held_dense), scale)
    precise = max(scaled, key=lambda matrix: matrix.dtype.itemsize).dtype
    if is_tensor(scaled[0]):
        return [matrix.to(precise) for matrix in scaled], scalings
    return [matrix.astype(precise, copy=False) for matrix in scaled], scalings


def _constant_but_for_rounding(matrix: Matrix) -> bool:
    """Return whether every feature is constant up to rounding relative to its own values."""
    xp = _namespace(matrix)
    if sparse.issparse(matrix):
        low, high = matrix.min(axis=0).toarray().ravel(), matrix.max(axis=0).toarray().ravel()
    else:
        low, high = xp.min(matrix, axis=0), xp.max(matrix, axis=0)
    with np.errstate(over="ignore"):
        return bool(xp.all(high - low <= _ROUNDING * xp.finfo(matrix.dtype).eps * xp.maximum(-low, high)))
