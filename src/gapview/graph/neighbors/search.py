"""Searches for neighbours: settings, the report, and the plan of every search.

The plan: all distances, or the cells of near points that hold enough neighbours. Where the points are is the
responsibility of a *kernel*: arrays in memory, tensors, rows on disk, blocks of Dask.
"""

from __future__ import annotations

import math
import time
from dataclasses import astuple, dataclass, field
from typing import Any, Protocol

import numpy as np

from ...utils.messages import check_choice, check_integer, check_real, duration, warn_user
from ...utils.types import Array

# Pairs of points and queries up to which all distances are computed: 20,000 × 20,000 on a processor. A GPU computes
# 100,000 × 100,000 in less time than it takes to build cells.
EXACT_PAIRS = 20_000**2
EXACT_PAIRS_GPU = 100_000**2

_N_SAMPLED = 500  # queries on which the recall is estimated
_TIE = 1e-6  # relative difference up to which two distances count as equal
_MORE = 1.5  # factor of the probes where the recall is missed


@dataclass(frozen=True)
class SearchReport:
    """Report on one search.

    Attributes
    ----------
    method : {"exact", "approximate"}
        The method used, which may differ from the one requested.
    engine : {"scikit-learn", "faiss", "torch", "dask"}
        The library used.
    n_points, n_queries, n_neighbors : int
        The size of the search.
    recall : float
        Share of the true neighbours that are found, estimated on a sample of the queries; 1 for exact searches.
    n_cells, n_probes, n_candidates : int
        Number of cells that the points are divided into, of cells searched for every query, and of points then
        compared one by one; 0 for exact searches.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.graph.neighbors import Search, nearest
    >>> search = Search()
    >>> _ = nearest(np.eye(4), 2, search=search)
    >>> print(search.done[0])
    2 neighbours of 4 among 4 points: exact, by scikit-learn
    """

    method: str
    engine: str
    n_points: int
    n_queries: int
    n_neighbors: int
    recall: float = 1.0
    n_cells: int = 0
    n_probes: int = 0
    n_candidates: int = 0

    def __str__(self) -> str:
        size = f"{self.n_neighbors} neighbours of {self.n_queries} among {self.n_points} points"
        if self.method == "exact":
            return f"{size}: exact, by {self.engine}"
        return f"{size}: {self.recall:.1%} of them found, by {self.engine} in {self.n_probes} of {self.n_cells} cells"


@dataclass(frozen=True)
class Search:
    """Settings of a search for nearest neighbours, and the reports on the searches made with them.

    Parameters
    ----------
    method : {"auto", "exact", "approximate"}, default="auto"
        "auto" is exact up to 400 million pairs of points and queries (20,000 × 20,000; on a GPU 100,000 × 100,000), and
        beyond if that costs less; approximate otherwise. Approximate search needs ``gapview[fast]``: without it "auto"
        warns of the cost and searches exactly, and "approximate" is an error. Tensors need only torch.
    recall : float, default=0.95
        Share of the true neighbours that an approximate search must find. It is estimated on 500 queries; the estimate
        minus two standard errors must reach it. If exact search is the cheaper way to reach it, search is exact.
    seed : int, default=0
        Seed of the sample and of the cells; the same seed gives the same neighbours.

    Attributes
    ----------
    done : list of SearchReport
        One for every search with these settings, in order.

    Examples
    --------
    >>> from gapview.datasets import make_views
    >>> from gapview.graph.neighbors import Search, nearest
    >>> points = make_views(300, [8], random_state=0).views.matrices[0]
    >>> search = Search(method="exact")
    >>> distances, indices = nearest(points, 5, search=search)
    >>> search.done[0].method, search.done[0].recall
    ('exact', 1.0)
    """

    method: str = "auto"
    recall: float = 0.95
    seed: int = 0
    done: list[SearchReport] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_choice("method", self.method, ("auto", "exact", "approximate"))
        check_real("recall", self.recall, low=0, high=1, open_low=True)
        check_integer("seed", self.seed, low=0)

    def is_exact(self, n_points: int, n_queries: int, most_pairs: int) -> bool:
        """Return whether all distances are computed at this size.

        Parameters
        ----------
        n_points, n_queries : int
            The size of the search.
        most_pairs : int
            Pairs of points and queries up to which ``"auto"`` is exact.
        """
        if self.method != "auto":
            return self.method == "exact"
        # For few queries, dividing many points into cells costs more than it saves
        return n_points * n_queries <= most_pairs or n_queries <= number_of_cells(n_points) or self.recall == 1


def number_of_cells(n_points: int) -> int:
    """Return the number of cells with which finding the near cells and searching them cost about the same."""
    return max(1, min(n_points, round(1.5 * math.sqrt(n_points))))


@dataclass(frozen=True)
class CellSetting:
    """Number of cells, of cells searched for every query, and of points then compared one by one."""

    n_cells: int
    n_probes: int
    n_candidates: int

    def with_more_probes(self, n_points: int) -> CellSetting | None:
        """Return a setting with higher recall; None if it needs more than half of the cells."""
        if self.n_probes >= self.n_cells // 3:
            return None
        n_candidates = min(n_points, math.ceil(_MORE * self.n_candidates))
        return CellSetting(self.n_cells, math.ceil(_MORE * self.n_probes), n_candidates)


@dataclass(frozen=True)
class RecallSample:
    """Some of the queries with their true neighbours."""

    rows: Array
    distances: Array  # of the true neighbours
    neighbors: Any  # in the form that the kernel returns

    def hits(self, distances: Array) -> Array:
        """Return the share of true neighbours among the points found for every query, given their distances.

        Points no farther than the last true neighbour count, so that ties are hits.
        """
        return np.asarray((distances <= self.distances.max(axis=1, keepdims=True) * (1 + _TIE)).mean(axis=1))


class Kernel(Protocol):
    """The steps of a search that depend on where the points are."""

    engine: str  # for the report of an approximate search
    exact_engine: str
    n_points: int
    n_queries: int
    n_neighbors: int
    exact_memory: str = ""  # words on the memory of an exact search, for a warning
    advice: str = "No cheaper search finds {recall:.0%} of the neighbours; search=Search(recall=...) asks for fewer."

    @property
    def most_pairs(self) -> int:
        """Pairs of points and queries up to which search is exact by default."""
        return EXACT_PAIRS

    def divide(self, n_cells: int, seed: int) -> None:
        """Divide the points into cells, about as many as given."""

    def true_neighbors(self, rows: Array) -> tuple[Array, Any]:
        """Return distances of shape (n_rows, n_neighbors) and the neighbours of some queries, by all distances."""

    def propose(self, sample: RecallSample, recall: float) -> CellSetting | None:
        """Return the cheapest setting that reaches the recall; None if all distances cost less."""

    def search(self, setting: CellSetting, rows: Array) -> tuple[Any, Array]:
        """Return the neighbours of all queries, and the distances of those of some queries."""

    def exact(self) -> Any:
        """Return the neighbours of all queries, by all distances."""


class CellKernel(Kernel, Protocol):
    """A kernel that compares queries with all points of some cells."""

    n_cells: int

    def cell_ranks(self, sample: RecallSample) -> Array:
        """Return for every true neighbour how many cells are nearer to its query than the cell that it is in."""

    def propose(self, sample: RecallSample, recall: float) -> CellSetting | None:
        """Return the setting with the fewest probes; None if more than half of the cells are needed."""
        ranks = self.cell_ranks(sample)
        for n_probes in range(1, self.n_cells // 2 + 1):
            if recall_lower_bound((ranks < n_probes).mean(axis=1)) >= recall:
                return CellSetting(self.n_cells, n_probes, round(n_probes * self.n_points / self.n_cells))
        return None


def recall_lower_bound(hits: Array) -> float:
    """Return the mean share of hits minus two standard errors."""
    return float(hits.mean() - 2 * hits.std() / np.sqrt(len(hits)))


def run_search(kernel: Kernel, search: Search) -> Any:
    """Return the neighbours of all queries as the kernel returns them; append a report to ``search.done``."""
    size = kernel.n_points, kernel.n_queries, kernel.n_neighbors
    if kernel.n_queries and not search.is_exact(*size[:2], kernel.most_pairs):
        found, report = _search_cells(kernel, search)
        if report is not None:
            search.done.append(report)
            return found
    found = kernel.exact()
    search.done.append(SearchReport("exact", kernel.exact_engine, *size))
    return found


def _search_cells(kernel: Kernel, search: Search) -> tuple[Any, SearchReport | None]:
    """Search with the proposed setting, then with more probes until the recall is reached; no report if it is not."""
    size = kernel.n_points, kernel.n_queries, kernel.n_neighbors
    kernel.divide(number_of_cells(kernel.n_points), search.seed)
    chosen = np.random.RandomState(search.seed).choice(size[1], min(_N_SAMPLED, size[1]), replace=False)
    rows, begin = np.sort(chosen), time.perf_counter()
    sample = RecallSample(rows, *kernel.true_neighbors(rows))
    seconds = (time.perf_counter() - begin) * size[1] / len(rows)
    setting = kernel.propose(sample, search.recall)
    while setting is not None:
        found, distances = kernel.search(setting, rows)
        recall = float(sample.hits(distances).mean())
        if recall >= search.recall:
            return found, SearchReport("approximate", kernel.engine, *size, recall, *astuple(setting))
        del found
        setting = setting.with_more_probes(kernel.n_points)
    if size[0] * size[1] > kernel.most_pairs:
        warn_user(
            f"The neighbours of {size[1]} samples among {size[0]} are searched by computing all distances: this will "
            f"take about {duration(seconds)}{kernel.exact_memory}. {kernel.advice.format(recall=search.recall)}"
        )
    return None, None
