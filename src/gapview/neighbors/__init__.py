"""Nearest neighbours behind one function."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import NearestNeighbors

from ..views import Array, Matrix

__all__ = ["nearest"]


def nearest(points: Matrix, n_neighbors: int, queries: Matrix | None = None) -> tuple[Array, Array]:
    """Find the nearest points by Euclidean distance, exactly.

    Parameters
    ----------
    points : array or csr_array of shape (n_points, n_features)
        Where to look.
    n_neighbors : int
        How many neighbours to find.
    queries : array or csr_array of shape (n_queries, n_features), optional
        Whose neighbours to find; by default those of the points themselves, none of which counts as its own.

    Returns
    -------
    distances, indices : arrays of shape (n_queries, n_neighbors)
        Nearest first.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.neighbors import nearest
    >>> nearest(np.array([[0.0], [1.0], [3.0]]), 1)[1].ravel()
    array([1, 0, 1])
    """
    # Trees do not pay in the many dimensions that views have; brute force goes through the matrix product.
    search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(points)
    distances, indices = search.kneighbors(queries)
    return np.asarray(distances), np.asarray(indices)
