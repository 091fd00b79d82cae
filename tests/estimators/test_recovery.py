"""Recovered views: the accuracy of every method on held-out samples, and the best of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

from gapview import GRMF, BridgedGRMF, Views
from gapview.datasets import make_views
from gapview.errors import GapviewWarning
from gapview.graph.regression import explained_share

KINDS = [GRMF(3, init="data", random_state=0), BridgedGRMF(3, selection="fixed", random_state=0)]
both = pytest.mark.parametrize("model", KINDS, ids=["GRMF", "BridgedGRMF"])


def linear(n_samples=150, seed=0):
    """Return two views that are linear maps of the same factors, with noise."""
    rng = np.random.RandomState(seed)
    factors = rng.normal(size=(n_samples, 4))
    return [factors @ rng.normal(size=(4, m)) + 0.5 * rng.normal(size=(n_samples, m)) for m in (8, 6)]


def lost(n_samples, rate=0.3, seed=0):
    mask = np.random.RandomState(seed).uniform(size=(n_samples, 2)) > rate
    mask[~mask.any(axis=1), 0] = True
    return mask


@both
def test_regression_is_used_where_it_is_best_and_expected_r2_is_met(model):
    tables, mask = linear(300), lost(300)
    model.fit(Views(tables, mask=mask))
    scores = model.recovery_scores()
    assert scores.table[0].keys() >= {"view", "method", "mean", "knn", "ridge", "neighbors", "blend"}
    for k, (one, rows) in enumerate(zip(scores.views, model.recover(), strict=True)):
        assert one.method == max(one.r2, key=one.r2.get)
        assert one.method in ("ridge", "blend")
        assert one.r2["mean"] == 0
        hidden = ~mask[:, k]
        true = explained_share(tables[k][hidden], rows[hidden], tables[k][~hidden])
        assert true == pytest.approx(one.best_r2, abs=0.1)
        np.testing.assert_array_equal(rows[~hidden], tables[k][~hidden])
        np.testing.assert_array_equal(rows, model.recover(method=one.method)[k])
        assert one.feature_r2["ridge"].shape == (tables[k].shape[1],)
        assert one.feature_r2["ridge"].mean() == pytest.approx(one.r2["ridge"], abs=0.05)
        low, middle, high = one.feature_range()
        assert low <= middle <= high
    assert str(scores).count("R² ") == 2


def test_held_out_r2_against_its_definition():
    """Each view of a sample is hidden once; the rest is fitted again, and recovers it."""
    tables, mask = linear(60), lost(60)
    model = GRMF(2, init="data", random_state=0).fit(Views(tables, mask=mask))
    hidden_from = []

    class Spy(GRMF):
        def refit(self, views, rows, random_state=0, **settings):
            hidden_from.append(mask[rows] & ~views.mask)
            return GRMF.refit(self, views, rows, random_state, **settings)

    spy = Spy(2, init="data", random_state=0).fit(Views(tables, mask=mask))
    scores = spy.recovery_scores()
    times = np.sum(hidden_from, axis=0)
    np.testing.assert_array_equal(times, mask & mask.all(axis=1)[:, None])
    assert [one.n_tested for one in scores.views] == times.sum(axis=0).tolist()
    errors = np.zeros((2, 2))
    for hidden in hidden_from:
        given = model.views_.hide(mask & ~hidden)
        again = model.refit(given, np.arange(60)).recover(method="knn")
        for k in range(2):
            spread, rows = tables[k][mask[:, k]].std(axis=0), hidden[:, k]
            for place, guess in enumerate((again[k][rows], given.matrices[k].mean(axis=0))):
                errors[k, place] += np.square((tables[k][rows] - guess) / spread).sum()
    expected = 1 - errors[:, 0] / errors[:, 1]
    np.testing.assert_allclose([one.r2["knn"] for one in scores.views], expected, rtol=1e-9)


@both
def test_views_of_noise_are_recovered_as_their_mean_with_a_warning(model):
    rng = np.random.RandomState(0)
    model.fit(Views([rng.normal(size=(150, 5)), rng.normal(size=(150, 5))], mask=lost(150)))
    with pytest.warns(GapviewWarning, match="other views hardly predict 'view_.': R² = .*about the mean") as warned:
        found = model.recover()[0][~model.views_.mask[:, 0]]
    assert len(warned) == 2
    assert np.abs(found - model.views_.matrices[0].mean(axis=0)).max() < 1
    for one in model.recovery_scores().views:
        assert max(one.r2.values()) < 0.05


@both
def test_views_of_another_part_are_the_mean_with_a_warning(model):
    tables, mask = linear(80), np.zeros((80, 2), dtype=bool)
    mask[:40, 0] = mask[40:, 1] = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GapviewWarning)
        model.fit(Views(tables, mask=mask))
    for method in ("auto", "neighbors", "ridge"):
        with pytest.warns(GapviewWarning, match="No sample links some samples with 'view_0', 'view_1'.*the mean"):
            found = model.recover(method=method)
        np.testing.assert_allclose(found[0][40:], np.repeat(tables[0][:40].mean(axis=0)[None], 40, axis=0))


@both
@pytest.mark.filterwarnings("ignore:The groups are")  # by which views samples lack
def test_one_view_and_few_shared_samples_are_not_measured(model):
    single = model.fit([linear()[0]])
    assert single.recovery_scores().views[0].reason == "there is one view"
    np.testing.assert_array_equal(single.recover()[0], linear()[0])
    tables, mask = linear(60), np.zeros((60, 2), dtype=bool)
    mask[:31, 0] = mask[30:, 1] = True  # one sample has both
    model.fit(Views(tables, mask=mask))
    for one in model.recovery_scores().views:
        assert one.reason == "fewer than 10 samples have this view and another one"
        assert one.method == model.latent_recovery
        assert "R² is not known" in str(one)
    assert all(np.isfinite(rows).all() for rows in model.recover())


@both
@pytest.mark.filterwarnings("ignore:The other views hardly predict")
def test_sparse_views_and_new_samples(model):
    rng = np.random.RandomState(0)
    groups = np.arange(120) % 3
    words = rng.poisson(np.where(groups[:, None] == np.arange(150) % 3, 0.2, 0.01)).astype(float)
    words[~words.any(axis=1), 0] = 1.0
    dense = np.eye(3)[groups] * 6 + rng.normal(size=(120, 3))
    model.fit(Views([sparse.csr_array(words[:90]), dense[:90]], mask=lost(90)))
    for method in ("auto", *model.recovery_candidates):
        found = model.recover(method=method)
        assert sparse.issparse(found[0])
        new = model.recover([None, dense[90:]], method=method)[0]
        assert new.shape == (30, 150)  # in the container of the input
        assert (new >= 0).all()


@both
def test_scores_are_computed_once_and_discarded_by_the_next_fit(model):
    views = Views(linear(), mask=lost(150))
    scores = model.fit(views).recovery_scores()
    assert model.recovery_scores().views is scores.views
    assert model.recovery_scores(n_neighbors=3).views is not scores.views
    again = model.fit(views).recovery_scores()
    assert again.views is not scores.views
    assert again.table == scores.table


def test_constant_features_have_no_r2():
    tables = linear()
    tables[1][:, 2] = 4.0
    model = GRMF(3, init="data", random_state=0).fit(Views(tables, mask=lost(150)))
    values = model.recovery_scores().views[1].feature_r2["ridge"]
    assert np.flatnonzero(np.isnan(values)).tolist() == [2]
    assert (model.recover()[1][:, 2] == 4.0).all()


def test_groups_are_recovered_better_by_the_latent_space():
    made = make_views(200, (20, 30), n_clusters=4, missing_rate=0.3, random_state=0)
    for one in BridgedGRMF(4, selection="fixed", random_state=0).fit(made.views).recovery_scores().views:
        assert one.best_r2 > 0.3
