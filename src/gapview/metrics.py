"""Scores of a clustering against known groups, as the paper computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from .errors import InputError
from .views import Array

__all__ = ["clustering_accuracy", "clustering_scores", "purity"]


def clustering_scores(y_true: Any, y_pred: Any) -> dict[str, float]:
    """Compare a clustering with known groups.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Known groups and found labels; the names of the groups do not matter.

    Returns
    -------
    dict
        ``accuracy`` after the best one-to-one match of labels to groups, ``nmi`` divided by the larger entropy,
        ``purity``, and the adjusted Rand index ``ari``.

    Examples
    --------
    >>> from gapview.metrics import clustering_scores
    >>> scores = clustering_scores([0, 0, 1, 1], ["b", "b", "a", "c"])
    >>> {name: round(score, 3) for name, score in scores.items()}
    {'accuracy': 0.75, 'nmi': 0.667, 'purity': 1.0, 'ari': 0.571}
    """
    true, found = _paired(y_true, y_pred)
    return {
        "accuracy": clustering_accuracy(true, found),
        "nmi": float(normalized_mutual_info_score(true, found, average_method="max")),
        "purity": purity(true, found),
        "ari": float(adjusted_rand_score(true, found)),
    }


def clustering_accuracy(y_true: Any, y_pred: Any) -> float:
    """Return the share of samples in the right group after the best one-to-one match.

    Examples
    --------
    >>> from gapview.metrics import clustering_accuracy
    >>> clustering_accuracy([0, 0, 1, 1], [1, 1, 0, 2])
    0.75
    """
    true, found = _paired(y_true, y_pred)
    counts = contingency_matrix(true, found)
    return float(counts[linear_sum_assignment(-counts)].sum() / len(true))


def purity(y_true: Any, y_pred: Any) -> float:
    """Return the share of samples that belong to the largest known group of their cluster.

    Examples
    --------
    >>> from gapview.metrics import purity
    >>> purity([0, 0, 1, 1], [0, 0, 0, 1])
    0.75
    """
    true, found = _paired(y_true, y_pred)
    return float(contingency_matrix(true, found).max(axis=0).sum() / len(true))


def _paired(y_true: Any, y_pred: Any) -> tuple[Array, Array]:
    true, found = np.asarray(y_true), np.asarray(y_pred)
    if true.ndim != 1 or true.shape != found.shape or not true.size:
        raise InputError(
            "y_true and y_pred must be two sequences of the same length, at least 1; "
            f"got shapes {true.shape} and {found.shape}."
        )
    return true, found
