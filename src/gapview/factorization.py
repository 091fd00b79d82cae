"""Algorithm 1: the problem, its three closed-form steps, and the one loop.

Per view k, with weights a_ij between a sample i that has the view and a sample j that has a code in it::

    min  Σₖ Σᵢⱼ aₖᵢⱼ ‖xᵢ − pⱼUₖ‖²  +  λ1 Σₖ Σ_{j tied} ‖pⱼ − zⱼ‖²  +  λ2 Σₖ ‖Pₖ‖₁     subject to UₖUₖᵀ = I

The graph of the paper is the case in which i and j run over the same samples. Nothing below knows where the weights
come from: a graph that reaches across views gives the same problem with more rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from .views import Array, Matrix

__all__ = ["Problem", "Solution", "ViewTerm", "Weights", "build_problem", "consensus_step", "solve"]


@dataclass(frozen=True)
class Weights:
    """The two penalties of Eq. (4): λ1 ties the codes of a sample, λ2 makes them sparse."""

    consensus: float
    sparsity: float


@dataclass(frozen=True)
class ViewTerm:
    """One view's part of the problem; row r speaks of the sample ``rows[r]``."""

    rows: Array  # samples that have a code in this view
    degrees: Array  # dⱼ = Σᵢ aᵢⱼ, all above 0
    tied: Array  # 1.0 where the sample has codes in at least two views, else 0.0
    constant: float  # Σᵢⱼ aᵢⱼ‖xᵢ‖², which no step can change
    smoothed: Array | None  # H = AᵀX for dense X …
    features: Matrix | None  # … and X with Aᵀ for sparse X, since AᵀX is many times denser
    weights: sparse.csr_array | None

    @property
    def n_features(self) -> int:
        """Number of features of the view."""
        matrix = self.features if self.smoothed is None else self.smoothed
        return int(matrix.shape[1])  # type: ignore[union-attr]

    def project(self, basis: Array) -> Array:
        """Return HUᵀ."""
        if self.smoothed is not None:
            return np.asarray(self.smoothed @ basis.T)
        return np.asarray(self.weights @ (self.features @ basis.T))

    def correlate(self, codes: Array) -> Array:
        """Return HᵀP."""
        if self.smoothed is not None:
            return np.asarray(self.smoothed.T @ codes)
        return np.asarray(self.features.T @ (self.weights.T @ codes))  # type: ignore[union-attr]


@dataclass(frozen=True)
class Problem:
    """Everything the loop needs of the data; it depends on scaling and graph only, not on λ1, λ2 or K."""

    terms: tuple[ViewTerm, ...]
    n_codes: Array  # for every sample the number of views in which it has a code

    @property
    def n_samples(self) -> int:
        """Number of samples in all views together."""
        return len(self.n_codes)


@dataclass(frozen=True)
class Solution:
    """Where the loop ended."""

    bases: list[Array]  # Uₖ, K × mₖ
    codes: list[Array]  # Pₖ, a row for each of the term's rows
    consensus: Array  # Z: for every sample the mean of its codes, zero where it has none
    objective: Array  # after every iteration, constant term included
    n_iter: int
    converged: bool


def build_problem(
    features: Sequence[Matrix], graphs: Sequence[sparse.csr_array], targets: Sequence[Array], n_samples: int
) -> Problem:
    """Set up the problem from scaled views and weights between samples.

    Parameters
    ----------
    features : sequence of arrays or csr_arrays
        Xₖ, the present rows of every view, scaled.
    graphs : sequence of csr_array
        Aₖ; row i belongs to row i of Xₖ, column j to the sample ``targets[k][j]``.
    targets : sequence of int arrays
        For every view the samples that the columns of its graph stand for.
    n_samples : int
        Number of samples in all views together.
    """
    degrees = [np.asarray(graph.sum(axis=0)).ravel() for graph in graphs]
    linked = [degree > 0 for degree in degrees]  # a sample that nothing reaches has no code from this view
    rows = [target[link] for target, link in zip(targets, linked, strict=True)]
    n_codes = np.bincount(np.concatenate(rows), minlength=n_samples)
    terms = []
    for matrix, graph, degree, link, row in zip(features, graphs, degrees, linked, rows, strict=True):
        reach = sparse.csr_array(graph[:, link].T) if not link.all() else sparse.csr_array(graph.T)
        is_sparse = sparse.issparse(matrix)
        terms.append(
            ViewTerm(
                rows=row,
                degrees=degree[link].astype(matrix.dtype),
                tied=(n_codes[row] >= 2).astype(matrix.dtype),
                constant=float(np.asarray(graph.sum(axis=1)).ravel().astype(np.float64) @ _squared_lengths(matrix)),
                smoothed=None if is_sparse else np.asarray(reach @ matrix),
                features=matrix if is_sparse else None,
                weights=reach if is_sparse else None,
            )
        )
    return Problem(tuple(terms), n_codes)


def _squared_lengths(matrix: Matrix) -> Array:
    if sparse.issparse(matrix):
        return np.asarray(matrix.multiply(matrix).sum(axis=1, dtype=np.float64)).ravel()
    return np.asarray(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))


def basis_step(correlation: Array) -> Array:
    """Eq. (9): from HᵀP = BΣJᵀ the basis U = JBᵀ.

    A view with fewer features than components would need columns of zeros to have UUᵀ = I. The thin decomposition gives
    that basis without its zero columns: then UᵀU = I, and no other step changes.
    """
    left, _, right = np.linalg.svd(correlation, full_matrices=False)
    return np.asarray((left @ right).T)


def code_step(projected: Array, term: ViewTerm, consensus: Array, weights: Weights) -> Array:
    """Eq. (13): codes from HUᵀ and the consensus, each shrunk towards zero by λ2 / 2m."""
    tie = weights.consensus * term.tied
    mass = (term.degrees + tie)[:, None]
    target = (projected + tie[:, None] * consensus[term.rows]) / mass
    threshold = weights.sparsity / (2 * mass)
    # x − clip(x, −t, t) is sign(x)·max(|x| − t, 0) in two passes instead of four
    return np.asarray(target - np.clip(target, -threshold, threshold), dtype=projected.dtype)


def consensus_step(problem: Problem, codes: Sequence[Array]) -> Array:
    """Eq. (15): for every sample the mean of the codes it has."""
    total = np.zeros((problem.n_samples, codes[0].shape[1]), dtype=np.result_type(*codes))
    for term, code in zip(problem.terms, codes, strict=True):
        total[term.rows] += code
    return np.asarray(total / np.maximum(problem.n_codes, 1)[:, None].astype(total.dtype))


def objective_value(
    problem: Problem, projected: Sequence[Array], codes: Sequence[Array], consensus: Array, weights: Weights
) -> float:
    """Eq. (4), from HUᵀ, which the code step has needed anyway; summed in double precision."""
    value = 0.0
    for term, product, code in zip(problem.terms, projected, codes, strict=True):
        gap = code - consensus[term.rows]
        value += term.constant
        value += _sum(code * (term.degrees[:, None] * code - 2 * product))
        value += weights.consensus * _sum(term.tied[:, None] * gap * gap) + weights.sparsity * _sum(np.abs(code))
    return value


def _sum(values: Array) -> float:
    return float(np.sum(values, dtype=np.float64))


def solve(problem: Problem, weights: Weights, start: Sequence[Array], max_iter: int, tol: float) -> Solution:
    """Run Algorithm 1 from the given codes.

    Every step minimises the objective over one block of variables with the others fixed, so the objective never rises
    (Theorem 1). Stops when its relative change is at most ``tol``; with ``tol=0`` after ``max_iter`` iterations.
    """
    codes = [np.array(code) for code in start]
    bases: list[Array] = [np.empty(0)] * len(codes)
    projected = list(bases)
    consensus = consensus_step(problem, codes)
    objective: list[float] = []
    converged = False
    while len(objective) < max_iter and not converged:
        for k, term in enumerate(problem.terms):
            bases[k] = basis_step(term.correlate(codes[k]))
            projected[k] = term.project(bases[k])
            codes[k] = code_step(projected[k], term, consensus, weights)
        consensus = consensus_step(problem, codes)
        objective.append(objective_value(problem, projected, codes, consensus, weights))
        converged = tol > 0 and len(objective) > 1 and abs(objective[-2] - objective[-1]) <= tol * abs(objective[-2])
    return Solution(bases, codes, consensus, np.asarray(objective), len(objective), converged)
