"""The samples on which settings are tried: scaled views and graphs, computed once, and the groups of a setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse

from ..backends.base import Backend
from ..backends.memory import MemoryBackend
from ..clusters import N_RESTARTS, cluster_parts
from ..compute.arrays import host_graph, is_tensor, leading_directions
from ..errors import GapviewWarning
from ..factorization.problem import Problem, ViewTerm, stack_terms
from ..factorization.starts import MOST_FEATURES
from ..graph.bridges import BRIDGES
from ..graph.communities import KMEANS, leiden_parts
from ..graph.imputation import ImputedViews
from ..graph.neighbors import Search, SearchReport
from ..persist.checkpoints.journal import use_journal
from ..progress import phase
from ..refinement import Discriminants
from ..scaling import Scaling, largest_magnitude, row_lengths
from ..utils.messages import muted
from ..utils.types import Array
from ..views import Views
from .representation import IterationLimits, Setting, ViewGraphs, factorize, prepare, represent

_TRIAL_TOLERANCE = 1e-4  # from a start computed from the data, later iterations change few labels
# Trials use the leading singular vectors of a view, in single precision: labels change in less than one of a thousand
# samples. Fewer vectors than this change more of them
_N_VECTORS = 128
_VECTORS_PER_COMPONENT = 2
_SAFE = 2.0**20  # single precision holds squares of values up to it, and of its inverse


class TrialBackend(MemoryBackend):
    """Views in memory on which several settings are tried: every view is searched for neighbours once."""

    keeps_graphs = True

    def __init__(self, views: Views, scales: Sequence[str | None], view_parts: Array) -> None:
        super().__init__(views, view_parts=view_parts)
        self._graphs: dict[tuple[int, int], tuple[Any, list[SearchReport]]] = {}
        self._reduced: dict[int, list[Array]] = {}  # rows on their leading singular vectors, by their number
        self._imputed: tuple[ImputedViews, list[SearchReport]] | None = None
        super().scale(scales)

    def scale(self, scale: Any) -> list[Scaling]:
        """Return the scalings of the views, which are scaled already."""
        return self.scalings

    def _recorded_graph(self, matrix: Any, n_neighbors: int, search: Search | None) -> Any:
        return self.view_graph(next(k for k, own in enumerate(self.scaled) if own is matrix), n_neighbors, search)

    def view_graph(self, view: int, n_neighbors: int, search: Search | None = None) -> Any:
        """Return the k-NN graph of a view."""
        if (view, n_neighbors) not in self._graphs:
            own = Search()
            graph = self._build_graph(self.scaled[view], n_neighbors, own)
            self._graphs[view, n_neighbors] = graph, own.done
        graph, reports = self._graphs[view, n_neighbors]
        if search is not None:
            search.done.extend(reports)
        return graph

    def _impute(self, view_weights: Sequence[float], search: Search | None) -> ImputedViews:
        """Impute missing rows: once in two views, whose donors do not depend on their weights."""
        if self.views.n_views != 2:
            return super()._impute(view_weights, search)
        if self._imputed is None:
            own = Search()
            self._imputed = super()._impute(view_weights, own), own.done
        imputed, reports = self._imputed
        if search is not None:
            search.done.extend(reports)
        return replace(imputed, matrix=array_namespace(imputed.matrix).asarray(imputed.matrix, copy=True))

    def find_neighbors(self, n_neighbors: Sequence[int], *, donors: bool) -> None:
        """Find what does not depend on the weights of the views: neighbours in each of them, and donors in two."""
        for view, count in enumerate(n_neighbors):
            self.view_graph(view, count)
        if donors and self.views.n_views == 2:
            self._impute((1.0, 1.0), None)

    @cached_property
    def is_small(self) -> bool:
        """Whether trials may use the leading singular vectors: dense views of few features and of usual values."""
        return not is_tensor(self.scaled[0]) and self._is_usual

    @cached_property
    def is_together(self) -> bool:
        """Whether all settings are tried at once; the same for views on a device."""
        return is_tensor(self.scaled[0]) and self._is_usual and not self.parts.any()

    @cached_property
    def _is_usual(self) -> bool:
        if sum(self.views.n_features) > MOST_FEATURES or any(sparse.issparse(rows) for rows in self.scaled):
            return False
        return all(1 / _SAFE < largest_magnitude(rows) < _SAFE for rows in self.scaled)

    def nested_problems(
        self, graph: sparse.csr_array, reaches: Sequence[int], view_weights: Sequence[float], n_components: int
    ) -> dict[int, Problem]:
        """Smooth the leading singular vectors of every view by up to so many steps along a graph, for each reach.

        The longest reach passes the others on its way, and all views take a step in one product.
        """
        n_kept = max(_N_VECTORS, _VECTORS_PER_COMPONENT * n_components)
        if n_kept not in self._reduced:
            self._reduced[n_kept] = [_leading_scores(rows, n_kept) for rows in self.scaled]
        reduced = self._reduced[n_kept]
        edges = np.cumsum([0, *(rows.shape[1] for rows in reduced)]).tolist()
        # For every view a column of ones on its samples, which gives the degrees; the last is 1 for all samples
        start = np.zeros((self.views.n_samples, edges[-1] + len(reduced) + 1), dtype=np.float32)
        for k, (rows, (begin, end)) in enumerate(zip(reduced, pairwise(edges), strict=True)):
            start[self.views.rows(k), begin:end] = rows
            start[self.views.rows(k), edges[-1] + k] = 1
        start[:, -1] = 1
        weights, total, found = graph.astype(np.float32), start, {}
        for n_steps in range(1, max(reaches) + 1):
            total = weights @ total
            total += start
            if n_steps in reaches:
                found[n_steps] = self._problem_of(total, edges, view_weights)
        return found

    def _problem_of(self, total: Array, edges: Sequence[int], view_weights: Sequence[float]) -> Problem:
        """Return the problem of smoothed columns."""
        terms, rows, degrees, constant = [], [], [], 0.0
        for k, (columns, weight) in enumerate(zip(pairwise(edges), view_weights, strict=True)):
            degree = total[:, edges[-1] + k] * np.float32(weight)
            linked = np.flatnonzero(degree > 0)  # a sample without an edge has no code in this view
            smoothed = total[linked, slice(*columns)] * np.float32(weight)
            terms.append(ViewTerm(slice(0, len(linked)), smoothed.shape[1], smoothed))
            rows.append(linked)
            degrees.append(degree[linked])
            of_rows = total[self.views.rows(k), -1].astype(np.float64) * weight
            constant += float(of_rows @ self._squares[k])
        return stack_terms(terms, rows, degrees, len(total), constant)

    @cached_property
    def _squares(self) -> list[Array]:
        return [row_lengths(rows).astype(np.float64) ** 2 for rows in self.scaled]


def _leading_scores(rows: Array, n_most: int) -> Array:
    """Return rows on their leading right singular vectors; narrow rows as they are."""
    if rows.shape[1] <= n_most:
        return rows
    return np.asarray(rows @ leading_directions(rows, n_most))


@dataclass(frozen=True, eq=False)
class Drawn:
    """The samples on which settings are tried. Their scaled views and graphs are kept for further trials."""

    views: Views
    view_parts: Array  # part of every view, by all samples
    _backends: dict[Any, TrialBackend] = field(default_factory=dict, init=False, repr=False)
    _prepared: dict[Any, ViewGraphs] = field(default_factory=dict, init=False, repr=False)
    _locks: dict[Any, Lock] = field(default_factory=dict, init=False, repr=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    @property
    def is_on_device(self) -> bool:
        """Whether the views are tensors."""
        return is_tensor(next(self.views.in_parts())[:0])

    def prepare(
        self,
        scales: Sequence[str | None],
        n_neighbors: Sequence[int],
        view_weights: Sequence[float],
        bridges: Sequence[str] = BRIDGES,
    ) -> ViewGraphs:
        """Return the scaled views and their graphs, from an earlier trial if there was one."""
        scales, key = tuple(scales), (tuple(scales), tuple(n_neighbors), tuple(view_weights), tuple(bridges))
        with self._lock:
            lock = self._locks.setdefault(key, Lock())
        with lock:  # several threads may ask for the same graphs
            if key not in self._prepared:
                # Not recorded: the steps of a fit that is resumed from a checkpoint do not all run again
                with use_journal(None):
                    self._prepared[key] = prepare(
                        self._scaled(scales), scales, n_neighbors, view_weights, bridges, Search()
                    )
            return self._prepared[key]

    def find_neighbors(self, scales: Sequence[str | None], n_neighbors: Sequence[int], *, donors: bool) -> None:
        """Scale the views, and find neighbours, and donors if they are needed, which later trials share."""
        with use_journal(None):
            self._scaled(tuple(scales)).find_neighbors(n_neighbors, donors=donors)

    def _scaled(self, scales: tuple[str | None, ...]) -> TrialBackend:
        if scales not in self._backends:
            self._backends[scales] = TrialBackend(self.views, scales, self.view_parts)
        return self._backends[scales]

    def prepared(self, setting: Setting, view_weights: Sequence[float]) -> ViewGraphs | None:
        """Return the views and all graphs of a setting if there are any from a trial."""
        return self._prepared.get((setting.scales, setting.n_neighbors, tuple(view_weights), BRIDGES))


class Trials:
    """The trials of settings that share scales and numbers of neighbours."""

    def __init__(self, prepared: ViewGraphs, settings: Sequence[Setting]) -> None:
        self.prepared = prepared
        self.reaches: dict[Any, set[int]] = {}
        for setting in settings:
            self.reaches.setdefault((setting.bridge, setting.n_components), set()).add(setting.reach)
        self._problems: dict[Any, dict[int, Problem]] = {}
        self._settings, self._together = list(settings), dict[tuple[Setting, int], Array | None]()

    def groups(self, setting: Setting, n_clusters: int, seed: int, limits: IterationLimits) -> Array:
        """Return the groups of a setting; see :func:`groups_of_trial`."""
        backend: Any = self.prepared.backend
        if backend.is_together:
            if (setting, seed) not in self._together:
                of_all = _groups_together(self.prepared, self._settings, n_clusters, seed, limits)
                self._together |= {(own, seed): labels for own, labels in zip(self._settings, of_all, strict=True)}
            labels = self._together[setting, seed]
            if labels is not None:
                return labels
        if not backend.is_small:
            return groups_of_trial(self.prepared, setting, n_clusters, seed, limits)
        key = setting.bridge, setting.n_components
        if key not in self._problems:
            graph, reaches = self.prepared.graphs[setting.bridge], sorted(self.reaches[key])
            self._problems = {  # only those of one bridge, since others may be large
                key: backend.nested_problems(graph, reaches, self.prepared.view_weights, setting.n_components)
            }
        with muted(GapviewWarning):
            found = factorize(backend, self._problems[key][setting.reach], setting, _coarse(limits))
            return _clustered(backend, found.points, n_clusters, seed)


def _groups_together(
    prepared: ViewGraphs, settings: Sequence[Setting], n_clusters: int, seed: int, limits: IterationLimits
) -> list[Array | None]:
    from .tensor_trials import groups_together  # imports torch

    n_vectors = max(_N_VECTORS, _VECTORS_PER_COMPONENT * settings[0].n_components)
    return groups_together(prepared, settings, n_clusters, N_RESTARTS, n_vectors, seed, _coarse(limits))


def _coarse(limits: IterationLimits) -> IterationLimits:
    return limits._replace(tol=max(limits.tol, _TRIAL_TOLERANCE))


def _clustered(backend: Any, points: Any, n_clusters: int, seed: int) -> Array:
    return cluster_parts(points, backend.parts, n_clusters, np.random.RandomState(seed)).labels


def groups_of_trial(
    prepared: ViewGraphs, setting: Setting, n_clusters: int, seed: int, limits: IterationLimits, assign: str = KMEANS
) -> Array:
    """Return the groups of a setting, by k-means with a coarser tolerance or by Leiden on its bridge.

    All settings have the same seed, so that chance does not choose.
    """
    backend: Any = prepared.backend
    if assign != KMEANS:
        return leiden_parts(host_graph(prepared.graphs[setting.bridge]), backend.parts, n_clusters, seed)
    if getattr(backend, "is_together", False):
        (labels,) = _groups_together(prepared, [setting], n_clusters, seed, limits)
        if labels is not None:
            return labels
    with muted(GapviewWarning):  # the final fit warns
        return _clustered(backend, represent(prepared, setting, _coarse(limits)).points, n_clusters, seed)


def prepare_fit(
    backend: Backend,
    known: ViewGraphs | None,
    setting: Setting,
    view_weights: Sequence[float],
    search: Search,
    discriminants: Discriminants | None,
) -> ViewGraphs:
    """Scale the views of a fit, apply discriminants and build its graph.

    ``known`` are the views and graphs of a trial of the setting with all samples, if there was one.
    """
    bridge = setting.bridge
    if known is None or search.method == "approximate":
        return prepare(backend, setting.scales, setting.n_neighbors, view_weights, [bridge], search, discriminants)
    fitted: Any = backend  # in memory, as the samples of a trial are
    fitted.adopt(known.backend)
    search.done.extend(known.searches[bridge])
    with phase("refinement"):
        shares = None if discriminants is None else backend.group_shares(discriminants)
    return replace(known, backend=backend, graphs={bridge: known.graphs[bridge]}, shares=shares)
