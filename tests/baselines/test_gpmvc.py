"""GPMVC: the authors' figures, the text of the specification, and what must hold for any data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from baselines.factor_problems import fitted, made, thinned
from gapview import Views
from gapview.baselines.gpmvc import GPMVC, build_view, gnmf_step, inner_steps
from gapview.baselines.nmf import Observed
from gapview.datasets import paired_split
from gapview.errors import GapviewWarning, InputError, InputTypeError, ParameterError, ParameterTypeError
from gapview.graph.knn import knn_graph
from gapview.metrics import clustering_accuracy
from gapview.scaling import unit_rows
from problems import cases, hidden

pytestmark = pytest.mark.filterwarnings("ignore:The groups are:gapview.errors.GapviewWarning")  # true of these fits


@pytest.mark.golden
def test_golden_inner_steps(golden):
    recorded = golden("authors_gpmvc_inner.npz")
    x, n_paired, alpha = recorded["X"], int(recorded["n_paired"]), float(recorded["alpha"])
    ties = np.where(np.arange(len(x)) < n_paired, alpha, 0.0)
    graph = sparse.csr_array(recorded["graph"])
    term = build_view(Observed(x, np.arange(len(x))), graph, float(recorded["graph_weight"]), ties, 1)
    codes, basis = recorded["P_start"].copy(), recorded["U_start"].copy()
    target = np.full_like(codes, 7.0)  # what is not tied must not be looked at
    target[:n_paired] = recorded["consensus"]
    inner_steps(term, codes, basis, target, int(recorded["n_steps"]))
    np.testing.assert_allclose(codes, recorded["P"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(basis, recorded["U"], rtol=0, atol=1e-9)


def naive_inner(x, w, p, u, z, tied, alpha, graph_weight, n_steps, careful=False):
    """§6, step 3, everything dense; the careful form adds what its last paragraph says."""
    d, t = np.diag(w.sum(axis=1)), np.diag(tied.astype(float))
    ones = np.ones((1, x.shape[1]))
    for _ in range(n_steps):
        top = x @ u.T + graph_weight * w @ p + alpha * t @ z
        p = p * top / (p @ u @ u.T + graph_weight * d @ p + alpha * t @ p)
        q, g, h = u.sum(axis=1), np.diag(p.T @ t @ z), np.diag(p.T @ t @ p)
        top = p.T @ x + alpha * g[:, None] @ ones
        bottom = p.T @ p @ u + alpha * (h * q)[:, None] @ ones
        if careful:
            top = top + (graph_weight * q * np.diag(p.T @ w @ p))[:, None]
            bottom = bottom + (graph_weight * q * np.diag(p.T @ d @ p))[:, None]
        u = u * top / bottom
        q = u.sum(axis=1)
        u, p = u / q[:, None], p * q
    return p, u


@pytest.mark.parametrize("careful", [False, True])
def test_inner_steps_follow_the_text(careful):
    matrices, _, (codes, bases) = made()
    rng = np.random.RandomState(1)
    x, z, tied = unit_rows(matrices[0]), rng.uniform(size=codes.shape), rng.uniform(size=30) < 0.5
    graph = knn_graph(x, 4)
    term = build_view(Observed(x, np.arange(30)), graph, 0.4, 0.3 * tied, 1)
    p, u = codes.copy(), bases[0].copy()
    inner_steps(term, p, u, z, 12, careful=careful)
    wanted = naive_inner(x, graph.toarray(), codes, bases[0], z, tied, 0.3, 0.4, 12, careful)
    np.testing.assert_allclose(p, wanted[0], rtol=1e-10)
    np.testing.assert_allclose(u, wanted[1], rtol=1e-10)


def test_step_of_the_start_follows_the_text():
    matrices, _, (codes, bases) = made()
    x = unit_rows(matrices[0])
    graph = knn_graph(x, 4)
    w, d = graph.toarray(), np.diag(graph.sum(axis=1))
    p, u = codes.copy(), bases[0].copy()
    gnmf_step(build_view(Observed(x, np.arange(30)), graph, 0.4, np.zeros(30), 1), p, u)
    wanted = codes * (x @ bases[0].T + 0.4 * w @ codes) / (codes @ bases[0] @ bases[0].T + 0.4 * d @ codes)
    np.testing.assert_allclose(p, wanted, rtol=1e-12)
    np.testing.assert_allclose(u, bases[0] * (wanted.T @ x) / (wanted.T @ wanted @ bases[0]), rtol=1e-12)


@pytest.mark.parametrize("sizes", [(8, 6), (7, 5, 9)])
def test_rounds_follow_the_text(sizes):
    """From a given start: the consensus is the mean over the views that have a sample, and ties those seen twice."""
    matrices, mask, (codes, bases) = made(sizes=sizes)
    settings = {"consensus_weight": 0.5, "graph_weight": 0.02, "n_neighbors": 3, "tol": 0}
    model = fitted(GPMVC(3, init=(codes, bases), max_iter=3, n_steps=4, **settings), matrices, mask)
    x = [unit_rows(matrix[mask[:, v]]) for v, matrix in enumerate(matrices)]
    u = [basis / basis.sum(axis=1, keepdims=True) for basis in bases]
    p = [codes[mask[:, v]] * basis.sum(axis=1) for v, basis in enumerate(bases)]

    def mean():
        return np.array(
            [np.mean([p[v][mask[:i, v].sum()] for v in np.flatnonzero(mask[i])], axis=0) for i in range(30)]
        )

    for _ in range(3):
        z = mean()
        for v, matrix in enumerate(x):
            rows = mask[:, v]
            tied = mask.sum(axis=1)[rows] >= 2
            graph = knn_graph(matrix, 3).toarray()
            p[v], u[v] = naive_inner(matrix, graph, p[v], u[v], z[rows], tied, 0.5, 0.5 * 0.02, 4)
    np.testing.assert_allclose(model.embedding_, mean(), rtol=1e-9)
    z, value = mean(), 0.0
    for v, matrix in enumerate(x):
        tied = mask.sum(axis=1)[mask[:, v]] >= 2
        w = knn_graph(matrix, 3).toarray()
        value += np.sum((matrix - p[v] @ u[v]) ** 2) + 0.5 * np.sum((p[v] - z[mask[:, v]])[tied] ** 2)
        value += 0.5 * 0.02 * np.trace(p[v].T @ (np.diag(w.sum(axis=1)) - w) @ p[v])
        np.testing.assert_allclose(model.codes_[v], p[v], rtol=1e-9)
        np.testing.assert_allclose(model.bases_[v], u[v], rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(model.objective_[-1], value, rtol=1e-10)


@settings(max_examples=40)
@given(
    case=cases(nonnegative=True),
    graph_weight=st.sampled_from([0.0, 0.1, 1.0, 30.0]),
    init=st.sampled_from(["independent", "aligned"]),
)
def test_objective_never_rises(case, graph_weight, init):
    model = GPMVC(
        case.n_clusters,
        n_components=case.n_components,
        consensus_weight=case.consensus_weight,
        graph_weight=graph_weight,
        n_neighbors=case.n_neighbors,
        init=init,
        max_iter=6,
        n_steps=15,
        random_state=case.seed,
    )
    fitted(model, case.matrices, case.mask)
    objective = model.objective_
    assert np.all(np.diff(objective) <= 1e-9 * np.abs(objective[:-1]))
    for factor in [model.embedding_, *model.codes_, *model.bases_]:
        assert np.isfinite(factor).all()
        assert factor.min() >= 0
    for basis in model.bases_:
        sums = basis.sum(axis=1)
        np.testing.assert_allclose(sums[sums > 0], 1)


def test_the_authors_steps_alone_would_raise_the_objective():
    """What the careful step is there for; the figures are those of a round of 30 steps in one view."""
    matrices, _, (codes, bases) = made(seed=2)
    x = unit_rows(matrices[0])
    graph = knn_graph(x, 3)
    w = graph.toarray()
    lap = np.diag(w.sum(axis=1)) - w
    values = {}
    for careful in (False, True):
        p, u = codes, bases[0]
        values[careful] = []
        for _ in range(60):
            p, u = naive_inner(x, w, p, u, np.zeros_like(p), np.zeros(30), 0.0, 1.0, 30, careful)
            values[careful].append(np.sum((x - p @ u) ** 2) + np.trace(p.T @ lap @ p))
    assert np.diff(values[False]).max() > 1e-9 * values[False][0]
    assert np.diff(values[True]).max() <= 1e-12 * values[True][0]


@pytest.mark.parametrize("init", ["independent", "aligned"])
def test_starts_depend_on_the_seed_only(init):
    matrices, mask, _ = made()
    first, again, other = (
        fitted(GPMVC(3, init=init, max_iter=2, random_state=seed), matrices, mask).embedding_ for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_an_aligned_start_brings_the_views_together():
    """Two views of the same codes, hardly tied: only an aligned start has the same order of components in both."""
    rng = np.random.RandomState(0)
    hidden_codes = np.repeat(np.eye(4), 25, axis=0) + 0.05 * rng.uniform(size=(100, 4))
    matrices = [hidden_codes @ rng.uniform(size=(4, m)) ** 2 for m in (20, 20)]
    agreement = {}
    for init in ("independent", "aligned"):
        codes = GPMVC(4, init=init, consensus_weight=1e-8, max_iter=1, n_steps=1, random_state=0).fit(matrices).codes_
        agreement[init] = np.mean(codes[0].argmax(axis=1) == codes[1].argmax(axis=1))
    assert agreement["aligned"] > agreement["independent"]


def test_order_of_samples_does_not_matter():
    matrices, mask, (codes, bases) = made(sizes=(8, 6, 5))
    order = np.random.RandomState(1).permutation(len(mask))
    settings = {"max_iter": 3, "n_steps": 10}
    model = fitted(GPMVC(3, init=(codes, bases), **settings), matrices, mask)
    other = fitted(GPMVC(3, init=(codes[order], bases), **settings), [m[order] for m in matrices], mask[order])
    np.testing.assert_allclose(other.embedding_, model.embedding_[order], rtol=1e-7, atol=1e-12)


def test_sparse_views_give_the_same():
    matrices, mask, start = made()
    thin = [thinned(matrix) for matrix in matrices]
    model = GPMVC(3, init=start, max_iter=3, n_steps=10).fit(Views(thin, mask=mask))
    other = GPMVC(3, init=start, max_iter=3, n_steps=10).fit(Views([sparse.csr_array(m) for m in thin], mask=mask))
    np.testing.assert_allclose(other.embedding_, model.embedding_, rtol=1e-7, atol=1e-12)


def test_single_precision_stays():
    matrices, mask, _ = made()
    model = fitted(GPMVC(3, max_iter=2, random_state=0), [m.astype(np.float32) for m in matrices], mask)
    assert {factor.dtype for factor in [model.embedding_, *model.bases_]} == {np.dtype(np.float32)}


def test_the_scale_of_the_data_does_not_matter_to_the_steps():
    """Quotients are floored relative to their size; without penalties a view of 1e-9 is as good as one of 1."""
    matrices, mask, _ = made()
    settings = {"scale": None, "consensus_weight": 0.0, "max_iter": 2, "random_state": 0}
    model = fitted(GPMVC(3, **settings), matrices, mask)
    other = fitted(GPMVC(3, **settings), [1e-9 * matrix for matrix in matrices], mask)
    assert other.objective_[-1] * 1e18 < 1.5 * model.objective_[-1]


def test_no_complete_sample():
    matrices, _, _ = made(sizes=(8, 6, 5))
    mask = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], dtype=bool)[np.arange(30) % 3]
    model = GPMVC(3, max_iter=3, random_state=0).fit(hidden(matrices, mask))
    assert np.isfinite(model.embedding_).all()
    with pytest.warns(GapviewWarning, match="share no sample"):
        GPMVC(3, max_iter=3, random_state=0).fit(hidden(matrices[:2], np.eye(2, dtype=bool)[np.arange(30) % 2]))


@pytest.mark.filterwarnings("ignore:View .*in 1 sample, most values are larger")
@pytest.mark.filterwarnings("ignore:.*nothing but zeros")  # said of the rows of zeros, as it should be
def test_rows_of_zeros_and_samples_far_from_all_others():
    matrices, mask, _ = made()
    matrices[0][0] = matrices[1][0] = 0
    matrices[0][1] = [0, 0, 0, 0, 0, 0, 0, 9]
    model = GPMVC(3, max_iter=3, random_state=0).fit(hidden(matrices, mask))
    assert np.isfinite(model.embedding_).all()


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"consensus_weight": -1}, ParameterError, "consensus_weight"),
        ({"graph_weight": -1}, ParameterError, "graph_weight"),
        ({"n_neighbors": 30}, ParameterError, "n_neighbors=30"),
        ({"n_steps": 0}, ParameterError, "n_steps"),
        ({"n_steps": 1.5}, ParameterTypeError, "n_steps"),
        ({"max_iter": 0}, ParameterError, "max_iter"),
        ({"init": "random"}, InputTypeError, "'independent', 'aligned' or a pair"),
        ({"init": (np.zeros((30, 3)), [np.ones((3, 8)), np.ones((3, 6))])}, InputError, "not all of them 0"),
    ],
)
def test_bad_settings(settings, error, words):
    matrices, mask, _ = made()
    with pytest.raises(error, match=words):
        GPMVC(3, **settings).fit(hidden(matrices, mask))


@pytest.mark.data
def test_handwritten(dataset):
    """The recorded accuracy, at half of the samples paired."""
    data = dataset("handwritten_2v")
    views = paired_split(data.views, 0.5, order=data.folds[0])
    model = GPMVC(10, consensus_weight=0.1, graph_weight=0.1, random_state=0).fit(views)
    assert abs(100 * clustering_accuracy(data.target, model.labels_) - 86.85) < 6
    assert np.all(np.diff(model.objective_) <= 0)
