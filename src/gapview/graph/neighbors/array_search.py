"""Nearest neighbours of arrays: all distances, or candidates from an inverted file of faiss, compared exactly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import get_config
from threadpoolctl import threadpool_limits

from ...compute.arrays import is_tensor
from ...errors import InputTypeError, MissingExtraError, ParameterError
from ...utils.messages import check_integer
from ...utils.types import Array, Matrix
from .distances import common_exponent, exact, nearest_listed, pair_distances
from .search import CellSetting, Kernel, RecallSample, Search, recall_lower_bound, run_search
from .search_space import search_space

_FASTER = "With the package 'faiss-cpu' it would be many times faster: pip install 'gapview[fast]'"
_N_ROWS = 2**11  # queries searched at a time; more would not stay in the cache
_WIDE = 64  # features from which codes are faster
_MANY = 256  # points from which codes can be learnt
_FACTORS = (2, 4, 8, 16, 32, 64)  # candidates per neighbour, where the index computes distances only roughly
_CODES_PER_ROW = 15  # codes that are scanned in the time in which one candidate is compared,
_CODES_PER_SPARSE_ROW = 300  # and in which one of sparse data is

_N_ADDED = 2**16  # rows added to an index at a time
_N_PER_CELL = 64  # points per cell on which the centres are learnt
_N_ITERATIONS = 10


def build_index(points: Array, n_cells: int, *, is_coded: bool, seed: int) -> Any:
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
    return index


def _configure(kmeans: Any, seed: int) -> None:
    kmeans.niter, kmeans.seed = _N_ITERATIONS, seed
    kmeans.min_points_per_centroid = 1  # else faiss prints a warning


def _candidates(index: Any, rows: Array, n_probes: int, count: int) -> Array:
    """Return near points of every row, nearest first by the distances of the index; −1 where there are no more."""
    index.nprobe = n_probes
    return np.asarray(index.search(_padded(rows, index.d), count)[1])


def _points_by_cell(index: Any) -> Array:
    """Return the indices of the points, cell by cell."""
    import faiss

    lists = index.invlists
    sizes = [lists.list_size(cell) for cell in range(index.nlist)]
    return np.concatenate([faiss.rev_swig_ptr(lists.get_ids(c), size) for c, size in enumerate(sizes) if size])


def _padded(rows: Array, width: int) -> Array:
    """Return rows with a column of zeros where codes need an even number."""
    if rows.shape[1] == width:
        return np.ascontiguousarray(rows)
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])))


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
        """Set the number of cells; they are made together with an index."""
        self.n_cells, self.seed = n_cells, seed

    def true_neighbors(self, rows: Array) -> tuple[Array, Array]:
        """Return distances, from differences, and indices of the neighbours of some queries."""
        drawn = self.queries[rows]
        is_own = self.given_queries is None
        indices = exact(self.points, self.n_neighbors + is_own, drawn)[1]
        distances = pair_distances(self.points, drawn, indices, common_exponent([self.points, drawn]))
        return nearest_listed(distances, indices, self.n_neighbors, rows if is_own else None)

    def propose(self, sample: RecallSample, recall: float) -> CellSetting | None:
        """Return a setting of an index of codes if the rows are wide, else of rows."""
        if not has_faiss():
            self.advice = _FASTER
            return None
        self.space = search_space(self.points, self.given_queries, self.seed)
        for is_coded in (True, False) if self.space.points.shape[1] >= _WIDE and self.n_points >= _MANY else (False,):
            self.index = build_index(self.space.points, self.n_cells, is_coded=is_coded, seed=self.seed)
            setting = self._cheapest(sample, recall, is_coded=is_coded)
            if setting is not None:
                return setting
        return None

    def _cheapest(self, sample: RecallSample, recall: float, *, is_coded: bool) -> CellSetting | None:
        """Return the cheapest setting of the index that reaches the recall: more probes may need fewer candidates."""
        index, space = self.index, self.space
        factors = _FACTORS if is_coded or space.is_reduced else (1,)
        counts = [min(self.n_points, factor * self.n_neighbors + space.is_own) for factor in factors]
        own = sample.rows if space.is_own else None
        row_cost = _CODES_PER_SPARSE_ROW if sparse.issparse(self.points) else _CODES_PER_ROW
        best, least, before = None, np.inf, -1.0
        for n_probes in _probes(self.n_cells, is_coded=is_coded):
            scanned = n_probes * self.n_points / self.n_cells
            candidates = _candidates(index, space.float32_queries(sample.rows), n_probes, counts[-1])
            distances = space.distances(sample.rows, candidates)
            for count in counts:
                nearest, _ = nearest_listed(distances[:, :count], candidates[:, :count], self.n_neighbors, own)
                hits, cost = sample.hits(nearest), scanned + row_cost * count
                if cost < least and recall_lower_bound(hits) >= recall:
                    best, least = CellSetting(self.n_cells, n_probes, count), cost
            highest = float(hits.mean())  # with the most candidates
            if scanned > least or (is_coded and best is None and highest <= before):  # codes are too rough
                break
            before = highest
        return best

    def search(self, setting: CellSetting, rows: Array) -> tuple[tuple[Array, Array], Array]:
        """Return distances and indices of the neighbours of all queries, and the distances of some."""
        size = self.n_queries, self.n_neighbors
        distances, indices = np.empty(size), np.empty(size, dtype=np.intp)
        # Queries near each other share most of their candidates, which are then still in the cache
        order = _points_by_cell(self.index) if self.space.is_aligned else np.arange(size[0])
        for begin in range(0, size[0], _N_ROWS):
            part = order[begin : begin + _N_ROWS]
            queries = self.space.float32_queries(part)
            candidates = _candidates(self.index, queries, setting.n_probes, setting.n_candidates)
            distances[part], indices[part] = self.space.nearest_of(part, candidates, self.n_neighbors)
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


def _probes(n_cells: int, *, is_coded: bool) -> Iterator[int]:
    # Scanning a row in a cell costs about twice as much as computing its distance exactly; scanning a code, a fifth
    most = n_cells if is_coded else max(1, n_cells // 2)
    n_probes = 1
    while n_probes < most:
        yield n_probes
        n_probes = max(n_probes + 1, round(1.5 * n_probes))
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
    if is_tensor(points):
        from .torch_search import nearest_tensors  # imports torch

        return nearest_tensors(points, int(n_neighbors), queries, search)
    if search.method == "approximate" and not has_faiss():
        raise MissingExtraError("faiss-cpu", "fast", "Approximate search for neighbours")
    return run_search(ArrayKernel(points, int(n_neighbors), queries), search)  # type: ignore[no-any-return]


def _check(points: Any, n_neighbors: Any, queries: Any) -> None:
    check_integer("n_neighbors", n_neighbors, low=1)
    if queries is not None and is_tensor(points) != is_tensor(queries):
        kinds = f"{type(points).__name__} and {type(queries).__name__}"
        raise InputTypeError(f"points and queries must both be arrays or both be tensors; got {kinds}.")
    n_others = int(points.shape[0]) - (queries is None)
    if n_neighbors > n_others and (queries is None or queries.shape[0]):
        raise ParameterError(f"n_neighbors must be at most {n_others}, the number of points; got {n_neighbors}.")
