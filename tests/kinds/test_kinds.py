"""Kinds of views: transforms by hand, their inverse, sparse data, checks, features that are kept."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

import gapview
from bulk import bulk_counts, log_cpm
from gapview import GRMF, BridgedGRMF, Views
from gapview.baselines import Concat
from gapview.errors import GapviewWarning, InputError, ParameterError, ParameterTypeError
from gapview.kinds import fit_kind

COUNTS = np.random.RandomState(0).negative_binomial(2, 0.05, size=(60, 12)).astype(float)
SHARES = np.random.RandomState(1).beta(0.5, 0.5, size=(60, 12))
PARTS = np.random.RandomState(2).dirichlet(np.ones(12), size=60) * 100
FLAGS = (np.random.RandomState(3).uniform(size=(60, 12)) < np.linspace(0.05, 0.95, 12)).astype(float)
CODES = np.random.RandomState(4).randint(1, 5, size=(60, 12)).astype(float)
VALUES = {
    "counts": COUNTS,
    "proteins": COUNTS,
    "methylation": SHARES,
    "compositional": PARTS,
    "binary": FLAGS,
    "categorical": CODES,
}


# -- transforms ------------------------------------------------------------------------------------------------------


def test_counts_are_brought_to_the_median_total_and_logged():
    totals = COUNTS.sum(axis=1, keepdims=True)
    rule = fit_kind("rna", COUNTS, "counts")
    np.testing.assert_allclose(rule.apply(COUNTS), np.log1p(COUNTS / totals * np.median(totals)))
    deep = fit_kind("rna", 1e5 * COUNTS, "counts")
    np.testing.assert_allclose(deep.apply(1e5 * COUNTS), log_cpm(COUNTS))
    assert "a million" in str(deep)


def test_logarithms_of_proteins_are_centred_for_each_cell():
    logs = np.log1p(COUNTS)
    expected = logs - logs.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(fit_kind("adt", COUNTS, "proteins").apply(COUNTS), expected)


def test_shares_become_m_values():
    expected = np.log2((SHARES + 0.01) / (1 - SHARES + 0.01))
    np.testing.assert_allclose(fit_kind("betas", SHARES, "methylation").apply(SHARES), expected)


def test_compositions_become_centred_logarithms():
    found = fit_kind("parts", PARTS, "compositional").apply(PARTS)
    np.testing.assert_allclose(found.sum(axis=1), 0, atol=1e-9)
    np.testing.assert_allclose(found, fit_kind("parts", PARTS, "compositional").apply(7 * PARTS))


def test_rare_values_of_binary_features_have_more_weight():
    rule = fit_kind("mutations", FLAGS, "binary")
    found = rule.apply(FLAGS)
    np.testing.assert_allclose(found, FLAGS * np.log(61 / (1 + FLAGS.sum(axis=0))))
    # Codes of presence do not matter, as in files whose columns were scaled
    np.testing.assert_allclose(fit_kind("mutations", 0.3 * FLAGS, "binary").apply(0.3 * FLAGS), found)
    # Without a zero the rarer value is marked
    marked = fit_kind("sex", FLAGS + 1, "binary").apply(FLAGS + 1) > 0
    assert (marked.mean(axis=0) <= 0.5).all()


def test_categories_have_a_column_each():
    rule = fit_kind("codes", np.hstack([CODES, FLAGS]), "categorical")
    found = rule.apply(np.hstack([CODES, FLAGS]))
    assert found.shape == (60, 4 * 12 + 12)
    assert ((found[:, :4] > 0).sum(axis=1) == 1).all()
    unknown = np.hstack([CODES, FLAGS])[:1] + 0.0
    unknown[0, 0] = 9
    assert not rule.apply(unknown)[0, :4].any()


@pytest.mark.parametrize("kind", VALUES)
def test_the_inverse_returns_the_units_of_the_data(kind):
    given = VALUES[kind]
    rule = fit_kind("a", given, kind)
    found = rule.undo(rule.transform(given))
    if kind == "proteins":  # the size of a row is lost, and negative values are cut
        sizes = np.exp(np.log1p(given).mean(axis=1, keepdims=True))
        expected = (1 + given) / sizes * np.median(sizes) - 1
        np.testing.assert_allclose(found, np.maximum(expected, 0), atol=1e-6)
        return
    if kind == "counts":  # the size of a row is lost
        found = found * given.sum(axis=1, keepdims=True) / found.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, given, atol=1e-6)


@pytest.mark.parametrize("kind", ["counts", "proteins", "binary"])
@pytest.mark.parametrize("n_columns", [12, 3000])
def test_sparse_views_stay_sparse_and_have_the_same_values(kind, n_columns):
    values = np.random.RandomState(0).poisson(0.1, size=(500, n_columns)).astype(float)
    values = np.minimum(values, 1) if kind == "binary" else values
    rule, plain = (fit_kind("a", each, kind, 10) for each in (sparse.csr_array(values), values))
    found = rule.apply(sparse.csr_array(values))
    np.testing.assert_array_equal(rule.kept, plain.kept)
    if n_columns > 12 and kind != "proteins":  # small views become dense before they are clustered
        assert sparse.issparse(found)
    found = found.toarray() if sparse.issparse(found) else found
    np.testing.assert_allclose(found, plain.apply(values))


def test_single_precision_stays_single():
    for kind, given in VALUES.items():
        rule = fit_kind("a", given.astype(np.float32), kind)
        assert rule.apply(given.astype(np.float32)).dtype == np.float32
        assert rule.undo(rule.transform(given.astype(np.float32))).dtype == np.float32


# -- checks ----------------------------------------------------------------------------------------------------------

REFUSED = {
    ("counts", "a logarithm"): (np.log(COUNTS + 0.5), "'view_0' has kind='counts'.*from 0 on.*kind='continuous'"),
    ("proteins", "centred"): (COUNTS - 50, "kind='proteins'.*smallest value is"),
    ("methylation", "percent"): (100 * SHARES, "kind='methylation'.*from 0 to 1.*Divide percentages by 100"),
    ("methylation", "M-values"): (np.log2(SHARES), "kind='methylation'.*M-values"),
    ("compositional", "an empty sample"): (PARTS * (np.arange(60) != 3)[:, None], "nothing but zeros"),
    ("binary", "three values"): (CODES, "kind='binary'.*two values; 12 of 12 have more.*'categorical'"),
    ("categorical", "numbers"): (np.random.RandomState(0).normal(size=(60, 3)), "at most 50 values.*'continuous'"),
    ("categorical", "fractions"): (CODES / 2, "whole numbers"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.filterwarnings("ignore::gapview.errors.GapviewWarning")
def test_values_that_cannot_be_of_a_kind_are_refused(case):
    values, message = REFUSED[case]
    for model in (GRMF(2, kind=case[0], random_state=0), Concat(2, kind=case[0], random_state=0)):
        with pytest.raises(InputError, match=message):
            model.fit([values])


def test_parameters_are_checked():
    for kind in ("count", 3, ["counts"], {"rna": "counts"}, ["counts", "words"], {"view_0": "words"}):
        with pytest.raises((ParameterError, ParameterTypeError), match="kind"):
            GRMF(2, kind=kind).fit([COUNTS, SHARES])
    for n_top in (0, 2.5, {"rna": 3}, [1, 2, 3]):
        with pytest.raises((ParameterError, ParameterTypeError), match="n_top_features"):
            GRMF(2, n_top_features=n_top).fit([COUNTS, SHARES])


def test_what_has_no_effect_is_reported():
    values = np.random.RandomState(0).normal(size=(60, 8))
    with pytest.warns(GapviewWarning, match="kind='auto' has no effect"):
        GRMF(2, kind="auto", random_state=0).fit([values])
    with pytest.warns(GapviewWarning, match="n_top_features=8 has no effect"):
        Concat(2, n_top_features=8, random_state=0).fit([values])


def test_logarithms_as_counts_are_reported():
    counts, _ = bulk_counts(100, 80, 2, seed=0)
    with pytest.warns(GapviewWarning, match="look like logarithms already, and kind='counts'"):
        GRMF(2, kind="counts", random_state=0).fit([np.log1p(counts)])


# -- fits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [GRMF, BridgedGRMF])
@pytest.mark.parametrize("seed", [0, 1])
def test_raw_counts_are_as_good_as_logarithms_by_hand(estimator, seed):
    counts, target = bulk_counts(150, 300, 3, seed)
    views = [counts[:, :150], counts[:, 150:]]
    model = estimator(3, kind="counts", random_state=0).fit(views)
    by_hand = estimator(3, random_state=0).fit([log_cpm(view) for view in views])
    found, expected = (adjusted_rand_score(target, each.labels_) for each in (model, by_hand))
    assert found >= expected - 0.02
    assert found >= 0.9


@pytest.mark.data
def test_raw_counts_of_cells_are_as_good_as_logarithms_by_hand():
    mudata, pandas = pytest.importorskip("mudata"), pytest.importorskip("pandas")
    path = Path(os.environ.get("GAPVIEW_DATA", "")) / "omics" / "pbmc_mosaic.h5mu"
    if not path.is_file():
        pytest.skip("GAPVIEW_DATA has no omics/pbmc_mosaic.h5mu")
    with warnings.catch_warnings(action="ignore"):
        cells = mudata.read_h5mu(path)
    types = cells.obs["celltype"]
    names = {name: cells[name].obs_names for name in ("rna", "adt")}
    raw = {name: pandas.DataFrame(cells[name].X.toarray().astype(float), index=own) for name, own in names.items()}
    options = {"selection": "fixed", "random_state": 0}
    found = BridgedGRMF(8, kind="counts", **options).fit(raw)
    by_hand = BridgedGRMF(8, **options).fit({name: log_cpm(view) for name, view in raw.items()})
    ours, theirs = (adjusted_rand_score(types[each.sample_ids_], each.labels_) for each in (found, by_hand))
    assert ours >= theirs - 0.02


def test_auto_applies_what_is_proposed():
    counts, target = bulk_counts(150, 200, 3, seed=0, dispersion=0.5)
    views = Views({"rna": counts, "adt": counts[:, ::-1], "flags": np.eye(3)[target]})
    assert views.describe().proposed_kinds == {"rna": "counts", "adt": "proteins", "flags": "categorical"}
    model = GRMF(3, kind="auto", random_state=0).fit(views)
    assert [rule.kind for rule in model.kinds_] == ["counts", "proteins", "categorical"]
    given = GRMF(3, kind={"rna": "counts", "adt": "proteins", "flags": "categorical"}, random_state=0).fit(views)
    np.testing.assert_array_equal(model.labels_, given.labels_)


PROPOSED = {
    "counts": ("genes", bulk_counts(60, 60, 2, seed=0, dispersion=0.5)[0]),
    "proteins": ("ADT", bulk_counts(60, 60, 2, seed=0, dispersion=0.5)[0]),
    "methylation": ("methylation", SHARES),
    "compositional": ("microbes", PARTS),
    "binary": ("mutations", FLAGS * np.linspace(0.1, 0.3, 12)),
    "categorical": ("sex", np.eye(3)[np.arange(60) % 3]),
    None: ("scans", np.random.RandomState(0).normal(size=(60, 8))),
}


@pytest.mark.parametrize("kind", PROPOSED)
def test_a_kind_is_proposed_from_the_values(kind):
    name, values = PROPOSED[kind]
    (view,) = Views({name: values}).describe().views
    assert view.proposed_kind == kind
    assert all(f"--kind {name}={kind}" in each.proposal for each in view.findings if "counts" in each.kind)


def test_features_with_the_most_variance_for_their_mean_are_kept():
    rng = np.random.RandomState(0)
    target = np.arange(120) % 2
    means = rng.lognormal(3, 1, size=80)
    rates = means * np.where(np.arange(80) < 12, np.exp(target[:, None] * 2.0 - 1), 1.0)
    counts = rng.poisson(rates * rng.lognormal(0, 0.3, size=(120, 1))).astype(float)
    model = GRMF(2, kind="counts", n_top_features=12, random_state=0).fit({"rna": counts, "more": counts[:, 10:18]})
    assert set(model.kinds_[0].kept) == set(range(12))
    assert model.kinds_[1].kept is None
    assert [basis.shape[1] for basis in model.bases_] == [12, 8]
    assert adjusted_rand_score(target, model.labels_) == 1


@pytest.mark.filterwarnings("ignore::gapview.errors.GapviewWarning")
@pytest.mark.parametrize("n_top", [None, 40])
def test_new_samples_recovered_views_and_files(tmp_path, n_top):
    counts, target = bulk_counts(180, 160, 3, seed=1)
    lacking = np.random.RandomState(0).randint(4, size=180)  # half of the samples have both views
    mask = np.column_stack([lacking != 0, lacking != 1])
    views = Views({"rna": counts[:, :80], "mirna": counts[:, 80:]}, mask=mask)
    model = BridgedGRMF(3, kind="counts", n_top_features=n_top, selection="fixed", random_state=0).fit(views[:150])
    assert adjusted_rand_score(target[150:], model.predict(views[150:])) > 0.9
    # Depth is no unit: deeper samples are like those of training
    deeper = views[150:].with_matrices([20 * matrix for matrix in views[150:].matrices])
    np.testing.assert_array_equal(model.predict(deeper), model.predict(views[150:]))
    assert model.place(deeper).unusual.mean() < 0.3
    for method in ("auto", "knn", "ridge", "neighbors", "bridge", "blend", "basis", "mean"):
        complete = model.recover(method=method)["rna"]
        assert complete.shape == (150, 80)
        np.testing.assert_array_equal(complete[mask[:150, 0]], counts[:150, :80][mask[:150, 0]])
        found, truth = complete[~mask[:150, 0]], counts[:150, :80][~mask[:150, 0]]
        assert (found >= 0).all()
        assert np.corrcoef(np.log1p(found).ravel(), np.log1p(truth).ravel())[0, 1] > 0.8
    model.save(tmp_path / "a.gapview")
    again = gapview.load(tmp_path / "a.gapview")
    np.testing.assert_array_equal(again.predict(views[150:]), model.predict(views[150:]))
    for ours, theirs in zip(again.recover().values(), model.recover().values(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert gapview.describe(tmp_path / "a.gapview").chosen["kinds"] == {"rna": "counts", "mirna": "counts"}
    assert model.cluster_stability(n_resamples=3, random_state=0).jaccard.min() > 0.7
    assert model.assess(random_state=0).has_structure


def test_logarithms_where_training_had_counts_are_reported():
    counts, _ = bulk_counts(200, 60, 2, seed=0)
    model = GRMF(2, kind="counts", random_state=0).fit([counts[:150]])
    with pytest.warns(GapviewWarning, match="unlike that of the training samples"):
        model.predict([np.log1p(counts[150:])])


@pytest.mark.filterwarnings("ignore::gapview.errors.GapviewWarning")
def test_recovered_categories_are_categories():
    rng = np.random.RandomState(0)
    target = np.arange(120) % 3
    codes = (target[:, None] + rng.randint(2, size=(120, 6))) % 4 + 1.0
    scans = rng.normal(size=(120, 5)) + 4 * np.eye(3, 5)[target]
    mask = np.ones((120, 2), dtype=bool)
    mask[:30, 0] = False
    model = BridgedGRMF(3, kind={"codes": "categorical"}, selection="fixed", random_state=0)
    found = model.fit({"codes": codes, "scans": scans}, mask=mask).recover()["codes"]
    assert set(np.unique(found)) <= {1, 2, 3, 4}
    assert (found[:30] == codes[:30]).mean() > 0.4
