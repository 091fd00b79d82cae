"""Nearest neighbours among tensors of PyTorch, on their device: exact, or in the cells nearest to every query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from array_api_compat import array_namespace

from ...compute.arrays import row_blocks
from ...errors import InputError
from ...scaling import times_power
from ...utils.types import Array
from . import cells
from . import search as _search
from .distances import FAR, WithoutLast, common_exponent, conditioned, nearest_listed, scaled_back, smallest
from .search import CellKernel, CellSetting, RecallSample, Search, run_search

_N_SPARE = 8  # candidates beyond the neighbours, since the products that rank them round more than differences
_N_PER_CELL = 64  # points per cell on which the centres are learnt
_N_FOUND, _N_FOUND_GPU = 2**24, 2**27  # points listed at a time, over all pairs of queries and cells


def nearest_tensors(points: Any, n_neighbors: int, queries: Any, search: Search) -> tuple[Any, Any]:
    """Return distances and indices; see :func:`gapview.graph.neighbors.nearest`."""
    _check(points, queries)
    with torch.no_grad(), _full_precision():
        points, queries, exponent = _conditioned(points, queries)
        distances, indices = run_search(TensorKernel(points, n_neighbors, queries), search)
        return scaled_back(distances, exponent), indices


def _conditioned(points: Any, queries: Any) -> tuple[Any, Any, int]:
    """Return points and queries as :func:`conditioned` does; queries that are points without a copy if possible."""
    if not isinstance(points, torch.Tensor):
        return _moved_rows(points)
    if not isinstance(queries, WithoutLast):
        return conditioned(points, queries)
    shrunk, _, exponent = conditioned(points, None)
    return (points, queries, exponent) if shrunk is points else conditioned(points, queries)


class _Rows:
    """Rows that are changed when they are read: others of some rows, or the same without their centre."""

    def __init__(self, points: Any, read: Callable[[Any], Any]) -> None:
        self._read, self.shape, self.dtype, self.device = read, points.shape, points.dtype, points.device

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, part: Any) -> Any:
        return self._read(part)

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return array_namespace(self[:0])


def _moved_rows(points: Any) -> tuple[Any, Any, int]:
    """Return rows that are read in blocks as :func:`conditioned` returns points."""
    exponent = common_exponent([torch.stack([_largest(points[block]) for block in row_blocks(points)])])
    sums: Any = 0.0
    squares: Any = 0.0
    for block in row_blocks(points):
        rows = times_power(points[block], -exponent).double()
        sums, squares = sums + rows.sum(dim=0), squares + rows.square().sum()
    center = sums / len(points)
    is_far = bool(center @ center > FAR * (squares / len(points) - center @ center))
    if not is_far and not exponent:
        return points, None, 0
    middle = (center if is_far else torch.zeros_like(center)).to(points.dtype)
    return _Rows(points, lambda part: times_power(points[part], -exponent) - middle), None, exponent


def _largest(rows: Any) -> Any:
    return torch.stack(rows.aminmax()).abs().max()


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
        self.device, self.dtype = points.device, points.dtype

    @property
    def most_pairs(self) -> int:
        """Pairs of points and queries up to which search is exact by default."""
        return _search.EXACT_PAIRS_GPU if self.device.type == "cuda" else _search.EXACT_PAIRS

    def exact(self) -> tuple[Any, Any]:
        """Return distances and indices of the neighbours of all queries."""
        return self._exact(torch.arange(self.n_queries, device=self.device))

    def _exact(self, rows: Any) -> tuple[Any, Any]:
        count = min(self.n_neighbors + self.is_own + _N_SPARE, self.n_points)

        def find(part: slice) -> tuple[Any, Any]:
            queries = self.queries[rows[part]]
            if isinstance(self.points, torch.Tensor):
                near = smallest(cells.relative_squares(self.points, queries), count)[1]
            else:
                near = cells.nearest_in_parts(queries, count, self._all_points())[1]
            return self._nearest_of(rows[part], near)

        return self._found(len(rows), self._rows_at_a_time(self.n_points), find)

    def _all_points(self) -> Iterator[cells.Part]:
        """Yield blocks of all points, to be compared with all queries."""
        for block in row_blocks(self.points):
            yield self.points[block], torch.arange(block.start, block.stop, device=self.device), slice(None)

    def _rows_at_a_time(self, width: int) -> int:
        return cells.rows_at_a_time(self.points[:1], width)

    def _found(self, n_queries: int, step: int, find: Callable[[slice], tuple[Any, Any]]) -> tuple[Any, Any]:
        """Return what a function finds for queries, a part of them at a time."""
        shape = n_queries, self.n_neighbors
        distances = torch.empty(shape, dtype=self.dtype, device=self.device)
        indices = torch.empty(shape, dtype=torch.int64, device=self.device)
        for begin in range(0, n_queries, step):
            part = slice(begin, min(begin + step, n_queries))
            distances[part], indices[part] = find(part)
        return distances, indices

    def _nearest_of(self, rows: Any, candidates: Any) -> tuple[Any, Any]:
        """Return the nearest candidates of some queries in order, by differences; −1 is no candidate."""
        distances = torch.empty(candidates.shape, dtype=self.dtype, device=self.device)
        step = self._rows_at_a_time(candidates.shape[1] * self.points.shape[1])
        for begin in range(0, len(rows), step):
            part = slice(begin, begin + step)
            near = self.points[candidates[part].clamp(min=0).ravel()].unflatten(0, (-1, candidates.shape[1]))
            gaps = near - self.queries[rows[part]][:, None]
            distances[part] = torch.linalg.vector_norm(gaps, dim=2)
        distances.masked_fill_(candidates < 0, torch.inf)
        return nearest_listed(distances, candidates, self.n_neighbors, rows if self.is_own else None)

    def divide(self, n_cells: int, seed: int) -> None:
        """Assign points to cells around centres learnt by k-means on a sample."""
        chosen = np.random.RandomState(seed).permutation(self.n_points)[: n_cells * _N_PER_CELL]
        drawn = self.points[torch.as_tensor(chosen, device=self.device)]
        self.centers, self.n_cells = drawn[:n_cells].clone(), n_cells
        for _ in range(cells.N_ITERATIONS):
            self.centers = _means(drawn, cells.nearest_centers(drawn, self.centers, 1)[:, 0], self.centers)
        self.cell = cells.nearest_centers(self.points, self.centers, 1)[:, 0]
        self.order, self.cells = cells.grouped(self.cell, n_cells)
        self.sorted: tuple[Any, Any] | None = None  # what _members returns, of all cells
        if isinstance(self.points, torch.Tensor):
            rows, of_rows, lengths = self.points[self.order], self.cell[self.order], []
            for block in row_blocks(rows):
                rows[block] -= self.centers[of_rows[block]]
                lengths.append(_squares(rows[block]))
            self.sorted = rows, torch.cat(lengths)

    def _members(self, cell: int) -> tuple[Any, Any]:
        """Return the points of a cell without its centre, so that products round little, and their squared lengths."""
        part = self.cells[cell]
        if self.sorted is not None:
            return self.sorted[0][part], self.sorted[1][part]
        rows = self.points[self.order[part]] - self.centers[cell]
        return rows, _squares(rows)

    def true_neighbors(self, rows: Array) -> tuple[Array, Any]:
        """Return distances on the host, and indices."""
        distances, indices = self._exact(torch.as_tensor(rows, device=self.device))
        return distances.cpu().numpy(), indices

    def cell_ranks(self, sample: RecallSample) -> Array:
        """Return the ranks of the cells of the true neighbours."""
        queries = self.queries[torch.as_tensor(sample.rows, device=self.device)]
        ranks = cells.cell_ranks(queries, self.centers, self.cell[sample.neighbors])
        return ranks.cpu().numpy()  # type: ignore[no-any-return]

    def search(self, setting: CellSetting, rows: Array) -> tuple[tuple[Any, Any], Array]:
        """Return distances and indices of the neighbours of all queries, and the distances of some."""
        count = self.n_neighbors + self.is_own

        def find(part: slice) -> tuple[Any, Any]:
            queries = self.queries[part]  # no copy of points
            visited = cells.nearest_centers(queries, self.centers, setting.n_probes)
            candidates = self._nearest_members(queries, visited, count)
            return self._nearest_of(torch.arange(part.start, part.stop, device=queries.device), candidates)

        n_found = _N_FOUND_GPU if self.device.type == "cuda" else _N_FOUND
        distances, indices = self._found(self.n_queries, max(1, n_found // (count * setting.n_probes)), find)
        short = torch.nonzero((indices < 0).any(dim=1)).ravel()
        if len(short):  # the cells near these queries hold too few points
            distances[short], indices[short] = self._exact(short)
        return (distances, indices), distances[torch.as_tensor(rows, device=self.device)].cpu().numpy()

    def _nearest_members(self, queries: Any, visited: Any, count: int) -> Any:
        """Return the points nearest to every query in the cells that it visits, in any order; −1 if there are too few.

        One cell after the other is compared with all queries that visit it, and gives a list to each of them. These
        lists are merged at the end, all at once: few and large steps keep a device busy.
        """
        order, parts = cells.grouped(visited.ravel(), self.n_cells)
        visitors, shape = order // visited.shape[1], (len(order), count)
        squares = torch.full(shape, torch.inf, dtype=self.dtype, device=self.device)
        places = torch.full(shape, -1, dtype=torch.int32 if self.n_points < 2**31 else torch.int64, device=self.device)
        for cell, part in enumerate(parts):
            members = self.cells[cell]
            n_found = min(count, members.stop - members.start)
            if part.start == part.stop or not n_found:
                continue
            points, lengths = self._members(cell)
            step = self._rows_at_a_time(len(points))
            for begin in range(part.start, part.stop, step):
                some = slice(begin, min(begin + step, part.stop))
                rows = queries[visitors[some]]
                rows -= self.centers[cell]
                near, place = smallest(lengths.addmm(rows, points.T, alpha=-2), n_found)
                squares[some, :n_found] = near.add_(_squares(rows)[:, None])
                places[some, :n_found] = place.add_(members.start)
        by_query = torch.empty_like(order)
        by_query[order] = torch.arange(len(order), device=self.device)
        nearest = smallest(squares[by_query].view(len(queries), -1), count)[1]
        found = places[by_query].view(len(queries), -1).gather(1, nearest).long()
        return torch.where(found < 0, -1, self.order[found.clamp(min=0)])


def _squares(rows: Any) -> Any:
    return torch.linalg.vector_norm(rows, dim=1).square()


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
