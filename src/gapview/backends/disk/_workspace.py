"""The parts of a fit for views on disk."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ...factorization.problem import Problem
from ...graph.knn import comparable_rows
from ...graph.neighbors import Search
from ...views import Views
from ._graphs import link_rows
from ._plan import MemoryPlan
from ._problem import build_problem
from ._scaling import lengths_of, scale_alike
from ._scratch import Scratch, ScratchMatrix
from ._search import nearest_rows

__all__ = ["DiskWorkspace"]


class DiskWorkspace:
    """Scaling, neighbour graphs and the problem for views on disk, within a memory budget.

    Parameters
    ----------
    plan : MemoryPlan
        What the fit needs.
    budget : int
        What it may take, in bytes.
    scratch : Scratch
        Where to write what does not fit.
    """

    def __init__(self, plan: MemoryPlan, budget: int, scratch: Scratch) -> None:
        self.plan, self.budget, self.scratch = plan, budget, scratch

    def scale_alike(self, views: Views, scale: Any) -> tuple[list[ScratchMatrix], list[Any]]:
        """Scale every view; see :func:`gapview.scaling.scale_alike`."""
        return scale_alike(views, scale, self.plan.tile_widths(self.budget), self._block_bytes(), self.scratch)

    def knn_graph(self, matrix: ScratchMatrix, n_neighbors: int, search: Search | None = None) -> sparse.csr_array:
        """Build the neighbour graph of a view; see :func:`gapview.graph.knn_graph`."""
        # A column of lengths has the same lengths as the rows; infinite ones would give NaN
        lengths = np.minimum(lengths_of(matrix, self._block_bytes()), np.finfo(matrix.dtype).max)
        rows = comparable_rows(lengths[:, None])
        count = min(n_neighbors, len(rows) - 1)
        if count < 1:
            return sparse.csr_array((len(matrix), len(matrix)), dtype=matrix.dtype)
        n_bytes = self.plan.spare("neighbours", self.budget)
        found = nearest_rows(matrix, rows, count, search or Search(), n_bytes, self.scratch)
        return link_rows(rows, found, len(matrix), matrix.dtype)

    def build_problem(self, features: Any, graphs: Any, targets: Any, n_samples: int) -> Problem:
        """Set up the problem; see :func:`gapview.factorization.problem.build_problem`."""
        return build_problem(features, graphs, targets, n_samples, self.scratch)

    def _block_bytes(self) -> int:
        """Say how large a block of rows may be that is worked on in double precision, with copies."""
        return min(2**22, max(2**16, self.plan.spare("reading", self.budget) // 8))
