"""``MeanFilledSpectral``: spectral clustering of mean-filled views, in which filled samples count less."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..graph.knn import neighbor_rule
from ..scaling import scale_views, unit_rows
from ..utils.messages import check_real
from ..utils.types import Array
from ..views import Views
from .base import baseline
from .concat import mean_filled
from .spectral import CoupledBaseline, ViewSpectrum, affinity_matrix, normalized


@baseline
class MeanFilledSpectral(CoupledBaseline):
    """Spectral clustering of views filled with their means, through a representation that all views share.

    A reconstruction of the two-step approach from its description in the IMC_GRMF paper. First, every missing row of a
    view is replaced by the mean of the view. Then the views learn a common representation U* from their spectra::

        max  Σₖ tr(UₖᵀSₖUₖ)  +  λ Σₖ ‖UₖᵀΩₖU*‖²         UₖᵀUₖ = I, U*ᵀU* = I

    Ωₖ holds the weights of the samples in view k: 1 if the sample has the view, less if its row is filled. They also
    multiply the affinities, Sₖ = D^−½ΩₖAₖΩₖD^−½, since the filled rows coincide and would form a group of their own.
    Uₖ becomes the leading eigenvectors of Sₖ + λ ΩₖU*U*ᵀΩₖ, and U* the leading left singular vectors of all ΩₖUₖ side
    by side, so that the objective never falls. k-means on the rows of U* gives the groups.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups, and of eigenvectors.
    filled_weight : float or "auto", default="auto"
        Weight of filled rows, from 0 (they do not count) to 1 (as much as others). ``"auto"`` is the share of the
        samples that have the view.
    consensus_weight : float, default=0.01
        λ: weight of the agreement of every view with the common representation.
    affinity : {"rbf", "nearest_neighbors"}, default="rbf"
        A Gaussian kernel whose width is the median distance between present rows, with memory in the square of the
        number of samples; or a sparse graph of nearest neighbours.
    n_neighbors : int or "auto", default="auto"
        Neighbours of a sample in that graph, as in :class:`gapview.GRMF`.
    kind : str, None, or list or dict of these, default=None
        Kind of the values, such as ``"counts"``, as in :class:`gapview.GRMF`.
    n_top_features : int, None, or list or dict of these, default=None
        Features of a view that are kept, as in :class:`gapview.GRMF`.
    scale : str or None, default="unit"
        As in :class:`gapview.GRMF`; views are filled after they are scaled.
    max_iter : int, default=30
        Maximum number of iterations. Reaching it gives no warning: the groups hardly change after a few iterations.
    tol : float, default=1e-6
        Stop when the objective changes by less than this share of its value.
    max_samples : int or None, default=5000
        Raise an error for more samples than this if the kernel is dense; ``None`` for no limit.
    partial_rows : {"raise", "fill", "drop"}, default="raise"
        What to do with rows that have some but not all values, see :class:`gapview.Views`.
    random_state : int, RandomState or None, default=None
        Seed of the solver for eigenvectors and of k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Group of every sample. Group 0 is the largest; equal sizes are ordered by the smallest sample id.
    embedding_ : array of shape (n_samples, n_clusters)
        The rows of U*, scaled to unit length, the input of k-means.
    cluster_centers_ : array of shape (n_clusters, n_clusters)
        Centres of the groups.
    objective_ : array of shape (n_iter_,)
        Value of the problem above after every iteration; it never falls.
    n_iter_ : int
        Iterations done.
    sample_ids_ : array of shape (n_samples,)
        Ids of the samples.

    References
    ----------
    H. Gao, Y. Peng, S. Jian: Incomplete Multi-view Clustering. Intelligent Information Processing, 2016.

    Examples
    --------
    >>> from gapview.baselines import MeanFilledSpectral
    >>> from gapview.datasets import make_views
    >>> from gapview.metrics import clustering_accuracy
    >>> data = make_views(n_samples=200, n_clusters=3, missing_rate=0.3, random_state=0)
    >>> model = MeanFilledSpectral(n_clusters=3, random_state=0).fit(data.views)
    >>> model.embedding_.shape
    (200, 3)
    >>> clustering_accuracy(data.target, model.labels_) > 0.8
    True
    >>> model.predict({"view_1": data.views.matrices[1][:4]}).shape
    (4,)
    """

    filled_weight: float | str = "auto"
    consensus_weight: float = 0.01
    affinity: str = "rbf"

    _checks = (("filled_weight", partial(check_real, low=0, high=1, also=["auto"])),)

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        self._check_room(views)
        scaled, _ = scale_views(views, self.scale)
        everyone = np.arange(views.n_samples)
        automatic = isinstance(self.n_neighbors, str)
        count = neighbor_rule(views.n_samples, self.n_clusters) if automatic else int(self.n_neighbors)
        spectra = []
        for k, matrix in enumerate(mean_filled(scaled, views)):
            weights = self._weights(views.mask[:, k])
            affinity = affinity_matrix(matrix, self.affinity, count, views.mask[:, k])
            spectra.append(ViewSpectrum(normalized(affinity, weights), everyone, weights))
        solution = self._solve(spectra, random_state, has_centroid=True)
        self._cluster(unit_rows(solution.common), random_state)

    def _weights(self, present: Array) -> Array:
        filled = present.mean() if self.filled_weight == "auto" else float(self.filled_weight)
        return np.where(present, 1.0, filled)
