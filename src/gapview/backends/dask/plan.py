"""The cost of a fit on a cluster before it is run: tasks, bytes between workers, and memory of a worker.

Tasks are counted as the fit creates them. Bytes and memory rest on two assumptions, which are the worst case: samples
come in random order, so that the neighbours of a sample are on any worker; and within a group of samples, the cells
that a sample visits are in any of the regions of the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...graph.neighbors.search import number_of_cells
from .neighbors import (
    CELL_SAMPLE,
    POINTS_IN_CELL,
    found_bytes,
    number_of_coarse_cells,
    number_of_regions,
    waves_together,
)
from .tasks import Tasks, n_stages, radix_of, send, split_into_waves, spread

_N_QUERIES = 500  # with which the recall is measured
_LINKED = 1.6  # samples that a sample is linked with, in units of the neighbours that are searched
_ID = 4  # bytes
_COPIES = 2  # of rows on their way: those of the sender, and those that have arrived
PROCESS = 285e6  # bytes of a worker process that has run tasks of gapview, without data


@dataclass(frozen=True)
class ClusterPlan:
    """What a fit costs.

    Attributes
    ----------
    tasks : int
        Tasks until the end of the first iteration, without those that read the user's collections.
    bytes_moved : float
        Bytes that workers send each other until then.
    tasks_per_iteration : int
        Tasks of each further iteration.
    bytes_per_iteration : float
        Bytes that workers send each other in it.
    worker_memory : float
        Peak memory of a worker process in bytes.
    share : float
        Bytes of the views on a worker.
    """

    tasks: int
    bytes_moved: float
    tasks_per_iteration: int
    bytes_per_iteration: float
    worker_memory: float
    share: float


def plan_fit(
    n_samples: int,
    n_features: Sequence[int],
    n_workers: int,
    n_blocks: int,
    *,
    n_neighbors: int = 10,
    n_steps: int = 0,
    present: float = 1.0,
    n_components: int = 10,
    n_groups: int = 10,
    itemsize: int = 4,
) -> ClusterPlan:
    """Predict the cost of a fit on a cluster whose neighbours are searched by cells.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    n_features : sequence of int
        Number of features of every view.
    n_workers : int
        Number of worker processes of one thread.
    n_blocks : int
        Number of blocks of samples.
    n_neighbors : int, default=10
        Neighbours of every sample.
    n_steps : int, default=0
        The reach of ``BridgedGRMF(bridge="union")``; 0 for ``GRMF``.
    present : float, default=1.0
        Share of the samples that have a view.
    n_components : int, default=10
        Columns of the codes.
    n_groups : int, default=10
        Number of groups of samples. The more there are, the fewer regions have neighbours of a sample.
    itemsize : int, default=4
        Bytes of a number: 4 for float32, 8 for float64.

    Returns
    -------
    ClusterPlan

    Examples
    --------
    >>> from gapview.backends.dask.plan import plan_fit
    >>> plan = plan_fit(100_000_000, [300], 64, 2000)
    >>> round(plan.share / 1e9, 2)
    1.88
    >>> plan.tasks < 200_000
    True
    """
    fit = _Fit(n_samples, len(n_features), n_workers, n_blocks, n_neighbors, n_steps, present, itemsize)
    views = [_View(fit, width, n_groups) for width in n_features]
    bases = itemsize * n_components * sum(n_features)
    return ClusterPlan(
        tasks=_n_tasks(fit, views),
        bytes_moved=_bytes_moved(fit, views),
        tasks_per_iteration=2 * n_blocks + _n_summed(n_blocks, n_workers) + 1,
        bytes_per_iteration=2.0 * (n_workers - 1) * bases,
        worker_memory=_worker_memory(fit, views),
        share=sum(view.n_points * view.row_bytes for view in views) / n_workers,
    )


@dataclass(frozen=True)
class _Fit:
    n_samples: int
    n_views: int
    n_workers: int
    n_blocks: int
    n_neighbors: int
    n_steps: int
    present: float
    itemsize: int

    @property
    def hops(self) -> float:
        """How often a byte for a random worker is sent: in all stages but the last, a bundle may stay where it is."""
        return (n_stages(self.n_workers) - 1) * (1 - 1 / radix_of(self.n_workers)) + 1 - 1 / self.n_workers

    @property
    def n_linked(self) -> float:
        """With how many samples a sample is linked in a graph."""
        return _LINKED * self.n_neighbors

    def n_needed(self, view: _View) -> float:
        """Return how many rows of a view all blocks need of all blocks; for a bridge, rows of all samples."""
        n_linked = self.n_linked * (self.present * self.n_views if self.n_steps else 1)
        n_rows = self.n_samples if self.n_steps else view.n_points
        return self.n_blocks * n_rows * float(1 - (1 - 1 / self.n_blocks) ** n_linked)


class _View:
    """Sizes of the search for neighbours in one view, and of what is sent for it."""

    def __init__(self, fit: _Fit, width: int, n_groups: int) -> None:
        self.n_workers, self.n_points = fit.n_workers, fit.n_samples * fit.present
        self.width, self.row_bytes = width, width * fit.itemsize
        self.n_cells = max(number_of_cells(int(self.n_points)), int(self.n_points) // POINTS_IN_CELL)
        self.n_regions = number_of_regions(fit.n_blocks, fit.n_workers)
        self.n_coarse = number_of_coarse_cells(self.n_cells, self.n_regions)
        # Cells visited for a recall of 0.95, as measured on made data of 20 dimensions
        self.n_probes = max(1, min(self.n_cells // 2, round(10 * float(self.n_points / 2e4) ** 0.165)))
        # A sample visits random ones of the regions that its group is divided into
        of_group = max(1.0, self.n_regions / n_groups)
        self.n_visits = of_group * float(1 - (1 - 1 / of_group) ** self.n_probes)
        self.visit_bytes = self.row_bytes + 8 + _ID * self.n_probes
        self.found_bytes = found_bytes(fit.n_neighbors)
        self.n_search_waves = self.n_waves(self.n_regions, self.n_probes * self.n_points)

    @property
    def n_merges(self) -> int:
        """How often the blocks receive what was found in regions."""
        n_bytes = self.n_probes * self.n_points / self.n_workers * self.found_bytes
        return len(waves_together([[]] * self.n_search_waves, n_bytes))

    def n_waves(self, n_receivers: int, n_rows: float) -> int:
        """Return in how many waves rows are sent."""
        members = list(spread(range(self.n_workers), n_receivers).values())
        return len(split_into_waves(members, n_rows * self.row_bytes / self.n_workers))


# -- tasks -----------------------------------------------------------------------------------------------------


class _CountedTasks(Tasks):
    """Count tasks instead of running them."""

    def __init__(self) -> None:
        super().__init__()
        self.n_tasks = 0

    def map(self, name: str, function: Any, *lists: Sequence[Any], **common: Any) -> list[Any]:
        """Return nothing for each item."""
        self.n_tasks += len(lists[0])
        return [None] * len(lists[0])


def _n_sent(n_workers: int) -> int:
    """Return the number of tasks by which the blocks of all workers send each other parts once."""
    counted, homes = _CountedTasks(), spread(range(n_workers), n_workers)
    send(counted, "", list, homes, homes, [None] * n_workers)
    return counted.n_tasks


def _n_summed(n_parts: int, n_groups: int | None = None) -> int:
    """Return the number of tasks that combine parts, those of each group first."""
    counted = _CountedTasks()
    counted.reduce("", sum, [None] * n_parts, None if n_groups is None else [[0]] * n_groups)
    return counted.n_tasks


def _n_tasks(fit: _Fit, views: Sequence[_View]) -> int:
    n_blocks, n_workers, n_steps = fit.n_blocks, fit.n_workers, fit.n_steps
    sent, by_worker, by_block = _n_sent(n_workers), _n_summed(n_blocks, n_workers), _n_summed(n_blocks)
    # Blocks are read, described, scaled and joined, and the first iteration; sums of the start and of this iteration
    n_tasks = (16 + (5 if n_steps else 2)) * n_blocks + (5 if n_steps else 3) * by_worker + 4
    n_scalings = 4 if n_steps else 1
    for view in views:
        n_tasks += n_scalings * (n_blocks + by_block)
        # Neighbours: the cells of regions, the search in them, what one task does; true neighbours and their cells
        n_tasks += (11 + view.n_merges) * n_blocks + 2 * view.n_regions + 6 + 2 * by_worker
        n_tasks += (2 + view.n_merges + view.n_search_waves) * sent
        n_waves = view.n_waves(n_blocks, fit.n_needed(view))
        if n_steps:
            n_tasks += (2 + n_steps) * n_blocks + n_steps * n_waves * sent
        else:
            n_tasks += 3 * n_blocks + n_workers + (1 + n_waves) * sent
    return n_tasks + (n_workers + 3 * sent if n_steps else 0)


# -- bytes between workers -------------------------------------------------------------------------------------


def _bytes_moved(fit: _Fit, views: Sequence[_View]) -> float:
    others, moved = fit.n_workers - 1, 0.0
    for view in views:
        n_queries = min(_N_QUERIES, view.n_points)
        drawn = sum(min(view.n_points, CELL_SAMPLE * count) for count in (view.n_cells, view.n_coarse))
        moved += (drawn + view.n_cells) * 4 * view.width * fit.hops
        moved += others * (view.n_cells + 3 * view.n_coarse) * 4 * view.width  # the centres, to every worker
        moved += others * n_queries * (40 * fit.n_neighbors + view.row_bytes)
        edges = 4 * _ID * fit.n_neighbors  # in both directions
        moved += view.n_points * (view.n_visits * (view.visit_bytes + view.found_bytes) + edges) * fit.hops
        sent = fit.n_steps * (view.row_bytes + 2 * fit.itemsize) if fit.n_steps else view.row_bytes + _ID
        moved += fit.n_needed(view) * sent * fit.hops
    if fit.n_steps:
        moved += fit.n_needed(views[0]) * (_ID + (1 + len(views)) * fit.itemsize) * fit.hops
    return moved


# -- memory ----------------------------------------------------------------------------------------------------


def _worker_memory(fit: _Fit, views: Sequence[_View]) -> float:
    """Return the largest of what a worker holds while it searches neighbours and while it smooths each view."""
    scaled = sum(view.n_points * view.row_bytes for view in views) / fit.n_workers
    graphs, held, peaks = 0.0, 0.0, [2 * scaled]
    for view in views:
        points = view.n_points / fit.n_workers
        visits = view.visit_bytes / view.n_search_waves + view.found_bytes / view.n_merges
        peaks.append(scaled + graphs + points * (_COPIES * view.n_visits * visits + 2 * view.found_bytes))
        graphs += points * fit.n_linked * (_ID + fit.itemsize)
    for view in views:
        rows, n_needed = fit.n_samples / fit.n_workers, fit.n_needed(view)
        wave = n_needed * view.row_bytes / fit.n_workers / view.n_waves(fit.n_blocks, n_needed)
        wanted = n_needed * _ID / fit.n_workers
        smoothed = view.n_points / fit.n_workers * view.row_bytes
        walked = 2 * rows * (view.row_bytes + 2 * fit.itemsize) if fit.n_steps else smoothed
        peaks.append(scaled + graphs + held + wanted + walked + _COPIES * wave)
        held += rows * view.row_bytes if fit.n_steps else smoothed
    return PROCESS + max(peaks)
