"""Confidence of every sample: labels compared with centres and neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse
from scipy.special import betainc

from ..compute.arrays import csr, divide_weights, host, like, weights_of
from ..compute.tensor_graph import TensorGraph
from ..errors import InputError
from ..utils.types import Array

# Both numbers were chosen, without labels, by the rank correlation of the confidence with the results of repeated fits
# on 80 % of the samples, over six data sets, for GRMF and for bridged graphs. Nearby numbers (3 to 6; 3 to 8 steps) are
# as good.
_DECAY = 4.0  # rate at which affinity falls with the distance to the centre, in units of the usual distance
N_STEPS = 4  # length of a random walk along the graph
LEAST_SIZE = 5  # samples of a cluster in a resample, below which it cannot be recognised
_SHARE = 0.8  # share of the samples in a resample


def sample_confidence(points: Any, centers: Any, labels: Any, graph: Any = None) -> Array:
    """Return the confidence that every sample belongs to its cluster, without another fit.

    The affinity of a sample with cluster g is the product of exp(−4 d / u), with d the distance to its centre and u the
    mean distance of samples to their own centres, and of the probability that a random walk of four steps along the
    graph ends in the cluster. The distance to the centre of its own cluster is that to the mean of the other members.
    The share of a sample is the affinity with its own cluster divided by the sum over all clusters. The confidence is
    this share times the probability that at least five members of the cluster are in a resample of 80 % of the samples,
    given that the sample is: 0 for clusters of fewer than five samples, 0.41 for five, more than 0.99 for ten.

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
        Between 0 and 1. Around 1 / 2, two clusters have equal affinity; 0, the cluster has fewer than five samples, or
        the sample has no representation (a row of zeros). It depends on the surroundings of a sample only: where whole
        clusters differ from fit to fit, as in noise, it is too high. :func:`gapview.trust.calibrated_confidence`
        corrects this with some more fits. Neither shows whether the clusters are meaningful.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.trust import sample_confidence
    >>> points = np.repeat([[1.0, 0.1], [0.9, 0.0], [0.0, 0.9], [0.1, 1.0], [0.5, 0.5]], 20, axis=0)
    >>> labels = np.repeat([0, 0, 1, 1, 1], 20)
    >>> centers = np.array([[0.95, 0.05], [0.05, 0.95]])
    >>> sample_confidence(points, centers, labels)[::20].round(1)
    array([1. , 1. , 1. , 1. , 0.4])
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


def confidence(points: Array, centers: Array, groups: Array, graph: Any = None, possible: Array | None = None) -> Array:
    """Return what :func:`sample_confidence` returns, for arrays or tensors that are already checked.

    ``possible`` says for every sample which clusters it may belong to; all by default.
    """
    xp = array_namespace(points)
    placed = xp.any(points != 0, axis=1)
    sizes = like(np.bincount(host(groups), minlength=len(centers)), points)
    filled = sizes > 0 if possible is None else (sizes > 0) & possible
    affinity = distance_affinity(distances_to(points, centers), groups, placed, filled, sizes)
    if graph is not None:
        affinity *= _walk_probabilities(graph, groups, affinity)
    return host(own_shares(affinity, groups, placed, sizes))  # type: ignore[no-any-return]


def own_shares(affinity: Array, groups: Array, placed: Array, sizes: Array) -> Array:
    """Return the confidence from the affinities with all clusters; 0 for samples without a representation."""
    xp = array_namespace(affinity)
    total = xp.sum(affinity, axis=1)
    own = affinity[xp.arange(len(groups), device=affinity.device), groups]
    shares = own / xp.where(total > 0, total, xp.ones_like(total))
    shares *= like(_share_recognised(host(sizes)).astype(host(affinity[:0]).dtype), affinity)[groups]
    return xp.where(placed, shares, xp.zeros_like(shares))  # type: ignore[no-any-return]


def _share_recognised(sizes: Array) -> Array:
    """Return for clusters of these sizes the probability that a resample with one member has enough of the others."""
    needed = LEAST_SIZE - 1
    spare = np.maximum(np.asarray(sizes) - LEAST_SIZE, 0)
    return np.where(sizes >= LEAST_SIZE, betainc(needed, spare + 1, _SHARE), 0.0)  # binomial: needed of the others


def distances_to(points: Array, centers: Array) -> Array:
    """Return the distances of all points to all centres."""
    xp = array_namespace(points)
    centers = xp.astype(centers, points.dtype)
    squares = xp.sum(xp.square(points), axis=1)[:, None] + xp.sum(xp.square(centers), axis=1) - 2 * points @ centers.T
    return xp.sqrt(xp.clip(squares, 0))  # type: ignore[no-any-return]


def distance_affinity(
    distances: Array, groups: Array, placed: Array, filled: Array, sizes: Array | None, usual: float | None = None
) -> Array:
    """Return the affinity of samples with all clusters, 0 with those that are not ``filled``.

    ``sizes`` are the numbers of samples of the clusters, None for samples that are not in them. ``usual`` is the mean
    distance of samples to their centres.
    """
    xp = array_namespace(distances)
    every = xp.arange(len(groups), device=distances.device)
    own = distances[every, groups]
    if usual is None:
        usual = float(xp.mean(own[placed])) if xp.any(placed) else 0.0
    if sizes is not None:  # a centre is the mean of its cluster: without the sample it is farther away
        counts = xp.astype(sizes, distances.dtype)
        distances[every, groups] = own * (counts / xp.clip(counts - 1, 1))[groups]
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


# -- labels and graphs --------------------------------------------------------------------------------------------


def read_labels(labels: Any, n_samples: int | None = None) -> Array:
    """Return the labels as an integer array, checked to be whole numbers from 0 on."""
    read = np.asarray(labels)
    expected = "one" if n_samples is None else f"{n_samples} whole numbers, one"
    if read.ndim != 1 or not read.size or (n_samples is not None and len(read) != n_samples):
        raise InputError(f"labels must give {expected} for each sample; got an array of shape {read.shape}.")
    if read.dtype.kind not in "iu" or read.min() < 0:
        raise InputError(
            f"labels must be whole numbers from 0 on, as labels_ of a fitted model; got {read.dtype} from "
            f"{read.min()} on. Number the groups with numpy.unique(labels, return_inverse=True)[1]."
        )
    return read.astype(np.intp)


def row_shares(graph: Any) -> tuple[Any, Array]:
    """Return a graph without loops and with rows that sum to 1, and which samples have neighbours."""
    others = _without_loops(graph)
    weights = weights_of(others)
    xp = array_namespace(weights)
    ones = xp.ones(graph.shape[0], dtype=weights.dtype, device=weights.device)
    totals = others @ ones
    return divide_weights(others, totals, ones), totals > 0


def _without_loops(graph: Any) -> Any:
    if isinstance(graph, TensorGraph):
        return graph.without_loops()
    if not graph.diagonal().any() and (graph.data > 0).all():
        return graph
    places = graph.tocoo()
    kept = (places.row != places.col) & (places.data > 0)
    return csr(places.row[kept], places.col[kept], places.data[kept], graph.shape)


def read_graph(graph: Any, n_rows: int, name: str) -> sparse.csr_array:
    """Return a graph between ``n_rows`` samples as a csr_array, checked to have finite weights of at least 0."""
    if not sparse.issparse(graph) or graph.shape != (n_rows, n_rows):
        found = f"a sparse matrix of shape {graph.shape}" if sparse.issparse(graph) else type(graph).__name__
        raise InputError(
            f"{name} must be a SciPy sparse matrix of {n_rows} × {n_rows} weights, as gapview.graph.knn_graph makes "
            f"it; got {found}."
        )
    weights = sparse.csr_array(graph)
    if not np.isfinite(weights.data).all() or (weights.data < 0).any():
        raise InputError(f"{name} must hold finite weights of at least 0; got negative, infinite or NaN ones.")
    return weights
