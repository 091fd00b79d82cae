"""Files of our own for what does not fit into memory: nobody else sees them, and they are gone when closed."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from itertools import pairwise
from threading import Lock, local
from types import TracebackType
from typing import Any, Self

import numpy as np

from ...errors import DataFileError
from ...utils.types import Array
from ._rows import FileRows, new_block

__all__ = ["LatestRows", "Scratch", "ScratchMatrix"]

_COPIED_BYTES = 2**21


class Scratch:
    """A set of scratch files, all closed at the end of a ``with`` block.

    They lie in the folder for temporary files (``TMPDIR``), without a name where the system allows it: not even a
    process that is killed leaves them behind.
    """

    def __init__(self) -> None:
        self._matrices: list[ScratchMatrix] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None) -> None:
        for matrix in self._matrices:
            matrix.close()

    def matrix(self, shape: tuple[int, int], dtype: Any, width: int | None = None) -> ScratchMatrix:
        """Make a matrix to be written, in tiles of some columns each if a width is given."""
        made = ScratchMatrix(shape, dtype, width or max(1, shape[1]))
        self._matrices.append(made)
        return made

    def row_by_row(self, tiles: ScratchMatrix) -> LatestRows:
        """Write a matrix in tiles anew, so that its rows lie one after the other; the tiles are closed."""
        copy = self.matrix(tiles.shape, tiles.dtype)
        for block in tiles.blocks(_COPIED_BYTES):
            copy.write_rows(block.start, tiles[block])
        tiles.close()
        return LatestRows(copy)


class ScratchMatrix(FileRows):
    """A matrix in a scratch file, in tiles: some columns of all rows, then the next ones.

    A tile is read and written as a whole as cheaply as a block of rows, which no other order of the values allows.
    """

    def __init__(self, shape: tuple[int, int], dtype: Any, width: int) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.width = width
        edges = [*range(0, shape[1], width), shape[1]]
        self.tiles: Sequence[slice] = [slice(*pair) for pair in pairwise(edges)]
        self._lock = Lock()
        try:
            self._file: Any = tempfile.TemporaryFile(buffering=0, prefix="gapview-")  # noqa: SIM115 (see close)
        except OSError as error:
            raise _no_room(error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give the space on disk back."""
        self._file.close()

    def columns(self, tile: slice) -> Array:
        """Read all rows of one tile."""
        return self._read_tile(tile, 0, len(self))

    def write_columns(self, tile: slice, values: Array) -> None:
        """Write all rows of one tile."""
        self._write_tile(tile, 0, values)

    def write_rows(self, begin: int, rows: Array) -> None:
        """Write rows that follow each other."""
        for tile in self.tiles:
            self._write_tile(tile, begin, rows[:, tile])

    def _read(self, begin: int, stop: int) -> Array:
        if len(self.tiles) == 1:
            return self._read_tile(self.tiles[0], begin, stop)
        rows = new_block((stop - begin, self.shape[1]), self.dtype)
        for tile in self.tiles:
            rows[:, tile] = self._read_tile(tile, begin, stop)
        return rows

    def _place(self, tile: slice, row: int) -> int:
        return int(len(self) * tile.start + row * (tile.stop - tile.start)) * self.dtype.itemsize

    def _read_tile(self, tile: slice, begin: int, stop: int) -> Array:
        values = new_block((stop - begin, tile.stop - tile.start), self.dtype)
        rest = _content(values)
        with self._lock:  # the place in the file is shared by all threads
            self._file.seek(self._place(tile, begin))
            while len(rest):
                n_read = self._file.readinto(rest)
                if not n_read:
                    raise DataFileError("A scratch file has come to an end too early: something has cut it off.")
                rest = rest[n_read:]
        return values

    def _write_tile(self, tile: slice, begin: int, values: Array) -> None:
        rest = _content(np.ascontiguousarray(values, dtype=self.dtype))
        try:
            with self._lock:
                self._file.seek(self._place(tile, begin))
                while len(rest):
                    rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise _no_room(error) from None


def _content(array: Array) -> memoryview:
    return memoryview(array.reshape(-1).view(np.uint8).data)


class LatestRows(FileRows):
    """Rows of a file, of which every thread keeps the block that it has read last: an iteration asks for it twice."""

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
