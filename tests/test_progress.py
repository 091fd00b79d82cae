"""Callbacks: whoever listens hears how far a fit has come, and may stop it; nobody else notices."""

from __future__ import annotations

import pytest
from sklearn.model_selection import GridSearchCV

import gapview
from gapview import GRMF, BridgedGRMF
from gapview.datasets import make_views
from gapview.progress import ITERATING, Event, listening, phase, timing

VIEWS = make_views(60, (6, 5), n_clusters=2, missing_rate=0.3, random_state=0).views


def test_every_iteration_is_told():
    events = []
    with gapview.progress.listening(events.append):
        model = GRMF(2, random_state=0).fit(VIEWS)
    steps = [event for event in events if event.phase == ITERATING and event.done]
    assert [event.done for event in steps] == list(range(1, model.n_iter_ + 1))
    assert [event.objective for event in steps] == pytest.approx(model.objective_.tolist())
    assert {event.total for event in steps} == {model.max_iter}
    assert all(isinstance(event, Event) for event in events)


def test_every_number_of_groups_is_told():
    events = []
    with listening(events.append):
        model = BridgedGRMF("auto", max_clusters=6, selection="fixed", random_state=0).fit(VIEWS)
    told = [(event.done, event.total) for event in events if event.phase == "Counting groups"]
    n_counts = len(model.cluster_count_.counts)
    assert told == [(None, None), *((done, n_counts) for done in range(n_counts))]


def test_nothing_is_told_afterwards():
    events = []
    with listening(events.append):
        pass
    BridgedGRMF(2, selection="fixed", random_state=0).fit(VIEWS)
    assert events == []


def test_the_innermost_hears():
    outer, inner = [], []
    with listening(outer.append):
        with listening(inner.append):
            GRMF(2, random_state=0).fit(VIEWS)
        heard = len(outer)
        GRMF(2, random_state=0).fit(VIEWS)
    assert heard == 0
    assert inner == outer


def test_listening_changes_no_result():
    with listening(lambda event: None):
        heard = BridgedGRMF(2, random_state=0).fit(VIEWS)
    assert heard.embedding_.tolist() == BridgedGRMF(2, random_state=0).fit(VIEWS).embedding_.tolist()


def test_a_fit_can_be_stopped_and_leaves_the_model_as_it_was():
    class Enough(Exception):
        pass

    def stop(event):
        if event.phase == ITERATING and event.done == 3:
            raise Enough

    model = GRMF(2, random_state=0).fit(VIEWS)
    before = dict(model.__dict__)
    with pytest.raises(Enough), listening(stop):
        model.set_params(random_state=1).fit(VIEWS)
    assert model.__dict__ == before | {"random_state": 1}
    unfitted = GRMF(2, random_state=0)
    with pytest.raises(Enough), listening(stop):
        unfitted.fit(VIEWS)
    assert not hasattr(unfitted, "labels_")


def test_searches_are_heard_of():
    events = []
    with listening(events.append):
        GridSearchCV(GRMF(2, init="data"), {"consensus_weight": [1.0, 10.0]}, cv=2).fit(VIEWS)
    assert sum(event.phase == "Finding groups" for event in events) == 5  # two settings on two folds, and the last fit


def test_phases_begin_and_end_in_order():
    open_phases, seen = [], set()

    def note(name, begins):
        if begins:
            open_phases.append(name)
            seen.add(tuple(open_phases))
        else:
            assert open_phases.pop() == name

    with timing(note):
        BridgedGRMF(2, random_state=0).fit(VIEWS)
    assert not open_phases
    # All samples are tried, so that their graph is built within the choice
    expected = {
        ("choice", "bridge", "neighbours"),
        ("choice", "iterations"),
        ("iterations",),
        ("k-means",),
        ("confidence",),
    }
    assert expected <= seen


def test_a_phase_ends_when_it_fails_and_is_silent_without_a_listener():
    noted = []
    with pytest.raises(ZeroDivisionError), timing(lambda *event: noted.append(event)), phase("scaling"):
        raise ZeroDivisionError
    with phase("scaling"):
        pass
    assert noted == [("scaling", True), ("scaling", False)]


def test_phases_and_events_do_not_mix():
    events, spans = [], []
    with listening(events.append), timing(lambda *event: spans.append(event)):
        GRMF(2, random_state=0).fit(VIEWS)
    assert all(isinstance(event, Event) for event in events)
    assert {name for name, _ in spans}.isdisjoint(event.phase for event in events)
