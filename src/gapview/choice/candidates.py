"""What a BridgedGRMF is asked to do: its parameters turned into candidates, view weights and a number of groups."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from ..compute import like, single_threaded
from ..errors import InputError, ParameterError, ParameterTypeError, some
from ..graph.knn import resolve_n_neighbors
from ..persist.checkpoints import checkpointed
from ..progress import tell
from ..scaling import SCALES, scale_view, suitable_scale
from ..utils.parameters import check_choice, check_real
from ..utils.types import Matrix
from ..views import Views
from .n_clusters import ClusterCount, default_counts
from .selection import Selection, Setting, choose, count_groups, try_settings, weigh_views

# The first of each is what selection="fixed" takes
_REACHES = (4, 1, 16)
_BRIDGES = ("both", "union", "joint")

_N_LOOKED_AT = 20_000  # rows that say how a view is to be scaled


@dataclass(frozen=True)
class FitPlan:
    """Settings chosen for a fit."""

    n_clusters: int
    count: ClusterCount | None  # None if the number of clusters was given
    weights: tuple[float, ...]  # of the views
    tried: Selection | None  # None if there was nothing to choose from
    first: Setting  # the first candidate


def plan_fit(model: Any, views: Any, known: Views, part: Views, seed: int) -> FitPlan:
    """Count groups, weigh views and choose settings, wherever the views are.

    Parameters
    ----------
    model : BridgedGRMF
        The estimator.
    views : Views or BlockedViews
        The training data: their names and numbers of samples.
    known : Views
        The samples that decide how views are scaled.
    part : Views
        The samples on which settings are tried.
    seed : int
        Random seed.
    """
    n_clusters, count = model.n_clusters, None
    if isinstance(n_clusters, str):
        tell("Counting groups")
        count = checkpointed("number of groups", lambda: suggest_count(model, views, known, part, seed))
        n_clusters = count.suggested
    settings = list_candidates(model, views, known, n_clusters)
    tell("Weighing views")
    weights = checkpointed("weights", lambda: settle_weights(model, part, settings[0], n_clusters, seed))
    tried = None
    if len(settings) > 1:
        tried = checkpointed("choice", lambda: select(model, part, settings, n_clusters, weights, seed))
    return FitPlan(n_clusters, count, weights, tried, settings[0])


def list_candidates(model: Any, views: Any, known: Views, n_clusters: int) -> list[Setting]:
    """List the settings to try: all combinations of what is not given, or the first of each.

    Numbers of neighbours depend on ``views``, scales on ``known``; see :func:`plan_fit`.
    """
    forms = _read_scales(model.scale, known)
    bridges = _BRIDGES if model.bridge == "auto" else (model.bridge,)
    reaches = _REACHES if model.reach == "auto" else (int(model.reach),)
    if model.selection == "fixed":
        forms, bridges, reaches = forms[:1], bridges[:1], reaches[:1]
    counts = resolve_n_neighbors(model.n_neighbors, views, n_clusters)
    components = 2 * n_clusters if model.n_components == "auto" else int(model.n_components)
    consensus = 1.0 if model.consensus_weight == "auto" else float(model.consensus_weight)
    sparsity = 1e-3 if model.sparsity_weight == "auto" else float(model.sparsity_weight)
    return [
        Setting(form, tuple(counts), bridge, reach, components, consensus, sparsity)
        for form, bridge, reach in product(forms, bridges, reaches)
    ]


def _read_scales(scale: Any, views: Views) -> list[tuple[str | None, ...]]:
    """Settle how every view is scaled; where it does not show whether centring helps, both ways are candidates."""
    if isinstance(scale, str) and scale == "auto":
        named = zip(views.names, views.one_by_one(), strict=True)
        suited = [[_workable(name, m, centered=centered) for centered in (True, False)] for name, m in named]
        return list(dict.fromkeys(zip(*suited, strict=True)))
    if scale is None or isinstance(scale, str):
        return [(scale,) * views.n_views]
    allowed = f"'auto', one of {', '.join(map(repr, SCALES))}, or one of these"
    scales = _one_of_each("scale", scale, views, allowed)
    for name, way in zip(views.names, scales, strict=True):
        check_choice(f"scale of '{name}'", way, SCALES)
    return [tuple(scales)]


def _one_of_each(parameter: str, given: Any, views: Views, allowed: str) -> list[Any]:
    """Put a parameter that may differ between views into their order."""
    given = given.tolist() if isinstance(given, np.ndarray) else given
    expected = (
        f"{parameter} must be {allowed} for each of the {views.n_views} views, in a list or in a dict with the names "
        f"of the views; got {given!r}."
    )
    if isinstance(given, Mapping):
        if set(given) != set(views.names):
            raise ParameterError(f"{expected} The views are {some(views.names)}.")
        return [given[name] for name in views.names]
    if not isinstance(given, list | tuple):
        raise ParameterTypeError(expected)
    if len(given) != views.n_views:
        raise ParameterError(expected)
    return list(given)


def _workable(name: str, matrix: Matrix, *, centered: bool) -> str:
    """Suit a view; where its rows all point the same way, only their lengths tell samples apart, and are kept."""
    some_rows = np.unique(np.linspace(0, matrix.shape[0] - 1, _N_LOOKED_AT).astype(np.int64))
    scale = suitable_scale(matrix[like(some_rows, matrix)], centered=centered)
    for rows in (matrix[like(some_rows, matrix)], matrix):
        try:
            scale_view(name, rows, scale)
        except InputError:  # the others may differ
            continue
        return scale
    return "standard+view"


def settle_weights(model: Any, part: Views, setting: Setting, n_clusters: int, seed: int) -> tuple[float, ...]:
    """Settle how much every view counts, 1 on average."""
    given = model.view_weights
    if not (isinstance(given, str) and given == "auto"):
        return _read_weights(given, part)
    if model.selection == "fixed" or part.n_views == 1:
        return (1.0,) * part.n_views
    with single_threaded():
        return weigh_views(part, setting, n_clusters, seed, max_iter=model.max_iter, tol=model.tol)


def _read_weights(given: Any, views: Views) -> tuple[float, ...]:
    if given is None:
        return (1.0,) * views.n_views
    numbers = _one_of_each("view_weights", given, views, "'auto', None or one number")
    for name, weight in zip(views.names, numbers, strict=True):
        check_real(f"view_weights of '{name}'", weight, low=0, open_low=True)
    largest = float(max(numbers))
    shares = [float(weight) / largest for weight in numbers]  # sums of huge weights stay finite
    return tuple(share / float(np.mean(shares)) for share in shares)


def suggest_count(model: Any, views: Any, known: Views, part: Views, seed: int) -> ClusterCount:
    """Suggest a number of groups; neighbours and components cannot depend on it. See :func:`plan_fit`."""
    first = list_candidates(model, views, known, math.isqrt(part.n_samples))[0]
    counts = default_counts(part.n_samples, model.max_clusters)
    setting = replace(first, n_components=counts[-1]) if model.n_components == "auto" else first
    automatic = isinstance(model.view_weights, str) and model.view_weights == "auto"
    weights = _read_weights(None if automatic else model.view_weights, part)
    with single_threaded():
        return count_groups(part, setting, counts, weights, seed, max_iter=model.max_iter, tol=model.tol)


def select(
    model: Any,
    part: Views,
    settings: list[Setting],
    n_clusters: int,
    weights: tuple[float, ...],
    seed: int,
) -> Selection:
    """Try the candidates on a part of the samples, and choose."""
    with single_threaded():
        tried = try_settings(part, settings, n_clusters, weights, seed, max_iter=model.max_iter, tol=model.tol)
        return choose(list(tried))
