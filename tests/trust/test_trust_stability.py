"""Stability against a version written from its definition, and of models whose resamples are hard to fit."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse

from gapview import GRMF, BridgedGRMF, Views
from gapview.datasets import make_views
from gapview.errors import GapviewWarning, InputError, ParameterError, SolutionError
from gapview.trust import cluster_stability
from problems import cases


def naive_stability(labels, draws):
    """Follow the definitions with sets, and try every one-to-one match."""
    n_groups = max(labels) + 1
    jaccards, stays, drawn = [], np.zeros(len(labels)), np.zeros(len(labels))
    for rows, found in draws:
        old = [{i for i in rows if labels[i] == group} for group in range(n_groups)]
        new = [{i for i, label in zip(rows, found, strict=True) if label == group} for group in range(n_groups)]
        jaccards.append([max(len(a & b) / len(a | b) for b in new if a | b) if a else np.nan for a in old])
        matches = itertools.permutations(new)
        best = max(sum(len(a & b) for a, b in zip(old, match, strict=True)) for match in matches)
        drawn[rows] += 1
        stays[0] += best  # several matches may be best: only the number of samples that stay is certain
    return np.array(jaccards), stays.sum(), drawn


@given(st.integers(0, 2**16), st.integers(1, 4), st.sampled_from([0.3, 0.8, 1.0]))
def test_stability_is_what_its_definition_says(seed, n_groups, share):
    rng = np.random.RandomState(seed)
    labels = np.r_[rng.randint(n_groups, size=rng.randint(1, 20)), n_groups - 1]
    draws, seeds = [], set()

    def fit(rows, seed):
        seeds.add(seed)
        draws.append((rows, np.random.RandomState(seed).randint(n_groups, size=len(rows))))
        return draws[-1][1]

    stability = cluster_stability(fit, labels, n_resamples=4, share=share, random_state=seed)
    jaccards, n_stays, drawn = naive_stability(labels, draws)
    np.testing.assert_allclose(stability.jaccards, jaccards)
    for group, mean in enumerate(stability.jaccard):
        known = jaccards[:, group][np.isfinite(jaccards[:, group])]
        np.testing.assert_allclose(mean, known.mean() if known.size else np.nan)
    np.testing.assert_array_equal(stability.n_drawn, drawn)
    assert np.nansum(stability.stays * drawn) == pytest.approx(n_stays)
    np.testing.assert_array_equal(np.isnan(stability.stays), drawn == 0)
    assert len(seeds) == 4
    assert all((np.diff(rows) > 0).all() and len(rows) == max(1, int(share * len(labels))) for rows, _ in draws)


@pytest.mark.parametrize(("precision", "n_drawn"), [(0.0, 20), (1e-9, 20), (0.2, 16), (0.12, 17)])
def test_resamples_end_when_the_share_kept_is_precise(precision, n_drawn):
    turns = itertools.count()

    def fit(rows, seed):
        return (rows >= 20) if next(turns) % 3 else np.arange(len(rows)) % 2  # one of three loses both groups

    stability = cluster_stability(fit, np.repeat([0, 1], 20), random_state=0, precision=precision)
    assert len(stability.jaccards) == n_drawn
    assert stability.n_drawn.sum() == n_drawn * 32


def test_the_same_groups_in_all_resamples_are_not_precise_enough_for_zero():
    stability = cluster_stability(lambda rows, seed: rows >= 20, np.repeat([0, 1], 20), random_state=0)
    assert len(stability.jaccards) == 20


def naive_kept(labels, found, partner):
    """Return for every drawn sample whether it is in the matched cluster and the cluster is similar without it."""
    kept = []
    for i, (own, new) in enumerate(zip(labels, found, strict=True)):
        others = [j for j in range(len(labels)) if j != i]
        before, after = {j for j in others if labels[j] == own}, {j for j in others if found[j] == partner[own]}
        similar = len(before | after) > 0 and len(before & after) / len(before | after) >= 0.5
        kept.append(new == partner[own] and similar and len(before) + 1 >= 5)
    return np.array(kept)


@given(st.integers(0, 2**16), st.integers(1, 4), st.floats(0, 0.7), st.sampled_from([0.5, 0.8, 1.0]))
def test_kept_is_what_its_definition_says(seed, n_groups, noise, share):
    """The largest groups are moved most, so that some are found again and some are not."""
    rng = np.random.RandomState(seed)
    labels = np.r_[rng.randint(n_groups, size=rng.randint(8, 60)), n_groups - 1]
    names, draws = rng.permutation(n_groups), []

    def fit(rows, seed):
        moved = np.random.RandomState(seed).uniform(size=len(rows)) < noise * (1 + labels[rows]) / n_groups
        found = np.where(moved, rng.randint(n_groups, size=len(rows)), labels[rows])
        draws.append((rows, names[found]))
        return draws[-1][1]

    stability = cluster_stability(fit, labels, n_resamples=3, share=share, random_state=seed)
    n_kept, drawn = np.zeros((2, len(labels)))
    for rows, found in draws:
        sizes = [[np.sum((labels[rows] == a) & (found == b)) for b in range(n_groups)] for a in range(n_groups)]
        totals = {
            match: sum(sizes[a][b] for a, b in enumerate(match)) for match in itertools.permutations(range(n_groups))
        }
        best = [match for match, total in totals.items() if total == max(totals.values())]
        assume(len(best) == 1)
        n_kept[rows] += naive_kept(labels[rows], found, best[0])
        drawn[rows] += 1
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(stability.kept, n_kept / drawn)
    assert (stability.kept[drawn > 0] <= stability.stays[drawn > 0]).all()


def test_small_groups_are_not_found_again():
    labels = np.repeat([0, 1, 2], [20, 5, 4])
    stability = cluster_stability(lambda rows, seed: labels[rows], labels, n_resamples=30, random_state=0)
    np.testing.assert_array_equal(stability.stays, 1)
    np.testing.assert_array_equal(stability.kept[:20], 1)
    assert 0.1 < stability.kept[20:25].mean() < 0.8  # only where all five are drawn
    np.testing.assert_array_equal(stability.kept[25:], 0)
    whole = cluster_stability(lambda rows, seed: labels[rows], labels, n_resamples=2, share=1.0, random_state=0)
    np.testing.assert_array_equal(whole.kept, np.repeat([1, 1, 0], [20, 5, 4]))


def test_stability_of_groups_that_are_there_and_of_one_that_is_not():
    labels = np.repeat([0, 1, 2], 20)

    def fit(rows, seed):  # group 2 is split at random each time, the others are renamed
        split = 2 + np.random.RandomState(seed).randint(2, size=len(rows))
        return np.where(labels[rows] == 2, split, 1 - labels[rows])

    stability = cluster_stability(fit, labels, random_state=0)
    np.testing.assert_array_equal(stability.jaccard[:2], 1)
    np.testing.assert_array_equal(stability.stays[:40], 1)
    assert 0.5 <= stability.jaccard[2] < 0.75
    assert 0.5 <= stability.stays[40:].mean() < 0.75
    again = cluster_stability(fit, labels, random_state=0)
    np.testing.assert_array_equal(again.jaccards, stability.jaccards)
    assert (cluster_stability(fit, labels, random_state=1).jaccards != stability.jaccards).any()


def test_stability_of_a_model_with_repeated_samples():
    data = make_views(n_samples=60, n_clusters=3, missing_rate=0.3, random_state=0)
    views = data.views[np.repeat(np.arange(60), 2)]
    model = GRMF(n_clusters=3, init="data", random_state=0).fit(views)

    def fit(rows, seed):
        return GRMF(n_clusters=3, init="data", random_state=seed).fit_predict(views[rows])

    stability = cluster_stability(fit, model.labels_, n_resamples=4, random_state=0)
    assert (stability.jaccard > 0.9).all()
    assert stability.n_drawn.sum() == 4 * 96


def test_stability_refuses_what_does_not_fit():
    with pytest.raises(InputError, match="one label for each of the 3 samples it was given; got shape"):
        cluster_stability(lambda rows, seed: [0], [0, 0, 1, 1])
    with pytest.raises(ParameterError, match="share must be a finite number above 0 and at most 1"):
        cluster_stability(lambda rows, seed: rows, [0, 1], share=0)
    for setting in ({"n_resamples": 0}, {"n_least": 1}):
        with pytest.raises(ParameterError, match=next(iter(setting))):
            cluster_stability(lambda rows, seed: rows, [0, 1], **setting)
    for mask in (np.ones(2), np.ones((3, 2))):
        with pytest.raises(InputError, match="mask must have a row for each of the 2 samples"):
            cluster_stability(lambda rows, seed: rows, [0, 1], mask=mask)


# -- views that few samples have -----------------------------------------------------------------------------


def draws_of(n_samples, **settings):
    draws = []

    def fit(rows, seed):
        draws.append(rows)
        return np.zeros(len(rows), dtype=int)

    cluster_stability(fit, np.zeros(n_samples, dtype=int), n_resamples=3, **settings)
    return draws


@given(cases(), st.sampled_from([0.1, 0.5, 0.8, 1.0]), st.integers(2, 6))
def test_every_view_keeps_the_samples_it_needs(case, share, n_least):
    n_samples, counts = len(case.mask), case.mask.sum(axis=0)
    needed = [min(count, max(2, min(n_least, int(np.ceil(share * count - 1e-9))))) for count in counts]
    plain = draws_of(n_samples, share=share, random_state=case.seed)
    kept = draws_of(n_samples, share=share, random_state=case.seed, mask=case.mask, n_least=n_least)
    for rows, without in zip(kept, plain, strict=True):
        assert (np.diff(rows) > 0).all()
        assert (case.mask[rows].sum(axis=0) >= needed).all()
        assert max(1, int(share * n_samples + 1e-9)) <= len(rows) <= max(len(without), sum(needed))
        if (case.mask[without].sum(axis=0) >= needed).all():  # chance is only interfered with where it must be
            np.testing.assert_array_equal(rows, without)


def test_no_sample_of_a_rare_view_is_preferred():
    mask = np.ones((40, 2), dtype=bool)
    mask[4:, 1] = False
    drawn = np.bincount(np.concatenate([draws_of(40, share=0.1, random_state=s, mask=mask)[0] for s in range(400)]))
    assert drawn[:4].sum() >= 2 * 400
    np.testing.assert_allclose(drawn[:4] / drawn[:4].mean(), 1, atol=0.15)
    np.testing.assert_allclose(drawn[4:] / drawn[4:].mean(), 1, atol=0.6)


# -- fits that fail ------------------------------------------------------------------------------------------


def test_resamples_on_which_the_fit_fails_are_left_out_and_counted():
    labels, draws = np.repeat([0, 1, 2], 10), []

    def fit(rows, seed):
        draws.append((rows, np.random.RandomState(seed).randint(3, size=len(rows))))
        if len(draws) % 3 == 2:
            raise InputError(f"trouble {len(draws)}.")
        return draws[-1][1]

    with pytest.warns(GapviewWarning, match=r"2 of 6 resamples were skipped.* The first error: trouble 2\.") as caught:
        stability = cluster_stability(fit, labels, n_resamples=6, random_state=0)
    assert [warning.filename for warning in caught] == [__file__]
    assert stability.failures == ("trouble 2.", "trouble 5.")
    assert stability.n_failed == 2
    done = [draw for turn, draw in enumerate(draws) if turn not in (1, 4)]
    jaccards, n_stays, drawn = naive_stability(labels, done)
    np.testing.assert_allclose(stability.jaccards[[0, 2, 3, 5]], jaccards)
    assert np.isnan(stability.jaccards[[1, 4]]).all()
    np.testing.assert_allclose(stability.jaccard, jaccards.mean(axis=0))
    np.testing.assert_array_equal(stability.n_drawn, drawn)
    assert np.nansum(stability.stays * drawn) == pytest.approx(n_stays)


def test_fits_that_all_fail_give_an_error_with_the_reason():
    def fit(rows, seed):
        raise InputError(f"View 'a' is constant on {len(rows)} samples.")

    with pytest.raises(SolutionError, match="every one of 7 resamples.*share.* View 'a' is constant on 8 samples"):
        cluster_stability(fit, np.zeros(10, dtype=int), n_resamples=7)


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, ValueError])
def test_other_errors_are_not_hidden(error):
    def fit(rows, seed):
        raise error

    with pytest.raises(error):
        cluster_stability(fit, [0, 0, 1, 1])


# -- models on resamples -------------------------------------------------------------------------------------


def remembering(method, fitted):
    """Make a method that keeps every model it fits."""

    class Remembering(method):
        def fit(self, views, y=None, *, mask=None):
            super().fit(views, y, mask=mask)
            fitted.append(self)
            return self

    return Remembering


def with_a_rare_view(n_rare):
    mask = np.ones((60, 3), dtype=bool)
    mask[n_rare:, 2] = False
    return make_views(60, (8, 6, 5), n_clusters=2, separation=6, random_state=0).views.hide(mask)


BOTH = pytest.mark.parametrize(
    "make",
    [
        lambda method=GRMF, **settings: method(2, init="data", random_state=0, **settings),
        lambda method=BridgedGRMF, **settings: method(2, selection="fixed", random_state=0, **settings),
    ],
    ids=["GRMF", "BridgedGRMF"],
)


def test_resamples_are_fitted_as_the_model_was():
    """Views, scales, bridge and the rest count in every resample as they were settled for all samples."""
    fitted = []
    whole = make_views(90, (8, 6), n_clusters=3, separation=2.5, random_state=0).views
    noise = np.random.RandomState(0).normal(size=(90, 5))
    model = remembering(BridgedGRMF, fitted)(3, random_state=0).fit(Views([*whole.matrices, noise]))
    assert np.ptp(model.view_weights_) > 0.2
    model.cluster_stability(n_resamples=3, random_state=0)
    assert len(fitted) == 4
    chosen = ("scales", "bridge", "reach", "n_components", "consensus_weight", "sparsity_weight")
    for part in fitted[1:]:
        np.testing.assert_allclose(part.view_weights_, model.view_weights_)
        assert [getattr(part.setting_, name) for name in chosen] == [getattr(model.setting_, name) for name in chosen]
        assert len(part.selection_.trials) == 1


def test_features_are_drawn_for_every_resample():
    fitted, named = [], pd.DataFrame(np.random.RandomState(0).normal(size=(40, 10)), columns=list("abcdefghij"))
    words = sparse.random_array((40, 7), density=0.5, format="csr", rng=0)
    model = remembering(BridgedGRMF, fitted)(2, selection="fixed", random_state=0).fit(
        [named, words, np.arange(40.0)[:, None]]
    )
    settings = {"n_resamples": 4, "feature_share": 0.8, "random_state": 0}
    stability = model.cluster_stability(**settings)
    drawn = set()
    for part in fitted[1:]:
        assert part.views_.n_features == (8, 5, 1)
        names = part.views_.feature_names[0].tolist()
        drawn.add("".join(names))
        rows = [model.sample_ids_.tolist().index(sample) for sample in part.sample_ids_]
        np.testing.assert_array_equal(part.views_.matrices[0], named[names].to_numpy()[rows])
    assert len(drawn) > 1
    np.testing.assert_array_equal(model.cluster_stability(**settings).kept, stability.kept)
    model.cluster_stability(n_resamples=1, random_state=0)
    assert fitted[-1].views_.n_features == (10, 7, 1)


@BOTH
@pytest.mark.parametrize("n_rare", [2, 3])
def test_rare_views_stay_in_every_resample(make, n_rare):
    stability = make().fit(with_a_rare_view(n_rare)).cluster_stability(n_resamples=6, random_state=0)
    assert stability.failures == ()
    assert (stability.jaccard > 0.9).all()
    assert stability.n_drawn[:n_rare].sum() >= 2 * 6


@pytest.mark.parametrize(("method", "settings"), [(GRMF, {"init": "data"}), (BridgedGRMF, {"selection": "fixed"})])
def test_neighbors_give_way_as_far_as_they_must(method, settings):
    fitted = []
    model = remembering(method, fitted)(2, n_neighbors=5, random_state=0, **settings).fit(with_a_rare_view(6))
    assert model.cluster_stability(n_resamples=6, random_state=0).failures == ()
    assert {part.n_neighbors for part in fitted[1:]} == {4, 5}
    assert all(part.views_.mask[:, 2].sum() > part.n_neighbors for part in fitted[1:])
    assert len({part.random_state for part in fitted[1:]}) == 6


def test_graphs_and_starts_of_the_user_are_cut_to_the_resample():
    views, fitted = with_a_rare_view(20), []
    graphs = GRMF(2, n_neighbors=4, random_state=0).fit(views).graphs_
    rng = np.random.RandomState(0)
    codes = {name: rng.uniform(size=(n, 2)) for name, n in zip(views.names, (60, 60, 20), strict=True)}
    codes["view_0"] = codes["view_0"].tolist()
    for start in (codes, codes | {"view_2": np.vstack([codes["view_2"], np.full((40, 2), np.nan)])}):
        model = remembering(GRMF, fitted)(2, graph=graphs, init=start, n_neighbors=1000, random_state=0)
        with pytest.warns(GapviewWarning, match="n_neighbors=1000 has no effect, since graph is given"):
            model.fit(views)
        assert model.cluster_stability(n_resamples=3, random_state=0).failures == ()
        for part in fitted[-3:]:
            for k, graph in enumerate(part.graphs_):
                own = np.isin(views.sample_ids[views.rows(k)], part.sample_ids_)
                np.testing.assert_array_equal(graph.toarray(), graphs[k].toarray()[np.ix_(own, own)])
                np.testing.assert_array_equal(part.init[k], np.asarray(codes[views.names[k]])[own])


@BOTH
def test_as_many_groups_as_samples(make):
    model = make().set_params(n_clusters=18).fit(with_a_rare_view(20)[:20])
    assert model.cluster_stability(n_resamples=3, random_state=0).failures == ()


@BOTH
def test_sparse_views_that_the_fit_has_written_out_are_written_out_again(make):
    """Just over a tenth of the values are other than zero, without the first sample just under."""
    rng = np.random.RandomState(0)
    words = np.zeros((50, 21))
    for word in (0, 7):
        words[np.arange(50), (np.arange(50) + word) % 21] = 1 + rng.uniform(size=50)
    words[0] = 1.0
    views = [sparse.csr_array(words), rng.normal(size=(50, 5)) + np.arange(50)[:, None] % 2 * 4]
    model = make(scale="standard", max_iter=2000).fit(views)
    assert sparse.issparse(model.views_.matrices[0])
    stability = model.cluster_stability(n_resamples=5, random_state=0)
    assert stability.n_drawn[0] < 5
    assert stability.failures == ()


@BOTH
def test_views_that_become_constant(make):
    data = make_views(40, (8, 6), n_clusters=2, separation=6, random_state=0)
    almost = np.ones((40, 4))
    almost[3] = [5.0, 4.0, 3.0, 2.0]  # the one sample that tells the view from a constant
    model = make(scale="standard").fit([*data.views.matrices, almost])
    with pytest.warns(GapviewWarning, match="resamples were skipped.*View 'view_2' is constant"):
        stability = model.cluster_stability(n_resamples=10, random_state=1)
    assert 0 < stability.n_failed < 6
    assert stability.n_drawn[3] == 10 - stability.n_failed
    assert np.isfinite(stability.jaccard).all()
    with pytest.raises(SolutionError, match="every one of 2 resamples.*View 'view_2' is constant"):
        model.cluster_stability(n_resamples=2, share=0.1, random_state=0)
