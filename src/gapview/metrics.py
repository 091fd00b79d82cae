"""Scores of a clustering against known groups, as the paper computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from .errors import InputError
from .utils.types import Array

__all__ = ["clustering_accuracy", "clustering_scores", "purity"]


def clustering_scores(y_true: Any, y_pred: Any) -> dict[str, float]:
    """Return scores of a clustering against known groups.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Known groups and found labels; only the partition matters, not the names.

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

    Parameters
    ----------
    y_true : array of shape (n_samples,)
        Known groups.
    y_pred : array of shape (n_samples,)
        Groups that were found.

    Examples
    --------
    >>> from gapview.metrics import clustering_accuracy
    >>> clustering_accuracy([0, 0, 1, 1], [1, 1, 0, 2])
    0.75
    """
    counts = contingency_matrix(*_paired(y_true, y_pred))
    return float(counts[linear_sum_assignment(-counts)].sum() / counts.sum())


def purity(y_true: Any, y_pred: Any) -> float:
    """Return the share of samples that belong to the largest known group of their cluster.

    Parameters
    ----------
    y_true : array of shape (n_samples,)
        Known groups.
    y_pred : array of shape (n_samples,)
        Groups that were found.

    Examples
    --------
    >>> from gapview.metrics import purity
    >>> purity([0, 0, 1, 1], [0, 0, 0, 1])
    0.75
    """
    counts = contingency_matrix(*_paired(y_true, y_pred))
    return float(counts.max(axis=0).sum() / counts.sum())


def _paired(y_true: Any, y_pred: Any) -> tuple[Array, Array]:
    """Return both labellings as integers 0, 1, 2, …, or raise an error."""
    true, found = _as_array("y_true", y_true), _as_array("y_pred", y_pred)
    if true.ndim != 1 or true.shape != found.shape or not true.size:
        raise InputError(
            "y_true and y_pred must be two sequences of the same length, at least 1; "
            f"got shapes {true.shape} and {found.shape}."
        )
    return _codes("y_true", true), _codes("y_pred", found)


def _as_array(name: str, labels: Any) -> Array:
    try:
        # A list of mixed kinds would become an array of text, in which 1 and "1" are the same
        return np.asarray(labels) if hasattr(labels, "__array__") else np.asarray(labels, dtype=object)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be a sequence of one label for each sample; numpy reports: {error}.") from None


def _codes(name: str, labels: Array) -> Array:
    n_missing = sum(map(_is_missing, labels)) if labels.dtype == object else int((labels != labels).sum())
    if n_missing:
        raise InputError(
            f"{name} must give every sample a label; {n_missing} of {len(labels)} are missing (None or NaN). "
            "Leave these samples out of both, or give them a label of their own."
        )
    try:
        _, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        raise InputError(
            f"{name} must hold labels of one kind, all numbers or all text; got {', '.join(kinds)}. "
            "Convert them first, for instance with [str(label) for label in labels]."
        ) from None
    return np.asarray(codes)


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)  # NaN and NaT differ from themselves
    except (TypeError, ValueError):  # pandas.NA cannot be compared
        return True
