"""From a representation of the samples to labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace
from sklearn.cluster import KMeans

from .compute import host, is_tensor, kmeans_of_tensor, like, row_blocks, sharing_cores, spread_starts, without_helpers
from .errors import GapviewWarning, SolutionError
from .scaling import unit_rows
from .utils.types import Array
from .utils.warnings import unheard, warn_user

__all__ = ["Clustering", "balanced", "balancing", "cluster_rows", "demand_representation"]

KMeansFunction = Callable[[Array, int, int, np.random.RandomState], tuple[Array, Array]]

N_RESTARTS = 20
_MANY_ROWS = 20_000


@dataclass(frozen=True)
class Clustering:
    """Labels of the samples and centres of the groups, in the space the clustering was made in."""

    labels: Array  # group of every sample
    centers: Array  # a row for each group


def balancing(embedding: Array) -> Array:
    """Find the matrix that evens out the directions of a representation by half.

    From Z = AΣBᵀ follows ZBΣ^-1/2 = AΣ^1/2: strong directions stay ahead of weak ones, but by the root of what they
    were, so that a few of them do not hide what the others tell apart. Directions that are rounding only are left out.

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
    size = max(float(embedding.max()), -float(embedding.min())) or 1.0
    xp = array_namespace(embedding)
    blocks = [embedding[block] / size for block in row_blocks(embedding)]  # squares of huge or tiny numbers stay finite
    products = host(sum(xp.astype(block, xp.float64).T @ xp.astype(block, xp.float64) for block in blocks))
    return balancing_from(products, size, xp.finfo(embedding.dtype).eps)


def balancing_from(products: Array, size: float, eps: float) -> Array:
    """Find the same matrix from ZᵀZ / size², with ``size`` any number near the values of Z and ``eps`` their rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.clusters import balancing_from
    >>> np.abs(balancing_from(np.diag([16.0, 1.0]), 1.0, 1e-16))
    array([[0.5, 0. ],
           [0. , 1. ]])
    """
    values, vectors = np.linalg.eigh(products)
    # Rounding of the values, whose squares these are, and of the squares themselves
    rounding = max((len(values) * eps) ** 2, len(values) * np.finfo(np.float64).eps)
    kept = values > values[-1] * rounding
    return (vectors[:, kept] * values[kept] ** -0.25 / np.sqrt(size))[:, ::-1].copy()  # type: ignore[no-any-return]


def balanced(embedding: Array, balance: Array) -> Array:
    """Carry rows over by the matrix of :func:`balancing`, in their own type.

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


def demand_representation(embedding: Array) -> None:
    """Refuse a representation that tells no sample from another.

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
    >>> from gapview.clusters import demand_representation
    >>> demand_representation(np.eye(2))
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
    """Run k-means with restarts on the rows of a representation, scaled to unit length unless told otherwise.

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
        Restarts, of which the best is kept.
    kmeans : callable, optional
        Replaces :func:`kmeans_rows`; an estimator passes a version that records the result in its checkpoint.

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
    demand_representation(embedding)
    xp = array_namespace(embedding)
    n_empty = int(xp.sum(xp.astype(~xp.any(embedding != 0, axis=1), xp.int64)))
    if normalize and n_empty:  # a row without a direction; where rows are not normalised, zero is a place like others
        warn_of_zeros(n_empty)
    # Divided by the largest value, so that squares of huge or tiny numbers stay finite
    size = 1.0 if normalize else float(xp.max(xp.abs(embedding)))
    points = unit_rows(embedding) if normalize else embedding / size
    labels, centers = (kmeans or kmeans_rows)(points, n_clusters, n_init, random_state)
    n_found = len(np.unique(labels))
    if n_found < n_clusters:
        warn_user(
            f"Only {n_found} distinct groups were found where n_clusters={n_clusters} were asked for: the samples "
            "have too few distinct representations.",
            GapviewWarning,
        )
    return Clustering(labels, centers * size)


def warn_of_zeros(n_samples: int) -> None:
    """Warn of samples whose representation is zero, so that their cluster is arbitrary."""
    warn_user(
        f"{n_samples} sample(s) have a representation of nothing but zeros, so that the group they are in means "
        "nothing: rows of zeros have no neighbours and no codes, or a penalty has shrunk their codes away.",
        GapviewWarning,
    )


def kmeans_rows(
    points: Array, n_clusters: int, n_init: int, random_state: np.random.RandomState
) -> tuple[Array, Array]:
    """Run k-means and return labels and centres, for arrays and tensors."""
    if is_tensor(points):
        found = kmeans_of_tensor(points, n_clusters, n_init, int(random_state.randint(2**31 - 1)))
        return host(found[0]).astype(np.int32), host(found[1])
    # Many threads for little work wait for each other, above all on a busy machine
    is_small = len(points) < _MANY_ROWS
    init = _starts_at_once(n_init) if is_small else "k-means++"
    with unheard("Number of distinct clusters"), without_helpers() if is_small else sharing_cores():
        # That there are too few distinct points is said above, in words about samples and clusters
        fitted = KMeans(n_clusters, init=init, n_init=n_init, random_state=random_state).fit(points)
    return np.asarray(fitted.labels_), np.asarray(fitted.cluster_centers_)


def _starts_at_once(n_init: int) -> Callable[..., Array]:
    """Give what k-means asks for first centres: those of all restarts are found when it asks for the first time."""
    starts: list[Array] = []

    def centers(points: Array, n_clusters: int, random_state: np.random.RandomState) -> Array:
        if not starts:
            starts.extend(spread_starts(points, n_clusters, n_init, random_state))
        return points[starts.pop(0)]

    return centers
