"""One partition of samples with gaps: centres in every view, weights of views, distances that are not squared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances

from ..graph.donors import nearest_donors, training_rows
from ..graph.neighbors import Search
from ..graph.neighbors.distances import conditioned, scaled_back
from ..scaling import row_lengths
from ..utils.types import Array, Matrix
from ..views import Views
from ..views.cells import dense
from .base import has_converged

_SMALLEST = 1e-9  # residual, as a share of the largest, below which a row is not weighted more
_LEAST_COST = 0.01  # added to the cost of a view, as a share of the mean distance of its rows from their mean
_LEAST_WEIGHT = 1e-100  # of a view: samples that have this view alone still have a group


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

    @property
    def n_present(self) -> Array:
        """Number of samples that have each view."""
        return np.array([len(samples) for samples in self.samples])

    def costs(self, centers: Sequence[Array], factors: Array) -> Array:
        """Return the mean distance of every sample to the centres of each group, weighted by factors of its views."""
        total, weight = np.zeros((self.n_samples, len(centers[0]))), np.zeros((self.n_samples, 1))
        for matrix, samples, own, factor in zip(self.matrices, self.samples, centers, factors, strict=True):
            if len(samples):  # views of new samples may be empty
                total[samples] += factor * _distances(matrix, own)
                weight[samples] += factor
        return total / weight

    def residuals(self, centers: Sequence[Array], labels: Array) -> list[Array]:
        """Return for every view the distance of each row to the centre of its group."""
        groups = zip(self.matrices, self.samples, centers, strict=True)
        return [row_lengths(np.asarray(matrix - own[labels[samples]])) for matrix, samples, own in groups]

    def weighted_means(self, centers: Sequence[Array], labels: Array, weights: Sequence[Array]) -> list[Array]:
        """Return for every view the weighted mean of the rows of each group; the given centre for a group without."""
        means = []
        for matrix, samples, own, weight in zip(self.matrices, self.samples, centers, weights, strict=True):
            groups = labels[samples]
            sizes = np.bincount(groups, weights=weight, minlength=len(own))
            shape = (len(own), len(samples))
            averaging = sparse.csr_array((weight / sizes[groups], (groups, np.arange(len(samples)))), shape=shape)
            means.append(np.where(sizes[:, None] > 0, dense(averaging @ matrix), own).astype(own.dtype))
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
    """Alternate between centres, view weights and groups until the objective has converged.

    Parameters
    ----------
    rows : GappedRows
        The rows of the samples.
    start : sequence of arrays of shape (n_groups, n_features)
        First centres in every view.
    exponent : float
        γ of :func:`view_weights`.
    max_iter : int
        Maximum number of iterations.
    tol : float
        Relative change of the objective at which to stop.
    """
    centers = [own.copy() for own in start]
    means = [dense(own.mean(axis=0))[None] for own in rows.matrices]
    least = _LEAST_COST * _mean_of_each(rows.residuals(means, np.zeros(rows.n_samples, dtype=np.intp)))
    labels = _assigned(rows, centers, np.ones(len(centers)))
    pulls = [np.ones(len(samples)) for samples in rows.samples]  # a centre at a sample would stay there otherwise
    objective: list[float] = []
    for _ in range(max_iter):
        centers = rows.weighted_means(centers, labels, pulls)
        weights = view_weights(least + _mean_of_each(rows.residuals(centers, labels)), exponent)
        labels = _assigned(rows, centers, weights**exponent)
        residuals = rows.residuals(centers, labels)
        pulls = [sample_weights(own) for own in residuals]
        objective.append(float(weights**exponent @ (least + _mean_of_each(residuals))))
        if has_converged(objective, tol):
            break
    return Partition(labels, centers, weights, objective)


def _mean_of_each(residuals: Sequence[Array]) -> Array:
    return np.array([float(own.mean(dtype=np.float64)) for own in residuals])


def sample_weights(residuals: Array) -> Array:
    """Return weights proportional to 1 / (2 × residual), the smallest 1, with a floor for rows at their centre."""
    largest = float(residuals.max())
    if largest == 0:
        return np.ones(len(residuals))
    return np.asarray(1 / np.maximum(residuals / largest, _SMALLEST), dtype=np.float64)


def view_weights(costs: Array, exponent: float) -> Array:
    """Return α ≥ 0 with sum 1 that minimises Σ αₖ^γ Hₖ: proportional to Hₖ^(1/(1−γ)).

    Parameters
    ----------
    costs : array of shape (n_views,)
        H, above 0.
    exponent : float
        γ, above 1.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.baselines.partition import view_weights
    >>> view_weights(np.array([1.0, 2.0]), 2.0).round(3)
    array([0.667, 0.333])
    """
    powers = np.maximum((costs / costs.min()) ** (1 / (1 - exponent)), _LEAST_WEIGHT)
    return np.asarray(powers / powers.sum())


def _distances(matrix: Matrix, centers: Array) -> Array:
    """Return the distances between rows and centres, in double precision, also for rows far from the origin."""
    points, rows, exponent = conditioned(centers, matrix)
    return scaled_back(euclidean_distances(rows, points).astype(np.float64), exponent)


def _assigned(rows: GappedRows, centers: Sequence[Array], weights: Array) -> Array:
    """Return the group with the least cost for every sample; an empty group gets the sample with the largest cost."""
    costs = rows.costs(centers, weights / rows.n_present)
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
                centers[k][group] = dense(rows.matrices[k][[place]])
        own[farthest] = 0.0
    return np.asarray(labels)
