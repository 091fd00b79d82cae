"""How far it is to the nearest point that is no duplicate."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import pairwise_distances_chunked

from ...scaling import row_lengths, times_power
from ...utils.types import Array, Matrix
from .centering import stretch, within_reach


def distance_elsewhere(points: Matrix, queries: Matrix) -> Array:
    """Return for every query the distance to the nearest point in another place, infinite if there is none.

    Points that differ from the query by no more than rounding are in the same place.

    Parameters
    ----------
    points : matrix of shape (n_points, n_features)
        Where distances lead to.
    queries : matrix of shape (n_queries, n_features)
        Where they begin.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.graph.neighbors import distance_elsewhere
    >>> points = np.array([[0.0], [0.0], [3.0]])
    >>> distance_elsewhere(points, points)
    array([3., 3., 3.])
    """
    given = queries
    points, queries, exponent = within_reach(points, queries)
    # Rounding of the values themselves, and of the squares that the distances come from, which the root makes larger
    of_values = np.finfo(given.dtype).eps * row_lengths(times_power(given, -exponent))
    of_squares = np.sqrt(np.finfo(np.float64).eps) * row_lengths(queries)
    same = 10 * (of_values + of_squares)[:, None]

    def smallest(block: Array, start: int) -> Array:
        return np.asarray(np.where(block > same[start : start + len(block)], block, np.inf).min(axis=1))

    return stretch(np.concatenate(list(pairwise_distances_chunked(queries, points, reduce_func=smallest))), exponent)
