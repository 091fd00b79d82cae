"""The problem of Algorithm 1: everything that its solution needs of the data.

Per view k, with weights a_ij between a sample i that has the view and a sample j that has a code in it::

    min  Σₖ Σᵢⱼ aₖᵢⱼ ‖xᵢ − pⱼUₖ‖²  +  λ1 Σₖ Σ_{j tied} ‖pⱼ − zⱼ‖²  +  λ2 Σₖ ‖Pₖ‖₁     subject to UₖUₖᵀ = I

The graph of the paper is the case in which i and j run over the same samples. A graph that reaches across views gives
the same problem with more rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse

from ..compute.arrays import host, like
from ..errors import SolutionError
from ..scaling import row_lengths
from ..utils.types import Array, Matrix


class SampleWeights(Protocol):
    """Weights between samples: a csr_array, or an object with the same products and slices."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows and of columns."""

    @property
    def T(self) -> Self:
        """The transpose."""

    def __matmul__(self, values: Any) -> Any:
        """Return weighted sums of the rows of ``values``."""

    def __getitem__(self, part: Any) -> Any:
        """Return some of the columns."""


class NarrowRows(NamedTuple):
    """The rows of a view on orthonormal directions, within which its basis is sought."""

    rows: Array  # rows × directions
    directions: Array  # features × directions
    lengths: Array  # of the rows with all features


@dataclass(frozen=True)
class ViewTerm:
    """One view's smoothed features H = AᵀX, stored as H for dense X and as A and X for sparse X.

    AᵀX of a sparse X is many times denser than X, so that two sparse products cost less than one with H.
    """

    part: slice  # of the codes of this view among those of all views
    n_features: int  # or directions
    smoothed: Array | None
    features: Matrix | None = None
    weights: SampleWeights | None = None  # Aᵀ
    directions: Array | None = None  # of which H has the columns, features × directions; None: features

    def block(self, part: slice) -> Array:
        """Return some rows of H."""
        return self.smoothed[part]  # type: ignore[index]

    def project(self, basis: Array) -> Array:
        """Return HUᵀ."""
        if self.smoothed is not None:
            return self.smoothed @ basis.T
        return np.asarray(self.weights @ (self.features @ basis.T))

    def correlate(self, codes: Array) -> Array:
        """Return HᵀP."""
        if self.smoothed is not None:
            return self.smoothed.T @ codes
        return np.asarray(self.features.T @ (self.weights.T @ codes))  # type: ignore[union-attr]


@dataclass(frozen=True)
class Problem:
    """Everything that the loop needs of the data; it depends on scaling and graph only, not on λ1, λ2 or K.

    The codes of all views are stacked view by view, within a view in the order of the samples.
    """

    terms: tuple[ViewTerm, ...]
    rows: Array  # for every code the index of its sample
    degrees: Array  # for every code dⱼ = Σᵢ aᵢⱼ, above 0
    n_codes: Array  # for every sample the number of views in which it has a code
    constant: float  # Σₖᵢⱼ aₖᵢⱼ‖xᵢ‖², which no step can change

    @property
    def n_samples(self) -> int:
        """Number of samples in all views together."""
        return len(self.n_codes)

    @property
    def n_features(self) -> tuple[int, ...]:
        """Number of features of every view."""
        return tuple(term.n_features for term in self.terms)

    @property
    def is_dense(self) -> bool:
        """Whether H is stored for every view."""
        return all(term.smoothed is not None for term in self.terms)

    def total(self, compute: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``compute(problem, *arguments)``: a problem in arrays is one block."""
        return compute(self, *arguments)

    of_blocks = total

    def without_data(self) -> Problem:
        """Return the problem without the smoothed features, to free their memory."""
        terms = [ViewTerm(term.part, term.n_features, None) for term in self.terms]
        return replace(self, terms=tuple(terms))


def demand_finite(finite: Any, dtype: Any) -> None:
    """Raise a SolutionError unless ``finite`` holds."""
    if not finite:
        raise SolutionError(
            f"The factorisation has reached numbers too large for {str(dtype).removeprefix('torch.')}. Scale the data "
            "(scale='unit' or 'standard'); lower consensus_weight, sparsity_weight, and the values of your own "
            "graph or init, if they are large."
        )


@np.errstate(over="ignore", invalid="ignore")  # demand_finite reports overflow in its results
def build_problem(
    features: Iterable[Matrix], graphs: Sequence[SampleWeights], targets: Sequence[Array], n_samples: int
) -> Problem:
    """Build the problem from scaled views and weights between samples.

    Parameters
    ----------
    features : iterable of arrays, csr_arrays or NarrowRows
        Xₖ, the present rows of every view, scaled. Of an iterator, one view at a time is held in memory.
    graphs : sequence of csr_array or other weights
        Aₖ; row i belongs to row i of Xₖ, column j to the sample ``targets[k][j]``.
    targets : sequence of int arrays
        For every view the samples that belong to the columns of its graph, in ascending order.
    n_samples : int
        Number of samples in all views together.
    """
    terms, rows, degrees, constant = [], [], [], 0.0
    views = iter(features)
    for graph, target in zip(graphs, targets, strict=True):
        matrix, directions, lengths = next(views), None, None
        if isinstance(matrix, NarrowRows):
            matrix, directions, lengths = matrix
        xp = array_namespace(matrix.data if sparse.issparse(matrix) else matrix)
        ones = xp.ones(max(graph.shape), dtype=matrix.dtype, device=None if sparse.issparse(matrix) else matrix.device)
        degree = graph.T @ ones[: graph.shape[0]]
        linked = degree > 0  # a sample without an edge has no code in this view
        reach = graph.T if xp.all(linked) else graph[:, host(linked)].T
        part = slice(0, reach.shape[0])
        if sparse.issparse(matrix):
            weights = sparse.csr_array(reach) if sparse.issparse(reach) else reach  # once for all iterations
            terms.append(ViewTerm(part, matrix.shape[1], None, matrix, weights))
        else:
            terms.append(ViewTerm(part, matrix.shape[1], reach @ matrix, directions=directions))
        rows.append(like(target, degree)[linked])
        degrees.append(xp.astype(degree[linked], matrix.dtype))
        weight_of_rows = xp.astype(graph @ ones[: graph.shape[1]], xp.float64)
        lengths = row_lengths(matrix) if lengths is None else lengths
        constant += float(weight_of_rows @ xp.astype(lengths, xp.float64) ** 2)
        del matrix  # before the next one is computed, which zip would not do
    return stack_terms(terms, rows, degrees, n_samples, constant)


def stack_terms(
    terms: Sequence[ViewTerm], rows: Sequence[Array], degrees: Sequence[Array], n_samples: int, constant: float
) -> Problem:
    """Return the problem of views, given the samples of their codes and the degrees of these.

    The parts of the terms are set here.
    """
    xp = array_namespace(rows[0])
    demand_finite(np.isfinite(constant), degrees[0].dtype)
    ends = np.cumsum([len(own) for own in rows]).tolist()
    placed = [replace(term, part=slice(end - len(own), end)) for term, own, end in zip(terms, rows, ends, strict=True)]
    stacked = xp.concat(rows)
    n_codes = like(np.bincount(host(stacked), minlength=n_samples), stacked)
    return Problem(tuple(placed), stacked, xp.concat(degrees), n_codes, constant)


def join_views(problems: Sequence[Problem]) -> Problem:
    """Return one problem of several views from problems of one view each over the same samples."""
    ends = np.cumsum([len(problem.rows) for problem in problems]).tolist()
    terms = [
        replace(problem.terms[0], part=slice(end - len(problem.rows), end))
        for problem, end in zip(problems, ends, strict=True)
    ]
    xp = array_namespace(problems[0].rows)
    rows, degrees = (xp.concat([getattr(own, name) for own in problems]) for name in ("rows", "degrees"))
    constant = float(sum(problem.constant for problem in problems))
    demand_finite(np.isfinite(constant), degrees.dtype)
    n_codes: Array = sum(own.n_codes for own in problems)  # type: ignore[assignment]
    return Problem(tuple(terms), rows, degrees, n_codes, constant)
