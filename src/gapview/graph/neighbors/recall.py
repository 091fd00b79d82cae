"""How many of the true neighbours a search finds, judged on a sample of the queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...utils.types import Array, Matrix
from .exact import exact
from .pairs import nearest_listed, pair_distances

N_SAMPLED = 500
TIE = 1e-6  # relative difference up to which a distance is the same


def sampled_rows(n_queries: int, seed: int) -> Array:
    """Choose the queries on which a search is judged."""
    chosen = np.random.RandomState(seed).choice(n_queries, min(N_SAMPLED, n_queries), replace=False)
    return np.sort(chosen)


@dataclass(frozen=True)
class Sample:
    """Some queries, and how far the last of their true neighbours is."""

    rows: Array
    reach: Array

    def hits(self, distances: Array) -> Array:
        """Return for every query the share of its neighbours found, given the distances of what was found.

        Whatever is no farther than the last true neighbour counts, so that it does not matter which of several points
        at the same distance were found.
        """
        return np.asarray((distances <= self.reach[:, None] * (1 + TIE)).mean(axis=1))


def draw_sample(points: Matrix, n_neighbors: int, queries: Matrix | None, exponent: int, seed: int) -> Sample:
    """Choose queries and search their neighbours exactly."""
    rows = sampled_rows((points if queries is None else queries).shape[0], seed)
    asked = (points if queries is None else queries)[rows]
    _, indices = exact(points, n_neighbors + (queries is None), asked)
    distances = pair_distances(points, asked, indices, exponent)
    own = rows if queries is None else None
    return Sample(rows, nearest_listed(distances, indices, n_neighbors, own)[0][:, -1])


def surely(hits: Array) -> float:
    """Return a recall that the true one hardly falls short of: two standard errors below the mean of the sample."""
    return float(hits.mean() - 2 * hits.std() / np.sqrt(len(hits)))


def cells_needed(ordered: Array, cells_of_true: Array, recall: float) -> int | None:
    """Return how many cells to search so that enough true neighbours are in them; None if more than half.

    ``ordered`` holds all cells for every query, nearest first; ``cells_of_true`` the cells of its true neighbours.
    """
    ranks = np.take_along_axis(ordered.argsort(axis=1), cells_of_true, axis=1)
    n_cells = ordered.shape[1]
    return next((n for n in range(1, n_cells // 2 + 1) if surely((ranks < n).mean(axis=1)) >= recall), None)
