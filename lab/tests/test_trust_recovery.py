"""``gapview-lab trust recovery``: R² of recovered views, beside pipelines of scikit-learn."""

from __future__ import annotations

import csv

import numpy as np
from click.testing import CliRunner

from gapview.datasets import hide_views, make_views
from gapview_lab.cli import main
from gapview_lab.trust.recovery import compare


def test_each_hidden_view_has_a_row():
    whole = make_views(90, (6, 5), n_clusters=3, random_state=0).views
    rows = compare(hide_views(whole, 0.3, random_state=0), whole, 3, 0)
    assert [row["view"] for row in rows] == ["view_0", "view_1"]
    for row in rows:
        assert row["auto"] == row[row["method"]]
        assert row["auto"] > 0.2
        assert abs(row["auto"] - row["expected"]) < 0.3


def test_the_page(tmp_path):
    rng = np.random.RandomState(0)
    target = np.arange(60) % 3
    tables = {f"view_{k}": np.eye(3)[target] * 4 + rng.normal(size=(60, 3)) for k in range(2)}
    np.savez(tmp_path / "small.npz", **tables, y=target)
    out = tmp_path / "out"
    arguments = ["trust", "recovery", "-o", str(out), "--data-dir", str(tmp_path), "--data", "small"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert "RidgeCV" in (out / "recovery.md").read_text()
    with (out / "recovery.csv").open() as file:
        assert {row["data"].partition(",")[0] for row in csv.DictReader(file)} == {"small"}
