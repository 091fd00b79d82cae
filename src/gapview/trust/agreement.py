"""Agreement of the views: whether neighbours have the same label, and whether views have the same neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import InputError
from ..graph.knn import knn_graph
from ..persist.registry import storable_record
from ..scaling import fit_scaling, suitable_scale
from ..utils.shown import Shown, Table
from ..utils.types import Array, Matrix
from ..views import Views
from .confidence import read_graph, read_labels, row_shares

N_PERMUTATIONS = 199
_N_NEIGHBORS = 10  # within views whose neighbours are compared
_LEAST_COMMON = 20  # samples that two views must share to be compared


@storable_record
@dataclass(frozen=True, repr=False)
class Agreement(Shown):
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
        return above_level(self.share, self.chance)

    @property
    def pair_above_chance(self) -> Array:
        """Agreement of pairs of views, rescaled: 0 by chance, 1 if neighbours in both always have the same label."""
        return above_level(self.pair_share, np.broadcast_to(self.pair_chance, self.pair_share.shape))

    def _shown_as(self) -> Table:
        """Return the agreement of every cluster with every view."""
        rows = [(group, *values) for group, values in enumerate(self.above_chance.tolist())]
        names = ("group", *(f"view {k}" for k in range(self.share.shape[1])))
        note = "0: neighbours in the view have the same group as often as by chance; 1: all of them."
        return Table("Agreement of groups with neighbours within the views", names, rows, [note])


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
        neighbor_votes(graph, rows, groups, n_groups, k)
        for k, (graph, rows) in enumerate(zip(graphs, members, strict=True))
    ]
    share, chance = np.empty((2, n_groups, n_views))
    sizes = np.stack([np.bincount(groups[rows], minlength=n_groups) for rows, _ in votes_by_view])
    for k, (rows, votes) in enumerate(votes_by_view):
        own = votes.multiply(indicator(groups[rows], n_groups)).sum(axis=1)
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


def neighbor_votes(graph: Any, rows: Array, groups: Array, n_groups: int, view: int) -> tuple[Array, sparse.csr_array]:
    """Return the samples with neighbours in a view, and for each the share of its neighbours with every label."""
    shares, linked = row_shares(read_graph(graph, len(rows), f"The graph of view {view}"))
    votes = shares @ indicator(groups[rows], n_groups)
    return rows[linked], sparse.csr_array(votes)[np.flatnonzero(linked)]


def indicator(groups: Array, n_groups: int) -> sparse.csr_array:
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


def above_level(share: Array, chance: Array) -> Array:
    """Rescale shares such that chance is 0 and certainty 1; NaN where chance is 1."""
    room = 1 - chance
    return np.where(room > 0, (share - chance) / np.where(room > 0, room, 1.0), np.nan)


# -- neighbours of views -----------------------------------------------------------------------------------------------


def view_agreement_test(views: Views, random_state: np.random.RandomState) -> tuple[float, float]:
    """Test whether views agree on which samples are neighbours, by permutations of the samples of one view.

    Parameters
    ----------
    views : Views
        The data, dense.
    random_state : RandomState
        Random numbers.

    Returns
    -------
    agreement : float
        Share of the edges of the neighbour graph of a view that are also edges in another view, over the common samples
        of all pairs of views; NaN if no two views have 20 samples in common.
    p_value : float
        (1 + number of permutations with as many common edges) / (1 + 199).

    Examples
    --------
    >>> import numpy as np
    >>> from gapview import Views
    >>> from gapview.trust.agreement import view_agreement_test
    >>> state = np.random.RandomState(0)
    >>> values = state.normal(size=(60, 3))
    >>> view_agreement_test(Views([values, values + 0.1 * state.normal(size=(60, 3))]), state)[1]
    0.005
    """
    pairs = []
    for a, b in combinations(range(views.n_views), 2):
        common = views.mask[:, a] & views.mask[:, b]
        if common.sum() >= _LEAST_COMMON:
            pairs.append([_neighbors(views.matrices[k][common[views.rows(k)]]) for k in (a, b)])
    if not pairs:
        return float("nan"), float("nan")
    n_edges = sum(first.nnz for first, _ in pairs)
    observed = sum(_n_common(first, second) for first, second in pairs)
    n_as_large = 0
    for _ in range(N_PERMUTATIONS):
        drawn = 0
        for first, second in pairs:
            order = random_state.permutation(second.shape[0])
            drawn += _n_common(first, second[order][:, order])
        n_as_large += drawn >= observed
    return observed / max(n_edges, 1), (1 + n_as_large) / (1 + N_PERMUTATIONS)


def _neighbors(rows: Matrix) -> sparse.csr_array:
    """Return the neighbour graph of rows of a view, scaled as suits their values."""
    scaled = fit_scaling("", rows, suitable_scale(rows)).apply(rows)
    return sparse.csr_array(knn_graph(scaled, _N_NEIGHBORS))


def _n_common(first: sparse.csr_array, second: sparse.csr_array) -> int:
    return int(first.multiply(second).count_nonzero())
