"""Comparing two versions: each in a process of its own, with its own sources."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from click.testing import CliRunner

import gapview
from gapview_lab.cli import main

SOURCES = Path(gapview.__file__).parents[1]


def versions(before, folder, *options):
    words = ["versions", str(before), "--turns", "1", "--case", "GRMF, 100 iterations", "-o", str(folder), *options]
    return CliRunner().invoke(main, words)


@pytest.mark.data
def test_a_version_finds_the_labels_that_it_finds(tmp_path, dataset):
    dataset("handwritten_2v")
    result = versions(SOURCES, tmp_path / "out")
    assert result.exit_code == 0, result.output
    (row,) = csv.DictReader((tmp_path / "out" / "versions.csv").read_text().splitlines())
    assert (row["same labels"], float(row["objective"])) == ("True", 0.0)
    assert float(row["seconds"]) > 0
    assert float(row["MB before"]) > 0


def test_sources_that_are_none_are_named(tmp_path):
    (tmp_path / "before" / "gapview").mkdir(parents=True)
    (tmp_path / "before" / "gapview" / "__init__.py").write_text("raise RuntimeError('of another age')\n")
    result = versions(tmp_path / "before", tmp_path / "out", "--data-dir", str(tmp_path))
    assert result.exit_code == 1
    assert "failed: " in result.output
    assert not (tmp_path / "out").exists()
