"""New samples of a fitted model: labels by neighbours, codes, distances, rows of missing views.

The methods of the base class and of :class:`gapview.estimators.latent.LatentSpaceMixin` call these functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import InputError
from ..graph.knn import mean_neighbor_codes, resolve_n_neighbors
from ..graph.neighbors import nearest
from ..trust.confidence import distance_affinity, distances_to
from ..utils.messages import warn_user
from ..utils.types import Array, Matrix
from ..views import Views
from ..views.linking import sample_parts


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
        for k, rows in enumerate(model.scaled(views)):
            total[views.rows(k)] += weights[k] * (rows @ model.bases_[k].T)
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
    labels = np.empty(len(embedding), dtype=model.labels_.dtype)
    points = _placed_points(model, embedding)
    _warn_of_no_place(points)
    for rows, members in _parts(model, views):
        if method == "centers":
            groups = np.unique(model.labels_[members]) if model.part_.any() else np.arange(len(model.cluster_centers_))
            labels[rows] = groups[nearest(model.cluster_centers_[groups], 1, points[rows])[1][:, 0]]
        else:
            labels[rows] = majority(_votes(model, points[rows], members, n_neighbors))
    return labels


def predict_shares(model: Any, views: Views, embedding: Array, n_neighbors: int) -> Array:
    """Return the shares of the labels of the nearest training samples, as in :func:`predict_labels`."""
    shares = np.zeros((len(embedding), model.n_groups))
    points = _placed_points(model, embedding)
    for rows, members in _parts(model, views):
        votes = _votes(model, points[rows], members, n_neighbors)
        np.add.at(shares, (np.flatnonzero(rows)[:, None], votes), 1 / votes.shape[1])
    return shares


def _placed_points(model: Any, embedding: Array) -> Array:
    points = model.latent_points(embedding)
    _demand_finite(points)
    return np.asarray(points)


def _parts(model: Any, views: Views) -> Iterator[tuple[Array, Array]]:
    """Yield, for each part that samples belong to, which samples do, and the training samples of the part."""
    trained_views = [model.views_.rows(k)[:1] for k in range(model.views_.n_views)]
    view_parts = np.array([model.part_[rows[0]] if len(rows) else 0 for rows in trained_views])
    parts = sample_parts(views.mask, view_parts)
    for part in np.unique(parts):
        yield parts == part, np.flatnonzero(model.part_ == part)


def _votes(model: Any, points: Array, members: Array, n_neighbors: int) -> Array:
    """Return the labels of the nearest training samples, in the order of their distance."""
    trained = model.latent_points(model.embedding_)[members]
    return np.asarray(model.labels_[members[nearest(trained, min(n_neighbors, len(members)), points)[1]]])


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


def center_shares(model: Any, points: Array) -> Array:
    """Return shares of groups by the distances to the centres of a model, whose ``embedding_`` holds such points."""
    trained = np.asarray(distances_to(model.embedding_, model.cluster_centers_))
    return distance_shares(np.asarray(distances_to(points, model.cluster_centers_)), trained, model.labels_)


def distance_shares(distances: Array, trained: Array, labels: Array) -> Array:
    """Return shares of groups that fall exponentially with the distance, in units of the mean distance in training.

    Parameters
    ----------
    distances : array of shape (n_samples, n_clusters)
        Distances of new samples to groups.
    trained : array of shape (n_trained, n_clusters)
        Those of the training samples.
    labels : array of shape (n_trained,)
        Groups of the training samples.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.estimators.predict import distance_shares
    >>> distance_shares(np.array([[1.0, 1.0], [1.0, 2.0]]), np.array([[1.0, 5.0]]), np.array([0])).round(2)
    array([[0.5 , 0.5 ],
           [0.98, 0.02]])
    """
    usual = float(trained[np.arange(len(labels)), labels].mean())
    all_rows, all_groups = (np.ones(n_items, dtype=bool) for n_items in distances.shape)
    affinity = distance_affinity(distances, distances.argmin(axis=1), all_rows, all_groups, None, usual)
    return np.asarray(affinity / affinity.sum(axis=1, keepdims=True))


def _warn_of_no_place(points: Array) -> None:
    n_empty = int((~points.any(axis=1)).sum())
    if n_empty:
        warn_user(
            f"{n_empty} sample(s) have no place in the latent space, so that the group they are assigned to means "
            "nothing: their rows are zeros, which have no direction, or nothing links them to the training samples."
        )


def neighbor_shares(model: Any, views: Views) -> Array:
    """Return the shares of the labels of the nearest training samples, averaged over the views of each sample.

    A sample without neighbours has equal shares of all groups.

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
        np.eye(model.n_groups)[model.labels_],
        model.scaled(views),
        views,
        counts,
        [1.0] * trained.n_views,
    )
    _warn_of_no_place(shares)
    shares[~shares.any(axis=1)] = 1 / model.n_groups
    return shares


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
