"""``CoRegularizedSpectral``: spectral clustering of every view, with eigenvectors regularised towards each other."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..graph.knn import check_edges, resolve_n_neighbors
from ..scaling import scale_views, unit_rows
from ..utils.messages import check_choice
from ..views import Views
from .base import baseline
from .spectral import CoupledBaseline, ViewSpectrum, affinity_matrix, normalized


@baseline
class CoRegularizedSpectral(CoupledBaseline):
    """Co-regularised multi-view spectral clustering.

    With Sₖ = D^−½AD^−½ the normalised affinities of view k and λ the weight of the consensus, the method maximises over
    matrices Uₖ with orthonormal columns::

        pairwise   Σₖ tr(UₖᵀSₖUₖ)  +  λ Σₖ<ₗ tr(UₖUₖᵀUₗUₗᵀ)
        centroid   Σₖ tr(UₖᵀSₖUₖ)  +  λ Σₖ tr(UₖUₖᵀU*U*ᵀ)

    One view at a time, Uₖ becomes the leading eigenvectors of Sₖ + λ Σₗ UₗUₗᵀ (pairwise) or of Sₖ + λ U*U*ᵀ (centroid),
    and U* those of Σₖ UₖUₖᵀ. The objective never falls.

    A sample that lacks view k is an isolated vertex of its graph: its row of Sₖ is 0, and it has a row in Uₖ through
    the coupling with the views that it has. On complete data this is the published method.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups, and of eigenvectors.
    form : {"pairwise", "centroid"}, default="pairwise"
        Couple every pair of views, or every view with common vectors U*.
    consensus_weight : float, default=0.01
        λ: weight of the agreement between views, between 0.01 and 0.05 in the paper. With 0, samples have no place in
        the views that they lack.
    affinity : {"nearest_neighbors", "rbf"}, default="nearest_neighbors"
        A sparse graph of nearest neighbours; or, as in the paper, a Gaussian kernel whose width is the median distance
        between rows, with memory in the square of the number of samples. The eigenvalues of such a kernel are small:
        with ``consensus_weight`` above 0.01, agreement outweighs the views.
    n_neighbors : int or "auto", default="auto"
        Neighbours of a sample in the graph, as in :class:`gapview.GRMF`.
    kind : str, None, or list or dict of these, default=None
        Kind of the values, such as ``"counts"``, as in :class:`gapview.GRMF`.
    n_top_features : int, None, or list or dict of these, default=None
        Features of a view that are kept, as in :class:`gapview.GRMF`.
    scale : str or None, default="unit"
        As in :class:`gapview.GRMF`.
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
    embedding_ : array of shape (n_samples, n_components)
        The input of k-means: the rows of all Uₖ, each scaled to unit length, side by side (pairwise), or the rows of
        U*, scaled to unit length (centroid).
    cluster_centers_ : array of shape (n_clusters, n_components)
        Centres of the groups.
    objective_ : array of shape (n_iter_,)
        Value of the problem above after every iteration; it never falls.
    n_iter_ : int
        Iterations done.
    sample_ids_ : array of shape (n_samples,)
        Ids of the samples.

    Notes
    -----
    The paper clusters the vectors of the most informative view, or those of all views side by side. Without knowing
    which view is the most informative, the vectors of all views are used here.

    References
    ----------
    A. Kumar, P. Rai, H. Daumé III: Co-regularized Multi-view Spectral Clustering. NIPS, 2011.

    Examples
    --------
    >>> from gapview.baselines import CoRegularizedSpectral
    >>> from gapview.datasets import make_views
    >>> from gapview.metrics import clustering_accuracy
    >>> data = make_views(n_samples=200, n_clusters=3, missing_rate=0.3, random_state=0)
    >>> model = CoRegularizedSpectral(n_clusters=3, random_state=0).fit(data.views)
    >>> model.embedding_.shape
    (200, 6)
    >>> clustering_accuracy(data.target, model.labels_) > 0.8
    True
    >>> model.predict({"view_1": data.views.matrices[1][:4]}).shape
    (4,)
    """

    form: str = "pairwise"
    consensus_weight: float = 0.01
    affinity: str = "nearest_neighbors"

    _checks = (("form", partial(check_choice, choices=("pairwise", "centroid"))),)

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        self._check_room(views)
        scaled, _ = scale_views(views, self.scale)
        counts = resolve_n_neighbors(self.n_neighbors, views, self.n_clusters)
        even = np.ones(views.n_samples)
        pairs = zip(scaled, counts, strict=True)
        graphs = [affinity_matrix(matrix, self.affinity, count) for matrix, count in pairs]
        check_edges([graph.sum() for graph in graphs], views.names)
        spectra = [ViewSpectrum(normalized(graph), views.rows(k), even) for k, graph in enumerate(graphs)]
        solution = self._solve(spectra, random_state, has_centroid=self.form == "centroid")
        parts = [solution.common] if self.form == "centroid" else solution.vectors
        self._cluster(np.hstack([unit_rows(part) for part in parts]), random_state)
