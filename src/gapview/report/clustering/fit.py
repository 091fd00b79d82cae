"""How a model was fitted: settings and their origin, convergence, and how to repeat it."""

from __future__ import annotations

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
from ...trust.association import BATCH
from ...utils.types import Array
from ...views import Views

# -- settings, convergence, repetition ---------------------------------------------------------------------------------


_MOST_SHOWN = 10  # values of a parameter by the names of views
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
            chosen = name in ("n_clusters", "kind") or (searched and name in _TRIED)
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
    if getattr(model, "kinds_", None):
        found["kind"] = _in_brief(tuple(rule.kind for rule in model.kinds_))
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
        f"{name}={value!r}" if _is_short(value) else f"{name}=…"
        for name, default in _defaults(model).items()
        if not _same(value := getattr(model, name), default)
    )
    batch = ", batch=batches" if any(test.factor == BATCH for test in getattr(model, "associations_", ())) else ""
    python = (
        f"from gapview import {method}\nfrom gapview.report import write_clustering_report\n\n"
        f'model = {method}({arguments}).fit(views{batch})\nwrite_clustering_report(model, "report.html")'
    )
    facts = dict(run or {})
    command = str(facts.pop("command", ""))
    state = model.random_state
    seed = str(state) if isinstance(state, int | np.integer) else "" if state is None else type(state).__name__
    versions = [("gapview", version("gapview")), ("Python", platform.python_version())]
    versions += [(name, version(name)) for name in _LIBRARIES]
    other_facts = tuple((str(name), _flat(value)) for name, value in facts.items())
    return Repeat(python, tuple(versions), data_digest(model.views_), seed, command, other_facts)


def _is_short(value: Any) -> bool:
    """Return whether a parameter can be shown: a plain value, or a few of them by the names of views."""
    if isinstance(value, dict):
        return len(value) <= _MOST_SHOWN and all(map(_is_short, value.values()))
    return isinstance(value, str | int | float | bool | None)


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
