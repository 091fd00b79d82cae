"""Reading ``.npz`` and ``.mat`` files into plain arrays, whatever state they are in."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataFileError

__all__ = ["is_hdf5", "read_mat", "read_npz"]

_HDF5 = b"\x89HDF\r\n\x1a\n"


def read_npz(file: Path) -> dict[str, Any]:
    """Read the arrays of a ``.npz`` file; nothing in it is ever unpickled."""
    try:
        # What numpy warns of is damage, and told as such; a file that is damaged it would leave open
        with warnings.catch_warnings(action="ignore"), file.open("rb") as stream:
            archive = np.load(stream, allow_pickle=False)
            if not isinstance(archive, np.ndarray):  # numpy looks at the contents, not at the name
                with archive:
                    return {key: _demand_text(archive[key]) for key in archive.files}
    except Exception as error:  # a damaged file can break any of the layers: zip, deflate, the array's header
        raise DataFileError(
            f"{file.name!r} cannot be read as a .npz file of plain arrays: {_said(error)}. Objects are never "
            "unpickled; save matrices with numpy.savez."
        ) from None
    raise DataFileError(
        f"{file.name!r} cannot be read as a .npz file: it holds a single array, as numpy.save writes it. "
        "Save all views into one file with numpy.savez."
    )


def _demand_text(array: Any) -> Any:
    """Refuse text of characters that do not exist, which would fail wherever it is looked at."""
    if getattr(array, "dtype", None) is not None and array.dtype.kind == "U":
        np.char.encode(array, "utf-8")
    return array


def is_hdf5(file: Path) -> bool:
    """Tell MATLAB's newer format from the older ones."""
    with file.open("rb") as stream:
        head = stream.read(520)
    return _HDF5 in (head[:8], head[512:])  # MATLAB puts a text of 512 bytes first


def read_mat(file: Path) -> dict[str, Any]:
    """Read the variables of a MATLAB file in either format, in a process of its own: damaged ones crash libraries."""
    from .isolated import demand_package, read_apart  # which imports this package

    try:
        newer = is_hdf5(file)
    except OSError as error:
        raise DataFileError(f"{str(file)!r} cannot be opened: {error.strerror}.") from None
    if newer:
        demand_package("h5py", "matlab", "Reading a MATLAB v7.3 file")
    found: dict[str, Any] = read_apart(file, *(("mat73", "a MATLAB v7.3 file") if newer else ("mat", "a MATLAB file")))
    return found


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
