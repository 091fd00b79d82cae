"""What a fit is made of, for views in memory and for views on disk: the same functions, found in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from .. import graph, problem, scaling, selection
from .._warnings import warn_user
from ..checkpoints import remember_search
from ..errors import GapviewWarning
from ..graph import comparable_rows, resolve_n_neighbors
from ..neighbors import Search
from ..problem import Problem
from ..progress import phase
from ..selection import Ground, Represented, Selection, Setting
from ..views import Views
from ._budget import in_words
from ._graphs import link_rows, united
from ._plan import MemoryPlan
from ._problem import build_problem
from ._scaling import lengths_of, scale_alike
from ._scratch import Scratch, ScratchMatrix
from ._search import nearest_rows
from ._views import DiskViews

__all__ = ["DiskTools", "tools_for", "with_union_bridge"]

_N_OF_EVERY_VIEW = 50  # samples of a view among those on which settings are tried


class MemoryTools:
    """The functions for views in memory."""

    scale_alike = staticmethod(scaling.scale_alike)
    knn_graph = staticmethod(graph.knn_graph)
    build_problem = staticmethod(problem.build_problem)
    prepare = staticmethod(partial(selection.prepare, last=True))
    represent = staticmethod(selection.represent)

    def to_try(self, views: Views, n_neighbors: int | str, seed: int) -> Views:
        """Give the samples from which settings may be chosen: all."""
        return views

    def candidates(self, settings: list[Setting], views: Views, n_neighbors: int | str, n_clusters: int) -> Any:
        """Give the settings to choose from."""
        return settings

    def affordable(self, chosen: Selection | None, setting: Setting) -> tuple[Selection | None, Setting]:
        """Give what was chosen, and the setting to fit."""
        return chosen, chosen.setting if chosen else setting


class DiskTools:
    """The same for views on disk, within a budget.

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
        # A column of lengths has the same lengths as the rows they were taken from
        rows = comparable_rows(lengths_of(matrix, self._block_bytes())[:, None])
        count = min(n_neighbors, len(rows) - 1)
        if count < 1:
            return sparse.csr_array((len(matrix), len(matrix)), dtype=matrix.dtype)
        n_bytes = self.plan.spare("neighbours", self.budget)
        found = nearest_rows(matrix, rows, count, search or Search(), n_bytes, self.scratch)
        return link_rows(rows, found, len(matrix), matrix.dtype)

    def build_problem(self, features: Any, graphs: Any, targets: Any, n_samples: int) -> Problem:
        """Set up the problem; see :func:`gapview.problem.build_problem`."""
        return build_problem(features, graphs, targets, n_samples, self.scratch)

    def _block_bytes(self) -> int:
        """Say how large a block of rows may be that is worked on in double precision, with copies."""
        return min(2**22, max(2**16, self.plan.spare("reading", self.budget) // 8))

    # -- for bridges ---------------------------------------------------------------------------------------

    def to_try(self, views: Views, n_neighbors: int | str, seed: int) -> Views:
        """Draw samples from which settings may be chosen, and read them into memory."""
        order = np.random.RandomState(seed).permutation(views.n_samples)
        chosen = np.zeros(views.n_samples, dtype=bool)
        chosen[order[: self.plan.n_tried(self.budget)]] = True
        least = _N_OF_EVERY_VIEW if isinstance(n_neighbors, str) else n_neighbors + 1
        for having in views.mask.T:
            chosen[order[having[order]][:least]] = True
        return views[np.flatnonzero(chosen)]

    def candidates(
        self, settings: list[Setting], views: Views, n_neighbors: int | str, n_clusters: int
    ) -> list[Setting]:
        """Give the settings to choose from the neighbours that all samples ask for, not those that were drawn."""
        counts = tuple(resolve_n_neighbors(n_neighbors, views, n_clusters))
        return [replace(setting, n_neighbors=counts) for setting in settings]

    def affordable(self, chosen: Selection | None, setting: Setting) -> tuple[Selection | None, Setting]:
        """Give what was chosen, and the setting to fit: the best one with the union bridge, the only one on disk."""
        best = chosen.setting if chosen else setting
        if best.bridge == "union":
            return chosen, best
        text = (
            f"bridge='{best.bridge}' suits these views, but needs {in_words(self.plan.in_memory)} of memory, and "
            f"memory_budget gives {in_words(self.budget)}: the bridge 'union' is used instead."
        )
        return with_union_bridge(
            chosen, setting, text, "Its groups may differ; give a larger budget, or bridge='union'."
        )

    def prepare(
        self,
        views: Views,
        scales: Sequence[str | None],
        n_neighbors: Sequence[int],
        view_weights: Sequence[float],
        bridges: Sequence[str],
        search: Search | None = None,
    ) -> Ground:
        """Scale the views and build the union graph; see :func:`gapview.selection.prepare`."""
        with phase("scaling"):
            scaled, scalings = self.scale_alike(views, scales)
        graphs = (self._linked(matrix, count, search) for matrix, count in zip(scaled, n_neighbors, strict=True))
        samples = (views.rows(k) for k in range(views.n_views))
        parts = zip(graphs, samples, view_weights, strict=True)
        with phase("bridge"):
            union = remember_search("union graph", lambda: united(parts, views.n_samples), search)
        return Ground(scaled, scaled[0].dtype, scalings, {"union": union}, float("nan"), tuple(view_weights))

    def _linked(self, matrix: ScratchMatrix, n_neighbors: int, search: Search | None) -> sparse.csr_array:
        with phase("neighbours"):
            return self.knn_graph(matrix, n_neighbors, search)

    def represent(
        self, ground: Ground, views: Views, setting: Setting, *, max_iter: int, tol: float, last: bool
    ) -> Represented:
        """Carry one setting through; see :func:`gapview.selection.represent`."""
        return selection.represent(
            ground, views, setting, max_iter=max_iter, tol=tol, last=last, build=self.build_problem
        )


def with_union_bridge(
    chosen: Selection | None, setting: Setting, text: str, advice: str
) -> tuple[Selection | None, Setting]:
    """Give the best setting with the union bridge, where no other can be built; ``text`` says why, as a warning."""
    best = chosen.setting if chosen else setting
    if best.bridge == "union":
        return chosen, best
    warn_user(f"{text} {advice}", GapviewWarning)
    if chosen is None:
        return None, replace(best, bridge="union")
    scores = [trial.score if trial.setting.bridge == "union" else -np.inf for trial in chosen.trials]
    chosen = replace(chosen, chosen=int(np.argmax(scores)), reason=f"{chosen.reason} But {text}")
    return chosen, chosen.setting


def tools_for(views: Views) -> Any:
    """Give what a fit on these views is made with."""
    return views.tools if isinstance(views, DiskViews) else MemoryTools()
