"""``gapview demo`` ends with its report, and says what to do if there can be none."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import gapview
from gapview.commands import results
from gapview.commands.cli import main

pytestmark = pytest.mark.usefixtures("few_digits")


def test_the_report_comes_last_and_the_folder_is_whole(tmp_path):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    result = CliRunner().invoke(main, ["demo", "-o", str(tmp_path / "out"), "--seed", "3"])
    assert result.exit_code == 0, result.output
    assert result.output.endswith(f"Report    {tmp_path / 'out' / 'report.html'}\n")
    assert (tmp_path / "out" / "report.html").stat().st_size < 3e6
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["command"] == f"gapview demo -o {tmp_path / 'out'} --seed 3"
    written = {file.name for file in (tmp_path / "out").iterdir()}
    assert written == {*record["results"], "run.json"}
    assert gapview.load(tmp_path / "out" / "model.gapview").n_clusters == 10


def test_without_the_packages_for_a_report(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "find_spec", lambda package: None)
    result = CliRunner().invoke(main, ["demo", "-o", str(tmp_path / "out"), "--paired-rate", "1"])
    assert result.exit_code == 0, result.output
    assert "Left out  the report. Writing a report needs the package 'jinja2'" in result.output
    assert "pip install 'gapview[report]'" in result.output
    assert not (tmp_path / "out" / "report.html").exists()


def test_only_an_earlier_demonstration_is_replaced(tmp_path):
    (tmp_path / "labels.csv").write_text("id,label\n")
    (tmp_path / "run.json").write_text(json.dumps({"results": ["labels.csv"]}))
    result = CliRunner().invoke(main, ["demo", "-o", str(tmp_path)])
    assert result.exit_code == 1
    assert "holds results already" in result.stderr
    assert (tmp_path / "labels.csv").read_text() == "id,label\n"
