"""Nearest neighbours across blocks: every pair of blocks up to a size, by cells beyond it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...compute import without_helpers
from ...errors import GapviewWarning
from ...graph.knn import only_directions
from ...graph.neighbors import Search, SearchReport, nearest
from ...graph.neighbors import search as _search
from ...graph.neighbors.centering import common_exponent
from ...graph.neighbors.pairs import nearest_listed
from ...scaling import row_lengths, times_power
from ...utils.types import Array
from ...utils.warnings import warn_user
from ...views import Views
from .blocks import BlockedViews
from .tasks import Tasks

__all__ = ["Points", "found_blocks", "nearest_within"]

_EXACT = Search(method="exact")
_N_TOGETHER = 4096  # rows that are compared with others in one go


class Points:
    """The rows of one view that have a place among the others, block by block, and where they are."""

    def __init__(self, tasks: Tasks, scaled: BlockedViews, view: int) -> None:
        described = tasks.gather(tasks.map("describe", _described, scaled.blocks, view=view))
        directions, largest = zip(*described, strict=True)
        common = {"directions": all(directions), "exponent": common_exponent([np.array([largest])])}
        self.tasks, self.starts = tasks, scaled.starts
        self.blocks = tasks.map("points", _points, scaled.blocks, scaled.starts[:-1].tolist(), view=view, **common)
        self.counts = np.array(tasks.gather(tasks.map("describe", _count, self.blocks)))

    @property
    def n_points(self) -> int:
        """How many there are."""
        return int(self.counts.sum())


def _described(views: Views, *, view: int) -> tuple[bool, float]:
    """Return whether all rows but those of zeros have unit length, and the largest absolute value."""
    matrix = views.matrices[view]
    return only_directions(matrix), max(float(matrix.max(initial=0)), -float(matrix.min(initial=0)))


def _points(views: Views, begin: int, *, view: int, directions: bool, exponent: int) -> tuple[Array, Array]:
    """Return rows divided by a power of 2, and their samples; rows of zeros are left out among rows of unit length."""
    matrix, samples = times_power(views.matrices[view], -exponent), views.rows(view) + begin
    if directions and len(matrix):
        placed = row_lengths(matrix) > 0
        if not placed.all():
            return matrix[placed], samples[placed]
    return matrix, samples


def _count(points: tuple[Array, Array]) -> int:
    return len(points[1])


def found_blocks(points: Points, n_neighbors: int, search: Search) -> list[Any]:
    """Find for the samples of every block their neighbours; handles of pairs (who asked, what each has found)."""
    n_points = points.n_points
    count = min(n_neighbors, n_points - 1)
    if count < 1:
        return points.tasks.map("find-neighbours", _nothing_found, points.blocks)
    if not search.is_exact(n_points, n_points, _search.EXACT_PAIRS):
        from .cells import found_by_cells  # which needs what is here

        found = found_by_cells(points, count, search)
        if found is not None:
            return found
        warn_user(
            f"No cells hold {search.recall:.0%} of the neighbours of {n_points} samples, so that all their distances "
            "are computed, block by block. Fewer may do: search=Search(recall=...).",
            GapviewWarning,
        )
    search.done.append(SearchReport("exact", "scikit-learn", n_points, n_points, count))
    return _all_pairs(points, count)


def _all_pairs(points: Points, count: int) -> list[Any]:
    """Compare every block with every other, small ones taken together, and keep the nearest of all."""
    tasks, blocks = points.tasks, points.blocks
    groups: list[list[int]] = []
    for number, size in enumerate(points.counts):
        if not groups or points.counts[groups[-1]].sum() + size > _N_TOGETHER:
            groups.append([])
        groups[-1].append(number)
    known = tasks.map("points", stack, [[blocks[number] for number in group] for group in groups])
    found = []
    for asking in blocks:
        parts = tasks.map("find-neighbours", nearest_within, [asking] * len(known), known, count=count)
        found.append(tasks.submit("find-neighbours-merge", _merged, asking, parts))
    return found


def nearest_within(asking: tuple[Array, Array], known: tuple[Array, Array], *, count: int) -> tuple[Array, Array]:
    """Find the nearest of known points, which nobody is to himself; distances and samples, −1 where there are none."""
    rows, samples = known
    distances = np.full((len(asking[1]), count), np.inf)
    found = np.full(distances.shape, -1, dtype=np.int64)
    most = min(count + 1, len(rows))  # one more, since the point itself may be among them
    if not most or not len(distances):
        return distances, found
    with without_helpers():  # the cluster keeps all cores busy
        near, places = nearest(rows, most, asking[0], search=_EXACT)
    kept = min(count, most)
    near, chosen = nearest_listed(near, samples[places], kept, asking[1])
    distances[:, :kept], found[:, :kept] = near, chosen
    return distances, found


def stack(parts: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Put arrays of the same kind one below the other."""
    return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True)) if len(parts) > 1 else parts[0]


def whole_numbers(largest: int) -> Any:
    """Return the smallest type for the places of samples."""
    return np.int32 if largest < 2**31 else np.int64


def merged(parts: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Keep the nearest of what was found in several places for the same samples."""
    distances = np.concatenate([part[0] for part in parts], axis=1)
    found = np.concatenate([part[1] for part in parts], axis=1)
    return nearest_listed(distances, found, parts[0][0].shape[1], None)


def _merged(asking: tuple[Array, Array], parts: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    return asking[1], merged(parts)[1]


def _nothing_found(points: tuple[Array, Array]) -> tuple[Array, Array]:
    return points[1], np.empty((len(points[1]), 0), dtype=np.int64)
