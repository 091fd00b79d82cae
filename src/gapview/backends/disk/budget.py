"""The memory budget of a fit: how it is written, and what a fit needs of memory and of disk."""

from __future__ import annotations

import math
import re
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from ...compute.engine import NumpyEngine, single_threaded_blas
from ...errors import DataFileError, ParameterError, ParameterTypeError
from ...factorization.starts import MOST_FEATURES, ROWS_AT_A_TIME
from ...graph.donors import N_DONORS, n_candidates
from ...graph.imputation import N_VALIDATED
from ...graph.knn import resolve_n_neighbors
from ...scaling import is_small_sparse
from ...utils.messages import shown
from ...views import Views
from ...views.cells import TRIED_PER_CLUSTER

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_TEXT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([kmgt]?)(i?)b\s*", re.IGNORECASE)
_ALLOWED = "None, a finite number of bytes above 0, or text such as '2GB' or '500 MiB'"

# Measured: memory of Python, scikit-learn and BLAS besides arrays, and freed memory that the allocator keeps
_FIXED, _FIXED_PER_THREAD = 6 * 10**6, 8 * 10**6  # the second for every thread but the first
_SLACK = 1.15

_LEAST_TRIED = 500  # samples on which settings are tried
_LOOKED_AT = 100  # samples by which scales are chosen if no settings are tried


def read_budget(budget: Any) -> int | None:
    """Return a memory budget in bytes, from a number or from text with a unit; None is no budget.

    Examples
    --------
    >>> from gapview.backends.disk.budget import read_budget
    >>> read_budget("2GB"), read_budget("1.5 GiB"), read_budget(5e8), read_budget(None)
    (2000000000, 1610612736, 500000000, None)
    """
    if budget is None:
        return None
    number = math.inf
    if isinstance(budget, str):
        found = _TEXT.fullmatch(budget)
        number = float(found[1]) * (1024 if found[3] else 1000) ** _POWERS[found[2].lower()] if found else 0.0
    elif isinstance(budget, Real) and not isinstance(budget, bool | np.timedelta64):
        with suppress(OverflowError):  # of huge integers
            number = float(budget)
    else:
        raise ParameterTypeError(f"memory_budget must be {_ALLOWED}; got {shown(budget)}.")
    if not 1 <= number < float("inf"):  # also true of NaN
        raise ParameterError(f"memory_budget must be {_ALLOWED}; got {shown(budget)}.")
    return int(number)


def format_bytes(n_bytes: float) -> str:
    """Return a number of bytes as text with two digits and a unit, rounded up.

    Examples
    --------
    >>> from gapview.backends.disk.budget import format_bytes
    >>> format_bytes(31_000_000_000), format_bytes(1_210_000), format_bytes(812)
    ('31 GB', '1.3 MB', '812 bytes')
    """
    size, units = float(n_bytes), ["bytes", "kB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:
        size, units = size / 1000, units[1:]
    if units[0] == "bytes" or size >= 10:
        return f"{math.ceil(size)} {units[0]}"
    return f"{math.ceil(size * 10) / 10:g} {units[0]}"


@dataclass(frozen=True)
class FitSize:
    """The sizes that determine the memory of a fit."""

    n_samples: int
    n_present: tuple[int, ...]  # per view
    n_features: tuple[int, ...]  # per view
    itemsize: int  # bytes of a number in the most precise view
    n_clusters: int
    n_components: int
    n_neighbors: int
    n_starts: int = 1
    is_bridged: bool = False
    starts_from_data: bool = False
    tries_settings: bool = False
    is_joint: bool = False  # whether missing views are completed
    is_prepared: bool = False  # whether views are transformed by their kinds, beside those given


def fit_size(model: Any, views: Views) -> FitSize:
    """Return the sizes that determine the memory of a fit of the model to the views.

    Examples
    --------
    >>> from gapview import GRMF, Views
    >>> from gapview.datasets import make_views
    >>> from gapview.backends.disk.budget import fit_size, plan_memory
    >>> views = make_views(n_samples=200, n_clusters=3, random_state=0).views
    >>> plan_memory(fit_size(GRMF(3), views)).in_memory > 200 * 50 * 8
    True
    """
    is_bridged = model.is_bridged
    n_clusters = model.max_clusters if isinstance(model.n_clusters, str) else model.n_clusters
    by_rule = model.n_components is None or isinstance(model.n_components, str)
    init = getattr(model, "init", "data")
    return FitSize(
        n_samples=views.n_samples,
        n_present=tuple(int(matrix.shape[0]) for matrix in views.matrices),
        n_features=tuple(_width(matrix) for matrix in views.matrices),
        itemsize=max(matrix.dtype.itemsize for matrix in views.matrices),
        n_clusters=n_clusters,
        n_components=n_clusters * (1 + is_bridged) if by_rule else model.n_components,
        n_neighbors=_n_neighbors(model, views, n_clusters),
        n_starts=model.n_init if isinstance(init, str) and init == "random" else 1,
        is_bridged=is_bridged,
        starts_from_data=isinstance(init, str) and init == "data",
        tries_settings=is_bridged and "auto" in (model.selection, str(model.n_clusters)),
        is_joint=is_bridged and model.bridge != "union",
        is_prepared=model.kind is not None or model.n_top_features is not None,
    )


def _width(matrix: Any) -> int:
    """Return the number of features; for a sparse view, the number of dense features of the same size in bytes."""
    if not sparse.issparse(matrix) or is_small_sparse(matrix):
        return int(matrix.shape[1])
    return -int(-matrix.nnz * (matrix.dtype.itemsize + 4) // (matrix.shape[0] * matrix.dtype.itemsize))


def _n_neighbors(model: Any, views: Views, n_clusters: int) -> int:
    given = getattr(model, "graph", None)
    if given is None:
        return max(resolve_n_neighbors(model.n_neighbors, views, n_clusters))
    # The graphs are checked later, where they are read
    graphs = list(given.values()) if isinstance(given, Mapping) else given if isinstance(given, list | tuple) else []
    sizes = [graph.nnz if sparse.issparse(graph) else getattr(graph, "size", 0) for graph in graphs]
    return -(-max(sizes, default=0) // (2 * min(int(matrix.shape[0]) for matrix in views.matrices)))


@dataclass(frozen=True)
class MemoryPlan:
    """The memory and disk space of a fit, in bytes.

    Attributes
    ----------
    in_memory : int
        Memory with the views in memory.
    least : int
        Least memory with the views on disk.
    scratch : int
        Disk space for scratch files with the views on disk.
    kept : dict of str to int
        For every stage of a fit on disk, the memory that does not depend on the budget: codes, graphs and other arrays
        that grow with the number of samples but not of features. Blocks of the views use the rest of the budget.
    """

    size: FitSize
    in_memory: int
    least: int
    scratch: int
    kept: dict[str, int]

    def spare(self, stage: str, budget: int) -> int:
        """Return the memory of a stage that is left for blocks of the views."""
        return round(budget / _SLACK) - _fixed_bytes() - self.kept[stage]

    def tile_widths(self, budget: int) -> list[int]:
        """Return, per view, the number of columns to process at a time in stages that need all rows."""
        spare = self.spare("smoothing", budget)
        counts = zip(self.size.n_present, self.size.n_features, strict=True)
        return [min(width, max(1, spare // _column_bytes(self.size, n_rows))) for n_rows, width in counts]

    def n_affordable(self, budget: int) -> int:
        """Return the number of samples on which settings can be tried within the budget."""
        return self.spare("settings", budget) // _sample_bytes(self.size)

    def check(self, budget: int) -> None:
        """Check, before the fit starts, that the budget and the free disk space are enough for a fit on disk.

        Raises
        ------
        ParameterError
            If the budget is too small.
        DataFileError
            If there is no room for scratch files.
        """
        if budget < self.least:
            raise ParameterError(
                f"memory_budget: this needs {format_bytes(self.least)}, you gave {format_bytes(budget)}: use a larger "
                f"budget, {self._advice()}. Even with the views on disk, arrays that grow with the number of samples, "
                f"{self.size.n_samples}, have to be in memory: neighbours, codes, confidence."
            )
        folder = tempfile.gettempdir()
        free = shutil.disk_usage(folder).free
        if free < self.scratch:
            raise DataFileError(
                f"The fit needs {format_bytes(self.scratch)} for scratch files in {folder!r}, where "
                f"{format_bytes(free)} are free. Make room there, or set the environment variable TMPDIR to a folder "
                "on a larger disk."
            )

    def _advice(self) -> str:
        """Return the parameters that reduce the largest part."""
        size = self.size
        ways = ["fewer n_components" if size.n_components > size.n_clusters else "fewer n_clusters"]
        if size.n_neighbors > 2:
            ways.append("fewer n_neighbors")
        if size.is_joint and plan_memory(replace(size, is_joint=False)).least < self.least:
            ways.append("bridge='union'")
        if size.n_starts > 1:
            ways.append("n_init=1")
        if size.itemsize > 4:
            ways.append("files of float32")
        return ", ".join(ways[:-1]) + f" or {ways[-1]}" if len(ways) > 1 else ways[0]


def check_memory_for_parts(model: Any, share: float) -> None:
    """Check that fits to resamples of the training data, which are held in memory, stay within the model's budget.

    Raises
    ------
    ParameterError
        If a fit to a resample needs more memory.
    """
    budget = read_budget(model.memory_budget)
    if budget is None:
        return
    size = fit_size(model, model.views_)
    n_present = tuple(math.ceil(share * count) for count in size.n_present)
    plan = plan_memory(replace(size, n_samples=math.ceil(share * size.n_samples), n_present=n_present))
    if plan.in_memory > budget:
        raise ParameterError(
            f"memory_budget: cluster_stability holds one resample after the other in memory: this needs "
            f"{format_bytes(plan.in_memory)}, you gave {format_bytes(budget)}: use a larger budget, with "
            "model.set_params(memory_budget=...), which needs no other fit, or a smaller share."
        )


def plan_memory(size: FitSize) -> MemoryPlan:
    """Compute the memory and disk space that a fit needs.

    Examples
    --------
    >>> from gapview.backends.disk.budget import FitSize, plan_memory
    >>> size = FitSize(1_000_000, (500_000, 500_000), (240, 76), 4, n_clusters=10, n_components=10, n_neighbors=10)
    >>> plan = plan_memory(size)
    >>> plan.least < plan.in_memory
    True
    """
    kept = _kept(size)
    least = dict(kept)
    least["neighbours"] += max(2**21, 1000 * max(size.n_features) * size.itemsize)
    least["bridge"] += size.is_joint * max(2**21, 1000 * (sum(size.n_features) + 1) * size.itemsize)
    least["smoothing"] += _column_bytes(size, max(size.n_present))
    if size.is_bridged:
        n_tried = max(_LEAST_TRIED, TRIED_PER_CLUSTER * size.n_clusters) if size.tries_settings else _LOOKED_AT
        least["settings"] += min(size.n_samples, n_tried) * _sample_bytes(size)
    rows = sum(n * width for n, width in zip(size.n_present, size.n_features, strict=True)) * size.itemsize
    smoothed = size.n_samples * sum(size.n_features) * size.itemsize if size.is_bridged else rows
    # With a bridge: imputed rows, and the same as points and as queries
    in_memory = max(kept.values()) + (3 * rows + 5 * smoothed if size.is_bridged else 4 * rows)
    in_memory += 2 * rows * size.is_prepared
    whole, on_disk = (math.ceil((need + _fixed_bytes()) * _SLACK) for need in (in_memory, max(least.values())))
    return MemoryPlan(size, whole, on_disk, rows + 2 * smoothed + 3 * smoothed * size.is_joint, kept)


def _kept(size: FitSize) -> dict[str, int]:
    """Return, for every stage, the bytes of arrays that grow with the number of samples."""
    n, s, n_views = size.n_samples, size.itemsize, len(size.n_present)
    n_rows, most = sum(size.n_present), max(size.n_present)
    n_codes = n * n_views if size.is_bridged else n_rows
    of_codes, of_samples = size.n_components * s * n_codes, size.n_components * s * n
    always = n * (16 + n_views) + 8 * n_rows
    edges = 2 * size.n_neighbors * n_rows  # at most: if no two samples are neighbours of each other
    joint_edges = 2 * size.n_neighbors * n * size.is_joint
    edges_of_view = 2 * size.n_neighbors * most
    graphs = always + (edges + joint_edges) * (4 + s)
    indexed = graphs + n_codes * (8 + s) + 8 * n
    runs = size.n_starts * (2 * of_codes + of_samples) + (size.n_starts + 1) * (of_codes + of_samples)
    of_clusters = s * n * size.n_clusters
    return {
        "reading": always + 2 * 16 * n * n_views,
        "settings": always + _start_bytes(size),
        "neighbours": graphs + edges_of_view * 10 + 40 * most,
        "bridge": (graphs + _joint_bytes(size) + 2 * joint_edges * (8 + s)) * size.is_joint,
        "smoothing": indexed + (edges + joint_edges) * (4 + s) * size.is_bridged + edges_of_view * (4 + s) + 24 * most,
        "factorisation": indexed + runs + _loop_bytes(size) + _start_bytes(size),
        "labels": indexed + of_codes + 5 * (of_samples + of_clusters) + 36 * (edges + joint_edges) * size.is_bridged,
    }


def _joint_bytes(size: FitSize) -> int:
    """Return the memory of samples, candidates and donors while missing views are completed."""
    n_views, n = len(size.n_present), size.n_samples
    asked = n - min(size.n_present) + min(n, N_VALIDATED)
    candidates = n_candidates(n_views - 1) * (n_views - 1)
    of_views = 24 * n * n_views  # samples, rows and variances
    return of_views + asked * (4 * candidates + 8 * candidates // max(1, n_views - 1) + 4 * N_DONORS + 40)


def _n_threads() -> int:
    with single_threaded_blas() as n_threads:
        return n_threads


def _fixed_bytes() -> int:
    return _FIXED + _FIXED_PER_THREAD * (_n_threads() - 1)


def _start_bytes(size: FitSize) -> int:
    """Return the memory of the start from the data: matrices of features by features, if they are computed."""
    n_features = sum(size.n_features)
    if not size.starts_from_data or n_features > MOST_FEATURES:
        return 0
    matrices = 16 * n_features**2 * (_n_threads() + 2)
    n_rows = min(_n_in_blocks(size), _n_threads() * ROWS_AT_A_TIME)
    return matrices + 5 * n_rows * n_features * size.itemsize


def _loop_bytes(size: FitSize) -> int:
    """Return the memory of the blocks of an iteration: per thread the latest of each view, and the next of one."""
    return _n_in_blocks(size) * (sum(size.n_features) + max(size.n_features)) * size.itemsize


def _n_in_blocks(size: FitSize) -> int:
    """Return the number of samples that all threads process at a time."""
    return _n_threads() * NumpyEngine().rows_at_a_time(sum(size.n_features) * size.itemsize)


def _column_bytes(size: FitSize, n_rows: int) -> int:
    """Return the memory of one column of a view while it is scaled, or multiplied by a graph."""
    scaling = 3 * n_rows * size.itemsize + 32 * min(n_rows, 2**16)
    return max(scaling, 6 * size.n_samples * size.itemsize)


def _sample_bytes(size: FitSize) -> int:
    """Return the memory of one sample while settings are tried."""
    n_copies, per_component = (12, 200) if size.tries_settings else (8, 0)
    return n_copies * sum(size.n_features) * size.itemsize + per_component * size.n_components
