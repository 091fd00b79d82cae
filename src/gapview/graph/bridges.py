"""Bridges: graphs over all samples, which connect a sample that lacks a view with samples that have it.

The *union* graph adds up the neighbour graphs of the single views: two samples are linked if they are near in any view.
The *joint* graph links samples that are near in all views together, with missing views imputed.

Both are used through :class:`Reach`, the weights A = I + T + … + Tʰ of up to h steps along the normalised graph T.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy.sparse.csgraph import reverse_cuthill_mckee

from ..compute.arrays import (
    FEW_ROWS,
    csr,
    divide_weights,
    expand_graph,
    is_tensor,
    like,
    row_blocks,
    row_parts,
    weights_of,
)
from ..compute.engine import engine_for, one_by_one
from ..progress import phase
from ..utils.types import Array, Matrix
from ..views import Views
from .imputation import ImputedViews
from .knn import knn_graph, symmetric_graph
from .neighbors import Search, nearest, without_last

Step = Callable[[Array, Array], Array]  # (values, start) to T · values + start

BRIDGES = ("union", "joint", "both")
_BYTES_AT_A_TIME = 64_000_000  # of columns that are multiplied together, which needs three times as much memory
_FEWEST_COLUMNS, _MOST_COLUMNS = 12, 64
_FEWEST_ORDERED = 50_000  # samples whose rows do not stay in the cache
_COST = 16  # of a weight times a number, in operations of a dense product, since memory access is random


def normalized(graph: Any, factor: float = 1.0, *, overwrite: bool = False) -> Any:
    """Return D^-1/2 W D^-1/2: every weight divided by the square roots of the degrees of its two samples.

    Parameters
    ----------
    graph : csr_array of shape (n_samples, n_samples)
        Symmetric, non-negative weights.
    factor : float, default=1.0
        Multiplies all weights of the result.
    overwrite : bool, default=False
        Whether the weights of ``graph`` may be changed.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from gapview.graph import normalized
    >>> normalized(sparse.csr_array(np.array([[0.0, 4.0], [4.0, 0.0]]))).toarray()
    array([[0., 1.],
           [1., 0.]])
    """
    values = weights_of(graph)
    degrees = graph @ array_namespace(values).ones(graph.shape[0], dtype=values.dtype, device=values.device)
    return normalized_by(graph, degrees, degrees, factor, overwrite=overwrite)


def normalized_by(
    graph: Any, row_degrees: Array, column_degrees: Array, factor: float = 1.0, *, overwrite: bool = False
) -> Any:
    """Return a graph with every weight divided by the square roots of the degrees of its row and its column.

    All weights are multiplied by ``factor``. With ``overwrite``, the weights of a csr_array are changed in place.
    """
    return divide_weights(graph, _roots(row_degrees), _roots(column_degrees), factor, overwrite=overwrite)


def _roots(degrees: Array) -> Array:
    """Return the square roots of degrees; 1 for degrees of 0, which belong to samples without weights."""
    xp = array_namespace(degrees)
    return xp.sqrt(xp.where(degrees > 0, degrees, xp.ones_like(degrees)))  # type: ignore[no-any-return]


def add_graphs(parts: Iterable[tuple[Any, Array, Array]], shape: tuple[int, int]) -> Any:
    """Return the sum of graphs, each with the rows and the columns of the sum that it belongs to, in ascending order.

    An iterator keeps one graph and the sum in memory.
    """
    total = None
    for graph, rows, columns in parts:
        own = expand_graph(graph, rows, columns, shape)
        total = own if total is None else total + own
    return total


def unite_graphs(parts: Iterable[tuple[Any, Array, float]], n_samples: int, *, overwrite: bool = True) -> Any:
    """Return the normalised sum of the normalised graphs of the views, over all samples.

    Parameters
    ----------
    parts : iterable of (csr_array, int array, float)
        For every view its graph, the samples of its rows, in ascending order, and its weight. An iterator keeps one
        graph at a time in memory.
    n_samples : int
        Number of all samples.
    overwrite : bool, default=True
        Whether the weights of the graphs may be changed.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from gapview.graph.bridges import unite_graphs
    >>> pair = sparse.csr_array(np.array([[0.0, 4.0], [4.0, 0.0]]))
    >>> unite_graphs([(pair, np.array([0, 2]), 1.0)], 3).toarray()
    array([[0., 0., 1.],
           [0., 0., 0.],
           [1., 0., 0.]])
    """
    of_views = ((normalized(graph, float(w), overwrite=overwrite), rows, rows) for graph, rows, w in parts)
    return normalized(add_graphs(of_views, (n_samples, n_samples)), overwrite=True)


def union_graph(
    scaled: Sequence[Matrix],
    views: Views,
    n_neighbors: Sequence[int],
    view_weights: Sequence[float],
    search: Search | None = None,
    *,
    build: Callable[[Matrix, int, Search | None], Any] = knn_graph,
    overwrite: bool = False,
) -> Any:
    """Return the normalised sum of the normalised neighbour graphs of the views, over all samples.

    Parameters
    ----------
    scaled : sequence of arrays or csr_arrays
        The present rows of every view, scaled.
    views : Views
        The samples that the rows belong to.
    n_neighbors : sequence of int
        Neighbours of a sample in every view.
    view_weights : sequence of float
        Weights of the graphs of the views.
    search : Search, optional
        Settings of the search for neighbours.
    build : callable, optional
        Replaces :func:`gapview.graph.knn_graph`; fits pass a version that records the graphs in a checkpoint.
    overwrite : bool, default=False
        Whether the graphs that ``build`` returns may be changed, which needs less memory.

    Examples
    --------
    >>> from gapview.graph import union_graph
    >>> from gapview.datasets import make_views
    >>> views = make_views(n_samples=30, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> union_graph(views.matrices, views, [3, 3], [1.0, 1.0]).shape
    (30, 30)
    """

    def parts() -> Iterator[tuple[Any, Array, float]]:
        for k, (matrix, count, weight) in enumerate(zip(scaled, n_neighbors, view_weights, strict=True)):
            with phase("neighbours"):
                graph = build(matrix, count, search)
            yield graph, views.rows(k), weight
            del graph  # before the next one is built

    return unite_graphs(parts(), views.n_samples, overwrite=overwrite)


def joint_graph(
    imputed: ImputedViews, n_neighbors: int, view_weights: Sequence[float], search: Search | None = None
) -> Any:
    """Return the normalised graph of the samples at the smallest expected distance in all views together.

    The expected squared distance to a sample with an imputed row exceeds the one to the imputed row by the variance of
    its error. Without this excess, imputed rows, which are means, would be among the neighbours of most samples.

    Parameters
    ----------
    imputed : ImputedViews
        Every view of every sample; its matrix is changed in place and cannot be used afterwards.
    n_neighbors : int
        Neighbours of a sample.
    view_weights : sequence of float
        Weights of the squared distances in every view.
    search : Search, optional
        Settings of the search for neighbours.

    Examples
    --------
    >>> from gapview.graph import impute_views, joint_graph
    >>> from gapview.datasets import make_views
    >>> views = make_views(n_samples=30, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> joint_graph(impute_views(views.matrices, views), 3, [1.0, 1.0]).shape
    (30, 30)
    """
    xp = array_namespace(imputed.observed)
    samples = xp.nonzero(imputed.observed)[0]
    n_samples, dtype = imputed.observed.shape[0], imputed.matrix.dtype
    count = min(n_neighbors, len(samples) - 1)
    if count < 1:
        return csr(samples[:0], samples[:0], xp.zeros_like(samples[:0], dtype=dtype), (n_samples, n_samples))
    rows = expected_points(imputed, samples, view_weights)
    with phase("neighbours"):
        found = nearest(rows, count + 1, without_last(rows), search=search)[1]
    others = found != xp.arange(len(samples), device=samples.device)[:, None]
    others[xp.all(others, axis=1), -1] = False  # with its own excess, a sample may not be among its neighbours
    ends = xp.reshape(found[others], (-1, count))
    del found, others
    ends = ends if len(samples) == n_samples else samples[ends]
    return normalized(symmetric_graph(samples, ends, n_samples, dtype), overwrite=True)


def expected_points(imputed: ImputedViews, samples: Array, view_weights: Sequence[float]) -> Array:
    """Return rows whose squared distance from a query with 0 in the last column is the expected one.

    Parameters
    ----------
    imputed : ImputedViews
        Every view of every sample; its matrix is changed in place.
    samples : int array
        The samples to return, in ascending order.
    view_weights : sequence of float
        Weights of the squared distances in every view.
    """
    xp = array_namespace(imputed.observed)
    rows = imputed.matrix if len(samples) == len(imputed.matrix) else imputed.matrix[samples]
    excess = 0.0
    for own, variance, weight in zip(imputed.columns, imputed.variance.T, view_weights, strict=True):
        rows[:, own] *= weight**0.5
        excess = excess + variance[samples] * weight
    # The excess of the points only: that of a query is the same for all of its distances
    rows[:, -1] = xp.astype(xp.sqrt(excess), rows.dtype)
    return rows


def both_graphs(union: Any, joint: Any) -> Any:
    """Return the normalised sum of the two graphs.

    Parameters
    ----------
    union, joint : csr_arrays of shape (n_samples, n_samples)
        The two graphs, normalised.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from gapview.graph import both_graphs
    >>> pair = sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> both_graphs(pair, pair).toarray()
    array([[0., 1.],
           [1., 0.]])
    """
    return normalized(union + joint, overwrite=True)


@dataclass(frozen=True)
class Reach:
    """The weights weight · (I + T + … + Tʰ) from some samples (rows) to others (columns), as a linear operator.

    It can be multiplied, transposed and sliced like a sparse matrix, but the weights are never stored.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from gapview.graph import Reach
    >>> pair = sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> Reach(pair, 3, np.array([0]), np.array([0, 1])).T @ np.ones(1)
    array([2., 2.])
    """

    graph: Any  # T, normalised and symmetric
    n_steps: int  # h, the largest number of steps
    rows: Array  # samples of the rows
    columns: Array  # samples of the columns
    weight: float = 1.0  # factor of all weights
    near: LocalOrder | None = None  # the same graph in another order

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return len(self.rows), len(self.columns)

    @property
    def T(self) -> Reach:
        """The transposed operator, with rows and columns exchanged, since T is symmetric."""
        return Reach(self.graph, self.n_steps, self.columns, self.rows, self.weight, self.near)

    def __getitem__(self, part: tuple[slice, Array]) -> Reach:
        """Return some of the rows and columns."""
        rows, columns = part
        return Reach(self.graph, self.n_steps, self.rows[rows], self.columns[columns], self.weight, self.near)

    def __matmul__(self, values: Array) -> Array:
        """Return the product with ``values``, which have a row for every column of the operator."""
        xp = array_namespace(values)
        shape = (self.graph.shape[0], *values.shape[1:])
        result = xp.zeros(shape, dtype=values.dtype, device=values.device)
        near = self.near if values.ndim > 1 else None
        place, graph = (None, self.graph) if near is None else (near.place, near.graph)
        columns = like(self.columns if place is None else place[self.columns], result)
        for block in row_blocks(values, FEW_ROWS):
            result[columns[block]] = values[block]
        count = _columns_at_a_time(result)
        with _stepping(graph, result, count) as step:
            if result.ndim == 1:
                result = self._summed(result, step)
            else:  # in place, since this may be the largest array of all
                for begin in range(0, result.shape[1], count):
                    part = slice(begin, begin + count)
                    total = self._summed(xp.asarray(result[:, part], copy=True), step)
                    result[:, part] = total if place is None else total.take(place, axis=0)
        all_rows = np.array_equal(self.rows, np.arange(len(result)))
        return result if all_rows else result[like(self.rows, result)]  # type: ignore[no-any-return]

    def _summed(self, start: Array, step: Step) -> Array:
        """Return weight · (I + T + … + Tʰ) · start by Horner's rule."""
        total = start
        for _ in range(self.n_steps):
            total = step(total, start)
        total *= self.weight
        return total


@dataclass(frozen=True)
class LocalOrder:
    """A graph with its samples in an order that keeps neighbours together.

    A product with a graph reads the rows of neighbours one after the other. In the order of reverse Cuthill and McKee
    most of them are still in the cache.
    """

    place: Array  # of every sample
    graph: Any


def local_order(graph: Any) -> LocalOrder | None:
    """Return a graph in local order; None where products gain little by that."""
    if is_tensor(weights_of(graph)) or graph.shape[0] < _FEWEST_ORDERED:
        return None
    order: Array = reverse_cuthill_mckee(graph, symmetric_mode=True)
    place = np.empty_like(order)
    place[order] = np.arange(len(order), dtype=order.dtype)
    moved = graph[order]
    moved.indices = place.astype(moved.indices.dtype, copy=False).take(moved.indices)
    return LocalOrder(place, moved)


def _columns_at_a_time(values: Array) -> int:
    """Return how many columns to multiply together: more are faster, but need more memory beside the result."""
    if values.ndim == 1:
        return 1
    most = _BYTES_AT_A_TIME // (max(len(values), 1) * values.dtype.itemsize)
    return int(min(values.shape[1], max(_FEWEST_COLUMNS, min(most, _MOST_COLUMNS))))


@contextmanager
def _stepping(graph: Any, values: Array, n_columns: int) -> Iterator[Step]:
    """Yield the function that multiplies values of that many columns by the graph and adds the start."""

    def at_once(values: Array, start: Array) -> Array:
        following = graph @ values
        following += start
        return following  # type: ignore[no-any-return]

    def in_parts(values: Array, start: Array) -> Array:
        following = array_namespace(values).empty_like(values)

        def work(part: tuple[slice, Any]) -> None:
            rows, weights = part
            following[rows] = weights @ values
            following[rows] += start[rows]

        each(work, parts)
        return following  # type: ignore[no-any-return]

    with engine_for(values).working(_COST * len(weights_of(graph)) * n_columns) as each:
        if each is one_by_one:
            yield at_once
        else:
            parts = row_parts(graph)
            yield in_parts
