"""Synthetic data of any size with known groups, and hiding of views, to measure what is found without them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import maximum_flow

from ..errors import InputError, InputTypeError, ParameterError, ParameterTypeError, some
from ..utils.messages import MOST_COMPONENTS, check_choice, check_integer, check_real, random_generator, shown
from ..utils.types import Array
from ..views import Views
from ._loading import Dataset

_DEPTH = 20  # largest dimension of the latent space
_BLOCK = 65536  # rows computed at a time, so that noise never takes more memory than the views


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
    begin = 1 + len(patterns)
    network = sparse.lil_array((begin + n_views + 1, begin + n_views + 1), dtype=np.int32)
    network[0, 1:begin] = size - chosen.sum(axis=1)
    network[1:begin, begin:-1] = patterns * size[:, None]
    network[begin:-1, 1:begin] = chosen.T
    network[begin:-1, -1] = capacity - chosen.sum(axis=0)
    flow = maximum_flow(sparse.csr_array(network), 0, network.shape[0] - 1)
    chosen = chosen + flow.flow[1:begin, begin:-1].toarray()
    n_left_over = int((~placed).sum()) - int(flow.flow_value)
    if not n_left_over:
        drawn = state.permutation(len(mask))
        by_pattern = drawn[np.argsort(pattern[drawn], kind="stable")]
        kept[by_pattern] = np.repeat(np.tile(np.arange(n_views), len(patterns)), chosen.ravel())
    return kept, n_left_over


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


def make_views(
    n_samples: int = 1000,
    n_features: Sequence[int] = (20, 30),
    *,
    n_clusters: int = 5,
    separation: float = 6.0,
    noise: float = 0.5,
    missing_rate: float = 0.0,
    dtype: str = "float64",
    random_state: Any = None,
) -> Dataset:
    """Return synthetic samples in known groups, described by several views.

    Every sample has a latent point: the centre of its group plus standard normal deviations. Each view is a random
    linear map of the latent points, with normal noise.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of samples.
    n_features : sequence of int, default=(20, 30)
        Number of features of every view; its length is the number of views.
    n_clusters : int, default=5
        Number of groups, of nearly equal size.
    separation : float, default=6.0
        Distance of the centres from the origin, in standard deviations of the latent points around their centre.
    noise : float, default=0.5
        Standard deviation of the noise, relative to the deviations that the latent points cause in the features.
    missing_rate : float, default=0.0
        Share of every view to hide at random, see :func:`hide_views`.
    dtype : {"float64", "float32"}, default="float64"
        Type of the numbers.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from gapview.datasets import make_views
    >>> data = make_views(100, (5, 8, 3), n_clusters=4, missing_rate=0.25, random_state=0)
    >>> data.views
    Views of 100 samples, 39 of them complete: 'view_0' 75 × 5, 'view_1' 75 × 8, 'view_2' 75 × 3
    """
    check_integer("n_samples", n_samples, low=1)
    check_integer("n_clusters", n_clusters, low=1, high=MOST_COMPONENTS)
    n_samples, n_clusters = int(n_samples), int(n_clusters)
    check_real("separation", separation, low=0)
    check_real("noise", noise, low=0)
    check_choice("dtype", dtype, ("float64", "float32"))
    check_real("missing_rate", missing_rate, low=0, high=1)
    widths = _read_widths(n_features)
    state = random_generator(random_state)
    depth = max(2, min(n_clusters, _DEPTH))
    directions = state.normal(size=(n_clusters, depth))
    # The centres of the first groups are orthogonal; those of groups beyond the dimension have random directions.
    directions[:depth] = np.linalg.qr(directions[:depth].T)[0].T
    centers = separation * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    maps = [state.normal(size=(depth, m)) / np.sqrt(depth) for m in widths]
    target = state.permutation(np.arange(n_samples) % n_clusters)
    matrices = [np.empty((n_samples, m), dtype=dtype) for m in widths]
    for begin in range(0, n_samples, _BLOCK):
        block = slice(begin, min(begin + _BLOCK, n_samples))
        latent = centers[target[block]] + state.normal(size=(block.stop - block.start, depth))
        for matrix, linear in zip(matrices, maps, strict=True):
            matrix[block] = latent @ linear + noise * state.normal(size=matrix[block].shape)
    views = hide_views(Views(matrices), missing_rate, random_state=state) if missing_rate else Views(matrices)
    return Dataset("made", views, target, f"{n_samples} made samples in {n_clusters} groups.")


def _read_widths(n_features: Any) -> list[int]:
    n_features = np.atleast_1d(n_features).tolist() if isinstance(n_features, np.ndarray) else n_features
    if isinstance(n_features, str) or not isinstance(n_features, Iterable):
        raise ParameterTypeError(
            "n_features must be a sequence of integers, one for each view, such as (20, 30); "
            f"got {shown(n_features)}. For a single view write [20]."
        )
    widths = list(n_features)
    if not widths:
        raise ParameterError(
            f"n_features must give the number of features of at least one view, such as (20, 30); got {n_features!r}."
        )
    for view, width in enumerate(widths):
        check_integer(f"n_features[{view}]", width, low=1)
    return [int(width) for width in widths]
