"""Filling in missing views, for methods that know no gaps."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.impute import KNNImputer

from ..utils.types import Array, Matrix
from ..views import Views
from ..views.cells import unit_for_squares

__all__ = ["knn_filled", "mean_filled"]


def mean_filled(scaled: list[Matrix], views: Views) -> list[Array]:
    """Put the mean of the present rows of a view into each of its missing rows.

    The mean is not scaled again, so that filled rows are shorter than rows of unit length. The result is dense: the
    mean of sparse rows is not sparse.

    Parameters
    ----------
    scaled : list of arrays or csr_arrays of shape (n_present, n_features)
        The present rows of every view.
    views : Views
        Says which samples the rows belong to.

    Returns
    -------
    list of arrays of shape (n_samples, n_features)
        In sample order, in the type of the rows.
    """
    filled = []
    for k, matrix in enumerate(scaled):
        # Thousands of float32 rows add up to less than float32 can tell apart
        mean = np.asarray(matrix.mean(axis=0, dtype=np.float64)).ravel()
        whole = np.empty((views.n_samples, matrix.shape[1]), dtype=matrix.dtype)
        whole[:] = mean
        whole[views.rows(k)] = _dense(matrix)
        filled.append(whole)
    return filled


def knn_filled(scaled: list[Matrix], views: Views, n_neighbors: int) -> Array:
    """Put the views side by side and fill missing ones from the nearest samples that have them.

    Nearness is measured on the views that two samples share. The missing features of a sample become the mean over its
    ``n_neighbors`` nearest samples that have the view; over fewer where it shares a view with fewer of them; and the
    mean over all samples that have the view where it shares a view with none.

    Parameters
    ----------
    scaled : list of arrays or csr_arrays of shape (n_present, n_features)
        The present rows of every view.
    views : Views
        Says which samples the rows belong to.
    n_neighbors : int
        How many samples are averaged.

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
    unit = unit_for_squares(gapped)
    filled = KNNImputer(n_neighbors=n_neighbors).fit_transform(np.ldexp(gapped, -unit) if unit else gapped)
    return np.asarray(np.ldexp(filled, unit) if unit else filled)


def _dense(matrix: Matrix) -> Array:
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)
