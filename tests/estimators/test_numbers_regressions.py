"""Problems that made numbers have shown to go wrong, each as small as it could be made."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from gapview import GRMF, BridgedGRMF
from gapview.baselines import DCNMF, GPMVC, MIC, PVC, ImputedKMeans, ImputedSpectral
from gapview.baselines.nmf import roughness
from gapview.datasets import make_views
from gapview.errors import GapviewWarning, InputError, SolutionError
from gapview.factorization.starts import nearest_orthonormal
from gapview.graph.knn import knn_graph
from gapview.graph.neighbors import Search, nearest
from gapview.graph.neighbors.search import number_of_cells


def test_start_from_data_of_a_size_whose_fourth_powers_overflow():
    """The start multiplied slopes, which hold squares of the data, with themselves: eigenvalues did not converge."""
    views = [np.random.RandomState(0).normal(size=(30, 4)) * 1e100]
    plain = [view / 1e100 for view in views]
    for method in (BridgedGRMF(2, scale=None, selection="fixed"), GRMF(2, scale=None, init="data")):
        huge = method.set_params(random_state=0, sparsity_weight=0).fit(views)
        assert np.isfinite(huge.embedding_).all()
        np.testing.assert_array_equal(huge.labels_, method.fit(plain).labels_)


@pytest.mark.parametrize("size", [1e-200, 1e-100, 1.0, 1e100, 1e200])
def test_nearest_orthonormal_basis_does_not_depend_on_the_size(size):
    slopes = np.random.RandomState(0).normal(size=(3, 7))
    np.testing.assert_allclose(nearest_orthonormal(slopes * size), nearest_orthonormal(slopes), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_recovered_values_next_to_the_largest_number_are_finite(dtype):
    """Differences from the mean of a view were infinite, and infinity times 0 is no number."""
    groups = np.arange(20) % 2
    large = np.zeros((20, 2), dtype=dtype)
    large[:, 0] = np.where(groups | (np.arange(20) > 12), 0.9, -0.9) * np.finfo(dtype).max
    views = [np.random.RandomState(0).normal(size=(20, 3)) + 9 * groups[:, None], large]
    mask = np.ones((20, 2), dtype=bool)
    mask[:5, 1] = False
    model = BridgedGRMF(2, selection="fixed", scale="unit", random_state=0).fit(views, mask=mask)
    recovered = model.recover()[1]
    assert np.isfinite(recovered).all()
    np.testing.assert_array_equal(recovered[5:], large[5:])


def test_spreads_too_large_to_be_multiplied_are_said():
    """The spread of a feature times the root of their number was infinite, and the view constant."""
    views = [np.random.RandomState(0).choice([-1.7e308, 1.7e308], size=(20, 5))]
    with pytest.raises(InputError, match="'view_0' holds values so large that the spreads of its features"):
        GRMF(2, scale="standard+view").fit(views)


@pytest.mark.parametrize("method", [PVC, DCNMF, GPMVC, MIC])
@pytest.mark.parametrize(("size", "word"), [(1e155, "large"), (1e-160, "small")])
def test_factorisations_refuse_unscaled_values_without_products(method, size, word):
    """Products of such values are infinite or vanish: NumPy warned, or the objective rose."""
    rng = np.random.RandomState(0)
    views = [rng.uniform(size=(12, 4)) * size, rng.uniform(size=(12, 3))]
    with pytest.raises(InputError, match=f"'view_0' are too {word} for products"):
        method(2, scale=None, random_state=0).fit(views)
    model = method(2, sparsity_weight=1e-3) if method is not GPMVC else method(2)
    assert np.isfinite(model.set_params(random_state=0).fit(views).embedding_).all()


def test_roughness_is_never_negative():
    """Codes that hardly differ left nothing but rounding, times a huge weight: the objective was far below zero."""
    rng = np.random.RandomState(0)
    values = []
    for weight in np.linspace(0.1e30, 1e30, 50):
        graph = knn_graph(rng.normal(size=(12, 2)), 3) * weight
        degrees = np.asarray(graph.sum(axis=1)).ravel()
        values.append(roughness(graph, degrees, np.full((12, 1), rng.uniform())))
    assert min(values) >= 0


@pytest.mark.parametrize("n_neighbors", [1, 11])
@pytest.mark.parametrize("method", [ImputedSpectral, ImputedKMeans])
def test_filling_single_precision_that_is_not_scaled(method, n_neighbors):
    """Squares of the values overflowed inside scikit-learn."""
    values = np.random.RandomState(0).uniform(1, 2, size=(12, 2)).astype(np.float32)
    mask = np.ones((12, 2), dtype=bool)
    mask[[0, 1], [0, 1]] = False
    settings = {"scale": None, "n_neighbors": n_neighbors, "random_state": 0}
    huge = method(2, **settings).fit([values * np.float32(2.0**100), values * np.float32(2.0**101)], mask=mask)
    plain = method(2, **settings).fit([values, values * 2], mask=mask)
    np.testing.assert_array_equal(huge.labels_, plain.labels_)


def test_one_component_on_a_device():
    """What evens out the directions was an array turned round, which PyTorch does not take."""
    pytest.importorskip("torch")
    views = [np.random.RandomState(0).normal(size=(30, 4))]
    settings = {"n_components": 1, "selection": "fixed", "random_state": 0}
    here, there = BridgedGRMF(2, **settings).fit(views), BridgedGRMF(2, device="cpu", **settings).fit(views)
    np.testing.assert_allclose(np.abs(here.embedding_), np.abs(there.embedding_), atol=1e-6)


@pytest.mark.parametrize("layout", ["turned", "read only"])
def test_arrays_that_pytorch_cannot_share(layout):
    """The error and the warning were those of PyTorch, and the second a threat of undefined behaviour."""
    pytest.importorskip("torch")
    plain = np.random.RandomState(0).normal(size=(30, 4))
    other = plain[::-1].copy()[::-1]
    other.setflags(write=layout == "turned")
    settings = {"device": "cpu", "init": "data", "random_state": 0}
    model = GRMF(2, **settings).fit([other])
    np.testing.assert_array_equal(model.embedding_, GRMF(2, **settings).fit([plain]).embedding_)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_means_of_the_largest_number_stay_finite(as_sparse):
    """Ten tenths of the largest number were more than it."""
    large = np.zeros((40, 2), dtype=np.float32)
    large[np.arange(40), np.arange(40) % 2] = np.finfo(np.float32).max
    first = np.random.RandomState(0).normal(size=(40, 3)) + 9 * (np.arange(40) % 2)[:, None]
    mask = np.ones((40, 2), dtype=bool)
    mask[:6, 1] = False
    views = [first, sparse.csr_array(large) if as_sparse else large]
    recovered = GRMF(2, init="data", random_state=0).fit(views, mask=mask).recover()[1]
    recovered = recovered.toarray() if as_sparse else recovered
    assert np.isfinite(recovered).all()
    assert recovered.max() > 1e38


def test_rows_from_bases_that_are_too_large_for_their_type_are_refused():
    """Codes of one view, times the basis of another of a smaller type, were infinite."""
    rng = np.random.RandomState(0)
    views = {"huge": rng.normal(size=(30, 4)) * 1e90, "small": rng.normal(size=(30, 3)).astype(np.float32)}
    model = GRMF(2, scale=None, init="data", random_state=0).fit(views)
    with pytest.raises(SolutionError, match="'small' cannot be recovered with method='basis'.* too large for float32"):
        model.recover({"huge": views["huge"]}, method="basis")
    with pytest.warns(GapviewWarning, match="hardly predict 'small': R² = .* about the mean"):
        assert np.isfinite(model.recover({"huge": views["huge"]})["small"]).all()


def test_sparse_views_whose_features_add_up_to_more_than_the_largest_number():
    """Whether a view is constant was told from a sum over its features, which overflowed."""
    values = np.random.RandomState(0).uniform(0.5, 0.9, size=(20, 6)) * 1e308 * (np.arange(6) < 5)
    views = [sparse.csr_array(values)]
    with pytest.raises(InputError, match="so large that the lengths of its rows"):
        GRMF(2).fit(views)
    assert np.isfinite(GRMF(2, random_state=0).fit([sparse.csr_array(values / 8)]).embedding_).all()


@pytest.mark.parametrize("n_points", [1, 2, 3])
def test_an_index_over_hardly_any_points(n_points):
    """One point was to be divided into two cells; the error was that of faiss."""
    pytest.importorskip("faiss")
    points = np.random.RandomState(0).normal(size=(n_points, 4))
    found = nearest(points, 1, np.zeros((50, 4)), search=Search("approximate"))
    np.testing.assert_array_equal(found[1], nearest(points, 1, np.zeros((50, 4)))[1])
    assert number_of_cells(n_points) <= n_points


@pytest.mark.parametrize("kind", ["reals", "counts", "binary"])
@pytest.mark.parametrize(
    "model",
    [
        GRMF(3, init="data", random_state=0),
        GRMF(3, init="data", scale=None, random_state=0),
        BridgedGRMF(3, selection="fixed", scale="unit", max_iter=20, random_state=0),
    ],
    ids=["GRMF", "unscaled", "BridgedGRMF"],
)
def test_dense_and_sparse_storage_give_the_same_fit(model, kind):
    """Counts have many ties between neighbours, which sums in another order would break in another way."""
    for seed in range(3):
        views = make_views(120, (30, 20), n_clusters=3, missing_rate=0.2, separation=2.0, random_state=seed).views
        draw = np.random.RandomState(seed)
        change = {
            "reals": lambda matrix: np.where(np.abs(matrix) > 1, matrix, 0),
            "counts": lambda matrix, draw=draw: draw.poisson(np.exp(matrix / 2)).astype(float),
            "binary": lambda matrix: (matrix > 0.5).astype(float),
        }[kind]
        dense = views.with_matrices([change(matrix) for matrix in views.matrices])
        stored = views.with_matrices([sparse.csr_array(matrix) for matrix in dense.matrices])
        first, second = clone(model).fit(dense), clone(model).fit(stored)
        np.testing.assert_array_equal(first.labels_, second.labels_)
        np.testing.assert_array_equal(first.embedding_, second.embedding_)
        assert all(sparse.issparse(view) for view in second.views_.matrices)


@pytest.mark.parametrize("power", [1000, 1015, 1018, 1020])
@pytest.mark.parametrize("n_samples", [60, 400])
def test_recovered_values_near_the_largest_float(n_samples, power):
    """Values times a power of 2 give the recovered values times that power."""
    views = make_views(n_samples, (6, 5), n_clusters=3, missing_rate=0.3, random_state=1).views
    views = views.with_matrices([matrix + 3 for matrix in views.matrices])
    huge = views.with_matrices([np.ldexp(matrix, power) for matrix in views.matrices])
    model = BridgedGRMF(3, selection="fixed", scale="standard", max_iter=5, random_state=0)
    plain = clone(model).fit(views)
    model.fit(huge)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    for method in ("bridge", "neighbors", "basis"):
        for found, expected in zip(model.recover(method=method), plain.recover(method=method), strict=True):
            np.testing.assert_allclose(np.ldexp(found, -power), expected, rtol=1e-9)
