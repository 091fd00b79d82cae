"""Large views of many features are smoothed on their leading directions."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from gapview import BridgedGRMF
from gapview.backends import memory
from gapview.datasets import hide_views, make_views


def test_large_wide_views_are_smoothed_on_leading_directions(monkeypatch):
    data = make_views(400, (200, 150), n_clusters=3, missing_rate=0.3, random_state=0)
    whole = BridgedGRMF(3, random_state=0).fit(data.views)
    monkeypatch.setattr(memory, "LARGE", 0)
    model = BridgedGRMF(3, random_state=0).fit(data.views)
    assert adjusted_rand_score(whole.labels_, model.labels_) > 0.99
    assert model.objective_[-1] == pytest.approx(whole.objective_[-1], rel=1e-3)
    for basis, width in zip(model.bases_, (200, 150), strict=True):
        assert basis.shape == (6, width)
        np.testing.assert_allclose(basis @ basis.T, np.eye(6), atol=1e-10)


def test_directions_of_all_rows_change_nothing_but_rounding(monkeypatch):
    rank = 20  # of both views, fewer than the directions
    latent = np.random.RandomState(0).normal(size=(300, rank)) + np.repeat(6 * np.eye(3, rank), 100, axis=0)
    views = hide_views(
        [latent @ np.random.RandomState(k).normal(size=(rank, 200)) for k in (1, 2)], 0.3, random_state=0
    )
    options = {"scale": "unit", "random_state": 0, "max_iter": 5, "tol": 0}
    whole = BridgedGRMF(3, **options).fit(views)
    monkeypatch.setattr(memory, "LARGE", 0)
    model = BridgedGRMF(3, **options).fit(views)
    np.testing.assert_allclose(model.objective_, whole.objective_, rtol=1e-9)
    np.testing.assert_array_equal(model.labels_, whole.labels_)
