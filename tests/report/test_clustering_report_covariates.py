"""Covariates: rows matched to samples, columns told apart, and tests that are those of the textbooks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from gapview import GRMF
from gapview.datasets import make_views
from gapview.errors import InputError, InputTypeError, ParameterError
from gapview.report import write_clustering_report
from gapview.report.clustering.covariates import compare_covariates, match_covariates, read_pairs

N = 120
IDS = np.array([f"p{i:03d}" for i in range(N)], dtype=object)
LABELS = np.repeat([0, 1, 2], 40)


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
    stage = found["stage"]
    crossed = pd.crosstab(LABELS, frame["stage"])
    assert stage.kind == "categories"
    assert stage.statistic == pytest.approx(stats.chi2_contingency(crossed, correction=False).statistic)
    assert stage.counts.tolist() == crossed[list(stage.levels)].to_numpy().tolist()
    assert found["smoker"].kind == "categories"  # two numbers are two kinds
    survival = found["OS.time / OS"]
    assert survival.kind == "survival"
    assert [curve.n_events for curve in survival.curves] == [int(frame["OS"][g == LABELS].sum()) for g in range(3)]
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
    assert by_name(found)["grade"].kind == "numbers"
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
    text = write_clustering_report(model, tmp_path / "r.html", covariates=frame).read_text(encoding="utf-8")
    assert "Covariates of the samples" in text
    assert "&lt;i&gt;age&lt;/i&gt;" in text
    assert "<i>" not in text
    assert "&lt;m&gt;" in text
    assert "Kaplan" in text
    assert "After Holm’s correction for 3 tests, the groups differ in &lt;i&gt;age&lt;/i&gt;." in text
