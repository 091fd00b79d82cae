"""Clusters from a representation in blocks: k-means on a sample, then on all samples, and the confidence of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import getitem
from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances_argmin

from ...clusters import (
    balanced,
    balancing_in_blocks,
    check_representation,
    cluster_rows,
    group_means,
    group_order_in_blocks,
    group_sums,
    renumbered,
    warn_of_zeros,
)
from ...compute.engine import single_threaded
from ...mixture import Mixture, fit_mixture, rows_to_fit
from ...refinement import N_WALKS, Discriminants
from ...scaling import unit_rows
from ...trust.confidence import N_STEPS, distance_affinity, distances_to, own_shares
from ...utils.types import Array
from ...views import Views
from .bridges import BlockedGraph
from .graph import BlockGraph
from .tasks import Tasks, split_by_block, stack_rows

_N_SAMPLED = 2**15  # rows for the restarts of k-means; if there are no more rows, its result is final
_MOST_ITERATIONS = 300
_TOLERANCE = 1e-4  # of the variance of the points, as in scikit-learn


def balance_blocks(tasks: Tasks, embeddings: list[Any], dtype: Any, keep: bool) -> tuple[Array, list[Any]]:
    """Return the matrix of :func:`gapview.clusters.balancing` for a representation, and handles of balanced rows.

    With ``keep``, the matrix is that of unity, and the rows are kept.
    """
    _check(tasks, embeddings)
    if keep:
        return np.eye(max(tasks.collect("balance", _n_columns, embeddings))), embeddings

    def reduce(function: Callable[[Array], Any], combine: Callable[[Sequence[Any]], Any]) -> Any:
        return tasks.total("balance", combine, tasks.map("balance", function, embeddings))

    balance = balancing_in_blocks(reduce, float(np.finfo(dtype).eps))
    return balance, tasks.map("balance", balanced, embeddings, [balance] * len(embeddings))


def warn_of_zero_blocks(tasks: Tasks, rows: list[Any]) -> None:
    """Warn of samples whose representation is zero."""
    if n_zeros := _check(tasks, rows):
        warn_of_zeros(n_zeros)


def _n_columns(rows: Array) -> int:
    return int(rows.shape[1])


def _check(tasks: Tasks, rows: list[Any]) -> int:
    """Check that a representation is finite and not zero everywhere; return the number of rows of zeros."""
    largest, n_zeros = zip(*tasks.collect("groups", _describe, rows), strict=True)
    check_representation(np.array([largest]))
    return sum(n_zeros)


def _describe(rows: Array) -> tuple[float, int]:
    """Return the largest absolute value, and the number of rows of zeros."""
    return float(np.abs(rows).max(initial=0)), int((~rows.any(axis=1)).sum())


def cluster_blocks(
    tasks: Tasks,
    rows: list[Any],
    starts: Array,
    n_clusters: int,
    random_state: np.random.RandomState,
    parts: list[Any] | None = None,
) -> tuple[list[Any], Array]:
    """Run k-means on rows scaled to unit length; return handles of the labels of every block, and the centres.

    Restarts use a sample of the rows. The best centres are then moved by Lloyd's algorithm on all rows. If the sample
    would hold all rows, the result is that of :func:`gapview.clusters.cluster_rows`. With ``parts``, handles of the
    part of every sample, each part is clustered by itself.
    """
    if parts is not None:
        return _cluster_each_part(tasks, rows, parts, n_clusters, random_state)
    n_zeros = _check(tasks, rows)
    n_samples = int(starts[-1])
    if n_samples <= _N_SAMPLED:
        found = cluster_rows(np.concatenate(tasks.gather(rows)), n_clusters, random_state)
        return [tasks.broadcast("groups", part) for part in np.split(found.labels, starts[1:-1])], found.centers
    places = split_by_block(np.sort(random_state.choice(n_samples, _N_SAMPLED, replace=False)), starts)
    sample = np.concatenate(tasks.collect("groups", getitem, rows, places))
    first = cluster_rows(sample, n_clusters, random_state).centers
    centers = _move_centers(tasks, rows, np.asarray(first), float(unit_rows(sample).var(axis=0).mean()))
    if n_zeros > int((~sample.any(axis=1)).sum()):  # cluster_rows has warned of those in the sample
        warn_of_zeros(n_zeros)
    return tasks.map("groups", _nearest_center, rows, [centers] * len(rows)), centers


def _cluster_each_part(
    tasks: Tasks, rows: list[Any], parts: list[Any], n_clusters: int, random_state: np.random.RandomState
) -> tuple[list[Any], Array]:
    """Return the result of :func:`cluster_blocks` for each part; see :func:`gapview.clusters.cluster_parts`."""
    counts = tasks.collect("groups", np.bincount, parts)
    n_parts = max(len(own) for own in counts)
    labels, centers, n_found = list(parts), [], 0
    for part in range(n_parts):
        sizes = [int(own[part]) if part < len(own) else 0 for own in counts]
        kept = np.flatnonzero(sizes).tolist()
        here = [parts[i] for i in kept]
        own = tasks.map("groups", _of_part, [rows[i] for i in kept], here, part=part)
        starts = np.cumsum([0, *(sizes[i] for i in kept)])
        found, middle = cluster_blocks(tasks, own, starts, min(n_clusters, sum(sizes)), random_state)
        before = [labels[i] for i in kept]
        merged = tasks.map("groups", _merge_labels, before, here, found, part=part, n_before=n_found)
        for i, handle in zip(kept, merged, strict=True):
            labels[i] = handle
        centers.append(middle)
        n_found += len(middle)
    return tasks.map("groups", np.int32, labels), np.concatenate(centers)


def _of_part(rows: Array, parts: Array, *, part: int) -> Array:
    return np.asarray(rows[parts == part])


def _merge_labels(labels: Array, parts: Array, found: Array, *, part: int, n_before: int) -> Array:
    labels = labels.copy()
    labels[parts == part] = found + n_before
    return labels


def _move_centers(tasks: Tasks, rows: list[Any], centers: Array, variance: float) -> Array:
    """Run Lloyd's algorithm; only sums and counts of the clusters are sent."""
    for _ in range(_MOST_ITERATIONS):
        shared = [tasks.broadcast("centres", centers)] * len(rows)
        total = tasks.total("group-means", sum, tasks.map("group-means", _sums, rows, shared))
        sums, counts = total[:, :-1], total[:, -1:]
        moved = np.where(counts > 0, sums / np.maximum(counts, 1), centers).astype(centers.dtype)
        shift = float(np.square(moved - centers).sum())
        centers = moved
        if shift <= _TOLERANCE * variance:
            break
    return centers


def _nearest_center(rows: Array, centers: Array) -> Array:
    with single_threaded():
        return np.asarray(pairwise_distances_argmin(unit_rows(rows), centers)).astype(np.int32)


def _sums(rows: Array, centers: Array) -> Array:
    """Return for every centre the sum of the rows nearest to it, and their number."""
    return np.column_stack(group_sums(rows, _nearest_center(rows, centers), len(centers)))


def share_blocks(tasks: Tasks, views: list[Any], discriminants: Discriminants) -> list[Any]:
    """Return handles of the shares of the groups in the samples of every block."""
    shared = [tasks.broadcast("discriminants", discriminants)] * len(views)
    return tasks.map("shares-of-groups", _shares_of_groups, views, shared)


def _shares_of_groups(views: Views, discriminants: Discriminants) -> Array:
    present = [views.rows(k) for k in range(views.n_views)]
    return discriminants.shares(views.matrices, present, views.n_samples)


def mixture_blocks(tasks: Tasks, rows: list[Any], starts: Array, centers: Array) -> list[Any]:
    """Fit a mixture to a sample of the rows, or to all if they are few; return handles of the shares of the groups."""
    places = split_by_block(rows_to_fit(int(starts[-1])), starts)
    sample = np.concatenate(tasks.collect("groups", getitem, rows, places))
    shared = [tasks.broadcast("mixture", fit_mixture(sample, centers))] * len(rows)
    return tasks.map("shares-of-groups", _mixture_shares, rows, shared)


def _mixture_shares(rows: Array, mixture: Mixture) -> Array:
    return mixture.shares(rows)


def reassign_blocks(tasks: Tasks, rows: list[Any], shares: list[Any], graph: BlockedGraph) -> tuple[list[Any], Array]:
    """Return handles of the labels with the largest share, with those of neighbours, and the centres."""
    total = reached = shares
    for _ in range(N_WALKS):
        reached = tasks.map("groups", _step, graph.blocks, graph.exchange.rows("send-shares", reached))
        total = tasks.map("groups", np.add, total, reached)
    labels = tasks.map("groups", _largest, total)
    total = tasks.total("group-means", sum, tasks.map("group-means", _summed, rows, labels, shares))
    return labels, group_means(total[:, :-1], total[:, -1])


def _step(graph: BlockGraph, pieces: Any) -> Array:
    """Return the mean of the shares of neighbours; 0 for samples without neighbours."""
    degrees = graph.degrees[:, None]
    return np.asarray(graph.weights @ stack_rows(pieces) / np.where(degrees > 0, degrees, 1))


def _largest(shares: Array) -> Array:
    return np.asarray(shares.argmax(axis=1), dtype=np.int32)


def _summed(rows: Array, labels: Array, shares: Array) -> Array:
    return np.column_stack(group_sums(rows, labels, shares.shape[1]))


def number_groups(
    tasks: Tasks, labels: list[Any], ids: list[Any], parts: list[Any], centers: Array
) -> tuple[list[Any], Array]:
    """Return handles of the labels, and the centres, of groups in the order of :func:`gapview.clusters.group_order`.

    The groups of the first part come first.
    """

    def reduce(function: Callable[[Array, Array], Any], combine: Callable[[Sequence[Any]], Any]) -> Any:
        return tasks.total("groups", combine, tasks.map("groups", function, labels, ids))

    order = group_order_in_blocks(reduce, len(centers))
    part_of = np.max(tasks.collect("groups", _part_of_groups, labels, parts, n_groups=len(centers)), axis=0)
    order = order[np.argsort(part_of[order], kind="stable")]
    return tasks.map("groups", renumbered, labels, [order] * len(labels)), centers[order]


def _part_of_groups(labels: Array, parts: Array, *, n_groups: int) -> Array:
    found = np.zeros(n_groups, dtype=np.intp)
    found[labels] = parts
    return found


# -- confidence ------------------------------------------------------------------------------------------------


def confidence_blocks(
    tasks: Tasks,
    rows: list[Any],
    labels: list[Any],
    centers: Array,
    graph: BlockedGraph | None = None,
    parts: list[Any] | None = None,
) -> list[Any]:
    """Compute the confidence of every sample; see :func:`gapview.trust.sample_confidence`.

    With ``parts``, handles of the part of every sample, only the groups of its part count.
    """
    shared = [tasks.broadcast("centres", centers)] * len(rows)
    described = tasks.collect("confidence", _own_distances, rows, labels, shared)
    total, n_filled, counts = (sum(part) for part in zip(*described, strict=True))
    usual = total / n_filled if n_filled else 0.0
    filled = [counts > 0] * len(rows)
    if parts is not None:
        part_of = np.max(tasks.collect("groups", _part_of_groups, labels, parts, n_groups=len(centers)), axis=0)
        filled = tasks.map("confidence", _possible, parts, filled, part_of=part_of)
    claims = tasks.map("confidence", _claims, rows, labels, shared, filled, usual=usual, sizes=counts)
    if graph is not None:
        ends = tasks.map("confidence", _one_hot, labels, claims)
        for _ in range(N_STEPS):
            ends = tasks.map("confidence", _walk, graph.blocks, graph.exchange.rows("send-walks", ends), ends)
        claims = tasks.map("confidence", _weigh, claims, graph.blocks, ends)
    return tasks.map("confidence", _shares, rows, labels, claims, sizes=counts)


def _own_distances(rows: Array, labels: Array, centers: Array) -> tuple[float, int, Array]:
    """Return the sum of the distances of rows to their centres, their number, and the sizes of the clusters."""
    filled = rows.any(axis=1)
    own = distances_to(unit_rows(rows), centers)[np.arange(len(labels)), labels][filled]
    return float(own.sum(dtype=np.float64)), int(filled.sum()), np.bincount(labels, minlength=len(centers))


def _claims(rows: Array, labels: Array, centers: Array, filled: Array, *, usual: float, sizes: Array) -> Array:
    distances = distances_to(unit_rows(rows), centers)
    return distance_affinity(distances, labels, np.asarray(rows.any(axis=1)), filled, sizes, usual)


def _possible(parts: Array, filled: Array, *, part_of: Array) -> Array:
    return np.asarray(filled & (part_of == parts[:, None]))


def _one_hot(labels: Array, claims: Array) -> Array:
    return np.asarray(labels[:, None] == np.arange(claims.shape[1]), dtype=claims.dtype)


def _walk(graph: BlockGraph, pieces: Any, ends: Array) -> Array:
    """Return the ends of random walks after one more step; a walk without a next step ends."""
    degrees = graph.degrees[:, None]
    return np.where(degrees > 0, graph.weights @ stack_rows(pieces) / np.where(degrees > 0, degrees, 1), ends)


def _weigh(claims: Array, graph: BlockGraph, ends: Array) -> Array:
    return np.asarray(claims * np.where(graph.degrees[:, None] > 0, ends, 1.0), dtype=claims.dtype)


def _shares(rows: Array, labels: Array, claims: Array, *, sizes: Array) -> Array:
    return np.asarray(own_shares(claims, labels, np.asarray(rows.any(axis=1)), sizes), dtype=claims.dtype)
