"""What the first screen and the heat map of the report are made of: remarks, features, colours of points."""

from __future__ import annotations

import base64
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from gapview import BridgedGRMF, Views
from gapview.datasets import make_views
from gapview.report.clustering import clustering_page, summarise
from gapview.report.coloring import Coloring
from gapview.report.heatmap import heat_map
from gapview.report.points import Classes, Numbers
from gapview.report.style import inline_svg
from gapview.trust.assessment import Assessment


@pytest.fixture(scope="module")
def model():
    views = make_views(80, (6, 8), n_clusters=2, missing_rate=0.3, random_state=0).views
    return BridgedGRMF(n_clusters=2, random_state=0, selection="fixed").fit(views)


@pytest.fixture(scope="module")
def summary(model):
    return summarise(model)


def assessed(p_value, stability, agreement):
    values = np.linspace(0.1, 0.4, 19)
    null = {"null_statistics": np.array([values, values]), "null_stability": np.array([values, values])}
    null |= {"null_groups": np.full((2, 19, 2), 0.6), "agreement": 0.3, "agreement_p_value": agreement}
    groups = {"group_stability": np.array(stability), "group_p_values": np.where(np.array(stability) < 0.7, 0.5, 0.05)}
    own = {
        "p_value": p_value,
        "p_values": np.array([p_value, p_value]),
        "statistic": 0.5,
        "stability": 0.8,
        "modularity": 0.6,
    }
    return Assessment(**own, **null, **groups, alpha=0.05, n_samples=80, n_fits=38)


def remarks(summary):
    (found,) = clustering_page(summary).first
    return {term: (state, text.replace("\N{NO-BREAK SPACE}", " ")) for state, term, text in found.remarks}


class TestRemarks:
    def test_groups_that_can_be_believed(self, summary):
        found = remarks(replace(summary, assessment=assessed(0.05, [0.9, 0.8], 0.005)))
        assert found["There are groups."][0] == found["They are stable."][0] == found["The views agree."][0] == "good"
        assert "p = 0.05" in found["There are groups."][1]

    def test_an_unstable_group_is_named(self, summary):
        state, text = remarks(replace(summary, assessment=assessed(0.05, [0.9, 0.5], 0.4)))["Some groups are unstable."]
        assert state == "doubtful"
        assert "Group 1 is unstable" in text

    def test_groups_that_rarely_come_back(self, summary):
        found = replace(assessed(0.05, [0.9, 0.8], 0.005), stability=0.6)
        assert remarks(replace(summary, assessment=found))["They are stable in part."][0] == "doubtful"

    def test_groups_that_cannot(self, summary):
        found = remarks(replace(summary, assessment=assessed(0.6, [0.5, 0.5], 0.4)))
        assert found["There may be no groups."][0] == "bad"
        assert "Do not interpret the groups" in found["There may be no groups."][1]
        assert found["The views do not agree."][0] == "doubtful"

    def test_gaps_that_explain_the_groups(self):
        labels = np.repeat([0, 1], 40)
        state = np.random.RandomState(0)
        full = state.normal(size=(80, 5)) + 6 * labels[:, None]
        views = Views([full, full[:, :3]], mask=np.stack([labels == 0, np.ones(80)], axis=1).astype(bool))
        with pytest.warns(UserWarning, match="view"):
            model = BridgedGRMF(n_clusters=2, random_state=0, selection="fixed").fit(views)
        assert remarks(summarise(model))["The groups depend on missing views."][0] == "bad"

    def test_values_in_doubt(self):
        views = make_views(80, (6, 8), n_clusters=2, missing_rate=0.3, random_state=0).views
        matrix = views.matrices[0].copy()
        matrix[::5, 1] = -999
        with pytest.warns(UserWarning, match="-999"):
            model = BridgedGRMF(n_clusters=2, random_state=0, selection="fixed").fit(
                views.with_matrices([matrix, views.matrices[1]])
            )
        state, text = remarks(summarise(model))["Check the data first."]
        assert state == "bad"
        assert "What the data look like" in text


class TestTopFeatures:
    def test_values_are_those_of_the_samples_on_the_map(self, model, summary):
        found, shown = summary.features, summary.sample_map.samples
        assert len(found.names) == len(found.views) == len(found.values)
        for name, view, values in zip(found.names, found.views, found.values, strict=True):
            expected = np.full(80, np.nan)
            expected[model.views_.rows(view)] = model.views_.matrices[view][:, int(name.split()[1])]
            np.testing.assert_allclose(values, expected[shown], rtol=1e-6)

    def test_they_have_the_largest_effects(self, model, summary):
        found = summary.features
        for k, effects in enumerate(model.feature_effects()):
            strongest = int(np.abs(effects.sizes).max(axis=0).argmax())
            assert f"feature {strongest}" in [
                name for name, view in zip(found.names, found.views, strict=True) if view == k
            ]

    def test_standardised_values(self, summary):
        values = summary.features.standardised
        np.testing.assert_allclose(np.nanmean(values, axis=1), 0, atol=1e-5)
        np.testing.assert_allclose(np.nanstd(values, axis=1), 1, atol=1e-5)

    def test_sparse_views(self):
        state = np.random.RandomState(0)
        wide = np.where(state.uniform(size=(60, 12)) < 0.4, state.poisson(4, size=(60, 12)), 0) + np.eye(60, 12)
        views = [sparse.csr_array(wide), state.normal(size=(60, 4))]
        model = BridgedGRMF(n_clusters=2, random_state=0, selection="fixed").fit(views)
        found = summarise(model)
        place = found.features.views.index(0)
        column = int(found.features.names[place].split()[1])
        np.testing.assert_allclose(found.features.values[place], wide[found.sample_map.samples, column])

    def test_fewer_samples_on_the_map(self, model, summary):
        smaller = summary.with_map(model, 30)
        assert smaller.features.values.shape[1] == len(smaller.sample_map.samples) <= 30


class TestHeatMap:
    def test_rows_columns_and_bars(self):
        values = np.array([[1.0, -1.0, np.nan], [0.0, 2.0, -2.0]])
        bars = [
            Coloring("stage", np.array([0, 1, -1]), ("I", "II")).as_bar(),
            Coloring("age", np.array([40, np.nan, 60]), limits=(40, 60)).as_bar(),
        ]
        figure = heat_map(values, ["$x$", "<b>"], ["blood", "scans"], np.array([0, 0, 1]), bars)
        above, below = figure.axes[:2]
        assert [label.get_text() for label in above.get_yticklabels()] == ["group", "stage", "age"]
        assert [label.get_text() for label in below.get_yticklabels()] == ["$x$", "<b>"]
        cells = below.images[0].to_rgba(below.images[0].get_array())[..., :3]
        assert cells.shape == (2, 3, 3)
        assert cells[0, 0, 0] > cells[0, 0, 2]  # above the mean: red
        assert cells[0, 1, 0] < cells[0, 1, 2]  # below: blue
        assert len(set(cells[0, 2].tolist())) > 1  # grey with a tint, of missing values
        legend = [text.get_text() for text in figure.legends[0].get_texts()]
        assert {"stage", "I", "II", "unknown", "age", "40", "60"} <= set(legend)
        svg = inline_svg(figure, "label")
        assert "&lt;b&gt;" in svg
        assert 'href="data:image/png;base64,' in svg

    def test_many_levels_and_groups(self):
        groups = np.repeat(np.arange(30), 4)
        bar = Coloring("site", np.arange(120) % 12, tuple(f"s{k}" for k in range(12))).as_bar()
        figure = heat_map(np.zeros((3, 120)), ["a", "b", "c"], ["x"] * 3, groups, [bar])
        assert figure.axes[0].images[0].get_array().shape == (2, 120, 3)


class TestProperties:
    @pytest.mark.parametrize("n", [300, 20_000])
    def test_numbers_are_stored_in_steps(self, n):
        values = np.random.RandomState(0).normal(50, 10, n)
        values[::7] = np.nan
        content = Numbers("age", values).content(n)
        raw = base64.b64decode(content["codes"])
        codes = np.frombuffer(raw, "u1" if len(raw) == n else "<u2").astype(int)
        assert ((codes == content["missing"]) == np.isnan(values)).all()
        known = np.isfinite(values)
        error = np.abs(content["first"] + content["step"] * codes[known] - values[known]).max()
        assert error <= content["step"] / 2 + 1e-9
        assert np.nanmin(values) <= content["low"] < content["high"] <= np.nanmax(values)

    @pytest.mark.parametrize(
        ("values", "decimals"), [([31, 82, 60], 0), ([0.01, 0.02], 4), ([1.5, 900.25], 0), ([3, 3], 0)]
    )
    def test_texts_have_three_digits_of_the_range(self, values, decimals):
        assert Numbers("x", values).content(len(values))["decimals"] == decimals

    @pytest.mark.parametrize("values", [[], [np.nan, np.nan], [np.inf, 1.0], [5.0, 5.0]])
    def test_nothing_to_scale(self, values):
        content = Numbers("x", values).content(len(values))
        assert all(np.isfinite(content[name]) for name in ("first", "step", "low", "high"))

    def test_names_that_are_unknown(self):
        content = Classes("stage", ("I", "II"), [0, -1, 1]).content(3)
        assert content["names"] == ["I", "II", "unknown"]
        assert list(base64.b64decode(content["codes"])) == [0, 2, 1]
