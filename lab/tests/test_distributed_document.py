"""The tables of results/dask.md are those of the figures that were measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gapview.errors import DataFileError
from gapview_lab.cluster.cost import planned
from gapview_lab.cluster.document import with_tables

ROOT = Path(__file__).parents[2]


def test_the_page_shows_what_was_measured() -> None:
    page = (ROOT / "results" / "dask.md").read_text(encoding="utf-8")
    assert page.count("<!-- end -->") == 8
    assert with_tables(page, ROOT / "results" / "dask") == page


def test_the_last_figure_for_the_same_thing_counts(tmp_path: Path) -> None:
    figures = [
        {"samples": samples, "workers": 2, "bytes": measured, "formula": 8000, "share": 1.0}
        for samples, measured in ((2000, 1), (500, 2), (2000, 8297))
    ]
    (tmp_path / "traffic.jsonl").write_text("\n".join(map(json.dumps, figures)))
    text = with_tables("before\n<!-- traffic -->\nold\n<!-- end -->\nafter", tmp_path)
    assert text.splitlines()[0] == "before"
    assert text.splitlines()[-1] == "after"
    assert "old" not in text
    assert "| 2,000 | 2 | 8,297 | 8,000 | 1.0 |\n| 500 | 2 | 2 |" in text
    with pytest.raises(DataFileError, match="Measure them first"):
        with_tables("<!-- same --><!-- end -->", tmp_path)
    with pytest.raises(DataFileError, match="no table 'nothing'"):
        with_tables("<!-- nothing --><!-- end -->", tmp_path)


def test_what_was_measured_keeps_the_promises() -> None:
    def figures(name: str) -> list[dict]:
        file = ROOT / "results" / "dask" / f"{name}.jsonl"
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]

    same = figures("same")
    assert {(record["data"], record["workers"]) for record in same} >= {
        (data, workers) for data in ("handwritten_2v", "hdigit10000") for workers in (1, 2, 4)
    }
    assert all(record["adjusted_rand"] >= 0.99 and record["objective_off_by"] <= 1e-6 for record in same)
    assert all(record["recall"] >= 0.95 for record in figures("recall"))
    assert max(record["points"] for record in figures("recall")) == 500_000
    assert all(0.8 <= record["share"] <= 1.2 for record in figures("traffic"))
    assert all(record["adjusted_rand"] == 1 and record["killed"] for record in figures("faults"))
    assert all(record["killed_before_the_end"] and record["adjusted_rand"] == 1 for record in figures("client"))
    assert all(record["before_iterations"] < 5000 for record in figures("tasks"))
    assert len(figures("cost")) >= 4
    for record in figures("cost"):
        plan = planned(record)
        found = [plan.tasks, plan.bytes_moved, plan.worker_memory]
        assert found == pytest.approx([record[name] for name in ("tasks", "bytes", "memory")], rel=0.2)
    for record in figures("memory"):
        assert record["peak_mb"] <= 3 * record["share_mb"] + record["constant_mb"]
