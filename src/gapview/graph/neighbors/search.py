"""Settings of a search for neighbours, and the report on it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ...utils.messages import check_choice, check_integer, check_real

# Pairs of points and queries up to which all distances are computed: 20,000 × 20,000 on a processor. A GPU computes
# 100,000 × 100,000 in less time than it takes to build cells.
EXACT_PAIRS = 20_000**2
EXACT_PAIRS_GPU = 100_000**2


@dataclass(frozen=True)
class SearchReport:
    """Report on one search.

    Attributes
    ----------
    method : {"exact", "approximate"}
        The method used, which may differ from the one requested.
    engine : {"scikit-learn", "faiss", "torch"}
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
