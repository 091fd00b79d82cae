"""The steps of a fit for views on disk, within a memory budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from ...compute.engine import trim_memory
from ...factorization import problem as in_memory
from ...factorization.problem import Problem, SampleWeights, join_views
from ...graph.bridges import union_graph
from ...graph.knn import comparable_rows, symmetric_graph
from ...graph.neighbors import Search
from ...kinds import Preparation, fit_kind_blocks
from ...persist.checkpoints import checkpointed_search
from ...progress import phase
from ...scaling import Scaling, check_variation, fit_blocks, row_lengths, rows_in_blocks, scale_per_view
from ...utils.types import Array
from ...views import Views, training_views, warn_of_values
from ...views.cells import draw_from
from ..memory import MemoryBackend
from ..support import unsupported
from .budget import MemoryPlan, fit_size, format_bytes, plan_memory, read_budget
from .files import FileRows, Scratch, ScratchMatrix
from .joint import joint_graph_on_disk
from .neighbors import nearest_rows
from .views import all_mapped, read_mapped


@contextmanager
def open_backend(model: Any, data: Any, mask: Any) -> Iterator[MemoryBackend]:
    """Read training data for a fit within the model's ``memory_budget``: into memory, or left on disk.

    Raises
    ------
    ParameterError
        If the fit needs more memory.
    """
    budget = read_budget(model.memory_budget)
    assert budget is not None
    rules = mask, model.partial_rows, model._least_samples()
    with phase("reading"):
        is_mapped = all_mapped(data)
        views = read_mapped(data, *rules) if is_mapped else training_views(data, *rules, model.kind)
    plan = plan_memory(fit_size(model, views))
    if plan.in_memory <= budget:
        if is_mapped:
            with phase("reading"):
                views = training_views(data, *rules, model.kind)
        yield MemoryBackend(views, is_last=True)
        return
    sizes = {"needed": format_bytes(plan.in_memory), "budget": format_bytes(budget)}
    if not is_mapped:
        raise unsupported("too large for memory", **sizes, least=format_bytes(plan.least))
    plan.check(budget)
    with phase("reading"):
        warn_of_values(views, model.kind)
        trim_memory()
    with Scratch() as scratch:
        yield DiskBackend(views, plan, budget, scratch)


class PreparedRows(FileRows):
    """The rows of a view in a file, transformed by its kind when they are read."""

    def __init__(self, rows: FileRows, rule: Preparation) -> None:
        self._rows, self._rule = rows, rule
        self.shape, self.dtype = (len(rows), rule.n_out), rows.dtype

    def _read(self, begin: int, stop: int) -> Array:
        return np.asarray(self._rule.apply(self._rows[begin:stop]))

    def _select(self, rows: Array) -> Array:
        return np.asarray(self._rule.apply(self._rows[rows]))


class DiskBackend(MemoryBackend):
    """The steps of a fit to views on disk, within a memory budget: features are in scratch files, all else in memory.

    Parameters
    ----------
    views : Views
        The samples; their matrices are read from the user's files.
    plan : MemoryPlan
        The memory that the fit needs.
    budget : int
        The memory that it may use, in bytes.
    scratch : Scratch
        Files for matrices that do not fit into memory.
    """

    def __init__(self, views: Views, plan: MemoryPlan, budget: int, scratch: Scratch) -> None:
        super().__init__(views, is_last=True)
        self.plan, self.budget, self.scratch = plan, budget, scratch

    def prepare(self, kinds: Sequence[str | None], n_top: Sequence[int | None]) -> list[Preparation]:
        """Transform the views by their kinds whenever rows are read; return the rules."""
        n_bytes, matrices, rules = self._block_bytes(), [], []
        for name, matrix, kind, n_kept in zip(self.views.names, self.views.matrices, kinds, n_top, strict=True):
            rows = rows_in_blocks(name, matrix, lambda held: held.blocks(n_bytes))
            rules.append(fit_kind_blocks(rows, kind, n_kept))
            matrices.append(matrix if rules[-1].is_identity else PreparedRows(matrix, rules[-1]))
        self.views = self.views.with_matrices(matrices)
        self.plan = plan_memory(replace(self.plan.size, n_features=self.views.n_features))
        self.plan.check(self.budget)
        return rules

    def draw(self, n_samples: int, seed: int) -> Views:
        """Return some of the samples, read into memory, as many as the budget allows."""
        n_wanted = min(n_samples, self.plan.n_affordable(self.budget))
        return self.views[draw_from(self.views.mask, n_wanted, seed)]

    def scale(self, scale: str | Sequence[str | None] | None) -> list[Scaling]:
        """Scale the views, and write them to scratch files; return the scalings."""
        with phase("scaling"):
            widths = self.plan.tile_widths(self.budget)
            self.scaled, self.scalings = scale_alike(self.views, scale, widths, self._block_bytes(), self.scratch)
        self.dtype = self.scaled[0].dtype
        return self.scalings

    def _build_graph(self, matrix: ScratchMatrix, n_neighbors: int, search: Search | None = None) -> sparse.csr_array:
        """Build the k-NN graph of a view; see :func:`gapview.graph.knn_graph`."""
        blocks = matrix.blocks(self._block_bytes())
        lengths = np.concatenate([row_lengths(matrix[block]) for block in blocks])
        # A column of lengths has the same lengths as the rows; infinite ones would give NaN
        rows = comparable_rows(np.minimum(lengths, np.finfo(matrix.dtype).max)[:, None])
        count = min(n_neighbors, len(rows) - 1)
        if count < 1:
            return sparse.csr_array((len(matrix), len(matrix)), dtype=matrix.dtype)
        n_bytes = self.plan.spare("neighbours", self.budget)
        found = nearest_rows(matrix, rows, count, search or Search(), n_bytes, self.scratch)
        if len(rows) < len(matrix):
            found = rows.astype(found.dtype)[found]
        return symmetric_graph(rows, found, len(matrix), matrix.dtype)

    def _unite(self, *arguments: Any) -> Any:
        """Build the union graph from graphs that are overwritten, which needs less memory."""
        return union_graph(*arguments, build=self._build_graph, overwrite=True)

    def joint_graph(self, n_neighbors: int, view_weights: Sequence[float], search: Search | None) -> tuple[float, Any]:
        """Impute missing rows; return the share of variance explained, and the joint graph over all samples."""
        n_bytes = self.plan.spare("bridge", self.budget)
        arguments = self.scaled, self.views, n_neighbors, view_weights, search or Search(), n_bytes, self.scratch
        return checkpointed_search("joint graph", lambda: joint_graph_on_disk(*arguments), search)

    def _build_problem(self, graphs: Sequence[Any], targets: Sequence[Array]) -> Problem:
        return build_problem(self.scaled, graphs, targets, self.views.n_samples, self.scratch)

    def _block_bytes(self) -> int:
        """Return the size of a block of rows that is processed in double precision, with copies."""
        return min(2**22, max(2**16, self.plan.spare("reading", self.budget) // 8))


def scale_alike(
    views: Views, scale: str | Sequence[str | None] | None, widths: Sequence[int], n_bytes: int, scratch: Scratch
) -> tuple[list[ScratchMatrix], list[Scaling]]:
    """Scale every view, and write it to a scratch file in tiles, all in the most precise type among them.

    ``widths`` are the columns of a tile per view, ``n_bytes`` is the size of a block of rows.
    """
    dtype = max((matrix.dtype for matrix in views.matrices), key=lambda kind: kind.itemsize)
    scaled, scalings = [], []
    scales = scale_per_view(scale, views.n_views)
    for name, matrix, way, width in zip(views.names, views.matrices, scales, widths, strict=True):
        scaling = fit_blocks(rows_in_blocks(name, matrix, lambda rows: rows.blocks(n_bytes)), way)
        tiles = scratch.matrix(matrix.shape, dtype, width)
        check_variation(name, _write_scaled(scaling, matrix, tiles, n_bytes), way)
        scaled.append(tiles)
        scalings.append(scaling)
    return scaled, scalings


def _write_scaled(scaling: Scaling, matrix: FileRows, tiles: ScratchMatrix, n_bytes: int) -> Array:
    """Write the scaled rows to the tiles; return the smallest and the largest value of every feature."""
    extremes: list[Array] = []
    for block in matrix.blocks(n_bytes):
        rows = scaling.apply(matrix[block])
        tiles.write_rows(block.start, rows)
        extremes = [
            np.min([*extremes[:1], rows.min(axis=0)], axis=0),
            np.max([*extremes[1:], rows.max(axis=0)], axis=0),
        ]
    return np.stack(extremes)


def build_problem(
    features: Sequence[ScratchMatrix],
    graphs: Sequence[SampleWeights],
    targets: Sequence[Array],
    n_samples: int,
    scratch: Scratch,
) -> Problem:
    """Build the problem as :func:`gapview.factorization.problem.build_problem` does, some columns of H at a time.

    Columns of H = AᵀX depend on the same columns of X alone, so that every tile of a view gives a problem. All of them
    have the same degrees, and the constant term of the view is the sum of theirs.
    """
    views = []
    for matrix, graph, target in zip(features, graphs, targets, strict=True):
        smoothed, constant = None, 0.0
        for tile in matrix.tiles:
            part = in_memory.build_problem([matrix.read_tile(tile)], [graph], [target], n_samples)
            if smoothed is None:
                smoothed = scratch.matrix((len(part.rows), matrix.shape[1]), matrix.dtype, matrix.width)
            smoothed.write_tile(tile, part.terms[0].smoothed)  # type: ignore[arg-type]
            constant += part.constant
            part = part.without_data()  # frees the columns before the next ones are computed
        assert smoothed is not None
        term = replace(part.terms[0], n_features=matrix.shape[1], smoothed=scratch.row_by_row(smoothed))  # type: ignore[arg-type]
        views.append(replace(part, terms=(term,), constant=constant))
    return join_views(views)
