"""Measuring how fast files are read."""

from __future__ import annotations

import csv

from click.testing import CliRunner

from gapview_lab.cli import main


def test_small_files_are_measured(tmp_path):
    words = ["reading", "--samples", "200", "--features", "3", "--turns", "1", "-o", str(tmp_path)]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    rows = list(csv.DictReader((tmp_path / "reading.csv").read_text().splitlines()))
    assert [row["ids"] for row in rows] == ["text", "integers"]
    assert all(float(row["seconds"]) > 0 and float(row["ratio"]) > 0 for row in rows)
