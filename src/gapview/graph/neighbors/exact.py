"""All distances, by scikit-learn."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.neighbors import NearestNeighbors

from ...compute import sharing_cores, without_helpers
from ...errors import GapviewWarning
from ...utils.types import Array, Matrix
from ...utils.warnings import warn_user
from .centering import stretch, within_reach

_WORTH_A_THREAD = 1e8  # operations below which threads wait for each other longer than they work
_N_TIMED = 200  # queries by which the time of all is foretold


def exact(points: Matrix, n_neighbors: int, queries: Matrix | None) -> tuple[Array, Array]:
    """Find the nearest points by computing all distances, block by block."""
    points, queries, exponent = within_reach(points, queries)
    n_queries = (points if queries is None else queries).shape[0]
    is_small = n_queries * points.shape[0] * points.shape[1] < _WORTH_A_THREAD
    with without_helpers() if is_small else sharing_cores():
        return _stretched(_all_pairs(points, n_neighbors).kneighbors(queries), exponent)


def exact_at_a_cost(points: Matrix, n_neighbors: int, queries: Matrix | None, reason: str) -> tuple[Array, Array]:
    """Search exactly beyond the size up to which nobody minds, after saying why and what it will cost."""
    points, queries, exponent = within_reach(points, queries)
    search = _all_pairs(points, n_neighbors)
    asked = points if queries is None else queries
    n_queries = asked.shape[0]
    begin = time.perf_counter()
    with sharing_cores():
        search.kneighbors(asked[:_N_TIMED])
    seconds = (time.perf_counter() - begin) * n_queries / min(_N_TIMED, n_queries)
    # scikit-learn keeps to its working memory; besides there are 16 bytes for every neighbour
    gibibytes = get_config()["working_memory"] / 2**10 + n_queries * n_neighbors / 2**26
    warn_user(
        f"The neighbours of {n_queries} samples among {points.shape[0]} are searched by computing all distances: this "
        f"will take about {duration(seconds)} and up to {gibibytes:.1f} GiB of memory. {reason}",
        GapviewWarning,
    )
    with sharing_cores():
        return _stretched(search.kneighbors(queries), exponent)


def _all_pairs(points: Matrix, n_neighbors: int) -> Any:
    # Trees do not pay in the many dimensions that views have; brute force goes through the matrix product.
    return NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(points)


def _stretched(found: tuple[Array, Array], exponent: int) -> tuple[Array, Array]:
    distances, indices = found
    return stretch(distances, exponent), np.asarray(indices)


def duration(seconds: float) -> str:
    """Return a time in words."""
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"
