"""Nearest neighbours of arrays: all distances, or candidates by cells in leading directions, compared exactly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import get_config

from ...compute.arrays import is_tensor
from ...compute.engine import engine_for, single_threaded
from ...errors import InputTypeError, MissingExtraError, ParameterError
from ...scaling import ScaledRows
from ...utils.messages import check_integer
from ...utils.types import Array, Matrix
from .cell_index import CellIndex, nearest_cells
from .cells import grouped
from .distances import WithoutLast, common_exponent, exact, nearest_listed, pair_distances
from .search import CellSetting, Kernel, RecallSample, Search, recall_lower_bound, run_search
from .search_space import search_space

_FASTER = "With the package 'faiss-cpu' it would be many times faster: pip install 'gapview[fast]'"
_POINTS_PER_CELL, _MOST_CELLS = 150, 2**14  # smaller cells are cheaper to search, many are expensive to make
_N_ROWS = 2**14  # queries placed in cells at a time
_DIRECTIONS = (16, 64)  # leading directions in which candidates are searched, before all features
_FACTORS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # candidates per neighbour
# Costs, in operations of a matrix product: to find a point among many besides its product with a query, and to compare
# one feature of a candidate, or one of sparse data
_SCAN_COST, _FEATURE_COST, _SPARSE_COST = 40, 20, 400


class ArrayKernel(Kernel):
    """Points and queries in memory. Without faiss, all distances are computed by scikit-learn."""

    engine, exact_engine = "faiss", "scikit-learn"

    def __init__(self, points: Matrix, n_neighbors: int, queries: Matrix | None) -> None:
        self.points, self.given_queries = points, queries
        self.queries = points if queries is None else queries
        self.n_points, self.n_queries, self.n_neighbors = points.shape[0], self.queries.shape[0], n_neighbors
        # The working memory of scikit-learn, and 16 bytes for every neighbour
        gibibytes = get_config()["working_memory"] / 2**10 + self.n_queries * n_neighbors / 2**26
        self.exact_memory = f" and up to {gibibytes:.1f} GiB of memory"

    def divide(self, n_cells: int, seed: int) -> None:
        """Set the number of cells, which are made together with an index."""
        self.n_cells, self.seed = max(n_cells, min(self.n_points // _POINTS_PER_CELL, _MOST_CELLS)), seed

    def true_neighbors(self, rows: Array) -> tuple[Array, Array]:
        """Return distances, from differences, and indices of the neighbours of some queries."""
        drawn = self.queries[rows]
        is_own = self.given_queries is None
        indices = exact(self.points, self.n_neighbors + is_own, drawn)[1]
        distances = pair_distances(self.points, drawn, indices, common_exponent([self.points, drawn]))
        return nearest_listed(distances, indices, self.n_neighbors, rows if is_own else None)

    def propose(self, sample: RecallSample, recall: float) -> CellSetting | None:
        """Return the cheapest setting, in few directions if these suffice."""
        if not has_faiss():
            self.advice = _FASTER
            return None
        self.space = search_space(self.points, self.given_queries, self.seed)
        width = self.space.points.shape[1]
        best, least = None, np.inf
        for n_directions in (*(count for count in _DIRECTIONS if 1.5 * count < width), None):
            index = CellIndex.build(self.space.points, n_directions, self.n_cells, self.seed)
            setting, scan_cost, cost = self._cheapest(index, sample, recall)
            if setting is not None and cost < least:
                best, least, self.index = setting, cost, index
            elif best is not None:
                break
            if 2 * scan_cost > cost:  # more directions would save few candidates
                break
        return best

    def _cheapest(
        self, index: CellIndex, sample: RecallSample, recall: float
    ) -> tuple[CellSetting | None, float, float]:
        """Return the cheapest setting that reaches the recall, its cost of scanning, and its whole cost.

        More probes may need fewer candidates.
        """
        space, width = self.space, index.coordinates.shape[1]
        counts = [min(self.n_points, factor * self.n_neighbors + space.is_own) for factor in _FACTORS]
        own = sample.rows if space.is_own else None
        is_sparse = sparse.issparse(self.points)
        row_cost = (_SPARSE_COST if is_sparse else _FEATURE_COST) * space.points.shape[1]
        cell, queries = self._placed(index, sample.rows)
        near = nearest_cells(index.centers[cell], index.centers, self.n_cells)
        ranks = np.take_along_axis(np.argsort(near, axis=1), index.cell[sample.neighbors], axis=1)
        best, scan, before = None, 0.0, -1.0
        # At most half the cost of comparing all features of all points, which is high for sparse data
        least = np.inf if is_sparse else (_SCAN_COST + space.points.shape[1]) * self.n_points / 2
        for n_probes in _probes(self.n_cells):
            scan_cost = (_SCAN_COST + width) * n_probes * self.n_points / self.n_cells
            if scan_cost > least:
                break
            if recall_lower_bound((ranks < n_probes).mean(axis=1)) < recall:
                continue
            parts = [
                index.candidates(query, own_cell, visited, counts[-1])
                for query, own_cell, visited in zip(queries[:, None], cell, near[:, :n_probes], strict=True)
            ]
            squares, candidates = (np.concatenate(part) for part in zip(*parts, strict=True))
            candidates = np.take_along_axis(candidates, np.argsort(squares, axis=1, kind="stable"), axis=1)
            distances, cost = space.distances(sample.rows, candidates), np.inf
            for count in counts:
                nearest, _ = nearest_listed(distances[:, :count], candidates[:, :count], self.n_neighbors, own)
                hits = sample.hits(nearest)
                if recall_lower_bound(hits) >= recall:
                    cost = scan_cost + row_cost * count
                    break
            if best is None and hits.mean() <= before:  # the directions leave out too much
                break
            before = hits.mean()
            if best is not None and cost >= least:
                break
            if cost < least:
                best, scan, least = CellSetting(self.n_cells, n_probes, count), scan_cost, cost
        return best, scan, least

    def _placed(self, index: CellIndex, rows: Array) -> tuple[Array, Array]:
        """Return the cells and the coordinates of some queries."""
        coordinates = index.projection(self.space.float32_queries(rows))[0]
        return index.cells_of(coordinates), coordinates

    def _cells_of_queries(self) -> Array:
        edges = range(0, self.n_queries, _N_ROWS)
        blocks = (np.arange(begin, min(begin + _N_ROWS, self.n_queries)) for begin in edges)
        return np.concatenate([self._placed(self.index, block)[0] for block in blocks])

    def search(self, setting: CellSetting, rows: Array) -> tuple[tuple[Array, Array], Array]:
        """Return distances and indices of the neighbours of all queries, and the distances of some."""
        index, size = self.index, (self.n_queries, self.n_neighbors)
        distances, indices = np.empty(size), np.empty(size, dtype=np.intp)
        is_indexed = self.space.is_own and not self.space.is_reduced  # the queries are the points of the index
        order, parts = grouped(index.cell if is_indexed else self._cells_of_queries(), self.n_cells)
        near = index.near_cells(setting.n_probes)

        def work(cell: int) -> None:
            part = order[parts[cell]]
            if len(part):
                with single_threaded():
                    queries = index.coordinates[parts[cell]] if is_indexed else self._placed(index, part)[1]
                    _, candidates = index.candidates(queries, cell, near[cell], setting.n_candidates)
                    distances[part], indices[part] = self.space.nearest_of(part, candidates, self.n_neighbors)

        n_scanned = size[0] * setting.n_probes * self.n_points / self.n_cells
        with engine_for(distances).working(_SCAN_COST * n_scanned) as each:
            each(work, range(self.n_cells))
        short = np.flatnonzero((indices < 0).any(axis=1))
        if len(short):  # the cells near these queries hold too few points
            distances[short], indices[short] = self.true_neighbors(short)
        return (distances, indices), distances[rows]

    def exact(self) -> tuple[Array, Array]:
        """Return distances and indices of the neighbours of all queries."""
        if self.n_queries == 0:
            return np.empty((0, self.n_neighbors)), np.empty((0, self.n_neighbors), dtype=np.intp)
        return exact(self.points, self.n_neighbors, self.given_queries)


def has_faiss() -> bool:
    """Return whether faiss can be imported."""
    try:
        import faiss  # noqa: F401
    except ImportError:
        return False
    return True


def _probes(most: int) -> Iterator[int]:
    n_probes = 1
    while n_probes < most:
        yield n_probes
        n_probes = max(n_probes + 1, round(1.2 * n_probes))
    yield most


def nearest(points: Any, n_neighbors: int, queries: Any = None, *, search: Search | None = None) -> tuple[Any, Any]:
    """Return the nearest points by Euclidean distance.

    Up to 20,000 points and queries the neighbours are exact but for rounding: distances below about 1e-8 of the extent
    of the points are inaccurate, and such neighbours come in any order. Beyond, at least 0.95 of the neighbours are the
    true ones, by an estimate on a sample; ``search`` changes this share. The distances returned are always those to the
    points returned.

    Parameters
    ----------
    points : array, csr_array or torch tensor of shape (n_points, n_features)
        The points.
    n_neighbors : int
        Number of neighbours.
    queries : array, csr_array or torch tensor of shape (n_queries, n_features), optional
        The queries; by default the points themselves, none of which is its own neighbour.
    search : Search, optional
        Settings; a report is appended to its ``done``.

    Returns
    -------
    distances, indices : arrays of shape (n_queries, n_neighbors)
        Nearest first. Tensors on the device of the points if these are tensors.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.graph.neighbors import nearest
    >>> nearest(np.array([[0.0], [1.0], [3.0]]), 1)[1].ravel()
    array([1, 0, 1])
    """
    search = Search() if search is None else search
    _check(points, n_neighbors, queries)
    if is_tensor(points) or isinstance(points, ScaledRows):
        from .torch_search import nearest_tensors  # imports torch

        return nearest_tensors(points, int(n_neighbors), queries, search)
    if search.method == "approximate" and not has_faiss():
        raise MissingExtraError("faiss-cpu", "fast", "Approximate search for neighbours")
    return run_search(ArrayKernel(points, int(n_neighbors), queries), search)  # type: ignore[no-any-return]


def _check(points: Any, n_neighbors: Any, queries: Any) -> None:
    check_integer("n_neighbors", n_neighbors, low=1)
    if isinstance(queries, WithoutLast):
        queries = queries.rows
    if queries is not None and is_tensor(points) != is_tensor(queries):
        kinds = f"{type(points).__name__} and {type(queries).__name__}"
        raise InputTypeError(f"points and queries must both be arrays or both be tensors; got {kinds}.")
    n_others = int(points.shape[0]) - (queries is None)
    if n_neighbors > n_others and (queries is None or queries.shape[0]):
        raise ParameterError(f"n_neighbors must be at most {n_others}, the number of points; got {n_neighbors}.")
