"""Small problems for tests: hand-made views and hypothesis strategies over shapes, patterns and weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st


@dataclass(frozen=True)
class Case:
    """Random matrices over all samples, a mask, and weights."""

    matrices: list[np.ndarray]
    mask: np.ndarray
    n_clusters: int
    n_components: int
    consensus_weight: float
    sparsity_weight: float
    n_neighbors: int
    seed: int


def random_mask(rng: np.random.RandomState, n_samples: int, n_views: int, share: float, least: int) -> np.ndarray:
    """Any pattern in which every sample has a view and every view at least some samples."""
    mask = rng.uniform(size=(n_samples, n_views)) < share
    mask[np.arange(n_samples), rng.randint(n_views, size=n_samples)] = True
    for view in range(n_views):
        mask[rng.permutation(n_samples)[:least], view] = True
    return mask


@st.composite
def cases(draw: st.DrawFn, nonnegative: bool = False) -> Case:
    seed = draw(st.integers(0, 2**16))
    rng = np.random.RandomState(seed)
    n_views = draw(st.integers(1, 4))
    n_samples = draw(st.integers(6, 40))
    n_neighbors = draw(st.integers(1, 4))
    matrices = []
    for _ in range(n_views):
        matrix = rng.normal(size=(n_samples, draw(st.integers(2, 12))))
        matrix = np.abs(matrix) if nonnegative else matrix
        matrices.append(matrix * 10.0 ** draw(st.integers(-3, 3)))
    if draw(st.booleans()):  # rows of zeros and repeated rows are data, too
        matrices[0][0] = 0
        matrices[0][1] = matrices[0][2]
    mask = random_mask(rng, n_samples, n_views, draw(st.sampled_from([0.0, 0.3, 0.7, 1.0])), n_neighbors + 1)
    return Case(
        matrices,
        mask,
        draw(st.integers(1, 5)),
        draw(st.integers(1, 8)),
        draw(st.sampled_from([0.0, 0.1, 1.0, 100.0])),
        draw(st.sampled_from([0.0, 1e-4, 1e-2, 0.1])),
        n_neighbors,
        seed,
    )


def hidden(matrices: list[np.ndarray], mask: np.ndarray) -> list[np.ndarray]:
    """Put NaN where the mask says that a view is missing."""
    return [np.where(mask[:, [k]], matrix, np.nan) for k, matrix in enumerate(matrices)]


def by_size_and_id(labels, ids):
    """Return labels numbered by group size, ties by the smallest id, which are compared as they are."""
    groups = [[key for key, label in zip(ids, labels, strict=True) if label == group] for group in np.unique(labels)]
    groups.sort(key=lambda own: (-len(own), min(own)))
    number = {key: i for i, own in enumerate(groups) for key in own}
    return np.array([number[key] for key in ids])
