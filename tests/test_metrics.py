"""Labels of every kind, and labels that are none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from sklearn.metrics import adjusted_rand_score

from gapview.errors import InputError
from gapview.metrics import adjusted_rand_indices, batch_mixing, clustering_accuracy, clustering_scores, purity

SCORES = [clustering_scores, clustering_accuracy, purity]
FOUND = [1, 1, 0, 2]


@pytest.mark.parametrize(
    "labels",
    [
        [7, 7, -3, -3],
        [0.5, 0.5, 1.5, 1.5],
        [True, True, False, False],
        ["b", "b", "a", "a"],
        np.array(["b", "b", "a", "a"], dtype=object),
        np.array([0.5, 0.5, 1.5, 1.5], dtype=np.float32),
        [2, 2, 1.5, 1.5],
        pd.Series(["b", "b", "a", "a"], dtype="category"),
        pd.Series([1, 1, 2, 2], dtype="Int64", index=list("wxyz")),
        pl.Series(["b", "b", "a", "a"]),
    ],
)
@pytest.mark.parametrize("score", SCORES)
def test_the_names_of_the_groups_do_not_matter(score, labels):
    assert score(labels, FOUND) == score([0, 0, 1, 1], FOUND)
    assert score(FOUND, labels) == score(FOUND, [0, 0, 1, 1])


@pytest.mark.parametrize(
    "labels",
    [
        [0, None, 1, 1],
        ["a", None, "b", "b"],
        [0.0, np.nan, 1.0, 1.0],
        ["a", np.nan, "b", "b"],
        np.array([0.0, np.nan, 1.0, 1.0]),
        np.array(["2020-01-01", "NaT", "2020-01-01", "2020-01-02"], dtype="datetime64[D]"),
        pd.Series([0, None, 1, 1], dtype="Int64"),
        pl.Series([0, None, 1, 1]),
    ],
)
@pytest.mark.parametrize("score", SCORES)
def test_missing_labels(score, labels):
    with pytest.raises(InputError, match="y_true must give every sample a label; 1 of 4 are missing"):
        score(labels, FOUND)
    with pytest.raises(InputError, match="y_pred must give every sample a label; 1 of 4 are missing"):
        score(FOUND, labels)


@pytest.mark.parametrize("score", SCORES)
def test_labels_of_mixed_kinds(score):
    for labels in ([1, "1", 2, 2], np.array([1, "1", 2, 2], dtype=object)):  # as text, 1 and "1" would be one group
        with pytest.raises(InputError, match="y_true must hold labels of one kind.*got int, str. Convert them"):
            score(labels, FOUND)


@pytest.mark.parametrize("labels", [None, 3, "abcd", [[0], [0], [1], [1]], [np.ones((2, 1)), np.ones((2, 3))]])
@pytest.mark.parametrize("score", SCORES)
def test_what_is_no_sequence_of_labels(score, labels):
    with pytest.raises(InputError, match="y_pred must be"):
        score(FOUND, labels)


def naive_mixing(points, batches, perplexity=30):
    """Return the median iLISI, scaled, one sample after the other, with the kernel width found by a root finder."""
    names, values = sorted(set(batches)), []
    for i in range(len(points)):
        distances = np.linalg.norm(points - points[i], axis=1)
        order = [j for j in np.argsort(distances) if j != i][: 3 * perplexity]
        near = distances[order] - distances[order].min()

        def weights(log_beta, near=near):
            own = np.exp(-np.exp(log_beta) * near)
            return own / own.sum()

        def surplus(log_beta):
            own = weights(log_beta)
            return -(own[own > 0] * np.log(own[own > 0])).sum() - np.log(perplexity)

        own = weights(brentq(surplus, -15, 15))
        shares = [own[[batches[j] == name for j in order]].sum() for name in names]
        values.append(1 / np.square(shares).sum())
    return (np.median(values) - 1) / (len(names) - 1)


def test_mixing_is_the_median_ilisi():
    rng = np.random.RandomState(0)
    batches = rng.choice(["a", "b", "c"], 250, p=[0.5, 0.3, 0.2])
    points = rng.normal(size=(250, 4)) + 0.8 * (batches == "a")[:, None]
    assert batch_mixing(points, batches) == pytest.approx(naive_mixing(points, batches), abs=1e-6)
    assert batch_mixing(7 * points, batches) == pytest.approx(batch_mixing(points, batches))


def test_mixing_at_its_limits():
    rng = np.random.RandomState(0)
    points = rng.normal(size=(400, 3))
    assert batch_mixing(points, np.arange(400) % 2) > 0.85
    assert batch_mixing(points + 99 * (np.arange(400) % 2)[:, None], np.arange(400) % 2) == 0.0
    assert np.isnan(batch_mixing(points, ["a"] * 400))
    assert batch_mixing(np.zeros((8, 2)), [0, 1] * 4) == pytest.approx(0.9, abs=0.1)
    with pytest.raises(InputError, match="batches have a value for each"):
        batch_mixing(points, [0, 1])


@given(st.integers(1, 40), st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(0, 2**31 - 1))
def test_adjusted_rand_indices_are_those_of_pairs(n_samples, numbers, seed):
    source = np.random.RandomState(seed)
    labelings = [source.randint(number, size=n_samples) for number in numbers]
    expected = [[adjusted_rand_score(one, other) for other in labelings] for one in labelings]
    np.testing.assert_allclose(adjusted_rand_indices(labelings), expected, atol=1e-12)
