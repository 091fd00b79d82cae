"""Distances between given pairs of rows of tensors."""

from __future__ import annotations

from typing import Any

import torch

_N_VALUES = 2**22  # values that are held at a time on a processor
_N_VALUES_GPU = 2**28


def block_rows(tensor: Any, width: int) -> int:
    """Say how many rows of this width to work on at a time, on the device of the tensor."""
    return max(1, (_N_VALUES_GPU if tensor.is_cuda else _N_VALUES) // max(1, width))


def own_rows(asked: Any, queries: Any) -> Any:
    """Return the numbers of the queries if they are the points themselves, else None."""
    return torch.arange(len(asked), device=asked.device) if queries is None else None


def pair_distances(points: Any, asked: Any, indices: Any) -> Any:
    """Return the distance of every query to the points named in its row, from the differences; −1 is infinitely far."""
    distances = points.new_empty(indices.shape)
    step = block_rows(points, indices.shape[1] * points.shape[1])
    for begin in range(0, len(indices), step):
        block = slice(begin, begin + step)
        gaps = points[indices[block].clamp(min=0)] - asked[block][:, None]
        distances[block] = torch.linalg.vector_norm(gaps, dim=2)
    return distances.masked_fill_(indices < 0, torch.inf)


def nearest_listed(distances: Any, indices: Any, count: int, own: Any) -> tuple[Any, Any]:
    """Keep the nearest of the points listed for every query, in order, but not the query itself; see ``_pairs``."""
    if own is not None:
        is_own = indices == own[:, None]
        distances, indices = distances.masked_fill(is_own, torch.inf), indices.masked_fill(is_own, -1)
    distances, order = distances.sort(dim=1, stable=True)
    return distances[:, :count], indices.gather(1, order)[:, :count]
