"""Figures of a fit: how it went, how well the views agree with it, what sets the groups apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ParameterError
from ..estimators import GRMF, BridgedGRMF, MultiViewClusterer
from ..report.clustering.history import summarise_convergence
from ..report.clustering.words import shorten
from ..report.drawing import draw_change, draw_objective, fill_cells
from ..report.style import INK, SERIES, SOFT, load_matplotlib
from ..trust import FeatureEffect, feature_effects, top_features
from ..utils.parameters import check_choice, check_integer
from ._axes import axes_for, demand_fitted, legend_beside, set_title

__all__ = ["plot_convergence", "plot_top_features", "plot_view_agreement"]

_LONGEST = 30  # characters of a name
_COLORS = [SERIES[place].color for place in (5, 3, 2, 4, 6, 1, 0)]  # of views, one after the other


def plot_convergence(model: MultiViewClusterer, *, what: str = "objective", ax: Any = None) -> Any:
    """Draw how the objective went down, or how much it changed in every iteration.

    Parameters
    ----------
    model : fitted clusterer
        Any method that iterates.
    what : {"objective", "change"}, default="objective"
        The objective after every iteration; or its relative change, in powers of ten, with the ``tol`` at which a fit
        stops.
    ax : matplotlib axes, optional
        Where to draw; by default on new ones.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from gapview import GRMF
    >>> from gapview.datasets import make_views
    >>> from gapview.plots import plot_convergence
    >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> axes = plot_convergence(GRMF(n_clusters=2, random_state=0).fit(views), what="change")
    >>> axes.get_ylabel(), axes.get_yscale()
    ('relative change of the objective', 'log')
    """
    demand_fitted(model, "objective_", "a method that iterates and keeps its objective")
    check_choice("what", what, ("objective", "change"))
    found = summarise_convergence(model)
    n_iterations = len(found.objective)
    with axes_for(ax, 5.2, 3.2) as axes:
        if what == "objective":
            draw_objective(axes, found.objective)
            axes.set_ylabel("objective")
            axes.ticklabel_format(axis="y", useOffset=False)
        else:
            draw_change(axes, found.changes, found.tol)
            axes.set_ylabel("relative change of the objective")
        ended = "settled" if found.settled else "stopped" if found.tol > 0 else "ended"
        set_title(axes, f"{ended.capitalize()} after {n_iterations} iteration{'' if n_iterations == 1 else 's'}")
    return axes


def plot_view_agreement(model: GRMF | BridgedGRMF, *, ax: Any = None) -> Any:
    """Draw how well every group holds in every view alone, by the neighbours within the view.

    0: a sample's neighbours in the view are of its own group no more often than by chance; 1: all of them are. The
    groups were made from these views, so high values say that a group can be seen in a view, not that it is real.

    Parameters
    ----------
    model : fitted GRMF or BridgedGRMF
        See :meth:`gapview.BridgedGRMF.view_agreement`.
    ax : matplotlib axes, optional
        Where to draw; by default on new ones.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from gapview import BridgedGRMF
    >>> from gapview.datasets import make_views
    >>> from gapview.plots import plot_view_agreement
    >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> axes = plot_view_agreement(BridgedGRMF(n_clusters=2, random_state=0).fit(views))
    >>> [label.get_text() for label in axes.get_xticklabels()]
    ['view_0', 'view_1']
    """
    demand_fitted(model, "view_agreement", "a GRMF or a BridgedGRMF, which know the neighbours within views")
    values = model.view_agreement().above_chance
    n_groups, n_views = values.shape
    names = [shorten(name, _LONGEST) for name in model.views_.names]
    sloping = max(map(len, names)) > 12 or n_views > 6
    with axes_for(ax, min(10.0, 2.6 + 0.9 * n_views), 1.6 + 0.26 * n_groups + 0.6 * sloping) as axes:
        norm = load_matplotlib("colors").Normalize(0, 1, clip=True)
        fill_cells(axes, values, norm, lambda at: f"{values[at]:.2f}".replace("-", "−"), size=8)
        turned = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if sloping else {}
        axes.set_xticks(np.arange(n_views) + 0.5, names, **turned)
        axes.set_yticks(np.arange(n_groups) + 0.5, [f"group {group}" for group in range(n_groups)])
        axes.invert_yaxis()
        set_title(axes, "How well each group holds in each view")
        axes.set_xlabel("0: as by chance; 1: all neighbours of the own group")
    return axes


def plot_top_features(
    model: MultiViewClusterer, group: int, *, view: str | None = None, n_top: int = 10, ax: Any = None
) -> Any:
    """Draw the features that set one group apart most from all other samples.

    Bars are Hedges' g: differences of means in standard deviations, to the right where the group lies above the others.
    Groups are made to differ in these very features: the bars describe them, they prove nothing.

    Parameters
    ----------
    model : fitted clusterer
        Any method of gapview.
    group : int
        The group.
    view : str, optional
        Only features of this view; by default those of all views.
    n_top : int, default=10
        How many features.
    ax : matplotlib axes, optional
        Where to draw; by default on new ones.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from gapview import BridgedGRMF
    >>> from gapview.datasets import make_views
    >>> from gapview.plots import plot_top_features
    >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> axes = plot_top_features(BridgedGRMF(n_clusters=2, random_state=0).fit(views), 0, n_top=5)
    >>> len(axes.patches)
    5
    """
    demand_fitted(model, "labels_", "groups")
    names = model.views_.names
    check_integer("group", group, low=0)
    n_groups = int(model.labels_.max()) + 1
    if group >= n_groups:
        raise ParameterError(f"group must be one of the groups found, 0 to {n_groups - 1}; got {group}.")
    check_choice("view", view, (None, *names))
    effects = [one for one in feature_effects(model.views_, model.labels_) if view in (None, one.view)]
    found = [one for one in top_features(effects, n_top) if one.cluster == group]
    found = sorted(found, key=lambda one: -abs(one.effect))[:n_top]
    where = "" if view is None or len(names) == 1 else f" in {shorten(view, _LONGEST)}"
    several = view is None and len(names) > 1
    with axes_for(ax, 6.0, 1.3 + 0.26 * max(len(found), 2)) as axes:
        set_title(axes, f"What sets group {group} apart{where}")
        axes.set_xlabel("difference from all others, in standard deviations (Hedges’ g)")
        _draw_effects(axes, found, {name: _COLORS[k % len(_COLORS)] for k, name in enumerate(names)}, several)
        if not found:
            axes.text(0.5, 0.5, "nothing stands out", transform=axes.transAxes, ha="center", va="center", color=SOFT)
    return axes


def _draw_effects(axes: Any, found: list[FeatureEffect], color_of: dict[str, str], several: bool) -> None:
    finite = [abs(one.effect) for one in found if math.isfinite(one.effect)]
    longest = 1.15 * max(finite, default=1.0)  # stands for an infinite difference
    for row, one in enumerate(found):
        width = float(np.clip(one.effect, -longest, longest))
        first = all(one.view != other.view for other in found[:row])
        label = shorten(one.view, _LONGEST) if several and first else None
        axes.barh(row, width, height=0.7, color=color_of[one.view], label=label)
        text = ("+" if width > 0 else "−") + ("∞" if math.isinf(one.effect) else f"{abs(width):.1f}")
        place = {"xytext": (3 if width > 0 else -3, 0), "textcoords": "offset points", "va": "center", "fontsize": 8}
        axes.annotate(text, (width, row), ha="left" if width > 0 else "right", color=INK, **place)
    axes.axvline(0, color=SOFT, linewidth=0.8)
    axes.set_yticks(range(len(found)), [_feature(one, several) for one in found])
    axes.invert_yaxis()
    axes.margins(x=0.14)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    if several and len({one.view for one in found}) > 1:
        legend_beside(axes)


def _feature(one: FeatureEffect, several: bool) -> str:
    name = shorten(one.feature, _LONGEST) if isinstance(one.feature, str) else f"feature {one.feature}"
    return f"{name} ({shorten(one.view, 16)})" if several else name
