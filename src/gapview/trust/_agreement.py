"""How well the groups hold in each view alone, and how far the views agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import InputError
from ..persist.registry import storable_record
from ..utils.types import Array
from ._groups import mean_within, read_graph, read_labels, row_shares


@storable_record
@dataclass(frozen=True)
class Agreement:
    """What :func:`view_agreement` has found; NaN wherever fewer than two samples of a group could be asked.

    Attributes
    ----------
    share : array of shape (n_clusters, n_views)
        Share of a sample's neighbours in the view that are of its own group, on average over the group.
    chance : array of shape (n_clusters, n_views)
        The share to expect if the groups had nothing to do with the view.
    pair_share : array of shape (n_clusters, n_views, n_views)
        How often a neighbour in the one view and a neighbour in the other are of the same group.
    pair_chance : array of shape (n_views, n_views)
        How often two samples drawn at random, one from each view, are of the same group.

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
        """How far each group holds in each view: 0 as by chance, 1 if all neighbours are of the own group."""
        return _above(self.share, self.chance)

    @property
    def pair_above_chance(self) -> Array:
        """How far pairs of views agree: 0 as by chance, 1 if neighbours in both are always of one group."""
        return _above(self.pair_share, np.broadcast_to(self.pair_chance, self.pair_share.shape))


def view_agreement(graphs: Sequence[Any], mask: Any, labels: Any) -> Agreement:
    """Ask the neighbours in each view, and in each pair of views, whether they confirm the groups.

    Of a sample's neighbours in view k, which share is of its own group? The mean over the samples of a group says how
    well the group holds in this view alone. By chance it would be the share of the group among the other samples that
    have the view.

    Two views agree about a sample if a neighbour in the one and a neighbour in the other, drawn at random, are of
    the same group, whichever it is. Only samples with neighbours in both views can be asked. A view compared with
    itself shows how clear its own neighbourhoods are, and so how much agreement with others there can be.

    The groups were made from these very views: high values say that the groups are to be seen in the view, not that
    they are real.

    Parameters
    ----------
    graphs : sequence of sparse matrices
        For every view the weights between the samples that have it, in the order of the samples, as ``graphs_`` of
        :class:`gapview.GRMF` or :func:`gapview.graph.knn_graph` give them. Loops do not count.
    mask : bool array of shape (n_samples, n_views)
        True where a sample has a view.
    labels : array of shape (n_samples,)
        Group of every sample, whole numbers from 0 on.

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
    asked = [
        _ask_neighbors(graph, rows, groups, n_groups, k)
        for k, (graph, rows) in enumerate(zip(graphs, members, strict=True))
    ]
    share, chance = np.empty((2, n_groups, n_views))
    sizes = np.stack([np.bincount(groups[rows], minlength=n_groups) for rows, _ in asked])
    for k, (rows, votes) in enumerate(asked):
        own = votes.multiply(_indicator(groups[rows], n_groups)).sum(axis=1)
        share[:, k] = mean_within(np.asarray(own).ravel(), groups[rows], n_groups, least=2)
        chance[:, k] = np.where(sizes[k] >= 2, (sizes[k] - 1) / max(len(rows) - 1, 1), np.nan)
    pair_share = np.empty((n_groups, n_views, n_views))
    for k in range(n_views):
        for other in range(k, n_views):
            agreed = _pair_share(asked[k], asked[other], groups, n_groups)
            pair_share[:, k, other] = pair_share[:, other, k] = agreed
    totals = sizes.sum(axis=1, keepdims=True)
    shares = np.where(totals > 0, sizes / np.maximum(totals, 1), np.nan)
    return Agreement(share, chance, pair_share, shares @ shares.T)


def _ask_neighbors(graph: Any, rows: Array, groups: Array, n_groups: int, view: int) -> tuple[Array, sparse.csr_array]:
    """Return the samples with neighbours in a view, and for each the share of its neighbours in every group."""
    shares, linked = row_shares(read_graph(graph, len(rows), f"The graph of view {view}"))
    votes = shares @ _indicator(groups[rows], n_groups)
    return rows[linked], sparse.csr_array(votes)[np.flatnonzero(linked)]


def _indicator(groups: Array, n_groups: int) -> sparse.csr_array:
    """Return a row for each sample with 1 in the column of its group."""
    ones = (np.ones(len(groups)), (np.arange(len(groups)), groups))
    return sparse.csr_array(ones, shape=(len(groups), n_groups))


def _pair_share(
    first: tuple[Array, sparse.csr_array], second: tuple[Array, sparse.csr_array], groups: Array, n_groups: int
) -> Array:
    both, at_first, at_second = np.intersect1d(first[0], second[0], assume_unique=True, return_indices=True)
    same = np.asarray(first[1][at_first].multiply(second[1][at_second]).sum(axis=1)).ravel()
    return mean_within(same, groups[both], n_groups, least=2)


def _above(share: Array, chance: Array) -> Array:
    """Put chance at 0 and certainty at 1; NaN where chance is certain."""
    room = 1 - chance
    return np.where(room > 0, (share - chance) / np.where(room > 0, room, 1.0), np.nan)
