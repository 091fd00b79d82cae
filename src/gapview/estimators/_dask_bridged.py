"""``BridgedGRMF`` on a cluster: settings chosen on a sample, then the union bridge over all samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..backends.dask.blocks import BlockedViews, gathered, without_features
from ..backends.dask.graph import linked_blocks, union_blocks
from ..backends.dask.groups import balance_of, balanced_points, cluster_blocks, confidence_blocks
from ..backends.dask.neighbors import Points, found_blocks
from ..backends.dask.problem import bridged_problems
from ..backends.dask.reference import Rows, drawn_rows, opened, reference_of
from ..backends.dask.results import as_arrays
from ..backends.dask.solve import solve_blocks
from ..backends.dask.start import data_starts
from ..backends.dask.store import Store
from ..backends.dask.tasks import Tasks
from ..choice.candidates import N_TRIED, list_candidates, select, settle_weights, suggest_count
from ..choice.selection import Ground, choose
from ..choice.tools import with_union_bridge
from ..errors import ParameterError
from ..factorization.codes import codes_of_all
from ..factorization.runs import Solution, Weights
from ..graph.knn import resolve_n_neighbors
from ..progress import tell
from ..views import Array
from ._convergence import warn_unless_converged

__all__ = ["fit_bridged"]

_N_OF_EVERY_VIEW = 50
_ONLY_UNION = (
    "on a cluster only the bridge 'union' is built: the others complete missing views from neighbours in all views "
    "together"
)


def fit_bridged(
    model: Any, tasks: Tasks, views: BlockedViews, random_state: np.random.RandomState, store: Store | None
) -> dict[str, Any]:
    """Fit as ``BridgedGRMF`` does in memory, with what was found as attributes."""
    if model.bridge in ("joint", "both"):
        raise ParameterError(f"bridge='{model.bridge}': {_ONLY_UNION}. Use bridge='union' or bridge='auto'.")
    seed = int(random_state.randint(2**31 - 1))
    plan, weights = _planned(model, tasks, views, seed)
    n_clusters, setting = plan.pop("n_clusters"), plan["setting_"]
    rows, sample, ids, scaled, scalings = opened(tasks, views, setting.scales)
    tell("Looking for neighbours")
    search = model._new_search()
    graphs = [
        linked_blocks(tasks, found_blocks(Points(tasks, scaled, k), count, search), scaled.starts, scaled.dtype)
        for k, count in enumerate(setting.n_neighbors)
    ]
    steps, exchange = union_blocks(tasks, graphs, weights, scaled.starts)
    tell("Smoothing views")
    problems = bridged_problems(tasks, scaled, steps, exchange, setting.reach, weights)
    bare = tasks.map("describe", without_features, scaled.blocks)
    tasks.wait(problems)
    tasks.wait(bare)
    scaled, graphs = scaled.of(bare), []
    penalties, groups = Weights(setting.consensus_weight, setting.sparsity_weight), tasks.groups(problems)
    starts = [data_starts(tasks, problems, setting.n_components, penalties, groups)]
    limits = (model.max_iter, model.tol)
    found = solve_blocks(tasks, problems, penalties, starts, setting.n_components, *limits, groups=groups, store=store)
    warn_unless_converged(model, found)  # type: ignore[arg-type]
    codes = tasks.map("codes", codes_of_all, problems, found.blocks)
    embeddings = tasks.map("embedding", _consensus, found.blocks)
    tell("Finding groups")
    balance = balance_of(tasks, embeddings, scaled.dtype)
    points = balanced_points(tasks, embeddings, balance)
    labels, centers = cluster_blocks(tasks, points, scaled.sizes, n_clusters, np.random.RandomState(seed))
    trusted = confidence_blocks(tasks, points, labels, centers, steps, exchange)
    kept = Rows(tasks, scaled, rows).of(codes, embeddings, labels, trusted, codes_of_all=True)
    if plan.get("selection_") is None:
        nothing = Ground([], scaled.dtype, [], {}, float("nan"), weights)
        plan["selection_"] = choose([(setting, nothing, kept[1][1])])
    shared = {
        **plan,
        "view_weights_": np.asarray(weights),
        "bases_": found.bases,
        "objective_": found.objective,
        "n_iter_": found.n_iter,
        "scalings_": scalings,
        "neighbor_search_": tuple(search.done),
        "cluster_centers_": centers,
        "balance_": balance,
    }
    reference = reference_of(model, sample, shared, kept)
    arrays = as_arrays(tasks, scaled, ids, codes, embeddings, labels, trusted)
    return {**shared, **arrays, "reference_": reference, "views_": reference.views_}


def _planned(model: Any, tasks: Tasks, views: BlockedViews, seed: int) -> tuple[dict[str, Any], tuple[float, ...]]:
    """Count groups, weigh views and choose settings on a sample, which comes to the client."""
    plan: dict[str, Any] = {}
    least = _N_OF_EVERY_VIEW if isinstance(model.n_neighbors, str) else model.n_neighbors + 1
    shown = gathered(tasks, views, drawn_rows(tasks, views, N_TRIED, least, seed))
    n_clusters = model.n_clusters
    if isinstance(n_clusters, str):
        tell("Counting groups")
        plan["cluster_count_"] = suggest_count(model, shown, seed)
        n_clusters = plan["cluster_count_"].suggested
    counts = tuple(resolve_n_neighbors(model.n_neighbors, views, n_clusters))  # type: ignore[arg-type]
    settings = [replace(setting, n_neighbors=counts) for setting in list_candidates(model, shown, n_clusters)]
    tell("Weighing views")
    weights = settle_weights(model, shown, settings[0], n_clusters, seed)
    tried = select(model, shown, settings, n_clusters, weights, seed) if len(settings) > 1 else None
    text = f"bridge='{(tried.setting if tried else settings[0]).bridge}' suits these views, but {_ONLY_UNION}."
    plan["selection_"], plan["setting_"] = with_union_bridge(
        tried, settings[0], text, "Its groups may differ; give bridge='union' to do without this warning."
    )
    return {**plan, "n_clusters": n_clusters}, weights


def _consensus(solution: Solution) -> Array:
    return solution.consensus
