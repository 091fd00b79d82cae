"""How a model came about: the settings and who chose them, the iterations, and how to do it again."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from inspect import signature
from typing import Any

import numpy as np
from scipy import sparse

from ...choice.n_clusters import ClusterCount
from ...choice.selection import Selection
from ...graph.knn import resolve_n_neighbors
from ...persist.model_file import summarise as summarise_model
from ...utils.types import Array
from ...views import Views

__all__ = ["Choices", "Convergence", "Repeat", "SettingFact", "data_digest", "summarise_choices", "summarise_repeat"]

_LIBRARIES = ("numpy", "scipy", "scikit-learn")
_SETTLED = (  # what a setting holds in place of "auto"
    ("scales", "scale"),
    ("n_neighbors", "n_neighbors"),
    ("bridge", "bridge"),
    ("reach", "reach"),
    ("n_components", "n_components"),
    ("consensus_weight", "consensus_weight"),
    ("sparsity_weight", "sparsity_weight"),
)
_TRIED = {"scale", "bridge", "reach"}  # chosen among candidates; the others follow rules


@dataclass(frozen=True)
class SettingFact:
    """One setting: its value, and where it comes from."""

    name: str
    value: str
    origin: str  # "given", "default", "chosen from the data" or "by rule"


@dataclass(frozen=True)
class Choices:
    """The settings of a fit; what was tried and how many groups were considered, where the method has looked."""

    settings: tuple[SettingFact, ...]
    selection: Selection | None
    count: ClusterCount | None
    view_weights: tuple[float, ...] | None
    searches: tuple[str, ...]
    recall: float  # the least share of the true neighbours that a search has found


@dataclass(frozen=True)
class Convergence:
    """The objective after every iteration, and why there were no more."""

    objective: Array = field(repr=False)
    tol: float
    max_iter: int
    last_change: float  # relative; NaN after one iteration

    @property
    def changes(self) -> Array:
        """Relative change of the objective in every iteration from the second on."""
        before = np.abs(self.objective[:-1])
        return np.abs(np.diff(self.objective)) / np.where(before > 0, before, 1.0)

    @property
    def settled(self) -> bool:
        """Whether the iterations ended because the objective hardly changed any more."""
        return self.tol > 0 and self.last_change <= self.tol


@dataclass(frozen=True)
class Repeat:
    """What is needed to repeat a fit: lines of Python, versions, a digest of the data, and what the caller knows."""

    python: str
    versions: tuple[tuple[str, str], ...]
    digest: str
    seed: str
    command: str
    run: tuple[tuple[str, str], ...]


def summarise_choices(model: Any) -> Choices:
    """Say which settings a model has, and where they come from."""
    shown = summarise_model(model).settings
    weights = getattr(model, "view_weights_", None)
    settled = _settled(model)
    return Choices(
        tuple(_setting_fact(model, name, shown[name], default, settled) for name, default in _defaults(model).items()),
        getattr(model, "selection_", None),
        getattr(model, "cluster_count_", None),
        None if weights is None else tuple(float(weight) for weight in weights),
        tuple(str(search) for search in model.neighbor_search_),
        min((search.recall for search in model.neighbor_search_), default=1.0),
    )


def _settled(model: Any) -> dict[str, str]:
    """Return what has come in the place of every 'auto'."""
    found = {"n_clusters": str(len(model.cluster_centers_))}
    setting = getattr(model, "setting_", None)
    if setting is not None:
        found |= {parameter: _in_brief(getattr(setting, name)) for name, parameter in _SETTLED}
        found["view_weights"] = ", ".join(f"{weight:.2f}" for weight in model.view_weights_)
    elif model.graph is None:
        found["n_neighbors"] = _in_brief(tuple(resolve_n_neighbors("auto", model.views_, model.n_clusters)))
    return found


def _in_brief(value: Any) -> str:
    if not isinstance(value, tuple):
        return str(value)
    return str(value[0]) if len(set(value)) == 1 else ", ".join(str(one) for one in value)


def _setting_fact(model: Any, name: str, shown: Any, default: Any, settled: Mapping[str, str]) -> SettingFact:
    given = getattr(model, name)
    if isinstance(given, str) and given == "auto" and name in settled:
        looked = name in _TRIED or name in ("n_clusters", "view_weights")
        chosen = looked and getattr(model, "selection", "fixed") != "fixed"
        return SettingFact(name, settled[name], "chosen from the data" if chosen or name == "n_clusters" else "by rule")
    return SettingFact(name, str(shown), "default" if _same(given, default) else "given")


def _defaults(model: Any) -> dict[str, Any]:
    return {name: parameter.default for name, parameter in signature(type(model)).parameters.items()}


def _same(given: Any, default: Any) -> bool:
    return type(given) is type(default) and not isinstance(given, np.ndarray) and bool(given == default)


def summarise_convergence(model: Any) -> Convergence:
    """Keep the objective, and whether it had settled."""
    objective = np.asarray(model.objective_, dtype=np.float64)
    found = Convergence(objective, float(model.tol), int(model.max_iter), float("nan"))
    return found if len(objective) < 2 else Convergence(objective, found.tol, found.max_iter, float(found.changes[-1]))


def summarise_repeat(model: Any, run: Mapping[str, Any] | None) -> Repeat:
    """Write down how to get the same model again."""
    method = type(model).__name__
    settings = {name: (getattr(model, name), default) for name, default in _defaults(model).items()}
    simple = (str, int, float, bool, type(None))
    arguments = ", ".join(
        f"{name}={value!r}" if isinstance(value, simple) else f"{name}=…"
        for name, (value, default) in settings.items()
        if not _same(value, default)
    )
    lines = [
        f"from gapview import {method}",
        "from gapview.report import write_clustering_report",
        "",
        f"model = {method}({arguments}).fit(views)",
        'write_clustering_report(model, "report.html")',
    ]
    known = dict(run or {})
    command = str(known.pop("command", ""))
    state = model.random_state
    seed = str(state) if isinstance(state, int | np.integer) else "" if state is None else type(state).__name__
    versions = [("gapview", version("gapview")), ("Python", platform.python_version())]
    versions += [(name, version(name)) for name in _LIBRARIES]
    told = tuple((str(name), _flat(value)) for name, value in known.items())
    return Repeat("\n".join(lines), tuple(versions), data_digest(model.views_), seed, command, told)


def _flat(value: Any) -> str:
    """Write what a run says of itself on one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_flat(inner)}" for name, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_flat(inner) for inner in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def data_digest(views: Views) -> str:
    """Return a fingerprint of the numbers, of what is missing and of the names of the views; ids do not count."""
    digest = hashlib.sha256()
    digest.update(repr((views.names, views.mask.shape)).encode())
    digest.update(np.packbits(views.mask).tobytes())
    for matrix in views.matrices:
        digest.update(repr((matrix.shape, str(matrix.dtype), sparse.issparse(matrix))).encode())
        parts = (matrix.data, matrix.indices, matrix.indptr) if sparse.issparse(matrix) else (matrix,)
        for part in parts:
            digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()
