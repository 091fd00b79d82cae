"""``GPMVC``: graph regularised partial multi-view clustering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..utils.types import Array
from ..views import Views
from . import nmf
from .base import baseline, without

_N_STARTS = 10  # random starts of a view, of _N_TRIAL steps each; the best is continued
_N_TRIAL = 30
_START_TOL = 1e-5
_START_CAP = 1000  # maximum number of steps of a start


@baseline
class GPMVC(nmf.ConsensusBaseline):
    """Graph regularised partial multi-view clustering (GPMVC).

    Every view has non-negative codes Pᵥ and a non-negative basis Uᵥ; the row sums Qᵥ of the basis bring the codes of
    all views to one scale. Consensus codes P* tie the samples C that have at least two views, and a penalty with the
    Laplacian Lᵥ of the neighbour graph of a view draws the codes of neighbours together::

        min  Σᵥ ‖Xᵥ − PᵥUᵥ‖²  +  α ‖Pᵥ[C] Qᵥ − P*[C]‖²  +  αβ tr(PᵥᵀLᵥPᵥ)      Pᵥ, Uᵥ, P* ≥ 0

    The authors' program for two views ties the samples that have both, which is the same. Their program for more views
    ties every sample with its own weight, which is not implemented. The start of a view has at most 1000 steps.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups.
    n_components : int, optional
        Length K of the codes; by default the number of groups.
    consensus_weight : float, default=0.1
        α: weight of the ties between the codes of one sample.
    graph_weight : float, default=0.1
        β: weight of the graph penalty, in units of α. The authors' 10 is for views divided by the sum of their entries;
        0.01 to 1 suits rows of unit length.
    n_neighbors : int or "auto", default=5
        Neighbours of a sample in every view; ``"auto"`` is the rule of :class:`gapview.GRMF`.
    nonnegative : {"raise", "shift", "clip"}, default="raise"
        What to do with negative values: raise an error, subtract the lowest value of the view and scale its rows again,
        or set them to 0. Views without negative values do not change.
    kind : str, None, or list or dict of these, default=None
        Kind of the values, such as ``"counts"``, as in :class:`gapview.GRMF`.
    n_top_features : int, None, or list or dict of these, default=None
        Features of a view that are kept, as in :class:`gapview.GRMF`.
    scale : str or None, default="unit"
        Scale rows to unit length, centre features before that, standardise features, both, or leave the values alone.
    init : {"independent", "aligned"} or pair (codes, bases), default="independent"
        Start. ``"independent"``, as in the authors' program: every view is factorised separately, from the best of ten
        random starts, and only the consensus aligns the components of the views. ``"aligned"``: the
        factorisations of all views start from the same codes, which helps when few samples have two views.
        A pair: the codes as an array of shape (n_samples, n_components) or as one array for each view, and for each
        view a basis of shape (n_components, n_features), in lists or in dicts with the names of the views.
    max_iter : int, default=30
        Maximum number of rounds. Reaching it is usual and gives no warning.
    n_steps : int, default=100
        Steps for each view in a round.
    tol : float, default=1e-6
        Stop when the objective changes by less than this share of its value in a round.
    partial_rows : {"raise", "fill", "drop"}, default="raise"
        What to do with rows that have some but not all values, see :class:`gapview.Views`.
    random_state : int, RandomState or None, default=None
        Seed of the start and of k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Group of every sample. Group 0 is the largest; equal sizes are ordered by the smallest sample id.
    embedding_ : array of shape (n_samples, n_components)
        P*, not scaled; for samples that have one view only, their code in that view.
    codes_ : list of arrays of shape (n_present, n_components)
        Pᵥ, for the samples that have view v.
    bases_ : list of arrays of shape (n_components, n_features)
        Uᵥ, rows of which sum to 1.
    objective_ : array of shape (n_iter_,)
        Value of the problem above after every round; it never rises.
    n_iter_ : int
        Rounds done.

    Notes
    -----
    The authors' step for the basis ignores that the graph term changes when rows of the basis are scaled to sum 1.
    This step is used until a round of a view raises the objective. That round and all later ones of the view use a
    step that includes the graph term, see :func:`inner_steps`.

    References
    ----------
    N. Rai, S. Negi, S. Chaudhury, O. Deshmukh: Partial Multi-View Clustering using Graph Regularized NMF. ICPR, 2016.

    Examples
    --------
    >>> from gapview.baselines import GPMVC
    >>> from gapview.datasets import make_views
    >>> from gapview.metrics import clustering_scores
    >>> data = make_views(n_samples=200, n_clusters=3, missing_rate=0.3, random_state=0)
    >>> model = GPMVC(n_clusters=3, nonnegative="shift", max_iter=10, random_state=0).fit(data.views)
    >>> model.labels_.shape, model.embedding_.shape
    ((200,), (200, 3))
    >>> clustering_scores(data.target, model.labels_)["accuracy"] > 0.9
    True
    """

    init: Any = "independent"
    n_steps: int = 100

    _random_starts = ("independent", "aligned")
    _no_effect = (
        without("consensus_weight", "graph_weight"),
        without("graph_weight", "n_neighbors"),
    )

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        parts, graphs, ties = self._linked(views)
        weight = self.consensus_weight * self.graph_weight
        pairs = zip(parts, graphs, strict=True)
        terms = [build_view(part, graph, weight, ties[part.rows], self.n_steps) for part, graph in pairs]
        self.codes_, bases = self._factorized(terms, views, random_state)
        consensus, bases, objective = self._alternate(terms, self.codes_, bases, views.n_samples)
        self._store(consensus, bases, objective, random_state)

    def _factorized(
        self, terms: list[GraphView], views: Views, random_state: np.random.RandomState
    ) -> tuple[list[Array], list[Array]]:
        """Return the factors to start from, rows of the bases scaled to sum 1."""
        if self._starts("independent"):
            pairs = [independent_start(term, self._code_length, random_state) for term in terms]
            codes, bases = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        else:
            codes, bases = self._start(views, [term.rows for term in terms], terms[0].ties.dtype, random_state)
        for term, code, basis in zip(terms, codes, bases, strict=True):
            if self._starts("aligned"):
                nmf.move_scale([basis], code, np.linalg.norm(basis, axis=1))
                factorize_view(term, code, basis)
            nmf.move_scale([basis], code, basis.sum(axis=1))
        return codes, bases


@dataclass(frozen=True, kw_only=True)
class GraphView(nmf.CodeBlock):
    """One view with its weighted graph and its ties to the consensus."""

    data: nmf.Observed
    n_steps: int  # in a round

    def advance(self, codes: Array, bases: list[Array], target: Array, careful: bool) -> float:
        """Do the steps of one round in place; return the objective without ties."""
        inner_steps(self, codes, bases[0], target, self.n_steps, careful=careful)
        return view_objective(self, codes, bases[0])


def build_view(
    data: nmf.Observed, graph: sparse.csr_array, graph_weight: float, ties: Array, n_steps: int
) -> GraphView:
    """Build the data of a view, its graph multiplied by ``graph_weight``, λ_g = αβ."""
    dtype = data.matrix.dtype
    weighted = sparse.csr_array(graph * graph_weight, dtype=dtype)
    return GraphView(rows=data.rows, graph=weighted, ties=ties.astype(dtype), data=data, n_steps=n_steps)


def view_objective(term: GraphView, codes: Array, basis: Array) -> float:
    """Return ‖X − PU‖² + λ_g tr(PᵀLP)."""
    error = term.data.squared_error(term.data.project(basis), codes, basis)
    return error + nmf.roughness(term.graph, term.degrees, codes)


def inner_steps(
    term: GraphView, codes: Array, basis: Array, target: Array, n_steps: int, *, careful: bool = False
) -> None:
    """Update codes and basis of a view ``n_steps`` times for a given consensus, in place.

    With q the row sums of U, g = Σ α pz and h = Σ α p² over tied samples, per component::

        P ← P ∘ [XUᵀ + λ_g WP + αZ] ⊘ [PUUᵀ + λ_g DP + αP]
        U ← U ∘ [PᵀX + g1ᵀ] ⊘ [PᵀPU + (h∘q)1ᵀ],  then rows of U to sum 1

    The careful step accounts for the graph term, which the last line multiplies by q²: it adds λ_g q (PᵀWP)ₖₖ to g and
    λ_g q (PᵀDP)ₖₖ to h∘q.
    """
    tied = np.flatnonzero(term.ties)
    weights = term.ties[tied, None]
    pulled = weights * target[tied]
    loads = (term.degrees + term.ties)[:, None]
    for _ in range(n_steps):
        numerator = term.data.project(basis)
        numerator += term.graph @ codes
        numerator[tied] += pulled
        denominator = codes @ (basis @ basis.T)
        denominator += loads * codes
        nmf.multiply_quotient(codes, numerator, denominator)

        sums = basis.sum(axis=1)
        own = codes[tied]
        lift = np.einsum("ik,ik->k", own, pulled)
        drag = np.einsum("ik,ik->k", own, weights * own) * sums
        if careful:
            lift += sums * np.einsum("ik,ik->k", codes, term.graph @ codes)
            drag += sums * np.einsum("ik,i,ik->k", codes, term.degrees, codes)
        top = term.data.correlate(codes)
        top += lift[:, None]
        bottom = (codes.T @ codes) @ basis
        bottom += drag[:, None]
        nmf.multiply_quotient(basis, top, bottom)
        nmf.move_scale([basis], codes, basis.sum(axis=1))


def gnmf_step(term: GraphView, codes: Array, basis: Array) -> None:
    """Update P ← P ∘ (XUᵀ + λ_g WP) ⊘ (PUUᵀ + λ_g DP), then U ← U ∘ (PᵀX) ⊘ (PᵀPU), in place."""
    numerator = term.data.project(basis) + term.graph @ codes
    nmf.multiply_quotient(codes, numerator, codes @ (basis @ basis.T) + term.degrees[:, None] * codes)
    nmf.basis_step(term.data, codes, basis)


def factorize_view(term: GraphView, codes: Array, basis: Array) -> None:
    """Factorise one view in place until the objective is close to its running mean, as in the authors' program."""
    mean = 10 * view_objective(term, codes, basis)
    for _ in range(_START_CAP):
        gnmf_step(term, codes, basis)
        value = view_objective(term, codes, basis)
        mean = 0.1 * mean + 0.9 * value
        if mean - value <= _START_TOL * mean:
            break


def independent_start(term: GraphView, n_components: int, random_state: np.random.RandomState) -> tuple[Array, Array]:
    """Return the factors of one view from the best of several random starts."""
    trials = (_trial(term, n_components, random_state) for _ in range(_N_STARTS))
    _, codes, basis = min(trials, key=lambda trial: trial[0])
    factorize_view(term, codes, basis)
    return codes, basis


def _trial(term: GraphView, n_components: int, random_state: np.random.RandomState) -> tuple[float, Array, Array]:
    n_rows, n_features = term.data.matrix.shape
    codes, (basis,) = nmf.random_factors(n_rows, [n_features], n_components, random_state, term.ties.dtype)
    nmf.move_scale([basis], codes, np.linalg.norm(basis, axis=1))
    for _ in range(_N_TRIAL):
        gnmf_step(term, codes, basis)
    return view_objective(term, codes, basis), codes, basis
