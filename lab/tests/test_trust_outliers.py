"""``gapview-lab trust outliers``: real samples and junk of one small data set."""

from __future__ import annotations

import csv

import numpy as np
from click.testing import CliRunner

from gapview.datasets import make_views
from gapview_lab.cli import main


def test_a_small_data_set(tmp_path):
    data = make_views(n_samples=200, n_clusters=3, random_state=0)
    matrices = {f"view_{k}": np.exp(matrix / 4) for k, matrix in enumerate(data.views.matrices)}
    np.savez(tmp_path / "made.npz", y=data.target, **matrices)
    arguments = ["trust", "outliers", "--data-dir", str(tmp_path), "-o", str(tmp_path / "out"), "--n-seeds", "1"]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    with (tmp_path / "out" / "outliers.csv").open() as stream:
        rows = {(row["where"], row["kind"]): float(row["flagged"]) for row in csv.DictReader(stream)}
    assert {kind for _, kind in rows} == {"real", "× 1000", "+ 5 SD", "permuted", "zeros", "−x"}
    assert rows["all views", "real"] <= 0.2
    assert all(rows["all views", kind] == 1 for kind in ("× 1000", "+ 5 SD", "zeros", "−x"))
    page = (tmp_path / "out" / "outliers.md").read_text(encoding="utf-8")
    assert "| made |" in page
    assert "## Exceptions" in page
