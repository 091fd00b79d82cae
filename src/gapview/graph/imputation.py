"""Imputation of missing views by the mean of donors, shrunk towards the mean of the view.

The shrinkage is estimated on samples that have the view: their rows are imputed, and compared with the actual rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import or_

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse

from ..compute.arrays import drained, like
from ..scaling import largest_magnitude, times_power
from ..utils.types import Array, Matrix
from ..views import Views
from .donors import ComparableRows, divide, donor_means, mean_row, mean_square, nearest_donors, training_rows
from .neighbors import Search

N_VALIDATED = 2000  # rows that are present, and imputed to estimate the accuracy
# Wider views are replaced by principal components, which keep the distances and are dense: as many as keep the matrix
# of all samples within a bound
_MOST_COMPONENTS, _FEWEST_COMPONENTS = 256, 48
_MOST_VALUES = 2**26


@dataclass(frozen=True)
class ImputedViews:
    """Every view of every sample, with missing rows imputed.

    Views whose rows do not have unit length are divided by their standard deviation, so that distances in different
    views can be added up.
    """

    matrix: Array  # a row for every sample: its views side by side, at most 256 components each, and a spare column
    columns: tuple[slice, ...]  # of every view in the matrix
    variance: Array  # samples × views: expected squared error of the imputed row, 0 for present rows
    explained: Array  # per view, the share of its variance explained by the other views; 0 if it cannot be estimated
    observed: Array  # for every sample, whether it has a row in any view

    @property
    def rows(self) -> list[Array]:
        """Per view, a row for every sample."""
        return [self.matrix[:, own] for own in self.columns]


def impute_views(
    scaled: Iterable[Matrix],
    views: Views,
    view_weights: Sequence[float] | None = None,
    search: Search | None = None,
) -> ImputedViews:
    """Impute the missing rows of every view, and estimate how accurate they are.

    A missing row becomes the mean of the rows of its donors, shrunk towards the mean of the view. Where the views do
    not predict each other, it becomes the mean of the view, with all of its variance.

    Parameters
    ----------
    scaled : iterable of arrays or csr_arrays
        The present rows of every view, scaled. Rows of zeros among unit rows count as missing. Rows of an iterator are
        freed one view after the other.
    views : Views
        The samples that the rows belong to.
    view_weights : sequence of float, optional
        Weights of the squared distances in every view; all the same by default.
    search : Search, optional
        Settings of the search for neighbours.

    Examples
    --------
    >>> from gapview.graph import impute_views
    >>> from gapview.datasets import make_views
    >>> views = make_views(n_samples=100, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> imputed = impute_views(views.matrices, views)
    >>> [rows.shape for rows in imputed.rows], (imputed.explained > 0.2).all()
    ([(100, 20), (100, 30)], np.True_)
    """
    tables = training_rows(scaled, views, view_weights, n_most=n_components(views.n_samples))
    parts = [_impute_view(tables, k, search) for k in range(views.n_views)]
    return complete_views(tables, parts)


def n_components(n_samples: int) -> int:
    """Return the number of components by which wider views are replaced."""
    return min(max(_MOST_VALUES // n_samples, _FEWEST_COMPONENTS), _MOST_COMPONENTS)


def complete_views(tables: list[ComparableRows], parts: Sequence[ImputedRows]) -> ImputedViews:
    """Return the views of all samples, or of a block, side by side.

    Parameters
    ----------
    tables : list of ComparableRows
        The rows of every view; removed from the list one after the other, so that their memory can be freed.
    parts : sequence of ImputedRows
        The imputed rows of every view.
    """
    observed = reduce(or_, [table.position >= 0 for table in tables])
    xp, n_samples = array_namespace(observed), observed.shape[0]
    ends = np.cumsum([table.points.shape[1] for table in tables]).tolist()
    columns = tuple(slice(begin, end) for begin, end in pairwise([0, *ends]))
    dtype = tables[0].points.dtype
    matrix = xp.empty((n_samples, ends[-1] + 1), dtype=dtype, device=observed.device)
    variance = xp.zeros((n_samples, len(tables)), dtype=xp.float64, device=observed.device)
    for k, (table, part) in enumerate(zip(drained(tables), parts, strict=True)):
        matrix[table.samples, columns[k]] = table.points
        matrix[part.samples, columns[k]] = part.rows
        variance[part.samples, k] = part.variance
    return ImputedViews(matrix, columns, variance, np.asarray([part.explained for part in parts]), observed)


@dataclass(frozen=True)
class ImputedRows:
    """The imputed rows of one view."""

    samples: Array  # that lack the view
    rows: Array
    variance: Array  # expected squared error of every row
    explained: float  # share of the variance of the view explained where there are donors


def _impute_view(tables: Sequence[ComparableRows], view: int, search: Search | None) -> ImputedRows:
    """Impute one view of the samples that lack it."""
    table = tables[view]
    points = table.points
    xp = array_namespace(points)
    center = mean_row(points)
    lacking = xp.nonzero(table.position < 0)[0]
    validated = table.samples[like(validation_places(len(table.samples)), table.samples)]
    asked = xp.concat([validated, lacking])
    means, has_donors = donor_means(points, table.position, nearest_donors(tables, view, tables, asked, search))
    n_validated = len(validated)
    slope, explained = accuracy(
        means[:n_validated], has_donors[:n_validated], points[table.position[validated]], center
    )
    spread = mean_square(points, center)
    return impute_lacking(lacking, means[n_validated:], has_donors[n_validated:], center, slope, spread, explained)


def impute_lacking(
    samples: Array, means: Array, has_donors: Array, center: Array, slope: float, spread: float, explained: float
) -> ImputedRows:
    """Return imputed rows: the means of donors, which are changed in place, shrunk towards the mean of the view.

    Parameters
    ----------
    samples : int array of shape (n_lacking,)
        The samples that lack the view.
    means : array of shape (n_lacking, n_features)
        The mean row of the donors of each.
    has_donors : bool array of shape (n_lacking,)
        Whether it has any.
    center : array of shape (n_features,)
        The mean of the view.
    slope, explained : float
        From :func:`accuracy`.
    spread : float
        The total variance of the view.
    """
    xp = array_namespace(means)
    means -= center
    means *= slope * xp.astype(has_donors, means.dtype)[:, None]
    means += center
    variance = spread * (1 - explained * xp.astype(has_donors, xp.float64))
    return ImputedRows(samples, means, variance, explained)


def validation_places(n_rows: int) -> Array:
    """Return evenly spaced rows of a view, on which imputation is validated."""
    return np.unique(np.linspace(0, n_rows - 1, N_VALIDATED).astype(np.int64))


def accuracy(means: Array, has_donors: Array, actual: Array, center: Array) -> tuple[float, float]:
    """Return the slope by which to shrink means of donors, and the share of the variance then explained.

    Parameters
    ----------
    means, actual : arrays of shape (n_validated, n_features)
        The means of the donors of samples that have the view, and their actual rows.
    has_donors : bool array of shape (n_validated,)
        Whether a sample has any donors; others are left out.
    center : array of shape (n_features,)
        The mean of the view.
    """
    return _accuracy(means[has_donors] - center, actual[has_donors] - center)


def _accuracy(imputed: Array, actual: Array) -> tuple[float, float]:
    """Return the slope by which to shrink imputed rows, and the share of the variance then explained."""
    slope = _regression_slope(imputed, actual)
    total = mean_square(actual)
    if not slope or not total:
        return 0.0, 0.0
    return slope, max(0.0, 1 - mean_square(actual - slope * imputed) / total)


def _regression_slope(imputed: Matrix, actual: Matrix) -> float:
    """Return the regression slope of actual on imputed rows, clipped to [0, 1]."""
    largest = largest_magnitude(imputed)
    if not largest:
        return 0.0
    imputed, actual = divide(imputed, largest), divide(actual, largest)  # squares stay finite
    return min(1.0, max(0.0, _inner(imputed, actual) / _inner(imputed, imputed)))


def _inner(first: Matrix, second: Matrix) -> float:
    products = first.multiply(second) if sparse.issparse(first) else first * second
    return float(products.sum())


def impute_rows(views: Views, view: int, donors: Array, nearby: Matrix, slope: float) -> Matrix:
    """Impute missing rows of one view in the units of the data.

    The imputed row is the mean of two estimates, which errs less than either: the mean of the donors, and ``nearby``,
    the mean of the neighbours in the latent space. It is shrunk towards the mean of the view; in a sparse view towards
    zero, so that it stays sparse.

    Parameters
    ----------
    views : Views
        The training samples, in the units of the data.
    view : int
        The view to impute.
    donors : int array of shape (n_lacking, n_donors)
        The donors of every sample that lacks the view, from :func:`gapview.graph.donors.nearest_donors`.
    nearby : array or csr_array of shape (n_lacking, n_features)
        The mean of the neighbours in the latent space for each of these samples, in the units of the data.
    slope : float
        By how much to shrink, from :func:`donor_slope`.

    Returns
    -------
    array or csr_array of shape (n_lacking, n_features)
        In the units of the data.
    """
    raw, position, center, power = _raw_rows(views, view)
    nearby, factor = times_power(nearby, -power), raw.dtype.type(slope)
    means, has_donors = donor_means(raw, position, donors)
    if sparse.issparse(raw):
        share = sparse.diags_array(np.where(has_donors, 0.5, 1.0).astype(raw.dtype))
        return sparse.csr_array((share @ nearby + means * raw.dtype.type(0.5)) * factor)
    both = np.where(has_donors[:, None], (nearby + means) / 2, nearby)
    return times_power(np.asarray(center + factor * (both - center)), power)


def _raw_rows(views: Views, view: int) -> tuple[Matrix, Array, Array | float, int]:
    """Return rows over a power of 2, the row of every sample, the mean (zero if sparse) and the power, mostly 0."""
    raw, position = views.matrices[view], np.full(views.n_samples, -1)
    power = _overflow_exponent(raw)
    raw = times_power(raw, -power)
    position[views.rows(view)] = np.arange(raw.shape[0])
    center = 0.0 if sparse.issparse(raw) else raw.mean(axis=0, dtype=np.float64).astype(raw.dtype)
    return raw, position, center, power


def _overflow_exponent(raw: Matrix) -> int:
    """Return the power of 2 to divide dense values by so that differences and column sums are finite; mostly 0."""
    power = 3 + int(raw.shape[0]).bit_length()
    too_large = not sparse.issparse(raw) and largest_magnitude(raw) > np.ldexp(np.finfo(raw.dtype).max, -power)
    return power if too_large else 0


def donor_slope(views: Views, view: int, training: Sequence[ComparableRows]) -> float:
    """Return the slope by which to shrink the imputed rows of a view, from rows that are present.

    Parameters
    ----------
    views : Views
        The training samples, in the units of the data.
    view : int
        The view.
    training : sequence of ComparableRows
        The rows of every view of the training samples, scaled.
    """
    raw, position, center, _ = _raw_rows(views, view)
    table = training[view]
    samples = table.samples[validation_places(len(table.samples))]
    imputed, is_valid = donor_means(raw, position, nearest_donors(training, view, training, samples))
    actual = raw[position[samples]]
    if sparse.issparse(raw):
        # Without validation there is no shrinkage, since rows of zeros would claim to be known
        return _regression_slope(imputed[is_valid], actual[is_valid]) if is_valid.any() else 1.0
    return _regression_slope((imputed - center)[is_valid], (actual - center)[is_valid])
