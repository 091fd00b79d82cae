"""``KernelCompletion``: kernels of incomplete views completed from a complete view, then kernel CCA."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import aslinearoperator

from ..errors import InputError
from ..estimators.predict import center_shares, nearest_centers
from ..scaling import scale_views, unit_rows
from ..utils.types import Array
from ..views import Views
from .base import Baseline, baseline, demand_room
from .spectral import gaussian, graph_laplacian, leading_eigenvectors, median_distance, squarable

_LEAST_LINK = 1e-9  # sum of the constant that is added to the affinities of a sample
_OTHERS = "CoRegularizedSpectral, BridgedGRMF"


@baseline
class KernelCompletion(Baseline):
    """Complete the kernels of incomplete views from a complete view, then kernel CCA and k-means.

    Every view has a Gaussian kernel K between the samples c that have it. With L the Laplacian of the kernel of a
    complete view, the missing part of another kernel minimises tr(LK) over positive semi-definite matrices with the
    known block Kcc. The solution is a linear map A of the known rows, A = I for these and A = −Lmm⁻¹Lmc for the missing
    samples m::

        K = A Kcc Aᵀ

    Kernel CCA then finds a representation Z that all views predict well by ridge regression: the leading eigenvectors
    of Σₖ Kₖ(Kₖ + κI)⁻¹, with centred kernels and κ a share of their mean diagonal. k-means on the predictions of Z,
    averaged over the views and with rows scaled to unit length, gives the groups.

    The method needs at least one complete view, time in the cube and memory in the square of the number of samples, and
    works in float64. New samples may have any of the views.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups.
    n_components : int, optional
        Number of columns of Z, at most n_samples − 1; by default the number of groups.
    ridge_weight : float, default=1.0
        κ, as a share of the mean diagonal of the centred kernel: larger values rely on fewer directions of each view.
    kind : str, None, or list or dict of these, default=None
        Kind of the values, such as ``"counts"``, as in :class:`gapview.GRMF`.
    n_top_features : int, None, or list or dict of these, default=None
        Features of a view that are kept, as in :class:`gapview.GRMF`.
    scale : str or None, default="unit"
        As in :class:`gapview.GRMF`.
    max_samples : int or None, default=5000
        Raise an error for more samples than this; ``None`` for no limit.
    partial_rows : {"raise", "fill", "drop"}, default="raise"
        What to do with rows that have some but not all values, see :class:`gapview.Views`.
    random_state : int, RandomState or None, default=None
        Seed of the solver for eigenvectors and of k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Group of every sample. Group 0 is the largest; equal sizes are ordered by the smallest sample id.
    embedding_ : array of shape (n_samples, n_components)
        Mean over the views of KₖBₖ, the prediction of Z by view k, with rows scaled to unit length.
    cluster_centers_ : array of shape (n_clusters, n_components)
        Centres of the groups.
    coefficients_ : list of arrays of shape (n_present, n_components)
        Bₖ, for the samples that have view k: their kernel with a sample, times Bₖ, predicts its row of Z.
    offsets_ : list of arrays of shape (n_components,)
        Subtracted from that prediction, since kernels are centred.
    kernel_widths_ : array of shape (n_views,)
        σ of the kernel exp(−d²/2σ²) of every view: the median distance between its rows.
    sample_ids_ : array of shape (n_samples,)
        Ids of the samples.

    Raises
    ------
    InputError
        If no view is complete, with the names of methods that need none.

    Notes
    -----
    The paper has two views, one of them complete. Here any number of views may be complete: the Laplacian is the sum of
    theirs. Kernel CCA has the maximum-variance form (Kettenring), which is for any number of views: each view predicts
    one common representation. For two views with linear kernels and κ → 0, its columns are the sums of the canonical
    variates.

    The fit averages the predictions of all views, completed ones included; ``predict`` averages those of the views that
    a sample has. The two agree for samples that have all views.

    References
    ----------
    A. Trivedi, P. Rai, H. Daumé III, S. L. DuVall: Multiview Clustering with Incomplete Views. NIPS Workshop on Machine
    Learning for Social Computing, 2010.
    J. R. Kettenring: Canonical analysis of several sets of variables. Biometrika 58, 1971.

    Examples
    --------
    >>> from gapview.baselines import KernelCompletion
    >>> from gapview.datasets import make_views
    >>> from gapview.metrics import clustering_accuracy
    >>> data = make_views(n_samples=200, n_clusters=3, random_state=0)
    >>> mask = data.views.mask.copy()
    >>> mask[::2, 1] = False
    >>> model = KernelCompletion(n_clusters=3, random_state=0).fit(data.views.matrices, mask=mask)
    >>> clustering_accuracy(data.target, model.labels_) > 0.9
    True
    >>> model.predict({"view_1": data.views.matrices[1][:4]}).shape
    (4,)
    """

    n_components: int | None = None
    ridge_weight: float = 1.0
    max_samples: int | None = 5000

    _fitted_attributes = ("cluster_centers_", "coefficients_", "offsets_", "kernel_widths_")

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        n_samples = views.n_samples
        complete = [k for k in range(views.n_views) if views.n_present[k] == n_samples]
        if not complete:
            fullest = int(np.argmax(views.n_present))
            raise InputError(
                f"KernelCompletion needs a view that all {n_samples} samples have; the fullest view, "
                f"'{views.names[fullest]}', is present for {views.n_present[fullest]}. Use a method that needs no "
                f"complete view ({_OTHERS}), or leave out the samples that lack this view."
            )
        demand_room(self, n_samples, 2 * views.n_views + 4)
        scaled, _ = scale_views(views, self.scale)
        rows = [squarable(matrix) for matrix in scaled]
        self.kernel_widths_ = np.array([median_distance(own) for own in rows])
        kernels = [gaussian(own, own, width) for own, width in zip(rows, self.kernel_widths_, strict=True)]
        # The constant links samples whose kernel with all others is 0
        laplacian = graph_laplacian(_LEAST_LINK / n_samples + np.sum([kernels[k] for k in complete], axis=0))
        maps = [extension(laplacian, views.mask[:, k]) for k in range(views.n_views)]
        completed = [a @ kernel @ a.T for a, kernel in zip(maps, kernels, strict=True)]
        n_components = min(self.n_components or self.n_clusters, n_samples - 1)
        start = random_state.uniform(-1, 1, size=n_samples)
        solution = kernel_cca(completed, self.ridge_weight, n_components, start)
        self.coefficients_ = [a.T @ own for a, own in zip(maps, solution.coefficients, strict=True)]
        self.offsets_ = [
            kernel.mean(axis=0) @ own for kernel, own in zip(completed, solution.coefficients, strict=True)
        ]
        self._cluster(np.asarray(unit_rows(solution.predictions)), random_state)

    def _points(self, views: Views) -> Array:
        """Return the place of new samples among the centres."""
        total = np.zeros((views.n_samples, self.embedding_.shape[1]))
        parts = zip(self.scaled(self.views_), self.scaled(views), strict=True)
        for k, (trained, given) in enumerate(parts):
            if not given.shape[0]:
                continue
            kernel = gaussian(squarable(given, trained), squarable(trained), self.kernel_widths_[k])
            total[views.rows(k)] += kernel @ self.coefficients_[k] - self.offsets_[k]
        return np.asarray(unit_rows(total))

    def _predict_views(self, views: Views) -> Array:
        return nearest_centers(self.cluster_centers_, self._points(views))

    def _predict_shares(self, views: Views) -> Array:
        return center_shares(self, self._points(views))


def extension(laplacian: Array, present: Array) -> Array:
    """Return the map A that completes a kernel between the present samples to A K Aᵀ between all samples.

    Its rows sum to 1: a missing sample is a weighted mean of present ones, the harmonic function on the graph.

    Parameters
    ----------
    laplacian : array of shape (n_samples, n_samples)
        L of a complete view.
    present : bool array of shape (n_samples,)
        Samples that have the view to complete.

    Returns
    -------
    array of shape (n_samples, n_present)
    """
    n_present = int(present.sum())
    weights = np.zeros((len(present), n_present))
    weights[present] = np.eye(n_present)
    if n_present < len(present):
        inner = laplacian[np.ix_(~present, ~present)]
        weights[~present] = -linalg.solve(inner, laplacian[np.ix_(~present, present)], assume_a="pos")
    return weights


@dataclass(frozen=True)
class KernelCCA:
    """The representation that all views predict, and how each view predicts it."""

    values: Array  # eigenvalues, the sum over the views of the shares of Z that they predict; in descending order
    vectors: Array  # Z
    coefficients: list[Array]  # (K + κI)⁻¹Z of every view
    predictions: Array  # mean of KₖBₖ over the views


def kernel_cca(kernels: list[Array], ridge_weight: float, n_components: int, start: Array) -> KernelCCA:
    """Return the leading eigenvectors of Σₖ Kₖ(Kₖ + κI)⁻¹ for centred kernels Kₖ.

    Parameters
    ----------
    kernels : list of arrays of shape (n_samples, n_samples)
        Positive semi-definite, not centred.
    ridge_weight : float
        κ, as a share of the mean diagonal of the centred kernel.
    n_components : int
        Number of eigenvectors.
    start : array of shape (n_samples,)
        Start of the solver for eigenvectors.
    """
    size = len(kernels[0])
    total = np.zeros((size, size))
    factors = []
    for kernel in kernels:
        centered = kernel - kernel.mean(axis=0) - kernel.mean(axis=1)[:, None] + kernel.mean()
        least = (
            size * np.finfo(np.float64).eps * kernel.diagonal().mean()
        )  # the centred kernel may be all rounding errors
        ridge = max(ridge_weight * np.trace(centered) / size, least)
        shifted = centered.copy()
        shifted.flat[:: size + 1] += ridge
        factors.append(linalg.cho_factor(shifted, overwrite_a=True))
        total += linalg.cho_solve(factors[-1], centered)
    vectors = leading_eigenvectors(aslinearoperator((total + total.T) / 2), n_components, start)
    values = np.einsum("ik,ik->k", vectors, total @ vectors)
    coefficients = [linalg.cho_solve(factor, vectors) for factor in factors]
    return KernelCCA(values, vectors, coefficients, vectors * values / len(kernels))
