"""Documents that cannot drift: every public name has a runnable example, and the README's Python runs."""

from __future__ import annotations

import inspect
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

import gapview
from gapview import baselines, choice, clusters, datasets, graph, io, metrics, persist, plots, progress, scaling, trust
from gapview.commands.cli import main
from gapview.graph import neighbors
from gapview.persist import checkpoints
from gapview.report import clustering

ROOT = Path(__file__).parents[1]

PUBLIC = (
    *(gapview, baselines, checkpoints, choice, clustering, clusters, datasets, graph, io, metrics, neighbors, persist),
    *(plots, progress, scaling, trust),
)
# Plain records
INTERNAL = {
    *(f"gapview.choice.{name}" for name in ("Selection", "Setting", "Trial")),
    "gapview.clusters.Clustering",
    "gapview.graph.ImputedViews",
    "gapview.datasets.Dataset",
    "gapview.persist.ViewSummary",
}


def public_objects():
    for module in PUBLIC:
        for name in getattr(module, "__all__", []):
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                yield pytest.param(value, id=f"{module.__name__}.{name}")


@pytest.mark.parametrize("value", list(public_objects()))
def test_public_names_have_a_runnable_example(value, request):
    assert value.__doc__
    name = request.node.callspec.id
    assert (">>>" in value.__doc__) != (name in INTERNAL), f"{name} has no example, or has one and is called internal"


def test_what_is_called_internal_is_there():
    assert {parameter.id for parameter in public_objects()} >= INTERNAL


@pytest.mark.parametrize("value", [value for value in list(public_objects()) if inspect.isclass(value.values[0])])
def test_parameters_are_documented(value):
    signature = inspect.signature(value.__init__)
    for name in signature.parameters:
        if name not in ("self", "args", "kwargs") and "Parameters" in (value.__doc__ or ""):
            assert re.search(rf"\b{name}\b.* :", value.__doc__), f"{value.__name__}: {name} is not documented"


def test_the_python_of_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})


def test_the_commands_of_the_readme_run(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    pytest.importorskip("jinja2")
    monkeypatch.chdir(tmp_path)
    views = datasets.make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
    for k, name in enumerate(("rna", "protein")):
        header = ",".join(["id", *(f"{name}{j}" for j in range(views.n_features[k]))])
        lines = (f"s{i}," + ",".join(map(str, row)) for i, row in zip(views.rows(k), views.matrices[k], strict=True))
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *lines]))
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S)
    commands = [line for block in blocks for line in block.splitlines() if line.startswith("gapview ")]
    assert commands
    for command in commands:
        result = CliRunner().invoke(main, shlex.split(command)[1:])
        assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / "report.html").exists()


def test_the_readme_is_short_and_begins_with_a_picture():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 150
    assert text.index("](docs/images/overview.png)") < text.index("\n## ")
    assert "`make demo`" in text
    assert "`make test`" in text


@pytest.mark.skipif(not (ROOT / "results").is_dir(), reason="measured results are in the repository only")
def test_links_of_the_readme_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text()):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target


def test_nothing_of_the_data_is_committed():
    large = [path for path in ROOT.rglob("*.npz") if ".venv" not in path.parts]
    assert not large
