"""The user's own files: rows of a ``.npy`` file that was opened as a memory map, read without touching the map."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import DataFileError, InputError
from ...utils.types import Array
from ...views.containers import as_numbers, demand_two_dimensions
from ._rows import FileRows, gathered, new_block

__all__ = ["MappedFile", "SourceMatrix", "is_mapped", "mapped_file"]


def is_mapped(view: Any) -> bool:
    """Tell whether a view is a memory map of a file."""
    return isinstance(view, np.memmap) and getattr(_root(view), "filename", None) is not None


def _root(view: Any) -> Any:
    while isinstance(view.base, np.ndarray):
        view = view.base
    return view


@dataclass(frozen=True)
class MappedFile:
    """Where the values of a memory map lie in its file.

    They are read from the file and not from the map, whose pages would stay in memory, and which ends the process if
    the file is cut off meanwhile.
    """

    name: str  # of the view, for messages
    path: str
    stamp: tuple[int, int]  # size and time of the last change
    offset: int
    shape: tuple[int, int]
    strides: tuple[int, int]
    kind: np.dtype[Any]

    @property
    def row_bytes(self) -> int:
        """What has to be read for one row more."""
        return max(self.strides[0], self.shape[1] * self.kind.itemsize)

    def read(self, begin: int, stop: int) -> Array:
        """Read rows that follow each other, as float32 or float64."""
        n_rows, (_, width), size = stop - begin, self.shape, self.kind.itemsize
        try:
            with open(self.path, "rb", buffering=0) as file:
                if _stamp(os.fstat(file.fileno())) != self.stamp:
                    raise self._failure("has changed since it was opened. Open it anew, and fit again.")
                if not n_rows:
                    values = np.empty((0, width), dtype=self.kind)
                elif self.strides[1] == size:
                    content = new_block(((n_rows - 1) * self.strides[0] + width * size,), np.uint8)
                    self._fill(file, content, begin * self.strides[0])
                    values = np.ndarray((n_rows, width), self.kind, content, strides=self.strides)
                else:  # column by column, as Fortran has it
                    columns = np.empty((width, n_rows), dtype=self.kind)
                    for j, column in enumerate(columns):
                        self._fill(file, column.view(np.uint8), begin * size + j * self.strides[1])
                    values = columns.T
        except OSError as error:
            if isinstance(error, DataFileError):
                raise
            raise self._failure(f"cannot be read: {error.strerror}. Put it back, or open the file anew.") from None
        return np.asarray(as_numbers(self.name, values))

    def _fill(self, file: Any, content: Array, begin: int) -> None:
        rest = memoryview(content.data)
        file.seek(self.offset + begin)
        while len(rest):
            n_read = file.readinto(rest)
            if not n_read:
                raise self._failure("is shorter than it was when it was opened. Write it anew, and open it again.")
            rest = rest[n_read:]

    def _failure(self, what: str) -> DataFileError:
        return DataFileError(f"The file {self.path!r}, which holds view '{self.name}', {what}")


def mapped_file(name: str, view: Any) -> MappedFile:
    """Find out where the values of a memory map lie."""
    demand_two_dimensions(name, view)
    root = _root(view)
    if root.mode == "c":
        raise InputError(
            f"View '{name}' is a memory map in the mode 'c', whose changes are not in its file. Open it with "
            "np.load(path, mmap_mode='r')."
        )
    size = view.dtype.itemsize
    if min(view.strides) < 0 or size not in view.strides:
        raise InputError(
            f"View '{name}' is a part of a memory map whose rows cannot be read one after the other. Give the map as "
            "np.load(path, mmap_mode='r') opens it, or save the part to a file of its own."
        )
    # A part of a map has the offset of the whole
    offset = root.offset + view.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    path = os.fspath(root.filename)
    try:
        stamp = _stamp(os.stat(path))
    except OSError as error:
        raise DataFileError(
            f"The file {path!r}, which holds view '{name}', cannot be read: {error.strerror}. Put it back, or open the "
            "file anew."
        ) from None
    return MappedFile(name, path, stamp, int(offset), view.shape, view.strides, view.dtype)


def _stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


class SourceMatrix(FileRows):
    """The present rows of one view, in the order of the samples, in the file they came in."""

    def __init__(self, file: MappedFile, rows: Array) -> None:
        self._file, self._rows = file, rows
        self.shape = (len(rows), file.shape[1])
        self.dtype = file.read(0, 0).dtype

    def _read(self, begin: int, stop: int) -> Array:
        return self._gathered(self._rows[begin:stop])

    def _picked(self, rows: Array) -> Array:
        return self._gathered(self._rows[rows])

    def _gathered(self, rows: Array) -> Array:
        return gathered(self._file.read, rows, self.shape[1], self.dtype, self._file.row_bytes)
