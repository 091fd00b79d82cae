"""A few hundred made problems; ``gapview-lab reliability numbers`` has the other ten thousand."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapview import GRMF, Views
from gapview.baselines import (
    BipartiteSpectral,
    Concat,
    CoRegularizedSpectral,
    KernelCompletion,
    MeanFilledSpectral,
    RobustMultiViewKMeans,
)
from gapview_lab.reliability import numbers
from gapview_lab.reliability.made_problems import Made, make_problem
from gapview_lab.reliability.made_settings import METHODS
from gapview_lab.reliability.promises import FitOutcome, outcome_of

CASES = {"GRMF": 80, "BridgedGRMF": 40}  # of other methods 16


@pytest.mark.parametrize("method", METHODS)
def test_made_problems_give_a_result_or_one_of_our_errors(method):
    kinds = []
    for case in range(CASES.get(method, 16)):
        found = outcome_of(make_problem([2026, case], method))
        assert found.kind != "defect", f"make_problem([2026, {case}], {method!r}): {found.said}"
        kinds.append(found.kind)
    assert kinds.count("result") > len(kinds) / 4


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1))
def test_any_seed_gives_a_result_or_one_of_our_errors(seed):
    found = outcome_of(make_problem(seed))
    assert found.kind != "defect", found.said


def test_problems_are_the_same_for_the_same_seed_and_differ_in_all_respects():
    first, second = (make_problem([5, 1], "GRMF") for _ in range(2))
    assert first.described() == second.described()
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first.views, second.views, strict=True))
    many = [make_problem([5, case]) for case in range(800)]
    assert {made.method for made in many} == set(METHODS)
    traits = {trait for made in many for trait in made.traits}
    assert {"float16", "float32", "bool", "int8", "sparse", "cells missing", "values around 1e150"} <= traits
    assert {"values around 1e-150", "a view that nobody has", "a view that one sample has", "low rank"} <= traits
    assert {len(made.views) for made in many} == set(range(1, 9))
    assert min(made.n_samples for made in many) == 1
    assert max(made.n_samples for made in many) > 200


COMMON = {"n_clusters": 2, "random_state": 0, "partial_rows": "raise", "scale": "unit"}
VIEWS = [np.random.RandomState(0).normal(size=(20, 4)), np.random.RandomState(1).normal(size=(20, 3))]
PLAIN = Made("GRMF", COMMON | {"consensus_weight": 100.0}, VIEWS, None)


def spoiled(monkeypatch, change, kind=GRMF):
    """Fit as usual, then change what the model has found."""
    fit = kind.fit

    def worse(self, *args, **options):
        change(fit(self, *args, **options))
        return self

    monkeypatch.setattr(kind, "fit", worse)


BREAKS = {
    "orthonormal bases": lambda model: model.bases_.__setitem__(0, model.bases_[0] * (1 + 1e-5)),
    "a finite embedding": lambda model: model.embedding_.__setitem__((0, 0), np.nan),
    "labels from 0 to n_clusters - 1": lambda model: model.labels_.__setitem__(0, 2),
    "one integer label per sample": lambda model: setattr(model, "labels_", model.labels_[1:]),
    "the objective never rises": lambda model: setattr(model, "objective_", model.objective_[::-1].copy()),
    "one value of the objective per iteration": lambda model: setattr(model, "n_iter_", 1),
    "confidence from 0 to 1": lambda model: model.confidence_.__setitem__(0, 1.1),
    "samples stay in order": lambda model: setattr(model, "sample_ids_", model.sample_ids_[::-1]),
}


@pytest.mark.parametrize("promise", BREAKS)
def test_broken_promises_are_found(promise, monkeypatch):
    assert outcome_of(PLAIN).kind == "result"
    spoiled(monkeypatch, BREAKS[promise])
    assert outcome_of(PLAIN).said == promise


REVERSED = lambda model: setattr(model, "objective_", model.objective_[::-1].copy())  # noqa: E731
BREAKS_OF_OTHERS = [
    (CoRegularizedSpectral, {"consensus_weight": 0.5}, "the objective never falls", REVERSED),
    (MeanFilledSpectral, {"consensus_weight": 0.1}, "the objective never falls", REVERSED),
    (RobustMultiViewKMeans, {}, "the objective never rises", REVERSED),
    (
        BipartiteSpectral,
        {},
        "the objective never rises",
        lambda model: setattr(model, "objective_", np.arange(float(model.n_iter_))),
    ),
    (
        RobustMultiViewKMeans,
        {},
        "view weights sum to 1",
        lambda model: setattr(model, "view_weights_", model.view_weights_ * 1.01),
    ),
    (
        BipartiteSpectral,
        {},
        "a weight of at least 0 for every view",
        lambda model: setattr(model, "view_weights_", np.array([1.5, -0.5])),
    ),
    (
        Concat,
        {},
        "predict of training data: labels from 0 to n_clusters - 1",
        lambda model: setattr(model, "_predict_views", lambda views: np.full(views.n_samples, 2)),
    ),
]


@pytest.mark.parametrize(("kind", "more", "promise", "change"), BREAKS_OF_OTHERS)
def test_broken_promises_of_the_baselines_are_found(kind, more, promise, change, monkeypatch):
    made = Made(kind.__name__, COMMON | more, VIEWS, None)
    assert outcome_of(made).kind == "result", outcome_of(made).said
    spoiled(monkeypatch, change, kind)
    assert outcome_of(made).said == promise


def test_kernels_are_completed_only_from_a_complete_view(monkeypatch):
    mask = np.ones((20, 2), dtype=bool)
    mask[3, 0] = False
    assert outcome_of(Made("KernelCompletion", COMMON, VIEWS, mask)).kind == "result"
    mask[5, 1] = False
    without = Made("KernelCompletion", COMMON, VIEWS, mask)
    refused = outcome_of(without)
    assert (refused.kind, refused.said) == ("refused", "InputError")
    monkeypatch.setattr(KernelCompletion, "fit", lambda self, views, mask: Concat(**COMMON).fit(views, mask=mask))
    assert outcome_of(without).said == "no result without a complete view"


def test_other_errors_warnings_and_changed_input_are_found(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(GRMF, "fit", lambda self, views, mask=None: {}["x"])
        assert outcome_of(PLAIN).said.startswith("fit: KeyError")
    with monkeypatch.context() as patch:
        spoiled(patch, lambda model: np.float64(1e308) * np.float64(10))
        assert "RuntimeWarning" in outcome_of(PLAIN).said
    with monkeypatch.context() as patch:
        patch.setattr(GRMF, "predict", lambda self, *args, **options: [][0])
        assert outcome_of(PLAIN).said.startswith("after predict of training data: IndexError")
    with monkeypatch.context() as patch:
        patch.setattr(GRMF, "recover", lambda self, *a, **o: [m + 1 for m in Views(PLAIN.views).matrices])
        assert outcome_of(PLAIN).said == "recover of training data: present values are untouched"
    copies = [view.copy() for view in PLAIN.views]
    changing = Made("GRMF", PLAIN.settings, copies, None)
    spoiled(monkeypatch, lambda model: copies[0].__setitem__((0, 0), 7.0))
    assert outcome_of(changing).said == "the views that came in have changed"


def test_the_command_counts_and_keeps_the_smallest(tmp_path, monkeypatch):
    command = [sys.executable, "-m", "gapview_lab", "reliability", "numbers", "--cases", "12", "--seed", "3"]
    done = subprocess.run([*command, "-o", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    content = json.loads((tmp_path / "numbers.json").read_text())
    assert content["cases"] == 12 == content["results"] + content["refused"]
    assert set(content["estimators"]) == set(METHODS)

    found = [FitOutcome("result", "", 0.1), *(FitOutcome("defect", "bad", 0.1) for _ in range(5))]
    monkeypatch.setattr(numbers, "_outcomes", lambda request: enumerate(found))
    content = numbers.run_numbers(numbers.NumbersRequest(6, 3, tmp_path, ("GRMF",)))
    assert (content["results"], content["defects"]) == (1, 5)
    kept = content["smallest_defects"]
    sizes = sorted(make_problem([3, case], "GRMF").size for case in range(1, 6))
    assert [one["size"] for one in kept] == sizes[:3]
    assert all(make_problem([3, one["case"]], "GRMF").size == one["size"] for one in kept)


HANGS = """
import os, time
from pathlib import Path
from gapview_lab.reliability import numbers
def work(request, start, sink):
    for index in range(start, request.cases):
        if index == 1: os._exit(3)
        if index == 3: time.sleep(60)
        sink.send(numbers.FitOutcome("result", "", 0.0))
numbers._work = work
numbers.TIME_LIMIT = 10.0
if __name__ == "__main__":
    print([found.said for _, found in numbers._outcomes(numbers.NumbersRequest(5, 0, Path(".")))])
"""


def test_crashes_and_hangs_are_counted_and_the_rest_goes_on(tmp_path):
    program = tmp_path / "hangs.py"
    program.write_text(HANGS)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == str(["", "its process ended with code 3", "", "no answer within 10 seconds", ""]), (
        done.stderr
    )


def test_unknown_estimators_are_refused(tmp_path):
    with pytest.raises(numbers.ParameterError, match="There is no clusterer 'KMeans'"):
        numbers.run_numbers(numbers.NumbersRequest(1, 0, tmp_path, ("KMeans",)))
