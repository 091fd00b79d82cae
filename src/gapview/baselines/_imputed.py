"""``ImputedSpectral`` and ``ImputedKMeans``: fill the gaps from near samples, then cluster as if there were none."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.manifold import spectral_embedding
from sklearn.neighbors import kneighbors_graph

from ..clusters import N_RESTARTS, cluster_rows
from ..errors import GapviewWarning, InputError
from ..estimators.base import MultiViewClusterer
from ..persist.registry import storable_method
from ..scaling import scale_views
from ..utils.parameters import check_integer
from ..utils.types import Array, Matrix
from ..utils.warnings import warn_user
from ..views import Views
from ..views.cells import unit_for_squares
from ._filling import knn_filled

__all__ = ["ImputedKMeans", "ImputedSpectral"]

_SPECTRAL_RESTARTS = 10  # of scikit-learn's SpectralClustering, whose labels are to be met


class _ImputedClusterer(MultiViewClusterer):
    """A method that sees the views side by side, with missing ones filled from near samples."""

    n_neighbors: int

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_neighbors", self.n_neighbors, low=1)

    def _filled(self, views: Views) -> Array:
        scaled, _ = scale_views(views, self.scale)
        return knn_filled(scaled, views, self.n_neighbors)


@storable_method
class ImputedSpectral(_ImputedClusterer):
    """Fill missing views from near samples, then spectral clustering on a graph of nearest neighbours.

    What one builds from scikit-learn in two lines: ``KNNImputer`` on the views side by side, ``SpectralClustering``
    with ``affinity="nearest_neighbors"`` on the result. The labels are those of that class for the same seed.

    Every incomplete sample is compared with every sample, so time grows with the square of their number; memory for
    these distances is bounded by scikit-learn's ``working_memory``. The filled views are dense, sparse data included.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups.
    n_neighbors : int, default=5
        Samples that a missing view is averaged from, at most as many as share a view with the sample that lacks it; one
        that shares none gets the mean of all.
    n_graph_neighbors : int, default=10
        Neighbours of a sample in the graph, itself included; all samples if there are fewer.
    scale : {"unit", "center+unit", "standard", "standard+view", "standard+unit", None}, default="unit"
        As in :class:`gapview.GRMF`; views are filled after they are scaled.
    partial_rows : {"raise", "fill", "drop"}, default="raise"
        What to do with rows that have some but not all values, see :class:`gapview.Views`.
    random_state : int, RandomState or None, default=None
        Seed of the eigenvectors' solver and of k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Group of every sample.
    embedding_ : array of shape (n_samples, n_clusters)
        The eigenvectors that k-means has seen; they show the groups, as the many filled features do not.
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

    affinity_matrix_: Matrix

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 5,
        n_graph_neighbors: int = 10,
        scale: str | None = "unit",
        partial_rows: str = "raise",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.n_graph_neighbors = n_graph_neighbors
        self.scale = scale
        self.partial_rows = partial_rows
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_graph_neighbors", self.n_graph_neighbors, low=2)

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
                f"The neighbour graph of the filled samples falls into {n_parts} parts without a link between them; "
                "the groups follow these parts first. Raise n_graph_neighbors to link them.",
                GapviewWarning,
            )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Graph is not fully connected", UserWarning)  # said above
            self.embedding_ = spectral_embedding(
                self.affinity_matrix_, n_components=self.n_clusters, random_state=random_state, drop_first=False
            )
        self.labels_ = cluster_rows(
            self.embedding_, self.n_clusters, random_state, normalize=False, n_init=_SPECTRAL_RESTARTS
        ).labels


@storable_method
class ImputedKMeans(_ImputedClusterer):
    """Fill missing views from near samples, then k-means on the views side by side.

    Every incomplete sample is compared with every sample, so time grows with the square of their number; memory for
    these distances is bounded by scikit-learn's ``working_memory``. The filled views are dense, sparse data included.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups.
    n_neighbors : int, default=5
        Samples that a missing view is averaged from, as in :class:`ImputedSpectral`.
    scale : {"unit", "center+unit", "standard", "standard+view", "standard+unit", None}, default="unit"
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
        Group of every sample.
    embedding_ : array of shape (n_samples, sum of n_features)
        The filled views side by side: what k-means has seen.
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

    cluster_centers_: Array

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 5,
        scale: str | None = "unit",
        n_init: int = N_RESTARTS,
        partial_rows: str = "raise",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.scale = scale
        self.n_init = n_init
        self.partial_rows = partial_rows
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_init", self.n_init, low=1)

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        self.embedding_ = self._filled(views)
        clustering = cluster_rows(self.embedding_, self.n_clusters, random_state, normalize=False, n_init=self.n_init)
        self.labels_, self.cluster_centers_ = clustering.labels, clustering.centers
