"""``gapview-lab trust calibration`` on small data."""

from __future__ import annotations

import csv
import os

import numpy as np
import pytest
from click.testing import CliRunner

from gapview.datasets import make_views
from gapview_lab.cli import main


def test_calibration_is_measured_and_written(tmp_path):
    data, output = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    made = make_views(60, (6, 8), n_clusters=2, random_state=0)
    for name, more in (("mine", {"y": made.target}), ("unlabeled", {})):
        matrices = {f"view_{k}": matrix for k, matrix in enumerate(made.views.matrices)}
        np.savez(data / f"{name}.npz", **matrices, **more)
    command = ["trust", "calibration", "--data-dir", str(data), "--data", "mine,unlabeled", "-o", str(output)]
    result = CliRunner().invoke(main, [*command, "--jobs", "1"])
    assert result.exit_code == 0, result.output
    rows = list(csv.DictReader((output / "calibration.csv").read_text().splitlines()))
    assert [row["data"] for row in rows] == ["mine", "mine", "unlabeled", "unlabeled"]
    assert float(rows[0]["error"]) < 0.1
    assert {row["groups"] for row in rows} == {"2", "4"}
    assert "All samples together" in (output / "calibration.md").read_text()
    assert (output / "calibration.png").exists()
    stored = {path: path.stat().st_mtime_ns for path in (output / "samples").iterdir()}
    assert CliRunner().invoke(main, [*command, "--jobs", "1"]).exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in (output / "samples").iterdir()} == stored
    before = np.load(output / "samples" / "mine-0.1.npz")
    assert CliRunner().invoke(main, [*command, "--again", "--resamples", "1", "--jobs", "1"]).exit_code == 0
    after = np.load(output / "samples" / "mine-0.1.npz")
    assert np.array_equal(after["n_drawn"], before["n_drawn"])  # resamples that measure the truth were not repeated
    assert np.array_equal(after["calibrated"], before["calibrated"])


@pytest.mark.data
def test_patients_and_cells(tmp_path):
    if not os.environ.get("GAPVIEW_DATA"):
        pytest.skip("GAPVIEW_DATA is not set")
    command = ["trust", "calibration", "--data", "kirc,noise-40", "-o", str(tmp_path), "--resamples", "2"]
    result = CliRunner().invoke(main, [*command, "--data-dir", os.environ["GAPVIEW_DATA"]])
    assert result.exit_code == 0, result.output
    lines = (tmp_path / "calibration.csv").read_text().splitlines()
    rows = {(row["data"], row["rate"]): row for row in csv.DictReader(lines)}
    assert set(rows) == {("kirc", "0"), ("kirc", "0.3"), ("noise-40", "0")}
    assert rows["kirc", "0"]["groups"] == "3"
    assert "In noise (200 samples, 40 groups) the mean of" in (tmp_path / "calibration.md").read_text()
