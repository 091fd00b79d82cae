"""The heat map: features by samples in order of their groups, with bars of annotations above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from ..utils.messages import shorten
from ..utils.types import Array
from .drawing import group_sign
from .style import GRID, INK, PAPER, SERIES, SOFT, load_matplotlib, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 12.8  # inches: as wide as the page
_LIMIT = 2.5  # standard deviations from which on colours are the same
_LONGEST = 24  # characters of a name
_UNKNOWN = "#b9c1c9"
# Of named values, unlike the colours of the groups
COLORS = ("#e6c229", "#7b5ea7", "#8fd3c1", "#d1495b", "#5b6c8f", "#f2a679", "#3d3d3d", "#b5d46b")


@dataclass(frozen=True)
class Bar:
    """A value of every column of a heat map, as a colour; ``legend`` has the meaning of the colours."""

    title: str
    colors: Array = field(repr=False)
    legend: tuple[tuple[str, str], ...] = ()


def class_bar(title: str, names: Sequence[str], codes: Array, colors: Sequence[str] | None = None) -> Bar:
    """Return a bar of named values; codes are −1 where there is none."""
    own = [COLORS[k % len(COLORS)] for k in range(len(names))] if colors is None else list(colors)
    used = [code for code in range(len(names)) if (codes == code).any()]
    legend = [(shorten(names[code], _LONGEST), own[code]) for code in used]
    legend += [("unknown", _UNKNOWN)] if (codes < 0).any() else []
    return Bar(title, _rgb([*own, _UNKNOWN])[codes], tuple(legend))


def number_bar(title: str, values: Array, low: float, high: float, digits: int = 3) -> Bar:
    """Return a bar of numbers from light to dark; NaN where there is none."""
    cmap = load_matplotlib("pyplot").get_cmap("Purples")
    shares = np.clip((values - low) / ((high - low) or 1.0), 0, 1)
    known = np.isfinite(values)
    colors = np.where(known[:, None], cmap(0.08 + 0.92 * np.nan_to_num(shares))[:, :3], _rgb([_UNKNOWN]))
    to_hex = load_matplotlib("colors").to_hex
    legend = [(f"{value:.{digits}g}", to_hex(cmap(place))) for value, place in ((low, 0.08), (high, 1.0))]
    return Bar(title, colors, (*legend, *([] if known.all() else [("unknown", _UNKNOWN)])))


def heat_map(values: Array, names: Sequence[str], parts: Sequence[str], groups: Array, bars: Sequence[Bar]) -> Figure:
    """Return a figure of features (rows) by samples or groups (columns).

    Parameters
    ----------
    values : array of shape (n_rows, n_columns)
        In standard deviations from the mean of the row; NaN is grey.
    names, parts : sequences of str
        The name of every row, and the view it belongs to; rows of a view are together.
    groups : array of shape (n_columns,)
        The group of every column, ascending.
    bars : sequence of Bar
        Drawn above the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.report.heatmap import heat_map
    >>> figure = heat_map(np.eye(3), ["a", "b", "c"], ["blood", "blood", "scans"], np.array([0, 0, 1]), [])
    >>> [label.get_text() for label in figure.axes[1].get_yticklabels()]
    ['a', 'b', 'c']
    """
    n_rows = len(values)
    legends = [bar for bar in bars if bar.legend]
    heights = [0.17 * (len(bars) + 1), 0.175 * n_rows]
    with new_figure(_WIDTH, sum(heights) + 1.0 + 0.17 * len(legends)) as figure:
        above, below = figure.subplots(2, 1, gridspec_kw={"height_ratios": heights}, sharex=True)
        n_groups = int(groups.max()) + 1
        own = class_bar("group", [""] * n_groups, groups, [group_sign(g).color for g in range(n_groups)])
        _draw(
            above,
            np.stack([own.colors, *(bar.colors for bar in bars)]),
            [own.title, *(shorten(bar.title, _LONGEST) for bar in bars)],
        )
        scale = load_matplotlib("pyplot").get_cmap("RdBu_r")
        cells = scale(0.5 + 0.5 * np.clip(np.nan_to_num(values) / _LIMIT, -1, 1))[..., :3]
        cells[~np.isfinite(values)] = _rgb([_UNKNOWN])
        _draw(below, cells, [shorten(name, _LONGEST) for name in names])
        _mark_groups(above, below, groups)
        _mark_parts(below, parts)
        _add_scale(figure, below, scale)
        _add_legends(figure, above, legends)
    return figure


def _rgb(colors: Sequence[str]) -> Array:
    return np.asarray(load_matplotlib("colors").to_rgba_array(colors)[:, :3])


def _draw(axes: Any, cells: Array, names: Sequence[str]) -> None:
    axes.imshow(np.rint(255 * cells).astype(np.uint8), aspect="auto", interpolation="none")
    axes.set_yticks(range(len(names)), names, fontsize=7.5)
    axes.tick_params(length=0)
    axes.set_xticks([])
    axes.grid(False)
    axes.spines[:].set_visible(False)


def _mark_groups(above: Any, below: Any, groups: Array) -> None:
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    ends = np.append(starts[1:], len(groups))
    for start, end in zip(starts, ends, strict=True):
        for axes in (above, below) if start else ():
            axes.axvline(start - 0.5, color=PAPER, linewidth=1.6 if len(starts) <= 15 else 0.6)
        if (end - start) / len(groups) > 0.015:
            look = {"ha": "center", "va": "bottom", "fontsize": 8, "fontweight": "bold", "color": INK}
            above.text((start + end - 1) / 2, -0.65, f"{groups[start]}", **look)


def _mark_parts(axes: Any, parts: Sequence[str]) -> None:
    first = 0
    for part, rows in groupby(parts):
        n_rows = len(list(rows))
        if first:
            axes.axhline(first - 0.5, color=PAPER, linewidth=2.4)
        place = {"xytext": (6, 0), "textcoords": "offset points", "va": "center", "fontsize": 8}
        axes.annotate(shorten(part, 16), (1, first + (n_rows - 1) / 2), xycoords=axes.get_yaxis_transform(), **place)
        first += n_rows


def _add_scale(figure: Figure, axes: Any, scale: Any) -> None:
    norm = load_matplotlib("colors").Normalize(-_LIMIT, _LIMIT)
    mappable = load_matplotlib("cm").ScalarMappable(norm, scale)
    look: dict[str, Any] = {"location": "bottom", "shrink": 0.28, "aspect": 28, "pad": 0.02, "anchor": (0.0, 1.0)}
    bar = figure.colorbar(mappable, ax=axes, ticks=[-2, -1, 0, 1, 2], **look)
    bar.set_label("standard deviations from the mean of the feature; grey: missing", fontsize=8, color=SOFT)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7.5)


def _add_legends(figure: Figure, axes: Any, bars: Sequence[Bar]) -> None:
    """Write the meaning of the colours of every bar below the figure, one line each."""
    patch = load_matplotlib("patches").Patch
    handles, n_columns = [], max((len(bar.legend) for bar in bars), default=0)
    if not n_columns:
        return
    n_shown = min(n_columns, 8)
    # Columns are filled first: one column has the titles, and one entry of every bar is in each of the others
    for place in range(-1, n_shown):
        for bar in bars:
            name, color = (shorten(bar.title, 20), "none") if place < 0 else (*bar.legend, *[("", "none")] * 9)[place]
            handles.append(patch(facecolor=color, edgecolor=GRID if color != "none" else "none", label=name or " "))
    look = {"fontsize": 7.5, "handlelength": 1.0, "handleheight": 0.9, "columnspacing": 1.2, "borderpad": 0}
    figure.legend(handles=handles, loc="outside lower left", ncols=n_shown + 1, **look)


VIEW_PRESENT = (SERIES[0].color, GRID)  # present and missing
