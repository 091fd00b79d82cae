"""Labels compared with centres and neighbours: confidence of every sample, agreement of every view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse

from ..compute.arrays import TensorGraph, coordinates, csr, divide_weights, host, like, weights_of
from ..errors import InputError
from ..persist.registry import storable_record
from ..utils.types import Array

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
    return confidence(points, centers, groups, None if graph is None else _read_graph(graph, len(points), "graph"))


def confidence(points: Array, centers: Array, groups: Array, graph: Any = None, possible: Array | None = None) -> Array:
    """Return what :func:`sample_confidence` returns, for arrays or tensors that are already checked.

    ``possible`` says for every sample which clusters it may belong to; all by default.
    """
    xp = array_namespace(points)
    placed = xp.any(points != 0, axis=1)
    sizes = like(np.bincount(host(groups), minlength=len(centers)), points)
    filled = sizes > 0 if possible is None else (sizes > 0) & possible
    affinity = distance_affinity(distances_to(points, centers), groups, placed, filled)
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
    """Return the affinity of samples with all clusters, 0 with those that are not ``filled``.

    ``usual`` is the mean distance of samples to their centres.
    """
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
    transition, linked = _row_shares(graph)
    ends = xp.zeros_like(affinity)
    ends[xp.arange(len(groups), device=affinity.device), groups] = 1.0
    for _ in range(N_STEPS):
        ends = xp.where(linked[:, None], transition @ ends, ends)  # a walk without a next step stays
    ends[~linked] = 1.0
    return ends  # type: ignore[no-any-return]


# -- agreement of the labels of neighbours within views and between them ------------------------------------------


@storable_record
@dataclass(frozen=True)
class Agreement:
    """The result of :func:`view_agreement`; NaN where fewer than two samples of a cluster have neighbours.

    Attributes
    ----------
    share : array of shape (n_clusters, n_views)
        Share of the neighbours in the view with the label of the sample, averaged over the samples of a cluster.
    chance : array of shape (n_clusters, n_views)
        The expected share for labels that are independent of the view.
    pair_share : array of shape (n_clusters, n_views, n_views)
        Probability that a neighbour in one view and a neighbour in the other have the same label.
    pair_chance : array of shape (n_views, n_views)
        Probability that two random samples, one from each view, have the same label.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.graph import knn_graph
    >>> from gapview.trust import view_agreement
    >>> graph = knn_graph(np.array([[0.0], [0.1], [5.0], [5.1]]), 1)
    >>> agreement = view_agreement([graph], [[True]] * 4, [0, 0, 1, 1])
    >>> agreement.share.ravel(), agreement.above_chance.ravel()
    (array([1., 1.]), array([1., 1.]))
    """

    share: Array
    chance: Array
    pair_share: Array
    pair_chance: Array

    @property
    def above_chance(self) -> Array:
        """Share of each cluster in each view, rescaled: 0 by chance, 1 if all neighbours have the same label."""
        return _above(self.share, self.chance)

    @property
    def pair_above_chance(self) -> Array:
        """Agreement of pairs of views, rescaled: 0 by chance, 1 if neighbours in both always have the same label."""
        return _above(self.pair_share, np.broadcast_to(self.pair_chance, self.pair_share.shape))


def view_agreement(graphs: Sequence[Any], mask: Any, labels: Any) -> Agreement:
    """Compute how often neighbours in each view, and in each pair of views, have the same label.

    For each sample and view k: the share of its neighbours with its own label. The mean over the samples of a cluster
    measures how well the cluster is visible in this view alone. Its chance level is the share of the cluster among the
    other samples that have the view.

    Two views agree on a sample if a random neighbour in one and a random neighbour in the other have the same label,
    whichever it is. Only samples with neighbours in both views count. The agreement of a view with itself is an upper
    bound for its agreement with others.

    The labels were computed from the same views: high values show that the clusters are visible in the view, not that
    they are real.

    Parameters
    ----------
    graphs : sequence of sparse matrices
        For every view the weights between the samples that have it, in the order of the samples, as ``graphs_`` of
        :class:`gapview.GRMF` or :func:`gapview.graph.knn_graph` give them. Loops do not count.
    mask : bool array of shape (n_samples, n_views)
        True where a sample has a view.
    labels : array of shape (n_samples,)
        Label of every sample, whole numbers from 0 on.

    Returns
    -------
    Agreement

    Examples
    --------
    >>> from gapview import GRMF
    >>> from gapview.datasets import make_views
    >>> from gapview.trust import view_agreement
    >>> views = make_views(n_samples=90, n_clusters=3, missing_rate=0.3, random_state=0).views
    >>> model = GRMF(n_clusters=3, random_state=0).fit(views)
    >>> agreement = view_agreement(model.graphs_, views.mask, model.labels_)
    >>> agreement.share.shape, bool(agreement.above_chance.min() > 0.8)
    ((3, 2), True)
    """
    present = np.asarray(mask, dtype=bool)
    if present.ndim != 2 or present.shape[1] != len(graphs):
        raise InputError(
            f"mask must have a row for each sample and a column for each of the {len(graphs)} graphs; "
            f"got shape {present.shape}."
        )
    groups = read_labels(labels, len(present))
    n_groups, n_views = int(groups.max()) + 1, len(graphs)
    members = [np.flatnonzero(column) for column in present.T]
    votes_by_view = [
        _neighbor_votes(graph, rows, groups, n_groups, k)
        for k, (graph, rows) in enumerate(zip(graphs, members, strict=True))
    ]
    share, chance = np.empty((2, n_groups, n_views))
    sizes = np.stack([np.bincount(groups[rows], minlength=n_groups) for rows, _ in votes_by_view])
    for k, (rows, votes) in enumerate(votes_by_view):
        own = votes.multiply(_indicator(groups[rows], n_groups)).sum(axis=1)
        share[:, k] = _mean_within(np.asarray(own).ravel(), groups[rows], n_groups)
        chance[:, k] = np.where(sizes[k] >= 2, (sizes[k] - 1) / max(len(rows) - 1, 1), np.nan)
    pair_share = np.empty((n_groups, n_views, n_views))
    for k in range(n_views):
        for other in range(k, n_views):
            agreed = _pair_share(votes_by_view[k], votes_by_view[other], groups, n_groups)
            pair_share[:, k, other] = pair_share[:, other, k] = agreed
    totals = sizes.sum(axis=1, keepdims=True)
    shares = np.where(totals > 0, sizes / np.maximum(totals, 1), np.nan)
    return Agreement(share, chance, pair_share, shares @ shares.T)


def _neighbor_votes(graph: Any, rows: Array, groups: Array, n_groups: int, view: int) -> tuple[Array, sparse.csr_array]:
    """Return the samples with neighbours in a view, and for each the share of its neighbours with every label."""
    shares, linked = _row_shares(_read_graph(graph, len(rows), f"The graph of view {view}"))
    votes = shares @ _indicator(groups[rows], n_groups)
    return rows[linked], sparse.csr_array(votes)[np.flatnonzero(linked)]


def _indicator(groups: Array, n_groups: int) -> sparse.csr_array:
    """Return a row for each sample with 1 in the column of its label."""
    ones = (np.ones(len(groups)), (np.arange(len(groups)), groups))
    return sparse.csr_array(ones, shape=(len(groups), n_groups))


def _pair_share(
    first: tuple[Array, sparse.csr_array], second: tuple[Array, sparse.csr_array], groups: Array, n_groups: int
) -> Array:
    both, at_first, at_second = np.intersect1d(first[0], second[0], assume_unique=True, return_indices=True)
    same = np.asarray(first[1][at_first].multiply(second[1][at_second]).sum(axis=1)).ravel()
    return _mean_within(same, groups[both], n_groups)


def _mean_within(values: Array, groups: Array, n_groups: int) -> Array:
    """Return the mean value in every group, NaN for groups with fewer than two values."""
    counts = np.bincount(groups, minlength=n_groups)
    totals = np.bincount(groups, weights=values, minlength=n_groups)
    return np.where(counts >= 2, totals / np.maximum(counts, 1), np.nan)


def _above(share: Array, chance: Array) -> Array:
    """Rescale shares such that chance is 0 and certainty 1; NaN where chance is 1."""
    room = 1 - chance
    return np.where(room > 0, (share - chance) / np.where(room > 0, room, 1.0), np.nan)


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


def _row_shares(graph: Any) -> tuple[Any, Array]:
    """Return a graph without loops and with rows that sum to 1, and which samples have neighbours."""
    others = _without_loops(graph)
    weights = weights_of(others)
    xp = array_namespace(weights)
    ones = xp.ones(graph.shape[0], dtype=weights.dtype, device=weights.device)
    totals = others @ ones
    return divide_weights(others, totals, ones), totals > 0


def _without_loops(graph: Any) -> Any:
    if not isinstance(graph, TensorGraph) and not graph.diagonal().any() and (graph.data > 0).all():
        return graph
    origins, ends, weights = coordinates(graph)
    kept = (origins != ends) & (weights > 0)
    return csr(origins[kept], ends[kept], weights[kept], graph.shape)


def _read_graph(graph: Any, n_rows: int, name: str) -> sparse.csr_array:
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
