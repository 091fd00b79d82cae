"""Counts as bulk sequencing gives them: negative binomial, with samples of different depth."""

from __future__ import annotations

from typing import Any

import numpy as np


def bulk_counts(
    n_samples: int, n_features: int, n_groups: int, seed: int, dispersion: float = 0.25
) -> tuple[np.ndarray, np.ndarray]:
    """Return counts and groups; an eighth of the features differ in each group, by a factor of 2.5."""
    rng = np.random.RandomState(seed)
    target = rng.randint(n_groups, size=n_samples)
    factors = np.ones((n_groups, n_features))
    for own in factors:
        own[rng.choice(n_features, n_features // 8, replace=False)] = rng.choice([2.5, 0.4], n_features // 8)
    means = rng.lognormal(3, 1.5, size=n_features) * factors[target] * rng.lognormal(0, 0.6, size=(n_samples, 1))
    size = 1 / dispersion
    return rng.negative_binomial(size, size / (size + means)).astype(float), target


def log_cpm(counts: Any) -> Any:
    """Return logarithms of counts per million, computed by hand."""
    values = np.asarray(counts)
    logs = np.log1p(1e6 * values / values.sum(axis=1, keepdims=True))
    return type(counts)(logs, index=counts.index) if hasattr(counts, "index") else logs
