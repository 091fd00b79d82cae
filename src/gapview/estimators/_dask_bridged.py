"""``BridgedGRMF`` on a cluster: settings chosen on a sample, then the union bridge over all samples."""

from __future__ import annotations

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
from ..choice.candidates import FitPlan, plan_fit
from ..choice.selection import single_choice, use_union_bridge
from ..errors import ParameterError
from ..factorization.codes import codes_of_all
from ..factorization.runs import Solution, Weights
from ..persist.checkpoints import recording
from ..progress import tell
from ..utils.types import Array
from ..views.trial import n_to_try
from .latent import warn_unless_converged

__all__ = ["fit_bridged"]

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
    plan, shared = _planned(model, tasks, views, seed)
    weights, setting = plan.weights, shared["setting_"]
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
    labels, centers = cluster_blocks(tasks, points, scaled.sizes, plan.n_clusters, np.random.RandomState(seed))
    trusted = confidence_blocks(tasks, points, labels, centers, steps, exchange)
    kept = Rows(tasks, scaled, rows).of(codes, embeddings, labels, trusted, codes_of_all=True)
    if shared["selection_"] is None:
        shared["selection_"] = single_choice(setting, kept[1][1])
    shared |= {
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


def _planned(model: Any, tasks: Tasks, views: BlockedViews, seed: int) -> tuple[FitPlan, dict[str, Any]]:
    """Count groups, weigh views and choose settings on a sample, which comes to the client."""
    part = gathered(tasks, views, drawn_rows(tasks, views, n_to_try(model._most_clusters()), seed))
    with recording(None, model, part):
        plan = plan_fit(model, views, part, part, seed)
    advice = "Its groups may differ; give bridge='union' to do without this warning."
    chosen, setting = use_union_bridge(plan.selection, plan.setting, f"{_ONLY_UNION}.", advice)
    found = {"selection_": chosen, "setting_": setting}
    return plan, found if plan.count is None else {**found, "cluster_count_": plan.count}


def _consensus(solution: Solution) -> Array:
    return solution.consensus
