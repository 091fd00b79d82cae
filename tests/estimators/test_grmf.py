"""GRMF as a person uses it: labels, any pattern of gaps, graphs and scales, the table of the paper."""

from __future__ import annotations

import pickle
import warnings
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from gapview import GRMF, Views
from gapview.datasets import hide_views, make_views, paired_split
from gapview.errors import GapviewWarning, InputError, SolutionError
from gapview.metrics import clustering_accuracy, clustering_scores
from problems import cases, hidden


@pytest.fixture(scope="module")
def made():
    return make_views(150, (12, 9, 7), n_clusters=3, missing_rate=0.3, random_state=1)


@pytest.fixture(scope="module")
def fitted(made):
    return GRMF(3, init="data", random_state=0).fit(made.views)


def test_shapes_and_names(made, fitted):
    assert fitted.labels_.shape == (150,)
    assert set(fitted.labels_) == {0, 1, 2}
    assert fitted.embedding_.shape == (150, 3)
    assert [code.shape for code in fitted.codes_] == [(105, 3)] * 3
    assert [basis.shape for basis in fitted.bases_] == [(3, 12), (3, 9), (3, 7)]
    assert fitted.cluster_centers_.shape == (3, 3)
    assert len(fitted.objective_) == fitted.n_iter_
    np.testing.assert_array_equal(fitted.sample_ids_, np.arange(150))
    assert clustering_accuracy(made.target, fitted.labels_) > 0.95


def test_embedding_is_the_mean_of_the_codes_a_sample_has(made, fitted):
    total = np.zeros((150, 3))
    for k, code in enumerate(fitted.codes_):
        total[made.views.rows(k)] += code
    np.testing.assert_allclose(fitted.embedding_, total / made.views.mask.sum(axis=1, keepdims=True), atol=1e-12)


def test_same_seed_same_result(made):
    first, second = (GRMF(3, random_state=7).fit(made.views) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    np.testing.assert_array_equal(first.embedding_, second.embedding_)
    assert (GRMF(3, random_state=8).fit(made.views).embedding_ != first.embedding_).any()


def test_data_start_needs_no_seed_for_the_codes(made):
    first, second = (GRMF(3, init="data", random_state=seed).fit(made.views) for seed in (0, 1))
    np.testing.assert_array_equal(first.embedding_, second.embedding_)


def test_stops_at_tol_or_warns_at_max_iter(made):
    with pytest.warns(ConvergenceWarning, match=r"max_iter=3 .*Raise max_iter or tol"):
        GRMF(3, max_iter=3, random_state=0).fit(made.views)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exact = GRMF(3, max_iter=3, tol=0, random_state=0).fit(made.views)  # asked for three, got three
    assert exact.n_iter_ == 3
    settled = GRMF(3, tol=1e-4, random_state=0).fit(made.views).objective_
    assert abs(settled[-2] - settled[-1]) <= 1e-4 * settled[-2]
    assert abs(settled[-3] - settled[-2]) > 1e-4 * settled[-3]


@settings(max_examples=40)
@given(cases())
@pytest.mark.filterwarnings("ignore")  # few iterations and few distinct samples are part of the cases
def test_any_pattern_gives_a_whole_result(case):
    model = GRMF(
        case.n_clusters,
        n_components=case.n_components,
        consensus_weight=case.consensus_weight,
        sparsity_weight=case.sparsity_weight,
        n_neighbors=case.n_neighbors,
        max_iter=20,
        random_state=case.seed,
    )
    try:
        model.fit(hidden(case.matrices, case.mask))
    except (SolutionError, InputError):
        return
    assert np.isfinite(model.embedding_).all()
    assert np.diff(model.objective_).max(initial=0) <= 1e-10 * model.objective_[0]
    assert model.labels_.shape == (len(case.mask),)
    for recovered, matrix, present in zip(model.recover(), case.matrices, case.mask.T, strict=True):
        assert np.isfinite(recovered).all()
        np.testing.assert_array_equal(recovered[present], matrix[present])
    assert model.predict(hidden(case.matrices, case.mask)).shape == (len(case.mask),)


def test_one_view_and_complete_views_go_the_same_way(made):
    complete = make_views(120, (12, 9), n_clusters=3, random_state=0)
    assert clustering_accuracy(complete.target, GRMF(3, random_state=0).fit_predict(complete.views)) > 0.95
    single = GRMF(3, random_state=0).fit(complete.views.matrices[0])
    assert clustering_accuracy(complete.target, single.labels_) > 0.95


def test_views_without_a_shared_sample():
    mask = np.zeros((120, 2), dtype=bool)
    mask[:60, 0] = mask[60:, 1] = True
    data = make_views(120, (12, 9), n_clusters=3, random_state=0)
    with pytest.warns(GapviewWarning, match="No sample links these 2 parts"):
        model = GRMF(3, random_state=0).fit(data.views, mask=mask)
    assert np.isfinite(model.embedding_).all()


def test_graph_of_the_user(made, fitted):
    again = GRMF(3, graph=fitted.graphs_, init="data", random_state=0).fit(made.views)
    np.testing.assert_array_equal(again.labels_, fitted.labels_)
    over_all = []
    for k, graph in enumerate(fitted.graphs_):
        rows = made.views.rows(k)
        whole = sparse.lil_array((150, 150))
        whole[np.ix_(rows, rows)] = graph.toarray()
        over_all.append(whole.tocsr())
    third = GRMF(3, graph=dict(zip(made.views.names, over_all, strict=True)), init="data", random_state=0).fit(
        made.views
    )
    np.testing.assert_array_equal(third.labels_, fitted.labels_)


def test_samples_without_neighbors_are_projected():
    """No neighbour, no code from the graph; the sample still gets a place and a label (Remark 1)."""
    data = make_views(60, (8, 6), n_clusters=2, random_state=0)
    graphs = []
    for matrix in GRMF(2, random_state=0).fit(data.views).graphs_:
        dense = matrix.toarray()
        dense[0] = dense[:, 0] = 0
        graphs.append(dense)
    model = GRMF(2, graph=graphs, random_state=0).fit(data.views)
    expected = [
        scaling.apply(matrix)[0] @ basis.T
        for scaling, matrix, basis in zip(model.scalings_, data.views.matrices, model.bases_, strict=True)
    ]
    np.testing.assert_allclose(model.embedding_[0], np.mean(expected, axis=0), atol=1e-12)
    assert [code.shape for code in model.codes_] == [(60, 2)] * 2
    assert clustering_accuracy(data.target, model.labels_) > 0.9


@pytest.mark.parametrize("scale", ["unit", "center+unit", "standard", "standard+view", "standard+unit", None])
def test_every_scale_works(scale):
    data = make_views(120, (12, 9), n_clusters=3, separation=9, missing_rate=0.2, random_state=0)
    model = GRMF(3, scale=scale, init="data", random_state=0, max_iter=1000).fit(data.views)
    assert clustering_accuracy(data.target, model.labels_) > 0.9
    for k, view in enumerate(model.recover(method="basis")):  # back in the units of the data
        lost = ~data.views.mask[:, k]
        assert 0.2 < np.abs(view[lost]).mean() / np.abs(data.views.matrices[k]).mean() < 2


def test_more_components_than_features_or_clusters():
    data = make_views(80, (3, 2, 12), n_clusters=4, random_state=0)
    model = GRMF(4, n_components=6, scale="standard", random_state=0, max_iter=1000).fit(data.views)
    assert model.embedding_.shape == (80, 6)
    np.testing.assert_allclose(model.bases_[1].T @ model.bases_[1], np.eye(2), atol=1e-9)
    assert [view.shape for view in model.recover()] == [(80, 3), (80, 2), (80, 12)]


def test_single_precision_goes_through(made):
    single = Views([m.astype(np.float32) for m in hide_views(made.views, 0.0).matrices[:1]])
    assert GRMF(3, random_state=0).fit(single).embedding_.dtype == np.float32
    mixed = [np.asarray(made.target[:, None] + np.eye(150)[:, :5], dtype=np.uint8), np.eye(150, 7, dtype=np.float32)]
    mixed[1] += np.random.RandomState(0).normal(size=mixed[1].shape).astype(np.float32)
    assert GRMF(3, random_state=0).fit(mixed).embedding_.dtype == np.float64


@pytest.mark.parametrize("kind", [np.float64, Fraction])
def test_weights_of_any_kind_keep_single_precision(made, kind):
    single = [matrix[:50].astype(np.float32) for matrix in made.views.matrices]
    weights = {"consensus_weight": kind(0.5), "sparsity_weight": kind(0.125), "tol": kind(0.001)}
    assert GRMF(3, random_state=0, **weights).fit(single).embedding_.dtype == np.float32


@pytest.mark.filterwarnings("ignore:.*nothing but zeros")  # said of the rows of zeros, as it should be
def test_rows_of_zeros_do_not_spoil_a_view():
    """Four in a hundred rows of zeros, which say nothing, leave the groups of the other samples as they are."""
    rng = np.random.RandomState(0)
    target = np.arange(200) % 4
    view = rng.normal(size=(4, 300))[target] * 0.3 + rng.normal(size=(200, 300))  # few cosines above 0.5
    assert clustering_accuracy(target, GRMF(4, random_state=0).fit_predict(view)) > 0.95
    empty = np.arange(0, 200, 25)
    view[empty] = 0
    model = GRMF(4, random_state=0).fit(view)
    others = np.setdiff1d(np.arange(200), empty)
    assert clustering_accuracy(target[others], model.labels_[others]) > 0.95
    assert not model.embedding_[empty].any()
    assert not any(graph[empty].nnz for graph in model.graphs_)


def test_view_with_one_row_that_is_not_zero_is_refused(made):
    lonely = np.zeros((50, 3))
    lonely[0] = 1
    with pytest.raises(InputError, match="graph of view 'view_1' has no edge .*Leave this view out"):
        GRMF(3).fit([made.views.matrices[0][:50], lonely])


def test_pickle_keeps_everything(made, fitted):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(made.views), fitted.predict(made.views))


@pytest.mark.data
class TestHandwritten:
    TABLE_2: ClassVar = {
        0.1: (72.70, 66.48),
        0.3: (79.67, 71.28),
        0.5: (86.22, 77.27),
        0.7: (88.98, 80.48),
        0.9: (90.77, 83.55),
    }

    @pytest.mark.parametrize(
        "rate", [0.1, 0.5, 0.9, *(pytest.param(rate, marks=pytest.mark.slow) for rate in (0.3, 0.7))]
    )
    def test_table_2_of_the_paper(self, dataset, rate):
        """Folds 0 to 4, the paper's own settings: within 2 points of the printed ACC and NMI."""
        data = dataset("handwritten_2v")
        scores = []
        for fold in range(5):
            model = GRMF(
                10,
                consensus_weight=100,
                sparsity_weight=0.1 if rate == 0.1 else 0.001,
                n_neighbors=10,
                max_iter=100,
                tol=0,
                random_state=fold,
            ).fit(paired_split(data.views, rate, order=data.folds[fold]))
            found = clustering_scores(data.target, model.labels_)
            scores.append((100 * found["accuracy"], 100 * found["nmi"]))
        np.testing.assert_allclose(np.mean(scores, axis=0), self.TABLE_2[rate], atol=2.0)
