"""Imputation of missing views, for methods that need complete views."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ..utils.types import Array, Matrix
from ..views import Views
from ..views.cells import nearest_imputed


def mean_filled(scaled: list[Matrix], views: Views) -> list[Array]:
    """Return the views with every missing row replaced by the mean of the present rows.

    The mean is not scaled again, so filled rows are shorter than rows of unit length. The result is dense, since the
    mean of sparse rows is not sparse.

    Parameters
    ----------
    scaled : list of arrays or csr_arrays of shape (n_present, n_features)
        The present rows of every view.
    views : Views
        The samples that the rows belong to.

    Returns
    -------
    list of arrays of shape (n_samples, n_features)
        In sample order, in the type of the rows.
    """
    filled = []
    for k, matrix in enumerate(scaled):
        # float32 is not precise enough for the sum of many float32 rows
        mean = np.asarray(matrix.mean(axis=0, dtype=np.float64)).ravel()
        whole = np.empty((views.n_samples, matrix.shape[1]), dtype=matrix.dtype)
        whole[:] = mean
        whole[views.rows(k)] = _dense(matrix)
        filled.append(whole)
    return filled


def knn_filled(scaled: list[Matrix], views: Views, n_neighbors: int) -> Array:
    """Return the views side by side, missing ones imputed from the nearest samples that have them.

    Distances are computed on the views that two samples share. The missing features of a sample are the mean over its
    ``n_neighbors`` nearest samples that have the view; over fewer if it shares a view with fewer of them; and over all
    samples that have the view if it shares a view with none.

    Parameters
    ----------
    scaled : list of arrays or csr_arrays of shape (n_present, n_features)
        The present rows of every view.
    views : Views
        The samples that the rows belong to.
    n_neighbors : int
        Number of samples in the mean.

    Returns
    -------
    array of shape (n_samples, sum of n_features)
        In sample order.

    Notes
    -----
    Every incomplete sample is compared with all samples: the time grows with the square of their number, and the
    distances are held in pieces of scikit-learn's ``working_memory`` (1 GiB unless configured otherwise).
    """
    dtype = np.result_type(*(matrix.dtype for matrix in scaled))
    ends = np.cumsum(views.n_features)
    gapped = np.full((views.n_samples, int(ends[-1])), np.nan, dtype=dtype)
    for k, (matrix, end) in enumerate(zip(scaled, ends, strict=True)):
        gapped[views.rows(k), end - matrix.shape[1] : end] = _dense(matrix)
    return nearest_imputed(gapped, gapped, n_neighbors)


def _dense(matrix: Matrix) -> Array:
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)
