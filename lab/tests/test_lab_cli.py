"""The command line of the lab."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gapview_lab.cli import main
from gapview_lab.paper.reproduce import ReproduceOutcome

LAB = Path(__file__).parents[1]
RESULTS = sorted((LAB.parent / "results").glob("*.md"))


def test_paths_of_the_paper_come_out_as_they_are(monkeypatch, tmp_path):
    file = Path("paper[/red]x") / "tables.md"

    def stand_in(request, progress, left_out):
        left_out("caltech7: no file in data[/red]")
        return ReproduceOutcome(files=[file], skipped={}, tables=[], run={"n_runs": 0}, n_new=0)

    monkeypatch.setattr("gapview_lab.paper.command.run_reproduction", stand_in)
    result = CliRunner().invoke(main, ["reproduce", "--data-dir", str(tmp_path), "-o", str(file.parent)])
    assert result.exit_code == 0, result.output
    assert f"Wrote     {file}\n" in result.output
    assert "Left out  caltech7: no file in data[/red]\n" in result.output


def commands_of(path):
    for block in re.findall(r"^```sh\n(.*?)^```$", path.read_text(), flags=re.M | re.S):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["gapview-lab"]:
                yield words[1:]


@pytest.mark.parametrize("path", [*RESULTS, LAB / "README.md"], ids=lambda path: path.name)
def test_commands_on_pages_are_spelled_right(path):
    for words in commands_of(path):
        command = main
        while hasattr(command, "commands"):
            command, words = command.commands[words[0]], words[1:]
        known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert given <= known, words


def test_every_command_is_in_the_readme():
    text = (LAB / "README.md").read_text()
    for name, command in main.commands.items():
        for below in getattr(command, "commands", [""]):
            assert re.search(rf"`gapview-lab {f'{name} {below}'.strip()}[` ]", text), name
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (LAB / target).exists(), target


def test_nothing_private_of_gapview_is_imported():
    for path in (LAB / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gapview":
                names = [*node.module.split("."), *(alias.name for alias in node.names)]
                assert not [name for name in names if re.match("_[^_]", name)], f"{path}: {ast.unparse(node)}"


def classes_in(folder):
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                yield node.name


def test_class_names_of_the_lab_are_used_once():
    own, others = ([*classes_in(folder)] for folder in (LAB / "src", LAB.parent / "src"))
    assert [name for name in own if own.count(name) > 1 or name in others] == []


def test_it_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "gapview_lab", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("gapview-lab, version")


def test_errors_of_gapview_are_one_plain_line(tmp_path):
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(main, ["scale", "--quick", "-o", str(tmp_path / "file" / "out")])
    assert result.exit_code == 1
    assert result.output.startswith("Error: Cannot make the folder")


def test_help_needs_no_optional_package():
    optional = ["pandas", "polars", "anndata", "mudata", "h5py", "dask", "distributed", "faiss", "imml", "mofapy2"]
    hide = f"import sys; sys.modules.update(dict.fromkeys({optional}))"
    script = f"{hide}; from gapview_lab.cli import main; main(['--help'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
