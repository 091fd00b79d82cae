"""``ImputedSpectral`` and ``ImputedKMeans``: impute missing views from the nearest samples, then cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.manifold import spectral_embedding
from sklearn.neighbors import kneighbors_graph

from ..clusters import N_RESTARTS, cluster_rows
from ..errors import InputError
from ..scaling import scale_views
from ..utils.messages import ignoring, warn_user
from ..utils.types import Array, Matrix
from ..views import Views
from ..views.cells import dense, nearest_imputed, unit_for_squares
from .base import COUNT, Baseline, baseline

_SPECTRAL_RESTARTS = 10  # as in scikit-learn's SpectralClustering, so that labels are the same


def knn_filled(scaled: list[Matrix], views: Views, n_neighbors: int) -> Array:
    """Return the views side by side, missing ones imputed from the nearest samples that have them.

    Distances are computed on the views that two samples share. The missing features of a sample are the mean over its
    ``n_neighbors`` nearest samples that have the view; over fewer if it shares a view with fewer of them; and over all
    samples that have the view if it shares a view with none.

    Parameters
    ----------
    scaled : list of arrays or csr_arrays of shape (n_present, n_features)
        The present rows of every view.
    views : Views
        The samples that the rows belong to.
    n_neighbors : int
        Number of samples in the mean.

    Returns
    -------
    array of shape (n_samples, sum of n_features)
        In sample order.

    Notes
    -----
    Every incomplete sample is compared with all samples: the time grows with the square of their number, and the
    distances are held in pieces of scikit-learn's ``working_memory`` (1 GiB unless configured otherwise).
    """
    dtype = np.result_type(*(matrix.dtype for matrix in scaled))
    ends = np.cumsum(views.n_features)
    gapped = np.full((views.n_samples, int(ends[-1])), np.nan, dtype=dtype)
    for k, (matrix, end) in enumerate(zip(scaled, ends, strict=True)):
        gapped[views.rows(k), end - matrix.shape[1] : end] = dense(matrix)
    return nearest_imputed(gapped, gapped, n_neighbors)


@dataclass(kw_only=True, eq=False, repr=False)
class _ImputedClusterer(Baseline):
    """Base class of methods that cluster the views side by side, missing ones imputed from the nearest samples."""

    n_neighbors: int = 5

    _checks = (("n_neighbors", COUNT),)

    def _filled(self, views: Views) -> Array:
        scaled, _ = scale_views(views, self.scale)
        return knn_filled(scaled, views, self.n_neighbors)


@baseline
class ImputedSpectral(_ImputedClusterer):
    """Impute missing views from the nearest samples, then spectral clustering on a graph of nearest neighbours.

    The two-line pipeline of scikit-learn: ``KNNImputer`` on the views side by side, ``SpectralClustering`` with
    ``affinity="nearest_neighbors"`` on the result. The labels are those of that class for the same seed.

    Every incomplete sample is compared with every sample, so time grows with the square of their number; memory for
    these distances is bounded by scikit-learn's ``working_memory``. The filled views are dense, also if the data are
    sparse.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups.
    n_neighbors : int, default=5
        Samples whose mean replaces a missing view; fewer if fewer share a view with the sample that lacks it. A sample
        that shares no view with any gets the mean of all.
    n_graph_neighbors : int, default=10
        Neighbours of a sample in the graph, itself included; all samples if there are fewer.
    kind : str, None, or list or dict of these, default=None
        Kind of the values, such as ``"counts"``, as in :class:`gapview.GRMF`.
    n_top_features : int, None, or list or dict of these, default=None
        Features of a view that are kept, as in :class:`gapview.GRMF`.
    scale : str or None, default="unit"
        As in :class:`gapview.GRMF`; views are filled after they are scaled.
    partial_rows : {"raise", "fill", "drop"}, default="raise"
        What to do with rows that have some but not all values, see :class:`gapview.Views`.
    random_state : int, RandomState or None, default=None
        Seed of the eigenvectors' solver and of k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Group of every sample. Group 0 is the largest; equal sizes are ordered by the smallest sample id.
    embedding_ : array of shape (n_samples, n_clusters)
        The eigenvectors, the input of k-means.
    affinity_matrix_ : sparse matrix of shape (n_samples, n_samples)
        Weights of the graph: 1 between two samples that are neighbours of each other, 0.5 if only one is.
    sample_ids_ : array of shape (n_samples,)
        Ids of the samples.

    References
    ----------
    O. Troyanskaya et al.: Missing value estimation methods for DNA microarrays. Bioinformatics 17, 2001.
    U. von Luxburg: A tutorial on spectral clustering. Statistics and Computing 17, 2007.

    Examples
    --------
    >>> from gapview.baselines import ImputedSpectral
    >>> from gapview.datasets import make_views
    >>> from gapview.metrics import clustering_accuracy
    >>> data = make_views(n_samples=200, n_clusters=3, separation=2.5, missing_rate=0.3, random_state=0)
    >>> model = ImputedSpectral(n_clusters=3, random_state=0).fit(data.views)
    >>> model.embedding_.shape
    (200, 3)
    >>> clustering_accuracy(data.target, model.labels_) > 0.7
    True
    """

    n_graph_neighbors: int = 10

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        if self.n_clusters >= views.n_samples:
            raise InputError(
                f"Spectral clustering needs more samples than groups; got n_samples={views.n_samples} for "
                f"n_clusters={self.n_clusters}. Ask for fewer clusters."
            )
        count = min(self.n_graph_neighbors, views.n_samples)
        filled = self._filled(views)
        directed = kneighbors_graph(np.ldexp(filled, -unit_for_squares(filled)), count, include_self=True)
        self.affinity_matrix_ = (directed + directed.T) / 2
        n_parts = connected_components(self.affinity_matrix_, directed=False, return_labels=False)
        if n_parts > 1:
            warn_user(
                f"The neighbour graph of the filled samples has {n_parts} connected components; groups follow these "
                "components first. Raise n_graph_neighbors to connect them."
            )
        with ignoring("Graph is not fully connected"):  # reported above
            self.embedding_ = spectral_embedding(
                self.affinity_matrix_, n_components=self.n_clusters, random_state=random_state, drop_first=False
            )
        self.labels_ = cluster_rows(
            self.embedding_, self.n_clusters, random_state, normalize=False, n_init=_SPECTRAL_RESTARTS
        ).labels


@baseline
class ImputedKMeans(_ImputedClusterer):
    """Impute missing views from the nearest samples, then k-means on the views side by side.

    Every incomplete sample is compared with every sample, so time grows with the square of their number; memory for
    these distances is bounded by scikit-learn's ``working_memory``. The filled views are dense, also if the data are
    sparse.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups.
    n_neighbors : int, default=5
        Samples whose mean replaces a missing view, as in :class:`ImputedSpectral`.
    kind : str, None, or list or dict of these, default=None
        Kind of the values, such as ``"counts"``, as in :class:`gapview.GRMF`.
    n_top_features : int, None, or list or dict of these, default=None
        Features of a view that are kept, as in :class:`gapview.GRMF`.
    scale : str or None, default="unit"
        As in :class:`gapview.GRMF`; views are filled after they are scaled.
    n_init : int, default=20
        Restarts of k-means, of which the best is kept.
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
    O. Troyanskaya et al.: Missing value estimation methods for DNA microarrays. Bioinformatics 17, 2001.

    Examples
    --------
    >>> from gapview.baselines import ImputedKMeans
    >>> from gapview.datasets import make_views
    >>> from gapview.metrics import clustering_accuracy
    >>> data = make_views(n_samples=200, n_clusters=3, missing_rate=0.3, random_state=0)
    >>> model = ImputedKMeans(n_clusters=3, random_state=0).fit(data.views)
    >>> model.embedding_.shape
    (200, 50)
    >>> clustering_accuracy(data.target, model.labels_) > 0.8
    True
    """

    n_init: int = N_RESTARTS

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        self.embedding_ = self._filled(views)
        clustering = cluster_rows(self.embedding_, self.n_clusters, random_state, normalize=False, n_init=self.n_init)
        self.labels_, self.cluster_centers_ = clustering.labels, clustering.centers
