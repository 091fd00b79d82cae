"""``GPMVC``: graph regularised partial multi-view clustering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..clusters import cluster_rows
from ..estimators.base import MultiViewClusterer, NoEffect
from ..graph.knn import knn_graph, resolve_n_neighbors
from ..persist.registry import storable_method
from ..utils.parameters import check_choice, check_integer, check_real
from ..utils.types import Array
from ..views import Views
from ._nonnegative import (
    NONNEGATIVE,
    Observed,
    basis_step,
    multiply_quotient,
    own_factors,
    random_factors,
    scaled_nonnegative,
    take_scale,
    warn_if_unlinked,
)
from ._tied import descend, roughness

_N_STARTS = 10  # random starts of a view, each of _N_TRIAL steps, of which the best goes on
_N_TRIAL = 30
_START_TOL = 1e-5
_START_CAP = 1000  # steps after which a start is good enough, settled or not


@storable_method
class GPMVC(MultiViewClusterer):
    """Graph regularised partial multi-view clustering (GPMVC).

    Every view has non-negative codes Pᵥ and a non-negative basis Uᵥ whose row sums Qᵥ bring the codes of all views to
    one scale. Consensus codes P* tie the samples C that are seen in at least two views, and neighbours within a view
    (Laplacian Lᵥ of its graph) are drawn to each other::

        min  Σᵥ ‖Xᵥ − PᵥUᵥ‖²  +  α ‖Pᵥ[C] Qᵥ − P*[C]‖²  +  αβ tr(PᵥᵀLᵥPᵥ)      Pᵥ, Uᵥ, P* ≥ 0

    The authors' program for two views ties the samples that have both, which is the same. Their program for more views
    ties every sample with a weight of its own; that is not offered. A start by itself ends after 1000 steps at the
    latest.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups.
    n_components : int, optional
        Length K of the codes; by default the number of groups.
    consensus_weight : float, default=0.1
        α: how firmly the codes of one sample are tied to each other.
    graph_weight : float, default=0.1
        β: how firmly neighbours are drawn to each other, in units of α. The authors' 10 is for views divided by the sum
        of their entries; rows of unit length want 0.01 to 1.
    n_neighbors : int or "auto", default=5
        Neighbours of a sample in every view; ``"auto"`` is the rule of :class:`gapview.GRMF`.
    nonnegative : {"raise", "shift", "clip"}, default="raise"
        What to do with negative values: refuse them, subtract the lowest value of the view and scale its rows again,
        or set them to 0. Views without negative values are left alone.
    scale : {"unit", "center+unit", "standard", "standard+view", "standard+unit", None}, default="unit"
        Scale rows to unit length, centre features before that, standardise features, both, or leave the values alone.
    init : {"independent", "aligned"} or pair (codes, bases), default="independent"
        Start. ``"independent"``, as in the authors' program: every view is factorised by itself, from the best of ten
        random starts, and the consensus alone has to bring components of the views together. ``"aligned"``: the
        factorisations of all views start from the same codes, which helps when few samples are seen in two views.
        Or given: the codes as an array of shape (n_samples, n_components) or as one array for each view, and for each
        view a basis of shape (n_components, n_features), in lists or in dicts with the names of the views.
    max_iter : int, default=30
        Most rounds. Reaching it is usual and no cause for a warning.
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
        Group of every sample.
    embedding_ : array of shape (n_samples, n_components)
        P*, not scaled; samples seen in one view only have their code in that view.
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
    The authors' step for the basis leaves out how the graph term changes when rows of the basis are brought to sum 1.
    Their step is taken as long as no round of a view raises the objective; a round that would is repeated, and the
    view goes on, with a step that counts the graph in, see :func:`inner_steps`.

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

    codes_: list[Array]
    bases_: list[Array]
    objective_: Array
    n_iter_: int

    _no_effect = (
        NoEffect(
            "graph_weight",
            lambda model, _: model.consensus_weight == 0,
            "consensus_weight is 0",
            "raise consensus_weight",
        ),
        NoEffect("n_neighbors", lambda model, _: model.graph_weight == 0, "graph_weight is 0", "raise graph_weight"),
    )

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_components: int | None = None,
        consensus_weight: float = 0.1,
        graph_weight: float = 0.1,
        n_neighbors: int | str = 5,
        nonnegative: str = "raise",
        scale: str | None = "unit",
        init: Any = "independent",
        max_iter: int = 30,
        n_steps: int = 100,
        tol: float = 1e-6,
        partial_rows: str = "raise",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.consensus_weight = consensus_weight
        self.graph_weight = graph_weight
        self.n_neighbors = n_neighbors
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
        check_real("graph_weight", self.graph_weight, low=0)
        check_integer("n_neighbors", self.n_neighbors, low=1, also=["auto"])
        check_choice("nonnegative", self.nonnegative, NONNEGATIVE)
        check_integer("max_iter", self.max_iter, low=1)
        check_integer("n_steps", self.n_steps, low=1)
        check_real("tol", self.tol, low=0)

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        warn_if_unlinked(views)
        terms = self._terms(views)
        codes, bases = self._start(terms, views, random_state)
        self.embedding_, objective = descend(terms, codes, bases, views.n_samples, self.max_iter, self.tol)
        self.codes_, self.bases_ = codes, [own[0] for own in bases]
        self.objective_, self.n_iter_ = np.array(objective), len(objective)
        self.labels_ = cluster_rows(self.embedding_, self.n_clusters, random_state).labels

    def _terms(self, views: Views) -> list[Term]:
        parts = scaled_nonnegative(views, self.scale, self.nonnegative)
        counts = resolve_n_neighbors(self.n_neighbors, views, self.n_clusters)
        ties = self.consensus_weight * (views.mask.sum(axis=1) >= 2)
        weight = self.consensus_weight * self.graph_weight
        return [
            build_term(part, knn_graph(part.matrix, count), weight, ties[part.rows], self.n_steps)
            for part, count in zip(parts, counts, strict=True)
        ]

    def _start(
        self, terms: list[Term], views: Views, random_state: np.random.RandomState
    ) -> tuple[list[Array], list[list[Array]]]:
        n_components, dtype = self.n_components or self.n_clusters, terms[0].ties.dtype
        rows = [term.rows for term in terms]
        if isinstance(self.init, str) and self.init == "independent":
            pairs = [independent_start(term, n_components, random_state) for term in terms]
            codes, bases = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        elif isinstance(self.init, str) and self.init == "aligned":
            shared, bases = random_factors(views.n_samples, views.n_features, n_components, random_state, dtype)
            codes = [shared[row] for row in rows]
            for term, code, basis in zip(terms, codes, bases, strict=True):
                take_scale([basis], code, np.linalg.norm(basis, axis=1))
                settle(term, code, basis)
        else:
            words = "'independent', 'aligned'"
            codes, bases = own_factors(self.init, words, views, rows, n_components, dtype)
        for code, basis in zip(codes, bases, strict=True):
            take_scale([basis], code, basis.sum(axis=1))
        return codes, [[basis] for basis in bases]


@dataclass(frozen=True)
class Term:
    """One view's part of the problem."""

    data: Observed
    graph: sparse.csr_array  # λ_g W, with λ_g = αβ
    degrees: Array  # λ_g d
    ties: Array  # α where the sample is tied to the consensus, else 0
    n_steps: int  # in a round

    @property
    def rows(self) -> Array:
        """The samples that have codes here."""
        return self.data.rows

    def advance(self, codes: Array, bases: list[Array], target: Array, careful: bool) -> float:
        """Do the steps of one round in place; return the value without ties."""
        inner_steps(self, codes, bases[0], target, self.n_steps, careful=careful)
        return own_value(self, codes, bases[0])


def build_term(data: Observed, graph: sparse.csr_array, graph_weight: float, ties: Array, n_steps: int) -> Term:
    """Weigh a view's graph, so that the steps need not."""
    dtype = data.matrix.dtype
    weighted = sparse.csr_array(graph * graph_weight, dtype=dtype)
    return Term(data, weighted, np.asarray(weighted.sum(axis=1)).ravel(), ties.astype(dtype), n_steps)


def own_value(term: Term, codes: Array, basis: Array) -> float:
    """Return ‖X − PU‖² + λ_g tr(PᵀLP)."""
    error = term.data.squared_error(term.data.project(basis), codes, basis)
    return error + roughness(term.graph, term.degrees, codes)


def inner_steps(term: Term, codes: Array, basis: Array, target: Array, n_steps: int, *, careful: bool = False) -> None:
    """Update codes and basis of a view ``n_steps`` times for a given consensus, in place.

    With q the row sums of U, g = Σ α pz and h = Σ α p² over tied samples, per component::

        P ← P ∘ [XUᵀ + λ_g WP + αZ] ⊘ [PUUᵀ + λ_g DP + αP]
        U ← U ∘ [PᵀX + g1ᵀ] ⊘ [PᵀPU + (h∘q)1ᵀ],  then rows of U to sum 1

    The careful step also sees that the last line multiplies the graph term by q²: it adds λ_g q (PᵀWP)ₖₖ to g and
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
        multiply_quotient(codes, numerator, denominator)

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
        multiply_quotient(basis, top, bottom)
        take_scale([basis], codes, basis.sum(axis=1))


def gnmf_step(term: Term, codes: Array, basis: Array) -> None:
    """P ← P ∘ (XUᵀ + λ_g WP) ⊘ (PUUᵀ + λ_g DP), then U ← U ∘ (PᵀX) ⊘ (PᵀPU), in place."""
    numerator = term.data.project(basis) + term.graph @ codes
    multiply_quotient(codes, numerator, codes @ (basis @ basis.T) + term.degrees[:, None] * codes)
    basis_step(term.data, codes, basis)


def settle(term: Term, codes: Array, basis: Array) -> None:
    """Factorise a view by itself, in place, until the objective is close to its running mean, as the authors do."""
    mean = 10 * own_value(term, codes, basis)
    for _ in range(_START_CAP):
        gnmf_step(term, codes, basis)
        value = own_value(term, codes, basis)
        mean = 0.1 * mean + 0.9 * value
        if mean - value <= _START_TOL * mean:
            break


def independent_start(term: Term, n_components: int, random_state: np.random.RandomState) -> tuple[Array, Array]:
    """Factorise a view from the best of several random starts."""
    trials = (_trial(term, n_components, random_state) for _ in range(_N_STARTS))
    _, codes, basis = min(trials, key=lambda trial: trial[0])
    settle(term, codes, basis)
    return codes, basis


def _trial(term: Term, n_components: int, random_state: np.random.RandomState) -> tuple[float, Array, Array]:
    n_rows, n_features = term.data.matrix.shape
    codes, (basis,) = random_factors(n_rows, [n_features], n_components, random_state, term.ties.dtype)
    take_scale([basis], codes, np.linalg.norm(basis, axis=1))
    for _ in range(_N_TRIAL):
        gnmf_step(term, codes, basis)
    return own_value(term, codes, basis), codes, basis
