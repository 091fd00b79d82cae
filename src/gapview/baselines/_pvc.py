"""``PVC``: partial multi-view clustering by one non-negative factorisation with shared codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..clusters import cluster_rows
from ..estimators.base import MultiViewClusterer, NoEffect
from ..persist.registry import storable_method
from ..utils.parameters import check_choice, check_flag, check_integer, check_real
from ..utils.types import Array
from ..views import Views
from ._nonnegative import (
    NONNEGATIVE,
    Observed,
    demand_factors,
    observe,
    own_factors,
    random_factors,
    scaled_nonnegative,
    settled,
    warn_if_unlinked,
)


@storable_method
class PVC(MultiViewClusterer):
    """Partial multi-view clustering (PVC).

    Every sample has one non-negative code p, which all its views share, and every view has a non-negative basis U::

        min  Σᵥ ‖Xᵥ − P[Oᵥ]Uᵥ‖²  +  Σᵢ λᵢ‖pᵢ‖₁      P ≥ 0, Uᵥ ≥ 0

    where Oᵥ are the samples that have view v. Codes and bases are found in turn, each by
    coordinate descent until nothing moves by more than 1e-6 (500 sweeps at most). The authors know two
    views; here samples are grouped by the set of views they have, whatever it is.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups.
    n_components : int, optional
        Length K of the codes; by default the number of groups.
    sparsity_weight : float, default=1e-2
        λ: how firmly codes are drawn to zero. With rows of unit length 0.1 is already too much: all codes vanish.
    scale_penalty : bool, default=True
        Let the penalty of a sample grow with its features, as the authors' program does: λᵢ = λ Σ mᵥ / K over the
        views the sample has. If False, λᵢ = λ times the number of its views, as the formula in print has it.
    nonnegative : {None, "raise", "shift", "clip"}, default=None
        What to do with negative values, which this method can take (None): refuse them, subtract the lowest value of
        the view and scale its rows again, or set them to 0. Views without negative values are left alone.
    scale : {"unit", "center+unit", "standard", "standard+view", "standard+unit", None}, default="unit"
        Scale rows to unit length, centre features before that, standardise features, both, or leave the values alone.
    init : "random" or pair (codes, bases), default="random"
        Start: uniform random numbers, or an array of shape (n_samples, n_components) and for each view one of shape
        (n_components, n_features), in a list or in a dict with the names of the views.
    max_iter : int, default=20
        Most rounds, and as many for the warm start on the samples that have every view. The cap is part of the method:
        codes can shrink and bases grow for ever at no cost but the penalty's, so what λ does depends on it.
    tol : float, default=1e-6
        Stop when the objective changes by less than this share of its value, or is less than this share of ‖X‖².
    partial_rows : {"raise", "fill", "drop"}, default="raise"
        What to do with rows that have some but not all values, see :class:`gapview.Views`.
    random_state : int, RandomState or None, default=None
        Seed of the start and of k-means. Results depend on the start: accuracies spread by 2 to 7 points.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Group of every sample.
    embedding_ : array of shape (n_samples, n_components)
        P, not scaled.
    bases_ : list of arrays of shape (n_components, n_features)
        Uᵥ.
    objective_ : array of shape (n_iter_,)
        Value of the problem above after every round that follows the warm start; it never rises.
    n_iter_ : int
        Rounds done after the warm start.

    References
    ----------
    S.-Y. Li, Y. Jiang, Z.-H. Zhou: Partial Multi-View Clustering. AAAI, 2014.

    Examples
    --------
    >>> from gapview.baselines import PVC
    >>> from gapview.datasets import make_views
    >>> from gapview.metrics import clustering_scores
    >>> data = make_views(n_samples=200, n_clusters=3, missing_rate=0.3, random_state=0)
    >>> model = PVC(n_clusters=3, sparsity_weight=1e-4, nonnegative="shift", random_state=0).fit(data.views)
    >>> model.labels_.shape, model.embedding_.shape
    ((200,), (200, 3))
    >>> clustering_scores(data.target, model.labels_)["accuracy"] > 0.9
    True
    """

    bases_: list[Array]
    objective_: Array
    n_iter_: int

    _no_effect = (
        NoEffect(
            "scale_penalty",
            lambda model, _: model.sparsity_weight == 0,
            "sparsity_weight is 0",
            "raise sparsity_weight",
        ),
    )

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_components: int | None = None,
        sparsity_weight: float = 1e-2,
        scale_penalty: bool = True,
        nonnegative: str | None = None,
        scale: str | None = "unit",
        init: Any = "random",
        max_iter: int = 20,
        tol: float = 1e-6,
        partial_rows: str = "raise",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.sparsity_weight = sparsity_weight
        self.scale_penalty = scale_penalty
        self.nonnegative = nonnegative
        self.scale = scale
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.partial_rows = partial_rows
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_components", self.n_components, low=1, also=[None])
        check_real("sparsity_weight", self.sparsity_weight, low=0)
        check_flag("scale_penalty", self.scale_penalty)
        check_choice("nonnegative", self.nonnegative, (None, *NONNEGATIVE))
        check_integer("max_iter", self.max_iter, low=1)
        check_real("tol", self.tol, low=0)

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        warn_if_unlinked(views)
        parts = scaled_nonnegative(views, self.scale, self.nonnegative)
        codes, bases = self._start(parts, views, random_state)
        penalty = self._penalty(views, codes)
        whole = np.asarray(views.mask.all(axis=1))
        if whole.any():
            n_whole = int(whole.sum())
            chosen = [observe(part.matrix[whole[part.rows]], np.arange(n_whole)) for part in parts]
            codes[whole], bases, _ = solve(chosen, penalty[whole], codes[whole], bases, self.max_iter, self.tol)
        codes, bases, objective = solve(parts, penalty, codes, bases, self.max_iter, self.tol)
        demand_factors(parts, [codes[part.rows] for part in parts], bases, codes, views)
        self.embedding_, self.bases_ = codes, bases
        self.objective_, self.n_iter_ = np.array(objective), len(objective)
        self.labels_ = cluster_rows(codes, self.n_clusters, random_state).labels

    def _start(
        self, parts: list[Observed], views: Views, random_state: np.random.RandomState
    ) -> tuple[Array, list[Array]]:
        n_components, dtype = self.n_components or self.n_clusters, parts[0].matrix.dtype
        if isinstance(self.init, str) and self.init == "random":
            return random_factors(views.n_samples, views.n_features, n_components, random_state, dtype)
        codes, bases = own_factors(self.init, "'random'", views, [np.arange(views.n_samples)], n_components, dtype)
        return codes[0], bases

    def _penalty(self, views: Views, codes: Array) -> Array:
        """Return λᵢ."""
        sizes = np.array(views.n_features) / codes.shape[1] if self.scale_penalty else np.ones(views.n_views)
        return np.asarray(self.sparsity_weight * (views.mask @ sizes), dtype=codes.dtype)


@dataclass(frozen=True)
class Group:
    """Samples that have the same views."""

    samples: Array
    places: dict[int, Array]  # for each of their views the rows in which they stand


def pattern_groups(parts: Sequence[Observed], n_samples: int) -> tuple[list[Group], list[Group]]:
    """Group samples by the set of their views: those that lack a view, and those that lack none."""
    where = np.full((n_samples, len(parts)), -1)
    for v, part in enumerate(parts):
        where[part.rows, v] = np.arange(len(part.rows))
    patterns, member = np.unique(where >= 0, axis=0, return_inverse=True)
    gapped: list[Group] = []
    whole: list[Group] = []
    for g, pattern in enumerate(patterns):
        samples = np.flatnonzero(member.ravel() == g)
        group = Group(samples, {int(v): where[samples, v] for v in np.flatnonzero(pattern)})
        (whole if pattern.all() else gapped).append(group)
    return gapped, whole


def solve(
    parts: Sequence[Observed], penalty: Array, codes: Array, bases: Sequence[Array], max_iter: int, tol: float
) -> tuple[Array, list[Array], list[float]]:
    """Find codes and bases in turn, in the authors' order: samples with gaps, bases, samples without.

    Returns
    -------
    codes, bases, objective
        The objective after every round.
    """
    codes, bases = codes.copy(), list(bases)
    gapped, whole = pattern_groups(parts, len(codes))
    projected = [part.project(basis) for part, basis in zip(parts, bases, strict=True)]
    energy = sum(part.energy for part in parts)
    objective: list[float] = []
    for _ in range(max_iter):
        _codes_steps(gapped, penalty, codes, bases, projected)
        for v, part in enumerate(parts):
            own = codes[part.rows]
            target = part.correlate(own).T
            bases[v] = nonnegative_quadratic(own.T @ own, target, 0.0, bases[v].T).T
            projected[v] = part.project(bases[v])
        _codes_steps(whole, penalty, codes, bases, projected)
        objective.append(objective_value(parts, penalty, codes, bases, projected))
        if settled(objective, tol) or objective[-1] <= tol * energy:
            break
    return codes, bases, objective


def _codes_steps(
    groups: Sequence[Group], penalty: Array, codes: Array, bases: Sequence[Array], projected: Sequence[Array]
) -> None:
    """Find the codes of some groups for given bases, in place; samples of one group share the Gram matrix Σ UUᵀ."""
    grams = [basis @ basis.T for basis in bases]
    for group in groups:
        gram = np.sum([grams[v] for v in group.places], axis=0)
        target = np.sum([projected[v][place] for v, place in group.places.items()], axis=0)
        codes[group.samples] = nonnegative_quadratic(gram, target, penalty[group.samples], codes[group.samples])


def objective_value(
    parts: Sequence[Observed], penalty: Array, codes: Array, bases: Sequence[Array], projected: Sequence[Array]
) -> float:
    """Return Σᵥ ‖Xᵥ − P[Oᵥ]Uᵥ‖² + Σᵢ λᵢ‖pᵢ‖₁ from XᵥUᵥᵀ."""
    triples = zip(parts, projected, bases, strict=True)
    errors = sum(part.squared_error(product, codes[part.rows], basis) for part, product, basis in triples)
    return float(errors + penalty.astype(np.float64) @ codes.sum(axis=1, dtype=np.float64))


def nonnegative_quadratic(
    gram: Array, target: Array, penalty: Array | float, start: Array, *, max_sweeps: int = 500, tol: float = 1e-6
) -> Array:
    """Minimise tr(ZGZᵀ) − 2 tr(ZBᵀ) + Σᵢ λᵢ‖zᵢ‖₁ over Z ≥ 0 by coordinate descent, for all rows of Z at once.

    Parameters
    ----------
    gram : array of shape (n_components, n_components)
        G, positive semi-definite.
    target : array of shape (n_rows, n_components)
        B.
    penalty : float or array of shape (n_rows,)
        λ, for all rows or for each.
    start : array of shape (n_rows, n_components)
        Where to start from; not changed.
    max_sweeps : int, default=500
        Most passes over the columns.
    tol : float, default=1e-6
        Stop when no entry of column j has moved by tol / √Gⱼⱼ or more in a pass.

    Returns
    -------
    array of shape (n_rows, n_components)
    """
    found = np.array(start.T, order="C")  # one coordinate of all rows lies side by side
    wanted = np.ascontiguousarray((target - np.reshape(penalty, (-1, 1)) / 2).T)
    sizes = np.diagonal(gram)
    roots = np.sqrt(sizes)[:, None]
    eps = float(np.finfo(found.dtype).eps)
    # A component without weight, or with so little that rounding swallows it, leaves its coordinate as it is
    alive = np.flatnonzero(sizes > eps**2 * sizes.max())
    tol = max(tol, 8 * eps * float((roots * found).max(initial=0)))  # what moves by less may be rounding
    for _ in range(max_sweeps):
        before = found.copy()
        for j in alive:
            np.maximum(found[j] - (gram[j] @ found - wanted[j]) / sizes[j], 0, out=found[j])
        if (roots * np.abs(found - before)).max(initial=0) < tol:
            break
    return np.asarray(found.T)
