"""Checks that the parts of a model belong together: types, shapes, finite numbers.

An undamaged file can still be forged. The checks cover everything that the methods of a model rely on: the results of a
model that passes may be meaningless, but its methods return or raise like those of any other. The same checks run
before a model is saved, so that every saved model can be loaded.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from numbers import Integral, Real
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from scipy import sparse

from ..graph.bridges import BRIDGES
from ..scaling import SCALES
from ..utils.packing import demand
from ..utils.types import Array
from ..views import Views
from ..views.core import demand_a_view_for_each
from ._preparations import check_preparations

hints_of: Callable[[Any], dict[str, Any]] = cache(get_type_hints)  # of a class

_NUMBERS = {int: Integral, float: Real}
# Axes of fitted arrays. An attribute of every view is a list with one array per view; "rows" are the samples that have
# the view, "codes" these or all samples.
_AXES: dict[str, tuple[str, ...]] = {
    "labels_": ("samples",),
    "part_": ("samples",),
    "confidence_": ("samples",),
    "uncalibrated_confidence_": ("samples",),
    "embedding_": ("samples", "components"),
    "balance_": ("components", "directions"),
    "view_weights_": ("views",),
    "view_modularities_": ("views",),
    "graph_": ("samples", "samples"),
    "affinity_matrix_": ("samples", "samples"),
    "objective_": ("iterations",),
    "residual_": ("iterations",),
    "anchor_vectors_": ("anchors", "components"),
    "kernel_widths_": ("views",),
}
_AXES_OF_EVERY_VIEW: dict[str, tuple[str, ...]] = {
    "bases_": ("components", "features"),
    "graphs_": ("rows", "rows"),
    "view_labels_": ("samples",),
    "codes_": ("codes", "components"),
    "view_centers_": ("components", "features"),  # embedding_ has a column for every group
    "anchors_": ("anchors", "features"),
    "anchor_weights_": ("anchors",),
    "coefficients_": ("rows", "components"),
    "offsets_": ("components",),
}
_LARGEST_OF_BASIS = 1.001  # 1, and rounding errors of single precision
_LABELS = ("labels_", "part_", "view_labels_")
_KINDS_OF_CONTAINER = ("array", "sparse", "pandas", "polars")


def check_model(model: Any) -> None:
    """Raise a ValueError unless the parts of a fitted model belong together."""
    model.check_parameters()
    for kind in reversed(type(model).__mro__):
        missing = [name for name in vars(kind).get("_fitted_attributes", ()) if not hasattr(model, name)]
        demand(not missing, f"the model has no {', '.join(missing)}")
    _check_kinds(model, {name: hint for name, hint in hints_of(type(model)).items() if name.endswith("_")})
    _check_views(model.views_)
    demand(np.array_equal(model.sample_ids_, model.views_.sample_ids), "the ids of model and views differ")
    demand(model.n_features_in_ == sum(model.views_.n_features), "n_features_in_ is not that of the views")
    widths = model.views_.n_features
    if hasattr(model, "kinds_"):
        check_preparations(model.kinds_, model.views_)
        widths = tuple(rule.n_out for rule in model.kinds_)
    _check_axes(model, model.views_, widths)
    _check_groups(model)
    if hasattr(model, "scalings_"):
        _check_scalings(model.scalings_, model.views_, widths)
    _check_corrections(getattr(model, "corrections_", ()), model.views_)
    if hasattr(model, "view_weights_"):
        demand((model.view_weights_ > 0).all(), "a view has no weight")
    if hasattr(model, "kernel_widths_"):
        demand((model.kernel_widths_ > 0).all(), "a kernel has no width")
    if hasattr(model, "confidence_"):
        _check_latent(model)
    if hasattr(model, "setting_"):
        _check_setting(model, model.views_.n_views)
    if hasattr(model, "cluster_count_"):
        _check_count(model.cluster_count_)
    for test in getattr(model, "associations_", ()):
        _check_association(test, int(model.labels_.max()) + 1)


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of the annotated type, for annotations of the forms that gapview uses.

    Examples
    --------
    >>> from gapview.persist.consistency import fits
    >>> fits((1, 2), tuple[int, ...]), fits(["a", 3], list[str]), fits(None, str | None)
    (True, False, True)
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, each) for each in inner)
    if origin is None:
        if hint in _NUMBERS:
            return isinstance(value, _NUMBERS[hint]) and not isinstance(value, bool)
        return hint is Any or not isinstance(hint, type) or isinstance(value, hint)
    if isinstance(origin, type) and not isinstance(value, origin):
        return False
    if origin is dict:
        return all(fits(key, inner[0]) and fits(part, inner[1]) for key, part in value.items())
    if origin is list or (origin is tuple and inner[1:] == (Ellipsis,)):
        return all(fits(each, inner[0]) for each in value)
    return origin is not tuple or (len(value) == len(inner) and all(map(fits, value, inner)))


def _check_kinds(owner: Any, hints: dict[str, Any]) -> None:
    """Compare attributes with the annotations of their class, also those of nested records."""
    for name, hint in hints.items():
        if not hasattr(owner, name):  # not every fit sets every attribute
            continue
        value = getattr(owner, name)
        demand(fits(value, hint), f"{type(owner).__name__}.{name} is a {type(value).__name__} or holds something else")
        for part in value if isinstance(value, list | tuple) else [value]:
            if is_dataclass(part):
                types = hints_of(type(part))
                _check_kinds(part, {field.name: types[field.name] for field in fields(part)})


def _check_views(views: Views) -> None:
    _check_kinds(views, hints_of(Views))
    n_views = len(views.matrices)
    lists = (views.names, views.feature_names, views._containers)
    demand(n_views > 0 and all(len(each) == n_views for each in lists), "the views are not named one by one")
    demand(len(set(views.names)) == n_views, "two views have one name")
    demand(views._outer in ("list", "dict", "single"), f"views came in a {views._outer!r}")
    demand(views._outer != "single" or n_views == 1, "several views came as a single one")
    demand(views.mask.dtype == bool and views.mask.ndim == 2, "the mask of the views is no matrix of truth values")
    demand(views.mask.shape[1] == n_views, f"the mask has shape {views.mask.shape} for {n_views} views")
    demand(views.sample_ids.shape == (views.n_samples,), "there is not one id for each sample")
    demand(_are_hashable(views.sample_ids), "an id of a sample cannot be compared")
    demand_a_view_for_each(views.mask, views.sample_ids)
    for k in range(n_views):
        _check_view(views, k)


def _check_view(views: Views, view: int) -> None:
    matrix, name = views.matrices[view], views.names[view]
    is_matrix = type(matrix) is np.ndarray or isinstance(matrix, sparse.csr_array)
    demand(is_matrix and matrix.ndim == 2, f"view '{name}' is no matrix")
    demand(_is_real(matrix), f"view '{name}' holds values of type {matrix.dtype}")
    n_rows = int(views.mask[:, view].sum())
    demand(matrix.shape[0] == n_rows, f"view '{name}' has {matrix.shape[0]} rows for {n_rows} samples")
    demand(_is_finite(matrix), f"view '{name}' holds NaN or infinity")
    names, container = views.feature_names[view], views._containers[view]
    for labels in (names, container.columns):
        demand(labels is None or len(labels) == matrix.shape[1], f"view '{name}' has names for other features")
    demand(names is None or all(type(text) is str for text in names.tolist()), f"view '{name}' has names of no text")
    demand(container.kind in _KINDS_OF_CONTAINER, f"view '{name}' came in a {container.kind!r}")


def _is_real(values: Any) -> bool:
    """Return whether an array holds numbers as fits make them: float32 or float64 in the byte order of the machine."""
    return values.dtype in (np.float32, np.float64) and values.dtype.isnative


def _is_finite(values: Any) -> bool:
    return bool(np.isfinite(values.data if sparse.issparse(values) else values).all())


def _are_hashable(ids: Array) -> bool:
    try:
        return ids.dtype != object or all(hash(key) is not None for key in ids.tolist())
    except TypeError:
        return False


def _check_axes(model: Any, views: Views, widths: Sequence[int]) -> None:
    sizes = {"samples": views.n_samples, "views": views.n_views, "iterations": getattr(model, "n_iter_", None)}
    for name, axes in _AXES.items():
        if hasattr(model, name):
            _check_shape(name, getattr(model, name), axes, sizes)
    for name, axes in _AXES_OF_EVERY_VIEW.items():
        if not hasattr(model, name):
            continue
        arrays = getattr(model, name)
        demand(isinstance(arrays, list) and len(arrays) == views.n_views, f"{name} has not one part for each view")
        for k, array in enumerate(arrays):
            n_rows = len(views.rows(k))
            n_codes = views.n_samples if getattr(array, "shape", ())[:1] == (views.n_samples,) else n_rows
            own = sizes | {"features": widths[k], "rows": n_rows, "codes": n_codes}
            _check_shape(name, array, axes, own)
    if hasattr(model, "cluster_centers_"):
        width = "directions" if "directions" in sizes else "components"
        _check_shape("cluster_centers_", model.cluster_centers_, ("groups", width), sizes)


def _check_shape(name: str, array: Any, axes: tuple[str, ...], sizes: dict[str, int | None]) -> None:
    """Compare a shape with the sizes known so far, and add sizes that are not known yet."""
    demand(type(array) is np.ndarray or sparse.issparse(array), f"{name} is a {type(array).__name__}")
    demand(array.ndim == len(axes), f"{name} has {array.ndim} axes")
    for axis, found in zip(axes, array.shape, strict=True):
        expected = sizes.get(axis)
        sizes[axis] = found if expected is None else expected
        demand(found == sizes[axis], f"{name} has the shape {array.shape}, but there are {expected} {axis}")
    if name in _LABELS:
        demand(array.dtype in (np.int32, np.int64) and array.dtype.isnative, f"{name} has values of type {array.dtype}")
    else:
        demand(_is_real(array) and _is_finite(array), f"{name} holds NaN, infinity or values of type {array.dtype}")


def _check_groups(model: Any) -> None:
    n_groups = min([model.n_groups, *(len(centers) for centers in getattr(model, "view_centers_", []))])
    for labels in [model.labels_, *getattr(model, "view_labels_", [])]:
        demand(len(labels) and labels.min() >= 0 and labels.max() < n_groups, "there are labels of unknown groups")


def _check_latent(model: Any) -> None:
    """Check ranges of values that methods for new samples multiply: products must not overflow."""
    for name in ("confidence_", "uncalibrated_confidence_"):
        values = getattr(model, name, model.confidence_)
        demand(values.min() >= 0 and values.max() <= 1, f"{name} has values below 0 or above 1")
    _check_parts(model)
    in_range = all(_largest(basis) <= _LARGEST_OF_BASIS for basis in model.bases_)
    demand(in_range, "bases_ are not orthonormal")
    for name in ("embedding_", "codes_", "cluster_centers_", "balance_", "graph_", "graphs_"):
        values = getattr(model, name, [])
        for array in values if isinstance(values, list) else [values]:
            demand(_largest(array) <= np.sqrt(np.finfo(array.dtype).max), f"{name} has values that are too large")
    with np.errstate(all="ignore"):
        points = model.latent_points(model.embedding_)
    demand(_is_finite(points), "embedding_ and balance_ do not belong together")


def _check_parts(model: Any) -> None:
    """Check that all samples with a view, and all samples of a group, are in the same part."""
    parts, views = model.part_, model.views_
    n_parts = len(np.unique(parts))
    demand(parts.min() >= 0 and parts.max() < n_parts, "part_ has numbers of parts without samples")
    rows = [*(views.rows(k) for k in range(views.n_views)), *(model.labels_ == group for group in set(model.labels_))]
    demand(all(len(set(parts[own])) <= 1 for own in rows), "part_ divides a view or a group")


def _largest(values: Any) -> float:
    return float(np.abs(values.data if sparse.issparse(values) else values).max(initial=0))


def _check_scalings(scalings: Any, views: Views, widths: Sequence[int]) -> None:
    demand(len(scalings) == views.n_views, "there is not one scaling for each view")
    for scaling, name, n_features in zip(scalings, views.names, widths, strict=True):
        parts = [part for part in (scaling.center, scaling.spread) if part is not None]
        demand(len(parts) != 1, f"view '{name}' has half a scaling")
        for part in parts:
            demand(part.shape == (n_features,), f"view '{name}' is scaled in other features")
            demand(_is_real(part) and _is_finite(part), f"view '{name}' is scaled by NaN or values of another type")
        demand(not parts or (scaling.spread > 0).all(), f"view '{name}' has a spread of 0")
        length = scaling.row_length
        demand(length is None or (np.isfinite(length) and length >= 0), f"view '{name}' has rows of length {length}")


def _check_corrections(corrections: Any, views: Views) -> None:
    demand(len(corrections) in (0, views.n_views), "there is not one correction of batches for each view")
    demand(views.batches is None or len(views.batches) == views.n_samples, "there is not one batch for each sample")
    for own, n_features in zip(corrections, views.n_features, strict=False):
        if own is None:
            continue
        n_axes, n_batches = own.axes.shape[-1], len(own.batches)
        n_rounds, n_clusters = own.centers.shape[:2]
        shapes = [part.shape for part in (own.center, own.axes, own.offsets, own.centers, own.penalties, own.shifts)]
        expected = [
            (n_features,),
            (n_features, n_axes),
            (n_batches, n_axes),
            (n_rounds, n_clusters, n_axes),
            (n_rounds, n_batches, n_clusters),
            (n_rounds, n_batches, n_clusters, n_axes),
        ]
        demand(shapes == expected, "a correction of batches is for other views")
        demand(own.size > 0 and _is_finite(own.shifts), "a correction of batches has no size or is not finite")


def _check_setting(model: Any, n_views: int) -> None:
    for setting in [model.setting_, *(trial.setting for trial in model.selection_.trials)]:
        demand(len(setting.scales) == len(setting.n_neighbors) == n_views, "a setting is for other views")
        demand(all(scale in SCALES for scale in setting.scales), f"the scales {setting.scales} are not known")
        demand(min(setting.n_neighbors) >= 1, "a setting has no neighbours")
        demand(setting.bridge in BRIDGES, f"the bridge {setting.bridge!r} is not known")
    selection = model.selection_
    demand(0 <= selection.chosen < len(selection.trials), "the chosen setting was not tried")
    shapes = {trial.labels.shape for trial in selection.trials}
    demand(shapes == {(selection.n_samples,)}, "settings were tried on other samples")


def _check_count(count: Any) -> None:
    counts, *scores = count.counts, count.modularity, count.stability
    are_counts = counts.ndim == 1 and counts.dtype.kind == "i" and len(counts) > 1
    demand(are_counts and (counts >= 1).all() and len(np.unique(counts)) == len(counts), "counts of groups are no list")
    for score in scores:
        demand(score.shape == counts.shape and _is_real(score) and _is_finite(score), "a count of groups has no score")


def _check_association(test: Any, n_groups: int) -> None:
    demand(test.factor in ("batch", "missing views"), f"groups were compared with {test.factor!r}")
    shares = [value for one in test.groups for value in (one.share, one.expected, one.adjusted)]
    figures = [*shares, test.association.strength, test.association.p_value]
    demand(all(0 <= value <= 1 for value in figures), "an association has shares below 0 or above 1")
    demand(all(0 <= one.group < n_groups for one in test.groups), "an association is about unknown groups")
