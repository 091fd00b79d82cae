"""The heat map: features by samples in order of their groups, with bars of annotations above it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..utils.messages import shorten
from ..utils.types import Array
from .coloring import MISSING, Coloring, of_groups
from .drawing import DIVERGING, bare
from .style import GRID, PAPER, SOFT, letters_on, load_matplotlib, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BAR, _ROW = 0.17, 0.175  # heights in inches
LONGEST = 28  # characters of a name
_WIDTH = 12.8  # inches: as wide as the page
_EXTREME = 2.5  # standard deviations from which on colours are the same
_MOST_VIEWS = 8  # with a bar each
Bars: TypeAlias = Sequence[Coloring]


def view_bars(mask: Array, names: Sequence[str]) -> list[Coloring]:
    """Return a bar for every view that some samples lack; their names explain them, so that they have no legend."""
    lacking = np.flatnonzero(~mask.all(axis=0))[:_MOST_VIEWS].tolist()
    return [Coloring(names[k], mask[:, k].astype(int), ("", ""), palette=(MISSING, SOFT)) for k in lacking]


def draw_heat_map(
    axes: tuple[Any, Any], values: Array, names: Sequence[str], parts: Sequence[Any], groups: Array, bars: Bars
) -> Any:
    """Draw bars on the first of two axes, and features (rows) by samples or groups (columns) on the second.

    ``values`` are standard deviations from the mean of the row; NaN is grey. ``parts`` are the views of the rows, those
    of a view together; ``groups`` are those of the columns, ascending. Their bar is above the others. Returns the image
    of the values, for a scale of its colours.
    """
    above, below = axes
    bars = [of_groups(groups), *bars]
    scale = load_matplotlib("pyplot").get_cmap(DIVERGING).with_extremes(bad=MISSING)
    look = {"aspect": "auto", "interpolation": "none"}
    above.imshow(np.stack([bar.colors()[:, :3] for bar in bars]), **look)
    image = below.imshow(np.ma.masked_invalid(values), cmap=scale, vmin=-_EXTREME, vmax=_EXTREME, **look)
    for part, rows in ((above, [shorten(bar.name, LONGEST) for bar in bars]), (below, names)):
        part.set_yticks(range(len(rows)), rows)
        part.set_xticks([])
        bare(part)
    for row in range(1, len(bars)):
        above.axhline(row - 0.5, color=PAPER, linewidth=1.5)
    for row in range(1, len(parts)):
        if parts[row] != parts[row - 1]:
            below.axhline(row - 0.5, color=PAPER, linewidth=2.4)
    starts = np.flatnonzero(np.diff(groups, prepend=-1)).tolist()
    for start, end in pairwise([*starts, len(groups)]):
        for part in (above, below) if start else ():
            part.axvline(start - 0.5, color=PAPER, linewidth=1.6 if len(starts) <= 15 else 0.6)
        if end - start > 0.015 * len(groups):
            letters = letters_on(bars[0].colors()[start])
            place = {"ha": "center", "va": "center", "fontsize": 8, "weight": "bold"}
            above.text((start + end - 1) / 2, 0, f"{groups[start]}", color=letters, **place)
    return image


def swatches(entries: Iterable[tuple[str, Any]]) -> list[Any]:
    """Return entries of a legend, of which headings have no colour, ``"none"``."""
    patch = load_matplotlib("patches").Patch
    return [patch(facecolor=color, edgecolor=GRID if color != "none" else color, label=name) for name, color in entries]


def heat_map(values: Array, names: Sequence[str], parts: Sequence[str], groups: Array, bars: Bars) -> Figure:
    """Return a figure as wide as the page; see :func:`draw_heat_map`.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.report.heatmap import heat_map
    >>> figure = heat_map(np.eye(3), ["a", "b", "c"], ["blood", "blood", "scans"], np.array([0, 0, 1]), [])
    >>> [label.get_text() for label in figure.axes[1].get_yticklabels()]
    ['a', 'b', 'c']
    """
    legends = [(shorten(bar.name, 20), found) for bar in bars if (found := bar.legend("unknown"))]
    heights = [BAR * (len(bars) + 1), _ROW * len(values)]
    with new_figure(_WIDTH, sum(heights) + 1.0 + BAR * len(legends)) as figure:
        above, below = figure.subplots(2, 1, gridspec_kw={"height_ratios": heights}, sharex=True)
        image = draw_heat_map((above, below), values, [shorten(name, LONGEST) for name in names], parts, groups, bars)
        for axes in (above, below):
            axes.tick_params(axis="y", labelsize=7.5)
        _name_parts(below, parts)
        _add_scale(figure, below, image)
        _add_legends(figure, legends)
    return figure


def _name_parts(axes: Any, parts: Sequence[str]) -> None:
    first = 0
    for part, rows in groupby(parts):
        n_rows = len(list(rows))
        place = {"xytext": (6, 0), "textcoords": "offset points", "va": "center", "fontsize": 8}
        axes.annotate(shorten(part, 16), (1, first + (n_rows - 1) / 2), xycoords=axes.get_yaxis_transform(), **place)
        first += n_rows


def _add_scale(figure: Figure, axes: Any, image: Any) -> None:
    look: dict[str, Any] = {"location": "bottom", "shrink": 0.28, "aspect": 28, "pad": 0.02, "anchor": (0.0, 1.0)}
    bar = figure.colorbar(image, ax=axes, ticks=[-2, -1, 0, 1, 2], **look)
    bar.set_label("standard deviations from the mean of the feature; grey: missing", fontsize=8, color=SOFT)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7.5)


def _add_legends(figure: Figure, legends: Sequence[tuple[str, Sequence[tuple[str, Any]]]]) -> None:
    """Write the meaning of the colours of every bar below the figure, one line each."""
    if not legends:
        return
    n_shown = min(max(len(entries) for _, entries in legends), 9)
    # Columns are filled first: one column has the titles, and one entry of every bar is in each of the others
    lines = [[(title, "none"), *entries, *[(" ", "none")] * n_shown][: n_shown + 1] for title, entries in legends]
    cells = [cell for column in zip(*lines, strict=True) for cell in column]
    look = {"fontsize": 7.5, "handlelength": 1.0, "handleheight": 0.9, "columnspacing": 1.2, "borderpad": 0}
    figure.legend(handles=swatches(cells), loc="outside lower left", ncols=n_shown + 1, **look)
