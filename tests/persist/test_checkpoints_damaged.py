"""Checkpoints of other fits, damaged ones, and folders that are none: refused in words, or computed again."""

from __future__ import annotations

import os

import numpy as np
import pytest

from checkpoint_problems import VIEWS, contents, cut_off, keep_everything
from gapview import GRMF, BridgedGRMF
from gapview.errors import DataFileError, GapviewWarning, InputTypeError
from gapview.persist.checkpoints import folder as checkpoint_folder
from gapview.persist.checkpoints import identity


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    keep_everything(monkeypatch)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "fit"


class TestRefused:
    @pytest.fixture(autouse=True)
    def begun(self, folder, monkeypatch):
        assert cut_off(GRMF(3, random_state=0), VIEWS, folder, 3, monkeypatch)
        self.before = {file.name: file.read_bytes() for file in folder.iterdir()}
        yield
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == self.before

    def refused(self, folder, match, model=None, views=VIEWS, **more):
        with pytest.raises(DataFileError, match=match):
            (model or GRMF(3, random_state=0)).fit(views, checkpoint=folder, **more)

    def test_other_settings(self, folder):
        self.refused(folder, "n_clusters was 3 and is 4 now.*Repeat that fit to resume it", GRMF(4, random_state=0))
        self.refused(
            folder, "random_state was 0 and is 1 now; tol was 1e-05 and is 0.1 now", GRMF(3, tol=0.1, random_state=1)
        )
        self.refused(folder, "the method was GRMF and is BridgedGRMF", BridgedGRMF(3, random_state=0))
        start = [np.ones((len(VIEWS.rows(k)), 3)) for k in range(2)]
        self.refused(folder, "init was 'random' and is list of 2 now", GRMF(3, init=start, random_state=0))

    def test_other_data(self, folder):
        changed = VIEWS.matrices[1].copy()
        changed[-1, -1] += 1e-9
        views = VIEWS.with_matrices((VIEWS.matrices[0], changed), VIEWS.mask, VIEWS.sample_ids)
        self.refused(folder, "view 'view_1' has changed", views=views)
        self.refused(folder, "view 'view_0' was .* rows of 20 and is .* now", views=VIEWS[:60])
        self.refused(
            folder,
            "the list of views was \\['view_0', 'view_1'\\] and is \\['view_0'\\] now",
            views=[VIEWS.matrices[0]],
        )
        turned = VIEWS.with_matrices(VIEWS.matrices, VIEWS.mask, VIEWS.sample_ids[::-1])
        self.refused(folder, "the list of sample ids has changed", views=turned)

    def test_another_version(self, folder, monkeypatch):
        monkeypatch.setattr(identity, "version", lambda name: "99.0")
        self.refused(folder, "the version of gapview was .* and is 99.0 now")

    def test_other_code(self, folder, monkeypatch):
        monkeypatch.setattr(identity, "code_digest", lambda: "0123")
        self.refused(folder, "another fit: the source code of gapview has changed.*Give another folder, or delete this")

    def test_in_use(self, folder):
        lock = checkpoint_folder.lock_folder(folder)
        if lock is None:
            pytest.skip("this system has no locks for folders")
        self.refused(folder, "in use by another fit")
        os.close(lock)


@pytest.mark.parametrize("other", [np.random.RandomState(4), np.random.RandomState(np.random.PCG64(3)), 3, None])
def test_a_generator_in_another_state_is_refused(folder, monkeypatch, other):
    assert cut_off(GRMF(3, random_state=np.random.RandomState(3)), VIEWS, folder, 4, monkeypatch)
    message = r"random_state was a RandomState \(state [0-9a-f]{8}\) and is .* now"
    with pytest.raises(DataFileError, match=message):
        GRMF(3, random_state=other).fit(VIEWS, checkpoint=folder)
    advanced = np.random.RandomState(3)
    advanced.uniform()
    with pytest.raises(DataFileError, match=message):
        GRMF(3, random_state=advanced).fit(VIEWS, checkpoint=folder)
    again = GRMF(3, random_state=np.random.RandomState(3)).fit(VIEWS, checkpoint=folder)
    assert np.array_equal(again.embedding_, GRMF(3, random_state=np.random.RandomState(3)).fit(VIEWS).embedding_)


def test_the_code_digest_follows_the_sources(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.py").write_text("A = 1")
    (tmp_path / "inner" / "b.py").write_text("B = 1")
    before = identity.source_digest(tmp_path)
    (tmp_path / "a.pyc").write_text("compiled")
    assert identity.source_digest(tmp_path) == before
    (tmp_path / "inner" / "b.py").write_text("B = 2")
    changed = identity.source_digest(tmp_path)
    (tmp_path / "inner" / "b.py").rename(tmp_path / "inner" / "c.py")
    assert len({before, changed, identity.source_digest(tmp_path)}) == 3


@pytest.mark.parametrize(
    ("folder", "direct_url", "expected"),
    [
        ("checkout/src/gapview", None, True),
        ("lib/python3.12/site-packages/gapview", None, False),
        ("lib/python3/dist-packages/gapview", '{"url": "file:///home/me/gapview", "dir_info": {}}', False),
        ("lib/python3.12/site-packages/gapview", '{"url": "file:///x", "dir_info": {"editable": true}}', True),
    ],
)
def test_development_installs_are_detected(tmp_path, folder, direct_url, expected):
    assert identity.is_development_install(tmp_path / folder, direct_url) is expected


def test_the_code_digest_is_computed_once(monkeypatch):
    digest = identity.code_digest()
    monkeypatch.setattr(identity, "source_digest", lambda package: pytest.fail("the digest is computed again"))
    assert identity.code_digest() is digest


def test_folders_that_cannot_be_used(tmp_path):
    model = GRMF(3, random_state=0)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.docx").write_text("years of work")
    with pytest.raises(DataFileError, match="something else than a checkpoint, and is left as it is"):
        model.fit(VIEWS, checkpoint=tmp_path / "mine")
    with pytest.raises(DataFileError, match="is no folder"):
        model.fit(VIEWS, checkpoint=tmp_path / "mine" / "thesis.docx")
    with pytest.raises(DataFileError, match="not there, or may not be written to"):
        model.fit(VIEWS, checkpoint=tmp_path / "nowhere" / "fit")
    for wrong in (3, b"fit", [folder]):
        with pytest.raises(InputTypeError, match="checkpoint must be None or the path of a folder"):
            model.fit(VIEWS, checkpoint=wrong)
    for wrong in ("", "a\0b"):
        with pytest.raises(DataFileError, match="No file or folder can be called"):
            model.fit(VIEWS, checkpoint=wrong)
    assert (tmp_path / "mine" / "thesis.docx").read_text() == "years of work"
    (tmp_path / "empty").mkdir()
    model.fit(VIEWS, checkpoint=tmp_path / "empty")


@pytest.mark.parametrize("damage", ["cut off", "empty", "flipped", "swapped", "no file of ours"])
def test_damaged_parts_are_computed_again(folder, monkeypatch, damage):
    expected = contents(GRMF(3, random_state=0).fit(VIEWS))
    assert cut_off(GRMF(3, random_state=0), VIEWS, folder, 9, monkeypatch)
    parts = sorted(file for file in folder.iterdir() if file.name != "fit.part")
    assert len(parts) == 3
    before = [part.read_bytes() for part in parts]
    for place, part in enumerate(parts):
        content = before[place]
        middle = len(content) - 100
        part.write_bytes(
            {
                "cut off": content[:-1],
                "empty": b"",
                "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
                "swapped": before[place - 1],
                "no file of ours": b"years of work",
            }[damage]
        )
    with pytest.warns(GapviewWarning, match="part of the checkpoint .* cannot be used, and is computed again") as said:
        again = GRMF(3, random_state=0).fit(VIEWS, checkpoint=folder)
    assert len(said) == 3
    assert contents(again) == expected


def test_a_part_of_another_fit_is_not_taken(folder, tmp_path, monkeypatch):
    assert cut_off(GRMF(3, random_state=1), VIEWS, tmp_path / "other", 9, monkeypatch)
    assert cut_off(GRMF(3, random_state=0), VIEWS, folder, 9, monkeypatch)
    (tmp_path / "other" / "iterations-1.part").replace(folder / "iterations-1.part")
    with pytest.warns(GapviewWarning, match="belongs to another fit"):
        again = GRMF(3, random_state=0).fit(VIEWS, checkpoint=folder)
    assert contents(again) == contents(GRMF(3, random_state=0).fit(VIEWS))


def test_a_checkpoint_that_cannot_say_whose_it_is(folder, monkeypatch):
    assert cut_off(GRMF(3, random_state=0), VIEWS, folder, 9, monkeypatch)
    content = (folder / "fit.part").read_bytes()
    (folder / "fit.part").write_bytes(content[:-9])
    with pytest.raises(DataFileError, match="is damaged, so that its fit cannot be identified.*delete this one"):
        GRMF(3, random_state=0).fit(VIEWS, checkpoint=folder)
    (folder / "fit.part").unlink()
    with pytest.raises(DataFileError, match="something else than a checkpoint"):
        GRMF(3, random_state=0).fit(VIEWS, checkpoint=folder)


def test_half_written_files_are_cleared_away(folder, monkeypatch):
    assert cut_off(GRMF(3, random_state=0), VIEWS, folder, 9, monkeypatch)
    (folder / ".gapview-0123456789ab").write_bytes(b"half")
    GRMF(3, random_state=0).fit(VIEWS, checkpoint=folder)
    assert not folder.exists()
