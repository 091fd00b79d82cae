"""The embedded example, made data, and hiding of views."""

from __future__ import annotations

import re
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import savemat
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csc_array
from sklearn.utils import Bunch

from gapview import Views
from gapview.datasets import hide_views, load_digits_views, load_views, make_views, paired_split
from gapview.errors import DataFileError, InputError, InputTypeError, ParameterError, ParameterTypeError
from gapview.io import LIMITS, reading_with


def test_digits_are_two_real_views():
    data = load_digits_views()
    assert data.views.n_features == (64, 130)
    assert len(data.target) == 1797
    views, target = data  # unpacks
    assert views is data.views
    assert target is data.target
    image = data.views.matrices[0][7].reshape(8, 8)
    magnitudes = np.abs(np.fft.fft2(image, s=(16, 16)))
    np.testing.assert_allclose(np.sort(np.unique(magnitudes.round(6))), np.unique(data.views.matrices[1][7].round(6)))


def test_fourier_view_does_not_see_shifts(monkeypatch):
    images = np.zeros((2, 8, 8))
    images[0, 1:4, 2:5] = images[1, 3:6, 4:7] = np.arange(9).reshape(3, 3)
    digits = Bunch(data=images.reshape(2, 64), images=images, target=np.zeros(2))
    monkeypatch.setattr("gapview.datasets._loading.load_digits", lambda: digits)
    first, second = load_digits_views().views.matrices[1]
    np.testing.assert_allclose(first, second, atol=1e-9)


class TestHiding:
    @given(st.integers(2, 60), st.integers(1, 5), st.floats(0, 1), st.integers(0, 9))
    def test_paired_split(self, n_samples, n_views, rate, seed):
        views = paired_split([np.eye(n_samples)] * n_views, rate, random_state=seed)
        n_views_each = views.mask.sum(axis=1)
        n_paired = int(np.floor(n_samples * rate + 1e-9))
        if n_views > 1:
            assert (n_views_each == n_views).sum() == n_paired
        assert set(n_views_each) <= {1, n_views}
        alone = views.mask[n_views_each == 1].sum(axis=0)
        assert np.ptp(alone) <= 1

    def test_the_papers_protocol_in_the_papers_order(self):
        order = np.array([4, 2, 0, 1, 3])
        mask = paired_split([np.eye(5)] * 2, 0.4, order=order).mask
        assert mask[order].tolist() == [[True, True], [True, True], [True, False], [True, False], [False, True]]

    def test_rates_that_floating_point_spoils(self):
        assert paired_split([np.eye(2000, 2)] * 2, 0.7, random_state=0).mask.all(axis=1).sum() == 1400

    @given(st.integers(4, 60), st.integers(2, 5), st.floats(0, 0.5), st.integers(0, 9))
    def test_hide_views(self, n_samples, n_views, rate, seed):
        n_samples -= n_samples % n_views  # so that the kept views come out even
        if n_samples == 0:
            return
        mask = hide_views([np.eye(n_samples)] * n_views, rate, random_state=seed).mask
        assert mask.any(axis=1).all()
        assert (n_samples - mask.sum(axis=0) == int(np.floor(rate * n_samples + 1e-9))).all()

    def test_hiding_what_has_gaps_already(self):
        first = make_views(90, (4, 3, 5), missing_rate=0.3, random_state=0).views
        second = hide_views(first, 0.2, random_state=1)
        assert second.mask.any(axis=1).all()
        assert not (second.mask & ~first.mask).any()
        assert (second.mask.sum(axis=0) == first.mask.sum(axis=0) - int(0.2 * 63)).all()

    @pytest.mark.parametrize("seed", range(5))
    def test_gaps_that_leave_just_one_way(self, seed):
        mask = np.ones((20, 3), dtype=bool)
        mask[:10, 0] = mask[10:, 1] = False
        views = Views([np.eye(20, 4)] * 3, mask=mask)
        hidden = hide_views(views, 0.5, random_state=seed).mask
        assert hidden.any(axis=1).all()
        assert hidden.sum(axis=0).tolist() == [5, 5, 10]

    @given(st.integers(1, 25), st.integers(1, 4), st.floats(0, 1), st.integers(0, 10_000))
    def test_a_rate_is_refused_only_if_no_choice_of_views_keeps_to_it(self, n_samples, n_views, rate, seed):
        rng = np.random.RandomState(seed)
        mask = rng.uniform(size=(n_samples, n_views)) < 0.6
        mask[np.arange(n_samples), rng.randint(n_views, size=n_samples)] = True
        n_hidden = np.floor(rate * mask.sum(axis=0) + 1e-9).astype(int)
        # The naive version: every sample that a view keeps is a seat, and all samples must be seated at once
        seats = np.repeat(np.arange(n_views), mask.sum(axis=0) - n_hidden)
        fits = mask[:, seats]
        n_seated = int(fits[linear_sum_assignment(fits, maximize=True)].sum())
        views = Views([np.ones((n_samples, 2))] * n_views, mask=mask)
        if n_seated < n_samples:
            with pytest.raises(ParameterError, match=f"at least {n_samples - n_seated} of {n_samples} samples without"):
                hide_views(views, rate, random_state=seed)
        else:
            hidden = hide_views(views, rate, random_state=seed).mask
            assert hidden.any(axis=1).all()
            assert not (hidden & ~mask).any()
            assert (hidden.sum(axis=0) == mask.sum(axis=0) - n_hidden).all()

    def test_which_view_a_sample_keeps_is_left_to_the_seed(self):
        mask = np.ones((400, 3), dtype=bool)
        mask[:100, 0] = False
        kept = hide_views(Views([np.ones((400, 2))] * 3, mask=mask), 0.6, random_state=0).mask
        alone = kept[100:][kept[100:].sum(axis=1) == 1].mean(axis=0)
        assert (alone > 0.15).all()  # no view is favoured because it comes first

    @pytest.mark.parametrize(
        ("order", "error", "message"),
        [
            (np.arange(20.0), InputTypeError, "got type float64. Convert them with"),
            (list("abcdefghijklmnopqrst"), InputTypeError, "got type <U1"),
            (np.arange(19), InputError, "got shape (19,)"),
            (np.arange(1, 21), InputError, "got values from 1 to 20. Subtract 1"),
            (np.r_[np.arange(19), 3], InputError, "1 of them occur more than once: 3"),
            ([[0, 1], [2]], InputError, "nested sequences of unequal length"),
        ],
    )
    def test_orders_that_are_none(self, order, error, message):
        with pytest.raises(error, match=re.escape(message)):
            paired_split([np.eye(20)] * 2, 0.5, order=order)

    def test_an_order_of_unsigned_integers(self):
        mask = paired_split([np.eye(5)] * 2, 0.4, order=np.arange(5, dtype=np.uint64)).mask
        assert mask.sum(axis=1).tolist() == [2, 2, 1, 1, 1]

    def test_seeds(self):
        views = [np.eye(30)] * 3
        for hide in (paired_split, hide_views):
            first, again, other = (hide(views, 0.3, random_state=seed).mask for seed in (0, 0, 1))
            assert (first == again).all()
            assert (first != other).any()

    def test_the_original_is_untouched(self):
        views = Views([np.eye(10), np.ones((10, 2)) + np.eye(10, 2)])
        hide_views(views, 0.4, random_state=0)
        assert views.mask.all()


class TestMade:
    def test_sizes_and_types(self):
        data = make_views(70_000, (3, 2), n_clusters=30, dtype="float32", random_state=0)  # more than one block
        assert data.views.shape == (70_000, 5)
        assert data.views.matrices[0].dtype == np.float32
        assert np.bincount(data.target).max() - np.bincount(data.target).min() <= 1

    def test_repeatable(self):
        first, second = (make_views(50, random_state=3, missing_rate=0.2) for _ in range(2))
        np.testing.assert_array_equal(first.views.matrices[1], second.views.matrices[1])
        np.testing.assert_array_equal(first.target, second.target)

    def test_groups_are_there(self):
        from sklearn.cluster import KMeans

        from gapview.metrics import clustering_accuracy

        data = make_views(300, (20, 30), n_clusters=5, random_state=0)
        for matrix in data.views.matrices:
            assert clustering_accuracy(data.target, KMeans(5, n_init=5, random_state=0).fit_predict(matrix)) > 0.95

    @pytest.mark.parametrize(
        ("n_features", "error", "message"),
        [
            (5, ParameterTypeError, "n_features must be a sequence of integers.*got 5"),
            (None, ParameterTypeError, "n_features must be a sequence of integers.*got None"),
            ("20", ParameterTypeError, "n_features must be a sequence of integers.*got '20'"),
            (["a"], ParameterTypeError, r"n_features\[0\] must be an integer of at least 1; got 'a'"),
            ([3, 2.7], ParameterTypeError, r"n_features\[1\] must be an integer of at least 1; got 2.7"),
            ([3, 0], ParameterError, r"n_features\[1\] must be an integer of at least 1; got 0"),
            ([], ParameterError, "at least one view"),
        ],
    )
    def test_numbers_of_features_that_are_none(self, n_features, error, message):
        with pytest.raises(error, match=message):
            make_views(10, n_features)

    def test_numbers_of_features_from_numpy(self):
        assert make_views(10, np.array([3, 2]), n_clusters=2).views.n_features == (3, 2)


def test_files_of_views_are_read_within_the_limits(tmp_path):
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, view_0=np.zeros((3000, 3000), dtype=np.float32), view_1=np.ones((3000, 2)))
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    try:
        with reading_with(replace(LIMITS, size=2**24)), pytest.raises(DataFileError, match="bytes when unpacked"):
            load_views(path)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
    with reading_with(replace(LIMITS, size=1000)), pytest.raises(DataFileError, match="too large"):
        load_views(path)
    with reading_with(replace(LIMITS, cells=10_000)), pytest.raises(DataFileError, match="9,000,000 cells"):
        load_views(path)
    savemat(tmp_path / "tall.mat", {"X1": csc_array((10**9, 3)), "X2": csc_array((10**9, 2))})
    with pytest.raises(DataFileError, match="1,000,000,000 cells"):
        load_views(tmp_path / "tall.mat")
