"""``MIC``: multi-incomplete-view clustering by weighted non-negative factorisation of filled views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..utils.types import Array
from ..views import Views
from . import nmf
from .base import baseline
from .concat import mean_filled

_N_CYCLES = 3  # passes of the start over all views


@baseline
class MIC(nmf.NonnegativeBaseline):
    """Multi-incomplete-view clustering (MIC).

    Missing rows of a view are filled with the mean of its present rows, at a lower weight: wᵥᵢ is 1 for a present row
    and the share of samples that have the view for a filled one. Every view has non-negative codes Pᵥ of all samples
    and a non-negative basis Uᵥ, and all codes are drawn to consensus codes P*::

        min  Σᵥ ‖diag(wᵥ)(Xᵥ − PᵥUᵥ)‖²  +  α ‖diag(wᵥ)(Pᵥ − P*)‖²  +  β Σᵢ ‖pᵥᵢ‖₂      Pᵥ, Uᵥ, P* ≥ 0

    Filled views are dense, also if the data are sparse: memory grows with samples × features.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups.
    n_components : int, optional
        Length K of the codes; by default the number of groups.
    consensus_weight : float, default=0.01
        α: weight of the ties between the codes of one sample.
    sparsity_weight : float, default=0.01
        β: weight of the penalty on the lengths of codes. It depends on the scale of the data: 0.01 to 0.1 suits rows of
        unit length.
    normalize : bool, default=True
        Scale consensus codes to unit length before k-means, as the other methods do. The authors do not
        (``normalize=False``), which lowers accuracy.
    nonnegative : {"raise", "shift", "clip"}, default="raise"
        What to do with negative values: raise an error, subtract the lowest value of the view and scale its rows again,
        or set them to 0. Views without negative values do not change.
    kind : str, None, or list or dict of these, default=None
        Kind of the values, such as ``"counts"``, as in :class:`gapview.GRMF`.
    n_top_features : int, None, or list or dict of these, default=None
        Features of a view that are kept, as in :class:`gapview.GRMF`.
    scale : str or None, default="unit"
        Scale rows to unit length, centre features before that, standardise features, both, or leave the values alone.
    init : "random" or pair (codes, bases), default="random"
        Start. ``"random"``: the views are factorised one after the other, in three passes, each from the codes of the
        previous one, so that components of the views correspond. A pair: the codes as an array of shape
        (n_samples, n_components) or as one such array for each view, and for each view a basis of shape
        (n_components, n_features), in lists or in dicts with the names of the views.
    max_iter : int, default=30
        Maximum number of rounds. Reaching it is usual and gives no warning.
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
        Group of every sample. Group 0 is the largest; equal sizes are ordered by the smallest sample id.
    embedding_ : array of shape (n_samples, n_components)
        P*, not scaled.
    codes_ : list of arrays of shape (n_samples, n_components)
        Pᵥ.
    bases_ : list of arrays of shape (n_components, n_features)
        Uᵥ, rows of which sum to 1.
    objective_ : array of shape (n_iter_,)
        Value of the problem above after every round. It decreases except for small rises, since scaling rows of the
        basis to sum 1 changes the terms of α and β.
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

    consensus_weight: float = 0.01
    sparsity_weight: float = 0.01
    normalize: bool = True
    n_steps: int = 100
    tol: float = 1e-12

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        present = [part.matrix for part in self._observed(views)]
        weights = np.where(views.mask, 1.0, views.mask.mean(axis=0))
        penalties = self.consensus_weight, self.sparsity_weight
        terms = [build_view(m, weights[:, v], *penalties) for v, m in enumerate(mean_filled(present, views))]
        parts = [term.data for term in terms]
        if self._starts("random"):
            codes, bases = chained_start(parts, self._code_length, self.n_steps, random_state)
        else:
            codes, bases = self._start(views, [part.rows for part in parts], present[0].dtype, random_state)
        for code, basis in zip(codes, bases, strict=True):
            nmf.move_scale([basis], code, basis.sum(axis=1))
        consensus, objective = self._solve(terms, codes, bases)
        nmf.check_factors(parts, codes, bases, consensus, views)
        self.codes_ = codes
        self._store(consensus, bases, objective, random_state, normalize=bool(self.normalize))

    def _solve(self, terms: list[WeightedView], codes: list[Array], bases: list[Array]) -> tuple[Array, list[float]]:
        """Alternate between views and consensus, updating the factors in place; return consensus and objective."""
        rows, weights = [term.data.rows for term in terms], [term.squares for term in terms]
        consensus = nmf.mean_codes(codes, rows, len(rows[0]), weights)
        objective: list[float] = []
        triples = list(zip(terms, codes, bases, strict=True))
        for _ in range(self.max_iter):
            for term, code, basis in triples:
                inner_steps(term, code, basis, consensus, self.n_steps)
            before, consensus = consensus, nmf.mean_codes(codes, rows, len(rows[0]), weights)
            objective.append(sum(view_objective(term, code, basis, consensus) for term, code, basis in triples))
            if nmf.inner(consensus - before, consensus - before) < self.tol:
                break
        return consensus, objective


@dataclass(frozen=True)
class WeightedView:
    """One filled view with the weights of its rows and the weights of the two penalties."""

    data: nmf.Observed  # all rows, present or filled
    squares: Array  # w²
    energy: float  # ‖diag(w)X‖²
    consensus: float  # α
    sparsity: float  # β


def build_view(matrix: Array, weights: Array, consensus: float, sparsity: float) -> WeightedView:
    """Build the data of a filled view from its rows and their positive weights."""
    squares = (weights**2).astype(matrix.dtype)
    energy = float(np.einsum("i,im,im->", squares, matrix, matrix, dtype=np.float64))
    return WeightedView(nmf.Observed(matrix, np.arange(len(matrix))), squares, energy, consensus, sparsity)


def chained_start(
    parts: Sequence[nmf.Observed], n_components: int, n_steps: int, random_state: np.random.RandomState
) -> tuple[list[Array], list[Array]]:
    """Return factors of the views without weights, each from the codes of the previous view, in three passes."""
    n_samples, dtype = parts[0].matrix.shape[0], parts[0].matrix.dtype
    code, _ = nmf.random_factors(n_samples, [], n_components, random_state, dtype)
    for _ in range(_N_CYCLES):
        pairs = []
        for part in parts:
            code = code.copy()
            basis = random_state.uniform(size=(n_components, part.matrix.shape[1])).astype(dtype)
            for _ in range(n_steps):
                nmf.basis_step(part, code, basis)  # first, so that the new basis follows the codes
                nmf.multiply_quotient(code, part.project(basis), code @ (basis @ basis.T))
            nmf.move_scale([basis], code, basis.sum(axis=1))
            pairs.append((code, basis))
    return [code for code, _ in pairs], [basis for _, basis in pairs]


def inner_steps(term: WeightedView, codes: Array, basis: Array, consensus: Array, n_steps: int) -> None:
    """Update codes and basis of a view ``n_steps`` times for a given consensus, in place.

    With N the lengths of the codes, and numerator and denominator of the first line divided by w²::

        P ← P ∘ √( [XUᵀ + αP*] ⊘ [PUUᵀ + αP + β/(2w²) P/N] )
        U ← U ∘ √( [Pᵀw²X] ⊘ [Pᵀw²PU] ),  then rows of U to sum 1
    """
    pulled = term.consensus * consensus
    halves = term.sparsity / (2 * term.squares[:, None])
    for _ in range(n_steps):
        numerator = term.data.project(basis)
        numerator += pulled
        lengths = np.sqrt(np.einsum("ik,ik->i", codes, codes))
        denominator = codes @ (basis @ basis.T)
        denominator += term.consensus * codes
        denominator += halves * (codes / np.maximum(lengths, nmf.floor_of(lengths))[:, None])
        nmf.multiply_quotient(codes, numerator, denominator, root=True)
        weighted = term.squares[:, None] * codes
        nmf.multiply_quotient(basis, term.data.correlate(weighted), (weighted.T @ codes) @ basis, root=True)
        nmf.move_scale([basis], codes, basis.sum(axis=1))


def view_objective(term: WeightedView, codes: Array, basis: Array, consensus: Array) -> float:
    """Return ‖diag(w)(X − PU)‖² + α‖diag(w)(P − P*)‖² + β Σᵢ ‖pᵢ‖."""
    weighted = term.squares[:, None] * codes
    fit = nmf.inner(weighted.T @ codes, basis @ basis.T) - 2 * nmf.inner(term.data.project(basis), weighted)
    apart = codes - consensus
    lengths = np.linalg.norm(codes, axis=1).sum(dtype=np.float64)
    ties = nmf.inner(term.squares[:, None] * apart, apart)
    return max(term.energy + fit, 0.0) + term.consensus * ties + term.sparsity * float(lengths)
