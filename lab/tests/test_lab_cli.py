"""The command line of the lab."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from gapview_lab.cli import main
from gapview_lab.paper.reproduce import Outcome


def test_paths_of_the_paper_come_out_as_they_are(monkeypatch, tmp_path):
    file = Path("paper[/red]x") / "tables.md"

    def stand_in(request, progress, left_out):
        left_out("caltech7: no file in data[/red]")
        return Outcome(files=[file], skipped={}, tables=[], run={"n_runs": 0}, n_new=0)

    monkeypatch.setattr("gapview_lab.paper.command.run_reproduction", stand_in)
    result = CliRunner().invoke(main, ["reproduce", "--data-dir", str(tmp_path), "-o", str(file.parent)])
    assert result.exit_code == 0, result.output
    assert f"Wrote     {file}\n" in result.output
    assert "Left out  caltech7: no file in data[/red]\n" in result.output
