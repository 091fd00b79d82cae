"""Huge values and samples on which settings are tried: the same in memory, on disk and on Dask."""

from __future__ import annotations

import numpy as np
import pytest

from gapview import GRMF, BridgedGRMF
from gapview.choice import candidates as _plan
from gapview.errors import ParameterError

pytest.importorskip("dask.array")
pytest.importorskip("distributed")

N_ROWS = 1200
PLACES = ["memory", "disk", "dask"]
each_place = pytest.mark.parametrize("where", PLACES)
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::gapview.errors.GapviewWarning"),
]


def normal(n_features=300, n_rows=N_ROWS, seed=0):
    return np.random.RandomState(seed).normal(size=(n_rows, n_features))


class TestScaling:
    @each_place
    def test_huge_rows_keep_a_finite_mean_length(self, where, places):
        """The sum of the lengths overflows; their mean does not."""
        values = normal()
        values *= 1e307 / np.linalg.norm(values, axis=1, keepdims=True)
        model = places(where).fit(GRMF(3, scale="unit", max_iter=2, random_state=0), [values])
        assert model.scalings_[0].row_length == pytest.approx(1e307)

    @each_place
    def test_cells_hold_neighbours_of_huge_unscaled_rows(self, where, places):
        """Values beyond single precision whose squares are finite."""
        values = 1e100 * normal(300, n_rows=1500, seed=2)
        values[:, :5] *= 50
        model = GRMF(3, scale=None, init="data", search="approximate", max_iter=2, tol=0)
        found = places(where).fit(model, [values]).neighbor_search_[0]
        assert (found.method, found.recall >= 0.95) == ("approximate", True)


class TestTrialSamples:
    @each_place
    def test_a_rare_view_has_enough_neighbors(self, where, places):
        """A view that 12 of 20,000 samples have allows 10 neighbours."""
        values = [normal(20, n_rows=20_000), normal(3, n_rows=20_000, seed=1)]
        values[1][np.random.RandomState(0).permutation(20_000)[12:]] = np.nan
        model = BridgedGRMF(
            3, n_neighbors=10, bridge="union", reach=1, scale="standard", view_weights=None, max_iter=2, random_state=0
        )
        assert places(where).fit(model, values).setting_.n_neighbors == (10, 10)

    @each_place
    def test_counts_in_messages_are_those_of_all_samples(self, where, places):
        values = [normal(20, n_rows=20_000), normal(3, n_rows=20_000, seed=1)]
        values[1][np.random.RandomState(0).permutation(20_000)[8:]] = np.nan
        model = BridgedGRMF(3, n_neighbors=10, bridge="union", selection="fixed", max_iter=2, random_state=0)
        text = "n_neighbors=10 needs at least 11 samples in every view; view 'view_1' is present for 8. Use"
        with pytest.raises(ParameterError, match=text):
            places(where).fit(model, values)

    @pytest.mark.parametrize("n_clusters", [3, 30])
    def test_settings_are_tried_on_the_same_samples(self, n_clusters, places, monkeypatch):
        """As many as the rule gives, those of a rare view among them."""
        monkeypatch.setattr("gapview.views.cells.N_TRIED", 400)
        values = [normal(40), normal(5, seed=1)]
        values[1][np.random.RandomState(0).permutation(N_ROWS)[30:]] = np.nan
        tried = []

        def seen(drawn, *arguments, **settings):
            tried.append(drawn.views.sample_ids)
            return original(drawn, *arguments, **settings)

        original = _plan.try_settings
        monkeypatch.setattr(_plan, "try_settings", seen)
        model = BridgedGRMF(n_clusters, bridge="auto", reach=1, view_weights=None, max_iter=2, random_state=0)
        for where in PLACES:
            places(where).fit(model, values)
        assert len(tried) == 3
        np.testing.assert_array_equal(tried[0], tried[2])
        assert len(tried[0]) >= max(400, 20 * n_clusters)
        assert np.isin(np.flatnonzero(~np.isnan(values[1][:, 0])), tried[0]).all()
        np.testing.assert_array_equal(tried[0], tried[1])
