"""What consoles and notebooks show of results: short tables, names escaped, nothing computed."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from gapview import GRMF, BridgedGRMF, Views
from gapview.baselines import Concat
from gapview.datasets import make_views
from gapview.trust import BatchMixing, ViewMixing, group_association, survival_by_group
from gapview.utils.shown import Shown, Table

MADE = make_views(90, (8, 6), n_clusters=3, missing_rate=0.3, random_state=0)
ATTACK = "<script>alert('x')</script>"
N_LINES = 40


@pytest.fixture(scope="module")
def model():
    views = Views(
        [np.asarray(matrix) for matrix in make_views(90, (8, 6), n_clusters=3, random_state=0).views.matrices],
        mask=MADE.views.mask,
        names=[ATTACK, "b\x1b[2J"],
    )
    return BridgedGRMF("auto", max_clusters=4, random_state=0).fit(views)


RESULTS = {
    "views": lambda model: model.views_,
    "description": lambda model: model.views_.describe(),
    "selection": lambda model: model.selection_,
    "count": lambda model: model.cluster_count_,
    "assessment": lambda model: model.assessment_,
    "stability": lambda model: model.cluster_stability(n_resamples=2, random_state=0),
    "effects": lambda model: model.feature_effects(),
    "effects of a view": lambda model: model.feature_effects()[0],
    "agreement": lambda model: model.view_agreement(),
    "markers": lambda model: model.markers(split=False),
    "contributions": lambda model: model.view_contributions(),
    "placement": lambda model: model.place(model.views_[:30]),
    "recovery": lambda model: model.recovery_scores(),
    "recovery of a view": lambda model: model.recovery_scores().views[0],
    "dataset": lambda model: MADE,
    "association": lambda model: group_association([0] * 30 + [1] * 30, ["a", "b"] * 30, "batch"),
    "mixing": lambda model: BatchMixing((ViewMixing(ATTACK, 2, 0.1, 0.8, 0.9, 0.7),), 0.75, 0),
    "survival": lambda model: survival_by_group([0] * 4 + [1] * 4, range(1, 9), [1, 1, 0, 1, 0, 1, 0, 1]),
}


class Page(HTMLParser):
    """Collects the tags of a page; fails if they do not match."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.open = set(), []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_short_and_escaped(model, name):
    result = RESULTS[name](model)
    text, html = repr(result), result._repr_html_()
    assert len(text.splitlines()) <= N_LINES
    assert max(map(len, text.splitlines())) <= 160
    assert "array(" not in text
    assert "\x1b" not in text + html
    assert Page(html).tags <= {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td"}


def test_the_figures_are_those_of_the_result(model):
    stability = model.cluster_stability(n_resamples=2, random_state=0)
    rows = [line.split() for line in repr(stability).splitlines()]
    assert rows[2][:2] == ["0", f"{stability.jaccard[0]:.3f}"]
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", stability._repr_html_())
    assert cells[1::3] == [f"{value:.3f}" for value in stability.jaccard]


def test_the_chosen_candidate_is_marked(model):
    lines = repr(model.selection_).splitlines()
    assert sum(line.endswith("yes") for line in lines) == 1


def test_one_group():
    views = make_views(60, (5,), n_clusters=1, random_state=0).views
    found = GRMF(1, random_state=0).fit(views)
    assert "one group" in repr(found.assess())
    assert repr(found.feature_effects())
    assert "60 samples in 1 group" in found._repr_html_()


class TestModels:
    def test_not_fitted(self):
        html = BridgedGRMF(3)._repr_html_()
        assert "BridgedGRMF" in html
        assert "samples in" not in html

    def test_fitted(self, model):
        html = model._repr_html_()
        assert "90 samples in 3 groups" in html
        assert "stability" in html
        assert "&lt;script&gt;" in html
        assert "<script>alert" not in html
        assert "can be distinguished from data without groups" in html
        bundle = model._repr_mimebundle_()
        assert "90 samples in 3 groups" in bundle["text/html"]
        assert bundle["text/plain"] == repr(model) == "BridgedGRMF(max_clusters=4, n_clusters='auto', random_state=0)"

    def test_other_methods(self):
        html = Concat(3, random_state=0).fit(MADE.views)._repr_html_()
        assert "90 samples in 3 groups" in html
        assert "assess" not in html

    def test_the_setting_of_scikit_learn_counts(self, model):
        with config_context(display="text"):
            assert not hasattr(model, "_repr_html_")
            assert list(model._repr_mimebundle_()) == ["text/plain"]

    def test_copies_and_pipelines(self, model):
        assert "samples in" not in clone(model)._repr_html_()
        assert "BridgedGRMF" in make_pipeline("passthrough", model)._repr_html_()


class Given(Shown):
    def __init__(self, table):
        self.table = table

    def _shown_as(self):
        return self.table


class TestTables:
    def test_columns_are_aligned(self):
        table = Table("Title", ("name", "value"), [("a", 1.5), ("bb", np.float32(-12345)), ("c", None)], ("note",))
        assert repr(Given(table)).splitlines() == [
            "Title",
            "name    value",
            "a       1.500",
            "bb    −12,345",
            "c",
            "note",
        ]

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (np.nan, "–"),
            (np.inf, "∞"),
            (-np.inf, "−∞"),
            (2e-9, "2e−09"),
            (np.bool_(True), "yes"),
            (False, "no"),
            (np.int32(1234567), "1,234,567"),
            (0.0, "0.000"),
            ("a\nb", "a\\nb"),
            ("x" * 99, "x" * 19 + "…" + "x" * 19),
            (1e12, "1e+12"),
        ],
    )
    def test_values(self, value, text):
        assert repr(Given(Table("", ("v",), [(value,)]))).splitlines()[-1] == text

    def test_many_rows(self):
        table = Given(Table("T", ("n",), [(i,) for i in range(50)]))
        assert repr(table).splitlines()[-1] == "… and 30 more rows"
        assert table._repr_html_().count("<tr>") == 21

    def test_no_rows(self):
        empty = Given(Table("T", ("n",)))
        assert repr(empty) == "T\nn"
        Page(empty._repr_html_())
