"""``RobustMultiViewKMeans``: one partition for all views, with distances that are not squared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances

from ..clusters import N_RESTARTS, group_order, renumbered
from ..compute.kmeans import kmeans_plus_plus
from ..graph.donors import nearest_donors, training_rows
from ..graph.neighbors import Search
from ..scaling import row_lengths, scale_views
from ..utils.types import Array, Matrix
from ..views import Views
from ..views.cells import dense
from .base import Baseline, baseline, has_converged
from .concat import mean_filled

_SMALLEST = 1e-9  # residual, as a share of the mean, below which a row is not weighted more
_LEAST_FACTOR = 1e-100


@baseline
class RobustMultiViewKMeans(Baseline):
    """Robust multi-view k-means: one partition G for all views, views and samples weighted by how well they fit.

    With fₖc the centre of group c in view k and Oₖ the samples that have view k::

        min  Σₖ αₖ^γ Σ_{i ∈ Oₖ} ‖xₖᵢ − fₖ,g(i)‖         Σₖ αₖ = 1, αₖ ≥ 0

    The distances are not squared, so that a sample far from its centre has less influence on it than in k-means. A
    missing row has weight 0: it is in no sum. Each step lowers the objective or leaves it as it is:

    * centres: the mean of the rows of a group, weighted by 1 / (2 × their distance from the previous centre);
    * groups: the one with the smallest sum of αₖ^γ ‖xₖᵢ − fₖc‖ over the views of the sample;
    * views: αₖ ∝ Hₖ^(1/(1−γ)), with Hₖ the sum of the distances in view k.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups.
    weight_exponent : float, default=5.0
        γ, above 1: near 1 the view that fits best decides alone, with large values all views have equal weights.
    scale : {"unit", "center+unit", "standard", "standard+view", "standard+unit", None}, default="unit"
        As in :class:`gapview.GRMF`.
    n_init : int, default=20
        Number of starts; the solution with the smallest objective is kept. Centres start at samples drawn by k-means++
        from the views side by side, missing rows filled with the mean of the view. In a view that such a sample lacks,
        the centre starts at the row of the nearest sample that has it.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-6
        Stop when the objective changes by less than this share of its value.
    partial_rows : {"raise", "fill", "drop"}, default="raise"
        What to do with rows that have some but not all values, see :class:`gapview.Views`.
    random_state : int, RandomState or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Group of every sample. Group 0 is the largest; equal sizes are ordered by the smallest sample id.
    embedding_ : array of shape (n_samples, n_clusters)
        Distance of every sample to every group: the weighted mean of ‖xₖᵢ − fₖc‖ over its views.
    view_centers_ : list of arrays of shape (n_clusters, n_features)
        fₖc, in the scaled features. A group without a sample that has the view keeps the centre it started with.
    view_weights_ : array of shape (n_views,)
        α.
    objective_ : array of shape (n_iter_,)
        Value of the problem above after every iteration; it never rises.
    n_iter_ : int
        Iterations done.
    sample_ids_ : array of shape (n_samples,)
        Ids of the samples.

    Notes
    -----
    The paper assigns samples by squared distances with the sample weights of the previous iteration, an upper bound of
    the objective. Here the objective itself is minimised, so that ``predict`` follows the rule of the fit: it needs no
    weights of samples, which new samples do not have.

    α depends on the number of samples that have a view: a view that few samples have has a small sum Hₖ, and so a
    large weight. A larger γ limits this.

    References
    ----------
    X. Cai, F. Nie, H. Huang: Multi-View K-Means Clustering on Big Data. IJCAI, 2013.

    Examples
    --------
    >>> from gapview.baselines import RobustMultiViewKMeans
    >>> from gapview.datasets import make_views
    >>> from gapview.metrics import clustering_accuracy
    >>> data = make_views(n_samples=200, n_clusters=3, missing_rate=0.3, random_state=0)
    >>> model = RobustMultiViewKMeans(n_clusters=3, random_state=0).fit(data.views)
    >>> clustering_accuracy(data.target, model.labels_) > 0.9
    True
    >>> bool((model.predict(data.views) == model.labels_).all())
    True
    """

    weight_exponent: float = 5.0
    n_init: int = N_RESTARTS
    max_iter: int = 100
    tol: float = 1e-6

    _fitted_attributes = ("view_centers_", "view_weights_", "objective_", "n_iter_")

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        scaled, _ = scale_views(views, self.scale)
        rows = GappedRows.of(scaled, views)
        filled = np.hstack(mean_filled(scaled, views))
        seeds = kmeans_plus_plus(filled, self.n_clusters, self.n_init, random_state)
        centers = completed_rows(scaled, views, seeds.ravel())
        starts = zip(*(np.split(own, self.n_init) for own in centers), strict=True)
        fits = (fit_partition(rows, start, self.weight_exponent, self.max_iter, self.tol) for start in starts)
        best = min(fits, key=lambda fit: fit.objective[-1])
        self.view_centers_, self.view_weights_, self.labels_ = best.centers, best.weights, best.labels
        self.objective_, self.n_iter_ = np.array(best.objective), len(best.objective)
        self.embedding_ = self._distances(rows)

    def _distances(self, rows: GappedRows) -> Array:
        """Return the weighted mean distance of every sample to the centres of every group, over its views."""
        factors = relative_factors(self.view_weights_, self.weight_exponent)
        distances = rows.costs(self.view_centers_, factors) / rows.total(factors)[:, None]
        return np.asarray(distances, dtype=self.view_centers_[0].dtype)

    def _number_groups(self, ids: Array) -> None:
        order = group_order(self.labels_, ids, self.n_clusters)
        self.labels_ = renumbered(self.labels_, order)
        self.embedding_ = self.embedding_[:, order]
        self.view_centers_ = [centers[order] for centers in self.view_centers_]

    def _predict_views(self, views: Views) -> Array:
        return np.asarray(self._distances(GappedRows.of(self.scaled(views), views)).argmin(axis=1))


@dataclass(frozen=True)
class GappedRows:
    """The present rows of every view, and the samples that they belong to."""

    matrices: Sequence[Matrix]
    samples: Sequence[Array]
    n_samples: int

    @classmethod
    def of(cls, scaled: Sequence[Matrix], views: Views) -> Self:
        """Return the scaled rows of views."""
        return cls(scaled, [views.rows(k) for k in range(views.n_views)], views.n_samples)

    def total(self, factors: Array) -> Array:
        """Return the sum of the factors of the views that each sample has."""
        total = np.zeros(self.n_samples)
        for samples, factor in zip(self.samples, factors, strict=True):
            total[samples] += factor
        return total

    def costs(self, centers: Sequence[Array], factors: Array) -> Array:
        """Return for every sample and group the sum of the distances to its centres, times the factors of the views."""
        total = np.zeros((self.n_samples, len(centers[0])))
        for matrix, samples, own, factor in zip(self.matrices, self.samples, centers, factors, strict=True):
            if len(samples):  # views of new samples may be empty
                total[samples] += factor * euclidean_distances(matrix, own)
        return total

    def residuals(self, centers: Sequence[Array], labels: Array) -> list[Array]:
        """Return for every view the distance of each row to the centre of its group."""
        groups = zip(self.matrices, self.samples, centers, strict=True)
        return [row_lengths(np.asarray(matrix - own[labels[samples]])) for matrix, samples, own in groups]

    def weighted_means(self, centers: Sequence[Array], labels: Array, weights: Sequence[Array]) -> list[Array]:
        """Return for every view the weighted mean of the rows of each group; the given centre for a group without."""
        means = []
        for matrix, samples, own, weight in zip(self.matrices, self.samples, centers, weights, strict=True):
            places = (labels[samples], np.arange(len(samples)))
            chosen = sparse.csr_array((weight, places), shape=(len(own), len(samples)))
            sizes = np.asarray(chosen.sum(axis=1)).ravel()
            sums = chosen @ matrix
            sums = sums.toarray() if sparse.issparse(sums) else sums
            mean = sums / np.where(sizes > 0, sizes, 1)[:, None]
            means.append(np.where(sizes[:, None] > 0, mean, own).astype(own.dtype))
        return means


@dataclass(frozen=True)
class Partition:
    """A partition of the samples, with the centres and weights of the views."""

    labels: Array
    centers: list[Array]
    weights: Array  # α
    objective: list[float]  # after every iteration


def completed_rows(scaled: Sequence[Matrix], views: Views, samples: Array) -> list[Array]:
    """Return rows of some samples in every view, those of the nearest sample that has the view where they lack it.

    Distances are computed on the views that two samples share. A sample without any such neighbour gets the mean of the
    view. The rows of real samples are better first centres than means, which lie near all rows of a wide view.
    """
    tables = training_rows(scaled, views)
    completed = []
    for k, matrix in enumerate(scaled):
        position = np.full(views.n_samples, -1)
        position[views.rows(k)] = np.arange(matrix.shape[0])
        lacking = np.flatnonzero(position[samples] < 0)
        donors = nearest_donors(tables, k, tables, samples[lacking], Search("exact"))[:, 0]
        places = position[samples]
        places[lacking] = np.where(donors >= 0, position[donors], -1)
        rows = np.tile(matrix.mean(axis=0, dtype=np.float64), (len(samples), 1)).astype(matrix.dtype)
        rows[places >= 0] = dense(matrix[places[places >= 0]])
        completed.append(rows)
    return completed


def fit_partition(rows: GappedRows, start: Sequence[Array], exponent: float, max_iter: int, tol: float) -> Partition:
    """Alternate between centres, view weights and groups until the objective has converged."""
    n_views, centers = len(rows.matrices), [own.copy() for own in start]
    labels = _assigned(rows, centers, np.ones(n_views))
    pulls = [np.ones(len(samples)) for samples in rows.samples]  # a centre at a sample would stay there otherwise
    objective: list[float] = []
    for _ in range(max_iter):
        centers = rows.weighted_means(centers, labels, pulls)
        weights = view_weights(_sums(rows.residuals(centers, labels)), exponent)
        labels = _assigned(rows, centers, relative_factors(weights, exponent))
        residuals = rows.residuals(centers, labels)
        pulls = [sample_weights(each) for each in residuals]
        objective.append(float(weights**exponent @ _sums(residuals)))
        if has_converged(objective, tol):
            break
    return Partition(labels, centers, weights, objective)


def _sums(residuals: Sequence[Array]) -> Array:
    return np.array([float(own.sum(dtype=np.float64)) for own in residuals])


def relative_factors(weights: Array, exponent: float) -> Array:
    """Return αₖ^γ divided by the largest, but not 0: the groups of samples with one view depend on it alone."""
    return np.asarray(np.maximum((weights / weights.max()) ** exponent, _LEAST_FACTOR))


def sample_weights(residuals: Array) -> Array:
    """Return 1 / (2 × residual) of every row, with a floor for rows at their centre."""
    floor = max(_SMALLEST * float(residuals.mean()), np.finfo(residuals.dtype).tiny)
    return np.asarray(0.5 / np.maximum(residuals, floor))


def view_weights(sums: Array, exponent: float) -> Array:
    """Return α ≥ 0 with sum 1 that minimises Σ αₖ^γ Hₖ: proportional to Hₖ^(1/(1−γ)).

    Parameters
    ----------
    sums : array of shape (n_views,)
        H, at least 0.
    exponent : float
        γ, above 1.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.baselines.robust_kmeans import view_weights
    >>> view_weights(np.array([1.0, 2.0]), 2.0).round(3)
    array([0.667, 0.333])
    """
    smallest = sums.min()
    if smallest == 0:
        return np.asarray((sums == 0) / (sums == 0).sum())
    powers = (sums / smallest) ** (1 / (1 - exponent))
    return np.asarray(powers / powers.sum())


def _assigned(rows: GappedRows, centers: Sequence[Array], weights: Array) -> Array:
    """Return the group with the least cost for every sample; an empty group gets the sample with the largest cost."""
    costs = rows.costs(centers, weights)
    labels = costs.argmin(axis=1)
    own = costs[np.arange(len(costs)), labels]
    sizes = np.bincount(labels, minlength=costs.shape[1])
    for group in np.flatnonzero(sizes == 0):
        movable = np.where(sizes[labels] > 1, own, -1.0)
        farthest = int(movable.argmax())
        sizes[[labels[farthest], group]] += (-1, 1)
        labels[farthest] = group
        for k, samples in enumerate(rows.samples):  # the centre of the group moves to the sample
            place = np.searchsorted(samples, farthest)
            if place < len(samples) and samples[place] == farthest:
                row = rows.matrices[k][[place]]
                centers[k][group] = row.toarray() if sparse.issparse(row) else row
        own[farthest] = 0.0
    return np.asarray(labels)
