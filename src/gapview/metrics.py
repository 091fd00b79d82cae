"""Scores of a clustering against known groups, as the paper computes them, and the mixing of batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.neighbors import NearestNeighbors

from .errors import InputError
from .utils.types import Array

__all__ = ["batch_mixing", "clustering_accuracy", "clustering_scores", "purity"]

_NEIGHBORS_PER_PERPLEXITY = 3
_N_HALVINGS = 50  # of the interval of the kernel widths


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


def adjusted_rand_indices(labelings: Sequence[Array]) -> Array:
    """Return the adjusted Rand index of every two of several labellings, from one table of all their groups.

    Parameters
    ----------
    labelings : sequence of int arrays of shape (n_samples,)
        The labellings, with groups counted from 0.

    Returns
    -------
    array of shape (n_labelings, n_labelings)

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.metrics import adjusted_rand_indices
    >>> adjusted_rand_indices([np.array([0, 0, 1, 1]), np.array([1, 1, 0, 2])]).round(3)
    array([[1.   , 0.571],
           [0.571, 1.   ]])
    """
    n_samples, starts = len(labelings[0]), np.cumsum([0, *(int(labels.max()) + 1 for labels in labelings)])
    columns = np.stack([labels + start for labels, start in zip(labelings, starts[:-1], strict=True)], axis=1)
    places = np.arange(0, columns.size + 1, columns.shape[1])
    belongs = sparse.csr_array((np.ones(columns.size, dtype=np.int64), columns.ravel(), places))
    table = (belongs.T @ belongs).toarray()
    sums = np.add.reduceat(np.add.reduceat(table**2, starts[:-1], axis=0), starts[:-1], axis=1)
    own = np.diag(sums)
    both, first, second = sums - n_samples, own[:, None] - sums, own[None, :] - sums  # pairs: together, in one only
    neither = n_samples**2 - first - second - sums
    both, first, second, neither = (pairs.astype(np.float64) for pairs in (both, first, second, neither))
    scale = (both + second) * (second + neither) + (both + first) * (first + neither)
    is_same = (first == 0) & (second == 0)
    return np.where(is_same, 1.0, 2 * (both * neither - first * second) / np.where(is_same, 1.0, scale))


def batch_mixing(points: Any, batches: Any, *, perplexity: float = 30) -> float:
    """Return how well batches are mixed: the median iLISI of the samples, scaled to [0, 1].

    The local inverse Simpson index of a sample (Korsunsky et al. 2019) is 1 / Σ p², with p the shares of the batches
    among its nearest neighbours, weighted by a kernel exp(−βd) of their distances d whose width gives the perplexity.
    The median is scaled by (median − 1) / (number of batches − 1): 0 if every sample is among its own batch, 1 if all
    batches are equally frequent around it. Batches of unequal size have a maximum below 1.

    Parameters
    ----------
    points : array of shape (n_samples, n_dimensions)
        The samples, such as an embedding.
    batches : array-like of shape (n_samples,)
        Batch of every sample.
    perplexity : float, default=30
        Effective number of neighbours; three times as many are searched, and with few samples at most all others.

    Returns
    -------
    float
        NaN if there is one batch only, or fewer than three samples.

    References
    ----------
    I. Korsunsky et al.: Fast, sensitive and accurate integration of single-cell data with Harmony. Nature Methods 16,
    2019.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.metrics import batch_mixing
    >>> points = np.random.default_rng(0).normal(size=(200, 2))
    >>> batch_mixing(points, ["a", "b"] * 100) > 0.8
    True
    >>> batch_mixing(points + 9 * np.repeat([[0], [1]], 100, axis=0), ["a"] * 100 + ["b"] * 100)
    0.0
    """
    points, codes = np.asarray(points), _codes("batches", _as_array("batches", batches))
    if points.ndim != 2 or len(points) != len(codes):
        raise InputError(
            "points must be a matrix with a row for each sample, and batches have a value for each; got shapes "
            f"{points.shape} and {codes.shape}."
        )
    n_batches = int(codes.max(initial=0)) + 1
    count = min(round(_NEIGHBORS_PER_PERPLEXITY * perplexity), len(points) - 1)
    if n_batches < 2 or count < 2:
        return float("nan")
    distances, found = NearestNeighbors(n_neighbors=count).fit(points).kneighbors()  # without the samples themselves
    weights = _perplexity_weights(distances, min(perplexity, count / _NEIGHBORS_PER_PERPLEXITY))
    shares = np.stack([(weights * (codes[found] == batch)).sum(axis=1) for batch in range(n_batches)])
    return float((np.median(1 / np.square(shares).sum(axis=0)) - 1) / (n_batches - 1))


def _perplexity_weights(distances: Array, perplexity: float) -> Array:
    """Return weights exp(−βd) of each row, with the sum 1 and a β that gives the perplexity; found by bisection."""
    beyond = distances - distances[:, :1]  # the factor of the nearest is common to a row
    usual = beyond.mean(axis=1, keepdims=True)
    beyond = beyond / np.where(usual > 0, usual, 1.0)
    low, high = np.full((len(beyond), 1), -20.0), np.full((len(beyond), 1), 20.0)  # logarithms of β
    for _ in range(_N_HALVINGS):
        middle = (low + high) / 2
        weights = np.exp(-np.exp(middle) * beyond)
        weights /= weights.sum(axis=1, keepdims=True)
        logarithms = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
        is_wide = -(weights * logarithms).sum(axis=1, keepdims=True) > np.log(perplexity)
        low, high = np.where(is_wide, middle, low), np.where(is_wide, high, middle)
    return weights  # type: ignore[no-any-return]


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
