"""Whether groups can be distinguished from data without groups: null data, p-values, models, commands, reports."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse, stats

import gapview
from gapview import GRMF, BridgedGRMF, Views
from gapview.choice import ClusterCount
from gapview.commands.cli import main
from gapview.datasets import hide_views, make_views
from gapview.errors import GapviewWarning, ParameterError
from gapview.report import write_clustering_report
from gapview.trust import assess_structure
from gapview.trust.agreement import view_agreement_test
from gapview.trust.assessment import small_groups
from gapview.trust.null_views import NULLS, NullViews, normal_scores, shrinkage, unimodal_quantiles


def noise(seed=0, n_samples=120, widths=(12, 15)):
    state = np.random.RandomState(seed)
    return hide_views(Views([state.normal(size=(n_samples, width)) for width in widths]), 0.2, random_state=seed)


def made(n_samples=120):
    return make_views(n_samples=n_samples, n_clusters=3, missing_rate=0.3, random_state=0).views


class TestNullData:
    def test_it_keeps_mask_ids_names_and_widths(self):
        state = np.random.RandomState(0)
        views = Views({"blood": state.normal(size=(40, 3)), "scans": state.normal(size=(40, 5))})
        views = hide_views(views, 0.3, random_state=0)
        for kind in NULLS:
            drawn = NullViews(views).draw(kind, state)
            assert drawn.names == views.names
            assert drawn.n_features == views.n_features
            np.testing.assert_array_equal(drawn.mask, views.mask)
            np.testing.assert_array_equal(drawn.sample_ids, views.sample_ids)

    @pytest.mark.parametrize("kind", NULLS)
    def test_it_keeps_means_variances_and_correlations(self, kind):
        state = np.random.RandomState(1)
        common = state.normal(size=(400, 1))
        one = np.hstack([common + 0.5 * state.normal(size=(400, 3)), 5 + 2 * state.normal(size=(400, 2))])
        two = -common + 0.7 * state.normal(size=(400, 4))
        null = NullViews(Views([one, two]))
        drawn = [null.draw(kind, state).matrices for _ in range(20)]
        ours = np.mean([np.corrcoef(np.hstack(each).T) for each in drawn], axis=0)
        np.testing.assert_allclose(ours, np.corrcoef(np.hstack([one, two]).T), atol=0.12)
        np.testing.assert_allclose(
            np.mean([each[0].mean(axis=0) for each in drawn], axis=0), one.mean(axis=0), atol=0.2
        )
        np.testing.assert_allclose(np.mean([each[0].std(axis=0) for each in drawn], axis=0), one.std(axis=0), rtol=0.1)

    def test_it_keeps_heavy_tails(self):
        values = np.exp(np.random.RandomState(2).normal(size=(500, 2)))
        drawn = NullViews(Views([values])).draw("gaussian", np.random.RandomState(0)).matrices[0]
        assert stats.ks_2samp(drawn[:, 0], values[:, 0]).pvalue > 0.01

    def test_it_removes_groups(self):
        values = np.concatenate([np.full(100, -3.0), np.full(100, 3.0)]) + np.random.RandomState(0).normal(size=200)
        drawn = NullViews(Views([values[:, None]])).draw("gaussian", np.random.RandomState(0)).matrices[0]
        assert (np.abs(drawn) < 1).sum() > (np.abs(values) < 1).sum() + 10

    def test_wide_sparse_and_constant_views(self):
        state = np.random.RandomState(0)
        text = sparse.random_array((30, 200), density=0.05, rng=np.random.default_rng(0), format="csr")
        constant = np.hstack([state.normal(size=(30, 2)), np.full((30, 1), 7.0)])
        drawn = NullViews(Views([text, constant])).draw("gaussian", state).matrices
        assert np.isfinite(drawn[0]).all()
        assert abs((drawn[0] != 0).mean() - 0.05) < 0.02
        assert (drawn[1][:, 2] == 7).all()

    def test_shrinkage_is_that_of_scikit_learn(self):
        from sklearn.covariance import ledoit_wolf_shrinkage

        for shape in ((30, 8), (12, 40)):
            rows = normal_scores(np.random.RandomState(0).normal(size=shape))
            assert shrinkage(rows) == pytest.approx(ledoit_wolf_shrinkage(rows, assume_centered=True))

    @pytest.mark.parametrize("seed", range(5))
    def test_quantiles_of_unimodal_margins(self, seed):
        state = np.random.RandomState(seed)
        for column in (state.normal(size=60), state.poisson(2, 60) * 1.0, np.exp(state.normal(size=7)), np.ones(4)):
            quantiles = unimodal_quantiles(column).at(np.linspace(0, 1, 201))
            assert (np.diff(quantiles) >= 0).all()
            assert column.min() <= quantiles[0]
            assert quantiles[-1] == pytest.approx(column.max())


class TestPValues:
    def test_against_a_naive_version(self):
        """The statistic of data and null data depends on the first value only, so that the p-value is known."""
        values = np.arange(40.0)[:, None]

        def fit(views, seed):
            return (np.arange(views.n_samples) % 2).astype(int)

        for place in range(4):
            drawn = []

            def clarity(views, labels, drawn=drawn, place=place):
                drawn.append(0.5 if not drawn else 1.0 if len(drawn) % 4 < place else 0.1)
                return drawn[-1]

            found, _ = assess_structure(fit, clarity, Views([values]), random_state=np.random.RandomState(0))
            known = found.null_statistics[0]
            known = known[~np.isnan(known)]
            n_as_large = int((known >= found.statistic).sum())
            expected = (1 + n_as_large) / 20 if len(known) == 19 else n_as_large / len(known)
            assert found.p_values[0] == expected
            assert found.has_structure == (n_as_large == 0 and found.p_values[1] <= 0.05)
            n_drawn = int(np.isfinite(found.null_statistics).sum())
            n_resampled = int(np.isfinite(found.null_stability).sum())
            assert found.n_fits == 6 + n_drawn + n_resampled
            # at least 19 groups of null data; further ones only where the modularity does not suffice
            assert n_resampled - n_as_large <= 2 * 5

    def test_the_statistic_is_the_score_of_numbers_of_groups(self):
        found = BridgedGRMF(3, selection="fixed", random_state=0).fit(made(60)).assess(random_state=0)
        assert found.statistic == pytest.approx(found.modularity**3 * found.stability)
        drawn, resampled = (np.isfinite(values) for values in (found.null_statistics, found.null_stability))
        assert drawn.all()
        assert (found.null_statistics[~resampled] < found.statistic).all()

    def test_few_groups_that_differ_from_fit_to_fit(self):
        """The stability of three groups varies by chance; their modularity distinguishes them from null data."""
        values = np.random.RandomState(0).normal(size=(60, 2))
        turns, modularities = iter([0, 0, 1, 0, 1, 1]), iter([0.45])  # the data and their resamples come first

        def fit(views, seed):
            return (views.sample_ids.astype(int) // (10 if next(turns, 0) else 20)) % 3

        def clarity(views, labels):
            return next(modularities, 0.35)

        found, _ = assess_structure(fit, clarity, Views([values]), random_state=np.random.RandomState(0))
        assert found.stability * 0.45 < np.nanmax(found.null_stability) * 0.35
        assert found.p_value == 0.05

    def test_too_few_null_data(self):
        with pytest.raises(ParameterError, match="n_null=5 .* Raise n_null to 19"):
            BridgedGRMF(3, selection="fixed", random_state=0).fit(made()).assess(n_null=5)

    def test_agreement_of_views(self):
        state = np.random.RandomState(0)
        values = state.normal(size=(60, 4))
        agree = view_agreement_test(Views([values, values + 0.1 * state.normal(size=(60, 4))]), state)
        assert agree[0] > 0.5
        assert agree[1] == 1 / 200
        assert view_agreement_test(Views([values, state.normal(size=(60, 4))]), state)[1] > 0.01
        assert np.isnan(view_agreement_test(Views([values]), state)).all()

    def test_small_groups(self):
        assert small_groups(np.repeat([0, 1], 5)) is None
        assert "2 of 3 groups have" in small_groups(np.array([0, 0, 1, 1, *[2] * 9]))


class TestModels:
    def test_auto_on_noise_is_one_group(self, tmp_path):
        with pytest.warns(GapviewWarning, match="One group rather than"):
            model = BridgedGRMF("auto", random_state=0).fit(noise())
        assert not model.labels_.any()
        assert model.cluster_count_.suggested == 1
        assert model.cluster_count_.p_value == model.assessment_.p_value > 0.05
        assert model.cluster_centers_.shape[0] == 1
        assert not model.predict(model.views_).any()
        with pytest.warns(GapviewWarning, match="The other views hardly predict"):
            recovered = model.recover()
        assert all(np.isfinite(view).all() for view in recovered)
        assert model.view_agreement().above_chance.shape == (1, 2)
        np.testing.assert_array_equal(model.cluster_stability(n_resamples=2, random_state=0).jaccard, [1.0])
        model.save(tmp_path / "one.gapview")
        again = gapview.load(tmp_path / "one.gapview")
        assert again.assessment_.p_value == model.assessment_.p_value
        text = write_clustering_report(again, tmp_path / "r.html").read_text(encoding="utf-8")
        assert "One group was chosen because" in text

    @pytest.mark.parametrize("method", [GRMF, BridgedGRMF])
    def test_given_groups_of_noise_give_a_warning(self, method):
        more = {} if method is GRMF else {"selection": "fixed"}
        model = method(4, random_state=0, **more).fit(noise())
        labels = model.labels_.copy()
        with pytest.warns(GapviewWarning, match="cannot be distinguished from data without groups"):
            found = model.assess(random_state=0)
        np.testing.assert_array_equal(model.labels_, labels)
        assert not found.has_structure
        assert found.group_stability.shape == (4,)
        assert model.assessment_ is found
        assert str(found).startswith("The groups cannot be distinguished")

    @pytest.mark.parametrize("method", [GRMF, BridgedGRMF])
    def test_structure_gives_no_warning(self, method):
        more = {"init": "data"} if method is GRMF else {"selection": "fixed"}
        found = method(3, random_state=0, **more).fit(made()).assess(random_state=0)
        assert found.p_value == 0.05
        assert found.has_structure
        assert found.unstable_groups == []
        assert found.agreement_p_value == 0.005

    def test_the_same_seed_gives_the_same_result(self):
        model = BridgedGRMF(3, selection="fixed", random_state=0).fit(made(60))
        one, other = (model.assess(random_state=1) for _ in range(2))
        np.testing.assert_array_equal(one.null_statistics, other.null_statistics)

    def test_one_group_and_many_groups(self):
        assert np.isnan(BridgedGRMF(1, random_state=0).fit(made(60)).assess().p_value)
        model = BridgedGRMF(25, selection="fixed", random_state=0).fit(noise(n_samples=60))
        with pytest.warns(GapviewWarning) as caught:
            model.assess(random_state=0)
        assert any("fewer than 5 samples" in str(each.message) for each in caught)

    def test_a_count_with_the_evidence(self):
        scores = np.array([2, 3]), np.array([0.4, 0.55]), np.array([0.9, 0.8])
        assert ClusterCount(*scores, p_value=0.05).suggested == 3
        one = ClusterCount(*scores, p_value=0.3)
        assert (one.suggested, one.runner_up, one.best) == (1, 3, 3)
        assert one.reason().startswith("One group rather than 3")

    def test_a_checkpoint_gives_the_same_model(self, tmp_path):
        plain = BridgedGRMF("auto", max_clusters=4, selection="fixed", random_state=0).fit(made(60))
        again = BridgedGRMF("auto", max_clusters=4, selection="fixed", random_state=0)
        with gapview.persist.checkpoints.writing_every(0.0, 1.0):
            again.fit(made(60), checkpoint=tmp_path / "fit")
        np.testing.assert_array_equal(plain.assessment_.null_statistics, again.assessment_.null_statistics)
        np.testing.assert_array_equal(plain.labels_, again.labels_)


def files_of(views, folder):
    paths = []
    for k, matrix in enumerate(views.matrices):
        path = folder / f"view{k}.csv"
        lines = [",".join(["id", *(f"v{k}f{j}" for j in range(matrix.shape[1]))])]
        lines += [f"s{i}," + ",".join(f"{x:.4f}" for x in row) for i, row in zip(views.rows(k), matrix, strict=True)]
        path.write_text("\n".join(lines) + "\n")
        paths.append(str(path))
    return paths


def run(views, folder, *options):
    found = CliRunner().invoke(main, ["cluster", *files_of(views, folder), "-o", str(folder / "out"), *options])
    return found.exit_code, " ".join(found.output.split())


class TestCommands:
    def test_noise_without_a_number(self, tmp_path):
        code, text = run(noise(), tmp_path, "-k", "auto", "--no-report", "--strict")
        assert code == 3
        assert "Warning One group rather than" in text
        assert "Groups 120 samples in one group, the number that the data suggest." in text
        assert (tmp_path / "out" / "labels.csv").exists()

    def test_noise_with_a_number(self, tmp_path):
        code, text = run(noise(), tmp_path, "-k", "4")
        assert code == 0
        assert "Warning The groups cannot be distinguished from data without groups" in text
        assert "Trust The groups cannot be distinguished" in text
        assert "median confidence" not in text
        record = json.loads((tmp_path / "out" / "run.json").read_text())
        assert record["assessment"]["p_value"] > 0.05
        assert any("cannot be distinguished" in each for each in record["warnings"])
        page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
        assert re.search(r"cannot be distinguished from\s+data without groups", page)

    def test_strict_with_structure(self, tmp_path):
        code, text = run(made(), tmp_path, "-k", "3", "--strict", "--no-report")
        assert code == 0
        assert "Warning" not in text
        assert "Trust The groups can be distinguished" in text
        assert "the median confidence is" in text

    def test_groups_of_two(self, tmp_path):
        code, text = run(noise(n_samples=60), tmp_path, "-k", "30", "--no-report")
        assert code == 0
        assert "have fewer than 5 samples" in text
        assert "median confidence" not in text

    def test_without_the_test(self, tmp_path):
        code, text = run(noise(n_samples=60), tmp_path, "-k", "2", "--no-report", "--no-assess")
        assert code == 0
        assert "distinguished" not in text
        code, text = run(noise(n_samples=60), tmp_path, "-k", "2", "--strict", "--no-assess")
        assert code == 2
