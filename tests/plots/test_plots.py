"""Figures for notebooks: they show what the model holds, on the axes given, and leave matplotlib as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from gapview import GRMF, BridgedGRMF, Views
from gapview.baselines import DCNMF, Concat
from gapview.choice import ClusterCount
from gapview.datasets import make_views
from gapview.errors import GapviewError, InputError, InputTypeError, MissingExtraError, NotFittedError, ParameterError
from gapview.trust import feature_effects, find_markers, survival_by_group, top_features

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402

from gapview import plots  # noqa: E402

N = 90
VIEWS = make_views(N, (8, 6, 5), n_clusters=3, missing_rate=0.4, random_state=0).views
TIMES, EVENTS = np.random.RandomState(0).exponential(10, N), np.arange(N) % 3 > 0
AGES, SEXES = (
    np.random.RandomState(1).uniform(20, 80, N),
    np.array(["female", "male", None], dtype=object)[np.arange(N) % 3],
)
GRID = {"consensus_weight": [1.0, 100.0], "sparsity_weight": [1e-4, 0.1]}

ON_MODELS = {
    "samples": plots.plot_samples,
    "missing": plots.plot_missing,
    "sizes": plots.plot_cluster_sizes,
    "objective": plots.plot_convergence,
    "change": lambda model, **more: plots.plot_convergence(model, what="change", **more),
    "agreement": plots.plot_view_agreement,
    "pairs": lambda model, **more: plots.plot_view_agreement(model, pairs=True, **more),
    "features": lambda model, **more: plots.plot_top_features(model, 1, **more),
    "confidence": lambda model, **more: plots.plot_samples(model, color="confidence", **more),
    "patterns": lambda model, **more: plots.plot_samples(model, color="views", **more),
    "feature": lambda model, **more: plots.plot_samples(model, color=("view_1", 2), **more),
    "heatmap": lambda model, **more: plots.plot_heatmap(model, covariates={"age": AGES, "sex": SEXES}, **more),
}
COUNT = ClusterCount(np.arange(2, 6), np.array([0.3, 0.6, 0.5, 0.4]), np.array([0.8, 1.0, 0.7, 0.6]), p_value=0.05)
ALL = ON_MODELS | {"grid": lambda model, **more: plots.plot_weight_grid([[0.1, 0.2]], [1.0], [0.1, 1.0], **more)}
ALL |= {"survival": lambda model, **more: plots.plot_survival(survival_by_group(model, TIMES, EVENTS), **more)}
ALL |= {"markers": lambda model, **more: plots.plot_markers(find_markers(model.views_, model.labels_), **more)}
ALL |= {"count": lambda model, **more: plots.plot_cluster_count(COUNT, **more)}
each = pytest.mark.parametrize("draw", ALL.values(), ids=ALL)


@pytest.fixture(scope="module")
def model():
    return BridgedGRMF(3, random_state=0).fit(VIEWS)


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def texts(axes):
    return [text.get_text() for text in axes.texts]


class TestAxes:
    @each
    def test_new_ones(self, model, draw):
        before = dict(matplotlib.rcParams)
        axes = draw(model)
        assert isinstance(axes, plt.Axes)
        assert plt.get_fignums() == [axes.figure.number]  # pyplot knows it, so that notebooks show it
        assert dict(matplotlib.rcParams) == before
        assert axes.get_title()
        axes.figure.canvas.draw()

    @each
    def test_given_ones(self, model, draw):
        figure, (left, right) = plt.subplots(1, 2)
        assert draw(model, ax=right) is right
        assert plt.get_fignums() == [figure.number]
        assert not left.has_data()
        assert not left.get_title()
        figure.canvas.draw()

    @each
    def test_nothing_is_shown_by_force(self, model, draw, monkeypatch):
        monkeypatch.setattr(plt, "show", lambda *args, **more: pytest.fail("show was called"))
        draw(model)

    @each
    def test_settings_of_the_user_do_not_spoil_new_axes(self, model, draw):
        with matplotlib.rc_context({"font.size": 30, "axes.titlelocation": "right"}):
            axes = draw(model)
            assert matplotlib.rcParams["font.size"] == 30
        assert axes.title.get_fontsize() < 12

    @each
    def test_everything_lies_within_the_figure(self, model, draw):
        axes = draw(model)
        axes.figure.canvas.draw()
        box, room = axes.figure.get_tightbbox(), axes.figure.get_size_inches()
        assert box.x0 > -0.02
        assert box.y0 > -0.02
        assert box.x1 < room[0] + 0.02
        assert box.y1 < room[1] + 0.02

    @each
    @pytest.mark.parametrize("ax", ["axes", 1, np.array([None, None])])
    def test_other_things_are_refused(self, model, draw, ax):
        with pytest.raises(InputTypeError, match="ax must be axes of matplotlib, or None; got a "):
            draw(model, ax=ax)
        assert plt.get_fignums() == []

    @each
    def test_without_matplotlib(self, model, draw, monkeypatch):
        def refuse(name, *args):
            raise ModuleNotFoundError(name)

        monkeypatch.setattr("gapview.errors.import_module", refuse)
        with pytest.raises(
            MissingExtraError, match=r"Drawing figures needs the package 'matplotlib'.*gapview\[report\]"
        ):
            draw(model)

    def test_no_half_figure_is_left(self, model, monkeypatch):
        def fail(*args):
            raise RuntimeError

        monkeypatch.setattr("gapview.plots.drawing.draw_sizes", fail)
        with pytest.raises(RuntimeError):
            plots.plot_cluster_sizes(model)
        assert plt.get_fignums() == []

    def test_a_title_can_be_replaced(self, model):
        axes = plots.plot_cluster_sizes(model)
        axes.set_title("mine")
        assert [axes.get_title(loc=loc) for loc in ("left", "center", "right")] == ["", "mine", ""]


def test_matplotlib_is_imported_by_the_functions_alone():
    for file in Path(plots.__file__).parent.glob("*.py"):
        assert "import matplotlib" not in file.read_text()
        assert "from matplotlib" not in file.read_text()


class TestModels:
    @pytest.mark.parametrize("draw", ON_MODELS.values(), ids=ON_MODELS)
    def test_not_fitted(self, draw):
        with pytest.raises(NotFittedError):
            draw(GRMF(3))
        assert plt.get_fignums() == []

    @pytest.mark.parametrize("name", [name for name in ON_MODELS if name != "missing"])
    def test_no_model(self, name):
        for other, words in (("model", "got a str"), (GRMF, "got the class GRMF")):
            with pytest.raises(InputTypeError, match=f"needs a fitted clusterer of gapview; {words}"):
                ON_MODELS[name](other)

    def test_other_methods(self):
        views = [np.abs(matrix) for matrix in make_views(N, (8, 6), n_clusters=3, random_state=0).views.matrices]
        plain, iterating = Concat(3, random_state=0).fit(views), DCNMF(3, max_iter=40, random_state=0).fit(views)
        for draw in (plots.plot_samples, plots.plot_missing, plots.plot_cluster_sizes):
            draw(plain)
        assert len(plots.plot_convergence(iterating).lines[0].get_xdata()) == len(iterating.objective_)
        assert "group 1" in plots.plot_top_features(plain, 1).get_title()
        with pytest.raises(InputTypeError, match="keeps its objective; Concat has none"):
            plots.plot_convergence(plain)
        with pytest.raises(InputTypeError, match="which compute the neighbours within views; Concat has none"):
            plots.plot_view_agreement(plain)


class TestSamples:
    def test_every_sample_has_a_place_and_the_look_of_its_group(self, model):
        axes = plots.plot_samples(model)
        sizes = [len(points.get_offsets()) for points in axes.collections]
        assert sizes == np.bincount(model.labels_).tolist()
        assert sorted(texts(axes)) == ["0", "1", "2"]
        assert len({tuple(points.get_facecolor()[0]) for points in axes.collections}) == 3
        assert len({points.get_paths()[0].vertices.tobytes() for points in axes.collections}) == 3
        assert [text.get_text() for text in axes.get_legend().get_texts()] == ["group 0", "group 1", "group 2"]
        assert "t-SNE" in axes.get_xlabel()

    def test_a_part_of_many(self, model, monkeypatch):
        monkeypatch.setattr("gapview.report.clustering.samples.draw_samples", lambda strata, most: np.arange(40))
        axes = plots.plot_samples(model)
        assert axes.get_title() == "40 of 90 samples in 3 groups"
        assert sum(len(points.get_offsets()) for points in axes.collections) == 40

    def test_few_samples_and_one_group(self):
        axes = plots.plot_samples(GRMF(1, init="data").fit([np.eye(6)[:, :4] + 0.1]))
        assert "PCA" in axes.get_xlabel()
        assert axes.get_legend() is None
        assert axes.get_title() == "6 samples in 1 group"


class TestColors:
    def colored(self, model, color):
        axes = plots.plot_samples(model, color=color)
        legend = axes.get_legend()
        return axes, legend and ([text.get_text() for text in legend.get_texts()], legend.get_title().get_text())

    def test_patterns(self, model):
        axes, (names, title) = self.colored(model, "views")
        kinds = np.unique(VIEWS.mask, axis=0)
        assert len(names) == len(kinds) == len(axes.collections)
        assert title == "views present"
        assert "all views" in names
        assert sum(len(points.get_offsets()) for points in axes.collections) == N

    def test_confidence(self, model):
        axes, legend = self.colored(model, "confidence")
        assert legend is None
        scale = axes.figure.axes[1]
        assert (scale.get_ylabel(), scale.get_ylim()) == ("confidence", (0.0, 1.0))
        assert len(axes.collections) == 1

    def test_a_feature(self, model):
        axes, _ = self.colored(model, ("view_1", 2))
        absent, present = axes.collections
        assert len(absent.get_offsets()) == N - VIEWS.mask[:, 1].sum()
        assert len(present.get_offsets()) == VIEWS.mask[:, 1].sum()
        assert axes.get_xlabel().endswith("grey: no value")
        assert axes.figure.axes[1].get_ylabel() == "feature 2 (view_1)"
        values = VIEWS.matrices[1][:, 2]
        assert axes.figure.axes[1].get_ylim() == pytest.approx(np.quantile(values, [0.02, 0.98]))

    def test_numbers_and_texts(self, model):
        assert self.colored(model, AGES)[1] is None
        axes, legend = self.colored(model, SEXES)
        assert legend == (["female", "male"], "value")
        sizes = [len(points.get_offsets()) for points in axes.collections]
        assert sizes == [N // 3] * 3
        assert self.colored(model, np.arange(N) % 3)[1][0] == ["0", "1", "2"]  # few whole numbers

    def test_a_series_is_matched_by_id(self, model):
        pd = pytest.importorskip("pandas")
        rows = np.random.RandomState(0).permutation(N)[:60]
        stage = pd.Series(
            pd.Categorical(np.where(rows % 2, "late", "early"), ["early", "late"]), index=rows, name="stage"
        )
        axes, legend = self.colored(model, stage.sample(frac=1, random_state=0))
        assert legend == (["early", "late"], "stage")
        assert [len(p.get_offsets()) for p in axes.collections] == [30, (rows % 2 == 0).sum(), (rows % 2).sum()]

    def test_many_levels(self, model):
        names = self.colored(model, [f"site {i % 20}" for i in range(N)])[1][0]
        assert len(names) == 12
        assert names[-1] == "others"

    @pytest.mark.parametrize(
        ("color", "words"),
        [
            ("stage", r"color must be 'group', 'confidence', 'views', a pair \(view, feature\)"),
            (("view_9", 0), r"one of the views 'view_0', 'view_1', 'view_2'; got \('view_9', 0\)"),
            (("view_1", 99), "a feature of view 'view_1'"),
            (AGES[:5], "one value for each of the 90 samples; got 5"),
            ([None] * N, "color has no value for any sample"),
            ([[1, 2]] * N, "a number or text"),
        ],
    )
    def test_bad_colors(self, model, color, words):
        with pytest.raises(GapviewError, match=words):
            plots.plot_samples(model, color=color)
        assert plt.get_fignums() == []

    def test_a_method_without_confidence(self):
        with pytest.raises(InputTypeError, match="Concat has none"):
            plots.plot_samples(Concat(3, random_state=0).fit(VIEWS), color="confidence")


class TestHeatmap:
    def test_cells_are_standardised_values_in_the_order_of_the_groups(self, model):
        axes = plots.plot_heatmap(model, n_top=1, view="view_1")
        cells = axes.child_axes[1]
        (effects,) = [one for one in feature_effects(VIEWS, model.labels_) if one.view == "view_1"]
        wanted = dict.fromkeys(np.abs(effects.sizes).argmax(axis=1).tolist())
        assert [label.get_text() for label in cells.get_yticklabels()] == [f"feature {j}" for j in wanted]
        order = np.lexsort((-model.confidence_, model.labels_))
        full = np.full((N, 6), np.nan)
        full[VIEWS.rows(1)] = VIEWS.matrices[1]
        values = full[order][:, list(wanted)].T
        expected = (values - np.nanmean(values, axis=1)[:, None]) / np.nanstd(values, axis=1)[:, None]
        np.testing.assert_allclose(cells.images[0].get_array().filled(np.nan), expected)

    def test_bars(self, model):
        axes = plots.plot_heatmap(model, covariates={"age": AGES, "sex": SEXES})
        bars = axes.child_axes[0]
        names = [label.get_text() for label in bars.get_yticklabels()]
        assert names == ["group", "view_0", "view_1", "view_2", "confidence", "age", "sex"]
        colors = bars.images[0].get_array()
        order = np.lexsort((-model.confidence_, model.labels_))
        assert len(np.unique(colors[0], axis=0)) == 3
        present = (colors[1] != colors[1][np.flatnonzero(~VIEWS.mask[order, 0])[0]]).any(axis=1)
        np.testing.assert_array_equal(present, VIEWS.mask[order, 0])
        assert texts(bars) == ["0", "1", "2"]
        legend = [text.get_text() for text in axes.get_legend().get_texts()]
        assert legend[:4] == ["confidence", "at least 0.8", "0.5 to 0.8", "below 0.5"]
        assert legend[-4:] == ["sex", "female", "male", "no value"]

    def test_a_frame_of_covariates(self, model):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame({"age": AGES, "sex": SEXES}, index=model.sample_ids_)[::-1]
        first = plots.plot_heatmap(model, covariates=frame).child_axes[0].images[0].get_array()
        second = plots.plot_heatmap(model, covariates={"age": AGES, "sex": SEXES}).child_axes[0].images[0].get_array()
        np.testing.assert_array_equal(first, second)

    def test_complete_views_and_other_methods(self):
        views = make_views(60, (6, 5), n_clusters=2, random_state=0).views
        axes = plots.plot_heatmap(Concat(2, random_state=0).fit(views))
        assert [label.get_text() for label in axes.child_axes[0].get_yticklabels()] == ["group"]
        assert axes.get_legend() is None

    def test_many_samples_and_features(self, monkeypatch):
        monkeypatch.setattr("gapview.plots._features._MOST_SAMPLES", 50)
        monkeypatch.setattr("gapview.plots._features._MOST_FEATURES", 5)
        axes = plots.plot_heatmap(Concat(3, random_state=0).fit(VIEWS), n_top=4)
        assert axes.get_title() == "Features of the groups in 48 of 90 samples"
        assert axes.child_axes[1].images[0].get_array().shape == (5, 48)

    @pytest.mark.parametrize(
        ("more", "words"),
        [
            ({"view": "blood"}, "view must be one of None, 'view_0', 'view_1', 'view_2'; got 'blood'"),
            ({"n_top": 0}, "n_top must be an integer of at least 1"),
            ({"covariates": [1, 2]}, "covariates must be a dict of columns, or a pandas frame"),
            ({"covariates": {"age": [1, 2]}}, "one value for each of the 90 samples; got 2"),
        ],
    )
    def test_bad_arguments(self, model, more, words):
        with pytest.raises(GapviewError, match=words):
            plots.plot_heatmap(model, **more)
        assert plt.get_fignums() == []

    def test_one_group(self):
        with pytest.raises(InputError, match="groups that differ"):
            plots.plot_heatmap(GRMF(1, init="data").fit([np.eye(6)[:, :4] + 0.1]))


def found_up(model):
    """Return the first features that are higher in each group, by view and name."""
    columns, seen = model.markers().columns, {}
    wanted = (columns[name] for name in ("group", "view", "feature", "direction"))
    for group, view, feature, direction in zip(*wanted, strict=True):
        if direction == "up":
            seen.setdefault((group, view), (view, feature))
    return seen.values()


class TestMarkers:
    def test_the_first_of_each_group_and_view(self, model):
        found = find_markers(VIEWS, model.labels_)
        axes = plots.plot_markers(found, n_top=1)
        frame = found.to_frame().query("direction == 'up'").groupby(["group", "view"]).head(1)
        wanted = list(dict.fromkeys(f"feature {f} ({v})" for f, v in zip(frame["feature"], frame["view"], strict=True)))
        assert [label.get_text() for label in axes.get_yticklabels()] == wanted
        cells = axes.collections[0].get_array().reshape(len(wanted), 3)
        first = frame.iloc[0]
        assert cells[0, first["group"]] == pytest.approx(first["effect"])
        assert len(axes.collections[1].get_offsets()) >= len(wanted)  # dots

    def test_of_a_model(self):
        found = Concat(2, random_state=0).fit(make_views(60, (6, 5), n_clusters=2, random_state=0).views)
        assert len(plots.plot_markers(found, n_top=1).get_yticks()) == len(set(found_up(found)))

    def test_no_markers(self):
        found = find_markers([np.ones((6, 2))], [0, 0, 0, 1, 1, 1])
        assert texts(plots.plot_markers(found)) == ["no markers"]

    def test_bad_arguments(self, model):
        with pytest.raises(InputTypeError, match="its markers; got a str"):
            plots.plot_markers("markers")
        with pytest.raises(ParameterError, match="n_top"):
            plots.plot_markers(find_markers(VIEWS, model.labels_), n_top=0)
        assert plt.get_fignums() == []


class TestCount:
    def test_lines(self):
        axes = plots.plot_cluster_count(COUNT)
        lines = {line.get_label(): line for line in axes.lines}
        np.testing.assert_allclose(lines["score"].get_ydata(), COUNT.score)
        assert lines["stability"].get_xdata().tolist() == [2, 3, 4, 5]
        assert axes.lines[-1].get_xdata() == [3, 3]
        assert axes.get_title() == "3 groups suggested"

    def test_one_group(self):
        one = ClusterCount(COUNT.counts, COUNT.modularity, COUNT.stability, p_value=0.5)
        axes = plots.plot_cluster_count(one)
        assert axes.get_title() == "1 group suggested"
        assert "data without groups" in axes.get_xlabel()

    def test_models(self, model):
        with pytest.raises(InputTypeError, match="n_clusters='auto'"):
            plots.plot_cluster_count(model)
        assert plt.get_fignums() == []


class TestMissing:
    @pytest.mark.parametrize("data", [VIEWS, "model", "frames"])
    def test_counts(self, model, data):
        given = (
            {"model": model, "frames": dict(zip(VIEWS.names, with_gaps(), strict=True))}.get(data, data)
            if isinstance(data, str)
            else data
        )
        axes = plots.plot_missing(given)
        bars, dots, beside = axes.child_axes
        kinds, counts = np.unique(VIEWS.mask, axis=0, return_counts=True)
        assert [bar.get_height() for bar in bars.patches] == sorted(counts.tolist(), reverse=True)
        assert [bar.get_width() for bar in beside.patches] == VIEWS.mask.sum(axis=0).tolist()
        assert [label.get_text() for label in dots.get_yticklabels()] == list(VIEWS.names)
        filled = dots.collections[1].get_offsets()
        assert len(filled) == kinds.sum()
        assert axes.get_title() == f"{int(VIEWS.mask.all(axis=1).sum())} of 90 samples have all views"

    def test_complete_data(self):
        axes = plots.plot_missing([np.eye(4)])
        assert [bar.get_height() for bar in axes.child_axes[0].patches] == [4]

    def test_many_patterns(self):
        rng = np.random.RandomState(0)
        mask = rng.uniform(size=(400, 6)) < 0.5
        mask[~mask.any(axis=1), 0] = True
        axes = plots.plot_missing(
            Views([np.ones((400, 1))] * 6, mask=mask, names=["a very long name of a view" * 3, *"bcdef"])
        )
        assert len(axes.child_axes[0].patches) == 20
        assert (
            axes.child_axes[1].get_xlabel() == f"the 20 most frequent of {len(np.unique(mask, axis=0))} sets of views"
        )
        assert len(axes.child_axes[1].get_yticklabels()[0].get_text()) < 30

    def test_bad_views(self):
        with pytest.raises(GapviewError):
            plots.plot_missing("text")


def with_gaps():
    whole = []
    for k, matrix in enumerate(VIEWS.matrices):
        full = np.full((N, matrix.shape[1]), np.nan)
        full[VIEWS.rows(k)] = matrix
        whole.append(full)
    return whole


def test_sizes(model):
    axes = plots.plot_cluster_sizes(model)
    totals = np.zeros(3)
    for bars in axes.containers:
        totals += [bar.get_width() for bar in bars]
    assert totals.tolist() == np.bincount(model.labels_).tolist()
    clear = [bar.get_width() for bar in axes.containers[0]]
    assert clear == np.bincount(model.labels_[model.confidence_ >= 0.8], minlength=3).tolist()
    assert texts(axes) == [str(count) for count in np.bincount(model.labels_)]


class TestConvergence:
    def test_the_line_is_the_objective(self):
        fitted = GRMF(3, random_state=0).fit(VIEWS)
        line = plots.plot_convergence(fitted).lines[0]
        np.testing.assert_array_equal(line.get_ydata(), fitted.objective_)
        axes = plots.plot_convergence(fitted, what="change")
        np.testing.assert_allclose(
            axes.lines[0].get_ydata(), np.abs(np.diff(fitted.objective_)) / fitted.objective_[:-1]
        )
        assert axes.lines[1].get_ydata()[0] == fitted.tol
        assert axes.get_title() == f"Settled after {fitted.n_iter_} iterations"

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_one_iteration(self):
        fitted = GRMF(3, max_iter=1, random_state=0).fit(VIEWS)
        assert plots.plot_convergence(fitted).get_title() == "Stopped after 1 iteration"
        plots.plot_convergence(fitted, what="change").figure.canvas.draw()

    def test_other_things(self, model):
        with pytest.raises(ParameterError, match="what must be one of 'objective', 'change'; got 'loss'"):
            plots.plot_convergence(model, what="loss")
        assert plt.get_fignums() == []


def test_survival(model):
    found = survival_by_group(model, TIMES, EVENTS)
    axes = plots.plot_survival(found, time="months")
    assert axes.get_xlabel() == "months"
    for curve in found.curves:
        (line,) = [one for one in axes.lines if one.get_label() == f"group {curve.group}"]
        np.testing.assert_array_equal(line.get_ydata()[1:], curve.share)
        marks = [one for one in axes.lines if one.get_marker() == "|" and one.get_color() == line.get_color()]
        assert marks[0].get_xdata().tolist() == curve.censored.tolist()
    assert len(axes.collections) == 3  # bands
    ticks = axes.get_xticks()
    counts = [str(n) for curve in found.curves for n in curve.at_risk(ticks)]
    assert [text for text in texts(axes) if text.isdigit()] == counts
    many = survival_by_group(np.arange(N) % 8, TIMES, EVENTS)
    assert not plots.plot_survival(many).collections
    with pytest.raises(InputTypeError, match="result of gapview.trust.survival_by_group"):
        plots.plot_survival(model)


def test_agreement(model):
    axes = plots.plot_view_agreement(model)
    values = model.view_agreement().above_chance
    assert texts(axes) == [f"{value:.2f}" for value in values.ravel()]
    assert [label.get_text() for label in axes.get_xticklabels()] == list(VIEWS.names)
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # group 0 at the top


def test_agreement_of_pairs(model):
    axes = plots.plot_view_agreement(model, pairs=True)
    values = np.array(texts(axes), dtype=float).reshape(3, 3)
    np.testing.assert_array_equal(values, values.T)
    found, sizes = model.view_agreement().pair_above_chance[:, 0, 1], np.bincount(model.labels_)
    assert values[0, 1] == pytest.approx(np.average(found, weights=sizes), abs=0.006)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(VIEWS.names)
    with pytest.raises(GapviewError, match="pairs must be True or False"):
        plots.plot_view_agreement(model, pairs="both")


class TestFeatures:
    def test_the_strongest(self, model):
        axes = plots.plot_top_features(model, 2, n_top=4)
        best = [one for one in top_features(model.feature_effects(), 100) if one.cluster == 2]
        best = sorted(best, key=lambda one: -abs(one.effect))[:4]
        assert [bar.get_width() for bar in axes.patches] == [one.effect for one in best]
        assert [label.get_text() for label in axes.get_yticklabels()] == [
            f"feature {b.feature} ({b.view})" for b in best
        ]

    def test_of_one_view(self, model):
        axes = plots.plot_top_features(model, 0, view="view_1")
        assert axes.get_title() == "What sets group 0 apart in view_1"
        assert len(axes.patches) == 6
        assert axes.get_legend() is None

    def test_endless_differences(self):
        rows = np.repeat([[0.0, 1.0], [1.0, 0.0]], 6, axis=0)
        axes = plots.plot_top_features(GRMF(2, n_neighbors=3, init="data").fit([rows]), 0)
        assert {text.strip("+−") for text in texts(axes)} == {"∞"}
        axes.figure.canvas.draw()

    def test_nothing_stands_out(self):
        fitted = GRMF(1, init="data").fit([np.eye(6)[:, :4] + 0.1])
        assert texts(plots.plot_top_features(fitted, 0)) == ["nothing stands out"]

    @pytest.mark.parametrize(
        ("more", "words"),
        [
            ({"group": 3}, "group must be one of the groups found, 0 to 2; got 3"),
            ({"group": "a"}, "group must be an integer"),
            ({"view": "blood"}, "view must be one of None, 'view_0', 'view_1', 'view_2'; got 'blood'"),
            ({"n_top": 0}, "n_top must be an integer of at least 1"),
        ],
    )
    def test_bad_arguments(self, model, more, words):
        with pytest.raises(GapviewError, match=words):
            plots.plot_top_features(model, **({"group": 0} | more))
        assert plt.get_fignums() == []


class TestGrid:
    def test_scores(self):
        scores = np.array([[50.0, 61.0, np.nan], [70.0, 66.0, 61.5]])
        axes = plots.plot_weight_grid(scores, [1, 100], [1e-5, 1e-3, 0.03], label="ACC (%)")
        assert texts(axes) == ["50.0", "61.0", "–", "70.0", "66.0", "61.5"]
        assert [label.get_text() for label in axes.get_yticklabels()] == ["10⁰", "10²"]
        assert [label.get_text() for label in axes.get_xticklabels()] == ["10⁻⁵", "10⁻³", "0.03"]
        assert axes.get_title() == "ACC (%) by weights"
        assert (min(axes.lines[0].get_xdata()), min(axes.lines[0].get_ydata())) == (0, 1)  # the best is framed

    def test_a_search(self):
        views = make_views(60, (6, 5), n_clusters=2, random_state=0).views
        search = GridSearchCV(GRMF(2, init="data", max_iter=1000), GRID | {"n_components": [2, 3]}, cv=2).fit(views)
        axes = plots.plot_weight_grid(search)
        found = search.cv_results_
        best = max(found["mean_test_score"])
        assert f"{best:.3f}"[:4] in {text[:4] for text in texts(axes)}
        assert len(texts(axes)) == 4
        chosen = search.best_params_
        row, column = (GRID[name].index(chosen[name]) for name in GRID)
        framed = axes.lines[1]
        scores = np.array(
            [
                [
                    max(
                        found["mean_test_score"][
                            (found["param_consensus_weight"] == a) & (found["param_sparsity_weight"] == b)
                        ]
                    )
                    for b in GRID["sparsity_weight"]
                ]
                for a in GRID["consensus_weight"]
            ]
        )
        assert scores[int(min(framed.get_ydata())), int(min(framed.get_xdata()))] == best == scores[row, column]

    def test_a_search_over_the_steps_of_a_pipeline(self):
        views = make_views(60, (6, 5), n_clusters=2, random_state=0).views
        steps = make_pipeline("passthrough", GRMF(2, init="data", max_iter=1000))
        search = GridSearchCV(steps, {f"grmf__{name}": values for name, values in GRID.items()}, cv=2).fit(views)
        assert len(texts(plots.plot_weight_grid(search))) == 4

    def test_equal_scores(self):
        plots.plot_weight_grid([[0.5]], [1.0], [0.0]).figure.canvas.draw()

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (([[1.0, 2.0]], [1.0], [1.0]), r"a column for each of the 1 sparsity_weights; got shape \(1, 2\)"),
            (([[1.0]], None, [1.0]), "consensus_weights must be the weights"),
            (([[1.0]], [1.0], ["a"]), "sparsity_weights must be a sequence of numbers"),
            (([[1.0]], [-1.0], [1.0]), "consensus_weights must be a sequence of numbers of at least 0"),
            (([[np.nan]], [1.0], [1.0]), "at least one number"),
            (("scores", [1.0], [1.0]), "a fitted search, or an array of numbers; got a str"),
        ],
    )
    def test_bad_scores(self, arguments, words):
        with pytest.raises(GapviewError, match=words):
            plots.plot_weight_grid(*arguments)
        assert plt.get_fignums() == []

    def test_searches_over_something_else(self):
        views = make_views(60, (6, 5), n_clusters=2, random_state=0).views
        search = GridSearchCV(GRMF(2, init="data"), {"consensus_weight": [1.0, 10.0]}, cv=2).fit(views)
        with pytest.raises(InputError, match="both weights, once each; it does not vary sparsity_weight"):
            plots.plot_weight_grid(search)
        with pytest.raises(InputError, match="A search has weights"):
            plots.plot_weight_grid(search, [1.0], [1.0])
