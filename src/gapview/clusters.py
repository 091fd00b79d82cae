"""k-means on the representation of the samples: labels, centres and the numbers of the groups."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from sklearn.cluster import KMeans

from .compute.arrays import host, is_on_device, is_tensor, like, row_blocks
from .compute.engine import on_free_cores, single_threaded
from .compute.kmeans import kmeans_of_array, kmeans_of_tensor, kmeans_plus_plus
from .errors import SolutionError
from .scaling import Reduce, largest_magnitude, rows_in_blocks, unit_rows
from .utils.messages import ignoring, warn_user
from .utils.types import Array

__all__ = [
    "Clustering",
    "balanced",
    "balancing",
    "check_representation",
    "cluster_rows",
    "group_order",
    "renumbered",
]

KMeansFunction = Callable[[Array, int, int, np.random.RandomState], tuple[Array, Array]]
ReduceGroups = Callable[[Callable[[Array, Array], Any], Callable[[Sequence[Any]], Any]], Any]

N_RESTARTS = 20
_MANY_ROWS = 20_000
_WHOLE_NUMBER = re.compile("0|-?[1-9][0-9]{0,17}")


@dataclass(frozen=True)
class Clustering:
    """Labels of the samples, and centres of the groups in the space of the clustered rows."""

    labels: Array  # group of every sample
    centers: Array  # a row for each group


def balancing(embedding: Array) -> Array:
    """Return the matrix that whitens a representation by half: BΣ^-1/2 for Z = AΣBᵀ.

    ZBΣ^-1/2 = AΣ^1/2 has the square roots of the singular values of Z, so that a few strong directions do not hide the
    groups that the others separate. Directions that consist of rounding errors are left out.

    Parameters
    ----------
    embedding : array of shape (n_samples, n_components)
        The representation.

    Returns
    -------
    array of shape (n_components, n_directions)

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.clusters import balancing
    >>> np.abs(np.diag([9.0, 4.0]) @ balancing(np.diag([9.0, 4.0])))
    array([[3., 0.],
           [0., 2.]])
    """
    rows = rows_in_blocks("", embedding)
    return balancing_in_blocks(rows.reduce, array_namespace(embedding).finfo(embedding.dtype).eps)


def balancing_in_blocks(reduce: Reduce, eps: float) -> Array:
    """Return the matrix of :func:`balancing` for rows in blocks.

    ``reduce`` is that of :class:`gapview.scaling.BlockedRows`, and ``eps`` the rounding error of the type of the rows.
    """
    size = reduce(largest_magnitude, max) or 1.0
    values, vectors = np.linalg.eigh(host(reduce(partial(_products, size=size), sum)))
    # Rounding of the values of Z, squared, and of the squares
    rounding = max((len(values) * eps) ** 2, len(values) * np.finfo(np.float64).eps)
    kept = values > values[-1] * rounding
    return (vectors[:, kept] * values[kept] ** -0.25 / np.sqrt(size))[:, ::-1].copy()  # type: ignore[no-any-return]


def _products(rows: Array, *, size: float) -> Array:
    """Return ZᵀZ / size², so that squares of huge or tiny numbers stay finite."""
    xp = array_namespace(rows)
    shrunk = xp.astype(rows / size, xp.float64)
    return shrunk.T @ shrunk  # type: ignore[no-any-return]


def balanced(embedding: Array, balance: Array) -> Array:
    """Return rows times the matrix of :func:`balancing`, in their own type.

    Parameters
    ----------
    embedding : array of shape (n_samples, n_components)
        The rows.
    balance : array of shape (n_components, n_directions)
        The matrix of :func:`balancing`.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.clusters import balanced
    >>> balanced(np.ones((1, 2), dtype=np.float32), np.eye(2)).dtype
    dtype('float32')
    """
    xp = array_namespace(embedding)
    return embedding @ xp.astype(like(balance, embedding), embedding.dtype)  # type: ignore[no-any-return]


def check_representation(embedding: Array) -> None:
    """Check that a representation is finite and not zero everywhere.

    Parameters
    ----------
    embedding : array of shape (n_samples, n_components)
        The representation.

    Raises
    ------
    SolutionError
        If it is zero everywhere, or not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.clusters import check_representation
    >>> check_representation(np.eye(2))
    """
    xp = array_namespace(embedding)
    if not xp.all(xp.isfinite(embedding)):
        raise SolutionError("The representation of the samples is not finite; check the scale of the data.")
    if not xp.any(embedding != 0):
        raise SolutionError(
            "The representation of every sample is zero: a penalty has shrunk all codes away. Lower its weight "
            "(sparsity_weight, where the method has one)."
        )


def cluster_rows(
    embedding: Array,
    n_clusters: int,
    random_state: np.random.RandomState,
    *,
    normalize: bool = True,
    n_init: int = N_RESTARTS,
    kmeans: KMeansFunction | None = None,
) -> Clustering:
    """Run k-means with restarts on the rows of a representation, by default scaled to unit length.

    Parameters
    ----------
    embedding : array of shape (n_samples, n_components)
        The representation.
    n_clusters : int
        Number of groups.
    random_state : RandomState
        Seed of k-means.
    normalize : bool, default=True
        Scale rows to unit length first.
    n_init : int, default=20
        Number of restarts, of which the best is returned.
    kmeans : callable, optional
        Replaces :func:`kmeans_rows`; estimators pass a version that records the result in a checkpoint.

    Raises
    ------
    SolutionError
        If the representation is zero everywhere, or not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.clusters import cluster_rows
    >>> labels = cluster_rows(np.array([[1.0, 0.1], [2.0, 0.1], [0.1, 1.0]]), 2, np.random.RandomState(0)).labels
    >>> bool(labels[0] == labels[1]), bool(labels[0] == labels[2])
    (True, False)
    """
    check_representation(embedding)
    n_empty = count_zeros(embedding)
    if normalize and n_empty:  # without normalisation, zero is a point like any other
        warn_of_zeros(n_empty)
    # Divided by the largest value, so that squares of huge or tiny numbers stay finite
    size = 1.0 if normalize else largest_magnitude(embedding)
    points = unit_rows(embedding) if normalize else embedding / size
    labels, centers = (kmeans or kmeans_rows)(points, n_clusters, n_init, random_state)
    n_found = np.count_nonzero(np.bincount(labels))
    if n_found < n_clusters:
        warn_user(
            f"Only {n_found} distinct groups were found for n_clusters={n_clusters}: the samples "
            "have too few distinct representations."
        )
    return Clustering(labels, centers * size)


def cluster_parts(
    embedding: Array, parts: Array, n_clusters: int, random_state: np.random.RandomState, **options: Any
) -> Clustering:
    """Run k-means in each part of the samples, for parts that cannot be compared.

    The groups of the first part come first. A part with fewer samples than ``n_clusters`` has a group for each.

    Parameters
    ----------
    embedding : array of shape (n_samples, n_components)
        The representation.
    parts : int array of shape (n_samples,)
        Part of every sample, counted from 0.
    n_clusters : int
        Number of groups of each part.
    random_state : RandomState
        Seed of k-means.
    **options : keyword arguments
        See :func:`cluster_rows`.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.clusters import cluster_parts
    >>> points = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1], [0.1, 1.0]])
    >>> found = cluster_parts(points, np.array([0, 0, 1, 1]), 2, np.random.RandomState(0))
    >>> sorted(found.labels.tolist()), found.centers.shape
    ([0, 1, 2, 3], (4, 2))
    """
    if not parts.any():
        return cluster_rows(embedding, n_clusters, random_state, **options)
    labels, centers, n_found = np.empty(len(parts), dtype=np.int32), [], 0
    for part in range(int(parts.max()) + 1):
        rows = np.flatnonzero(parts == part)
        own = cluster_rows(embedding[like(rows, embedding)], min(n_clusters, len(rows)), random_state, **options)
        labels[rows] = own.labels + n_found
        centers.append(own.centers)
        n_found += len(own.centers)
    return Clustering(labels, np.concatenate(centers))


def group_sums(rows: Array, labels: Array, n_groups: int) -> tuple[Array, Array]:
    """Return for every group the sum of its rows, scaled to unit length, and their number."""
    if is_tensor(rows):
        sums = np.zeros((n_groups, rows.shape[1]))
        for block in row_blocks(rows):
            belongs = like(labels[block][None, :] == np.arange(n_groups)[:, None], rows).double()
            sums += host(belongs @ unit_rows(rows[block]).double())
        return sums, np.bincount(labels, minlength=n_groups)
    belongs = labels[None, :] == np.arange(n_groups)[:, None]
    return belongs @ unit_rows(rows).astype(np.float64), belongs.sum(axis=1)


def group_means(sums: Array, counts: Array) -> Array:
    """Return the centres of groups from :func:`group_sums`; zeros for an empty group."""
    return np.asarray(sums / np.maximum(counts, 1)[:, None])


def count_zeros(embedding: Array) -> int:
    """Return the number of rows that are zero."""
    xp = array_namespace(embedding)
    return int(xp.sum(xp.astype(~xp.any(embedding != 0, axis=1), xp.int64)))


def warn_of_zeros(n_samples: int) -> None:
    """Warn of samples whose representation is zero, so that their cluster is arbitrary."""
    warn_user(
        f"{n_samples} sample(s) have a representation of nothing but zeros, so that the group they are in means "
        "nothing: rows of zeros have no neighbours and no codes, or a penalty has shrunk their codes away."
    )


def kmeans_rows(
    points: Array, n_clusters: int, n_init: int, random_state: np.random.RandomState
) -> tuple[Array, Array]:
    """Run k-means on an array or a tensor, and return labels and centres as arrays."""
    if is_on_device(points):
        found = kmeans_of_tensor(points, n_clusters, n_init, int(random_state.randint(2**31 - 1)))
        return host(found[0]).astype(np.int32), host(found[1])
    points = host(points)  # tensors on the processor have the result of arrays
    # Several threads would slow down small work, above all on a busy machine
    is_small = len(points) < _MANY_ROWS
    init = _starts_at_once(n_init) if is_small else "k-means++"
    with ignoring("Number of distinct clusters"), single_threaded() if is_small else on_free_cores():
        if is_small:
            state = random_state.get_state(legacy=False)
            together = kmeans_of_array(points, n_clusters, n_init, random_state)
            if together is not None:
                return together
            random_state.set_state(state)
        # cluster_rows warns of too few distinct points, in words about samples and clusters
        fitted = KMeans(n_clusters, init=init, n_init=n_init, random_state=random_state).fit(points)
    return np.asarray(fitted.labels_), np.asarray(fitted.cluster_centers_)


def _starts_at_once(n_init: int) -> Callable[..., Array]:
    """Return a function for ``KMeans(init=...)`` that draws the first centres of all restarts at its first call."""
    starts: list[Array] = []

    def centers(points: Array, n_clusters: int, random_state: np.random.RandomState) -> Array:
        if not starts:
            starts.extend(kmeans_plus_plus(points, n_clusters, n_init, random_state))
        return points[starts.pop(0)]

    return centers


# -- numbers of the groups -------------------------------------------------------------------------------------


def group_order(labels: Array, ids: Array, n_groups: int) -> Array:
    """Return the groups by descending size; groups of equal size by their smallest sample id.

    The order depends on the groups alone, not on the order of the samples. Ids are compared as numbers if all of them
    are numbers or text that is a whole number, such as "10"; otherwise as text. Empty groups come last.

    Parameters
    ----------
    labels : int array of shape (n_samples,)
        Group of every sample.
    ids : array of shape (n_samples,)
        Sample ids.
    n_groups : int
        Number of groups.

    Returns
    -------
    array of shape (n_groups,)
        The groups in their order; :func:`renumbered` applies it to labels.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.clusters import group_order
    >>> group_order(np.array([0, 1, 1, 2, 2]), np.array([1, 9, 8, 10, 7]), 3)
    array([2, 1, 0])
    """
    return group_order_in_blocks(lambda function, combine: combine([function(labels, ids)]), n_groups)


def group_order_in_blocks(reduce: ReduceGroups, n_groups: int) -> Array:
    """Return the order of :func:`group_order` for samples in blocks.

    ``reduce`` calls its first argument with the labels and the ids of every block, and combines the results by its
    second argument. Only sizes and smallest ids of groups are combined.
    """
    sizes = reduce(partial(_group_sizes, n_groups=n_groups), sum).tolist()
    n_alike = Counter(sizes)
    tied = [group for group, size in enumerate(sizes) if size and n_alike[size] > 1]
    place: dict[int, int] = {}
    if tied:
        key = _as_number if reduce(_are_numbers, all) else str
        smallest = reduce(partial(_smallest_ids, groups=tied, key=key), _combine_smallest)
        place = {group: i for i, (_, group) in enumerate(sorted(zip(smallest, tied, strict=True)))}
    order = sorted(range(n_groups), key=lambda group: (-sizes[group], place.get(group, group)))
    return np.array(order, dtype=np.intp)


def renumbered(labels: Array, order: Array) -> Array:
    """Return labels whose groups are numbered in an order, in their own type.

    Parameters
    ----------
    labels : int array of shape (n_samples,)
        Group of every sample.
    order : array of shape (n_groups,)
        The groups in their new order.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.clusters import renumbered
    >>> renumbered(np.array([0, 1, 1, 2, 2]), np.array([2, 1, 0]))
    array([2, 1, 1, 0, 0])
    """
    return np.argsort(order).astype(labels.dtype)[labels]


def _group_sizes(labels: Array, _: Array, *, n_groups: int) -> Array:
    return np.bincount(labels, minlength=n_groups)


def _are_numbers(_: Array, ids: Array) -> bool:
    return ids.dtype.kind in "iuf" or all(_as_number(key) is not None for key in ids)


def _as_number(key: Any) -> Any:
    """Return an id as a number, also if it is the text of a whole number; None if it is no number."""
    if isinstance(key, str):
        return int(key) if _WHOLE_NUMBER.fullmatch(key) else None
    return key if isinstance(key, Real) else None


def _smallest_ids(labels: Array, ids: Array, *, groups: Sequence[int], key: Callable[[Any], Any]) -> list[Any]:
    """Return the smallest id of every group, compared by a key; None for a group without samples in the block."""
    members = (ids[labels == group] for group in groups)
    if ids.dtype.kind in "iuf" and key is _as_number:
        return [own.min() if len(own) else None for own in members]
    return [min(map(key, own), default=None) for own in members]


def _combine_smallest(parts: Sequence[list[Any]]) -> list[Any]:
    return [min((key for key in own if key is not None), default=None) for own in zip(*parts, strict=True)]
