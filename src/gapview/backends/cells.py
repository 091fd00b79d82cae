"""Cells of near rows, around centres found by k-means on a sample of the rows."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from ..utils.types import Array

_N_ITERATIONS = 10


def cell_centers(rows: Array, n_cells: int, seed: int) -> Array:
    """Return the centres of cells; ``rows``, the sample, may be overwritten."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # if rows repeat, some cells stay empty, without harm
        settings = {"init": "random", "n_init": 1, "max_iter": _N_ITERATIONS, "random_state": seed}
        return np.asarray(KMeans(n_cells, copy_x=False, **settings).fit(rows).cluster_centers_)
