"""Exact nearest neighbours by scikit-learn, and the recall of other searches measured against them on a sample."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.neighbors import NearestNeighbors

from ...compute.engine import on_free_cores, single_threaded
from ...utils.messages import duration, warn_user
from ...utils.types import Array, Matrix
from .distances import conditioned, nearest_listed, pair_distances, scaled_back

_WORTH_A_THREAD = 1e8  # operations below which several threads are slower than one
_N_TIMED = 200  # queries from which the time of all is estimated
N_SAMPLED = 500  # queries on which the recall is estimated
TIE = 1e-6  # relative difference up to which two distances count as equal


def exact(points: Matrix, n_neighbors: int, queries: Matrix | None) -> tuple[Array, Array]:
    """Return distances and indices of the nearest points, from all distances, block by block."""
    points, queries, exponent = conditioned(points, queries)
    n_queries = (points if queries is None else queries).shape[0]
    is_small = n_queries * points.shape[0] * points.shape[1] < _WORTH_A_THREAD
    with single_threaded() if is_small else on_free_cores():
        distances, indices = _brute_force(points, n_neighbors).kneighbors(queries)
    return scaled_back(distances, exponent), indices


def exact_with_warning(points: Matrix, n_neighbors: int, queries: Matrix | None, reason: str) -> tuple[Array, Array]:
    """Return what :func:`exact` does, after a warning with the expected time and memory and the reason."""
    points, queries, exponent = conditioned(points, queries)
    search = _brute_force(points, n_neighbors)
    asked = points if queries is None else queries
    n_queries = asked.shape[0]
    begin = time.perf_counter()
    with on_free_cores():
        search.kneighbors(asked[:_N_TIMED])
    seconds = (time.perf_counter() - begin) * n_queries / min(_N_TIMED, n_queries)
    # The working memory of scikit-learn, and 16 bytes for every neighbour
    gibibytes = get_config()["working_memory"] / 2**10 + n_queries * n_neighbors / 2**26
    warn_user(
        f"The neighbours of {n_queries} samples among {points.shape[0]} are searched by computing all distances: this "
        f"will take about {duration(seconds)} and up to {gibibytes:.1f} GiB of memory. {reason}"
    )
    with on_free_cores():
        distances, indices = search.kneighbors(queries)
    return scaled_back(distances, exponent), indices


def _brute_force(points: Matrix, n_neighbors: int) -> Any:
    # Trees are slow in the many dimensions that views have; brute force uses matrix products
    return NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(points)


@dataclass(frozen=True)
class RecallSample:
    """Some of the queries, and the distance of their last true neighbour."""

    rows: Array
    radius: Array

    def hits(self, distances: Array) -> Array:
        """Return the share of true neighbours among the points found for every query, given their distances.

        Points no farther than the last true neighbour count, so that ties are hits.
        """
        return np.asarray((distances <= self.radius[:, None] * (1 + TIE)).mean(axis=1))


def sampled_rows(n_queries: int, seed: int) -> Array:
    """Return the queries on which the recall is estimated, in ascending order."""
    chosen = np.random.RandomState(seed).choice(n_queries, min(N_SAMPLED, n_queries), replace=False)
    return np.sort(chosen)


def recall_sample(points: Matrix, n_neighbors: int, queries: Matrix | None, exponent: int, seed: int) -> RecallSample:
    """Draw some of the queries and search their neighbours exactly."""
    asked = points if queries is None else queries
    rows = sampled_rows(asked.shape[0], seed)
    drawn = asked[rows]
    _, indices = exact(points, n_neighbors + (queries is None), drawn)
    distances = pair_distances(points, drawn, indices, exponent)
    own = rows if queries is None else None
    return RecallSample(rows, nearest_listed(distances, indices, n_neighbors, own)[0][:, -1])


def recall_lower_bound(hits: Array) -> float:
    """Return the mean share of hits minus two standard errors."""
    return float(hits.mean() - 2 * hits.std() / np.sqrt(len(hits)))


def fewest_probes(ordered: Array, cells_of_true: Array, recall: float) -> int | None:
    """Return how many cells to search so that the recall is reached, or None if more than half of them are needed.

    Parameters
    ----------
    ordered : int array of shape (n_sampled, n_cells)
        All cells for every sampled query, nearest first.
    cells_of_true : int array of shape (n_sampled, n_neighbors)
        The cells of its true neighbours.
    recall : float
        Share of the true neighbours to find.
    """
    ranks = np.take_along_axis(ordered.argsort(axis=1), cells_of_true, axis=1)
    enough = (n for n in range(1, ordered.shape[1] // 2 + 1) if recall_lower_bound((ranks < n).mean(axis=1)) >= recall)
    return next(enough, None)
