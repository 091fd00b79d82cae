"""From the words of a command to a method with its settings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ..errors import ParameterError
from ..estimators import BridgedGRMF, MultiViewClusterer
from ..methods import METHODS

__all__ = ["MethodRequest", "build_model", "value_of"]

_OWN_OPTIONS = {"n_clusters": "-k", "scale": "--scale", "partial_rows": "--partial-rows", "random_state": "--seed"}
_WORDS = {"none": None, "true": True, "false": False}


@dataclass(frozen=True)
class MethodRequest:
    """A method and its settings, as they were typed."""

    method: str
    n_clusters: int | str
    seed: int = 0
    partial_rows: str = "raise"
    scale: tuple[str, ...] = ()  # one for all views, or "view=scale" for each
    others: tuple[str, ...] = ()  # "name=value"


def build_model(request: MethodRequest) -> MultiViewClusterer:
    """Make the estimator, and have it check its settings before any file is read.

    >>> build_model(MethodRequest("GRMF", 3, others=("tol=1e-4",)))
    GRMF(n_clusters=3, random_state=0, tol=0.0001)
    """
    kind = METHODS[request.method]
    if request.n_clusters == "auto" and kind is not BridgedGRMF:
        raise ParameterError(
            f"-k auto is for BridgedGRMF alone; {request.method} needs a number, such as -k 5. To find one, run "
            "BridgedGRMF with -k auto first."
        )
    settings: dict[str, Any] = {
        "n_clusters": request.n_clusters,
        "partial_rows": request.partial_rows,
        "random_state": request.seed,
        **_others(request.method, request.others),
    }
    if request.scale:
        settings["scale"] = _scale(request.scale)
    model: MultiViewClusterer = kind(**settings)
    model._check_parameters()
    return model


def _others(method: str, pairs: tuple[str, ...]) -> dict[str, Any]:
    known = METHODS[method]._get_param_names()
    settings = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ParameterError(f"--set takes a name and a value, such as --set max_iter=500; got {pair!r}.")
        if name in _OWN_OPTIONS:
            raise ParameterError(f"{name} has an option of its own: give {_OWN_OPTIONS[name]} instead of --set {pair}.")
        if name not in known:
            listed = ", ".join(other for other in known if other not in _OWN_OPTIONS)
            raise ParameterError(f"{method} has no setting {name!r}; it has {listed}.")
        if name in settings:
            raise ParameterError(f"--set {name} is given more than once. Give it once.")
        settings[name] = value_of(text)
    return settings


def _scale(given: tuple[str, ...]) -> Any:
    """Read one way of scaling for all views, or one for each."""
    pairs = [text.partition("=") for text in given]
    if len(given) == 1 and not pairs[0][1]:
        return _WORDS.get(given[0].lower(), given[0])
    if not all(equals for _, equals, _ in pairs) or len({name for name, _, _ in pairs}) < len(pairs):
        raise ParameterError(
            "--scale takes one way for all views, such as --scale unit, or one for each view, such as --scale "
            f"blood=standard --scale scans=unit; got {', '.join(given)}."
        )
    return {name: _WORDS.get(way.lower(), way) for name, _, way in pairs}


def value_of(text: str) -> Any:
    """Read a number, true, false, none, a list or a mapping; anything else is text.

    >>> value_of("1e-4"), value_of("none"), value_of("[1, 2]"), value_of("exact")
    (0.0001, None, [1, 2], 'exact')
    """
    plain = text.strip()
    if plain.lower() in _WORDS:
        return _WORDS[plain.lower()]
    try:
        return json.loads(plain)
    except (ValueError, RecursionError):
        return plain
