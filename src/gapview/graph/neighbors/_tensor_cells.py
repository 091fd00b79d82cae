"""Points of a tensor divided into cells; every query is compared with all points of the cells nearest to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ._tensor_pairs import block_rows
from .recall import cells_needed
from .search import number_of_cells

_N_PER_CELL = 64  # points on which the place of a cell is settled
_N_ITERATIONS = 10
_N_VISITS = 2**25  # pairs of queries and cells that are listed at a time


@dataclass(frozen=True)
class TensorCells:
    """Which points lie in which cell."""

    centers: Any
    cell: Any  # of every point
    order: Any  # the points, cell by cell
    starts: list[int]  # where in the order each cell begins, and the last one ends

    @property
    def n_cells(self) -> int:
        """How many cells there are, empty ones among them."""
        return len(self.centers)


def divide(points: Any, seed: int) -> TensorCells:
    """Divide points into cells around centres that k-means finds on a sample."""
    n_cells = number_of_cells(len(points))
    chosen = np.random.RandomState(seed).permutation(len(points))[: n_cells * _N_PER_CELL]
    seen = points[torch.as_tensor(chosen, device=points.device)]
    centers = seen[:n_cells].clone()
    for _ in range(_N_ITERATIONS):
        centers = _means(seen, _nearest_cells(seen, centers, 1).ravel(), centers)
    cell = _nearest_cells(points, centers, 1).ravel()
    return TensorCells(centers, cell, cell.argsort(stable=True), _starts(cell, n_cells))


def _means(seen: Any, cell: Any, centers: Any) -> Any:
    """Move every centre to the mean of its points; a centre without points stays."""
    # As products with 0 and 1, since adding up by index is not repeatable on a GPU
    sums, numbers = torch.zeros_like(centers), torch.arange(len(centers), device=seen.device)
    counts = torch.bincount(cell, minlength=len(centers))[:, None]
    step = block_rows(seen, len(centers))
    for begin in range(0, len(seen), step):
        belongs = (numbers[:, None] == cell[None, begin : begin + step]).to(seen.dtype)
        sums += belongs @ seen[begin : begin + step]
    return torch.where(counts > 0, sums / counts.clamp(min=1), centers)


def _nearest_cells(rows: Any, centers: Any, count: int) -> Any:
    """Return the cells whose centres are nearest to every row, nearest first."""
    squares = centers.square().sum(dim=1)
    found = torch.empty((len(rows), count), dtype=torch.int64, device=rows.device)
    step = block_rows(rows, len(centers))
    for begin in range(0, len(rows), step):
        table = torch.addmm(squares, rows[begin : begin + step], centers.T, alpha=-2)
        found[begin : begin + step] = table.topk(count, largest=False).indices
    return found


def _starts(cell: Any, n_cells: int) -> list[int]:
    counts = torch.bincount(cell, minlength=n_cells)
    return [0, *counts.cumsum(0).tolist()]


def probes_needed(cells: TensorCells, queries: Any, true: Any, recall: float) -> int | None:
    """Return how many cells to search so that enough true neighbours are in them; None if more than half."""
    ordered = _nearest_cells(queries, cells.centers, cells.n_cells)
    return cells_needed(ordered.cpu().numpy(), cells.cell[true].cpu().numpy(), recall)


def search_cells(cells: TensorCells, points: Any, asked: Any, n_probes: int, count: int) -> Any:
    """Return the nearest points of every query in the cells nearest to it, in any order; −1 where there are no more."""
    found = torch.full((len(asked), count), -1, dtype=torch.int64, device=points.device)
    sorted_points = points[cells.order]
    step = max(1, _N_VISITS // n_probes)
    for begin in range(0, len(asked), step):
        asking = asked[begin : begin + step]
        found[begin : begin + step] = _search_block(cells, sorted_points, asking, n_probes, count)
    return found


def _search_block(cells: TensorCells, sorted_points: Any, asking: Any, n_probes: int, count: int) -> Any:
    probed = _nearest_cells(asking, cells.centers, n_probes).ravel()
    visitors = probed.argsort(stable=True)
    starts = _starts(probed, cells.n_cells)
    visitors = visitors.div_(n_probes, rounding_mode="floor")
    squares = torch.full((len(asking), count), torch.inf, dtype=asking.dtype, device=asking.device)
    indices = torch.full((len(asking), count), -1, dtype=torch.int64, device=asking.device)
    for cell, center in enumerate(cells.centers):
        inside = slice(cells.starts[cell], cells.starts[cell + 1])
        if inside.start == inside.stop:
            continue
        # Around its centre a cell is small: products round little there
        members, numbers = sorted_points[inside] - center, cells.order[inside]
        step = block_rows(asking, len(members))
        for begin in range(starts[cell], starts[cell + 1], step):
            rows = visitors[begin : min(begin + step, starts[cell + 1])]
            _compare(asking[rows] - center, members, numbers, rows, squares, indices)
    return indices


def _compare(asking: Any, members: Any, numbers: Any, rows: Any, squares: Any, indices: Any) -> None:
    """Let the members of one cell compete with what its visitors have found so far."""
    table = torch.addmm(members.square().sum(dim=1), asking, members.T, alpha=-2)
    near, where = table.topk(min(squares.shape[1], len(members)), largest=False, sorted=False)
    near += asking.square().sum(dim=1, keepdim=True)
    both = torch.cat([squares[rows], near], dim=1)
    numbered = torch.cat([indices[rows], numbers[where]], dim=1)
    squares[rows], best = both.topk(squares.shape[1], largest=False, sorted=False)
    indices[rows] = numbered.gather(1, best)
