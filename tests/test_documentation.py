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
    checkpoints,
    clusters,
    completion,
    counting,
    datasets,
    disk,
    distributed,
    files,
    graph,
    metrics,
    neighbors,
    plots,
    progress,
    scaling,
    trust,
)
from gapview.report import clustering

ROOT = Path(__file__).parents[1]


def public_objects():
    for module in (
        gapview,
        baselines,
        bridges,
        checkpoints,
        clusters,
        clustering,
        completion,
        counting,
        datasets,
        disk,
        distributed,
        files,
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


# Parts that are of no use by themselves, and plain records
INTERNAL = {
    *("gapview.clusters.Clustering", "gapview.completion.Completion", "gapview.datasets.Dataset"),
    *("gapview.graph.own_graphs", "gapview.graph.resolve_n_neighbors"),
    # What memory_budget= and Dask collections lead to; people ask estimators for them
    *(f"gapview.disk.{name}" for name in ("FitSize", "MemoryPlan", "demand_memory_for_parts", "read_into_memory")),
    *("gapview.disk.tools_for", "gapview.disk.within_budget"),
    *(f"gapview.distributed.{name}" for name in ("apply_to_blocks", "dask_kind", "demand_in_memory")),
    *("gapview.distributed.fit_on_cluster", "gapview.distributed.is_for_cluster"),
}


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


@pytest.mark.skipif(not (ROOT / "results").is_dir(), reason="measured results are in the repository only")
def test_links_of_the_readme_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text()):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target


def test_nothing_of_the_data_is_committed():
    large = [path for path in ROOT.rglob("*.npz") if ".venv" not in path.parts]
    assert not large
