"""The league as a command: running, resuming, time limits, files, bad input."""

from __future__ import annotations

import csv
import json
import time

import pytest
from click.testing import CliRunner

from gapview.errors import DataFileError
from gapview.report.page import Cell as Shown
from gapview.report.page import Group, Items, Page, Row, Section, Table, Text
from gapview_lab.cli import main
from gapview_lab.common.markdown import render_markdown
from gapview_lab.common.records import RecordStore
from gapview_lab.common.runner import run_all
from gapview_lab.league import LeagueRequest, league, run_league
from gapview_lab.league.runs import SCORES
from league_problems import folds, save
from pages import check_page

WORK = """
import os, signal, time
from dataclasses import dataclass

@dataclass(frozen=True)
class Task:
    name: str
    cost: float = 1.0
    kind: str = "x"

@dataclass(frozen=True)
class Record:
    name: str
    status: str
    seconds: float = 0.0
    version: str = "1"

    @property
    def task(self):
        return Task(self.name)

@dataclass(frozen=True)
class Work:
    def run(self, task):
        if task.name == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if task.name == "sleep":
            time.sleep(60)
        if task.name == "raise":
            raise ValueError("an unforeseen thing")
        return [Record(task.name, "done")]

    def lost(self, task, reason, seconds):
        return [Record(task.name, reason, seconds)]
"""


@pytest.fixture
def work(tmp_path, monkeypatch):
    """Tasks that go wrong, in a module that other processes can import, too."""
    (tmp_path / "work_that_goes_wrong.py").write_text(WORK)
    monkeypatch.syspath_prepend(tmp_path)
    import work_that_goes_wrong

    return work_that_goes_wrong


class TestRunner:
    def test_a_process_that_dies_or_takes_too_long_costs_its_own_task_only(self, tmp_path, work):
        store = RecordStore(tmp_path / "r.csv", "1", work.Record)
        tasks = [work.Task(name) for name in ("a", "die", "b", "sleep", "c")]
        run_all(tasks, store, work.Work(), 1, lambda *numbers: None, time_limit=1.0)
        found = {record.name: record.status for record in store.records}
        assert {found[name] for name in "abc"} == {"done"}
        assert found["die"] == "its process has ended with code -9 (out of memory?)"
        assert found["sleep"] == "over the time limit of 1 s"
        assert len(RecordStore(tmp_path / "r.csv", "1", work.Record).done()) == 5

    def test_a_mistake_of_ours_stops_everything_and_keeps_what_is_done(self, tmp_path, work):
        store = RecordStore(tmp_path / "r.csv", "1", work.Record)
        tasks = [work.Task("a", 2.0), work.Task("raise")]
        with pytest.raises(ValueError, match="an unforeseen thing"):
            run_all(tasks, store, work.Work(), 1, lambda *numbers: None)
        assert [record.name for record in store.records] == ["a"]

    def test_what_is_answered_beforehand_is_not_run(self, tmp_path, work):
        store = RecordStore(tmp_path / "r.csv", "1", work.Record)
        tasks, told = [work.Task("sleep"), work.Task("a")], []
        skip = lambda task: [work.Record("sleep", "skipped")] if task.name == "sleep" else []  # noqa: E731
        run_all(tasks, store, work.Work(), 2, lambda *numbers: told.append(numbers[:2]), instead=skip)
        assert {record.name: record.status for record in store.records} == {"a": "done", "sleep": "skipped"}
        assert told[-1] == (2, 2)


def run(*arguments):
    return CliRunner().invoke(main, ["league", *map(str, arguments)], env={"GAPVIEW_DATA": None})


def rows(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


FILES = {
    *(f"{name}.csv" for name in ("runs", "cells", "overall", "differences", "leads")),
    "league.md",
    "league.html",
    "run.json",
}


def test_the_quick_run_goes_on_where_it_stopped(tmp_path):
    out = tmp_path / "out"
    begin = time.monotonic()
    result = run("--quick", "-o", out, "--jobs", 1)
    assert result.exit_code == 0, result.output
    assert time.monotonic() - begin < 30
    assert {path.name for path in out.iterdir()} == FILES
    for name in FILES:
        assert f"Wrote     {out / name}\n" in result.output
    page, text = (out / "league.html").read_text(), (out / "league.md").read_text()
    shown = "".join(check_page(page).text)
    for row in rows(out / "overall.csv"):
        for score in SCORES:
            assert f"{float(row[score]):.1f}" in shown
            assert f"{float(row[score]):.1f}" in text
    for row in rows(out / "cells.csv"):
        assert f"{float(row['accuracy']):.1f}" in shown
    assert page.count("<svg") == 2
    assert str(tmp_path) not in page + text + (out / "run.json").read_text()

    whole = (out / "runs.csv").read_text()
    before = {name: (out / name).read_bytes() for name in FILES - {"run.json", "runs.csv", "league.html", "league.md"}}
    (out / "runs.csv").write_text("".join(whole.splitlines(keepends=True)[:-2])[:-9])  # cut off inside a line
    assert "3 done now" in run("--quick", "-o", out, "--jobs", 1).output
    assert len(rows(out / "runs.csv")) == len(whole.splitlines()) - 1
    again = {(row["data"], row["method"]): row["accuracy"] for row in rows(out / "runs.csv")}
    assert again == {(row["data"], row["method"]): row["accuracy"] for row in csv.DictReader(whole.splitlines())}
    assert (out / "differences.csv").read_bytes() == before["differences.csv"]

    kept = {name: (out / name).read_bytes() for name in FILES}
    result = run("--quick", "-o", out, "--jobs", 1)
    assert "0 done now" in result.output
    assert {name: (out / name).read_bytes() for name in FILES} == kept


def test_a_file_of_ones_own_with_settings_chosen_by_labels(tmp_path):
    path = save(tmp_path / "mine.npz", folds=folds())
    options = ("--data", path, "--methods", "GRMF,Concat", "--seeds", 2, "--rates", "0.1,0.9", "--jobs", 2)
    result = run(*options, "--tuned", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert len(rows(tmp_path / "out" / "runs.csv")) == 2 * 2 * (12 + 4)
    text = (tmp_path / "out" / "league.md").read_text()
    assert "upper bound" in text
    assert "GRMF minus rival" in text
    tuned = [row for row in rows(tmp_path / "out" / "cells.csv") if row["way"] == "label-tuned"]
    free = {(r["rate"], r["method"]): r for r in rows(tmp_path / "out" / "cells.csv") if r["way"] == "label-free"}
    assert {row["n_settings"] for row in tuned} == {"12", "4"}
    for row in tuned:
        assert float(row["accuracy"]) >= float(free[row["rate"], row["method"]]["accuracy"])
    command = json.loads((tmp_path / "out" / "run.json").read_text())["command"]
    assert "--data mine.npz --methods GRMF,Concat --rates 0.1,0.9 --seeds 2 --time-limit 600 --tuned" in command


def test_what_is_over_the_time_limit_is_absent_and_runs_again_under_a_longer_one(tmp_path):
    out, path = tmp_path / "out", save(tmp_path / "mine.npz", n_samples=400)
    options = ("--data", path, "--methods", "GRMF", "--rates", 0.5, "--seeds", 3, "--jobs", 1, "-o", out)
    assert run(*options, "--time-limit", 1e-4).exit_code == 0
    status = [row["status"] for row in rows(out / "runs.csv")]
    assert status[0] == "over the time limit of 0.0001 s"
    assert status[1:] == ["not tried, since seed 0 was over the time limit of 0.0001 s"] * 2
    page = (out / "league.html").read_text()
    assert "There is no cell in which all 1 method ran" in page
    assert "absent †" in page
    assert "0 done now" in run(*options, "--time-limit", 1e-4).output
    result = run(*options, "--time-limit", 60)
    assert "3 done now" in result.output
    assert "absent †" not in (out / "league.html").read_text()


def test_an_interrupt_keeps_what_is_finished(tmp_path, monkeypatch):
    request = LeagueRequest(tmp_path / "out", methods=("Concat", "BestSingleView"), quick=True, n_jobs=1)

    def interrupt(done, total, left):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_league(request, interrupt, print)
    assert len(rows(tmp_path / "out" / "runs.csv")) == 2
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["runs.csv"]
    outcome = run_league(request, lambda *numbers: None, print)
    assert outcome.n_new == outcome.run["n_runs"] - 2

    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("gapview_lab.league.command.run_league", stop)
    result = run("--quick", "-o", tmp_path / "out")
    assert result.exit_code == 130
    assert "run the same command again to resume" in result.output


def test_tables_of_what_is_there(tmp_path):
    options = ("--quick", "--jobs", 1, "-o", tmp_path / "out")
    assert run(*options, "--methods", "GRMF,Concat", "--data", "made-small").exit_code == 0
    assert run(*options, "--methods", "ImputedKMeans", "--data", "made-small", "--seeds", 2).exit_code == 0
    before = (tmp_path / "out" / "runs.csv").read_text()
    result = run(*options, "--methods", "GRMF,Concat,ImputedKMeans,PVC", "--data", "made-small", "--tables-only")
    assert result.exit_code == 0, result.output
    assert "0 done now, 3 in all" in result.output
    assert (tmp_path / "out" / "runs.csv").read_text() == before
    text = (tmp_path / "out" / "league.md").read_text()
    assert "in which all 3 methods ran" in text
    assert "**PVC:** not run" in text
    two = run(*options, "--methods", "GRMF,ImputedKMeans", "--data", "made-small", "--seeds", 2, "--tables-only")
    assert two.exit_code == 0, two.output
    assert "**GRMF:** run with 1 of 2 seeds" in (tmp_path / "out" / "league.md").read_text()


def test_nothing_is_written_when_the_page_cannot_be(tmp_path, monkeypatch):
    def fail(*arguments, **more):
        raise RuntimeError("no page")

    monkeypatch.setattr("gapview_lab.league.league.league_page", fail)
    with pytest.raises(RuntimeError, match="no page"):
        run_league(
            LeagueRequest(tmp_path / "out", methods=("Concat",), quick=True, n_jobs=1), lambda *numbers: None, print
        )
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["runs.csv"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--methods", "KMeans"], "There is no method 'KMeans' in the league. Choose among: "),
        (["--data", "nowhere.npz"], "There is no file and no data set 'nowhere.npz'"),
        (["--data", "{nolabel}"], "holds no labels"),
        (["--data", "{mine}", "--rates", "0.25"], "No data set has any of the rates"),
        (["--data", "{mine}", "--data", "{other}"], "Two of the data sets are called 'mine'"),
        (["--rates", "half"], "give numbers from 0 to 1"),
        (["--rates", "2"], "give numbers from 0 to 1"),
        (["--seeds", "0"], "--seeds"),
        (["--time-limit", "0"], "--time-limit"),
    ],
)
def test_bad_input(tmp_path, options, message):
    (tmp_path / "b").mkdir()
    files = {
        "nolabel": save(tmp_path / "nolabel.npz", labels=False),
        "mine": save(tmp_path / "mine.npz"),
        "other": save(tmp_path / "b" / "mine.npz"),
    }
    result = run("-o", tmp_path / "out", *(option.format(**files) for option in options))
    assert result.exit_code in (1, 2)
    assert message in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_without_a_folder_the_league_runs_on_what_it_has(tmp_path, monkeypatch):
    seen, said = [], []

    def stop(sources, *rest):
        seen.extend(sources)
        raise DataFileError("stop here")

    monkeypatch.setattr(league, "all_tasks", stop)
    with pytest.raises(DataFileError, match="stop here"):
        run_league(LeagueRequest(tmp_path / "out"), lambda *numbers: None, said.append)
    assert [source.name for source in seen] == ["digits", "made-two-views", "made-four-views", "made-wide"]
    assert any("only embedded and made data" in line for line in said)


def test_help_has_an_example():
    result = CliRunner().invoke(main, ["league", "--help"])
    assert "Example: gapview-lab league" in result.output
    assert "league" in CliRunner().invoke(main, ["--help"]).output


def test_markdown_shows_what_the_page_shows():
    table = Table(
        "c", ("x", "y"), (Group((Row(("a|b",), (Shown("1", "±2", "+3", best=True),)),), "G", "r"),), "o", ("n",)
    )
    page = Page("T", ("lead",), (Section("S", (Text("5 < *7*"), Items((("term", "text"),)), table)),), "end")
    text = render_markdown(page)
    for part in (
        "# T\n",
        "## S\n",
        "5 &lt; \\*7\\*",
        "* **term** text",
        "| a\\|b | **1** ±2 (+3) |",
        "| **G** r |  |",
        "* n",
    ):
        assert part in text


def test_a_league_with_a_complete_view_has_kernel_completion(tmp_path):
    methods = ("KernelCompletion", "Concat")
    request = LeagueRequest(tmp_path / "out", methods=methods, quick=True, complete_view=True, n_jobs=1)
    outcome = run_league(request, lambda *numbers: None, print)
    assert [place.method for place in outcome.summaries[0].common.places] == ["KernelCompletion", "Concat"]
    assert "--complete-view" in outcome.run["command"]
    page = (tmp_path / "out" / "league.md").read_text()
    assert "from every view but the first a share, the rate, is hidden at random" in page
