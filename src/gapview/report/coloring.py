"""Colours of samples in figures: the groups, the levels or the numbers of a property, and missing values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..utils.types import Array
from .drawing import group_sign
from .style import MORE_COLORS, SERIES, load_matplotlib

VIEW_COLORS = tuple(SERIES[place].color for place in (5, 3, 2, 4, 6, 1, 0))  # of views, in order
LEVEL_COLORS = (*VIEW_COLORS[:-1], *(color for color, _ in MORE_COLORS), VIEW_COLORS[-1])
MISSING = "#b9c1c9"  # colour of samples without a value
# Of covariates, unlike the colours of the groups and of the features
_COVARIATE_COLORS = (
    *("#e6c229", "#7b5ea7", "#8fd3c1", "#d1495b", "#5b6c8f", "#f2a679"),
    *("#3d3d3d", "#b5d46b", "#c98bb9", "#1b9e9e", "#a0522d", "#9aa5b1"),
)


@dataclass(frozen=True)
class Coloring:
    """A value for every sample: a number, NaN if missing; or the number of a level, −1 if missing."""

    name: str
    values: Array
    levels: tuple[str, ...] = ()  # empty for numbers
    limits: tuple[float, float] | None = None  # of the colours of numbers; by default the 2 % and 98 % quantiles
    palette: tuple[str, ...] = LEVEL_COLORS  # of the levels
    scale: str = "viridis"  # of the numbers

    @property
    def is_number(self) -> bool:
        """Whether the values are numbers."""
        return not self.levels

    @property
    def is_known(self) -> Array:
        """Which samples have a value."""
        return np.isfinite(self.values) if self.is_number else self.values >= 0

    def color_of(self, level: int) -> str:
        """Return the colour of a level."""
        return self.palette[level % len(self.palette)]

    def colors(self) -> Array:
        """Return the colour of every sample, as red, green, blue and opacity."""
        if self.is_number:
            return np.asarray(self.colormap().to_rgba(np.ma.masked_invalid(self.values)))
        palette = [*(self.color_of(level) for level in range(len(self.levels))), MISSING]  # −1 is the last
        return np.asarray(load_matplotlib("colors").to_rgba_array(palette)[self.values.astype(np.intp)])

    def colormap(self) -> Any:
        """Return the colours of numbers, for a legend."""
        known = self.values[self.is_known]
        low, high = self.limits or (np.quantile(known, [0.02, 0.98]) if len(known) else (0.0, 1.0))
        norm = load_matplotlib("colors").Normalize(low, high if high > low else low + 1, clip=True)
        scale = load_matplotlib("pyplot").get_cmap(self.scale).with_extremes(bad=MISSING)
        return load_matplotlib("cm").ScalarMappable(norm, scale)

    def as_bar(self) -> Coloring:
        """Return it in the colours of covariates above a heat map."""
        return replace(self, palette=_COVARIATE_COLORS, scale="Purples")

    def at(self, samples: Array) -> Coloring:
        """Return it for some of the samples, in their order."""
        return replace(self, values=self.values[samples])

    def legend(self, missing: str) -> list[tuple[str, Any]]:
        """Return names and colours: of the levels that have a name, or of the ends of the scale, and of no value."""
        if self.is_number:
            scale = self.colormap()
            found = [(f"{value:.3g}", scale.to_rgba(value)) for value in (scale.norm.vmin, scale.norm.vmax)]
        else:
            found = [(name, self.color_of(level)) for level, name in enumerate(self.levels) if name]
        return found if self.is_known.all() else [*found, (missing, MISSING)]


def of_groups(labels: Array) -> Coloring:
    """Return the colours of groups."""
    groups = range(int(labels.max()) + 1)
    names, palette = (tuple(each) for each in zip(*((f"group {g}", group_sign(g).color) for g in groups), strict=True))
    return Coloring("group", labels, names, palette=palette)
