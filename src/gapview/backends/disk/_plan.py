"""What a fit needs of memory and of disk: the one place where that is reckoned."""

from __future__ import annotations

import math
import shutil
import tempfile
from dataclasses import dataclass

from ...compute import NumpyEngine, single_threaded_blas
from ...errors import DataFileError, ParameterError
from ...factorization.starts import MOST_FEATURES, ROWS_AT_A_TIME
from ...views.trial import TRIED_PER_CLUSTER
from ._budget import in_words

__all__ = ["FitSize", "MemoryPlan", "plan_memory"]

# Measured: what Python, scikit-learn and BLAS take besides arrays, and what the allocator keeps of what was let go
_FIXED, _FIXED_PER_THREAD = 6 * 10**6, 8 * 10**6  # the second for every thread but the first
_SLACK = 1.15

_LEAST_TRIED = 500  # samples on which settings are tried
_LOOKED_AT = 100  # samples that say how to scale views, where nothing is tried


@dataclass(frozen=True)
class FitSize:
    """Everything that the memory of a fit depends on."""

    n_samples: int
    n_present: tuple[int, ...]  # for every view
    n_features: tuple[int, ...]  # for every view
    itemsize: int  # bytes of a number in the most precise view
    n_clusters: int
    n_components: int
    n_neighbors: int
    n_starts: int = 1
    is_bridged: bool = False
    starts_from_data: bool = False
    tries_settings: bool = False


@dataclass(frozen=True)
class MemoryPlan:
    """What a fit takes, in bytes.

    Attributes
    ----------
    in_memory : int
        With the views in memory.
    least : int
        The least with the views on disk.
    scratch : int
        On disk, with the views on disk.
    kept : dict of str to int
        For every stage of a fit on disk, what has to be in memory whatever the budget: codes, graphs and the like,
        which grow with the number of samples but not of features. Blocks of the views share the rest.
    """

    size: FitSize
    in_memory: int
    least: int
    scratch: int
    kept: dict[str, int]

    def spare(self, stage: str, budget: int) -> int:
        """Say what is left in a stage for blocks of the views."""
        return round(budget / _SLACK) - _fixed_bytes() - self.kept[stage]

    def tile_widths(self, budget: int) -> list[int]:
        """Say how many columns of every view to take at a time where all rows are needed."""
        spare = self.spare("smoothing", budget)
        counts = zip(self.size.n_present, self.size.n_features, strict=True)
        return [min(width, max(1, spare // _column_bytes(self.size, n_rows))) for n_rows, width in counts]

    def n_affordable(self, budget: int) -> int:
        """Return the number of samples on which settings can be tried within the budget."""
        return self.spare("settings", budget) // _sample_bytes(self.size)

    def check(self, budget: int) -> None:
        """Refuse a budget that cannot be met, and a disk that is too full, before anything is done.

        Raises
        ------
        ParameterError
            If the budget is too small.
        DataFileError
            If there is no room for scratch files.
        """
        if budget < self.least:
            raise ParameterError(
                f"memory_budget: this needs {in_words(self.least)}, you gave {in_words(budget)}: use a larger budget, "
                f"{self._advice()}. Even with the views left on disk, what grows with the number of samples, "
                f"{self.size.n_samples}, has to be in memory: neighbours, codes, confidence."
            )
        folder = tempfile.gettempdir()
        free = shutil.disk_usage(folder).free
        if free < self.scratch:
            raise DataFileError(
                f"The fit needs {in_words(self.scratch)} for scratch files in {folder!r}, where {in_words(free)} are "
                "free. Make room there, or set the environment variable TMPDIR to a folder on a larger disk."
            )

    def _advice(self) -> str:
        """Name what would make the largest part smaller."""
        size = self.size
        ways = ["fewer n_components" if size.n_components > size.n_clusters else "fewer n_clusters"]
        if size.n_neighbors > 2:
            ways.append("fewer n_neighbors")
        if size.n_starts > 1:
            ways.append("n_init=1")
        if size.itemsize > 4:
            ways.append("files of float32")
        return ", ".join(ways[:-1]) + f" or {ways[-1]}" if len(ways) > 1 else ways[0]


def plan_memory(size: FitSize) -> MemoryPlan:
    """Reckon what a fit needs.

    Examples
    --------
    >>> from gapview.backends.disk import FitSize, plan_memory
    >>> size = FitSize(1_000_000, (500_000, 500_000), (240, 76), 4, n_clusters=10, n_components=10, n_neighbors=10)
    >>> plan = plan_memory(size)
    >>> plan.least < plan.in_memory
    True
    """
    kept = _kept(size)
    least = {stage: kept[stage] for stage in kept}
    n_most, widest = max(size.n_present), max(size.n_features) * size.itemsize
    least["neighbours"] += max(2**21, 1000 * widest)
    least["smoothing"] += _column_bytes(size, n_most)
    if size.is_bridged:
        n_tried = max(_LEAST_TRIED, TRIED_PER_CLUSTER * size.n_clusters) if size.tries_settings else _LOOKED_AT
        least["settings"] += min(size.n_samples, n_tried) * _sample_bytes(size)
    needed = math.ceil((max(least.values()) + _fixed_bytes()) * _SLACK)
    rows = sum(n * width for n, width in zip(size.n_present, size.n_features, strict=True)) * size.itemsize
    smoothed = size.n_samples * sum(size.n_features) * size.itemsize if size.is_bridged else rows
    in_memory = math.ceil((_in_memory(size, rows, smoothed) + _fixed_bytes()) * _SLACK)
    return MemoryPlan(size, in_memory, needed, rows + 2 * smoothed, kept)


def _kept(size: FitSize) -> dict[str, int]:
    """Add up for every stage what grows with the samples."""
    n, s, n_views = size.n_samples, size.itemsize, len(size.n_present)
    n_rows, most = sum(size.n_present), max(size.n_present)
    n_codes = n * n_views if size.is_bridged else n_rows
    of_codes, of_samples = size.n_components * s * n_codes, size.n_components * s * n
    always = n * (16 + n_views) + 8 * n_rows
    edges = 2 * size.n_neighbors * n_rows  # at most: no two are each other's neighbours
    edges_of_view = 2 * size.n_neighbors * most
    graphs = always + edges * (4 + s)
    indexed = graphs + n_codes * (8 + s) + 8 * n
    runs = size.n_starts * (2 * of_codes + of_samples) + (size.n_starts + 1) * (of_codes + of_samples)
    claims = s * n * size.n_clusters
    return {
        "reading": always + 2 * 16 * n * n_views,
        "settings": always + _start_bytes(size),
        "neighbours": graphs + edges_of_view * 10 + 40 * most,
        "smoothing": indexed + edges * (4 + s) * size.is_bridged + edges_of_view * (4 + s) + 24 * most,
        "factorisation": indexed + runs + _loop_bytes(size) + _start_bytes(size),
        "labels": indexed + of_codes + 5 * (of_samples + claims) + 36 * edges * size.is_bridged,
    }


def _n_threads() -> int:
    with single_threaded_blas() as n_threads:
        return n_threads


def _fixed_bytes() -> int:
    return _FIXED + _FIXED_PER_THREAD * (_n_threads() - 1)


def _start_bytes(size: FitSize) -> int:
    """Say what the start from the data collects: matrices of features by features, where they are written out."""
    n_features = sum(size.n_features)
    if not size.starts_from_data or n_features > MOST_FEATURES:
        return 0
    matrices = 16 * n_features**2 * (_n_threads() + 2)
    n_rows = min(_n_in_blocks(size), _n_threads() * ROWS_AT_A_TIME)
    return matrices + 5 * n_rows * n_features * size.itemsize


def _loop_bytes(size: FitSize) -> int:
    """Say what the blocks of an iteration take: of every thread the latest of each view, and the next of one."""
    return _n_in_blocks(size) * (sum(size.n_features) + max(size.n_features)) * size.itemsize


def _n_in_blocks(size: FitSize) -> int:
    """Say how many samples all threads work on at a time."""
    return _n_threads() * NumpyEngine().rows_at_a_time(sum(size.n_features) * size.itemsize)


def _column_bytes(size: FitSize, n_rows: int) -> int:
    """Say what one column of a view takes while it is scaled, or carried along a graph."""
    scaling = 3 * n_rows * size.itemsize + 32 * min(n_rows, 2**16)
    return max(scaling, 6 * size.n_samples * size.itemsize)


def _sample_bytes(size: FitSize) -> int:
    """Say what one sample takes while settings are tried."""
    n_copies, per_component = (12, 200) if size.tries_settings else (8, 0)
    return n_copies * sum(size.n_features) * size.itemsize + per_component * size.n_components


def _in_memory(size: FitSize, rows: int, smoothed: int) -> int:
    kept = _kept(size)
    if size.is_bridged:  # completed rows, and the same as points and as queries
        return max(kept.values()) + 3 * rows + 5 * smoothed
    return max(kept.values()) + 4 * rows
