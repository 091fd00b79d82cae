"""The groups: how large they are, how clear, what sets them apart, and which samples are in doubt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from ...trust import FeatureEffect, top_features
from ...utils.types import Array

__all__ = ["DOUBTFUL", "DoubtfulSample", "GroupFacts", "doubtful_samples", "summarise_groups"]

DOUBTFUL = 0.5  # below, the other groups together have the larger claim
CLEAR = 0.8
_N_FEATURES = 5  # listed for every group and view …
_MOST_ROWS = 1500  # … or fewer, where there are many groups and views
_SMALL = 0.2  # effects below are commonly called negligible
_N_DOUBTFUL = 20


@dataclass(frozen=True)
class GroupFacts:
    """One group.

    Attributes
    ----------
    confidence : float
        Mean over its samples; NaN if it has none.
    n_clear, n_doubtful : int
        Samples with a confidence of at least 0.8, and below 0.5.
    features : tuple of FeatureEffect
        What sets it apart: for every view the strongest, effects of at least 0.2 only.
    """

    number: int
    n_samples: int
    confidence: float
    n_clear: int
    n_doubtful: int
    features: tuple[FeatureEffect, ...]


@dataclass(frozen=True)
class DoubtfulSample:
    """A sample of low confidence; ``name`` is None if ids are left out, ``other`` the group that is next nearest."""

    name: str | None
    group: int
    confidence: float
    other: int | None
    pattern: int


def summarise_groups(model: Any, n_groups: int) -> tuple[GroupFacts, ...]:
    """Sum up every group that the model can have."""
    labels, confidence = model.labels_, model.confidence_
    sizes = np.bincount(labels, minlength=n_groups)
    totals = np.bincount(labels, weights=confidence, minlength=n_groups)
    clear, doubtful = (
        np.bincount(labels[chosen], minlength=n_groups) for chosen in (confidence >= CLEAR, confidence < DOUBTFUL)
    )
    n_top = max(1, min(_N_FEATURES, _MOST_ROWS // (n_groups * model.views_.n_views)))
    features: list[list[FeatureEffect]] = [[] for _ in range(n_groups)]
    for effect in top_features(model.feature_effects(), n_top):
        if abs(effect.effect) >= _SMALL:
            features[effect.cluster].append(effect)
    return tuple(
        GroupFacts(
            g,
            int(sizes[g]),
            float(totals[g] / sizes[g]) if sizes[g] else float("nan"),
            int(clear[g]),
            int(doubtful[g]),
            tuple(features[g]),
        )
        for g in range(n_groups)
    )


def doubtful_samples(model: Any, codes: Array, *, no_ids: bool) -> tuple[DoubtfulSample, ...]:
    """List the samples of the lowest confidence, with the group whose centre is next nearest."""
    lowest = np.argsort(model.confidence_, kind="stable")[:_N_DOUBTFUL]
    labels = model.labels_[lowest]
    distances = euclidean_distances(model._points(model.embedding_[lowest]), model.cluster_centers_)
    distances[np.arange(len(lowest)), labels] = np.inf
    distances[:, np.bincount(model.labels_, minlength=distances.shape[1]) == 0] = np.inf  # nobody is in an empty group
    others = distances.argmin(axis=1)
    return tuple(
        DoubtfulSample(
            None if no_ids else str(model.sample_ids_[i]),
            int(model.labels_[i]),
            float(model.confidence_[i]),
            int(other) if np.isfinite(distances[row, other]) else None,
            int(codes[i]),
        )
        for row, (i, other) in enumerate(zip(lowest, others, strict=True))
    )
