"""How views are linked: by the samples that have both of two views."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from ..utils.messages import warn_user
from ..utils.types import Array


def weakest_link(mask: Array) -> int:
    """Return the number of shared samples at the weakest of the links that are needed to connect all views.

    The views are connected by the links with the most shared samples; it is 0 if samples do not connect them all.

    Parameters
    ----------
    mask : bool array of shape (n_samples, n_views)
        True where a sample has a view.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.views.linking import weakest_link
    >>> weakest_link(np.array([[1, 1, 0], [1, 1, 0], [0, 1, 1]], dtype=bool))
    1
    """
    shared = _shared(mask)
    tree = minimum_spanning_tree(sparse.csr_array(-shared))
    return int(-tree.data.max()) if tree.nnz == mask.shape[1] - 1 and tree.nnz else 0


def parts_of(mask: Array, counts: Array | None = None) -> Array:
    """Return for every view the part it belongs to: views that samples connect, directly or through other views.

    Part 0 has the most samples; views without samples belong to it, too.

    Parameters
    ----------
    mask : bool array of shape (n_samples, n_views)
        True where a sample has a view; or the distinct rows of such an array.
    counts : int array of shape (n_samples,), optional
        How often each row occurs; once by default.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.views.linking import parts_of
    >>> parts_of(np.array([[1, 1, 0], [0, 0, 1], [0, 0, 1]], dtype=bool))
    array([1, 1, 0])
    """
    n_parts, part = connected_components(_shared(mask) > 0, directed=False)
    counts = np.ones(len(mask), dtype=np.intp) if counts is None else counts
    sizes = [int(counts[mask[:, part == i].any(axis=1)].sum()) for i in range(n_parts)]
    filled = sorted((i for i in range(n_parts) if sizes[i]), key=lambda i: -sizes[i])
    number = {i: place for place, i in enumerate(filled)}
    return np.array([number.get(i, 0) for i in part])


def sample_parts(mask: Array, view_parts: Array) -> Array:
    """Return for every sample the part that most of its views belong to; of several, the first.

    Parameters
    ----------
    mask : bool array of shape (n_samples, n_views)
        True where a sample has a view.
    view_parts : int array of shape (n_views,)
        Part of every view, from :func:`parts_of`.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.views.linking import sample_parts
    >>> sample_parts(np.array([[1, 1, 0], [0, 0, 1]], dtype=bool), np.array([0, 0, 1]))
    array([0, 1])
    """
    belongs = view_parts[:, None] == np.arange(view_parts.max() + 1)
    return np.asarray((mask.astype(np.intp) @ belongs).argmax(axis=1))


def warn_of_parts(names: Sequence[str], mask: Array, counts: Array | None = None) -> None:
    """Warn of parts that no sample links; ``mask`` and ``counts`` are those of :func:`parts_of`."""
    view_parts = parts_of(mask, counts)
    n_parts = int(view_parts.max()) + 1
    if n_parts == 1:
        return
    sizes = np.bincount(sample_parts(mask, view_parts), counts).astype(int)
    parts = [
        f"{', '.join(repr(names[k]) for k in np.flatnonzero(view_parts == i).tolist())} ({sizes[i]} samples)"
        for i in range(n_parts)
    ]
    warn_user(
        f"No sample links these {n_parts} parts of the views: {'; '.join(parts)}. Each part has groups of its own, "
        "which cannot be compared with those of another; part_ says which part a sample is in. Samples with views of "
        "two parts would link them."
    )


def _shared(mask: Array) -> Array:
    """Return the number of samples that have both of two views; 0 on the diagonal."""
    counts = mask.astype(np.float64)
    shared = counts.T @ counts
    np.fill_diagonal(shared, 0)
    return shared
