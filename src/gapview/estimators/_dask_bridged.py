"""``BridgedGRMF`` on a cluster: settings are chosen on a sample, then the union bridge links all samples."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np

from ..backends.dask.checkpoint import ClusterCheckpoint
from ..backends.dask.clusters import balance_blocks, cluster_blocks, confidence_blocks
from ..backends.dask.graph import bridged_problems, union_blocks
from ..backends.dask.neighbors import knn_blocks
from ..backends.dask.results import fitted_attributes, prepare_views
from ..backends.dask.solve import solve_blocks
from ..backends.dask.start import data_starts
from ..backends.dask.tasks import Tasks
from ..backends.dask.views import BlockedViews, collect_samples, draw_rows, drop_features
from ..choice.candidates import FitPlan, plan_fit
from ..choice.representation import Setting
from ..choice.selection import Selection, single_choice, use_union_bridge
from ..errors import ParameterError
from ..factorization.runs import Weights, codes_of_all
from ..persist.checkpoints import recording
from ..progress import tell
from ..views.trial import n_to_try
from .latent import warn_unless_converged

__all__ = ["fit_bridged"]

_ONLY_UNION = (
    "on a cluster only the bridge 'union' is built: the others complete missing views from neighbours in all views "
    "together"
)


def fit_bridged(
    model: Any,
    tasks: Tasks,
    views: BlockedViews,
    random_state: np.random.RandomState,
    checkpoint: ClusterCheckpoint | None,
) -> dict[str, Any]:
    """Fit as ``BridgedGRMF`` does in memory; return the attributes of the fitted model."""
    if model.bridge in ("joint", "both"):
        raise ParameterError(f"bridge='{model.bridge}': {_ONLY_UNION}. Use bridge='union' or bridge='auto'.")
    seed = int(random_state.randint(2**31 - 1))
    plan, selection, setting = _choose_settings(model, tasks, views, seed)
    prepared = prepare_views(tasks, views, setting.scales)
    scaled = prepared.scaled
    tell("Looking for neighbours")
    search = model._new_search()
    graphs = knn_blocks(tasks, scaled, setting.n_neighbors, search)
    steps, exchange = union_blocks(tasks, graphs, plan.weights, scaled.starts)
    tell("Smoothing views")
    problems = bridged_problems(tasks, scaled, steps, exchange, setting.reach, plan.weights)
    tasks.wait(problems)
    drop_features(tasks, scaled)
    graphs.clear()
    penalties, groups = Weights(setting.consensus_weight, setting.sparsity_weight), tasks.groups(problems)
    starts = [data_starts(tasks, problems, setting.n_components, penalties, groups)]
    limits = setting.n_components, model.max_iter, model.tol
    found = solve_blocks(tasks, problems, penalties, starts, *limits, groups=groups, checkpoint=checkpoint)
    warn_unless_converged(model, found)  # type: ignore[arg-type]
    codes = tasks.map("codes", codes_of_all, problems, found.blocks)
    embeddings = tasks.map("embedding", attrgetter("consensus"), found.blocks)
    tell("Finding groups")
    balance, points = balance_blocks(tasks, embeddings, scaled.dtype)
    labels, centers = cluster_blocks(tasks, points, scaled.starts, plan.n_clusters, np.random.RandomState(seed))
    confidence = confidence_blocks(tasks, points, labels, centers, steps, exchange)
    fitted = {
        "setting_": setting,
        "view_weights_": np.asarray(plan.weights),
        "bases_": found.bases,
        "objective_": found.objective,
        "n_iter_": found.n_iter,
        "neighbor_search_": tuple(search.done),
        "cluster_centers_": centers,
        "balance_": balance,
    }
    if plan.count is not None:
        fitted["cluster_count_"] = plan.count
    results = fitted_attributes(
        model, tasks, prepared, fitted, codes, embeddings, labels, confidence, codes_of_all=True
    )
    if selection is None:
        selection = single_choice(setting, results["reference_"].labels_)
    results["selection_"] = results["reference_"].selection_ = selection
    return results


def _choose_settings(
    model: Any, tasks: Tasks, views: BlockedViews, seed: int
) -> tuple[FitPlan, Selection | None, Setting]:
    """Choose the number of clusters, the weights of the views and the settings on a sample, on the client."""
    part = collect_samples(tasks, views, draw_rows(tasks, views, n_to_try(model._most_clusters()), seed))
    with recording(None, model, part):
        plan = plan_fit(model, views, part, part, seed)
    advice = "Its groups may differ; give bridge='union' to do without this warning."
    return plan, *use_union_bridge(plan.selection, plan.setting, f"{_ONLY_UNION}.", advice)
