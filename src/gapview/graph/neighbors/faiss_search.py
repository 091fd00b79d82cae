"""Approximate nearest neighbours: candidates from an inverted file of faiss, compared exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from ...utils.types import Array, Matrix
from . import search as _search
from .distances import nearest_listed
from .exact import RecallSample, exact, exact_with_warning, recall_lower_bound, recall_sample
from .search import Search, SearchReport, number_of_cells
from .search_space import Space, search_space

_N_ROWS = 2**11  # queries searched at a time; more would not stay in the cache
_WIDE = 64  # features from which codes are faster
_MANY = 256  # points from which codes can be learnt
_FACTORS = (2, 4, 8, 16, 32, 64)  # candidates per neighbour, where the index computes distances only roughly
_CODES_PER_ROW = 15  # codes that are scanned in the time in which one candidate is compared,
_CODES_PER_SPARSE_ROW = 300  # and in which one of sparse data is

_N_ADDED = 2**16  # rows added to an index at a time
_N_PER_CELL = 64  # points per cell on which the centres are learnt
_N_ITERATIONS = 10


@dataclass(frozen=True)
class CellIndex:
    """An index of faiss that assigns rows of float32 to the cells around some centres."""

    index: Any
    width: int  # of its rows: those of the points, made even by a column of zeros where codes need pairs
    n_cells: int
    is_coded: bool  # whether it holds 4 bits for every 2 features, instead of the rows themselves

    def candidates(self, rows: Array, n_probes: int, count: int) -> Array:
        """Return near points of every row, nearest first by the distances of the index; −1 where there are no more."""
        self.index.nprobe = n_probes
        return np.asarray(self.index.search(_padded(rows, self.width), count)[1])

    def points_by_cell(self) -> Array:
        """Return the indices of the points, cell by cell."""
        import faiss

        lists = self.index.invlists
        sizes = [lists.list_size(cell) for cell in range(self.n_cells)]
        return np.concatenate([faiss.rev_swig_ptr(lists.get_ids(c), size) for c, size in enumerate(sizes) if size])


@dataclass(frozen=True)
class IndexPlan:
    """An index and the numbers of probes and candidates with which the recall is reached on the sample."""

    index: CellIndex
    n_probes: int
    n_candidates: int


def build_index(points: Array, n_cells: int, *, is_coded: bool, seed: int) -> CellIndex:
    """Build an index over rows of float32.

    Codes are scanned ten times faster than rows and take a sixteenth of their memory. But their distances are rough, so
    that several times as many candidates must be compared exactly.
    """
    import faiss

    width = points.shape[1] + (points.shape[1] % 2 if is_coded else 0)
    coarse = faiss.IndexFlatL2(width)
    if is_coded:
        index = faiss.IndexIVFPQFastScan(coarse, width, n_cells, width // 2, 4)
        _configure(index.pq.cp, seed)
    else:
        index = faiss.IndexIVFFlat(coarse, width, n_cells)
    _configure(index.cp, seed)
    n_drawn = min(len(points), n_cells * _N_PER_CELL)
    drawn = np.sort(np.random.RandomState(seed).choice(len(points), n_drawn, replace=False))
    rows = _padded(points[drawn], width)
    index.train_q1(len(rows), faiss.swig_ptr(rows), False, faiss.METRIC_L2)  # the centres of the cells
    with threadpool_limits(1, user_api="openmp"):  # codes of 2 features each are learnt faster by one thread
        index.train(rows)
    for begin in range(0, len(points), _N_ADDED):
        index.add(_padded(points[begin : begin + _N_ADDED], width))
    return CellIndex(index, width, n_cells, is_coded)


def _configure(kmeans: Any, seed: int) -> None:
    kmeans.niter, kmeans.seed = _N_ITERATIONS, seed
    kmeans.min_points_per_centroid = 1  # else faiss prints a warning


def _padded(rows: Array, width: int) -> Array:
    if rows.shape[1] == width:
        return np.ascontiguousarray(rows)
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])))


def approximate(
    points: Matrix, n_neighbors: int, queries: Matrix | None, search: Search
) -> tuple[Array, Array, SearchReport]:
    """Return distances, indices and report of a search that reaches the recall; exact if no index is cheaper."""
    n_queries = (points if queries is None else queries).shape[0]
    size = points.shape[0], n_queries, n_neighbors
    space = search_space(points, queries, search.seed)
    sample = recall_sample(points, n_neighbors, queries, space.exponent, search.seed)
    plan = choose_plan(space, sample, n_neighbors, search)
    if plan is not None:
        distances, indices = _search_index(plan, space, n_neighbors)
        recall = float(sample.hits(distances[sample.rows]).mean())
        if recall >= search.recall:  # less if rounding decides which cells are near
            counts = plan.index.n_cells, plan.n_probes, plan.n_candidates
            return distances, indices, SearchReport("approximate", "faiss", *size, recall, *counts)
    report = SearchReport("exact", "scikit-learn", *size)
    if points.shape[0] * n_queries <= _search.EXACT_PAIRS:
        return *exact(points, n_neighbors, queries), report
    reason = f"No cheaper way finds {search.recall:.0%} of the neighbours in these data; fewer may do (recall=...)."
    return *exact_with_warning(points, n_neighbors, queries, reason), report


def _search_index(plan: IndexPlan, space: Space, n_neighbors: int) -> tuple[Array, Array]:
    """Return distances and indices of the neighbours of all queries."""
    size = space.queries.shape[0], n_neighbors
    distances, indices = np.empty(size), np.empty(size, dtype=np.intp)
    # Queries near each other share most of their candidates, which are then still in the cache
    order = plan.index.points_by_cell() if space.is_aligned else np.arange(size[0])
    for begin in range(0, size[0], _N_ROWS):
        rows = order[begin : begin + _N_ROWS]
        candidates = plan.index.candidates(space.float32_queries(rows), plan.n_probes, plan.n_candidates)
        distances[rows], indices[rows] = space.nearest_of(rows, candidates, n_neighbors)
    short = np.flatnonzero((indices < 0).any(axis=1))
    if len(short):  # the cells near these queries hold too few points
        exact_distances, exact_indices = exact(space.given, n_neighbors + space.is_own, space.queries[short])
        own = short if space.is_own else None
        distances[short], indices[short] = nearest_listed(exact_distances, exact_indices, n_neighbors, own)
    return distances, indices


def choose_plan(space: Space, sample: RecallSample, n_neighbors: int, search: Search) -> IndexPlan | None:
    """Return a plan with codes if the rows are wide, else with the rows; None if neither reaches the recall cheaply."""
    n_points, width = space.points.shape
    for is_coded in (True, False) if width >= _WIDE and n_points >= _MANY else (False,):
        index = build_index(space.points, number_of_cells(n_points), is_coded=is_coded, seed=search.seed)
        plan = _cheapest(index, space, sample, n_neighbors, search.recall)
        if plan is not None:
            return plan
    return None


def _cheapest(
    index: CellIndex, space: Space, sample: RecallSample, n_neighbors: int, recall: float
) -> IndexPlan | None:
    """Return the cheapest plan that reaches the recall: more probes may need fewer candidates."""
    factors = _FACTORS if index.is_coded or space.is_reduced else (1,)
    counts = [min(len(space.points), factor * n_neighbors + space.is_own) for factor in factors]
    own = sample.rows if space.is_own else None
    row_cost = _CODES_PER_SPARSE_ROW if sparse.issparse(space.given) else _CODES_PER_ROW
    best, least, before = None, np.inf, -1.0
    for n_probes in _probes(index):
        scanned = n_probes * len(space.points) / index.n_cells
        candidates = index.candidates(space.float32_queries(sample.rows), n_probes, counts[-1])
        distances = space.distances(sample.rows, candidates)
        for count in counts:
            nearest, _ = nearest_listed(distances[:, :count], candidates[:, :count], n_neighbors, own)
            hits, cost = sample.hits(nearest), scanned + row_cost * count
            if cost < least and recall_lower_bound(hits) >= recall:
                best, least = IndexPlan(index, n_probes, count), cost
        highest = float(hits.mean())  # with the most candidates
        if scanned > least or (index.is_coded and best is None and highest <= before):  # codes are too rough
            break
        before = highest
    return best


def _probes(index: CellIndex) -> Iterator[int]:
    # Scanning a row in a cell costs about twice as much as computing its distance exactly; scanning a code, a fifth
    most = index.n_cells if index.is_coded else max(1, index.n_cells // 2)
    n_probes = 1
    while n_probes < most:
        yield n_probes
        n_probes = max(n_probes + 1, round(1.5 * n_probes))
    yield most
