"""``gapview-lab trust batches``: random batches and a strong shift."""

from __future__ import annotations

from click.testing import CliRunner

from gapview_lab.cli import main
from gapview_lab.trust.batches import null_row


def test_batches_are_measured_and_written(tmp_path):
    command = ["trust", "batches", "-o", str(tmp_path), "--n-null", "40", "--n-shifted", "2"]
    result = CliRunner().invoke(main, command, catch_exceptions=False)
    assert result.exit_code == 0
    lines = (tmp_path / "batches.md").read_text(encoding="utf-8").splitlines()
    cells = {line.split(" | ")[0].strip("| "): line.split(" | ") for line in lines if line.startswith("| ")}
    assert cells["random batches"][4] == "0.0 %"
    assert cells["shift of 0 SD"][4] == "0.0 %"
    assert cells["shift of 3 SD"][4] == "100.0 %"
    assert len((tmp_path / "batches.csv").read_text().splitlines()) == 1 + 40 + 4


def test_random_batches_seldom_have_small_p_values():
    rows = [null_row(1000 + seed) for seed in range(200)]
    assert sum(row["p"] <= 0.05 for row in rows) <= 20
    assert sum(row["least_p"] <= 0.05 for row in rows) <= 20
