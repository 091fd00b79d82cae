"""The page on reliability: it shows what was run, and names tests that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from gapview_lab.cli import main
from gapview_lab.reliability.document import write_document

ROOT = Path(__file__).parents[2]


def test_page_on_reliability_says_what_was_run_and_what_was_not(tmp_path):
    (tmp_path / "defects.markdown").write_text("## Defects\n\nNone.\n")
    killed = {"estimator": "GRMF", "had_ended": False, "n_parts": 2, "n_damaged": 0, "same": True}
    (tmp_path / "kill.json").write_text(f"{json.dumps(killed)}\n{json.dumps(killed | {'same': False})}\n")
    page = tmp_path / "reliability.md"
    done = CliRunner().invoke(main, ["reliability", "document", str(tmp_path), str(page)])
    assert done.exit_code == 0, done.output
    text = page.read_text()
    assert text.count("Not run yet.") == 5
    assert "2 fits were killed" in text
    assert "1 lost anything" in text
    assert "| GRMF | 2 | 2 | 0 | 1 |" in text
    assert text.endswith("None.\n")


@pytest.mark.parametrize("content", ["{", "", "[1"])
def test_damaged_results_are_refused(content, tmp_path):
    (tmp_path / "load.json").write_text(content)
    done = CliRunner().invoke(main, ["reliability", "document", str(tmp_path), str(tmp_path / "page.md")])
    assert done.exit_code == 1
    assert "damaged" in done.output
    assert not (tmp_path / "page.md").exists()


def test_tests_named_on_the_page_exist():
    named = re.findall(r"`(test_\w+)`", (ROOT / "results" / "reliability" / "defects.markdown").read_text())
    folders = (ROOT / "tests", ROOT / "lab" / "tests")
    there = "".join(path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("test_*.py"))
    assert [name for name in named if f"def {name}(" not in there] == []


def test_page_in_the_repository_is_that_of_its_results(tmp_path):
    text = write_document(ROOT / "results" / "reliability", tmp_path / "page.md")
    assert text == (ROOT / "results" / "reliability.md").read_text(encoding="utf-8")
