"""Synthetic data of any size with known groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import ParameterError, ParameterTypeError
from ..utils.parameters import check_choice, check_integer, check_real, random_generator
from ..views import Views
from ._hiding import hide_views
from ._loading import Dataset

_DEPTH = 20  # largest dimension of the latent space
_BLOCK = 65536  # rows computed at a time, so that noise never takes more memory than the views


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
    check_integer("n_clusters", n_clusters, low=1)
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
    if isinstance(n_features, str) or not isinstance(n_features, Iterable):
        raise ParameterTypeError(
            "n_features must be a sequence of integers, one for each view, such as (20, 30); "
            f"got {n_features!r}. For a single view write [20]."
        )
    widths = list(n_features)
    if not widths:
        raise ParameterError(
            f"n_features must give the number of features of at least one view, such as (20, 30); got {n_features!r}."
        )
    for view, width in enumerate(widths):
        check_integer(f"n_features[{view}]", width, low=1)
    return [int(width) for width in widths]
