"""``RobustMultiViewKMeans``: one partition for all views, with distances that are not squared."""

from __future__ import annotations

import numpy as np

from ..clusters import N_RESTARTS, group_order, renumbered
from ..compute.kmeans import kmeans_plus_plus
from ..estimators.predict import distance_shares
from ..scaling import scale_views
from ..utils.types import Array
from ..views import Views
from ..views.cells import unit_for_squares
from .base import Baseline, baseline
from .concat import mean_filled
from .partition import GappedRows, completed_rows, fit_partition


@baseline
class RobustMultiViewKMeans(Baseline):
    """Robust multi-view k-means: one partition G for all views, views and samples weighted by how well they fit.

    With fₖc the centre of group c in view k and Oₖ the samples that have view k::

        min  Σₖ αₖ^γ Hₖ,    Hₖ = mean over i ∈ Oₖ of ‖xₖᵢ − fₖ,g(i)‖         Σₖ αₖ = 1, αₖ ≥ 0

    The distances are not squared, so that a sample far from its centre has less influence on it than in k-means. A
    missing row has weight 0: it is in no mean. Each step lowers the objective or leaves it as it is:

    * centres: the mean of the rows of a group, weighted by 1 / (2 × their distance from the previous centre);
    * views: αₖ ∝ Hₖ^(1/(1−γ));
    * groups: the one with the smallest sum of αₖ^γ ‖xₖᵢ − fₖc‖ / |Oₖ| over the views of the sample.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups.
    weight_exponent : float, default=5.0
        γ, above 1: near 1 the view that fits best decides alone, with large values all views have equal weights.
    kind : str, None, or list or dict of these, default=None
        Kind of the values, such as ``"counts"``, as in :class:`gapview.GRMF`.
    n_top_features : int, None, or list or dict of these, default=None
        Features of a view that are kept, as in :class:`gapview.GRMF`.
    scale : str or None, default="unit"
        As in :class:`gapview.GRMF`.
    n_init : int, default=20
        Number of starts; the solution with the smallest objective is kept. Centres start at samples drawn by k-means++
        from the views side by side, missing rows filled with the mean of the view. In a view that such a sample lacks,
        the centre starts at the row of the nearest sample that has it.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-6
        Stop when the objective changes by less than this share of its value.
    partial_rows : {"raise", "fill", "drop"}, default="raise"
        What to do with rows that have some but not all values, see :class:`gapview.Views`.
    random_state : int, RandomState or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Group of every sample. Group 0 is the largest; equal sizes are ordered by the smallest sample id.
    embedding_ : array of shape (n_samples, n_clusters)
        Distance of every sample to every group: the weighted mean of ‖xₖᵢ − fₖc‖ over its views.
    view_centers_ : list of arrays of shape (n_clusters, n_features)
        fₖc, in the scaled features. A group without a sample that has the view keeps the centre it started with.
    view_weights_ : array of shape (n_views,)
        Weight α of every view.
    objective_ : array of shape (n_iter_,)
        Value of the problem above after every iteration; it never rises.
    n_iter_ : int
        Iterations done.
    sample_ids_ : array of shape (n_samples,)
        Ids of the samples.

    Notes
    -----
    The paper assigns samples by squared distances with the sample weights of the previous iteration, an upper bound of
    the objective. Here the objective itself is minimised, so that ``predict`` follows the rule of the fit: it needs no
    weights of samples, which new samples do not have.

    Hₖ is a sum over the samples in the paper. On complete data the mean gives the same result. With gaps, a view that
    few samples have would get a large weight from its small sum. Hₖ also has a constant, 0.01 of the mean distance of
    the rows from the mean of the view: without it, a view whose rows all lie at their centres would get all the weight.

    References
    ----------
    X. Cai, F. Nie, H. Huang: Multi-View K-Means Clustering on Big Data. IJCAI, 2013.

    Examples
    --------
    >>> from gapview.baselines import RobustMultiViewKMeans
    >>> from gapview.datasets import make_views
    >>> from gapview.metrics import clustering_accuracy
    >>> data = make_views(n_samples=200, n_clusters=3, missing_rate=0.3, random_state=0)
    >>> model = RobustMultiViewKMeans(n_clusters=3, random_state=0).fit(data.views)
    >>> clustering_accuracy(data.target, model.labels_) > 0.9
    True
    >>> bool((model.predict(data.views) == model.labels_).all())
    True
    """

    weight_exponent: float = 5.0
    n_init: int = N_RESTARTS
    max_iter: int = 100
    tol: float = 1e-6

    _fitted_attributes = ("view_centers_", "view_weights_", "objective_", "n_iter_")

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        scaled, _ = scale_views(views, self.scale)
        rows = GappedRows.of(scaled, views)
        filled = np.hstack(mean_filled(scaled, views))
        filled = np.ldexp(filled, -unit_for_squares(filled))
        seeds = kmeans_plus_plus(filled, self.n_clusters, self.n_init, random_state)
        centers = completed_rows(scaled, views, seeds.ravel())
        starts = zip(*(np.split(own, self.n_init) for own in centers), strict=True)
        fits = (fit_partition(rows, start, self.weight_exponent, self.max_iter, self.tol) for start in starts)
        best = min(fits, key=lambda fit: fit.objective[-1])
        self.view_centers_, self.view_weights_, self.labels_ = best.centers, best.weights, best.labels
        self.objective_, self.n_iter_ = np.array(best.objective), len(best.objective)
        self.embedding_ = self._distances(rows, views)

    def _distances(self, rows: GappedRows, trained: Views) -> Array:
        """Return the weighted mean distance of every sample to the centres of every group, over its views."""
        factors = self.view_weights_**self.weight_exponent / trained.n_present
        return rows.costs(self.view_centers_, factors).astype(self.view_centers_[0].dtype)

    def _number_groups(self, ids: Array) -> None:
        order = group_order(self.labels_, ids, self.n_clusters)
        self.labels_ = renumbered(self.labels_, order)
        self.embedding_ = self.embedding_[:, order]
        self.view_centers_ = [centers[order] for centers in self.view_centers_]

    def _predict_views(self, views: Views) -> Array:
        return np.asarray(self._new_distances(views).argmin(axis=1))

    def _predict_shares(self, views: Views) -> Array:
        return distance_shares(self._new_distances(views), self.embedding_, self.labels_)

    def _new_distances(self, views: Views) -> Array:
        return self._distances(GappedRows.of(self.scaled(views), views), self.views_)
