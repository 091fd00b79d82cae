"""What a missing view is to be expected to look like, from the samples nearest in the views that are there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import or_

import numpy as np
from array_api_compat import array_namespace

from ..compute import drained
from ..utils.types import Array, Matrix
from ..views import Views
from .donors import (
    KnownRows,
    judged_samples,
    known_views,
    mean_row,
    mean_square,
    nearest_sources,
    neighbor_means,
    slope_of,
)
from .neighbors import Search

__all__ = ["Completion", "complete_views"]

# A wider view is replaced by its leading directions, which keep the distances and stay dense: as many as fit into a
# bound for all samples
_MOST_DIRECTIONS, _FEWEST_DIRECTIONS = 256, 48
_MOST_VALUES = 2**26


@dataclass(frozen=True)
class Completion:
    """Every view of every sample: what is known, and what is to be expected where it is missing.

    Views whose rows do not have unit length are in units of their own standard deviation, so that distances in
    different views can be added up.
    """

    together: Array  # a row for every sample: its views side by side, in at most 256 directions each; a spare column
    columns: tuple[slice, ...]  # where every view stands in it
    spread: Array  # samples × views: expected squared distance of the truth from the row, 0 where it is known
    explained: Array  # per view, the share of its variance that the other views explain; 0 if no sample can tell
    known: Array  # for every sample whether it has a view that says anything

    @property
    def rows(self) -> list[Array]:
        """Per view, a row for every sample."""
        return [self.together[:, own] for own in self.columns]


def complete_views(
    scaled: Iterable[Matrix],
    views: Views,
    view_weights: Sequence[float] | None = None,
    search: Search | None = None,
) -> Completion:
    """Expect missing rows from the nearest samples that have the view, as far as such expectations come true.

    A missing row is expected at the mean of the rows of the nearest samples, by the views shared with them, drawn to
    the mean of the view: by how much follows from completing rows that are there. Where the views say nothing of each
    other, the expectation is the plain mean, and all variance of the view is left open.

    Parameters
    ----------
    scaled : iterable of arrays or csr_arrays
        The present rows of every view, scaled. Rows of zeros among unit rows count as missing. Those of an iterator are
        let go one by one.
    views : Views
        Says which samples the rows belong to.
    view_weights : sequence of float, optional
        How much the squared distances in every view count; all the same by default.
    search : Search, optional
        How to look for neighbours.

    Examples
    --------
    >>> from gapview.graph import complete_views
    >>> from gapview.datasets import make_views
    >>> views = make_views(n_samples=100, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> completion = complete_views(views.matrices, views)
    >>> [rows.shape for rows in completion.rows], (completion.explained > 0.2).all()
    ([(100, 20), (100, 30)], np.True_)
    """
    n_most = min(max(_MOST_VALUES // views.n_samples, _FEWEST_DIRECTIONS), _MOST_DIRECTIONS)
    tables = known_views(scaled, views, view_weights, n_most=n_most)
    known = reduce(or_, [table.position >= 0 for table in tables])
    expected = [_expect(tables, k, search) for k in range(views.n_views)]
    xp = array_namespace(known)
    ends = np.cumsum([table.points.shape[1] for table in tables]).tolist()
    columns = tuple(slice(begin, end) for begin, end in pairwise([0, *ends]))
    first = tables[0].points
    together = xp.empty((views.n_samples, ends[-1] + 1), dtype=first.dtype, device=first.device)
    del first
    spread = xp.zeros((views.n_samples, views.n_views), dtype=xp.float64, device=together.device)
    for k, (table, missing) in enumerate(zip(drained(tables), expected, strict=True)):
        together[table.samples, columns[k]] = table.points
        together[missing.samples, columns[k]] = missing.rows
        spread[missing.samples, k] = missing.spread
    return Completion(together, columns, spread, np.asarray([missing.explained for missing in expected]), known)


@dataclass(frozen=True)
class _Expected:
    """What is to be expected of one view of the samples that lack it."""

    samples: Array  # that lack it
    rows: Array
    spread: Array  # the variance left open for each
    explained: float  # the share of the variance that is not left open where anything can be expected


def _expect(tables: Sequence[KnownRows], view: int, search: Search | None) -> _Expected:
    """Expect one view of the samples that lack it."""
    table = tables[view]
    points = table.points
    xp = array_namespace(points)
    center = mean_row(points)
    lacking, judged = xp.nonzero(table.position < 0)[0], judged_samples(table)
    judged_means, judgeable = _means_for(tables, view, judged, search)
    means, possible = _means_for(tables, view, lacking, search)

    actual = points[table.position[judged[judgeable]]] - center
    slope, explained = _success(judged_means[judgeable] - center, actual)
    means -= center
    means *= slope * xp.astype(possible, points.dtype)[:, None]
    means += center
    spread = mean_square(points, center) * (1 - explained * xp.astype(possible, xp.float64))
    return _Expected(lacking, means, spread, explained)


def _means_for(tables: Sequence[KnownRows], view: int, samples: Array, search: Search | None) -> tuple[Array, Array]:
    sources = nearest_sources(tables, view, tables, samples, search)
    return neighbor_means(tables[view].points, tables[view].position, sources)


def _success(expected: Array, actual: Array) -> tuple[float, float]:
    """Say how far expectations come true: the slope to draw them to the mean by, and the variance then explained."""
    slope = slope_of(expected, actual)
    total = mean_square(actual)
    if not slope or not total:
        return 0.0, 0.0
    return slope, max(0.0, 1 - mean_square(actual - slope * expected) / total)
