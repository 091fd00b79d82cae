"""Steps of a fit whose results are recorded in its checkpoint."""

from __future__ import annotations

import numpy as np

from ..clusters import kmeans_rows
from ..persist.checkpoints import checkpointed
from ..utils.types import Array

__all__ = ["recorded_kmeans"]


def recorded_kmeans(
    points: Array, n_clusters: int, n_init: int, random_state: np.random.RandomState
) -> tuple[Array, Array]:
    """Run k-means, or take its result from the checkpoint of the fit."""
    return checkpointed("k-means", lambda: kmeans_rows(points, n_clusters, n_init, random_state), random_state)
