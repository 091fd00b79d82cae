"""Most of the nearest neighbours in a fraction of the time: candidates from cells, compared exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ...utils.types import Array, Matrix
from . import search as _search
from ._cells import Cells, divide
from ._space import Space, space_of
from .exact import exact, exact_at_a_cost
from .pairs import nearest_listed
from .recall import Sample, draw_sample, surely
from .search import Search, SearchReport, number_of_cells

_N_ROWS = 2**11  # queries searched at a time; more would not stay in the cache
_WIDE = 64  # features from which codes pay
_MANY = 256  # points from which codes can be learnt
_FACTORS = (2, 4, 8, 16, 32, 64)  # candidates for every neighbour wanted, where the cells tell distances only roughly
_CODES_PER_ROW = 15  # codes that are scanned in the time in which one candidate is compared,
_CODES_PER_SPARSE_ROW = 300  # and in which one of sparse data is


@dataclass(frozen=True)
class Plan:
    """A way to search that reaches the recall asked for on the sample."""

    cells: Cells
    n_probes: int
    n_candidates: int


def approximate(
    points: Matrix, n_neighbors: int, queries: Matrix | None, search: Search
) -> tuple[Array, Array, SearchReport]:
    """Find most of the nearest points; all of them where no way to reach the recall is cheaper than that."""
    asked = points if queries is None else queries
    size = points.shape[0], asked.shape[0], n_neighbors
    space = space_of(points, queries, search.seed)
    sample = draw_sample(points, n_neighbors, queries, space.exponent, search.seed)
    plan = _settle(space, sample, n_neighbors, search)
    if plan is not None:
        distances, indices = _follow(plan, space, n_neighbors)
        recall = float(sample.hits(distances[sample.rows]).mean())
        if recall >= search.recall:  # else which cells are near is a matter of rounding
            cells = plan.cells.n_cells, plan.n_probes, plan.n_candidates
            return distances, indices, SearchReport("approximate", "faiss", *size, recall, *cells)
    return *_all_distances(points, n_neighbors, queries, search), SearchReport("exact", "scikit-learn", *size)


def _follow(plan: Plan, space: Space, n_neighbors: int) -> tuple[Array, Array]:
    """Search the neighbours of all queries as planned."""
    size = (space.given if space.queries is None else space.queries).shape[0], n_neighbors
    distances, indices = np.empty(size), np.empty(size, dtype=np.intp)
    # Neighbours in turn find much the same candidates, which are then still in the cache
    tour = plan.cells.tour() if space.asks_in_place else np.arange(size[0])
    for begin in range(0, size[0], _N_ROWS):
        rows = tour[begin : begin + _N_ROWS]
        candidates = plan.cells.candidates(space.asking(rows), plan.n_probes, plan.n_candidates)
        distances[rows], indices[rows] = space.nearest_of(rows, candidates, n_neighbors)
    short = np.flatnonzero((indices < 0).any(axis=1))
    if len(short):  # the cells near these queries held too few points
        distances[short], indices[short] = _exact_rows(space.given, space.queries, short, n_neighbors)
    return distances, indices


def _settle(space: Space, sample: Sample, n_neighbors: int, search: Search) -> Plan | None:
    """Try codes first where the rows are wide, then the rows themselves; None if neither is worth it."""
    n_points, width = space.points.shape
    for is_coded in (True, False) if width >= _WIDE and n_points >= _MANY else (False,):
        cells = divide(space.points, number_of_cells(n_points), is_coded=is_coded, seed=search.seed)
        plan = _cheapest(cells, space, sample, n_neighbors, search.recall)
        if plan is not None:
            return plan
    return None


def _cheapest(cells: Cells, space: Space, sample: Sample, n_neighbors: int, recall: float) -> Plan | None:
    """Search more and more cells until the recall is reached, and then on while fewer candidates make up for it."""
    factors = _FACTORS if cells.is_coded or space.is_reduced else (1,)
    counts = [min(len(space.points), factor * n_neighbors + space.is_own) for factor in factors]
    own = sample.rows if space.is_own else None
    row_cost = _CODES_PER_SPARSE_ROW if sparse.issparse(space.given) else _CODES_PER_ROW
    best, least, before = None, np.inf, -1.0
    for n_probes in _probes(cells):
        scanned = n_probes * len(space.points) / cells.n_cells
        candidates = cells.candidates(space.asking(sample.rows), n_probes, counts[-1])
        distances = space.distances(sample.rows, candidates)
        for count in counts:
            nearest, _ = nearest_listed(distances[:, :count], candidates[:, :count], n_neighbors, own)
            hits, cost = sample.hits(nearest), scanned + row_cost * count
            if cost < least and surely(hits) >= recall:
                best, least = Plan(cells, n_probes, count), cost
        reached = float(hits.mean())  # with the most candidates
        if scanned > least or (cells.is_coded and best is None and reached <= before):  # too rough for these data
            break
        before = reached
    return best


def _probes(cells: Cells) -> Iterator[int]:
    # A row in a cell costs about twice what a row costs where all distances are computed; a code, a fifth of it
    most = cells.n_cells if cells.is_coded else max(1, cells.n_cells // 2)
    n_probes = 1
    while n_probes < most:
        yield n_probes
        n_probes = max(n_probes + 1, round(1.5 * n_probes))
    yield most


def _all_distances(points: Matrix, n_neighbors: int, queries: Matrix | None, search: Search) -> tuple[Array, Array]:
    if points.shape[0] * (points if queries is None else queries).shape[0] <= _search.EXACT_PAIRS:
        return exact(points, n_neighbors, queries)
    reason = f"No cheaper way finds {search.recall:.0%} of the neighbours in these data; fewer may do (recall=...)."
    return exact_at_a_cost(points, n_neighbors, queries, reason)


def _exact_rows(points: Matrix, queries: Matrix | None, rows: Array, n_neighbors: int) -> tuple[Array, Array]:
    """Search some of the queries exactly."""
    if queries is not None:
        return exact(points, n_neighbors, queries[rows])
    distances, indices = exact(points, n_neighbors + 1, points[rows])
    return nearest_listed(distances, indices, n_neighbors, rows)
