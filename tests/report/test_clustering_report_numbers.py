"""The numbers behind the report, each against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gapview import Views
from gapview.report.clustering.fit import data_digest
from gapview.report.clustering.samples import draw_samples, summarise_gaps
from gapview.report.clustering.survival import find_pairs
from gapview.trust.survival import kaplan_meier, log_rank


def codes(n_levels):
    return st.lists(st.integers(0, n_levels - 1), min_size=2, max_size=40)


class TestSurvival:
    @given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=30))
    def test_kaplan_meier(self, rows):
        times, events = np.array([t for t, _ in rows], float), np.array([e for _, e in rows], float)
        curve = kaplan_meier(times, events)
        share = 1.0
        for moment, found in zip(curve.times, curve.share, strict=True):
            at_risk = sum(t >= moment for t, _ in rows)
            share *= 1 - sum(t == moment and e for t, e in rows) / at_risk
            assert found == pytest.approx(share)
        assert curve.n_events == sum(e for _, e in rows)
        reached = [t for t, s in zip(curve.times, curve.share, strict=True) if s <= 0.5 + 1e-9]
        assert curve.median == reached[0] if reached else np.isnan(curve.median)

    def test_log_rank_of_two_groups_is_scipys(self):
        state = np.random.RandomState(0)
        times = np.ceil(state.exponential(10, size=80))  # with ties
        events, groups = state.randint(2, size=80), state.randint(2, size=80)
        times[groups == 1] *= 2

        def sample(g):
            chosen = groups == g
            return stats.CensoredData.right_censored(times[chosen], events[chosen] == 0)

        expected = stats.logrank(sample(0), sample(1))
        statistic, degrees, p_value = log_rank(times, events, groups)
        assert statistic == pytest.approx(expected.statistic**2)
        assert p_value == pytest.approx(expected.pvalue)
        assert degrees == 1

    def test_log_rank_of_many_groups(self):
        state = np.random.RandomState(1)
        groups, events = state.randint(4, size=300), np.ones(300)
        same, other = state.exponential(1, size=300), state.exponential(1 + 2.0 * (groups == 3))
        assert log_rank(same, events, groups)[2] > 0.05
        assert log_rank(other, events, groups)[1:] == (3, pytest.approx(0, abs=1e-3))
        swapped = np.array([2, 0, 3, 1])[groups]
        assert log_rank(other, events, swapped)[0] == pytest.approx(log_rank(other, events, groups)[0])

    def test_rounding_adds_no_degree_of_freedom(self):
        for seed in range(5):
            state = np.random.RandomState(seed)
            groups, events = state.randint(3, size=8000), state.randint(2, size=8000)
            assert log_rank(state.exponential(1.0 + groups), events, groups)[1] == 2

    def test_nothing_to_compare(self):
        assert log_rank(np.arange(5.0), np.zeros(5), np.array([0, 0, 1, 1, 1])) is None
        assert log_rank(np.arange(5.0), np.ones(5), np.zeros(5, int)) is None

    @pytest.mark.parametrize(
        ("numbers", "flags", "expected"),
        [
            (["time", "age"], ["event"], [("time", "event")]),
            (["OS.time", "PFI.time"], ["OS", "PFI"], [("OS.time", "OS"), ("PFI.time", "PFI")]),
            (["survival_days"], ["dead"], [("survival_days", "dead")]),
            (["os_months"], ["os_status"], [("os_months", "os_status")]),
            (["daysToDeath"], ["death"], [("daysToDeath", "death")]),
            (["age"], ["event"], []),
            (["time"], ["smoker"], []),
            (["relapse_time"], ["death_event", "relapse"], [("relapse_time", "relapse")]),
            (["time"], ["event", "status"], []),  # nobody can tell which
        ],
    )
    def test_pairs_are_found_by_their_names(self, numbers, flags, expected):
        assert find_pairs(numbers, flags) == expected


class TestGaps:
    def views(self, mask):
        return Views([np.ones((len(mask), 2)), np.ones((len(mask), 3)), np.ones((len(mask), 1))], mask=mask)

    def test_patterns_are_counted_and_shares_are_those_of_the_groups(self):
        mask = np.array([[1, 1, 1]] * 3 + [[1, 0, 1]] * 4 + [[0, 1, 0]] * 2, dtype=bool)
        labels = np.array([0, 0, 0, 1, 1, 1, 1, 0, 0])
        gaps = summarise_gaps(self.views(mask), labels, 3)
        assert [(p.present, p.n_samples) for p in gaps.patterns] == [
            ((True, False, True), 4),
            ((True, True, True), 3),
            ((False, True, False), 2),
        ]
        assert all((mask[i] == gaps.patterns[code].present).all() for i, code in enumerate(gaps.codes))
        np.testing.assert_allclose(gaps.share[:2], [[0.6, 1.0, 0.6], [1.0, 0.0, 1.0]])
        assert np.isnan(gaps.share[2]).all()  # a group without samples
        assert gaps.tested.association.strength > 0.5

    def test_nothing_missing_and_one_group(self):
        whole = summarise_gaps(self.views(np.ones((6, 3), bool)), np.array([0, 1] * 3), 2)
        assert whole.tested is None
        assert all(gap.association is None and np.isnan(gap.adjusted) for gap in whole.views)
        mask = np.array([[1, 1, 1], [1, 0, 0]] * 4, dtype=bool)
        assert summarise_gaps(self.views(mask), np.zeros(8, int), 1).tested is None


@given(codes(6), st.integers(1, 30))
def test_drawn_samples_come_from_every_stratum_by_its_share(strata, most):
    strata = np.array(strata)
    drawn = draw_samples(strata, most)
    sizes, taken = np.bincount(strata, minlength=6), np.bincount(strata[drawn], minlength=6)
    assert len(np.unique(drawn)) == len(drawn) <= most
    assert (np.diff(drawn) > 0).all()
    if len(strata) <= most:
        assert len(drawn) == len(strata)
        return
    n_strata = int((sizes > 0).sum())
    if n_strata <= most // 2:
        assert (taken[sizes > 0] > 0).all()
    assert (np.abs(taken - sizes * most / len(strata)) <= n_strata + 1).all()


def test_the_digest_knows_numbers_gaps_and_names_and_no_ids():
    data, mask = [np.arange(6.0).reshape(3, 2), np.arange(3.0)[:, None]], [[1, 1], [1, 0], [0, 1]]
    base = data_digest(Views(data, mask=mask))
    assert data_digest(Views(data, mask=mask, sample_ids=["x", "y", "z"])) == base
    other = [data[0] + np.eye(3, 2), data[1]]
    changed = (
        Views(other, mask=mask),
        Views(data, mask=[[1, 1], [1, 1], [0, 1]]),
        Views(data, mask=mask, names=["a", "b"]),
    )
    assert len({base, *map(data_digest, changed)}) == 4
