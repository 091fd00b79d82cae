"""Figures of features: a heat map of features × samples, and the markers of the groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import InputError, InputTypeError, described
from ..estimators.base import MultiViewClusterer, demand_fitted
from ..kinds import feature_views
from ..report.clustering.samples import draw_samples
from ..report.clustering.summary import feature_name
from ..report.style import INK, PAPER, SOFT, axes_for, load_matplotlib
from ..trust import FeatureEffect, Markers, feature_effects, top_features
from ..utils.messages import check_choice, check_integer, counted, shorten
from ..utils.types import Array
from ..views import Views
from ..views.containers import descends
from .coloring import MISSING, Coloring, of_column, of_confidence, of_groups
from .drawing import DIVERGING, bare, draw_markers

_LONGEST = 28  # characters of a name
_MOST_SAMPLES = 3000  # more are narrower than a pixel
_MOST_FEATURES = 60
_MOST_VIEWS = 8  # with a bar each
_EXTREME = 2.5  # standard deviations at the ends of the colours

# Of covariates, unlike the colours of the groups
_COLORS = (
    *("#e6c229", "#7b5ea7", "#8fd3c1", "#d1495b", "#5b6c8f", "#f2a679"),
    *("#3d3d3d", "#b5d46b", "#c98bb9", "#1b9e9e", "#a0522d", "#9aa5b1"),
)
_BAR, _ROW = 0.17, 0.2  # heights in inches


def plot_heatmap(
    model: MultiViewClusterer, *, n_top: int = 2, covariates: Any = None, view: str | None = None, ax: Any = None
) -> Any:
    """Draw the features that set the groups apart most, in all samples, ordered by group.

    Bars above show the group, the views that a sample has, its confidence, and covariates. Within a group, samples
    follow by decreasing confidence. Colours are standard deviations from the mean of the feature; samples without the
    view are grey. The groups were computed from these features: the figure describes them, and is no evidence
    for them. Of more than 3,000 samples a subset is shown, drawn in proportion from every group.

    Parameters
    ----------
    model : fitted clusterer
        Any method of gapview.
    n_top : int, default=2
        Number of features for each group and view: those with the largest Hedges' g. About 60 are drawn at most.
    covariates : dict or pandas DataFrame, optional
        Columns with one value for each sample, as ``color`` of :func:`plot_samples`; the index of a frame holds the
        sample ids.
    view : str, optional
        Only features of this view.
    ax : matplotlib axes, optional
        Axes that the parts of the figure share; by default new ones.

    Returns
    -------
    matplotlib axes
        Their ``child_axes`` are the bars and the heat map.

    Examples
    --------
    >>> from gapview import BridgedGRMF
    >>> from gapview.datasets import make_views
    >>> from gapview.plots import plot_heatmap
    >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> axes = plot_heatmap(BridgedGRMF(n_clusters=2, random_state=0).fit(views), n_top=3)
    >>> bars, cells = axes.child_axes[:2]
    >>> [label.get_text() for label in bars.get_yticklabels()]
    ['group', 'view_0', 'view_1', 'confidence']
    """
    demand_fitted("The figure", model)
    check_integer("n_top", n_top, low=1)
    views = feature_views(model.views_, getattr(model, "kinds_", ()))
    chosen = chosen_features(views, model.labels_, n_top, view)
    order = _ordered(model)
    strips = _strips(model, covariates)
    groups, several = model.labels_[order], view is None and views.n_views > 1
    part = f"{len(order):,} of " if len(order) < len(model.labels_) else ""
    title = f"Features of the groups in {part}{counted(len(model.labels_), 'sample')}"
    above, below = _BAR * len(strips), _ROW * max(len(chosen), 2)
    with axes_for(ax, 7.6, above + below + 0.9, title) as axes:
        axes.axis("off")
        share = above / (above + below + 0.08)
        bars = axes.inset_axes((0, 1 - share, 1, share))
        cells = axes.inset_axes((0, 0, 1, below / (above + below + 0.08)))
        _draw_strips(bars, strips, order)
        mesh = _draw_cells(cells, np.stack([_standardised(views, one)[order] for one in chosen]))
        names = [feature_name(one, _LONGEST) + (f" ({shorten(one.view, 14)})" if several else "") for one in chosen]
        cells.set_yticks(range(len(names)), names)
        _mark_groups(bars, cells, groups)
        scale = axes.figure.colorbar(
            mesh, ax=axes, shrink=min(0.5, 2.2 / (above + below)), aspect=14, pad=0.02, extend="both", anchor=(0, 0.05)
        )
        scale.set_label("standard deviations")
        scale.outline.set_visible(False)
        _explain(axes, strips)
    return axes


def chosen_features(views: Views, labels: Array, n_top: int, view: str | None = None) -> list[FeatureEffect]:
    """Return the features with the largest effects of each group in each view: by view, then group, each once."""
    check_choice("view", view, (None, *views.names))
    found: list[FeatureEffect] = []
    for effects in feature_effects(views, labels):
        if view in (None, effects.view):
            first = {one.feature: one for one in reversed(top_features([effects], n_top))}
            found += sorted(first.values(), key=lambda one: one.cluster)
    if not found:
        raise InputError("The figure needs groups that differ in some feature; these do not.")
    least = sorted((abs(one.effect) for one in found), reverse=True)[:_MOST_FEATURES][-1]
    return [one for one in found if abs(one.effect) >= least]


def _ordered(model: Any) -> Array:
    """Return the samples by group, then by decreasing confidence; a subset of many."""
    rows = draw_samples(np.unique(model.labels_, return_inverse=True)[1], _MOST_SAMPLES)
    confidence = getattr(model, "confidence_", np.zeros(len(model.labels_)))
    return rows[np.lexsort((-confidence[rows], model.labels_[rows]))]


def _standardised(views: Views, one: FeatureEffect) -> Array:
    """Return a feature of all samples in standard deviations from its mean; NaN without the view."""
    view = views.names.index(one.view)
    names = views.feature_names[view]
    column = int(one.feature) if names is None else names.tolist().index(one.feature)
    matrix = views.matrices[view][:, [column]]
    own = np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=np.float64).ravel()
    values = np.full(views.n_samples, np.nan)
    values[views.rows(view)] = (own - own.mean()) / (own.std() or 1.0)
    return values


def _strips(model: Any, covariates: Any) -> list[Coloring]:
    """Return the bars above the heat map."""
    strips = [of_groups(model.labels_)]
    views = model.views_
    if views.n_views <= _MOST_VIEWS and not views.mask.all():
        for k, name in enumerate(views.names):
            own = shorten(name, _LONGEST)
            strips.append(Coloring(own, views.mask[:, k].astype(int), ("", own), palette=(MISSING, SOFT)))
    if hasattr(model, "confidence_"):
        strips.append(of_confidence(model.confidence_))
    if descends(covariates, "pandas", "DataFrame"):
        covariates = {name: covariates[name] for name in covariates.columns}
    if covariates is not None and not isinstance(covariates, Mapping):
        raise InputTypeError(
            f"covariates must be a dict of columns, or a pandas frame with the sample ids as index; got "
            f"{described(covariates)}."
        )
    columns = [of_column(column, model.sample_ids_, name) for name, column in (covariates or {}).items()]
    return [*strips, *(replace(column, palette=_COLORS) for column in columns)]


def _draw_strips(axes: Any, strips: Sequence[Coloring], order: Array) -> None:
    look = {"aspect": "auto", "interpolation": "nearest"}
    axes.imshow(np.stack([strip.colors()[order] for strip in strips]), **look)
    for row in range(1, len(strips)):
        axes.axhline(row - 0.5, color=PAPER, linewidth=1.5)
    axes.set_yticks(range(len(strips)), [strip.name for strip in strips])
    axes.set_xticks([])
    bare(axes)


def _draw_cells(axes: Any, values: Array) -> Any:
    colors = load_matplotlib("pyplot").get_cmap(DIVERGING).with_extremes(bad=MISSING)
    look = {"aspect": "auto", "interpolation": "nearest", "cmap": colors, "vmin": -_EXTREME, "vmax": _EXTREME}
    mesh = axes.imshow(np.ma.masked_invalid(values), **look)
    axes.set_xticks([])
    axes.set_xlabel("samples, ordered by group and confidence")
    bare(axes)
    return mesh


def _mark_groups(bars: Any, cells: Any, groups: Array) -> None:
    """Write the numbers of the groups on their bar, and draw lines between them."""
    for group in np.unique(groups).tolist():
        own = np.flatnonzero(groups == group)
        if len(own) > 0.02 * len(groups):
            middle, look = (own[0] + own[-1]) / 2, {"color": PAPER, "fontsize": 8, "weight": "bold"}
            bars.text(middle, 0, str(group), ha="center", va="center", **look)
        if own[0]:
            for part in (bars, cells):
                part.axvline(own[0] - 0.5, color=PAPER if part is bars else INK, linewidth=1.2)


def _explain(axes: Any, strips: Sequence[Coloring]) -> None:
    """Draw a legend of the levels of confidence and covariates; groups and views are named in the figure."""
    patch = load_matplotlib("patches").Patch
    handles, names = [], []
    for strip in strips:
        if strip.name == "group" or (strip.levels and strip.levels[0] == ""):
            continue
        entries = [(strip.color_of(level), name) for level, name in enumerate(strip.levels)]
        if strip.is_number:
            norm = strip.norm()
            entries = [(strip.colormap().to_rgba(value), f"{value:.3g}") for value in (norm.vmax, norm.vmin)]
        if not strip.is_number and (strip.values < 0).any():
            entries.append((MISSING, "no value"))
        handles += [patch(color="none"), *(patch(color=color) for color, _ in entries)]
        names += [strip.name, *(name for _, name in entries)]
    if handles:
        look = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False, "handlelength": 1.0}
        legend = axes.legend(handles, names, fontsize=8, labelspacing=0.25, borderaxespad=0.2, **look)
        for handle, text in zip(handles, legend.get_texts(), strict=True):
            if handle.get_facecolor()[3] == 0:  # a heading
                text.set(weight="bold", position=(-16, 0))


def plot_markers(markers: Markers | MultiViewClusterer, *, n_top: int = 3, ax: Any = None) -> Any:
    """Draw the effects of the first markers of every group and view, in all groups.

    Markers are features that are higher in the group than in all others, with the smallest p-values. Dots mark an FDR
    of at most 5 %.

    Parameters
    ----------
    markers : Markers or fitted clusterer
        The result of ``model.markers()``, or a model, whose markers are computed.
    n_top : int, default=3
        Number of features for each group and view.
    ax : matplotlib axes, optional
        Axes to draw on; by default new ones.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from gapview import BridgedGRMF
    >>> from gapview.datasets import make_views
    >>> from gapview.plots import plot_markers
    >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> model = BridgedGRMF(n_clusters=2, random_state=0).fit(views)
    >>> len(plot_markers(model.markers(), n_top=2).get_yticks())
    8
    """
    if not isinstance(markers, Markers):
        demand_fitted("The figure", markers, named="clusterer of gapview, or its markers")
        markers = markers.markers()
    check_integer("n_top", n_top, low=1)
    return draw_markers(markers.columns, n_top, ax)
