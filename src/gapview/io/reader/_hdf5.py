"""HDF5 files: MATLAB v7.3, ``.h5ad`` (AnnData) and ``.h5mu`` (MuData); nothing too large, nothing outside the file."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse

from ._words import Refused, demand

__all__ = ["read_mat73", "read_omics"]

_BYTES_PER_CELL = 16  # the value and, in a sparse matrix, where it stands
_OMICS = r"(mod/[^/]+/)?(X|obs|var)(/|$)"  # other layers may be as large as they like
_MOST_DEPTH = 10


@contextmanager
def _opened(file: str, name: str, cells: int, read: str = "") -> Iterator[Any]:
    """Open a file of which only items whose path matches ``read`` are going to be read."""
    import h5py

    with h5py.File(file, "r") as archive:
        _check(archive, h5py, name, cells, read)
        yield archive


def _check(archive: Any, h5py: Any, file: str, cells: int, read: str) -> None:
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
        demand(file, total, "bytes or more when unpacked", _BYTES_PER_CELL * cells)

    if (linked := archive.visititems_links(outside)) is not None:
        raise _outside(file, linked)
    archive.visititems(count)


def _outside(file: str, name: str) -> Refused:
    return Refused(f"{file!r} refers to another file for {name!r}. Save it with all its contents in one file.")


def read_mat73(file: str, name: str, cells: int) -> dict[str, Any]:
    """Read the variables of a MATLAB v7.3 file."""
    import h5py

    def read(node: Any, depth: int = 0) -> Any:
        if depth > _MOST_DEPTH:
            raise ValueError("cells are nested too deeply")
        if isinstance(node, h5py.Group):
            return _read_sparse(node) if "MATLAB_sparse" in node.attrs else None
        if node.dtype.kind == "O":  # a cell array: references to its contents
            cell = np.empty(node.size, dtype=object)
            cell[:] = [read(archive[reference], depth + 1) for reference in node[()].ravel()]
            return cell
        return node[()].T  # MATLAB stores columns first

    with _opened(file, name, cells) as archive:
        return {key: read(archive[key]) for key in archive if not key.startswith("#")}


def _read_sparse(node: Any) -> Any:
    shape = (int(node.attrs["MATLAB_sparse"]), len(node["jc"]) - 1)
    if "data" not in node:
        return sparse.csc_array(shape)
    return sparse.csc_array((node["data"][()], node["ir"][()], node["jc"][()]), shape=shape)


def read_omics(
    file: str, name: str, cells: int, *, several: bool, wanted: Sequence[str] | None
) -> list[dict[str, Any]]:
    """Read the matrix X, the names of samples and the names of features; of a MuData file, for every modality."""
    with _opened(file, name, cells, _OMICS) as archive:
        if not several:
            return [_read_group(name, None, archive, cells, wanted)]
        if "mod" not in archive:
            raise Refused(f"{name!r} is no MuData file: it has no modalities. Is it an .h5ad file?")
        order = archive["mod"].attrs.get("mod-order")
        stored = list(archive["mod"])
        names = stored if order is None or sorted(map(str, order)) != sorted(stored) else list(map(str, order))
        if not names:
            raise Refused(f"{name!r} has no modalities. Give a file with at least one.")
        return [_read_group(name, modality, archive["mod"][modality], cells, wanted) for modality in names]


def _read_group(
    file: str, modality: str | None, group: Any, cells: int, wanted: Sequence[str] | None
) -> dict[str, Any]:
    from anndata.io import read_elem

    if not hasattr(group, "keys") or not {"X", "obs", "var"} <= set(group):
        place = "" if modality is None else f"The view '{modality}' in "
        raise Refused(
            f"{place}{file!r} has no matrix X with names of samples and features. Put the values into .X of the "
            "AnnData."
        )
    values = group["X"]["data"] if hasattr(group["X"], "keys") else group["X"]  # of a sparse matrix, what is stored
    demand(file, values.size, "cells", cells)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of older formats, which are read all the same
        column = next((name for name in wanted or [] if name in group["obs"]), None)
        ids, id_name = _names(group["obs"], column, read_elem)
        features, _ = _names(group["var"], None, read_elem)
        matrix = read_elem(group["X"])
    if not sparse.issparse(matrix):
        matrix = np.asarray(matrix)
    return {"name": modality, "ids": ids, "id_name": id_name, "column": column, "X": matrix, "features": features}


def _names(group: Any, column: str | None, read: Any) -> tuple[list[Any], str]:
    """Read one column of obs or var, by default its index; the others are not touched."""
    if not hasattr(group, "keys"):  # as AnnData wrote it before version 0.7
        frame = read(group)
        return _texts(frame.index if column is None else frame[column]), str(frame.index.name or "index")
    index = str(group.attrs["_index"])
    return _texts(read(group[index if column is None else column])), index.removeprefix("_")


def _texts(cells: Any) -> list[Any]:
    """Return cells as plain numbers and text; None for what stands for nothing."""
    found = [cell.item() if isinstance(cell, np.generic) else cell for cell in cells]
    return [cell if isinstance(cell, bool | int | float | str | bytes | None) else str(cell) for cell in found]
