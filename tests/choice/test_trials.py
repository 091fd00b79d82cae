"""Trials of settings: what they share, and that sharing does not change groups."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from gapview import BridgedGRMF, Views
from gapview.choice.representation import IterationLimits, Setting
from gapview.choice.trials import Drawn, Trials, groups_of_trial
from gapview.datasets import load_digits_views, make_views, paired_split

LIMITS = IterationLimits(100, 1e-6)


def drawn_from(views: Views) -> Drawn:
    return Drawn(views, np.zeros(views.n_views, dtype=int))


def settings_for(views: Views, n_clusters: int) -> list[Setting]:
    scales, counts = ("center+unit",) * views.n_views, (10,) * views.n_views
    return [
        Setting(scales, counts, bridge, reach, 2 * n_clusters, 1.0, 1e-3)
        for bridge in ("both", "union", "joint")
        for reach in (1, 4, 16)
    ]


@pytest.mark.parametrize("source", ["digits", "made"])
def test_shared_smoothing_finds_the_groups_of_single_trials(source):
    if source == "digits":
        views, n_clusters = paired_split(load_digits_views().views, 0.5, random_state=0), 10
    else:
        made = make_views(300, (200, 150, 9), n_clusters=4, missing_rate=0.3, separation=3.0, random_state=0)
        views, n_clusters = made.views, 4
    drawn, settings = drawn_from(views), settings_for(views, n_clusters)
    prepared = drawn.prepare(settings[0].scales, settings[0].n_neighbors, (1.0,) * views.n_views)
    trials = Trials(prepared, settings)
    for setting in settings:
        together = trials.groups(setting, n_clusters, 0, LIMITS)
        alone = groups_of_trial(prepared, setting, n_clusters, 0, LIMITS)
        assert adjusted_rand_score(together, alone) > 0.97


def test_views_are_searched_once_for_each_number_of_neighbours():
    views = make_views(100, (6, 8), n_clusters=3, missing_rate=0.3, random_state=0).views
    drawn = drawn_from(views)
    weights = (1.0, 1.0)
    first = drawn.prepare(("center+unit",) * 2, (5, 5), weights)
    assert drawn.prepare(("center+unit",) * 2, (5, 5), weights) is first
    other = drawn.prepare(("center+unit",) * 2, (5, 5), (0.5, 1.5))
    assert other is not first
    assert other.backend.view_graph(0, 5) is first.backend.view_graph(0, 5)


@pytest.mark.parametrize("bridge", ["union", "joint", "both"])
def test_a_fit_reports_the_searches_of_its_bridge_only(bridge):
    views = make_views(100, (6, 8), n_clusters=3, missing_rate=0.3, random_state=0).views
    given = BridgedGRMF(3, bridge=bridge, random_state=0).fit(views)
    alone = BridgedGRMF(3, bridge=bridge, reach=given.selection_.setting.reach, selection="fixed", random_state=0)
    assert len(given.neighbor_search_) == len(alone.fit(views).neighbor_search_)
