"""Groups of rows: k-means with restarts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans

from gapview.clusters import cluster_rows
from gapview.datasets import make_views


@pytest.mark.parametrize("n_clusters", [1, 2, 7])
@pytest.mark.parametrize("normalize", [True, False])
def test_the_groups_of_scikit_learn(n_clusters: int, normalize: bool) -> None:
    points = make_views(300, (8,), n_clusters=6, random_state=1).views.matrices[0] + 3
    ours, theirs = np.random.RandomState(5), np.random.RandomState(5)
    found = cluster_rows(points, n_clusters, ours, normalize=normalize)
    scaled = points / np.linalg.norm(points, axis=1, keepdims=True) if normalize else points
    expected = KMeans(n_clusters, n_init=20, random_state=theirs).fit(scaled)
    np.testing.assert_array_equal(found.labels, expected.labels_)
    np.testing.assert_allclose(found.centers, expected.cluster_centers_, rtol=1e-9)
    assert ours.random_sample() == theirs.random_sample()
