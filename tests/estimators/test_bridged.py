"""BridgedGRMF: what it chooses, what it keeps, and what it does better than the paper's method on real data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from gapview import BridgedGRMF, Views
from gapview.choice.representation import IterationLimits, Setting
from gapview.choice.selection import choose, try_settings
from gapview.choice.trials import Drawn
from gapview.datasets import make_views, paired_split
from gapview.errors import GapviewError, ParameterError
from gapview.estimators.predict import predict_labels, project
from gapview.metrics import clustering_accuracy
from gapview.views.linking import parts_of


@pytest.fixture(scope="module")
def made():
    return make_views(n_samples=150, n_clusters=3, missing_rate=0.4, random_state=0)


@pytest.fixture(scope="module")
def fitted(made):
    return BridgedGRMF(3, random_state=0).fit(made.views)


def test_good_with_nothing_else_set(made, fitted):
    assert clustering_accuracy(made.target, fitted.labels_) > 0.95


def test_what_a_fit_leaves_behind(made, fitted):
    n, k = 150, fitted.setting_.n_components
    assert fitted.embedding_.shape == (n, k)
    assert [codes.shape for codes in fitted.codes_] == [(n, k), (n, k)]
    assert fitted.graph_.shape == (n, n)
    for basis, features in zip(fitted.bases_, made.views.n_features, strict=True):
        np.testing.assert_allclose(basis @ basis.T, np.eye(min(k, features)), atol=1e-6)
    assert np.diff(fitted.objective_).max(initial=-1) <= 1e-9 * fitted.objective_[0]
    np.testing.assert_allclose(np.mean(fitted.codes_, axis=0), fitted.embedding_, atol=1e-12)
    assert fitted.view_weights_.mean() == pytest.approx(1)


class TestSelection:
    def test_says_what_was_tried_and_why(self, fitted):
        selection = fitted.selection_
        # Two ways of scaling, three bridges, three reaches; and whitened views
        assert len(selection.trials) == 19
        best = max(trial.score for trial in selection.trials)
        assert best * 0.999 <= selection.trials[selection.chosen].score <= best
        assert fitted.setting_ == selection.setting
        table = selection.table
        assert [row["score"] for row in table] == sorted((row["score"] for row in table), reverse=True)
        assert [row["chosen"] for row in table].count(True) == 1
        text = str(selection)
        assert "19 candidates" in text
        assert fitted.setting_.bridge in text

    def test_is_reproducible(self, made, fitted):
        again = BridgedGRMF(3, random_state=0).fit(made.views)
        assert again.setting_ == fitted.setting_
        np.testing.assert_array_equal(again.labels_, fitted.labels_)

    def test_what_is_given_is_kept(self, made):
        given = {
            "bridge": "union",
            "reach": 2,
            "scale": "standard",
            "n_neighbors": 4,
            "n_components": 5,
            "consensus_weight": 7.0,
            "sparsity_weight": 0.01,
        }
        model = BridgedGRMF(3, random_state=0, **given).fit(made.views)
        assert model.setting_ == Setting(("standard",) * 2, (4, 4), "union", 2, 5, 7.0, 0.01)
        assert len(model.selection_.trials) == 1
        partly = BridgedGRMF(3, random_state=0, reach=2, scale="unit").fit(made.views)
        assert {trial.setting.reach for trial in partly.selection_.trials} == {2}
        assert {trial.setting.bridge for trial in partly.selection_.trials} == {"union", "joint", "both"}

    @pytest.mark.parametrize("seed", range(3))
    def test_equal_groups_are_found_with_the_least_work(self, seed):
        easy = make_views(200, (10, 12), n_clusters=3, separation=12.0, missing_rate=0.3, random_state=seed)
        selection = BridgedGRMF(3, random_state=0).fit(easy.views).selection_
        best = max(selection.trials, key=lambda trial: trial.score)
        chosen = selection.trials[selection.chosen]
        assert adjusted_rand_score(best.labels, chosen.labels) >= 0.995
        assert chosen.setting.bridge == "union"

    def test_fixed_tries_one(self, made):
        model = BridgedGRMF(3, selection="fixed", random_state=0).fit(made.views)
        assert len(model.selection_.trials) == 1
        assert (model.setting_.bridge, model.setting_.reach) == ("both", 4)
        assert model.view_weights_.tolist() == [1.0, 1.0]

    def test_score_by_hand(self, made):
        views = made.views
        settings = [
            Setting(("unit",) * 2, (5, 5), bridge, reach, 6, 1.0, 1e-3)
            for bridge in ("union", "joint")
            for reach in (1, 4)
        ]
        candidates = list(
            try_settings(Drawn(views, parts_of(views.mask)), settings, 3, (1.0, 1.0), 0, IterationLimits(50, 1e-5))
        )
        # Groups drawn at random, too, so that the judges differ
        ground = candidates[0][1]
        candidates.append((settings[0], ground, np.random.RandomState(0).randint(3, size=150)))
        selection = choose(candidates)
        from gapview.graph.knn import modularity

        labelings = [labels for _, _, labels in candidates]
        judged = {}
        for kind in ("union", "joint"):
            values = np.array([max(modularity(ground.graphs[kind], labels), 0) for labels in labelings])
            judged[kind] = values / values.max()
        trust = min(1.0, ground.explained / 0.3)
        for i, trial in enumerate(selection.trials):
            others = [adjusted_rand_score(labelings[i], labels) for j, labels in enumerate(labelings) if j != i]
            judges = judged["union"][i] ** (1 - trust) * judged["joint"][i] ** trust
            assert trial.score == pytest.approx(judges + (1 - trust / 2) * np.mean(others))
        assert np.argmin([trial.score for trial in selection.trials]) == len(candidates) - 1

    def test_large_data_are_tried_in_part(self, made, monkeypatch):
        monkeypatch.setattr("gapview.views.cells.N_TRIED", 100)
        model = BridgedGRMF(3, random_state=0).fit(made.views)
        assert 100 <= model.selection_.n_samples < 150  # a few more, so that no view is rare among them
        assert model.labels_.shape == (150,)
        assert clustering_accuracy(made.target, model.labels_) > 0.95

    def test_a_rare_view_is_not_lost_in_the_part(self, made, monkeypatch):
        monkeypatch.setattr("gapview.views.cells.N_TRIED", 60)
        rare = np.full((150, 4), np.nan)
        rare[140:] = np.random.RandomState(0).normal(size=(10, 4))
        views = Views([_written_out(made.views, 0), _written_out(made.views, 1), rare])
        for seed in range(3):
            assert BridgedGRMF(3, random_state=seed).fit(views).labels_.shape == (150,)


class TestNumberOfGroups:
    def test_is_suggested_with_its_evidence(self, made):
        model = BridgedGRMF("auto", random_state=0).fit(made.views)
        assert model.cluster_count_.suggested == 3
        assert len(model.cluster_centers_) == 3
        assert clustering_accuracy(made.target, model.labels_) > 0.95
        assert "3 clusters rather than" in model.cluster_count_.reason()
        assert model.cluster_count_.counts.tolist() == list(range(2, 21))
        assert model.score(made.views) > 0.3

    def test_range_ends_where_told(self, made):
        model = BridgedGRMF("auto", max_clusters=4, selection="fixed", random_state=0).fit(made.views)
        assert model.cluster_count_.counts.tolist() == [2, 3, 4]

    def test_too_few_samples(self):
        with pytest.raises(GapviewError, match="at least 9 samples"):
            BridgedGRMF("auto").fit(make_views(n_samples=8, n_clusters=2, random_state=0).views)

    def test_absent_when_the_number_is_given(self, fitted):
        assert not hasattr(fitted, "cluster_count_")


class TestTrust:
    def test_confidence_tells_the_middle_from_the_rim(self, made, fitted):
        assert fitted.confidence_.shape == (150,)
        assert ((fitted.confidence_ >= 0) & (fitted.confidence_ <= 1)).all()
        assert fitted.confidence_.mean() > 0.9

    def test_stable_groups_come_back_without_choosing_again(self, fitted):
        stability = fitted.cluster_stability(n_resamples=4, random_state=0)
        assert stability.jaccard.min() > 0.9
        given = fitted._resample_parameters(fitted.views_, np.arange(150))
        pinned = clone(fitted).set_params(random_state=0, **given).fit(fitted.views_)
        assert len(pinned.selection_.trials) == 1
        assert pinned.setting_ == fitted.setting_
        np.testing.assert_array_equal(pinned.labels_, fitted.labels_)

    def test_views_and_features(self, made, fitted):
        assert fitted.view_agreement().above_chance.shape == (3, 2)
        effects = fitted.feature_effects()
        assert len(effects) == 2

    def test_needs_a_fit(self):
        for ask in ("cluster_stability", "view_agreement", "feature_effects"):
            with pytest.raises(GapviewError, match="not fitted"):
                getattr(BridgedGRMF(3), ask)()


class TestViewWeights:
    def test_noise_loses_its_say(self, made):
        noise = np.random.RandomState(0).normal(size=(150, 30))
        views = {"a": made.views.matrices[0], "b": made.views.matrices[1]}
        frames = Views([_written_out(made.views, 0), _written_out(made.views, 1), noise], names=[*views, "noise"])
        model = BridgedGRMF(3, random_state=0).fit(frames)
        assert model.view_weights_[2] < 0.3
        assert clustering_accuracy(made.target, model.labels_) > 0.95

    def test_given_ones_count_relative_to_each_other(self, made):
        small, large = (
            BridgedGRMF(3, selection="fixed", view_weights=weights, random_state=0).fit(made.views)
            for weights in ([1, 3], {"view_0": 1e200, "view_1": 3e200})
        )
        np.testing.assert_allclose(small.view_weights_, [0.5, 1.5])
        np.testing.assert_allclose(large.view_weights_, [0.5, 1.5])
        np.testing.assert_allclose(small.embedding_, large.embedding_)
        even = BridgedGRMF(3, selection="fixed", view_weights=None, random_state=0).fit(made.views)
        assert not np.allclose(even.embedding_, small.embedding_)

    @pytest.mark.parametrize("weights", ["much", [1.0], [1.0, 0.0], [1.0, -1.0], [1.0, np.nan], {"view_0": 1.0}, 3.0])
    def test_bad_ones_are_refused(self, made, weights):
        with pytest.raises(GapviewError, match="view_weights"):
            BridgedGRMF(3, view_weights=weights).fit(made.views)


def _written_out(views, k):
    whole = np.full((len(views), views.n_features[k]), np.nan)
    whole[views.rows(k)] = views.matrices[k]
    return whole


def test_scale_of_each_view(made):
    for scale in (["unit", None], {"view_1": None, "view_0": "unit"}):
        model = BridgedGRMF(3, scale=scale, selection="fixed", random_state=0).fit(made.views)
        assert model.setting_.scales == ("unit", None)
    for scale in (["unit"], {"view_0": "unit"}, 3, ["unit", "big"], ["unit", "auto"]):
        with pytest.raises(GapviewError, match="scale"):
            BridgedGRMF(3, scale=scale).fit(made.views)


@pytest.mark.parametrize(
    ("name", "value"),
    [("bridge", "other"), ("reach", 0), ("selection", "best"), ("scale", "big"), ("n_components", 0), ("tol", -1.0)],
)
def test_bad_parameters_are_named(made, name, value):
    with pytest.raises(ParameterError, match=name):
        BridgedGRMF(3, **{name: value}).fit(made.views)


def test_samples_that_share_no_view_with_each_other():
    """Three views in a chain: nobody has the first and the last, and the bridge goes over the middle."""
    data = make_views(n_samples=240, n_clusters=3, n_features=(15, 15, 15), separation=4.0, random_state=1)
    mask = np.zeros((240, 3), dtype=bool)
    mask[:80, [0, 1]] = mask[80:160, 1:] = True
    mask[160:200, 0] = mask[200:, 2] = True
    model = BridgedGRMF(3, random_state=0).fit(Views(list(data.views.matrices), mask=mask))
    assert clustering_accuracy(data.target, model.labels_) > 0.9


@pytest.mark.filterwarnings("ignore:No sample links")
def test_views_without_a_common_sample():
    data = make_views(n_samples=100, n_clusters=2, separation=4.0, random_state=1)
    mask = np.zeros((100, 2), dtype=bool)
    mask[:50, 0] = mask[50:, 1] = True
    model = BridgedGRMF(2, random_state=0).fit(Views(list(data.views.matrices), mask=mask))
    assert model.selection_.explained == 0
    assert {trial.setting.bridge for trial in model.selection_.trials} == {"union"}
    asked = BridgedGRMF(2, bridge="joint", random_state=0).fit(Views(list(data.views.matrices), mask=mask))
    assert {trial.setting.bridge for trial in asked.selection_.trials} == {"joint"}
    assert clustering_accuracy(data.target[:50], model.labels_[:50]) > 0.9


class TestNewSamples:
    def test_known_samples_stay_where_they_are(self, made, fitted):
        assert adjusted_rand_score(fitted.predict(made.views), fitted.labels_) > 0.9

    def test_one_by_one_or_all_together(self, made, fitted):
        part = made.views[:7]
        np.testing.assert_allclose(
            np.concatenate([fitted.transform(part[[i]]) for i in range(7)]), fitted.transform(part), atol=1e-12
        )

    @pytest.mark.parametrize("method", ["bridge", "neighbors", "basis"])
    def test_recovered_views_are_complete_and_keep_what_is_there(self, made, fitted, method):
        for given, recovered in (
            (made.views, fitted.recover(method=method)),
            (made.views[:9], fitted.recover(made.views[:9], method=method)),
        ):
            for k, matrix in enumerate(recovered):
                assert np.isfinite(matrix).all()
                np.testing.assert_array_equal(matrix[given.rows(k)], given.matrices[k])

    def test_sparse_views_stay_sparse(self):
        rng = np.random.RandomState(0)
        target = np.arange(80) % 2
        words = (rng.uniform(size=(80, 200)) < np.where(target[:, None] == np.arange(200) % 2, 0.08, 0.01)).astype(
            float
        )
        words[~words.any(axis=1), 0] = 1.0
        words *= rng.uniform(1, 2, size=words.shape)  # equal distances would be ordered by rounding
        mask = rng.uniform(size=(80, 2)) < 0.7
        mask[~mask.any(axis=1), 0] = True
        model = BridgedGRMF(2, random_state=0).fit(
            [sparse.csr_array(words), sparse.csr_array(words[:, ::-1])], mask=mask
        )
        recovered = model.recover()
        assert all(sparse.issparse(matrix) for matrix in recovered)
        dense = BridgedGRMF(2, random_state=0).fit([words, words[:, ::-1]], mask=mask)
        assert adjusted_rand_score(dense.labels_, model.labels_) == pytest.approx(1.0)


def hidden_errors(model, views, whole, method):
    """Squared error of recovered rows, as a share of what the mean of the view errs."""
    recovered = list(model.recover(method=method).values())  # the views of this data set have names
    shares = []
    for k, matrix in enumerate(whole.matrices):
        hidden = ~views.mask[:, k]
        by_mean = np.square(matrix[hidden] - views.matrices[k].mean(axis=0)).sum()
        shares.append(np.square(matrix[hidden] - recovered[k][hidden]).sum() / by_mean)
    return np.array(shares)


@pytest.fixture(scope="module", params=[0.1, 0.5, 0.9])
def fold(request, dataset):
    data = dataset("handwritten_2v")
    views = paired_split(data.views, request.param, order=data.folds[0])
    return request.param, data, views, BridgedGRMF(10, random_state=0).fit(views)


@pytest.mark.data
class TestHandwritten:
    def test_accuracy(self, fold):
        rate, data, _, model = fold
        floor = {0.1: 0.86, 0.5: 0.91, 0.9: 0.94}[rate]  # one fold: the floors of five folds are 86, 91 and 95
        assert clustering_accuracy(data.target, model.labels_) >= floor

    def test_recovers_better_than_the_latent_space_alone(self, fold):
        _, data, views, model = fold
        across = hidden_errors(model, views, data.views, "bridge")
        assert (across < hidden_errors(model, views, data.views, "neighbors")).all()
        assert (across < 0.85).all()


@pytest.mark.data
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_new_samples_are_placed_better_than_by_projection(dataset, rate):
    data = dataset("handwritten_2v")
    views = paired_split(data.views, rate, order=data.folds[0])
    order = np.random.RandomState(0).permutation(len(views))
    new, known = np.sort(order[:400]), np.sort(order[400:])
    model = BridgedGRMF(10, selection="fixed", random_state=0).fit(views[known])
    along = BridgedGRMF(10, selection="fixed", random_state=0).fit(views).labels_[new]
    across = adjusted_rand_score(along, model.predict(views[new]))
    projected = predict_labels(model, views[new], project(model, views[new], model.view_weights_), "neighbors", 10)
    assert across > adjusted_rand_score(along, projected)
    assert across > 0.8


class TestFoundInReview:
    def test_few_distinct_rows_give_the_same_groups_every_time(self):
        for seed in (2, 3):
            rows = np.eye(300)[np.random.RandomState(seed).randint(300, size=60)]
            first, second = (BridgedGRMF(5, random_state=0).fit([rows]) for _ in range(2))
            np.testing.assert_array_equal(first.embedding_, second.embedding_)

    @pytest.mark.filterwarnings("ignore::gapview.errors.GapviewWarning")
    def test_rows_that_point_the_same_way_are_told_apart_by_their_length(self):
        rng = np.random.RandomState(0)
        sizes = np.r_[rng.uniform(1, 2, 30), rng.uniform(8, 9, 30)]
        model = BridgedGRMF(2, random_state=0).fit([np.outer(sizes, rng.uniform(1, 2, 6))])
        assert clustering_accuracy(np.repeat([0, 1], 30), model.labels_) == 1.0
        one_column = np.zeros((60, 20))
        one_column[:, 3] = rng.randint(1, 9, 60)
        BridgedGRMF(2, random_state=0).fit([one_column, rng.normal(size=(60, 5))])

    def test_number_of_components_follows_the_counts_tried(self, made):
        model = BridgedGRMF("auto", max_clusters=100_000, selection="fixed", random_state=0).fit(made.views[:60])
        assert model.cluster_count_.counts.max() == 20

    def test_new_rows_of_zeros_have_no_code(self):
        rng = np.random.RandomState(0)
        rows = np.abs(rng.normal(size=(60, 10))) + np.repeat(rng.uniform(0, 5, (3, 10)), 20, axis=0)
        model = BridgedGRMF(3, scale="unit", selection="fixed", random_state=0).fit([rows])
        assert not model.transform([np.zeros((1, 10))]).any()

    def test_weights_take_what_a_model_gives(self, made, fitted):
        again = BridgedGRMF(3, view_weights=fitted.view_weights_, random_state=0).fit(made.views)
        np.testing.assert_allclose(again.view_weights_, fitted.view_weights_)
