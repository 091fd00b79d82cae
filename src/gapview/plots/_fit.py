"""Figures of a fit: convergence, agreement of the views, features of the groups, scores over the weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import InputError, InputTypeError, ParameterError
from ..estimators import GRMF, BridgedGRMF
from ..estimators.base import MultiViewClusterer, demand_fitted
from ..kinds import feature_views
from ..report.clustering.fit import summarise_convergence
from ..report.clustering.summary import feature_name, signed
from ..report.coloring import VIEW_COLORS
from ..report.drawing import draw_change, draw_frame, draw_objective, draw_weight_cells, fill_cells, legend_beside
from ..report.style import INK, SOFT, axes_for, load_matplotlib
from ..trust import Agreement, FeatureEffect, feature_effects, top_features
from ..utils.messages import check_choice, check_flag, check_integer, counted, shorten, shown
from ..utils.types import Array

_LONGEST = 30  # characters of a name
_WEIGHTS = ("consensus_weight", "sparsity_weight")


def plot_convergence(model: MultiViewClusterer, *, what: str = "objective", ax: Any = None) -> Any:
    """Draw the objective, or its relative change in every iteration.

    Parameters
    ----------
    model : fitted clusterer
        Any method that iterates.
    what : {"objective", "change"}, default="objective"
        The objective after every iteration; or its relative change, in powers of ten, with the ``tol`` at which a fit
        stops.
    ax : matplotlib axes, optional
        Axes to draw on; by default new ones.

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
    _demand(model, "objective_", "a method that iterates and keeps its objective")
    check_choice("what", what, ("objective", "change"))
    found = summarise_convergence(model)
    ended = "Settled" if found.settled else "Stopped" if found.tol > 0 else "Ended"
    with axes_for(ax, 5.2, 3.2, f"{ended} after {counted(len(found.objective), 'iteration')}") as axes:
        if what == "objective":
            draw_objective(axes, found.objective)
            axes.set_ylabel("objective")
            axes.ticklabel_format(axis="y", useOffset=False)
        else:
            draw_change(axes, found.changes, found.tol)
            axes.set_ylabel("relative change of the objective")
    return axes


def _demand(model: Any, attribute: str, needed: str) -> None:
    """Raise an error unless the model is a fitted clusterer with an attribute."""
    demand_fitted("The figure", model)
    if not hasattr(model, attribute):
        raise InputTypeError(f"The figure needs {needed}; {type(model).__name__} has none.")


def plot_view_agreement(model: GRMF | BridgedGRMF, *, pairs: bool = False, ax: Any = None) -> Any:
    """Draw the agreement of every group with the neighbours in every single view, or that of pairs of views.

    0: a sample's neighbours in the view are of its own group no more often than by chance; 1: all of them are. The
    groups were computed from these views: high values show that a group is visible in a view, not that it is real.

    Parameters
    ----------
    model : fitted GRMF or BridgedGRMF
        See :meth:`gapview.BridgedGRMF.view_agreement`.
    pairs : bool, default=False
        Draw for every two views how often a neighbour in one and a neighbour in the other are of the same group, on
        average over the samples. That of a view with itself is an upper bound.
    ax : matplotlib axes, optional
        Axes to draw on; by default new ones.

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
    _demand(model, "view_agreement", "a GRMF or a BridgedGRMF, which compute the neighbours within views")
    check_flag("pairs", pairs)
    agreement = model.view_agreement()
    values = _of_pairs(agreement, model.labels_) if pairs else agreement.above_chance
    n_rows, n_views = values.shape
    names = [shorten(name, _LONGEST) for name in model.views_.names]
    sloping = max(map(len, names)) > 12 or n_views > 6
    width, height = min(10.0, 2.6 + 0.9 * n_views), 1.6 + 0.26 * n_rows + 0.6 * sloping
    where = "two views" if pairs else "each view"
    with axes_for(ax, width, height, f"Neighbours of the same group in {where}") as axes:
        norm = load_matplotlib("colors").Normalize(0, 1, clip=True)
        fill_cells(axes, values, norm, lambda at: f"{values[at]:.2f}".replace("-", "−"), size=8)
        turned = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if sloping else {}
        axes.set_xticks(np.arange(n_views) + 0.5, names, **turned)
        axes.set_yticks(np.arange(n_rows) + 0.5, names if pairs else [f"group {group}" for group in range(n_rows)])
        axes.invert_yaxis()
        axes.set_xlabel(f"0: as by chance; 1: all neighbours of {'one' if pairs else 'the own'} group")
    return axes


def _of_pairs(agreement: Agreement, labels: Array) -> Array:
    """Return the agreement of every two views, averaged over the samples of all groups in which it is known."""
    values = np.ma.masked_invalid(agreement.pair_above_chance)
    weights = np.broadcast_to(np.bincount(labels)[:, None, None], values.shape)
    return np.asarray(np.ma.filled(np.ma.average(values, axis=0, weights=weights), np.nan))


def plot_top_features(
    model: MultiViewClusterer, group: int, *, view: str | None = None, n_top: int = 10, ax: Any = None
) -> Any:
    """Draw the features with the largest differences between one group and all other samples.

    Bars are Hedges' g: differences of means in standard deviations, to the right where the group lies above the others.
    The groups were computed from these features: the bars describe the groups, they are no evidence for them.

    Parameters
    ----------
    model : fitted clusterer
        Any method of gapview.
    group : int
        The group.
    view : str, optional
        Only features of this view; by default those of all views.
    n_top : int, default=10
        Number of features.
    ax : matplotlib axes, optional
        Axes to draw on; by default new ones.

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
    demand_fitted("The figure", model)
    names = model.views_.names
    check_integer("group", group, low=0)
    n_groups = int(model.labels_.max()) + 1
    if group >= n_groups:
        raise ParameterError(f"group must be one of the groups found, 0 to {n_groups - 1}; got {group}.")
    check_choice("view", view, (None, *names))
    effects = [
        one
        for one in feature_effects(feature_views(model.views_, getattr(model, "kinds_", ())), model.labels_)
        if view in (None, one.view)
    ]
    found = [one for one in top_features(effects, n_top) if one.cluster == group]
    found = sorted(found, key=lambda one: -abs(one.effect))[:n_top]
    where = "" if view is None or len(names) == 1 else f" in {shorten(view, _LONGEST)}"
    several = view is None and len(names) > 1
    with axes_for(ax, 6.0, 1.3 + 0.26 * max(len(found), 2), f"What sets group {group} apart{where}") as axes:
        axes.set_xlabel("difference from all others, in standard deviations (Hedges’ g)")
        _draw_effects(axes, found, {name: VIEW_COLORS[k % len(VIEW_COLORS)] for k, name in enumerate(names)}, several)
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
        place = {"xytext": (3 if width > 0 else -3, 0), "textcoords": "offset points", "va": "center", "fontsize": 8}
        axes.annotate(signed(one.effect), (width, row), ha="left" if width > 0 else "right", color=INK, **place)
    axes.axvline(0, color=SOFT, linewidth=0.8)
    names = [feature_name(one, _LONGEST) + (f" ({shorten(one.view, 16)})" if several else "") for one in found]
    axes.set_yticks(range(len(found)), names)
    axes.invert_yaxis()
    axes.margins(x=0.14)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    if several and len({one.view for one in found}) > 1:
        legend_beside(axes)


def plot_weight_grid(
    scores: Any, consensus_weights: Any = None, sparsity_weights: Any = None, *, label: str = "score", ax: Any = None
) -> Any:
    """Draw scores over a grid of λ1 (``consensus_weight``) and λ2 (``sparsity_weight``), as in the paper's Figure 3.

    The best cell is framed. Colours follow the square of the scores, which shows differences between high scores.

    Parameters
    ----------
    scores : fitted GridSearchCV, or array of shape (n_consensus_weights, n_sparsity_weights)
        A search over both weights, whose mean test scores are drawn (of several settings with the same weights, the
        best); or the scores themselves, NaN where there is none.
    consensus_weights, sparsity_weights : sequences of float, optional
        Values of λ1, one for each row, and of λ2, one for each column. Needed with an array only.
    label : str, default="score"
        What the scores are.
    ax : matplotlib axes, optional
        Axes to draw on; by default new ones.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from gapview import GRMF
    >>> from gapview.datasets import make_views
    >>> from gapview.plots import plot_weight_grid
    >>> views = make_views(n_samples=60, n_clusters=2, random_state=0).views
    >>> grid = {"consensus_weight": [1.0, 100.0], "sparsity_weight": [1e-4, 1e-3, 1e-2]}
    >>> search = GridSearchCV(GRMF(n_clusters=2, init="data"), grid, cv=2).fit(views)
    >>> axes = plot_weight_grid(search, label="modularity")
    >>> [text.get_text() for text in axes.get_xticklabels()]
    ['10⁻⁴', '10⁻³', '10⁻²']
    """
    if hasattr(scores, "cv_results_"):
        if consensus_weights is not None or sparsity_weights is not None:
            raise InputError("A search has weights: consensus_weights and sparsity_weights are for arrays only.")
        grid, rows, columns = _from_search(scores.cv_results_)
    else:
        rows = _weights("consensus_weights", consensus_weights)
        columns = _weights("sparsity_weights", sparsity_weights)
        grid = _scores(scores, len(rows), len(columns))
    low, high = float(np.nanmin(grid)), float(np.nanmax(grid))
    spread = high - low
    digits = 1 if spread >= 3 else 2 if spread >= 0.1 else 3
    width, height = min(10.0, 2.4 + 0.62 * len(columns)), min(8.0, 1.6 + 0.36 * len(rows))
    with axes_for(ax, width, height, f"{label[:1].upper()}{label[1:]} by weights") as axes:
        norm = load_matplotlib("colors").PowerNorm(2, vmin=low, vmax=high if spread > 0 else low + 1)
        draw_weight_cells(axes, grid, rows, columns, norm, digits)
        row, column = map(int, np.unravel_index(np.nanargmax(grid), grid.shape))
        draw_frame(axes, column, column + 1, row, row + 1)
    return axes


def _weights(name: str, given: Any) -> list[float]:
    if given is None:
        raise InputError(f"{name} must be the weights of the scores, in order; got None.")
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.ndim != 1 or not len(values) or not (np.isfinite(values) & (values >= 0)).all():
        raise InputError(f"{name} must be a sequence of numbers of at least 0; got {shown(given)}.")
    return [float(value) for value in values]


def _scores(given: Any, n_rows: int, n_columns: int) -> Array:
    try:
        grid = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(
            f"scores must be a fitted search, or an array of numbers; got a {type(given).__name__}."
        ) from None
    if grid.shape != (n_rows, n_columns):
        raise InputError(
            f"scores must have a row for each of the {n_rows} consensus_weights and a column for each of the "
            f"{n_columns} sparsity_weights; got shape {grid.shape}."
        )
    if np.isinf(grid).any() or np.isnan(grid).all():
        raise InputError("scores must hold at least one number, and nothing infinite.")
    return grid


def _from_search(results: Any) -> tuple[Array, list[float], list[float]]:
    """Return scores and weights from the results of a search; parameters may be those of a pipeline step."""
    found = {name: [key for key in results if key.split("__")[-1].removeprefix("param_") == name] for name in _WEIGHTS}
    lacking = [name for name, keys in found.items() if len(keys) != 1]
    if lacking:
        raise InputError(f"The search must vary both weights, once each; it does not vary {' and '.join(lacking)}.")
    first, second = (np.asarray(results[keys[0]], dtype=np.float64) for keys in found.values())
    if "mean_test_score" not in results:
        raise InputError("The search has no mean_test_score; search with a single score, or pass an array of scores.")
    rows, columns = np.unique(first), np.unique(second)
    grid = np.full((len(rows), len(columns)), np.nan)
    places = np.searchsorted(rows, first), np.searchsorted(columns, second)
    np.fmax.at(grid, places, np.asarray(results["mean_test_score"], dtype=np.float64))
    return _scores(grid, len(rows), len(columns)), rows.tolist(), columns.tolist()
