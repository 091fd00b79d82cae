"""The joint bridge in blocks: missing rows imputed from donors, and neighbours in all views together.

A block completes its own samples. It receives the rows of their donors, and of the candidates for donors some columns
at a time; neighbours on the completed views are searched as those of single views are. The formulas are those of
:mod:`gapview.graph.donors`, :mod:`gapview.graph.imputation` and :mod:`gapview.graph.bridges`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ...graph.bridges import expected_points
from ...graph.donors import (
    N_DONORS,
    ComparableRows,
    RowUnits,
    add_distances,
    best_donors,
    comparable_view,
    distinct,
    donor_means,
    fit_units,
    n_candidates,
    sum_rows,
    sum_squares,
)
from ...graph.imputation import (
    ImputedRows,
    accuracy,
    complete_views,
    impute_lacking,
    n_components,
    validation_places,
)
from ...graph.neighbors import Search, without_last
from ...utils.types import Array
from ...views import Views
from .bridges import BlockedGraph, joint_blocks
from .graph import link_blocks
from .queries import Chosen, find_nearest
from .tasks import Exchange, Tasks, register_size, split_by_block, stack_rows
from .views import BlockedViews, rows_of

_BYTES_RECEIVED = 2**24  # of rows of candidates that a block holds at a time; more if the block itself is larger


@register_size
@dataclass(frozen=True)
class BlockTables:
    """The comparable rows of the views of one block; samples are counted within the block."""

    views: list[ComparableRows]
    begin: int  # first sample of the block

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.views[0].position)


@register_size
@dataclass(frozen=True)
class Completed:
    """The completed views of the samples of a block that have a comparable row in any view, weighted, side by side."""

    rows: Array
    samples: Array


def joint_graph_blocks(
    tasks: Tasks, scaled: BlockedViews, n_neighbors: int, view_weights: Sequence[float], search: Search
) -> tuple[float, BlockedGraph]:
    """Impute missing rows; return the share of variance explained, and the joint graph over all samples.

    See :func:`gapview.graph.impute_views` and :func:`gapview.graph.joint_graph`.
    """
    explained, completed = _completed_views(tasks, scaled, view_weights, search)
    count = min(n_neighbors, sum(tasks.collect("describe", _n_samples, completed)) - 1)
    found = find_nearest(tasks, completed, scaled.starts, _as_points, _as_queries, count, search)
    tasks.wait(found)
    del completed
    linked = link_blocks(tasks, found, scaled.starts, scaled.dtype)
    del found
    return explained, joint_blocks(tasks, linked, scaled.starts)


def _completed_views(
    tasks: Tasks, scaled: BlockedViews, view_weights: Sequence[float], search: Search
) -> tuple[float, list[Any]]:
    n_most = n_components(scaled.n_samples)
    rules = [fit_units(rows_of(tasks, scaled, k), n_most) for k in range(scaled.n_views)]
    shared, weights = tasks.broadcast("units", rules), tuple(map(float, view_weights))
    begins = scaled.starts[:-1].tolist()
    tables = tasks.map("comparable-rows", _tables, scaled.blocks, begins, [shared] * len(begins), view_weights=weights)
    imputing = _Imputing(tasks, scaled, tables, search)
    parts, explained = zip(*(imputing.view(k) for k in range(scaled.n_views)), strict=True)
    of_blocks = [list(own) for own in zip(*parts, strict=True)]
    completed = tasks.map("complete-views", _completed, tables, of_blocks, view_weights=weights)
    del tables, imputing, parts, of_blocks  # so that each is freed when its block is complete
    tasks.wait(completed)
    return float(np.mean(explained)), completed


class _Imputing:
    """Imputes the missing rows of views in blocks."""

    def __init__(self, tasks: Tasks, scaled: BlockedViews, tables: list[Any], search: Search) -> None:
        self._tasks, self._scaled, self._tables, self._search = tasks, scaled, tables, search
        self._itemsize = np.dtype(scaled.dtype).itemsize

    def view(self, view: int) -> tuple[list[Any], float]:
        """Return for every block a handle of the imputed rows of a view, and the share of its variance explained."""
        tasks, tables = self._tasks, self._tables
        counts, sums = zip(*tasks.collect("moments", _sum_of_view, tables, view=view), strict=True)
        edges = np.cumsum([0, *counts])
        center = (sum(sums) / edges[-1]).astype(self._scaled.dtype)
        spread = sum(tasks.collect("moments", _squares_of_view, tables, view=view, center=center)) / float(edges[-1])
        chosen = split_by_block(validation_places(int(edges[-1])), edges)
        asked = tasks.map("donors", _asked, tables, chosen, view=view)
        means = self._means(view, asked, self._donors(view, asked))
        validated = tasks.collect("validate", _validated, tables, asked, means, view=view)
        found, has_donors, actual = (np.concatenate(own) for own in zip(*validated, strict=True))
        slope, explained = accuracy(found, has_donors, actual, center)
        shrinking = {"center": center, "slope": slope, "spread": spread, "explained": explained}
        imputed = tasks.map("impute", _imputed, tables, asked, means, view=view, **shrinking)
        del means
        tasks.wait(imputed)
        return imputed, explained

    def _donors(self, view: int, asked: list[Any]) -> list[Any]:
        """Return for every block a handle of the donors of the samples asked for."""
        tasks, tables = self._tasks, self._tables
        others = [k for k in range(self._scaled.n_views) if k != view]
        if not others:
            return tasks.map("donors", _no_donors, asked)
        blocks = [list(pair) for pair in zip(tables, asked, strict=True)]
        count, found = n_candidates(len(others)), []
        for other in others:
            select = partial(_possible_donors, view=view, other=other), partial(_asked_rows, other=other)
            found.append(find_nearest(tasks, blocks, self._scaled.starts, *select, count, self._search))
        common = {"view": view, "others": others, "count": count}
        candidates = tasks.map(
            "donors", _candidates, tables, asked, [list(own) for own in zip(*found, strict=True)], **common
        )
        del found
        needed = tasks.map("donors", _needed, candidates)
        exchange = Exchange(tasks, needed, self._scaled.starts)
        most = max(tasks.collect("describe", len, needed))
        sums = tasks.map("donor-distances", _no_sums, candidates)
        for other in others:
            for columns in self._column_parts(other, most):

                def add(wave: list[int], received: list[Any], k: int = other, part: slice = columns) -> list[Any]:
                    own = ([handles[b] for b in wave] for handles in (tables, asked, candidates, needed, sums))  # noqa: B023
                    return tasks.map("donor-distances", _add_block, *own, received, view=k, columns=part)

                row_bytes = (columns.stop - columns.start + 1) * self._itemsize
                common = {"view": other, "columns": columns}
                sums = exchange.in_waves("send-candidates", tables, add, _select_rows, row_bytes, **common)
        return tasks.map("donors", _best, candidates, sums)

    def _column_parts(self, view: int, n_rows: int) -> list[slice]:
        """Return the components of a view in parts of which a block can receive so many rows."""
        width, row_bytes = self._width(view), sum(self._scaled.n_features) * self._itemsize
        n_bytes = max(_BYTES_RECEIVED, max(self._scaled.sizes) * row_bytes)
        n_parts = math.ceil(n_rows * width * self._itemsize / n_bytes) or 1
        edges = np.linspace(0, width, min(n_parts, width) + 1).astype(int).tolist()
        return [slice(*pair) for pair in pairwise(edges)]

    def _means(self, view: int, asked: list[Any], donors: list[Any]) -> list[Any]:
        """Return for every block a handle of (mean rows of the donors, whether there are any)."""
        tasks, needed = self._tasks, self._tasks.map("donors", _needed, donors)

        def average(wave: list[int], received: list[Any]) -> list[Any]:
            own = ([handles[block] for block in wave] for handles in (donors, needed))
            return tasks.map("donor-means", _mean_rows, *own, received)

        exchange = Exchange(tasks, needed, self._scaled.starts)
        row_bytes = (self._width(view) + 1) * self._itemsize
        return exchange.in_waves("send-donors", self._tables, average, _select_rows, row_bytes, view=view)

    def _width(self, view: int) -> int:
        return min(self._scaled.n_features[view], n_components(self._scaled.n_samples))


# -- on the workers --------------------------------------------------------------------------------------------


def _tables(views: Views, begin: int, rules: Sequence[RowUnits], *, view_weights: Sequence[float]) -> BlockTables:
    parts = zip(views.matrices, range(views.n_views), rules, view_weights, strict=True)
    return BlockTables([comparable_view(matrix, views, k, rule, weight) for matrix, k, rule, weight in parts], begin)


def _sum_of_view(tables: BlockTables, *, view: int) -> tuple[int, Array]:
    points = tables.views[view].points
    return len(points), sum_rows(points)


def _squares_of_view(tables: BlockTables, *, view: int, center: Array) -> float:
    return sum_squares(tables.views[view].points, center)


def _asked(tables: BlockTables, chosen: Array, *, view: int) -> Array:
    """Return the samples of a block that need donors: those that lack the view, and some that have it."""
    table = tables.views[view]
    return np.sort(np.concatenate([np.flatnonzero(table.position < 0), table.samples[chosen]]))


def _possible_donors(block: Sequence[Any], *, view: int, other: int) -> Chosen:
    """Select the rows of another view of the samples that have the view."""
    tables: BlockTables = block[0]
    table, wanted = tables.views[other], tables.views[view]
    samples = table.samples[wanted.position[table.samples] >= 0]
    return Chosen(table.points, table.position[samples], samples + tables.begin)


def _asked_rows(block: Sequence[Any], *, other: int) -> Chosen:
    """Select the rows of another view of the samples that need donors."""
    tables, asked = block
    table = tables.views[other]
    samples = asked[table.position[asked] >= 0]
    return Chosen(table.points, table.position[samples], samples + tables.begin)


def _no_donors(asked: Array) -> Array:
    return np.full((len(asked), N_DONORS), -1)


def _candidates(
    tables: BlockTables,
    asked: Array,
    found: Sequence[tuple[Array, ...]],
    *,
    view: int,
    others: Sequence[int],
    count: int,
) -> Array:
    """Return the candidates of the samples asked for: those found in the other views, in ascending order."""
    has_view = tables.views[view].position[asked] >= 0
    lists = []
    for samples, *_, near in found:
        own = np.full((len(asked), count), -1)
        own[np.searchsorted(asked, samples - tables.begin), : near.shape[1]] = near
        own[has_view, -1] = -1  # a sample that has the view is among its own nearest; it was left out
        lists.append(own)
    return distinct(np.concatenate(lists, axis=1), None)


def _needed(samples: Array) -> Array:
    found = np.unique(samples)
    return found[found >= 0]


def _no_sums(candidates: Array) -> tuple[Array, Array]:
    return np.zeros(candidates.shape), np.zeros(candidates.shape)


def _select_rows(tables: BlockTables, samples: Array, *, view: int, columns: slice = slice(None)) -> Array:
    """Return rows of a view, 0 where a sample lacks it, with a last column of presence."""
    table = tables.views[view]
    place = table.position[samples]
    has = place >= 0
    width = len(range(*columns.indices(table.points.shape[1])))
    rows = np.zeros((len(samples), width + 1), dtype=table.points.dtype)
    rows[has, :-1] = table.points[place[has], columns]
    rows[:, -1] = has
    return rows


def _add_block(
    tables: BlockTables,
    asked: Array,
    candidates: Array,
    needed: Array,
    sums: tuple[Array, Array],
    pieces: Any,
    *,
    view: int,
    columns: slice,
) -> tuple[Array, Array]:
    """Add the squared distances in some columns of one view, and with the first of them its weight."""
    table, received, (total, shared) = tables.views[view], stack_rows(pieces), sums
    first = table.position[asked]
    second = np.where(candidates >= 0, np.searchsorted(needed, candidates), -1)
    second[second >= 0] = np.where(received[second[second >= 0], -1] > 0, second[second >= 0], -1)
    total = total.copy()
    add_distances(table.points[:, columns], first, received[:, :-1], second, table.weight, total)
    if columns.start == 0:
        shared = shared + table.weight * ((first[:, None] >= 0) & (second >= 0))
    return total, shared


def _best(candidates: Array, sums: tuple[Array, Array]) -> Array:
    return best_donors(candidates, *sums)


def _mean_rows(donors: Array, needed: Array, pieces: Any) -> tuple[Array, Array]:
    places = np.where(donors >= 0, np.searchsorted(needed, donors), -1)
    return donor_means(stack_rows(pieces)[:, :-1], np.arange(len(needed)), places)


def _validated(
    tables: BlockTables, asked: Array, means: tuple[Array, Array], *, view: int
) -> tuple[Array, Array, Array]:
    """Return the means of the donors of samples that have the view, whether there are donors, and the actual rows."""
    table = tables.views[view]
    place = table.position[asked]
    known = place >= 0
    return means[0][known], means[1][known], table.points[place[known]]


def _imputed(
    tables: BlockTables, asked: Array, means: tuple[Array, Array], *, view: int, **shrinking: Any
) -> ImputedRows:
    lacking = tables.views[view].position[asked] < 0
    return impute_lacking(asked[lacking], means[0][lacking], means[1][lacking], **shrinking)


def _completed(tables: BlockTables, parts: Sequence[ImputedRows], *, view_weights: Sequence[float]) -> Completed:
    completed = complete_views(list(tables.views), parts)
    samples = np.flatnonzero(completed.observed)
    return Completed(expected_points(completed, samples, view_weights), samples + tables.begin)


def _n_samples(completed: Completed) -> int:
    return len(completed.samples)


def _as_points(block: Completed) -> Chosen:
    return Chosen(block.rows, np.arange(len(block.samples)), block.samples)


def _as_queries(block: Completed) -> Chosen:
    return Chosen(without_last(block.rows), np.arange(len(block.samples)), block.samples)
