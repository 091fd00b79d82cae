"""Nearest neighbours among tensors of PyTorch, on their device: exact, or in the cells nearest to every query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from ...errors import InputError
from ...utils.types import Array
from . import cells
from . import search as _search
from .distances import WithoutLast, conditioned, nearest_listed, scaled_back, smallest
from .search import CellKernel, CellSetting, RecallSample, Search, run_search

_N_SPARE = 8  # candidates beyond the neighbours, since the products that rank them round more than differences
_N_PER_CELL = 64  # points per cell on which the centres are learnt
_N_VISITS = 2**25  # pairs of queries and cells listed at a time


def nearest_tensors(points: Any, n_neighbors: int, queries: Any, search: Search) -> tuple[Any, Any]:
    """Return distances and indices; see :func:`gapview.graph.neighbors.nearest`."""
    _check(points, queries)
    with torch.no_grad(), _full_precision():
        points, queries, exponent = _conditioned(points, queries)
        distances, indices = run_search(TensorKernel(points, n_neighbors, queries), search)
        return scaled_back(distances, exponent), indices


def _conditioned(points: Any, queries: Any) -> tuple[Any, Any, int]:
    """Return points and queries as :func:`conditioned` does; queries that are points without a copy if possible."""
    if not isinstance(queries, WithoutLast):
        return conditioned(points, queries)
    shrunk, _, exponent = conditioned(points, None)
    return (points, queries, exponent) if shrunk is points else conditioned(points, queries)


def _check(points: Any, queries: Any) -> None:
    if isinstance(queries, WithoutLast):
        queries = None  # they are points
    for name, tensor in (("points", points), ("queries", queries)):
        if tensor is not None and (tensor.ndim != 2 or tensor.dtype not in (torch.float32, torch.float64)):
            raise InputError(
                f"{name} must be a tensor of 2 dimensions in float32 or float64; got {tensor.ndim} dimension(s) of "
                f"{tensor.dtype}."
            )
    if queries is not None and (queries.dtype != points.dtype or queries.device != points.device):
        raise InputError(
            f"points and queries must have one type and lie on one device; got {points.dtype} on {points.device} and "
            f"{queries.dtype} on {queries.device}."
        )


@contextmanager
def _full_precision() -> Iterator[None]:
    """Keep a GPU from rounding float32 to 10 bits in products, even if the user allows it elsewhere."""
    products = torch.backends.cuda.matmul
    # torch 2.9 renamed the setting, and warns of the old name
    name, value = ("fp32_precision", "ieee") if hasattr(products, "fp32_precision") else ("allow_tf32", False)
    before = getattr(products, name)
    setattr(products, name, value)
    try:
        yield
    finally:
        setattr(products, name, before)


class TensorKernel(CellKernel):
    """Points and queries as tensors on one device."""

    engine = exact_engine = "torch"

    def __init__(self, points: Any, n_neighbors: int, queries: Any) -> None:
        self.points, self.queries, self.is_own = points, points if queries is None else queries, queries is None
        self.n_points, self.n_queries, self.n_neighbors = len(points), len(self.queries), n_neighbors

    @property
    def most_pairs(self) -> int:
        """Pairs of points and queries up to which search is exact by default."""
        return _search.EXACT_PAIRS_GPU if self.points.is_cuda else _search.EXACT_PAIRS

    def exact(self) -> tuple[Any, Any]:
        """Return distances and indices of the neighbours of all queries."""
        return self._exact(torch.arange(self.n_queries, device=self.points.device))

    def _exact(self, rows: Any) -> tuple[Any, Any]:
        count = min(self.n_neighbors + self.is_own + _N_SPARE, self.n_points)

        def find(part: slice) -> tuple[Any, Any]:
            _, near = smallest(cells.relative_squares(self.points, self.queries[rows[part]]), count)
            return self._nearest_of(rows[part], near)

        return self._found(len(rows), cells.rows_at_a_time(self.points, self.n_points), find)

    def _found(self, n_queries: int, step: int, find: Callable[[slice], tuple[Any, Any]]) -> tuple[Any, Any]:
        """Return what a function finds for queries, a part of them at a time."""
        shape = n_queries, self.n_neighbors
        distances = self.points.new_empty(shape)
        indices = torch.empty(shape, dtype=torch.int64, device=self.points.device)
        for begin in range(0, n_queries, step):
            part = slice(begin, min(begin + step, n_queries))
            distances[part], indices[part] = find(part)
        return distances, indices

    def _nearest_of(self, rows: Any, candidates: Any) -> tuple[Any, Any]:
        """Return the nearest candidates of some queries in order, by differences; −1 is no candidate."""
        distances = self.points.new_empty(candidates.shape)
        step = cells.rows_at_a_time(self.points, candidates.shape[1] * self.points.shape[1])
        for begin in range(0, len(rows), step):
            part = slice(begin, begin + step)
            gaps = self.points[candidates[part].clamp(min=0)] - self.queries[rows[part]][:, None]
            distances[part] = torch.linalg.vector_norm(gaps, dim=2)
        distances.masked_fill_(candidates < 0, torch.inf)
        return nearest_listed(distances, candidates, self.n_neighbors, rows if self.is_own else None)

    def divide(self, n_cells: int, seed: int) -> None:
        """Assign points to cells around centres learnt by k-means on a sample."""
        chosen = np.random.RandomState(seed).permutation(self.n_points)[: n_cells * _N_PER_CELL]
        drawn = self.points[torch.as_tensor(chosen, device=self.points.device)]
        self.centers, self.n_cells = drawn[:n_cells].clone(), n_cells
        for _ in range(cells.N_ITERATIONS):
            self.centers = _means(drawn, cells.nearest_centers(drawn, self.centers, 1)[:, 0], self.centers)
        self.cell = cells.nearest_centers(self.points, self.centers, 1)[:, 0]
        self.order, self.cells = cells.grouped(self.cell, n_cells)
        self.sorted_points = self.points[self.order]

    def true_neighbors(self, rows: Array) -> tuple[Array, Any]:
        """Return distances on the host, and indices."""
        distances, indices = self._exact(torch.as_tensor(rows, device=self.points.device))
        return distances.cpu().numpy(), indices

    def cell_ranks(self, sample: RecallSample) -> Array:
        """Return the ranks of the cells of the true neighbours."""
        queries = self.queries[torch.as_tensor(sample.rows, device=self.points.device)]
        ranks = cells.cell_ranks(queries, self.centers, self.cell[sample.neighbors])
        return ranks.cpu().numpy()  # type: ignore[no-any-return]

    def search(self, setting: CellSetting, rows: Array) -> tuple[tuple[Any, Any], Array]:
        """Return distances and indices of the neighbours of all queries, and the distances of some."""

        def find(part: slice) -> tuple[Any, Any]:
            queries = self.queries[part]  # no copy of points
            parts = self._visited(cells.nearest_centers(queries, self.centers, setting.n_probes))
            candidates = cells.nearest_in_parts(queries, self.n_neighbors + self.is_own, parts)[1]
            return self._nearest_of(torch.arange(part.start, part.stop, device=queries.device), candidates)

        distances, indices = self._found(self.n_queries, max(1, _N_VISITS // setting.n_probes), find)
        short = torch.nonzero((indices < 0).any(dim=1)).ravel()
        if len(short):  # the cells near these queries hold too few points
            distances[short], indices[short] = self._exact(short)
        return (distances, indices), distances[torch.as_tensor(rows, device=self.points.device)].cpu().numpy()

    def _visited(self, visited: Any) -> Iterator[cells.Part]:
        """Yield the points of every visited cell with some of the queries that visit it."""
        for cell, visitors in cells.visits(visited, self.n_cells):
            points, numbers = self.sorted_points[self.cells[cell]], self.order[self.cells[cell]]
            for some in visitors.split(cells.rows_at_a_time(points, len(points))):
                yield points, numbers, some


def _means(rows: Any, cell: Any, centers: Any) -> Any:
    """Return the mean of the rows of every cell; the old centre for a cell without rows."""
    # Matrix products with 0 and 1, since sums by index are not reproducible on a GPU
    sums, numbers = torch.zeros_like(centers), torch.arange(len(centers), device=rows.device)
    counts = torch.bincount(cell, minlength=len(centers))[:, None]
    step = cells.rows_at_a_time(rows, len(centers))
    for begin in range(0, len(rows), step):
        belongs = (numbers[:, None] == cell[None, begin : begin + step]).to(rows.dtype)
        sums += belongs @ rows[begin : begin + step]
    return torch.where(counts > 0, sums / counts.clamp(min=1), centers)
