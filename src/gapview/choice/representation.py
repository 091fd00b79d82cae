"""From a setting to a representation of the samples: scale, build the graphs, factorise, balance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..backends.base import Backend, Handle
from ..factorization.loop import Solution, Weights, iterate, new_runs
from ..factorization.starts import ProblemBlocks, data_start
from ..graph.bridges import BRIDGES
from ..graph.neighbors import Search, SearchReport
from ..persist.checkpoints import checkpointed
from ..persist.registry import storable_record
from ..progress import phase
from ..refinement import Discriminants
from ..scaling import Scaling
from ..utils.types import Array


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

    backend: Backend  # holds the scaled views
    scalings: list[Scaling]
    graphs: dict[str, Handle]  # for each bridge that is needed its normalised graph
    explained: float  # share of the variance of views that the other views explain; NaN without a joint graph
    view_weights: tuple[float, ...]
    shares: Handle | None = None  # of the groups in every sample, by discriminants
    searches: dict[str, list[SearchReport]] = field(default_factory=dict)  # for neighbours, of each bridge


@dataclass(frozen=True)
class Representation:
    """The result of Algorithm 1 for one setting."""

    problem: ProblemBlocks  # without its data
    solution: Solution
    balance: Array  # maps codes to points
    points: Handle  # the rows that k-means clusters


def prepare(
    backend: Backend,
    scales: Sequence[str | None],
    n_neighbors: Sequence[int],
    view_weights: Sequence[float],
    bridges: Sequence[str] = BRIDGES,
    search: Search | None = None,
    discriminants: Discriminants | None = None,
) -> ViewGraphs:
    """Scale the views, apply discriminants, and build the graphs over all samples that the bridges need."""
    scalings = backend.scale(scales)
    shares = None
    if discriminants is not None:
        with phase("refinement"):
            shares = backend.group_shares(discriminants)
    graphs: dict[str, Any] = {}
    search, explained = search or Search(), float("nan")
    n_before = len(search.done)
    with phase("bridge"):
        if set(bridges) & {"union", "both"}:
            graphs["union"] = backend.union_graph(n_neighbors, view_weights, search)
        n_union = len(search.done)
        if set(bridges) & {"joint", "both"}:
            explained, graphs["joint"] = backend.joint_graph(max(n_neighbors), view_weights, search)
        if "both" in bridges:
            graphs["both"] = backend.both_graphs(graphs["union"], graphs["joint"])
    done = {"union": search.done[n_before:n_union], "joint": search.done[n_union:], "both": search.done[n_before:]}
    needed = {name: graphs[name] for name in bridges}
    return ViewGraphs(backend, scalings, needed, explained, tuple(view_weights), shares, done)


def represent(
    prepared: ViewGraphs, setting: Setting, limits: IterationLimits, keep_codes: bool = False
) -> Representation:
    """Build the problem over all samples, run Algorithm 1 and balance the codes, unless they are to be kept."""
    # No name refers to the problem here, so that its data can be freed on the way
    return factorize(prepared.backend, _smoothed(prepared, setting), setting, limits, keep_codes)


def _smoothed(prepared: ViewGraphs, setting: Setting) -> ProblemBlocks:
    with phase("smoothing"):
        graph = prepared.graphs[setting.bridge]
        return prepared.backend.bridged_problem(graph, setting.reach, prepared.view_weights)


def factorize(
    backend: Backend, problem: ProblemBlocks, setting: Setting, limits: IterationLimits, keep_codes: bool = False
) -> Representation:
    """Run Algorithm 1 from a start computed from the data, and balance the codes."""
    weights = Weights(setting.consensus_weight, setting.sparsity_weight)
    with phase("start"):
        starts = [checkpointed("start", lambda: data_start(problem, setting.n_components, weights, limits.tol))]
    with phase("iterations"), backend.sweep(problem, starts) as sweep:
        solution = iterate(sweep, new_runs([weights], [setting.n_components]), *limits)[0]
    del sweep  # it holds the data
    problem = problem.without_data()
    with phase("k-means"):
        return Representation(problem, solution, *backend.balance(solution.consensus, keep_codes))
