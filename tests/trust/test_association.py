"""Association of groups with batches and missing views: the numbers against their definitions, and what fits report."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from gapview import GRMF, BridgedGRMF, Views, load
from gapview.baselines import Concat, ImputedKMeans
from gapview.datasets import make_views
from gapview.errors import GapviewWarning, InputError, InputTypeError
from gapview.trust import associate, group_association, holm
from gapview.trust.association import count_patterns, missing_views_association


class TestAssociation:
    @given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=2, max_size=60))
    def test_the_statistic_is_pearsons(self, pairs):
        rows, columns = np.array(pairs).T
        found = associate(rows, columns)
        table = np.array([[(np.array(pairs) == [r, c]).all(axis=1).sum() for c in range(3)] for r in range(4)])
        table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        if min(table.shape) < 2:
            assert found is None
            return
        expected = stats.chi2_contingency(table, correction=False)
        assert found.statistic == pytest.approx(expected.statistic)
        assert 0 <= found.strength <= 1
        assert 0 < found.p_value <= 1
        if expected.expected_freq.min() >= 5:
            assert found.p_value == pytest.approx(expected.pvalue)
            assert found.n_tables == 0

    def test_the_p_value_is_that_of_shuffled_samples(self):
        state = np.random.RandomState(0)
        rows, columns = state.randint(3, size=40), state.randint(3, size=40)
        columns[:12] = rows[:12]
        found = associate(rows, columns)

        def statistic(order):
            return associate(rows, columns[order]).statistic

        shuffled = [statistic(state.permutation(40)) for _ in range(400)]
        naive = np.mean(np.array(shuffled) >= found.statistic * (1 - 1e-9))
        assert found.n_tables == 999
        assert abs(found.p_value - naive) < 0.04

    def test_what_follows_from_the_other_has_strength_one_and_chance_about_none(self):
        groups = np.repeat([0, 1, 2], 50)
        assert associate(groups, 2 - groups).strength == pytest.approx(1)
        assert associate(groups, np.tile([0, 1], 75)).strength < 0.1

    def test_few_samples_do_not_look_related(self):
        state = np.random.RandomState(1)
        found = [associate(state.randint(4, size=12), state.randint(4, size=12)) for _ in range(60)]
        assert np.mean([one.p_value < 0.05 for one in found]) < 0.15
        assert np.mean([one.strength for one in found]) < 0.3  # the plain V would be about 0.5

    def test_the_same_samples_give_the_same_p_value(self):
        rows, columns = np.array([0, 0, 1, 1, 2, 2, 0, 1]), np.array([0, 1, 1, 1, 0, 0, 0, 1])
        assert associate(rows, columns) == associate(rows, columns)

    @given(st.lists(st.floats(0, 1), max_size=12))
    def test_holm(self, p_values):
        corrected = holm(p_values)
        for p, found in zip(p_values, corrected, strict=True):
            # The largest of (m − rank) p over all p-values that are not larger
            smaller = sorted(q for q in p_values if q <= p)
            naive = max(min(1.0, (len(p_values) - rank) * q) for rank, q in enumerate(smaller))
            assert found == pytest.approx(naive)


class TestGroups:
    @given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([None, "a", "b", "c"])), min_size=1, max_size=60))
    def test_shares_and_p_values_are_those_of_the_counts(self, pairs):
        labels, parts = np.array([g for g, _ in pairs]), [part for _, part in pairs]
        found = group_association(labels, parts, "batch")
        known = [(g, part) for g, part in pairs if part is not None]
        names = {part for _, part in known}
        if len(names) < 2 or len({g for g, _ in known}) < 2:
            assert found is None
            return
        p_values = []
        for one in found.groups:
            own = [part for g, part in known if g == one.group]
            n_part = sum(part == one.part for _, part in known)
            assert one.n_samples == len(own)
            assert one.share == pytest.approx(own.count(one.part) / len(own))
            assert one.expected == pytest.approx(n_part / len(known))
            table = [[own.count(one.part), len(own) - own.count(one.part)]]
            table.append([n_part - table[0][0], len(known) - n_part - table[0][1]])
            p_values.append(min(1, len(names) * stats.fisher_exact(table, alternative="greater").pvalue))
        assert [one.adjusted for one in found.groups] == pytest.approx(holm(p_values), rel=1e-6)

    def test_one_group_of_one_small_batch_is_reported(self):
        """Cramér's V of all groups is below the threshold: nine of ten batches are spread over the other groups."""
        state = np.random.RandomState(0)
        batches = np.repeat(np.arange(10), 30)
        labels = np.where(batches == 0, 9, state.randint(9, size=300))
        found = group_association(labels, [f"b{b}" for b in batches], "batch")
        assert found.association.strength < 0.5
        assert [(one.group, one.part) for one in found.explained] == [(9, "b0")]
        assert found.is_warning
        assert "100% of group 9 (30 samples) are in 'b0'" in found.warning

    def test_chance_is_not_reported(self):
        state = np.random.RandomState(0)
        found = [
            group_association(state.randint(k, size=n), state.choice(list("abcd"), n).tolist(), factor)
            for k, n in ((2, 20), (3, 60), (10, 200), (30, 90))
            for factor in ("batch", "missing views")
            for _ in range(25)
        ]
        assert sum(one.is_warning for one in found) <= 2
        assert np.mean([one.association.level > 0 for one in found]) < 0.1


def shifted(seed, shift, n_samples=200, n_batches=3):
    """Return views whose features are shifted in every batch by some standard deviations, batches and true groups."""
    data = make_views(n_samples, n_clusters=4, missing_rate=0.3, random_state=seed)
    state = np.random.RandomState(seed)
    batches = state.randint(n_batches, size=n_samples)
    matrices = []
    for k, matrix in enumerate(data.views.matrices):
        offset = shift * matrix.std() * state.normal(size=(n_batches, matrix.shape[1]))
        matrices.append(matrix + offset[batches[data.views.rows(k)]])
    return data.views.with_matrices(matrices), batches, data.target


def warned(model, views, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(views, **options)
    return [str(one.message) for one in caught if issubclass(one.category, GapviewWarning)]


class TestFits:
    @pytest.mark.parametrize("method", [GRMF, BridgedGRMF, ImputedKMeans])
    def test_a_strong_batch_shift_is_reported(self, method):
        views, batches, truth = shifted(0, 2.0)
        model = method(4, random_state=0)
        (message,) = [text for text in warned(model, views, batch=batches) if "batch" in text]
        assert message.startswith("The groups are largely explained by batch (Cramér’s V = ")
        assert "within one batch" in message
        assert adjusted_rand_score(batches, model.labels_) > adjusted_rand_score(truth, model.labels_)
        assert np.array_equal(model.labels_, self.quietly(clone(model), views).labels_)  # batch only tests

    @staticmethod
    def quietly(model, views):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(views)

    def test_without_a_shift_nothing_is_reported(self):
        false_alarms = 0
        for seed in range(20):
            views, batches, _ = shifted(seed, 0.0)
            false_alarms += bool(warned(GRMF(4, random_state=0), views, batch=batches))
        assert false_alarms <= 1

    def test_groups_made_of_missing_views_are_reported(self):
        """Views of samples that lack the other are far from each other, and no neighbour is shared."""
        state = np.random.RandomState(0)
        centers = np.repeat([[0.0], [8.0]], 60, axis=0)
        both = np.arange(120) % 60 < 6
        mask = np.stack([centers[:, 0] == 0, centers[:, 0] > 0], axis=1) | both[:, None]
        views = Views([centers + state.normal(size=(120, 5)), centers + state.normal(size=(120, 4))], mask=mask)
        (message,) = warned(Concat(2, random_state=0), views)
        assert message.startswith("The groups are largely explained by which views a sample lacks")
        assert "pattern of missing views" in message

    def test_batches_in_every_container(self):
        views, batches, _ = shifted(0, 0.0)
        forms = {
            "list": batches.tolist(),
            "array": batches.astype(float),
            "column": batches[:, None],
            "series": pd.Series(batches),
            "categories": pd.Series(batches).astype("category"),
            "keyed": pd.Series(batches, index=views.sample_ids)[::-1],
            "mapping": dict(zip(views.sample_ids.tolist(), batches.tolist(), strict=True)),
            "polars": pl.Series(batches),
        }
        found = {name: GRMF(4, random_state=0).fit(views, batch=form).associations_ for name, form in forms.items()}
        assert len(set(map(str, found.values()))) == 1
        assert [one.factor for one in found["list"]] == ["missing views", "batch"]
        some = pd.Series(batches, index=views.sample_ids)[:150]
        assert GRMF(4, random_state=0).fit(views, batch=some).associations_[1].n_samples == 150

    @pytest.mark.parametrize(
        ("batch", "error", "message"),
        [
            ([1, 2, 3], InputError, "one value for each of the 200 samples; got 3"),
            ("plate", InputTypeError, "one value for each sample"),
            (np.arange(200), InputError, "several samples; got 200 different"),
            ([None] * 200, InputError, "no value for any sample"),
            (pd.Series([1, 2], index=["x", "y"]), InputError, "none is a sample"),
            (pd.Series([1, 2, 1, 2], index=[0, 1, 0, 1]), InputError, "occur twice: '0', '1'"),
            (pd.DataFrame({"a": [1] * 200}), InputTypeError, "one column"),
            ([[1, 2]] * 200, InputTypeError, "a number or text"),
        ],
    )
    def test_what_is_no_batch(self, batch, error, message):
        views = shifted(0, 0.0)[0]
        with pytest.raises(error, match=message):
            GRMF(4, random_state=0).fit(views, batch=batch)

    def test_a_single_batch_has_no_effect(self):
        views = shifted(0, 0.0)[0]
        with pytest.warns(GapviewWarning, match="batch has no effect"):
            GRMF(4, random_state=0).fit(views, batch=["a"] * 200)

    def test_they_are_stored_with_the_model(self, tmp_path):
        views, batches, _ = shifted(0, 0.0)
        model = BridgedGRMF(4, selection="fixed", random_state=0).fit(views, batch=batches)
        model.save(tmp_path / "m.gapview")
        assert load(tmp_path / "m.gapview").associations_ == model.associations_
        del model.associations_  # as in files of gapview 0.1
        model.save(tmp_path / "old.gapview")
        assert not hasattr(load(tmp_path / "old.gapview"), "associations_")

    def test_resamples_take_no_batches(self):
        views, batches, _ = shifted(0, 2.0)
        with pytest.warns(GapviewWarning, match="explained by batch"):
            model = GRMF(4, random_state=0).fit(views, batch=batches)
        assert len(model.cluster_stability(n_resamples=2, random_state=0).jaccard) == 4

    def test_fit_transform_and_fit_predict_take_them(self):
        views, batches, _ = shifted(0, 0.0)
        model = GRMF(4, random_state=0)
        assert model.fit_transform(views, batch=batches).shape[0] == 200
        assert len(model.associations_) == 2
        assert len(Concat(4, random_state=0).fit_predict(views, batch=batches)) == 200


class TestPatternsOfMissingViews:
    @given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=40))
    def test_patterns_are_the_distinct_rows(self, rows):
        mask = np.array(rows)
        patterns, codes = count_patterns(mask)
        assert [patterns[code].present for code in codes] == rows
        assert len({pattern.present for pattern in patterns}) == len(patterns)
        counts = [pattern.n_samples for pattern in patterns]
        assert counts == np.bincount(codes).tolist() == sorted(counts, reverse=True)

    def test_many_views(self):
        mask = np.random.RandomState(0).uniform(size=(50, 90)) < 0.5  # more patterns than an integer could number
        patterns, codes = count_patterns(mask)
        np.testing.assert_array_equal([patterns[code].present for code in codes], mask)

    def test_the_same_as_for_the_names_of_the_patterns(self):
        state = np.random.RandomState(0)
        labels, mask = state.randint(3, size=200), state.uniform(size=(200, 2)) < 0.7
        mask[~mask.any(axis=1)] = True
        patterns, codes = count_patterns(mask)
        names = [patterns[code].name(["a", "b"]) for code in codes]
        assert missing_views_association(labels, mask, ["a", "b"]) == group_association(labels, names, "missing views")
