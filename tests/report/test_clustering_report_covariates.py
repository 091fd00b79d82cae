"""Covariates: rows matched to samples, columns told apart, and tests that are those of the textbooks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from data_files import _folder
from gapview import GRMF
from gapview.datasets import make_views
from gapview.errors import GapviewWarning, InputError, InputTypeError, MissingExtraError, ParameterError
from gapview.io import read_table
from gapview.report import write_clustering_report
from gapview.report.clustering.comparisons import compare_covariates
from gapview.report.clustering.covariates import match_covariates, read_pairs
from gapview.report.clustering.levels import order_levels
from gapview.trust import survival_by_group
from gapview.trust.survival import log_rank

N = 120
IDS = np.array([f"p{i:03d}" for i in range(N)], dtype=object)
LABELS = np.repeat([0, 1, 2], 40)
WARDS = {"I": "north", "II": "east", "III": "south", "IV": "west"}


@pytest.fixture
def frame():
    state = np.random.RandomState(0)
    return pd.DataFrame(
        {
            "age": state.normal(50, 5, N) + 10 * LABELS,
            "height": state.normal(170, 8, N),
            "stage": np.where(state.uniform(size=N) < 0.8, np.array(["I", "II", "III"])[LABELS], "IV"),
            "smoker": state.randint(2, size=N),
            "OS.time": np.ceil(state.exponential(100, N) * (1 + 3 * LABELS)),
            "OS": state.randint(2, size=N),
        },
        index=IDS,
    )


def compared(frame, *, ids=IDS, labels=LABELS, survival=None, no_ids=False):
    table = match_covariates(frame, ids, no_ids=no_ids)
    return compare_covariates(table, labels, 3, read_pairs(survival))


def by_name(found):
    return {one.column: one for one in found.comparisons}


def test_tests_are_those_of_the_textbooks(frame):
    found = by_name(compared(frame))
    assert set(found) == {"age", "height", "stage", "smoker", "OS.time / OS"}
    parts = [frame["age"][g == LABELS] for g in range(3)]
    expected = stats.kruskal(*parts)
    age = found["age"]
    assert (age.kind, age.statistic, age.p_value) == ("numbers", pytest.approx(expected[0]), pytest.approx(expected[1]))
    assert age.strength == pytest.approx(expected[0] / (N - 1))
    assert [q.median for q in age.quartiles] == pytest.approx([np.median(part) for part in parts])
    ward = by_name(compared(frame.assign(stage=frame["stage"].map(WARDS))))["stage"]
    crossed = pd.crosstab(LABELS, frame["stage"].map(WARDS))
    assert ward.kind == "categories"
    assert ward.statistic == pytest.approx(stats.chi2_contingency(crossed, correction=False).statistic)
    assert ward.counts.tolist() == crossed[list(ward.levels)].to_numpy().tolist()
    assert found["smoker"].kind == "categories"  # two numbers are two kinds
    survival = found["OS.time / OS"]
    assert survival.kind == "survival"
    assert [curve.n_events for curve in survival.survival.curves] == [
        int(frame["OS"][g == LABELS].sum()) for g in range(3)
    ]
    assert max(age.adjusted, survival.adjusted) < 0.01 < found["height"].adjusted
    raw = sorted(one.p_value for one in found.values())
    assert min(one.adjusted for one in found.values()) == pytest.approx(5 * raw[0])


def test_rows_in_any_order_and_of_other_samples(frame):
    state = np.random.RandomState(1)
    shuffled = frame.iloc[state.permutation(N)]
    strangers = pd.concat([shuffled, frame.head(7).set_axis([f"x{i}" for i in range(7)])])
    one, other = compared(frame), compared(strangers)
    assert by_name(one)["age"].p_value == by_name(other)["age"].p_value
    assert (other.n_matched, other.n_unknown) == (N, 7)
    part = compared(frame.head(80))
    assert part.n_matched == 80
    assert by_name(part)["age"].n_samples == 80
    assert by_name(part)["age"].quartiles[2] is None


@pytest.mark.parametrize("kind", ["column", "polars", "numbers", "floats"])
def test_ids_in_a_column_in_polars_or_of_another_kind(frame, kind):
    ids = IDS
    if kind == "column":
        frame = frame.rename_axis("patient").reset_index()
    elif kind == "polars":
        frame = pl.DataFrame(frame.rename_axis("patient").reset_index().to_dict("list"))
    else:
        ids = np.arange(1000, 1000 + N)
        frame = frame.set_axis(ids.astype(str) if kind == "numbers" else ids.astype(float))
    found = compared(frame, ids=ids)
    assert found.n_matched == N
    assert set(by_name(found)) == {"age", "height", "stage", "smoker", "OS.time / OS"}


def test_missing_values_do_not_count(frame):
    frame.loc[IDS[:10], ["age", "stage"]] = None
    frame["flag"] = pd.array([True, None] * (N // 2), dtype="boolean")
    frame["grade"] = pd.array([1, 2, 3, None] * (N // 4), dtype="Int64")
    found = compared(frame)
    assert (by_name(found)["age"].n_samples, by_name(found)["stage"].n_samples) == (110, 110)
    assert (by_name(found)["grade"].kind, by_name(found)["grade"].levels) == ("ordered", ("1", "2", "3"))
    assert dict(found.left_out) == {"flag": "it is the same for all samples"}


def test_columns_that_cannot_be_compared_say_why(frame):
    frame["note"] = [f"text {i}" for i in range(N)]
    frame["seen"] = pd.Timestamp("2020-01-01")
    frame["empty"] = np.nan
    frame["same"] = 3.5
    frame["lists"] = [[1]] * N
    reasons = dict(compared(frame).left_out)
    assert set(reasons) == {"note", "seen", "empty", "same", "lists"}
    assert "value of its own" in reasons["note"]
    assert "dates" in reasons["seen"]
    assert "empty" in reasons["empty"]
    assert "the same" in reasons["same"]


def test_rare_values_are_taken_together(frame):
    frame["ward"] = [f"ward {i % 30}" for i in range(N)]
    ward = by_name(compared(frame))["ward"]
    assert len(ward.levels) == 20
    assert ward.levels[-1] == "11 rarer values"
    assert ward.counts.sum() == N


def test_survival_can_be_named_or_turned_off(frame):
    frame = frame.rename(columns={"OS.time": "weeks", "OS": "gone"})
    assert "weeks" in by_name(compared(frame))
    assert "weeks / gone" in by_name(compared(frame, survival=("weeks", "gone")))
    back = frame.rename(columns={"weeks": "OS.time", "gone": "OS"})
    assert "OS.time" in by_name(compared(back, survival=[]))
    words = frame.assign(gone=np.where(frame["gone"] == 1, "Dead", "alive"))
    one, other = (by_name(compared(one, survival=[("weeks", "gone")]))["weeks / gone"] for one in (frame, words))
    assert one.p_value == other.p_value
    frame["weeks"] -= 1000
    assert "negative" in dict(compared(frame, survival=("weeks", "gone")).left_out)["weeks / gone"]


@pytest.mark.parametrize(
    ("survival", "message"),
    [
        (("weeks", "OS"), "does not have: 'weeks'"),
        (("stage", "OS"), "column of times"),
        (("age", "stage"), "column of events"),
        ("OS", "pair of columns"),
        (("OS",), "pair of columns"),
        ([("a", 1)], "pair of columns"),
    ],
)
def test_wrong_pairs_are_refused(frame, survival, message):
    with pytest.raises(ParameterError, match=message):
        compared(frame, survival=survival)


def test_wrong_tables_are_refused(frame):
    with pytest.raises(InputTypeError, match=r"pandas frame whose index holds the sample ids.*got dict"):
        compared({"age": [1, 2]})
    with pytest.raises(InputError, match=r"none of the samples.*'p000'.*begins with 'q0'"):
        compared(frame.set_axis([f"q{i}" for i in range(N)])[["age"]])
    with pytest.raises(InputError, match=r"1 row\(s\) repeat an id: 'p000'"):
        compared(pd.concat([frame, frame.head(1)]))


def test_columns_that_hold_ids_are_left_out_where_ids_are(frame):
    frame["twin"] = np.where(np.arange(N) < 60, "p001", "p002")
    assert "twin" in by_name(compared(frame))
    found = compared(frame, no_ids=True)
    assert dict(found.left_out) == {"twin": "it holds ids of samples"}
    assert "smoker" in by_name(found)
    numbered = compared(frame.drop(columns="twin").set_axis(np.arange(N)), ids=np.arange(N), no_ids=True)
    assert "smoker" in by_name(numbered)  # 0 and 1 are values like others


def test_the_page_shows_them(tmp_path):
    data = make_views(60, (5, 4), n_clusters=3, missing_rate=0.2, random_state=0)
    model = GRMF(n_clusters=3, random_state=0, scale="standard").fit(data.views)
    state = np.random.RandomState(0)
    frame = pd.DataFrame(
        {
            "<i>age</i>": 10.0 * model.labels_ + state.normal(size=60),
            "sex": state.choice(["f", "<m>"], 60),
            "days": state.exponential(size=60),
            "event": 1,
        }
    )
    text = write_clustering_report(model, tmp_path / "r.html", covariates=frame, assess=False).read_text(
        encoding="utf-8"
    )
    assert "Covariates of the samples" in text
    assert "&lt;i&gt;age&lt;/i&gt;" in text
    assert "<i>" not in text
    assert "&lt;m&gt;" in text
    assert "Kaplan" in text
    assert "At a Holm-adjusted p &lt; 0.05 (3 tests), the groups differ in &lt;i&gt;age&lt;/i&gt;." in text


# -- survival as TCGA and cBioPortal write it --------------------------------------------------------------------------


@pytest.fixture
def outcome():
    """Return times to death, times of censoring, and whether death was observed."""
    state = np.random.RandomState(0)
    death, last = state.exponential(500, N) * (1 + LABELS), state.uniform(100, 2000, N)
    return death.round(), last.round(), death < last


def test_days_to_death_and_follow_up_are_one_censored_outcome(outcome):
    death, last, dead = outcome
    expected = log_rank(np.where(dead, death, last), dead.astype(float), LABELS)
    for follow_up in ("days_to_last_followup", "days_to_last_follow_up", "last_contact_days_to"):
        frame = pd.DataFrame(
            {
                "vital_status": np.where(dead, "Dead", "Alive"),
                "days_to_death": np.where(dead, death.astype(int).astype(str), "[Not Applicable]"),
                follow_up: np.where(dead, "[Not Available]", last.astype(int).astype(str)),
            },
            index=IDS,
        )
        (found,) = compared(frame).comparisons
        assert found.column == f"days_to_death / {follow_up} / vital_status"
        assert (found.kind, found.n_samples) == ("survival", N)
        assert (found.statistic, found.degrees, found.p_value) == pytest.approx(expected)
        assert (
            found.note == f"Time: days_to_death where vital_status is dead, otherwise {follow_up}, which is censored."
        )


@pytest.mark.parametrize("status", [("Alive", "Dead"), ("LIVING", "DECEASED"), ("0:LIVING", "1:DECEASED"), (0, 1)])
def test_status_in_the_words_of_tcga(outcome, status):
    death, last, dead = outcome
    frame = pd.DataFrame(
        {"OS_MONTHS": np.where(dead, death, last) / 30, "OS_STATUS": [status[int(d)] for d in dead]}, index=IDS
    )
    frame["OS_STATUS"] = frame["OS_STATUS"].astype(object)
    frame.loc[IDS[:3], "OS_STATUS"] = "[Not Available]"
    (found,) = compared(frame).comparisons
    assert (found.column, found.kind, found.n_samples) == ("OS_MONTHS / OS_STATUS", "survival", N - 3)


@pytest.mark.parametrize("has_status", [True, False])
def test_days_to_death_without_follow_up_is_left_out(outcome, has_status):
    death, _, dead = outcome
    frame = pd.DataFrame({"days_to_death": np.where(dead, death, np.nan), "age": np.arange(N) % 37}, index=IDS)
    if has_status:
        frame["vital_status"] = np.where(dead, "Dead", "Alive")
    found = compared(frame)
    assert set(by_name(found)) == {"age", *(["vital_status"] if has_status else [])}
    ((name, reason),) = found.left_out
    assert name.startswith("days_to_death")
    assert "follow-up" in reason
    named = compared(frame, survival=("days_to_death", "vital_status")) if has_status else None
    assert named is None or "days_to_death / vital_status" in dict(named.left_out)


def test_times_that_are_complete_are_compared():
    frame = pd.DataFrame({"days_to_death": np.arange(N, dtype=float)}, index=IDS)
    assert by_name(compared(frame))["days_to_death"].kind == "numbers"


@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("coread/subtypes.csv", {"osMo / osStat"}),
        ("kirc/survival.csv", {"Survival / Death"}),
    ],
)
def test_survival_in_published_tables(file, names):
    table = read_table(_folder("GAPVIEW_DATA", f"omics/{file}"))
    ids = table.index.to_numpy()
    found = compared(table, ids=ids, labels=np.arange(len(ids)) % 3)
    assert {one.column for one in found.comparisons if one.kind == "survival"} >= names
    assert not {one.column for one in found.comparisons if one.kind == "numbers"} & {"osMo", "rfsMo", "Survival"}


@pytest.mark.parametrize(
    ("time", "event"),
    [
        ("OS.time", "OS"),
        ("PFI.time", "PFI"),
        ("DSS.time", "DSS"),
        ("DFI.time", "DFI"),
        ("os_months", "os_status"),
        ("DFS_MONTHS", "DFS_STATUS"),
        ("Overall Survival (Months)", "Overall Survival Status"),
        ("Progress Free Survival (Months)", "Progression Free Status"),
        ("osMo", "osStat"),
        ("rfsMo", "rfsStat"),
        ("Survival", "Death"),
        ("days", "death"),
        ("survival_time", "vital_status"),
        ("time", "status"),
        ("_TIME_TO_EVENT", "_EVENT"),
        ("_OS", "_OS_IND"),
    ],
)
def test_common_names_of_survival(outcome, time, event):
    death, last, dead = outcome
    frame = pd.DataFrame({time: np.where(dead, death, last), event: dead.astype(int)}, index=IDS)
    (found,) = compared(frame).comparisons
    assert (found.kind, found.column) == ("survival", f"{time} / {event}")


@pytest.mark.parametrize(
    ("alive", "dead"),
    [
        ("0:DiseaseFree", "1:Recurred/Progressed"),
        ("DiseaseFree", "Recurred/Progressed"),
        ("0:CENSORED", "1:PROGRESSION"),
        ("Alive", "Dead"),
        ("LIVING", "DECEASED"),
        (False, True),
    ],
)
def test_words_of_events(outcome, alive, dead):
    death, last, died = outcome
    frame = pd.DataFrame(
        {"PFS_MONTHS": np.where(died, death, last), "PFS_STATUS": [dead if d else alive for d in died]}
    )
    (found,) = compared(frame.set_axis(IDS)).comparisons
    assert found.survival.n_events == died.sum()


def test_the_table_of_the_gdc_has_prefixes(outcome):
    death, last, dead = outcome
    frame = pd.DataFrame(
        {
            "demographic.vital_status": np.where(dead, "Dead", "Alive"),
            "demographic.days_to_death": np.where(dead, death.astype(int).astype(str), "'--"),
            "diagnoses.days_to_last_follow_up": last,
        },
        index=IDS,
    )
    (found,) = compared(frame).comparisons
    assert (found.kind, found.n_samples, found.survival.n_events) == ("survival", N, dead.sum())


# -- ordered columns ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ("Stage IV, Stage I, Stage IIB, Stage IIA, Stage X", "Stage I, Stage IIA, Stage IIB, Stage IV, Stage X"),
        ("IIIB, I, IV, IIA, IIB/IIC", "I, IIA, IIB/IIC, IIIB, IV"),
        ("Stage IIIC2, Stage IIIA, Stage IIIC1", "Stage IIIA, Stage IIIC1, Stage IIIC2"),
        ("I/II NOS, Stage III, Stage I, Stage II", "Stage I, I/II NOS, Stage II, Stage III"),
        ("T4, T1, TX, T2a, T2, Tis, T1b", "Tis, T1, T1b, T2, T2a, T4, TX"),
        ("pT3, pT1, pT2", "pT1, pT2, pT3"),
        ("N2, NX, N0, N1mi, N1a, N0 (i-)", "N0, N0 (i-), N1mi, N1a, N2, NX"),
        ("cM0 (i+), M1, M0, MX", "M0, cM0 (i+), M1, MX"),
        ("G3, GX, G1, G2, G4", "G1, G2, G3, G4, GX"),
        ("Grade III, Grade I, Grade II", "Grade I, Grade II, Grade III"),
        ("high, low, medium", "low, medium, high"),
        ("High risk, Low risk, Intermediate risk", "Low risk, Intermediate risk, High risk"),
        ("CIMP.High, CIMP.Neg, CIMP.Low", "CIMP.Neg, CIMP.Low, CIMP.High"),
        ("MSI-H, MSS, MSI-L", "MSS, MSI-L, MSI-H"),
        ("poorly differentiated, well differentiated", "well differentiated, poorly differentiated"),
        ("red, green, blue", ""),
        ("CMS1, CMS2, CMS3", ""),
        ("T1, N2, M0", ""),
        ("1, 2a, 2b", ""),
        ("low, red", ""),
    ],
)
def test_levels_in_the_order_of_their_stages(levels, expected):
    assert ", ".join(order_levels(levels.split(", "))) == expected


def test_ordered_columns_are_tested_by_ranks_and_shown_in_order(frame):
    frame.loc[IDS[:6], "stage"] = "X"
    stage = by_name(compared(frame))["stage"]
    ranks = frame["stage"].map({"I": 0, "II": 1, "III": 2, "IV": 3})
    expected = stats.kruskal(*(ranks[g == LABELS].dropna() for g in range(3)))
    assert (stage.kind, stage.levels) == ("ordered", ("I", "II", "III", "IV", "X"))
    assert (stage.statistic, stage.p_value) == (pytest.approx(expected[0]), pytest.approx(expected[1]))
    assert stage.n_samples == N - 6
    assert stage.counts.tolist() == pd.crosstab(LABELS, frame["stage"])[list(stage.levels)].to_numpy().tolist()


def test_ordered_categoricals_of_pandas_keep_their_order(frame):
    words = ["small", "tall", "grande"]
    codes = np.arange(N) % 3
    frame["size"] = pd.Categorical.from_codes(codes, words, ordered=True)
    frame["kind"] = pd.Categorical.from_codes(codes, words)
    frame["pair"] = pd.Categorical.from_codes(codes % 2, ["z", "a"], ordered=True)
    found = by_name(compared(frame))
    assert (found["size"].kind, found["size"].levels) == ("ordered", tuple(words))
    assert found["kind"].kind == "categories"
    assert (found["pair"].kind, found["pair"].levels) == ("categories", ("z", "a"))


# -- hazard ratios -----------------------------------------------------------------------------------------------------


def test_hazard_ratios_are_adjusted_for_columns(frame):
    pytest.importorskip("lifelines")
    table = match_covariates(frame, IDS, no_ids=False)
    found = by_name(compare_covariates(table, LABELS, 3, None, ["age", "stage"]))["OS.time / OS"].survival
    ranks = frame["stage"].map({"I": 0, "II": 1, "III": 2, "IV": 3})
    expected = survival_by_group(
        LABELS, frame["OS.time"], frame["OS"], covariates={"age": frame["age"], "stage": ranks}
    )
    assert found.hazards == expected.hazards
    assert [one.name for one in found.hazards.adjusted.ratios] == ["group 1", "group 2", "age", "stage"]


@pytest.mark.parametrize(
    ("adjust", "message"), [(["weight"], "does not have: 'weight'"), (["OS"], "other columns than those of survival")]
)
def test_wrong_columns_to_adjust_for_are_refused(frame, adjust, message):
    with pytest.raises(ParameterError, match=message):
        compare_covariates(match_covariates(frame, IDS, no_ids=False), LABELS, 3, None, adjust)


def test_adjusting_without_survival_warns(frame):
    table = match_covariates(frame.drop(columns=["OS", "OS.time"]), IDS, no_ids=False)
    with pytest.warns(GapviewWarning, match="adjust has no effect"):
        compare_covariates(table, LABELS, 3, None, ["age"])


@pytest.fixture
def model_and_patients():
    data = make_views(90, (5, 4), n_clusters=3, missing_rate=0.2, random_state=0)
    model = GRMF(n_clusters=3, random_state=0, scale="standard").fit(data.views)
    state = np.random.RandomState(0)
    death, followed = state.exponential(10 * (1 + model.labels_)), state.uniform(5, 40, 90)
    columns = {"days": np.minimum(death, followed), "event": death <= followed, "age": state.normal(60, 8, 90)}
    return model, pd.DataFrame(columns)


def test_the_page_has_risk_tables_pairs_and_hazard_ratios(model_and_patients, tmp_path):
    pytest.importorskip("lifelines")
    model, patients = model_and_patients
    path = write_clustering_report(model, tmp_path / "r.html", covariates=patients, adjust="age", assess=False)
    text = path.read_text(encoding="utf-8")
    for part in ("Survival: days / event", "at risk", "95 % interval", "Log-rank tests of pairs of groups"):
        assert part in text
    assert "Adjusted for age" in text
    assert "likelihood-ratio test of the groups" in text


def test_without_lifelines_the_page_says_what_to_install(model_and_patients, tmp_path, monkeypatch):
    model, patients = model_and_patients
    monkeypatch.setattr("gapview.trust.hazards.find_spec", lambda name: None)
    path = write_clustering_report(model, tmp_path / "r.html", covariates=patients, assess=False)
    text = path.read_text(encoding="utf-8")
    assert "Log-rank test: χ²" in text
    assert "Hazard ratios need the package lifelines: pip install &#39;gapview[survival]&#39;" in text
    with pytest.raises(MissingExtraError, match=r"gapview\[survival\]"):
        write_clustering_report(model, tmp_path / "r.html", covariates=patients, adjust="age", assess=False)


def test_names_of_columns_without_a_table_warn(model_and_patients, tmp_path):
    model, _ = model_and_patients
    with pytest.warns(GapviewWarning, match="adjust has no effect without covariates"):
        write_clustering_report(model, tmp_path / "r.html", adjust=["age"], assess=False)
    with pytest.raises(ParameterError, match="names of columns"):
        write_clustering_report(model, tmp_path / "r.html", adjust=3, assess=False)
