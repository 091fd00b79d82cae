"""BestSingleView and Concat: filling by means, the choice of a view, published figures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from gapview import Views
from gapview.baselines import BestSingleView, Concat, best_view_scores
from gapview.baselines.concat import mean_filled
from gapview.datasets import make_views, paired_split
from gapview.errors import GapviewWarning, InputError, NotFittedError, ParameterError, ParameterTypeError
from gapview.graph.knn import knn_graph, mean_modularity
from gapview.metrics import clustering_scores
from gapview.scaling import unit_rows
from problems import Case, by_size_and_id, cases

pytestmark = pytest.mark.filterwarnings("ignore:The groups are:gapview.errors.GapviewWarning")  # true of these fits

METHODS = [BestSingleView, Concat]


def naive_filled(matrix: np.ndarray, present: np.ndarray) -> np.ndarray:
    mean = sum(matrix[i] for i in np.flatnonzero(present)) / present.sum()
    return np.array([row if there else mean for row, there in zip(matrix, present, strict=True)])


@given(cases())
@settings(max_examples=50)
def test_missing_rows_become_the_mean_of_the_present_ones(case: Case) -> None:
    views = Views(case.matrices, mask=case.mask)
    filled = mean_filled(list(views.matrices), views)
    for k, (matrix, whole) in enumerate(zip(case.matrices, filled, strict=True)):
        np.testing.assert_allclose(whole, naive_filled(matrix, case.mask[:, k]), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(whole[case.mask[:, k]], matrix[case.mask[:, k]])


def test_filling_keeps_the_type_and_densifies_sparse_rows() -> None:
    mask = np.array([[1, 1], [0, 1], [1, 0], [1, 1]])
    dense = [np.arange(8, dtype=np.float32).reshape(4, 2), np.eye(4, 3)]
    views = Views([dense[0], sparse.csr_array(dense[1])], mask=mask)
    filled = mean_filled(list(views.matrices), views)
    assert [whole.dtype for whole in filled] == [np.float32, np.float64]
    np.testing.assert_array_equal(filled[0][1], np.float32([10 / 3, 13 / 3]))
    np.testing.assert_allclose(filled[1][2], [1 / 3, 1 / 3, 0])


def test_the_mean_of_many_float32_rows_is_exact() -> None:
    values = np.full((200_000, 1), 0.1, dtype=np.float32)
    views = Views([np.vstack([values, [[0.0]]]).astype(np.float32)], mask=np.ones((200_001, 1)))
    half = views.with_matrices((values,), np.arange(200_001)[:, None] < 200_000, views.sample_ids)
    assert mean_filled([values], half)[0][-1, 0] == np.float32(0.1)


def test_concat_is_kmeans_on_the_filled_scaled_views() -> None:
    data = make_views(90, (4, 6), n_clusters=3, missing_rate=0.3, random_state=1)
    model = Concat(3, random_state=5).fit(data.views)
    parts = []
    for k, matrix in enumerate(data.views.matrices):
        whole = np.zeros((90, matrix.shape[1]))
        whole[data.views.rows(k)] = unit_rows(matrix)
        parts.append(naive_filled(whole, data.views.mask[:, k]))
    np.testing.assert_allclose(model.embedding_, np.hstack(parts), atol=1e-14)
    expected = KMeans(3, n_init=20, random_state=5).fit(model.embedding_)
    np.testing.assert_array_equal(model.labels_, by_size_and_id(expected.labels_, range(90)))
    np.testing.assert_allclose(model.cluster_centers_[model.labels_], expected.cluster_centers_[expected.labels_])


def test_every_view_is_clustered_by_itself() -> None:
    data = make_views(90, (4, 6, 5), n_clusters=3, missing_rate=0.3, random_state=1)
    model = BestSingleView(3, scale=None, random_state=0).fit(data.views)
    filled = mean_filled(list(data.views.matrices), data.views)
    for labels, points in zip(model.view_labels_, filled, strict=True):
        expected = KMeans(3, n_init=20, random_state=0).fit(points).labels_
        assert adjusted_rand_score(labels, expected) > 0.99
    np.testing.assert_array_equal(model.labels_, model.view_labels_[model.best_view_])
    np.testing.assert_array_equal(model.embedding_, filled[model.best_view_])
    assert model.best_view_ == np.argmax(model.view_modularities_)


def test_mean_modularity_against_its_definition() -> None:
    rng = np.random.RandomState(3)
    mask = np.ones((14, 2), dtype=bool)
    mask[:4, 0] = mask[10:, 1] = False
    views = Views([rng.normal(size=(14, 3)), rng.normal(size=(14, 4))], mask=mask)
    labels = rng.randint(3, size=14)
    expected = 0.0
    for k, matrix in enumerate(views.matrices):
        weights, own = knn_graph(matrix, 2).toarray(), labels[mask[:, k]]
        degrees, total = weights.sum(axis=1), weights.sum()
        same = own[:, None] == own[None, :]
        expected += ((weights - np.outer(degrees, degrees) / total) * same).sum() / total / 2
    found = mean_modularity([labels], list(views.matrices), views, [2, 2])
    np.testing.assert_allclose(found, [expected], atol=1e-12)


@pytest.mark.parametrize("good", [0, 1])
def test_a_view_of_noise_and_a_view_that_few_have_are_not_chosen(good: int) -> None:
    rng = np.random.RandomState(0)
    target = np.arange(120) % 3
    telling = 10 * np.eye(3)[target] + rng.normal(size=(120, 3))
    for bad in (rng.normal(size=(120, 3)), np.where(np.arange(120)[:, None] < 40, telling, np.nan)):
        matrices = [telling, bad] if good == 0 else [bad, telling]
        model = BestSingleView(3, random_state=0).fit(matrices)
        assert model.best_view_ == good
        assert adjusted_rand_score(target, model.labels_) > 0.9


def test_labels_do_not_help_the_model() -> None:
    data = make_views(60, (4, 6), n_clusters=3, missing_rate=0.3, random_state=1)
    alone = BestSingleView(3, random_state=0).fit(data.views)
    told = BestSingleView(3, random_state=0).fit(data.views, data.target)
    np.testing.assert_array_equal(alone.labels_, told.labels_)


def test_best_view_scores_are_all_of_the_view_with_the_highest_accuracy() -> None:
    target = np.repeat([0, 1, 2], 4)
    accurate = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0])  # 9 of 12, mixed
    pure = np.arange(12)  # purity 1, but 3 of 12 after matching
    model = BestSingleView(3)
    model.labels_, model.view_labels_ = pure, [pure, accurate]
    assert best_view_scores(model, target) == clustering_scores(target, accurate)
    assert clustering_scores(target, pure)["purity"] > clustering_scores(target, accurate)["purity"]
    with pytest.raises(InputError, match="same length"):
        best_view_scores(model, target[:-1])
    with pytest.raises(NotFittedError):
        best_view_scores(BestSingleView(3), target)


@pytest.mark.parametrize("method", METHODS)
def test_sparse_views_give_the_same_groups(method: type) -> None:
    rng = np.random.RandomState(0)
    target = np.arange(60) % 3
    dense = [(rng.poisson(0.2, size=(60, 12)) + 4 * np.eye(3).repeat(4, axis=1)[target]) for _ in range(2)]
    mask = np.ones((60, 2))
    mask[:15, 0] = mask[50:, 1] = 0
    as_dense = method(3, random_state=0).fit(dense, mask=mask)
    as_sparse = method(3, random_state=0).fit([sparse.csr_array(x) for x in dense], mask=mask)
    np.testing.assert_allclose(as_sparse.embedding_, as_dense.embedding_, atol=1e-12)
    np.testing.assert_array_equal(as_sparse.labels_, as_dense.labels_)


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_the_samples_does_not_matter(method: type) -> None:
    data = make_views(80, (5, 6), n_clusters=2, separation=8, missing_rate=0.1, random_state=2)
    order = np.random.RandomState(0).permutation(80)
    first = method(2, random_state=0).fit(data.views)
    second = method(2, random_state=0).fit(data.views[order])
    np.testing.assert_allclose(second.embedding_, first.embedding_[order], atol=1e-12)
    assert adjusted_rand_score(second.labels_, first.labels_[order]) == 1


@pytest.mark.parametrize("method", METHODS)
def test_options_have_an_effect(method: type) -> None:
    data = make_views(200, (6, 7), n_clusters=8, separation=2, missing_rate=0.4, random_state=0)
    base = method(8, random_state=0).fit(data.views)
    for setting in ({"n_init": 1}, {"scale": None}, {"scale": "standard"}, {"random_state": 1}, {"n_clusters": 3}):
        other = method(**{"n_clusters": 8, "random_state": 0, **setting}).fit(data.views)
        assert adjusted_rand_score(base.labels_, other.labels_) < 1
    again = method(8, random_state=0).fit(data.views)
    np.testing.assert_array_equal(base.labels_, again.labels_)


def test_neighbours_have_an_effect_on_the_choice_only() -> None:
    data = make_views(100, (6, 7), n_clusters=4, separation=2, missing_rate=0.4, random_state=0)
    few, many = (BestSingleView(4, n_neighbors=k, random_state=0).fit(data.views) for k in (2, 20))
    np.testing.assert_array_equal(few.view_labels_, many.view_labels_)
    assert (few.view_modularities_ != many.view_modularities_).all()
    with pytest.raises(ParameterError, match="n_neighbors=60 needs at least 61 samples"):
        BestSingleView(4, n_neighbors=60).fit(data.views)


@pytest.mark.parametrize("method", METHODS)
def test_bad_settings_and_too_few_distinct_samples(method: type) -> None:
    views = [np.repeat(np.eye(2), 5, axis=0), np.repeat(np.eye(2, 3), 5, axis=0)]
    with pytest.raises(ParameterError, match="n_init must be an integer of at least 1; got 0"):
        method(2, n_init=0).fit(views)
    with pytest.raises(ParameterTypeError, match="n_init"):
        method(2, n_init=2.5).fit(views)
    with pytest.warns(GapviewWarning, match="Only 2 distinct groups"):
        method(3, random_state=0).fit(views)


@pytest.mark.data
@pytest.mark.parametrize(
    ("rate", "single", "concatenated"), [(0.1, 42.23, 46.42), (0.5, 57.32, 66.87), (0.9, 69.11, 88.30)]
)
def test_handwritten_accuracy_is_that_of_the_paper(dataset, rate: float, single: float, concatenated: float) -> None:
    data = dataset("handwritten_2v")
    found = []
    for fold in range(3):
        views = paired_split(data.views, rate, order=data.folds[fold])
        best = best_view_scores(BestSingleView(10, random_state=0).fit(views), data.target)
        side_by_side = clustering_scores(data.target, Concat(10, random_state=0).fit(views).labels_)
        found.append((best["accuracy"], side_by_side["accuracy"]))
    np.testing.assert_allclose(100 * np.mean(found, axis=0), [single, concatenated], rtol=0, atol=3)
