"""Conformal p-values of new samples: validity, a naive version, junk, other units."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from data_files import _folder
from gapview import GRMF, BridgedGRMF, Views
from gapview.datasets import load_views, make_views
from gapview.errors import GapviewWarning
from gapview.trust import Novelty, conformal_p_values
from gapview.trust.novelty import ViewNovelty, is_beyond_chance
from gapview.trust.unit_changes import unit_change


def counts(seed, n_samples):
    source = np.random.RandomState(seed)
    return source.poisson(np.exp(source.normal(1, 1, size=40)[None] + source.normal(0, 0.3, size=(n_samples, 1))))


MADE = {
    "normal": lambda seed, n: np.random.RandomState(seed).normal(5, 2, size=(n, 12)),
    "heavy tails": lambda seed, n: np.random.RandomState(seed).standard_t(2, size=(n, 30)),
    "correlated": lambda seed, n: (
        np.random.RandomState(seed).normal(size=(n, 3)) @ np.random.RandomState(9).normal(size=(3, 25))
    ),
    "mostly zero": lambda seed, n: np.random.RandomState(seed).binomial(1, 0.05, size=(n, 60)).astype(float),
    "wide": lambda seed, n: np.random.RandomState(seed).exponential(size=(n, 400)),
}


def junk(rows, trained):
    source = np.random.RandomState(0)
    yield "x 1000", 1000 * rows
    yield "+ 5 SD", rows + 5 * trained.std(axis=0)
    yield "zeros", np.zeros_like(rows)
    yield "permuted", np.stack([source.permutation(row) for row in rows])
    if trained.min() >= 0:
        yield "-x", -rows


def test_the_naive_version():
    source = np.random.RandomState(0)
    new, known = source.normal(size=20), source.normal(size=30)
    new[:3] = known[:3]  # ties
    naive = [(1 + sum(k >= s for k in known)) / 31 for s in new]
    np.testing.assert_allclose(conformal_p_values(new, known), naive)


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("n_trained", [60, 250])
def test_false_alarms_on_made_data(name, n_trained):
    """Over repeated training samples, the rate of p ≤ α is at most about α."""
    rates = []
    for seed in range(12):
        rows = MADE[name](seed, n_trained + 200)
        p_values = ViewNovelty(rows[:n_trained]).p_values(rows[n_trained:])
        rates.append([(p_values <= alpha).mean() for alpha in (0.05, 0.2)])
    usual, often = np.mean(rates, axis=0)
    assert usual <= 0.075
    assert often <= 0.25


def test_scores_of_training_rows_are_those_of_new_rows():
    """Removing a row and scoring it as new gives about its leave-one-out score."""
    rows = MADE["correlated"](0, 80)
    known = ViewNovelty(rows)
    others = [ViewNovelty(np.delete(rows, i, axis=0)).scores(rows[[i]])[0] for i in range(80)]
    assert np.corrcoef(np.argsort(np.argsort(known.combined)), np.argsort(np.argsort(others)))[0, 1] > 0.95


@pytest.mark.parametrize("make", [GRMF, BridgedGRMF])
def test_junk_is_flagged_in_python(make):
    views = make_views(n_samples=300, n_clusters=3, random_state=0).views
    matrices = [np.exp(matrix / 4) * np.arange(1, matrix.shape[1] + 1) for matrix in views.matrices]
    model = make(3, random_state=0).fit([matrix[:240] for matrix in matrices])
    real = model.place([matrix[240:] for matrix in matrices])
    assert real.unusual.mean() <= 0.15
    kinds = zip(*(junk(matrix[240:], matrix[:240]) for matrix in matrices), strict=True)
    for (kind, first), (_, second) in kinds:
        with pytest.warns(GapviewWarning) as of_place:
            found = model.place([first, second])
        assert found.unusual.mean() >= 0.95, kind
        assert len(found.notes) == 2
        with pytest.warns(GapviewWarning) as of_predict:
            model.predict([None, second])
        for caught in (of_place, of_predict):
            assert any("is unlike that of the training samples" in str(each.message) for each in caught)


def test_a_few_flagged_samples_in_many_do_not_warn():
    views = make_views(n_samples=300, n_clusters=3, random_state=0).views
    model = GRMF(3, random_state=0).fit(views[:200])
    new = [matrix[200:].copy() for matrix in views.matrices]
    new[0][:2] += 5 * new[0].std(axis=0)
    assert model.place(new).unusual[:2].all()  # warnings are errors here


def test_beyond_chance():
    """The beta-binomial rule holds for p-values of the same calibration scores."""
    source = np.random.RandomState(0)
    alarms = []
    for _ in range(400):
        scores = source.normal(size=(60 + 100))
        alarms.append(is_beyond_chance(conformal_p_values(scores[60:], scores[:60]), 60, 0.05))
    assert np.mean(alarms) <= 0.02
    assert not is_beyond_chance(np.zeros(0), 60, 0.05)


CHANGES = {
    "1000 times": (lambda x: 1000 * x, "about 1000 times"),
    "a hundredth": (lambda x: x / 100, "about 1 / 100 of"),
    "Fahrenheit": (lambda x: 1.8 * x + 32, "°F where training has °C"),
    "logarithm": (np.log, "log(x)"),
    "standardised": (lambda x: (x - x.mean(axis=0)) / x.std(axis=0), "look standardised"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_of_units_are_named(change):
    rows = np.exp(np.random.RandomState(0).normal(3.6, 0.2, size=(240, 15)))
    apply, words = CHANGES[change]
    known = ViewNovelty(rows[:200])
    assert unit_change(known, rows[200:], 0.05) is None
    assert words in unit_change(known, apply(rows[200:]), 0.05)


def test_predict_names_the_units():
    rows = np.random.RandomState(0).normal(37, 1, size=(240, 6)) + np.repeat([0, 4], 120)[:, None]
    source = np.random.RandomState(1).permutation(240)
    model = GRMF(2, scale="standard", random_state=0).fit({"heat": rows[source[:200]]})
    with pytest.warns(GapviewWarning, match="View 'heat' of the new samples .* Check the units: they look like °F"):
        model.predict({"heat": 1.8 * rows[source[200:]] + 32})


def test_samples_with_some_of_the_views():
    views = make_views(n_samples=300, n_clusters=3, missing_rate=0.4, random_state=0).views
    of_views, together = Novelty(views[:200]).p_values(views[200:])
    np.testing.assert_array_equal(np.isnan(of_views), ~views.mask[200:])
    assert ((together > 0) & (together <= 1)).all()
    alone = views.mask[200:].sum(axis=1) == 1
    np.testing.assert_allclose(together[alone], np.nanmin(of_views[alone], axis=1))


def test_sparse_views_and_extreme_numbers():
    rows = counts(0, 200).astype(float)
    plain, thin = (
        Novelty(Views([kind(rows[:150])])).p_values(Views([kind(rows[150:])]))
        for kind in (np.asarray, sparse.csr_array)
    )
    np.testing.assert_allclose(plain[0], thin[0])
    huge = MADE["normal"](0, 100) * 1e307
    assert np.isfinite(ViewNovelty(huge[:80]).p_values(huge[80:])).all()
    assert (ViewNovelty(huge[:80] / 1e307).p_values(huge[80:]) <= 0.05).all()
    constant = np.ones((5, 3))
    assert ViewNovelty(constant).p_values(constant).tolist() == [1.0] * 5


@pytest.mark.data
@pytest.mark.parametrize("name", ["handwritten_2v", "tcga_brca_mixomics", "3sources_incomplete", "scene15"])
def test_junk_of_real_data(name):
    views = load_views(_folder("GAPVIEW_DATA", f"{name}.npz")).views
    order = np.random.RandomState(0).permutation(len(views))[:1000]
    new, trained = views[np.sort(order[::5])], views[np.sort(np.delete(order, np.s_[::5]))]
    novelty = Novelty(trained)
    assert not is_beyond_chance(novelty.p_values(new)[1], min(matrix.shape[0] for matrix in trained.matrices), 0.05)
    pairs = zip(new.matrices, trained.matrices, strict=True)
    parts = [dict(junk(*(np.asarray(m.toarray() if sparse.issparse(m) else m, float) for m in pair))) for pair in pairs]
    for kind in ("x 1000", "+ 5 SD", "zeros", "permuted"):
        made = new.with_matrices([part[kind] for part in parts])
        assert (novelty.p_values(made)[1] <= 0.05).mean() >= 0.95, kind
