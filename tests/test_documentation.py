"""Documents that cannot drift: every public name has a runnable example, and the README's Python runs."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import gapview
from gapview import (
    baselines,
    bridges,
    clusters,
    completion,
    counting,
    datasets,
    graph,
    metrics,
    neighbors,
    plots,
    progress,
    scaling,
    trust,
)

ROOT = Path(__file__).parents[1]


def public_objects():
    for module in (
        gapview,
        baselines,
        bridges,
        clusters,
        completion,
        counting,
        datasets,
        metrics,
        neighbors,
        graph,
        plots,
        progress,
        scaling,
        trust,
    ):
        for name in getattr(module, "__all__", []):
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                yield pytest.param(value, id=f"{module.__name__}.{name}")


INTERNAL = {"resolve_n_neighbors", "own_graphs", "Dataset", "Clustering", "Completion"}  # parts and plain records


@pytest.mark.parametrize("value", list(public_objects()))
def test_public_names_have_a_runnable_example(value):
    assert value.__doc__
    if value.__name__ not in INTERNAL:
        assert ">>>" in value.__doc__, f"{value.__name__} has no example"


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


def test_links_of_the_readme_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text()):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target


def test_nothing_of_the_data_is_committed():
    large = [path for path in ROOT.rglob("*.npz") if ".venv" not in path.parts]
    assert not large
