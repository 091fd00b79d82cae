"""Values of the features with the largest effects, for the heat map and the colours of the map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from ...kinds.preparation import feature_views
from ...trust import ViewEffects
from ...utils.types import Array
from .samples import SMALL, draw_samples

MOST_FEATURES = 36
_N_ROWS = 2000  # of a view, read at a time


@dataclass(frozen=True)
class TopFeatures:
    """The features with the largest effects in any group, by view, and their values in the samples of the map.

    Attributes
    ----------
    names : tuple of str
        Names of the features.
    views : tuple of int
        Positions of their views, ascending.
    values : array of shape (n_features, n_shown)
        Logarithms where the kind of the view takes them; NaN for samples that lack the view.
    """

    names: tuple[str, ...]
    views: tuple[int, ...]
    values: Array = field(repr=False)

    @property
    def standardised(self) -> Array:
        """Values in standard deviations from the mean of the feature over the samples of the map."""
        known = np.isfinite(self.values)
        count = np.maximum(known.sum(axis=1, keepdims=True), 1)
        centred = self.values - np.where(known, self.values, 0).sum(axis=1, keepdims=True) / count
        spread = np.sqrt(np.where(known, np.square(centred), 0).sum(axis=1, keepdims=True) / count)
        return np.asarray(centred / np.where(spread > 0, spread, 1.0))


def in_order(labels: Array, confidence: Array, most: int) -> Array:
    """Return samples by group, then by decreasing confidence; of more than ``most`` a part of every group."""
    rows = draw_samples(labels, most)
    return rows[np.lexsort((-confidence[rows], labels[rows]))]


def top_values(
    model: Any, samples: Array, effects: Sequence[ViewEffects], most: int = MOST_FEATURES, n_top: int | None = None
) -> TopFeatures:
    """Return the features with the largest effects and their values.

    From every group and view come ``n_top`` features; by default as many as ``most`` allow, of effects from 0.2.
    """
    n_groups = len(effects[0].sizes)
    least = SMALL if n_top is None else np.finfo(float).tiny
    n_top = n_top or max(1, most // max(n_groups * len(effects), 1))
    views = feature_views(model.views_, getattr(model, "kinds_", ()))
    by_view = {views.names.index(one.view): one for one in effects}
    chosen = [pair for k, one in by_view.items() for pair in _strongest(k, one, n_top, least)]
    if len(chosen) > most:
        kept = sorted(range(len(chosen)), key=lambda place: -chosen[place][2])[:most]
        chosen = [chosen[place] for place in sorted(kept)]
    values = np.full((len(chosen), len(samples)), np.nan)
    for k in dict.fromkeys(one[0] for one in chosen):
        own = [place for place, one in enumerate(chosen) if one[0] == k]
        rows = np.full(views.n_samples, -1)
        rows[views.rows(k)] = np.arange(views.n_present[k])
        has = np.flatnonzero(rows[samples] >= 0)
        part = _values(views.matrices[k], rows[samples[has]], [chosen[place][1] for place in own])
        values[np.array(own)[:, None], has] = part.T
    names = tuple(feature_label(by_view[k].features[j]) for k, j, _, _ in chosen)
    return TopFeatures(names, tuple(one[0] for one in chosen), values)


def _values(matrix: Any, rows: Array, columns: list[int]) -> Array:
    """Return some rows and columns of a matrix, which may be on disk or sparse: few rows at a time are in memory."""
    parts = [matrix[rows[first : first + _N_ROWS]][:, columns] for first in range(0, len(rows), _N_ROWS)]
    dense = [part.toarray() if sparse.issparse(part) else np.asarray(part) for part in parts]
    return np.concatenate(dense) if dense else np.empty((0, len(columns)))


def _strongest(view: int, effects: ViewEffects, n_top: int, least: float) -> list[tuple[int, int, float, int]]:
    """Return view, position, size and group of the strongest features of every group, in order of the groups."""
    strength = np.nan_to_num(np.abs(effects.sizes), nan=0.0, posinf=np.inf)
    found = {}
    for sizes in strength:
        for j in np.argsort(-sizes, kind="stable")[:n_top].tolist():
            if sizes[j] >= least:
                best = int(np.nan_to_num(effects.sizes[:, j], nan=-np.inf).argmax())
                found[j] = (view, j, float(strength[:, j].max()), best)
    return sorted(found.values(), key=lambda one: (one[3], -one[2]))


def feature_label(feature: Any) -> str:
    """Return the name of a feature, or its position if it has none."""
    return feature if isinstance(feature, str) else f"feature {feature}"
