"""Effect sizes of features: differences between each cluster and all other samples, in each view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..persist.registry import storable_record
from ..utils.messages import check_integer, counted, joined, shorten
from ..utils.shown import Shown, Table
from ..utils.types import Array, Matrix
from ..views import Views
from .confidence import read_labels

_N_SHOWN = 20  # rows of a short table
_ROUNDING = 8  # units in the last place that values may differ by and still be the same


@storable_record
@dataclass(frozen=True, repr=False)
class ViewEffects(Shown):
    """Differences of the features of one view between each cluster and all other samples that have the view.

    Attributes
    ----------
    view : str
        Name of the view.
    features : array of shape (n_features,)
        Names of the features; their positions where the view came without names.
    sizes : array of shape (n_clusters, n_features)
        Hedges' g, see :func:`feature_effects`.
    mean_inside, mean_outside : arrays of shape (n_clusters, n_features)
        Means of the cluster and of all other samples, in the units of the data.
    n_inside : array of shape (n_clusters,)
        Number of samples of each cluster that have the view.

    Examples
    --------
    >>> from gapview.trust import feature_effects
    >>> effects = feature_effects({"blood": [[1.0], [2.0], [8.0], [9.0]]}, [0, 0, 1, 1])[0]
    >>> effects.view, effects.mean_inside.ravel(), effects.n_inside
    ('blood', array([1.5, 8.5]), array([2, 2]))
    """

    view: str
    features: Array
    sizes: Array
    mean_inside: Array
    mean_outside: Array
    n_inside: Array

    def _shown_as(self) -> Table:
        """Return the strongest features of each cluster."""
        return _strongest([self])


class Effects(Shown, list[ViewEffects]):
    """The list that :func:`feature_effects` returns; it shows the strongest features."""

    def _shown_as(self) -> Table:
        """Return the strongest features of each cluster in each view."""
        return _strongest(self)


@storable_record
@dataclass(frozen=True)
class FeatureEffect:
    """One feature with a large effect: a row of the table of :func:`top_features`.

    Examples
    --------
    >>> from gapview.trust import feature_effects, top_features
    >>> top_features(feature_effects({"blood": [[1.0], [2.0], [8.0], [9.0]]}, [0, 0, 1, 1]))[0].mean_inside
    1.5
    """

    cluster: int  # its label
    view: str  # name of the view
    feature: str | int  # name of the feature, its position if it has none
    effect: float  # Hedges' g, see feature_effects
    mean_inside: float  # mean of the cluster, in the units of the data
    mean_outside: float  # mean of all other samples


def feature_effects(views: Any, labels: Any) -> list[ViewEffects]:
    """Compute how far every feature differs between each cluster and all other samples.

    The effect size is Hedges' g: the difference between the mean of the cluster and the mean of all others, divided by
    their pooled standard deviation (squared deviations within both / (n − 2)), times 1 − 3 / (4 (n − 2) − 1) against
    the bias of small samples. 0.2 is commonly called small, 0.5 medium, 0.8 large. Only samples that have the view
    count; zeros of sparse views are values.

    The sizes describe the clusters; they are no evidence that the clusters exist. Clusters are computed from the same
    features, so that a test on the same data would find differences even in noise.

    Parameters
    ----------
    views : list or dict of views, or Views
        The data, in the user's units, see :class:`gapview.Views`.
    labels : array of shape (n_samples,)
        Label of every sample, whole numbers from 0 on.

    Returns
    -------
    list of ViewEffects
        One for each view. A constant feature has effect 0. A feature with one value inside the cluster and another
        value outside has an infinite effect. NaN for clusters with none or all of the samples that have the view, and
        for views that fewer than four samples have.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.trust import feature_effects
    >>> blood = np.array([[1.0, 5.0], [2.0, 5.0], [8.0, 5.0], [9.0, 5.0]])
    >>> feature_effects({"blood": blood}, [0, 0, 1, 1])[0].sizes.round(2)
    array([[-5.66,  0.  ],
           [ 5.66,  0.  ]])
    """
    given = Views(views)
    groups = read_labels(labels, given.n_samples)
    n_groups = int(groups.max()) + 1
    return Effects(_view_effects(given, k, groups[given.rows(k)], n_groups) for k in range(given.n_views))


def top_features(effects: Sequence[ViewEffects], n_top: int = 10) -> list[FeatureEffect]:
    """Return the features with the largest absolute effect for each cluster and view.

    Parameters
    ----------
    effects : sequence of ViewEffects
        From :func:`feature_effects`.
    n_top : int, default=10
        Number of features for each cluster and view. Features without an effect are skipped.

    Returns
    -------
    list of FeatureEffect
        By cluster, then view, then size, the largest first; ``pandas.DataFrame`` turns it into a frame.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.trust import feature_effects, top_features
    >>> blood = np.array([[1.0, 5.0], [2.0, 5.0], [8.0, 5.0], [9.0, 5.0]])
    >>> for row in top_features(feature_effects({"blood": blood}, [0, 0, 1, 1])):
    ...     print(row.cluster, row.view, row.feature, round(row.effect, 2), row.mean_inside, row.mean_outside)
    0 blood 0 -5.66 1.5 8.5
    1 blood 0 5.66 8.5 1.5
    """
    check_integer("n_top", n_top, low=1)
    n_groups = len(effects[0].sizes) if effects else 0
    return [row for cluster in range(n_groups) for view in effects for row in _largest_effects(view, cluster, n_top)]


def _strongest(effects: Sequence[ViewEffects]) -> Table:
    """Return the strongest features of each cluster and view as a table of about twenty rows."""
    n_groups = len(effects[0].sizes) if effects else 0
    n_top = max(1, _N_SHOWN // max(n_groups * len(effects), 1))
    names = ("group", "view", "feature", "effect", "mean inside", "mean of all others")
    rows = [tuple(vars(one).values()) for one in top_features(effects, n_top)]
    views = joined([f"{shorten(one.view)} ({counted(len(one.features), 'feature')})" for one in effects])
    note = (
        "Effect: difference of means in standard deviations (Hedges’ g). The groups were computed from these features: "
        "the effects describe the groups, and are no evidence for them."
    )
    return Table(f"Features with the largest differences: {views}", names, rows, [note])


def _largest_effects(view: ViewEffects, cluster: int, n_top: int) -> list[FeatureEffect]:
    strength = np.nan_to_num(np.abs(view.sizes[cluster]), nan=0.0, posinf=np.inf)
    chosen = np.argsort(-strength, kind="stable")[:n_top]
    found = []
    for j in chosen[strength[chosen] > 0]:
        name = view.features[j] if view.features.dtype == object else int(view.features[j])
        values = (float(table[cluster, j]) for table in (view.sizes, view.mean_inside, view.mean_outside))
        found.append(FeatureEffect(cluster, view.view, name, *values))
    return found


def _view_effects(views: Views, view: int, groups: Array, n_groups: int) -> ViewEffects:
    matrix, names = views.matrices[view], views.feature_names[view]
    n_rows, n_features = matrix.shape
    counts = np.bincount(groups, minlength=n_groups)
    largest, constant = _extent(matrix)
    means, scatters = np.zeros((2, n_groups, n_features))
    for group in np.flatnonzero(counts):
        means[group], scatters[group] = _mean_and_scatter(matrix[np.flatnonzero(groups == group)], largest)
    inside, outside, sizes = np.full((3, n_groups, n_features), np.nan)
    for group in np.flatnonzero((counts > 0) & (counts < n_rows)):
        others = np.arange(n_groups) != group
        share = counts[others] / (n_rows - counts[group])
        inside[group], outside[group] = means[group], share @ means[others]
        between = counts[others] @ np.square(means[others] - outside[group])
        if n_rows >= 4:
            variance = (scatters.sum(axis=0) + between) / (n_rows - 2)
            sizes[group] = _hedges(inside[group] - outside[group], np.sqrt(variance), n_rows - 2, constant)
    features = np.arange(n_features) if names is None else names
    return ViewEffects(views.names[view], features, sizes, inside * largest, outside * largest, counts)


def _hedges(difference: Array, spread: Array, degrees: int, constant: Array) -> Array:
    # Means of features that are scaled to at most 1 carry rounding of that size
    spread = np.where(spread > _ROUNDING * np.finfo(np.float64).eps, spread, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = difference / spread * (1 - 3 / (4 * degrees - 1))
    return np.where(constant, 0.0, sizes)


def _extent(matrix: Matrix) -> tuple[Array, Array]:
    """Return the largest absolute value of every feature, 1 if it is 0, and whether the feature is constant."""
    if matrix.shape[0] == 0:
        return np.ones(matrix.shape[1]), np.ones(matrix.shape[1], dtype=bool)
    low, high = matrix.min(axis=0), matrix.max(axis=0)
    if sparse.issparse(matrix):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    largest = np.maximum(-low, high).astype(np.float64)
    largest[largest == 0] = 1.0
    span = high / largest - low / largest
    return largest, np.asarray(span <= _ROUNDING * np.finfo(matrix.dtype).eps)


def _mean_and_scatter(matrix: Matrix, largest: Array) -> tuple[Array, Array]:
    """Return the mean of every feature and the sum of squared deviations from it, in units of its largest value.

    The mean is subtracted before values are squared, since squares of values far from zero would lose the deviations.
    """
    n_rows, n_features = matrix.shape
    if sparse.issparse(matrix):
        matrix.sum_duplicates()  # the rows are a copy
        columns, values = matrix.indices, matrix.data / largest[matrix.indices]
        mean = np.bincount(columns, weights=values, minlength=n_features) / n_rows
        values -= mean[columns]
        n_zeros = n_rows - np.bincount(columns, minlength=n_features)
        offset = np.bincount(columns, weights=values, minlength=n_features) / n_rows - n_zeros / n_rows * mean
        scatter = np.bincount(columns, weights=np.square(values), minlength=n_features) + n_zeros * mean**2
    else:
        values = matrix / largest
        mean = values.mean(axis=0)
        values -= mean
        offset = values.mean(axis=0)
        scatter = np.einsum("ij,ij->j", values, values)
    # The deviations sum to 0 except for rounding of the mean, which is corrected here
    return mean + offset, np.maximum(scatter - n_rows * offset**2, 0.0)
