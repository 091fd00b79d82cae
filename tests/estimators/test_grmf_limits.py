"""GRMF and BridgedGRMF at their limits: failed refits, warnings, graphs and starts of the user, large numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from gapview import GRMF, BridgedGRMF
from gapview.baselines import BestSingleView, Concat, ImputedKMeans
from gapview.datasets import make_views
from gapview.errors import GapviewError, GapviewWarning, InputError, SolutionError

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def made():
    return make_views(150, (12, 9, 7), n_clusters=3, missing_rate=0.3, random_state=1)


@pytest.fixture(scope="module")
def fitted(made):
    return GRMF(3, init="data", random_state=0).fit(made.views)


class TestRefit:
    @pytest.mark.parametrize("method", [GRMF, BridgedGRMF])
    def test_failure_leaves_the_earlier_model(self, made, method):
        other = make_views(60, (12, 9, 7), n_clusters=3, random_state=5).views
        model = method(3, random_state=0).fit(made.views)
        before = dict(vars(model))
        with pytest.raises(SolutionError):
            model.set_params(sparsity_weight=1e9).fit(other)
        after = dict(vars(model))
        assert after.pop("sparsity_weight") == 1e9
        assert all(after[name] is before[name] for name in after)
        assert set(after) == set(before) - {"sparsity_weight"}

    @pytest.mark.parametrize("method", [GRMF, BridgedGRMF, BestSingleView, Concat, ImputedKMeans])
    def test_interruption_leaves_the_earlier_model(self, made, method, monkeypatch):
        def interrupted(*args, **kwargs):
            raise KeyboardInterrupt

        model = method(3, random_state=0).fit(made.views)
        before = dict(vars(model))
        monkeypatch.setattr("gapview.clusters.kmeans_of_array", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(made.views[:60])
        assert vars(model).keys() == before.keys()
        assert all(value is before[name] for name, value in vars(model).items())
        with pytest.raises(KeyboardInterrupt):
            (fresh := method(3)).fit(made.views)
        assert not [name for name in vars(fresh) if name.endswith("_")]

    def test_success_keeps_nothing_of_the_earlier_model(self, made):
        model = GRMF(3, random_state=0).set_output(transform="pandas").fit(made.views)
        model.stale_ = 1
        model.fit(made.views)
        assert not hasattr(model, "stale_")
        assert isinstance(model.transform(made.views), pd.DataFrame)  # settings stay


class TestWarnings:
    @pytest.mark.parametrize("method", [GRMF, BridgedGRMF])
    @pytest.mark.parametrize("call", ["fit", "fit_predict", "fit_transform"])
    def test_they_point_at_the_caller(self, made, call, method):
        with pytest.warns(ConvergenceWarning) as caught:
            getattr(method(3, max_iter=1, random_state=0), call)(made.views)
        assert [warning.filename for warning in caught] == [__file__]

    def test_groups_not_found_point_at_the_caller(self):
        rows = np.repeat(np.eye(2, 3), 10, axis=0)
        with pytest.warns(GapviewWarning, match="distinct groups") as caught:
            GRMF(5, n_neighbors=2, tol=1e-3, init="data", random_state=0).fit_predict([rows, rows])
        assert {warning.filename for warning in caught} == {__file__}

    def test_one_iteration_has_no_change_to_tell(self, made):
        with pytest.warns(ConvergenceWarning, match=r"max_iter=1 .*one iteration shows no change") as caught:
            GRMF(3, max_iter=1, random_state=0).fit(made.views)
        assert "0.0e+00" not in str(caught[0].message)


class TestOwnGraphsAndStarts:
    @pytest.mark.parametrize(
        ("setting", "value", "message"),
        [
            ("graph", [np.ones(20)] * 2, r"'view_0' must be a matrix of 2 dimensions; got shape \(20,\)"),
            ("graph", [np.ones((20, 20)) * 1j] * 2, "'view_0' must hold real numbers; got complex"),
            ("graph", [sparse.csr_array(np.ones((20, 20)) * 1j)] * 2, "'view_0' must hold real numbers; got complex"),
            ("graph", [[[1], [1, 2]]] * 2, "'view_0' cannot be read as a matrix of numbers"),
            ("graph", {"view_0": np.ones((20, 20))}, "the dict has none for the view.* 'view_1'"),
            ("graph", [np.full((20, 20), 1e308)] * 2, "too large for float64"),
            ("init", ["a", "b"], "codes of view 'view_0' cannot be read as a matrix of numbers"),
            ("init", [[[1], [1, 2]]] * 2, "codes of view 'view_0' cannot be read as a matrix of numbers"),
            ("init", [np.ones((20, 2)) * 1j] * 2, "'view_0' must hold real numbers; got complex"),
            ("init", {"view_0": np.ones((20, 2))}, "the dict has none for the view.* 'view_1'"),
            ("init", [np.ones((20, 2)), None], "got 1 in a list"),
        ],
    )
    def test_what_cannot_be_read(self, setting, value, message):
        rng = np.random.RandomState(0)
        with pytest.raises(GapviewError, match=message):
            GRMF(2, **{setting: value}).fit([rng.normal(size=(20, 4)), rng.normal(size=(20, 3))])


class TestLargeNumbers:
    @pytest.mark.parametrize(("dtype", "size"), [(np.float64, 1e160), (np.float32, 1e30)])
    def test_unscaled_data_are_refused_and_scaled_ones_work(self, made, dtype, size):
        views = [matrix[:60].astype(dtype) * dtype(size) for matrix in made.views.matrices]
        with pytest.raises(SolutionError, match="scale='unit'"):
            GRMF(3, scale=None).fit(views)
        model = GRMF(3, init="data", random_state=0).fit(views)
        assert np.isfinite(model.place(views).p_value).all()
        model = GRMF(3, scale=None, init="data").fit(made.views)
        with (
            pytest.warns(GapviewWarning, match="larger by a factor of about .*10"),
            pytest.raises(InputError, match="units of the training data"),
        ):
            model.predict([np.full((1, 12), 1.7e308), None, None])

    def test_consensus_weight(self, made):
        whole = [matrix[:60] for matrix in made.views.matrices]
        assert np.isfinite(GRMF(3, consensus_weight=1e308, random_state=0).fit(whole).embedding_).all()
        with pytest.raises(SolutionError, match="lower consensus_weight"):
            GRMF(3, consensus_weight=1e39).fit([matrix.astype(np.float32) for matrix in whole])
