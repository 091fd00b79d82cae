"""Nearest neighbours among tensors of PyTorch, on their device: exact, or in the cells nearest to every query."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ...errors import InputError
from . import search as _search
from .distances import conditioned, scaled_back
from .exact import TIE, fewest_probes, sampled_rows
from .search import Search, SearchReport, number_of_cells

_N_VALUES = 2**22  # values held at a time on a processor
_N_VALUES_GPU = 2**28
_N_SPARE = 8  # candidates beyond the neighbours, since the products that rank them round more than differences
_N_PER_CELL = 64  # points per cell on which the centres are learnt
_N_ITERATIONS = 10
_N_VISITS = 2**25  # pairs of queries and cells listed at a time


def nearest_tensors(points: Any, n_neighbors: int, queries: Any, search: Search) -> tuple[Any, Any, SearchReport]:
    """Return distances, indices and report; see :func:`gapview.graph.neighbors.nearest`."""
    _check(points, queries)
    n_queries = len(points) if queries is None else len(queries)
    report = SearchReport("exact", "torch", len(points), n_queries, n_neighbors)
    if n_queries == 0:
        empty = points.new_empty((0, n_neighbors))
        return empty, empty.to(torch.int64), report
    most_pairs = _search.EXACT_PAIRS_GPU if points.is_cuda else _search.EXACT_PAIRS
    with torch.inference_mode(), _full_precision():
        points, queries, exponent = conditioned(points, queries)
        found = None
        if not search.is_exact(len(points), n_queries, most_pairs):
            found = _approximate(points, n_neighbors, queries, search)
        if found is None:
            rows = torch.arange(n_queries, device=points.device)
            found = *_exact(points, n_neighbors, queries, rows), report
        distances: Any = scaled_back(found[0], exponent)
    return distances.clone(), found[1].clone(), found[2]  # clones made here can be used with gradients


def _check(points: Any, queries: Any) -> None:
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


def _exact(points: Any, n_neighbors: int, queries: Any, rows: Any) -> tuple[Any, Any]:
    """Return distances and indices of the neighbours of some queries, from all distances, block by block."""
    asked = points if queries is None else queries
    squares = points.square().sum(dim=1)
    count = min(n_neighbors + (queries is None) + _N_SPARE, len(points))
    distances = points.new_empty((len(rows), n_neighbors))
    indices = torch.empty((len(rows), n_neighbors), dtype=torch.int64, device=points.device)
    step = _block_rows(points, len(points))
    for begin in range(0, len(rows), step):
        block = slice(begin, begin + step)
        drawn = asked[rows[block]]
        # |p|² − 2 p·q orders the points as |p − q|² does
        listed = torch.addmm(squares, drawn, points.T, alpha=-2).topk(count, largest=False, sorted=False).indices
        own = rows[block] if queries is None else None
        distances[block], indices[block] = _nearest_candidates(points, drawn, listed, n_neighbors, own)
    return distances, indices


def _approximate(points: Any, n_neighbors: int, queries: Any, search: Search) -> tuple[Any, Any, SearchReport] | None:
    """Search the cells that hold enough of the true neighbours of a sample; return None if all distances cost less."""
    asked = points if queries is None else queries
    sample = torch.as_tensor(sampled_rows(len(asked), search.seed), device=points.device)
    true_distances, true = _exact(points, n_neighbors, queries, sample)
    cells = _divide(points, search.seed)
    n_probes = probes_needed(cells, asked[sample], true, search.recall)
    if n_probes is None:
        return None
    count = n_neighbors + (queries is None)
    candidates = _search_cells(cells, points, asked, n_probes, count)
    own = torch.arange(len(asked), device=asked.device) if queries is None else None
    distances, indices = _nearest_candidates(points, asked, candidates, n_neighbors, own)
    short = torch.nonzero((indices < 0).any(dim=1)).ravel()
    if len(short):  # the cells near these queries hold too few points
        distances[short], indices[short] = _exact(points, n_neighbors, queries, short)
    recall = float((distances[sample] <= true_distances[:, -1:] * (1 + TIE)).double().mean())
    if recall < search.recall:  # rounding decides which cells are near
        return None
    size = len(points), len(asked), n_neighbors
    return distances, indices, SearchReport("approximate", "torch", *size, recall, cells.n_cells, n_probes, count)


def _block_rows(tensor: Any, width: int) -> int:
    """Return how many rows of this width to process at a time on the device of the tensor."""
    return max(1, (_N_VALUES_GPU if tensor.is_cuda else _N_VALUES) // max(1, width))


def _nearest_candidates(points: Any, queries: Any, candidates: Any, count: int, own: Any) -> tuple[Any, Any]:
    """Return the nearest candidates of every query in order, but not the query itself; −1 is no candidate."""
    distances = points.new_empty(candidates.shape)
    step = _block_rows(points, candidates.shape[1] * points.shape[1])
    for begin in range(0, len(candidates), step):
        block = slice(begin, begin + step)
        gaps = points[candidates[block].clamp(min=0)] - queries[block][:, None]
        distances[block] = torch.linalg.vector_norm(gaps, dim=2)
    if own is not None:
        candidates = candidates.masked_fill(candidates == own[:, None], -1)
    distances, order = distances.masked_fill_(candidates < 0, torch.inf).sort(dim=1, stable=True)
    return distances[:, :count], candidates.gather(1, order)[:, :count]


@dataclass(frozen=True)
class TensorCells:
    """The assignment of points to the cells around some centres."""

    centers: Any
    cell: Any  # of every point
    order: Any  # the points, cell by cell
    starts: list[int]  # where in the order each cell begins, and the last one ends

    @property
    def n_cells(self) -> int:
        """Number of cells, empty ones included."""
        return len(self.centers)


def _divide(points: Any, seed: int) -> TensorCells:
    """Assign points to cells around centres learnt by k-means on a sample."""
    n_cells = number_of_cells(len(points))
    chosen = np.random.RandomState(seed).permutation(len(points))[: n_cells * _N_PER_CELL]
    drawn = points[torch.as_tensor(chosen, device=points.device)]
    centers = drawn[:n_cells].clone()
    for _ in range(_N_ITERATIONS):
        centers = _means(drawn, _nearest_cells(drawn, centers, 1).ravel(), centers)
    cell = _nearest_cells(points, centers, 1).ravel()
    return TensorCells(centers, cell, cell.argsort(stable=True), _starts(cell, n_cells))


def _means(rows: Any, cell: Any, centers: Any) -> Any:
    """Return the mean of the rows of every cell; the old centre for a cell without rows."""
    # Matrix products with 0 and 1, since sums by index are not reproducible on a GPU
    sums, numbers = torch.zeros_like(centers), torch.arange(len(centers), device=rows.device)
    counts = torch.bincount(cell, minlength=len(centers))[:, None]
    step = _block_rows(rows, len(centers))
    for begin in range(0, len(rows), step):
        belongs = (numbers[:, None] == cell[None, begin : begin + step]).to(rows.dtype)
        sums += belongs @ rows[begin : begin + step]
    return torch.where(counts > 0, sums / counts.clamp(min=1), centers)


def _nearest_cells(rows: Any, centers: Any, count: int) -> Any:
    """Return the cells whose centres are nearest to every row, nearest first."""
    squares = centers.square().sum(dim=1)
    found = torch.empty((len(rows), count), dtype=torch.int64, device=rows.device)
    step = _block_rows(rows, len(centers))
    for begin in range(0, len(rows), step):
        table = torch.addmm(squares, rows[begin : begin + step], centers.T, alpha=-2)
        found[begin : begin + step] = table.topk(count, largest=False).indices
    return found


def _starts(cell: Any, n_cells: int) -> list[int]:
    return [0, *torch.bincount(cell, minlength=n_cells).cumsum(0).tolist()]


def probes_needed(cells: TensorCells, queries: Any, true: Any, recall: float) -> int | None:
    """Return how many cells to search for every query, given the true neighbours of some queries."""
    ordered = _nearest_cells(queries, cells.centers, cells.n_cells)
    return fewest_probes(ordered.cpu().numpy(), cells.cell[true].cpu().numpy(), recall)


def _search_cells(cells: TensorCells, points: Any, queries: Any, n_probes: int, count: int) -> Any:
    """Return the nearest points of every query in the cells nearest to it, in any order; −1 where there are no more."""
    found = torch.full((len(queries), count), -1, dtype=torch.int64, device=points.device)
    sorted_points = points[cells.order]
    step = max(1, _N_VISITS // n_probes)
    for begin in range(0, len(queries), step):
        block = slice(begin, begin + step)
        found[block] = _search_block(cells, sorted_points, queries[block], n_probes, count)
    return found


def _search_block(cells: TensorCells, sorted_points: Any, queries: Any, n_probes: int, count: int) -> Any:
    probed = _nearest_cells(queries, cells.centers, n_probes).ravel()
    visitors = probed.argsort(stable=True)  # pairs of a query and a cell, cell by cell
    starts = _starts(probed, cells.n_cells)
    visitors = visitors.div_(n_probes, rounding_mode="floor")
    squares = torch.full((len(queries), count), torch.inf, dtype=queries.dtype, device=queries.device)
    indices = torch.full((len(queries), count), -1, dtype=torch.int64, device=queries.device)
    for cell, center in enumerate(cells.centers):
        inside = slice(cells.starts[cell], cells.starts[cell + 1])
        if inside.start == inside.stop:
            continue
        # Relative to its centre a cell is small, so that products round little
        members, numbers = sorted_points[inside] - center, cells.order[inside]
        step = _block_rows(queries, len(members))
        for begin in range(starts[cell], starts[cell + 1], step):
            rows = visitors[begin : min(begin + step, starts[cell + 1])]
            _update_nearest(queries[rows] - center, members, numbers, rows, squares, indices)
    return indices


def _update_nearest(queries: Any, members: Any, numbers: Any, rows: Any, squares: Any, indices: Any) -> None:
    """Replace the nearest points found so far by members of a cell that are nearer, in place."""
    table = torch.addmm(members.square().sum(dim=1), queries, members.T, alpha=-2)
    near, where = table.topk(min(squares.shape[1], len(members)), largest=False, sorted=False)
    near += queries.square().sum(dim=1, keepdim=True)
    both = torch.cat([squares[rows], near], dim=1)
    numbered = torch.cat([indices[rows], numbers[where]], dim=1)
    squares[rows], best = both.topk(squares.shape[1], largest=False, sorted=False)
    indices[rows] = numbered.gather(1, best)
