"""Results are there whole or not at all: folders that are filled, replaced, refused, and commands that are stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from gapview.commands.results import RECORD, check_new_file, results_folder
from gapview.datasets import make_views
from gapview.errors import DataFileError

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from awkward_files import clustered, made, run, write_plain


def fill(folder, text="new"):
    (folder / "labels.csv").write_text(text)
    (folder / RECORD).write_text(json.dumps({"results": ["labels.csv"]}))


def fill_and_fail(folder, error):
    fill(folder)
    raise error


def fill_both(folder, other):
    fill(folder)
    other.mkdir()
    (other / "theirs").write_text("")


def names(folder):
    return sorted(item.name for item in folder.iterdir())


class TestResultsFolder:
    def test_appears_at_the_end_and_not_before(self, tmp_path):
        target = tmp_path / "a" / "out"
        with results_folder(target, force=False) as folder:
            fill(folder)
            assert not target.exists()
        assert names(target) == ["labels.csv", RECORD]
        assert names(tmp_path / "a") == ["out"]
        (tmp_path / "other").mkdir()
        assert target.stat().st_mode == (tmp_path / "other").stat().st_mode

    @pytest.mark.parametrize("error", [KeyboardInterrupt, DataFileError, MemoryError])
    def test_nothing_is_left_when_it_fails(self, tmp_path, error):
        with pytest.raises(error), results_folder(tmp_path / "a" / "b" / "out", force=False) as folder:
            fill_and_fail(folder, error)
        assert names(tmp_path) == []

    def test_an_empty_folder_is_filled_and_stays_the_same_folder(self, tmp_path):
        target = tmp_path / "out"
        target.mkdir()
        (target / ".DS_Store").write_text("")
        before = target.stat().st_ino
        with results_folder(target, force=False) as folder:
            fill(folder)
        assert names(target) == [".DS_Store", "labels.csv", RECORD]
        assert target.stat().st_ino == before
        assert names(tmp_path) == ["out"]

    def test_a_failure_leaves_an_empty_folder_empty(self, tmp_path):
        (tmp_path / "out").mkdir()
        with pytest.raises(KeyboardInterrupt), results_folder(tmp_path / "out", force=False) as folder:
            fill_and_fail(folder, KeyboardInterrupt)
        assert names(tmp_path / "out") == []

    def test_results_are_replaced_only_when_asked_and_only_when_complete(self, tmp_path):
        target = tmp_path / "out"
        with results_folder(target, force=False) as folder:
            fill(folder, "old")
            (folder / "report.html").write_text("old")
            (folder / RECORD).write_text(json.dumps({"results": ["labels.csv", "report.html"]}))
        with pytest.raises(DataFileError, match="holds results already.*--force"), results_folder(target, force=False):
            pytest.fail("the folder must be refused before anything is done")
        with pytest.raises(KeyboardInterrupt), results_folder(target, force=True) as folder:
            fill_and_fail(folder, KeyboardInterrupt)
        assert (target / "labels.csv").read_text() == "old"
        with results_folder(target, force=True) as folder:
            fill(folder)
            assert (target / "labels.csv").read_text() == "old"
        assert names(target) == ["labels.csv", RECORD]
        assert (target / "labels.csv").read_text() == "new"
        assert names(tmp_path) == ["out"]

    def test_the_old_results_come_back_if_the_new_cannot_be_put_there(self, tmp_path, monkeypatch):
        target = tmp_path / "out"
        with results_folder(target, force=False) as folder:
            fill(folder, "old")
        rename = os.rename
        moves = []

        def fails_at_the_second(source, goal, **more):
            moves.append(goal)
            if len(moves) == 2:
                raise OSError(5, "Input/output error")
            rename(source, goal, **more)

        monkeypatch.setattr(os, "rename", fails_at_the_second)
        with (
            pytest.raises(DataFileError, match="Input/output error. What was there is untouched"),
            results_folder(target, force=True) as folder,
        ):
            fill(folder)
        assert len(moves) == 3
        assert (target / "labels.csv").read_text() == "old"
        assert names(tmp_path) == ["out"]

    @pytest.mark.parametrize("force", [False, True])
    def test_what_is_not_ours_is_never_replaced(self, tmp_path, force):
        with results_folder(tmp_path / "out", force=False) as folder:
            fill(folder)
        (tmp_path / "out" / "thesis.docx").write_text("years of work")
        with (
            pytest.raises(DataFileError, match=r"something else than results of gapview, 'thesis\.docx'"),
            results_folder(tmp_path / "out", force=force),
        ):
            pytest.fail("the folder must be refused before anything is done")
        with pytest.raises(DataFileError, match="something else"), results_folder(tmp_path, force=force):
            pytest.fail("the folder must be refused before anything is done")

    def test_the_folder_one_is_in(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "out").mkdir()
        monkeypatch.chdir(tmp_path / "out")
        with results_folder(type(tmp_path)("."), force=False) as folder:
            fill(folder)
        assert names(tmp_path / "out") == ["labels.csv", RECORD]
        with (
            pytest.raises(DataFileError, match="the one you are in"),
            results_folder(type(tmp_path)("."), force=True),
        ):
            pytest.fail("the folder must be refused before anything is done")

    def test_through_a_link(self, tmp_path):
        (tmp_path / "disk").mkdir()
        (tmp_path / "out").symlink_to(tmp_path / "disk" / "out")
        for _ in range(2):
            with results_folder(tmp_path / "out", force=True) as folder:
                fill(folder)
        assert (tmp_path / "out").is_symlink()
        assert names(tmp_path / "disk" / "out") == ["labels.csv", RECORD]

    def test_where_no_folder_can_be(self, tmp_path):
        (tmp_path / "file").write_text("")
        with (
            pytest.raises(DataFileError, match="Cannot make the folder .*out.*Choose another folder"),
            results_folder(tmp_path / "file" / "out", force=False),
        ):
            pytest.fail("the folder cannot be made")
        assert names(tmp_path) == ["file"]

    def test_somebody_else_was_faster(self, tmp_path):
        with (
            pytest.raises(DataFileError, match="cannot be put into"),
            results_folder(tmp_path / "out", force=False) as folder,
        ):
            fill_both(folder, tmp_path / "out")
        assert names(tmp_path) == ["out"]
        assert names(tmp_path / "out") == ["theirs"]


def test_a_file_is_not_written_over_what_is_read(tmp_path):
    file, link = tmp_path / "a.csv", tmp_path / "b.csv"
    file.write_text("")
    link.hardlink_to(file)
    with pytest.raises(DataFileError, match="one of the files to read"):
        check_new_file(link, [file], force=True)
    with pytest.raises(DataFileError, match="is there already.*--force"):
        check_new_file(link, [], force=False)
    check_new_file(link, [], force=True)
    check_new_file(tmp_path / "new" / "c.csv", [file], force=False)
    assert names(tmp_path) == ["a.csv", "b.csv"]


def test_bad_commands_leave_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_plain(tmp_path, made())
    (tmp_path / "file").write_text("")
    before = names(tmp_path)
    refused = {
        ("nothing.csv", "-k", "3"): (1, "There is no file 'nothing.csv'"),
        (".", "-k", "3"): (1, "is a folder"),
        ("blood.csv",): (2, "How many groups? Give -k 3, or -k auto"),
        ("-k", "3"): (2, "Missing argument 'FILES...'"),
        ("blood.csv", "-k", "0"): (2, "'0' is neither a whole number of at least 1 nor the word auto"),
        ("blood.csv", "-k", "five"): (2, "'five' is neither"),
        ("blood.csv", "-k", "500"): (1, "-k 500 is more than the number of samples: 68"),
        ("blood.csv", "-k", "3", "--method", "Magic"): (2, "'Magic' is not one of"),
        ("blood.csv", "-k", "auto", "--method", "GRMF"): (1, "GRMF needs a number"),
        ("blood.csv", "-k", "3", "--scale", "none", "--scale", "unit"): (1, "one for each view"),
        ("blood.csv", "-k", "3", "--scale", "inch"): (1, "scale must be one of"),
        ("blood.csv", "-k", "3", "--scale", "bones=unit"): (1, "The views are 'blood'"),
        ("blood.csv", "-k", "3", "--set", "max_iter"): (1, "--set takes a name and a value"),
        ("nothing.csv", "-k", "3", "--set", "max_iter=0"): (1, "max_iter must be an integer of at least 1"),
        ("blood.csv", "-k", "3", "--set", "max_iter=2", "--set", "max_iter=3"): (1, "more than once"),
        ("blood.csv", "-k", "3", "--set", "speed=1"): (1, "no setting 'speed'; it has assign, bridge, "),
        ("blood.csv", "-k", "3", "--set", "n_clusters=4"): (1, "give -k instead"),
        ("blood.csv", "-k", "3", "--seed", "-1"): (2, "--seed"),
        ("blood.csv", "-k", "3", "--id", "nobody"): (1, "no column 'nobody' in 'blood.csv'"),
        ("blood.csv", "blood.csv", "-k", "3"): (1, "given more than once"),
        ("a=blood.csv", "a=scans.csv", "-k", "3"): (1, "'a' is given more than once"),
        ("blood.csv", "-k", "3", "-o", "file"): (2, "is a file"),
        ("blood.csv", "-k", "3", "-o", "file/out"): (1, "Cannot make the folder 'file/out'"),
        ("blood.csv", "-k", "3", "-o", "."): (1, "something else than results"),
    }
    for arguments, (code, words) in refused.items():
        result = run("cluster", *arguments, "--no-report", code=code)
        assert words in result.stderr, arguments
        assert result.stderr.count("Error: ") == 1
        assert names(tmp_path) == before, arguments


def test_results_that_are_there_are_kept_unless_told(tmp_path):
    files = write_plain(tmp_path, made())
    clustered(tmp_path / "out", *files)
    before = (tmp_path / "out" / "labels.csv").stat().st_mtime_ns
    assert "--force" in run("cluster", *files, "-k", "2", "-o", tmp_path / "out", code=1).stderr
    assert (tmp_path / "out" / "labels.csv").stat().st_mtime_ns == before
    clustered(tmp_path / "out", *files, "--force")
    assert (tmp_path / "out" / "labels.csv").stat().st_mtime_ns > before


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send")
def test_control_c_leaves_a_clean_state(tmp_path):
    views = make_views(n_samples=6000, n_clusters=6, missing_rate=0.3, random_state=0).views
    for k, name in enumerate("ab"):
        matrix = np.full((views.n_samples, views.n_features[k]), np.nan)
        matrix[views.rows(k)] = views.matrices[k]
        np.save(tmp_path / f"{name}.npy", matrix)
    command = [sys.executable, "-m", "gapview", "cluster", "a.npy", "b.npy", "-k", "auto", "-o", "results/out"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # Where the tests run in the background, the signal may be switched off for all they start
    process = subprocess.Popen(
        command, cwd=tmp_path, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **pipes
    )
    assert process.stdout is not None
    while not process.stdout.readline().startswith("Samples"):  # from here on it fits
        assert process.poll() is None
    time.sleep(0.3)
    assert process.poll() is None
    assert len(names(tmp_path / "results")) == 1  # where results are prepared
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors.startswith("Stopped. Nothing was written, and nothing is left behind; run the same command again")
    assert len(errors.splitlines()) == 1
    assert names(tmp_path) == ["a.npy", "b.npy"]
