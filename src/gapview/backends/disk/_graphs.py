"""Graphs of many samples in little memory: the same as :mod:`gapview.graph.knn` and :mod:`gapview.graph.bridges` make.

Those list every edge with both its ends in 64 bits and sort the list, which takes several times the graph itself. Here
edges stay in rows, and weights are changed in place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse

from ...graph.bridges import degree_roots
from ...utils.types import Array

__all__ = ["link_rows", "united"]


def link_rows(rows: Array, found: Array, n_rows: int, dtype: Any) -> sparse.csr_array:
    """Build the graph of :func:`gapview.graph.knn.symmetric_graph` from neighbours in ascending order.

    Parameters
    ----------
    rows : int array of shape (n_origins,)
        The rows that neighbours were sought for, in ascending order.
    found : int32 array of shape (n_origins, n_neighbors)
        Places of the neighbours in ``rows``, ascending in every row.
    n_rows : int
        Size of the graph.
    dtype : dtype
        Type of the weights.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.backends.disk._graphs import link_rows
    >>> link_rows(np.array([0, 2, 3]), np.array([[1], [0], [1]], dtype=np.int32), 4, np.float64).toarray()
    array([[0., 0., 1., 0.],
           [0., 0., 0., 0.],
           [1., 0., 0., 1.],
           [0., 0., 1., 0.]])
    """
    if len(rows) < n_rows:
        found = rows.astype(found.dtype)[found]
    counts = np.zeros(n_rows + 1, dtype=np.int32 if found.size < 2**30 else np.int64)
    counts[rows + 1] = found.shape[1]
    shape, ones = (n_rows, n_rows), np.ones(found.size, dtype=np.int8)
    there = sparse.csr_array((ones, found.ravel(), counts.cumsum(dtype=counts.dtype)), shape=shape)
    links = there + there.T.tocsr()
    return sparse.csr_array((np.ones(links.nnz, dtype=dtype), links.indices, links.indptr), shape=shape)


def united(parts: Iterable[tuple[sparse.csr_array, Array, float]], n_samples: int) -> sparse.csr_array:
    """Add up the normalised graphs of the views over all samples, and normalise; see :mod:`gapview.graph.bridges`.

    Parameters
    ----------
    parts : iterable of (csr_array, int array, float)
        For every view its graph, which is used up, the samples that its rows belong to, and its weight. Best made one
        after the other, so that no two are there at once.
    n_samples : int
        Number of all samples.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from gapview.backends.disk._graphs import united
    >>> pair = sparse.csr_array(np.array([[0.0, 4.0], [4.0, 0.0]]))
    >>> united([(pair, np.array([0, 2]), 1.0)], 3).toarray()
    array([[0., 0., 1.],
           [0., 0., 0.],
           [1., 0., 0.]])
    """
    total = None
    for graph, whose, weight in parts:
        _normalize(graph)
        graph.data *= weight
        counts = np.zeros(n_samples + 1, dtype=graph.indptr.dtype)
        counts[whose + 1] = np.diff(graph.indptr)
        spread = whose.astype(graph.indices.dtype)[graph.indices], counts.cumsum(dtype=counts.dtype)
        placed = sparse.csr_array((graph.data, *spread), shape=(n_samples, n_samples))
        total = placed if total is None else total + placed
    assert total is not None
    _normalize(total)
    return total


def _normalize(graph: sparse.csr_array) -> None:
    """Divide every weight by the roots of the degrees of its two ends, in place."""
    divisors = degree_roots(graph @ np.ones(graph.shape[0], dtype=graph.dtype))
    graph.data /= np.repeat(divisors, np.diff(graph.indptr))
    graph.data /= divisors[graph.indices]
