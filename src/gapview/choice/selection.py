"""Choosing settings without labels: try a few, let the data judge, and say why.

Every candidate setting gives groups of the samples. Three things that need no labels speak for groups:

* how well they hold on the *union* graph, that is within the views one by one: their modularity;
* how well they hold on the *joint* graph, that is in all views together. This judge is only as good as the completion
  of missing views it rests on, so it counts by how much of the views the other views explain;
* how far they agree with the groups of the other candidates. What many settings find is there; what a single one finds
  may be its own doing. This counts the more, the less the joint judge is to be trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from ..clusters import balanced, balancing, check_representation, cluster_rows
from ..compute import drained, host, host_graph
from ..errors import GapviewWarning, SolutionError
from ..factorization.loop import Solution, Weights, solve_together
from ..factorization.problem import Problem, build_problem
from ..factorization.starts import data_start
from ..graph.bridges import BRIDGES, Reach, both_graphs, joint_graph, union_graph
from ..graph.imputation import impute_views
from ..graph.knn import knn_graph, modularity
from ..graph.neighbors import Search
from ..persist.checkpoints import StateRecord, checkpointed, checkpointed_search
from ..persist.registry import storable_record
from ..progress import phase, tell
from ..scaling import ScaledRows, Scaling, scale_alike
from ..utils.types import Array, Matrix
from ..utils.warnings import muted
from ..views import Views
from .n_clusters import ClusterCount, suggest_n_clusters

__all__ = [
    "Ground",
    "Represented",
    "Selection",
    "Setting",
    "Trial",
    "choose",
    "count_groups",
    "prepare",
    "represent",
    "try_settings",
    "weigh_views",
]

# The joint judge has its full say from this share of explained variance on; below the other share, a joint graph would
# be made of chance, and is not tried. Neither number matters much: see docs/choices.md.
_FULL_SAY = 0.3
_LEAST_EXPLAINED = 0.02

_TRIAL_TOLERANCE = 1e-4  # from a start taken from the data, what comes after changes few labels
_LEAST_SAY = 0.05  # of the best view's weight


@storable_record
@dataclass(frozen=True)
class Setting:
    """Everything that is to be chosen for a fit, apart from the number of groups."""

    scales: tuple[str | None, ...]  # one for each view
    n_neighbors: tuple[int, ...]  # one for each view
    bridge: str  # union, joint or both
    reach: int  # h, the most steps along the graph
    n_components: int  # K
    consensus_weight: float  # λ1
    sparsity_weight: float  # λ2


@dataclass(frozen=True)
class Ground:
    """What all settings with the same scaling and the same neighbours share."""

    scaled: list[Matrix]  # empty if views are too large to be held twice: then they are scaled again
    dtype: Any  # of the scaled views
    scalings: list[Scaling]
    graphs: dict[str, Any]  # per kind of bridge that is needed, normalised
    explained: float  # share of the views that the other views explain; NaN if only the union graph is needed
    view_weights: tuple[float, ...]


@dataclass(frozen=True)
class Represented:
    """One setting carried through to a representation of the samples."""

    problem: Problem
    solution: Solution
    balance: Array  # carries codes to the points

    @property
    def points(self) -> Array:
        """The rows among which groups are found."""
        return balanced(self.solution.consensus, self.balance)


@storable_record
@dataclass(frozen=True)
class Trial:
    """One candidate and what the judges say of its groups."""

    setting: Setting  # what was tried
    labels: Array = field(repr=False)  # its groups
    union: float  # modularity on the union graphs, as a share of the best candidate's
    joint: float  # the same on the joint graphs
    agreement: float  # mean adjusted Rand index with the groups of the other candidates
    score: float  # what the judges say together; the highest is chosen


@storable_record
@dataclass(frozen=True)
class Selection:
    """What was tried, how it was judged, and what was chosen."""

    trials: tuple[Trial, ...]  # every candidate
    chosen: int  # position of the one that was taken
    explained: float  # share of the views that the other views explain; NaN if nobody has asked
    n_samples: int  # on which the candidates were tried
    reason: str  # the same in words

    @property
    def setting(self) -> Setting:
        """The chosen setting."""
        return self.trials[self.chosen].setting

    @property
    def table(self) -> list[dict[str, Any]]:
        """One row for every candidate, best first; ``pandas.DataFrame(selection.table)`` shows it."""
        order = sorted(range(len(self.trials)), key=lambda i: -self.trials[i].score)
        return [_row(self.trials[i], chosen=i == self.chosen) for i in order]

    def __str__(self) -> str:
        return self.reason


def _row(trial: Trial, *, chosen: bool) -> dict[str, Any]:
    setting = trial.setting
    return {
        "scale": ", ".join(str(scale) for scale in setting.scales),
        "n_neighbors": ", ".join(str(count) for count in setting.n_neighbors),
        "bridge": setting.bridge,
        "reach": setting.reach,
        "n_components": setting.n_components,
        "consensus_weight": setting.consensus_weight,
        "sparsity_weight": setting.sparsity_weight,
        "union": trial.union,
        "joint": trial.joint,
        "agreement": trial.agreement,
        "score": trial.score,
        "chosen": chosen,
    }


def prepare(
    views: Views,
    scales: Sequence[str | None],
    n_neighbors: Sequence[int],
    view_weights: Sequence[float],
    bridges: Sequence[str] = BRIDGES,
    search: Search | None = None,
    *,
    last: bool = False,
) -> Ground:
    """Scale the views and build those graphs over all samples that are needed.

    If this is the ground of the last fit, scaled views that are too large to be held are not kept.
    """
    with phase("scaling"):
        scaled, scalings = scale_alike(views, scales)
    dtype = scaled[0].dtype
    is_kept = not (last and views.by_reference)
    graphs: dict[str, Any] = {}
    explained = float("nan")
    united = partial(union_graph, scaled, views, n_neighbors, view_weights, search, build=_recorded_graph)

    def joined() -> tuple[float, Any]:
        imputed = impute_views(scaled if is_kept else drained(scaled), views, view_weights, search)
        return float(imputed.explained.mean()), joint_graph(imputed, max(n_neighbors), view_weights, search)

    with phase("bridge"):
        if set(bridges) & {"union", "both"}:
            graphs["union"] = checkpointed_search("union graph", united, search)
        if set(bridges) & {"joint", "both"}:
            explained, graphs["joint"] = checkpointed_search("joint graph", joined, search)
        if "both" in bridges:
            graphs["both"] = both_graphs(graphs["union"], graphs["joint"])
    return Ground(scaled if is_kept else [], dtype, scalings, graphs, explained, tuple(view_weights))


def _recorded_graph(matrix: Matrix, n_neighbors: int, search: Search | None) -> Any:
    """Build a neighbour graph, or take it from the checkpoint of the fit."""
    return checkpointed_search("neighbours", partial(knn_graph, matrix, n_neighbors, search), search)


def represent(
    ground: Ground,
    views: Views,
    setting: Setting,
    *,
    max_iter: int,
    tol: float,
    last: bool = False,
    build: Callable[..., Problem] | None = None,
) -> Represented:
    """Carry one setting through: the problem over all samples, Algorithm 1, balanced codes.

    If it is the last on its ground, scaled views and other graphs are let go. ``build`` sets up the problem for views
    that are kept elsewhere; by default :func:`gapview.factorization.problem.build_problem`.
    """
    everyone = np.arange(views.n_samples)
    steps = ground.graphs[setting.bridge]
    reaches = [
        Reach(steps, setting.reach, views.rows(k), everyone, weight) for k, weight in enumerate(ground.view_weights)
    ]
    if last:
        for kind in set(ground.graphs) - {setting.bridge}:
            del ground.graphs[kind]
    features = _last_features(ground, views) if last else ground.scaled
    with phase("smoothing"):
        problem = (build or build_problem)(features, reaches, [everyone] * views.n_views, views.n_samples)
    weights = Weights(setting.consensus_weight, setting.sparsity_weight)
    with phase("start"):
        starts = [checkpointed("start", lambda: data_start(problem, setting.n_components, weights))]
    with phase("iterations"):
        record = StateRecord("iterations")
        solution = solve_together(problem, [weights], drained(starts), max_iter, tol, record=record)[0]
    check_representation(solution.consensus)
    with phase("k-means"):
        balance = balancing(solution.consensus)
    return Represented(problem.without_data(), solution, balance)


def _last_features(ground: Ground, views: Views) -> Iterator[Matrix]:
    """Give the scaled views for the last time, one by one; those that were not kept are scaled again."""
    if ground.scaled:
        yield from drained(ground.scaled)
        return
    for scaling, view in zip(ground.scalings, views.in_parts(), strict=True):
        sparsely = sparse.issparse(view)
        yield scaling.apply(view).astype(ground.dtype) if sparsely else ScaledRows(view, scaling, ground.dtype)


def _tried_labels(
    ground: Ground, views: Views, setting: Setting, n_clusters: int, seed: int, max_iter: int, tol: float
) -> Array:
    """Find groups with a coarser tolerance; the same restarts for all settings, since chance must not choose."""
    with muted(GapviewWarning):  # the chosen setting is fitted again, and says its own
        points = represent(ground, views, setting, max_iter=max_iter, tol=max(tol, _TRIAL_TOLERANCE)).points
        return cluster_rows(points, n_clusters, np.random.RandomState(seed)).labels


def try_settings(
    views: Views,
    settings: Sequence[Setting],
    n_clusters: int,
    view_weights: Sequence[float],
    seed: int,
    *,
    max_iter: int,
    tol: float,
) -> Iterator[tuple[Setting, Ground, Array]]:
    """Yield every candidate with its ground and its groups; settings that share a ground come after each other.

    Where the views explain nothing of each other, the joint graph is left to those who ask for nothing else.
    """
    ground, shared, failure, n_tried = None, None, None, 0
    has_union = any(setting.bridge == "union" for setting in settings)
    order = sorted(settings, key=lambda s: (s.n_neighbors, tuple(str(scale) for scale in s.scales)))
    for done, setting in enumerate(order):
        tell("Trying settings", done, len(order))
        if ground is None or shared != (setting.scales, setting.n_neighbors):
            shared = (setting.scales, setting.n_neighbors)
            ground = prepare(views, setting.scales, setting.n_neighbors, view_weights)
        if has_union and setting.bridge != "union" and ground.explained < _LEAST_EXPLAINED:
            continue
        try:
            find = partial(_tried_labels, ground, views, setting, n_clusters, seed, max_iter, tol)
            labels = checkpointed("candidate", find)
        except SolutionError as error:  # one setting that leads nowhere does not speak against the others
            failure = error
            continue
        n_tried += 1
        yield setting, ground, labels
    if failure is not None and not n_tried:
        raise failure


def weigh_views(
    views: Views, setting: Setting, n_clusters: int, seed: int, *, max_iter: int, tol: float
) -> tuple[float, ...]:
    """Let a first clustering, to which all views count the same, say how much every view is to count.

    A view counts by the modularity of the groups on its own neighbour graph, as a share of the most that groups of
    these sizes can have, and at least by a twentieth of the best view's. Neighbours in a view of noise know nothing of
    the groups, so that it loses its say.
    """
    ground = prepare(views, setting.scales, setting.n_neighbors, (1.0,) * views.n_views, [setting.bridge])
    labels = _tried_labels(ground, views, setting, n_clusters, seed, max_iter, tol)
    held = np.array(
        [
            _share_held(host_graph(knn_graph(matrix, count)), labels[views.rows(k)])
            for k, (matrix, count) in enumerate(zip(ground.scaled, setting.n_neighbors, strict=True))
        ]
    )
    if not np.nanmax(held, initial=0.0) > 0:  # the groups hold nowhere, so that none is better than the others
        return (1.0,) * views.n_views
    held[np.isnan(held)] = np.nanmean(held)  # a view that sees one group only cannot tell: it counts like the others
    shares = np.maximum(held / held.max(), _LEAST_SAY)
    return tuple(float(share) for share in shares / shares.mean())


def _share_held(graph: sparse.csr_array, labels: Array) -> float:
    """Modularity as a share of what it would be if no edge left its group; NaN if there is one group."""
    degrees = np.bincount(labels, weights=np.asarray(graph.sum(axis=1)).ravel())
    most = 1 - float(np.square(degrees / max(degrees.sum(), 1.0)).sum())
    return modularity(graph, labels) / most if 0 < most < 1 else float("nan")


def count_groups(
    views: Views,
    setting: Setting,
    counts: Sequence[int],
    view_weights: Sequence[float],
    seed: int,
    *,
    max_iter: int,
    tol: float,
) -> ClusterCount:
    """Suggest a number of groups from one representation; judged on the union graph, which nothing was filled into."""
    ground = prepare(views, setting.scales, setting.n_neighbors, view_weights, [setting.bridge, "union"])
    points = represent(ground, views, setting, max_iter=max_iter, tol=tol).points
    return suggest_n_clusters(host(points), [host_graph(ground.graphs["union"])], counts, random_state=seed)


def choose(candidates: Sequence[tuple[Setting, Ground, Array]]) -> Selection:
    """Judge candidates and choose the one with the highest score.

    The score is U^(1−t) · J^t + (1 − t/2) · a, with U and J the modularity on the union and on the joint graphs as
    shares of the best candidate's, t how far the joint judge is trusted, and a the mean adjusted Rand index with the
    others.
    """
    labelings = [labels for _, _, labels in candidates]
    if len(candidates) == 1:
        setting, ground, labels = candidates[0]
        only = Trial(setting, labels, 1.0, 1.0, 1.0, 1.0)
        return Selection((only,), 0, ground.explained, len(labels), f"Nothing else was tried: {_in_words(setting)}.")
    grounds = list({id(ground): ground for _, ground, _ in candidates}.values())
    explained = float(np.mean([ground.explained for ground in grounds]))
    union = _judged([host_graph(ground.graphs["union"]) for ground in grounds], labelings)
    joint = _judged([host_graph(ground.graphs["joint"]) for ground in grounds], labelings)
    agreement = _agreement(labelings)
    trust = min(1.0, explained / _FULL_SAY)
    scores = union ** (1 - trust) * joint**trust + (1 - trust / 2) * agreement
    trials = tuple(
        Trial(setting, labels, float(u), float(j), float(a), float(s))
        for (setting, _, labels), u, j, a, s in zip(candidates, union, joint, agreement, scores, strict=True)
    )
    chosen = int(np.argmax(scores))
    return Selection(trials, chosen, explained, len(labelings[0]), _reason(trials, chosen, explained, trust))


def _judged(graphs: Sequence[sparse.csr_array], labelings: Sequence[Array]) -> Array:
    """Modularity of all labellings on every graph, as a share of the best one's, averaged over the graphs."""
    shares = []
    for graph in graphs:
        values = np.array([max(modularity(graph, labels), 0.0) for labels in labelings])
        shares.append(values / values.max() if values.max() > 0 else np.ones_like(values))
    return np.asarray(np.mean(shares, axis=0))


def _agreement(labelings: Sequence[Array]) -> Array:
    n = len(labelings)
    index = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            index[i, j] = index[j, i] = adjusted_rand_score(labelings[i], labelings[j])
    return np.asarray(index.sum(axis=1) / (n - 1))


def _in_words(setting: Setting) -> str:
    bridge = "both bridges" if setting.bridge == "both" else f"the {setting.bridge} bridge"
    scales = ", ".join(dict.fromkeys(str(scale) for scale in setting.scales))
    return f"{bridge} with reach {setting.reach}, scale {scales}"


def _reason(trials: Sequence[Trial], chosen: int, explained: float, trust: float) -> str:
    best = trials[chosen]
    return (
        f"Chosen of {len(trials)} candidates: {_in_words(best.setting)}. Its groups have "
        f"{best.union:.0%} of the best modularity within the views and {best.joint:.0%} of the best in all views "
        f"together, and an adjusted Rand index of {best.agreement:.2f} with the groups of the others on average. The "
        f"views explain {explained:.0%} of each other, so that the joint judge counts {trust:.0%} and the one within "
        f"the views {1 - trust:.0%}."
    )
