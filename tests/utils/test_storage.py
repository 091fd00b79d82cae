"""Saving through links, over files of other kinds, with permissions and with long names."""

from __future__ import annotations

import os
import stat

import pytest

import gapview
from gapview.baselines import Concat
from gapview.datasets import make_views
from gapview.errors import DataFileError
from gapview.utils.storage import write_table

MODEL = Concat(2, n_init=1, random_state=0).fit(make_views(12, (4, 3), n_clusters=2, random_state=0).views)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_kept_and_its_target_is_written(tmp_path, exists):
    target, link = tmp_path / "elsewhere" / "target.gapview", tmp_path / "link.gapview"
    target.parent.mkdir()
    if exists:
        target.write_text("old")
    link.symlink_to(target)
    MODEL.save(link)
    assert link.is_symlink()
    assert gapview.load(target).n_clusters == 2
    assert [file.name for file in target.parent.iterdir()] == ["target.gapview"]


def test_links_that_end_nowhere_are_refused(tmp_path):
    loop, lost = tmp_path / "loop", tmp_path / "lost"
    loop.symlink_to(loop)
    lost.symlink_to(tmp_path / "no folder" / "model")
    for link in (loop, lost):
        with pytest.raises(DataFileError, match="Cannot write"):
            MODEL.save(link)
        assert link.is_symlink()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_pipes_and_devices_are_refused(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("/dev/null")
    for path, kind in ((pipe, "named pipe"), (link, "device"), (tmp_path, "folder")):
        before = stat.S_IFMT(path.stat().st_mode)
        with pytest.raises(DataFileError, match=kind):
            MODEL.save(path)
        assert stat.S_IFMT(path.stat().st_mode) == before
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert {file.name for file in tmp_path.iterdir()} == {"pipe", "link"}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_replaced_file_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "model.gapview"
    path.write_text("old")
    path.chmod(mode)
    MODEL.save(path)
    assert mode_of(path) == mode
    assert gapview.load(path).n_clusters == 2


def test_a_new_file_has_the_usual_permissions(tmp_path):
    before = os.umask(0o027)
    try:
        MODEL.save(tmp_path / "model.gapview")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "model.gapview") == 0o640


@pytest.mark.parametrize("length", [248, 255])
def test_the_longest_names_of_files_can_be_used(tmp_path, length):
    path = tmp_path / ("m" * length)
    MODEL.save(path)
    assert gapview.load(path).n_clusters == 2
    with pytest.raises(DataFileError, match="too long"):
        MODEL.save(tmp_path / ("m" * 256))
    assert list(tmp_path.iterdir()) == [path]


def test_tables_are_written_with_characters_that_utf8_lacks(tmp_path):
    write_table(tmp_path / "table.csv", ["id", "has_\udcff"], [["a", 1]])
    assert (tmp_path / "table.csv").read_text() == "id,has_\\udcff\na,1\n"
