"""The steps of a fit to views in the memory of this process, in arrays or in tensors on a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import sparse

from ..clusters import (
    balanced,
    balancing,
    check_representation,
    cluster_parts,
    count_zeros,
    group_means,
    group_order,
    group_sums,
    kmeans_rows,
    renumbered,
    warn_of_zeros,
)
from ..compute.arrays import (
    FEW_ROWS,
    drained,
    graph_like,
    host,
    host_graph,
    is_on_device,
    is_tensor,
    leading_directions,
    like,
    row_blocks,
    weights_of,
)
from ..compute.engine import trim_memory
from ..correction import Correction, scale_and_correct
from ..factorization.loop import Solution, codes_of_all, codes_of_present
from ..factorization.problem import NarrowRows, Problem, build_problem
from ..factorization.starts import check_init, given_start, random_start
from ..factorization.sweep import ArraySweep, array_sweep
from ..graph.bridges import Reach, both_graphs, joint_graph, local_order, union_graph
from ..graph.communities import leiden_parts
from ..graph.imputation import ImputedViews, impute_views
from ..graph.knn import check_edges, knn_graph, user_graphs
from ..graph.neighbors import Search
from ..kinds import Preparation, fit_kind, prepared_views
from ..mixture import fit_mixture, rows_to_fit
from ..persist.checkpoints import StateRecord, checkpointed, checkpointed_search
from ..persist.checkpoints.journal import fit_generator, is_recording
from ..progress import phase
from ..refinement import Discriminants, transition_of, walk
from ..scaling import ScaledRows, Scaling, row_lengths, unit_rows
from ..trust.confidence import confidence
from ..utils.types import Array, Matrix
from ..views import Views
from ..views.cells import LARGE, draw_from
from ..views.linking import parts_of, sample_parts
from .base import SampleResults
from .tensor_shares import discriminant_shares, mixture_shares, tensor_transition

# Large views of many features are smoothed on so many of their leading directions, from so many of their rows
_N_DIRECTIONS, _N_FITTED = 96, 2**15


class MemoryBackend:
    """The steps of a fit to views in memory; see :class:`gapview.backends.base.Backend`.

    Parameters
    ----------
    views : Views
        The samples.
    is_last : bool, default=False
        Whether the scaled views are used for one problem only, so that they can be freed on the way.
    device : str, optional
        The device that computes; by default the processor, or the device of tensors given as views.
    view_parts : int array of shape (n_views,), optional
        Part of every view, if the samples are drawn from others; see :func:`gapview.views.linking.parts_of`.
    """

    keeps_graphs = False  # whether the graphs of the views are needed again
    both_graphs = staticmethod(both_graphs)
    random_start = staticmethod(random_start)
    generator = staticmethod(fit_generator)

    def __init__(
        self, views: Views, *, is_last: bool = False, device: Any = None, view_parts: Array | None = None
    ) -> None:
        self.training = self.views = views
        self.view_parts = parts_of(views.mask) if view_parts is None else view_parts
        if device is not None:
            with phase("to the device"):
                self.views = views.to_device(device)
        self.is_last = is_last
        self.scaled: list[Matrix] = []
        self.scalings: list[Scaling] = []
        self.corrections: tuple[Correction | None, ...] = ()

    @cached_property
    def parts(self) -> Array:
        """Part of every sample: samples that shared views connect, directly or through others; the largest is 0."""
        return sample_parts(self.training.mask, self.view_parts)

    def prepare(self, kinds: Sequence[str | None], n_top: Sequence[int | None]) -> list[Preparation]:
        """Transform the views by their kinds, on the processor; return the rules."""
        given, placed = self.training.on_host(), next(self.views.in_parts())[:0]
        parts = zip(given.names, given.in_parts(), kinds, n_top, strict=True)
        rules = [fit_kind(*part) for part in parts]
        prepared = prepared_views(given, rules)
        if prepared is not given:
            self.views = self._on_device(prepared) if is_tensor(placed) else prepared
        return rules

    def _on_device(self, views: Views) -> Views:
        return views.to_device(next(self.views.in_parts())[:0].device)

    def draw(self, n_samples: int, seed: int) -> Views:
        """Return some of the samples."""
        rows = draw_from(self.views.mask, n_samples, seed)
        return self.views if len(rows) == self.views.n_samples else self.views[rows]

    def scale(self, scale: str | Sequence[str | None] | None) -> list[Scaling]:
        """Scale the views; return the scalings."""
        if self.is_last and self.views.by_reference:
            trim_memory()  # the choice has freed some
        with phase("scaling"):
            self.scaled, self.scalings, self.corrections = scale_and_correct(self.views, scale)
        self.dtype = self.scaled[0].dtype
        return self.scalings

    def adopt(self, other: MemoryBackend) -> None:
        """Take over the scaled views of a backend of the same samples."""
        self.scaled, self.scalings, self.corrections = list(other.scaled), other.scalings, other.corrections
        self.dtype = other.dtype

    def neighbor_graphs(self, n_neighbors: Sequence[int], search: Search) -> list[Any]:
        """Return the k-NN graph of every view."""
        pairs = zip(self.scaled, n_neighbors, strict=True)
        return self._with_edges([self._recorded_graph(matrix, count, search) for matrix, count in pairs])

    def _with_edges(self, graphs: list[Any]) -> list[Any]:
        check_edges([len(weights_of(graph)) for graph in graphs], self.views.names)
        return graphs

    def _recorded_graph(self, matrix: Any, n_neighbors: int, search: Search | None) -> Any:
        """Build a k-NN graph, or read it from the checkpoint of the fit."""
        return checkpointed_search("neighbours", partial(self._build_graph, matrix, n_neighbors, search), search)

    _build_graph = staticmethod(knn_graph)

    def given_graphs(self, graph: Any) -> list[Any]:
        """Check the graphs of a user, and return them."""
        given = user_graphs(graph, self.views, self.views.mask, host(self.scaled[0][:0]).dtype)
        pairs = zip(given, self.scaled, strict=True)
        return self._with_edges([graph_like(own, matrix[:0]) for own, matrix in pairs])

    def union_graph(self, n_neighbors: Sequence[int], view_weights: Sequence[float], search: Search | None) -> Any:
        """Return the union graph over all samples."""
        arguments = self.scaled, self.views, n_neighbors, view_weights, search
        return checkpointed_search("union graph", lambda: self._unite(*arguments), search)

    def _unite(self, *arguments: Any) -> Any:
        """Build the union graph from graphs that a checkpoint may hold, and that are then not overwritten."""
        overwrite = not self.keeps_graphs and not is_recording()
        return union_graph(*arguments, build=self._recorded_graph, overwrite=overwrite)

    def joint_graph(self, n_neighbors: int, view_weights: Sequence[float], search: Search | None) -> tuple[float, Any]:
        """Impute missing rows; return the share of variance explained, and the joint graph over all samples."""

        def build() -> tuple[float, Any]:
            imputed = self._impute(view_weights, search)
            return float(imputed.explained.mean()), joint_graph(imputed, n_neighbors, view_weights, search)

        return checkpointed_search("joint graph", build, search)

    def _impute(self, view_weights: Sequence[float], search: Search | None) -> ImputedViews:
        """Impute missing rows; the matrix of the result may be changed."""
        scaled = self.scaled if self._are_kept else drained(self.scaled)
        return impute_views(scaled, self.views, view_weights, search)

    @property
    def _are_kept(self) -> bool:
        """Whether the scaled views are kept until the bridged problem is built.

        Large views are scaled twice, and so are those on a device, which has less memory and more speed.
        """
        is_scarce = self.views.by_reference or is_on_device(next(self.views.in_parts())[:0])
        return not (self.is_last and is_scarce) or bool(self.corrections)

    def view_problem(self, graphs: Sequence[Any]) -> Problem:
        """Smooth every view along its graph."""
        rows = [self.views.rows(k) for k in range(self.views.n_views)]
        return self._build_problem(graphs, rows)

    def bridged_problem(self, graph: Any, n_steps: int, view_weights: Sequence[float]) -> Problem:
        """Smooth every view by up to so many steps along a graph over all samples."""
        if not self._are_kept:
            self.scaled.clear()
        everyone = np.arange(self.views.n_samples)
        near = local_order(graph)
        weights = [
            Reach(graph, n_steps, self.views.rows(k), everyone, weight, near) for k, weight in enumerate(view_weights)
        ]
        return self._build_problem(weights, [everyone] * self.views.n_views)

    def _build_problem(self, graphs: Sequence[Any], targets: Sequence[Array]) -> Problem:
        """Build the problem of both kinds; backends with rows elsewhere than in memory replace this."""
        features = self._on_directions() if isinstance(graphs[0], Reach) else self._features()
        return build_problem(features, graphs, targets, self.views.n_samples)

    def _features(self) -> Iterator[Any]:
        return self._drained_views() if self.is_last else iter(self.scaled)

    def _on_directions(self) -> Iterator[Any]:
        """Yield the scaled views, large ones of many features on their leading directions.

        Their bases then lie within these directions. Smoothed rows, which all samples have, take less memory and time.
        Whitened views have no leading directions.
        """
        features = self._features()
        for scaling in self.scalings:
            rows = next(features)
            yield rows if scaling.axes is not None else _on_directions(rows)
            del rows

    def _drained_views(self) -> Iterator[Any]:
        """Yield the scaled views and free each before the next; views that were not kept are scaled again."""
        if self.scaled:
            yield from drained(self.scaled)
            return
        for scaling, view in zip(self.scalings, self.views.in_parts(), strict=True):
            if sparse.issparse(view):
                yield scaling.apply(view).astype(self.dtype)
            else:
                yield ScaledRows(view, scaling, self.dtype)

    def given_start(self, problem: Problem, init: Any, n_components: int) -> list[Array]:
        """Check the starting codes of a user, and return them."""
        codes = check_init(init, self.views, n_components)
        return given_start(problem, codes, self.views.names, self.views.mask)

    def sweep(self, problem: Problem, starts: list[Any]) -> AbstractContextManager[ArraySweep]:
        """Open the passes over the data."""
        return array_sweep(problem, drained(starts), StateRecord("iterations"))

    def codes(self, problem: Problem, solution: Solution, *, of_all: bool) -> tuple[list[Array], Array]:
        """Return codes and consensus in NumPy arrays."""
        solution = solution.on_host()
        if of_all:
            return codes_of_all(problem, solution), solution.consensus
        return codes_of_present(solution, problem, self.views, self.scalings)

    def balance(self, embedding: Array, keep: bool = False) -> tuple[Array, Array]:
        """Return the matrix that balances codes, and the balanced rows; with ``keep``, that of unity and the rows."""
        check_representation(embedding)
        if keep:
            return np.eye(embedding.shape[1]), embedding
        matrix = balancing(embedding)
        return matrix, balanced(embedding, matrix)

    def cluster(self, points: Array, n_clusters: int, random_state: np.random.RandomState) -> tuple[Array, Array]:
        """Run k-means on rows scaled to unit length; return labels and centres."""
        placed = self._placed(points)
        found = cluster_parts(placed, self.parts, n_clusters, random_state, kmeans=_recorded_kmeans)
        return self._numbered(found.labels, found.centers)

    def communities(self, points: Array, n_clusters: int, seed: int, graph: Any) -> tuple[Array, Array]:
        """Run Leiden on the graph over all samples; return labels, and the means of the points as centres."""
        labels = checkpointed("leiden", lambda: leiden_parts(host_graph(graph), self.parts, n_clusters, seed))
        return self._numbered(labels, self._centers(points, labels))

    def _centers(self, points: Array, labels: Array, n_groups: int | None = None) -> Array:
        sums, counts = group_sums(points, labels, n_groups or int(labels.max()) + 1)
        return group_means(sums, counts).astype(host(points[:0]).dtype)

    def group_shares(self, discriminants: Discriminants) -> Array:
        """Return the share of each group in every sample by discriminants."""
        arguments = self.scaled, [self.views.rows(k) for k in range(self.views.n_views)], self.views.n_samples
        if is_tensor(self.scaled[0][:0]):
            return discriminant_shares(discriminants, *arguments)  # type: ignore[no-any-return]
        return discriminants.shares(*arguments)

    def mixture_shares(self, points: Array, centers: Array) -> Array:
        """Return the share of each group in every sample by a mixture that starts from the centres of k-means."""
        mixture = fit_mixture(host(points[like(rows_to_fit(len(points)), points)]), centers)
        return mixture_shares(mixture, points) if is_tensor(points) else mixture.shares(points)

    def warn_of_zeros(self, points: Array) -> None:
        """Warn of samples without a code, whose group is arbitrary."""
        if n_zeros := count_zeros(points):
            warn_of_zeros(n_zeros)

    def reassign(self, points: Array, shares: Array, graph: Any) -> tuple[Array, Array]:
        """Assign samples to the group of the largest share, with those of their neighbours."""
        transition = transition_of(graph) if not is_tensor(shares) else tensor_transition(graph, shares.dtype)
        labels = host(walk(shares, transition).argmax(axis=1)).astype(np.int32)
        return self._numbered(labels, self._centers(points, labels, shares.shape[1]))

    def _numbered(self, labels: Array, centers: Array) -> tuple[Array, Array]:
        order = group_order(labels, self.views.sample_ids, len(centers))
        order = order[np.argsort(self._part_of_groups(labels, len(centers))[order], kind="stable")]
        return renumbered(labels, order), centers[order]

    def _placed(self, rows: Array) -> Array:
        """Return rows on the device that computes."""
        return like(rows, next(self.views.in_parts())[:0])  # type: ignore[no-any-return]

    def confidence(self, points: Array, labels: Array, centers: Array, graph: Any | None) -> Array:
        """Return the confidence of every sample."""
        directions = unit_rows(self._placed(points))
        possible = None
        if self.parts.any():
            possible = like(self._part_of_groups(labels, len(centers)) == self.parts[:, None], directions)
        groups = like(labels.astype(np.int64), directions)
        return confidence(directions, like(centers, directions), groups, graph, possible)

    def _part_of_groups(self, labels: Array, n_groups: int) -> Array:
        """Return the part of every group; the last for an empty one."""
        found = np.full(n_groups, self.parts.max())
        found[labels] = self.parts
        return found

    def finish(self, model: Any, graphs: dict[str, Any], rows: SampleResults) -> None:
        """Set the attributes of the model that have a row for each sample, and its training data."""
        for name, found in graphs.items():
            setattr(model, name, list(map(host_graph, found)) if isinstance(found, list) else host_graph(found))
        model.part_, model.corrections_ = self.parts, self.corrections
        model.codes_, model.embedding_, model.labels_, model.confidence_ = rows
        model.views_, model.sample_ids_ = self.training.on_host(), self.training.sample_ids
        model.n_features_in_ = sum(self.training.n_features)


def _on_directions(rows: Any) -> Any:
    """Return large dense rows of many features on their leading directions, others as they are."""
    if sparse.issparse(rows) or rows.shape[1] <= _N_DIRECTIONS or is_tensor(rows[:0]):
        return rows
    if rows.shape[0] * rows.shape[1] * rows[:0].dtype.itemsize < LARGE:
        return rows
    drawn = rows[:: max(1, rows.shape[0] // _N_FITTED)]
    directions = leading_directions(drawn, _N_DIRECTIONS).astype(drawn.dtype)
    narrow = np.empty((rows.shape[0], _N_DIRECTIONS), dtype=drawn.dtype)
    lengths = np.empty(rows.shape[0], dtype=drawn.dtype)
    for block in row_blocks(rows, FEW_ROWS):
        own = rows[block]  # scaled once
        narrow[block], lengths[block] = own @ directions, row_lengths(own)
    return NarrowRows(narrow, directions, lengths)


def _recorded_kmeans(
    points: Array, n_clusters: int, n_init: int, random_state: np.random.RandomState
) -> tuple[Array, Array]:
    """Run k-means, or read its result from the checkpoint of the fit."""
    return checkpointed("k-means", lambda: kmeans_rows(points, n_clusters, n_init, random_state), random_state)
