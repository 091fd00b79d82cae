"""The samples: their groups, the association of missing views with the groups, and the map of the latent space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.metrics.pairwise import euclidean_distances
from threadpoolctl import threadpool_limits

from ...graph.neighbors import nearest
from ...trust import (
    Association,
    FeatureEffect,
    GroupAssociation,
    ViewEffects,
    associate,
    holm,
    top_features,
)
from ...trust.association import Pattern, count_patterns, missing_views_association
from ...utils.types import Array
from ...views import Views

# -- groups ------------------------------------------------------------------------------------------------------------


DOUBTFUL = 0.5  # below, the other groups together are more likely
CLEAR = 0.8
_N_FEATURES = 5  # listed for every group and view; fewer if there are many groups and views
_MOST_ROWS = 1500
SMALL = 0.2  # smaller effects are negligible
_N_DOUBTFUL = 20


@dataclass(frozen=True)
class GroupFacts:
    """One group.

    Attributes
    ----------
    confidence : float
        Mean over its samples; NaN if it has none.
    n_clear, n_doubtful : int
        Samples with a confidence of at least 0.8, and below 0.5.
    features : tuple of FeatureEffect
        For every view the features with the largest effects, of at least 0.2.
    """

    number: int
    n_samples: int
    confidence: float
    n_clear: int
    n_doubtful: int
    features: tuple[FeatureEffect, ...]


@dataclass(frozen=True)
class DoubtfulSample:
    """A sample of low confidence; ``name`` is None if ids are left out, ``other`` is the second nearest group."""

    name: str | None
    group: int
    confidence: float
    other: int | None
    pattern: int


def summarise_groups(model: Any, n_groups: int, found: Sequence[ViewEffects]) -> tuple[GroupFacts, ...]:
    """Return the facts about every group of the model."""
    n_top = max(1, min(_N_FEATURES, _MOST_ROWS // (n_groups * model.views_.n_views)))
    effects = [one for one in top_features(found, n_top) if abs(one.effect) >= SMALL]
    groups = []
    for g in range(n_groups):
        own = model.confidence_[model.labels_ == g]
        mean = float(own.mean(dtype=np.float64)) if own.size else float("nan")
        n_clear, n_doubtful = int((own >= CLEAR).sum()), int((own < DOUBTFUL).sum())
        features = tuple(one for one in effects if one.cluster == g)
        groups.append(GroupFacts(g, len(own), mean, n_clear, n_doubtful, features))
    return tuple(groups)


def doubtful_samples(model: Any, codes: Array, *, no_ids: bool) -> tuple[DoubtfulSample, ...]:
    """Return the samples of the lowest confidence, with the group of the second nearest centre."""
    lowest = np.argsort(model.confidence_, kind="stable")[:_N_DOUBTFUL]
    distances = euclidean_distances(model.latent_points(model.embedding_[lowest]), model.cluster_centers_)
    distances[np.arange(len(lowest)), model.labels_[lowest]] = np.inf
    distances[:, np.bincount(model.labels_, minlength=distances.shape[1]) == 0] = np.inf  # empty groups do not count
    found = []
    for i, row in zip(lowest, distances, strict=True):
        name = None if no_ids else str(model.sample_ids_[i])
        other = int(row.argmin()) if np.isfinite(row).any() else None
        found.append(DoubtfulSample(name, int(model.labels_[i]), float(model.confidence_[i]), other, int(codes[i])))
    return tuple(found)


# -- missing views -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ViewGap:
    """Association of one view with the groups; None and NaN if all samples or none have it."""

    association: Association | None
    adjusted: float  # p-value corrected for the number of views


@dataclass(frozen=True)
class Gaps:
    """Which samples lack which views.

    Attributes
    ----------
    patterns : tuple of Pattern
        The most frequent first.
    codes : array of shape (n_samples,)
        The pattern of every sample.
    share : array of shape (n_groups, n_views)
        Share of the samples of a group that have the view; NaN for an empty group.
    tested : GroupAssociation or None
        Association of patterns with groups; None if there is one pattern or one group only.
    """

    patterns: tuple[Pattern, ...]
    codes: Array = field(repr=False)
    views: tuple[ViewGap, ...]
    share: Array = field(repr=False)
    tested: GroupAssociation | None


def summarise_gaps(views: Views, labels: Array, n_groups: int) -> Gaps:
    """Return the patterns of missing views, and tests of their association with the groups."""
    patterns, codes = count_patterns(views.mask)
    share = np.full((n_groups, views.n_views), np.nan)
    for g in np.unique(labels):
        share[g] = views.mask[labels == g].mean(axis=0)
    tests = [associate(labels, column) for column in views.mask.T]
    adjusted = iter(holm([one.p_value for one in tests if one is not None]))
    by_view = tuple(ViewGap(one, float("nan") if one is None else next(adjusted)) for one in tests)
    tested = missing_views_association(labels, views.mask, views.names)
    return Gaps(patterns, codes, by_view, share, tested)


# -- map ---------------------------------------------------------------------------------------------------------------


MOST_SHOWN = 20_000  # in a figure
MOST_MAPPED = 50_000  # in a report, whose file contains them
_N_LANDMARKS = 2000  # samples for t-SNE, which takes minutes for many more
_LEAST_FOR_TSNE = 20
_N_ITERATIONS = 500  # of t-SNE; later iterations only increase distances
_N_SIDES = 5  # landmarks from which the position of another sample is interpolated
_EXTENT = 10_000  # length of the longer side of the map


@dataclass(frozen=True)
class SampleMap:
    """Samples on a plane.

    Attributes
    ----------
    samples : array of shape (n_shown,)
        Positions of the samples shown, in order of confidence if the method has one.
    x, y : int arrays of shape (n_shown,)
        Their coordinates, from 0 to 10,000.
    method : {"t-SNE", "PCA"}
        Method of projection.
    n_landmarks : int
        Number of samples that t-SNE has placed; the others are interpolated between the nearest of them.
    """

    samples: Array = field(repr=False)
    x: Array = field(repr=False)
    y: Array = field(repr=False)
    method: str
    n_landmarks: int


def summarise_map(model: Any, codes: Array, most: int = MOST_SHOWN) -> SampleMap:
    """Return the map of at most ``most`` samples, sampled in proportion from every group and pattern."""
    return place_samples(model.labels_, latent_points_of(model), getattr(model, "confidence_", None), codes, most)


def latent_points_of(model: Any) -> Callable[[Array], Array]:
    """Return a function that returns the latent points of some of the training samples."""

    def points(samples: Array) -> Array:
        codes = model.embedding_[samples]
        return np.asarray(model.latent_points(codes) if hasattr(model, "latent_points") else codes)

    return points


def place_samples(
    labels: Array,
    points_of: Callable[[Array], Array],
    confidence: Array | None,
    codes: Array,
    most: int = MOST_SHOWN,
) -> SampleMap:
    """Return the map of samples whose points a function returns, drawn in proportion from every group and code."""
    strata = np.unique(np.stack([labels, codes], axis=1), axis=0, return_inverse=True)[1].ravel()
    samples = draw_samples(strata, most)
    if confidence is not None:
        samples = samples[np.argsort(confidence[samples], kind="stable")]
    places, method, n_landmarks = _placed(np.asarray(points_of(samples), dtype=np.float64), labels[samples])
    places -= places.min(axis=0)
    extent = float(places.max()) or 1.0
    x, y = np.rint(places.T * (_EXTENT / extent)).astype(np.int64)
    return SampleMap(samples, x, y, method, n_landmarks)


def draw_samples(strata: Array, most: int, seed: int = 0) -> Array:
    """Return at most ``most`` samples, drawn in proportion from every stratum, at least one of each if possible."""
    n_samples, sizes = len(strata), np.bincount(strata)
    if n_samples <= most:
        return np.arange(n_samples)
    least = int((sizes > 0).sum()) if (sizes > 0).sum() <= most // 2 else 0
    wanted = np.minimum(sizes, np.floor(sizes * ((most - least) / n_samples)).astype(np.int64) + (least > 0))
    order = np.random.RandomState(seed).permutation(n_samples)
    order = order[np.argsort(strata[order], kind="stable")]
    rank = np.arange(n_samples) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # within the stratum
    return np.sort(order[rank < np.repeat(wanted, sizes)])


def _placed(points: Array, labels: Array) -> tuple[Array, str, int]:
    if len(points) < _LEAST_FOR_TSNE or len(np.unique(points, axis=0)) < _LEAST_FOR_TSNE:
        return _by_components(points), "PCA", 0
    landmarks = draw_samples(labels, _N_LANDMARKS)
    perplexity = min(30.0, (len(landmarks) - 1) / 3)
    found = TSNE(2, perplexity=perplexity, max_iter=_N_ITERATIONS, init="pca", random_state=0)
    with threadpool_limits(1, user_api="openmp"):  # its threads wait for each other on a busy machine
        known = found.fit_transform(points[landmarks]).astype(np.float64)
    places = np.empty((len(points), 2))
    places[landmarks] = known
    others = np.setdiff1d(np.arange(len(points)), landmarks)
    if others.size:
        distances, sides = nearest(points[landmarks], _N_SIDES, points[others])
        weights = 1 / np.maximum(distances, 1e-6 * max(float(distances.max()), 1e-12))
        places[others] = np.einsum("ij,ijk->ik", weights / weights.sum(axis=1, keepdims=True), known[sides])
    return places, "t-SNE", len(landmarks)


def _by_components(points: Array) -> Array:
    """Return the first two principal components; zeros where there are fewer."""
    places = np.zeros((len(points), 2))
    n_directions = min(2, points.shape[1], len(points) - 1)
    if n_directions > 0 and np.ptp(points, axis=0).any():
        places[:, :n_directions] = PCA(n_directions, svd_solver="full").fit_transform(points)
    return places
