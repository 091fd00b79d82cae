"""The report on a clustering: what stands in it, in which order, for every kind of model; nothing breaks out of it."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from gapview import GRMF, BridgedGRMF, Views
from gapview.baselines import Concat
from gapview.datasets import make_views
from gapview.errors import DataFileError, InputTypeError, NotFittedError, ParameterTypeError
from gapview.report import write_clustering_report
from gapview.report.clustering import clustering_page, summarise
from gapview.report.drawing import group_sign
from gapview.trust import feature_effects, view_agreement
from pages import check_page

EVIL = "<script>alert(1)</script>"
BREAKING = "</script><img src=x onerror=alert(2)>\u2028\"'&\\u003c"
SECTIONS = [
    "The groups",
    "What sets each group apart",
    "Which samples lack which views",
    "How well the views agree",
    "How many groups",
    "How well hidden views are recovered",
    "Samples of low confidence",
    "What the data look like",
    "How to repeat it",
    "Settings and convergence",
]


def made(n_samples=90, widths=(6, 8), missing=0.35, ids=None, names=("blood", "scans"), seed=0, features=False):
    data = make_views(n_samples, widths, n_clusters=3, missing_rate=missing, random_state=seed)
    full = []
    for k, matrix in enumerate(data.views.matrices):
        filled = np.full((n_samples, matrix.shape[1]), np.nan)
        filled[data.views.rows(k)] = matrix
        full.append(
            pd.DataFrame(filled, columns=[f"{EVIL}{k}{j}" for j in range(matrix.shape[1])]) if features else filled
        )
    return Views(dict(zip(names, full, strict=True)), sample_ids=ids)


def fitted(views, method=BridgedGRMF, n_clusters=3, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return method(n_clusters=n_clusters, random_state=0, **settings).fit(views)


def written(model, folder, **options):
    options = {"assess": False, **options}  # tests/trust/test_trust_structure.py tests the assessment
    return write_clustering_report(model, folder / "report.html", **options).read_text(encoding="utf-8")


def without_scripts(text):
    return re.sub(r"<script.*?</script>", "", text, flags=re.S)


def embedded(text):
    """Return the data of the map, with the codes of points as numbers."""
    data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', text, flags=re.S)[1])
    data |= {axis: np.frombuffer(base64.b64decode(data[axis]), "<u2").tolist() for axis in "xy"}
    for one in data["properties"]:
        raw = base64.b64decode(one["codes"])
        one["codes"] = np.frombuffer(raw, "u1" if len(raw) == len(data["x"]) else "<u2").astype(int)
    return data


@pytest.fixture(scope="module")
def model():
    ids = [f"s{i:02d}" for i in range(88)] + [EVIL, BREAKING]
    return fitted(made(ids=ids, names=("blood <b>", "scans"), features=True), selection="fixed")


@pytest.fixture(scope="module")
def covariates(model):
    values = {"age": np.arange(90.0), f"of {BREAKING}": np.tile([EVIL, "low", None], 30)}
    return pd.DataFrame(values, index=model.sample_ids_)


@pytest.fixture(scope="module")
def text(model, covariates, tmp_path_factory):
    return written(model, tmp_path_factory.mktemp("report"), covariates=covariates)


def test_sections_come_in_the_order_of_a_readers_questions(text):
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", text)
    assert titles == [*SECTIONS[:2], "Covariates of the samples", *SECTIONS[2:]]
    levels = [int(level) for level in re.findall(r"<h([1-6])", text)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_the_page_is_whole_by_itself(text):
    outline = check_page(without_scripts(text))
    assert outline.tags.count("caption") == outline.tags.count("table")
    assert len(text.encode()) < 3_000_000
    assert text.count("<script") == 2  # the data, and the script


def test_only_the_script_of_the_page_may_run(text):
    script = re.search(r"<script>(.*?)</script>", text, flags=re.S)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", script)


def test_names_that_are_markup_appear_as_text(text, model):
    assert EVIL not in text
    assert "<img" not in text
    assert "blood &lt;b&gt;" in text
    data = embedded(text)
    assert {EVIL, BREAKING} <= set(data["names"])
    assert set(data["names"]) == set(model.sample_ids_)
    titles = {one["title"] for one in data["properties"]}
    assert any(title.startswith(EVIL) for title in titles)  # features
    assert any(EVIL in one.get("names", ()) for one in data["properties"])  # values of covariates
    shown = without_scripts(text)
    for place in ('data-title="', r'<option value="\d+">', 'data-label="', "<li>", '<optgroup label="'):
        assert re.search(place + '[^"\n]*&lt;', shown), place


def test_the_map_shows_every_sample_with_its_group_confidence_and_views(text, model):
    data = embedded(text)
    order = [list(model.sample_ids_).index(name) for name in data["names"]]
    groups, confidence, patterns = data["properties"][:3]
    assert (groups["codes"] == model.labels_[order]).all()
    decoded = confidence["first"] + confidence["step"] * confidence["codes"]
    np.testing.assert_allclose(decoded, model.confidence_[order], atol=1e-5)
    assert (confidence["title"], confidence["decimals"]) == ("Confidence", 2)
    for place, i in enumerate(order):
        shown = patterns["names"][patterns["codes"][place]]
        having = [name for name, has in zip(model.views_.names, model.views_.mask[i], strict=True) if has]
        assert shown == ("all views" if len(having) == 2 else f"only {having[0]}")
    assert (np.diff(model.confidence_[order]) >= 0).all()  # those in doubt first
    assert max(data["x"] + data["y"]) == 10_000
    assert min(data["x"] + data["y"]) == 0


def test_the_map_can_be_coloured_by_covariates_and_by_features(text, model):
    data = embedded(text)
    order = [list(model.sample_ids_).index(name) for name in data["names"]]
    age = next(one for one in data["properties"] if one["title"] == "age")
    np.testing.assert_allclose(age["first"] + age["step"] * age["codes"], order, atol=0.01)
    level = next(one for one in data["properties"] if EVIL in one.get("names", ()))
    assert [level["names"][code] for code in level["codes"]] == [(EVIL, "low", "unknown")[i % 3] for i in order]
    features = [one for one in data["properties"] if one["title"].startswith(EVIL)]
    assert len(features) >= 6
    has = model.views_.mask[order, 0]
    first = features[0]["codes"] == features[0]["missing"]
    assert (first == ~has).all()  # missing where the view is


def test_cards_have_size_confidence_and_top_features(text, model):
    cards = re.findall(r'<article class="card">(.*?)</article>', text, flags=re.S)
    assert len(cards) == 3
    for card, group in zip(cards, summarise(model).groups, strict=True):
        assert f"Group\N{NO-BREAK SPACE}{group.number}" in card
        assert f"{group.n_samples} (" in card
        assert f"{group.confidence:.2f}" in card
        for effect in group.features[:3]:
            arrow = "▲ +" if effect.effect > 0 else "▼ −"
            assert f"{arrow}{abs(effect.effect):.1f}" in card


def test_the_first_screen_says_what_to_believe(text, model):
    first = text[text.index("<header>") : text.index("</header>")]
    assert "not tested against data without groups" in first
    n_doubtful = int((model.confidence_ < 0.5).sum())
    assert f"{n_doubtful:,} of the samples" in first if n_doubtful else "None of the samples has" in first
    lacking = int((~model.views_.mask.all(axis=1)).sum())
    assert f"{lacking} samples" in first


def test_every_figure_and_every_table_can_be_saved(text):
    shown = without_scripts(text)
    n_drawings = shown.count('<div class="drawing')
    assert n_drawings >= 3
    assert shown.count('data-save="png"') == shown.count('data-save="svg"') == n_drawings
    assert shown.count('data-save="csv"') == shown.count("<table") - 1  # that of the samples has a button of its own
    assert shown.count("Save all rows as CSV") == 1
    assert "img-src data: blob:;" in text


def test_settings_and_convergence_are_folded_away_at_the_end(text):
    end = without_scripts(text[text.index('id="settings-and-convergence"') :])
    assert re.findall(r"<summary>(.*?)</summary>", end)[0] == "How the settings were chosen"
    assert "<summary>Convergence</summary>" in end
    assert "<details open" not in text


def test_the_same_model_gives_the_same_file(model, covariates, text, tmp_path):
    assert written(model, tmp_path, covariates=covariates) == text


def test_without_ids_no_sample_is_identified(model, covariates, tmp_path):
    text = written(model, tmp_path, no_ids=True, covariates=covariates[["age"]])
    data = embedded(text)
    assert [one["title"] for one in data["properties"]] == ["Group", "Confidence", "Views present"]
    assert "Means of the groups" in text  # instead of one column for each sample
    text = text.replace(EVIL.replace("<", "&lt;").replace(">", "&gt;"), "")  # names of features are kept
    assert embedded(text)["names"] is None
    assert not re.search(r"\bs\d\d\b|alert", text)
    assert "Find sample" not in text
    assert "Sample ids are left out" in text
    summary = summarise(model, no_ids=True)
    assert summary.sample_ids is None
    assert all(one.name is None for one in summary.doubtful)


def test_summary_holds_what_the_model_says(model):
    summary = summarise(model)
    assert [group.n_samples for group in summary.groups] == np.bincount(model.labels_).tolist()
    for group in summary.groups:
        own = model.confidence_[model.labels_ == group.number]
        assert group.confidence == pytest.approx(own.mean())
        assert (group.n_clear, group.n_doubtful) == ((own >= 0.8).sum(), (own < 0.5).sum())
        for effect in group.features:
            found = feature_effects(model.views_, model.labels_)[model.views_.names.index(effect.view)]
            sizes = dict(zip(found.features, found.sizes[group.number], strict=True))
            assert effect.effect == pytest.approx(sizes[effect.feature])
            assert abs(effect.effect) >= 0.2
    lowest = sorted(range(90), key=lambda i: model.confidence_[i])[:20]
    assert [one.name for one in summary.doubtful] == [model.sample_ids_[i] for i in lowest]
    assert all(one.other != one.group for one in summary.doubtful)
    expected = view_agreement(model._neighbor_graphs(), model.views_.mask, model.labels_)
    np.testing.assert_array_equal(summary.agreement.share, expected.share)
    assert summary.convergence.objective.tolist() == model.objective_.tolist()
    assert summary.n_complete == model.views_.mask.all(axis=1).sum()


@pytest.mark.parametrize("method", [GRMF, BridgedGRMF])
def test_recovery_names_its_measure_and_the_method_used(method, tmp_path):
    model = fitted(make_views(200, (5, 5), n_clusters=3, missing_rate=0.2, random_state=0).views, method)
    summary = summarise(model)
    assert summary.recovered == model.recovery_scores().views
    write_clustering_report(model, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "R² is 1 minus the squared error" in page
    assert "less certain" in page
    for one in summary.recovered:
        assert f"{one.best_r2:.2f}" in page


def test_views_that_say_nothing_of_each_other_are_reported(tmp_path):
    state = np.random.RandomState(0)
    noise = Views([state.normal(size=(200, 5)), state.normal(size=(200, 5))])
    write_clustering_report(fitted(noise, GRMF), tmp_path / "report.html", assess=False)
    assert "are about the mean of the view: do not use them" in (tmp_path / "report.html").read_text()


def test_what_is_given_and_what_was_chosen(tmp_path):
    model = fitted(made(), n_clusters="auto", max_clusters=5, bridge="union")
    facts = {fact.name: fact for fact in summarise(model).choices.settings}
    assert facts["n_clusters"].origin == facts["scale"].origin == "chosen from the data"
    assert facts["n_clusters"].value == str(len(model.cluster_centers_))
    assert facts["bridge"].origin == facts["max_clusters"].origin == "given"
    assert facts["n_components"].origin == "by rule"
    assert facts["tol"].origin == "default"
    text = written(model, tmp_path, run={"command": "gapview cluster <a>.csv", "files": ["a.csv", "b.csv"], "n": 2.0})
    assert "n_clusters=&#39;auto&#39;, bridge=&#39;union&#39;, max_clusters=5, random_state=0" in text
    assert "gapview cluster &lt;a&gt;.csv" in text
    assert "a.csv, b.csv" in text
    assert " ".join(model.cluster_count_.reason().split()) in text


def shapes():
    state = np.random.RandomState(0)
    wide = np.where(state.uniform(size=(40, 30)) < 0.2, state.poisson(3, size=(40, 30)), 0)
    several = {f"view {k}": state.normal(size=(60, 3)) for k in range(6)}
    mask = state.uniform(size=(60, 6)) < 0.5
    mask[:, 0] |= ~mask.any(axis=1)
    yield "one view", GRMF, [state.normal(size=(30, 4))], {}
    yield "one group", BridgedGRMF, made(40), {"n_clusters": 1}
    yield "complete", GRMF, made(40, missing=0.0), {}
    yield "few samples", BridgedGRMF, [state.normal(size=(5, 4)), state.normal(size=(5, 4))], {"n_clusters": 2}
    yield "sparse", GRMF, [sparse.csr_array(wide + np.eye(40, 30)), state.normal(size=(40, 3))], {"n_clusters": 2}
    yield "sparse, bridged", BridgedGRMF, [sparse.csr_array(wide + np.eye(40, 30)), state.normal(size=(40, 3))], {}
    yield "many patterns", GRMF, Views(several, mask=mask), {}
    yield "many groups", BridgedGRMF, made(), {"n_clusters": 30}
    yield "alike", GRMF, [np.repeat(np.eye(3), 8, axis=0), np.repeat(np.arange(24.0)[:, None] + 1, 2, axis=1)], {}


@pytest.mark.parametrize(("method", "data", "settings"), [pytest.param(*rest, id=name) for name, *rest in shapes()])
def test_every_kind_of_data_gives_a_page(method, data, settings, tmp_path):
    more = {"scale": None} if method is GRMF else {"selection": "fixed"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit has its say; the report has none
        model = fitted(data, method, **{"n_clusters": 3, **settings}, **more)
    text = written(model, tmp_path)
    check_page(without_scripts(text))
    several = len(model.cluster_centers_) > 1
    titles = [title for title in SECTIONS if several or title != "What sets each group apart"]
    assert re.findall(r"<h2[^>]*>(.*?)</h2>", text) == titles
    assert "nan" not in re.sub(r"<[^>]+>", " ", without_scripts(text)).lower().split()


def test_a_fit_that_was_cut_off_says_so():
    page = clustering_page(summarise(fitted(made(), GRMF, max_iter=2, tol=1e-12)))
    words = page.sections[-1].blocks[1].blocks[0].text
    assert "had not converged" in words


def test_more_samples_than_the_map_can_show(model):
    summary = summarise(model, most_shown=40)
    assert len(summary.sample_map.samples) <= 40
    assert len(set(summary.labels[summary.sample_map.samples])) == 3
    page = clustering_page(summary)
    assert "of the 90 samples" in page.sections[0].blocks[0].text
    assert sum(page.sections[0].blocks[1].blocks[0].properties[0].counts) == 90


def test_long_names_leave_the_file_small(tmp_path):
    ids = [f"{'x' * 3000}{i}" for i in range(90)]
    assert len(written(fitted(made(ids=ids), selection="fixed"), tmp_path)) < 400_000


def test_a_file_that_would_be_too_large_shows_fewer_samples(model, tmp_path, monkeypatch):
    text = written(model, tmp_path)
    monkeypatch.setattr("gapview.report.clustering.writing._MOST_SHOWN", (90, 20))
    monkeypatch.setattr("gapview.report.clustering.writing._MOST_BYTES", len(text.encode()) - 100)
    assert len(embedded(written(model, tmp_path))["x"]) <= 20


@pytest.mark.parametrize(("page", "colour"), [("#ffffff", "color"), ("#15191e", "dark")])
def test_groups_stand_out_from_the_page(page, colour):
    def luminance(text):
        parts = [int(text[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return np.dot([0.2126, 0.7152, 0.0722], linear)

    for g in range(11):
        low, high = sorted([luminance(page), luminance(getattr(group_sign(g), colour))])
        assert (high + 0.05) / (low + 0.05) >= 3


def test_groups_look_different_without_colour_and_with():
    signs = [group_sign(g) for g in range(77)]
    assert len({(sign.color, sign.shape) for sign in signs}) == 77
    assert len({sign.shape for sign in signs[:7]}) == 7


class TestRefused:
    def test_other_models(self, tmp_path):
        for wrong in (Concat(2), "model", GRMF):
            with pytest.raises(InputTypeError, match="fitted GRMF or BridgedGRMF"):
                write_clustering_report(wrong, tmp_path / "r.html")

    def test_a_model_that_is_not_fitted(self, tmp_path):
        with pytest.raises(NotFittedError):
            write_clustering_report(GRMF(2), tmp_path / "r.html")

    @pytest.mark.parametrize("options", [{"no_ids": "yes"}, {"title": 3}, {"run": "gapview cluster"}])
    def test_wrong_options(self, model, tmp_path, options):
        with pytest.raises(ParameterTypeError, match=next(iter(options))):
            write_clustering_report(model, tmp_path / "r.html", **options)

    def test_wrong_paths(self, model, tmp_path):
        with pytest.raises(InputTypeError, match="path"):
            write_clustering_report(model, 3)
        with pytest.raises(DataFileError, match="Cannot write"):
            write_clustering_report(model, tmp_path / "nowhere" / "r.html")
        assert not list(tmp_path.iterdir())
