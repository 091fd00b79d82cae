"""``MIC``: multi-incomplete-view clustering by weighted non-negative factorisation of filled views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..clusters import cluster_rows
from ..estimators.base import MultiViewClusterer
from ..persist.registry import storable_method
from ..utils.parameters import check_choice, check_flag, check_integer, check_real
from ..utils.types import Array
from ..views import Views
from ._filling import mean_filled
from ._nonnegative import (
    NONNEGATIVE,
    Observed,
    basis_step,
    demand_factors,
    floor_of,
    inner,
    multiply_quotient,
    observe,
    own_factors,
    random_factors,
    scaled_nonnegative,
    take_scale,
)

_N_CYCLES = 3  # times that the start goes through all views


@storable_method
class MIC(MultiViewClusterer):
    """Multi-incomplete-view clustering (MIC).

    Missing rows of a view are filled with the mean of its present rows, and count less: wᵥᵢ is 1 for a present row and
    the share of samples that have the view for a filled one. Every view has non-negative codes Pᵥ of all samples and
    a non-negative basis Uᵥ, and all codes are drawn to consensus codes P*::

        min  Σᵥ ‖diag(wᵥ)(Xᵥ − PᵥUᵥ)‖²  +  α ‖diag(wᵥ)(Pᵥ − P*)‖²  +  β Σᵢ ‖pᵥᵢ‖₂      Pᵥ, Uᵥ, P* ≥ 0

    Filled views are dense, whatever came: memory grows with samples × features.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups.
    n_components : int, optional
        Length K of the codes; by default the number of groups.
    consensus_weight : float, default=0.01
        α: how firmly the codes of one sample are tied to each other.
    sparsity_weight : float, default=0.01
        β: how firmly whole codes are drawn to zero. It has to follow the scale of the data: 0.01 to 0.1 suits rows of
        unit length.
    normalize : bool, default=True
        Scale consensus codes to unit length before k-means, as the other methods do. The authors do not
        (``normalize=False``), and it costs accuracy.
    nonnegative : {"raise", "shift", "clip"}, default="raise"
        What to do with negative values: refuse them, subtract the lowest value of the view and scale its rows again,
        or set them to 0. Views without negative values are left alone.
    scale : {"unit", "center+unit", "standard", "standard+view", "standard+unit", None}, default="unit"
        Scale rows to unit length, centre features before that, standardise features, both, or leave the values alone.
    init : "random" or pair (codes, bases), default="random"
        Start. ``"random"``: the views are factorised one after the other, three times round, each from the codes of
        the one before, so that components of the views correspond. Or given: the codes as an array of shape
        (n_samples, n_components) or as one such array for each view, and for each view a basis of shape
        (n_components, n_features), in lists or in dicts with the names of the views.
    max_iter : int, default=30
        Most rounds. Reaching it is usual and no cause for a warning.
    n_steps : int, default=100
        Steps for each view in a round, and for each factorisation of the start.
    tol : float, default=1e-12
        Stop when ‖P* − P*_old‖² falls below this in a round.
    partial_rows : {"raise", "fill", "drop"}, default="raise"
        What to do with rows that have some but not all values, see :class:`gapview.Views`.
    random_state : int, RandomState or None, default=None
        Seed of the start and of k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Group of every sample.
    embedding_ : array of shape (n_samples, n_components)
        P*, not scaled.
    codes_ : list of arrays of shape (n_samples, n_components)
        Pᵥ.
    bases_ : list of arrays of shape (n_components, n_features)
        Uᵥ, rows of which sum to 1.
    objective_ : array of shape (n_iter_,)
        Value of the problem above after every round. It falls but for small rises, since bringing rows of the basis to
        sum 1 changes the terms of α and β.
    n_iter_ : int
        Rounds done.

    References
    ----------
    W. Shao, L. He, P. S. Yu: Multiple Incomplete Views Clustering via Weighted Nonnegative Matrix Factorization with
    L2,1 Regularization. ECML PKDD, 2015.

    Examples
    --------
    >>> from gapview.baselines import MIC
    >>> from gapview.datasets import make_views
    >>> from gapview.metrics import clustering_scores
    >>> data = make_views(n_samples=200, n_clusters=3, missing_rate=0.3, random_state=0)
    >>> model = MIC(n_clusters=3, nonnegative="shift", max_iter=5, random_state=0).fit(data.views)
    >>> model.labels_.shape, model.embedding_.shape
    ((200,), (200, 3))
    >>> clustering_scores(data.target, model.labels_)["accuracy"] > 0.9
    True
    """

    codes_: list[Array]
    bases_: list[Array]
    objective_: Array
    n_iter_: int

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_components: int | None = None,
        consensus_weight: float = 0.01,
        sparsity_weight: float = 0.01,
        normalize: bool = True,
        nonnegative: str = "raise",
        scale: str | None = "unit",
        init: Any = "random",
        max_iter: int = 30,
        n_steps: int = 100,
        tol: float = 1e-12,
        partial_rows: str = "raise",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.consensus_weight = consensus_weight
        self.sparsity_weight = sparsity_weight
        self.normalize = normalize
        self.nonnegative = nonnegative
        self.scale = scale
        self.init = init
        self.max_iter = max_iter
        self.n_steps = n_steps
        self.tol = tol
        self.partial_rows = partial_rows
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_components", self.n_components, low=1, also=[None])
        check_real("consensus_weight", self.consensus_weight, low=0)
        check_real("sparsity_weight", self.sparsity_weight, low=0)
        check_flag("normalize", self.normalize)
        check_choice("nonnegative", self.nonnegative, NONNEGATIVE)
        check_integer("max_iter", self.max_iter, low=1)
        check_integer("n_steps", self.n_steps, low=1)
        check_real("tol", self.tol, low=0)

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        terms = self._terms(views)
        codes, bases = self._start(terms, views, random_state)
        for code, basis in zip(codes, bases, strict=True):
            take_scale([basis], code, basis.sum(axis=1))
        weights = Weights(self.consensus_weight, self.sparsity_weight)
        self.embedding_, objective = solve(terms, weights, codes, bases, self.max_iter, self.n_steps, self.tol)
        demand_factors([term.data for term in terms], codes, bases, self.embedding_, views)
        self.codes_, self.bases_ = codes, bases
        self.objective_, self.n_iter_ = np.array(objective), len(objective)
        clustering = cluster_rows(self.embedding_, self.n_clusters, random_state, normalize=bool(self.normalize))
        self.labels_ = clustering.labels

    def _terms(self, views: Views) -> list[Term]:
        present = scaled_nonnegative(views, self.scale, self.nonnegative)
        filled = mean_filled([part.matrix for part in present], views)
        weights = np.where(views.mask, 1.0, views.mask.mean(axis=0))
        return [build_term(matrix, weights[:, v]) for v, matrix in enumerate(filled)]

    def _start(
        self, terms: list[Term], views: Views, random_state: np.random.RandomState
    ) -> tuple[list[Array], list[Array]]:
        n_components, dtype = self.n_components or self.n_clusters, terms[0].squares.dtype
        if isinstance(self.init, str) and self.init == "random":
            return chained_start([term.data for term in terms], n_components, self.n_steps, random_state)
        rows = [term.data.rows for term in terms]
        return own_factors(self.init, "'random'", views, rows, n_components, dtype)


@dataclass(frozen=True)
class Weights:
    """The two penalties: α ties the codes of a sample, β draws whole codes to zero."""

    consensus: float
    sparsity: float


@dataclass(frozen=True)
class Term:
    """One view's part of the problem."""

    data: Observed  # all rows, present or filled
    squares: Array  # w²
    energy: float  # ‖diag(w)X‖²


def build_term(matrix: Array, weights: Array) -> Term:
    """Weigh the rows of a filled view, all by more than 0."""
    squares = (weights**2).astype(matrix.dtype)
    energy = float(np.einsum("i,im,im->", squares, matrix, matrix, dtype=np.float64))
    return Term(observe(matrix, np.arange(len(matrix))), squares, energy)


def chained_start(
    parts: Sequence[Observed], n_components: int, n_steps: int, random_state: np.random.RandomState
) -> tuple[list[Array], list[Array]]:
    """Factorise the views in turn without weights, each from the codes of the one before, three times round."""
    n_samples, dtype = parts[0].matrix.shape[0], parts[0].matrix.dtype
    code, _ = random_factors(n_samples, [], n_components, random_state, dtype)
    codes: list[Array] = []
    bases: list[Array] = []
    for _ in range(_N_CYCLES):
        codes, bases = [], []
        for part in parts:
            code = code.copy()
            basis = random_state.uniform(size=(n_components, part.matrix.shape[1])).astype(dtype)
            for _ in range(n_steps):
                basis_step(part, code, basis)  # first, so that the fresh basis follows the codes and not they it
                multiply_quotient(code, part.project(basis), code @ (basis @ basis.T))
            take_scale([basis], code, basis.sum(axis=1))
            codes.append(code)
            bases.append(basis)
    return codes, bases


def solve(
    terms: Sequence[Term],
    weights: Weights,
    codes: list[Array],
    bases: list[Array],
    max_iter: int,
    n_steps: int,
    tol: float,
) -> tuple[Array, list[float]]:
    """Alternate between views and consensus, on the factors in place; return the consensus and the objective."""
    consensus = weighted_mean(terms, codes)
    objective: list[float] = []
    for _ in range(max_iter):
        for term, code, basis in zip(terms, codes, bases, strict=True):
            inner_steps(term, weights, code, basis, consensus, n_steps)
        before, consensus = consensus, weighted_mean(terms, codes)
        triples = zip(terms, codes, bases, strict=True)
        objective.append(sum(view_value(term, weights, code, basis, consensus) for term, code, basis in triples))
        if inner(consensus - before, consensus - before) < tol:
            break
    return consensus, objective


def weighted_mean(terms: Sequence[Term], codes: Sequence[Array]) -> Array:
    """Return P*: for every sample the mean of its codes, those from filled rows counting less."""
    total = np.zeros_like(codes[0])
    for term, code in zip(terms, codes, strict=True):
        total += term.squares[:, None] * code
    return np.asarray(total / np.sum([term.squares for term in terms], axis=0)[:, None])


def inner_steps(term: Term, weights: Weights, codes: Array, basis: Array, consensus: Array, n_steps: int) -> None:
    """Update codes and basis of a view ``n_steps`` times for a given consensus, in place.

    With N the lengths of the codes and w² taken out of numerator and denominator of the first line::

        P ← P ∘ √( [XUᵀ + αP*] ⊘ [PUUᵀ + αP + β/(2w²) P/N] )
        U ← U ∘ √( [Pᵀw²X] ⊘ [Pᵀw²PU] ),  then rows of U to sum 1
    """
    pulled = weights.consensus * consensus
    halves = weights.sparsity / (2 * term.squares[:, None])
    for _ in range(n_steps):
        numerator = term.data.project(basis)
        numerator += pulled
        lengths = np.sqrt(np.einsum("ik,ik->i", codes, codes))
        denominator = codes @ (basis @ basis.T)
        denominator += weights.consensus * codes
        denominator += halves * (codes / np.maximum(lengths, floor_of(lengths))[:, None])
        multiply_quotient(codes, numerator, denominator, root=True)
        weighted = term.squares[:, None] * codes
        multiply_quotient(basis, term.data.correlate(weighted), (weighted.T @ codes) @ basis, root=True)
        take_scale([basis], codes, basis.sum(axis=1))


def view_value(term: Term, weights: Weights, codes: Array, basis: Array, consensus: Array) -> float:
    """Return ‖diag(w)(X − PU)‖² + α‖diag(w)(P − P*)‖² + β Σᵢ ‖pᵢ‖."""
    weighted = term.squares[:, None] * codes
    fit = inner(weighted.T @ codes, basis @ basis.T) - 2 * inner(term.data.project(basis), weighted)
    apart = codes - consensus
    lengths = np.linalg.norm(codes, axis=1).sum(dtype=np.float64)
    ties = inner(term.squares[:, None] * apart, apart)
    return max(term.energy + fit, 0.0) + weights.consensus * ties + weights.sparsity * float(lengths)
