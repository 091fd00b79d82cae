"""Choose settings without labels: try candidates, score their clusters, choose the best and record why.

Every candidate setting gives labels for the samples. Three scores need no known labels:

* the modularity of the labels on the *union* graph, that is within the views one by one;
* their modularity on the *joint* graph, that is in all views together. It depends on the imputation of missing views,
  so its weight grows with the share of the variance of a view that the other views explain;
* their agreement with the labels of the other candidates, the mean adjusted Rand index. Clusters that many settings
  find are less likely to be an artefact of one of them. Its weight falls as that of the joint graph grows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
from scipy import sparse

from ..backends.memory import MemoryBackend
from ..compute.arrays import host, host_graph
from ..compute.engine import on_free_threads, one_by_one
from ..correction import scale_and_correct
from ..errors import SolutionError
from ..graph.communities import KMEANS
from ..graph.knn import mean_modularity, modularities, modularity, resolve_n_neighbors
from ..metrics import adjusted_rand_indices
from ..persist.checkpoints import checkpointed
from ..persist.checkpoints.journal import is_recording
from ..persist.registry import storable_record
from ..progress import tell
from ..refinement import Refinement, refine
from ..scaling import is_white
from ..utils.shown import Shown, Table
from ..utils.types import Array
from ..views import Views
from ..views.linking import weakest_link
from .n_clusters import ClusterCount, suggest_n_clusters
from .representation import IterationLimits, Setting, ViewGraphs, prepare, represent
from .trials import Drawn, Trials, groups_of_trial

# The joint graph has its full weight from this share of explained variance on. Below the other share a joint graph
# would be random, and is not tried. The choice depends little on either number.
_FULL_TRUST = 0.3
_LEAST_EXPLAINED = 0.02
_LEAST_SHARED = 6  # samples for each group at the weakest link between views, from which settings are compared

# Groups of whitened views must be so many times as clear as others, each in its own graph. On data that whitening
# spoils the ratio was at most 1.03, on faces under changing light at least 1.2.
_CLEARER = 1.1

_SAME = 0.98  # adjusted Rand index from which two groupings count as one
# Between groups with this adjusted Rand index, a difference of the score by this share decides nothing
_ALIKE, _TIED = 0.995, 1e-3
_CHEAPEST_FIRST = ("union", "joint", "both")

_LEAST_WEIGHT = 0.05  # of a view, as a share of the largest


@storable_record
@dataclass(frozen=True)
class Trial:
    """One candidate and the scores of its clusters."""

    setting: Setting  # what was tried
    labels: Array = field(repr=False)  # the clusters of the samples
    union: float  # modularity on the union graphs, as a share of the best candidate's
    joint: float  # the same on the joint graphs
    agreement: float  # mean adjusted Rand index with the labels of the other candidates
    score: float  # the three combined; the candidate with the highest is chosen


@storable_record
@dataclass(frozen=True, repr=False)
class Selection(Shown):
    """The candidates, their scores, and the choice."""

    trials: tuple[Trial, ...]  # every candidate
    chosen: int  # position of the chosen candidate
    explained: float  # share of the variance of views that the other views explain; NaN if not computed
    n_samples: int  # on which the candidates were tried
    reason: str  # the choice in words

    @property
    def setting(self) -> Setting:
        """The chosen setting."""
        return self.trials[self.chosen].setting

    @property
    def table(self) -> list[dict[str, Any]]:
        """One row for every candidate, best first; ``pandas.DataFrame(selection.table)`` shows it."""
        order = sorted(range(len(self.trials)), key=lambda i: -self.trials[i].score)
        return [_row(self.trials[i], chosen=i == self.chosen) for i in order]

    def _shown_as(self) -> Table:
        """Return the candidates, best first."""
        table = [{name: _brief(value) for name, value in row.items()} for row in self.table]
        shown = [name for name in table[0] if len({row[name] for row in table}) > 1 or name == "score"]
        same = [f"{name} {value}" for name, value in table[0].items() if name not in (*shown, "chosen")]
        notes = [f"All candidates: {', '.join(same)}."] if len(table) > 1 else []
        return Table(self.reason, shown, [[row[name] for name in shown] for row in table], notes)

    def __str__(self) -> str:
        return self.reason


def _brief(value: Any) -> Any:
    """Return one for all views in place of as many equal values."""
    parts = value.split(", ") if isinstance(value, str) else [value]
    return parts[0] if len(set(parts)) == 1 else value


def _row(trial: Trial, *, chosen: bool) -> dict[str, Any]:
    settings, scores = vars(trial.setting).copy(), vars(trial).copy()
    del scores["setting"], scores["labels"]
    scales, counts = (", ".join(map(str, settings.pop(name))) for name in ("scales", "n_neighbors"))
    return {"scale": scales, "n_neighbors": counts, **settings, **scores, "chosen": chosen}


def try_settings(
    drawn: Drawn,
    settings: Sequence[Setting],
    n_clusters: int,
    view_weights: Sequence[float],
    seed: int,
    limits: IterationLimits,
) -> list[tuple[Setting, ViewGraphs, Array]]:
    """Return every candidate with its prepared views and its labels, ordered by numbers of neighbours and scales.

    Settings with the same scales, numbers of neighbours and bridge share their work; others are tried at once where
    cores are free. Where views explain nothing of each other, bridges with a joint graph are skipped if there are
    others. Where they do, but few samples link them, scores cannot tell which setting matches the groups of one view
    with those of another: only the first scales and reach are tried, with and without a joint graph.
    """
    is_thin = weakest_link(drawn.views.mask) < _LEAST_SHARED * n_clusters
    has_union = any(setting.bridge == "union" for setting in settings)
    usual = settings[0].scales, settings[0].reach

    def is_tried(setting: Setting, explained: float) -> bool:
        if has_union and explained < _LEAST_EXPLAINED:
            return setting.bridge == "union"
        is_usual = (setting.scales, setting.reach) == usual and setting.bridge != "joint"
        return is_usual or not (is_thin and has_union and explained >= _LEAST_EXPLAINED) or _is_white(setting)

    def try_alike(alike: Sequence[Setting]) -> dict[Setting, tuple[ViewGraphs, Array] | SolutionError]:
        trials = Trials(drawn.prepare(alike[0].scales, alike[0].n_neighbors, view_weights), alike)
        found: dict[Setting, tuple[ViewGraphs, Array] | SolutionError] = {}
        for setting in alike:
            if is_tried(setting, trials.prepared.explained):
                try:
                    find = partial(trials.groups, setting, n_clusters, seed, limits)
                    found[setting] = trials.prepared, checkpointed("candidate", find)
                except SolutionError as error:  # other settings may still work
                    found[setting] = error
        return found

    order = sorted(settings, key=lambda s: (s.n_neighbors, tuple(str(scale) for scale in s.scales)))
    works = _sharing_work(order, by_bridge=not drawn.is_on_device)
    tell("Trying settings", 0, len(settings))
    each = one_by_one if is_recording() else on_free_threads  # a checkpoint records steps in their order
    results: dict[Setting, tuple[ViewGraphs, Array] | SolutionError] = {}
    n_done = 0
    for alike, found in zip(works, each(try_alike, works), strict=True):
        results |= found
        n_done += len(alike)
        tell("Trying settings", n_done, len(settings))
    tried = [(setting, results[setting]) for setting in order if setting in results]
    candidates = [(setting, *found) for setting, found in tried if not isinstance(found, SolutionError)]
    if not candidates:
        raise next(found for _, found in tried if isinstance(found, SolutionError))
    return candidates


def _sharing_work(settings: Sequence[Setting], *, by_bridge: bool) -> list[list[Setting]]:
    """Return the settings that share work: first one list for every scaling, whose graphs the others then use."""
    by_graphs: dict[Any, dict[str | None, list[Setting]]] = {}
    for setting in settings:
        of_bridges = by_graphs.setdefault((setting.scales, setting.n_neighbors), {})
        of_bridges.setdefault(setting.bridge if by_bridge else None, []).append(setting)
    turns = zip_longest(*(of_bridges.values() for of_bridges in by_graphs.values()))
    return [alike for turn in turns for alike in turn if alike is not None]


def best_groups(selection: Selection, n_most: int) -> list[Array]:
    """Return the groups of the chosen candidate, then of others that differ from these, best first."""
    order = sorted(range(len(selection.trials)), key=lambda i: -selection.trials[i].score)
    index = adjusted_rand_indices([trial.labels for trial in selection.trials])
    found = [selection.chosen]
    for i in order:
        if len(found) == n_most or selection.trials[i].score <= 0:
            break
        if all(index[i, other] < _SAME for other in found):
            found.append(i)
    return [selection.trials[i].labels for i in found]


def refine_groups(
    drawn: Drawn,
    setting: Setting,
    starts: Sequence[Array],
    n_clusters: int,
    view_weights: Sequence[float],
    seed: int,
    limits: IterationLimits,
    assign: str = KMEANS,
) -> Refinement:
    """Train discriminants on groups that settings have found; without such groups, on those of this setting."""
    prepared = drawn.prepare(setting.scales, setting.n_neighbors, view_weights)
    backend: Any = prepared.backend
    starts = starts or [groups_of_trial(prepared, setting, n_clusters, seed, limits, assign)]
    graph = host_graph(prepared.graphs["both"])
    return refine(backend.scaled, drawn.views.on_host(), graph, starts, backend.parts, prepared.explained, seed)


def groups_again(
    setting: Setting,
    n_clusters: int,
    view_weights: Sequence[float],
    n_neighbors: int | str,
    limits: IterationLimits,
    assign: str = KMEANS,
) -> Callable[[Views, int], Array]:
    """Return a function that finds the groups of a setting in other views, without refinement."""

    def fit(views: Views, seed: int) -> Array:
        counts = _neighbor_counts(n_neighbors, views, n_clusters)
        prepared = prepare(MemoryBackend(views), setting.scales, counts, view_weights, [setting.bridge])
        return groups_of_trial(prepared, setting, min(n_clusters, views.n_samples), seed, limits, assign)

    return fit


def mean_clarity(scale: Any, n_neighbors: int | str, n_clusters: int) -> Callable[[Views, Array], float]:
    """Return a function that computes the modularity of labels within the views of other data, on average."""

    def clarity(views: Views, labels: Array) -> float:
        counts = _neighbor_counts(n_neighbors, views, n_clusters)
        return float(mean_modularity([labels], scale_and_correct(views, scale, alike=False)[0], views, counts)[0])

    return clarity


def _neighbor_counts(n_neighbors: int | str, views: Views, n_clusters: int) -> list[int]:
    """Return the number of neighbours in every view of a part of the samples."""
    if isinstance(n_neighbors, str):
        return resolve_n_neighbors(n_neighbors, views, n_clusters)
    return [min(int(n_neighbors), count - 1) for count in views.n_present]


def compute_view_weights(
    drawn: Drawn, setting: Setting, n_clusters: int, seed: int, limits: IterationLimits
) -> tuple[float, ...]:
    """Return the weight of every view, computed from a first clustering with equal weights; 1 on average.

    The weight is the modularity of the labels on the neighbour graph of the view, as a share of the maximum for
    clusters of these sizes, and at least a twentieth of the largest weight. In a view of noise neighbours have
    unrelated labels, so that it gets the least weight.
    """
    views = drawn.views
    prepared = drawn.prepare(setting.scales, setting.n_neighbors, (1.0,) * views.n_views, [setting.bridge])
    backend: Any = prepared.backend
    labels = Trials(prepared, [setting]).groups(setting, n_clusters, seed, limits)
    shares = np.array(
        [
            _share_of_modularity(host_graph(backend.view_graph(k, count)), labels[views.rows(k)])
            for k, count in enumerate(setting.n_neighbors)
        ]
    )
    if not np.nanmax(shares, initial=0.0) > 0:  # no view is better than the others
        return (1.0,) * views.n_views
    shares[np.isnan(shares)] = np.nanmean(shares)  # a view with one cluster cannot be compared
    weights = np.maximum(shares / shares.max(), _LEAST_WEIGHT)
    return tuple(float(weight) for weight in weights / weights.mean())


def _share_of_modularity(graph: sparse.csr_array, labels: Array) -> float:
    """Return the modularity as a share of its value if no edge left its cluster; NaN if there is one cluster."""
    degrees = np.bincount(labels, weights=np.asarray(graph.sum(axis=1)).ravel())
    most = 1 - float(np.square(degrees / max(degrees.sum(), 1.0)).sum())
    return modularity(graph, labels) / most if 0 < most < 1 else float("nan")


def suggest_count(
    drawn: Drawn,
    setting: Setting,
    counts: Sequence[int],
    view_weights: Sequence[float],
    seed: int,
    limits: IterationLimits,
) -> ClusterCount:
    """Suggest a number of clusters from one representation, scored on the union graph, which holds no imputed rows."""
    bridges = [setting.bridge, "union"]
    prepared = drawn.prepare(setting.scales, setting.n_neighbors, view_weights, bridges)
    points, graph = host(represent(prepared, setting, limits).points), host_graph(prepared.graphs["union"])
    backend: Any = prepared.backend
    if backend.parts.any():  # each part has the number of the largest one
        rows = np.flatnonzero(backend.parts == 0)
        points, graph = points[rows], graph[rows][:, rows]
    return suggest_n_clusters(points, [graph], counts, random_state=seed)


def single_choice(setting: Setting, labels: Array, explained: float = float("nan")) -> Selection:
    """Return the selection of a fit without alternatives."""
    only = Trial(setting, labels, 1.0, 1.0, 1.0, 1.0)
    return Selection((only,), 0, explained, len(labels), f"Nothing else was tried: {_in_words(setting)}.")


def choose(candidates: Sequence[tuple[Setting, ViewGraphs, Array]]) -> Selection:
    """Score candidates and choose the one with the highest score.

    The score is U^(1−t) · J^t + (1 − t/2) · a. U and J are the modularity on the union and on the joint graphs as
    shares of the best candidate's, t = min(1, explained / 0.3), and a is the mean adjusted Rand index with the labels
    of the other candidates.

    Groups of whitened views are chosen if they are clearer than all others, each in the graph of its own views, and
    left out otherwise, with a score of 0: whitening shows groups behind strong directions that all samples share, such
    as light, and drowns other groups in noise, which then have no clear graph.
    """
    labelings = [labels for _, _, labels in candidates]
    if len(candidates) == 1:
        setting, prepared, labels = candidates[0]
        return single_choice(setting, labels, prepared.explained)
    white = np.array([_is_white(setting) for setting, _, _ in candidates])
    if white.all():
        white[:] = False
    plain = [own for own, left_out in zip(candidates, white, strict=True) if not left_out]
    each = list({id(prepared): prepared for _, prepared, _ in plain}.values())
    explained = float(np.mean([prepared.explained for prepared in each]))
    union, joint = (_modularity_shares([own.graphs[name] for own in each], labelings) for name in ("union", "joint"))
    agreement = _agreement(labelings, np.flatnonzero(~white))
    trust = min(1.0, explained / _FULL_TRUST)
    scores = union ** (1 - trust) * joint**trust + (1 - trust / 2) * agreement
    clarity = np.empty(len(candidates))
    for prepared in {id(own): own for _, own, _ in candidates}.values():
        places = [place for place, (_, own, _) in enumerate(candidates) if own is prepared]
        clarity[places] = modularities(prepared.graphs["union"], [labelings[place] for place in places])
    clearer = clarity / max(float(clarity[~white].max()), np.finfo(float).tiny)
    best = float(scores[~white].max())
    scores = np.where(white, np.where(clearer > _CLEARER, best * clearer, 0.0), scores)
    trials = tuple(
        Trial(setting, labels, float(u), float(j), float(a), float(s))
        for (setting, _, labels), u, j, a, s in zip(candidates, union, joint, agreement, scores, strict=True)
    )
    chosen = _cheapest_alike([setting for setting, _, _ in candidates], labelings, scores)
    if white[chosen]:
        reason = (
            f"Whitened views, with {_in_words(trials[chosen].setting)}: in the graph of the whitened views, their "
            f"groups have a modularity {clearer[chosen]:.2f} times that of any other groups in theirs."
        )
    else:
        reason = _reason(trials, chosen, explained, trust)
    return Selection(trials, chosen, explained, len(labelings[0]), reason)


def _cheapest_alike(settings: Sequence[Setting], labelings: Sequence[Array], scores: Array) -> int:
    """Return the candidate with the highest score, or another that has found the same groups for less work.

    On easy data all candidates find the same groups, but for few samples, and rounding would decide.
    """
    best = int(np.argmax(scores))
    index = adjusted_rand_indices([labelings[best], *labelings])[0, 1:]
    alike = np.flatnonzero((scores >= (1 - _TIED) * scores[best]) & (index >= _ALIKE)).tolist()
    return min(alike, key=lambda i: _CHEAPEST_FIRST.index(settings[i].bridge))


def _is_white(setting: Setting) -> bool:
    return any(map(is_white, setting.scales))


def _modularity_shares(graphs: Sequence[Any], labelings: Sequence[Array]) -> Array:
    """Return the modularity of all labels on every graph, as a share of the best, averaged over the graphs."""
    shares = []
    for graph in graphs:
        values = np.maximum(modularities(graph, labelings), 0.0)
        shares.append(values / values.max() if values.max() > 0 else np.ones_like(values))
    return np.asarray(np.mean(shares, axis=0))


def _agreement(labelings: Sequence[Array], compared: Array) -> Array:
    """Return the mean adjusted Rand index of all labels with those that are compared, themselves left out."""
    index = adjusted_rand_indices(labelings)
    np.fill_diagonal(index, 0.0)
    n_others = np.maximum(len(compared) - np.isin(np.arange(len(index)), compared), 1)
    return np.asarray(index[:, compared].sum(axis=1) / n_others)


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
        f"views explain {explained:.0%} of each other, so the modularity in all views together has {trust:.0%} of the "
        f"weight and that within the views {1 - trust:.0%}."
    )
