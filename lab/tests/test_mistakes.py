"""The oracle of the campaign on mistakes detects wrong results; a small part of the campaign runs."""

from __future__ import annotations

import csv
import json
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from gapview import Views
from gapview.errors import InputError
from gapview.utils.messages import warn_user
from gapview_lab.cli import main
from gapview_lab.reliability import mistakes_oracle
from gapview_lab.reliability.mistakes import NONE, OUTCOMES, MistakesRequest, run_case, run_mistakes, summarised
from gapview_lab.reliability.mistakes_bases import ID_KINDS, MADE, load_base
from gapview_lab.reliability.mistakes_oracle import INTERFACES, difference, judge, read_problem
from gapview_lab.reliability.mistakes_predict import judge_new
from gapview_lab.reliability.mistakes_register import MUTATIONS
from gapview_lab.reliability.mistakes_tables import NotApplicable, draw_problem


def made(interface="pandas", kind="person", seed=0):
    return draw_problem(load_base(MADE, None), interface, kind, np.random.default_rng(seed))


def frames(problem):
    return {
        table.view: pd.DataFrame(dict(table.columns), index=[str(key) for key in table.ids]) for table in problem.tables
    }


def exchanged(frame):
    ids = frame.index.tolist()
    return frame.set_axis([ids[1], ids[0], *ids[2:]], axis=0)


WRONG = {
    "2 of .* samples joined from different samples": lambda frame: exchanged(frame.sort_index()),
    "samples split into": lambda frame: frame.set_axis([f"{key}x" for key in frame.index], axis=0),
    "features of view": lambda frame: frame.assign(more=1.0),
    "features of view.*": lambda frame: frame.T,
    "values of 1 of": lambda frame: pd.concat([frame.iloc[:1] * 1000, frame.iloc[1:]]),
    "values of .* rows": lambda frame: frame.rename(columns=dict(zip(frame, np.roll(frame.columns, 1), strict=True))),
    "1 rows lost": lambda frame: frame.iloc[1:],
}


@pytest.mark.parametrize("expected", WRONG)
def test_oracle_detects_wrong_results(expected):
    problem = made()
    given = frames(problem)
    assert difference(problem, Views(given)) == ""
    first = problem.tables[0].view
    shared = given[first].index.intersection(given[problem.tables[1].view].index)
    given[first] = WRONG[expected](given[first].loc[[*shared, *given[first].index.difference(shared)]])
    with warnings.catch_warnings(action="ignore"):  # the oracle has to detect what gapview would report
        views = Views(given, orient="samples")
    assert pd.Series([difference(problem, views)]).str.contains(expected).all()


def test_oracle_detects_wrong_ids_and_views():
    problem = made()
    others = {
        name: frame.set_axis([f"Q{key}" for key in frame.index], axis=0) for name, frame in frames(problem).items()
    }
    assert difference(problem, Views(others)).startswith("ids of")
    assert difference(problem, Views({"a": np.eye(3)})).startswith("views a instead of")


def test_errors_and_warnings_are_told_apart(monkeypatch):
    problem = made()

    def answer(function):
        monkeypatch.setattr(mistakes_oracle, "read_problem", function)
        return judge(problem).outcome

    def warned(*_):
        warn_user("doubtful")
        return Views(frames(problem))

    def refused(*_):
        raise InputError("no")

    assert answer(lambda *_: Views(frames(problem))) == "correct"
    assert answer(warned) == "warned"
    assert answer(refused) == "error"
    assert answer(lambda *_: {}["x"]) == "foreign"
    assert answer(lambda *_: Views({name: frame.iloc[1:] for name, frame in frames(problem).items()})) == "silent"


@pytest.mark.parametrize("interface", INTERFACES)
def test_tables_with_text_ids_in_the_index_are_read_correctly(interface, tmp_path):
    problem = made(interface)
    for table in problem.tables:
        table.place, table.id_name = ("first" if interface == "polars" else "index"), "sample_id"
    assert difference(problem, read_problem(problem, tmp_path)) == ""


@pytest.mark.parametrize("name", MUTATIONS)
def test_every_mutation_changes_tables(name):
    chosen = MUTATIONS[name]
    for seed in range(30):
        problem = made(chosen.interfaces[seed % len(chosen.interfaces)], chosen.kinds[seed % len(chosen.kinds)], seed)
        before = str(problem)
        try:
            chosen.change(problem, np.random.default_rng(seed))
        except NotApplicable:
            continue
        assert str(problem) != before
        return
    raise AssertionError(f"{name} applies to no table")


def test_new_samples_are_compared_with_unchanged_ones():
    problem = made("anndata")
    MUTATIONS["new_unchanged"].change(problem, np.random.default_rng(0))
    assert judge_new(problem).outcome == "correct"
    problem.new[0].ids = problem.new[0].ids[::-1]
    problem.new[1].ids = problem.new[1].ids[::-1]
    assert judge_new(problem).outcome == "silent"


def test_a_small_campaign_on_made_data():
    request = MistakesRequest(None, 50, 11, 3, (MADE,))
    cases = run_mistakes(request)
    assert len(cases) == 61
    assert {case.outcome for case in cases} <= {*OUTCOMES, "not applicable"}
    assert cases[7] == run_case(request, 7)
    assert sum(case.mutation == NONE for case in cases) == 11
    found = summarised(cases, request, 1.0)
    assert found["cases"] + found["unchanged"] + found["not_applicable"] == 61
    assert set(ID_KINDS) >= {"integer", "uuid"}


@pytest.mark.data
def test_the_command_on_real_data(tmp_path):
    folder = os.environ.get("GAPVIEW_DATA")
    if not folder or not (Path(folder) / "omics").is_dir():
        pytest.skip("GAPVIEW_DATA is not set")
    out = tmp_path / "mistakes.csv"
    options = ["--runs", "6", "--unchanged", "2", "--only", "rows_shuffled", "--only", "ids_repeated", "-o", str(out)]
    done = CliRunner().invoke(main, ["reliability", "mistakes", "--data-dir", folder, *options])
    assert done.exit_code in (0, 1), done.output
    assert "6 tables with mistakes" in done.output
    rows = list(csv.DictReader(out.read_text(encoding="utf-8").splitlines()))
    assert sum(int(row["n"]) for row in rows if row["mutation"] != NONE) == 6
    assert json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))["cases"] == 6
