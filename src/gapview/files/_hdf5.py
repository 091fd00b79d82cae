"""Opening HDF5 files: nothing larger than the limits, nothing outside the file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import DataFileError
from . import _limits
from ._sources import damaged, demand_size, extra

__all__ = ["opened"]

_BYTES_PER_CELL = 16  # the value and, in a sparse matrix, where it stands


@contextmanager
def opened(file: Path, what: str, package_extra: str, read: str = "") -> Iterator[Any]:
    """Open an HDF5 file that is said to be ``what``; only items whose path matches ``read`` are going to be read."""
    h5py = extra("h5py", package_extra, f"Reading {what}")
    demand_size(file, file.stat().st_size)
    with damaged(file, what), h5py.File(file, "r") as archive:
        _check(archive, h5py, file, read)
        yield archive


def _check(archive: Any, h5py: Any, file: Path, read: str) -> None:
    """Refuse declared sizes beyond the limits, and contents that lie in other files."""
    total = 0

    def outside(name: str, link: Any) -> str | None:
        return name if isinstance(link, h5py.ExternalLink) else None

    def count(name: str, item: Any) -> None:
        nonlocal total
        if not isinstance(item, h5py.Dataset) or not re.match(read, name):
            return
        if item.external or item.is_virtual:
            raise _outside(file, name)
        total += math.prod(item.shape or ()) * item.dtype.itemsize
        demand_size(file, total, "bytes or more when unpacked", _BYTES_PER_CELL * _limits.LIMITS.cells)

    if (linked := archive.visititems_links(outside)) is not None:
        raise _outside(file, linked)
    archive.visititems(count)


def _outside(file: Path, name: str) -> DataFileError:
    return DataFileError(
        f"{file.name!r} refers to another file for {name!r}. Save it with all its contents in one file."
    )
