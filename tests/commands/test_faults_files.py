"""Disks that are full, files that cannot be read or vanish: an error in words, what was there intact, nothing left."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import gapview
from gapview import GRMF
from gapview.datasets import make_views
from gapview.errors import DataFileError, GapviewWarning
from gapview.persist.checkpoints import Checkpoint
from gapview.persist.checkpoints import journal as journal_module
from gapview.progress import listening
from gapview.utils import storage

pytest.importorskip("pandas")

from awkward_files import clustered, made, run, write_plain

VIEWS = make_views(n_samples=400, n_clusters=3, missing_rate=0.3, random_state=0).views


def names(folder):
    return sorted(item.name for item in folder.iterdir())


def fill(disk, leave=0):
    """Fill a disk but for so many bytes."""
    (disk / "filler").write_bytes(bytes(shutil.disk_usage(disk).free - leave))


def no_room(after):
    """Return an ``fsync`` that finds the disk full from some time on, as on a disk that puts off its writing."""
    calls = []

    def sync(handle):
        calls.append(handle)
        if len(calls) > after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return sync


@pytest.fixture
def disk(tmp_path):
    """A disk of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    command = [mount or "", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if mount is None or sys.platform != "linux" or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here; a full disk is played below")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


class TestFullDisk:
    def test_a_model(self, disk):
        path = disk / "model.gapview"
        small = GRMF(3, random_state=0).fit(VIEWS[:60])
        small.save(path)
        before = path.read_bytes()
        fill(disk, leave=20_000)
        with pytest.raises(DataFileError, match="No space left on device. What was there is untouched"):
            GRMF(3, random_state=0).fit(VIEWS).save(path)
        assert path.read_bytes() == before
        assert names(disk) == ["filler", "model.gapview"]
        (disk / "filler").unlink()
        assert np.array_equal(gapview.load(path).labels_, small.labels_)

    def test_results(self, disk, tmp_path):
        files = write_plain(tmp_path, made())
        clustered(disk / "out", *files)
        before = {file.name: file.read_bytes() for file in (disk / "out").iterdir()}
        fill(disk, leave=16_000)
        arguments = ["-k", "4", "-o", disk / "out", "--no-report", "--set", "selection=fixed", "--force"]
        said = run("cluster", *files, *arguments, code=1).stderr
        assert "No space left on device" in said
        assert len(said.splitlines()) == 1
        assert {file.name: file.read_bytes() for file in (disk / "out").iterdir()} == before
        assert names(disk) == ["filler", "out"]

    def test_a_table(self, disk, tmp_path):
        files = write_plain(tmp_path, made())
        model = clustered(tmp_path / "out", *files)
        (disk / "new.csv").write_text("old")
        fill(disk)
        said = run("predict", model, files[0], "-o", disk / "new.csv", "--force", code=1).stderr
        assert "No space left on device" in said
        assert (disk / "new.csv").read_text() == "old"
        assert names(disk) == ["filler", "new.csv"]

    def test_a_checkpoint(self, disk, monkeypatch):
        monkeypatch.setattr(journal_module, "SECONDS", 0.0)
        checkpoint = disk / "fit"
        expected = GRMF(3, random_state=0).fit(VIEWS)

        def cut_off(event):
            if event.done == 12:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt), listening(cut_off):
            GRMF(3, random_state=0).fit(VIEWS, checkpoint=checkpoint)
        before = {file.name: file.read_bytes() for file in checkpoint.iterdir()}
        assert len(before) > 2
        fill(disk)

        def look(event):
            if event.done == expected.n_iter_ - 1:
                assert {file.name: file.read_bytes() for file in checkpoint.iterdir()} == before

        with pytest.warns(GapviewWarning, match="No space left on device.* The fit continues") as said, listening(look):
            again = GRMF(3, random_state=0).fit(VIEWS, checkpoint=checkpoint)
        assert len(said) == 1
        assert np.array_equal(again.embedding_, expected.embedding_)
        assert names(disk) == ["filler"]

    def test_a_disk_that_is_full_from_the_start(self, disk, monkeypatch):
        monkeypatch.setattr(journal_module, "SECONDS", 0.0)
        fill(disk)
        with pytest.warns(GapviewWarning, match="No space left on device"):
            model = GRMF(3, random_state=0).fit(VIEWS, checkpoint=disk / "fit")
        assert np.array_equal(model.labels_, GRMF(3, random_state=0).fit(VIEWS).labels_)
        assert names(disk) == ["filler"]


class TestPlayedFullDisk:
    """The same without a disk: what is said to be written turns out not to be."""

    @pytest.mark.parametrize("after", range(5))
    def test_results(self, tmp_path, monkeypatch, after):
        files = write_plain(tmp_path, made())
        clustered(tmp_path / "out", *files)
        before = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
        monkeypatch.setattr(storage.os, "fsync", no_room(after))
        arguments = ["-k", "4", "-o", tmp_path / "out", "--no-report", "--set", "selection=fixed", "--force"]
        said = run("cluster", *files, *arguments, code=1).stderr
        assert "No space left on device" in said
        assert {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()} == before
        assert names(tmp_path) == ["blood.csv", "out", "scans.csv"]

    def test_a_model(self, tmp_path, monkeypatch):
        path = tmp_path / "model.gapview"
        model = GRMF(3, random_state=0).fit(VIEWS[:60])
        model.save(path)
        before = path.read_bytes()
        monkeypatch.setattr(storage.os, "fsync", no_room(0))
        with pytest.raises(DataFileError, match="No space left on device. What was there is untouched"):
            model.save(path)
        assert path.read_bytes() == before
        assert names(tmp_path) == ["model.gapview"]

    @pytest.mark.parametrize("after", [0, 1, 2, 9])
    def test_a_checkpoint(self, tmp_path, monkeypatch, after):
        monkeypatch.setattr(journal_module, "SECONDS", 0.0)
        monkeypatch.setattr(journal_module, "MOST_SHARE", float("inf"))
        expected = GRMF(3, random_state=0).fit(VIEWS[:60])
        with monkeypatch.context() as patch:
            patch.setattr(storage.os, "fsync", no_room(after))
            with pytest.warns(GapviewWarning, match="No space left on device.* The fit continues") as said:
                model = GRMF(3, random_state=0).fit(VIEWS[:60], checkpoint=tmp_path / "fit")
        assert len(said) == 1
        assert np.array_equal(model.embedding_, expected.embedding_)
        assert names(tmp_path) == []


def cluster(files, folder, code=1):
    return run("cluster", *files, "-k", "3", "-o", folder / "out", "--no-report", "--method", "GRMF", code=code).stderr


@pytest.mark.parametrize("trouble", ["missing", "unreadable", "folder", "broken link", "empty"])
def test_inputs_that_cannot_be_read(tmp_path, trouble):
    files = write_plain(tmp_path, made())
    files[1].unlink()
    if trouble == "unreadable":
        files[1].write_text("id,a\n1,2\n")
        files[1].chmod(0)
        if os.access(files[1], os.R_OK):
            pytest.skip("this user may read everything")
    elif trouble == "folder":
        files[1].mkdir()
    elif trouble == "broken link":
        files[1].symlink_to(tmp_path / "nowhere.csv")
    elif trouble == "empty":
        files[1].write_bytes(b"")
    before = names(tmp_path)
    said = cluster(files, tmp_path)
    assert "scans.csv" in said
    assert names(tmp_path) == before


def test_an_input_that_may_not_be_opened(tmp_path, monkeypatch):
    files = write_plain(tmp_path, made())
    opened = open

    def refused(path, *arguments, **more):
        if str(path).endswith("scans.csv"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, *arguments, **more)

    monkeypatch.setattr("builtins.open", refused)
    monkeypatch.setattr("io.open", refused)
    monkeypatch.setattr("pathlib.io.open", refused)
    said = cluster(files, tmp_path)
    assert "scans.csv" in said
    assert "Permission denied" in said


@pytest.mark.parametrize("moment", range(1, 4))
def test_an_input_that_vanishes(tmp_path, monkeypatch, moment):
    """A file that is deleted while the command reads is missed in words, whenever it goes."""
    from gapview.commands import cluster as command
    from gapview.commands import options, results

    files = write_plain(tmp_path, made())
    module, step = [(options, "read_files"), (command, "join_views"), (results, "input_facts")][moment - 1]
    before = getattr(module, step)

    def vanishing(*arguments, **more):
        found = before(*arguments, **more)
        files[1].unlink(missing_ok=True)
        return found

    monkeypatch.setattr(module, step, vanishing)
    if step == "input_facts":  # all that is needed was read
        cluster(files, tmp_path, code=0)
        return
    said = cluster(files, tmp_path)
    assert "scans.csv' can no longer be read: No such file or directory. Put it back" in said
    assert names(tmp_path) == ["blood.csv"]


def test_a_model_that_vanishes(tmp_path):
    files = write_plain(tmp_path, made())
    said = run("predict", tmp_path / "gone.gapview", files[0], "-o", tmp_path / "new.csv", code=1).stderr
    assert "There is no file" in said
    assert not (tmp_path / "new.csv").exists()


def test_a_view_on_disk_that_vanishes_leaves_a_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "SECONDS", 0.0)
    rng = np.random.default_rng(0)
    for k in range(2):
        np.save(tmp_path / f"{k}.npy", rng.normal(size=(1500, 80)))
    maps = [np.load(tmp_path / f"{k}.npy", mmap_mode="r") for k in range(2)]
    from gapview.backends.disk.budget import fit_size, plan_memory
    from gapview.views import training_views

    model = GRMF(3, max_iter=3, tol=0, random_state=0)
    plan = plan_memory(fit_size(model, training_views(maps, None, "raise", 3)))
    model.set_params(memory_budget=plan.least)
    content = (tmp_path / "1.npy").read_bytes()

    def vanish(event):
        if event.phase == "Finding groups":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), listening(vanish):
        model.fit(maps, checkpoint=tmp_path / "fit")
    (tmp_path / "1.npy").unlink()
    with pytest.raises(DataFileError, match=r"1\.npy"):
        model.fit(maps, checkpoint=tmp_path / "fit")
    assert Checkpoint(tmp_path / "fit").is_there
    (tmp_path / "1.npy").write_bytes(content)
    model.fit([np.load(tmp_path / f"{k}.npy", mmap_mode="r") for k in range(2)], checkpoint=tmp_path / "fit")
    assert not (tmp_path / "fit").exists()
