"""IMG: the authors' figures, a naive version of the text, and what must hold for any data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from gapview import Views
from gapview.baselines import IMG
from gapview.baselines.img import IMGWeights, build_problem, graph_step, normalized_cut, solve
from gapview.clusters import cluster_rows
from gapview.datasets import make_views, paired_split
from gapview.errors import GapviewWarning, InputError, InputTypeError, ParameterError, ParameterTypeError, SolutionError
from gapview.metrics import clustering_accuracy
from gapview.scaling import unit_rows
from problems import by_size_and_id, random_mask


def start(n_samples: int, n_components: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.RandomState(seed)
    return rng.uniform(size=(n_samples, n_components)), rng.uniform(size=(n_samples, n_samples))


def naive(matrices, mask, basis_from, ridge, beta, gamma, init, n_iter):
    """The algorithm sample by sample and column by column, as the text has it."""
    codes, laplacian = (np.array(part) for part in init)
    n, k = codes.shape
    smooth, multipliers, mu = codes.copy(), np.zeros((n, k)), 0.1
    for _ in range(n_iter):
        bases = []
        for v, matrix in enumerate(matrices):
            used = np.flatnonzero(mask.all(axis=1) if basis_from == "complete" else mask[:, v])
            gram = codes[used].T @ codes[used] + ridge * np.eye(k)
            bases.append(np.linalg.inv(gram) @ codes[used].T @ matrix[used])
        codes = np.empty((n, k))
        for i in range(n):
            right, system = mu * smooth[i] - multipliers[i], mu * np.eye(k)
            for v in np.flatnonzero(mask[i]):
                right = right + 2 * matrices[v][i] @ bases[v].T
                system = system + 2 * bases[v] @ bases[v].T
            codes[i] = right @ np.linalg.inv(system)
        symmetric = (laplacian + laplacian.T) / 2
        smooth = np.linalg.inv(2 * beta * symmetric + mu * np.eye(n)) @ (multipliers + mu * codes)
        d = np.array([[beta / (4 * gamma) * ((a - b) ** 2).sum() for b in smooth] for a in smooth])
        affinity = np.empty((n, n))
        for i in range(n):
            for j in range(n):
                affinity[j, i] = max((1 + d[i].sum()) / n - d[j, i], 0)
        affinity = (affinity + affinity.T) / 2
        laplacian = np.diag(affinity.sum(axis=1)) - affinity
        multipliers = multipliers + mu * (codes - smooth)
        mu = min(1.1 * mu, 1e10)
    return codes, affinity, bases


@pytest.mark.golden
def test_golden_whole_run_of_the_authors_program(golden) -> None:
    figures = golden("authors_img.npz")
    n_samples = len(figures["P_start"])
    views = []
    for k in range(2):
        whole = np.full((n_samples, figures[f"view_{k}"].shape[1]), np.nan)
        whole[figures[f"rows_{k}"]] = figures[f"view_{k}"]
        views.append(whole)
    model = IMG(
        figures["P"].shape[1],
        ridge_weight=float(figures["ridge"]),
        smoothness_weight=float(figures["beta"]),
        graph_weight=float(figures["gamma"]),
        init=(figures["P_start"], figures["laplacian_start"]),
        scale=None,
        max_iter=int(figures["n_iter"]),
        tol=0,
        random_state=0,
    ).fit(views)
    assert model.n_iter_ == figures["n_iter"]
    np.testing.assert_allclose(model.embedding_, figures["P"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.affinity_matrix_, figures["A"], rtol=0, atol=1e-9)


@given(st.integers(0, 2**16), st.sampled_from(["complete", "all"]))
@settings(max_examples=30)
def test_any_pattern_against_a_naive_version(seed: int, basis_from: str) -> None:
    rng = np.random.RandomState(seed)
    n_samples, n_views, n_components = rng.randint(5, 16), rng.randint(1, 5), rng.randint(1, 5)
    matrices = [rng.normal(size=(n_samples, rng.randint(2, 7))) for _ in range(n_views)]
    mask = random_mask(rng, n_samples, n_views, rng.choice([0.3, 0.7]), 2)
    mask[rng.randint(n_samples)] = True
    ridge, beta, gamma = 10 ** rng.uniform(-2, 0), 10 ** rng.uniform(-1, 0), 10 ** rng.uniform(-1, 2)
    init = start(n_samples, n_components, seed)
    views = Views(matrices, mask=mask)
    problem = build_problem(list(views.matrices), views, basis_from)
    found = solve(problem, IMGWeights(ridge, beta, gamma), *init, max_iter=4, tol=0)
    codes, affinity, bases = naive(matrices, mask, basis_from, ridge, beta, gamma, init, n_iter=4)
    scale = np.abs(codes).max()  # the first, indefinite system may blow the codes up
    np.testing.assert_allclose(found.codes, codes, rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(found.affinity, affinity, rtol=0, atol=1e-9 * np.abs(affinity).max())
    for one, other in zip(found.bases, bases, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9 * np.abs(other).max())


@pytest.mark.parametrize("basis_from", ["complete", "all"])
def test_codes_and_smoothed_codes_come_to_agree(basis_from: str) -> None:
    data = make_views(90, (6, 8, 5), n_clusters=3, missing_rate=0.3, random_state=0)
    model = IMG(3, basis_from=basis_from, random_state=0).fit(data.views)
    residual = model.residual_
    assert residual[-1] < 1e-8 <= residual[-2]
    assert model.n_iter_ == len(residual) < 200
    # The fall is geometric in the end: twenty iterations bring at least a factor of ten
    assert (residual[30:] < residual[10:-20] / 10).all()
    np.testing.assert_allclose(model.affinity_matrix_, model.affinity_matrix_.T, rtol=0, atol=0)
    assert model.affinity_matrix_.min() >= 0
    assert not hasattr(model, "objective_")


@given(st.integers(0, 2**16))
@settings(max_examples=15)
def test_permuting_the_samples_permutes_the_result(seed: int) -> None:
    data = make_views(40, (5, 6, 4), n_clusters=3, missing_rate=0.3, random_state=seed)
    codes, laplacian = start(40, 3, seed)
    order = np.random.RandomState(seed).permutation(40)
    settings = {"n_clusters": 3, "basis_from": "all", "max_iter": 20, "tol": 0, "random_state": 0}
    first = IMG(**settings, init=(codes, laplacian)).fit(data.views)
    second = IMG(**settings, init=(codes[order], laplacian[order][:, order])).fit(data.views[order])
    size = np.abs(first.embedding_).max()
    np.testing.assert_allclose(second.embedding_, first.embedding_[order], rtol=0, atol=1e-7 * size)
    affinity = first.affinity_matrix_[order][:, order]
    np.testing.assert_allclose(second.affinity_matrix_, affinity, rtol=0, atol=1e-7 * affinity.max())


@given(st.integers(0, 2**16))
@settings(max_examples=30)
def test_the_graph_is_symmetric_non_negative_and_sums_to_one_where_nothing_is_cut_off(seed: int) -> None:
    rng = np.random.RandomState(seed)
    smooth = rng.normal(size=(rng.randint(2, 20), 3))
    clipped = graph_step(smooth, 10.0)
    np.testing.assert_array_equal(clipped, clipped.T)
    assert clipped.min() >= 0
    gentle = graph_step(smooth, 1e-4)
    assert gentle.min() > 0
    assert abs(gentle.sum() - len(smooth)) < 1e-9


def test_the_cut_is_made_of_leading_eigenvectors() -> None:
    rng = np.random.RandomState(0)
    affinity = rng.uniform(size=(15, 15))
    affinity = affinity + affinity.T
    kept = affinity.copy()
    points = normalized_cut(affinity, 4)
    np.testing.assert_array_equal(affinity, kept)
    np.fill_diagonal(kept, 0)
    t = np.diag(1 / np.sqrt(kept.sum(axis=1)))
    values, vectors = np.linalg.eig(t @ kept @ t)
    leading = vectors[:, np.argsort(-values.real)[:4]].real
    unscaled = np.linalg.inv(t) @ points
    np.testing.assert_allclose(unscaled @ unscaled.T, leading @ leading.T, atol=1e-10)


def test_the_two_outputs_cluster_the_cut_and_the_unit_codes() -> None:
    data = make_views(90, (6, 8), n_clusters=6, separation=1, missing_rate=0.3, random_state=0)  # hard to tell apart
    init = start(90, 6, 0)
    for output in ("cut", "codes"):
        model = IMG(6, output=output, init=init, tol=1e-5, random_state=4).fit(data.views)
        cut = normalized_cut(model.affinity_matrix_, 6)
        points = cut if output == "cut" else unit_rows(model.embedding_)
        expected = KMeans(6, n_init=20, random_state=4).fit(points).labels_
        np.testing.assert_array_equal(model.labels_, by_size_and_id(expected, range(90)))
        others = unit_rows(cut) if output == "cut" else model.embedding_
        different = KMeans(6, n_init=20, random_state=4).fit(others).labels_
        assert (model.labels_ != by_size_and_id(different, range(90))).any()


@pytest.mark.parametrize(
    "setting",
    [
        {"n_components": 2},
        {"ridge_weight": 10.0},
        {"smoothness_weight": 0.1},
        {"graph_weight": 1.0},
        {"basis_from": "all"},
        {"scale": None},
        {"max_iter": 5},
        {"tol": 0.1},
        {"random_state": 1},
        {"init": start(60, 3, 9)},
    ],
)
def test_options_have_an_effect(setting: dict) -> None:
    data = make_views(60, (6, 8), n_clusters=3, missing_rate=0.3, random_state=0)
    base = {"n_clusters": 3, "max_iter": 20, "tol": 0, "random_state": 0}
    first, again, other = (IMG(**kwargs).fit(data.views) for kwargs in (base, base, {**base, **setting}))
    np.testing.assert_array_equal(first.embedding_, again.embedding_)
    np.testing.assert_array_equal(first.labels_, again.labels_)
    same_shape = first.embedding_.shape == other.embedding_.shape
    assert not same_shape or np.abs(first.embedding_ - other.embedding_).max() > 1e-6


def test_sparse_and_float32_views() -> None:
    rng = np.random.RandomState(0)
    dense = [rng.poisson(1, size=(40, 9)).astype(np.float32), rng.poisson(1, size=(40, 7)).astype(np.float32)]
    mask = random_mask(rng, 40, 2, 0.6, 5)
    for basis_from in ("complete", "all"):
        kwargs = {"basis_from": basis_from, "max_iter": 10, "tol": 0, "random_state": 0}
        narrow = IMG(3, **kwargs).fit(dense, mask=mask)
        thin = IMG(3, **kwargs).fit([sparse.csr_array(x) for x in dense], mask=mask)
        wide = IMG(3, **kwargs).fit([x.astype(np.float64) for x in dense], mask=mask)
        assert narrow.embedding_.dtype == np.float64
        np.testing.assert_allclose(thin.embedding_, narrow.embedding_, atol=1e-4)
        np.testing.assert_allclose(wide.embedding_, narrow.embedding_, atol=1e-3)


def test_groups_are_found_from_any_number_of_views() -> None:
    data = make_views(120, (8, 9, 7), n_clusters=3, separation=8, missing_rate=0.3, random_state=1)
    for views in (data.views, list(data.views.matrices[:1])):
        target = data.target if views is data.views else data.target[data.views.rows(0)]
        model = IMG(3, output="codes", tol=1e-5, random_state=0).fit(views)
        assert clustering_accuracy(target, model.labels_) > 0.9


def test_too_many_samples_are_refused_unless_allowed() -> None:
    data = make_views(60, (4, 5), n_clusters=2, random_state=0)
    with pytest.raises(InputError, match=r"60 samples need about 0\.0 GiB.*max_samples=60 \(None for no limit\)"):
        IMG(2, max_samples=59).fit(data.views)
    for allowed in (60, None):
        assert IMG(2, max_samples=allowed, tol=1e-2, random_state=0).fit(data.views).n_iter_ > 0
    large = Views([np.random.RandomState(0).normal(size=(5001, 2))])
    with pytest.raises(InputError, match=r"0\.9 GiB"):
        IMG(2).fit(large)


def test_without_complete_samples_only_all_rows_teach_the_bases() -> None:
    rng = np.random.RandomState(0)
    views = Views([rng.normal(size=(20, 3)), rng.normal(size=(20, 4))], mask=np.repeat(np.eye(2), 10, axis=0))
    with pytest.raises(InputError, match="none of the 20 samples has. Use basis_from='all'"):
        IMG(2).fit(views)
    model = IMG(2, basis_from="all", tol=1e-3, random_state=0).fit(views)
    assert np.isfinite(model.embedding_).all()


def test_stopping_early_is_said() -> None:
    data = make_views(40, (4, 5), n_clusters=2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="IMG stopped at max_iter=3") as caught:
        IMG(2, max_iter=3, random_state=0).fit(data.views)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"smoothness_weight": 0}, "All links of the graph"),
        ({"graph_weight": 1e300}, "All links of the graph"),
        ({"smoothness_weight": 1e300}, "cannot solve a linear system in iteration 2"),
        ({"init": (np.ones((30, 3)), -0.05 * np.eye(30))}, "cannot solve a linear system in iteration 1"),
        ({"init": (np.full((30, 3), 1e300), np.eye(30))}, "not finite in iteration"),
        ({"init": (np.zeros((30, 3)), np.zeros((30, 30)))}, "shrunk to zero"),
        ({"ridge_weight": 1e12, "output": "codes"}, "Lower ridge_weight"),
    ],
)
def test_useless_solutions_are_errors(setting: dict, message: str) -> None:
    data = make_views(30, (4, 5), n_clusters=3, random_state=0)
    with pytest.raises(SolutionError, match=message):
        IMG(3, random_state=0, **setting).fit(data.views)


def test_samples_without_links_are_said_and_lie_at_zero() -> None:
    affinity = np.ones((6, 6))
    affinity[:3, 3:] = affinity[3:, :3] = 0.1
    affinity[5, :5] = affinity[:5, 5] = 0
    with pytest.warns(GapviewWarning, match=r"1 sample\(s\) have no link"):
        points = normalized_cut(affinity, 2)
    assert np.isfinite(points).all()
    np.testing.assert_array_equal(points[5], 0)
    assert (points[:5] != 0).any(axis=1).all()


@pytest.mark.parametrize(
    ("init", "error", "message"),
    [
        ("data", InputTypeError, "init must be 'random' or a pair"),
        ((np.ones((30, 3)),), InputTypeError, "init must be 'random' or a pair"),
        ((np.ones((30, 2)), np.eye(30)), InputError, r"starting codes .* shape \(30, 3\); got .* \(30, 2\)"),
        ((np.ones((30, 3)), np.eye(29)), InputError, r"starting Laplacian .* shape \(30, 30\)"),
        ((np.full((30, 3), np.nan), np.eye(30)), InputError, "with NaN or infinity"),
        ((np.ones((30, 3)), "graph"), InputTypeError, "arrays of numbers"),
    ],
)
def test_a_bad_start_is_refused(init, error: type, message: str) -> None:
    data = make_views(30, (4, 5), n_clusters=3, random_state=0)
    with pytest.raises(error, match=message):
        IMG(3, init=init).fit(data.views)


@pytest.mark.parametrize(
    ("setting", "error"),
    [
        ({"n_components": 0}, ParameterError),
        ({"ridge_weight": 0}, ParameterError),
        ({"smoothness_weight": -1}, ParameterError),
        ({"graph_weight": 0.0}, ParameterError),
        ({"basis_from": "some"}, ParameterError),
        ({"output": "graph"}, ParameterError),
        ({"max_iter": 0}, ParameterError),
        ({"tol": -1e-9}, ParameterError),
        ({"max_samples": 1.5}, ParameterTypeError),
    ],
)
def test_bad_settings(setting: dict, error: type) -> None:
    with pytest.raises(error, match=next(iter(setting))):
        IMG(2, **setting).fit([np.eye(4)])


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(("rate", "cut", "codes"), [(0.1, 68.03, 75.28), (0.5, 77.05, 81.34), (0.9, 79.15, 85.55)])
def test_handwritten_accuracy_is_the_recorded_one(dataset, rate, cut, codes) -> None:
    data = dataset("handwritten_2v")
    scores = []
    for fold in range(3):
        model = IMG(10, tol=1e-4, random_state=0).fit(paired_split(data.views, rate, order=data.folds[fold]))
        by_codes = cluster_rows(model.embedding_, 10, np.random.RandomState(0)).labels  # what output="codes" returns
        scores.append([100 * clustering_accuracy(data.target, labels) for labels in (model.labels_, by_codes)])
    np.testing.assert_allclose(np.mean(scores, axis=0), (cut, codes), atol=5)
