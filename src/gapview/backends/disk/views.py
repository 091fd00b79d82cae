"""Views in the user's ``.npy`` files: opened as memory maps, read row by row without the map."""

from __future__ import annotations

import copy
import mmap
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import DataFileError, InputError
from ...utils.types import Array
from ...views import Views, demand_enough, is_constant
from ...views.cells import count_missing_cells, row_summary
from ...views.containers import as_numbers, demand_two_dimensions, named_views
from ...views.core import demand_features, read
from ..support import unsupported
from .files import FileRows, new_block, read_bytes, read_rows

_BLOCK_BYTES = 2**20
_N_COMPARED = 4  # rows


def is_mapped(view: Any) -> bool:
    """Return whether a view is a memory map of a file."""
    return isinstance(view, np.memmap) and getattr(_whole_map(view), "filename", None) is not None


def _whole_map(view: Any) -> Any:
    while isinstance(view.base, np.ndarray):
        view = view.base
    return view


@dataclass(frozen=True)
class MappedFile:
    """The position of the values of a memory map in its file.

    They are read from the file and not from the map: pages of the map would stay in memory, and the process would end
    if the file were truncated meanwhile.
    """

    name: str  # of the view, for messages
    path: str
    stamp: tuple[int, ...]  # identity, size and time of the last change
    offset: int
    shape: tuple[int, int]
    strides: tuple[int, int]
    kind: np.dtype[Any]

    @property
    def row_bytes(self) -> int:
        """Bytes to read for one more row."""
        return max(self.strides[0], self.shape[1] * self.kind.itemsize)

    def read(self, begin: int, stop: int) -> Array:
        """Read consecutive rows, as float32 or float64."""
        n_rows, (_, width), size = stop - begin, self.shape, self.kind.itemsize
        try:
            with open(self.path, "rb", buffering=0) as file:
                if _stamp(os.fstat(file.fileno())) != self.stamp:
                    raise self._error("has changed since it was opened. Open it again, and repeat the fit.")
                if not n_rows:
                    values = np.empty((0, width), dtype=self.kind)
                elif self.strides[1] == size:
                    content = new_block(((n_rows - 1) * self.strides[0] + width * size,), np.uint8)
                    self._fill(file, content, begin * self.strides[0])
                    values = np.ndarray((n_rows, width), self.kind, content, strides=self.strides)
                else:  # Fortran order: column by column
                    columns = np.empty((width, n_rows), dtype=self.kind)
                    for j, column in enumerate(columns):
                        self._fill(file, column, begin * size + j * self.strides[1])
                    values = columns.T
        except OSError as error:
            if isinstance(error, DataFileError):
                raise
            raise self._error(f"cannot be read: {error.strerror}. Restore it, or open the file again.") from None
        return np.asarray(as_numbers(self.name, values))

    def _fill(self, file: Any, content: Array, begin: int) -> None:
        if not read_bytes(file, self.offset + begin, content):
            raise self._error("is shorter than it was when it was opened. Write it and open it again.")

    def _error(self, what: str) -> DataFileError:
        return DataFileError(f"The file {self.path!r}, which holds view '{self.name}', {what}")


def mapped_file(name: str, view: Any) -> MappedFile:
    """Return the position of the values of a memory map in its file."""
    demand_two_dimensions(name, view)
    demand_features(name, view.shape)
    whole = _whole_map(view)
    if whole.mode == "c":
        raise InputError(
            f"View '{name}' is a memory map in mode 'c', and changes of it are not in its file. Open it with "
            "np.load(path, mmap_mode='r')."
        )
    if min(view.strides) < 0 or view.dtype.itemsize not in view.strides:
        raise InputError(
            f"View '{name}' is a part of a memory map whose rows are not consecutive in the file. Give the map as "
            "np.load(path, mmap_mode='r') opens it, or save the part to its own file."
        )
    # The attribute ``offset`` of a part of a map is that of the whole map
    offset = whole.offset + view.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    path = os.fspath(whole.filename)
    file = MappedFile(name, path, (), int(offset), view.shape, view.strides, view.dtype)
    try:
        status = os.stat(path)
    except OSError as error:
        raise file._error(f"cannot be read: {error.strerror}. Restore it, or open the file again.") from None
    file = replace(file, stamp=_stamp(status))
    same = whole._mmap.size() == status.st_size and _is_open(status) and _agree(file, view)
    if hasattr(mmap, "MADV_DONTNEED"):  # pages of the map do not stay in memory
        whole._mmap.madvise(mmap.MADV_DONTNEED)
    if not same:
        raise file._error("has been replaced since it was opened. Open it again, and repeat the fit.")
    return file


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _is_open(status: os.stat_result) -> bool:
    """Return whether this process has the file open, as it has the file of every map; True where it is not known."""
    folder = next((folder for folder in ("/proc/self/fd", "/dev/fd") if os.path.isdir(folder)), None)
    for handle in os.listdir(folder) if folder else ():
        with suppress(OSError):  # the handle of the listing itself
            if os.path.samestat(os.fstat(int(handle)), status):
                return True
    return folder is None


def _agree(file: MappedFile, view: Any) -> bool:
    """Return whether some rows of a file are those of the map; another map of the new file may be open too."""
    rows = np.unique(np.linspace(0, len(view) - 1, _N_COMPARED).astype(np.intp)) if len(view) else ()
    parts = ((view[row : row + 1], file.read(row, row + 1)) for row in rows)
    return all(np.array_equal(as_numbers(file.name, np.array(mapped)), read, equal_nan=True) for mapped, read in parts)


class SourceRows(FileRows):
    """The present rows of one view, in the order of the samples, in the user's file."""

    def __init__(self, file: MappedFile, rows: Array) -> None:
        self._file, self._rows = file, rows
        self.shape = (len(rows), file.shape[1])
        self.dtype = file.read(0, 0).dtype

    def _select(self, rows: Array) -> Array:
        return read_rows(self._file.read, self._rows[rows], self.shape[1], self.dtype, self._file.row_bytes)


def all_mapped(data: Any) -> bool:
    """Return whether every view is a memory map of a file."""
    if isinstance(data, Views):
        return False
    pairs, _, _ = named_views(data)
    return bool(pairs) and all(is_mapped(view) for _, view in pairs)


def read_mapped(data: Any, mask: Any, partial_rows: str, n_clusters: int) -> Views:
    """Read which rows of memory maps are present, and check them as all training data are checked.

    Every view is first read once into a summary of two columns, which is checked in place of the view.
    """
    pairs, _, outer = named_views(data)
    files = [mapped_file(name, view) for name, view in pairs]
    summaries = [_summary(file) for file in files]
    by_name = dict(zip([name for name, _ in pairs], summaries, strict=True))
    given: Any = {"dict": by_name, "list": summaries, "single": summaries[0]}[outer]
    if partial_rows == "fill":
        _check_no_gaps(read(given, mask))
    checked = Views(given, mask=mask, partial_rows=partial_rows)
    views = checked.with_matrices([SourceRows(file, checked.rows(k)) for k, file in enumerate(files)])
    constant = (is_constant(matrix, lambda rows: rows.blocks(_BLOCK_BYTES)) for matrix in views.matrices)
    demand_enough(views, constant, n_clusters)
    return views


def _summary(file: MappedFile) -> Array:
    """Return the summary of all rows of a file, read block by block."""
    summary = np.empty((file.shape[0], 2))
    step = max(1, _BLOCK_BYTES // file.row_bytes)
    for begin in range(0, len(summary), step):
        block = summary[begin : begin + step]
        block[:] = row_summary(file.read(begin, begin + len(block)))
    return summary


def _check_no_gaps(summaries: Views) -> None:
    for name, summary in zip(summaries.names, summaries.matrices, strict=True):
        n_partial = int((count_missing_cells(summary) > 0).sum())
        if n_partial:
            raise unsupported("filling on disk", name=name, n_rows=n_partial)


def read_into_memory(model: Any) -> Any:
    """Return a model with its training data in memory: the model itself, or a copy if they are in files."""
    views = getattr(model, "views_", None)
    if views is None or not any(isinstance(held, FileRows) for held in views.in_parts()):
        return model
    whole = copy.copy(model)
    whole.views_ = views.with_matrices([np.asarray(matrix) for matrix in views.matrices])
    return whole
