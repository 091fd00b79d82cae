"""Processes that are killed, told to end, or write to the same place at once: nothing finished is lost or mixed."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import gapview
from gapview import GRMF
from gapview.commands.cli import main
from gapview.commands.console import signals_ignored, signals_interrupt
from gapview.commands.results import RECORD, put_in_place, results_folder
from gapview.datasets import make_views
from gapview.errors import DataFileError
from gapview.persist.checkpoints import journal as journal_module
from gapview.progress import listening

pytest.importorskip("pandas")

from awkward_files import made, run, write_plain

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")

# A process that is forked from one that has loaded everything starts in no time
PROCESSES = multiprocessing.get_context("forkserver" if sys.platform != "win32" else "spawn")
PROCESSES.set_forkserver_preload(["gapview.commands.cli", "pandas"])


def names(folder):
    return sorted(item.name for item in folder.iterdir())


def _command(folder, words, pause):
    """Run a command with every step kept at once, and slow enough to be met while it fits."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    os.chdir(folder)
    for place, name in enumerate(("said", "errors"), start=1):
        os.dup2(os.open(f"{folder}-{name}-{os.getpid()}", os.O_WRONLY | os.O_CREAT), place)
    journal_module.SECONDS = 0.0
    save = journal_module.StateRecord.save

    def slow(record, state):
        save(record, state)
        time.sleep(pause)

    journal_module.StateRecord.save = slow
    main(words)


class Command:
    """``gapview cluster`` in a process of its own."""

    def __init__(self, folder, *arguments, pause=0.05):
        words = ["cluster", "blood.csv", "scans.csv", "-k", "3", "--no-report", "--method", "GRMF", *arguments]
        self.process = PROCESSES.Process(target=_command, args=(str(folder), words, pause))
        self.process.start()
        self._folder = folder

    def ended(self):
        """Wait for the end; return the exit code and what was said of errors."""
        self.process.join(60)
        return self.process.exitcode, Path(f"{self._folder}-errors-{self.process.pid}").read_text()


def wait_for(what, seconds=20.0):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it has not come about"
        time.sleep(0.02)


@pytest.fixture
def files(tmp_path):
    write_plain(tmp_path, made())
    return ["blood.csv", "scans.csv"]


def test_a_command_that_is_told_to_end_keeps_what_was_finished_and_nothing_else(tmp_path, files):
    command = Command(tmp_path, "-o", "out", "--set", "max_iter=300")
    wait_for((tmp_path / "out.unfinished" / "iterations-1.part").exists)
    os.kill(command.process.pid, signal.SIGTERM)
    code, errors = command.ended()
    assert code == 128 + signal.SIGTERM, errors
    assert errors.startswith("Stopped. Finished work is kept in ")
    assert "out.unfinished'; run the same command again to resume, or delete that folder." in errors
    assert len(errors.splitlines()) == 1
    assert names(tmp_path) == ["blood.csv", "out.unfinished", "scans.csv"]
    arguments = [tmp_path / "blood.csv", tmp_path / "scans.csv", "--no-report", "--method", "GRMF"]
    arguments += ["--set", "max_iter=300"]
    other = run("cluster", *arguments, "-k", "4", "-o", tmp_path / "out", code=1)
    assert "n_clusters was 3 and is 4 now. Run the same command as before to resume, or give --force" in other.stderr
    assert names(tmp_path) == ["blood.csv", "out.unfinished", "scans.csv"]
    again = run("cluster", *arguments, "-k", "3", "-o", tmp_path / "out")
    assert "Resuming" in again.stdout
    run("cluster", *arguments, "-k", "3", "-o", tmp_path / "undisturbed")
    assert names(tmp_path) == ["blood.csv", "out", "scans.csv", "undisturbed"]
    for name in ("labels.csv", "embedding.csv", "model.gapview"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes()


def test_what_an_earlier_command_has_kept_can_be_dropped(tmp_path, files):
    command = Command(tmp_path, "-o", "out")
    wait_for((tmp_path / "out.unfinished" / "iterations-1.part").exists)
    command.process.kill()
    command.process.join()
    views = [tmp_path / "blood.csv", tmp_path / "scans.csv"]
    run("cluster", *views, "-k", "4", "--no-report", "--method", "GRMF", "-o", tmp_path / "out", "--force")
    assert names(tmp_path) == ["blood.csv", "out", "scans.csv"]
    assert gapview.load(tmp_path / "out" / "model.gapview").n_clusters == 4


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
)
def test_signals_that_end_a_process_are_heard(number):
    before = signal.getsignal(number)
    try:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        with signals_interrupt(), signals_ignored():
            os.kill(os.getpid(), number)
        with pytest.raises(KeyboardInterrupt) as stopped, signals_interrupt():
            _stop(number)
        assert getattr(stopped.value, "exit_code", 130) == 128 + number
        signal.signal(number, signal.SIG_IGN)  # as nohup does
        with signals_interrupt():
            os.kill(os.getpid(), number)
    finally:
        signal.signal(number, before)


def _stop(number):
    os.kill(os.getpid(), number)
    time.sleep(5)


def test_a_killed_command_is_cleared_up_after_by_the_next(tmp_path, files):
    command = Command(tmp_path, "-o", "out")
    wait_for((tmp_path / "out.unfinished" / "iterations-1.part").exists)
    command.process.kill()
    command.process.join()
    assert len([name for name in names(tmp_path) if name.startswith(".out.")]) == 1
    views = [tmp_path / "blood.csv", tmp_path / "scans.csv"]
    for output in ("out", "undisturbed"):
        run("cluster", *views, "-k", "3", "--no-report", "--method", "GRMF", "-o", tmp_path / output)
    assert names(tmp_path) == ["blood.csv", "out", "scans.csv", "undisturbed"]
    assert (tmp_path / "out" / "labels.csv").read_bytes() == (tmp_path / "undisturbed" / "labels.csv").read_bytes()


def test_what_others_are_writing_is_left_alone(tmp_path):
    with results_folder(tmp_path / "out", force=False) as ours:
        (ours / "labels.csv").write_text("ours")
        with results_folder(tmp_path / "out", force=False) as theirs:
            (theirs / "labels.csv").write_text("theirs")
            assert ours.exists()
        assert (tmp_path / "out" / "labels.csv").read_text() == "theirs"
        (ours / RECORD).write_text("{}")
        with pytest.raises(DataFileError, match="cannot be put into .* What was there is untouched"):
            _leave(ours, tmp_path / "out")
        shown = names(tmp_path)
        (tmp_path / "out" / "labels.csv").unlink()
        (tmp_path / "out").rmdir()
    assert shown == [ours.name, "out"]
    assert names(tmp_path / "out") == ["labels.csv", RECORD]


def _leave(staging, target):
    put_in_place(staging, target, empty=False, filled=False)


def test_two_that_fill_one_empty_folder_do_not_mix(tmp_path):
    target = tmp_path / "out"
    target.mkdir()
    first = results_folder(target, force=False)
    ours = first.__enter__()
    (ours / "labels.csv").write_text("ours")
    # The other has looked before there was anything in the folder
    (target / "labels.csv").write_text("theirs")
    (target / RECORD).write_text("{}")
    with pytest.raises(DataFileError, match="another command has put something there meanwhile"):
        first.__exit__(None, None, None)
    assert names(target) == ["labels.csv", RECORD]
    assert (target / "labels.csv").read_text() == "theirs"


def test_results_that_were_being_replaced_when_the_power_failed_come_back(tmp_path):
    old = tmp_path / ".out.0123456789ab.old"
    old.mkdir()
    (old / "labels.csv").write_text("old")
    (old / RECORD).write_text(json.dumps({"results": ["labels.csv"]}))
    (tmp_path / ".out.ba9876543210").mkdir()
    (tmp_path / ".out.thesis").mkdir()
    with pytest.raises(DataFileError, match="holds results already"), results_folder(tmp_path / "out", force=False):
        pytest.fail("the old results must be found")
    assert (tmp_path / "out" / "labels.csv").read_text() == "old"
    assert names(tmp_path) == [".out.thesis", "out"]


def test_two_commands_with_one_output(tmp_path, files):
    both = [Command(tmp_path, "-o", "out", "--seed", str(seed), pause=0.01) for seed in (0, 1)]
    ended = [command.ended() for command in both]
    assert sorted(code for code, _ in ended) == [0, 1], ended
    said = next(errors for code, errors in ended if code)
    assert said.startswith("Error: ")
    assert "Traceback" not in said
    record = json.loads((tmp_path / "out" / RECORD).read_text())
    model = gapview.load(tmp_path / "out" / "model.gapview")
    assert record["seed"] == model.random_state
    rows = (tmp_path / "out" / "labels.csv").read_text().splitlines()[1:]
    assert [int(row.split(",")[1]) for row in rows] == model.labels_.tolist()
    assert [name for name in names(tmp_path) if not name.endswith(".unfinished")] == ["blood.csv", "out", "scans.csv"]


def _save_often(seed, path, ready):
    model = GRMF(2, max_iter=3, tol=0, random_state=seed).fit(make_views(50, n_clusters=2, random_state=seed).views)
    ready.wait(60)
    for _ in range(40):
        model.save(path)


def test_two_that_save_one_model_leave_a_whole_one(tmp_path):
    path, ready = tmp_path / "model.gapview", PROCESSES.Barrier(2)
    both = [PROCESSES.Process(target=_save_often, args=(seed, str(path), ready)) for seed in (1, 2)]
    for process in both:
        process.start()
    wait_for(path.exists)
    seen = {gapview.load(path).random_state for _ in range(30)}
    for process in both:
        process.join(60)
    assert [process.exitcode for process in both] == [0, 0]
    assert seen <= {1, 2}
    assert names(tmp_path) == ["model.gapview"]


def test_two_fits_with_one_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "SECONDS", 0.0)
    views = make_views(60, n_clusters=2, missing_rate=0.3, random_state=0).views
    said = []

    def fit_again(event):
        if event.phase == "Iterating" and event.done == 5:
            with listening(lambda event: None), pytest.raises(DataFileError, match="in use by another fit") as error:
                GRMF(2, random_state=0).fit(views, checkpoint=tmp_path / "fit")
            said.append(error)

    with listening(fit_again):
        model = GRMF(2, random_state=0).fit(views, checkpoint=tmp_path / "fit")
    assert len(said) == 1
    assert np.array_equal(model.labels_, GRMF(2, random_state=0).fit(views).labels_)
    assert names(tmp_path) == []
