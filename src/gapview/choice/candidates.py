"""The plan of a BridgedGRMF fit: candidate settings, view weights and the number of clusters, from its parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from ..compute.engine import on_free_threads, single_threaded
from ..errors import InputError, ParameterError, ParameterTypeError, some
from ..graph.communities import LEIDEN
from ..graph.knn import resolve_n_neighbors
from ..persist.checkpoints import checkpointed
from ..persist.checkpoints.journal import is_recording
from ..progress import tell
from ..refinement import Refinement
from ..scaling import SCALES, is_white, scale_view, suitable_scale, whitened
from ..trust.assessment import Assessment, Resamples
from ..trust.structure import assess_structure
from ..utils.messages import check_choice, check_real, shown
from ..utils.types import Matrix
from ..views import SampleCounts, Views
from ..views.cells import TRIED_PER_CLUSTER
from .n_clusters import ALPHA, ClusterCount, default_counts
from .representation import IterationLimits, Setting
from .selection import (
    Selection,
    best_groups,
    choose,
    compute_view_weights,
    groups_again,
    mean_clarity,
    refine_groups,
    suggest_count,
    try_settings,
)
from .trials import Drawn

# selection="fixed" uses the first of each
_REACHES = (4, 1, 16)
_BRIDGES = ("both", "union", "joint")
_MORE_AGREEMENT = 1.25  # between views with equal weights, as a multiple of that with weights from the data
_N_STARTS = 5  # groupings of candidates from which refinement starts
_MOST_WHITENED = 2000  # features of a view that whitening is tried for; it costs the cube of their number


@dataclass(frozen=True)
class FitPlan:
    """Everything that is chosen before a fit."""

    n_clusters: int
    count: ClusterCount | None  # None if the number of clusters was given
    weights: tuple[float, ...]  # of the views
    selection: Selection | None  # None if there was nothing to choose from
    setting: Setting
    refinement: Refinement  # discriminants that refine the groups
    assessment: Assessment | None = None  # whether there are groups; None if the number of clusters was given
    resamples: Resamples | None = None  # groups in resamples of the drawn samples


def plan_fit(model: Any, views: SampleCounts, drawn: Drawn, seed: int) -> FitPlan:
    """Choose the number of clusters, the view weights and the setting of a fit, and train its discriminants.

    Parameters
    ----------
    model : BridgedGRMF
        The estimator.
    views : SampleCounts
        The training data.
    drawn : Drawn
        The samples from which scales are chosen and on which settings are tried.
    seed : int
        Random seed.
    """
    limits = IterationLimits(model.max_iter, model.tol)
    plan_setting = partial(_plan_setting, model, views, drawn, seed=seed, limits=limits)
    with single_threaded():
        if not isinstance(model.n_clusters, str):
            return plan_setting(model.n_clusters)
        tell("Counting groups")
        count = checkpointed("number of groups", lambda: _suggest_count(model, views, drawn, seed, limits))
        plan = plan_setting(count.best)
        assess = partial(_assess_plan, model, drawn, plan, seed, limits)
        assessment, *resamples = checkpointed("structure", assess)
        count = replace(count, p_value=assessment.p_value)
        if count.suggested == 1:
            plan = plan_setting(1)
        return replace(plan, count=count, assessment=assessment, resamples=Resamples(*resamples))


def _plan_setting(
    model: Any,
    views: SampleCounts,
    drawn: Drawn,
    n_clusters: int,
    seed: int,
    limits: IterationLimits,
) -> FitPlan:
    """Choose the view weights and the setting for a number of clusters, and train discriminants.

    Weights follow the clearest split of one view, which other views may contradict. Where they do, the setting is
    chosen once more with equal weights, and kept if the views then agree more.
    """
    settings = list_candidates(model, views, drawn.views, n_clusters)
    tell("Weighing views")
    weigh = partial(_weigh_views, model, drawn, settings[0], n_clusters, seed, limits)
    weights = checkpointed("weights", lambda: _while_searching(weigh, drawn, settings))
    choose_plan = partial(_choose_plan, model, views, drawn, settings, n_clusters, seed=seed, limits=limits)
    plan = choose_plan(weights)
    equal = _read_weights(None, drawn.views)
    if plan.refinement.is_contradicted and _is_auto(model.view_weights) and weights != equal:
        other = choose_plan(equal)
        if other.refinement.agreement > _MORE_AGREEMENT * max(plan.refinement.agreement, 0.0):
            return other
    return plan


def _choose_plan(
    model: Any,
    views: SampleCounts,
    drawn: Drawn,
    settings: Sequence[Setting],
    n_clusters: int,
    weights: tuple[float, ...],
    seed: int,
    limits: IterationLimits,
) -> FitPlan:
    """Choose a setting for view weights, and train discriminants on its groups."""
    selection = None
    if len(settings) > 1:
        trials = partial(try_settings, drawn, settings, n_clusters, weights, seed, limits)
        selection = checkpointed("choice", lambda: choose(list(trials())))
    setting = selection.setting if selection else settings[0]
    plan = FitPlan(n_clusters, None, weights, selection, setting, Refinement(None, float("nan")))
    if not model.refine or drawn.views.n_samples < min(views.n_samples, TRIED_PER_CLUSTER * n_clusters):
        return plan  # a small budget of memory does not allow more samples
    tell("Refining groups")
    starts = [] if selection is None or model.assign == LEIDEN else best_groups(selection, _N_STARTS)
    train = partial(refine_groups, drawn, setting, starts, n_clusters, weights, seed, limits, model.assign)
    return replace(plan, refinement=checkpointed("refinement", train))


def _assess_plan(model: Any, drawn: Drawn, plan: FitPlan, seed: int, limits: IterationLimits) -> tuple[Any, ...]:
    """Test whether the groups of a plan can be distinguished from null data; return values that can be recorded."""
    fit = groups_again(plan.setting, plan.n_clusters, plan.weights, model.n_neighbors, limits, model.assign)
    clarity = mean_clarity(plan.setting.scales, model.n_neighbors, plan.n_clusters)
    state = np.random.RandomState(seed)
    assessment, resamples = assess_structure(fit, clarity, drawn.views, alpha=ALPHA, random_state=state)
    return assessment, *resamples


def _suggest_count(model: Any, views: SampleCounts, drawn: Drawn, seed: int, limits: IterationLimits) -> ClusterCount:
    """Suggest a number of clusters; neighbours and components cannot depend on it. See :func:`plan_fit`."""
    part = drawn.views
    first = list_candidates(model, views, part, math.isqrt(part.n_samples))[0]
    counts = default_counts(part.n_samples, model.max_clusters)
    setting = replace(first, n_components=counts[-1]) if model.n_components == "auto" else first
    weights = _read_weights(None if _is_auto(model.view_weights) else model.view_weights, part)
    return suggest_count(drawn, setting, counts, weights, seed, limits)


def _while_searching(
    weigh: Callable[[], tuple[float, ...]], drawn: Drawn, settings: Sequence[Setting]
) -> tuple[float, ...]:
    """Return the weights of the views; meanwhile a free core finds the neighbours that do not depend on them."""
    if is_recording():  # a checkpoint records steps in their order
        return weigh()
    _, *others = dict.fromkeys((setting.scales, setting.n_neighbors) for setting in settings)
    donors = any(setting.bridge != "union" for setting in settings)
    works = [weigh, *(partial(drawn.find_neighbors, *other, donors=donors) for other in others)]
    with closing(on_free_threads(lambda work: work(), works)) as results:
        return next(results)


def _weigh_views(
    model: Any, drawn: Drawn, setting: Setting, n_clusters: int, seed: int, limits: IterationLimits
) -> tuple[float, ...]:
    """Return the weights of the views, given or computed, 1 on average."""
    part = drawn.views
    if not _is_auto(model.view_weights):
        return _read_weights(model.view_weights, part)
    if model.selection == "fixed" or part.n_views == 1:
        return _read_weights(None, part)
    return compute_view_weights(drawn, setting, n_clusters, seed, limits)


def _read_weights(given: Any, views: Views) -> tuple[float, ...]:
    if given is None:
        return (1.0,) * views.n_views
    numbers = _one_per_view("view_weights", given, views, "'auto', None or one number")
    for name, weight in zip(views.names, numbers, strict=True):
        check_real(f"view_weights of '{name}'", weight, low=0, open_low=True)
    largest = float(max(numbers))
    shares = [float(weight) / largest for weight in numbers]  # sums of huge weights stay finite
    return tuple(share / float(np.mean(shares)) for share in shares)


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def list_candidates(model: Any, views: SampleCounts, part: Views, n_clusters: int) -> list[Setting]:
    """Return the settings to try: all combinations of what is "auto", or with ``selection="fixed"`` the first of each.

    Numbers of neighbours depend on ``views``, scales on ``part``; see :func:`plan_fit`.
    """
    forms = _read_scales(model.scale, part, first_only=model.selection == "fixed")
    bridges = _BRIDGES if model.bridge == "auto" else (model.bridge,)
    reaches = _REACHES if model.reach == "auto" else (int(model.reach),)
    if model.selection == "fixed":
        bridges, reaches = bridges[:1], reaches[:1]
    counts = resolve_n_neighbors(model.n_neighbors, views, n_clusters)
    components = 2 * n_clusters if model.n_components == "auto" else int(model.n_components)
    consensus = 1.0 if model.consensus_weight == "auto" else float(model.consensus_weight)
    sparsity = 1e-3 if model.sparsity_weight == "auto" else float(model.sparsity_weight)
    combinations = list(product(forms, bridges, reaches))
    if _is_auto(model.scale) and model.selection == "auto" and (white := _white_scales(part, forms[0])):
        combinations.append((white, bridges[0], reaches[0]))
    return [
        Setting(form, tuple(counts), bridge, reach, components, consensus, sparsity)
        for form, bridge, reach in combinations
    ]


def _white_scales(views: Views, scales: Sequence[str | None]) -> tuple[str | None, ...] | None:
    """Return scales that whiten the views that can be; None if there are none.

    Words and a few features are not whitened: zero means absence, and a few axes are all there is.
    """
    scales = [
        whitened(scale) if width <= _MOST_WHITENED else scale
        for scale, width in zip(scales, views.n_features, strict=True)
    ]
    return tuple(scales) if any(map(is_white, scales)) else None


def _read_scales(scale: Any, views: Views, *, first_only: bool) -> list[tuple[str | None, ...]]:
    """Return candidate scales, one for each view; ``"auto"`` gives a candidate with and one without centring."""
    if _is_auto(scale):
        suited = []
        for name, matrix in zip(views.names, views.one_by_one(), strict=True):
            way = suitable_scale(matrix)
            ways = [way] if first_only else [way, way.replace("center+", "")]
            if views.batches is not None and way == "unit":  # after correction zero does not mean absence
                ways = ["center+unit"] * len(ways)
            usable = {way: way if _varies(name, matrix, way) else "standard+view" for way in set(ways)}
            suited.append([usable[way] for way in ways])
        return list(dict.fromkeys(zip(*suited, strict=True)))
    if scale is None or isinstance(scale, str):
        return [(scale,) * views.n_views]
    allowed = f"'auto', one of {', '.join(map(repr, SCALES))}, or one of these"
    scales = _one_per_view("scale", scale, views, allowed)
    for name, way in zip(views.names, scales, strict=True):
        check_choice(f"scale of '{name}'", way, SCALES)
    return [tuple(scales)]


def _one_per_view(parameter: str, given: Any, views: Views, allowed: str) -> list[Any]:
    """Return the values of a parameter in the order of the views."""
    given = given.tolist() if isinstance(given, np.ndarray) else given
    expected = (
        f"{parameter} must be {allowed} for each of the {views.n_views} views, in a list or in a dict with the names "
        f"of the views; got {shown(given)}."
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


def _varies(name: str, matrix: Matrix, scale: str) -> bool:
    """Return whether a view differs between samples once it is scaled; unit rows may all be equal."""
    try:
        scale_view(name, matrix, scale)
    except InputError:
        return False
    return True
