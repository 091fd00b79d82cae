"""``PVC``: partial multi-view clustering by one non-negative factorisation with shared codes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ..utils.messages import check_choice
from ..utils.types import Array
from ..views import Views
from . import nmf
from .base import NONNEGATIVE, baseline, has_converged, without


@baseline
class PVC(nmf.NonnegativeBaseline):
    """Partial multi-view clustering (PVC).

    Every sample has one non-negative code p, which all its views share, and every view has a non-negative basis U::

        min  Σᵥ ‖Xᵥ − P[Oᵥ]Uᵥ‖²  +  Σᵢ λᵢ‖pᵢ‖₁      P ≥ 0, Uᵥ ≥ 0

    where Oᵥ are the samples that have view v. Codes and bases are updated in turn, each by coordinate descent until no
    entry changes by more than 1e-6 (500 sweeps at most). The published method is for two views; here samples are
    grouped by the set of views they have, for any number of views.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups.
    n_components : int, optional
        Length K of the codes; by default the number of groups.
    sparsity_weight : float, default=1e-2
        λ: weight of the sparsity penalty. For rows of unit length 0.1 is too large: all codes become 0.
    scale_penalty : bool, default=True
        If True, the penalty of a sample grows with its features, as in the authors' program: λᵢ = λ Σ mᵥ / K over the
        views the sample has. If False, λᵢ = λ times the number of its views, as in the published formula.
    nonnegative : {None, "raise", "shift", "clip"}, default=None
        What to do with negative values: keep them (None, which this method allows), raise an error, subtract the lowest
        value of the view and scale its rows again, or set them to 0. Views without negative values do not change.
    kind : str, None, or list or dict of these, default=None
        Kind of the values, such as ``"counts"``, as in :class:`gapview.GRMF`.
    n_top_features : int, None, or list or dict of these, default=None
        Features of a view that are kept, as in :class:`gapview.GRMF`.
    scale : str or None, default="unit"
        Scale rows to unit length, centre features before that, standardise features, both, or leave the values alone.
    init : "random" or pair (codes, bases), default="random"
        Start: uniform random numbers, or an array of shape (n_samples, n_components) and for each view one of shape
        (n_components, n_features), in a list or in a dict with the names of the views.
    max_iter : int, default=20
        Maximum number of rounds, and of rounds of the warm start on the complete samples. It is part of the method:
        codes can shrink and bases grow without limit, so the effect of λ depends on it.
    tol : float, default=1e-6
        Stop when the objective changes by less than this share of its value, or is less than this share of ‖X‖².
    partial_rows : {"raise", "fill", "drop"}, default="raise"
        What to do with rows that have some but not all values, see :class:`gapview.Views`.
    random_state : int, RandomState or None, default=None
        Seed of the start and of k-means. Results depend on the start: accuracies spread by 2 to 7 points.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Group of every sample. Group 0 is the largest; equal sizes are ordered by the smallest sample id.
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

    sparsity_weight: float = 1e-2
    scale_penalty: bool = True
    nonnegative: str | None = None
    max_iter: int = 20

    _checks = (("nonnegative", partial(check_choice, choices=(None, *NONNEGATIVE))),)
    _no_effect = (without("sparsity_weight", "scale_penalty"),)

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        nmf.warn_if_unlinked(views)
        parts = self._observed(views)
        (codes,), bases = self._start(views, [np.arange(views.n_samples)], parts[0].matrix.dtype, random_state)
        sizes = np.array(views.n_features) / self._code_length if self.scale_penalty else np.ones(views.n_views)
        penalty = np.asarray(self.sparsity_weight * (views.mask @ sizes), dtype=codes.dtype)  # λᵢ
        whole = np.asarray(views.mask.all(axis=1))
        if whole.any():
            n_whole = int(whole.sum())
            chosen = [nmf.Observed(part.matrix[whole[part.rows]], np.arange(n_whole)) for part in parts]
            codes[whole], bases, _ = self._solve(chosen, penalty[whole], codes[whole], bases)
        codes, bases, objective = self._solve(parts, penalty, codes, bases)
        nmf.check_factors(parts, [codes[part.rows] for part in parts], bases, codes, views)
        self._store(codes, bases, objective, random_state)

    def _solve(
        self, parts: Sequence[nmf.Observed], penalty: Array, codes: Array, bases: Sequence[Array]
    ) -> tuple[Array, list[Array], list[float]]:
        """Update in turn the codes of incomplete samples, the bases, and the codes of complete samples.

        Returns
        -------
        codes, bases, objective
            The objective after every round.
        """
        codes, bases = codes.copy(), list(bases)
        gapped, whole = nmf.pattern_groups(parts, len(codes))
        projected = [part.project(basis) for part, basis in zip(parts, bases, strict=True)]
        energy = sum(part.energy for part in parts)
        objective: list[float] = []
        for _ in range(self.max_iter):
            _codes_steps(gapped, penalty, codes, bases, projected)
            for v, part in enumerate(parts):
                own = codes[part.rows]
                target = part.correlate(own).T
                bases[v] = nonnegative_quadratic(own.T @ own, target, 0.0, bases[v].T).T
                projected[v] = part.project(bases[v])
            _codes_steps(whole, penalty, codes, bases, projected)
            objective.append(objective_value(parts, penalty, codes, bases, projected))
            if has_converged(objective, self.tol) or objective[-1] <= self.tol * energy:
                break
        return codes, bases, objective


def _codes_steps(
    groups: Sequence[nmf.PatternGroup], penalty: Array, codes: Array, bases: Sequence[Array], projected: Sequence[Array]
) -> None:
    """Update the codes of some groups for given bases, in place; samples of a group share the Gram matrix Σ UUᵀ."""
    grams = [basis @ basis.T for basis in bases]
    for group in groups:
        gram = np.sum([grams[v] for v in group.places], axis=0)
        target = np.sum([projected[v][place] for v, place in group.places.items()], axis=0)
        codes[group.samples] = nonnegative_quadratic(gram, target, penalty[group.samples], codes[group.samples])


def objective_value(
    parts: Sequence[nmf.Observed], penalty: Array, codes: Array, bases: Sequence[Array], projected: Sequence[Array]
) -> float:
    """Return Σᵥ ‖Xᵥ − P[Oᵥ]Uᵥ‖² + Σᵢ λᵢ‖pᵢ‖₁ from XᵥUᵥᵀ."""
    triples = zip(parts, projected, bases, strict=True)
    errors = sum(part.squared_error(product, codes[part.rows], basis) for part, product, basis in triples)
    return float(errors + penalty.astype(np.float64) @ codes.sum(axis=1, dtype=np.float64))


def nonnegative_quadratic(
    gram: Array, target: Array, penalty: Array | float, start: Array, *, max_sweeps: int = 500, tol: float = 1e-6
) -> Array:
    """Return the minimiser of tr(ZGZᵀ) − 2 tr(ZBᵀ) + Σᵢ λᵢ‖zᵢ‖₁ over Z ≥ 0, by coordinate descent on all rows at once.

    Parameters
    ----------
    gram : array of shape (n_components, n_components)
        G, positive semi-definite.
    target : array of shape (n_rows, n_components)
        B.
    penalty : float or array of shape (n_rows,)
        λ, for all rows or for each.
    start : array of shape (n_rows, n_components)
        Starting values; not changed.
    max_sweeps : int, default=500
        Most passes over the columns.
    tol : float, default=1e-6
        Stop when no entry of column j has moved by tol / √Gⱼⱼ or more in a pass.

    Returns
    -------
    array of shape (n_rows, n_components)
    """
    found = np.array(start.T, order="C")  # one coordinate of all rows is contiguous
    wanted = np.ascontiguousarray((target - np.reshape(penalty, (-1, 1)) / 2).T)
    sizes = np.diagonal(gram)
    roots = np.sqrt(sizes)[:, None]
    eps = float(np.finfo(found.dtype).eps)
    # Coordinates of components with (nearly) zero weight do not change
    alive = np.flatnonzero(sizes > eps**2 * sizes.max())
    tol = max(tol, 8 * eps * float((roots * found).max(initial=0)))  # smaller changes may be rounding errors
    for _ in range(max_sweeps):
        before = found.copy()
        for j in alive:
            np.maximum(found[j] - (gram[j] @ found - wanted[j]) / sizes[j], 0, out=found[j])
        if (roots * np.abs(found - before)).max(initial=0) < tol:
            break
    return np.asarray(found.T)
