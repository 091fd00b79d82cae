"""The map of the samples: a projection of the latent space to the plane."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

from ...graph.neighbors import nearest
from ...utils.types import Array

MOST_SHOWN = 20_000
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
    strata = np.unique(np.stack([model.labels_, codes], axis=1), axis=0, return_inverse=True)[1].ravel()
    samples = draw_samples(strata, most)
    if hasattr(model, "confidence_"):
        samples = samples[np.argsort(model.confidence_[samples], kind="stable")]
    points = model.embedding_[samples]
    points = np.asarray(model.latent_points(points) if hasattr(model, "latent_points") else points, dtype=np.float64)
    places, method, n_landmarks = _placed(points, model.labels_[samples])
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
