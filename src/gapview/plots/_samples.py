"""Figures of the samples: the map, missing views, sizes and survival of the groups."""

from __future__ import annotations

from typing import Any

from ..errors import InputTypeError, described
from ..estimators.base import MultiViewClusterer, demand_fitted
from ..report.clustering.samples import latent_points_of
from ..report.drawing import MOST_PATTERNS, draw_patterns, draw_survival, legend_beside
from ..report.style import axes_for
from ..trust import GroupSurvival
from ..trust.association import count_patterns
from ..utils.messages import p_value
from ..views import Views
from .coloring import coloring_of
from .drawing import draw_group_sizes, draw_map


def plot_samples(model: MultiViewClusterer, *, color: Any = "group", ax: Any = None) -> Any:
    """Draw a map of the samples: samples near each other are near in the latent space.

    The same map as in the report: latent points projected by t-SNE, or by PCA if there are fewer than 20. Sizes of
    clouds and distances between them have no meaning. Groups differ by colour and by marker; numbers are in the centre
    of their group. Of more than 20,000 samples a subset is shown, drawn in proportion from every group.

    Parameters
    ----------
    model : fitted clusterer
        Any method of gapview.
    color : str, pair or array-like, default="group"
        What the samples are coloured by: ``"group"``, ``"confidence"``, ``"views"`` (which views a sample has), a pair
        ``(view, feature)``, or one value for each sample: a pandas Series whose index holds the sample ids, a dict, or
        an array in the order of the samples. Numbers have a scale of colours; texts, and up to ten different whole
        numbers, have colours and markers. Samples without a value are grey.
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
    >>> model = BridgedGRMF(n_clusters=2, random_state=0).fit(views)
    >>> plot_samples(model).get_title()
    '60 samples in 2 groups'
    >>> axes = plot_samples(model, color="views")
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['all views', 'only view_0', 'only view_1']
    """
    demand_fitted("The figure", model)
    codes = count_patterns(model.views_.mask)[1]
    confidence, coloring = getattr(model, "confidence_", None), coloring_of(model, color)
    return draw_map(model.labels_, latent_points_of(model), confidence, codes, coloring, ax=ax)


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
    return draw_group_sizes(model.labels_, getattr(model, "confidence_", None), ax=ax)


def plot_survival(survival: GroupSurvival, *, time: str = "time", ax: Any = None) -> Any:
    """Draw the Kaplan-Meier curve of every group, with marks for censored samples and the numbers at risk.

    Bands are pointwise 95 % intervals, drawn for up to five groups. The title has the log-rank test of all groups.

    Parameters
    ----------
    survival : GroupSurvival
        The result of :func:`gapview.trust.survival_by_group`.
    time : str, default="time"
        Label of the time axis, with its unit.
    ax : matplotlib axes, optional
        Axes to draw on; by default new ones. The numbers at risk are below them.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.plots import plot_survival
    >>> from gapview.trust import survival_by_group
    >>> state = np.random.RandomState(0)
    >>> labels = np.repeat([0, 1], 50)
    >>> death, followed = state.exponential(10 * (1 + 2 * labels)), state.uniform(5, 30, 100)
    >>> found = survival_by_group(labels, np.minimum(death, followed), death <= followed)
    >>> axes = plot_survival(found, time="months")
    >>> axes.get_title()
    'Log-rank test: p = 0.024'
    """
    if not isinstance(survival, GroupSurvival):
        raise InputTypeError(
            f"survival must be the result of gapview.trust.survival_by_group; got {described(survival)}."
        )
    curves = survival.curves
    with axes_for(ax, 5.6, 3.4 + 0.16 * len(curves), f"Log-rank test: {p_value(survival.p_value)}") as axes:
        draw_survival(axes, curves, time)
        legend_beside(axes)
    return axes
