"""What a missing view is to be expected to look like, from the samples nearest in the views that are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from .graph import comparable_rows
from .neighbors import nearest
from .views import Array, Matrix, Views

__all__ = ["Completion", "complete_views"]

N_SOURCES = 5  # samples that a missing row is averaged from
_N_DIRECTIONS = 256  # a wider view is replaced by its leading directions, which keep the distances and stay dense
_N_JUDGED = 2000  # rows that are there, and are completed all the same to see how well it goes
_N_PAIRS = 20_000  # pairs of rows whose distance is taken at a time


@dataclass(frozen=True)
class Completion:
    """Every view of every sample: what is known, and what is to be expected where it is missing."""

    rows: list[Array]  # per view, a row for every sample, in at most 256 directions
    spread: Array  # samples × views: expected squared distance of the truth from the row, 0 where it is known
    explained: Array  # per view, the share of its variance that the other views explain; 0 if no sample can tell
    known: Array  # for every sample whether it has a view that says anything


def complete_views(scaled: Sequence[Matrix], views: Views) -> Completion:
    """Expect missing rows from the nearest samples that have the view, as far as such expectations come true.

    A missing row is expected at the mean of the rows of the nearest samples, by the views shared with them, drawn to
    the mean of the view: by how much follows from completing rows that are there. Where the views say nothing of each
    other, the expectation is the plain mean, and all variance of the view is left open.

    Parameters
    ----------
    scaled : sequence of arrays or csr_arrays
        The present rows of every view, scaled. Rows of zeros among unit rows count as missing.
    views : Views
        Says which samples the rows belong to.

    Examples
    --------
    >>> from gapview.completion import complete_views
    >>> from gapview.datasets import make_views
    >>> views = make_views(n_samples=100, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> completion = complete_views(views.matrices, views)
    >>> [rows.shape for rows in completion.rows], (completion.explained > 0.2).all()
    ([(100, 20), (100, 30)], np.True_)
    """
    tables = [_Table(views.rows(k), matrix, views.n_samples) for k, matrix in enumerate(scaled)]
    spread = np.zeros((views.n_samples, views.n_views))
    explained = np.zeros(views.n_views)
    rows = []
    for k, table in enumerate(tables):
        completed, spread[:, k], explained[k] = _complete(tables, k)
        rows.append(completed)
    known = np.logical_or.reduce([table.position >= 0 for table in tables])
    return Completion(rows, spread, explained, known)


class _Table:
    """The rows of one view that say something, and where each sample's row stands (−1 if nowhere)."""

    def __init__(self, rows: Array, matrix: Matrix, n_samples: int) -> None:
        kept = comparable_rows(matrix)
        self.samples = rows[kept]
        self.points = _leading_directions(matrix[kept])
        self.position = np.full(n_samples, -1)
        self.position[self.samples] = np.arange(len(kept))


def _leading_directions(matrix: Matrix) -> Array:
    if matrix.shape[1] <= _N_DIRECTIONS and not sparse.issparse(matrix):
        return np.asarray(matrix)
    count = min(_N_DIRECTIONS, *matrix.shape)
    if count == matrix.shape[1]:
        return np.asarray(matrix.toarray())
    left, values, _ = randomized_svd(matrix, count, n_iter=4, random_state=0)
    return np.asarray(left * values, dtype=matrix.dtype)


def _complete(tables: Sequence[_Table], view: int) -> tuple[Array, Array, float]:
    """Complete one view: its rows for all samples, the variance left open for each, the share of it explained."""
    table = tables[view]
    n_samples, points = len(table.position), table.points
    center = points.mean(axis=0, dtype=np.float64).astype(points.dtype)
    total = float(np.square(points - center).sum(axis=1).mean(dtype=np.float64))
    lacking = np.flatnonzero(table.position < 0)
    judged = table.samples[np.unique(np.linspace(0, len(table.samples) - 1, _N_JUDGED).astype(np.intp))]
    judged_means, judgeable = _neighbor_means(tables, view, judged)
    means, possible = _neighbor_means(tables, view, lacking)

    expected = (judged_means - center)[judgeable]
    actual = (points[table.position[judged]] - center)[judgeable]
    slope, left_open = 0.0, total
    if expected.any():
        slope = float(np.clip(np.vdot(expected, actual) / np.vdot(expected, expected), 0.0, 1.0))
        error = float(np.square(actual - points.dtype.type(slope) * expected).sum(axis=1).mean(dtype=np.float64))
        left_open = min(total, error)
    rows = np.empty((n_samples, points.shape[1]), dtype=points.dtype)
    rows[table.samples] = points
    rows[lacking] = center + points.dtype.type(slope) * np.where(possible[:, None], means - center, 0.0)
    spread = np.zeros(n_samples)
    spread[lacking] = np.where(possible, left_open, total)
    return rows, spread, 1 - left_open / total if total > 0 else 0.0


def _neighbor_means(tables: Sequence[_Table], view: int, queries: Array) -> tuple[Array, Array]:
    """Average the rows of the samples nearest to every query among those that have the view and share another."""
    points, position = tables[view].points, tables[view].position
    sources = _nearest_sources(tables, view, queries)
    found = sources >= 0
    counts = found.sum(axis=1)
    shares = np.repeat(1 / np.maximum(counts, 1), counts).astype(points.dtype)
    ends = np.concatenate([[0], np.cumsum(counts)])
    averaging = sparse.csr_array((shares, position[sources[found]], ends), shape=(len(queries), len(points)))
    return np.asarray(averaging @ points), counts > 0


def _nearest_sources(tables: Sequence[_Table], view: int, queries: Array) -> Array:
    """Find the samples nearest to every query by the mean squared distance in the views shared; −1 fills the rows."""
    per_view = [
        _candidates(table, queries, table.samples[tables[view].position[table.samples] >= 0])
        for k, table in enumerate(tables)
        if k != view
    ]
    if not per_view:
        return np.full((len(queries), N_SOURCES), -1)
    candidates = np.sort(np.hstack(per_view), axis=1)
    repeated = np.zeros_like(candidates, dtype=bool)
    repeated[:, 1:] = candidates[:, 1:] == candidates[:, :-1]
    candidates[repeated | (candidates == queries[:, None])] = -1
    total = np.zeros(candidates.shape)
    shared = np.zeros(candidates.shape)
    for k, table in enumerate(tables):
        if k != view:
            _add_distances(table, queries, candidates, total, shared)
    distances = np.where(shared > 0, total / np.maximum(shared, 1), np.inf)
    best = np.argsort(distances, axis=1, kind="stable")[:, :N_SOURCES]
    chosen = np.take_along_axis(candidates, best, axis=1)
    chosen[np.isinf(np.take_along_axis(distances, best, axis=1))] = -1
    return chosen


def _candidates(table: _Table, queries: Array, sources: Array) -> Array:
    """Find in one view the sources nearest to every query that has the view, one more than needed: itself may be one."""
    found = np.full((len(queries), N_SOURCES + 1), -1)
    having = np.flatnonzero(table.position[queries] >= 0)
    count = min(N_SOURCES + 1, len(sources))
    if count and len(having):
        points, asked = table.points[table.position[sources]], table.points[table.position[queries[having]]]
        found[having, :count] = sources[nearest(points, count, asked)[1]]
    return found


def _add_distances(table: _Table, queries: Array, candidates: Array, total: Array, shared: Array) -> None:
    """Add the squared distances in one view to those pairs of queries and candidates that both have it."""
    first, second = table.position[queries], table.position[candidates]
    pairs = np.nonzero((candidates >= 0) & (first[:, None] >= 0) & (second >= 0))
    shared[pairs] += 1
    for begin in range(0, len(pairs[0]), _N_PAIRS):
        i, j = pairs[0][begin : begin + _N_PAIRS], pairs[1][begin : begin + _N_PAIRS]
        total[i, j] += np.square(table.points[first[i]] - table.points[second[i, j]]).sum(axis=1)
