"""Labels of every kind, and labels that are none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gapview.errors import InputError
from gapview.metrics import clustering_accuracy, clustering_scores, purity

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
