"""Across the bridge: where new samples belong, and what missing views look like, by the neighbours in other views."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from ..scaling import times_power
from ..utils.types import Array, Matrix
from ..views import Views
from .donors import KnownRows, judged_samples, nearest_sources, neighbor_means, slope_of
from .knn import comparable_rows, rows_with_a_place
from .neighbors import nearest

__all__ = ["codes_from_neighbors", "rows_from_neighbors"]


def codes_from_neighbors(
    scaled: Sequence[Matrix],
    views: Views,
    codes: Array,
    new_scaled: Sequence[Matrix],
    new_views: Views,
    n_neighbors: Sequence[int],
    view_weights: Sequence[float],
) -> Array:
    """Give new samples the mean code of their neighbours, averaged over the views in which they have any.

    Parameters
    ----------
    scaled, new_scaled : sequences of arrays or csr_arrays
        The present rows of every view, scaled alike: of the samples with codes, and of the new ones.
    views, new_views : Views
        Say which samples the rows belong to.
    codes : array of shape (n_samples, n_components)
        What is known of the samples.
    n_neighbors : sequence of int
        Neighbours to average in every view.
    view_weights : sequence of float
        How much every view counts.

    Returns
    -------
    array of shape (n_new, n_components)
        Zero for samples whose rows have no direction.
    """
    total = np.zeros((new_views.n_samples, codes.shape[1]), dtype=codes.dtype)
    weight_found = np.zeros(new_views.n_samples, dtype=codes.dtype)
    for k, (known, asked) in enumerate(zip(scaled, new_scaled, strict=True)):
        usable = comparable_rows(known)
        asking = rows_with_a_place(asked, known)
        count = min(max(n_neighbors[k], 1), len(usable))
        if not count or not len(asking):
            continue
        _, found = nearest(known[usable], count, asked[asking])
        rows = new_views.rows(k)[asking]
        weight = codes.dtype.type(view_weights[k])
        total[rows] += weight * codes[views.rows(k)[usable][found]].mean(axis=1)
        weight_found[rows] += weight
    return np.asarray(total / np.where(weight_found > 0, weight_found, 1)[:, None])


def rows_from_neighbors(
    views: Views, view: int, tables: Sequence[KnownRows], new_views: Views, asking: Sequence[KnownRows], nearby: Matrix
) -> Matrix:
    """Recover the missing rows of one view from near samples that have it.

    Near are those by the views shared and, in ``nearby``, those in the latent space: each sees what the other misses,
    so that the mean of both errs less than either. It is drawn to the mean of the view by as much as such recovery
    falls short on rows that are there; a sparse view is drawn to zero instead, and stays sparse.

    Parameters
    ----------
    views : Views
        The training samples, in the units of the data.
    view : int
        The view to recover.
    tables : sequence of KnownRows
        The rows of every view of the training samples, scaled.
    new_views : Views
        The samples that lack the view, among others.
    asking : sequence of KnownRows
        Their rows; ``tables`` itself if they are training samples.
    nearby : array or csr_array of shape (n_lacking, n_features)
        For every sample that lacks the view, the mean of those near in the latent space, in the units of the data.

    Returns
    -------
    array or csr_array of shape (n_lacking, n_features)
        In the units of the data.
    """
    raw, position = views.matrices[view], np.full(views.n_samples, -1)
    if power := _beyond_differences(raw):
        raw, nearby = times_power(raw, -power), times_power(nearby, -power)
    position[views.rows(view)] = np.arange(raw.shape[0])
    center = 0.0 if sparse.issparse(raw) else raw.mean(axis=0, dtype=np.float64).astype(raw.dtype)
    slope = raw.dtype.type(_judged_slope(raw, center, position, view, tables))
    lacking = np.flatnonzero(~new_views.mask[:, view])
    shared, possible = neighbor_means(raw, position, nearest_sources(tables, view, asking, lacking))
    if sparse.issparse(raw):
        share = sparse.diags_array(np.where(possible, 0.5, 1.0).astype(raw.dtype))
        return sparse.csr_array((share @ nearby + shared * raw.dtype.type(0.5)) * slope)
    both = np.where(possible[:, None], (nearby + shared) / 2, nearby)
    recovered = np.asarray(center + slope * (both - center))
    return times_power(recovered, power) if power else recovered


def _beyond_differences(raw: Matrix) -> int:
    """Say by which power of 2 to divide values so large that their differences would not be finite; mostly 0."""
    limit = np.finfo(raw.dtype).max
    return 3 if not sparse.issparse(raw) and max(raw.max(initial=0), -raw.min(initial=0)) > limit / 8 else 0


def _judged_slope(raw: Matrix, center: Array | float, position: Array, view: int, tables: Sequence[KnownRows]) -> float:
    """Recover rows that are there, and say by how much of what is expected of them they differ from the centre."""
    judged = judged_samples(tables[view])
    expected, judgeable = neighbor_means(raw, position, nearest_sources(tables, view, tables, judged))
    actual = raw[position[judged]]
    if sparse.issparse(raw):
        # Where nothing can judge, nothing is drawn: rows of zeros would say more than is known
        return slope_of(expected[judgeable], actual[judgeable]) if judgeable.any() else 1.0
    return slope_of((expected - center)[judgeable], (actual - center)[judgeable])
