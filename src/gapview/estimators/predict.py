"""New samples of a fitted model: labels by neighbours, codes, distances, rows of missing views.

The methods of the base class and of :class:`gapview.estimators.latent.LatentSpaceMixin` call these functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import InputError, SolutionError
from ..graph.donors import donor_means
from ..graph.knn import mean_neighbor_codes, resolve_n_neighbors
from ..graph.neighbors import distance_to_distinct, nearest
from ..utils.messages import warn_user
from ..utils.types import Array, Matrix
from ..views import Views
from ..views.linking import sample_parts

_N_TYPICAL = 1000  # training samples from which the usual distance between neighbours is computed


def project(model: Any, views: Views, weights: Array) -> Array:
    """Return the codes of samples: the weighted mean of x Uᵀ over the views of each sample (Remark 1).

    Parameters
    ----------
    model : LatentSpaceMixin
        The fitted model.
    views : Views
        Samples with the views of the model.
    weights : array of shape (n_views,)
        Weight of each view.

    Raises
    ------
    InputError
        If a code is not finite.
    """
    total = np.zeros((views.n_samples, model.embedding_.shape[1]), dtype=model.embedding_.dtype)
    weights = weights.astype(total.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        for k, matrix in enumerate(views.matrices):
            total[views.rows(k)] += weights[k] * (model.scalings_[k].apply(matrix) @ model.bases_[k].T)
    _demand_finite(total)
    return np.asarray(total / (views.mask @ weights)[:, None])


def _demand_finite(codes: Array) -> None:
    if not np.isfinite(codes).all():
        raise InputError(
            "Some samples hold values so large that their place in the latent space is not finite as "
            f"{codes.dtype}. Give them in the units of the training data."
        )


def predict_labels(model: Any, views: Views, embedding: Array, method: str, n_neighbors: int) -> Array:
    """Return the labels of samples from their codes, by nearest training samples or by nearest centre.

    Both are searched in the part that the views of a sample belong to.

    Warns
    -----
    GapviewWarning
        If a code is zero.
    """
    points, trained = model.latent_points(embedding), model.latent_points(model.embedding_)
    _demand_finite(points)
    _warn_of_no_place(points)
    labels = np.empty(len(points), dtype=model.labels_.dtype)
    trained_views = [model.views_.rows(k)[:1] for k in range(model.views_.n_views)]
    view_parts = np.array([model.part_[rows[0]] if len(rows) else 0 for rows in trained_views])
    parts = sample_parts(views.mask, view_parts)
    for part in np.unique(parts):
        rows, members = parts == part, np.flatnonzero(model.part_ == part)
        if method == "centers":
            groups = np.unique(model.labels_[members]) if model.part_.any() else np.arange(len(model.cluster_centers_))
            labels[rows] = groups[nearest(model.cluster_centers_[groups], 1, points[rows])[1][:, 0]]
        else:
            voters = nearest(trained[members], min(n_neighbors, len(members)), points[rows])[1]
            labels[rows] = majority(model.labels_[members[voters]])
    return labels


def nearest_centers(centers: Array, points: Array) -> Array:
    """Return the nearest centre of every point.

    Raises
    ------
    InputError
        If a point is not finite.

    Warns
    -----
    GapviewWarning
        If a point is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.estimators.predict import nearest_centers
    >>> nearest_centers(np.eye(2), np.array([[0.0, 0.9], [0.8, 0.1]]))
    array([1, 0])
    """
    _demand_finite(points)
    _warn_of_no_place(points)
    return np.asarray(nearest(centers, 1, points)[1][:, 0])


def _warn_of_no_place(points: Array) -> None:
    n_empty = int((~points.any(axis=1)).sum())
    if n_empty:
        warn_user(
            f"{n_empty} sample(s) have no place in the latent space, so that the group they are assigned to means "
            "nothing: their rows are zeros, which have no direction, or nothing links them to the training samples."
        )


def neighbor_vote(model: Any, views: Views) -> Array:
    """Return the most frequent label of the nearest training samples, averaged over the views of each sample.

    Of tied labels, that of the larger group is returned.

    Parameters
    ----------
    model : MultiViewClusterer
        The fitted model.
    views : Views
        Samples with the views of the model.
    """
    trained, n_groups = model.views_, int(model.labels_.max()) + 1
    counts = resolve_n_neighbors("auto", trained, n_groups)
    shares = mean_neighbor_codes(
        model.scaled(trained),
        trained,
        np.eye(n_groups)[model.labels_],
        model.scaled(views),
        views,
        counts,
        [1.0] * trained.n_views,
    )
    _warn_of_no_place(shares)
    return np.asarray(shares.argmax(axis=1))


def majority(votes: Array) -> Array:
    """Return the most frequent label of each row; of several, the one that comes first.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.estimators.predict import majority
    >>> majority(np.array([[2, 1, 1], [0, 3, 2]]))
    array([1, 0])
    """
    n_labels = int(votes.max(initial=0)) + 1
    rows = np.arange(len(votes))[:, None]
    counts = np.bincount((rows * n_labels + votes).ravel(), minlength=len(votes) * n_labels).reshape(-1, n_labels)
    first = np.take_along_axis(counts, votes, axis=1).argmax(axis=1)
    return np.asarray(votes[rows[:, 0], first])


def distance_to_training(model: Any, views: Views) -> Array:
    """Return the distance of each sample to its nearest training sample, in units of the usual distance.

    Of several views, the largest distance counts.
    """
    farthest = np.zeros(views.n_samples)
    for k, (trained, given) in enumerate(zip(model.scaled(model.views_), model.scaled(views), strict=True)):
        if not given.shape[0]:
            continue
        distances, _ = nearest(trained, 1, given)
        rows = views.rows(k)
        with np.errstate(over="ignore"):  # distances beyond the type become infinite
            farthest[rows] = np.maximum(farthest[rows], distances[:, 0] / _usual_distance(trained))
    return farthest


def _usual_distance(points: Matrix) -> float:
    """Return the median distance from points to their nearest different point; 1 if all coincide."""
    chosen = np.unique(np.linspace(0, points.shape[0] - 1, _N_TYPICAL).astype(np.intp))
    distances = distance_to_distinct(points, points[chosen])
    apart = distances[np.isfinite(distances)]
    return float(np.median(apart)) if apart.size else 1.0


def recover_rows(model: Any, views: Views, embedding: Array, method: str, n_neighbors: int) -> Iterator[Matrix]:
    """Yield for each view the recovered rows of the samples without it.

    Parameters
    ----------
    model : LatentSpaceMixin
        The fitted model.
    views : Views
        The samples.
    embedding : array of shape (n_samples, n_components)
        Their codes.
    method : {"neighbors", "basis"}
        Mean of the nearest training samples that have the view, or z U.
    n_neighbors : int
        Number of training samples in a mean.
    """
    for k, lacking in enumerate(~views.mask.T):
        codes = embedding[lacking]
        yield _from_basis(model, codes, k) if method == "basis" else _neighbor_mean(model, codes, k, n_neighbors)


def _from_basis(model: Any, codes: Array, view: int) -> Array:
    dtype = model.views_.matrices[view].dtype
    with np.errstate(over="ignore", invalid="ignore"):
        rows = model.scalings_[view].undo(codes @ model.bases_[view]).astype(dtype, copy=False)
    if not np.isfinite(rows).all():
        raise SolutionError(
            f"View '{model.views_.names[view]}' cannot be recovered with method='basis': the values are too large "
            f"for {dtype}. Use method='neighbors', or fit with a scale that brings all views to one size."
        )
    return rows  # type: ignore[no-any-return]


def _neighbor_mean(model: Any, codes: Array, view: int, n_neighbors: int) -> Matrix:
    source = model.views_.matrices[view]
    points = model.latent_points(model.embedding_[model.views_.rows(view)])
    _, indices = nearest(points, min(n_neighbors, source.shape[0]), model.latent_points(codes))
    means = donor_means(source, np.arange(source.shape[0]), indices)[0]
    values, limit = means.data if sparse.issparse(means) else means, np.finfo(means.dtype).max
    np.clip(values, -limit, limit, out=values)  # rounding may carry a mean of the largest numbers beyond them
    return means


def fill_missing_rows(views: Views, recovered: Iterable[Matrix]) -> Any:
    """Return complete views in the container of ``views``, with recovered rows for the samples without a view."""
    complete = []
    for present, rows, mask in zip(views.matrices, recovered, views.mask.T, strict=True):
        order = np.argsort(np.concatenate([np.flatnonzero(mask), np.flatnonzero(~mask)]))
        if sparse.issparse(present) or sparse.issparse(rows):
            complete.append(sparse.csr_array(sparse.vstack([present, sparse.csr_array(rows)]))[order])
        else:
            complete.append(np.concatenate([present, rows.astype(present.dtype, copy=False)])[order])
    return views.give_back(complete)
