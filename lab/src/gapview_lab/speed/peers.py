"""Other methods of the scale benchmark, which take arrays with rows of NaN as the estimators of gapview do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.cluster import MiniBatchKMeans

from gapview.scaling import scale_views
from gapview.utils.types import Array
from gapview.views import Views

from ..league.rivals import EEIMVC, NEMO, PIMVC, Rival

__all__ = ["PEERS", "MeanMiniBatch", "OfPackage"]


class MeanMiniBatch:
    """Missing rows become the mean of their view; then MiniBatchKMeans on the views side by side.

    Parameters
    ----------
    n_clusters : int
        Number of groups.
    random_state : int, optional
        Seed.
    """

    labels_: Array

    def __init__(self, n_clusters: int, random_state: int | None = None) -> None:
        self.n_clusters, self.random_state = n_clusters, random_state

    def fit(self, arrays: Sequence[Array]) -> Self:
        """Find groups among the samples."""
        views = Views(arrays)
        scaled, _ = scale_views(views, "unit")
        ends = np.cumsum(views.n_features).tolist()
        filled = np.empty((views.n_samples, ends[-1]), dtype=scaled[0].dtype)
        for k, (rows, end) in enumerate(zip(scaled, ends, strict=True)):
            own = filled[:, end - rows.shape[1] : end]
            own[:] = rows.mean(axis=0)
            own[views.rows(k)] = rows
        clustering = MiniBatchKMeans(self.n_clusters, n_init=20, random_state=self.random_state)
        self.labels_ = clustering.fit(filled).labels_
        return self


class OfPackage:
    """A rival of the league, for arrays."""

    labels_: Array

    def __init__(self, kind: type[Rival], n_clusters: int, **settings: Any) -> None:
        self._rival = kind(n_clusters, **settings)

    def fit(self, arrays: Sequence[Array]) -> Self:
        """Find groups among the samples."""
        self.labels_ = self._rival.fit(Views(arrays)).labels_
        return self


PEERS = {kind.__name__: kind for kind in (NEMO, PIMVC, EEIMVC)}
