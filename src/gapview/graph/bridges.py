"""Bridges: graphs over all samples, by which a sample without a view borrows it from samples that have it.

Two graphs connect samples across views. The *union* graph adds up the neighbour graphs of the single views: two samples
are linked if they are near in any view. The *joint* graph asks how near two samples are in all views together, where a
missing view is replaced by what is to be expected of it.

Both are used through :class:`Reach`, the weights A = I + T + … + Tʰ of up to h steps along the normalised graph T.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from ..compute import (
    FEW_ROWS,
    added,
    csr,
    divided,
    engine_for,
    like,
    one_by_one,
    row_blocks,
    row_parts,
    spread_out,
    weights_of,
)
from ..progress import phase
from ..utils.types import Array, Matrix
from ..views import Views
from .imputation import Completion
from .knn import knn_graph, linked
from .neighbors import Search, nearest, without_last

__all__ = ["BRIDGES", "Reach", "both_graphs", "joint_graph", "normalized", "union_graph"]

Step = Callable[[Array, Array], Array]  # where columns are, and where they began, to where they are next

BRIDGES = ("union", "joint", "both")
_BYTES_AT_A_TIME = 100_000_000  # of columns that go along a graph together; three times as much is needed meanwhile
_FEWEST_COLUMNS, _MOST_COLUMNS = 12, 64
_COST = 16  # of a weight times a number, in operations of a dense product: numbers are read from all over the memory


def normalized(graph: Any) -> Any:
    """Divide every weight by the roots of the degrees of its two samples, D^-1/2 W D^-1/2.

    Parameters
    ----------
    graph : csr_array of shape (n_samples, n_samples)
        Symmetric, non-negative weights.

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
    return divided_by_roots(graph, degrees, degrees)


def divided_by_roots(graph: Any, of_rows: Array, of_columns: Array) -> Any:
    """Divide every weight by the roots of the degrees of its row and of its column; degrees of 0 count as 1."""
    return divided(graph, roots(of_rows), roots(of_columns))


def roots(degrees: Array) -> Array:
    """Return the square roots of degrees; of 0, which divides nothing, 1."""
    xp = array_namespace(degrees)
    return xp.sqrt(xp.where(degrees > 0, degrees, xp.ones_like(degrees)))  # type: ignore[no-any-return]


def union_graph(
    scaled: Sequence[Matrix],
    views: Views,
    n_neighbors: Sequence[int],
    view_weights: Sequence[float],
    search: Search | None = None,
    *,
    build: Callable[[Matrix, int, Search | None], Any] = knn_graph,
) -> Any:
    """Add up the normalised neighbour graphs of the views over all samples, and normalise the sum.

    Parameters
    ----------
    scaled : sequence of arrays or csr_arrays
        The present rows of every view, scaled.
    views : Views
        Says which samples the rows belong to.
    n_neighbors : sequence of int
        Neighbours of a sample in every view.
    view_weights : sequence of float
        How much the graph of every view counts.
    search : Search, optional
        How to look for neighbours.
    build : callable, optional
        Replaces :func:`gapview.graph.knn_graph`; a fit passes a version that records the graphs in its checkpoint.

    Examples
    --------
    >>> from gapview.graph import union_graph
    >>> from gapview.datasets import make_views
    >>> views = make_views(n_samples=30, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> union_graph(views.matrices, views, [3, 3], [1.0, 1.0]).shape
    (30, 30)
    """
    parts = []
    for k, (matrix, count, weight) in enumerate(zip(scaled, n_neighbors, view_weights, strict=True)):
        with phase("neighbours"):
            graph = build(matrix, count, search)
        parts.append(spread_out(normalized(graph), views.rows(k), views.n_samples, weight))
    return normalized(added(parts))


def joint_graph(
    completion: Completion, n_neighbors: int, view_weights: Sequence[float], search: Search | None = None
) -> Any:
    """Link every sample with those at the smallest expected distance in all views together, and normalise.

    The squared distance to a sample whose view is missing is expected to exceed the one to its completed row by the
    variance of what it stands for. Without that excess completed rows, which are means and lie in the middle, would be
    everybody's neighbours.

    Parameters
    ----------
    completion : Completion
        Every view of every sample, present or expected; of no use afterwards, since its rows are changed in place.
    n_neighbors : int
        Neighbours of a sample.
    view_weights : sequence of float
        How much the squared distances in every view count.
    search : Search, optional
        How to look for neighbours.

    Examples
    --------
    >>> from gapview.graph import joint_graph
    >>> from gapview.graph import complete_views
    >>> from gapview.datasets import make_views
    >>> views = make_views(n_samples=30, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> joint_graph(complete_views(views.matrices, views), 3, [1.0, 1.0]).shape
    (30, 30)
    """
    xp = array_namespace(completion.known)
    samples = xp.nonzero(completion.known)[0]  # others have no place from which to be near to anything
    n_samples, dtype = completion.known.shape[0], completion.together.dtype
    count = min(n_neighbors, len(samples) - 1)
    if count < 1:
        return csr(samples[:0], samples[:0], xp.zeros_like(samples[:0], dtype=dtype), (n_samples, n_samples))
    rows = completion.together if len(samples) == n_samples else completion.together[samples]
    excess = 0.0
    for own, spread, weight in zip(completion.columns, completion.spread.T, view_weights, strict=True):
        rows[:, own] *= weight**0.5
        excess = excess + spread[samples] * weight
    # Only the sample that is found adds its variance: the one that searches has the same with everybody
    rows[:, -1] = xp.astype(xp.sqrt(excess), dtype)
    with phase("neighbours"):
        found = nearest(rows, count + 1, without_last(rows), search=search)[1]
    others = found != xp.arange(len(samples), device=samples.device)[:, None]
    others[xp.all(others, axis=1), -1] = False  # its own excess has put a sample beyond its neighbours
    return normalized(linked(samples, samples[xp.reshape(found[others], (-1, count))], n_samples, dtype))


def both_graphs(union: Any, joint: Any) -> Any:
    """Add the two graphs, and normalise the sum.

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
    return normalized(added([union, joint]))


@dataclass(frozen=True)
class Reach:
    """The weights weight · (I + T + … + Tʰ) from some samples (rows) to others (columns), without writing them out.

    T is symmetric, so that the weights seen from the other side are those with rows and columns exchanged. It can be
    multiplied and cut like a sparse matrix, which is all that the factorisation needs.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from gapview.graph import Reach
    >>> pair = sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> Reach(pair, 3, np.array([0]), np.array([0, 1])).T @ np.ones(1)
    array([2., 2.])
    """

    steps: Any  # T, the normalised graph
    n_steps: int  # h, the most steps
    rows: Array  # samples from which weights lead
    columns: Array  # samples to which they lead
    weight: float = 1.0  # a factor for all

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return len(self.rows), len(self.columns)

    @property
    def T(self) -> Reach:
        """The weights seen from the other side."""
        return Reach(self.steps, self.n_steps, self.columns, self.rows, self.weight)

    def __getitem__(self, part: tuple[slice, Array]) -> Reach:
        """Keep some of the columns."""
        rows, columns = part
        return Reach(self.steps, self.n_steps, self.rows[rows], self.columns[columns], self.weight)

    def __matmul__(self, values: Array) -> Array:
        """Add up the rows of ``values``, which belong to the columns, weighted."""
        xp = array_namespace(values)
        shape = (self.steps.shape[0], *values.shape[1:])
        spread = xp.zeros(shape, dtype=values.dtype, device=values.device)
        columns = like(self.columns, spread)
        for block in row_blocks(values, FEW_ROWS):
            spread[columns[block]] = values[block]
        count = _columns_at_a_time(spread)
        with _stepping(self.steps, spread, count) as step:
            if spread.ndim == 1:
                spread = self._walked(spread, step)
            else:  # in place, since this may be the largest array of all
                for begin in range(0, spread.shape[1], count):
                    part = slice(begin, begin + count)
                    spread[:, part] = self._walked(xp.asarray(spread[:, part], copy=True), step)
        everyone = np.array_equal(self.rows, np.arange(len(spread)))
        return spread if everyone else spread[like(self.rows, spread)]  # type: ignore[no-any-return]

    def _walked(self, start: Array, step: Step) -> Array:
        total = start
        for _ in range(self.n_steps):
            total = step(total, start)
        total *= self.weight
        return total


def _columns_at_a_time(values: Array) -> int:
    """Say how many columns to take along the graph together: many are faster, but need room beside the result."""
    if values.ndim == 1:
        return 1
    most = _BYTES_AT_A_TIME // (max(len(values), 1) * values.dtype.itemsize)
    return int(min(values.shape[1], max(_FEWEST_COLUMNS, min(most, _MOST_COLUMNS))))


@contextmanager
def _stepping(steps: Any, values: Array, n_columns: int) -> Iterator[Step]:
    """Get ready to go along a graph with that many columns; gives what goes one step, and adds the start."""

    def at_once(values: Array, start: Array) -> Array:
        following = steps @ values
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

    with engine_for(values).working(_COST * len(weights_of(steps)) * n_columns) as each:
        if each is one_by_one:
            yield at_once
        else:
            parts = row_parts(steps)
            yield in_parts
