"""What a missing view is to be expected to look like, from the samples nearest in the views that are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from .graph import comparable_rows, only_directions
from .neighbors import nearest
from .scaling import row_lengths, times_power
from .views import Array, Matrix, Views

__all__ = ["Completion", "complete_views"]

N_SOURCES = 5  # samples that a missing row is averaged from
_N_CANDIDATES = 4  # times as many samples are considered in each of several views
_N_DIRECTIONS = 256  # a wider view is replaced by its leading directions, which keep the distances and stay dense
_N_JUDGED = 2000  # rows that are there, and are completed all the same to see how well it goes
_N_PAIRS = 20_000  # pairs of rows whose distance is taken at a time


@dataclass(frozen=True)
class Completion:
    """Every view of every sample: what is known, and what is to be expected where it is missing.

    Views whose rows do not have unit length are in units of their own standard deviation, so that distances in
    different views can be added up.
    """

    rows: list[Array]  # per view, a row for every sample, in at most 256 directions
    spread: Array  # samples × views: expected squared distance of the truth from the row, 0 where it is known
    explained: Array  # per view, the share of its variance that the other views explain; 0 if no sample can tell
    known: Array  # for every sample whether it has a view that says anything


def complete_views(scaled: Sequence[Matrix], views: Views, view_weights: Sequence[float] | None = None) -> Completion:
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
    view_weights : sequence of float, optional
        How much the squared distances in every view count; all the same by default.

    Examples
    --------
    >>> from gapview.completion import complete_views
    >>> from gapview.datasets import make_views
    >>> views = make_views(n_samples=100, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> completion = complete_views(views.matrices, views)
    >>> [rows.shape for rows in completion.rows], (completion.explained > 0.2).all()
    ([(100, 20), (100, 30)], np.True_)
    """
    tables = known_views(scaled, views, view_weights, n_most=_N_DIRECTIONS)
    spread = np.zeros((views.n_samples, views.n_views))
    explained = np.zeros(views.n_views)
    rows = []
    for k in range(views.n_views):
        completed, spread[:, k], explained[k] = _complete(tables, k)
        rows.append(completed)
    known = np.logical_or.reduce([table.position >= 0 for table in tables])
    return Completion(rows, spread, explained, known)


@dataclass(frozen=True)
class KnownRows:
    """The rows of one view that say something: directions, or rows in units of the standard deviation of the view."""

    samples: Array  # whose they are
    points: Matrix
    position: Array  # for every sample where its row stands, −1 if nowhere
    unit: float
    weight: float = 1.0  # how much squared distances in this view count


def known_views(
    scaled: Sequence[Matrix], views: Views, view_weights: Sequence[float] | None = None, *, n_most: int | None = None
) -> list[KnownRows]:
    """Keep the rows of every view that have a direction, if wished in at most ``n_most`` dimensions."""
    weights = [1.0] * views.n_views if view_weights is None else view_weights
    tables = []
    for k, (matrix, weight) in enumerate(zip(scaled, weights, strict=True)):
        points, samples, position = _placed(matrix, views, k)
        # Directions are comparable as they are; other rows may be in any unit
        unit = 1.0 if only_directions(points) else _deviation(points)
        points = points if n_most is None else _leading_directions(points, n_most)
        tables.append(KnownRows(samples, _divided(points, unit), position, unit, weight))
    return tables


def asking_views(scaled: Sequence[Matrix], views: Views, tables: Sequence[KnownRows]) -> list[KnownRows]:
    """Lay out the rows of other samples, in the units of ``tables``."""
    asking = []
    for k, (matrix, table) in enumerate(zip(scaled, tables, strict=True)):
        points, samples, position = _placed(matrix, views, k)
        asking.append(KnownRows(samples, _divided(points, table.unit), position, table.unit, table.weight))
    return asking


def _placed(matrix: Matrix, views: Views, view: int) -> tuple[Matrix, Array, Array]:
    samples, kept = views.rows(view), comparable_rows(matrix)
    position = np.full(views.n_samples, -1)
    position[samples[kept]] = np.arange(len(kept))
    return matrix if len(kept) == matrix.shape[0] else matrix[kept], samples[kept], position


def _deviation(points: Matrix) -> float:
    """Return the root of the total variance; if there is none, the largest value."""
    largest = float(abs(points).max()) if points.shape[0] else 0.0
    if not largest:
        return 1.0
    shrunk = _divided(points, largest)  # squares of huge or tiny numbers stay finite
    squares = shrunk.multiply(shrunk) if sparse.issparse(shrunk) else np.square(shrunk)
    center = np.asarray(shrunk.mean(axis=0, dtype=np.float64)).ravel()
    variance = float(squares.sum(dtype=np.float64)) / shrunk.shape[0] - float(center @ center)
    return largest * float(np.sqrt(variance)) if variance > np.finfo(points.dtype).eps else largest


def _divided(points: Matrix, unit: float) -> Matrix:
    # First by a power of 2, since the unit itself may be too small for the type
    fraction, exponent = np.frexp(unit)
    return times_power(points, -int(exponent)) / points.dtype.type(fraction)


def _leading_directions(matrix: Matrix, n_most: int) -> Array:
    if matrix.shape[1] <= n_most:
        return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)
    # Random directions among the features, never among the samples, whose order must not matter
    left, values, _ = randomized_svd(matrix, min(n_most, *matrix.shape), n_iter=4, random_state=0, transpose=False)
    return np.asarray(left * values, dtype=matrix.dtype)


def _complete(tables: Sequence[KnownRows], view: int) -> tuple[Array, Array, float]:
    """Complete one view: its rows for all samples, the variance left open for each, the share of it explained."""
    table = tables[view]
    n_samples, points = len(table.position), table.points
    center = points.mean(axis=0, dtype=np.float64).astype(points.dtype)
    lacking = np.flatnonzero(table.position < 0)
    judged = judged_samples(table)
    judged_means, judgeable = neighbor_means(points, table.position, nearest_sources(tables, view, tables, judged))
    means, possible = neighbor_means(points, table.position, nearest_sources(tables, view, tables, lacking))

    slope, explained = _success(judged_means[judgeable] - center, points[table.position[judged[judgeable]]] - center)
    total = _mean_square(points - center)
    rows = np.empty((n_samples, points.shape[1]), dtype=points.dtype)
    rows[table.samples] = points
    rows[lacking] = center + points.dtype.type(slope) * np.where(possible[:, None], means - center, 0.0)
    spread = np.zeros(n_samples)
    spread[lacking] = total * (1 - np.where(possible, explained, 0.0))
    return rows, spread, explained


def _success(expected: Array, actual: Array) -> tuple[float, float]:
    """Say how far expectations come true: the slope to draw them to the mean by, and the variance then explained."""
    slope = slope_of(expected, actual)
    total = _mean_square(actual)
    if not slope or not total:
        return 0.0, 0.0
    error = _mean_square(actual - actual.dtype.type(slope) * expected)
    return slope, max(0.0, 1 - error / total)


def _mean_square(rows: Array) -> float:
    return float(np.square(rows).sum(dtype=np.float64)) / max(len(rows), 1)


def judged_samples(table: KnownRows) -> Array:
    """Choose samples that have a view, spread over all, on which to see how well it would have been completed."""
    return np.asarray(table.samples[np.unique(np.linspace(0, len(table.samples) - 1, _N_JUDGED).astype(np.intp))])


def slope_of(expected: Matrix, actual: Matrix) -> float:
    """Say by how much of what is expected the actual rows move along with it, between 0 and 1."""
    largest = float(abs(expected).max()) if expected.shape[0] else 0.0
    if not largest:
        return 0.0
    expected, actual = _divided(expected, largest), _divided(actual, largest)  # squares stay finite
    size = float(expected.multiply(expected).sum() if sparse.issparse(expected) else np.vdot(expected, expected))
    shared = float(expected.multiply(actual).sum() if sparse.issparse(expected) else np.vdot(expected, actual))
    return min(1.0, max(0.0, shared / size))


def neighbor_means(points: Matrix, position: Array, sources: Array) -> tuple[Matrix, Array]:
    """Average the rows of the sources of every query; also say which queries have any."""
    found = sources >= 0
    counts = found.sum(axis=1)
    shares = np.repeat(1 / np.maximum(counts, 1), counts).astype(points.dtype)
    ends = np.concatenate([[0], np.cumsum(counts)])
    averaging = sparse.csr_array((shares, position[sources[found]], ends), shape=(len(sources), points.shape[0]))
    return averaging @ points, counts > 0


def nearest_sources(tables: Sequence[KnownRows], view: int, asking: Sequence[KnownRows], queries: Array) -> Array:
    """Find for every query the samples nearest to it that have the view, by the other views that both have.

    Considered are the samples that are among the nearest in at least one of these views.

    Parameters
    ----------
    tables : sequence of KnownRows
        Where to look, one for each view.
    view : int
        The view that the samples must have.
    asking : sequence of KnownRows
        The rows of those who ask; if they are ``tables`` themselves, no sample is a source of its own.
    queries : int array of shape (n_queries,)
        Which of them ask.

    Returns
    -------
    int array of shape (n_queries, N_SOURCES)
        Nearest first, by the mean squared distance in the views shared, each counted by its weight; −1 where there are
        no more.
    """
    others = [k for k in range(len(tables)) if k != view]
    if not others or not len(queries):
        return np.full((len(queries), N_SOURCES), -1)
    having = [tables[k].samples[tables[view].position[tables[k].samples] >= 0] for k in others]
    # Itself may be among the nearest, and who is near in one of several views need not be in all of them
    count = (N_SOURCES + 1) * (1 if len(others) == 1 else _N_CANDIDATES)
    found = [_candidates(tables[k], asking[k], queries, each, count) for k, each in zip(others, having, strict=True)]
    candidates = np.sort(np.hstack(found), axis=1)
    repeated = np.zeros_like(candidates, dtype=bool)
    repeated[:, 1:] = candidates[:, 1:] == candidates[:, :-1]
    if asking is tables:
        repeated |= candidates == queries[:, None]
    candidates[repeated] = -1
    total, shared = np.zeros(candidates.shape), np.zeros(candidates.shape)
    for k in others:
        _add_distances(tables[k], asking[k], queries, candidates, total, shared)
    distances = np.where(shared > 0, total / np.where(shared > 0, shared, 1.0), np.inf)
    best = np.argsort(distances, axis=1, kind="stable")[:, :N_SOURCES]
    chosen = np.take_along_axis(candidates, best, axis=1)
    chosen[np.isinf(np.take_along_axis(distances, best, axis=1))] = -1
    return chosen


def _candidates(table: KnownRows, asking: KnownRows, queries: Array, sources: Array, count: int) -> Array:
    """Find in one view the sources nearest to every query that has it."""
    found = np.full((len(queries), count), -1)
    having = np.flatnonzero(asking.position[queries] >= 0)
    count = min(count, len(sources))
    if count and len(having):
        points, asked = table.points[table.position[sources]], asking.points[asking.position[queries[having]]]
        found[having, :count] = sources[nearest(points, count, asked)[1]]
    return found


def _add_distances(
    table: KnownRows, asking: KnownRows, queries: Array, candidates: Array, total: Array, shared: Array
) -> None:
    """Add the squared distances in one view, and its weight, to those pairs of queries and candidates that have it."""
    first, second = asking.position[queries], table.position[candidates]
    pairs = np.nonzero((candidates >= 0) & (first[:, None] >= 0) & (second >= 0))
    shared[pairs] += table.weight
    for begin in range(0, len(pairs[0]), _N_PAIRS):
        i, j = pairs[0][begin : begin + _N_PAIRS], pairs[1][begin : begin + _N_PAIRS]
        gaps = asking.points[first[i]] - table.points[second[i, j]]
        total[i, j] += table.weight * row_lengths(gaps).astype(np.float64) ** 2
