"""What a fit is made of, for views in memory and for views on disk: the same functions, found in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .. import scaling
from ..backends.disk import DiskViews, DiskWorkspace, format_bytes, unite_graphs
from ..errors import GapviewWarning
from ..factorization import problem
from ..graph import knn as graph
from ..graph.neighbors import Search
from ..persist.checkpoints import checkpointed_search
from ..progress import phase
from ..utils.warnings import warn_user
from ..views import Views
from ..views.trial import draw_from, n_to_try
from . import selection
from .selection import Ground, Represented, Selection, Setting

__all__ = ["DiskTools", "tools_for", "with_union_bridge"]


class MemoryTools:
    """The functions for views in memory."""

    scale_alike = staticmethod(scaling.scale_alike)
    knn_graph = staticmethod(graph.knn_graph)
    build_problem = staticmethod(problem.build_problem)
    prepare = staticmethod(partial(selection.prepare, last=True))
    represent = staticmethod(selection.represent)

    def to_try(self, views: Views, n_clusters: int, seed: int) -> tuple[Views, Views]:
        """Return the samples that decide how views are scaled, which are all, and those on which settings are tried."""
        rows = draw_from(views.mask, n_to_try(n_clusters), seed)
        return views, views if len(rows) == views.n_samples else views[rows]

    def affordable(self, chosen: Selection | None, setting: Setting) -> tuple[Selection | None, Setting]:
        """Give what was chosen, and the setting to fit."""
        return chosen, chosen.setting if chosen else setting


class DiskTools:
    """The same for views on disk, within a memory budget.

    Parameters
    ----------
    workspace : DiskWorkspace
        The plan of the fit, its budget and its scratch files.
    """

    def __init__(self, workspace: DiskWorkspace) -> None:
        self.plan, self.budget = workspace.plan, workspace.budget
        self.scale_alike, self.knn_graph = workspace.scale_alike, workspace.knn_graph
        self.build_problem = workspace.build_problem

    def to_try(self, views: Views, n_clusters: int, seed: int) -> tuple[Views, Views]:
        """Return the samples that decide how views are scaled and those on which settings are tried: the same, read."""
        n_wanted = min(n_to_try(n_clusters), self.plan.n_affordable(self.budget))
        part = views[draw_from(views.mask, n_wanted, seed)]
        return part, part

    def affordable(self, chosen: Selection | None, setting: Setting) -> tuple[Selection | None, Setting]:
        """Give what was chosen, and the setting to fit: the best one with the union bridge, the only one on disk."""
        best = chosen.setting if chosen else setting
        if best.bridge == "union":
            return chosen, best
        text = (
            f"bridge='{best.bridge}' suits these views, but needs {format_bytes(self.plan.in_memory)} of memory, and "
            f"memory_budget gives {format_bytes(self.budget)}: the bridge 'union' is used instead."
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
        """Scale the views and build the union graph; see :func:`gapview.choice.selection.prepare`."""
        with phase("scaling"):
            scaled, scalings = self.scale_alike(views, scales)
        graphs = (self._linked(matrix, count, search) for matrix, count in zip(scaled, n_neighbors, strict=True))
        samples = (views.rows(k) for k in range(views.n_views))
        parts = zip(graphs, samples, view_weights, strict=True)
        with phase("bridge"):
            union = checkpointed_search("union graph", lambda: unite_graphs(parts, views.n_samples), search)
        return Ground(scaled, scaled[0].dtype, scalings, {"union": union}, float("nan"), tuple(view_weights))

    def _linked(self, matrix: Any, n_neighbors: int, search: Search | None) -> Any:
        with phase("neighbours"):
            return self.knn_graph(matrix, n_neighbors, search)

    def represent(
        self, ground: Ground, views: Views, setting: Setting, *, max_iter: int, tol: float, last: bool
    ) -> Represented:
        """Carry one setting through; see :func:`gapview.choice.selection.represent`."""
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
    return DiskTools(views.workspace) if isinstance(views, DiskViews) else MemoryTools()
