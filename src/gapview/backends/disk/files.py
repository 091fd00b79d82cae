"""Matrices in files: rows are read when they are used; scratch files are deleted when they are closed."""

from __future__ import annotations

import math
import mmap
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from threading import Lock, local
from types import ModuleType
from typing import Any

import array_api_compat.numpy
import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ...errors import DataFileError
from ...utils.types import Array

_SPAN_BYTES = 2**20  # read at a time where single rows are selected
_LARGE_BLOCK = 2**18  # bytes
_COPIED_BYTES = 2**21


def new_block(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an array to read into. Its memory returns to the system when the array is freed.

    The allocator would keep a part of it, and more with every thread.
    """
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    if n_bytes < _LARGE_BLOCK:
        return np.empty(shape, dtype=dtype)
    return np.frombuffer(mmap.mmap(-1, n_bytes), dtype=dtype).reshape(shape)


def read_bytes(file: Any, position: int, values: Array) -> bool:
    """Fill a contiguous array from a position of a file; return False if the file ends before."""
    rest = _content(values)
    file.seek(position)
    while len(rest):
        n_read = file.readinto(rest)
        if not n_read:
            return False
        rest = rest[n_read:]
    return True


def _content(array: Array) -> memoryview:
    return memoryview(array.reshape(-1).view(np.uint8).data)


def read_rows(read: Callable[[int, int], Array], rows: Array, width: int, dtype: Any, row_bytes: int) -> Array:
    """Return rows in ascending order, read in short spans so that the rows between them are soon freed."""
    found = new_block((len(rows), width), dtype)
    step, begin = max(1, _SPAN_BYTES // max(1, row_bytes)), 0
    while begin < len(rows):
        first = int(rows[begin])
        stop = begin + int(np.searchsorted(rows[begin:], first + step))
        found[begin:stop] = read(first, int(rows[stop - 1]) + 1)[rows[begin:stop] - first]
        begin = stop
    return found


class FileRows(NDArrayOperatorsMixin):
    """The rows of a matrix in a file, read when they are used.

    Slices and lists of rows give arrays; products with a matrix are computed block by block. Any other operation of an
    array reads the whole matrix: a fit avoids these, methods of the fitted model may use them. A subclass implements
    ``_read`` or ``_select``.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    ndim = 2
    device = "cpu"

    def _read(self, begin: int, stop: int) -> Array:
        """Read consecutive rows."""
        return self._select(np.arange(begin, stop))

    def _select(self, rows: Array) -> Array:
        """Read rows in ascending order."""
        return read_rows(self._read, rows, self.shape[1], self.dtype, self.row_bytes)

    @property
    def row_bytes(self) -> int:
        """Bytes of one row in memory."""
        return self.shape[1] * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def blocks(self, n_bytes: int) -> Iterator[slice]:
        """Yield blocks of rows of at most this size, with at least one row each."""
        step = max(1, n_bytes // max(1, self.row_bytes))
        return (slice(begin, min(begin + step, len(self))) for begin in range(0, len(self), step))

    def __getitem__(self, rows: Any) -> Array:
        if isinstance(rows, slice) and rows.step in (None, 1):
            begin, stop, _ = rows.indices(len(self))
            return self._read(begin, max(begin, stop))
        if isinstance(rows, tuple):
            return np.asarray(np.asarray(self)[rows])
        chosen = np.arange(len(self))[rows]
        if chosen.ndim == 0:
            return np.asarray(self._read(int(chosen), int(chosen) + 1)[0])
        distinct, places = np.unique(chosen, return_inverse=True)
        found = self._select(distinct)
        return found if np.array_equal(distinct, chosen) else found[places]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self._read(0, len(self)).astype(self.dtype if dtype is None else dtype, copy=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(np.asarray(self), name)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        whole = [np.asarray(given) if isinstance(given, FileRows) else given for given in inputs]
        return getattr(ufunc, method)(*whole, **settings)

    def __array_namespace__(self, api_version: str | None = None) -> ModuleType:
        return array_api_compat.numpy  # type: ignore[no-any-return]

    def __matmul__(self, other: Array) -> Array:
        product = np.empty((len(self), *other.shape[1:]), dtype=np.result_type(self.dtype, other.dtype))
        for block in self.blocks(_SPAN_BYTES):
            product[block] = self[block] @ other
        return product

    @property
    def T(self) -> FileColumns:
        """The transposed matrix, for products."""
        return FileColumns(self)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """Return the same values in a type: the object itself if it has the type, else an array."""
        return self if self.dtype == dtype and not copy else np.asarray(self, dtype=dtype)


class FileColumns:
    """The transpose of a matrix in a file; it can only be multiplied."""

    def __init__(self, rows: FileRows) -> None:
        self._rows = rows

    def __matmul__(self, other: Array) -> Array:
        rows = self._rows
        total = np.zeros((rows.shape[1], *other.shape[1:]), dtype=np.result_type(rows.dtype, other.dtype))
        for block in rows.blocks(_SPAN_BYTES):
            total += rows[block].T @ other[block]
        return total


class Scratch(ExitStack):
    """A set of scratch files, all closed at the end of a ``with`` block.

    They are in the folder for temporary files (``TMPDIR``), without a name where the system allows it: they disappear
    even if the process is killed.
    """

    def matrix(self, shape: tuple[int, int], dtype: Any, width: int | None = None) -> ScratchMatrix:
        """Return a new matrix to write to, in tiles of ``width`` columns each, by default in one tile."""
        made = ScratchMatrix(shape, dtype, width or max(1, shape[1]))
        self.callback(made.close)
        return made

    def row_by_row(self, tiles: ScratchMatrix) -> LatestRows:
        """Copy a matrix in tiles to a file in which rows are contiguous, and close the tiles."""
        copy = self.matrix(tiles.shape, tiles.dtype)
        for block in tiles.blocks(_COPIED_BYTES):
            copy.write_rows(block.start, tiles[block])
        tiles.close()
        return LatestRows(copy)


class ScratchMatrix(FileRows):
    """A matrix in a scratch file, in tiles: some columns of all rows, then the next columns.

    In this order a tile can be read and written as cheaply as a block of rows.
    """

    def __init__(self, shape: tuple[int, int], dtype: Any, width: int) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.width = width
        self.tiles = [slice(*pair) for pair in pairwise([*range(0, shape[1], width), shape[1]])]
        self._lock = Lock()
        try:
            self._file: Any = tempfile.TemporaryFile(buffering=0, prefix="gapview-")  # noqa: SIM115 (see close)
        except OSError as error:
            raise _no_room(error) from None

    def close(self) -> None:
        """Close the file, which frees its disk space."""
        self._file.close()

    def read_tile(self, tile: slice, begin: int = 0, stop: int | None = None) -> Array:
        """Read consecutive rows of one tile, by default all."""
        stop = len(self) if stop is None else stop
        values = new_block((stop - begin, tile.stop - tile.start), self.dtype)
        with self._lock:  # threads share the position in the file
            if not read_bytes(self._file, self._position(tile, begin), values):
                raise DataFileError("A scratch file has been truncated by another program. Run the fit again.")
        return values

    def write_tile(self, tile: slice, values: Array, begin: int = 0) -> None:
        """Write consecutive rows of one tile."""
        rest = _content(np.ascontiguousarray(values, dtype=self.dtype))
        try:
            with self._lock:
                self._file.seek(self._position(tile, begin))
                while len(rest):
                    rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise _no_room(error) from None

    def write_rows(self, begin: int, rows: Array) -> None:
        """Write consecutive rows of all tiles."""
        for tile in self.tiles:
            self.write_tile(tile, rows[:, tile], begin)

    def _read(self, begin: int, stop: int) -> Array:
        if len(self.tiles) == 1:
            return self.read_tile(self.tiles[0], begin, stop)
        rows = new_block((stop - begin, self.shape[1]), self.dtype)
        for tile in self.tiles:
            rows[:, tile] = self.read_tile(tile, begin, stop)
        return rows

    def _position(self, tile: slice, row: int) -> int:
        return int(len(self) * tile.start + row * (tile.stop - tile.start)) * self.dtype.itemsize


class LatestRows(FileRows):
    """Rows of a file. Every thread keeps the block that it read last, since an iteration uses it twice."""

    def __init__(self, rows: FileRows) -> None:
        self.shape, self.dtype = rows.shape, rows.dtype
        self._rows, self._latest = rows, local()

    def _read(self, begin: int, stop: int) -> Array:
        if getattr(self._latest, "part", None) != (begin, stop):
            self._latest.part, self._latest.block = (begin, stop), self._rows[begin:stop]
        return self._latest.block  # type: ignore[no-any-return]


def _no_room(error: OSError) -> DataFileError:
    return DataFileError(
        f"Cannot write scratch files to the folder {tempfile.gettempdir()!r}: {error.strerror}. Make room there, or "
        "set the environment variable TMPDIR to a folder on a larger disk."
    )
