"""``BipartiteSpectral``: spectral clustering of the graph between samples and anchors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse

from ..errors import ParameterError
from ..estimators.predict import center_shares, nearest_centers
from ..graph.neighbors import Search, nearest
from ..progress import phase
from ..scaling import scale_views, unit_rows
from ..utils.messages import check_integer
from ..utils.types import Array, Matrix
from ..views import Views
from ..views.cells import draw_from
from .base import Baseline, baseline, has_converged
from .partition import GappedRows, completed_rows, fit_partition, view_weights

_MOST_ANCHORS = 1000
_SAMPLES_PER_ANCHOR = 30  # from which the anchors are computed
_EQUAL_WEIGHTS, _ANCHOR_ITERATIONS, _ANCHOR_TOL = 100.0, 10, 1e-3  # of the partition that gives the anchors
_LEAST_TRACE = 0.01  # of a vector, so that no view gets all the weight
_ROUNDING = 1e-7  # share of the largest singular value below which others are rounding errors


@baseline
class BipartiteSpectral(Baseline):
    """Multi-view spectral clustering of the bipartite graph between samples and anchors.

    Anchors are centres of many small groups of samples, with a place in every view. In each view that it has, a sample
    is linked to its nearest anchors, with weights that sum to 1: Zₖ, samples × anchors, sparse. With Ẑₖ = ZₖΛₖ^−½, Λₖ
    the column sums, the normalised Laplacian of the graph of view k has the trace c − tr(UᵀẐₖV) for c orthonormal
    vectors U of the samples and V of the anchors, where samples without the view count as isolated vertices. With hₖ
    this trace + 0.01 c, so that no view takes all the weight, the method minimises::

        Σₖ αₖ^γ hₖ         Σₖ αₖ = 1, αₖ ≥ 0

    U and V become the leading singular vectors of Σₖ αₖ^γ Ẑₖ, and αₖ ∝ hₖ^(1/(1−γ)); the objective never rises. k-means
    on the rows of U, scaled to unit length, gives the groups.

    A sample that lacks view k has no link in Zₖ: it joins through the anchors of the views that it has. Time and memory
    grow linearly with the number of samples. New samples are linked to the anchors in the same way, and placed by
    u = ẑVΣ⁻¹, which is U for the training samples.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups, and of singular vectors.
    n_anchors : int or "auto", default="auto"
        Number of anchors, at least ``n_clusters``; all samples if there are fewer. ``"auto"`` is √(n_samples ·
        n_clusters), but at most 1000. Time also grows with the cube of this number.
    n_neighbors : int, default=5
        Anchors that a sample is linked to in every view that it has, at least 2.
    weight_exponent : float, default=5.0
        γ, above 1: near 1 the view with the smoothest graph decides alone, with large values all views have equal
        weights.
    kind : str, None, or list or dict of these, default=None
        Kind of the values, such as ``"counts"``, as in :class:`gapview.GRMF`.
    n_top_features : int, None, or list or dict of these, default=None
        Features of a view that are kept, as in :class:`gapview.GRMF`.
    scale : str or None, default="unit"
        As in :class:`gapview.GRMF`.
    max_iter : int, default=50
        Maximum number of iterations.
    tol : float, default=1e-6
        Stop when the objective changes by less than this share of its value.
    partial_rows : {"raise", "fill", "drop"}, default="raise"
        What to do with rows that have some but not all values, see :class:`gapview.Views`.
    random_state : int, RandomState or None, default=None
        Seed of the anchors and of k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Group of every sample. Group 0 is the largest; equal sizes are ordered by the smallest sample id.
    embedding_ : array of shape (n_samples, n_clusters)
        The rows of U, scaled to unit length, the input of k-means.
    cluster_centers_ : array of shape (n_clusters, n_clusters)
        Centres of the groups.
    anchors_ : list of arrays of shape (n_anchors, n_features)
        The place of every anchor in each view, in the scaled features.
    anchor_weights_ : list of arrays of shape (n_anchors,)
        Λₖ^−½, 0 for anchors that no sample is linked to.
    anchor_vectors_ : array of shape (n_anchors, n_clusters)
        VΣ⁻¹, which maps links to anchors to U.
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
    The paper takes anchors from k-means on the views side by side. Here a partition that leaves out missing rows, as in
    :class:`RobustMultiViewKMeans`, replaces it; it is computed from at most 30 samples per anchor. The Gaussian weights
    of links have the distance to the farthest linked anchor as width, for each sample, where the authors' program has
    one width for each view. The first singular vector is kept.

    References
    ----------
    Y. Li, F. Nie, H. Huang, J. Huang: Large-Scale Multi-View Spectral Clustering via Bipartite Graph. AAAI, 2015.

    Examples
    --------
    >>> from gapview.baselines import BipartiteSpectral
    >>> from gapview.datasets import make_views
    >>> from gapview.metrics import clustering_accuracy
    >>> data = make_views(n_samples=200, n_clusters=3, missing_rate=0.3, random_state=0)
    >>> model = BipartiteSpectral(n_clusters=3, random_state=0).fit(data.views)
    >>> model.embedding_.shape, len(model.anchors_[0])
    ((200, 3), 24)
    >>> clustering_accuracy(data.target, model.labels_) > 0.9
    True
    >>> bool((model.predict(data.views) == model.labels_).all())
    True
    """

    n_anchors: int | str = "auto"
    n_neighbors: int = 5
    weight_exponent: float = 5.0
    max_iter: int = 50
    tol: float = 1e-6

    _fitted_attributes = ("cluster_centers_", "anchors_", "anchor_weights_", "anchor_vectors_", "view_weights_")
    _checks = (
        ("n_anchors", partial(check_integer, low=1, also=["auto"])),
        ("n_neighbors", partial(check_integer, low=2)),
    )

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        with phase("scaling"):
            scaled, _ = scale_views(views, self.scale)
        with phase("neighbours"):
            self.anchors_ = self._find_anchors(scaled, views, random_state)
            links = self._links(scaled, views)
        self.anchor_weights_ = [_inverse(np.sqrt(np.asarray(own.sum(axis=0)).ravel())) for own in links]
        graphs = [
            sparse.csr_array(own @ sparse.diags_array(weights))
            for own, weights in zip(links, self.anchor_weights_, strict=True)
        ]
        with phase("iterations"):
            solution = fuse_graphs(graphs, self.n_clusters, self.weight_exponent, self.max_iter, self.tol)
        self.view_weights_, self.anchor_vectors_ = solution.weights, solution.anchor_vectors
        self.objective_, self.n_iter_ = solution.objective, len(solution.objective)
        self._cluster(np.asarray(unit_rows(solution.vectors)), random_state)

    def _find_anchors(self, scaled: list[Matrix], views: Views, random_state: np.random.RandomState) -> list[Array]:
        """Return the place of the anchors in every view: the centres of a partition of some of the samples."""
        n_anchors = self.n_anchors
        if isinstance(n_anchors, str):
            n_anchors = max(self.n_clusters, min(int(np.sqrt(views.n_samples * self.n_clusters)), _MOST_ANCHORS))
        elif n_anchors < self.n_clusters:
            raise ParameterError(
                f"n_anchors must be at least n_clusters={self.n_clusters}, and better several times that; got "
                f"{n_anchors}."
            )
        n_anchors = min(n_anchors, views.n_samples)
        drawn = draw_from(views.mask, _SAMPLES_PER_ANCHOR * n_anchors, int(random_state.randint(2**31 - 1)))
        part = views[drawn]
        rows = [own[np.searchsorted(views.rows(k), drawn[part.rows(k)])] for k, own in enumerate(scaled)]
        # Anchors start at the most complete samples, of which fewer views have to be estimated
        seeds = np.argsort(random_state.uniform(size=len(drawn)) / 2 - part.mask.sum(axis=1))[:n_anchors]
        start = completed_rows(rows, part, seeds)
        found = fit_partition(GappedRows.of(rows, part), start, _EQUAL_WEIGHTS, _ANCHOR_ITERATIONS, _ANCHOR_TOL)
        return found.centers

    def _links(self, scaled: Sequence[Matrix], views: Views) -> list[sparse.csr_array]:
        """Return Z of every view: weights between samples and their nearest anchors, 0 for samples without the view."""
        parts = zip(scaled, self.anchors_, strict=True)
        return [
            anchor_links(matrix, anchors, self.n_neighbors, views.rows(k), views.n_samples)
            for k, (matrix, anchors) in enumerate(parts)
        ]

    def _points(self, views: Views) -> Array:
        """Return the place of new samples among the centres."""
        links = self._links(self.scaled(views), views)
        parts = zip(links, self.anchor_weights_, self.view_weights_**self.weight_exponent, strict=True)
        vectors = sum(own @ (weight * of_anchors[:, None] * self.anchor_vectors_) for own, of_anchors, weight in parts)
        return np.asarray(unit_rows(vectors))

    def _predict_views(self, views: Views) -> Array:
        return nearest_centers(self.cluster_centers_, self._points(views))

    def _predict_shares(self, views: Views) -> Array:
        return center_shares(self, self._points(views))


def anchor_links(matrix: Matrix, anchors: Array, n_neighbors: int, samples: Array, n_samples: int) -> sparse.csr_array:
    """Return the weights of links between samples and their nearest anchors in one view, which sum to 1.

    A weight is exp(−d²/2σ²) with d the distance to the anchor and σ that to the farthest linked anchor.

    Parameters
    ----------
    matrix : array or csr_array of shape (n_present, n_features)
        The present rows of the view, scaled.
    anchors : array of shape (n_anchors, n_features)
        The anchors.
    n_neighbors : int
        Number of links of a sample.
    samples : int array of shape (n_present,)
        Samples that the rows belong to.
    n_samples : int
        Number of samples; those without the view have rows of zeros.

    Returns
    -------
    csr_array of shape (n_samples, n_anchors)
    """
    distances, near = nearest(anchors, min(n_neighbors, len(anchors)), matrix, search=Search("exact"))
    farthest = distances.max(axis=1, keepdims=True).astype(np.float64)
    weights = np.exp(-0.5 * (distances / np.where(farthest > 0, farthest, 1)) ** 2)
    weights /= weights.sum(axis=1, keepdims=True)
    places = (np.repeat(samples, near.shape[1]), near.ravel())
    return sparse.csr_array((weights.ravel(), places), shape=(n_samples, len(anchors)))


@dataclass(frozen=True)
class FusedGraph:
    """The singular vectors of the fused graph, and the weights of the views."""

    vectors: Array  # U
    anchor_vectors: Array  # VΣ⁻¹
    weights: Array  # α
    objective: Array  # after every iteration


def fuse_graphs(
    graphs: Sequence[sparse.csr_array], n_vectors: int, exponent: float, max_iter: int, tol: float
) -> FusedGraph:
    """Alternate between singular vectors and view weights until the objective has converged.

    Parameters
    ----------
    graphs : sequence of csr_arrays of shape (n_samples, n_anchors)
        Ẑ of every view.
    n_vectors : int
        c; fewer if there are fewer anchors.
    exponent : float
        γ.
    max_iter : int
        Maximum number of iterations.
    tol : float
        Relative change of the objective at which to stop.
    """
    n_vectors = min(n_vectors, graphs[0].shape[1])
    traces = np.ones(len(graphs))  # equal weights at first
    objective: list[float] = []
    for _ in range(max_iter):
        weights = view_weights(traces, exponent)
        fused = sum(weight * graph for weight, graph in zip(weights**exponent, graphs, strict=True))
        vectors, values, anchor_vectors = singular_vectors(fused, n_vectors)
        shared = [float(np.vdot(vectors, graph @ anchor_vectors)) for graph in graphs]
        traces = (1 + _LEAST_TRACE) * n_vectors - np.array(shared)
        objective.append(float(weights**exponent @ traces))
        if has_converged(objective, tol):
            break
    return FusedGraph(vectors, anchor_vectors * _inverse(values), weights, np.array(objective))


def singular_vectors(graph: sparse.csr_array, count: int) -> tuple[Array, Array, Array]:
    """Return the leading left singular vectors, singular values and right singular vectors of a tall matrix.

    They are computed from the products of its columns, exactly but for singular values below 1e-7 of the largest. The
    vectors of these are 0 on the left.
    """
    products = (graph.T @ graph).toarray()
    squares, right = np.linalg.eigh(products)
    values, right = np.sqrt(np.maximum(squares[::-1][:count], 0)), right[:, ::-1][:, :count]
    return graph @ (right * _inverse(values)), values, right


def _inverse(values: Array) -> Array:
    """Return 1 / values, 0 for values below rounding errors of the largest."""
    kept = values > _ROUNDING * values.max(initial=0)
    return np.where(kept, 1 / np.where(kept, values, 1), 0.0)
