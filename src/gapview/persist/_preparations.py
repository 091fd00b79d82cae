"""Checks of the kinds of views in model files."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kinds import Levels
from ..utils.packing import demand
from ..views import Views
from ..views.kinds import KINDS


def check_preparations(rules: Any, views: Views) -> None:
    """Raise a ValueError unless there is a sound rule for each view."""
    demand(len(rules) == views.n_views, "there is not one kind for each view")
    for rule, name, n_features in zip(rules, views.names, views.n_features, strict=True):
        demand(rule.name == name and rule.n_features == n_features, f"view '{name}' has the kind of another view")
        demand(rule.kind is None or rule.kind in KINDS, f"view '{name}' has an unknown kind")
        demand((rule.levels is not None) == (rule.kind in ("binary", "categorical")), f"view '{name}' has no levels")
        for size in (rule.size, rule.floor):
            demand(size is None or 0 < size < np.inf, f"the kind of view '{name}' has an impossible size")
        if rule.levels is not None:
            _check_levels(rule.levels, name, n_features)
        if rule.kept is not None:
            demand(_is_vector(rule.kept) and len(rule.kept) > 0, f"view '{name}' keeps no features")
            demand(_are_places(rule.kept, rule.n_values), f"view '{name}' keeps features that it does not have")


def _is_vector(values: Any) -> bool:
    return type(values) is np.ndarray and values.ndim == 1 and values.dtype.kind in "if"


def _are_places(places: Any, n_items: int) -> bool:
    return places.dtype.kind == "i" and bool(
        ((places >= 0) & (places < n_items) & (np.diff(places, prepend=-1) >= 0)).all()
    )


def _check_levels(levels: Levels, name: str, n_features: int) -> None:
    parts = (levels.owners, levels.values, levels.weights)
    demand(all(_is_vector(part) and len(part) == len(parts[0]) for part in parts), f"levels of '{name}' do not match")
    demand(_is_vector(levels.rest) and len(levels.rest) == n_features, f"levels of view '{name}' do not match")
    demand(_are_places(levels.owners, n_features), f"levels of view '{name}' have no feature")
    demand(len(np.unique(levels.owners)) == n_features, f"a feature of view '{name}' has no levels")
    are_numbers = np.isfinite(levels.values).all() and np.isfinite(levels.weights).all()
    demand(bool(are_numbers and (levels.weights >= 0).all()), f"levels of view '{name}' are not numbers")
