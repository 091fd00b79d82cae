"""Reading ``.h5ad`` (AnnData) and ``.h5mu`` (MuData): only the matrix and the names of samples and features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import DataFileError
from ._arrays import frame_of
from ._names import distinct
from ._sources import demand_size, suffix_of
from ._view_file import SourceFormat, ViewFile
from .ids import as_keys
from .isolated import demand_package, read_apart

__all__ = ["read_h5ad", "read_h5mu"]


def read_h5ad(file: Path, wanted: list[str] | None) -> ViewFile:
    """Read the matrix X of an AnnData file, keyed by the names of its observations."""
    return _read(file, "h5ad", "an AnnData file", wanted)[0]


def read_h5mu(file: Path, wanted: list[str] | None) -> list[ViewFile]:
    """Read the matrix X of every modality of a MuData file."""
    return _read(file, "h5mu", "a MuData file", wanted)


def _read(file: Path, kind: str, what: str, wanted: list[str] | None) -> list[ViewFile]:
    demand_size(file, file.stat().st_size)
    for package in ("h5py", "anndata"):
        demand_package(package, "omics", f"Reading {what}")
    return [_view(file, group) for group in read_apart(file, kind, what, wanted)]


def _view(file: Path, group: dict[str, Any]) -> ViewFile:
    name = file.stem if group["name"] is None else str(group["name"])
    ids = [key or "" for key in as_keys(group["ids"])]
    matrix = _floats(group["X"])
    if matrix.ndim != 2 or matrix.shape != (len(ids), len(group["features"])) or min(matrix.shape) == 0:
        raise DataFileError(
            f"The view '{name}' in {file.name!r} has a matrix of shape {matrix.shape} for {len(ids)} samples and "
            f"{len(group['features'])} features. Give a matrix with a row for each sample and a column for each "
            "feature."
        )
    features, _ = distinct([str(feature) for feature in group["features"]])
    source = SourceFormat(suffix_of(file)[1:], suffix_of(file), tuple(features), group["id_name"], "index")
    column = group["column"]
    where = "names of the observations" if column is None else f"column '{column}' of obs"
    notes = (f"Sample ids are the {where}.",)
    return ViewFile(name, file, frame_of(matrix, ids, features), True, source, notes)


def _floats(matrix: Any) -> Any:
    if not sparse.issparse(matrix):
        matrix = np.asarray(matrix)
    if matrix.dtype.kind not in "biuf":
        raise DataFileError(f"The matrix X must hold numbers; it holds values of type {matrix.dtype}.")
    return matrix.astype(np.float32 if matrix.dtype in (np.float16, np.float32) else np.float64, copy=False)
