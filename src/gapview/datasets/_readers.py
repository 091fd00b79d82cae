"""Reading ``.npz`` and ``.mat`` files into plain arrays, whatever state they are in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.io import loadmat

from ..errors import DataFileError, MissingExtraError

__all__ = ["read_mat", "read_npz"]

_HDF5 = b"\x89HDF\r\n\x1a\n"


def read_npz(file: Path) -> dict[str, Any]:
    """Read the arrays of a ``.npz`` file; nothing in it is ever unpickled."""
    try:
        archive = np.load(file, allow_pickle=False)
        if not isinstance(archive, np.ndarray):  # numpy looks at the contents, not at the name
            with archive:
                return {key: archive[key] for key in archive.files}
    except Exception as error:  # a damaged file can break any of the layers: zip, deflate, the array's header
        raise DataFileError(
            f"{file.name!r} cannot be read as a .npz file of plain arrays: {_said(error)}. Objects are never "
            "unpickled; save matrices with numpy.savez."
        ) from None
    raise DataFileError(
        f"{file.name!r} cannot be read as a .npz file: it holds a single array, as numpy.save writes it. "
        "Save all views into one file with numpy.savez."
    )


def read_mat(file: Path) -> dict[str, Any]:
    """Read the variables of a MATLAB file in either format."""
    try:
        with file.open("rb") as stream:
            head = stream.read(520)
        if _HDF5 not in (head[:8], head[512:]):  # MATLAB puts a text of 512 bytes first
            return {key: value for key, value in loadmat(file).items() if not key.startswith("__")}
    except Exception as error:  # as above
        raise DataFileError(
            f"{file.name!r} cannot be read as a MATLAB file: {_said(error)}. Save it anew, or get it again."
        ) from None
    return _read_mat73(file)


def _read_mat73(file: Path) -> dict[str, Any]:
    try:
        import h5py
    except ImportError:
        raise MissingExtraError("h5py", "matlab", "Reading a MATLAB v7.3 file") from None

    def read(node: Any) -> Any:
        if isinstance(node, h5py.Group):
            return _read_sparse(node) if "MATLAB_sparse" in node.attrs else None
        if node.dtype.kind == "O":  # a cell array: references to its contents
            cell = np.empty(node.size, dtype=object)
            cell[:] = [read(archive[reference]) for reference in node[()].ravel()]
            return cell
        return node[()].T  # MATLAB stores columns first

    try:
        with h5py.File(file, "r") as archive:
            return {key: read(archive[key]) for key in archive if not key.startswith("#")}
    except Exception as error:  # as above
        raise DataFileError(
            f"{file.name!r} cannot be read as a MATLAB v7.3 file: {_said(error)}. Save it anew, or get it again."
        ) from None


def _read_sparse(node: Any) -> Any:
    shape = (int(node.attrs["MATLAB_sparse"]), len(node["jc"]) - 1)
    if "data" not in node:
        return sparse.csc_array(shape)
    return sparse.csc_array((node["data"][()], node["ir"][()], node["jc"][()]), shape=shape)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
