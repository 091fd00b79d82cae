"""DCNMF, both readings: steps and objectives against the text of the specification; negative input to all methods."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from baselines.factor_problems import fitted, made, thinned
from gapview import Views
from gapview.baselines.dcnmf import DCNMF
from gapview.baselines.gpmvc import GPMVC
from gapview.baselines.mic import MIC
from gapview.baselines.pvc import PVC
from gapview.datasets import paired_split
from gapview.errors import GapviewWarning, InputError, InputTypeError, ParameterError, SolutionError
from gapview.graph.knn import knn_graph
from gapview.metrics import clustering_accuracy
from gapview.scaling import unit_rows
from problems import cases, hidden

pytestmark = pytest.mark.filterwarnings("ignore:The groups are:gapview.errors.GapviewWarning")  # true of these fits

READINGS = ("hard", "soft")


def graphs_of(x, mask, n_neighbors):
    """Dense graphs over all samples, empty where the view is missing."""
    graphs = []
    for v, matrix in enumerate(x):
        rows = np.flatnonzero(mask[:, v])
        whole = np.zeros((len(mask), len(mask)))
        whole[np.ix_(rows, rows)] = knn_graph(matrix[rows], n_neighbors).toarray()
        graphs.append(whole)
    return graphs


def naive_hard(x, mask, graphs, codes, bases, n_iter, beta, lam):
    """§5a with matrices E that place the rows of a view, everything dense."""
    p, u = codes.copy(), [basis.copy() for basis in bases]
    place = [np.eye(len(mask))[:, mask[:, v]] for v in range(len(x))]
    seen = [matrix[mask[:, v]] for v, matrix in enumerate(x)]
    w = beta * sum(graphs)
    d = np.diag(w.sum(axis=1))
    c = mask.sum(axis=1)[:, None]
    for _ in range(n_iter):
        for v, e in enumerate(place):
            own = e.T @ p
            u[v] = u[v] * (own.T @ seen[v]) / (own.T @ own @ u[v])
        s = np.sqrt(sum((basis**2).sum(axis=1) for basis in u))
        u, p = [np.diag(1 / s) @ basis for basis in u], p @ np.diag(s)
        top = sum(e @ seen[v] @ u[v].T for v, e in enumerate(place)) + w @ p
        bottom = sum(e @ (e.T @ p) @ u[v] @ u[v].T for v, e in enumerate(place)) + d @ p + lam / 2 * c
        p = p * top / bottom
    return p, u


def naive_soft(x, mask, graphs, codes, bases, n_iter, alpha, beta, lam):
    """§5b, for any number of views: the consensus is over samples seen at least twice."""
    n_views = len(x)
    p = [codes[mask[:, v]].copy() for v in range(n_views)]
    u = [basis.copy() for basis in bases]

    def mean():
        total = np.zeros_like(codes)
        for v in range(n_views):
            total[mask[:, v]] += p[v]
        return total / mask.sum(axis=1)[:, None]

    for _ in range(n_iter):
        z = mean()
        for v in range(n_views):
            rows = mask[:, v]
            tied = (mask.sum(axis=1) >= 2)[rows].astype(float)[:, None]
            w = beta * graphs[v][np.ix_(rows, rows)]
            u[v] = u[v] * (p[v].T @ x[v][rows]) / (p[v].T @ p[v] @ u[v])
            s = np.linalg.norm(u[v], axis=1)
            u[v], p[v] = u[v] / s[:, None], p[v] * s
            top = x[v][rows] @ u[v].T + w @ p[v] + alpha * tied * z[rows]
            bottom = p[v] @ u[v] @ u[v].T + np.diag(w.sum(axis=1)) @ p[v] + alpha * tied * p[v] + lam / 2
            p[v] = p[v] * top / bottom
    return mean(), u, p


def naive_smoothness(graph, codes):
    return 0.5 * sum(
        graph[i, j] * np.sum((codes[i] - codes[j]) ** 2) for i in range(len(graph)) for j in range(len(graph))
    )


@pytest.mark.parametrize("sizes", [(8, 6), (7, 5, 9)])
def test_hard_follows_the_text(sizes):
    matrices, mask, start = made(sizes=sizes)
    settings = {"graph_weight": 0.02, "sparsity_weight": 1e-3, "n_neighbors": 3, "tol": 0}
    model = fitted(DCNMF(3, init=start, max_iter=15, **settings), matrices, mask)
    x = [unit_rows(matrix) for matrix in matrices]
    codes, bases = naive_hard(x, mask, graphs_of(x, mask, 3), *start, 15, 0.02, 1e-3)
    np.testing.assert_allclose(model.embedding_, codes, rtol=1e-9, atol=1e-12)
    for found, basis in zip(model.bases_, bases, strict=True):
        np.testing.assert_allclose(found, basis, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("sizes", [(8, 6), (7, 5, 9)])
def test_soft_follows_the_text(sizes):
    matrices, mask, start = made(sizes=sizes)
    settings = {"graph_weight": 0.02, "sparsity_weight": 1e-3, "consensus_weight": 0.5, "n_neighbors": 3, "tol": 0}
    model = fitted(DCNMF(3, consensus="soft", init=start, max_iter=6, **settings), matrices, mask)
    x = [unit_rows(matrix) for matrix in matrices]
    consensus, bases, _ = naive_soft(x, mask, graphs_of(x, mask, 3), *start, 6, 0.5, 0.02, 1e-3)
    np.testing.assert_allclose(model.embedding_, consensus, rtol=1e-9, atol=1e-12)
    for found, basis in zip(model.bases_, bases, strict=True):
        np.testing.assert_allclose(found, basis, rtol=1e-9, atol=1e-12)


def test_hard_objective_is_that_of_the_text():
    matrices, mask, start = made(sizes=(7, 5, 9))
    model = fitted(
        DCNMF(3, init=start, graph_weight=0.3, sparsity_weight=0.05, n_neighbors=3, max_iter=40), matrices, mask
    )
    x = [unit_rows(matrix) for matrix in matrices]
    value = 0.0
    for v, graph in enumerate(graphs_of(x, mask, 3)):
        rows = mask[:, v]
        value += np.sum((x[v][rows] - model.embedding_[rows] @ model.bases_[v]) ** 2)
        value += 0.05 * model.embedding_[rows].sum() + 0.3 * naive_smoothness(graph, model.embedding_)
    np.testing.assert_allclose(model.objective_[-1], value, rtol=1e-10)
    lengths = np.sqrt(sum((basis**2).sum(axis=1) for basis in model.bases_))
    np.testing.assert_allclose(lengths, 1)


@pytest.mark.parametrize("consensus", READINGS)
@settings(max_examples=40)
@given(case=cases(nonnegative=True), graph_weight=st.sampled_from([0.0, 0.02, 1.0, 30.0]))
def test_objective_never_rises(consensus, case, graph_weight):
    model = DCNMF(
        case.n_clusters,
        n_components=case.n_components,
        consensus=consensus,
        graph_weight=graph_weight,
        sparsity_weight=case.sparsity_weight,
        consensus_weight=case.consensus_weight,
        n_neighbors=case.n_neighbors,
        max_iter=60,
        random_state=case.seed,
    )
    fitted(model, case.matrices, case.mask)
    objective = model.objective_
    assert np.all(np.diff(objective) <= 1e-9 * np.abs(objective[:-1]))
    for factor in [model.embedding_, *model.bases_]:
        assert np.isfinite(factor).all()
        assert factor.min() >= 0


def test_the_plain_step_alone_would_raise_the_objective():
    """What the careful step is there for: rescaling after the plain step changes the penalties."""
    matrices, mask, start = made(seed=3)
    x = [unit_rows(matrix) for matrix in matrices]
    graphs = graphs_of(x, mask, 3)

    def value(p, u):
        errors = sum(np.sum((x[v][mask[:, v]] - p[mask[:, v]] @ u[v]) ** 2) for v in range(2))
        return errors + sum(0.1 * p[mask[:, v]].sum() + naive_smoothness(graphs[v], p) for v in range(2))

    plain = [value(*naive_hard(x, mask, graphs, *start, n, 1.0, 0.1)) for n in range(1, 60)]
    assert np.diff(plain).max() > 1e-6
    model = fitted(
        DCNMF(3, init=start, graph_weight=1.0, sparsity_weight=0.1, n_neighbors=3, max_iter=59, tol=0), matrices, mask
    )
    assert np.diff(model.objective_).max() <= 0
    assert model.objective_[-1] < plain[-1]


def test_without_penalties_it_is_the_problem_of_pvc():
    matrices, mask, start = made(n_samples=60, sizes=(12, 9))
    exact = fitted(PVC(3, init=start, sparsity_weight=0, max_iter=500, tol=1e-9), matrices, mask)
    model = fitted(DCNMF(3, init=start, sparsity_weight=0, graph_weight=0, max_iter=5000, tol=1e-9), matrices, mask)
    assert abs(model.objective_[-1] / exact.objective_[-1] - 1) < 0.01


def test_the_consensus_weight_tells_on_soft_codes():
    matrices, mask, _ = made()
    spread = []
    for weight in (0.0, 100.0):
        model = fitted(
            DCNMF(3, consensus="soft", consensus_weight=weight, graph_weight=0, random_state=0), matrices, mask
        )
        spread.append(model.embedding_[mask.all(axis=1)])
    assert not np.allclose(*spread)


@pytest.mark.parametrize("consensus", READINGS)
def test_order_of_samples_does_not_matter(consensus):
    matrices, mask, (codes, bases) = made(sizes=(8, 6, 5))
    order = np.random.RandomState(1).permutation(len(mask))
    model = fitted(DCNMF(3, consensus=consensus, init=(codes, bases), max_iter=30), matrices, mask)
    other = fitted(
        DCNMF(3, consensus=consensus, init=(codes[order], bases), max_iter=30),
        [m[order] for m in matrices],
        mask[order],
    )
    np.testing.assert_allclose(other.embedding_, model.embedding_[order], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("consensus", READINGS)
def test_sparse_views_give_the_same(consensus):
    matrices, mask, start = made()
    thin = [thinned(matrix) for matrix in matrices]
    model = DCNMF(3, consensus=consensus, init=start, max_iter=30).fit(Views(thin, mask=mask))
    other = DCNMF(3, consensus=consensus, init=start, max_iter=30).fit(
        Views([sparse.csr_array(matrix) for matrix in thin], mask=mask)
    )
    np.testing.assert_allclose(other.embedding_, model.embedding_, rtol=1e-7, atol=1e-12)


def test_soft_start_may_differ_between_views():
    matrices, mask, (codes, bases) = made()
    own = {f"view_{v}": codes[mask[:, v]] for v in range(2)}
    named = {f"view_{v}": basis for v, basis in enumerate(bases)}
    model = fitted(DCNMF(3, consensus="soft", init=(codes, bases), max_iter=5), matrices, mask)
    other = fitted(DCNMF(3, consensus="soft", init=(own, named), max_iter=5), matrices, mask)
    np.testing.assert_array_equal(other.embedding_, model.embedding_)


@pytest.mark.parametrize("consensus", READINGS)
def test_collapse_is_an_error(consensus):
    matrices, mask, _ = made()
    with pytest.raises(SolutionError, match=r"shrunk to zero.*Lower sparsity_weight"):
        DCNMF(3, consensus=consensus, sparsity_weight=100.0, random_state=0).fit(hidden(matrices, mask))


@pytest.mark.parametrize("consensus", READINGS)
def test_no_complete_sample(consensus):
    matrices, _, _ = made(sizes=(8, 6, 5))
    mask = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], dtype=bool)[np.arange(30) % 3]
    model = DCNMF(3, consensus=consensus, random_state=0).fit(hidden(matrices, mask))
    assert np.isfinite(model.embedding_).all()
    with pytest.warns(GapviewWarning, match="share no sample"):
        DCNMF(3, consensus=consensus, random_state=0).fit(
            hidden(matrices[:2], np.eye(2, dtype=bool)[np.arange(30) % 2])
        )


@pytest.mark.filterwarnings("ignore:View .*in 1 sample, most values are larger")
@pytest.mark.filterwarnings("ignore:.*nothing but zeros")  # said of the rows of zeros, as it should be
@pytest.mark.parametrize("consensus", READINGS)
def test_rows_of_zeros_and_samples_far_from_all_others(consensus):
    matrices, mask, _ = made()
    matrices[0][0] = matrices[1][0] = 0
    matrices[0][1] = [0, 0, 0, 0, 0, 0, 0, 9]
    model = DCNMF(3, consensus=consensus, random_state=0).fit(hidden(matrices, mask))
    assert np.isfinite(model.embedding_).all()


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"consensus": "firm"}, ParameterError, "'hard', 'soft'"),
        ({"graph_weight": -1}, ParameterError, "graph_weight"),
        ({"sparsity_weight": -1}, ParameterError, "sparsity_weight"),
        ({"consensus_weight": -1}, ParameterError, "consensus_weight"),
        ({"n_neighbors": 0}, ParameterError, "n_neighbors"),
        ({"n_neighbors": 30}, ParameterError, "n_neighbors=30"),
        ({"nonnegative": None}, ParameterError, "nonnegative"),
        ({"init": "best"}, InputTypeError, "'random' or a pair"),
    ],
)
def test_bad_settings(settings, error, words):
    matrices, mask, _ = made()
    with pytest.raises(error, match=words):
        DCNMF(3, **settings).fit(hidden(matrices, mask))


# -- negative values, for all methods --------------------------------------------------------------------------------

METHODS = (PVC, DCNMF, GPMVC, MIC)


def signed():
    matrices, mask, _ = made()
    matrices[0] = matrices[0] - 0.5
    return matrices, mask


@pytest.mark.parametrize("method", METHODS)
def test_negative_values_are_refused(method):
    matrices, mask = signed()
    with pytest.raises(InputError, match=r"'view_0' has negative values.*nonnegative='shift' or 'clip'"):
        method(3, nonnegative="raise", random_state=0).fit(hidden(matrices, mask))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("nonnegative", ["shift", "clip"])
@pytest.mark.parametrize("scale", ["unit", None])
def test_negative_values_are_dealt_with(method, nonnegative, scale):
    """As if the user had scaled, shifted or clipped, and scaled again; the other view is left alone."""
    matrices, mask = signed()
    rows = mask[:, 0]
    fixed = [matrix.copy() for matrix in matrices]
    if scale == "unit":
        fixed = [unit_rows(matrix) for matrix in fixed]
    fixed[0] = np.maximum(fixed[0], 0) if nonnegative == "clip" else fixed[0] - fixed[0][rows].min()
    if scale == "unit" and nonnegative == "shift":
        fixed[0][rows] = unit_rows(fixed[0][rows])
    settings = {"max_iter": 3, "random_state": 0, "sparsity_weight": 1e-3}
    if method is GPMVC:
        del settings["sparsity_weight"]
    model = fitted(method(3, nonnegative=nonnegative, scale=scale, **settings), matrices, mask)
    other = fitted(method(3, scale=None, **settings), fixed, mask)
    np.testing.assert_allclose(model.embedding_, other.embedding_, rtol=1e-6, atol=1e-9)


def test_shifting_a_sparse_view_is_refused():
    matrices, mask = signed()
    views = Views([sparse.csr_array(matrices[0]), matrices[1]], mask=mask)
    with pytest.raises(InputError, match=r"'view_0' is sparse.*nonnegative='clip'"):
        DCNMF(3, nonnegative="shift", random_state=0).fit(views)
    assert np.isfinite(DCNMF(3, nonnegative="clip", random_state=0).fit(views).embedding_).all()


def test_a_view_that_clipping_wipes_out_is_refused():
    matrices, mask = signed()
    matrices[1] = -matrices[1]
    with pytest.raises(InputError, match="'view_1' is constant once nonnegative='clip'"):
        DCNMF(3, nonnegative="clip", random_state=0).fit(hidden(matrices, mask))


@pytest.mark.data
@pytest.mark.parametrize(
    ("rate", "accuracy"),
    [(0.1, 73.78), *(pytest.param(*row, marks=pytest.mark.slow) for row in ((0.5, 89.28), (0.9, 93.48)))],
)
def test_handwritten(dataset, rate, accuracy):
    """The recorded accuracies of the hard reading."""
    data = dataset("handwritten_2v")
    scores = []
    for fold in range(3):
        views = paired_split(data.views, rate, order=data.folds[fold])
        for start in range(2):
            labels = DCNMF(10, graph_weight=0.1, sparsity_weight=1e-2, random_state=start).fit(views).labels_
            scores.append(100 * clustering_accuracy(data.target, labels))
    assert abs(np.mean(scores) - accuracy) < 5
