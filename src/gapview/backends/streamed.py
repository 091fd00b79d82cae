"""The steps of a fit to views larger than a device: they stay on the host, and blocks of rows are copied when needed.

Scaled rows are computed from each block again, and the smoothed features H are on the host, too. Graphs, codes and the
few directions in which missing rows are imputed are on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse

from ..compute.arrays import host, like, row_blocks, to_device
from ..factorization.problem import Problem
from ..progress import phase
from ..scaling import ScaledRows, Scaling, check_variation, fit_blocks, rows_in_blocks, scale_per_view
from ..utils.types import Array
from ..views import Views
from ..views.cells import draw_from
from .disk.backend import build_problem
from .disk.budget import format_bytes, read_budget
from .memory import MemoryBackend
from .support import unsupported

_NEEDED = 3.2  # memory of a fit with all data on the device, as a multiple of the rows of all views
_BYTES_PER_SAMPLE = 1000  # of graphs and codes, which are on the device in any case
_COPIES = 4  # of some columns of all samples, while they are smoothed
_SHARE_OF_COLUMNS = 0.25  # of the memory, for these


def device_backend(views: Views, device: Any, memory_budget: Any) -> MemoryBackend:
    """Return the backend of a fit on a device: with the views there if they fit into its memory, else streamed.

    Parameters
    ----------
    views : Views
        The samples.
    device : str or torch.device
        The device.
    memory_budget : str, number or None
        Memory of the device that the fit may use; by default what is free on it.
    """
    budget = read_budget(memory_budget) or _free_memory(device)
    itemsize = max(held[:0].dtype.itemsize for held in views.in_parts())
    needed = _NEEDED * views.n_samples * sum(views.n_features) * itemsize
    if budget is None or needed <= budget or views.batches is not None:
        return MemoryBackend(views, is_last=True, device=device)
    return StreamedBackend(views, device, budget)


def _free_memory(device: Any) -> int | None:
    """Return the free memory of a GPU in bytes; None for other devices."""
    place = to_device(np.zeros(0), device)
    if not place.is_cuda:
        return None
    import torch

    return int(torch.cuda.mem_get_info(place.device)[0])


class HostRows:
    """The rows of a matrix in the memory of the host; slices and lists of rows arrive on a device.

    Parameters
    ----------
    rows : array, tensor or SelectedRows
        The rows.
    place : tensor
        A tensor on the device.
    """

    ndim = 2

    def __init__(self, rows: Any, place: Any) -> None:
        self._rows, self._place = rows, place
        self.shape: tuple[int, int] = tuple(rows.shape)
        self.dtype, self.device = like(rows[:0], place).dtype, place.device

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, part: Any) -> Any:
        return like(self._rows[host(part)], self._place)

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return array_namespace(self._place)

    def __matmul__(self, other: Any) -> Any:
        return array_namespace(self._place).concat([self[block] @ other for block in row_blocks(self)])

    @property
    def T(self) -> HostColumns:
        """The transposed matrix, for products."""
        return HostColumns(self)


@dataclass(frozen=True)
class HostColumns:
    """A transposed matrix whose columns are on the host, for products."""

    rows: HostRows

    def __matmul__(self, other: Any) -> Any:
        return sum(self.rows[block].T @ other[block] for block in row_blocks(self.rows))


@dataclass(frozen=True)
class TiledRows(ScaledRows):
    """Rows that are scaled on access, and of which some columns can be read on their own."""

    width: int = 1  # columns of a tile

    @property
    def tiles(self) -> list[slice]:
        """The columns of every tile."""
        n_columns = self.shape[1]
        return [slice(begin, min(begin + self.width, n_columns)) for begin in range(0, n_columns, self.width)]

    def read_tile(self, tile: slice) -> Any:
        """Return some columns of all rows."""
        shape = self.shape[0], tile.stop - tile.start
        columns = self.__array_namespace__().empty(shape, dtype=self.dtype, device=self.device)
        for block in row_blocks(self):
            columns[block] = self[block][:, tile]
        return columns


class _HostMatrix:
    """A matrix on the host that is written by columns."""

    def __init__(self, shape: tuple[int, int], dtype: Any, place: Any) -> None:
        if place.is_cuda:  # memory that the device reads directly is copied faster
            self.values: Array = place.new_empty(shape, dtype=dtype, device="cpu", pin_memory=True).numpy()
        else:
            self.values = np.empty(shape, dtype=host(place.new_empty(0, dtype=dtype)).dtype)

    def write_tile(self, tile: slice, values: Any) -> None:
        """Write some columns."""
        for block in row_blocks(values):
            self.values[block, tile] = host(values[block])


@dataclass(frozen=True)
class _HostStore:
    """Where the smoothed features are."""

    place: Any

    def matrix(self, shape: tuple[int, int], dtype: Any, _: int) -> _HostMatrix:
        """Return a matrix to write."""
        return _HostMatrix(shape, dtype, self.place)

    def row_by_row(self, matrix: _HostMatrix) -> HostRows:
        """Return a written matrix for reading."""
        return HostRows(matrix.values, self.place)


class StreamedBackend(MemoryBackend):
    """The steps of a fit on a device to views on the host.

    Parameters
    ----------
    views : Views
        The samples.
    device : str or torch.device
        The device.
    budget : int
        The memory of the device that the fit may use, in bytes.

    Raises
    ------
    ParameterError
        If graphs and codes do not fit into the budget.
    """

    _are_kept = True  # the views are not copies

    def __init__(self, views: Views, device: Any, budget: int) -> None:
        super().__init__(views, is_last=True)
        least = _BYTES_PER_SAMPLE * views.n_samples
        if budget < least:
            raise unsupported("too large for a device", least=format_bytes(least), budget=format_bytes(budget))
        self._place_of_results, self._budget = to_device(np.zeros(0), device), budget
        self.views = self._on_device(views)

    def _on_device(self, views: Views) -> Views:
        for name, held in zip(views.names, views.in_parts(), strict=True):
            if sparse.issparse(held):
                views.with_matrices([held]).to_device(self._place_of_results.device)  # raises an error with the name
                raise AssertionError(name)
        return views.with_matrices([HostRows(held, self._place_of_results) for held in views.in_parts()])

    def draw(self, n_samples: int, seed: int) -> Views:
        """Return some of the samples, on the device."""
        return self.views[draw_from(self.views.mask, n_samples, seed)]

    def scale(self, scale: str | Sequence[str | None] | None) -> list[Scaling]:
        """Fit the scalings of the views, which are applied whenever rows are read; return the scalings."""
        held = list(self.views.in_parts())
        self.dtype = max((rows.dtype for rows in held), key=lambda dtype: dtype.itemsize)
        itemsize = self.dtype.itemsize
        column_bytes = _COPIES * itemsize * self.views.n_samples
        width = max(1, int(_SHARE_OF_COLUMNS * self._budget / column_bytes))
        self.scaled, self.scalings = [], []
        with phase("scaling"):
            for name, rows, way in zip(self.views.names, held, scale_per_view(scale, len(held)), strict=True):
                scaling = fit_blocks(rows_in_blocks(name, rows), way)
                scaled = TiledRows(rows, scaling, self.dtype, width)
                check_variation(name, _extremes(scaled), way)
                self.scaled.append(scaled)
                self.scalings.append(scaling)
        return self.scalings

    def _build_problem(self, graphs: Sequence[Any], targets: Sequence[Array]) -> Problem:
        store: Any = _HostStore(self._place_of_results)
        return build_problem(self.scaled, graphs, targets, self.views.n_samples, store)


def _extremes(rows: ScaledRows) -> Any:
    """Return the smallest and the largest value of every feature."""
    xp = rows.__array_namespace__()
    found = None
    for block in row_blocks(rows):
        values = rows[block]
        here: tuple[Callable[..., Any], ...] = (xp.min, xp.max)
        ends = [end(values, axis=0) for end in here]
        found = ends if found is None else [xp.minimum(found[0], ends[0]), xp.maximum(found[1], ends[1])]
    return xp.stack(found)
