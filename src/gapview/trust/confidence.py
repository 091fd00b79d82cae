"""Confidence that a sample belongs to its cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from ..compute.arrays import host, like
from ..errors import InputError
from ..utils.types import Array
from ._groups import read_graph, read_labels, row_shares

# Both numbers were chosen, without labels, by the rank correlation of the confidence with the results of repeated fits
# on 80 % of the samples, over six data sets, for GRMF and for bridged graphs. Nearby numbers (3 to 6; 3 to 8 steps) are
# as good.
_DECAY = 4.0  # rate at which affinity falls with the distance to the centre, in units of the usual distance
N_STEPS = 4  # length of a random walk along the graph


def sample_confidence(points: Any, centers: Any, labels: Any, graph: Any = None) -> Array:
    """Return the confidence that every sample belongs to its cluster, without another fit.

    The affinity of a sample with cluster g is the product of exp(−4 d / u), with d the distance to its centre and u the
    mean distance of samples to their own centres, and of the probability that a random walk of four steps along the
    graph ends in the cluster. The confidence is the affinity with its own cluster divided by the sum over all clusters.

    Parameters
    ----------
    points : array of shape (n_samples, n_components)
        The rows that k-means has clustered: those of the embedding scaled to unit length.
    centers : array of shape (n_clusters, n_components)
        Centres of the clusters.
    labels : array of shape (n_samples,)
        Cluster of every sample, a row of ``centers``.
    graph : sparse matrix of shape (n_samples, n_samples), optional
        Non-negative weights between samples. Loops do not count. Without it, and for samples without neighbours, only
        the distances count.

    Returns
    -------
    array of shape (n_samples,)
        Between 0 and 1: about the share of fits, repeated on four fifths of the samples, that assign the sample to the
        same cluster. Around 1 / 2, two clusters have equal affinity; 0, the sample has no representation (a row of
        zeros). Where whole clusters differ from fit to fit, as with many clusters of few samples, it is too high, since
        it depends on the surroundings of a sample only: check with
        :func:`gapview.trust.cluster_stability`. Neither shows whether the clusters are meaningful.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.trust import sample_confidence
    >>> points = np.array([[1.0, 0.0], [0.9, 0.1], [0.1, 0.9], [0.0, 1.0], [0.5, 0.5]])
    >>> centers = np.array([[0.95, 0.05], [0.05, 0.95]])
    >>> sample_confidence(points, centers, [0, 0, 1, 1, 1]).round(2)
    array([1. , 1. , 1. , 1. , 0.5])
    """
    points, centers = np.asarray(points), np.asarray(centers)
    if points.ndim != 2 or centers.ndim != 2 or points.shape[1] != centers.shape[1]:
        raise InputError(
            "points and centers must be matrices with the same number of columns, rows for samples and for groups; "
            f"got shapes {points.shape} and {centers.shape}."
        )
    groups = read_labels(labels, len(points))
    if groups.max() >= len(centers):
        raise InputError(f"labels must name rows of centers, 0 to {len(centers) - 1}; got {groups.max()}.")
    if not (np.isfinite(points).all() and np.isfinite(centers).all()):
        raise InputError("points and centers must be finite; got infinite or NaN values.")
    return confidence(points, centers, groups, None if graph is None else read_graph(graph, len(points), "graph"))


def confidence(points: Array, centers: Array, groups: Array, graph: Any = None) -> Array:
    """Return what :func:`sample_confidence` returns, for arrays or tensors that are already checked."""
    xp = array_namespace(points)
    placed = xp.any(points != 0, axis=1)
    sizes = like(np.bincount(host(groups), minlength=len(centers)), points)
    affinity = distance_affinity(distances_to(points, centers), groups, placed, sizes > 0)
    if graph is not None:
        affinity *= _walk_probabilities(graph, groups, affinity)
    return host(own_shares(affinity, groups, placed))  # type: ignore[no-any-return]


def own_shares(affinity: Array, groups: Array, placed: Array) -> Array:
    """Return the share of every sample's own cluster in its affinities; 0 for samples without a representation."""
    xp = array_namespace(affinity)
    total = xp.sum(affinity, axis=1)
    own = affinity[xp.arange(len(groups), device=affinity.device), groups]
    shares = own / xp.where(total > 0, total, xp.ones_like(total))
    return xp.where(placed, shares, xp.zeros_like(shares))  # type: ignore[no-any-return]


def distances_to(points: Array, centers: Array) -> Array:
    """Return the distances of all points to all centres."""
    xp = array_namespace(points)
    centers = xp.astype(centers, points.dtype)
    squares = xp.sum(xp.square(points), axis=1)[:, None] + xp.sum(xp.square(centers), axis=1) - 2 * points @ centers.T
    return xp.sqrt(xp.clip(squares, 0))  # type: ignore[no-any-return]


def distance_affinity(
    distances: Array, groups: Array, placed: Array, filled: Array, usual: float | None = None
) -> Array:
    """Return the affinity of samples with all clusters; ``usual`` is the mean distance of samples to their centres."""
    xp = array_namespace(distances)
    if usual is None:
        own = distances[xp.arange(len(groups), device=distances.device), groups]
        usual = float(xp.mean(own[placed])) if xp.any(placed) else 0.0
    usual = max(usual, float(xp.finfo(distances.dtype).tiny))  # all samples may equal their centres
    distances = xp.where(filled, distances, xp.full_like(distances, xp.inf))  # for empty clusters
    with np.errstate(over="ignore"):
        # Relative to the nearest centre, since the affinities of samples far from all centres would be rounded to 0
        return xp.exp(-_DECAY * ((distances - xp.min(distances, axis=1, keepdims=True)) / usual))  # type: ignore[no-any-return]


def _walk_probabilities(graph: Any, groups: Array, affinity: Array) -> Array:
    """Return for every sample the probabilities that a walk ends in each cluster; 1 for samples without neighbours."""
    xp = array_namespace(affinity)
    transition, linked = row_shares(graph)
    ends = xp.zeros_like(affinity)
    ends[xp.arange(len(groups), device=affinity.device), groups] = 1.0
    for _ in range(N_STEPS):
        ends = xp.where(linked[:, None], transition @ ends, ends)  # a walk without a next step stays
    ends[~linked] = 1.0
    return ends  # type: ignore[no-any-return]
