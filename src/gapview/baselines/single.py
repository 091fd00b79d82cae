"""``BestSingleView``: k-means on every view separately."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..clusters import N_RESTARTS, cluster_rows, group_order, renumbered
from ..graph.knn import mean_modularity, resolve_n_neighbors
from ..metrics import clustering_scores
from ..scaling import scale_views
from ..utils.types import Array
from ..views import Views
from .base import Baseline, baseline
from .concat import mean_filled


@baseline
class BestSingleView(Baseline):
    """k-means on every view separately, missing rows filled with the mean of the view; then one view is chosen.

    The samples that lack a view have identical rows in it and end up in one group. The filled views are dense, also if
    the data are sparse.

    The view is chosen without labels: the score of a labelling is its modularity on the neighbour graphs of *all*
    views, averaged over the views, and the highest score is taken. A labelling that puts all samples that lack its view
    into one group scores low on the graphs of the other views. (The inertia of k-means cannot be compared between
    views: it is lowest in views of few features.) The time for these graphs grows with the square of the number of
    samples. Published tables choose the view by the true labels instead: :func:`best_view_scores`.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups.
    n_neighbors : int or "auto", default="auto"
        Neighbours of a sample in the graphs on which modularity is computed, as in :class:`gapview.GRMF`.
    kind : str, None, or list or dict of these, default=None
        Kind of the values, such as ``"counts"``, as in :class:`gapview.GRMF`.
    n_top_features : int, None, or list or dict of these, default=None
        Features of a view that are kept, as in :class:`gapview.GRMF`.
    scale : str or None, default="unit"
        As in :class:`gapview.GRMF`; views are filled after they are scaled.
    n_init : int, default=20
        Restarts of k-means, of which the best is kept. The tables of the paper are matched by 20, not by 1.
    partial_rows : {"raise", "fill", "drop"}, default="raise"
        What to do with rows that have some but not all values, see :class:`gapview.Views`.
    random_state : int, RandomState or None, default=None
        Seed of k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Group of every sample, by the chosen view. Group 0 is the largest; equal sizes are ordered by the smallest
        sample id. The labels of every view are numbered in the same way.
    embedding_ : array of shape (n_samples, n_features)
        The chosen view, filled.
    best_view_ : int
        Position of the chosen view.
    view_labels_ : list of arrays of shape (n_samples,)
        Labelling by every view.
    view_modularities_ : array of shape (n_views,)
        Mean modularity of every view's labelling on the graphs of all views.
    sample_ids_ : array of shape (n_samples,)
        Ids of the samples.

    References
    ----------
    J. Wen, Z. Zhang, Y. Xu, Z. Zhong: Incomplete Multi-view Clustering via Graph Regularized Matrix Factorization.
    ECCV Workshops, 2018 (one of its baselines).
    M. E. J. Newman, M. Girvan: Finding and evaluating community structure in networks. Physical Review E 69, 2004.

    Examples
    --------
    >>> from gapview.baselines import BestSingleView, best_view_scores
    >>> from gapview.datasets import make_views
    >>> data = make_views(n_samples=200, n_clusters=3, missing_rate=0.1, random_state=0)
    >>> model = BestSingleView(n_clusters=3, random_state=0).fit(data.views)
    >>> len(model.view_labels_), model.embedding_.shape[0]
    (2, 200)
    >>> best_view_scores(model, data.target)["accuracy"] > 0.8
    True
    """

    n_neighbors: int | str = "auto"
    n_init: int = N_RESTARTS

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        scaled, _ = scale_views(views, self.scale)
        counts = resolve_n_neighbors(self.n_neighbors, views, self.n_clusters)
        filled = mean_filled(scaled, views)
        kmeans = partial(cluster_rows, normalize=False, n_init=self.n_init)
        self.view_labels_ = [kmeans(points, self.n_clusters, random_state).labels for points in filled]
        self.view_modularities_ = mean_modularity(self.view_labels_, scaled, views, counts)
        self.best_view_ = int(np.argmax(self.view_modularities_))
        self.labels_, self.embedding_ = self.view_labels_[self.best_view_], filled[self.best_view_]

    def _number_groups(self, ids: Array) -> None:
        self.view_labels_ = [
            renumbered(labels, group_order(labels, ids, self.n_clusters)) for labels in self.view_labels_
        ]
        self.labels_ = self.view_labels_[self.best_view_]


def best_view_scores(model: BestSingleView, y_true: Any) -> dict[str, float]:
    """Score the view that agrees best with the known groups, as the published tables do.

    This uses the labels to choose the view, which is not possible where labels are unknown. Use it to compare with
    published figures only; the labelling found without labels is ``labels_``.

    Parameters
    ----------
    model : BestSingleView
        Fitted.
    y_true : array-like of shape (n_samples,)
        Known groups.

    Returns
    -------
    dict
        As from :func:`gapview.metrics.clustering_scores`, all for the view with the highest accuracy.

    Examples
    --------
    >>> from gapview.baselines import BestSingleView, best_view_scores
    >>> from gapview.datasets import make_views
    >>> data = make_views(n_samples=60, n_clusters=2, random_state=0)
    >>> best_view_scores(BestSingleView(2, random_state=0).fit(data.views), data.target)["purity"]
    1.0
    """
    model.check_fitted()
    return max((clustering_scores(y_true, labels) for labels in model.view_labels_), key=lambda s: s["accuracy"])
