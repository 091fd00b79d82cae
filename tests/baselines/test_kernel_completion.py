"""KernelCompletion: the closed form against a numerical minimum, kernel CCA against its definition, new samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg
from scipy.optimize import minimize

from gapview.baselines import KernelCompletion
from gapview.baselines.kernel_completion import extension, kernel_cca
from gapview.baselines.spectral import gaussian, graph_laplacian
from gapview.datasets import make_views
from gapview.errors import InputError, ParameterError
from gapview.metrics import clustering_accuracy


def random_kernel(rng, size, n_features=4):
    rows = rng.normal(size=(size, n_features))
    return gaussian(rows, rows, 1.5)


@given(st.integers(0, 2**16))
@settings(max_examples=40)
def test_the_known_block_is_kept_and_the_map_is_harmonic(seed):
    rng = np.random.RandomState(seed)
    reference, other = random_kernel(rng, 12), random_kernel(rng, 12)
    present = rng.uniform(size=12) < 0.6
    present[:2] = True, False
    laplacian = graph_laplacian(reference)
    weights = extension(laplacian, present)
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-6)
    completed = weights @ other[np.ix_(present, present)] @ weights.T
    np.testing.assert_allclose(completed[np.ix_(present, present)], other[np.ix_(present, present)])
    assert linalg.eigvalsh(completed).min() > -1e-9
    np.testing.assert_allclose((laplacian @ weights)[~present], 0, atol=1e-6)  # no gradient at missing samples


def test_the_closed_form_minimises_the_trace_over_factors():
    """min tr(L A Aᵀ) over the missing rows of a factor A, by a solver that knows no closed form."""
    rng = np.random.RandomState(0)
    laplacian, known = graph_laplacian(random_kernel(rng, 9)), rng.normal(size=(5, 5))
    present = np.arange(9) < 5

    def cost(values):
        rows = np.vstack([known, values.reshape(4, 5)])
        return np.trace(laplacian @ rows @ rows.T), (2 * (laplacian @ rows)[5:]).ravel()

    best = minimize(cost, rng.normal(size=20), jac=True, options={"gtol": 1e-10})
    weights = extension(laplacian, present)
    np.testing.assert_allclose(weights[5:] @ known, best.x.reshape(4, 5), atol=1e-5)
    completed = weights @ known @ known.T @ weights.T
    assert np.trace(laplacian @ completed) == pytest.approx(best.fun, rel=1e-6)


@given(st.integers(0, 2**16))
@settings(max_examples=20)
def test_two_views_have_the_canonical_correlations_of_their_features(seed):
    """With linear kernels and hardly any ridge: the singular values between orthonormal bases of the centred views."""
    rng = np.random.RandomState(seed)
    shared = rng.normal(size=(30, 2))
    views = [np.hstack([shared, rng.normal(size=(30, 2))]) @ rng.normal(size=(4, 4)) for _ in range(2)]
    views = [view + 0.3 * rng.normal(size=view.shape) for view in views]
    bases = [linalg.qr(view - view.mean(axis=0), mode="economic")[0] for view in views]
    correlations = linalg.svdvals(bases[0].T @ bases[1])[:3]
    found = kernel_cca([view @ view.T for view in views], 1e-9, 3, np.ones(30))
    np.testing.assert_allclose(found.values, 1 + correlations, rtol=1e-4)


@given(st.integers(0, 2**16), st.sampled_from([0.1, 1.0, 3.0]))
@settings(max_examples=20)
def test_the_representation_is_what_ridge_regression_predicts_best(seed, ridge_weight):
    """Eigenvalues are the sums over the views of zᵀK(K + κI)⁻¹z, and no other vectors have larger ones."""
    rng = np.random.RandomState(seed)
    kernels = [random_kernel(rng, 15), random_kernel(rng, 15)]
    center = np.eye(15) - 1 / 15
    total = np.zeros((15, 15))
    for kernel in kernels:
        own = center @ kernel @ center
        total += own @ linalg.inv(own + ridge_weight * np.trace(own) / 15 * np.eye(15))
    found = kernel_cca(kernels, ridge_weight, 3, np.ones(15))
    np.testing.assert_allclose(np.diag(found.vectors.T @ total @ found.vectors), found.values)
    np.testing.assert_allclose(found.values, linalg.eigvalsh((total + total.T) / 2)[::-1][:3])


@given(st.integers(0, 2**16))
@settings(max_examples=20)
def test_predictions_are_those_of_ridge_regression_on_every_view(seed):
    rng = np.random.RandomState(seed)
    kernels = [random_kernel(rng, 14) for _ in range(3)]
    found = kernel_cca(kernels, 0.5, 4, np.ones(14))
    center = np.eye(14) - 1 / 14
    predicted = [center @ kernel @ center @ own for kernel, own in zip(kernels, found.coefficients, strict=True)]
    np.testing.assert_allclose(np.mean(predicted, axis=0), found.predictions, atol=1e-9)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(4), atol=1e-9)
    np.testing.assert_allclose(found.vectors.sum(axis=0), 0, atol=1e-6)


def half_hidden(data, view=1):
    mask = data.views.mask.copy()
    mask[np.random.RandomState(0).uniform(size=len(mask)) < 0.5, view] = False
    return list(data.views.matrices), mask


def test_new_samples_in_any_view_and_complete_ones_as_in_the_fit():
    data = make_views(150, (8, 6), n_clusters=3, separation=3, random_state=0)
    matrices, mask = half_hidden(data)
    model = KernelCompletion(3, random_state=0).fit(matrices, mask=mask)
    assert clustering_accuracy(data.target, model.labels_) > 0.95
    complete = mask.all(axis=1)
    placed = model.predict([matrix[complete] for matrix in matrices])
    np.testing.assert_array_equal(placed, model.labels_[complete])
    for given_ in ([matrices[0], None], [None, matrices[1]]):
        assert clustering_accuracy(data.target, model.predict(given_)) > 0.9


@pytest.mark.parametrize("view", [0, 1])
def test_either_view_may_be_the_complete_one(view):
    data = make_views(120, (8, 6), n_clusters=3, separation=4, random_state=0)
    matrices, mask = half_hidden(data, view)
    labels = KernelCompletion(3, random_state=0).fit(matrices, mask=mask).labels_
    assert clustering_accuracy(data.target, labels) > 0.95


def test_without_a_complete_view_it_names_a_way_out():
    data = make_views(60, (8, 6), n_clusters=3, random_state=0)
    matrices, mask = half_hidden(data)
    mask[np.flatnonzero(mask[:, 1])[0], 0] = False
    with pytest.raises(InputError, match=r"needs a view that all 60 samples have.*'view_0'.*59.*BridgedGRMF"):
        KernelCompletion(3).fit(matrices, mask=mask)
    kept = mask[:, 0]
    KernelCompletion(3, random_state=0).fit([matrix[kept] for matrix in matrices], mask=mask[kept])  # as it says


@pytest.mark.parametrize("seed", range(8))
def test_regression_kernels_of_nothing_but_rounding_errors(seed):
    rng = np.random.RandomState(seed)
    matrices = [rng.normal(size=(20, 3)), 1e9 + rng.normal(size=(20, 2))]
    mask = np.ones((20, 2), dtype=bool)
    mask[3:, 1] = False
    assert np.isfinite(KernelCompletion(2, random_state=0).fit(matrices, mask=mask).embedding_).all()


@pytest.mark.filterwarnings("ignore:View 'view_0'. in 1 sample:gapview.errors.GapviewWarning")
def test_a_sample_without_links_gets_the_mean_of_the_others():
    rng = np.random.RandomState(0)
    matrices = [rng.normal(size=(30, 4)), rng.normal(size=(30, 3))]
    matrices[0][0] = 1e6  # its kernel with all others is 0
    mask = np.ones((30, 2), dtype=bool)
    mask[0, 1] = False
    laplacian = graph_laplacian(gaussian(matrices[0], matrices[0], 1.0) + 1e-9 / 30)
    np.testing.assert_allclose(extension(laplacian, mask[:, 1])[0], 1 / 29)
    for scale in (None, "standard"):
        assert np.isfinite(KernelCompletion(2, scale=scale, random_state=0).fit(matrices, mask=mask).embedding_).all()


def test_limits_and_bad_parameters():
    views = make_views(60, n_clusters=2, random_state=0).views
    with pytest.raises(InputError, match=r"60 samples need about .* max_samples=50"):
        KernelCompletion(2, max_samples=50).fit(views)
    for setting in ({"ridge_weight": 0.0}, {"n_components": 0}, {"max_samples": 0}):
        with pytest.raises(ParameterError, match=next(iter(setting))):
            KernelCompletion(2, **setting).fit(views)


@pytest.mark.data
def test_real_data_with_one_complete_view(dataset):
    data = dataset("handwritten_2v")
    matrices, mask = half_hidden(data)
    labels = KernelCompletion(10, random_state=0).fit([matrices[0], matrices[1]], mask=mask).labels_
    assert 0.75 < clustering_accuracy(data.target, labels) < 0.95
