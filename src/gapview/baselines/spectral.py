"""Spectral steps that several baselines share: affinities of samples, their leading eigenvectors, coupled spectra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh
from scipy.spatial.distance import pdist
from sklearn.metrics import pairwise_distances

from ..errors import SolutionError
from ..estimators.base import NoEffect
from ..graph.knn import knn_graph
from ..utils.types import Array, Matrix
from ..views import Views
from ..views.cells import dense, unit_for_squares
from .base import Baseline, demand_room, has_converged

_USE_NEIGHBORS = "use affinity='nearest_neighbors'"
_FEW = 400  # samples up to which eigenvectors are computed from the whole matrix, by a direct method
_N_TYPICAL = 1000  # rows from which the median distance is computed
_FARTHEST = 1e100  # values beyond have a kernel of 0 with all others
_EIGEN_TOL = 1e-10


# -- affinities ------------------------------------------------------------------------------------------------------


def affinity_matrix(rows: Matrix, affinity: str, n_neighbors: int, typical: Array | None = None) -> Any:
    """Return the affinities of rows in double precision: a Gaussian kernel, or a sparse graph of nearest neighbours.

    Parameters
    ----------
    rows : array or csr_array of shape (n_rows, n_features)
        The rows, scaled.
    affinity : {"rbf", "nearest_neighbors"}
        ``exp(−d²/2σ²)`` with σ the median distance of the rows, dense; or 1 if either row is among the nearest of the
        other, else 0.
    n_neighbors : int
        Neighbours of a row in the graph.
    typical : bool array of shape (n_rows,), optional
        Rows from which σ is computed; by default all.
    """
    if affinity == "rbf":
        points = squarable(rows)
        return gaussian(points, points, median_distance(points if typical is None else points[typical]))
    return knn_graph(rows, n_neighbors).astype(np.float64)


def squarable(rows: Matrix, like: Matrix | None = None) -> Array:
    """Return rows as a dense array of float64, divided by a power of 2 if their squares would overflow or vanish.

    The power is that of ``like`` if given, so that the distances between both stay comparable.
    """
    values = dense(rows).astype(np.float64, copy=False)
    unit = unit_for_squares(values if like is None else dense(like))
    with np.errstate(over="ignore"):
        return np.asarray(np.clip(np.ldexp(values, -unit), -_FARTHEST, _FARTHEST))


def median_distance(rows: Array) -> float:
    """Return the median distance between different rows, from at most 1000 of them; 1 if all coincide."""
    chosen = rows[np.unique(np.linspace(0, len(rows) - 1, _N_TYPICAL).astype(np.intp))]
    distances = pdist(chosen)
    apart = distances[distances > 0]
    return float(np.median(apart)) if apart.size else 1.0


def gaussian(rows: Array, others: Array, width: float) -> Array:
    """Return exp(−d²/2σ²) for the distances d between rows and others; ``width`` is σ."""
    middle = others.mean(axis=0)  # products of rows far from the origin would round too much
    squares = pairwise_distances(rows - middle, others - middle, metric="sqeuclidean")
    return np.asarray(np.exp(squares / (-2 * width**2), out=squares))


def graph_laplacian(affinity: Array) -> Array:
    """Return diag(A1) − A."""
    laplacian = -affinity
    laplacian.flat[:: len(affinity) + 1] += affinity.sum(axis=1)
    return np.asarray(laplacian)


def normalized(affinity: Any, weights: Array | None = None) -> Any:
    """Return D^−½ Ω A Ω D^−½, with Ω the weights of the samples and D the row sums of ΩAΩ.

    Rows without affinities stay 0. By default all weights are 1.
    """
    weights = np.ones(affinity.shape[0]) if weights is None else weights
    degrees = weights * (affinity @ weights)
    factor = weights * np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1)), 0.0)
    if sparse.issparse(affinity):
        return sparse.csr_array(sparse.diags_array(factor) @ affinity @ sparse.diags_array(factor))
    return affinity * factor * factor[:, None]


# -- eigenvectors ----------------------------------------------------------------------------------------------------


def leading_eigenvectors(operator: LinearOperator, count: int, start: Array, previous: Array | None = None) -> Array:
    """Return orthonormal eigenvectors of the largest eigenvalues of a symmetric operator, in descending order.

    An iterative method may miss an eigenvector if eigenvalues coincide. With ``previous``, the best vectors in the span
    of the ones found and the previous ones are returned, so that the trace of VᵀMV is at least that of both.

    Parameters
    ----------
    operator : LinearOperator of shape (n, n)
        M.
    count : int
        Number of eigenvectors; at most n are returned.
    start : array of shape (n,)
        Start of the iterative method.
    previous : array of shape (n, count), optional
        Orthonormal vectors.
    """
    size = operator.shape[0]
    count = min(int(count), size)
    if size <= max(_FEW, 2 * count):
        whole = operator @ np.eye(size)
        vectors = np.linalg.eigh((whole + whole.T) / 2)[1][:, ::-1][:, :count]
    else:
        try:
            vectors = eigsh(operator, k=count, which="LA", v0=start, tol=_EIGEN_TOL)[1][:, ::-1]
        except ArpackError as error:
            raise SolutionError(
                f"The eigenvectors of a graph of {size} samples were not found: {error} Use more neighbours, or fewer "
                "groups."
            ) from None
        if previous is not None:
            space, _ = linalg.qr(np.hstack([vectors, previous]), mode="economic")
            inner = space.T @ (operator @ space)
            vectors = space @ np.linalg.eigh((inner + inner.T) / 2)[1][:, ::-1][:, :count]
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(count)]
    return np.asarray(vectors * np.where(largest < 0, -1.0, 1.0))


# -- coupled spectra -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ViewSpectrum:
    """The normalised affinities of one view, between some of the samples."""

    affinity: Any  # S, array or csr_array
    rows: Array  # samples that its rows belong to; the others have no affinities in this view
    weights: Array  # ω of every sample in the coupling with other views

    def times(self, vectors: Array) -> Array:
        """Return S V, with rows of zeros for samples without affinities."""
        result = np.zeros_like(vectors)
        result[self.rows] = self.affinity @ vectors[self.rows]
        return result

    def fit(self, coupling: float, others: Array, n_vectors: int, start: Array, previous: Array | None) -> Array:
        """Return the leading eigenvectors of S + λ Ω B Bᵀ Ω, with B the vectors of the other views side by side."""
        pulled = self.weights[:, None] * others

        def times(vectors: Array) -> Array:
            columns = vectors.reshape(len(pulled), -1)
            products = self.times(columns) + coupling * (pulled @ (pulled.T @ columns))
            return np.asarray(products.reshape(vectors.shape))

        operator = LinearOperator((len(pulled), len(pulled)), matvec=times, matmat=times, dtype=np.float64)
        return leading_eigenvectors(operator, n_vectors, start, previous)


@dataclass(frozen=True)
class CoupledSpectra:
    """Views with eigenvectors Uₖ, regularised towards each other (pairwise) or towards common vectors U* (centroid).

    With λ the coupling and Ωₖ the weights of the samples in view k, the objectives to maximise are::

        pairwise   Σₖ tr(UₖᵀSₖUₖ)  +  λ Σₖ<ₗ ‖UₖᵀUₗ‖²
        centroid   Σₖ tr(UₖᵀSₖUₖ)  +  λ Σₖ ‖UₖᵀΩₖU*‖²

    over orthonormal Uₖ and U*. Each step solves for one of them while the others are fixed, by leading eigenvectors, so
    that the objective never falls. The pairwise form has no weights of samples.
    """

    views: Sequence[ViewSpectrum]
    coupling: float
    n_vectors: int
    has_centroid: bool

    def solve(self, max_iter: int, tol: float, start: Array) -> SpectralSolution:
        """Alternate between the views until the objective has converged, at most ``max_iter`` times."""
        nothing = np.zeros((len(start), 0))
        vectors = [view.fit(0.0, nothing, self.n_vectors, start, None) for view in self.views]
        common = self._common(vectors)
        objective: list[float] = []
        for _ in range(max_iter):
            for k, view in enumerate(self.views):
                others = common if self.has_centroid else np.hstack([nothing, *vectors[:k], *vectors[k + 1 :]])
                vectors[k] = view.fit(self.coupling, others, self.n_vectors, start, vectors[k])
            common = self._common(vectors)
            objective.append(self._value(vectors, common))
            if has_converged(objective, tol):
                break
        return SpectralSolution(vectors, common, np.array(objective))

    def _common(self, vectors: Sequence[Array]) -> Array:
        """Return U*: the leading left singular vectors of the weighted vectors of all views side by side."""
        if not self.has_centroid:
            return np.zeros((len(vectors[0]), 0))
        parts = [view.weights[:, None] * own for view, own in zip(self.views, vectors, strict=True)]
        return np.asarray(linalg.svd(np.hstack(parts), full_matrices=False)[0][:, : self.n_vectors])

    def _value(self, vectors: Sequence[Array], common: Array) -> float:
        own = sum(float(np.vdot(u, view.times(u))) for view, u in zip(self.views, vectors, strict=True))
        if self.has_centroid:
            pairs = [(view.weights[:, None] * u, common) for view, u in zip(self.views, vectors, strict=True)]
        else:
            pairs = [(u, other) for k, u in enumerate(vectors) for other in vectors[:k]]
        return own + self.coupling * sum(float(np.square(u.T @ other).sum()) for u, other in pairs)


@dataclass(frozen=True)
class SpectralSolution:
    """The result of the iterations."""

    vectors: list[Array]  # Uₖ of every view
    common: Array  # U*, without columns in the pairwise form
    objective: Array  # after every iteration


@dataclass(kw_only=True, eq=False, repr=False)
class CoupledBaseline(Baseline):
    """Base class of the methods that cluster coupled spectra of the views."""

    consensus_weight: float
    affinity: str
    n_neighbors: int | str = "auto"
    max_iter: int = 30
    tol: float = 1e-6
    max_samples: int | None = 5000

    _no_effect = (
        NoEffect("n_neighbors", lambda m, _: m.affinity == "rbf", "affinity is 'rbf'", _USE_NEIGHBORS),
        NoEffect("max_samples", lambda m, _: m.affinity != "rbf", "affinity is not 'rbf'", "use affinity='rbf'"),
    )

    def _check_room(self, views: Views) -> None:
        if self.affinity == "rbf":
            remedy = f"{_USE_NEIGHBORS.capitalize()}, another method or fewer samples"
            demand_room(self, views.n_samples, 2 * views.n_views, remedy)

    def _solve(
        self, spectra: Sequence[ViewSpectrum], random_state: np.random.RandomState, *, has_centroid: bool
    ) -> SpectralSolution:
        """Maximise the objective; set ``objective_`` and ``n_iter_``."""
        problem = CoupledSpectra(spectra, self.consensus_weight, self.n_clusters, has_centroid)
        start = random_state.uniform(-1, 1, size=len(spectra[0].weights))
        solution = problem.solve(self.max_iter, self.tol, start)
        self.objective_, self.n_iter_ = solution.objective, len(solution.objective)
        return solution
