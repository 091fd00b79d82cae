"""The steps of a fit on a Dask cluster.

Results are Dask arrays, and a reference model of ordinary arrays. It has the bases, scalings and centres of the whole
fit, and a few thousand of the training samples, in which neighbours of new samples are searched. It has all methods of
a model fitted in memory, and can be saved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import attrgetter, getitem, itemgetter
from typing import Any

import numpy as np
from sklearn.base import clone

from ...factorization.loop import Solution, codes_of_all, codes_of_present
from ...factorization.problem import Problem
from ...graph.knn import check_edges, knn_graph, resolve_n_neighbors, user_graphs
from ...graph.neighbors import Search
from ...kinds import Preparation
from ...persist.checkpoints import recording
from ...persist.checkpoints.journal import restored_on_error
from ...progress import tell
from ...refinement import Discriminants
from ...scaling import Scaling
from ...utils.messages import random_generator
from ...utils.types import Array
from ...views import Views, demand_enough, warn_of_values
from ...views.linking import parts_of, sample_parts, warn_of_parts
from ..base import SampleResults
from ..memory import MemoryBackend
from ..support import output_kind, unsupported
from .bridges import BlockedGraph, both_blocks, bridged_problems, union_blocks
from .checkpoint import ClusterCheckpoint, identity_of_blocks
from .clusters import (
    balance_blocks,
    cluster_blocks,
    confidence_blocks,
    mixture_blocks,
    number_groups,
    reassign_blocks,
    share_blocks,
    warn_of_zero_blocks,
)
from .graph import n_edges, split_graph, view_problems
from .joint import joint_graph_blocks
from .neighbors import knn_blocks
from .problem import BlockedProblem, given_start, random_start
from .sweep import BlockedSweep
from .tasks import Tasks, current_tasks, split_by_block
from .views import BlockedViews, collect_samples, draw_rows, drop_features, prepare_views, read_blocks, scale_views

N_REFERENCE = 5000
N_DESCRIBED = 2000


@contextmanager
def open_backend(model: Any, data: Any, mask: Any, checkpoint: Any) -> Iterator[DaskBackend]:
    """Read and check Dask collections; see :func:`gapview.backends.opening.open_backend`."""
    _check_supported(model)
    tasks = current_tasks()
    tell("Reading views")
    views = read_blocks(tasks, data, mask, model.partial_rows)
    constant = ((low == high).all() for low, high in zip(views.low, views.high, strict=True))
    demand_enough(views, constant, model._least_samples())
    record = None if checkpoint is None else ClusterCheckpoint(checkpoint, identity_of_blocks(tasks, model, views))
    # The settings are chosen on the client, where no checkpoint records them
    with recording(None, model, views.template), restored_on_error(None if record is None else model.random_state):
        patterns, counts = _patterns(tasks, views)
        warn_of_parts(views.names, patterns, counts)
        backend = DaskBackend(tasks, views, parts_of(patterns, counts), record)
        warn_of_values(backend.draw(N_DESCRIBED, 0), model.kind)
        yield backend


def _check_supported(model: Any) -> None:
    for name in ("device", "memory_budget"):
        if getattr(model, name) is not None:
            raise unsupported("parameter on a cluster", name=name)
    if output_kind(model) != "default":
        raise unsupported("frames from a cluster")
    if model.batch_correction != "none":
        raise unsupported("correction on a cluster", way=model.batch_correction)
    if getattr(model, "assign", "kmeans") == "leiden":
        raise unsupported("leiden on a cluster")


class DaskBackend:
    """The steps of a fit to blocks of samples on a cluster; see :class:`gapview.backends.base.Backend`.

    Parameters
    ----------
    tasks : Tasks
        Runs the tasks.
    views : BlockedViews
        The samples; they are released when they are scaled.
    view_parts : int array of shape (n_views,)
        Part of every view; see :func:`gapview.views.linking.parts_of`.
    checkpoint : ClusterCheckpoint, optional
        Where the state of the loop is stored.
    """

    random_start = staticmethod(random_start)

    def __init__(
        self, tasks: Tasks, views: BlockedViews, view_parts: Array, checkpoint: ClusterCheckpoint | None = None
    ) -> None:
        self.tasks, self.views, self.view_parts, self.checkpoint = tasks, views, view_parts, checkpoint
        self.given = views

    def generator(self, random_state: Any) -> np.random.RandomState:
        """Return the generator of the fit."""
        if self.checkpoint is not None and random_state is None:
            drawn = int(np.random.RandomState().randint(2**31 - 1))
            return np.random.RandomState(self.checkpoint.extra.setdefault("seed", drawn))
        return random_generator(random_state)

    def prepare(self, kinds: Sequence[str | None], n_top: Sequence[int | None]) -> list[Preparation]:
        """Transform the views by their kinds; return the rules."""
        self.views, rules = prepare_views(self.tasks, self.given, kinds, n_top)
        return rules

    def draw(self, n_samples: int, seed: int) -> Views:
        """Return some of the samples to the client."""
        return collect_samples(self.tasks, self.views, draw_rows(self.tasks, self.views, n_samples, seed))

    def scale(self, scale: str | Sequence[str | None] | None) -> list[Scaling]:
        """Scale the views, keep what the results need of the unscaled ones, and release these."""
        tasks, views = self.tasks, self.views
        self.reference_rows = draw_rows(tasks, views, N_REFERENCE, 0)
        self.reference = collect_samples(tasks, self.given, self.reference_rows)
        self.ids = tasks.map("ids", attrgetter("sample_ids"), views.blocks)
        self.parts = tasks.map("ids", _parts, views.blocks, view_parts=self.view_parts)
        self.scaled, scalings = scale_views(tasks, views, scale)
        tasks.wait([*self.ids, *self.parts, *self.scaled.blocks])
        views.blocks.clear()
        self.given.blocks.clear()
        return scalings

    def neighbor_graphs(self, n_neighbors: Sequence[int], search: Search) -> list[list[Any]]:
        """Return for every view a handle of the k-NN graph of each block."""
        return self._with_edges(knn_blocks(self.tasks, self.scaled, n_neighbors, search))

    def given_graphs(self, graph: Any) -> list[list[Any]]:
        """Check the graphs of a user, and send them to the blocks."""
        tasks, scaled = self.tasks, self.scaled
        mask = np.concatenate(tasks.collect("describe", attrgetter("mask"), scaled.blocks))
        given = user_graphs(graph, scaled, mask, scaled.dtype)
        cut = [split_graph(own, np.flatnonzero(mask[:, k]), scaled.starts) for k, own in enumerate(given)]
        return self._with_edges([[tasks.broadcast("given-graph", block) for block in blocks] for blocks in cut])

    def _with_edges(self, graphs: list[list[Any]]) -> list[list[Any]]:
        counts = [sum(self.tasks.collect("describe", n_edges, blocks)) for blocks in graphs]
        check_edges(counts, self.views.names)
        return graphs

    def union_graph(
        self, n_neighbors: Sequence[int], view_weights: Sequence[float], search: Search | None
    ) -> BlockedGraph:
        """Return the union graph over all samples."""
        graphs = knn_blocks(self.tasks, self.scaled, n_neighbors, search or Search())
        return union_blocks(self.tasks, graphs, view_weights, self.scaled.starts)

    def joint_graph(
        self, n_neighbors: int, view_weights: Sequence[float], search: Search | None
    ) -> tuple[float, BlockedGraph]:
        """Impute missing rows; return the share of variance explained, and the joint graph over all samples."""
        return joint_graph_blocks(self.tasks, self.scaled, n_neighbors, view_weights, search or Search())

    def both_graphs(self, union: BlockedGraph, joint: BlockedGraph) -> BlockedGraph:
        """Return the normalised sum of both graphs."""
        return both_blocks(self.tasks, [union, joint], self.scaled.starts)

    def view_problem(self, graphs: Sequence[list[Any]]) -> BlockedProblem:
        """Smooth every view along its graph."""
        tell("Smoothing views")
        problems = view_problems(self.tasks, self.scaled, list(graphs))
        self.tasks.wait(problems)
        if not sum(self.tasks.collect("describe", _n_unreached, self.scaled.blocks, problems)):
            drop_features(self.tasks, self.scaled)
        for blocks in graphs:
            blocks.clear()  # so that the workers free them
        return self._problem(problems)

    def bridged_problem(self, graph: BlockedGraph, n_steps: int, view_weights: Sequence[float]) -> BlockedProblem:
        """Smooth every view by up to so many steps along a graph over all samples."""
        tell("Smoothing views")
        problems = bridged_problems(self.tasks, self.scaled, graph, n_steps, view_weights)
        self.tasks.wait(problems)
        return self._problem(problems)

    def _problem(self, problems: list[Any]) -> BlockedProblem:
        return BlockedProblem(self.tasks, problems, self.views.n_features, self.tasks.groups(problems))

    def given_start(self, problem: BlockedProblem, init: Any, n_components: int) -> list[Any]:
        """Check the starting codes of a user, and return them."""
        return given_start(problem, init, self.scaled, n_components)

    @contextmanager
    def sweep(self, problem: BlockedProblem, starts: list[list[Any]]) -> Iterator[BlockedSweep]:
        """Open the passes over the data."""
        yield BlockedSweep(problem, starts, self.checkpoint)

    def codes(self, problem: BlockedProblem, solution: Solution, *, of_all: bool) -> tuple[list[Any], list[Any]]:
        """Return for every block a handle of its codes, one array for each view, and of its consensus."""
        self.codes_of_all = of_all
        if of_all:
            return self.tasks.map("codes", codes_of_all, problem.blocks, solution.codes), solution.consensus
        bases = [solution.bases] * len(problem.blocks)
        both = self.tasks.map("codes", _codes_of_present, solution.codes, problem.blocks, self.scaled.blocks, bases)
        return [self.tasks.map("codes", itemgetter(i), both) for i in range(2)]  # type: ignore[return-value]

    def balance(self, embedding: list[Any], keep: bool = False) -> tuple[Array, list[Any]]:
        """Return the matrix that balances codes, and handles of the balanced rows; with ``keep``, of rows as given."""
        return balance_blocks(self.tasks, embedding, self.scaled.dtype, keep)

    def cluster(
        self, points: list[Any], n_clusters: int, random_state: np.random.RandomState
    ) -> tuple[list[Any], Array]:
        """Run k-means on rows scaled to unit length; return handles of the labels, and the centres."""
        parts = self.parts if self.view_parts.any() else None
        found = cluster_blocks(self.tasks, points, self.scaled.starts, n_clusters, random_state, parts)
        return self._numbered(*found)

    def communities(self, points: Any, n_clusters: int, seed: int, graph: Any) -> tuple[Any, Array]:
        """Raise an error: no worker holds the whole graph."""
        raise unsupported("leiden on a cluster")

    def group_shares(self, discriminants: Discriminants) -> list[Any]:
        """Return handles of the share of each group in the samples."""
        shares = share_blocks(self.tasks, self.scaled.blocks, discriminants)
        self.tasks.wait(shares)  # before the features are dropped
        return shares

    def mixture_shares(self, points: list[Any], centers: Array) -> list[Any]:
        """Return handles of the share of each group in the samples by a mixture that starts from the centres."""
        return mixture_blocks(self.tasks, points, self.scaled.starts, centers)

    def warn_of_zeros(self, points: list[Any]) -> None:
        """Warn of samples without a code, whose group is arbitrary."""
        warn_of_zero_blocks(self.tasks, points)

    def reassign(self, points: list[Any], shares: list[Any], graph: BlockedGraph) -> tuple[list[Any], Array]:
        """Assign samples to the group of the largest share, with those of their neighbours."""
        labels, centers = reassign_blocks(self.tasks, points, shares, graph)
        return self._numbered(labels, centers.astype(self.scaled.dtype))

    def _numbered(self, labels: list[Any], centers: Array) -> tuple[list[Any], Array]:
        return number_groups(self.tasks, labels, self.ids, self.parts, centers)

    def confidence(self, points: list[Any], labels: list[Any], centers: Array, graph: BlockedGraph | None) -> list[Any]:
        """Return handles of the confidence of every sample."""
        parts = self.parts if self.view_parts.any() else None
        return confidence_blocks(self.tasks, points, labels, centers, graph, parts)

    def finish(self, model: Any, graphs: dict[str, Any], rows: SampleResults) -> None:
        """Set the attributes with a row for each sample as Dask arrays, and the reference model; graphs are not set."""
        tasks, views, (codes, *others) = self.tasks, self.scaled, rows
        places, common = split_by_block(self.reference_rows, views.starts), {"codes_of_all": self.codes_of_all}
        parts = tasks.collect("sample", _of_rows, views.blocks, places, codes, *others, **common)
        of_views, rest = ([np.concatenate(own) for own in zip(*half, strict=True)] for half in zip(*parts, strict=True))
        results = SampleResults(of_views, *rest)
        model.reference_ = _reference(model, MemoryBackend(self.reference, view_parts=self.view_parts), results)
        model.views_, model.n_features_in_ = self.reference, sum(self.given.n_features)
        model.part_ = _as_array(tasks, self.parts, views.sizes)
        names, of_blocks = ("sample_ids_", "embedding_", "labels_", "confidence_"), (self.ids, *others)
        for name, blocks in zip(names, of_blocks, strict=True):
            setattr(model, name, _as_array(tasks, blocks, views.sizes))
        model.codes_ = []
        for k in range(views.n_views):
            blocks = tasks.map("codes", getitem, codes, [k] * len(codes))
            sizes = views.sizes if self.codes_of_all else views.present[:, k].tolist()
            model.codes_.append(_as_array(tasks, blocks, sizes))


def _patterns(tasks: Tasks, views: BlockedViews) -> tuple[Array, Array]:
    """Return the distinct rows of the mask, and how often each occurs."""
    found = tasks.collect("describe", _distinct, views.blocks)
    patterns, counts = (np.concatenate(own) for own in zip(*found, strict=True))
    distinct, places = np.unique(patterns, axis=0, return_inverse=True)
    return distinct, np.bincount(places.ravel(), counts).astype(np.int64)


def _distinct(views: Views) -> tuple[Array, Array]:
    return np.unique(views.mask, axis=0, return_counts=True)


def _parts(views: Views, *, view_parts: Array) -> Array:
    return sample_parts(views.mask, view_parts)


def _n_unreached(views: Views, problem: Problem) -> int:
    return sum(views.n_present) - len(problem.rows)


def _codes_of_present(
    solution: Solution, problem: Problem, views: Views, bases: list[Array]
) -> tuple[list[Array], Array]:
    scaled_already = [Scaling(name, None, None, None) for name in views.names]
    return codes_of_present(replace(solution, bases=bases), problem, views, scaled_already)


def _of_rows(
    views: Views, rows: Array, codes: Sequence[Array], *others: Array, codes_of_all: bool
) -> tuple[list[Array], list[Array]]:
    chosen = np.zeros(views.n_samples, dtype=bool)
    chosen[rows] = True
    of_views = [own[chosen if codes_of_all else chosen[views.rows(k)]] for k, own in enumerate(codes)]
    return of_views, [values[rows] for values in others]


def _as_array(tasks: Tasks, blocks: list[Any], sizes: list[int]) -> Any:
    """Return one Dask array of blocks of rows, which stay on the workers."""
    import dask.array as da
    from dask import delayed

    if tasks.client is None:
        return da.concatenate([da.from_array(np.asarray(block), chunks=-1) for block in blocks])
    (_, *width), dtype = tasks.gather(tasks.submit("describe", attrgetter("shape", "dtype"), blocks[0]))
    parts = zip(blocks, sizes, strict=True)
    return da.concatenate([da.from_delayed(delayed(block), (size, *width), dtype=dtype) for block, size in parts])


def _reference(model: Any, backend: MemoryBackend, rows: SampleResults) -> Any:
    """Return an ordinary model of some samples; its graphs link these samples only."""
    given: dict[str, Any] = {"graph": None} if hasattr(model, "graph") else {}
    if not isinstance(getattr(model, "init", "data"), str):
        given["init"] = "data"
    reference = clone(model).set_params(**given)
    reference.__dict__.update({name: value for name, value in vars(model).items() if name.endswith("_")})
    sample = backend.training
    backend.scaled, graphs = reference.scaled(sample), {}
    if model.is_bridged:
        counts = [min(pair) for pair in zip(model.setting_.n_neighbors, (n - 1 for n in sample.n_present), strict=True)]
        graphs["graph_"] = _bridge(backend, model.setting_.bridge, counts, model.view_weights_.tolist())
    else:
        counts = resolve_n_neighbors("auto", sample, len(model.cluster_centers_))
        graphs["graphs_"] = [knn_graph(matrix, count) for matrix, count in zip(backend.scaled, counts, strict=True)]
    backend.finish(reference, graphs, rows)
    return reference


def _bridge(backend: MemoryBackend, name: str, n_neighbors: Sequence[int], view_weights: Sequence[float]) -> Any:
    """Return the graph of a bridge over the samples of a backend."""
    if name == "union":
        return backend.union_graph(n_neighbors, view_weights, None)
    _, joint = backend.joint_graph(max(n_neighbors), view_weights, None)
    if name == "joint":
        return joint
    return backend.both_graphs(backend.union_graph(n_neighbors, view_weights, None), joint)
