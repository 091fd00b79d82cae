"""Contributions of views: the formula, views of noise, gaps, weights."""

from __future__ import annotations

import numpy as np
import pytest

from gapview import BridgedGRMF
from gapview.baselines import Concat
from gapview.datasets import make_views
from gapview.errors import InputError
from gapview.graph import knn_graph
from gapview.trust import Contributions, view_contributions

LABELS = np.repeat([0, 1], 20)
CLEAR = LABELS[:, None] * 5 + np.random.default_rng(0).normal(size=(40, 3))
NOISE = np.random.default_rng(1).normal(size=(40, 3))


def test_the_formula():
    graphs, mask = [knn_graph(CLEAR, 4), knn_graph(NOISE[:30], 4)], np.ones((40, 2), dtype=bool)
    mask[30:, 1] = False
    found = view_contributions(graphs, mask, LABELS, [1.0, 2.0])
    support = np.full((40, 2), np.nan)
    for k, graph in enumerate(graphs):
        rows = np.flatnonzero(mask[:, k])
        for i, row in enumerate(rows):
            neighbors = rows[graph[[i]].indices]
            share = (LABELS[neighbors] == LABELS[row]).mean()
            chance = ((LABELS[rows] == LABELS[row]).sum() - 1) / (len(rows) - 1)
            support[row, k] = (share - chance) / (1 - chance)
    np.testing.assert_allclose(found.support, support)
    weighted = np.maximum(support, 0) * [1.0, 2.0]
    np.testing.assert_allclose(found.share, weighted / np.nansum(weighted, axis=1, keepdims=True))
    assert (found.share[30:, 0] == 1).all()
    assert np.isnan(found.share[30:, 1]).all()


def test_a_view_of_noise_contributes_little():
    data = make_views(n_samples=150, n_clusters=3, random_state=0)
    views = [data.views.matrices[0], np.random.default_rng(2).normal(size=(150, 20))]
    mask = np.random.default_rng(3).random((150, 2)) < 0.8
    mask[~mask.any(axis=1), 0] = True
    for model in (BridgedGRMF(3, random_state=0), Concat(3, random_state=0)):
        found = model.fit(data.views.matrices[:1]).labels_
        shares = view_contributions([knn_graph(view, 10) for view in views], np.ones((150, 2)), found).share
        assert np.nanmean(shares[:, 1]) < 0.15
    shares = BridgedGRMF(3, random_state=0).fit(views, mask=mask).view_contributions().of_groups(found)
    assert (shares[:, 0] > 0.8).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1)


def test_no_view_supports_the_group():
    graph = knn_graph(np.array([[0.0], [5.0], [0.1], [5.1]]), 1)
    found = view_contributions([graph], np.ones((4, 1)), [0, 0, 1, 1])
    assert (found.support < 0).all()
    assert np.isnan(found.share).all()
    assert np.isnan(Contributions(found.support, found.share).of_groups([0, 0, 1, 1])).all()


@pytest.mark.parametrize(
    ("mask", "weights", "message"),
    [(np.ones((40, 2)), None, "a column for each of the 1 graphs"), (np.ones((40, 1)), [-1.0], "weights must be")],
)
def test_refused(mask, weights, message):
    with pytest.raises(InputError, match=message):
        view_contributions([knn_graph(CLEAR, 3)], mask, LABELS, weights)
