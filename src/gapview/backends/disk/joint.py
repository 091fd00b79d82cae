"""The joint bridge for views on disk: missing rows imputed from donors, and neighbours in all views together.

Rows are read from scratch files, some samples at a time, and completed rows are written to another one. What is kept in
memory has a few numbers for each sample. The formulas are those of :mod:`gapview.graph.donors`,
:mod:`gapview.graph.imputation` and :mod:`gapview.graph.bridges`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...graph.bridges import expected_points, normalized
from ...graph.donors import (
    N_DONORS,
    ComparableRows,
    add_distances,
    best_donors,
    distinct,
    donor_means,
    fit_units,
    in_units,
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
from ...graph.knn import comparable_rows, symmetric_graph
from ...graph.neighbors import Search
from ...scaling import row_lengths, rows_in_blocks
from ...utils.types import Array
from ...views import Views
from .files import FileRows, Scratch, ScratchMatrix
from .neighbors import RescaledRows, nearest_expected, nearest_of_queries

_SHARE = 16  # parts of the memory that the rows of a block take, beside copies of them and the rows of candidates


def joint_graph_on_disk(
    scaled: Sequence[ScratchMatrix],
    views: Views,
    n_neighbors: int,
    view_weights: Sequence[float],
    search: Search,
    n_bytes: int,
    scratch: Scratch,
) -> tuple[float, Any]:
    """Impute missing rows; return the share of variance explained, and the joint graph over all samples.

    See :func:`gapview.graph.impute_views` and :func:`gapview.graph.joint_graph`.

    Parameters
    ----------
    scaled : sequence of ScratchMatrix
        The present rows of every view, scaled.
    views : Views
        The samples that the rows belong to.
    n_neighbors : int
        Neighbours of a sample.
    view_weights : sequence of float
        Weights of the squared distances in every view.
    search : Search
        Settings of the search for neighbours.
    n_bytes : int
        Memory for blocks of rows.
    scratch : Scratch
        Where completed rows are written.
    """
    tables = [_table(scaled[k], views, k, weight, n_bytes, scratch) for k, weight in enumerate(view_weights)]
    parts = [_impute_view(tables, k, search, n_bytes, scratch) for k in range(views.n_views)]
    explained = float(np.mean([part.explained for part in parts]))
    samples = np.flatnonzero(np.any([table.position >= 0 for table in tables], axis=0))
    width = sum(table.points.shape[1] for table in tables) + 1
    completed = scratch.matrix((len(samples), width), scaled[0].dtype)
    _write_completed(completed, tables, parts, view_weights, n_bytes)
    for rows in (*(table.points for table in tables), *(part.rows for part in parts)):
        if isinstance(rows, ScratchMatrix) and not any(rows is kept for kept in scaled):
            rows.close()
    del tables, parts
    shape, count = (views.n_samples, views.n_samples), min(n_neighbors, len(samples) - 1)
    found = np.empty((0, 0), dtype=np.int32)
    if count > 0:
        found = nearest_expected(completed, count, search, n_bytes, scratch)
    completed.close()
    origins = samples if count > 0 else samples[:0]
    graph = symmetric_graph(origins, samples[found].astype(np.int32), shape[0], completed.dtype)
    return explained, normalized(graph, overwrite=True)


def _blocks(n_rows: int, row_bytes: int, n_bytes: int) -> Iterator[slice]:
    step = max(1, n_bytes // max(1, row_bytes))
    return (slice(begin, min(begin + step, n_rows)) for begin in range(0, n_rows, step))


def _table(
    matrix: ScratchMatrix, views: Views, view: int, weight: float, n_bytes: int, scratch: Scratch
) -> ComparableRows:
    """Return the comparable rows of a view, which stay in a file."""
    blocks = list(matrix.blocks(n_bytes // _SHARE))
    rows = rows_in_blocks(views.names[view], matrix, lambda _: blocks)
    units = fit_units(rows, n_components(views.n_samples))
    points: FileRows = matrix
    if units.unit != 1 or units.directions is not None:
        width = matrix.shape[1] if units.directions is None else units.directions.shape[1]
        points = scratch.matrix((len(matrix), width), matrix.dtype)
        for block in blocks:
            points.write_rows(block.start, in_units(matrix[block], units))
    # A column of lengths has the same lengths as the rows
    lengths = np.concatenate([row_lengths(matrix[block]) for block in blocks])[:, None]
    kept = comparable_rows(np.minimum(lengths, np.finfo(matrix.dtype).max), is_unit=units.is_unit)
    samples, position = views.rows(view)[kept], np.full(views.n_samples, -1)
    position[samples] = np.arange(len(kept))
    return ComparableRows(samples, _chosen(points, kept), position, units.unit, weight)


def _chosen(points: FileRows, rows: Array) -> FileRows:
    return points if len(rows) == len(points) else RescaledRows(points, rows, 0)


def _impute_view(
    tables: Sequence[ComparableRows], view: int, search: Search, n_bytes: int, scratch: Scratch
) -> ImputedRows:
    """Impute one view of the samples that lack it; the rows are in a file."""
    table = tables[view]
    points: Any = table.points
    blocks = list(points.blocks(n_bytes // _SHARE))
    center = np.asarray(sum(sum_rows(points[block]) for block in blocks) / len(points), dtype=points.dtype)
    spread = sum(sum_squares(points[block], center) for block in blocks) / len(points)
    lacking, validated = np.flatnonzero(table.position < 0), table.samples[validation_places(len(points))]
    asked = np.concatenate([validated, lacking])
    donors = _nearest_donors(tables, view, asked, search, n_bytes, scratch)
    own = points[table.position[validated]]
    slope, explained = accuracy(*_means(table, donors[: len(validated)]), own, center)
    imputed = scratch.matrix((len(lacking), points.shape[1]), points.dtype)
    variance = np.empty(len(lacking))
    for block in _blocks(len(lacking), N_DONORS * points.row_bytes, n_bytes // _SHARE):
        means, has_donors = _means(table, donors[len(validated) :][block])
        part = impute_lacking(lacking[block], means, has_donors, center, slope, spread, explained)
        imputed.write_rows(block.start, part.rows)
        variance[block] = part.variance
    return ImputedRows(lacking, imputed, variance, explained)  # type: ignore[arg-type]


def _means(table: ComparableRows, donors: Array) -> tuple[Array, Array]:
    """Return the mean rows of donors, and whether there are any."""
    rows, places = _read(table, donors)
    return donor_means(rows, np.arange(len(rows)), places)


def _read(table: ComparableRows, samples: Array) -> tuple[Array, Array]:
    """Return the rows of some samples, and for each of these its place among them; −1 if it lacks the view."""
    position = np.where(samples >= 0, table.position[samples], -1)
    needed = np.unique(position)
    needed = needed[needed >= 0]
    return table.points[needed], np.where(position >= 0, np.searchsorted(needed, position), -1)


def _nearest_donors(
    tables: Sequence[ComparableRows], view: int, asked: Array, search: Search, n_bytes: int, scratch: Scratch
) -> Array:
    """Return the donors of some samples; see :func:`gapview.graph.donors.nearest_donors`."""
    others = [k for k in range(len(tables)) if k != view]
    donors = np.full((len(asked), N_DONORS), -1, dtype=np.int32)
    if not others:
        return donors
    count = n_candidates(len(others))
    found = [_candidates(tables[k], tables[view], asked, count, search, n_bytes, scratch) for k in others]
    widest = max(tables[k].points.shape[1] for k in others) * tables[view].points.dtype.itemsize
    for block in _blocks(len(asked), count * len(others) * (widest + 64), n_bytes // 4):
        candidates = distinct(np.concatenate([own[block] for own in found], axis=1).astype(np.int64), None)
        total, shared = np.zeros(candidates.shape), np.zeros(candidates.shape)
        for k in others:
            (rows, first), (received, second) = _read(tables[k], asked[block]), _read(tables[k], candidates)
            add_distances(rows, first, received, second, tables[k].weight, total)
            shared += tables[k].weight * ((first[:, None] >= 0) & (second >= 0))
        donors[block] = best_donors(candidates, total, shared)
    return donors


def _candidates(
    table: ComparableRows,
    wanted: ComparableRows,
    asked: Array,
    count: int,
    search: Search,
    n_bytes: int,
    scratch: Scratch,
) -> Array:
    """Return for some samples the nearest in one view of those that also have the wanted view."""
    candidates = np.full((len(asked), count), -1, dtype=np.int32)
    donors = table.samples[wanted.position[table.samples] >= 0]
    having = np.flatnonzero(table.position[asked] >= 0)
    if not len(donors) or not len(having):
        return candidates
    rows, queries = table.position[donors], table.position[asked[having]]
    found = nearest_of_queries(table.points, rows, queries, count, search, n_bytes, scratch)
    near = np.where(found >= 0, donors[found], -1)
    if near.shape[1] == count:  # a sample that has the view is among its own nearest; it was left out
        near[wanted.position[asked[having]] >= 0, -1] = -1
    candidates[having, : near.shape[1]] = near
    return candidates


def _write_completed(
    completed: ScratchMatrix,
    tables: Sequence[ComparableRows],
    parts: Sequence[ImputedRows],
    view_weights: Sequence[float],
    n_bytes: int,
) -> None:
    """Write the completed views of all samples that have a comparable row, some samples at a time."""
    written = 0
    for block in _blocks(len(tables[0].position), 3 * completed.row_bytes, n_bytes // 4):
        here = [_of_block(table, block) for table in tables]
        whole = complete_views(here, [_imputed_of_block(part, block) for part in parts])
        rows = expected_points(whole, np.flatnonzero(whole.observed), view_weights)
        completed.write_rows(written, rows)
        written += len(rows)


def _of_block(table: ComparableRows, block: slice) -> ComparableRows:
    """Return the rows of consecutive samples, which are numbered from 0."""
    rows = slice(*np.searchsorted(table.samples, [block.start, block.stop]))
    position = table.position[block]
    moved = np.where(position >= 0, position - rows.start, -1)
    return replace(table, samples=table.samples[rows] - block.start, points=table.points[rows], position=moved)


def _imputed_of_block(part: ImputedRows, block: slice) -> ImputedRows:
    rows = slice(*np.searchsorted(part.samples, [block.start, block.stop]))
    return replace(part, samples=part.samples[rows] - block.start, rows=part.rows[rows], variance=part.variance[rows])
