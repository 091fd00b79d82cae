"""Neighbour graphs: which samples explain which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse

from ..compute import csr, is_tensor, weights_of
from ..errors import InputError, ParameterError
from ..scaling import row_lengths
from ..utils.types import Array, Matrix
from ..views import Views
from ..views.checks import one_per_view, real_matrix
from .neighbors import Search, nearest

__all__ = [
    "comparable_rows",
    "demand_edges",
    "knn_graph",
    "linked",
    "mean_modularity",
    "modularity",
    "neighbor_rule",
    "own_graphs",
    "resolve_n_neighbors",
]

_UNIT_LENGTH_TOLERANCE = 1e-3


def neighbor_rule(n_samples: int, n_clusters: int) -> int:
    """Return the paper's number of neighbours: 10 for large groups, fewer for small ones, never less than 2.

    The printed rule, 10 if n/c ≫ 10 and min(n/c − 4, 2) otherwise, gives 0 or less for tiny groups; it is read as
    n//c − 4 kept between 2 and 10.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    n_clusters : int
        Number of groups.

    Examples
    --------
    >>> from gapview.graph import neighbor_rule
    >>> neighbor_rule(2000, 10), neighbor_rule(90, 10), neighbor_rule(30, 10)
    (10, 5, 2)
    """
    return int(np.clip(n_samples // n_clusters - 4, 2, 10))


def resolve_n_neighbors(n_neighbors: int | str, views: Views, n_clusters: int) -> list[int]:
    """Settle the number of neighbours in every view; the rule gives way to small views, a number does not."""
    counts = list(views.n_present)
    if n_neighbors == "auto":
        rule = neighbor_rule(views.n_samples, n_clusters)
        return [min(rule, count - 1) for count in counts]
    for name, count in zip(views.names, counts, strict=True):
        if int(n_neighbors) >= count:
            raise ParameterError(
                f"n_neighbors={n_neighbors} needs at least {int(n_neighbors) + 1} samples in every view; view "
                f"'{name}' is present for {count}. Use n_neighbors={count - 1} or less, or 'auto'."
            )
    return [int(n_neighbors)] * len(counts)


def knn_graph(matrix: Matrix, n_neighbors: int, search: Search | None = None) -> Any:
    """Build the graph W of Eq. (3): 1 if either sample is among the nearest of the other, else 0; no loops.

    Where all rows have unit length they say directions only, and a row of zeros, which has none, gets no edge. With
    fewer than ``n_neighbors`` other rows to choose from, all of them are neighbours. ``search`` says how to look for
    them. A csr_array, or a sparse tensor of tensors.

    Parameters
    ----------
    matrix : array or csr_array of shape (n_rows, n_features)
        The rows, scaled.
    n_neighbors : int
        Neighbours of every row.
    search : Search, optional
        How to look for them.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.graph import knn_graph
    >>> knn_graph(np.array([[0.0], [1.0], [3.0]]), 1).toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    n_rows, rows = matrix.shape[0], comparable_rows(matrix)
    n_neighbors = min(n_neighbors, len(rows) - 1)
    if n_neighbors < 1:
        nothing = array_namespace(rows).zeros_like(rows[:0], dtype=matrix.dtype)
        return csr(rows[:0], rows[:0], nothing, (n_rows, n_rows))
    _, found = nearest(matrix if len(rows) == n_rows else matrix[rows], n_neighbors, search=search)
    return linked(rows, rows[found], n_rows, matrix.dtype)


def linked(origins: Array, ends: Array, n_rows: int, dtype: Any) -> Any:
    """Link every origin with the ends in its row, in both directions, by weights of 1.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.graph.knn import linked
    >>> linked(np.array([0, 2]), np.array([[1], [0]]), 3, np.float64).toarray()
    array([[0., 1., 1.],
           [1., 0., 0.],
           [1., 0., 0.]])
    """
    xp = array_namespace(ends)
    origins = xp.repeat(origins, ends.shape[1])
    ends = xp.reshape(ends, (-1,))
    if not is_tensor(ends):
        directed = csr(origins, ends, np.ones(len(ends), dtype=dtype), (n_rows, n_rows))
        return sparse.csr_array(directed.maximum(directed.T))
    keys = xp.unique_values(xp.concat([origins * n_rows + ends, ends * n_rows + origins]))
    return csr(keys // n_rows, keys % n_rows, xp.ones_like(keys, dtype=dtype), (n_rows, n_rows))


def comparable_rows(matrix: Matrix) -> Array:
    """Find the rows that have a place among the others: all, but rows of zeros among rows of unit length.

    A row of zeros lies at distance 1 from every direction, nearer than any at more than 60 degrees: it would be
    everybody's neighbour for saying nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.graph.knn import comparable_rows
    >>> comparable_rows(np.array([[1.0, 0.0], [0.0, 0.0], [0.6, 0.8]]))
    array([0, 2])
    """
    lengths = row_lengths(matrix)
    xp = array_namespace(lengths)
    if _all_one(lengths):
        return xp.nonzero(lengths > 0)[0]  # type: ignore[no-any-return]
    return xp.arange(matrix.shape[0], device=lengths.device)  # type: ignore[no-any-return]


def rows_with_a_place(asking: Matrix, known: Matrix) -> Array:
    """Find the rows that can be compared with known ones: all, but rows of zeros if the known ones say directions."""
    lengths = row_lengths(asking)
    xp = array_namespace(lengths)
    if only_directions(known):
        return xp.nonzero(lengths > 0)[0]  # type: ignore[no-any-return]
    return xp.arange(asking.shape[0], device=lengths.device)  # type: ignore[no-any-return]


def only_directions(matrix: Matrix) -> bool:
    """Tell whether all rows but those of zeros have unit length, so that they say directions only."""
    return _all_one(row_lengths(matrix))


def _all_one(lengths: Array) -> bool:
    xp = array_namespace(lengths)
    return bool(xp.all(xp.abs(lengths[lengths > 0] - 1) <= _UNIT_LENGTH_TOLERANCE))


def own_graphs(graph: Any, views: Views, dtype: Any) -> list[sparse.csr_array]:
    """Read the graphs a user brings: per view over its present samples, or over all samples."""
    expected = (
        f"graph must be None or one square matrix of weights for each of the {views.n_views} views, in a list or in a "
        "dict with the names of the views"
    )
    graphs = one_per_view(graph, views, expected)
    return [_own_graph(weights, views, k, dtype) for k, weights in enumerate(graphs)]


def _own_graph(weights: Any, views: Views, view: int, dtype: Any) -> sparse.csr_array:
    name, n_rows = views.names[view], int(views.mask[:, view].sum())
    matrix = sparse.csr_array(real_matrix(weights, f"The graph of view '{name}'", dtype))
    if matrix.shape == (views.n_samples, views.n_samples):
        rows = views.rows(view)
        matrix = matrix[rows][:, rows]
    if matrix.shape != (n_rows, n_rows):
        raise InputError(
            f"The graph of view '{name}' must be {n_rows} × {n_rows} (the samples that have the view) or "
            f"{views.n_samples} × {views.n_samples} (all samples); got {matrix.shape[0]} × {matrix.shape[1]}."
        )
    if not np.isfinite(matrix.data).all() or (matrix.data < 0).any():
        raise InputError(
            f"The graph of view '{name}' must hold weights of at least 0 that are finite as {np.dtype(dtype)}; got "
            "negative, infinite or NaN ones."
        )
    matrix.eliminate_zeros()
    return matrix


def demand_edges(graphs: Sequence[sparse.csr_array], views: Views) -> None:
    """Refuse a view whose graph says nothing: its samples could only be placed by chance.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview import Views
    >>> from gapview.graph.knn import demand_edges, knn_graph
    >>> view = np.array([[0.0], [1.0], [3.0]])
    >>> demand_edges([knn_graph(view, 1)], Views([view]))
    """
    for name, graph in zip(views.names, graphs, strict=True):
        if not len(weights_of(graph)):
            raise InputError(
                f"The graph of view '{name}' has no edge between samples that have the view: it was given so, or fewer "
                "than 2 rows of the view are other than zero. Leave this view out."
            )


def modularity(graph: sparse.csr_array, labels: Array) -> float:
    """Return how much more weight lies inside groups than chance would put there (Newman and Girvan, 2004).

    Between −0.5 and 1; 0 if all samples are in one group.

    Parameters
    ----------
    graph : csr_array of shape (n_samples, n_samples)
        Non-negative weights.
    labels : array of shape (n_samples,)
        Group of every sample.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from gapview.graph import modularity
    >>> pairs = sparse.csr_array(np.kron(np.eye(2), [[0, 1], [1, 0]]))
    >>> modularity(pairs, np.array([0, 0, 1, 1]))
    0.5
    """
    _, groups = np.unique(labels, return_inverse=True)
    edges = graph.tocoo()
    total = float(edges.data.sum(dtype=np.float64))
    if total == 0:
        return 0.0
    inside = float(edges.data[groups[edges.row] == groups[edges.col]].sum(dtype=np.float64)) / total
    out = np.bincount(groups[edges.row], weights=edges.data, minlength=groups.max() + 1) / total
    into = np.bincount(groups[edges.col], weights=edges.data, minlength=groups.max() + 1) / total
    return inside - float(out @ into)


def mean_modularity(
    labelings: Sequence[Array], scaled: Sequence[Matrix], views: Views, n_neighbors: Sequence[int]
) -> Array:
    """Judge labellings of all samples by their modularity on the neighbour graph of each view, averaged over views.

    Views that fewer than two samples have say nothing and are left out.

    Parameters
    ----------
    labelings : sequence of arrays of shape (n_samples,)
        The labellings to judge.
    scaled : sequence of arrays or csr_arrays
        The present rows of every view, scaled.
    views : Views
        Says which samples the rows belong to.
    n_neighbors : sequence of int
        Neighbours of a sample in every view.

    Returns
    -------
    array of shape (n_labelings,)

    Examples
    --------
    >>> import numpy as np
    >>> from gapview import Views
    >>> from gapview.graph.knn import mean_modularity
    >>> views = Views([np.array([[0.0], [0.1], [5.0], [5.1]])])
    >>> mean_modularity([np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])], views.matrices, views, [1])
    array([ 0.5, -0.5])
    """
    values = []
    for k, (matrix, count) in enumerate(zip(scaled, n_neighbors, strict=True)):
        if matrix.shape[0] > 1:
            graph, rows = knn_graph(matrix, count), views.rows(k)
            values.append([modularity(graph, labels[rows]) for labels in labelings])
    if not values:
        raise InputError("Judging groups needs at least 2 samples that share a view; there are none.")
    return np.asarray(np.mean(values, axis=0))
