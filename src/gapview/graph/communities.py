"""Groups of a graph by the Leiden algorithm, in a given number."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..errors import extra
from ..utils.types import Array

KMEANS, LEIDEN = "kmeans", "leiden"  # how samples are assigned to groups
_COARSEST, _FINEST = -6.0, 10.0  # logarithms of resolutions, to the base 2
_N_HALVINGS = 5


def leiden_groups(graph: Any, n_groups: int, seed: int = 0) -> Array:
    """Return groups of a graph by the Leiden algorithm.

    The resolution is the smallest that gives at least ``n_groups`` groups, up to about 2 %. If it gives more, the two
    groups whose union has the highest modularity at that resolution are merged, until the number is right. Samples
    without neighbours are in the largest group.

    Parameters
    ----------
    graph : csr_array of shape (n_samples, n_samples)
        Symmetric, non-negative weights.
    n_groups : int
        Number of groups; there are fewer if fewer samples have neighbours.
    seed : int, default=0
        Seed of the algorithm.

    References
    ----------
    V. Traag, L. Waltman, N. J. van Eck: From Louvain to Leiden: guaranteeing well-connected communities. Scientific
    Reports 9, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from gapview.graph.communities import leiden_groups
    >>> pairs = sparse.csr_array(np.kron(np.eye(3), [[0, 1], [1, 0]]))
    >>> leiden_groups(pairs, 3), leiden_groups(pairs, 2)
    (array([0, 0, 1, 1, 2, 2]), array([0, 0, 0, 0, 1, 1]))
    """
    algorithm = extra("sknetwork.clustering", "leiden", "assign='leiden'").Leiden
    linked = np.flatnonzero(np.asarray(graph.sum(axis=1)).ravel() > 0)
    labels = np.zeros(graph.shape[0], dtype=np.intp)
    if n_groups == 1 or not len(linked):
        return labels
    part = sparse.csr_matrix(graph[linked][:, linked], dtype=np.float64)

    def find(exponent: float) -> Array:
        return np.asarray(algorithm(resolution=2.0**exponent, random_state=seed % 2**32).fit_predict(part))

    low = high = 0.0
    groups = best = find(high)
    while len(np.unique(groups)) >= n_groups and low > _COARSEST:
        best, high, low = groups, low, low - 1
        groups = find(low)
    while len(np.unique(best)) < n_groups and high < _FINEST:
        low, high = high, high + 1
        best = find(high)
    for _ in range(_N_HALVINGS):
        middle = (low + high) / 2
        groups = find(middle)
        if len(np.unique(groups)) >= n_groups:
            best, high = groups, middle
        else:
            low = middle
    labels[linked] = _merged(part, best, n_groups, 2.0**high)
    return labels


def leiden_parts(graph: Any, parts: Array, n_groups: int, seed: int = 0) -> Array:
    """Return the groups of every part of the samples, as :func:`leiden_groups` finds them, those of part 0 first."""
    labels, begin = np.zeros(len(parts), dtype=np.int32), 0
    for part in np.unique(parts):
        rows = np.flatnonzero(parts == part)
        labels[rows] = begin + leiden_groups(graph[rows][:, rows], min(n_groups, len(rows)), seed)
        begin = int(labels[rows].max()) + 1
    return labels


def _merged(graph: Any, groups: Array, n_groups: int, resolution: float) -> Array:
    """Merge groups until so many are left, the largest first; the pair that changes modularity most favourably."""
    members = sparse.csr_matrix((np.ones(len(groups)), (np.arange(len(groups)), groups)))
    weights = (members.T @ graph @ members).toarray() / graph.sum()
    own = np.arange(len(weights))  # the group into which each was merged
    while len(np.unique(own)) > n_groups:
        shares = weights.sum(axis=1)
        gains = weights - resolution * np.outer(shares, shares)
        is_gone = own != np.arange(len(own))
        gains[is_gone] = gains[:, is_gone] = -np.inf
        np.fill_diagonal(gains, -np.inf)
        kept, lost = np.unravel_index(gains.argmax(), gains.shape)
        weights[kept] += weights[lost]
        weights[:, kept] += weights[:, lost]
        weights[lost] = weights[:, lost] = 0.0
        own[own == lost] = kept
    _, labels, sizes = np.unique(own[groups], return_inverse=True, return_counts=True)
    place = np.empty(len(sizes), dtype=np.intp)
    place[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return place[labels]
