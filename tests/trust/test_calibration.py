"""Calibrated confidence: its error against a version written from the definition, noise, and data with groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gapview
from gapview import BridgedGRMF
from gapview.datasets import make_views, paired_split
from gapview.errors import GapviewWarning, InputError, ParameterError
from gapview.trust import calibrated_confidence, calibration_error, cluster_stability


def naive_error(confidence, kept, n_bins):
    """Sort the samples, cut them into bins, and compare the means of each bin."""
    pairs = sorted((c, k) for c, k in zip(confidence, kept, strict=True) if not np.isnan(k))
    size, more = divmod(len(pairs), n_bins)
    total, start = 0.0, 0
    for turn in range(n_bins):
        own = pairs[start : start + size + (turn < more)]
        start += len(own)
        if own:
            total += len(own) * abs(np.mean([c for c, _ in own]) - np.mean([k for _, k in own]))
    return total / len(pairs)


@given(st.integers(0, 2**16), st.integers(1, 60), st.integers(1, 12))
def test_error_is_what_its_definition_says(seed, n_samples, n_bins):
    rng = np.random.RandomState(seed)
    confidence, kept = rng.uniform(size=(2, n_samples))
    kept[1:][rng.uniform(size=n_samples - 1) < 0.2] = np.nan
    error = calibration_error(confidence, kept, n_bins)
    assert error == pytest.approx(naive_error(confidence, kept, n_bins))
    order = rng.permutation(n_samples)
    assert calibration_error(confidence[order], kept[order], n_bins) == pytest.approx(error)
    assert calibration_error(np.full(n_samples, 0.5), kept) == pytest.approx(abs(0.5 - np.nanmean(kept)))


def test_error_refuses_what_does_not_fit():
    with pytest.raises(InputError, match="confidence must give a number from 0 to 1"):
        calibration_error([0.5, 1.5], [0, 1])
    with pytest.raises(InputError, match="kept must give one value for each of the 2 samples"):
        calibration_error([0.5, 0.5], [0.5])
    with pytest.raises(InputError, match="other than NaN"):
        calibration_error([0.5], [np.nan])
    with pytest.raises(ParameterError, match="n_bins"):
        calibration_error([0.5], [0.5], n_bins=0)


# -- calibration ---------------------------------------------------------------------------------------------


SIZES = (150, 150, 60, 4)


def unsteady(labels, rate, found):
    """Return a clustering that moves each sample at its own rate, and that finds group 2 in some fits only."""

    def fit(rows, seed):
        rng = np.random.RandomState(seed)
        moved = rng.uniform(size=len(rows)) < rate[rows]
        answer = np.where(moved, rng.randint(2, size=len(rows)), labels[rows])
        lost = rng.uniform() > found
        return np.where(lost & (answer == 2), rng.randint(2, size=len(rows)), answer)

    return fit


def test_calibrated_values_predict_other_resamples():
    """Confidence is too high, sorts the samples within groups, and knows nothing of the group that is often lost."""
    rng = np.random.RandomState(0)
    labels = np.repeat(range(4), SIZES)
    rate = rng.uniform(0, 0.5, size=len(labels))
    confidence = 1 - rate / 3
    fit = unsteady(labels, rate, found=0.4)
    truth = cluster_stability(fit, labels, n_resamples=50, random_state=2)
    stability = cluster_stability(fit, labels, n_resamples=20, random_state=1)
    calibrated = calibrated_confidence(stability, confidence, labels)
    assert ((calibrated >= 0) & (calibrated <= 1)).all()
    assert calibration_error(confidence, truth.kept) > 0.12
    assert calibration_error(calibrated, truth.kept) < 0.06
    counted = np.nan_to_num(stability.kept)
    assert np.mean((calibrated - truth.kept) ** 2) < np.mean((counted - truth.kept) ** 2)
    assert calibrated[labels == 3].max() < 0.1  # four samples


def test_samples_that_were_not_drawn_follow_their_group():
    labels = np.repeat(range(4), SIZES)
    rate = np.full(len(labels), 0.1)
    fit = unsteady(labels, rate, found=0.0)
    stability = cluster_stability(fit, labels, n_resamples=4, share=0.3, random_state=0)
    never = stability.n_drawn == 0
    assert never[labels == 2].any()
    calibrated = calibrated_confidence(stability, np.full(len(labels), 0.9), labels)
    assert calibrated[never & (labels == 0)].min() > 0.7
    assert calibrated[never & (labels == 2)].max() < 0.3


def test_calibration_refuses_what_does_not_fit():
    stability = cluster_stability(lambda rows, seed: rows // 6, [0] * 6 + [1] * 6, random_state=0)
    with pytest.raises(InputError, match="stability must be of the 3 samples with confidence; got 12 samples"):
        calibrated_confidence(stability, [0.5] * 3, [0, 0, 1])
    with pytest.raises(InputError, match="confidence must give a number from 0 to 1"):
        calibrated_confidence(stability, [2.0] * 12, [0] * 12)


# -- models --------------------------------------------------------------------------------------------------


def both_confidences(model):
    """Return the calibrated confidence, and the truth from other resamples."""
    truth = model.cluster_stability(n_resamples=30, feature_share=0.8, random_state=2)
    return model.calibrate(random_state=1), truth.kept


def test_confidence_in_noise_does_not_rise_with_the_number_of_groups():
    rng = np.random.RandomState(0)
    noise = [rng.normal(size=(200, 20)), rng.normal(size=(200, 30))]
    plain, calibrated = [], []
    for n_clusters in (4, 40, 90):
        model = BridgedGRMF(n_clusters, selection="fixed", random_state=0).fit(noise)
        plain.append(model.confidence_.mean())
        calibrated.append(model.calibrate(random_state=1).mean())
    assert plain[0] > plain[1] > plain[2]
    assert plain[0] < 0.65
    assert plain[2] < 0.05
    assert max(calibrated) < 0.1
    assert max(calibrated) < calibrated[0] + 0.01


def test_confidence_of_made_groups_is_calibrated():
    views = make_views(150, (10, 15), n_clusters=4, separation=2.0, missing_rate=0.3, random_state=3).views
    model = BridgedGRMF(4, selection="fixed", random_state=0).fit(views)
    calibrated, kept = both_confidences(model)
    assert calibration_error(calibrated, kept) < 0.1


def test_calibration_can_be_repeated_and_stored(tmp_path):
    views = make_views(90, (10, 15), n_clusters=3, missing_rate=0.3, random_state=3).views
    model = BridgedGRMF(3, selection="fixed", random_state=0).fit(views)
    plain, labels = model.confidence_.copy(), model.labels_.copy()
    first = model.calibrate(n_resamples=3, random_state=1)
    np.testing.assert_array_equal(model.uncalibrated_confidence_, plain)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_array_equal(model.calibrate(n_resamples=3, random_state=1), first)
    model.save(tmp_path / "model.gapview")
    again = gapview.load(tmp_path / "model.gapview")
    np.testing.assert_array_equal(again.confidence_, first)
    np.testing.assert_array_equal(again.uncalibrated_confidence_, plain)
    assert not hasattr(model.fit(views), "uncalibrated_confidence_")


class Counted(BridgedGRMF):
    """Keeps the number of resamples that it is asked for."""

    def cluster_stability(self, **options):
        self.asked_ = options["n_resamples"]
        stability = super().cluster_stability(**options)
        self.drawn_ = len(stability.jaccards)
        return stability


def counted(views, n_clusters):
    return Counted(n_clusters, selection="fixed", random_state=0).fit(views)


def test_calibration_draws_more_resamples_where_groups_come_and_go():
    made = make_views(150, (10, 15), n_clusters=3, separation=6.0, random_state=3).views
    clear = counted(made, 3)
    clear.calibrate(random_state=1)
    assert (clear.asked_, clear.drawn_) == (32, 16)
    rng = np.random.RandomState(0)
    vague = counted([rng.normal(size=(60, 6)), rng.normal(size=(60, 8))], 2)
    vague.calibrate(random_state=1)
    assert vague.drawn_ > 16


def test_an_assessment_calibrates_by_the_resamples_that_its_cost_leaves():
    made = make_views(150, (10, 15), n_clusters=3, separation=6.0, random_state=3).views
    clear = counted(made, 3)
    found = clear.assess(random_state=0)
    assert found.has_structure
    assert clear.asked_ == 16
    assert found.n_fits / 2 + clear.drawn_ <= 45
    rng = np.random.RandomState(0)
    noise = counted([rng.normal(size=(90, 10)), rng.normal(size=(90, 12))], 3)
    with pytest.warns(GapviewWarning, match="cannot be distinguished"):
        found = noise.assess(random_state=0)
    assert noise.asked_ > 24
    assert found.n_fits / 2 + noise.drawn_ <= 40


@pytest.mark.data
def test_confidence_on_real_data_is_calibrated(dataset):
    views = paired_split(dataset("buaa90").views, 0.5, random_state=0)
    model = BridgedGRMF(10, selection="fixed", random_state=0).fit(views)
    calibrated, kept = both_confidences(model)
    assert calibration_error(calibrated, kept) < 0.1
    assert calibration_error(calibrated, kept) < calibration_error(model.uncalibrated_confidence_, kept) - 0.05
