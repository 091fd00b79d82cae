"""IMG: the problem, its closed-form steps, the iteration, and the normalised cut of the learned graph."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.spatial.distance import cdist

from ..errors import GapviewWarning, InputError, SolutionError
from ..scaling import row_lengths
from ..utils.types import Array, Matrix
from ..utils.warnings import warn_user
from ..views import Views

_PENALTY_START, _PENALTY_GROWTH, _PENALTY_CAP = 0.1, 1.1, 1e10
_ADVICE = "Use a scaling such as scale='unit', smaller weights, or another init."


@dataclass(frozen=True)
class IMGWeights:
    """λ, β and γ of the problem."""

    ridge: float
    smoothness: float
    graph: float


@dataclass(frozen=True)
class IMGProblem:
    """The present rows of the views, and which of them the bases are learned from."""

    matrices: list[Matrix]
    rows: list[Array]  # samples that the rows of each view belong to
    patterns: list[tuple[Array, Array]]  # sets of views, and the samples that have exactly these
    basis_matrices: list[Matrix]
    basis_rows: list[Array]


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
    matrices = [matrix.astype(np.float64, copy=False) for matrix in scaled]
    rows = [views.rows(k) for k in range(views.n_views)]
    kinds, kind = np.unique(views.mask, axis=0, return_inverse=True)
    patterns = [(np.flatnonzero(has), np.flatnonzero(kind.ravel() == j)) for j, has in enumerate(kinds)]
    if basis_from == "all":
        return IMGProblem(matrices, rows, patterns, matrices, rows)
    complete: Array = np.asarray(views.mask.all(axis=1))
    if not complete.any():
        raise InputError(
            f"IMG with basis_from='complete' learns from samples that have all {views.n_views} views; none of the "
            f"{views.n_samples} samples has. Use basis_from='all', or leave out the views that few samples have."
        )
    whole = [matrix[complete[row]] for matrix, row in zip(matrices, rows, strict=True)]
    return IMGProblem(matrices, rows, patterns, whole, [np.flatnonzero(complete)] * views.n_views)


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
                if not np.isfinite(residual[-1]):
                    raise SolutionError(f"The codes of IMG are not finite in iteration {len(residual)}. {_ADVICE}")
                if residual[-1] < tol:
                    break
    except (np.linalg.LinAlgError, linalg.LinAlgWarning) as error:
        raise SolutionError(
            f"IMG cannot solve a linear system in iteration {len(residual) + 1} ({error}). {_ADVICE}"
        ) from None
    if _collapsed(problem, codes, bases):
        raise SolutionError(
            "The bases of IMG explain nothing of the data: they have shrunk to zero. Lower ridge_weight."
        )
    return IMGSolution(codes, bases, affinity, np.array(residual))


def _collapsed(problem: IMGProblem, codes: Array, bases: list[Array]) -> bool:
    explained = sum(
        np.sum((codes[rows].T @ codes[rows]) * (basis @ basis.T))
        for rows, basis in zip(problem.rows, bases, strict=True)
    )
    total = sum(np.sum(row_lengths(matrix) ** 2) for matrix in problem.matrices)
    return not explained > 1e-12 * total


def basis_step(problem: IMGProblem, codes: Array, ridge: float) -> list[Array]:
    """Return U = (PᵀP + λI)⁻¹ PᵀX for every view."""
    bases = []
    for matrix, rows in zip(problem.basis_matrices, problem.basis_rows, strict=True):
        chosen = codes[rows]
        gram = chosen.T @ chosen + ridge * np.eye(codes.shape[1])
        bases.append(np.linalg.solve(gram, np.asarray(matrix.T @ chosen).T))
    return bases


def code_step(problem: IMGProblem, bases: list[Array], smooth: Array, multipliers: Array, penalty: float) -> Array:
    """Return P: each row (2 Σ xUᵀ − y + μq)(2 Σ UUᵀ + μI)⁻¹, summed over the views that the sample has."""
    target = penalty * smooth - multipliers
    for matrix, rows, basis in zip(problem.matrices, problem.rows, bases, strict=True):
        target[rows] += 2 * np.asarray(matrix @ basis.T)
    grams = np.stack([basis @ basis.T for basis in bases])
    codes = np.empty_like(target)
    for views, rows in problem.patterns:
        system = 2 * grams[views].sum(axis=0) + penalty * np.eye(target.shape[1])
        codes[rows] = np.linalg.solve(system, target[rows].T).T
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


def graph_laplacian(affinity: Array) -> Array:
    """Return diag(A1) − A."""
    laplacian = -affinity
    laplacian.flat[:: len(affinity) + 1] += affinity.sum(axis=1)
    return np.asarray(laplacian)


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
            "arbitrary. Raise graph_weight, or use output='codes'.",
            GapviewWarning,
        )
    factor = np.where(isolated, 0.0, 1 / np.sqrt(np.where(isolated, 1.0, degrees)))
    weights *= factor
    weights *= factor[:, None]
    n = len(weights)
    vectors = linalg.eigh(weights, subset_by_index=[max(n - n_vectors, 0), n - 1], overwrite_a=True)[1]
    return np.asarray(factor[:, None] * vectors)
