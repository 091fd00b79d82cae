"""Hiding views that are there, to see what is found without them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._parameters import check_real, random_generator
from ..errors import InputError, ParameterError
from ..views import Array, Views, as_views

__all__ = ["hide_views", "paired_split"]


def paired_split(views: Any, paired_rate: float = 0.5, *, order: Any = None, random_state: Any = None) -> Views:
    """Hide views by the paper's protocol: some samples keep every view, the others keep just one.

    The first ⌊n · paired_rate⌋ samples in the order keep all views; the rest is cut into equal parts, one for each
    view, of which the first parts take what does not divide.

    Parameters
    ----------
    views : list or dict of views, or Views
        Complete views: every sample has all of them.
    paired_rate : float, default=0.5
        Share of the samples that keep all views, from 0 to 1.
    order : array-like of shape (n_samples,), optional
        A permutation of the samples, such as one of the folds published with the paper's data; random if not given.
    random_state : int, RandomState or None, default=None
        Seed of the random order.

    Returns
    -------
    Views

    Examples
    --------
    >>> from gapview.datasets import load_digits_views, paired_split
    >>> paired_split(load_digits_views().views, 0.3, random_state=0)
    Views of 1797 samples, 539 of them complete: 'pixels' 1168 × 64, 'fourier' 1168 × 130
    """
    check_real("paired_rate", paired_rate, low=0, high=1)
    whole = as_views(views)
    if not whole.mask.all():
        raise InputError(
            f"paired_split needs samples that have every view; {int((~whole.mask.all(axis=1)).sum())} of "
            f"{whole.n_samples} lack one. Use hide_views, which hides at random among the views that are there."
        )
    n_samples, n_views = whole.mask.shape
    ordered = _permutation(order, n_samples, random_state)
    n_paired = int(np.floor(n_samples * paired_rate + 1e-9))  # 2000 · 0.7 may fall just below 1400
    mask = np.zeros((n_samples, n_views), dtype=bool)
    mask[ordered[:n_paired]] = True
    for view, part in enumerate(np.array_split(ordered[n_paired:], n_views)):
        mask[part, view] = True
    return whole.hide(mask)


def hide_views(views: Any, missing_rate: float = 0.5, *, random_state: Any = None) -> Views:
    """Hide views at random, never the last one of a sample.

    From every view the same share of the samples that have it is hidden, as exactly as whole samples allow. Every
    sample first gets one of its views at random that it will keep, evenly over the views; the rest is drawn at random.

    Parameters
    ----------
    views : list or dict of views, or Views
        Views, complete or not.
    missing_rate : float, default=0.5
        Share of each view to hide, from 0 to 1 − 1 / n_views for complete views.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    Views

    Examples
    --------
    >>> from gapview.datasets import hide_views, load_digits_views
    >>> hide_views(load_digits_views().views, 0.2, random_state=0)
    Views of 1797 samples, 1079 of them complete: 'pixels' 1438 × 64, 'fourier' 1438 × 130
    """
    check_real("missing_rate", missing_rate, low=0, high=1)
    whole = as_views(views)
    state = random_generator(random_state)
    free = whole.mask.copy()
    free[np.arange(whole.n_samples), _kept_view(whole.mask, state)] = False
    mask = whole.mask.copy()
    for view, name in enumerate(whole.names):
        n_hidden = int(np.floor(missing_rate * whole.mask[:, view].sum() + 1e-9))
        candidates = np.flatnonzero(free[:, view])
        if n_hidden > len(candidates):
            raise ParameterError(
                f"missing_rate={missing_rate} would hide view '{name}' from {n_hidden} samples, but only "
                f"{len(candidates)} can lose it and still have another. Choose a lower rate."
            )
        mask[state.permutation(candidates)[:n_hidden], view] = False
    return whole.hide(mask)


def _kept_view(mask: Array, state: np.random.RandomState) -> Array:
    """Choose for every sample, in random order, the view that the fewest samples have been given so far."""
    n_samples, n_views = mask.shape
    kept = np.zeros(n_samples, dtype=np.intp)
    if mask.all():
        kept[state.permutation(n_samples)] = np.arange(n_samples) % n_views
        return kept
    given = np.zeros(n_views)
    for sample in state.permutation(n_samples):
        options = np.flatnonzero(mask[sample])
        kept[sample] = options[np.argmin(given[options])]
        given[kept[sample]] += 1
    return kept


def _permutation(order: Any, n_samples: int, random_state: Any) -> Array:
    if order is None:
        return np.asarray(random_generator(random_state).permutation(n_samples))
    ordered = np.asarray(order)
    if ordered.shape != (n_samples,) or not np.array_equal(np.sort(ordered), np.arange(n_samples)):
        raise InputError(f"order must be a permutation of 0 … {n_samples - 1}; got an array of shape {ordered.shape}.")
    return ordered
