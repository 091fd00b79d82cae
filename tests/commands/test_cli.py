"""The command line, and files written whole or not at all."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gapview.commands.cli import main
from gapview.errors import DataFileError
from gapview.utils.storage import make_folder, write_table, write_whole


def test_demo_says_what_it_did_and_wrote(tmp_path):
    result = CliRunner().invoke(main, ["demo", "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    for part in (
        "1797 handwritten digits",
        "898 samples keep both views",
        "accuracy",
        "0 is filling in the mean, 1 is perfect",
        "19 candidates were compared, without labels; `gapview info ",
    ):
        assert part in result.output
    with (tmp_path / "out" / "labels.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 1797
    assert set(rows[0]) == {"id", "label", "confidence", "has_pixels", "has_fourier"}
    with (tmp_path / "out" / "embedding.csv").open() as stream:
        assert len(next(csv.reader(stream))) == 21
    for file in ("labels.csv", "embedding.csv"):
        assert str(tmp_path / "out" / file) in result.output


@pytest.mark.usefixtures("few_digits")
def test_demo_twice_gives_the_same(tmp_path):
    found = []
    for _ in range(2):
        assert CliRunner().invoke(main, ["demo", "-o", str(tmp_path), "--seed", "3"]).exit_code == 0
        found.append((tmp_path / "labels.csv").read_bytes())
    assert found[0] == found[1]


@pytest.mark.usefixtures("few_digits")
def test_complete_views_need_no_recovery(tmp_path):
    result = CliRunner().invoke(main, ["demo", "-o", str(tmp_path), "--paired-rate", "1"])
    assert result.exit_code == 0
    assert "Recover" not in result.output


@pytest.mark.usefixtures("few_digits")
@pytest.mark.parametrize("name", ["out[red]x", "out[/red]x", "out:smile:"])
def test_paths_come_out_as_they_are(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["demo", "-o", name])
    assert result.exit_code == 0, result.output
    assert f"Wrote     {Path(name) / 'labels.csv'}\n" in result.output
    assert (tmp_path / name / "labels.csv").is_file()


@pytest.mark.parametrize(
    ("words", "old", "new"),
    [
        (["reproduce", "--data-dir", "data"], "reproduce", "reproduce"),
        (["bench", "quality", "--quick"], "bench quality", "league"),
        (["bench", "speed", "-h"], "bench speed", "speed"),
        (["bench", "-h"], "bench", "--help"),
    ],
)
def test_commands_of_the_lab_name_the_new_command(words, old, new):
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert result.output == f"`gapview {old}` is now `gapview-lab {new}` (in the lab/ folder of the repository).\n"
    assert words[0] not in CliRunner().invoke(main, ["--help"]).output


def test_bad_options(tmp_path):
    assert CliRunner().invoke(main, ["demo", "--paired-rate", "2"]).exit_code == 2
    assert "Example:" in CliRunner().invoke(main, ["demo", "--help"]).output
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(main, ["demo", "-o", str(tmp_path / "file" / "out")])
    assert result.exit_code == 1
    assert "Cannot make the folder" in result.output
    assert "Traceback" not in result.output


def test_runs_as_a_module():
    version = subprocess.run([sys.executable, "-m", "gapview", "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith("gapview, version")


class TestWholeFiles:
    def test_a_failure_leaves_the_old_file(self, tmp_path, monkeypatch):
        path = tmp_path / "labels.csv"
        path.write_text("old")

        def no_space(descriptor):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", no_space)
        with pytest.raises(DataFileError, match="No space left on device. What was there is untouched"):
            write_whole(path, b"new")
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]

    def test_others_may_read_what_the_umask_allows(self, tmp_path):
        write_whole(tmp_path / "a.csv", b"x")
        (tmp_path / "b.csv").write_bytes(b"x")
        assert (tmp_path / "a.csv").stat().st_mode == (tmp_path / "b.csv").stat().st_mode

    def test_rows_that_fail_halfway(self, tmp_path):
        def rows():
            yield [1]
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            write_table(tmp_path / "a.csv", ["x"], rows())
        assert not list(tmp_path.iterdir())

    def test_a_folder_that_cannot_be_made(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(DataFileError, match="Cannot make the folder.*Choose another folder") as caught:
            make_folder(tmp_path / "file" / "out")
        assert "--" not in str(caught.value)  # options are known on the command line only

    def test_folder_that_is_not_there(self):
        with pytest.raises(DataFileError, match="Cannot write to the folder"):
            write_whole(Path("/nowhere/at/all.csv"), b"")
