"""How a model was fitted: settings and their origin, convergence, how to repeat it, and recovery of hidden views."""

from __future__ import annotations

import copy
import hashlib
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from inspect import signature
from typing import Any

import numpy as np
from scipy import sparse

from ...choice import ClusterCount, Selection
from ...graph.knn import resolve_n_neighbors
from ...graph.neighbors import SearchReport
from ...utils.types import Array, Matrix
from ...views import Views

# -- settings, convergence, repetition ---------------------------------------------------------------------------------


_LIBRARIES = ("numpy", "scipy", "scikit-learn")
_RESOLVED = ("n_neighbors", "bridge", "reach", "n_components", "consensus_weight", "sparsity_weight")
_TRIED = {"scale", "bridge", "reach", "view_weights"}  # chosen among candidates; the others follow rules


@dataclass(frozen=True)
class SettingFact:
    """One setting: its value, and where it comes from."""

    name: str
    value: str
    origin: str  # "given", "default", "chosen from the data" or "by rule"


@dataclass(frozen=True)
class Choices:
    """The settings of a fit, and the candidates and numbers of groups that were tried, if any."""

    settings: tuple[SettingFact, ...]
    selection: Selection | None
    count: ClusterCount | None
    view_weights: Sequence[float]
    searches: tuple[SearchReport, ...]


@dataclass(frozen=True)
class Convergence:
    """The objective after every iteration, and the stopping rule."""

    objective: Array = field(repr=False)
    tol: float

    @property
    def changes(self) -> Array:
        """Relative change of the objective in every iteration from the second on."""
        before = np.abs(self.objective[:-1])
        return np.abs(np.diff(self.objective)) / np.where(before > 0, before, 1.0)

    @property
    def last_change(self) -> float:
        """Relative change in the last iteration; NaN after one iteration."""
        return float(self.changes[-1]) if len(self.objective) > 1 else float("nan")

    @property
    def settled(self) -> bool:
        """Whether the iterations ended because the relative change was at most ``tol``."""
        return self.tol > 0 and self.last_change <= self.tol


@dataclass(frozen=True)
class Repeat:
    """What is needed to repeat a fit: Python code, versions, a digest of the data, and facts about the run."""

    python: str
    versions: tuple[tuple[str, str], ...]
    digest: str
    seed: str
    command: str
    run: tuple[tuple[str, str], ...]


def summarise_choices(model: Any, used: Mapping[str, Any]) -> Choices:
    """Return the settings of a model and their origin; ``used`` holds the settings as plain values."""
    resolved = _resolved(model)
    searched = getattr(model, "selection", "fixed") != "fixed"
    settings = []
    for name, default in _defaults(model).items():
        given = getattr(model, name)
        if isinstance(given, str) and given == "auto" and name in resolved:
            chosen = name == "n_clusters" or (searched and name in _TRIED)
            settings.append(SettingFact(name, resolved[name], "chosen from the data" if chosen else "by rule"))
        else:
            settings.append(SettingFact(name, str(used[name]), "default" if _same(given, default) else "given"))
    return Choices(
        tuple(settings),
        getattr(model, "selection_", None),
        getattr(model, "cluster_count_", None),
        getattr(model, "view_weights_", ()),
        model.neighbor_search_,
    )


def _resolved(model: Any) -> dict[str, str]:
    """Return the values that were used for parameters that may be 'auto'."""
    found = {"n_clusters": str(len(model.cluster_centers_))}
    setting = getattr(model, "setting_", None)
    if setting is not None:
        found |= {name: _in_brief(getattr(setting, name)) for name in _RESOLVED}
        found["scale"] = _in_brief(setting.scales)
        found["view_weights"] = ", ".join(f"{weight:.2f}" for weight in model.view_weights_)
    elif model.graph is None:
        found["n_neighbors"] = _in_brief(tuple(resolve_n_neighbors("auto", model.views_, model.n_clusters)))
    return found


def _in_brief(value: Any) -> str:
    if not isinstance(value, tuple):
        return str(value)
    return str(value[0]) if len(set(value)) == 1 else ", ".join(str(one) for one in value)


def _defaults(model: Any) -> dict[str, Any]:
    return {name: parameter.default for name, parameter in signature(type(model)).parameters.items()}


def _same(given: Any, default: Any) -> bool:
    return type(given) is type(default) and not isinstance(given, np.ndarray) and bool(given == default)


def summarise_convergence(model: Any) -> Convergence:
    """Return the objective of a model and its tolerance."""
    return Convergence(np.asarray(model.objective_, dtype=np.float64), float(model.tol))


def summarise_repeat(model: Any, run: Mapping[str, Any] | None) -> Repeat:
    """Return how to repeat the fit of a model."""
    method = type(model).__name__
    arguments = ", ".join(
        f"{name}={value!r}" if isinstance(value, str | int | float | bool | None) else f"{name}=…"
        for name, default in _defaults(model).items()
        if not _same(value := getattr(model, name), default)
    )
    python = (
        f"from gapview import {method}\nfrom gapview.report import write_clustering_report\n\n"
        f'model = {method}({arguments}).fit(views)\nwrite_clustering_report(model, "report.html")'
    )
    facts = dict(run or {})
    command = str(facts.pop("command", ""))
    state = model.random_state
    seed = str(state) if isinstance(state, int | np.integer) else "" if state is None else type(state).__name__
    versions = [("gapview", version("gapview")), ("Python", platform.python_version())]
    versions += [(name, version(name)) for name in _LIBRARIES]
    other_facts = tuple((str(name), _flat(value)) for name, value in facts.items())
    return Repeat(python, tuple(versions), data_digest(model.views_), seed, command, other_facts)


def _flat(value: Any) -> str:
    """Return a fact about the run on one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_flat(inner)}" for name, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_flat(inner) for inner in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def data_digest(views: Views) -> str:
    """Return the SHA-256 of the values, the mask and the names of the views; ids are not included."""
    digest = hashlib.sha256()
    digest.update(repr((views.names, views.mask.shape)).encode())
    digest.update(np.packbits(views.mask).tobytes())
    for matrix in views.matrices:
        digest.update(repr((matrix.shape, str(matrix.dtype), sparse.issparse(matrix))).encode())
        parts = (matrix.data, matrix.indices, matrix.indptr) if sparse.issparse(matrix) else (matrix,)
        for part in parts:
            digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


# -- recovery of hidden views ------------------------------------------------------------------------------------------


_MOST_TESTED = 200
_TESTED_SHARE = 0.2
_LEAST_TESTED = 10
_MOST_SOURCES = 20_000  # samples to recover from; more cost time and change little
_N_RESAMPLES = 500


@dataclass(frozen=True)
class Recovered:
    """Error of one recovered view.

    Attributes
    ----------
    error : float
        Error of the recovered rows divided by the error of the mean of the view. Features are standardised if the model
        standardises them. NaN if it could not be measured.
    low, high : float
        Its 95 % interval, by bootstrap over the samples.
    n_tested : int
        Number of samples from which the view was hidden.
    reason : str
        Why it could not be measured, if so.
    """

    view: str
    error: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    n_tested: int = 0
    reason: str = ""


def summarise_recovery(model: Any, seed: int = 0) -> tuple[Recovered, ...]:
    """Return the errors of recovered views: each view is hidden from some samples that have another one.

    The tested samples are removed from the samples that the model recovers from. The bases were fitted with them, so
    that the errors are slightly too small, by about 1 to 2 % of their size on the embedded digits.
    """
    state = np.random.RandomState(seed)
    return tuple(_recovered(model, k, state) for k in range(model.views_.n_views))


def _recovered(model: Any, view: int, state: np.random.RandomState) -> Recovered:
    views: Views = model.views_
    name, having = views.names[view], views.mask[:, view]
    candidates = np.flatnonzero(having & (views.mask.sum(axis=1) > 1))
    n_tested = min(_MOST_TESTED, int(_TESTED_SHARE * len(candidates)))
    if n_tested < _LEAST_TESTED:
        return Recovered(name, reason=f"only {len(candidates)} samples have this view and another one")
    tested = np.sort(state.permutation(candidates)[:n_tested])
    others = np.setdiff1d(np.arange(views.n_samples), tested)
    sources = np.sort(state.permutation(others)[:_MOST_SOURCES])
    rest = views[sources]
    known = rest.matrices
    if min(matrix.shape[0] for matrix in known) < 2:
        return Recovered(name, reason="too few samples are left to recover it from")
    found = _recover_from(model, rest, sources, tested, view)
    spread = model.scalings_[view].spread
    mean = np.asarray(known[view].mean(axis=0), dtype=np.float64).ravel()
    errors = _squared_errors((found, mean), views[tested].matrices[view], 1.0 if spread is None else spread)
    if not errors[1].sum() > 0:
        return Recovered(name, reason="it is the same for all samples tested")
    drawn = errors[:, state.randint(n_tested, size=(_N_RESAMPLES, n_tested))].sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = np.nanpercentile(np.sqrt(drawn[0] / drawn[1]), [2.5, 97.5])
    own, of_mean = errors.sum(axis=1)
    return Recovered(name, float(np.sqrt(own / of_mean)), float(low), float(high), n_tested)


def _recover_from(model: Any, rest: Views, sources: Array, tested: Array, view: int) -> Matrix:
    """Return a view of the tested samples, recovered from the other samples only."""
    reduced = copy.copy(model)
    reduced.views_, reduced.embedding_ = rest, model.embedding_[sources]
    given = model.views_[tested]
    keep = given.mask.copy()
    keep[:, view] = False
    recovered: Matrix = reduced.recover(given.hide(keep).in_arrays())[view]
    return recovered


def _squared_errors(guesses: tuple[Matrix, Array], true: Matrix, spread: Array | float) -> Array:
    """Return for each guess the squared error of every sample, with features divided by ``spread``."""
    matrices: list[Matrix] = [*guesses, true]
    dense = [np.asarray(m.toarray() if sparse.issparse(m) else m, dtype=np.float64) for m in matrices]
    return np.stack([np.square((guess - dense[-1]) / spread).sum(axis=1) for guess in dense[:-1]])
