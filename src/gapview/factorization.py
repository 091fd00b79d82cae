"""Algorithm 1: the problem, its three closed-form steps, and the one loop.

Per view k, with weights a_ij between a sample i that has the view and a sample j that has a code in it::

    min  Σₖ Σᵢⱼ aₖᵢⱼ ‖xᵢ − pⱼUₖ‖²  +  λ1 Σₖ Σ_{j tied} ‖pⱼ − zⱼ‖²  +  λ2 Σₖ ‖Pₖ‖₁     subject to UₖUₖᵀ = I

The graph of the paper is the case in which i and j run over the same samples. Nothing below knows where the weights
come from: a graph that reaches across views gives the same problem with more rows.

The codes of all views stand in one array, view after view: the code step and the consensus treat every row alike, and
within an iteration no view's step depends on another's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from scipy import sparse

from .errors import SolutionError
from .views import Array, Matrix

__all__ = ["Problem", "Solution", "ViewTerm", "Weights", "build_problem", "solve"]


@dataclass(frozen=True)
class Weights:
    """The two penalties of Eq. (4): λ1 ties the codes of a sample, λ2 makes them sparse."""

    consensus: float
    sparsity: float

    def __post_init__(self) -> None:
        # A NumPy scalar would turn codes of single precision into double.
        object.__setattr__(self, "consensus", float(self.consensus))
        object.__setattr__(self, "sparsity", float(self.sparsity))


class SampleWeights(Protocol):
    """Weights between samples: a csr_array, or anything that can be multiplied and cut like one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows and of columns."""

    @property
    def T(self) -> Self:
        """The weights seen from the other side."""

    def __matmul__(self, values: Any) -> Any:
        """Add up the rows of ``values``, weighted."""

    def __getitem__(self, part: Any) -> Any:
        """Keep some of the columns."""


@dataclass(frozen=True)
class ViewTerm:
    """One view's smoothed features H = AᵀX, kept as H for dense X and as A and X for sparse X.

    AᵀX of a sparse X is many times denser than X, so that two sparse products cost less than one with H.
    """

    part: slice  # where the codes of this view stand among those of all views
    n_features: int
    smoothed: Array | None
    features: Matrix | None = None
    weights: SampleWeights | None = None  # Aᵀ

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
    rows: Array  # for every code the sample it belongs to
    degrees: Array  # for every code dⱼ = Σᵢ aᵢⱼ, above 0
    n_codes: Array  # for every sample the number of views in which it has a code
    constant: float  # Σₖᵢⱼ aₖᵢⱼ‖xᵢ‖², which no step can change

    @property
    def n_samples(self) -> int:
        """Number of samples in all views together."""
        return len(self.n_codes)

    @property
    def tied(self) -> Array:
        """For every code 1 if its sample has codes in at least two views, else 0."""
        return (self.n_codes[self.rows] >= 2).astype(self.degrees.dtype)

    @property
    def averaging(self) -> sparse.csr_array:
        """The matrix that takes codes to the consensus, Eq. (15): for every sample the mean of the codes it has."""
        shares = 1 / self.n_codes[self.rows].astype(self.degrees.dtype)
        shape = (self.n_samples, len(self.rows))
        return sparse.csr_array((shares, (self.rows, np.arange(len(self.rows)))), shape=shape)


@dataclass(frozen=True)
class Solution:
    """Where the loop ended."""

    bases: list[Array]  # Uₖ, K × mₖ
    codes: list[Array]  # Pₖ, a row for each code of the view
    consensus: Array  # Z: for every sample the mean of its codes, zero where it has none
    objective: Array  # after every iteration, constant term included
    n_iter: int
    converged: bool


# Overflow is found where its results arrive, and then said in words.
_quiet = np.errstate(over="ignore", invalid="ignore")


def _demand_finite(values: Array | float, dtype: Any) -> None:
    if not np.isfinite(values).all():
        raise SolutionError(
            f"The factorisation has met numbers that are too large for {np.dtype(dtype)}. Scale the data "
            "(scale='unit' or 'standard'); lower consensus_weight, sparsity_weight, and the values of your own graph "
            "or init, if they are large."
        )


@_quiet
def build_problem(
    features: Sequence[Matrix], graphs: Sequence[SampleWeights], targets: Sequence[Array], n_samples: int
) -> Problem:
    """Set up the problem from scaled views and weights between samples.

    Parameters
    ----------
    features : sequence of arrays or csr_arrays
        Xₖ, the present rows of every view, scaled.
    graphs : sequence of csr_array or other weights
        Aₖ; row i belongs to row i of Xₖ, column j to the sample ``targets[k][j]``.
    targets : sequence of int arrays
        For every view the samples that the columns of its graph stand for.
    n_samples : int
        Number of samples in all views together.
    """
    terms, rows, degrees, constant, begin = [], [], [], 0.0, 0
    for matrix, graph, target in zip(features, graphs, targets, strict=True):
        degree = np.asarray(graph.T @ np.ones(graph.shape[0], dtype=matrix.dtype))
        linked = degree > 0  # a sample that nothing reaches has no code from this view
        reach = graph.T if linked.all() else graph[:, linked].T
        reach = sparse.csr_array(reach) if sparse.issparse(reach) else reach
        part = slice(begin, begin + reach.shape[0])
        if sparse.issparse(matrix):
            terms.append(ViewTerm(part, matrix.shape[1], None, matrix, reach))
        else:
            terms.append(ViewTerm(part, matrix.shape[1], np.asarray(reach @ matrix)))
        rows.append(target[linked])
        degrees.append(degree[linked].astype(matrix.dtype))
        weight_of_rows = np.asarray(graph @ np.ones(graph.shape[1], dtype=matrix.dtype))
        constant += float(weight_of_rows.astype(np.float64) @ _squared_lengths(matrix))
        begin = part.stop
    _demand_finite(constant, degrees[0].dtype)
    stacked = np.concatenate(rows)
    n_codes = np.bincount(stacked, minlength=n_samples)
    return Problem(tuple(terms), stacked, np.concatenate(degrees), n_codes, constant)


def _squared_lengths(matrix: Matrix) -> Array:
    if sparse.issparse(matrix):
        return np.asarray(matrix.multiply(matrix).sum(axis=1, dtype=np.float64)).ravel()
    return np.asarray(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))


def basis_step(correlation: Array) -> Array:
    """Eq. (9): from HᵀP = BΣJᵀ the basis U = JBᵀ.

    A view with fewer features than components would need columns of zeros to have UUᵀ = I. The thin decomposition
    gives that basis without its zero columns: then UᵀU = I, and no other step changes.
    """
    _demand_finite(correlation, correlation.dtype)
    left, _, right = np.linalg.svd(correlation, full_matrices=False)
    return np.asarray((left @ right).T)


def code_step(projected: Array, consensus: Array, mass: Array, tie: Array, sparsity_weight: float) -> Array:
    """Eq. (13): codes from HUᵀ and the consensus rows of their samples, each shrunk towards zero by λ2 / 2m.

    ``tie`` is λ1 for tied codes and 0 for others, ``mass`` is m = d + tie; both are columns.
    """
    target = (projected + tie * consensus) / mass
    threshold = sparsity_weight / (2 * mass)
    # x − clip(x, −t, t) is sign(x)·max(|x| − t, 0) in fewer passes
    return np.asarray(target - np.clip(target, -threshold, threshold))


def objective_value(
    projected: Array, codes: Array, consensus: Array, degrees: Array, tie: Array, sparsity_weight: float
) -> float:
    """Eq. (7) from HUᵀ, which the code step has needed anyway.

    The terms have the precision of the codes, their sum is double: what remains is the rounding of single terms.
    """
    gap = codes - consensus
    smooth = codes * (degrees * codes - 2 * projected) + tie * (gap * gap) + sparsity_weight * np.abs(codes)
    return float(np.sum(smooth, dtype=np.float64))


@_quiet
def solve(problem: Problem, weights: Weights, start: Sequence[Array], max_iter: int, tol: float) -> Solution:
    """Run Algorithm 1 from the given codes, one array per view.

    Every step minimises the objective over one block of variables with the others fixed, so the objective never rises
    (Theorem 1), up to rounding in the type of the codes. Stops when its relative change is at most ``tol``; with
    ``tol=0`` after ``max_iter`` iterations.

    Raises
    ------
    SolutionError
        If numbers arise that are too large for the type of the codes.
    """
    codes = np.concatenate(start)
    degrees = problem.degrees[:, None]
    tie = np.asarray(weights.consensus * problem.tied, dtype=codes.dtype)[:, None]
    mass = degrees + tie
    averaging = problem.averaging
    consensus = averaging @ codes
    spread = np.take(consensus, problem.rows, axis=0)  # for every code the consensus of its sample
    projected = np.empty_like(codes)
    bases: list[Array] = []
    objective: list[float] = []
    converged = False
    while len(objective) < max_iter and not converged:
        bases = [basis_step(term.correlate(codes[term.part])) for term in problem.terms]
        for term, basis in zip(problem.terms, bases, strict=True):
            projected[term.part] = term.project(basis)
        codes = code_step(projected, spread, mass, tie, weights.sparsity)
        consensus = averaging @ codes
        spread = np.take(consensus, problem.rows, axis=0)
        value = objective_value(projected, codes, spread, degrees, tie, weights.sparsity)
        _demand_finite(value, codes.dtype)
        objective.append(problem.constant + value)
        converged = tol > 0 and len(objective) > 1 and abs(objective[-2] - objective[-1]) <= tol * abs(objective[-2])
    parts = [codes[term.part] for term in problem.terms]
    return Solution(bases, parts, consensus, np.asarray(objective), len(objective), converged)
