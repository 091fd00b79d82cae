"""Nearest neighbours among torch tensors, on the device where they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ...errors import InputError
from . import search as _search
from ._tensor_cells import divide, probes_needed, search_cells
from ._tensor_pairs import block_rows, nearest_listed, own_rows, pair_distances
from .centering import stretch, within_reach
from .recall import TIE, sampled_rows
from .search import Search, SearchReport

_N_SPARE = 8  # candidates beyond the neighbours, since the products by which they are found round more than differences


def nearest_tensors(points: Any, n_neighbors: int, queries: Any, search: Search) -> tuple[Any, Any, SearchReport]:
    """Find the nearest points, exactly up to a size, by cells beyond it; see :func:`nearest`."""
    _check(points, queries)
    n_queries = len(points) if queries is None else len(queries)
    size = len(points), n_queries, n_neighbors
    report = SearchReport("exact", "torch", *size)
    if n_queries == 0:
        empty = points.new_empty((0, n_neighbors))
        return empty, empty.to(torch.int64), report
    most_pairs = _search.EXACT_PAIRS_GPU if points.is_cuda else _search.EXACT_PAIRS
    with torch.inference_mode(), _full_precision():
        points, queries, exponent = within_reach(points, queries)
        found = None
        if not search.is_exact(len(points), n_queries, most_pairs):
            found = _approximate(points, n_neighbors, queries, search)
        if found is None:
            distances, indices = _exact(points, n_neighbors, queries, torch.arange(n_queries, device=points.device))
        else:
            distances, indices, report = found
        stretched: Any = stretch(distances, exponent)
    return stretched.clone(), indices.clone(), report  # outside of inference mode, so that gradients may meet them


def _approximate(points: Any, n_neighbors: int, queries: Any, search: Search) -> tuple[Any, Any, SearchReport] | None:
    """Search the cells that hold enough of the true neighbours of a sample; None if all distances cost less."""
    asked = points if queries is None else queries
    sample = torch.as_tensor(sampled_rows(len(asked), search.seed), device=points.device)
    reach, true = _exact(points, n_neighbors, queries, sample)
    cells = divide(points, search.seed)
    n_probes = probes_needed(cells, asked[sample], true, search.recall)
    if n_probes is None:
        return None
    count = n_neighbors + (queries is None)
    indices = search_cells(cells, points, asked, n_probes, count)
    distances, indices = nearest_listed(
        pair_distances(points, asked, indices), indices, n_neighbors, own_rows(asked, queries)
    )
    short = torch.nonzero((indices < 0).any(dim=1)).ravel()
    if len(short):  # the cells near these queries held too few points
        distances[short], indices[short] = _exact(points, n_neighbors, queries, short)
    recall = float((distances[sample] <= reach[:, -1:] * (1 + TIE)).double().mean())
    if recall < search.recall:  # which cells are near is a matter of rounding
        return None
    size = len(points), len(asked), n_neighbors
    return distances, indices, SearchReport("approximate", "torch", *size, recall, cells.n_cells, n_probes, count)


def _exact(points: Any, n_neighbors: int, queries: Any, rows: Any) -> tuple[Any, Any]:
    """Find the neighbours of some of the queries by computing all distances, block by block."""
    asked = points if queries is None else queries
    squares = points.square().sum(dim=1)
    count = min(n_neighbors + (queries is None) + _N_SPARE, len(points))
    distances = points.new_empty((len(rows), n_neighbors))
    indices = torch.empty((len(rows), n_neighbors), dtype=torch.int64, device=points.device)
    step = block_rows(points, len(points))
    for begin in range(0, len(rows), step):
        block = slice(begin, begin + step)
        asking = asked[rows[block]]
        # |p|² − 2 p·q orders the points as |p − q|² does
        listed = torch.addmm(squares, asking, points.T, alpha=-2).topk(count, largest=False, sorted=False).indices
        own = rows[block] if queries is None else None
        distances[block], indices[block] = nearest_listed(
            pair_distances(points, asking, listed), listed, n_neighbors, own
        )
    return distances, indices


@contextmanager
def _full_precision() -> Iterator[None]:
    """Keep a GPU from rounding float32 to 10 bits in products, whatever the user has allowed elsewhere."""
    products = torch.backends.cuda.matmul
    # torch 2.9 has a new name for it, and warns of the old one
    name, value = ("fp32_precision", "ieee") if hasattr(products, "fp32_precision") else ("allow_tf32", False)
    before = getattr(products, name)
    setattr(products, name, value)
    try:
        yield
    finally:
        setattr(products, name, before)


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
