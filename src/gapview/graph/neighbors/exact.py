"""Exact nearest neighbours of arrays by scikit-learn."""

from __future__ import annotations

from sklearn.neighbors import NearestNeighbors

from ...compute import on_free_cores, single_threaded
from ...utils.types import Array, Matrix
from .distances import conditioned, scaled_back

_WORTH_A_THREAD = 1e8  # operations below which several threads are slower than one


def exact(points: Matrix, n_neighbors: int, queries: Matrix | None) -> tuple[Array, Array]:
    """Return distances and indices of the nearest points, from all distances, block by block."""
    points, queries, exponent = conditioned(points, queries)
    n_queries = (points if queries is None else queries).shape[0]
    is_small = n_queries * points.shape[0] * points.shape[1] < _WORTH_A_THREAD
    # Trees are slow in the many dimensions that views have; brute force uses matrix products
    search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(points)
    with single_threaded() if is_small else on_free_cores():
        distances, indices = search.kneighbors(queries)
    return scaled_back(distances, exponent), indices
