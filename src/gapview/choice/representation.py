"""From a setting to a representation of the samples: scale, build the graphs, factorise, balance.

:func:`prepare` and :func:`represent` work on views in memory. :class:`MemoryBackend` and :class:`DiskBackend` have the
same methods for the steps that depend on where the views are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..backends.disk import DiskViews, DiskWorkspace, format_bytes
from ..clusters import balanced, balancing, check_representation
from ..compute import drained
from ..factorization.loop import Solution, Weights, solve_together
from ..factorization.problem import Problem, build_problem
from ..factorization.starts import data_start
from ..graph.bridges import BRIDGES, Reach, both_graphs, joint_graph, union_graph, unite_graphs
from ..graph.imputation import impute_views
from ..graph.knn import knn_graph
from ..graph.neighbors import Search
from ..persist.checkpoints import StateRecord, checkpointed, checkpointed_search
from ..persist.registry import storable_record
from ..progress import phase
from ..scaling import ScaledRows, Scaling, scale_alike
from ..utils.types import Array, Matrix
from ..views import Views
from ..views.trial import draw_from, n_to_try

__all__ = ["IterationLimits", "Representation", "Setting", "ViewGraphs", "backend_for", "prepare", "represent"]


@storable_record
@dataclass(frozen=True)
class Setting:
    """Everything that is chosen for a fit, except the number of clusters and the view weights."""

    scales: tuple[str | None, ...]  # one for each view
    n_neighbors: tuple[int, ...]  # one for each view
    bridge: str  # union, joint or both
    reach: int  # h, the maximum number of steps along the graph
    n_components: int  # K
    consensus_weight: float  # λ1
    sparsity_weight: float  # λ2


class IterationLimits(NamedTuple):
    """When iterations stop: see ``max_iter`` and ``tol`` of :class:`gapview.BridgedGRMF`."""

    max_iter: int
    tol: float


@dataclass(frozen=True)
class ViewGraphs:
    """Scaled views and their graphs, shared by all settings with the same scales and numbers of neighbours."""

    scaled: list[Matrix]  # empty if views are too large to be held twice; they are then scaled again
    dtype: Any  # of the scaled views
    scalings: list[Scaling]
    graphs: dict[str, Any]  # for each bridge that is needed its normalised graph
    explained: float  # share of the variance of views that the other views explain; NaN without a joint graph
    view_weights: tuple[float, ...]


@dataclass(frozen=True)
class Representation:
    """The result of Algorithm 1 for one setting."""

    problem: Problem
    solution: Solution
    balance: Array  # maps codes to points

    @property
    def points(self) -> Array:
        """The rows that k-means clusters."""
        return balanced(self.solution.consensus, self.balance)


def prepare(
    views: Views,
    scales: Sequence[str | None],
    n_neighbors: Sequence[int],
    view_weights: Sequence[float],
    bridges: Sequence[str] = BRIDGES,
    search: Search | None = None,
    *,
    last: bool = False,
) -> ViewGraphs:
    """Scale views in memory and build the graphs over all samples that the bridges need.

    With ``last``, for the final fit, scaled views that are too large to be held twice are not kept.
    """
    with phase("scaling"):
        scaled, scalings = scale_alike(views, scales)
    dtype = scaled[0].dtype
    is_kept = not (last and views.by_reference)
    graphs: dict[str, Any] = {}
    explained = float("nan")
    build_union = partial(union_graph, scaled, views, n_neighbors, view_weights, search, build=_recorded_graph)

    def build_joint() -> tuple[float, Any]:
        imputed = impute_views(scaled if is_kept else drained(scaled), views, view_weights, search)
        return float(imputed.explained.mean()), joint_graph(imputed, max(n_neighbors), view_weights, search)

    with phase("bridge"):
        if set(bridges) & {"union", "both"}:
            graphs["union"] = checkpointed_search("union graph", build_union, search)
        if set(bridges) & {"joint", "both"}:
            explained, graphs["joint"] = checkpointed_search("joint graph", build_joint, search)
        if "both" in bridges:
            graphs["both"] = both_graphs(graphs["union"], graphs["joint"])
    return ViewGraphs(scaled if is_kept else [], dtype, scalings, graphs, explained, tuple(view_weights))


def _recorded_graph(matrix: Matrix, n_neighbors: int, search: Search | None) -> Any:
    """Build a neighbour graph, or read it from the checkpoint of the fit."""
    return checkpointed_search("neighbours", partial(knn_graph, matrix, n_neighbors, search), search)


def represent(
    prepared: ViewGraphs,
    views: Views,
    setting: Setting,
    limits: IterationLimits,
    *,
    last: bool = False,
    build: Callable[..., Problem] = build_problem,
) -> Representation:
    """Build the problem over all samples, run Algorithm 1 and balance the codes.

    With ``last``, the scaled views and the graphs of other bridges are freed on the way. ``build`` builds the problem.
    """
    everyone = np.arange(views.n_samples)
    graph = prepared.graphs[setting.bridge]
    reaches = [
        Reach(graph, setting.reach, views.rows(k), everyone, weight) for k, weight in enumerate(prepared.view_weights)
    ]
    if last:
        for bridge in set(prepared.graphs) - {setting.bridge}:
            del prepared.graphs[bridge]
    features = _drain_scaled(prepared, views) if last else prepared.scaled
    with phase("smoothing"):
        problem = build(features, reaches, [everyone] * views.n_views, views.n_samples)
    weights = Weights(setting.consensus_weight, setting.sparsity_weight)
    with phase("start"):
        starts = [checkpointed("start", lambda: data_start(problem, setting.n_components, weights))]
    with phase("iterations"):
        solution = solve_together(problem, [weights], drained(starts), *limits, record=StateRecord("iterations"))[0]
    check_representation(solution.consensus)
    with phase("k-means"):
        balance = balancing(solution.consensus)
    return Representation(problem.without_data(), solution, balance)


def _drain_scaled(prepared: ViewGraphs, views: Views) -> Iterator[Matrix]:
    """Yield the scaled views and free each before the next; views that were not kept are scaled again."""
    if prepared.scaled:
        yield from drained(prepared.scaled)
        return
    for scaling, view in zip(prepared.scalings, views.in_parts(), strict=True):
        if sparse.issparse(view):
            yield scaling.apply(view).astype(prepared.dtype)
        else:
            yield ScaledRows(view, scaling, prepared.dtype)


class MemoryBackend:
    """Steps of a fit to views in memory."""

    scale_alike = staticmethod(scale_alike)
    knn_graph = staticmethod(knn_graph)
    build_problem = staticmethod(build_problem)
    prepare = staticmethod(partial(prepare, last=True))
    represent = staticmethod(partial(represent, last=True))
    only_union = None  # why only the union bridge can be built; None: all can

    def draw_trial(self, views: Views, n_clusters: int, seed: int) -> tuple[Views, Views]:
        """Return the samples from which scales are chosen, and the samples on which settings are tried."""
        rows = draw_from(views.mask, n_to_try(n_clusters), seed)
        return views, views if len(rows) == views.n_samples else views[rows]


class DiskBackend:
    """Steps of a fit to views on disk, within a memory budget.

    Parameters
    ----------
    workspace : DiskWorkspace
        The plan of the fit, its budget and its scratch files.
    """

    def __init__(self, workspace: DiskWorkspace) -> None:
        self.plan, self.budget = workspace.plan, workspace.budget
        self.scale_alike, self.knn_graph = workspace.scale_alike, workspace.knn_graph
        self.build_problem = workspace.build_problem
        self.represent = partial(represent, last=True, build=workspace.build_problem)
        self.only_union = (
            f"needs {format_bytes(self.plan.in_memory)} of memory, and memory_budget is {format_bytes(self.budget)}: "
            "the bridge 'union' is used instead."
        )

    def draw_trial(self, views: Views, n_clusters: int, seed: int) -> tuple[Views, Views]:
        """Return the samples from which scales are chosen and on which settings are tried: a part read into memory."""
        n_wanted = min(n_to_try(n_clusters), self.plan.n_affordable(self.budget))
        part = views[draw_from(views.mask, n_wanted, seed)]
        return part, part

    def prepare(
        self,
        views: Views,
        scales: Sequence[str | None],
        n_neighbors: Sequence[int],
        view_weights: Sequence[float],
        bridges: Sequence[str],
        search: Search | None = None,
    ) -> ViewGraphs:
        """Scale the views and build the union graph; see :func:`gapview.choice.representation.prepare`."""
        with phase("scaling"):
            scaled, scalings = self.scale_alike(views, scales)
        graphs = (self._build_graph(matrix, count, search) for matrix, count in zip(scaled, n_neighbors, strict=True))
        samples = (views.rows(k) for k in range(views.n_views))
        parts = zip(graphs, samples, view_weights, strict=True)
        with phase("bridge"):
            union = checkpointed_search("union graph", lambda: unite_graphs(parts, views.n_samples), search)
        return ViewGraphs(scaled, scaled[0].dtype, scalings, {"union": union}, float("nan"), tuple(view_weights))

    def _build_graph(self, matrix: Any, n_neighbors: int, search: Search | None) -> Any:
        with phase("neighbours"):
            return self.knn_graph(matrix, n_neighbors, search)


def backend_for(views: Views) -> Any:
    """Return the backend for views in memory or on disk."""
    return DiskBackend(views.workspace) if isinstance(views, DiskViews) else MemoryBackend()
