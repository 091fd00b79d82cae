"""Ridge regression of one view on the other views that a sample has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from ..scaling import is_mostly_zero, largest_magnitude, times_power
from ..utils.types import Array, Matrix
from ..views import Views

_MOST_AXES = 256  # predictors of a view; wider views are replaced by their principal axes
_MOST_GRAM = 2500  # rows from which the axes of a wide dense view are computed
_FEWEST_SAMPLES = 5  # samples that a regression is fitted to; with fewer, the mean is predicted
_MOST_PATTERNS = 8  # most frequent sets of present views that have a regression of their own
_PENALTIES = np.logspace(-6, 4, 41)  # as shares of the largest eigenvalue
_MOST_FREEDOM = 0.7  # of the samples; beyond it, the cross-validation error is 0 / 0
_MOST_VALUES = 2**22  # dense values of a sparse view at a time
_MOST_FILLED = 10  # times the values stored in a row of a sparse view are kept in a predicted row


@dataclass(frozen=True)
class FeatureUnits:
    """The units in which features of one view are compared: standard deviations, or those of the data if mostly zero.

    Values are first divided by a power of 2, so that squares of huge or tiny numbers stay finite.
    """

    exponent: int
    center: Array
    spread: Array

    @classmethod
    def fit(cls, matrix: Matrix) -> FeatureUnits:
        """Return the units of the features of a view, from its present rows."""
        exponent = int(np.frexp(largest_magnitude(matrix))[1])
        small = times_power(matrix, -exponent)
        n_rows = max(matrix.shape[0], 1)
        center = np.asarray(small.sum(axis=0, dtype=np.float64)).ravel() / n_rows
        spread = np.ones(matrix.shape[1])
        if not is_mostly_zero(matrix):
            total = np.zeros_like(center)
            for block in _blocks(*small.shape):
                total += np.square(_dense(small[block]) - center).sum(axis=0)
            deviation = np.sqrt(total / n_rows)
            spread = np.where(deviation > 1e-12, deviation, 1.0)  # a constant feature stays constant
        return cls(exponent, center, spread)

    def mean(self, matrix: Matrix) -> Array:
        """Return the mean of rows, divided by the power of 2."""
        total: Array = np.asarray(times_power(matrix, -self.exponent).sum(axis=0, dtype=np.float64)).ravel()
        return np.asarray(total / matrix.shape[0])

    def apply(self, matrix: Matrix) -> Matrix:
        """Return rows in these units: centred, unless they are sparse."""
        small = times_power(matrix, -self.exponent)
        if sparse.issparse(small):
            return sparse.csr_array(small.astype(np.float64).multiply(1 / self.spread[None, :]))
        return np.asarray((small - self.center) / self.spread)

    def undo(self, rows: Array) -> Array:
        """Return centred rows of these units in the units of the data, not yet multiplied by the power of 2."""
        return rows * self.spread + self.center


def _blocks(n_rows: int, n_features: int) -> list[slice]:
    """Return slices of few rows, which become dense."""
    most = max(_MOST_VALUES // max(n_features, 1), 1)
    return [slice(begin, min(begin + most, n_rows)) for begin in range(0, n_rows, most)]


def _dense(matrix: Matrix) -> Array:
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)


@dataclass(frozen=True)
class _Axes:
    """The principal axes of one view."""

    units: FeatureUnits
    directions: Array | None  # features × axes; None if the features themselves are the predictors
    offset: Array  # mean of the scores
    size: float  # root of the total variance of the scores, so that all views have the same

    def scores(self, matrix: Matrix) -> Array:
        rows = self.units.apply(matrix)
        raw = _dense(rows) if self.directions is None else np.asarray(rows @ self.directions)
        return (raw - self.offset) / self.size


def _fit_axes(matrix: Matrix) -> _Axes:
    units = FeatureUnits.fit(matrix)
    directions = None
    if matrix.shape[1] > _MOST_AXES:
        directions = _directions(units.apply(matrix[_evenly(matrix.shape[0], _MOST_GRAM)]))
    plain = _Axes(units, directions, np.zeros(1), 1.0).scores(matrix)
    offset = plain.mean(axis=0) if len(plain) else np.zeros(plain.shape[1])
    size = float(np.sqrt(np.square(plain - offset).sum() / max(len(plain), 1)))
    return _Axes(units, directions, offset, size if size > 0 else 1.0)


def _evenly(n_rows: int, n_most: int) -> Array:
    return np.unique(np.linspace(0, n_rows - 1, n_most).astype(np.intp)) if n_rows > n_most else np.arange(n_rows)


def _directions(rows: Matrix) -> Array:
    """Return the leading right singular vectors of rows that are wider than ``_MOST_AXES``."""
    n_axes = min(_MOST_AXES, rows.shape[0])
    if sparse.issparse(rows):
        return np.asarray(randomized_svd(rows, n_axes, n_iter=4, random_state=0, transpose=False)[2].T)
    values, vectors = np.linalg.eigh(rows @ rows.T)
    used = values[::-1][:n_axes] > 1e-10 * max(float(values[-1]), 1e-300)
    return np.asarray((rows.T @ vectors[:, ::-1][:, :n_axes][:, used]) / np.sqrt(values[::-1][:n_axes][used]))


@dataclass(frozen=True)
class Predictors:
    """The views of samples as predictors: scores on principal axes, zeros where a sample lacks the view."""

    scores: tuple[Array, ...]
    mask: Array  # samples × views

    def __getitem__(self, rows: Array) -> Predictors:
        return Predictors(tuple(scores[rows] for scores in self.scores), self.mask[rows])

    def hide(self, view: int) -> Predictors:
        """Return the same samples without a view."""
        mask = self.mask.copy()
        mask[:, view] = False
        return Predictors(self.scores, mask)

    def of(self, views: Array) -> Array:
        """Return the scores in some views, side by side."""
        return np.hstack([np.where(self.mask[:, [k]], self.scores[k], 0.0) for k in views])


class ViewAxes:
    """The principal axes of every view of the training samples, at most 256 of each.

    Examples
    --------
    >>> from gapview.datasets import make_views
    >>> from gapview.graph.regression import ViewAxes
    >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> [scores.shape for scores in ViewAxes(views).predictors(views).scores]
    [(60, 20), (60, 30)]
    """

    def __init__(self, views: Views) -> None:
        self._axes = [_fit_axes(matrix) for matrix in views.matrices]

    def predictors(self, views: Views) -> Predictors:
        """Return the scores of samples that have some of the views."""
        tables = []
        for k, (axes, matrix) in enumerate(zip(self._axes, views.matrices, strict=True)):
            scores = np.zeros((views.n_samples, len(axes.offset)))
            scores[views.rows(k)] = axes.scores(matrix)
            tables.append(scores)
        return Predictors(tuple(tables), views.mask)


def ridge_rows(target: Matrix, training: Predictors, view: int, queries: Predictors) -> Matrix:
    """Return rows of one view, predicted by ridge regression on the other views that each sample has.

    Each of the most frequent sets S of present views has a regression of its own, fitted to the samples that have the
    view and all of S; if they are fewer than the predictors, to those that have the view and any of S, with the mean in
    place of the others. The penalty minimises the generalised cross-validation error, summed over the features.
    Predicted values leave the range of a feature by at most half of it, and no feature becomes negative that was not.
    Rows of a sparse view keep their largest values only.

    Parameters
    ----------
    target : array or csr_array of shape (n_present, n_features)
        The rows of the view, of the training samples that have it.
    training, queries : Predictors
        The training samples, and those to predict the view of. The view itself is not used.
    view : int
        The view.

    Returns
    -------
    array or csr_array of shape (n_queries, n_features)
        The mean of the view where no training sample has it together with a view of the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.datasets import make_views
    >>> from gapview.graph.regression import ViewAxes, ridge_rows
    >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> samples = ViewAxes(views).predictors(views)
    >>> ridge_rows(views.matrices[1], samples, 1, samples[~views.mask[:, 1]]).shape
    (18, 30)
    """
    units = FeatureUnits.fit(target)
    having = np.flatnonzero(training.mask[:, view])
    known, training, queries = units.apply(target), training[having].hide(view), queries.hide(view)
    found = np.zeros((len(queries.mask), target.shape[1])) if not sparse.issparse(target) else None
    blocks: list[Matrix] = []
    order: list[Array] = []
    for pattern, samples, is_exact in _patterns(queries.mask):
        model = _fit(known, training, pattern, is_exact)
        for block in _blocks(len(samples), target.shape[1]):
            rows = samples[block]
            values = model.predict(queries[rows].of(pattern))
            if found is None:
                blocks.append(_sparse_rows(units.undo(values), target, units.exponent))
                order.append(rows)
            else:
                found[rows] = values
    if found is not None:
        return _clipped(units.undo(found), target, units.exponent)
    if not blocks:
        return sparse.csr_array((0, target.shape[1]), dtype=target.dtype)
    return sparse.csr_array(sparse.vstack(blocks))[np.argsort(np.concatenate(order))]


def mean_rows(target: Matrix, n_rows: int) -> Matrix:
    """Return the mean of the rows of a view, so many times; of a sparse view, its largest values only."""
    units = FeatureUnits.fit(target)
    if sparse.issparse(target):
        row = _sparse_rows(units.center[None], target, units.exponent)
        return sparse.csr_array(row[np.zeros(n_rows, dtype=np.intp)])
    return np.repeat(_clipped(units.center[None], target, units.exponent), n_rows, axis=0)


def _patterns(mask: Array) -> list[tuple[Array, Array, bool]]:
    """Return the sets of present views, the samples of each, and whether they have just these views.

    Samples with a rare set, or without views, share one set: the views that any of the samples has.
    """
    if not len(mask):
        return []
    patterns, place, counts = np.unique(mask, axis=0, return_inverse=True, return_counts=True)
    place = place.ravel()
    frequent = [i for i in np.argsort(-counts, kind="stable")[:_MOST_PATTERNS].tolist() if patterns[i].any()]
    found = [(np.flatnonzero(patterns[i]), np.flatnonzero(place == i), True) for i in frequent]
    rare = np.flatnonzero(~np.isin(place, frequent))
    return [*found, (np.flatnonzero(mask.any(axis=0)), rare, False)] if len(rare) else found


@dataclass(frozen=True)
class _Ridge:
    offset: Array  # mean of the predictors
    intercept: Array  # mean of the features, in their units
    weights: Array | None  # None: the mean is predicted

    def predict(self, predictors: Array) -> Array:
        if self.weights is None:
            return np.repeat(self.intercept[None], len(predictors), axis=0)
        return np.asarray((predictors - self.offset) @ self.weights + self.intercept)


def _fit(known: Matrix, training: Predictors, pattern: Array, is_exact: bool) -> _Ridge:
    """Fit a regression on the views of a pattern; the rows of ``known`` are those of the training samples."""
    mean = _mean(known) if sparse.issparse(known) else np.zeros(known.shape[1])  # dense rows are centred
    present = training.mask[:, pattern]
    rows = np.flatnonzero(present.all(axis=1))
    if not is_exact or len(rows) < sum(training.scores[k].shape[1] for k in pattern):
        rows = np.flatnonzero(present.any(axis=1))
    if len(rows) < _FEWEST_SAMPLES:
        return _Ridge(np.zeros(1), np.zeros(known.shape[1]), None)
    table, own = training[rows].of(pattern), known[rows]
    offset, center = table.mean(axis=0), _mean(own)
    squares = own.multiply(own) if sparse.issparse(own) else np.square(own)
    total = float(squares.sum()) - len(rows) * float(center @ center)
    return _Ridge(offset, center - mean, _weights(table - offset, own, total))


def _mean(rows: Matrix) -> Array:
    total: Array = np.asarray(rows.sum(axis=0)).ravel()
    return np.asarray(total / max(rows.shape[0], 1))


def _weights(table: Array, own: Matrix, total: float) -> Array | None:
    """Return the weights of least generalised cross-validation error; None if the predictors are constant.

    The rows of ``table`` are centred, and so are their products with those of ``own``.
    """
    is_wide = table.shape[0] < table.shape[1]
    values, vectors = np.linalg.eigh(table @ table.T if is_wide else table.T @ table)
    used = values > 1e-10 * max(float(values[-1]), 0.0)
    if not used.any() or not total > 0:
        return None
    values, vectors = values[used], vectors[:, used]
    # Both: singular vectors of the predictors, and the features along them times the singular values
    left = vectors if is_wide else table @ (vectors / np.sqrt(values))
    right = table.T @ (vectors / np.sqrt(values)) if is_wide else vectors
    along = np.asarray(own.T @ left).T * np.sqrt(values)[:, None]
    penalty = _least_error(values, np.square(along).sum(axis=1) / values, total, table.shape[0])
    return np.asarray(right @ (along / (values + penalty)[:, None]))


def _least_error(values: Array, explained: Array, total: float, n_rows: int) -> float:
    """Return the penalty of least generalised cross-validation error, in closed form for all penalties."""
    penalties = float(values[-1]) * _PENALTIES
    kept = values / (values + penalties[:, None])
    residual = total - ((1 - np.square(1 - kept)) * explained).sum(axis=1)
    used = kept.sum(axis=1) / (n_rows - 1)
    score = np.where(used <= _MOST_FREEDOM, np.maximum(residual, 0.0) / np.square(1 - np.minimum(used, 0.99)), np.inf)
    return float(penalties[np.argmin(score)])


def _clipped(rows: Array, target: Matrix, exponent: int) -> Array:
    """Return rows in the units of the data, at most half the range of a feature outside that range."""
    small = times_power(target, -exponent)
    low, high = (np.asarray(_dense(edge), dtype=np.float64).ravel() for edge in (small.min(axis=0), small.max(axis=0)))
    margin, largest = (high - low) / 2, float(np.ldexp(np.finfo(target.dtype).max, -max(exponent, 0)))
    lowest = np.where(low < 0, -largest, 0.0)  # a feature that is never negative stays so
    np.clip(rows, np.maximum(low - margin, lowest), np.minimum(high + margin, largest), out=rows)
    return np.asarray(times_power(rows.astype(target.dtype, copy=False), exponent))


def _sparse_rows(rows: Array, target: Matrix, exponent: int) -> sparse.csr_array:
    """Return rows of a sparse view with as many of the largest values as ten measured rows hold."""
    rows = _clipped(rows, target, exponent)
    n_kept = max(_MOST_FILLED * target.nnz // max(target.shape[0], 1), 1)
    if n_kept < rows.shape[1]:
        kept = np.zeros(rows.shape, dtype=bool)
        np.put_along_axis(kept, np.argpartition(-np.abs(rows), n_kept - 1, axis=1)[:, :n_kept], True, axis=1)
        rows = np.where(kept, rows, 0)
    return sparse.csr_array(rows)


def squared_errors(truth: Matrix, guess: Matrix, units: FeatureUnits) -> Array:
    """Return the sum of the squared errors of every feature, in the units of the features.

    ``guess`` holds rows in the units of the data, or is one row from :meth:`FeatureUnits.mean`.
    """
    total = np.zeros(truth.shape[1])
    for block in _blocks(*truth.shape):
        known = _dense(times_power(truth[block], -units.exponent)).astype(np.float64)
        guessed = guess if guess.ndim == 1 else _dense(times_power(guess[block], -units.exponent))
        total += np.square((known - guessed) / units.spread).sum(axis=0)
    return total


def explained_share(truth: Matrix, guess: Matrix, known: Matrix) -> float:
    """Return R² of guessed rows of a view: 1 minus their squared error over that of the mean of the known rows.

    Features are standardised first, unless more than nine tenths of the values are zero.

    Parameters
    ----------
    truth, guess : arrays or csr_arrays of shape (n_samples, n_features)
        The true and the guessed rows.
    known : array or csr_array of shape (n_known, n_features)
        The rows that the mean and the standard deviations come from.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.graph.regression import explained_share
    >>> known, truth = np.array([[0.0], [2.0]]), np.array([[0.0], [3.0]])
    >>> explained_share(truth, np.array([[1.0], [1.0]]), known), explained_share(truth, truth, known)
    (0.0, 1.0)
    """
    units = FeatureUnits.fit(known)
    errors, total = (squared_errors(truth, rows, units).sum() for rows in (guess, units.center))
    return float(1 - errors / total) if total > 0 else float("nan")
