"""MIC: the authors' figures, the text of the specification, and what must hold for any data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from baselines.factor_problems import fitted, made, thinned
from gapview import Views
from gapview.baselines.mic import MIC, build_view, chained_start, inner_steps
from gapview.baselines.nmf import Observed, move_scale
from gapview.clusters import cluster_rows
from gapview.datasets import paired_split
from gapview.errors import GapviewWarning, InputError, InputTypeError, ParameterError, ParameterTypeError
from gapview.metrics import clustering_accuracy
from gapview.scaling import unit_rows
from problems import cases, hidden

pytestmark = pytest.mark.filterwarnings("ignore:The groups are:gapview.errors.GapviewWarning")  # true of these fits


@pytest.mark.golden
def test_golden_inner_steps(golden):
    recorded = golden("authors_mic_inner.npz")
    penalties = float(recorded["alpha"]), float(recorded["beta"])
    codes, basis = recorded["P_start"].copy(), recorded["U_start"].copy()
    move_scale([basis], codes, basis.sum(axis=1))
    term = build_view(recorded["X"], recorded["weights"], *penalties)
    inner_steps(term, codes, basis, recorded["consensus"], int(recorded["n_steps"]))
    np.testing.assert_allclose(codes, recorded["P"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(basis, recorded["U"], rtol=0, atol=1e-9)


def naive_inner(x, weights, p, u, consensus, alpha, beta, n_steps):
    """§7 with diagonal matrices."""
    w2 = np.diag(weights**2)
    for _ in range(n_steps):
        lengths = np.diag(1 / np.linalg.norm(p, axis=1))
        top = w2 @ (x @ u.T + alpha * consensus)
        p = p * np.sqrt(top / (w2 @ (p @ u @ u.T + alpha * p) + beta / 2 * lengths @ p))
        u = u * np.sqrt((p.T @ w2 @ x) / (p.T @ w2 @ p @ u))
        sums = u.sum(axis=1)
        u, p = u / sums[:, None], p * sums
    return p, u


def naive_filled(matrices, mask):
    """Unit rows, the mean of the present ones in the gaps, and the weights."""
    filled, weights = [], []
    for v, matrix in enumerate(matrices):
        rows = mask[:, v]
        x = unit_rows(matrix)
        x[~rows] = x[rows].mean(axis=0)
        filled.append(x)
        weights.append(np.where(rows, 1.0, rows.sum() / len(rows)))
    return filled, weights


def naive_value(x, weights, p, u, consensus, alpha, beta):
    w = np.diag(weights)
    fit = np.sum((w @ (x - p @ u)) ** 2)
    return fit + alpha * np.sum((w @ (p - consensus)) ** 2) + beta * np.linalg.norm(p, axis=1).sum()


@pytest.mark.parametrize("sizes", [(8, 6), (7, 5, 9)])
def test_rounds_follow_the_text(sizes):
    matrices, mask, (codes, bases) = made(sizes=sizes)
    settings = {"consensus_weight": 0.2, "sparsity_weight": 0.03, "max_iter": 3, "n_steps": 4}
    model = fitted(MIC(3, init=(codes, bases), **settings), matrices, mask)
    x, w = naive_filled(matrices, mask)
    u = [basis / basis.sum(axis=1, keepdims=True) for basis in bases]
    p = [codes * basis.sum(axis=1) for basis in bases]

    def mean():
        top = sum(0.2 * np.diag(weights**2) @ code for weights, code in zip(w, p, strict=True))
        return top / sum(0.2 * weights**2 for weights in w)[:, None]

    for _ in range(3):
        consensus = mean()
        for v in range(len(x)):
            p[v], u[v] = naive_inner(x[v], w[v], p[v], u[v], consensus, 0.2, 0.03, 4)
    consensus = mean()
    np.testing.assert_allclose(model.embedding_, consensus, rtol=1e-9)
    value = sum(naive_value(*each, consensus, 0.2, 0.03) for each in zip(x, w, p, u, strict=True))
    np.testing.assert_allclose(model.objective_[-1], value, rtol=1e-10)
    for v in range(len(x)):
        np.testing.assert_allclose(model.codes_[v], p[v], rtol=1e-9)
        np.testing.assert_allclose(model.bases_[v], u[v], rtol=1e-9, atol=1e-15)


@settings(max_examples=50)
@given(
    case=cases(nonnegative=True),
    consensus_weight=st.sampled_from([0.0, 0.01, 0.1]),
    sparsity_weight=st.sampled_from([0.0, 0.001, 0.01]),
)
def test_objective_falls(case, consensus_weight, sparsity_weight):
    """But for small rises: rescaling the basis changes the terms of α and β."""
    model = MIC(
        case.n_clusters,
        n_components=case.n_components,
        consensus_weight=consensus_weight,
        sparsity_weight=sparsity_weight,
        max_iter=6,
        n_steps=10,
        random_state=case.seed,
    )
    fitted(model, case.matrices, case.mask)
    objective = model.objective_
    assert np.all(np.diff(objective) <= 1e-3 * np.abs(objective[:-1]))
    for factor in [model.embedding_, *model.codes_, *model.bases_]:
        assert np.isfinite(factor).all()
        assert factor.min() >= 0
    for basis in model.bases_:
        sums = basis.sum(axis=1)
        np.testing.assert_allclose(sums[sums > 0], 1)


def test_start_lines_up_the_components_of_the_views():
    """The columns of codes that are found in turn belong together: each is nearest to its own in the other view."""
    rng = np.random.RandomState(0)
    hidden_codes = np.repeat(np.eye(4), 25, axis=0) + 0.05 * rng.uniform(size=(100, 4))
    parts = [Observed(hidden_codes @ rng.uniform(size=(4, m)) ** 2, np.arange(100)) for m in (20, 15)]
    codes, bases = chained_start(parts, 4, 100, np.random.RandomState(1))
    for part, code, basis in zip(parts, codes, bases, strict=True):
        np.testing.assert_allclose(basis.sum(axis=1), 1)
        assert np.sum((part.matrix - code @ basis) ** 2) < 0.01 * part.energy
    assert np.mean(codes[0].argmax(axis=1) == codes[1].argmax(axis=1)) > 0.9


@pytest.mark.parametrize("normalize", [True, False])
def test_rows_are_scaled_for_kmeans_if_wanted(normalize):
    matrices, mask, start = made(n_samples=60)
    lengths = 10.0 ** np.random.RandomState(0).uniform(-1, 1, size=(60, 1))
    model = MIC(3, init=start, normalize=normalize, scale=None, max_iter=3, random_state=0)
    fitted(model, [lengths * matrix for matrix in matrices], mask)
    wanted = cluster_rows(model.embedding_, 3, np.random.RandomState(0), normalize=normalize).labels
    other = cluster_rows(model.embedding_, 3, np.random.RandomState(0), normalize=not normalize).labels
    assert clustering_accuracy(wanted, model.labels_) == 1
    assert clustering_accuracy(other, model.labels_) < 1


def test_stops_when_the_consensus_stands_still():
    matrices, mask, _ = made()
    model = fitted(MIC(3, max_iter=30, tol=1e-2, random_state=0), matrices, mask)
    assert model.n_iter_ == len(model.objective_) < 30


def test_order_of_samples_does_not_matter():
    matrices, mask, (codes, bases) = made(sizes=(8, 6, 5))
    order = np.random.RandomState(1).permutation(len(mask))
    settings = {"max_iter": 3, "n_steps": 10}
    model = fitted(MIC(3, init=(codes, bases), **settings), matrices, mask)
    other = fitted(MIC(3, init=(codes[order], bases), **settings), [m[order] for m in matrices], mask[order])
    np.testing.assert_allclose(other.embedding_, model.embedding_[order], rtol=1e-7, atol=1e-12)


def test_sparse_views_give_the_same():
    matrices, mask, start = made()
    thin = [thinned(matrix) for matrix in matrices]
    model = MIC(3, init=start, max_iter=3, n_steps=10).fit(Views(thin, mask=mask))
    other = MIC(3, init=start, max_iter=3, n_steps=10).fit(Views([sparse.csr_array(m) for m in thin], mask=mask))
    np.testing.assert_allclose(other.embedding_, model.embedding_, rtol=1e-7, atol=1e-12)


def test_single_precision_stays():
    matrices, mask, _ = made()
    model = fitted(MIC(3, max_iter=2, random_state=0), [m.astype(np.float32) for m in matrices], mask)
    assert {factor.dtype for factor in [model.embedding_, *model.bases_]} == {np.dtype(np.float32)}


def test_codes_that_vanish_are_pointed_out():
    matrices, mask, _ = made()
    with pytest.warns(GapviewWarning, match=r"The codes of \d+ of 30 samples.*Lower sparsity_weight"):
        MIC(3, sparsity_weight=100.0, random_state=0).fit(hidden(matrices, mask))


def test_no_complete_sample_and_none_shared():
    """Filled rows tie every sample in every view, so that any pattern will do."""
    matrices, _, _ = made()
    mask = np.eye(2, dtype=bool)[np.arange(30) % 2]
    model = MIC(3, max_iter=3, random_state=0).fit(hidden(matrices, mask))
    assert np.isfinite(model.embedding_).all()


@pytest.mark.filterwarnings("ignore:.*nothing but zeros")  # said of the rows of zeros, as it should be
def test_rows_of_zeros():
    matrices, mask, _ = made()
    matrices[0][0] = matrices[1][0] = 0
    model = MIC(3, max_iter=3, random_state=0).fit(hidden(matrices, mask))
    assert np.isfinite(model.embedding_).all()


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"consensus_weight": -1}, ParameterError, "consensus_weight"),
        ({"sparsity_weight": -1}, ParameterError, "sparsity_weight"),
        ({"normalize": "yes"}, ParameterTypeError, "normalize must be True or False"),
        ({"n_steps": 0}, ParameterError, "n_steps"),
        ({"max_iter": 0}, ParameterError, "max_iter"),
        ({"init": "best"}, InputTypeError, "'random' or a pair"),
        ({"init": (np.ones((29, 3)), [np.ones((3, 8)), np.ones((3, 6))])}, InputError, "codes of view 'view_0'"),
    ],
)
def test_bad_settings(settings, error, words):
    matrices, mask, _ = made()
    with pytest.raises(error, match=words):
        MIC(3, **settings).fit(hidden(matrices, mask))


@pytest.mark.data
def test_handwritten(dataset):
    """The recorded accuracy, at half of the samples paired."""
    data = dataset("handwritten_2v")
    views = paired_split(data.views, 0.5, order=data.folds[0])
    model = MIC(10, consensus_weight=0.01, sparsity_weight=0.01, random_state=0).fit(views)
    assert abs(100 * clustering_accuracy(data.target, model.labels_) - 66.35) < 6
    assert np.all(np.diff(model.objective_) <= 1e-3 * model.objective_[:-1])
