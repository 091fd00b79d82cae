"""From a representation of the samples to labels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from ._warnings import warn_user
from .errors import GapviewWarning, SolutionError
from .scaling import unit_rows
from .views import Array

__all__ = ["Clustering", "cluster_rows"]

N_RESTARTS = 20


@dataclass(frozen=True)
class Clustering:
    """Labels of the samples and centres of the groups, in the space the clustering was made in."""

    labels: Array
    centers: Array


def cluster_rows(
    embedding: Array,
    n_clusters: int,
    random_state: np.random.RandomState,
    *,
    normalize: bool = True,
    n_init: int = N_RESTARTS,
) -> Clustering:
    """Run k-means with restarts on the rows of a representation, scaled to unit length unless told otherwise.

    Raises
    ------
    SolutionError
        If the representation is zero everywhere, or not finite.
    """
    if not np.isfinite(embedding).all():
        raise SolutionError("The representation of the samples is not finite; check the scale of the data.")
    if not embedding.any():
        raise SolutionError(
            "The representation of every sample is zero: a penalty has shrunk all codes away. Lower its weight "
            "(sparsity_weight, where the method has one)."
        )
    n_empty = int((~embedding.any(axis=1)).sum())
    if normalize and n_empty:  # a row without a direction; where rows are not normalised, zero is a place like others
        warn_user(
            f"{n_empty} sample(s) have a representation of nothing but zeros, so that the group they are in means "
            "nothing: rows of zeros have no neighbours and no codes, or a penalty has shrunk their codes away.",
            GapviewWarning,
        )
    # Divided by the largest value, so that squares of huge or tiny numbers stay finite
    size = 1.0 if normalize else float(np.abs(embedding).max())
    points = unit_rows(embedding) if normalize else embedding / embedding.dtype.type(size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said below in words about samples and clusters
        fitted = KMeans(n_clusters, n_init=n_init, random_state=random_state).fit(points)
    labels = np.asarray(fitted.labels_)
    n_found = len(np.unique(labels))
    if n_found < n_clusters:
        warn_user(
            f"Only {n_found} distinct groups were found where n_clusters={n_clusters} were asked for: the samples "
            "have too few distinct representations.",
            GapviewWarning,
        )
    return Clustering(labels, np.asarray(fitted.cluster_centers_ * size))
