"""Recovered views of a fitted model: rows by every method, and the accuracy of each method on held-out samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import GapviewError, SolutionError
from ..graph.donors import ComparableRows, donor_means, nearest_donors, query_rows, training_rows
from ..graph.imputation import donor_slope, impute_rows
from ..graph.neighbors import nearest
from ..graph.regression import FeatureUnits, Predictors, ViewAxes, mean_rows, ridge_rows, squared_errors
from ..utils.messages import warn_user
from ..utils.shown import Shown, Table
from ..utils.types import Array, Matrix
from ..views import Views
from ..views.cells import dense
from ..views.linking import parts_of

MEAN, BLEND = "mean", "blend"
SIMPLE_METHODS = (MEAN, "knn", "ridge")  # use nothing of the model but its scaling
LITTLE = 0.05  # R² below which recovered values are about the mean of the view
_N_FOLDS = 5
_FEWEST_TESTED = 10
# Samples that views are hidden from: fewer if the views are wide, so that five fits cost little
_MOST_TESTED, _FEWEST_DRAWN, _MOST_VALUES = 2000, 500, 2**25


class Recoverer:
    """The rows that a fitted model recovers for samples, by any method.

    Parameters
    ----------
    model : LatentSpaceMixin
        The fitted model.
    views : Views
        The samples; ``model.views_`` itself for the training samples.
    embedding : array of shape (n_samples, n_components)
        Their codes.
    n_neighbors : int
        Number of neighbours in the latent space.
    values : Views, optional
        The training samples with the values to recover, all features; by default transformed by their kinds.
    """

    def __init__(
        self, model: Any, views: Views, embedding: Array, n_neighbors: int, values: Views | None = None
    ) -> None:
        self.model, self.views, self.embedding, self.n_neighbors = model, views, embedding, n_neighbors
        self.values = model.prepared(model.views_, all_features=True) if values is None else values
        self.slopes: dict[int, float] = {}
        self._donors: tuple[Any, Array] | None = None  # of the last view and samples, which two methods use

    def rows(self, view: int, method: str, samples: Array) -> Matrix:
        """Return rows of a view, transformed by its kind, for some of the samples, which lack it."""
        source = self.values.matrices[view]
        if method == MEAN:
            return mean_rows(source, len(samples))
        if method == "ridge":
            return ridge_rows(source, self.predictors[0], view, self.predictors[1][samples])
        if method == BLEND:
            return _halfway(*(self.rows(view, way, samples) for way in ("ridge", self.model.latent_recovery)))
        if method == "basis":
            return _from_basis(self.model, source, self.embedding[samples], view)
        if method == "neighbors":
            return _neighbor_mean(self.model, source, self.embedding[samples], view, self.n_neighbors)
        donors = self._nearest_donors(view, samples)
        if method == "knn":
            return _donor_rows(self.values, view, donors)
        if view not in self.slopes:
            self.slopes[view] = donor_slope(self.values, view, self.tables[0])
        nearby = self.rows(view, "neighbors", samples)
        return impute_rows(self.values, view, donors, nearby, self.slopes[view])

    def _nearest_donors(self, view: int, samples: Array) -> Array:
        key = (view, samples.tobytes())
        if self._donors is None or self._donors[0] != key:
            self._donors = key, nearest_donors(self.tables[0], view, self.tables[1], samples)
        return self._donors[1]

    @cached_property
    def tables(self) -> tuple[Sequence[ComparableRows], Sequence[ComparableRows]]:
        """The scaled rows of the training samples and of these samples."""
        trained = self.model.views_
        weights = getattr(self.model, "view_weights_", np.ones(trained.n_views)).tolist()
        tables = training_rows(self.model.scaled(trained), trained, weights)
        same = self.views is trained
        return tables, tables if same else query_rows(self.model.scaled(self.views), self.views, tables)

    @cached_property
    def predictors(self) -> tuple[Predictors, Predictors]:
        """The principal axes of the training samples and of these samples."""
        trained = self.model.prepared(self.model.views_)
        axes = ViewAxes(trained)
        training = axes.predictors(trained)
        same = self.views is self.model.views_
        return training, training if same else axes.predictors(self.model.prepared(self.views))


def _halfway(first: Matrix, second: Matrix) -> Matrix:
    half = first.dtype.type(0.5)
    total = first * half + second * half  # the sum of the largest numbers stays finite
    return sparse.csr_array(total) if sparse.issparse(total) else total


def _from_basis(model: Any, source: Matrix, codes: Array, view: int) -> Array:
    dtype = source.dtype
    with np.errstate(over="ignore", invalid="ignore"):
        rows = model.scalings_[view].undo(codes @ model.bases_[view]).astype(dtype, copy=False)
    if rows.shape[1] < source.shape[1]:  # features that are not kept have no basis
        whole = dense(mean_rows(source, len(codes))).astype(dtype)
        whole[:, model.kinds_[view].kept] = rows
        rows = whole
    if not np.isfinite(rows).all():
        raise SolutionError(
            f"View '{model.views_.names[view]}' cannot be recovered with method='basis': the values are too large "
            f"for {dtype}. Use method='neighbors', or fit with a scale that brings all views to one size."
        )
    return rows  # type: ignore[no-any-return]


def _neighbor_mean(model: Any, source: Matrix, codes: Array, view: int, n_neighbors: int) -> Matrix:
    points = model.latent_points(model.embedding_[model.views_.rows(view)])
    _, indices = nearest(points, min(n_neighbors, source.shape[0]), model.latent_points(codes))
    return _finite(donor_means(source, np.arange(source.shape[0]), indices)[0])


def _donor_rows(views: Views, view: int, donors: Array) -> Matrix:
    """Return the mean rows of donors; the mean of the view for samples without any."""
    source, position = views.matrices[view], np.full(views.n_samples, -1)
    position[views.rows(view)] = np.arange(source.shape[0])
    means, has_donors = donor_means(source, position, donors)
    lacking = np.flatnonzero(~has_donors)
    pieces = [(np.flatnonzero(has_donors), means[has_donors]), (lacking, mean_rows(source, len(lacking)))]
    return _finite(_joined(pieces))


def _finite(means: Matrix) -> Matrix:
    values, limit = means.data if sparse.issparse(means) else means, np.finfo(means.dtype).max
    np.clip(values, -limit, limit, out=values)  # rounding may carry a mean of the largest numbers beyond them
    return means


def _joined(pieces: Sequence[tuple[Array, Matrix]]) -> Matrix:
    """Return rows in one matrix, each at its place."""
    order = np.argsort(np.concatenate([places for places, _ in pieces]))
    matrices = [rows for _, rows in pieces]
    if any(sparse.issparse(rows) for rows in matrices):
        return sparse.csr_array(sparse.vstack([sparse.csr_array(rows) for rows in matrices]))[order]
    return np.concatenate(matrices)[order]


# -- the best method -------------------------------------------------------------------------------------------------


def recovered_rows(recoverer: Recoverer, method: str) -> Iterator[Matrix]:
    """Yield for each view the recovered rows of the samples without it, in the units of the data.

    Samples without a view that samples link to the one wanted get its mean. With ``method="auto"``, each view is
    recovered by the method that was best on held-out samples, and samples whose views no training sample has together
    with the one wanted by the latent space.

    Warns
    -----
    GapviewWarning
        If no sample links the views of a sample with the one wanted. With ``method="auto"``, if the best method is
        hardly better than the mean.
    """
    model, views, trained = recoverer.model, recoverer.views, recoverer.model.views_.mask
    view_parts = parts_of(trained)
    apart = []
    for k, name in enumerate(model.views_.names):
        lacking = ~views.mask[:, k]
        linked = views.mask[:, view_parts == view_parts[k]].any(axis=1)
        shared = views.mask[:, trained[trained[:, k]].any(axis=0)].any(axis=1)
        own, across = np.flatnonzero(lacking & linked & shared), np.flatnonzero(lacking & linked & ~shared)
        others = np.flatnonzero(lacking & ~linked)
        best = latent = method
        if method == "auto":
            best, latent = _best_method(recoverer, k) if len(own) else MEAN, model.latent_recovery
        apart += [repr(name)] if len(others) else []
        parts = [(own, best), (across, latent), (others, MEAN)]
        places = np.cumsum(lacking) - 1
        pieces = [(places[rows], recoverer.rows(k, way, rows)) for rows, way in parts if len(rows)]
        rows = _joined(pieces) if pieces else recoverer.rows(k, MEAN, own)
        yield model.kinds_[k].undo(rows) if getattr(model, "kinds_", None) else rows
    if apart:
        warn_user(
            f"No sample links some samples with {', '.join(apart)}: their rows are the mean of the view. Samples with "
            "views of both parts would link them."
        )


def _best_method(recoverer: Recoverer, view: int) -> str:
    found = recovery_of(recoverer.model, recoverer.n_neighbors)[view]
    if found.r2 and found.best_r2 < LITTLE:
        warn_user(
            f"The other views hardly predict '{found.view}': R² = {found.best_r2:.2f} on held-out samples. Its "
            "recovered values are about the mean of the view: do not use them as measurements."
        )
    return found.method


# -- accuracy on held-out samples ------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class ViewRecovery(Shown):
    """How well one view is recovered from the others, on held-out samples.

    Attributes
    ----------
    view : str
        Name of the view.
    method : str
        The method of the highest R², which ``recover`` uses.
    r2 : dict of float
        For every method R² = 1 − SSE / SST over all held-out values. SSE is the sum of the squared errors, SST that of
        the mean of the samples not held out. Features are standardised first, so that each counts the same, unless more
        than nine tenths of the values are zero. 0 for ``"mean"`` by definition; empty if it cannot be measured.
    feature_r2 : dict of arrays of shape (n_features,)
        The same for every feature; NaN for features that are constant.
    n_tested : int
        Number of held-out samples.
    reason : str
        Why it cannot be measured, if so.
    """

    view: str
    method: str
    r2: Mapping[str, float] = field(default_factory=dict)
    feature_r2: Mapping[str, Array] = field(default_factory=dict)
    n_tested: int = 0
    reason: str = ""

    @property
    def best_r2(self) -> float:
        """R² of the method used; NaN if it cannot be measured."""
        return self.r2.get(self.method, float("nan"))

    def feature_range(self) -> tuple[float, float, float]:
        """Return the lowest, the median and the highest R² of a feature by the method used; NaN without any."""
        values = self.feature_r2.get(self.method, np.zeros(0))
        values = values[np.isfinite(values)]
        if not len(values):
            return (float("nan"),) * 3
        return float(values.min()), float(np.median(values)), float(values.max())

    def _shown_as(self) -> Table:
        """Return the R² by every method."""
        return Table(str(self))

    def __str__(self) -> str:
        if self.reason:
            return f"'{self.view}': R² is not known, since {self.reason}; recovered by {self.method!r}"
        low, middle, high = self.feature_range()
        others = ", ".join(f"{name} {value:.2f}" for name, value in self.r2.items() if name != self.method)
        return (
            f"'{self.view}': R² {self.best_r2:.2f} on {self.n_tested:,} held-out samples by {self.method!r} (features: "
            f"median {middle:.2f}, {low:.2f} to {high:.2f}); {others}"
        )


def recovery_of(model: Any, n_neighbors: int) -> tuple[ViewRecovery, ...]:
    """Return how well each view is recovered, by every method; computed once for a fitted model."""
    known = model.__dict__.setdefault("_recovery_scores_", {})  # a name that the next fit discards
    if n_neighbors not in known:
        known[n_neighbors] = _HeldOut(model, n_neighbors).scores()
    return known[n_neighbors]  # type: ignore[no-any-return]


class _HeldOut:
    """Values of some samples that are hidden from repeated fits, and recovered by every method.

    The model is fitted again because codes know the hidden rows: those of the neighbours of a sample, too.
    """

    def __init__(self, model: Any, n_neighbors: int) -> None:
        views: Views = model.prepared(model.views_)
        whole: Views = model.prepared(model.views_, all_features=True)
        n_most = int(min(_MOST_TESTED, max(_MOST_VALUES // sum(views.n_features), _FEWEST_DRAWN)))
        state = np.random.RandomState(0)
        self.rows = np.sort(state.permutation(views.n_samples)[:n_most])
        self.model, self.views = model, views[self.rows]
        self.values = self.views if whole is views else whole[self.rows]
        self.fold = _folds(self.views.mask, state)
        self.n_neighbors = n_neighbors
        self.units = [FeatureUnits.fit(matrix) for matrix in whole.matrices]
        self.names = [way for way in model.recovery_candidates if way != MEAN]
        self.total = [np.zeros(m) for m in whole.n_features]
        self.errors = [{way: np.zeros(m) for way in self.names} for m in whole.n_features]
        self.n_tested = [0] * views.n_views

    @cached_property
    def axis_scores(self) -> tuple[Array, ...]:
        """The samples on the principal axes of each view, which do not depend on the hidden rows of others."""
        return ViewAxes(self.model.prepared(self.model.views_)).predictors(self.views).scores

    def scores(self) -> tuple[ViewRecovery, ...]:
        candidates = (self.fold >= 0).sum(axis=0)
        if (candidates >= _FEWEST_TESTED).any():
            for fold in range(_N_FOLDS):
                self._test(self.fold == fold)
        return tuple(self._score(k) for k in range(self.views.n_views))

    def _test(self, hidden: Array) -> None:
        """Add the errors of one fold."""
        given = self.views.hide(~hidden)
        try:
            # Few samples, in memory; their views are prepared
            plain = {"memory_budget": None, "device": None, "kind": None, "n_top_features": None}
            model = self.model.refit(given, self.rows, **plain)
        except (GapviewError, np.linalg.LinAlgError):  # such as a view that has become constant
            return
        known = model.views_ if self.values is self.views else self.values.hide(~hidden)
        recoverer = Recoverer(model, model.views_, model.embedding_, self.n_neighbors, known)
        predictors = Predictors(self.axis_scores, given.mask)
        recoverer.predictors = predictors, predictors
        for k, matrix in enumerate(self.values.matrices):
            tested = np.flatnonzero(hidden[:, k] & given.mask.any(axis=1))
            if not len(tested):
                continue
            truth = matrix[(np.cumsum(self.views.mask[:, k]) - 1)[tested]]
            self.n_tested[k] += len(tested)
            self.total[k] += squared_errors(truth, self.units[k].mean(known.matrices[k]), self.units[k])
            found = {way: recoverer.rows(k, way, tested) for way in self.names if way != BLEND}
            found[BLEND] = _halfway(found["ridge"], found[model.latent_recovery])
            for way, rows in found.items():
                self.errors[k][way] += squared_errors(truth, rows, self.units[k])

    def _score(self, view: int) -> ViewRecovery:
        name, total, n_tested = self.views.names[view], self.total[view], self.n_tested[view]
        if n_tested < _FEWEST_TESTED:
            reason = "there is one view" if self.views.n_views == 1 else "a fit to part of the samples fails"
            if self.views.n_views > 1 and (self.fold[:, view] >= 0).sum() < _FEWEST_TESTED:
                reason = f"fewer than {_FEWEST_TESTED} samples have this view and another one"
            return ViewRecovery(name, self.model.latent_recovery, reason=reason)
        if not total.sum() > 0:
            return ViewRecovery(name, MEAN, reason="it is constant")
        varies = total > 1e-12 * total.max()
        r2, feature_r2 = {MEAN: 0.0}, {MEAN: np.where(varies, 0.0, np.nan)}
        for way, own in self.errors[view].items():
            r2[way] = float(1 - own.sum() / total.sum())
            feature_r2[way] = np.where(varies, 1 - own / np.where(varies, total, 1.0), np.nan)
        return ViewRecovery(name, max(r2, key=lambda way: r2[way]), r2, feature_r2, n_tested)


def _folds(mask: Array, state: np.random.RandomState) -> Array:
    """Return the fold in which every view of every sample is hidden; −1 if never.

    Views of one sample have different folds where there are enough, and at least one is present in each.
    """
    draws = np.where(mask, state.uniform(size=mask.shape), 2.0)
    place = np.argsort(np.argsort(draws, axis=1), axis=1)  # present views of a sample first, in random order
    fold = (place + state.randint(_N_FOLDS, size=len(mask))[:, None]) % _N_FOLDS
    return np.where(mask & (mask.sum(axis=1) > 1)[:, None], fold, -1)


@dataclass(frozen=True, repr=False)
class RecoveryScores(Shown):
    """How well every view is recovered from the others, on held-out samples.

    Attributes
    ----------
    views : tuple of ViewRecovery
        One for each view.
    """

    views: tuple[ViewRecovery, ...]

    @property
    def table(self) -> list[dict[str, Any]]:
        """One row for every view: the method used and R² of every method; ``pandas.DataFrame`` shows it."""
        return [{"view": one.view, "method": one.method, "n_tested": one.n_tested, **one.r2} for one in self.views]

    def _shown_as(self) -> Table:
        """Return the R² of every view by every method."""
        ways = list(dict.fromkeys(way for one in self.views for way in one.r2))
        rows = [
            (one.view, one.n_tested, one.method, one.best_r2, *(one.r2.get(way, float("nan")) for way in ways))
            for one in self.views
        ]
        notes = [str(one) for one in self.views if one.reason]
        columns = ("view", "held-out samples", "method used", "its R²", *ways)
        return Table("How well each view is recovered from the others", columns, rows, notes)

    def __str__(self) -> str:
        return "\n".join(map(str, self.views))
