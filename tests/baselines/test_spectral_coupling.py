"""CoRegularizedSpectral and MeanFilledSpectral: objectives, eigenvectors, gaps, agreement with mvlearn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, sparse
from scipy.sparse.linalg import aslinearoperator
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from gapview.baselines import CoRegularizedSpectral, MeanFilledSpectral
from gapview.baselines.concat import mean_filled
from gapview.baselines.spectral import gaussian, leading_eigenvectors, median_distance, normalized
from gapview.datasets import make_views
from gapview.errors import GapviewWarning, InputError, ParameterError
from gapview.metrics import clustering_accuracy, clustering_scores
from gapview.scaling import unit_rows
from problems import random_mask

pytestmark = pytest.mark.filterwarnings("ignore:Only .* distinct groups:gapview.errors.GapviewWarning")


def random_views(seed):
    rng = np.random.RandomState(seed)
    n_samples, n_views = rng.randint(12, 40), rng.randint(1, 4)
    matrices = [rng.normal(size=(n_samples, rng.randint(2, 7))) for _ in range(n_views)]
    return rng, matrices, random_mask(rng, n_samples, n_views, rng.choice([1.0, 0.7, 0.4]), 4)


def naive_gaussian(rows):
    """The kernel entry by entry."""
    n = len(rows)
    distances = np.array([[np.sqrt(((rows[i] - rows[j]) ** 2).sum()) for j in range(n)] for i in range(n)])
    width = np.median(distances[np.triu_indices(n, 1)])
    return np.exp(-(distances**2) / (2 * width**2))


def naive_normalized(affinity):
    degrees = affinity.sum(axis=1)
    return np.diag(degrees**-0.5) @ affinity @ np.diag(degrees**-0.5)


@given(st.integers(0, 2**16), st.sampled_from(["pairwise", "centroid"]), st.sampled_from(["rbf", "nearest_neighbors"]))
@settings(max_examples=60)
def test_the_objective_never_falls(seed, form, affinity):
    rng, matrices, mask = random_views(seed)
    weight = float(rng.choice([0.0, 0.01, 0.5, 5.0]))
    method = CoRegularizedSpectral(3, form=form, affinity=affinity, consensus_weight=weight, tol=0, max_iter=15)
    model = method.set_params(random_state=seed).fit(matrices, mask=mask)
    assert (np.diff(model.objective_) >= -1e-9 * np.abs(model.objective_[:-1])).all()


@given(st.integers(0, 2**16), st.sampled_from(["auto", 0.0, 0.1, 1.0]), st.sampled_from(["rbf", "nearest_neighbors"]))
@settings(max_examples=40)
@pytest.mark.filterwarnings("ignore:The groups are:gapview.errors.GapviewWarning")  # true of these fits
def test_the_objective_with_filled_samples_never_falls(seed, filled_weight, affinity):
    rng, matrices, mask = random_views(seed)
    weight = float(rng.choice([0.01, 0.5, 5.0]))
    method = MeanFilledSpectral(3, filled_weight=filled_weight, affinity=affinity, consensus_weight=weight, tol=0)
    model = method.set_params(max_iter=15, random_state=seed).fit(matrices, mask=mask)
    assert (np.diff(model.objective_) >= -1e-9 * np.abs(model.objective_[:-1])).all()


@given(st.integers(0, 2**16))
@settings(max_examples=30)
def test_the_objective_against_a_dense_version_with_isolated_vertices(seed):
    """Sₖ as whole matrices with rows of zeros, eigenvectors from LAPACK, the formulas as printed."""
    _, matrices, mask = random_views(seed)
    n_samples, n_groups, weight = len(mask), 3, 0.1
    whole = []
    for k, matrix in enumerate(matrices):
        rows = np.flatnonzero(mask[:, k])
        padded = np.zeros((n_samples, n_samples))
        padded[np.ix_(rows, rows)] = naive_normalized(naive_gaussian(unit_rows(matrix[rows])))
        whole.append(padded)

    def leading(matrix):
        return linalg.eigh(matrix)[1][:, -n_groups:]

    vectors = [leading(matrix) for matrix in whole]
    for _ in range(5):
        for k, matrix in enumerate(whole):
            others = sum((u @ u.T for place, u in enumerate(vectors) if place != k), np.zeros_like(matrix))
            vectors[k] = leading(matrix + weight * others)
    value = sum(np.trace(u.T @ matrix @ u) for u, matrix in zip(vectors, whole, strict=True))
    value += weight * sum(np.trace(u @ u.T @ v @ v.T) for k, u in enumerate(vectors) for v in vectors[:k])
    method = CoRegularizedSpectral(n_groups, affinity="rbf", consensus_weight=weight, tol=0, max_iter=5, random_state=0)
    assert method.fit(matrices, mask=mask).objective_[-1] == pytest.approx(value, rel=1e-6)


def test_one_view_is_plain_spectral_clustering():
    """With eigenvectors whose rows are scaled to unit length (Ng, Jordan and Weiss, 2001)."""
    rows = make_views(120, (5, 4), n_clusters=3, separation=3, random_state=1).views.matrices[0]
    vectors = linalg.eigh(naive_normalized(naive_gaussian(unit_rows(rows))))[1][:, -3:]
    plain = KMeans(3, n_init=20, random_state=0).fit(unit_rows(vectors)).labels_
    for form in ("pairwise", "centroid"):
        model = CoRegularizedSpectral(3, form=form, affinity="rbf", consensus_weight=0.01, random_state=0)
        assert adjusted_rand_score(model.fit([rows]).labels_, plain) == pytest.approx(1)


def test_without_gaps_filling_is_the_centroid_form():
    views = make_views(80, (6, 5), n_clusters=3, random_state=0).views
    settings = {"affinity": "rbf", "consensus_weight": 0.02, "random_state": 0}
    filled = MeanFilledSpectral(3, **settings).fit(views)
    centroid = CoRegularizedSpectral(3, form="centroid", **settings).fit(views)
    np.testing.assert_allclose(filled.objective_, centroid.objective_)
    np.testing.assert_array_equal(filled.labels_, centroid.labels_)


def test_filled_samples_of_weight_0_do_not_count():
    """With weight 0 and nearly no coupling, the objective is that of the present rows alone."""
    views = make_views(60, (6, 5), n_clusters=3, missing_rate=0.4, random_state=0).views
    model = MeanFilledSpectral(3, filled_weight=0.0, consensus_weight=1e-9, random_state=0).fit(views)
    own = 0.0
    for matrix in mean_filled([unit_rows(matrix) for matrix in views.matrices], views):
        present = views.mask[:, 0] if matrix.shape[1] == 6 else views.mask[:, 1]
        width = median_distance(matrix[present])
        own += linalg.eigvalsh(naive_normalized(gaussian(matrix[present], matrix[present], width)))[-3:].sum()
    assert model.objective_[-1] == pytest.approx(own, abs=1e-6)


@pytest.mark.parametrize("size", [50, 900])
def test_leading_eigenvectors(size):
    """Below and above the size up to which LAPACK is used; eigenvalues that coincide included."""
    rng = np.random.RandomState(0)
    basis = linalg.qr(rng.normal(size=(size, size)))[0]
    values = np.r_[3.0, 3.0, 2.0, np.linspace(1, -4, size - 3)]
    matrix = basis @ np.diag(values) @ basis.T
    start = rng.uniform(-1, 1, size=size)
    previous = basis[:, :3]
    found = leading_eigenvectors(aslinearoperator((matrix + matrix.T) / 2), 3, start, previous)
    np.testing.assert_allclose(found.T @ found, np.eye(3), atol=1e-9)
    assert np.trace(found.T @ matrix @ found) == pytest.approx(8)
    np.testing.assert_allclose(np.diag(found.T @ matrix @ found), [3, 3, 2], atol=1e-8)


@given(st.integers(0, 2**16))
@settings(max_examples=30)
def test_normalised_affinities_against_the_formula(seed):
    rng = np.random.RandomState(seed)
    affinity = rng.uniform(size=(9, 9)) * (rng.uniform(size=(9, 9)) < 0.6)
    affinity = affinity + affinity.T
    affinity[4] = affinity[:, 4] = 0  # isolated
    weights = rng.uniform(size=9)
    weighted = np.diag(weights) @ affinity @ np.diag(weights)
    degrees = weighted.sum(axis=1)
    root = np.diag([degree**-0.5 if degree > 0 else 0.0 for degree in degrees])
    expected = root @ weighted @ root
    np.testing.assert_allclose(normalized(affinity, weights), expected, atol=1e-12)
    np.testing.assert_allclose(normalized(sparse.csr_array(affinity), weights).toarray(), expected, atol=1e-12)


def test_a_view_without_edges_is_refused():
    rng = np.random.RandomState(0)
    rows = np.full((600, 4), np.nan)
    rows[0], rows[1] = 1, 0
    with pytest.raises(InputError, match="no edge"):
        CoRegularizedSpectral(3).fit([rng.normal(size=(600, 5)), rows])


def test_the_width_of_the_kernel_comes_from_present_rows():
    """Filled rows coincide: with most of them filled, the median distance of all rows would be 0."""
    data = make_views(100, (5, 4), n_clusters=2, random_state=0)
    mask = np.ones((100, 2), dtype=bool)
    mask[15:, 1] = False
    model = MeanFilledSpectral(2, n_neighbors="auto", random_state=0).fit(data.views.matrices, mask=mask)
    assert clustering_accuracy(data.target, model.labels_) > 0.9
    MeanFilledSpectral(2, affinity="nearest_neighbors", n_neighbors=20, random_state=0).fit(
        data.views.matrices, mask=mask
    )


def test_regression_eigenvalues_that_coincide():
    few = np.array([[0.0, 0], [1, 1], [1, 0]])[np.arange(24) % 3]
    model = CoRegularizedSpectral(23, random_state=0).fit([few, few[::-1].copy()])
    assert np.isfinite(model.embedding_).all()


def test_too_many_samples_are_refused_with_a_way_out():
    views = make_views(60, n_clusters=2, random_state=0).views
    for method in (CoRegularizedSpectral(2, affinity="rbf", max_samples=50), MeanFilledSpectral(2, max_samples=50)):
        with pytest.raises(InputError, match=r"60 samples need .*max_samples=50.*affinity='nearest_neighbors'"):
            method.fit(views)
    CoRegularizedSpectral(2).fit(views)


def test_parameters_without_effect_and_bad_ones():
    views = make_views(60, n_clusters=2, random_state=0).views
    with pytest.warns(GapviewWarning, match="max_samples=60 has no effect, since affinity is not 'rbf'"):
        CoRegularizedSpectral(2, max_samples=60).fit(views)
    with pytest.warns(GapviewWarning, match="n_neighbors=7 has no effect, since affinity is 'rbf'"):
        MeanFilledSpectral(2, n_neighbors=7).fit(views)
    for setting in ({"form": "other"}, {"affinity": "other"}, {"consensus_weight": -1.0}):
        with pytest.raises(ParameterError, match=next(iter(setting))):
            CoRegularizedSpectral(2, **setting).fit(views)
    with pytest.raises(ParameterError, match="filled_weight"):
        MeanFilledSpectral(2, filled_weight=1.5).fit(views)


@pytest.mark.parametrize("method", [CoRegularizedSpectral, MeanFilledSpectral])
def test_gaps_that_hide_a_group_in_each_view(method):
    """Every group is seen in one view only, or in both: the coupling places the samples in the views they lack."""
    data = make_views(150, (8, 8), n_clusters=3, separation=4, random_state=0)
    mask = np.ones((150, 2), dtype=bool)
    rng = np.random.RandomState(0)
    lacking = rng.permutation(150)[:60]
    mask[lacking[:30], 0] = mask[lacking[30:], 1] = False
    labels = method(3, random_state=0).fit(data.views.matrices, mask=mask).labels_
    assert clustering_accuracy(data.target, labels) > 0.9


MVLEARN = {"handwritten_2v": (88.9, 80.0), "bbcsport_2v": (90.1, 80.9)}  # results/baselines/mvlearn.csv, v_lambda 0.01


@pytest.mark.data
@pytest.mark.parametrize("name", MVLEARN)
def test_within_three_points_of_mvlearn(name, dataset):
    data = dataset(name)
    model = CoRegularizedSpectral(len(set(data.target)), affinity="rbf", consensus_weight=0.01, random_state=0)
    scores = clustering_scores(data.target, model.fit(data.views).labels_)
    assert 100 * scores["accuracy"] == pytest.approx(MVLEARN[name][0], abs=3)
    assert 100 * scores["nmi"] == pytest.approx(MVLEARN[name][1], abs=3)
