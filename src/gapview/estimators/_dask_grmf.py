"""A fit on the user's Dask cluster, step by step as in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..backends.dask.blocks import BlockedViews, read_blocks, without_features
from ..backends.dask.graph import given_graph, linked_blocks, n_edges
from ..backends.dask.groups import cluster_blocks, confidence_blocks
from ..backends.dask.neighbors import Points, found_blocks
from ..backends.dask.problem import view_problems
from ..backends.dask.reference import Rows, opened, reference_of
from ..backends.dask.results import as_arrays
from ..backends.dask.solve import solve_blocks
from ..backends.dask.start import data_starts, given_starts, random_starts
from ..backends.dask.states import BlockSolution
from ..backends.dask.store import Store, identity_of_blocks
from ..backends.dask.tasks import Tasks, current_tasks
from ..errors import InputError, ParameterError
from ..factorization.codes import codes_of_present
from ..factorization.problem import Problem
from ..factorization.runs import Solution, Weights
from ..graph.knn import own_graphs, resolve_n_neighbors
from ..progress import tell
from ..scaling import Scaling
from ..utils.parameters import random_generator
from ..utils.types import Array
from ..views import Views, demand_enough
from ._dask_bridged import fit_bridged
from ._output import asked_for
from .base import warn_unused_parameters
from .latent import warn_unless_converged

__all__ = ["fit_on_cluster"]


def fit_on_cluster(model: Any, data: Any, mask: Any, checkpoint: Any) -> None:
    """Fit ``GRMF`` or ``BridgedGRMF`` to Dask collections; a fit that fails leaves the model as it was."""
    _refuse(model)
    tasks = current_tasks()
    tell("Reading views")
    views = read_blocks(tasks, data, mask, model.partial_rows)
    constant = ((low == high).all() for low, high in zip(views.low, views.high, strict=True))
    demand_enough(views, constant, model._least_samples())
    warn_unused_parameters(model, views)
    store = None if checkpoint is None else Store(checkpoint, identity_of_blocks(tasks, model, views))
    if store is not None and model.random_state is None:
        seed = store.extra.setdefault("seed", int(np.random.RandomState().randint(2**31 - 1)))
        random_state = np.random.RandomState(seed)
    else:
        random_state = random_generator(model.random_state)
    fit = fit_bridged if model.is_bridged else _fit_grmf
    fitted = fit(model, tasks, views, random_state, store)
    for name in [name for name in model.__dict__ if name.endswith("_")]:
        delattr(model, name)  # what an earlier fit has found must not mix with what this one has found
    model.__dict__.update(fitted, n_features_in_=sum(views.n_features))


def _refuse(model: Any) -> None:
    for name in ("device", "memory_budget"):
        if getattr(model, name) is not None:
            raise ParameterError(
                f"{name} is for fits in this process, and the views are Dask collections: leave {name} out. The "
                "workers of the cluster have their own memory limit."
            )
    if asked_for(model) != "default":
        raise ParameterError(
            "Results of a fit on a cluster stay Dask arrays; set_output asks for frames. Use "
            "set_output(transform='default')."
        )


def _fit_grmf(
    model: Any, tasks: Tasks, views: BlockedViews, random_state: np.random.RandomState, store: Store | None
) -> dict[str, Any]:
    rows, sample, ids, scaled, scalings = opened(tasks, views, model.scale)
    tell("Looking for neighbours")
    search = model._new_search()
    counts = resolve_n_neighbors(model.n_neighbors, views, model.n_clusters)  # type: ignore[arg-type]
    graphs = _given_graphs(model, tasks, scaled) if model.graph is not None else None
    if graphs is None:
        graphs = [
            linked_blocks(tasks, found_blocks(Points(tasks, scaled, k), count, search), scaled.starts, scaled.dtype)
            for k, count in enumerate(counts)
        ]
    for name, blocks in zip(scaled.names, graphs, strict=True):
        if not sum(tasks.gather(tasks.map("describe", n_edges, blocks))):
            raise InputError(
                f"The graph of view '{name}' has no edge between samples that have the view: it was given so, or fewer "
                "than 2 rows of the view are other than zero. Leave this view out."
            )
    tell("Smoothing views")
    problems = view_problems(tasks, scaled, graphs)
    tasks.wait(problems)
    lonely = sum(tasks.gather(tasks.map("describe", _n_unreached, scaled.blocks, problems)))
    bare = scaled.blocks if lonely else tasks.map("describe", without_features, scaled.blocks)
    tasks.wait(bare)
    scaled, graphs = scaled.of(bare), []
    found = _solved(model, tasks, problems, scaled, random_state, store)
    warn_unless_converged(model, found)  # type: ignore[arg-type]
    told = tasks.map("codes", _codes_and_consensus, found.blocks, problems, scaled.blocks, [found.bases] * len(bare))
    codes, embeddings = tasks.map("codes", _first, told), tasks.map("embedding", _second, told)
    tell("Finding groups")
    labels, centers = cluster_blocks(tasks, embeddings, scaled.sizes, model.n_clusters, random_state)
    trusted = confidence_blocks(tasks, embeddings, labels, centers)
    kept = Rows(tasks, scaled, rows).of(codes, embeddings, labels, trusted)
    shared = {
        "bases_": found.bases,
        "objective_": found.objective,
        "n_iter_": found.n_iter,
        "scalings_": scalings,
        "neighbor_search_": tuple(search.done),
        "cluster_centers_": centers,
    }
    reference = reference_of(model, sample, shared, kept)
    return {
        **shared,
        **as_arrays(tasks, scaled, ids, codes, embeddings, labels, trusted),
        "reference_": reference,
        "views_": reference.views_,
    }


def _given_graphs(model: Any, tasks: Tasks, scaled: BlockedViews) -> list[list[Any]]:
    masks = np.concatenate(tasks.gather(tasks.map("describe", _mask, scaled.blocks)))
    known = _Known(scaled.names, masks)
    given = own_graphs(model.graph, known, scaled.dtype)  # type: ignore[arg-type]
    cut = [given_graph(graph, known.rows(k), scaled.starts) for k, graph in enumerate(given)]
    return [[tasks.share("given-graph", block) for block in blocks] for blocks in cut]


@dataclass(frozen=True)
class _Known:
    """What reading a user's graph has to know of the views."""

    names: tuple[str, ...]
    mask: Array

    @property
    def n_views(self) -> int:
        return int(self.mask.shape[1])

    @property
    def n_samples(self) -> int:
        return len(self.mask)

    def rows(self, view: int) -> Array:
        return np.flatnonzero(self.mask[:, view])


def _mask(views: Views) -> Array:
    return views.mask


def _n_unreached(views: Views, problem: Problem) -> int:
    return sum(views.n_present) - len(problem.rows)


def _solved(
    model: Any,
    tasks: Tasks,
    problems: list[Any],
    scaled: BlockedViews,
    random_state: np.random.RandomState,
    store: Store | None,
) -> BlockSolution:
    weights = Weights(model.consensus_weight, model.sparsity_weight)
    n_components, groups = model.n_components or model.n_clusters, tasks.groups(problems)
    if isinstance(model.init, str) and model.init == "random":
        seeds = [int(random_state.randint(2**31 - 1)) for _ in range(model.n_init)]
        starts = [random_starts(tasks, problems, scaled, n_components, seed) for seed in seeds]
    elif isinstance(model.init, str) and model.init == "data":
        starts = [data_starts(tasks, problems, n_components, weights, groups)]
    else:
        starts = [given_starts(tasks, model.init, problems, scaled, n_components)]
    limits = (model.max_iter, model.tol)
    return solve_blocks(tasks, problems, weights, starts, n_components, *limits, groups=groups, store=store)


def _codes_and_consensus(
    solution: Solution, problem: Problem, views: Views, bases: list[Array]
) -> tuple[list[Array], Array]:
    scaled_already = [Scaling(name, None, None, None) for name in views.names]
    return codes_of_present(replace(solution, bases=bases), problem, views, scaled_already)


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]
