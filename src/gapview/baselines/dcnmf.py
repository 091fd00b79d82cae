"""``DCNMF``: non-negative factorisation of views with gaps, smoothed along the neighbour graphs of the views."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ..estimators.base import NoEffect
from ..utils.types import Array
from ..views import Views
from . import nmf
from .base import baseline, without

_LAG = 10  # iterations over which the change of the objective is computed


@baseline
class DCNMF(nmf.ConsensusBaseline):
    """Double constrained non-negative matrix factorisation (DCNMF).

    A reconstruction from the description in the IMC_GRMF paper, PVC with a graph regulariser, without access to the
    paper or its program. There are two variants. With ``consensus="hard"`` the views of a sample share
    one code, and with Lᵥ the Laplacian of view v's neighbour graph::

        min  Σᵥ ‖Xᵥ − P[Oᵥ]Uᵥ‖²  +  λ Σᵥ ‖P[Oᵥ]‖₁  +  β Σᵥ tr(P[Oᵥ]ᵀ Lᵥ P[Oᵥ])      P ≥ 0, Uᵥ ≥ 0

    With ``consensus="soft"`` every view has its own codes Pᵥ, drawn to consensus codes Z of the samples C that have at
    least two views::

        min  Σᵥ ‖Xᵥ − PᵥUᵥ‖²  +  α Σᵥ ‖Pᵥ[C] − Z[C]‖²  +  λ Σᵥ ‖Pᵥ‖₁  +  β Σᵥ tr(PᵥᵀLᵥPᵥ)

    Rows of the bases that belong to one set of codes have unit length: otherwise codes would shrink, and the penalties
    of λ and β would have no effect.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups.
    n_components : int, optional
        Length K of the codes; by default the number of groups.
    consensus : {"hard", "soft"}, default="hard"
        One code per sample, or one per sample and view with a consensus.
    graph_weight : float, default=0.1
        β: weight of the graph penalty.
    sparsity_weight : float, default=1e-2
        λ: weight of the sparsity penalty.
    consensus_weight : float, default=10.0
        α: weight of the ties between the codes of one sample; for ``consensus="soft"`` only.
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
    init : "random" or pair (codes, bases), default="random"
        Start: uniform random numbers, with the same codes in all views; or a pair, the codes as an array of shape
        (n_samples, n_components) or, if soft, as one array for each view, and for each view a basis of shape
        (n_components, n_features), in lists or in dicts with the names of the views.
    max_iter : int, default=300
        Maximum number of iterations. Reaching it is usual and gives no warning.
    tol : float, default=1e-6
        Stop when the objective has changed by less than this share of its value over 10 iterations.
    partial_rows : {"raise", "fill", "drop"}, default="raise"
        What to do with rows that have some but not all values, see :class:`gapview.Views`.
    random_state : int, RandomState or None, default=None
        Seed of the start and of k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Group of every sample. Group 0 is the largest; equal sizes are ordered by the smallest sample id.
    embedding_ : array of shape (n_samples, n_components)
        P or Z, not scaled; if soft, for samples that have one view only, their code in that view.
    bases_ : list of arrays of shape (n_components, n_features)
        Uᵥ.
    objective_ : array of shape (n_iter_,)
        Value of the problem above after every iteration; it never rises.
    n_iter_ : int
        Iterations done.

    Notes
    -----
    The multiplicative step U ← U ∘ PᵀX ⊘ PᵀPU ignores that the penalties change when the bases are scaled back to unit
    length. It is used until an iteration raises the objective; from then on, the bases are updated by a step that
    includes the penalties, see :meth:`SharedCodes.advance`.

    References
    ----------
    B. Qian, X. Shen, Y. Gu, Z. Tang, Y. Ding: Double Constrained NMF for Partial Multi-View Clustering. DICTA, 2016.

    Examples
    --------
    >>> from gapview.baselines import DCNMF
    >>> from gapview.datasets import make_views
    >>> from gapview.metrics import clustering_scores
    >>> data = make_views(n_samples=200, n_clusters=3, missing_rate=0.3, random_state=0)
    >>> model = DCNMF(n_clusters=3, nonnegative="shift", random_state=0).fit(data.views)
    >>> model.labels_.shape, model.embedding_.shape
    ((200,), (200, 3))
    >>> clustering_scores(data.target, model.labels_)["accuracy"] > 0.9
    True
    """

    consensus: str = "hard"
    sparsity_weight: float = 1e-2
    consensus_weight: float = 10.0
    max_iter: int = 300

    _no_effect = (
        NoEffect(
            "consensus_weight", lambda m, _: m.consensus != "soft", "consensus is not 'soft'", "use consensus='soft'"
        ),
        without("graph_weight", "n_neighbors"),
    )

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        parts, graphs, ties = self._linked(views)
        if self.consensus == "hard":
            blocks = [self._block(parts, graphs, np.arange(views.n_samples), np.zeros(views.n_samples))]
        else:
            pairs = zip(parts, graphs, strict=True)
            blocks = [self._block([part], [graph], part.rows, ties[part.rows]) for part, graph in pairs]
        codes, bases = self._start(views, [block.rows for block in blocks], parts[0].matrix.dtype, random_state)
        consensus, bases, objective = self._alternate(blocks, codes, bases, views.n_samples, _LAG)
        own = [code[place] for block, code in zip(blocks, codes, strict=True) for place in block.places]
        nmf.check_factors(parts, own, bases, consensus, views)
        self._store(consensus, bases, objective, random_state)

    def _block(
        self, parts: list[nmf.Observed], graphs: list[sparse.csr_array], rows: Array, ties: Array
    ) -> SharedCodes:
        """Return the data of views that share the codes of the samples ``rows``."""
        dtype = parts[0].matrix.dtype
        places = [np.searchsorted(rows, part.rows) for part in parts]
        total = sparse.csr_array((len(rows), len(rows)), dtype=dtype)
        seen = np.zeros(len(rows), dtype=dtype)
        for graph, place in zip(graphs, places, strict=True):
            edges = graph.tocoo()
            ends = (place[edges.row], place[edges.col])
            total = total + sparse.csr_array((self.graph_weight * edges.data, ends), shape=total.shape, dtype=dtype)
            seen[place] += 1
        pull = self.sparsity_weight / 2 * seen
        return SharedCodes(rows=rows, graph=total, ties=ties.astype(dtype), parts=parts, places=places, pull=pull)


@dataclass(frozen=True, kw_only=True)
class SharedCodes(nmf.CodeBlock):
    """Views that share one set of codes: all of them (hard), or a single one (soft)."""

    parts: list[nmf.Observed]
    places: list[Array]  # for each part the positions of its codes
    pull: Array  # λ/2 times the number of parts that have the sample

    def advance(self, codes: Array, bases: list[Array], target: Array, careful: bool) -> float:
        """Update the bases, scale them to unit length, update the codes, all in place; return the objective.

        The careful step minimises the objective after the bases are scaled to unit length. With s = ‖u‖ the length
        of a component, 1 before the step, a = p̃ᵀL̃p̃, b = λ Σ p, h = Σ α p² and g = Σ α p z of its codes p, that is::

            ‖X − PU‖²  +  (a + h) s²  +  b s  −  2 g s          with  s ≤ (s² + 1)/2  and  −s ≤ −uᵀu_old

        so that a + h + b/2 is added to the diagonal of PᵀP and g·u to PᵀX. Both bounds are tight at the old u, so the
        objective does not rise.
        """
        drag = lift = np.zeros(codes.shape[1], dtype=codes.dtype)
        if careful:
            smoothness = np.einsum("ik,ik->k", codes, self.degrees[:, None] * codes - self.graph @ codes)
            drag = np.maximum(smoothness, 0) + self.ties @ codes**2 + self.pull @ codes
            lift = self.ties @ (codes * target)
        for part, place, basis in zip(self.parts, self.places, bases, strict=True):
            own = codes[place]
            numerator = part.correlate(own) + lift[:, None] * basis
            nmf.multiply_quotient(basis, numerator, (own.T @ own) @ basis + drag[:, None] * basis)
        lengths = np.sqrt(sum(np.einsum("km,km->k", basis, basis) for basis in bases))
        nmf.move_scale(bases, codes, lengths)
        return self._update_codes(codes, bases, target)

    def _update_codes(self, codes: Array, bases: list[Array], target: Array) -> float:
        numerator = np.asarray(self.graph @ codes) + self.ties[:, None] * target
        denominator = (self.degrees + self.ties)[:, None] * codes + self.pull[:, None]
        projected = [part.project(basis) for part, basis in zip(self.parts, bases, strict=True)]
        for place, product, basis in zip(self.places, projected, bases, strict=True):
            numerator[place] += product
            denominator[place] += codes[place] @ (basis @ basis.T)
        nmf.multiply_quotient(codes, numerator, denominator)
        value = 2 * float(self.pull.astype(np.float64) @ codes.sum(axis=1, dtype=np.float64))
        value += nmf.roughness(self.graph, self.degrees, codes)
        for part, place, product, basis in zip(self.parts, self.places, projected, bases, strict=True):
            value += part.squared_error(product, codes[place], basis)
        return value
