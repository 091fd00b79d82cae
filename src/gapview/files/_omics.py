"""Reading ``.h5ad`` (AnnData) and ``.h5mu`` (MuData): only the matrix and the names of samples and features."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import DataFileError
from . import _limits
from ._arrays import frame_of
from ._hdf5 import opened
from ._ids import as_keys
from ._names import distinct
from ._sources import damaged, demand_size, extra, suffix_of
from ._view_file import SourceFormat, ViewFile

__all__ = ["read_h5ad", "read_h5mu"]

_READ = r"(mod/[^/]+/)?(X|obs|var)(/|$)"  # other layers may be as large as they like


def read_h5ad(file: Path, wanted: list[str] | None) -> ViewFile:
    """Read the matrix X of an AnnData file, keyed by the names of its observations."""
    with opened(file, "an AnnData file", "omics", _READ) as archive:
        return _read_group(file, file.stem, archive, wanted)


def read_h5mu(file: Path, wanted: list[str] | None) -> list[ViewFile]:
    """Read the matrix X of every modality of a MuData file."""
    with opened(file, "a MuData file", "omics", _READ) as archive:
        if "mod" not in archive:
            raise DataFileError(f"{file.name!r} is no MuData file: it has no modalities. Is it an .h5ad file?")
        order = archive["mod"].attrs.get("mod-order")
        stored = list(archive["mod"])
        names = stored if order is None or sorted(map(str, order)) != sorted(stored) else list(map(str, order))
        if not names:
            raise DataFileError(f"{file.name!r} has no modalities. Give a file with at least one.")
        return [_read_group(file, name, archive["mod"][name], wanted) for name in names]


def _read_group(file: Path, name: str, group: Any, wanted: list[str] | None) -> ViewFile:
    read = extra("anndata", "omics", "Reading .h5ad and .h5mu files").io.read_elem
    if not {"X", "obs", "var"} <= set(group):
        raise DataFileError(
            f"The view '{name}' in {file.name!r} has no matrix X with names of samples and features. Put the values "
            "into .X of the AnnData."
        )
    values = group["X"]["data"] if hasattr(group["X"], "keys") else group["X"]  # of a sparse matrix, what is stored
    demand_size(file, values.size, "cells", _limits.LIMITS.cells)
    with damaged(file, "an AnnData file"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of older formats, which are read all the same
        ids, id_name, notes = _ids(group["obs"], wanted, read)
        matrix, (features, _) = _floats(read(group["X"])), _names(group["var"], None, read)
    if matrix.ndim != 2 or matrix.shape != (len(ids), len(features)) or min(matrix.shape) == 0:
        raise DataFileError(
            f"The view '{name}' in {file.name!r} has a matrix of shape {matrix.shape} for {len(ids)} samples and "
            f"{len(features)} features. Give a matrix with a row for each sample and a column for each feature."
        )
    features, _ = distinct([str(feature) for feature in features])
    source = SourceFormat(suffix_of(file)[1:], suffix_of(file), tuple(features), id_name, "index")
    return ViewFile(name, file, frame_of(matrix, ids, features), True, source, tuple(notes))


def _ids(obs: Any, wanted: list[str] | None, read: Any) -> tuple[list[str], str, list[str]]:
    """Read the names of the observations, or a column of obs that was asked for."""
    column = next((name for name in wanted or [] if name in obs), None)
    cells, id_name = _names(obs, column, read)
    where = "names of the observations" if column is None else f"column '{column}' of obs"
    return [key or "" for key in as_keys(cells)], id_name, [f"Sample ids are the {where}."]


def _names(group: Any, column: str | None, read: Any) -> tuple[list[Any], str]:
    """Read one column of obs or var, by default its index; the others are not touched."""
    if not hasattr(group, "keys"):  # as AnnData wrote it before version 0.7
        frame = read(group)
        return (frame.index if column is None else frame[column]).tolist(), str(frame.index.name or "index")
    index = str(group.attrs["_index"])
    return list(read(group[index if column is None else column])), index.removeprefix("_")


def _floats(matrix: Any) -> Any:
    if not sparse.issparse(matrix):
        matrix = np.asarray(matrix)
    if matrix.dtype.kind not in "biuf":
        raise DataFileError(f"The matrix X must hold numbers; it holds values of type {matrix.dtype}.")
    return matrix.astype(np.float32 if matrix.dtype in (np.float16, np.float32) else np.float64, copy=False)
