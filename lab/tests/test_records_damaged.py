"""Damaged files of results: an error of ours, or a fresh start."""

from __future__ import annotations

import json

import pytest

from gapview.errors import DataFileError
from gapview_lab.common.run_file import RunFile
from gapview_lab.paper.store import PaperStore


def test_results_taken_up_with_settings_that_are_none(tmp_path):
    from test_fuzz import paper_csv

    for damaged in ('{"max_iter" 2}', "[]", "7", "{}", "[" * 100_000):
        (tmp_path / "a.csv").write_text(paper_csv(damaged))
        with pytest.raises(DataFileError, match=r"a.csv' is not a file of results"):
            PaperStore(tmp_path / "a.csv", "1")


@pytest.mark.parametrize("files", [[0.5], [{}], [None], "x", ["[" * 3], ["9" * 5000], ["\0"]])
def test_a_record_of_files_that_are_no_names(files, tmp_path):
    run = {"command": "x", "seconds": 1.0, "peak_memory_mb": 2.0, "files": files, "fingerprint": "f"}
    (tmp_path / "run.json").write_text(json.dumps(run))
    assert RunFile(tmp_path).unchanged("f") == []
    (tmp_path / "run.json").write_text("[" * 100_000)
    assert RunFile(tmp_path).old == {}
