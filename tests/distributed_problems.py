"""Views for tests on a cluster: the same samples as arrays with rows of NaN, and as Dask collections."""

from __future__ import annotations

from typing import Any

import numpy as np

from gapview import Views
from gapview.datasets import hide_views


def three_views() -> Views:
    """Three views of which any may be missing, in groups that overlap: iterations have something to do."""
    rng = np.random.RandomState(0)
    centers = rng.normal(size=(4, 5))
    latent = centers[rng.randint(4, size=200)] + 0.6 * rng.normal(size=(200, 5))
    arrays = [latent @ rng.normal(size=(5, width)) + 0.8 * rng.normal(size=(200, width)) for width in (12, 3, 9)]
    return hide_views(Views(arrays), 0.4, random_state=1)


def written_out(views: Views) -> list[np.ndarray]:
    """Arrays over all samples, with rows of NaN where a view is missing."""
    arrays = []
    for k, matrix in enumerate(views.matrices):
        array = np.full((views.n_samples, matrix.shape[1]), np.nan, dtype=matrix.dtype)
        array[views.rows(k)] = matrix
        arrays.append(array)
    return arrays


def unevenly(arrays: list[np.ndarray], *shares: float) -> list[Any]:
    """Dask arrays whose blocks differ from view to view; those of the first are the shares given."""
    import dask.array as da

    n = len(arrays[0])
    edges = [0, *(int(share * n) for share in shares), n]
    rows = tuple(np.diff(edges).tolist())
    others = [da.from_array(array, chunks=(max(1, n // (2 + k)), 7)) for k, array in enumerate(arrays[1:])]
    widest = int(np.argmax([array.shape[1] for array in arrays]))
    collections = [da.from_array(arrays[0], chunks=(rows, -1)), *others]
    return [
        collection.rechunk((rows, collection.shape[1:])) if k == widest else collection
        for k, collection in enumerate(collections)
    ]
