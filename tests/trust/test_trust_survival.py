"""Survival of the groups: curves, tests and hazard ratios are those of lifelines and of the textbooks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gapview import GRMF
from gapview.datasets import make_views
from gapview.errors import InputError, InputTypeError, MissingExtraError, ParameterError
from gapview.trust import holm, survival_by_group
from gapview.trust.survival import log_rank

N = 150
LABELS = np.repeat([0, 1, 2], 50)
IDS = [f"p{i}" for i in range(N)]


@pytest.fixture
def patients():
    state = np.random.RandomState(0)
    age, stage = state.normal(60, 8, N) + 3 * LABELS, state.randint(1, 5, N)
    death = state.exponential(30 / np.exp(0.8 * (LABELS == 2) + 0.05 * (age - 60) + 0.4 * (stage - 2)))
    followed = state.uniform(5, 60, N)
    return pd.DataFrame(
        {
            "time": np.minimum(death, followed).round(1),
            "event": (death <= followed).astype(int),
            "age": age,
            "stage": pd.Categorical.from_codes(stage - 1, ["I", "II", "III", "IV"], ordered=True),
            "sex": state.choice(["f", "m", "x"], N, p=[0.5, 0.45, 0.05]),
        },
        index=IDS,
    )


def test_curves_have_the_intervals_and_numbers_at_risk_of_lifelines(patients):
    lifelines = pytest.importorskip("lifelines")
    found = survival_by_group(LABELS, patients["time"], patients["event"])
    for curve in found.curves:
        own = patients[curve.group == LABELS]
        fitted = lifelines.KaplanMeierFitter().fit(own["time"], own["event"])
        at = fitted.survival_function_.loc[curve.times].to_numpy()[:, 0]
        bounds = fitted.confidence_interval_.loc[curve.times].to_numpy()
        inside = (curve.share > 0) & (curve.share < 1)
        np.testing.assert_allclose(curve.share, at, atol=1e-12)
        np.testing.assert_allclose(np.c_[curve.low, curve.high][inside], bounds[inside], atol=1e-9)
        assert curve.median == pytest.approx(fitted.median_survival_time_)
        table = fitted.event_table["at_risk"]
        assert curve.at_risk(table.index).tolist() == table.tolist()
        assert curve.censored.tolist() == sorted(own["time"][own["event"] == 0])
        assert curve.share_at([0.0, 1e9]).tolist() == [1.0, curve.share[-1]]


def test_interval_of_the_median_is_where_the_bounds_cross_one_half(patients):
    for curve in survival_by_group(LABELS, patients["time"], patients["event"]).curves:
        assert curve.median_low <= curve.median
        assert curve.low[np.searchsorted(curve.times, curve.median_low)] <= 0.5
        assert np.isnan(curve.median_high) or curve.median_high >= curve.median


def test_pairs_are_log_rank_tests_with_holm(patients):
    found = survival_by_group(LABELS, patients["time"], patients["event"])
    times, events = patients["time"].to_numpy(), patients["event"].to_numpy()
    assert (found.statistic, found.degrees, found.p_value) == log_rank(times, events, LABELS)
    assert [(one.group, one.other) for one in found.pairs] == [(0, 1), (0, 2), (1, 2)]
    for one in found.pairs:
        both = np.isin(LABELS, (one.group, one.other))
        assert one.p_value == pytest.approx(log_rank(times[both], events[both], LABELS[both])[2])
    assert [one.adjusted for one in found.pairs] == holm([one.p_value for one in found.pairs])
    assert found.hazards is None


def test_hazard_ratios_are_those_of_a_cox_model(patients):
    lifelines = pytest.importorskip("lifelines")
    covariates = patients[["age", "stage", "sex"]].assign(sex=patients["sex"].replace("x", "m"))
    found = survival_by_group(LABELS, patients["time"], patients["event"], covariates=covariates)
    design = pd.DataFrame(
        {
            "one": LABELS == 1,
            "two": LABELS == 2,
            "age": patients["age"],
            "stage": patients["stage"].cat.codes,
            "sex": covariates["sex"] == covariates["sex"].value_counts().index[1],
            "time": patients["time"],
            "event": patients["event"],
        },
        index=IDS,
    ).astype(float)
    fitted = lifelines.CoxPHFitter().fit(design, "time", "event")
    adjusted = found.hazards.adjusted
    assert [one.name for one in adjusted.ratios][:4] == ["group 1", "group 2", "age", "stage"]
    np.testing.assert_allclose([one.ratio for one in adjusted.ratios], fitted.hazard_ratios_, rtol=1e-6)
    bounds = np.exp(fitted.confidence_intervals_.to_numpy())
    np.testing.assert_allclose([[one.low, one.high] for one in adjusted.ratios], bounds, rtol=1e-6)
    reduced = lifelines.CoxPHFitter().fit(design.drop(columns=["one", "two"]), "time", "event")
    assert adjusted.statistic == pytest.approx(2 * (fitted.log_likelihood_ - reduced.log_likelihood_))
    assert (found.hazards.reference, adjusted.degrees) == (0, 2)
    rows = {row["group"]: row for row in found.table}
    assert rows[0]["adjusted_hazard_ratio"] == 1
    assert rows[2]["adjusted_hazard_ratio"] == pytest.approx(adjusted.ratios[1].ratio)
    assert rows[2]["hazard_ratio"] == pytest.approx(found.hazards.unadjusted.ratios[1].ratio)


def test_adjustment_removes_an_effect_that_a_covariate_explains():
    pytest.importorskip("lifelines")
    state = np.random.RandomState(1)
    labels = np.repeat([0, 1], 200)
    age = 50 + 15 * labels + state.normal(0, 6, 400)
    death = state.exponential(20 / np.exp(0.1 * (age - 60)))
    found = survival_by_group(labels, death, np.ones(400), covariates={"age": age})
    assert found.p_value < 1e-6
    assert found.hazards.unadjusted.ratios[0].low > 1.5
    assert found.hazards.adjusted.p_value > 0.05
    assert found.hazards.adjusted.ratios[0].low < 1 < found.hazards.adjusted.ratios[0].high


def test_samples_are_matched_by_id(patients):
    data = make_views(N, (5, 4), n_clusters=3, random_state=0)
    model = GRMF(n_clusters=3, random_state=0).fit([pd.DataFrame(view, index=IDS) for view in data.views.matrices])
    state = np.random.RandomState(0)
    shuffled = patients.iloc[state.permutation(N)].iloc[10:]
    one = survival_by_group(model, shuffled["time"], shuffled["event"])
    series = pd.Series(model.labels_, index=IDS).loc[shuffled.index]
    other = survival_by_group(series, patients["time"], patients["event"])
    in_order = survival_by_group(series.to_numpy(), shuffled["time"], shuffled["event"])
    assert one.p_value == other.p_value == in_order.p_value
    assert one.n_samples == N - 10


def test_missing_times_and_covariates_are_left_out_and_reported(patients):
    pytest.importorskip("lifelines")
    patients.loc[IDS[:5], "time"] = np.nan
    patients.loc[IDS[100:110], "age"] = np.nan
    found = survival_by_group(LABELS, patients["time"], patients["event"], covariates=patients[["age"]])
    assert found.n_samples == N - 5
    assert found.hazards.unadjusted.n_samples == N - 5
    assert found.hazards.adjusted.n_samples == N - 15
    assert "The adjusted model has the 135 of 145 samples with all covariates." in found.hazards.notes


def test_groups_and_categories_without_events_do_not_break_the_model(patients):
    pytest.importorskip("lifelines")
    patients.loc[IDS[50:100], "event"] = 0
    patients["site"] = np.where(np.arange(N) % 10 == 0, "rare", "common")
    patients.loc[patients["site"] == "rare", "event"] = 0
    found = survival_by_group(LABELS, patients["time"], patients["event"], covariates=patients[["site", "age"]])
    assert [one.name for one in found.hazards.adjusted.ratios] == ["group 2", "age"]
    assert found.hazards.notes[0].startswith("No events in group 1: the hazard ratio is 0")
    assert any("No events where site is rare" in note for note in found.hazards.notes)
    assert np.isnan(found.table[1]["hazard_ratio"])


def test_collinear_covariates_leave_the_adjusted_model_out(patients):
    pytest.importorskip("lifelines")
    copy = {"again": (LABELS == 1).astype(float), "more": (LABELS == 2).astype(float)}
    found = survival_by_group(LABELS, patients["time"], patients["event"], covariates=copy)
    assert found.hazards.unadjusted is not None
    assert found.hazards.adjusted is None
    assert any("collinear" in note for note in found.hazards.notes)


def test_few_events_and_hazards_that_are_not_proportional_are_reported():
    pytest.importorskip("lifelines")
    state = np.random.RandomState(0)
    labels = np.repeat([0, 1], 150)
    times = np.where(labels == 0, state.exponential(10, 300), state.normal(10, 1, 300).clip(0.1))
    found = survival_by_group(labels, times, np.ones(300), hazards=True)
    assert any("not proportional" in note for note in found.hazards.notes)
    few = survival_by_group(labels, times, np.arange(300) % 60 == 0, hazards=True)
    assert any("5 events, fewer than 10 for each" in note for note in few.hazards.notes)


def test_many_groups_have_curves_and_one_test():
    state = np.random.RandomState(0)
    found = survival_by_group(np.arange(300) % 30, state.exponential(5, 300), np.ones(300), hazards=True)
    assert (len(found.curves), found.pairs, found.hazards) == (30, (), None)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"time": np.r_[-1.0, np.ones(N - 1)]}, InputError, "at least 0; got -1"),
        ({"event": np.r_[2, np.ones(N - 1)]}, InputError, "1 if the event was observed and 0 if not; got 2"),
        ({"event": ["dead"] * N}, InputTypeError, "event must hold numbers.*'dead'"),
        ({"time": np.ones(3)}, InputError, "one value for each of the 150 samples; got 3"),
        ({"labels": np.zeros(N, int)}, InputError, "at least two groups"),
        ({"labels": np.ones(N)}, InputTypeError, "labels must be a fitted model"),
        ({"covariates": [1, 2]}, InputTypeError, "covariates must be a mapping"),
        ({"covariates": {"age": np.ones(N)}, "hazards": False}, ParameterError, "hazards=False"),
        ({"covariates": {"id": IDS}}, InputError, "too many to adjust for"),
    ],
)
def test_wrong_input_is_refused(patients, changes, error, message):
    given = {"labels": LABELS, "time": patients["time"], "event": patients["event"], "covariates": None} | changes
    if "id" in (given["covariates"] or {}):
        pytest.importorskip("lifelines")
    with pytest.raises(error, match=message):
        survival_by_group(given.pop("labels"), given.pop("time"), given.pop("event"), **given)


def test_without_lifelines_the_error_names_the_extra(patients, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "lifelines", None)
    assert survival_by_group(LABELS, patients["time"], patients["event"]).pairs
    with pytest.raises(MissingExtraError, match=r"lifelines.*gapview\[survival\]"):
        survival_by_group(LABELS, patients["time"], patients["event"], covariates=patients[["age"]])
