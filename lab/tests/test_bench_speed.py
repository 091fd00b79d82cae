"""Speed as a command: figures from their definitions, resuming, pages, bad input."""

from __future__ import annotations

import csv
import time

import numpy as np
import pytest
from click.testing import CliRunner

from gapview.datasets import make_views, paired_split
from gapview.graph import knn_graph
from gapview_lab.cli import main
from gapview_lab.speed import SpeedRequest, machine, plain_graph, run_speed, speed
from gapview_lab.speed.goals import speed_goals
from gapview_lab.speed.plan import plan_speed
from gapview_lab.speed.quality import as_type
from gapview_lab.speed.results import FigureStore, Measured, SpeedTask
from pages import check_page


def run(*arguments):
    return CliRunner().invoke(main, [*map(str, arguments)], env={"GAPVIEW_DATA": None})


def rows(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


class TestFigures:
    def test_speeds_are_operations_and_bytes_over_seconds(self, monkeypatch):
        def two_seconds(n_runs, work):
            work()
            return 2.0

        monkeypatch.setattr(machine, "best_of", two_seconds)
        assert machine.product_speed(100, "float64") == 2 * 100**3 / 2.0 / 1e9
        assert machine.memory_speed(8000) == 2 * 8000 / 2.0 / 1e9

    def test_the_best_of_several_runs_counts(self):
        pauses = iter([0.1, 0.001, 0.1])
        assert 0.001 <= machine.best_of(3, lambda: time.sleep(next(pauses))) < 0.1

    def test_comparisons(self):
        assert Measured.faster("a", 2.0, "b", 10.0).compared == 5.0
        assert Measured.share("a", 2.0, "s", "b", 8.0).compared == 0.25
        assert Measured.points("a", 70.0, "b", 71.5).compared == -1.5

    def test_the_plain_graph_is_the_graph(self):
        points = np.random.RandomState(0).normal(size=(60, 5))
        np.testing.assert_array_equal(plain_graph(points, 7), knn_graph(points, 7).toarray())

    def test_goals_take_the_figure_that_speaks_least_for_them(self, tmp_path):
        name, plain = "GRMF, 100 iterations", "plain dense Algorithm 1"
        store = FigureStore(tmp_path / "m.csv", "1")
        for case, ratio in (("x", 50.0), ("y", 39.0)):
            store.keep(SpeedTask("fit", case, "c", "full"), [Measured.faster(name, 1.0, plain, ratio)], 1.0, "1")
        (goal,) = speed_goals(store.records)
        assert (goal.measured, goal.met) == ("39.0 ×", False)
        assert speed_goals(store.records[:1])[0].met


SPEED_FILES = {"measured.csv", "figures.csv", "fits.png", "fits.svg", "speed.html", "speed.md", "run.json"}


def test_the_quick_speed_run_goes_on_where_it_stopped(tmp_path):
    out = tmp_path / "out"
    result = run("speed", "--quick", "-o", out)
    assert result.exit_code == 0, result.output
    assert {path.name for path in out.iterdir()} == SPEED_FILES
    assert all(f"Wrote     {out / name}\n" in result.output for name in SPEED_FILES)
    figures = rows(out / "figures.csv")
    assert {row["part"] for row in figures} == {"machine", "fit", "iterations", "passes", "quality"}
    for row in figures:
        value, reference, compared = (float(row[name]) for name in ("value", "reference_value", "compared"))
        expected = {"times faster": reference / value, "share": value / reference, "points": value - reference}
        if row["how"] and np.isfinite(value):
            assert compared == pytest.approx(expected[row["how"]])
    page = (out / "speed.html").read_text()
    check_page(page)
    assert page.count("<svg") == 1
    assert str(tmp_path) not in page + (out / "run.json").read_text()

    text = (out / "measured.csv").read_text()
    (out / "measured.csv").write_text(text[:-9])  # cut off inside the last line: its task has one of two figures
    assert "1 done now, 8 in all" in run("speed", "--quick", "-o", out).output
    assert [row["name"] for row in rows(out / "figures.csv")] == [row["name"] for row in figures]
    kept = {name: (out / name).read_bytes() for name in SPEED_FILES}
    assert "0 done now" in run("speed", "--quick", "-o", out).output
    assert {name: (out / name).read_bytes() for name in SPEED_FILES} == kept

    assert CliRunner().invoke(main, ["speed-page", str(tmp_path / "d.md"), "--speed", str(out)]).exit_code == 0
    written = (tmp_path / "d.md").read_text()
    assert "### The whole fit" in written
    assert "Not measured yet" in written  # the sizes
    wrong = CliRunner().invoke(main, ["speed-page", str(tmp_path / "e.md"), "--scale", str(out)])
    assert "holds no results of gapview-lab scale" in wrong.output
    assert not (tmp_path / "e.md").exists()


def test_an_interrupt_keeps_what_was_measured(tmp_path, monkeypatch):
    def stop(done, total, left):
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_speed(SpeedRequest(tmp_path, quick=True), stop, print)
    assert {row["part"] for row in rows(tmp_path / "measured.csv")} == {"machine"}
    # Another computer measures everything anew
    monkeypatch.setattr(speed, "computer", lambda: "another one")
    with pytest.raises(KeyboardInterrupt):
        run_speed(SpeedRequest(tmp_path, quick=True), stop, print)
    assert len({row["computer"] for row in rows(tmp_path / "measured.csv")}) == 2


def test_data_that_are_not_there_are_left_out(tmp_path):
    said = []
    plan = plan_speed(None, False, "c", said.append)
    assert {task.part for task in plan.works} == {"machine", "iterations"}
    assert len(said) == 3
    (tmp_path / "handwritten_2v.npz").write_text("not a file of arrays")
    plan = plan_speed(tmp_path, False, "c", said.append)
    assert {task.part for task in plan.works} == {"machine", "iterations"}


@pytest.mark.data
def test_the_full_run_measures_what_was_asked_for(dataset):
    import os
    from pathlib import Path

    dataset("handwritten_2v")
    plan = plan_speed(Path(os.environ["GAPVIEW_DATA"]), False, "c", print)
    cases = {}
    for task in plan.works:
        cases.setdefault(task.part, []).append(task.case)
    assert [len(cases[part]) for part in ("machine", "fit", "iterations", "passes")] == [1, 3, 2, 5]
    assert cases["iterations"][0] == "200,000 × 256, K = 10, float32"


def test_views_in_another_type():
    views = paired_split(make_views(40, (3, 4), random_state=0).views, 0.5, random_state=0)
    single = as_type(views, np.float32)
    assert {matrix.dtype for matrix in single.matrices} == {np.dtype("float32")}
    np.testing.assert_array_equal(single.mask, views.mask)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["scale", "--sizes", "many"], "give whole numbers of samples"),
        (["scale", "--sizes", "5"], "a size must be"),
        (["scale", "--methods", "KMeans"], "methods must be some of GRMF, GRMF-data, BridgedGRMF, BridgedGRMF-fixed"),
        (["scale", "--time-limit", "0"], "--time-limit"),
        (["scale", "--device", "abacus"], "device"),
        (["speed", "--data-dir", "nowhere"], "--data-dir"),
    ],
)
def test_bad_input(tmp_path, options, message):
    result = run(*options, "-o", tmp_path / "out")
    assert result.exit_code in (1, 2)
    assert message in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_help_has_examples():
    for command in ("speed", "scale"):
        assert f"Example: gapview-lab {command}" in run(command, "--help").output
