"""k-NN graphs of single views, graphs given by the user, modularity, and codes averaged over neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse

from ..compute.arrays import csr, host, is_tensor, like
from ..compute.tensor_graph import TensorGraph, symmetric_links
from ..errors import InputError, ParameterError
from ..scaling import row_lengths
from ..utils.messages import check_integer
from ..utils.types import Array, Matrix
from ..views import SampleCounts, Views
from ..views.checks import one_per_view, real_matrix
from .neighbors import Search, nearest

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


def resolve_n_neighbors(n_neighbors: int | str, views: SampleCounts, n_clusters: int) -> list[int]:
    """Return the number of neighbours in every view: a number, or the rule limited by the size of the view."""
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

    If all other rows have unit length, a row of zeros has no direction and gets no edge. If there are fewer than
    ``n_neighbors`` other rows, all of them are neighbours. The graph is a csr_array; for tensors, a sparse tensor.

    Parameters
    ----------
    matrix : array or csr_array of shape (n_rows, n_features)
        The rows, scaled.
    n_neighbors : int
        Neighbours of every row.
    search : Search, optional
        Settings of the search for neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.graph import knn_graph
    >>> knn_graph(np.array([[0.0], [1.0], [3.0]]), 1).toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    check_integer("n_neighbors", n_neighbors, low=0)
    n_rows, rows = matrix.shape[0], comparable_rows(matrix)
    n_neighbors = min(n_neighbors, len(rows) - 1)
    if n_neighbors < 1:
        nothing = array_namespace(rows).zeros_like(rows[:0], dtype=matrix.dtype)
        return csr(rows[:0], rows[:0], nothing, (n_rows, n_rows))
    if len(rows) == n_rows:
        return symmetric_graph(rows, nearest(matrix, n_neighbors, search=search)[1], n_rows, matrix.dtype)
    found = nearest(matrix[rows], n_neighbors, search=search)[1]
    return symmetric_graph(rows, rows[found], n_rows, matrix.dtype)


def symmetric_graph(origins: Array, ends: Array, n_rows: int, dtype: Any) -> Any:
    """Build the graph with an edge of weight 1, in both directions, between every origin and the ends in its row.

    Parameters
    ----------
    origins : int array of shape (n_origins,)
        Rows of the graph, in ascending order.
    ends : int array of shape (n_origins, n_ends)
        The rows to link with each of them; may be sorted in place.
    n_rows : int
        Size of the graph.
    dtype : dtype
        Type of the weights.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.graph.knn import symmetric_graph
    >>> symmetric_graph(np.array([0, 2]), np.array([[1], [0]]), 3, np.float64).toarray()
    array([[0., 1., 1.],
           [1., 0., 0.],
           [1., 0., 0.]])
    """
    shape = (n_rows, n_rows)
    if is_tensor(ends):
        return symmetric_links(origins, ends, n_rows, dtype)
    # Edges stay in rows and weigh a byte each: a list of both ends of all edges would take several times the memory
    index = sparse.get_index_dtype(maxval=max(n_rows, 2 * ends.size))
    starts = np.zeros(n_rows + 1, dtype=index)
    starts[origins + 1] = ends.shape[1]
    columns = ends.astype(index, copy=False).ravel()
    directed = sparse.csr_array((np.ones(ends.size, dtype=np.int8), columns, starts.cumsum(dtype=index)), shape=shape)
    directed.sort_indices()
    links = directed + directed.T.tocsr()
    return sparse.csr_array((np.ones(links.nnz, dtype=dtype), links.indices, links.indptr), shape=shape)


def graph_of_edges(rows: Array, columns: Array, shape: tuple[int, int], dtype: Any) -> Any:
    """Build the graph with weight 1 for every edge, which may be listed more than once.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.graph.knn import graph_of_edges
    >>> graph_of_edges(np.array([1, 0, 1]), np.array([0, 2, 0]), (2, 3), np.float64).toarray()
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    xp = array_namespace(rows)
    width = max(shape[1], 1)
    keys = xp.unique_values(rows * width + columns)
    return csr(keys // width, keys % width, xp.ones_like(keys, dtype=dtype), shape)


def comparable_rows(matrix: Matrix, reference: Matrix | None = None, *, is_unit: bool | None = None) -> Array:
    """Return the rows that can be compared with the rows of ``reference``, by default those of the matrix itself.

    These are all rows, but no rows of zeros if the rows of ``reference`` have unit length. A row of zeros lies at
    distance 1 from every unit row, nearer than any at more than 60 degrees, so that it would be among the neighbours of
    most rows. ``is_unit`` tells whether they have, where the matrix is a block of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.graph.knn import comparable_rows
    >>> comparable_rows(np.array([[1.0, 0.0], [0.0, 0.0], [0.6, 0.8]]))
    array([0, 2])
    """
    lengths = row_lengths(matrix)
    xp = array_namespace(lengths)
    if is_unit is None:
        is_unit = _are_unit(lengths) if reference is None else has_unit_rows(reference)
    if is_unit:
        return xp.nonzero(lengths > 0)[0]  # type: ignore[no-any-return]
    return xp.arange(matrix.shape[0], device=lengths.device)  # type: ignore[no-any-return]


def has_unit_rows(matrix: Matrix) -> bool:
    """Return whether all rows but those of zeros have unit length."""
    return _are_unit(row_lengths(matrix))


def _are_unit(lengths: Array) -> bool:
    xp = array_namespace(lengths)
    return bool(xp.all((lengths <= 0) | (xp.abs(lengths - 1) <= _UNIT_LENGTH_TOLERANCE)))


def user_graphs(graph: Any, views: SampleCounts, mask: Array, dtype: Any) -> list[sparse.csr_array]:
    """Check the graphs of a user, over the present samples of a view or over all samples, and return them.

    ``mask`` tells which samples have each view.
    """
    expected = (
        f"graph must be None or one square matrix of weights for each of the {views.n_views} views, in a list or in a "
        "dict with the names of the views"
    )
    graphs = zip(views.names, one_per_view(graph, views, expected), mask.T, strict=True)
    return [_user_graph(name, weights, np.flatnonzero(present), len(mask), dtype) for name, weights, present in graphs]


def _user_graph(name: str, weights: Any, rows: Array, n_samples: int, dtype: Any) -> sparse.csr_array:
    matrix = sparse.csr_array(real_matrix(weights, f"The graph of view '{name}'", dtype))
    if matrix.shape == (n_samples, n_samples):
        matrix = matrix[rows][:, rows]
    if matrix.shape != (len(rows), len(rows)):
        raise InputError(
            f"The graph of view '{name}' must be {len(rows)} × {len(rows)} (the samples that have the view) or "
            f"{n_samples} × {n_samples} (all samples); got {matrix.shape[0]} × {matrix.shape[1]}."
        )
    if not np.isfinite(matrix.data).all() or (matrix.data < 0).any():
        raise InputError(
            f"The graph of view '{name}' must hold weights of at least 0 that are finite as {np.dtype(dtype)}; got "
            "negative, infinite or NaN ones."
        )
    matrix.eliminate_zeros()
    return matrix


def check_edges(n_edges: Sequence[int], names: Sequence[str]) -> None:
    """Check that the graph of every view has edges; without any, the codes of its samples would be arbitrary.

    Parameters
    ----------
    n_edges : sequence of int
        Number of edges of the graph of every view.
    names : sequence of str
        Names of the views.

    Examples
    --------
    >>> from gapview.graph.knn import check_edges
    >>> check_edges([4, 2], ["blood", "scan"])
    """
    for name, count in zip(names, n_edges, strict=True):
        if not count:
            raise InputError(
                f"The graph of view '{name}' has no edge between samples that have the view: the given graph has none, "
                "or fewer than 2 rows of the view are other than zero. Leave this view out."
            )


def modularity(graph: sparse.csr_array, labels: Array) -> float:
    """Return the share of the weight inside groups minus its expectation by chance (Newman and Girvan, 2004).

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
    return float(_modularities(graph, [np.unique(labels, return_inverse=True)[1]])[0])


def _modularities(graph: sparse.csr_array, labelings: Sequence[Array]) -> Array:
    edges = graph.tocoo()
    out, into = (np.asarray(graph.sum(axis=axis, dtype=np.float64)).ravel() for axis in (1, 0))
    total = float(out.sum())
    if total == 0:
        return np.zeros(len(labelings))
    found = []
    for labels in labelings:
        inside = float(edges.data @ (labels[edges.row] == labels[edges.col]).astype(np.float64))
        of_groups = np.bincount(labels, weights=out) @ np.bincount(labels, weights=into)
        found.append(inside / total - float(of_groups) / total**2)
    return np.array(found)


def modularities(graph: Any, labelings: Sequence[Array]) -> Array:
    """Return the modularity of labellings on a symmetric graph; on a device for one of tensors, all at once.

    Parameters
    ----------
    graph : csr_array or TensorGraph of shape (n_samples, n_samples)
        Non-negative weights.
    labelings : sequence of int arrays of shape (n_samples,)
        The labellings, with groups counted from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from gapview.graph.knn import modularities
    >>> pairs = sparse.csr_array(np.kron(np.eye(2), [[0, 1], [1, 0]]))
    >>> modularities(pairs, [np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])])
    array([ 0.5, -0.5])
    """
    if not isinstance(graph, TensorGraph):
        return _modularities(graph, labelings)
    starts = np.cumsum([0, *(int(labels.max()) + 1 for labels in labelings)])
    columns = np.stack([labels + begin for labels, begin in zip(labelings, starts[:-1], strict=True)], axis=1)
    values = graph.values
    belongs = values.new_zeros((graph.shape[0], int(starts[-1])))
    belongs.scatter_(1, like(columns.astype(np.int64), values), 1)
    degrees = graph @ values.new_ones(graph.shape[0])
    xp = array_namespace(values)
    inside = xp.sum(belongs * (graph @ belongs), axis=0, dtype=xp.float64)
    of_groups = xp.sum(belongs * degrees[:, None], axis=0, dtype=xp.float64)
    found = host(xp.stack([inside, of_groups]))
    inside, of_groups = (np.add.reduceat(each, starts[:-1]) for each in (found[0], found[1] ** 2))
    total = found[1][: starts[1]].sum()
    return inside / total - of_groups / total**2 if total else np.zeros(len(labelings))


def mean_modularity(
    labelings: Sequence[Array], scaled: Sequence[Matrix], views: Views, n_neighbors: Sequence[int]
) -> Array:
    """Return the modularity of labellings of all samples on the neighbour graph of each view, averaged over views.

    Views that fewer than two samples have are skipped.

    Parameters
    ----------
    labelings : sequence of arrays of shape (n_samples,)
        The labellings.
    scaled : sequence of arrays or csr_arrays
        The present rows of every view, scaled.
    views : Views
        The samples that the rows belong to.
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
            values.append(modularities(graph, [labels[rows] for labels in labelings]))
    if not values:
        raise InputError("Modularity needs at least 2 samples that share a view; there are none.")
    return np.asarray(np.mean(values, axis=0))


def mean_neighbor_codes(
    scaled: Sequence[Matrix],
    views: Views,
    codes: Array,
    new_scaled: Sequence[Matrix],
    new_views: Views,
    n_neighbors: Sequence[int],
    view_weights: Sequence[float],
) -> Array:
    """Return the mean code of the neighbours of new samples, averaged over the views in which they have any.

    Parameters
    ----------
    scaled, new_scaled : sequences of arrays or csr_arrays
        The present rows of every view, with the same scaling: of the samples with codes, and of the new ones.
    views, new_views : Views
        The samples that the rows belong to.
    codes : array of shape (n_samples, n_components)
        The codes.
    n_neighbors : sequence of int
        Neighbours to average in every view.
    view_weights : sequence of float
        Weights of the views in the average.

    Returns
    -------
    array of shape (n_new, n_components)
        Zero for samples whose rows have no direction.
    """
    total = np.zeros((new_views.n_samples, codes.shape[1]), dtype=codes.dtype)
    weight_found = np.zeros(new_views.n_samples, dtype=codes.dtype)
    for k, (points, queries) in enumerate(zip(scaled, new_scaled, strict=True)):
        usable, comparable = comparable_rows(points), comparable_rows(queries, points)
        count = min(max(n_neighbors[k], 1), len(usable))
        if not count or not len(comparable):
            continue
        _, found = nearest(points[usable], count, queries[comparable])
        rows = new_views.rows(k)[comparable]
        weight = codes.dtype.type(view_weights[k])
        total[rows] += weight * codes[views.rows(k)[usable][found]].mean(axis=1)
        weight_found[rows] += weight
    return np.asarray(total / np.where(weight_found > 0, weight_found, 1)[:, None])
