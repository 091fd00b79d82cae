"""Size as a command: growth, phases of a fit, runs in processes of their own, resuming."""

from __future__ import annotations

import csv
import json
import time
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

import gapview
from gapview import GRMF, BridgedGRMF
from gapview.datasets import make_views
from gapview.errors import DataFileError
from gapview.progress import phase
from gapview_lab.cli import main
from gapview_lab.common.markdown import render_markdown
from gapview_lab.speed import ScaleRequest, fit_power, room, run_scale, scale, scale_runs
from gapview_lab.speed.growth import Growth
from gapview_lab.speed.made import read_made, write_made
from gapview_lab.speed.phases import PHASES, PhaseClock, clocked_phases, peak_memory
from gapview_lab.speed.scale_page import cause, scale_page
from gapview_lab.speed.scale_runs import ScaleRun, ScaleTask, ScaleWork
from pages import check_page


def run(*arguments):
    return CliRunner().invoke(main, [*map(str, arguments)], env={"GAPVIEW_DATA": None})


def rows(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def silent(*numbers):
    pass


class TestGrowth:
    @given(st.floats(0.3, 2.5), st.floats(0.01, 10), st.lists(st.integers(100, 10**6), min_size=2, unique=True))
    def test_powers_are_found_again(self, exponent, factor, sizes):
        power = fit_power(sizes, [factor * n**exponent for n in sizes])
        assert power.exponent == pytest.approx(exponent, abs=1e-6)
        np.testing.assert_allclose(power.at(sizes), [factor * n**exponent for n in sizes], rtol=1e-4)

    def test_what_cannot_be_measured_has_no_exponent(self):
        assert fit_power([100, 200, 400], [1e-4, 2e-4, 1.0]) is None
        assert fit_power([100], [1.0]) is None

    def test_phases_beyond_growth_in_step_make_up_that_of_the_total(self):
        growth = Growth("GRMF", (100, 300), (4.0, 20.0), {"a": (1.0, 10.0), "b": (2.0, 9.0), "c": (1.0, 1.0)})
        assert growth.excess() == {"a": 7.0, "b": 3.0, "c": -2.0}
        assert sum(growth.excess().values()) == growth.totals[1] - 3 * growth.totals[0]
        said = "In step with n, 3 times the samples would take 12.00 s; they took 20.00 s, +8.00 s: "
        assert cause(growth) == said + "a +7.00 s, b +3.00 s and c −2.00 s."


class TestPhases:
    views = make_views(300, (8, 6), n_clusters=3, missing_rate=0.3, random_state=0).views

    @pytest.mark.parametrize(
        ("model", "absent"),
        [
            (GRMF(3, random_state=0), {"bridge", "choice", "refinement", "to the device"}),
            (BridgedGRMF(3, selection="fixed", refine=False, random_state=0), {"refinement", "to the device"}),
            # With all samples tried, views are scaled and searched within the choice
            (BridgedGRMF(3, random_state=0), {"to the device", "scaling", "neighbours", "bridge"}),
            (GRMF(3, device="cpu", random_state=0), {"bridge", "choice", "refinement"}),
        ],
    )
    def test_every_phase_has_its_time(self, model, absent):
        if model.device:
            pytest.importorskip("torch")
        clock = PhaseClock()
        outside = time.perf_counter()
        with clocked_phases(clock):
            begin = time.perf_counter()
            model.fit(self.views)
            whole = time.perf_counter() - begin
        outside = time.perf_counter() - outside
        assert {name for name, seconds in clock.seconds.items() if not seconds} == absent
        assert whole <= clock.total <= outside
        np.testing.assert_array_equal(model.labels_, model.fit(self.views).labels_)

    def test_the_innermost_phase_counts_but_not_within_a_choice(self):
        clock = PhaseClock()
        with clocked_phases(clock):
            for outer in ("bridge", "choice"):
                with phase(outer), phase("neighbours"):
                    time.sleep(0.05)
        assert clock.seconds["neighbours"] >= 0.05
        assert clock.seconds["choice"] >= 0.05
        assert clock.seconds["bridge"] < 0.05
        assert clock.seconds["neighbours"] < clock.total - 0.05  # once, not twice

    def test_nothing_is_counted_after_a_failure(self):
        clock = PhaseClock()
        with pytest.raises(ZeroDivisionError), clocked_phases(clock), phase("scaling"):
            raise ZeroDivisionError
        total = clock.total
        with phase("scaling"):
            time.sleep(0.01)
        assert clock.total == total
        assert clock.seconds["scaling"] > 0

    def test_memory_is_noted_where_it_is_held(self):
        clock = PhaseClock(watch_memory=True)
        with clocked_phases(clock):
            with phase("reading"):
                time.sleep(0.1)
            with phase("scaling"):
                block = np.ones(2**23)  # 64 MB
                time.sleep(0.1)
                del block
        assert 50 < clock.memory["scaling"] - clock.memory["reading"] < 80
        assert peak_memory() >= clock.memory["scaling"] - 1


TASK = ScaleTask("GRMF", 400, "24+16", 0.5, "", 0, "c")


class TestSizes:
    def test_sizes_go_on_where_they_stopped(self, tmp_path):
        out = tmp_path / "out"
        options = ("scale", "--quick", "--methods", "GRMF", "--missing-rate", 0.25, "-o", out, "--sizes")
        assert "1 done now, 1 in all" in run(*options, 200).output
        first = (out / "runs.csv").read_text()
        result = run(*options, "200,500")
        assert result.exit_code == 0, result.output
        assert "1 done now, 2 in all" in result.output
        assert (out / "runs.csv").read_text().startswith(first)
        found = rows(out / "sizes.csv")
        assert all(float(row["processor_seconds"]) > 0 for row in found)
        assert [row["n_samples"] for row in found] == ["200", "500"]
        for row in found:
            # What a user holds: an array for every view, missing rows included
            assert float(row["input_mb"]) == 4 * int(row["n_samples"]) * 40 / 2**20
            assert float(row["peak_mb"]) >= float(row["before_mb"]) > 20
            assert (row["recall"], row["paired"]) == ("1.0", "0.5")
            write_made(tmp_path, int(row["n_samples"]), (24, 16), 0.25)
            arrays, target = read_made(tmp_path)
            model = GRMF(10, random_state=0).fit(arrays)
            assert float(row["ari"]) == pytest.approx(adjusted_rand_score(target, model.labels_), abs=0.02)
        phases = rows(out / "phases.csv")
        for size in ("200", "500"):
            own = {row["phase"]: float(row["seconds"]) for row in phases if row["n_samples"] == size}
            assert sum(own[name] for name in PHASES) == pytest.approx(own["total"], abs=1e-4)
        total = fit_power([200, 500], [float(row["seconds"]) for row in found])
        assert f"n to the power of {total.exponent:.2f}" in result.output
        files = {"runs.csv", "sizes.csv", "phases.csv", "cost-grmf.png", "cost-grmf.svg"}
        files |= {"scale.html", "scale.md", "run.json"}
        assert {path.name for path in out.iterdir()} == files  # the made data are gone
        check_page((out / "scale.html").read_text())
        assert str(tmp_path) not in (out / "scale.html").read_text() + (out / "run.json").read_text()

        assert "0 done now" in run(*options, "200,500").output
        CliRunner().invoke(main, ["speed-page", str(tmp_path / "d.md"), "--scale", str(out)])
        assert "### Where the time of GRMF goes" in (tmp_path / "d.md").read_text()

    def test_a_rival_has_no_recall_no_goals_and_no_device(self, tmp_path, monkeypatch):
        request = ScaleRequest(tmp_path, (200,), ("GRMF", "BipartiteSpectral"), device="cuda", quick=True)
        with monkeypatch.context() as patch:
            patch.setattr(scale, "to_device", lambda *arguments: None)
            assert [(task.method, task.device) for task in scale._tasks(request)] == [
                ("GRMF", "cuda"),
                ("BipartiteSpectral", ""),
            ]
        outcome = run_scale(replace(request, device=None), silent, print)
        rival = outcome.runs[1]
        assert (rival.method, rival.status, np.isnan(rival.recall)) == ("BipartiteSpectral", "done", True)
        assert rival.ari > 0.5
        assert rival.n_iter >= 1
        large = [replace(run, n_samples=1_000_000) for run in outcome.runs]
        page = scale_page(large, scale.growths_of(large), outcome.run, {})
        text = render_markdown(page)
        assert "| GRMF, 1,000,000 samples: share of the neighbours found |" in text
        assert "| BipartiteSpectral, 1,000,000 samples" not in text
        assert "nan" not in text
        check_page((tmp_path / "scale.html").read_text())

    def test_what_takes_too_long_is_said_and_larger_sizes_are_left_out(self, tmp_path, monkeypatch):
        def too_slow(tasks, store, work, n_jobs, progress, *, time_limit):
            store.add(work.lost(tasks[0], f"over the time limit of {time_limit:g} s", time_limit))

        monkeypatch.setattr(scale, "run_all", too_slow)
        monkeypatch.setattr(scale, "made_files", lambda *arguments: nullcontext())
        said = []
        request = ScaleRequest(tmp_path, (200, 400), ("GRMF",), time_limit=5.0, quick=True)
        outcome = run_scale(request, silent, said.append)
        assert said[0] == "GRMF with 200 samples: over the time limit of 5 s"
        assert "GRMF with 400 samples: not begun, since 200 samples were too many" in said[1]
        assert not outcome.growths
        assert "No run has come to an end" in (tmp_path / "scale.md").read_text()
        store = [scale_runs.ScaleStore(tmp_path / "runs.csv", outcome.runs[0].version, limit) for limit in (5.0, 6.0)]
        assert [len(one.done()) for one in store] == [1, 0]

    def test_making_data_that_fails_leaves_the_size_out(self, tmp_path, monkeypatch):
        @contextmanager
        def fail(*arguments):
            raise DataFileError("no room")
            yield

        monkeypatch.setattr(scale, "made_files", fail)
        said = []
        run_scale(ScaleRequest(tmp_path, (200,), ("GRMF",), quick=True), silent, said.append)
        assert said == ["GRMF with 200 samples: no room"]

    def test_a_run_that_would_not_fit_is_not_begun(self, monkeypatch):
        smaller = replace(TASK, n_samples=100)
        known = {smaller: ScaleRun(**vars(smaller), seconds=10.0, before_mb=100.0, peak_mb=300.0)}
        monkeypatch.setattr(room, "free_memory", lambda: 901.0)
        assert room.why_not(TASK, known, 40.0) == ""
        assert "would take at least 40 s: over the time limit" in room.why_not(TASK, known, 39.0)
        monkeypatch.setattr(room, "free_memory", lambda: 899.0)  # needed: 100 + 4 · 200
        assert "about 0.9 GB of memory, and 0.9 are free" in room.why_not(TASK, known, 40.0)
        assert room.why_not(replace(TASK, method="BridgedGRMF"), known, 1.0) == ""
        assert room.why_not(replace(TASK, device="cuda"), known, 1.0) == ""

    def test_what_goes_wrong_is_a_result(self, tmp_path, monkeypatch):
        def fail(*arguments, **more):
            raise MemoryError("no more")

        monkeypatch.setattr(scale_runs, "METHODS", {"GRMF": fail})
        (found,) = ScaleWork(tmp_path, 1, "1").run(TASK)
        assert found.status == "MemoryError: no more"
        assert found.task == TASK

    def test_made_data_are_what_a_user_would_have(self, tmp_path):
        write_made(tmp_path, 400, (6, 4), 0.5)
        arrays, target = read_made(tmp_path)
        assert [(array.shape, array.dtype.name) for array in arrays] == [((400, 6), "float32"), ((400, 4), "float32")]
        missing = np.column_stack([np.isnan(array).all(axis=1) for array in arrays])
        assert missing.mean(axis=0).tolist() == [0.5, 0.5]
        assert not missing.all(axis=1).any()
        assert len(np.unique(target)) == 10

    def test_a_folder_that_cannot_hold_the_data(self, tmp_path):
        with pytest.raises(DataFileError, match="Cannot write made data"):
            write_made(tmp_path / "nowhere", 400, (6, 4), 0.5)


def test_the_phases_of_the_record_are_those_of_the_page():
    run = ScaleRun(**vars(TASK), seconds_by_phase=json.dumps({"neighbours": 1.5}))
    assert run.phases == {"neighbours": 1.5}


class TestPeers:
    def test_means_and_k_means_find_clear_groups(self):
        data = make_views(600, (20, 12), n_clusters=3, missing_rate=0.2, separation=12, random_state=0)
        arrays = [np.full((600, width), np.nan) for width in (20, 12)]
        for k, array in enumerate(arrays):
            array[data.views.rows(k)] = data.views.matrices[k]
        found = scale_runs.METHODS["MeanMiniBatch"](3, random_state=0).fit(arrays)
        assert adjusted_rand_score(data.target, found.labels_) > 0.5

    def test_a_run_over_its_processor_time_is_ended_and_drawn(self, tmp_path, monkeypatch):
        request = ScaleRequest(tmp_path, (300, 600_000), ("MeanMiniBatch",), processor_limit=3.0, memory_limit=8.0)
        monkeypatch.setattr(room, "free_memory", lambda: float("inf"))
        monkeypatch.setattr(scale, "_FEATURES", "40+30")
        outcome = run_scale(request, silent, silent)
        assert [run.status for run in outcome.runs] == ["done", "over the limit of 3 s of processor time"]
        assert (tmp_path / "who-runs.png").exists()


def test_large_data_are_compared_with_another_version_and_shown(tmp_path):
    sources = Path(gapview.__file__).parents[1]
    result = run("large", sources, "--sizes", "300", "-o", tmp_path / "large")
    assert result.exit_code == 0, result.output
    before, now = rows(tmp_path / "large" / "large.csv")
    assert (now["label"], before["ari"], before["recall"]) == ("this version", now["ari"], "1.0")
    again = run("large", sources, "--sizes", "300", "-o", tmp_path / "large")
    assert "processor time" not in again.output  # nothing was repeated
    page = tmp_path / "speed.md"
    assert run("speed-page", page, "--large", tmp_path / "large").exit_code == 0
    text = page.read_text()
    assert f"## Large data: this version and commit {before['label']}" in text
    assert text.count("| 300 |") == 2
    result = run("large", tmp_path, "--sizes", "300", "-o", tmp_path / "other")
    assert result.exit_code == 1
    assert "holds no sources of gapview. Give the folder of a checkout, or its src." in " ".join(result.output.split())
