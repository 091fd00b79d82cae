"""ImputedSpectral and ImputedKMeans: filling from near samples, agreement with scikit-learn, published figures."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.impute import KNNImputer
from sklearn.metrics import adjusted_rand_score

from gapview import Views
from gapview.baselines import ImputedKMeans, ImputedSpectral
from gapview.baselines.imputed import knn_filled
from gapview.datasets import make_views, paired_split
from gapview.errors import GapviewWarning, InputError, ParameterError, ParameterTypeError
from gapview.metrics import clustering_accuracy
from gapview.scaling import unit_rows
from problems import by_size_and_id, random_mask

pytestmark = pytest.mark.filterwarnings("ignore:The groups are:gapview.errors.GapviewWarning")  # true of these fits

METHODS = [ImputedSpectral, ImputedKMeans]
SPLIT = "ignore:The neighbour graph of the filled samples:gapview.errors.GapviewWarning"


def naive_knn_filled(matrices: list[np.ndarray], mask: np.ndarray, n_neighbors: int) -> np.ndarray:
    """Fill sample by sample: distances on shared views, as if the shared features stood for all of them."""
    sizes = [matrix.shape[1] for matrix in matrices]
    n_samples = len(mask)
    filled = [matrix.copy() for matrix in matrices]
    for i in range(n_samples):
        for k in np.flatnonzero(~mask[i]):
            donors = []
            for j in np.flatnonzero(mask[:, k]):
                shared = np.flatnonzero(mask[i] & mask[j])
                if shared.size:
                    square = sum(((matrices[v][i] - matrices[v][j]) ** 2).sum() for v in shared)
                    donors.append((square * sum(sizes) / sum(sizes[v] for v in shared), j))
            near = [j for _, j in sorted(donors)[:n_neighbors]] or list(np.flatnonzero(mask[:, k]))
            filled[k][i] = matrices[k][near].mean(axis=0)
    return np.hstack(filled)


@given(st.integers(0, 2**16))
@settings(max_examples=40)
def test_filling_against_a_naive_version(seed: int) -> None:
    rng = np.random.RandomState(seed)
    n_samples, n_views = rng.randint(6, 25), rng.randint(1, 5)
    matrices = [rng.normal(size=(n_samples, rng.randint(1, 6))) for _ in range(n_views)]
    mask = random_mask(rng, n_samples, n_views, rng.choice([0.0, 0.4, 0.8]), 2)
    n_neighbors = int(rng.randint(1, 8))
    views = Views(matrices, mask=mask)
    filled = knn_filled(list(views.matrices), views, n_neighbors)
    np.testing.assert_allclose(filled, naive_knn_filled(matrices, mask, n_neighbors), atol=1e-9)


def test_a_sample_that_shares_no_view_gets_the_mean_and_no_feature_is_lost() -> None:
    rng = np.random.RandomState(0)
    mask = np.repeat(np.eye(2), 5, axis=0)
    matrices = [rng.normal(size=(10, 3)), rng.normal(size=(10, 4))]
    views = Views(matrices, mask=mask)
    filled = knn_filled(list(views.matrices), views, 2)
    assert filled.shape == (10, 7)
    np.testing.assert_allclose(filled[5:, :3], np.tile(matrices[0][:5].mean(axis=0), (5, 1)))
    np.testing.assert_allclose(filled[:5, 3:], np.tile(matrices[1][5:].mean(axis=0), (5, 1)))


def test_filling_takes_sparse_views_and_keeps_float32() -> None:
    rng = np.random.RandomState(0)
    mask = random_mask(rng, 20, 2, 0.5, 3)
    dense = [rng.poisson(1, size=(20, 6)).astype(np.float32), rng.normal(size=(20, 4)).astype(np.float32)]
    views = Views(dense, mask=mask)
    mixed = Views([sparse.csr_array(dense[0]), dense[1]], mask=mask)
    filled = knn_filled(list(views.matrices), views, 3)
    assert filled.dtype == np.float32
    np.testing.assert_array_equal(knn_filled(list(mixed.matrices), mixed, 3), filled)


def test_pieces_of_distances_do_not_change_the_result() -> None:
    from sklearn import config_context

    data = make_views(150, (8, 9), n_clusters=3, missing_rate=0.4, random_state=0)
    whole = knn_filled(list(data.views.matrices), data.views, 5)
    with config_context(working_memory=0.01):
        np.testing.assert_allclose(knn_filled(list(data.views.matrices), data.views, 5), whole, atol=1e-12)


def filled_by_scikit_learn(views: Views) -> np.ndarray:
    parts = []
    for k, matrix in enumerate(views.matrices):
        part = np.full((views.n_samples, matrix.shape[1]), np.nan)
        part[views.rows(k)] = unit_rows(matrix)
        parts.append(part)
    return KNNImputer(n_neighbors=5).fit_transform(np.hstack(parts))


@pytest.mark.filterwarnings(SPLIT)
@pytest.mark.filterwarnings("ignore:Graph is not fully connected:UserWarning")
@pytest.mark.parametrize("seed", range(3))
def test_spectral_labels_are_those_of_scikit_learn(seed: int) -> None:
    data = make_views(150, (8, 9), n_clusters=4, separation=1 + seed, missing_rate=0.3, random_state=seed)
    model = ImputedSpectral(4, random_state=seed).fit(data.views)
    expected = SpectralClustering(4, affinity="nearest_neighbors", random_state=seed)
    expected.fit(filled_by_scikit_learn(data.views))
    np.testing.assert_array_equal(model.labels_, by_size_and_id(expected.labels_, range(150)))
    np.testing.assert_array_equal(model.affinity_matrix_.toarray(), expected.affinity_matrix_.toarray())
    assert model.embedding_.shape == (150, 4)


def test_kmeans_labels_are_those_of_scikit_learn() -> None:
    data = make_views(150, (8, 9), n_clusters=4, missing_rate=0.3, random_state=0)
    model = ImputedKMeans(4, random_state=0).fit(data.views)
    np.testing.assert_allclose(model.embedding_, filled_by_scikit_learn(data.views), atol=1e-12)
    expected = KMeans(4, n_init=20, random_state=0).fit(model.embedding_)
    np.testing.assert_array_equal(model.labels_, by_size_and_id(expected.labels_, range(150)))
    np.testing.assert_allclose(model.cluster_centers_[model.labels_], expected.cluster_centers_[expected.labels_])


def test_the_embedding_holds_eigenvectors_of_the_graph() -> None:
    data = make_views(80, (8, 9), n_clusters=3, separation=2, missing_rate=0.3, random_state=0)
    model = ImputedSpectral(3, random_state=0).fit(data.views)
    weights = model.affinity_matrix_.toarray()
    np.fill_diagonal(weights, 0)  # the Laplacian knows no loops
    degrees = weights.sum(axis=1)
    walk = weights / degrees[:, None]
    values = np.sort(np.linalg.eigvals(walk).real)[::-1][:3]
    ratios = (walk @ model.embedding_) / model.embedding_
    np.testing.assert_allclose(np.median(ratios, axis=0), values, atol=1e-6)


def test_a_split_graph_is_said_once_in_our_words() -> None:
    far = 0.2 + np.repeat(np.eye(3), 15, axis=0) + np.random.RandomState(0).uniform(0, 0.01, size=(45, 3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = ImputedSpectral(3, random_state=0).fit([far, 2 * far + 0.1])
    assert [warning.category for warning in caught] == [GapviewWarning]
    assert "has 3 connected components" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert adjusted_rand_score(model.labels_, np.repeat(range(3), 15)) == 1


@pytest.mark.filterwarnings(SPLIT)
@pytest.mark.parametrize("n_samples", range(3, 12))
def test_few_samples(n_samples: int) -> None:
    rng = np.random.RandomState(n_samples)
    views = [rng.normal(size=(n_samples, 3)), rng.normal(size=(n_samples, 4))]
    views[0][-1] = np.nan
    for n_clusters in range(1, n_samples):
        for method in METHODS:
            model = method(n_clusters, random_state=0).fit(views)
            assert np.isfinite(model.embedding_).all()
            assert len(np.unique(model.labels_)) == n_clusters


def test_as_many_groups_as_samples_have_no_spectrum() -> None:
    with pytest.raises(InputError, match="more samples than groups; got n_samples=4 for n_clusters=4"):
        ImputedSpectral(4).fit([np.random.RandomState(0).normal(size=(4, 3))])


@pytest.mark.filterwarnings(SPLIT)
@pytest.mark.parametrize(
    ("method", "setting"),
    [
        *((method, {"n_neighbors": 40}) for method in METHODS),
        *((method, {"scale": "standard"}) for method in METHODS),
        *((method, {"n_clusters": 3}) for method in METHODS),
        (ImputedSpectral, {"n_graph_neighbors": 4}),
        (ImputedKMeans, {"n_init": 1}),
        (ImputedKMeans, {"random_state": 1}),
    ],
)
def test_options_have_an_effect(method: type, setting: dict) -> None:
    data = make_views(200, (6, 7), n_clusters=8, separation=2, missing_rate=0.4, random_state=0)
    base = {"n_clusters": 8, "random_state": 0}
    first, second, other = (method(**kwargs).fit(data.views) for kwargs in (base, base, {**base, **setting}))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    assert adjusted_rand_score(first.labels_, other.labels_) < 1


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_the_samples_does_not_matter(method: type) -> None:
    data = make_views(100, (8, 9), n_clusters=2, separation=3, missing_rate=0.2, random_state=2)
    order = np.random.RandomState(0).permutation(100)
    first = method(2, random_state=0).fit(data.views)
    second = method(2, random_state=0).fit(data.views[order])
    assert adjusted_rand_score(second.labels_, first.labels_[order]) == 1


def test_bad_settings() -> None:
    views = [np.random.RandomState(0).normal(size=(20, 3))]
    with pytest.raises(ParameterError, match="n_neighbors must be an integer of at least 1; got 0"):
        ImputedKMeans(2, n_neighbors=0).fit(views)
    with pytest.raises(ParameterTypeError, match="n_neighbors"):
        ImputedSpectral(2, n_neighbors="auto").fit(views)
    with pytest.raises(ParameterError, match="n_graph_neighbors must be an integer of at least 2; got 1"):
        ImputedSpectral(2, n_graph_neighbors=1).fit(views)
    with pytest.raises(ParameterError, match="n_init"):
        ImputedKMeans(2, n_init=0).fit(views)


@pytest.mark.data
@pytest.mark.filterwarnings(SPLIT)
@pytest.mark.parametrize(
    ("rate", "accuracy"),
    [(0.9, 96.9), *(pytest.param(*row, marks=pytest.mark.slow) for row in ((0.1, 87.4), (0.5, 91.3)))],
)
def test_handwritten_accuracy_is_that_of_the_recipe(dataset, rate: float, accuracy: float) -> None:
    data = dataset("handwritten_2v")
    found = []
    for fold in range(2):
        views = paired_split(data.views, rate, order=data.folds[fold])
        found.append(clustering_accuracy(data.target, ImputedSpectral(10, random_state=0).fit(views).labels_))
    np.testing.assert_allclose(100 * np.mean(found), accuracy, rtol=0, atol=3)
