"""Bridges: graphs over all samples, by which a sample without a view borrows it from samples that have it.

Two graphs connect samples across views. The *union* graph adds up the neighbour graphs of the single views: two samples
are linked if they are near in any view. The *joint* graph asks how near two samples are in all views together, where a
missing view is replaced by what is to be expected of it.

Both are used through :class:`Reach`, the weights A = I + T + … + Tʰ of up to h steps along the normalised graph T.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from .completion import Completion
from .graph import knn_graph
from .neighbors import nearest
from .views import Array, Matrix, Views

__all__ = ["BRIDGES", "Reach", "both_graphs", "joint_graph", "normalized", "union_graph"]

BRIDGES = ("union", "joint", "both")


def normalized(graph: sparse.csr_array) -> sparse.csr_array:
    """Divide every weight by the roots of the degrees of its two samples, D^-1/2 W D^-1/2.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from gapview.bridges import normalized
    >>> normalized(sparse.csr_array(np.array([[0.0, 4.0], [4.0, 0.0]]))).toarray()
    array([[0., 1.],
           [1., 0.]])
    """
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    roots = np.sqrt(np.where(degrees > 0, degrees, 1.0)).astype(graph.dtype)
    coordinates = graph.tocoo()
    values = coordinates.data / (roots[coordinates.row] * roots[coordinates.col])
    return sparse.csr_array((values, (coordinates.row, coordinates.col)), shape=graph.shape)


def union_graph(
    scaled: Sequence[Matrix], views: Views, n_neighbors: Sequence[int], view_weights: Sequence[float]
) -> sparse.csr_array:
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

    Examples
    --------
    >>> from gapview.bridges import union_graph
    >>> from gapview.datasets import make_views
    >>> views = make_views(n_samples=30, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> union_graph(views.matrices, views, [3, 3], [1.0, 1.0]).shape
    (30, 30)
    """
    total = sparse.csr_array((views.n_samples, views.n_samples), dtype=scaled[0].dtype)
    for k, (matrix, count, weight) in enumerate(zip(scaled, n_neighbors, view_weights, strict=True)):
        own = normalized(knn_graph(matrix, count))
        total = total + placed(own * own.dtype.type(weight), views.rows(k), views.n_samples)
    return normalized(sparse.csr_array(total))


def placed(graph: sparse.csr_array, rows: Array, n_samples: int) -> sparse.csr_array:
    """Move the weights between some samples to where these samples stand among all."""
    coordinates = graph.tocoo()
    where = rows[coordinates.row], rows[coordinates.col]
    return sparse.csr_array((coordinates.data, where), shape=(n_samples, n_samples))


def joint_graph(completion: Completion, n_neighbors: int, view_weights: Sequence[float]) -> sparse.csr_array:
    """Link every sample with those at the smallest expected distance in all views together, and normalise.

    The squared distance to a sample whose view is missing is expected to exceed the one to its completed row by the
    variance of what it stands for. Without that excess completed rows, which are means and lie in the middle, would be
    everybody's neighbours.

    Parameters
    ----------
    completion : Completion
        Every view of every sample, present or expected.
    n_neighbors : int
        Neighbours of a sample.
    view_weights : sequence of float
        How much the squared distances in every view count.

    Examples
    --------
    >>> from gapview.bridges import joint_graph
    >>> from gapview.completion import complete_views
    >>> from gapview.datasets import make_views
    >>> views = make_views(n_samples=30, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> joint_graph(complete_views(views.matrices, views), 3, [1.0, 1.0]).shape
    (30, 30)
    """
    samples = np.flatnonzero(completion.known)  # others have no place from which to be near to anything
    n_samples = len(completion.known)
    count = min(n_neighbors, len(samples) - 1)
    if count < 1:
        return sparse.csr_array((n_samples, n_samples), dtype=completion.rows[0].dtype)
    roots = np.sqrt(np.asarray(view_weights))
    rows = np.hstack([part[samples] * part.dtype.type(root) for part, root in zip(completion.rows, roots, strict=True)])
    excess = np.sqrt(completion.spread[samples] @ np.asarray(view_weights)).astype(rows.dtype)[:, None]
    # Only the sample that is found adds its variance: the one that searches has the same with everybody
    _, found = nearest(np.hstack([rows, excess]), count + 1, np.hstack([rows, np.zeros_like(excess)]))
    others = found != np.arange(len(samples))[:, None]
    others[others.all(axis=1), -1] = False  # its own excess has put a sample beyond its neighbours
    edges = np.repeat(samples, count), samples[found[others]]
    directed = sparse.csr_array((np.ones(len(edges[0]), dtype=rows.dtype), edges), shape=(n_samples, n_samples))
    return normalized(sparse.csr_array(directed.maximum(directed.T)))


def both_graphs(union: sparse.csr_array, joint: sparse.csr_array) -> sparse.csr_array:
    """Add the two graphs, and normalise the sum.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from gapview.bridges import both_graphs
    >>> pair = sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> both_graphs(pair, pair).toarray()
    array([[0., 1.],
           [1., 0.]])
    """
    return normalized(sparse.csr_array(union + joint))


@dataclass(frozen=True)
class Reach:
    """The weights weight · (I + T + … + Tʰ) from some samples (rows) to others (columns), without writing them out.

    T is symmetric, so that the weights seen from the other side are those with rows and columns exchanged. It can be
    multiplied and cut like a sparse matrix, which is all that the factorisation needs.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from gapview.bridges import Reach
    >>> pair = sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> Reach(pair, 3, np.array([0]), np.array([0, 1])).T @ np.ones(1)
    array([2., 2.])
    """

    steps: sparse.csr_array
    n_steps: int
    rows: Array
    columns: Array
    weight: float = 1.0

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
        start = np.zeros((self.steps.shape[0], *values.shape[1:]), dtype=values.dtype)
        start[self.columns] = values
        total = start
        for _ in range(self.n_steps):
            total = start + self.steps @ total
        return np.asarray(total[self.rows] * values.dtype.type(self.weight))
