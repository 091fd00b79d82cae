"""Hiding views of samples, to measure what is found without them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import maximum_flow

from ..errors import InputError, InputTypeError, ParameterError, some
from ..utils.parameters import check_real, random_generator
from ..utils.types import Array
from ..views import Views


def paired_split(views: Any, paired_rate: float = 0.5, *, order: Any = None, random_state: Any = None) -> Views:
    """Hide views by the paper's protocol: some samples keep every view, the others keep just one.

    The first ⌊n · paired_rate⌋ samples in the order keep all views. The others are split into one part per view, whose
    sizes differ by at most one, the larger parts first.

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
    whole = Views(views)
    if not whole.mask.all():
        raise InputError(
            f"paired_split needs samples that have every view; {int((~whole.mask.all(axis=1)).sum())} of "
            f"{whole.n_samples} lack one. Use hide_views, which hides at random among the present views."
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

    The same share of the samples with a view is hidden in every view, rounded down to whole samples. First, one view
    to keep is drawn for every sample, such that no view is kept more often than its share allows; then the hidden
    entries are drawn among the others. A rate is refused only if no choice of views can satisfy it.

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
    whole = Views(views)
    state = random_generator(random_state)
    present = whole.mask.sum(axis=0)
    n_hidden = np.floor(missing_rate * present + 1e-9).astype(np.intp)
    kept, n_left_over = _kept_view(whole.mask, present - n_hidden, state)
    if n_left_over:
        raise ParameterError(
            f"missing_rate={missing_rate} would leave at least {n_left_over} of {whole.n_samples} samples without a "
            f"view. Choose a lower rate: about {1 - 1 / whole.n_views:.2g} is the most if every sample has all "
            f"{whole.n_views} views, and less if some are missing already."
        )
    free = whole.mask.copy()
    free[np.arange(whole.n_samples), kept] = False
    mask = whole.mask.copy()
    for view in range(whole.n_views):
        mask[state.permutation(np.flatnonzero(free[:, view]))[: n_hidden[view]], view] = False
    return whole.hide(mask)


def _kept_view(mask: Array, capacity: Array, state: np.random.RandomState) -> tuple[Array, int]:
    """Choose one view to keep for every sample, each view for at most as many samples as its capacity.

    Returns the view of every sample, and the number of samples that no choice can place. If there are any, the
    returned choice exceeds the capacities.
    """
    n_samples, n_views = mask.shape
    kept = np.empty(n_samples, dtype=np.intp)
    if mask.all():  # each view in turn: as even as possible
        kept[state.permutation(n_samples)] = np.arange(n_samples) % n_views
    else:
        kept[:] = np.where(mask, state.random_sample(mask.shape), -1.0).argmax(axis=1)
    if (np.bincount(kept, minlength=n_views) <= capacity).all():
        return kept, 0
    return _within_capacity(mask, kept, capacity, state)


def _within_capacity(mask: Array, kept: Array, capacity: Array, state: np.random.RandomState) -> tuple[Array, int]:
    """Correct a random choice that exceeds the capacities, by a maximum flow that starts at the choice.

    Samples that have the same views are interchangeable, so the flow runs from the few patterns of presence to the
    views. Which sample of a pattern keeps which view is drawn afterwards.
    """
    n_views = mask.shape[1]
    patterns, pattern = np.unique(mask, axis=0, return_inverse=True)
    pattern = pattern.ravel()
    placed = np.zeros(len(mask), dtype=bool)
    for view in range(n_views):
        placed[state.permutation(np.flatnonzero(kept == view))[: capacity[view]]] = True
    chosen = np.zeros(patterns.shape, dtype=np.int32)
    np.add.at(chosen, (pattern[placed], kept[placed]), 1)
    size = np.bincount(pattern)

    # From a source over the patterns and the views to a sink; an edge from a view back to a pattern undoes a choice.
    network = sparse.block_array(
        [
            [sparse.csr_array((1, 1), dtype=np.int32), _row(size - chosen.sum(axis=1)), None, None],
            [None, None, sparse.csr_array((patterns * size[:, None]).astype(np.int32)), None],
            [None, sparse.csr_array(chosen.T), None, _row(capacity - chosen.sum(axis=0)).T],
            [None, None, None, sparse.csr_array((1, 1), dtype=np.int32)],
        ],
        format="csr",
    )
    flow = maximum_flow(network, 0, network.shape[0] - 1)
    begin = 1 + len(patterns)
    chosen = chosen + flow.flow[1:begin, begin : begin + n_views].toarray()
    n_left_over = int((~placed).sum()) - int(flow.flow_value)
    if not n_left_over:
        drawn = state.permutation(len(mask))
        by_pattern = drawn[np.argsort(pattern[drawn], kind="stable")]
        kept[by_pattern] = np.repeat(np.tile(np.arange(n_views), len(patterns)), chosen.ravel())
    return kept, n_left_over


def _row(numbers: Array) -> sparse.csr_array:
    return sparse.csr_array(numbers[None].astype(np.int32))


def _permutation(order: Any, n_samples: int, random_state: Any) -> Array:
    if order is None:
        return np.asarray(random_generator(random_state).permutation(n_samples))
    expected = f"order must be a permutation of 0 … {n_samples - 1}"
    try:
        ordered = np.asarray(order)
    except ValueError:  # lists of unequal length
        raise InputError(f"{expected}, in one dimension; got nested sequences of unequal length.") from None
    if ordered.shape != (n_samples,):
        raise InputError(f"{expected}, shape ({n_samples},); got shape {ordered.shape}.")
    if ordered.dtype.kind not in "iu":
        raise InputTypeError(f"{expected} as integers; got type {ordered.dtype}. Convert them with .astype(int).")
    ordered = ordered.astype(np.intp)
    low, high = int(ordered.min()), int(ordered.max())
    if low < 0 or high >= n_samples:
        raise InputError(f"{expected}; got values from {low} to {high}. Subtract 1 if they count from 1.")
    repeated = np.flatnonzero(np.bincount(ordered) > 1)
    if len(repeated):
        raise InputError(f"{expected}, each once; {len(repeated)} of them occur more than once: {some(repeated)}.")
    return ordered
