"""Training data within a memory budget: in memory if that is enough, on disk if not, refused if neither will do."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from ...errors import ParameterError
from ...graph.knn import resolve_n_neighbors
from ...progress import phase
from ...views import Views, training_views
from ._budget import in_words, read_budget
from ._plan import FitSize, MemoryPlan, plan_memory
from ._rows import FileRows
from ._scratch import Scratch
from ._views import all_mapped, read_mapped
from ._workspace import DiskWorkspace

__all__ = ["demand_memory_for_parts", "fit_size", "read_into_memory", "within_budget"]


@contextmanager
def within_budget(model: Any, data: Any, mask: Any, n_least: int) -> Iterator[Views]:
    """Read training data for a fit that takes no more memory than the model's ``memory_budget``.

    Raises
    ------
    ParameterError
        If the fit needs more, with what it needs and what to change.
    """
    budget = read_budget(model.memory_budget)
    assert budget is not None
    if not all_mapped(data):
        with phase("reading"):
            views = training_views(data, mask, model.partial_rows, n_least)
        _demand_memory(plan_memory(fit_size(model, views)), budget)
        yield views
        return
    with phase("reading"):
        mapped = read_mapped(data, mask, model.partial_rows, n_least)
    plan = plan_memory(fit_size(model, mapped))
    if plan.in_memory <= budget:
        with phase("reading"):
            views = training_views(data, mask, model.partial_rows, n_least)
        yield views
        return
    plan.check(budget)
    if getattr(model, "bridge", "union") in ("joint", "both"):
        raise ParameterError(
            f"bridge='{model.bridge}' completes missing views in memory: this needs {in_words(plan.in_memory)}, you "
            f"gave {in_words(budget)}: use bridge='union', bridge='auto' or a larger memory_budget."
        )
    with Scratch() as scratch:
        mapped.workspace = DiskWorkspace(plan, budget, scratch)
        yield mapped


def _demand_memory(plan: MemoryPlan, budget: int) -> None:
    if plan.in_memory > budget:
        raise ParameterError(
            f"memory_budget: with the views in memory this needs {in_words(plan.in_memory)}, you gave "
            f"{in_words(budget)}: use a larger budget; or save each view with np.save and give it as np.load(path, "
            f"mmap_mode='r'), so that it stays on disk and {in_words(plan.least)} are enough."
        )


def demand_memory_for_parts(model: Any, share: float) -> None:
    """Refuse to repeat the fit of a model on parts of its training data, which are held in memory, beyond its budget.

    Raises
    ------
    ParameterError
        If a part needs more, with what it needs and what to change.
    """
    budget = read_budget(model.memory_budget)
    if budget is None:
        return
    size = fit_size(model, model.views_)
    n_present = tuple(math.ceil(share * count) for count in size.n_present)
    plan = plan_memory(replace(size, n_samples=math.ceil(share * size.n_samples), n_present=n_present))
    if plan.in_memory > budget:
        raise ParameterError(
            f"memory_budget: cluster_stability holds one resample after the other in memory: this needs "
            f"{in_words(plan.in_memory)}, you gave {in_words(budget)}: use a larger budget, with "
            "model.set_params(memory_budget=...), which needs no other fit, or a smaller share."
        )


def fit_size(model: Any, views: Views) -> FitSize:
    """Find out what the memory of a fit depends on.

    Examples
    --------
    >>> from gapview import GRMF, Views
    >>> from gapview.datasets import make_views
    >>> from gapview.backends.disk import fit_size, plan_memory
    >>> views = make_views(n_samples=200, n_clusters=3, random_state=0).views
    >>> plan_memory(fit_size(GRMF(3), views)).in_memory > 200 * 50 * 8
    True
    """
    is_bridged = model.is_bridged
    n_clusters = model.max_clusters if isinstance(model.n_clusters, str) else model.n_clusters
    by_rule = model.n_components is None or isinstance(model.n_components, str)
    n_components = n_clusters * (1 + is_bridged) if by_rule else model.n_components
    init = getattr(model, "init", "data")
    by_chance = isinstance(init, str) and init == "random"
    return FitSize(
        n_samples=views.n_samples,
        n_present=tuple(int(matrix.shape[0]) for matrix in views.matrices),
        n_features=tuple(_width(matrix) for matrix in views.matrices),
        itemsize=max(matrix.dtype.itemsize for matrix in views.matrices),
        n_clusters=n_clusters,
        n_components=n_components,
        n_neighbors=_n_neighbors(model, views, n_clusters),
        n_starts=model.n_init if by_chance else 1,
        is_bridged=is_bridged,
        starts_from_data=isinstance(init, str) and init == "data",
        tries_settings=is_bridged and "auto" in (model.selection, str(model.n_clusters)),
    )


def _width(matrix: Any) -> int:
    """Count features; of a sparse view, as many as its values and their places take the room of."""
    if not sparse.issparse(matrix):
        return int(matrix.shape[1])
    return -int(-matrix.nnz * (matrix.dtype.itemsize + 4) // (matrix.shape[0] * matrix.dtype.itemsize))


def _n_neighbors(model: Any, views: Views, n_clusters: int) -> int:
    given = getattr(model, "graph", None)
    if given is None:
        return max(resolve_n_neighbors(model.n_neighbors, views, n_clusters))
    # Whether the graphs are any good is for those to say who read them
    graphs = list(given.values()) if isinstance(given, Mapping) else given if isinstance(given, list | tuple) else []
    sizes = [graph.nnz if sparse.issparse(graph) else getattr(graph, "size", 0) for graph in graphs]
    return -(-max(sizes, default=0) // (2 * min(int(matrix.shape[0]) for matrix in views.matrices)))


def read_into_memory(model: Any) -> Any:
    """Return a model with its training data in memory: itself, or a copy if they are in files."""
    views = getattr(model, "views_", None)
    if views is None or not any(isinstance(held, FileRows) for held in views._held):
        return model
    whole = copy.copy(model)
    whole.views_ = views._like(tuple(np.asarray(matrix) for matrix in views.matrices), views.mask, views.sample_ids)
    return whole
