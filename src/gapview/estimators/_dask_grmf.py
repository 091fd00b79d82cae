"""Fits on the user's Dask cluster, in the same steps as in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from ..backends.dask.checkpoint import BlockSolution, ClusterCheckpoint, identity_of_blocks
from ..backends.dask.clusters import cluster_blocks, confidence_blocks
from ..backends.dask.graph import n_edges, split_graph, view_problems
from ..backends.dask.neighbors import knn_blocks
from ..backends.dask.reading import read_blocks
from ..backends.dask.results import fitted_attributes, prepare_views
from ..backends.dask.solve import solve_blocks
from ..backends.dask.start import data_starts, given_starts, random_starts
from ..backends.dask.tasks import Tasks, current_tasks
from ..backends.dask.views import BlockedViews, drop_features
from ..errors import InputError, ParameterError
from ..factorization.problem import Problem
from ..factorization.runs import Solution, Weights, codes_of_present
from ..graph.knn import resolve_n_neighbors, user_graphs
from ..persist.checkpoints.journal import restored_on_error
from ..progress import tell
from ..scaling import Scaling
from ..utils.parameters import random_generator
from ..utils.types import Array
from ..views import Views, demand_enough
from ._dask_bridged import fit_bridged
from ._output import output_kind
from .base import warn_unused_parameters
from .latent import warn_unless_converged

__all__ = ["fit_on_cluster"]


def fit_on_cluster(model: Any, data: Any, mask: Any, checkpoint: Any) -> None:
    """Fit ``GRMF`` or ``BridgedGRMF`` to Dask collections; a fit that fails leaves the model as it was."""
    _check_parameters(model)
    tasks = current_tasks()
    tell("Reading views")
    views = read_blocks(tasks, data, mask, model.partial_rows)
    constant = ((low == high).all() for low, high in zip(views.low, views.high, strict=True))
    demand_enough(views, constant, model._least_samples())
    warn_unused_parameters(model, views)
    record = None if checkpoint is None else ClusterCheckpoint(checkpoint, identity_of_blocks(tasks, model, views))
    if record is not None and model.random_state is None:
        seed = record.extra.setdefault("seed", int(np.random.RandomState().randint(2**31 - 1)))
        random_state = np.random.RandomState(seed)
    else:
        random_state = random_generator(model.random_state)
    fit = fit_bridged if model.is_bridged else _fit_grmf
    with restored_on_error(None if record is None else model.random_state):
        fitted = fit(model, tasks, views, random_state, record)
    for name in [name for name in model.__dict__ if name.endswith("_")]:
        delattr(model, name)  # attributes of an earlier fit must not be mixed with those of this one
    model.__dict__.update(fitted, n_features_in_=sum(views.n_features))


def _check_parameters(model: Any) -> None:
    for name in ("device", "memory_budget"):
        if getattr(model, name) is not None:
            raise ParameterError(
                f"{name} is for fits in this process, and the views are Dask collections: leave {name} out. The "
                "workers of the cluster have their own memory limit."
            )
    if output_kind(model) != "default":
        raise ParameterError(
            "Results of a fit on a cluster stay Dask arrays; set_output asks for frames. Use "
            "set_output(transform='default')."
        )


def _fit_grmf(
    model: Any,
    tasks: Tasks,
    views: BlockedViews,
    random_state: np.random.RandomState,
    checkpoint: ClusterCheckpoint | None,
) -> dict[str, Any]:
    prepared = prepare_views(tasks, views, model.scale)
    scaled = prepared.scaled
    tell("Looking for neighbours")
    search = model._new_search()
    counts = resolve_n_neighbors(model.n_neighbors, views, model.n_clusters)  # type: ignore[arg-type]
    is_given = model.graph is not None
    graphs = _given_graphs(model, tasks, scaled) if is_given else knn_blocks(tasks, scaled, counts, search)
    for name, blocks in zip(scaled.names, graphs, strict=True):
        if not sum(tasks.collect("describe", n_edges, blocks)):
            raise InputError(
                f"The graph of view '{name}' has no edge between samples that have the view: it was given so, or fewer "
                "than 2 rows of the view are other than zero. Leave this view out."
            )
    tell("Smoothing views")
    problems = view_problems(tasks, scaled, graphs)
    tasks.wait(problems)
    if not sum(tasks.collect("describe", _n_unreached, scaled.blocks, problems)):
        drop_features(tasks, scaled)
    graphs.clear()
    found = _solve(model, tasks, problems, scaled, random_state, checkpoint)
    warn_unless_converged(model, found)  # type: ignore[arg-type]
    bases = [found.bases] * len(problems)
    results = tasks.map("codes", _codes_and_consensus, found.blocks, problems, scaled.blocks, bases)
    codes, embeddings = tasks.map("codes", itemgetter(0), results), tasks.map("embedding", itemgetter(1), results)
    tell("Finding groups")
    labels, centers = cluster_blocks(tasks, embeddings, scaled.starts, model.n_clusters, random_state)
    confidence = confidence_blocks(tasks, embeddings, labels, centers)
    fitted = {
        "bases_": found.bases,
        "objective_": found.objective,
        "n_iter_": found.n_iter,
        "neighbor_search_": tuple(search.done),
        "cluster_centers_": centers,
    }
    return fitted_attributes(model, tasks, prepared, fitted, codes, embeddings, labels, confidence)


def _given_graphs(model: Any, tasks: Tasks, scaled: BlockedViews) -> list[list[Any]]:
    presence = _Presence(scaled.names, np.concatenate(tasks.collect("describe", attrgetter("mask"), scaled.blocks)))
    given = user_graphs(model.graph, presence, scaled.dtype)  # type: ignore[arg-type]
    cut = [split_graph(graph, presence.rows(k), scaled.starts) for k, graph in enumerate(given)]
    return [[tasks.broadcast("given-graph", block) for block in blocks] for blocks in cut]


@dataclass(frozen=True)
class _Presence:
    """The attributes of ``Views`` that reading the user's graphs needs."""

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


def _n_unreached(views: Views, problem: Problem) -> int:
    return sum(views.n_present) - len(problem.rows)


def _solve(
    model: Any,
    tasks: Tasks,
    problems: list[Any],
    scaled: BlockedViews,
    random_state: np.random.RandomState,
    checkpoint: ClusterCheckpoint | None,
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
    limits = n_components, model.max_iter, model.tol
    return solve_blocks(tasks, problems, weights, starts, *limits, groups=groups, checkpoint=checkpoint)


def _codes_and_consensus(
    solution: Solution, problem: Problem, views: Views, bases: list[Array]
) -> tuple[list[Array], Array]:
    scaled_already = [Scaling(name, None, None, None) for name in views.names]
    return codes_of_present(replace(solution, bases=bases), problem, views, scaled_already)
