"""Figures of samples and groups from arrays, for models and for annotated objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..report.clustering.features import feature_label
from ..report.clustering.group_sections import draw_sizes
from ..report.clustering.samples import SampleMap, place_samples
from ..report.coloring import MISSING, Coloring, of_groups
from ..report.drawing import DIVERGING, bare, group_sign, legend_beside
from ..report.style import INK, PAPER, SOFT, axes_for, load_matplotlib
from ..utils.messages import counted, shorten
from ..utils.types import Array

_MARKERS = dict(zip(("circle", "square", "triangle", "diamond", "plus", "cross", "wedge"), "os^DPXv", strict=True))
_LONGEST = 28  # characters of a name
_MOST_NAMED = 40  # groups in a legend; the map shows the numbers of all groups


def draw_map(
    labels: Array,
    points_of: Callable[[Array], Array],
    confidence: Array | None,
    codes: Array | None = None,
    coloring: Coloring | None = None,
    *,
    ax: Any,
) -> Any:
    """Draw samples projected to a plane; ``codes`` are strata from which they are drawn, beside the groups."""
    shown = place_samples(labels, points_of, confidence, np.zeros_like(labels) if codes is None else codes)
    coloring = of_groups(labels) if coloring is None else coloring
    groups = np.unique(labels)
    part = f"{len(shown.samples):,} of " if len(shown.samples) < len(labels) else ""
    title = f"{part}{len(labels):,} samples in {counted(len(groups), 'group')}"
    with axes_for(ax, 6.4, 4.6, title) as axes:
        look = {"s": np.clip(18_000 / len(labels), 6, 36), "edgecolors": PAPER, "linewidths": 0.3}
        look["rasterized"] = len(labels) > 5000
        all_known = _draw_samples(axes, shown, coloring, look)
        rim = [load_matplotlib("patheffects").withStroke(linewidth=2.5, foreground=PAPER)]
        for group in groups.tolist():
            own = labels[shown.samples] == group
            x, y = shown.x[own], shown.y[own]
            at = np.argmin(np.hypot(x - np.median(x), y - np.median(y)))  # the position of a sample of the group
            axes.text(x[at], y[at], str(group), color=INK, weight="bold", ha="center", va="center", path_effects=rim)
        grey = "" if all_known else "; grey: no value"
        axes.set(xticks=[], yticks=[], xlabel=f"latent points, laid out by {shown.method}{grey}")
        axes.set_aspect("equal", adjustable="datalim")
        axes.grid(False)
        axes.spines[:].set_visible(False)
    return axes


def _draw_samples(axes: Any, shown: SampleMap, coloring: Coloring, look: dict[str, Any]) -> bool:
    """Draw the samples with a legend; return whether all have a value. Levels differ by marker, too."""
    values, x, y = coloring.values[shown.samples], shown.x, shown.y
    known = coloring.is_known[shown.samples]
    if not known.all():
        axes.scatter(x[~known], y[~known], color=MISSING, marker="o", **look)
    if coloring.is_number:
        axes.scatter(x[known], y[known], c=coloring.colors()[shown.samples][known], marker="o", **look)
        scale = axes.figure.colorbar(coloring.colormap(), ax=axes, label=coloring.name, shrink=0.6, pad=0.02)
        scale.outline.set_visible(False)
        return bool(known.all())
    for level in np.unique(values[known]).tolist():
        own, name = values == level, coloring.levels[level]
        sign = {"color": coloring.color_of(level), "marker": _MARKERS[group_sign(level).shape]}
        axes.scatter(x[own], y[own], label=name, **sign, **look)
    if len(coloring.levels) <= _MOST_NAMED and (len(coloring.levels) > 1 or coloring.name != "group"):
        legend_beside(axes, size=30)
        axes.get_legend().set_title("" if coloring.name == "group" else coloring.name)
    return bool(known.all())


def draw_group_sizes(labels: Array, confidence: Array | None, *, ax: Any) -> Any:
    """Draw the number of samples of every group, by confidence if it is known."""
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


def draw_markers(columns: Mapping[str, Array], n_top: int, ax: Any) -> Any:
    """Draw the effects of markers, given by the columns of their table, sorted by p-value within group and view."""
    groups, views = columns["group"].astype(int), columns["view"].astype(str)
    keys = list(zip(views.tolist(), columns["feature"].tolist(), strict=True))
    is_up, chosen = columns["direction"].astype(str) == "up", []
    for group in np.unique(groups):
        for view in dict.fromkeys(views[groups == group].tolist()):
            first = np.flatnonzero((groups == group) & (views == view) & is_up)[:n_top]
            chosen += [keys[row] for row in first if keys[row] not in chosen]
    place = {key: row for row, key in enumerate(chosen)}
    effects, known = np.zeros((len(chosen), groups.max() + 1)), np.flatnonzero([key in place for key in keys])
    at = np.array([place[keys[row]] for row in known], dtype=np.intp), groups[known]
    effects[at] = np.nan_to_num(columns["effect"][known].astype(np.float64), nan=0.0)
    is_sure = np.zeros(effects.shape, dtype=bool)
    is_sure[at] = columns["fdr"][known].astype(np.float64) <= 0.05
    finite = np.abs(effects[np.isfinite(effects)])
    limit = max(1.0, float(np.quantile(finite, 0.98))) if finite.size else 1.0
    several = len({view for view, _ in chosen}) > 1
    ends = [f" ({shorten(view, 14)})" if several else "" for view, _ in chosen]
    names = [shorten(feature_label(feature), _LONGEST) + end for (_, feature), end in zip(chosen, ends, strict=True)]
    width, height = min(12.0, 3.4 + 0.42 * effects.shape[1]), min(24.0, 1.3 + 0.22 * max(len(names), 3))
    with axes_for(ax, width, height, "Markers of the groups") as axes:
        norm = load_matplotlib("colors").Normalize(-limit, limit, clip=True)
        mesh = axes.pcolormesh(effects, cmap=DIVERGING, norm=norm, edgecolors=PAPER, linewidth=0.8)
        row, column = np.nonzero(is_sure)
        strong = np.abs(norm(effects[is_sure]) - 0.5) > 0.3
        axes.scatter(column + 0.5, row + 0.5, s=5, c=np.where(strong, PAPER, INK), linewidths=0)
        axes.set_xticks(np.arange(effects.shape[1]) + 0.5, [str(group) for group in range(effects.shape[1])])
        axes.set_yticks(np.arange(len(names)) + 0.5, names)
        axes.invert_yaxis()
        axes.set_xlabel("group (dots: FDR ≤ 5 %)")
        axes.tick_params(axis="x", length=0)
        bare(axes)
        scale = axes.figure.colorbar(mesh, ax=axes, label="Hedges’ g", shrink=min(1.0, 4 / height), aspect=20)
        scale.outline.set_visible(False)
        if not names:
            axes.text(0.5, 0.5, "no markers", transform=axes.transAxes, ha="center", va="center", color=SOFT)
    return axes
