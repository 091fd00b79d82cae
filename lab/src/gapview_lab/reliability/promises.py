"""Check the guarantees of every fit: a valid result, or an error of gapview."""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from gapview import GRMF, BridgedGRMF, Views, baselines
from gapview.errors import GapviewError, GapviewWarning, SolutionError
from gapview.graph import Reach
from gapview.scaling import row_lengths, scale_views, unit_rows

from .made_problems import Made

__all__ = ["FitOutcome", "outcome_of"]

_PACKAGE = f"{os.sep}gapview{os.sep}"
_ROUNDING = 1000  # units in the last place that sums over all values of a problem may be off
_MOSTLY_FALLS = ("MIC",)  # says itself that its objective has small rises
_MAXIMISE = ("CoRegularizedSpectral", "MeanFilledSpectral")
_WEIGHT_VIEWS = ("RobustMultiViewKMeans", "BipartiteSpectral")
_LATENT = ("GRMF", "BridgedGRMF")


@dataclass(frozen=True)
class FitOutcome:
    """Outcome of one problem: a ``result``, ``refused`` with a type of error, or a ``defect``."""

    kind: str
    said: str
    seconds: float


class Broken(Exception):
    """A guarantee was violated."""


def outcome_of(made: Made) -> FitOutcome:
    """Fit the problem, use the model, and return the outcome.

    Examples
    --------
    >>> from gapview_lab.reliability.made_problems import make_problem
    >>> from gapview_lab.reliability.promises import outcome_of
    >>> outcome_of(make_problem(0, "Concat")).kind in ("result", "refused")
    True
    """
    begin = perf_counter()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        kind, said = _tried(made)
    for warning in heard:
        if kind != "defect" and not _is_ours(warning, made.method):
            place = warning.filename.rsplit(os.sep, 1)[-1]
            kind, said = "defect", f"{warning.category.__name__} in {place}: {str(warning.message)[:90]}"
    return FitOutcome(kind, said, perf_counter() - begin)


def _is_ours(warning: warnings.WarningMessage, method: str) -> bool:
    if issubclass(warning.category, ConvergenceWarning):
        return str(warning.message).startswith(f"{method} stopped at max_iter=")
    return issubclass(warning.category, GapviewWarning)


def _tried(made: Made) -> tuple[str, str]:
    model = {"GRMF": GRMF, "BridgedGRMF": BridgedGRMF}.get(made.method) or getattr(baselines, made.method)
    before = [view.copy() for view in made.views]
    try:
        fitted = model(**made.settings).fit(made.views, mask=made.mask)
    except GapviewError as error:
        return ("defect", f"no advice in: {error}") if len(str(error)) < 20 else ("refused", type(error).__name__)
    except Exception as error:  # whatever else comes is what is looked for
        return "defect", f"fit: {_in_short(error)}"
    step = "fit"
    try:
        _demand(all(map(_same, before, made.views)), "the views that came in have changed")
        views = Views(made.views, mask=made.mask, partial_rows=made.settings["partial_rows"])
        _check_result(fitted, made, views)
        if made.method in _LATENT:
            _check_latent(fitted)
        for step, _ in _used(fitted, made, views):  # noqa: B007  the last step is the one that failed
            pass
    except Broken as broken:
        return "defect", f"{step}: {broken}" if step != "fit" else str(broken)
    except Exception as error:
        return "defect", f"after {step}: {_in_short(error)}"
    return "result", ""


def _in_short(error: Exception) -> str:
    inside = [frame for frame in traceback.extract_tb(error.__traceback__) if _PACKAGE in frame.filename]
    place = f"{inside[-1].filename.rsplit(_PACKAGE, 1)[-1]}:{inside[-1].name}" if inside else "?"
    return f"{type(error).__name__} in {place}: {str(error)[:90]}"


def _demand(kept: Any, promise: str) -> None:
    if not kept:
        raise Broken(promise)


def _same(before: Any, after: Any) -> bool:
    if sparse.issparse(before):
        before, after = before.toarray(), after.toarray()
    return np.array_equal(before, after, equal_nan=np.issubdtype(before.dtype, np.floating))


def _check_result(model: Any, made: Made, views: Views) -> None:
    """Check the guarantees of every clusterer."""
    n_samples, n_clusters = made.n_samples, made.settings["n_clusters"]
    n_clusters = len(model.cluster_centers_) if n_clusters == "auto" else n_clusters
    labels = model.labels_
    _demand(labels.shape == (n_samples,) and np.issubdtype(labels.dtype, np.integer), "one integer label per sample")
    _demand(labels.min() >= 0 and labels.max() < n_clusters, "labels from 0 to n_clusters - 1")
    _demand(np.array_equal(model.sample_ids_, np.arange(n_samples)), "samples stay in order")
    _demand(np.array_equal(model.views_.mask, views.mask), "the mask stays")
    _demand(len(model.embedding_) == n_samples and np.isfinite(model.embedding_).all(), "a finite embedding")
    for name in ("codes_", "bases_", "view_centers_", "anchors_", "coefficients_", "cluster_centers_"):
        _demand(all(np.isfinite(each).all() for each in getattr(model, name, ())), f"{name} are finite")
    objective = getattr(model, "objective_", None)
    if objective is not None:
        _demand(len(objective) == model.n_iter_, "one value of the objective per iteration")
        _demand(np.isfinite(objective).all(), "a finite objective")
        if made.method not in _MOSTLY_FALLS:
            kinds = [model.embedding_.dtype, *(centers.dtype for centers in getattr(model, "view_centers_", ()))]
            rounding = max(float(np.finfo(kind).eps) for kind in kinds)
            allowed = _ROUNDING * rounding * _size_of_objective(model, made, views)
            steps = np.diff(objective)
            if made.method in _MAXIMISE:
                _demand(-steps.min(initial=0.0) <= allowed, "the objective never falls")
            else:
                _demand(steps.max(initial=0.0) <= allowed, "the objective never rises")
    if made.method in _WEIGHT_VIEWS:
        weights = model.view_weights_
        _demand(weights.shape == (views.n_views,) and weights.min() >= 0, "a weight of at least 0 for every view")
        _demand(abs(weights.sum() - 1) <= 1e-9, "view weights sum to 1")
    if made.method == "KernelCompletion":
        _demand(views.mask.all(axis=0).any(), "no result without a complete view")


def _size_of_objective(model: Any, made: Made, views: Views) -> float:
    """Return the magnitude of the terms of the objective: their sum may be much smaller."""
    settings: Any = made.settings
    size = float(np.abs(model.objective_).max())
    tied = views.mask.sum(axis=1) >= 2
    energy = float(np.square(model.embedding_.astype(np.float64)).sum())
    if made.method == "GRMF":
        size += sum(_weight_of_rows(model, k, graph) for k, graph in enumerate(model.graphs_))
        own = float(np.square(model.embedding_[tied].astype(np.float64)).sum())
        return size + 2 * float(settings["consensus_weight"]) * views.n_views * own
    if made.method == "BridgedGRMF":
        for k, weight in enumerate(model.view_weights_.tolist()):
            reach = Reach(model.graph_, model.setting_.reach, views.rows(k), np.arange(views.n_samples))
            size += weight * _weight_of_rows(model, k, reach)
        return size + 2 * float(model.setting_.consensus_weight) * views.n_views * energy * (views.n_views > 1)
    if made.method in _MAXIMISE:  # traces of products with orthonormal columns, which may cancel
        return size + float(settings["n_clusters"] * views.n_views * (1 + views.n_views * settings["consensus_weight"]))
    if made.method == "BipartiteSpectral":  # differences of numbers up to n_clusters
        return size + float(settings["n_clusters"] * views.n_views)
    if made.method == "RobustMultiViewKMeans":  # lengths of differences of rows and centres
        scaled, _ = scale_views(views, settings["scale"])
        return size + sum(float(row_lengths(matrix).sum(dtype=np.float64)) for matrix in scaled)
    size += _nonnegative_energy(views, settings["scale"], settings["nonnegative"])
    tie = float(settings.get("consensus_weight", 0.0))
    graph = float(settings.get("graph_weight", 0.0)) * (tie if made.method == "GPMVC" else 1.0)
    # Differences of tied codes are squared: of their rounding, the square counts
    rounding = float(np.finfo(model.embedding_.dtype).eps)
    return size + (graph * views.n_samples + tie * rounding) * energy


def _nonnegative_energy(views: Views, scale: str | None, nonnegative: str | None) -> float:
    """Return ‖X‖² of the scaled views without negative values, as the non-negative factorisations take them."""
    total = 0.0
    for matrix in scale_views(views, scale)[0]:
        if nonnegative is not None and matrix.min() < 0:
            if nonnegative == "clip":
                matrix = matrix.maximum(0) if sparse.issparse(matrix) else np.maximum(matrix, 0)
            else:
                matrix = matrix - matrix.min()
                matrix = unit_rows(matrix) if scale is not None and scale.endswith("unit") else matrix
        total += float((row_lengths(matrix).astype(np.float64) ** 2).sum())
    return total


def _weight_of_rows(model: Any, k: int, weights: Any) -> float:
    lengths = row_lengths(model.scalings_[k].apply(model.views_.matrices[k])).astype(np.float64)
    return float(np.asarray(weights @ np.ones(weights.shape[1])) @ lengths**2)


def _check_latent(model: Any) -> None:
    """Check the additional guarantees of GRMF and BridgedGRMF."""
    for basis in model.bases_:
        gram = basis @ basis.T if basis.shape[0] <= basis.shape[1] else basis.T @ basis
        allowed = max(1e-6, 50 * float(np.finfo(basis.dtype).eps))
        _demand(np.abs(gram - np.eye(len(gram))).max() <= allowed, "orthonormal bases")
    confidence = model.confidence_
    _demand(confidence.shape == model.labels_.shape, "one confidence per sample")
    _demand(confidence.min() >= 0 and confidence.max() <= 1 + 1e-6, "confidence from 0 to 1")
    _demand(np.isfinite(model.cluster_centers_).all(), "finite centres")


def _used(model: Any, made: Made, views: Views) -> Iterator[tuple[str, None]]:
    """Use the model on its training data and on parts of them; yield the name of each step before it is done."""
    is_latent = made.method in _LATENT
    n_components = model.embedding_.shape[1]
    n_clusters = len(model.cluster_centers_) if is_latent else int(made.settings["n_clusters"])
    rng = np.random.default_rng(made.settings["random_state"])
    chosen = np.flatnonzero(rng.random(made.n_samples) < 0.5)
    view = int(rng.integers(views.n_views))
    parts = {"training data": views, "some samples": views[chosen if len(chosen) else [0]]}
    own = views[views.rows(view)]
    parts["one view"] = Views({own.names[view]: own.matrices[view]})
    for name, part in parts.items():
        if is_latent:
            yield f"transform of {name}", None
            found = model.transform(part)
            _demand(found.shape == (part.n_samples, n_components) and np.isfinite(found).all(), "a finite embedding")
        yield f"predict of {name}", None
        options = {"method": str(rng.choice(["neighbors", "centers"]))} if is_latent else {}
        labels = model.predict(part, **options)
        _demand(labels.shape == (part.n_samples,), "one label per sample")
        _demand(labels.min() >= 0 and labels.max() < n_clusters, "labels from 0 to n_clusters - 1")
        p_value = model.place(part).p_value
        _demand(p_value.min() > 0 and p_value.max() <= 1, "p-values above 0 and at most 1")
        if not is_latent:
            continue
        yield f"recover of {name}", None
        methods = ["neighbors", "basis", "bridge"] if made.method == "BridgedGRMF" else ["neighbors", "basis"]
        given = None if part is views and rng.random() < 0.5 else part
        method = str(rng.choice(methods))
        try:
            recovered = model.recover(given, method=method)
        except SolutionError:  # products of codes and bases need not be numbers that the type of a view can hold
            _demand(method == "basis", "every view recovered")
        else:
            _check_recovered(recovered, part, views)
    if not is_latent:
        return
    yield "score", None
    _demand(np.isfinite(model.score(views)), "a finite score")
    yield "view_agreement", None
    model.view_agreement()
    yield "feature_effects", None
    model.feature_effects()


def _check_recovered(recovered: Any, part: Views, views: Views) -> None:
    complete = list(recovered.values()) if isinstance(recovered, dict) else recovered
    for k, name in enumerate(views.names):
        matrix = complete[k].toarray() if sparse.issparse(complete[k]) else np.asarray(complete[k])
        _demand(matrix.shape == (part.n_samples, views.n_features[k]), "every view complete")
        _demand(np.isfinite(matrix).all(), "recovered values are finite")
        if name in part.names:
            own = part.names.index(name)
            present = part.matrices[own].toarray() if sparse.issparse(part.matrices[own]) else part.matrices[own]
            _demand(np.array_equal(matrix[part.mask[:, own]], present), "present values are untouched")
