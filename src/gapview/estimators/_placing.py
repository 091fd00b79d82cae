"""Where new samples belong in a latent space that is known: codes, votes of neighbours, rows of missing views."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import GapviewWarning, InputError, SolutionError
from ..graph.donors import donor_means
from ..graph.neighbors import distance_to_distinct, nearest
from ..scaling import unit_rows
from ..utils.types import Array, Matrix
from ..utils.warnings import warn_user
from ..views import Views, new_views
from ._output import CLUSTER, as_frame, as_series
from ._trusted import TrustedClusterer

__all__ = ["PlacingClusterer"]

_N_TYPICAL = 1000  # training samples from which the usual distance between neighbours is taken


class PlacingClusterer(TrustedClusterer):
    """A clusterer whose bases carry samples into one latent space and back, all of them in memory.

    A method may bring its own ``_embed``, ``_points``, ``_view_weights`` and ``_recovered``.
    """

    bases_: list[Array]

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def _read_new(self, views: Any) -> Views:
        self._demand_fitted()
        return new_views(views, self.views_, self.partial_rows)

    def _scaled(self, views: Views) -> list[Matrix]:
        return [scaling.apply(matrix) for scaling, matrix in zip(self.scalings_, views.matrices, strict=True)]

    def _transform(self, views: Any) -> Any:
        given = self._read_new(views)
        return as_frame(self, self._embed(given), given)

    def _predict(self, views: Any, *, method: str, n_neighbors: int, return_distance: bool) -> Any:
        given = self._read_new(views)
        points = self._points(self._embed(given))
        n_empty = int((~points.any(axis=1)).sum())
        if n_empty:
            warn_user(
                f"{n_empty} sample(s) have no place in the latent space, so that the group they are assigned to means "
                "nothing: their rows are zeros, which have no direction.",
                GapviewWarning,
            )
        if method == "centers":
            labels = nearest(self.cluster_centers_, 1, points)[1][:, 0].astype(self.labels_.dtype)
        else:
            _, voters = nearest(self._points(self.embedding_), min(n_neighbors, len(self.labels_)), points)
            labels = _majority(self.labels_[voters])
        found = as_series(self, labels, given, CLUSTER)
        if not return_distance:
            return found
        return found, as_series(self, self._strangeness(given), given, "distance")

    def _recover(self, views: Any, *, method: str, n_neighbors: int) -> Any:
        self._demand_fitted()
        given = self.views_ if views is None else self._read_new(views)
        embedding = self.embedding_ if views is None else self._embed(given)
        recovered = self._recovered(given, embedding, method, n_neighbors)
        lacking = ~given.mask.T
        return given.give_back([_interleave(*parts) for parts in zip(given.matrices, recovered, lacking, strict=True)])

    def _recovered(self, given: Views, embedding: Array, method: str, n_neighbors: int) -> Iterator[Matrix]:
        """Recover for every view the rows of those samples of ``given`` that lack it."""
        for k, lacking in enumerate(~given.mask.T):
            codes = embedding[lacking]
            if method == "basis":
                yield self._from_basis(codes, k)
            else:
                yield self._mean_of_neighbors(codes, k, n_neighbors)

    def _embed(self, views: Views) -> Array:
        """Project samples onto the bases and average over the views they have."""
        total = np.zeros((views.n_samples, self._n_features_out), dtype=self.embedding_.dtype)
        weights = self._view_weights().astype(total.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            for k, matrix in enumerate(views.matrices):
                total[views.rows(k)] += weights[k] * (self.scalings_[k].apply(matrix) @ self.bases_[k].T)
        if not np.isfinite(total).all():
            raise InputError(
                "Some samples hold values so large that their place in the latent space is not finite as "
                f"{total.dtype}. Give them in the units of the training data."
            )
        return np.asarray(total / (views.mask @ weights)[:, None])

    def _view_weights(self) -> Array:
        """Say how much every view counts where views are averaged."""
        return np.ones(self.views_.n_views)

    def _points(self, embedding: Array) -> Array:
        """Give the rows among which k-means has found the groups, and neighbours are looked up."""
        return np.asarray(unit_rows(embedding))

    def _from_basis(self, codes: Array, view: int) -> Array:
        dtype = self.views_.matrices[view].dtype
        with np.errstate(over="ignore", invalid="ignore"):
            rows = self.scalings_[view].undo(codes @ self.bases_[view]).astype(dtype, copy=False)
        if not np.isfinite(rows).all():
            raise SolutionError(
                f"View '{self.views_.names[view]}' cannot be recovered with method='basis': the values are too large "
                f"for {dtype}. Use method='neighbors', or fit with a scale that brings all views to one size."
            )
        return rows

    def _mean_of_neighbors(self, queries: Array, view: int, n_neighbors: int) -> Matrix:
        source = self.views_.matrices[view]
        points = self._points(self.embedding_[self.views_.rows(view)])
        _, indices = nearest(points, min(n_neighbors, source.shape[0]), self._points(queries))
        means = donor_means(source, np.arange(source.shape[0]), indices)[0]
        values, limit = means.data if sparse.issparse(means) else means, np.finfo(means.dtype).max
        np.clip(values, -limit, limit, out=values)  # rounding may carry a mean of the largest numbers beyond them
        return means

    def _strangeness(self, views: Views) -> Array:
        farthest = np.zeros(views.n_samples)
        for k, matrix in enumerate(views.matrices):
            if not matrix.shape[0]:
                continue
            known = self.scalings_[k].apply(self.views_.matrices[k])
            distances, _ = nearest(known, 1, self.scalings_[k].apply(matrix))
            rows = views.rows(k)
            with np.errstate(over="ignore"):  # farther than the type can say is infinitely far
                farthest[rows] = np.maximum(farthest[rows], distances[:, 0] / _usual_distance(known))
        return farthest


def _majority(votes: Array) -> Array:
    """Return the label most frequent in every row; of several, the one that comes first."""
    n_labels = int(votes.max(initial=0)) + 1
    rows = np.arange(len(votes))[:, None]
    counts = np.bincount((rows * n_labels + votes).ravel(), minlength=len(votes) * n_labels).reshape(-1, n_labels)
    first = np.take_along_axis(counts, votes, axis=1).argmax(axis=1)
    return np.asarray(votes[rows[:, 0], first])


def _usual_distance(points: Matrix) -> float:
    """Return the median distance to the nearest point elsewhere, from a spread of the points; 1 if all coincide."""
    chosen = np.unique(np.linspace(0, points.shape[0] - 1, _N_TYPICAL).astype(np.intp))
    distances = distance_to_distinct(points, points[chosen])
    apart = distances[np.isfinite(distances)]
    return float(np.median(apart)) if apart.size else 1.0


def _interleave(present: Matrix, recovered: Matrix, lacking: Array) -> Matrix:
    """Put present and recovered rows back into the order of the samples."""
    order = np.argsort(np.concatenate([np.flatnonzero(~lacking), np.flatnonzero(lacking)]))
    if sparse.issparse(present) or sparse.issparse(recovered):
        return sparse.csr_array(sparse.vstack([present, sparse.csr_array(recovered)]))[order]
    return np.concatenate([present, recovered.astype(present.dtype, copy=False)])[order]
