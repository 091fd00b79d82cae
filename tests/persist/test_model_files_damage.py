"""Model files that are damaged, or no model files at all: one clear error, nothing executed."""

from __future__ import annotations

import io
import pickle
import zipfile

import numpy as np
import pytest
from test_model_files_forged import prefixed, refused

from gapview import describe
from gapview.baselines import Concat
from gapview.errors import DataFileError


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """A small file."""
    path = tmp_path_factory.mktemp("models") / "small"
    Concat(2, n_init=1, random_state=0).fit([np.eye(3), np.eye(3)[:, :2]]).save(path)
    return path.read_bytes()


def test_every_flipped_byte_is_noticed(content, tmp_path):
    path = tmp_path / "flipped"
    assert len(content) < 8000
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        refused(path, flipped)


def test_every_truncation_is_noticed(content, tmp_path):
    path = tmp_path / "cut"
    for length in range(len(content)):
        assert "cut off" in refused(path, content[:length]) or length == 0
    with pytest.raises(DataFileError, match="cut off"):
        describe(path)
    refused(path, content + b"\0", "length")


def test_other_files_are_not_model_files(content, tmp_path):
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb", bytes(50_000_000))
    touched = tmp_path / "touched"
    evil = pickle.dumps(Evil(str(touched)))
    as_text = content.replace(b"\r\n", b"\n")
    for other in (b"", b"id,label\n1,2\n", zipped.getvalue(), evil, b"\0" * 1000, as_text, content[1:]):
        refused(tmp_path / "other", other, "not a model file")
    assert not touched.exists()


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_numbers_of_the_prefix(content, tmp_path):
    path = tmp_path / "prefix"
    assert prefixed(content) == content
    assert "Update gapview" in refused(path, prefixed(content, version=2), "format 2 of a newer gapview")
    refused(path, prefixed(content, version=0), "no format 0")
    for numbers in ({"header_length": 2**63}, {"length": 2**63}, {"header_length": 2**25}, {"length": 100}):
        refused(path, prefixed(content, **numbers))
