"""What the values of views look like: kinds, findings, no false alarms on real data, and values damaged on purpose."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn import datasets as toys

from data_files import _folder
from gapview import GRMF, BridgedGRMF, Views
from gapview.baselines import Concat
from gapview.datasets import load_digits_views, load_views, make_views
from gapview.errors import GapviewWarning
from gapview.views import compare

REAL = (
    *("3sources_incomplete", "bbcsport_2v", "buaa90", "cornell", "handwritten_2v", "handwritten_6v", "hdigit10000"),
    *("leaves100", "msrcv1", "msrcv1_3v", "ngs", "orl4", "orl_2v", "reuters1200", "scene15", "tcga_brca_mixomics"),
    *("tcga_gbm_nolabel", "texas", "wikipedia"),
)


def measured(n_samples: int = 200, n_features: int = 20, seed: int = 0) -> np.ndarray:
    """Return positive measurements on different scales, with two groups of samples."""
    source = np.random.RandomState(seed)
    groups = source.randint(2, size=(n_samples, 1)) * source.uniform(0, 0.5, size=n_features)
    return np.exp(source.normal(0, 0.25, size=(n_samples, n_features)) + groups) * np.linspace(1, 100, n_features)


def kinds(values, **more) -> list[str]:
    return [finding.kind for finding in Views({"lab": values}, **more).describe().findings]


def doubts(values) -> list[str]:
    return [finding.kind for finding in Views({"lab": values}).describe().warnings]


# -- kinds of values ------------------------------------------------------------------------------------------


def counts(seed: int = 0) -> np.ndarray:
    source = np.random.RandomState(seed)
    return source.negative_binomial(0.4, 0.02, size=(150, 60)).astype(float)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.random.RandomState(0).randint(2, size=(30, 5)), "binary"),
        (np.random.RandomState(0).randint(1, 6, size=(30, 5)), "integers"),
        (counts(), "counts"),
        (np.log1p(counts()), "log"),
        (np.log2(1 + counts()), "log"),
        (np.log1p(counts() / (1 + counts().sum(axis=1, keepdims=True)) * 1e4), "log"),
        (np.random.RandomState(0).beta(2, 3, size=(50, 10)), "shares"),
        (np.random.RandomState(0).normal(size=(400, 10)), "standardised"),
        (measured(), "real"),
    ],
)
def test_kind_of_values(values, kind):
    assert Views({"lab": values}).describe().views[0].kind == kind


def test_ranges_and_shares_are_exact():
    values = np.random.RandomState(0).normal(size=(5000, 7)).round(1)
    values[4321, 3] = 40
    view = Views({"lab": values}).describe().views[0]
    assert (view.n_samples, view.n_features, view.low, view.high) == (5000, 7, values.min(), 40)
    assert view.share_zeros == (values == 0).mean()
    assert view.share_integers == (values == np.rint(values)).mean()
    assert view.median == pytest.approx(np.median(values), abs=0.1)


def test_dense_sparse_and_single_precision_are_described_alike():
    values = np.where(np.random.RandomState(0).uniform(size=(60, 30)) < 0.8, 0, counts()[:60, :30])
    values[:, 7] = values[:, 3]
    values[:, 9] = 0
    plain = Views({"lab": values}).describe()
    assert Views({"lab": sparse.csr_array(values)}).describe() == plain
    assert Views({"lab": values.astype(np.float32)}).describe() == plain


def test_counts_and_logarithms_are_proposals():
    assert kinds(counts()) == ["counts"]
    assert "np.log1p" in Views({"lab": counts()}).describe().findings[0].proposal
    assert kinds(np.log1p(counts())) == ["log"]


def sequenced(seed: int = 0, spread: float = 2.0, depths: float = 0.5) -> np.ndarray:
    """Return counts of 200 samples in 4 groups: negative binomial, means and totals log-normal."""
    source = np.random.RandomState(seed)
    groups = source.randint(4, size=200)
    means = np.exp(source.normal(0, spread, 300) + source.normal(0, 0.5, (4, 300)) * (source.uniform(size=300) < 0.2))
    totals = 2e4 * np.exp(source.normal(0, depths, (200, 1)))
    expected = totals * (means / means.sum(axis=1, keepdims=True))[groups]
    return source.poisson(expected * source.gamma(2, 0.5, expected.shape)).astype(float)


@pytest.mark.parametrize("seed", range(5))
def test_raw_counts_of_sequencing_are_doubtful(seed):
    values = sequenced(seed)
    (finding,) = Views({"rna": values}).describe().warnings
    assert finding.kind == "raw counts"
    assert "totals of the samples differ by a factor of" in finding.text
    assert "np.log1p(1e6 * X / X.sum(axis=1, keepdims=True))" in finding.proposal
    assert Views({"rna": sparse.csr_array(values)}).describe().warnings == (finding,)
    with pytest.warns(GapviewWarning, match="View 'view_0': the values look like raw counts"):
        Concat(4, random_state=0).fit([values])
    assert doubts(np.log1p(1e6 * values / values.sum(axis=1, keepdims=True))) == []


def test_counts_that_logarithms_hardly_change_are_not():
    source = np.random.RandomState(0)
    words = source.poisson(source.gamma(0.2, 0.5, (200, 400)) * source.gamma(3, 0.5, (200, 1)))
    for values in (words, words > 0, sequenced(spread=0.3), source.randint(256, size=(100, 80)), sequenced()[:, :30]):
        assert "raw counts" not in doubts(np.asarray(values, dtype=float))
    rarefied = source.multinomial(5000, np.exp(source.normal(0, 2, 100)) / 1000 + 0.001, size=60) * 1.0
    rarefied[:, 0] += 6000 - rarefied.sum(axis=1)  # the same total in every sample
    assert "raw counts" not in doubts(rarefied)


def test_printed_description_has_a_line_for_each_view_and_finding():
    views = Views({"lab": measured(150), "rna": counts()})
    description = views.describe()
    lines = str(description).splitlines()
    assert lines[0].startswith("lab: 150 samples × 20 features, numbers from ")
    assert lines[1].startswith("rna: 150 samples × 60 features, counts from 0 to ")
    assert len(lines) == 2 + len(description.findings)


def test_frame_and_dict():
    pytest.importorskip("pandas")
    description = Views({"lab": measured(), "flags": np.eye(200)}).describe()
    frame = description.to_frame()
    assert frame.index.tolist() == ["lab", "flags"]
    assert frame.loc["flags", "kind"] == "binary"
    assert frame.loc["lab", "n_warnings"] == 0
    assert [view["name"] for view in description.to_dict()] == ["lab", "flags"]


def test_a_view_that_no_sample_has():
    views = Views([measured(20), None])
    assert views.describe().views[1].kind == "empty"
    assert str(views.describe()).splitlines()[1] == "view_1: 0 samples × 0 features"


# -- columns --------------------------------------------------------------------------------------------------


def test_constant_and_repeated_columns():
    values = measured()
    values[:, 4] = 3
    values[:, 11] = values[:, 2]
    values[:, 12] = values[:, 2]
    found = {finding.kind: finding.text for finding in Views({"lab": values}).describe().findings}
    assert found["constant"].startswith("1 feature of 20 has the same value in all samples: 4")
    assert found["duplicates"].startswith("2 features repeat another one exactly. The same values have: 2, 11, 12")


def test_permuted_whole_numbers_are_no_repeats():
    source = np.random.RandomState(0)
    column = source.randint(7, size=2000)
    values = np.stack([source.permutation(column) for _ in range(200)], axis=1)
    assert "duplicates" not in kinds(values)


@pytest.mark.parametrize("name", ["batch", "Plate", "sequencing_run", "siteID", "donor.2"])
def test_batch_like_columns(name):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(measured(), columns=[f"protein_{k}" for k in range(20)])
    frame[name] = np.arange(200) % 4
    found = [finding for finding in Views({"lab": frame}).describe().findings if finding.kind == "batch"]
    assert len(found) == 1
    assert name in found[0].text


@pytest.mark.parametrize("name", ["label", "Class", "target", "os.status", "diagnosis", "y"])
def test_outcome_like_columns(name):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(measured(), columns=[f"protein_{k}" for k in range(20)])
    frame[name] = np.arange(200) % 3
    assert "outcome" in kinds(frame)


def test_time_to_event_is_an_outcome():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(measured(), columns=[f"protein_{k}" for k in range(20)])
    frame["survival_days"] = np.random.RandomState(0).exponential(500, size=200)
    assert "outcome" in kinds(frame)


def test_genes_are_no_batches():
    pandas = pytest.importorskip("pandas")
    names = ["RUNX1", "SITE1P", "CLASP1", "LANCL1", "PLATR4", "DEATHLY", *(f"G{k}" for k in range(14))]
    assert not {"batch", "outcome"} & set(kinds(pandas.DataFrame(measured(), columns=names)))


def test_few_whole_numbers_among_measured_values():
    values = measured()
    values[:, 5] = np.arange(200) % 3
    assert "levels" in kinds(values)


def test_very_different_scales():
    assert "scales" in kinds(measured() * np.logspace(0, 4, 20))
    assert "scales" not in kinds(measured())


# -- values that make a result doubtful ------------------------------------------------------------------------


def with_code(values: np.ndarray, code: float, share: float = 0.02, n_columns: int = 5) -> np.ndarray:
    source, values = np.random.RandomState(1), values.copy()
    for column in source.choice(values.shape[1], n_columns, replace=False):
        rows = source.choice(len(values), max(2, int(share * len(values))), replace=False)
        values[rows, column] = code
    return values


@pytest.mark.parametrize("code", [-999, -99, -9, -1, 9999, 99999, -9999, -999.25])
def test_codes_for_missing_values(code):
    found = Views({"lab": with_code(measured(), code)}).describe().warnings
    assert [finding.kind for finding in found] == ["missing codes"]
    assert "5 features" in found[0].text


def test_codes_in_whole_numbers():
    likert = np.random.RandomState(0).randint(1, 6, size=(200, 10)).astype(float)
    assert doubts(likert) == []
    assert doubts(with_code(likert, -9)) == ["missing codes"]
    assert doubts(with_code(likert, 99)) == ["missing codes"]


def test_a_code_within_the_range_of_other_values():
    values = np.random.RandomState(0).normal(0, 5000, size=(200, 20))
    assert doubts(with_code(values, -999)) == ["missing codes"]
    assert doubts(values.round()) == []


@pytest.mark.parametrize("values", [[-1, 0, 1], [-2, -1, 0, 1, 2], [0, 1, 2], [-1, 1]])
def test_few_levels_are_no_codes(values):
    assert doubts(np.random.RandomState(0).choice(values, size=(200, 10)).astype(float)) == []


@pytest.mark.parametrize("factor", [1000, 0.001, 100, 10])
def test_samples_in_other_units(factor):
    values = measured()
    values[:60] *= factor
    found = Views({"lab": values}).describe().warnings
    assert [finding.kind for finding in found] == ["units"]
    assert "30.0 % of the samples" in found[0].text


def test_samples_in_inches():
    values = np.random.RandomState(0).normal(50, 5, size=(100, 12))
    assert doubts(values) == []
    values[:30] *= 2.54
    assert doubts(values) == ["units"]


def test_one_sample_in_other_units():
    values = measured()
    values[7] *= 1000
    assert "1 sample," in Views({"lab": values}).describe().warnings[0].text


@pytest.mark.parametrize("factor", [1000, 88.4, 38.67, 18.0, 0.001])
def test_a_feature_in_other_units_for_some_samples(factor):
    values = measured()
    values[:60, 3] *= factor
    found = Views({"lab": values}).describe().warnings
    assert [finding.kind for finding in found] == ["units"]
    assert "1 feature (3)" in found[0].text


def test_some_features_in_other_units_for_the_same_samples():
    values = measured()
    values[:60, ::2] *= 1000
    assert doubts(values) == ["units"]


@pytest.mark.parametrize("n_rows", [3, 5])
def test_a_few_samples_in_other_units(n_rows):
    values = measured(50)
    rows, columns = values.copy(), values.copy()
    rows[:n_rows] *= 1000
    columns[:n_rows, 3] *= 1000
    assert doubts(values) == []
    assert f"in {n_rows} samples, most values" in Views({"lab": rows}).describe().warnings[0].text
    assert "1 feature (3)" in Views({"lab": columns}).describe().warnings[0].text


@pytest.mark.parametrize("decimals", [4, 0])
def test_samples_that_vary_widely_in_other_units(decimals):
    source = np.random.RandomState(0)
    values = np.exp(source.normal(-2, 2, size=(100, 1)) + source.normal(0, 0.3, size=(100, 12)))
    values = np.ceil(values * 1e4) / 10**decimals
    assert doubts(values) == []
    values[:25] *= 1000
    assert "fewer decimals" in Views({"cnv": values}).describe().warnings[0].text


def test_values_of_zero_and_one_in_other_units():
    source = np.random.RandomState(0)
    values = (source.uniform(size=(45, 60)) < 0.08).astype(float)
    values[np.arange(45), source.randint(60, size=45)] = 1
    assert doubts(values) == []
    values[:17] *= 1000
    assert doubts(values) == ["units"]


def test_few_levels_in_other_units():
    values = np.random.RandomState(0).choice([5.0, 6.0], p=[0.1, 0.9], size=(100, 12))
    values[:20, 4] = 6000
    assert "1 feature (4)" in Views({"lab": values}).describe().warnings[0].text
    values[:20, 4] = 5137  # no power of ten
    assert doubts(values) == []


def test_whole_numbers_in_other_units():
    values = np.random.RandomState(0).poisson(50, size=(200, 8)).astype(float)
    values[:60, 3] *= 1000
    assert doubts(values) == ["units"]


def test_natural_groups_are_no_units():
    values = counts()
    values[:60, :5] += 5000 + np.random.RandomState(0).randint(1000, size=(60, 5))  # markers of one group
    assert doubts(values) == []
    doses = np.random.RandomState(0).choice([1.0, 10.0, 100.0], size=(200, 4))
    assert doubts(doses) == []


def test_large_and_small_values_do_not_fail():
    for size in (1e-300, 1e300, 1e-30, 1e30):
        assert doubts(measured() * size) == []


# -- real data ------------------------------------------------------------------------------------------------


def real_views(name: str) -> Views:
    return load_views(_folder("GAPVIEW_DATA", f"{name}.npz")).views


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_no_false_alarm_on_real_data(name):
    views = real_views(name)
    source = np.random.RandomState(0)
    parts = [views, *(views[np.sort(source.choice(len(views), size, replace=False))] for size in (50, 80))]
    assert [str(finding) for part in parts for finding in part.describe().warnings] == []


@pytest.mark.data
def test_no_false_alarm_on_omics_files():
    pandas = pytest.importorskip("pandas")
    mudata = pytest.importorskip("mudata")

    def table(file: str):
        return pandas.read_csv(_folder("GAPVIEW_DATA", f"omics/{file}.csv"), index_col=0)

    kirc = Views({name: table(f"kirc/{name}") for name in ("GE", "ME", "MI")})
    coread = Views({name: table(f"coread/{name}").T for name in ("gex", "muts", "cnv")})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells = Views(mudata.read_h5mu(_folder("GAPVIEW_DATA", "omics/pbmc_mosaic.h5mu")))
    assert kirc.describe().warnings + coread.describe().warnings == ()
    assert [view.kind for view in cells.describe().views] == ["counts", "counts"]
    assert [finding.kind for finding in cells.describe().warnings] == ["raw counts", "raw counts"]
    assert coread.describe().views[0].kind == "log"


@pytest.mark.parametrize("name", ["digits", "iris", "wine", "breast_cancer", "diabetes"])
def test_no_false_alarm_on_toys(name):
    assert doubts(getattr(toys, f"load_{name}")()["data"]) == []


@pytest.mark.parametrize("seed", range(5))
def test_no_false_alarm_on_made_data(seed):
    views = make_views(n_samples=60 + 40 * seed, n_clusters=3, missing_rate=0.3, random_state=seed).views
    assert views.describe().warnings == ()
    assert load_digits_views().views.describe().warnings == ()


DAMAGE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "codes": lambda values: with_code(values, -999),
    "rows × 1000": lambda values: values * np.where(np.arange(len(values)) % 10 < 3, 1000, 1)[:, None],
    "rows × 0.001": lambda values: values * np.where(np.arange(len(values)) % 10 < 3, 0.001, 1)[:, None],
    "half of the features × 1000": lambda values: np.where(
        (np.arange(len(values)) % 10 < 3)[:, None] & (np.arange(values.shape[1]) % 2 == 0), 1000 * values, values
    ),
}


@pytest.mark.data
@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_of_real_data_is_detected(damage):
    missed, n_views = [], 0
    for name in ("3sources_incomplete", "handwritten_6v", "msrcv1", "orl_2v", "scene15", "tcga_brca_mixomics"):
        views = real_views(name)
        for own, matrix in zip(views.names, views.matrices, strict=True):
            n_views += 1
            if not doubts(DAMAGE[damage](np.asarray(matrix, dtype=float)[:600])):
                missed.append(f"{name} {own}")
    assert n_views == 22
    assert missed == []


# -- fits -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [GRMF, BridgedGRMF, Concat])
def test_a_fit_warns_once_and_is_not_changed(model):
    values = measured(60)
    views = {"lab": with_code(values, -999, 0.1), "scan": measured(60, 8, 1)}
    with pytest.warns(GapviewWarning, match="'lab': −?-?999 looks like a code for missing values") as caught:
        fitted = model(n_clusters=2, random_state=0).fit(views)
    assert len([each for each in caught if "code for missing" in str(each.message)]) == 1
    assert np.array_equal(fitted.views_.matrices[0], views["lab"])


def test_a_fit_on_disk_warns(tmp_path):
    source = np.random.RandomState(0)
    values = np.exp(source.normal(size=(3000, 40)) / 4)
    values[:900] *= 1000
    np.save(tmp_path / "lab.npy", values)
    np.save(tmp_path / "scan.npy", source.normal(size=(3000, 40)))
    views = {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("lab", "scan")}
    model = GRMF(n_clusters=2, max_iter=2, tol=0, random_state=0, memory_budget="64MB")
    with pytest.warns(GapviewWarning, match="'lab': in about 30.* of the samples, most values are larger"):
        model.fit(views)


# -- new samples ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained() -> GRMF:
    return GRMF(n_clusters=2, random_state=0).fit({"lab": measured(80), "scan": measured(80, 8, 1)})


CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "× 1000": lambda values: values * 1000,
    "× 0.001": lambda values: values * 0.001,
    "× 10": lambda values: values * 10,
    "standardised": lambda values: (values - measured(80).mean(axis=0)) / measured(80).std(axis=0),
    "logarithms": lambda values: np.log10(values + 1) / 10,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("n_samples", [1, 20])
def test_new_samples_in_other_units(trained, change, n_samples):
    new = {"lab": CHANGES[change](measured(n_samples, seed=5))}
    recover = partial(trained.recover, method="neighbors")  # "auto" also warns, as the views are independent
    for use in (trained.predict, trained.transform, recover, trained.score):
        if use == trained.score and n_samples < 2:
            continue
        with pytest.warns(GapviewWarning, match="View 'lab' of the new samples is unlike.*Check the units") as caught:
            use(new)
        assert len(caught) == 1


@pytest.mark.parametrize("code", [-9, -99, -999, -9999, 9999, 99999])
@pytest.mark.parametrize("n_samples", [1, 20])
def test_codes_in_new_samples(trained, code, n_samples):
    new = measured(n_samples, seed=5)
    new[0, [3, 7]] = code
    with pytest.warns(
        GapviewWarning, match=f"'lab' of the new samples .*: {code} looks like a code.*2 values in 2 feat"
    ):
        trained.predict({"lab": new})


def test_codes_in_new_samples_dense_and_sparse():
    known, new = counts(), counts(1)[:40]
    new[::9, 4] = -1
    dense, sparse_ones = (
        compare(Views({"rna": make(new)}), Views({"rna": make(known)})) for make in (np.asarray, sparse.csr_array)
    )
    assert dense == sparse_ones
    assert "-1 looks like a code for missing values: 5 values in 1 feature (4)" in dense["rna"]


def test_large_counts_of_new_samples_are_no_codes():
    known, new = counts(), counts(1)[:40]
    known[:, 3] = new[:, 3] = 0
    new[7, 3] = 999
    new[:30, 5] = np.arange(985, 1015)
    assert compare(Views({"rna": new}), Views({"rna": known})) == {}
    new[[1, 2], 3] = 999
    assert "999 looks like a code" in compare(Views({"rna": new}), Views({"rna": known}))["rna"]


def test_new_samples_that_vary_widely_in_other_units():
    source = np.random.RandomState(0)
    known, new = (np.exp(source.normal(0, 2.5, size=(n, 1)) + source.normal(size=(n, 12))) for n in (300, 40))
    assert compare(Views({"cnv": new}), Views({"cnv": known})) == {}
    assert "smaller by a factor" in compare(Views({"cnv": new / 1000}), Views({"cnv": known}))["cnv"]


def test_new_samples_like_those_of_training(trained):
    new = {"lab": measured(20, seed=5), "scan": measured(20, 8, 6)}
    trained.predict(new)
    trained.predict({"scan": new["scan"][:1]})
    trained.recover({"lab": new["lab"][:3]}, method="neighbors")


def test_fractions_where_training_held_counts():
    known, new = counts(), np.log1p(counts(1)[:4])
    assert len(compare(Views({"rna": new}), Views({"rna": known}))) == 1
    assert compare(Views({"rna": counts(1)[:4]}), Views({"rna": known})) == {}


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_no_false_alarm_on_new_samples_of_real_data(name):
    data = load_views(_folder("GAPVIEW_DATA", f"{name}.npz"))
    views, source = data.views, np.random.RandomState(0)
    order = source.permutation(len(views))
    known, held_out = views[np.sort(order[::2])], views[np.sort(order[1::2])]
    assert compare(held_out, known) == {}
    for row in source.choice(len(held_out), 5):
        assert compare(held_out[[row]], known) == {}
    if data.target is not None:  # samples of a class that was not in training
        is_first = data.target == data.target[0]
        assert compare(views[is_first], views[~is_first]) == {}
