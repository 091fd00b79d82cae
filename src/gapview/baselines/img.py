"""``IMG``: codes and a graph over all samples, learned jointly."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from ..clusters import cluster_rows
from ..errors import InputError, SolutionError
from ..scaling import scale_views
from ..utils.messages import warn_user
from ..utils.types import Array, Matrix
from ..views import Views
from .base import POSITIVE, FactorBaseline, baseline, demand_room, read_factor
from .nmf import COLLAPSED, Observed, PatternGroup, inner, pattern_groups
from .spectral import graph_laplacian

_N_SQUARES = 5  # n × n matrices at peak memory: the start, a graph and its Laplacian, two for the next graph
_PENALTY_START, _PENALTY_GROWTH, _PENALTY_CAP = 0.1, 1.1, 1e10
_ADVICE = "Use a scaling such as scale='unit', smaller weights, or another init."


@baseline
class IMG(FactorBaseline):
    """Incomplete multi-modal grouping: codes shared by all views, and a graph learned from the codes.

    Every view is factorised into codes P of its samples and a basis. A dense graph A over all samples, learned from
    smoothed codes Q = P, draws the codes of linked samples together. The groups come from a normalised cut of the
    graph. As in the authors' program, bases are learned from the complete samples only.

    The method needs time in the cube and memory in the square of the number of samples, and works in float64.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups.
    n_components : int, optional
        Columns K of the codes; by default the number of groups.
    ridge_weight : float, default=1e-2
        λ: weight of the penalty on the squares of the bases.
    smoothness_weight : float, default=1.0
        β: weight of the graph penalty on the codes.
    graph_weight : float, default=100.0
        γ: weight of the penalty on the squares of the graph; larger values give more even links.
    basis_from : {"complete", "all"}, default="complete"
        Learn the bases from samples that have every view (the authors' program) or, for each view, from all samples
        that have it (the published problem).
    output : {"cut", "codes"}, default="cut"
        Compute groups by a normalised cut of the learned graph (the authors' program, but with 20 restarts of k-means
        instead of 100) or by k-means on the codes with rows scaled to unit length.
    kind : str, None, or list or dict of these, default=None
        Kind of the values, such as ``"counts"``, as in :class:`gapview.GRMF`.
    n_top_features : int, None, or list or dict of these, default=None
        Features of a view that are kept, as in :class:`gapview.GRMF`.
    scale : str or None, default="unit"
        As in :class:`gapview.GRMF`. The graph depends on the scale of the codes, thus on that of the data.
    init : "random" or pair of arrays, default="random"
        Starting codes of shape (n_samples, n_components) and a matrix of shape (n_samples, n_samples) that
        replaces the Laplacian of the graph in the first iteration; only its symmetric part is used. By default both
        are drawn uniformly from [0, 1), as the authors do.
    max_iter : int, default=200
        Maximum number of iterations.
    tol : float, default=1e-8
        Stop when no entry of P and Q differs by this much. The penalty μ on the difference starts at 0.1 and grows by
        a tenth in every iteration, up to 1e10.
    max_samples : int or None, default=5000
        Raise an error for more samples than this; ``None`` for no limit.
    partial_rows : {"raise", "fill", "drop"}, default="raise"
        What to do with rows that have some but not all values, see :class:`gapview.Views`.
    random_state : int, RandomState or None, default=None
        Seed of the start and of k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Group of every sample. Group 0 is the largest; equal sizes are ordered by the smallest sample id.
    embedding_ : array of shape (n_samples, n_components)
        P, the codes, not scaled; for both kinds of output.
    bases_ : list of arrays of shape (n_components, n_features)
        U of every view.
    affinity_matrix_ : array of shape (n_samples, n_samples)
        A, symmetric and non-negative.
    residual_ : array of shape (n_iter_,)
        max |P − Q| after every iteration, which measures convergence. There is no ``objective_``: the method of
        multipliers with a growing penalty does not decrease it.
    n_iter_ : int
        Iterations done.
    sample_ids_ : array of shape (n_samples,)
        Ids of the samples.

    References
    ----------
    H. Zhao, H. Liu, Y. Fu: Incomplete Multi-Modal Visual Data Grouping. IJCAI, 2016.

    Examples
    --------
    >>> from gapview.baselines import IMG
    >>> from gapview.datasets import make_views
    >>> from gapview.metrics import clustering_accuracy
    >>> data = make_views(n_samples=100, n_clusters=3, missing_rate=0.3, random_state=0)
    >>> model = IMG(n_clusters=3, tol=1e-4, random_state=0).fit(data.views)
    >>> model.embedding_.shape, model.affinity_matrix_.shape
    ((100, 3), (100, 100))
    >>> clustering_accuracy(data.target, model.labels_) > 0.8
    True
    """

    ridge_weight: float = 1e-2
    smoothness_weight: float = 1.0
    graph_weight: float = 100.0
    basis_from: str = "complete"
    output: str = "cut"
    max_iter: int = 200
    tol: float = 1e-8
    max_samples: int | None = 5000

    _checks = (("graph_weight", POSITIVE),)

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        n_samples, n_components = views.n_samples, self._code_length
        demand_room(self, n_samples, _N_SQUARES)
        scaled, _ = scale_views(views, self.scale)
        problem = build_problem(scaled, views, self.basis_from)
        of_codes, of_graph = (n_samples, n_components), (n_samples, n_samples)
        if self._starts("random"):
            codes, laplacian = random_state.uniform(size=of_codes), random_state.uniform(size=of_graph)
        else:
            given = self._given_pair("of arrays, starting codes and a matrix instead of the Laplacian")
            codes = read_factor(given[0], "codes", np.float64, of_codes)
            laplacian = read_factor(given[1], "Laplacian", np.float64, of_graph)
        weights = IMGWeights(self.ridge_weight, self.smoothness_weight, self.graph_weight)
        solution = solve(problem, weights, codes, laplacian, self.max_iter, self.tol)
        if self.tol > 0 and solution.residual[-1] >= self.tol:
            warn_user(
                f"IMG stopped at max_iter={self.max_iter} before codes and smoothed codes agreed: they differ by up to "
                f"{solution.residual[-1]:.1e}, tol={self.tol:.1e}. Raise max_iter or tol.",
                ConvergenceWarning,
            )
        self.embedding_, self.bases_, self.affinity_matrix_ = solution.codes, solution.bases, solution.affinity
        self.residual_, self.n_iter_ = solution.residual, len(solution.residual)
        cut = self.output == "cut"
        points = normalized_cut(solution.affinity, self.n_clusters) if cut else solution.codes
        self.labels_ = cluster_rows(points, self.n_clusters, random_state, normalize=not cut).labels


@dataclass(frozen=True)
class IMGWeights:
    """λ, β and γ of the problem."""

    ridge: float
    smoothness: float
    graph: float


@dataclass(frozen=True)
class IMGProblem:
    """The present rows of the views, and which of them the bases are learned from."""

    parts: list[Observed]
    basis_parts: list[Observed]
    patterns: list[PatternGroup]


@dataclass(frozen=True)
class IMGSolution:
    """The result of the iterations."""

    codes: Array  # P
    bases: list[Array]  # U
    affinity: Array  # A
    residual: Array  # max |P − Q| after every iteration


def build_problem(scaled: list[Matrix], views: Views, basis_from: str) -> IMGProblem:
    """Build the problem from scaled views.

    Raises
    ------
    InputError
        If the bases have to be learned from complete samples and there are none.
    """
    parts = [Observed(matrix.astype(np.float64, copy=False), views.rows(k)) for k, matrix in enumerate(scaled)]
    gapped, whole = pattern_groups(parts, views.n_samples)
    if basis_from == "all":
        return IMGProblem(parts, parts, gapped + whole)
    if not whole:
        raise InputError(
            f"IMG with basis_from='complete' learns from samples that have all {views.n_views} views; none of the "
            f"{views.n_samples} samples has. Use basis_from='all', or leave out the views that few samples have."
        )
    (complete,) = whole
    chosen = [Observed(part.matrix[complete.places[k]], complete.samples) for k, part in enumerate(parts)]
    return IMGProblem(parts, chosen, gapped + whole)


def solve(
    problem: IMGProblem, weights: IMGWeights, codes: Array, laplacian: Array, max_iter: int, tol: float
) -> IMGSolution:
    """Iterate from given codes and a matrix instead of the Laplacian of the graph until P and Q agree.

    Raises
    ------
    SolutionError
        If a linear system cannot be solved, numbers overflow, or the bases shrink to nothing.
    """
    smooth, multipliers, penalty = codes, np.zeros_like(codes), _PENALTY_START
    laplacian = (laplacian + laplacian.T) / 2
    residual: list[float] = []
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # detected by the check of the residual
            while len(residual) < max_iter:
                bases = basis_step(problem, codes, weights.ridge)
                codes = code_step(problem, bases, smooth, multipliers, penalty)
                # The given first matrix may have negative eigenvalues, Laplacians of graphs have none
                smooth = smooth_step(
                    laplacian, codes, multipliers, weights.smoothness, penalty, definite=bool(residual)
                )
                affinity = graph_step(smooth, weights.smoothness / (4 * weights.graph))
                laplacian = graph_laplacian(affinity)
                multipliers = multipliers + penalty * (codes - smooth)
                penalty = min(_PENALTY_GROWTH * penalty, _PENALTY_CAP)
                residual.append(float(np.abs(codes - smooth).max()))
                if not (np.isfinite(residual[-1]) and np.isfinite(laplacian.diagonal()).all()):
                    raise SolutionError(f"The codes of IMG are not finite in iteration {len(residual)}. {_ADVICE}")
                if residual[-1] < tol:
                    break
    except (np.linalg.LinAlgError, linalg.LinAlgWarning) as error:
        raise SolutionError(
            f"IMG cannot solve a linear system in iteration {len(residual) + 1} ({error}). {_ADVICE}"
        ) from None
    pairs = zip(problem.parts, bases, strict=True)
    explained = sum(inner(codes[part.rows].T @ codes[part.rows], basis @ basis.T) for part, basis in pairs)
    if not explained > COLLAPSED * sum(part.energy for part in problem.parts):
        raise SolutionError(
            "The bases of IMG explain nothing of the data: they have shrunk to zero. Lower ridge_weight."
        )
    return IMGSolution(codes, bases, affinity, np.array(residual))


def basis_step(problem: IMGProblem, codes: Array, ridge: float) -> list[Array]:
    """Return U = (PᵀP + λI)⁻¹ PᵀX for every view."""
    bases = []
    for part in problem.basis_parts:
        chosen = codes[part.rows]
        gram = chosen.T @ chosen + ridge * np.eye(codes.shape[1])
        bases.append(np.linalg.solve(gram, np.asarray(part.matrix.T @ chosen).T))
    return bases


def code_step(problem: IMGProblem, bases: list[Array], smooth: Array, multipliers: Array, penalty: float) -> Array:
    """Return P: each row (2 Σ xUᵀ − y + μq)(2 Σ UUᵀ + μI)⁻¹, summed over the views that the sample has."""
    target = penalty * smooth - multipliers
    for part, basis in zip(problem.parts, bases, strict=True):
        target[part.rows] += 2 * part.project(basis)
    grams = np.stack([basis @ basis.T for basis in bases])
    codes = np.empty_like(target)
    for group in problem.patterns:
        system = 2 * grams[list(group.places)].sum(axis=0) + penalty * np.eye(target.shape[1])
        codes[group.samples] = np.linalg.solve(system, target[group.samples].T).T
    return codes


def smooth_step(
    laplacian: Array, codes: Array, multipliers: Array, smoothness: float, penalty: float, *, definite: bool
) -> Array:
    """Return Q = (2βL + μI)⁻¹(Y + μP) for a symmetric L, the Laplacian of a graph if ``definite``."""
    system = 2 * smoothness * laplacian
    system.flat[:: len(system) + 1] += penalty
    target = multipliers + penalty * codes
    if definite:
        # Symmetric: the transpose is the same matrix, in the memory order that LAPACK needs
        return np.asarray(linalg.cho_solve(linalg.cho_factor(system.T, overwrite_a=True, check_finite=False), target))
    with warnings.catch_warnings():
        warnings.simplefilter("error", linalg.LinAlgWarning)
        return np.asarray(linalg.solve(system, target, assume_a="sym", check_finite=False))


def graph_step(smooth: Array, spread: float) -> Array:
    """Return A from distances d = β/4γ ‖qᵢ − qⱼ‖²: max((1 + Σₗ dᵢₗ)/n − dⱼᵢ, 0), made symmetric.

    Without the max, every column is the best one that sums to 1; with it the sums may differ from 1.
    """
    distances = cdist(smooth, smooth, "sqeuclidean")
    distances *= spread
    affinity = np.subtract((1 + distances.sum(axis=0)) / len(smooth), distances, out=distances)
    np.maximum(affinity, 0, out=affinity)
    return np.asarray((affinity + affinity.T) / 2)


def normalized_cut(affinity: Array, n_vectors: int) -> Array:
    """Return T V, with V the leading eigenvectors of T A T, T = diag(A1)^(−1/2) and A without loops.

    Raises
    ------
    SolutionError
        If all links are equal, so that no cut is better than another.
    """
    weights = affinity.copy()
    np.fill_diagonal(weights, np.nan)
    if not np.nanmax(weights) - np.nanmin(weights) > 1e-12 * np.nanmax(weights):
        raise SolutionError(
            "All links of the graph that IMG has learned are equal. Lower graph_weight, raise smoothness_weight, or "
            "use output='codes'."
        )
    np.fill_diagonal(weights, 0)
    degrees = weights.sum(axis=1)
    isolated = degrees == 0
    if isolated.any():
        warn_user(
            f"{int(isolated.sum())} sample(s) have no link in the graph that IMG has learned; their group is "
            "arbitrary. Raise graph_weight, or use output='codes'."
        )
    factor = np.where(isolated, 0.0, 1 / np.sqrt(np.where(isolated, 1.0, degrees)))
    weights *= factor
    weights *= factor[:, None]
    n = len(weights)
    vectors = linalg.eigh(weights, subset_by_index=[max(n - n_vectors, 0), n - 1], overwrite_a=True)[1]
    return np.asarray(factor[:, None] * vectors)
