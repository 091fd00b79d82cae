"""Contributions of the views: how far each view of a sample supports its group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError
from ..persist.registry import storable_record
from ..utils.messages import counted
from ..utils.shown import Shown, Table
from ..utils.types import Array
from .agreement import above_level, indicator, neighbor_votes
from .confidence import read_labels

_COLUMNS = ("view", "samples", "mean support", "mean share")


@storable_record
@dataclass(frozen=True, repr=False)
class Contributions(Shown):
    """The result of :func:`view_contributions`.

    Attributes
    ----------
    support : array of shape (n_samples, n_views)
        Share of the neighbours in the view that are in the group of the sample, above chance: 0 by chance, 1 if all
        are. NaN for views that a sample lacks, or in which it has no neighbours.
    share : array of shape (n_samples, n_views)
        Contribution of each view: rows sum to 1, without the views that a sample lacks, which are NaN. All NaN, if no
        view supports the group of the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.trust import Contributions
    >>> Contributions(np.array([[1.0, 0.25]]), np.array([[0.8, 0.2]])).share
    array([[0.8, 0.2]])
    """

    support: Array
    share: Array

    def of_groups(self, labels: Any) -> Array:
        """Return the mean contribution of each view in each group, over its samples that have several views.

        A view that a sample lacks contributes 0.

        Parameters
        ----------
        labels : array of shape (n_samples,)
            Label of every sample, whole numbers from 0 on.

        Returns
        -------
        array of shape (n_groups, n_views)
            Rows sum to 1; NaN for a group without such samples.

        Examples
        --------
        >>> import numpy as np
        >>> from gapview.trust import Contributions
        >>> Contributions(np.ones((2, 2)), np.array([[0.75, 0.25], [0.25, 0.75]])).of_groups([0, 0])
        array([[0.5, 0.5]])
        """
        groups = read_labels(labels, len(self.share))
        several = np.flatnonzero((~np.isnan(self.share)).sum(axis=1) > 1)
        n_groups = int(groups.max()) + 1
        totals = indicator(groups[several], n_groups).T @ np.nan_to_num(self.share[several])
        counts = np.bincount(groups[several], minlength=n_groups)[:, None]
        return np.where(counts > 0, totals / np.maximum(counts, 1), np.nan)

    def _shown_as(self) -> Table:
        """Return the mean support and share of every view."""
        known = ~np.isnan(self.share)
        several = known.sum(axis=1) > 1
        rows = []
        for k, support in enumerate(self.support.T):
            own = support[~np.isnan(support)]
            shares = np.nan_to_num(self.share[several, k])
            means = [float(values.mean()) if len(values) else float("nan") for values in (own, shares)]
            rows.append((k, len(own), *means))
        n_samples = counted(len(self.share), "sample")
        notes = (
            "Support: share of the neighbours in the view that are in the group of the sample, 0 by chance. Share: of "
            f"the view in the support of the {int(several.sum()):,} samples that have several views.",
        )
        return Table(f"Contributions of views to the groups of {n_samples}", _COLUMNS, rows, notes)


def view_contributions(graphs: Sequence[Any], mask: Any, labels: Any, weights: Any = None) -> Contributions:
    """Compute for each sample how much each of its views contributes to its group.

    With sₖ the share of the neighbours of a sample in view k that are in its group g, and cₖ = (nₖ(g) − 1) / (nₖ − 1)
    the same share by chance (nₖ samples have the view, nₖ(g) of them are in the group), the support is

        aₖ = (sₖ − cₖ) / (1 − cₖ),

    and the contribution of view k is wₖ max(aₖ, 0) / Σₗ wₗ max(aₗ, 0), over the views l that the sample has.

    The mean support over the samples of a group is its agreement, see :func:`view_agreement`. Labels are computed from
    the same views: a view of noise has a support near 0, not exactly 0.

    Parameters
    ----------
    graphs : sequence of sparse matrices
        For every view the weights between the samples that have it, as in :func:`view_agreement`.
    mask : bool array of shape (n_samples, n_views)
        True where a sample has a view.
    labels : array of shape (n_samples,)
        Label of every sample, whole numbers from 0 on.
    weights : array of shape (n_views,), optional
        Weights wₖ of the views; equal by default.

    Returns
    -------
    Contributions

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.graph import knn_graph
    >>> from gapview.trust import view_contributions
    >>> informative = knn_graph(np.array([[0.0], [0.1], [5.0], [5.1]]), 1)
    >>> other = knn_graph(np.array([[0.0], [5.0], [0.1], [5.1]]), 1)
    >>> view_contributions([informative, other], np.ones((4, 2)), [0, 0, 1, 1]).share[0]
    array([1., 0.])
    """
    present = np.asarray(mask, dtype=bool)
    if present.ndim != 2 or present.shape[1] != len(graphs):
        raise InputError(
            f"mask must have a row for each sample and a column for each of the {len(graphs)} graphs; "
            f"got shape {present.shape}."
        )
    own_weights = np.ones(len(graphs)) if weights is None else np.asarray(weights, dtype=np.float64)
    if own_weights.shape != (len(graphs),) or not (own_weights >= 0).all():
        raise InputError(f"weights must be {len(graphs)} numbers of at least 0, one for each view; got {weights}.")
    groups = read_labels(labels, len(present))
    n_groups = int(groups.max()) + 1
    support = np.full(present.shape, np.nan)
    for k, graph in enumerate(graphs):
        having = np.flatnonzero(present[:, k])
        rows, votes = neighbor_votes(graph, having, groups, n_groups, k)
        own = np.asarray(votes.multiply(indicator(groups[rows], n_groups)).sum(axis=1)).ravel()
        sizes = np.bincount(groups[having], minlength=n_groups)
        above = above_level(own, (sizes[groups[rows]] - 1) / max(len(having) - 1, 1))
        support[rows, k] = np.minimum(above, 1.0)  # shares may be rounded up
    positive = np.maximum(support, 0) * own_weights
    total = np.nansum(positive, axis=1, keepdims=True)
    return Contributions(support, np.where(total > 0, positive / np.where(total > 0, total, 1.0), np.nan))
