"""From a representation in blocks to groups: k-means on a sample, then on all, and how clearly each sample belongs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances_argmin

from ...clusters import Clustering, balanced, balancing_from, cluster_rows, demand_representation
from ...compute import without_helpers
from ...errors import GapviewWarning
from ...scaling import unit_rows
from ...trust.confidence import N_STEPS, distance_affinity, distances_to
from ...utils.types import Array
from ...utils.warnings import warn_user
from .exchange import Exchange
from .graph import BlockGraph, pick_rows, stacked
from .tasks import Tasks

__all__ = ["balance_of", "balanced_points", "cluster_blocks", "confidence_blocks"]

_N_SEEN = 2**15  # rows that k-means starts from; if there are no more, it ends there, too
_MOST_ITERATIONS = 300
_TOLERANCE = 1e-4  # of the variance of the points, as scikit-learn has it


def balance_of(tasks: Tasks, embeddings: list[Any], dtype: Any) -> Array:
    """Find the matrix that evens out the directions of a representation; see :func:`gapview.clusters.balancing`."""
    size = max(tasks.gather(tasks.map("balance", _largest, embeddings))) or 1.0
    products = tasks.map("balance", _products, embeddings, size=size)
    return balancing_from(tasks.gather(tasks.summed("balance", sum, products)), size, float(np.finfo(dtype).eps))


def _largest(embedding: Array) -> float:
    return float(np.abs(embedding).max())


def _products(embedding: Array, *, size: float) -> Array:
    rows = (embedding / size).astype(np.float64)
    return np.asarray(rows.T @ rows)


def balanced_points(tasks: Tasks, embeddings: list[Any], balance: Array) -> list[Any]:
    """Carry rows over by the matrix of :func:`balance_of`."""
    return tasks.map("balance", balanced, embeddings, [balance] * len(embeddings))


def cluster_blocks(
    tasks: Tasks, rows: list[Any], sizes: Sequence[int], n_clusters: int, random_state: np.random.RandomState
) -> tuple[list[Any], Array]:
    """Run k-means on rows scaled to unit length; handles of the labels of every block, and the centres.

    The restarts are made on a sample. Its best centres then move among all rows until they stay. Of no more rows than
    the sample holds, this is what :func:`gapview.clusters.cluster_rows` finds.
    """
    told = tasks.gather(tasks.map("groups", _judged, rows))
    n_empty = sum(empty for _, _, empty in told)
    n_samples, starts = sum(sizes), np.concatenate([[0], np.cumsum(sizes)])
    if not all(finite for finite, _, _ in told):
        demand_representation(np.full((1, 1), np.nan))
    if not any(filled for _, filled, _ in told):
        demand_representation(np.zeros((1, 1)))
    if n_samples <= _N_SEEN:
        found = cluster_rows(np.concatenate(tasks.gather(rows)), n_clusters, random_state)
        return [tasks.share("groups", part) for part in np.split(found.labels, starts[1:-1])], found.centers
    chosen = np.sort(random_state.choice(n_samples, _N_SEEN, replace=False))
    edges = np.searchsorted(chosen, starts)
    places = [chosen[a:b] - begin for a, b, begin in zip(edges[:-1], edges[1:], starts[:-1], strict=True)]
    sample = np.concatenate(tasks.gather(tasks.map("groups", pick_rows, rows, places)))
    first = cluster_rows(sample, n_clusters, random_state)
    centers = _settled(tasks, rows, first, float(unit_rows(sample).var(axis=0).mean()))
    if n_empty > int((~sample.any(axis=1)).sum()):  # of those in the sample it has spoken already
        warn_user(
            f"{n_empty} sample(s) have a representation of nothing but zeros, so that the group they are in means "
            "nothing: rows of zeros have no neighbours and no codes, or a penalty has shrunk their codes away.",
            GapviewWarning,
        )
    return tasks.map("groups", _nearest_center, rows, [centers] * len(rows)), centers


def _judged(rows: Array) -> tuple[bool, bool, int]:
    return bool(np.isfinite(rows).all()), bool(rows.any()), int((~rows.any(axis=1)).sum())


def _settled(tasks: Tasks, rows: list[Any], first: Clustering, variance: float) -> Array:
    """Lloyd's algorithm; only sums and counts of the groups travel."""
    centers = np.asarray(first.centers)
    for _ in range(_MOST_ITERATIONS):
        known = tasks.share("centres", centers)
        parts = tasks.map("group-means", _sums, rows, [known] * len(rows))
        total = tasks.gather(tasks.summed("group-means", sum, parts))
        sums, counts = total[:, :-1], total[:, -1:]
        moved = np.where(counts > 0, sums / np.maximum(counts, 1), centers).astype(centers.dtype)
        shift = float(np.square(moved - centers).sum())
        centers = moved
        if shift <= _TOLERANCE * variance:
            break
    return centers


def _nearest_center(rows: Array, centers: Array) -> Array:
    with without_helpers():
        return np.asarray(pairwise_distances_argmin(unit_rows(rows), centers)).astype(np.int32)


def _sums(rows: Array, centers: Array) -> Array:
    """Return for every centre the sum of the rows nearest to it, and their number."""
    points, labels = unit_rows(rows).astype(np.float64), _nearest_center(rows, centers)
    belongs = labels[None, :] == np.arange(len(centers))[:, None]
    return np.column_stack([belongs @ points, belongs.sum(axis=1)])


# -- how clearly ----------------------------------------------------------------------------------------------


def confidence_blocks(
    tasks: Tasks,
    rows: list[Any],
    labels: list[Any],
    centers: Array,
    steps: list[Any] | None = None,
    exchange: Exchange | None = None,
) -> list[Any]:
    """Say how clearly every sample belongs to its group; see :func:`gapview.trust.sample_confidence`."""
    known = [tasks.share("centres", centers)] * len(rows)
    told = tasks.gather(tasks.map("confidence", _own_distances, rows, labels, known))
    total, n_placed, counts = (sum(part) for part in zip(*told, strict=True))
    usual = total / n_placed if n_placed else 0.0
    claims = tasks.map("confidence", _claims, rows, labels, known, usual=usual, filled=counts > 0)
    if steps is not None and exchange is not None:
        ends = tasks.map("confidence", _one_hot, labels, claims)
        for _ in range(N_STEPS):
            ends = tasks.map("confidence", _walked, steps, exchange.rows("send-walks", ends, pick_rows), ends)
        claims = tasks.map("confidence", _weighed, claims, steps, ends)
    return tasks.map("confidence", _shares, rows, labels, claims)


def _own_distances(rows: Array, labels: Array, centers: Array) -> tuple[float, int, Array]:
    placed = rows.any(axis=1)
    own = distances_to(unit_rows(rows), centers)[np.arange(len(labels)), labels][placed]
    return float(own.sum(dtype=np.float64)), int(placed.sum()), np.bincount(labels, minlength=len(centers))


def _claims(rows: Array, labels: Array, centers: Array, *, usual: float, filled: Array) -> Array:
    return distance_affinity(
        distances_to(unit_rows(rows), centers), labels, np.asarray(rows.any(axis=1)), filled, usual
    )


def _one_hot(labels: Array, claims: Array) -> Array:
    return np.asarray(labels[:, None] == np.arange(claims.shape[1]), dtype=claims.dtype)


def _walked(graph: BlockGraph, pieces: Any, ends: Array) -> Array:
    """One step of all walks; one that can go no further stays."""
    totals = graph.degrees
    further = graph.weights @ stacked(pieces)
    linked = totals > 0
    return np.where(linked[:, None], further / np.where(linked, totals, 1)[:, None], ends)


def _weighed(claims: Array, graph: BlockGraph, ends: Array) -> Array:
    return np.asarray(claims * np.where((graph.degrees > 0)[:, None], ends, 1.0), dtype=claims.dtype)


def _shares(rows: Array, labels: Array, claims: Array) -> Array:
    total = claims.sum(axis=1)
    shares = claims[np.arange(len(labels)), labels] / np.where(total > 0, total, 1)
    return np.asarray(np.where(rows.any(axis=1), shares, 0), dtype=claims.dtype)
