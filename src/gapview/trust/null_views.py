"""Null data: views of one unimodal group, with the margins, correlations and gaps of given views."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import isotonic_regression
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from ..utils.types import Array, Matrix
from ..views import Views

NULLS = ("gaussian", "uniform")

_MOST_AXES = 30  # principal axes of a view that are correlated with those of other views
_ROWS_PER_AXIS = 5  # common samples that an axis needs
_ROUNDING = 1e-10
_HALF_WIDTH = np.sqrt(3.0)  # of the uniform distribution with variance 1


class _Quantiles(NamedTuple):
    """The quantile function of a unimodal distribution."""

    shares: Array  # probabilities, in ascending order
    values: Array  # of the feature
    is_step: bool  # whether only these values occur

    def at(self, shares: Array) -> Array:
        """Return the quantiles of probabilities."""
        if not self.is_step:
            return np.interp(shares, self.shares, self.values)
        return self.values[np.minimum(np.searchsorted(self.shares, shares), len(self.values) - 1)]


class _Axes(NamedTuple):
    """A Gaussian with the shrunken correlation of the normal scores of a view, in its principal axes."""

    axes: Array  # axes × features
    spread: Array  # standard deviation along each axis
    rest: float  # standard deviation of every feature apart from the axes
    scores: Array  # of the present rows on the axes, with variance 1


class NullViews:
    """Draws views of one unimodal group with the mask, names, margins and correlations of given views.

    The latent data are Gaussian. Their correlation within a view is that of the normal scores of its features (van der
    Waerden), shrunken towards 0 (Ledoit and Wolf 2004). Between two views it is that of their leading principal axes,
    by canonical correlations with the bias of many axes removed (Bao, Hu, Pan, Zhou 2019).

    Parameters
    ----------
    views : Views
        The data, at most some thousand samples. Sparse views are drawn as dense arrays.

    References
    ----------
    O. Ledoit, M. Wolf: A well-conditioned estimator for large-dimensional covariance matrices. Journal of Multivariate
    Analysis 88, 2004.

    Z. Bao, J. Hu, G. Pan, W. Zhou: Canonical correlation coefficients of high-dimensional Gaussian vectors: finite rank
    case. Annals of Statistics 47, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.datasets import make_views
    >>> from gapview.trust.null_views import NullViews
    >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> null = NullViews(views).draw("gaussian", np.random.RandomState(0))
    >>> null.n_features == views.n_features, bool((null.mask == views.mask).all())
    (True, True)
    """

    def __init__(self, views: Views) -> None:
        self._views = views.without_batch()  # null data have no batch effects to correct
        self._axes: list[_Axes] = []
        self._means: list[Array] = []
        self._spreads: list[Array] = []
        self._margins: list[list[_Quantiles]] = []
        for matrix in views.one_by_one():
            values = as_dense(matrix)
            self._axes.append(_principal_axes(normal_scores(values)))
            self._means.append(values.mean(axis=0))
            self._spreads.append(values.std(axis=0))
            self._margins.append([unimodal_quantiles(column) for column in values.T])
        self._root, self._ends = _root_of_correlation(views, [view.scores for view in self._axes])

    def draw(self, kind: str, state: np.random.RandomState) -> Views:
        """Draw views.

        Parameters
        ----------
        kind : {"gaussian", "uniform"}
            ``"gaussian"``: a Gaussian copula, whose features have the unimodal distribution nearest to their own; of
            Gaussian features, a Gaussian. ``"uniform"``: uniform along the principal axes, with the mean and the
            variance of every feature.
        state : RandomState
            Random numbers.
        """
        common = state.standard_normal((self._views.n_samples, self._ends[-1])) @ self._root.T
        drawn = []
        for k, view in enumerate(self._axes):
            rows = self._views.rows(k)
            scores = state.standard_normal((len(rows), len(view.spread)))
            own = common[rows, self._ends[k] : self._ends[k + 1]]
            scores[:, : own.shape[1]] = own
            noise = state.standard_normal((len(rows), view.axes.shape[1])) if view.rest else np.zeros(1)
            if kind == "uniform":
                scores, noise = _uniform(scores), _uniform(noise)
            latent = (scores * view.spread) @ view.axes + view.rest * noise
            if kind == "uniform":
                drawn.append(self._means[k] + self._spreads[k] * latent)
            else:
                shares = ndtr(latent)
                columns = [margin.at(shares[:, j]) for j, margin in enumerate(self._margins[k])]
                drawn.append(np.stack(columns, axis=1))
        return self._views.with_matrices(drawn)


def as_dense(matrix: Matrix) -> Array:
    """Return a matrix as a dense array in double precision."""
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=np.float64)


def normal_scores(values: Array) -> Array:
    """Return the ranks within each column as quantiles of the standard normal distribution, with mean 0 and variance 1.

    Constant columns are 0.
    """
    scores = ndtri((rankdata(values, axis=0) - 0.5) / len(values))
    scores -= scores.mean(axis=0)
    spread = scores.std(axis=0)
    return np.asarray(np.where(spread > _ROUNDING, scores / np.maximum(spread, _ROUNDING), 0.0))


def shrinkage(rows: Array) -> float:
    """Return the weight of the identity in the covariance of Ledoit and Wolf; rows have mean 0."""
    n_rows, n_features = rows.shape
    products = rows @ rows.T if n_features > n_rows else rows.T @ rows
    squares = float(np.square(products).sum()) / n_rows**2
    lengths = np.square(rows).sum(axis=1)
    beyond = squares - (float(lengths.sum()) / n_rows) ** 2 / n_features
    error = (float(np.square(lengths).sum()) / n_rows - squares) / n_rows
    return float(np.clip(error / beyond, 0.0, 1.0)) if beyond > 0 else 1.0


def _principal_axes(rows: Array) -> _Axes:
    n_rows, n_features = rows.shape
    weight = shrinkage(rows)
    size = float(np.square(rows).sum()) / (n_rows * n_features)
    products = rows @ rows.T if n_features > n_rows else rows.T @ rows
    values, vectors = np.linalg.eigh(products)
    kept = values > max(values[-1], 0.0) * _ROUNDING
    values, vectors = values[kept][::-1], vectors[:, kept][:, ::-1]
    lengths = np.sqrt(values)
    axes = (vectors / lengths).T @ rows if n_features > n_rows else vectors.T
    scores = rows @ axes.T / lengths * np.sqrt(n_rows)
    return _Axes(axes, np.sqrt((1 - weight) / n_rows) * lengths, float(np.sqrt(weight * size)), scores)


def _uniform(normal: Array) -> Array:
    return np.asarray((2 * ndtr(normal) - 1) * _HALF_WIDTH)


# -- correlation between views ----------------------------------------------------------------------------------------


def _root_of_correlation(views: Views, scores: list[Array]) -> tuple[Array, list[int]]:
    """Return a root of the correlation of the leading axes of all views, and where those of each view end."""
    places = [views.rows(k) for k in range(views.n_views)]
    widths = [min(_MOST_AXES, own.shape[1]) for own in scores]
    ends = np.concatenate([[0], np.cumsum(widths)]).astype(int).tolist()
    whole = np.eye(ends[-1])
    for a in range(views.n_views):
        for b in range(a):
            _, first, second = np.intersect1d(places[a], places[b], assume_unique=True, return_indices=True)
            block = _correlation(scores[a][first, : widths[a]], scores[b][second, : widths[b]])
            rows, columns = slice(ends[a], ends[a] + len(block)), slice(ends[b], ends[b] + block.shape[1])
            whole[rows, columns] = block
            whole[columns, rows] = block.T
    values, vectors = np.linalg.eigh(whole)
    root = vectors * np.sqrt(np.maximum(values, 0.0))  # pairs of views may contradict each other
    return root / np.linalg.norm(root, axis=1, keepdims=True), ends


def _correlation(left: Array, right: Array) -> Array:
    """Return the correlation of the leading axes of two views, from their rows of the same samples."""
    n_rows = len(left)
    n_axes = n_rows // _ROWS_PER_AXIS
    left, right = left[:, :n_axes], right[:, :n_axes]
    if not left.shape[1] or not right.shape[1]:
        return np.zeros((0, 0))
    left, right = (_orthonormal(rows - rows.mean(axis=0)) for rows in (left, right))
    vectors, found, others = np.linalg.svd(left.T @ right, full_matrices=False)
    true = _canonical_correlation(found, left.shape[1] / n_rows, right.shape[1] / n_rows)
    return np.asarray((vectors * true) @ others)


def _orthonormal(rows: Array) -> Array:
    """Return the nearest rows whose columns are orthonormal."""
    vectors, _, others = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(vectors @ others)


def _canonical_correlation(found: Array, first: float, second: float) -> Array:
    """Return canonical correlations without the bias of many axes; 0 where chance alone gives as much.

    ``first`` and ``second`` are the numbers of axes, divided by the number of samples.
    """
    edge = first + second - 2 * first * second + 2 * np.sqrt(first * second * (1 - first) * (1 - second))
    squares = np.minimum(np.square(found), 1.0)
    linear = squares - second * (1 - first) - first * (1 - second)
    leading = 2 * (1 - first) * (1 - second)
    root = np.sqrt(np.maximum(linear**2 - 2 * leading * first * second, 0.0))
    return np.sqrt(np.where(squares > edge, np.clip((linear + root) / leading, 0.0, 1.0), 0.0))


# -- unimodal margins -------------------------------------------------------------------------------------------------


def unimodal_quantiles(column: Array) -> _Quantiles:
    """Return the quantiles of the unimodal distribution nearest to that of a column (Grenander 1956).

    The density rises up to the mode and falls after it. A column with many equal values keeps its values, and their
    frequencies rise and fall.
    """
    values, counts = np.unique(column, return_counts=True)
    if len(values) <= max(2, len(column) / 2):
        mode, gaps = int(np.argmax(counts)), np.ones(len(values))
        left, right = counts[:mode] / 1.0, counts[mode + 1 :] / 1.0
        rising, falling = _monotone(left, gaps[:mode], True), _monotone(right, gaps[mode + 1 :], False)
        masses = np.concatenate([rising, counts[mode : mode + 1], falling])
        return _Quantiles(np.cumsum(masses) / masses.sum(), values, True)
    mode = int(np.argmin(np.abs(values - _half_sample_mode(np.sort(column)))))
    gaps = np.diff(values)
    rising = _monotone(counts[:mode] / gaps[:mode], gaps[:mode], True)
    falling = _monotone(counts[mode + 1 :] / gaps[mode:], gaps[mode:], False)
    density = np.concatenate([rising, falling])
    masses = np.concatenate([rising * gaps[:mode], counts[mode : mode + 1], falling * gaps[mode:]])
    shares = np.concatenate([[0.0], np.cumsum(masses)]) / masses.sum()
    knots = np.insert(values, mode, values[mode])  # the mass of the mode itself is a step
    bends = np.ones(len(knots), dtype=bool)
    bends[1:-1] = np.insert(np.diff(density) != 0, min(max(mode - 1, 0), len(density) - 1), True)
    bends[[mode, min(mode + 1, len(knots) - 1)]] = True
    return _Quantiles(shares[bends], knots[bends], False)


def _monotone(heights: Array, weights: Array, increasing: bool) -> Array:
    if not len(heights):
        return heights
    return np.asarray(isotonic_regression(heights, weights=weights, increasing=increasing).x)


def _half_sample_mode(ordered: Array) -> float:
    """Return the mode: the shortest half of the values, of that again the shortest half, and so on (Bickel 2002)."""
    while len(ordered) > 2:
        size = (len(ordered) + 1) // 2
        begin = int(np.argmin(ordered[size - 1 :] - ordered[: len(ordered) - size + 1]))
        ordered = ordered[begin : begin + size]
    return float(ordered.mean())
