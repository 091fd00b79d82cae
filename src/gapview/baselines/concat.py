"""``Concat``: k-means on all views side by side, and the filling of missing rows with the mean of the view."""

from __future__ import annotations

import numpy as np

from ..clusters import N_RESTARTS, cluster_rows
from ..scaling import scale_views
from ..utils.types import Array, Matrix
from ..views import Views
from ..views.cells import dense
from .base import Baseline, baseline


@baseline
class Concat(Baseline):
    """k-means on the views side by side, each missing view filled with the mean of that view.

    The filled rows of a view are identical. With many missing views, clusters therefore form around the patterns of
    missing views. The filled views are dense, also if the data are sparse.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups.
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
        Group of every sample. Group 0 is the largest; equal sizes are ordered by the smallest sample id.
    embedding_ : array of shape (n_samples, sum of n_features)
        The filled views side by side, the input of k-means.
    cluster_centers_ : array of shape (n_clusters, sum of n_features)
        Centres of the groups.
    sample_ids_ : array of shape (n_samples,)
        Ids of the samples.

    References
    ----------
    J. Wen, Z. Zhang, Y. Xu, Z. Zhong: Incomplete Multi-view Clustering via Graph Regularized Matrix Factorization.
    ECCV Workshops, 2018 (one of its baselines).

    Examples
    --------
    >>> from gapview.baselines import Concat
    >>> from gapview.datasets import make_views
    >>> from gapview.metrics import clustering_accuracy
    >>> data = make_views(n_samples=200, n_clusters=3, missing_rate=0.1, random_state=0)
    >>> model = Concat(n_clusters=3, random_state=0).fit(data.views)
    >>> model.embedding_.shape
    (200, 50)
    >>> clustering_accuracy(data.target, model.labels_) > 0.8
    True
    """

    n_init: int = N_RESTARTS

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        scaled, _ = scale_views(views, self.scale)
        self.embedding_ = np.hstack(mean_filled(scaled, views))
        clustering = cluster_rows(self.embedding_, self.n_clusters, random_state, normalize=False, n_init=self.n_init)
        self.labels_, self.cluster_centers_ = clustering.labels, clustering.centers


def mean_filled(scaled: list[Matrix], views: Views) -> list[Array]:
    """Return the views with every missing row replaced by the mean of the present rows.

    The mean is not scaled again, so filled rows are shorter than rows of unit length. The result is dense, since the
    mean of sparse rows is not sparse.

    Parameters
    ----------
    scaled : list of arrays or csr_arrays of shape (n_present, n_features)
        The present rows of every view.
    views : Views
        The samples that the rows belong to.

    Returns
    -------
    list of arrays of shape (n_samples, n_features)
        In sample order, in the type of the rows.
    """
    filled = []
    for k, matrix in enumerate(scaled):
        # float32 is not precise enough for the sum of many float32 rows
        mean = np.asarray(matrix.mean(axis=0, dtype=np.float64)).ravel()
        whole = np.full((views.n_samples, matrix.shape[1]), mean, dtype=matrix.dtype)
        whole[views.rows(k)] = dense(matrix)
        filled.append(whole)
    return filled
