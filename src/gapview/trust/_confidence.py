"""How clearly a sample belongs to its group."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances

from ..errors import InputError
from ..views import Array
from ._groups import read_graph, read_labels, row_shares

# The rule and its two numbers were chosen, without labels, by how well the order of the samples agrees with repeated
# fits on 80 % of them, over six data sets, for GRMF and for bridged graphs. Numbers nearby (3 to 6; 3 to 8 steps) do
# as well.
_DECAY = 4.0  # how fast a group's claim falls with the distance of its centre, in units of the usual distance
_N_STEPS = 4  # how far a walk along the graph goes


def sample_confidence(points: Any, centers: Any, labels: Any, graph: Any = None) -> Array:
    """Say how clearly every sample belongs to its group, without another fit.

    Two witnesses speak for each group g: the distance d of its centre, by exp(−4 d / the mean distance of samples from
    their own centres); and the graph, by the chance that a random walk of four steps from the sample ends in the
    group. The product of the two, divided by its sum over all groups, is the sample's claim to belong to g, and its
    confidence is the claim of the group it is in.

    Parameters
    ----------
    points : array of shape (n_samples, n_components)
        What k-means has seen: the rows of the embedding scaled to unit length.
    centers : array of shape (n_clusters, n_components)
        Centres of the groups.
    labels : array of shape (n_samples,)
        Group of every sample, a row of ``centers``.
    graph : sparse matrix of shape (n_samples, n_samples), optional
        Non-negative weights between samples. Loops do not count. Without it, and for samples without neighbours, the
        distances alone speak.

    Returns
    -------
    array of shape (n_samples,)
        Between 0 and 1: about the share of fits, repeated on four fifths of the samples, that would put the sample
        into the same group. Around 1 / 2, two groups have equal claims; 0, the sample has no representation (a row of
        zeros). Where whole groups come and go from fit to fit, as among many groups of few samples, it promises too
        much, since a sample sees its own surroundings alone: :func:`cluster_stability` is the check. Neither knows
        whether the groups are those one looks for.

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
    placed = points.any(axis=1)
    distances = euclidean_distances(points, centers).astype(np.float64)
    claims = _claims_of_distance(distances, groups, placed)
    if graph is not None:
        claims *= _ends_of_walks(read_graph(graph, len(points), "graph"), groups, len(centers))
    own = claims[np.arange(len(groups)), groups]
    total = claims.sum(axis=1)
    return np.where(placed & (total > 0), own / np.where(total > 0, total, 1.0), 0.0)


def _claims_of_distance(distances: Array, groups: Array, placed: Array) -> Array:
    own = distances[np.arange(len(groups)), groups]
    usual = own[placed].mean() if placed.any() else 0.0
    usual = max(float(usual), np.finfo(np.float64).tiny)  # all samples may sit on their centres
    distances[:, np.bincount(groups, minlength=distances.shape[1]) == 0] = np.inf  # nobody is in an empty group
    with np.errstate(over="ignore"):
        # Measured from the nearest centre, or samples far from all centres would lose every claim to rounding
        return np.asarray(np.exp(-_DECAY * ((distances - distances.min(axis=1, keepdims=True)) / usual)))


def _ends_of_walks(graph: sparse.csr_array, groups: Array, n_groups: int) -> Array:
    """Return for every sample the chances that a walk ends in each group; the same for all if it cannot start."""
    steps, linked = row_shares(graph)
    ends = np.eye(n_groups)[groups]
    for _ in range(_N_STEPS):
        ends = np.where(linked[:, None], steps @ ends, ends)  # a walk that can go no further stays
    ends[~linked] = 1.0
    return ends
