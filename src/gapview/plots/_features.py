"""Figures of features: a heat map of features × samples, and the markers of the groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InputError, InputTypeError, described
from ..estimators.base import MultiViewClusterer, demand_fitted
from ..kinds import feature_views
from ..report.clustering.features import in_order, top_values
from ..report.coloring import Coloring
from ..report.heatmap import BAR, LONGEST, draw_heat_map, swatches, view_bars
from ..report.style import axes_for
from ..trust import Markers, feature_effects
from ..utils.messages import check_choice, check_integer, counted, shorten
from ..views.containers import descends
from .coloring import of_column, of_confidence
from .drawing import draw_markers

_MOST_SAMPLES = 3000  # more are narrower than a pixel
_MOST_FEATURES = 60
_ROW = 0.2  # height in inches


def plot_heatmap(
    model: MultiViewClusterer, *, n_top: int = 2, covariates: Any = None, view: str | None = None, ax: Any = None
) -> Any:
    """Draw the features that set the groups apart most, in all samples, ordered by group.

    Bars above show the group, the views that some samples lack, the confidence, and covariates. Within a group, samples
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
    check_choice("view", view, (None, *model.views_.names))
    effects = feature_effects(feature_views(model.views_, getattr(model, "kinds_", ())), model.labels_)
    order = in_order(model.labels_, getattr(model, "confidence_", np.zeros(len(model.labels_))), _MOST_SAMPLES)
    chosen = [one for one in effects if view in (None, one.view)]
    found = top_values(model, order, chosen, _MOST_FEATURES, n_top)
    if not found.names:
        raise InputError("The figure needs groups that differ in some feature; these do not.")
    bars = [bar.at(order) for bar in _bars(model, covariates)]
    ends = [f" ({shorten(model.views_.names[k], 14)})" if len(chosen) > 1 else "" for k in found.views]
    names = [shorten(name, LONGEST) + end for name, end in zip(found.names, ends, strict=True)]
    part = f"{len(order):,} of " if len(order) < len(model.labels_) else ""
    title = f"Features of the groups in {part}{counted(len(model.labels_), 'sample')}"
    above, below = BAR * (len(bars) + 1), _ROW * max(len(names), 2)
    with axes_for(ax, 7.6, above + below + 0.9, title) as axes:
        axes.axis("off")
        share = above / (above + below + 0.08)
        top = axes.inset_axes((0, 1 - share, 1, share))
        cells = axes.inset_axes((0, 0, 1, below / (above + below + 0.08)))
        image = draw_heat_map((top, cells), found.standardised, names, found.views, model.labels_[order], bars)
        cells.set_xlabel("samples, ordered by group and confidence")
        look = {"shrink": min(0.5, 2.2 / (above + below)), "aspect": 14, "pad": 0.02, "anchor": (0, 0.05)}
        scale = axes.figure.colorbar(image, ax=axes, label="standard deviations", extend="both", **look)
        scale.outline.set_visible(False)
        _explain(axes, bars)
    return axes


def _bars(model: Any, covariates: Any) -> list[Coloring]:
    """Return the bars of the views, the confidence and the covariates."""
    bars = view_bars(model.views_.mask, model.views_.names)
    if hasattr(model, "confidence_"):
        bars.append(of_confidence(model.confidence_))
    covariates = {} if covariates is None else covariates
    if not isinstance(covariates, Mapping) and not descends(covariates, "pandas", "DataFrame"):
        raise InputTypeError(
            f"covariates must be a dict of columns, or a pandas frame with the sample ids as index; got "
            f"{described(covariates)}."
        )
    return bars + [of_column(column, model.sample_ids_, name).as_bar() for name, column in covariates.items()]


def _explain(axes: Any, bars: Sequence[Coloring]) -> None:
    """Draw a legend of the levels of confidence and covariates; groups and views are named in the figure."""
    legends = [(bar.name, found) for bar in bars if (found := bar.legend("no value"))]
    entries = [entry for title, found in legends for entry in ((title, "none"), *found)]
    if not entries:
        return
    look = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False, "handlelength": 1.0}
    legend = axes.legend(handles=swatches(entries), fontsize=8, labelspacing=0.25, borderaxespad=0.2, **look)
    for (_, color), text in zip(entries, legend.get_texts(), strict=True):
        if color == "none":  # a heading
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
