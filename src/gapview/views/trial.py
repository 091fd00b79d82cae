"""Drawing the sample of rows on which candidate parameters are tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from sklearn.utils.random import sample_without_replacement

from ..utils.types import Array

N_TRIED = 5000  # more samples would raise the cost without changing the choice
TRIED_PER_CLUSTER = 20
N_OF_EVERY_VIEW = 50  # the least number of samples drawn with each view, if as many have it
_MANY = 10**7  # samples up to which all of them are permuted


def n_to_try(n_clusters: int) -> int:
    """Return the number of samples on which parameters for ``n_clusters`` clusters are tried."""
    return max(N_TRIED, TRIED_PER_CLUSTER * n_clusters)


def draw_samples(n_samples: int, n_wanted: int, seed: int, rare_rows: Callable[[Array], Iterable[Array]]) -> Array:
    """Draw samples without replacement, some of them with each view, in ascending order; all if there are no more.

    Parameters
    ----------
    n_samples : int
        Number of samples to draw from.
    n_wanted : int
        Number of samples to draw; those added for rare views come on top.
    seed : int
        Random seed.
    rare_rows : callable
        Takes the samples drawn so far, in ascending order. Returns all samples that have the view, for each view that
        fewer than ``N_OF_EVERY_VIEW`` of those drawn have.
    """
    if n_samples <= n_wanted:
        return np.arange(n_samples)
    source = np.random.RandomState(seed)
    order = source.permutation(n_samples) if n_samples <= _MANY else None
    first = sample_without_replacement(n_samples, n_wanted, random_state=source) if order is None else order[:n_wanted]
    added = [_first_of(rows, order, source) for rows in rare_rows(np.sort(first))]
    return np.unique(np.concatenate([first, *added]))


def _first_of(rows: Array, order: Array | None, source: np.random.RandomState) -> Array:
    if order is None:
        return source.permutation(rows)[:N_OF_EVERY_VIEW]
    having = np.zeros(len(order), dtype=bool)
    having[rows] = True
    return np.asarray(order[having[order]][:N_OF_EVERY_VIEW])


def draw_from(mask: Array, n_wanted: int, seed: int) -> Array:
    """Draw samples by :func:`draw_samples`, from the mask of samples × views."""

    def rare_rows(drawn: Array) -> list[Array]:
        return [np.flatnonzero(mask[:, k]) for k in np.flatnonzero(mask[drawn].sum(axis=0) < N_OF_EVERY_VIEW)]

    return draw_samples(len(mask), n_wanted, seed, rare_rows)
