"""Figures of the samples: the map, missing views, sizes of the groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimators.base import MultiViewClusterer, demand_fitted
from ..report.clustering.group_sections import draw_sizes
from ..report.clustering.samples import count_patterns, summarise_map
from ..report.drawing import MOST_PATTERNS, draw_patterns, group_sign, legend_beside
from ..report.style import INK, PAPER, axes_for, load_matplotlib
from ..utils.messages import counted
from ..views import Views

_MARKERS = dict(zip(("circle", "square", "triangle", "diamond", "plus", "cross", "wedge"), "os^DPXv", strict=True))
_MOST_NAMED = 40  # groups in a legend; the map shows the numbers of all groups


def plot_samples(model: MultiViewClusterer, *, ax: Any = None) -> Any:
    """Draw a map of the samples, coloured by group: samples near each other are near in the latent space.

    The same map as in the report: latent points projected by t-SNE, or by PCA if there are fewer than 20. Sizes of
    clouds and distances between them have no meaning. Groups differ by colour and by marker; numbers are in the centre
    of their group. Of more than 20,000 samples a subset is shown, drawn in proportion from every group.

    Parameters
    ----------
    model : fitted clusterer
        Any method of gapview.
    ax : matplotlib axes, optional
        Axes to draw on; by default new ones.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from gapview import BridgedGRMF
    >>> from gapview.datasets import make_views
    >>> from gapview.plots import plot_samples
    >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> axes = plot_samples(BridgedGRMF(n_clusters=2, random_state=0).fit(views))
    >>> axes.get_title()
    '60 samples in 2 groups'
    """
    demand_fitted("The figure", model)
    labels = model.labels_
    shown = summarise_map(model, count_patterns(model.views_.mask)[1])
    groups = np.unique(labels)
    part = f"{len(shown.samples):,} of " if len(shown.samples) < len(labels) else ""
    title = f"{part}{len(labels):,} samples in {counted(len(groups), 'group')}"
    with axes_for(ax, 6.4, 4.6, title) as axes:
        look = {"s": np.clip(18_000 / len(labels), 6, 36), "edgecolors": PAPER, "linewidths": 0.3}
        look["rasterized"] = len(labels) > 5000
        rim = [load_matplotlib("patheffects").withStroke(linewidth=2.5, foreground=PAPER)]
        for group in groups.tolist():
            own = labels[shown.samples] == group
            x, y, sign = shown.x[own], shown.y[own], group_sign(group)
            axes.scatter(x, y, color=sign.color, marker=_MARKERS[sign.shape], label=f"group {group}", **look)
            at = np.argmin(np.hypot(x - np.median(x), y - np.median(y)))  # the position of a sample of the group
            axes.text(x[at], y[at], str(group), color=INK, weight="bold", ha="center", va="center", path_effects=rim)
        axes.set(xticks=[], yticks=[], xlabel=f"latent points, laid out by {shown.method}")
        axes.set_aspect("equal", adjustable="datalim")
        axes.grid(False)
        axes.spines[:].set_visible(False)
        if 1 < len(groups) <= _MOST_NAMED:
            legend_beside(axes, size=30)
    return axes


def plot_missing(data: Any, *, ax: Any = None) -> Any:
    """Draw which samples lack which views: one column for each set of views that some samples have and no others.

    Filled dots are views that the samples of the column have; the bars above count these samples, the bars beside the
    views count all samples that have the view. The 20 most frequent sets are shown.

    Parameters
    ----------
    data : fitted clusterer, Views, or list or dict of views
        A model, to show its training samples, or anything that :class:`gapview.Views` takes.
    ax : matplotlib axes, optional
        Axes that the parts of the figure share; by default new ones.

    Returns
    -------
    matplotlib axes
        Their ``child_axes`` are the three parts.

    Examples
    --------
    >>> from gapview.datasets import load_digits_views, paired_split
    >>> from gapview.plots import plot_missing
    >>> axes = plot_missing(paired_split(load_digits_views().views, 0.5, random_state=0))
    >>> axes.get_title()
    '898 of 1,797 samples have all views'
    """
    if isinstance(data, MultiViewClusterer | type):
        demand_fitted("The figure", data)
        views: Views = data.views_  # type: ignore[union-attr]
    else:
        views = Views(data)
    patterns, _ = count_patterns(views.mask)
    drawn = patterns[:MOST_PATTERNS]
    n_columns, dots = len(drawn), 0.2 + 0.26 * views.n_views  # height in inches
    height = dots / (dots + 1.6)
    title = f"{int(views.mask.all(axis=1).sum()):,} of {views.n_samples:,} samples have all views"
    with axes_for(ax, min(10.0, 3.0 + 0.42 * n_columns), 2.2 + dots, title) as axes:
        side = min(0.35, 1.1 / (1.1 + 0.42 * max(n_columns, 3)))
        axes.axis("off")
        bars = axes.inset_axes((0, height + 0.04, 1 - side, 0.96 - height))
        matrix = axes.inset_axes((0, 0, 1 - side, height))
        beside = axes.inset_axes((1.02 - side, 0, side - 0.02, height))
        counts = dict(zip(views.names, views.n_present, strict=True))
        draw_patterns(bars, matrix, beside, drawn, counts, leftwards=False)
        for part in (bars, matrix):
            part.spines[["top", "right"]].set_visible(False)
            part.set_facecolor("none")
        if len(drawn) < len(patterns):
            matrix.set_xlabel(f"the {len(drawn)} most frequent of {len(patterns)} sets of views")
    return axes


def plot_cluster_sizes(model: MultiViewClusterer, *, ax: Any = None) -> Any:
    """Draw the number of samples of every group, by confidence.

    Parameters
    ----------
    model : fitted clusterer
        Any method of gapview; only the sizes are drawn if it has no confidence.
    ax : matplotlib axes, optional
        Axes to draw on; by default new ones.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from gapview import BridgedGRMF
    >>> from gapview.datasets import make_views
    >>> from gapview.plots import plot_cluster_sizes
    >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> axes = plot_cluster_sizes(BridgedGRMF(n_clusters=2, random_state=0).fit(views))
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['group 0', 'group 1']
    """
    demand_fitted("The figure", model)
    labels, confidence = model.labels_, getattr(model, "confidence_", None)
    sizes = np.bincount(labels)
    with axes_for(ax, 5.6, 1.0 + 0.26 * len(sizes), "Sizes of the groups") as axes:
        draw_sizes(axes, labels, confidence, len(sizes))
        for group, total in enumerate(sizes):
            place = {"xytext": (4, 0), "textcoords": "offset points", "va": "center", "fontsize": 8}
            axes.annotate(f"{total:,}", (total, group), **place)
        axes.set_xlim(0, 1.14 * sizes.max())  # with room for the numbers
        if confidence is not None:
            legend_beside(axes)
            axes.get_legend().set_title("confidence")
    return axes
