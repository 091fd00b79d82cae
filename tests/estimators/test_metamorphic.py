"""Changes of a problem that must not change the result, or change it in a known way.

Elsewhere: permuted samples and views, masks, dense and sparse views, frames, for every clusterer
(``test_contract.py``); tensors (``test_device.py``); views on disk (``test_disk_fits.py``); blocks on a cluster
(``test_distributed.py``).
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from disk_problems import saved, with_gaps
from gapview import GRMF, BridgedGRMF, Views
from gapview.backends.disk.budget import fit_size, plan_memory
from gapview.compute import arrays
from gapview.compute.arrays import row_blocks
from gapview.compute.engine import NumpyEngine
from gapview.datasets import make_views
from gapview.errors import InputError
from gapview.graph.knn import knn_graph

N = 90
MODELS = {
    "GRMF": GRMF(3, init="data", max_iter=60, random_state=0),
    "GRMF-random": GRMF(3, n_init=2, max_iter=60, random_state=0),
    "BridgedGRMF": BridgedGRMF(3, selection="fixed", random_state=0),
    "BridgedGRMF-auto": BridgedGRMF(3, random_state=0),
}
each_model = pytest.mark.parametrize("name", MODELS)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def made():
    return make_views(N, (9, 7), n_clusters=3, missing_rate=0.3, random_state=4)


def fitted(name, views, **settings):
    return clone(MODELS[name]).set_params(**settings).fit(views)


def changed(views, matrices, mask=None, ids=None):
    """The same views with other matrices."""
    names = [f"v{k}" for k in range(len(matrices))]
    whole = []
    mask = views.mask if mask is None else mask
    for k, matrix in enumerate(matrices):
        full = np.zeros((len(mask), matrix.shape[1]), dtype=matrix.dtype)
        full[mask[:, k]] = matrix
        whole.append(full)
    return Views(whole, mask=mask, names=names, sample_ids=ids)


def same(first, second, tolerance=1e-7):
    """Labels, confidence and the rows that codes stand for: the latent space itself may be turned."""
    assert adjusted_rand_score(first.labels_, second.labels_) == pytest.approx(1.0)
    np.testing.assert_allclose(second.confidence_, first.confidence_, atol=100 * tolerance)
    ours, theirs = (model.embedding_ @ model.embedding_.T for model in (first, second))
    np.testing.assert_allclose(theirs, ours, atol=tolerance * np.abs(ours).max())


class TestSizes:
    """Scaling by rows or features takes the size of a view away."""

    @each_model
    @pytest.mark.parametrize("power", [-300, 300])
    def test_a_power_of_two_changes_no_digit(self, name, power, made):
        plain = changed(made.views, made.views.matrices)
        matrices = [np.ldexp(made.views.matrices[0], power), made.views.matrices[1]]
        first, second = fitted(name, plain), fitted(name, changed(made.views, matrices))
        for attribute in ("labels_", "embedding_", "confidence_", "objective_"):
            np.testing.assert_array_equal(getattr(first, attribute), getattr(second, attribute))
        np.testing.assert_array_equal(second.recover()[0], np.ldexp(first.recover()[0], power))

    @each_model
    @pytest.mark.parametrize("factor", [1e-30, 0.3, 7.0])
    def test_other_constants_change_rounding_alone(self, name, factor, made):
        matrices = [matrix * factor for matrix in made.views.matrices]
        same(fitted(name, made.views), fitted(name, changed(made.views, matrices)))

    def test_without_scaling_the_objective_grows_with_the_square(self, made):
        settings = {"scale": None, "sparsity_weight": 0.0, "init": "data", "tol": 0, "max_iter": 20, "random_state": 0}
        first = GRMF(3, **settings).fit(made.views)
        second = GRMF(3, **settings).fit(changed(made.views, [8 * matrix for matrix in made.views.matrices]))
        np.testing.assert_array_equal(second.objective_, 64 * first.objective_)
        np.testing.assert_array_equal(second.embedding_, 8 * first.embedding_)


class TestViewsAndSamples:
    def test_a_view_twice_weighs_twice(self, made):
        """The objective of two equal views without ties is twice that of one, and the codes are the same."""
        view = Views([made.views.matrices[0]])
        start = np.random.RandomState(0).uniform(size=(view.n_samples, 3))
        settings = {"tol": 0, "max_iter": 20, "random_state": 0}
        once = GRMF(3, init=[start], **settings).fit(view)
        twice = GRMF(3, init=[start, start], consensus_weight=0.0, **settings).fit(Views([view.matrices[0]] * 2))
        np.testing.assert_allclose(twice.objective_, 2 * once.objective_, rtol=1e-12)
        np.testing.assert_allclose(twice.embedding_, once.embedding_, atol=1e-12)
        np.testing.assert_array_equal(twice.labels_, once.labels_)

    def test_equal_views_agree_however_firmly_they_are_tied(self, made):
        """Codes that are equal pay nothing for their ties, and the steps keep them equal."""
        view = made.views.matrices[0]
        start = np.random.RandomState(0).uniform(size=(len(view), 3))
        fits = [
            GRMF(3, init=[start, start], consensus_weight=weight, tol=0, max_iter=20).fit([view, view])
            for weight in (0.01, 100.0)
        ]
        for model in fits:
            np.testing.assert_allclose(model.codes_[0], model.codes_[1], atol=1e-12)

    @each_model
    def test_names_of_samples_say_nothing(self, name, made):
        ids = np.array([f"patient {number:03d}" for number in np.random.RandomState(0).permutation(N)], dtype=object)
        first = fitted(name, changed(made.views, made.views.matrices))
        second = fitted(name, changed(made.views, made.views.matrices, ids=ids))
        np.testing.assert_array_equal(first.labels_, second.labels_)
        np.testing.assert_array_equal(first.embedding_, second.embedding_)
        np.testing.assert_array_equal(second.sample_ids_, ids)
        np.testing.assert_array_equal(first.predict(first.views_), second.predict(second.views_))

    @each_model
    def test_order_of_samples_and_views_at_once(self, name, made):
        """For starts of chance, the start goes with the samples (``test_contract.py``)."""
        if name == "GRMF-random":
            pytest.skip("see test_contract.py")
        order = np.random.RandomState(1).permutation(N)
        turned = made.views[order]
        second = fitted(name, changed(turned, turned.matrices[::-1], turned.mask[:, ::-1]))
        first = fitted(name, made.views)
        assert adjusted_rand_score(first.labels_[order], second.labels_) == pytest.approx(1.0)
        np.testing.assert_allclose(second.confidence_, first.confidence_[order], atol=1e-5)

    @pytest.mark.parametrize("method", [GRMF, BridgedGRMF])
    def test_features_in_another_order_and_turned(self, method, made):
        """Distances and products between rows do not depend on the axes, up to rounding, if rows alone are scaled."""
        settings = {"scale": "unit", "random_state": 0}
        settings |= {"init": "data"} if method is GRMF else {"selection": "fixed"}
        axes = [np.linalg.qr(np.random.RandomState(k).normal(size=(m, m)))[0] for k, m in enumerate((9, 7))]
        matrices = [matrix @ turn for matrix, turn in zip(made.views.matrices, axes, strict=True)]
        same(method(3, **settings).fit(made.views), method(3, **settings).fit(changed(made.views, matrices)), 1e-6)

    @pytest.mark.parametrize("method", [GRMF, BridgedGRMF])
    def test_a_feature_of_zeros_adds_nothing(self, method, made):
        settings = {"scale": "unit", "random_state": 0}
        settings |= {"init": "data"} if method is GRMF else {"selection": "fixed"}
        matrices = [np.column_stack([matrix, np.zeros(len(matrix))]) for matrix in made.views.matrices]
        same(method(3, **settings).fit(made.views), method(3, **settings).fit(changed(made.views, matrices)))

    @each_model
    def test_samples_without_any_view_are_refused_and_left_alone(self, name, made):
        mask = np.vstack([made.views.mask, np.zeros((1, 2), dtype=bool)])
        with pytest.raises(InputError, match="Every sample needs at least one view"):
            fitted(name, changed(made.views, made.views.matrices, mask))

    def test_a_graph_of_ones_own_that_is_the_usual_one(self, made):
        usual = GRMF(3, n_neighbors=4, random_state=0).fit(made.views)
        scaled = [scaling.apply(m) for scaling, m in zip(usual.scalings_, made.views.matrices, strict=True)]
        given = [knn_graph(matrix, 4) for matrix in scaled]
        for graphs in (given, [graph.toarray() for graph in given]):
            own = GRMF(3, graph=graphs, random_state=0).fit(made.views)
            np.testing.assert_array_equal(own.embedding_, usual.embedding_)
            np.testing.assert_array_equal(own.labels_, usual.labels_)


class TestHowItIsComputed:
    @each_model
    @pytest.mark.parametrize("n_rows", [7, 50])
    def test_blocks_of_rows(self, name, n_rows, made, monkeypatch):
        whole, asked = fitted(name, made.views), []
        monkeypatch.setattr(row_blocks, "__defaults__", (n_rows,))
        monkeypatch.setattr(arrays, "FEW_ROWS", n_rows)
        assert len(row_blocks(np.empty((N, 1)))) > 1
        monkeypatch.setattr(NumpyEngine, "rows_at_a_time", lambda self, row_bytes: asked.append(1) or n_rows)
        same(whole, fitted(name, made.views), 1e-9)
        assert asked

    @each_model
    def test_threads(self, name, made):
        with threadpool_limits(1):
            one = fitted(name, made.views)
        with threadpool_limits(2):
            two = fitted(name, made.views)
        np.testing.assert_array_equal(one.labels_, two.labels_)
        same(one, two, 1e-9)

    @pytest.mark.parametrize("method", [GRMF, BridgedGRMF])
    def test_a_memory_budget_and_views_on_disk(self, method, tmp_path):
        data = make_views(1200, (300, 200), n_clusters=3, missing_rate=0.3, random_state=3)
        settings = {"random_state": 0, "max_iter": 20, "tol": 0}
        settings |= (
            {"init": "data"} if method is GRMF else {"selection": "fixed", "bridge": "union", "scale": "center+unit"}
        )
        plain = method(3, **settings).fit(data.views)
        plan = plan_memory(fit_size(method(3, **settings), data.views))
        same(plain, method(3, memory_budget=plan.in_memory, **settings).fit(data.views), 0.0)
        maps = saved(tmp_path, with_gaps(data.views))
        budgets = [plan.least, (plan.least + plan.in_memory) // 2]
        for budget in budgets:
            same(plain, method(3, memory_budget=budget, **settings).fit(maps), 1e-7)

    @each_model
    def test_half_the_digits(self, name, made):
        single = changed(made.views, [matrix.astype(np.float32) for matrix in made.views.matrices])
        first, second = fitted(name, made.views), fitted(name, single)
        assert second.embedding_.dtype == np.float32
        assert adjusted_rand_score(first.labels_, second.labels_) == pytest.approx(1.0)
        np.testing.assert_allclose(second.confidence_, first.confidence_, atol=1e-2)
        np.testing.assert_allclose(second.objective_[-1], first.objective_[-1], rtol=1e-3)

    @each_model
    def test_tensors_on_the_processor(self, name, made):
        """``test_device.py`` has more, and a GPU."""
        pytest.importorskip("torch")
        first, second = fitted(name, made.views), fitted(name, made.views, device="cpu")
        assert adjusted_rand_score(first.labels_, second.labels_) == pytest.approx(1.0)
        np.testing.assert_allclose(second.objective_[-1], first.objective_[-1], rtol=1e-6)

    @each_model
    def test_sparse_new_samples_of_a_dense_model(self, name, made):
        """A dense model takes the same rows in whatever matrix they come."""
        model = fitted(name, made.views)
        rows = made.views.matrices[0][:12]
        dense = model.transform([rows, None])
        np.testing.assert_allclose(model.transform([sparse.csr_array(rows), None]), dense, atol=1e-12)
