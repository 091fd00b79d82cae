"""Confidence as a probability: calibrated by fits to resamples, and compared with how often samples are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

from ..errors import InputError
from ..utils.messages import check_integer
from ..utils.types import Array
from .confidence import read_labels
from .stability import Stability

# Resamples of weight equal to what is known of a sample, and of a group, from all others. Values from 2 to 10 and from
# 0.5 to 5 have the same calibration error on the data sets of results/trust/calibration.md, up to 0.003.
_N_OF_SAMPLE = 5.0
_N_OF_GROUP = 2.0
_ROUND = 1e-3  # probabilities closer to 0 and 1 than this are not distinguished by so few resamples


def calibrated_confidence(stability: Stability, confidence: Any, labels: Any) -> Array:
    """Return the probability that every sample is kept by its cluster in a fit to other samples and features.

    The result estimates ``kept`` of :class:`gapview.trust.Stability` for resamples that were not computed. It has three
    steps. An isotonic regression maps ``confidence`` to the share of the resamples in which samples were kept. The
    values of each cluster are shifted, on the scale of log odds, towards the share of the cluster; with R resamples the
    weight of the cluster is R / (R + 2). What was counted for the sample itself has the weight n / (n + 5), with n the
    number of resamples with the sample. A sample that was never drawn gets the value of the second step.

    Parameters
    ----------
    stability : Stability
        Resamples of the clustering, as :meth:`gapview.BridgedGRMF.cluster_stability` returns them. Draw features as
        well (``feature_share=0.8``); 20 resamples are enough, see :func:`calibration_error`.
    confidence : array of shape (n_samples,)
        Confidence before, such as that of :func:`gapview.trust.sample_confidence`.
    labels : array of shape (n_samples,)
        The labels that ``stability`` assesses.

    Returns
    -------
    array of shape (n_samples,)
        Probabilities from 0 to 1.

    Examples
    --------
    >>> from gapview import BridgedGRMF
    >>> from gapview.datasets import make_views
    >>> from gapview.trust import calibrated_confidence
    >>> views = make_views(n_samples=90, n_clusters=3, missing_rate=0.3, random_state=0).views
    >>> model = BridgedGRMF(n_clusters=3, selection="fixed", random_state=0).fit(views)
    >>> stability = model.cluster_stability(n_resamples=5, feature_share=0.8, random_state=0)
    >>> calibrated = calibrated_confidence(stability, model.confidence_, model.labels_)
    >>> calibrated.shape, bool(calibrated.mean() > 0.9)
    ((90,), True)
    """
    before = _read_values("confidence", confidence)
    groups = read_labels(labels, len(before))
    if len(stability.n_drawn) != len(before):
        raise InputError(
            f"stability must be of the {len(before)} samples with confidence; got {len(stability.n_drawn)} samples."
        )
    n_drawn = stability.n_drawn.astype(float)
    n_kept = np.nan_to_num(stability.kept) * n_drawn
    typical = _typical(before, n_kept, n_drawn)
    shifted = expit(_log_odds(typical) + _shifts(typical, n_kept, n_drawn, groups)[groups])
    return np.asarray((n_kept + _N_OF_SAMPLE * shifted) / (n_drawn + _N_OF_SAMPLE))


def _typical(before: Array, n_kept: Array, n_drawn: Array) -> Array:
    """Return for every sample the share of resamples in which samples of its confidence were kept."""
    drawn = n_drawn > 0
    curve = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    curve.fit(before[drawn], n_kept[drawn] / n_drawn[drawn], sample_weight=n_drawn[drawn])
    return np.asarray(curve.predict(before))


def _shifts(typical: Array, n_kept: Array, n_drawn: Array, groups: Array) -> Array:
    """Return for every cluster the log odds by which its samples are kept more often than others of their confidence.

    Samples of a cluster are kept or lost together, so that it has as many observations as there are resamples.
    """
    n_groups = int(groups.max()) + 1
    n_members = np.bincount(groups[n_drawn > 0], minlength=n_groups)
    total, n_found, n_typical = (
        np.bincount(groups, weights=values, minlength=n_groups) for values in (n_drawn, n_kept, typical * n_drawn)
    )
    n_resamples = total / np.maximum(n_members, 1)
    share, expected = n_found / np.maximum(total, 1), n_typical / np.maximum(total, 1)
    return np.asarray(n_resamples / (n_resamples + _N_OF_GROUP) * (_log_odds(share) - _log_odds(expected)))


def _log_odds(shares: Array) -> Array:
    return np.asarray(logit(np.clip(shares, _ROUND, 1 - _ROUND)))


def calibration_error(confidence: Any, kept: Any, n_bins: int = 10) -> float:
    """Compute the expected calibration error: how far confidence is from the share of resamples that keep a sample.

    Samples are sorted by confidence and divided into bins of equal size. The error is the absolute difference between
    mean confidence and mean ``kept``, averaged over the bins with the number of samples as weight. Samples of equal
    confidence have the mean of their ``kept``, so that their order does not matter.

    Parameters
    ----------
    confidence : array of shape (n_samples,)
        Confidence of every sample.
    kept : array of shape (n_samples,)
        Share of resamples that keep the sample, ``kept`` of :class:`gapview.trust.Stability`, of resamples that were
        not used to compute the confidence. Samples with NaN are left out.
    n_bins : int, default=10
        Number of bins.

    Returns
    -------
    float
        From 0, calibrated, to 1.

    Examples
    --------
    >>> from gapview.trust import calibration_error
    >>> calibration_error([0.25, 0.25, 1.0, 1.0], [0.0, 0.5, 0.75, 0.75], n_bins=2)
    0.125
    """
    check_integer("n_bins", n_bins, low=1)
    stated, truth = _read_values("confidence", confidence), np.asarray(kept, dtype=float)
    if truth.shape != stated.shape:
        raise InputError(f"kept must give one value for each of the {len(stated)} samples; got shape {truth.shape}.")
    known = np.isfinite(truth)
    if not known.any():
        raise InputError("kept must have a value other than NaN; got none. Draw more resamples.")
    stated, truth = stated[known], truth[known]
    _, tied, counts = np.unique(stated, return_inverse=True, return_counts=True)
    truth = (np.bincount(tied, weights=truth) / counts)[tied]
    bins = np.array_split(np.argsort(stated, kind="stable"), n_bins)
    return float(sum(abs((stated[own] - truth[own]).sum()) for own in bins) / len(stated))


def _read_values(name: str, values: Any) -> Array:
    read = np.asarray(values, dtype=float)
    if read.ndim != 1 or not read.size or not ((read >= 0) & (read <= 1)).all():
        raise InputError(f"{name} must give a number from 0 to 1 for each sample; got an array of shape {read.shape}.")
    return read
