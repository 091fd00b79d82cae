"""Views from arrays (``.npy``, ``.npz``, ``.mat``) and omics objects (``.h5ad``, ``.h5mu``)."""

from __future__ import annotations

import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import DataFileError, extra
from ..utils.types import Array, Matrix
from ..utils.words import numbered
from ._detect import unique_names
from ._sources import READING, demand_size, is_hdf5, reporting_damage, suffix_of
from ._view_file import SourceFormat, ViewFile
from .array_files import find_mask, find_target, find_views, read_mat, read_npz
from .ids import as_keys
from .isolated import demand_package, read_isolated

_MOST_COMPRESSION = 1032  # the largest factor that deflate can reach


def read_npy(file: Path) -> ViewFile:
    """Read a single array of numpy: rows are samples."""
    demand_size(file, file.stat().st_size)
    with (
        reporting_damage(file, "an array of numpy"),
        file.open("rb") as stream,
        warnings.catch_warnings(action="ignore"),
    ):
        array = np.lib.format.read_array(stream, allow_pickle=False)
    notes = ["An array without sample ids: rows are matched by their position."]
    return _array_view(file, file.stem, array, None, None, notes)


def read_arrays(file: Path, kind: str) -> list[ViewFile]:
    """Read the views of a ``.npz`` or ``.mat`` file."""
    demand_size(file, file.stat().st_size)
    _demand_small(file, kind)
    contents = read_npz(file) if kind == "npz" else read_mat(file)
    target = find_target(contents, file)
    found = find_views(contents, target, file)
    mask = find_mask(contents, list(found), list(found), file)
    ids = _find_ids(contents)
    notes = [] if target is None else ["Labels of groups in the file are left out."]
    if ids is None:
        notes.append("The file has no sample ids: rows are matched by their position.")
    names = [file.stem] if len(found) == 1 else list(found)
    return [
        _array_view(file, name, matrix, ids, None if mask is None else mask[:, k].astype(bool), notes)
        for k, (name, matrix) in enumerate(zip(names, found.values(), strict=True))
    ]


def _array_view(
    file: Path, name: str, values: Any, ids: list[str] | None, mask: Array | None, notes: list[str]
) -> ViewFile:
    matrix = _numbers(file, name, values)
    n_rows, n_columns = matrix.shape
    for what, rows in (("sample ids", ids), ("rows of the mask", mask)):
        if rows is not None and len(rows) != n_rows:
            raise DataFileError(f"{file.name!r} has {len(rows)} {what} and {n_rows} rows in the view '{name}'.")
    if mask is not None and not mask.all():
        matrix = _hidden(matrix, mask, ids is not None)
        ids = None if ids is None else [key for key, is_present in zip(ids, mask, strict=True) if is_present]
    columns, suffix = numbered(n_columns), suffix_of(file)
    id_name, id_place = (None, "none") if ids is None else ("sample_ids", "index")
    source = SourceFormat(suffix[1:], suffix, tuple(columns), id_name, id_place)
    return ViewFile(name, file, frame_of(matrix, ids, columns), ids is not None, source, tuple(notes))


def _numbers(file: Path, name: str, values: Any) -> Matrix:
    """Return a matrix of float32 or float64, or raise an error."""
    if not sparse.issparse(values):
        values = np.asarray(values)
    if values.ndim == 1:
        values = values.reshape(-1, 1)
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise DataFileError(
            f"The array '{name}' in {file.name!r} must be a matrix of numbers, one row for each sample; got shape "
            f"{values.shape} and type {values.dtype}. Save it as a matrix of numbers."
        )
    if min(values.shape) == 0:
        raise DataFileError(f"The view '{name}' in {file.name!r} is empty: its shape is {values.shape}. Leave it out.")
    stored = values.nnz if sparse.issparse(values) else values.size
    demand_size(file, int(stored), "cells", READING.limits.cells)
    wanted = np.float32 if values.dtype.kind == "f" and values.dtype.itemsize <= 4 else np.float64
    with np.errstate(over="ignore"):  # numbers beyond double precision become infinite, which Views refuses
        return values.astype(wanted, copy=False)


def _hidden(matrix: Matrix, mask: Array, keyed: bool) -> Matrix:
    """Remove the rows that a mask hides; without ids, set them to NaN so that the others keep their position."""
    if keyed:
        return (sparse.csr_array(matrix) if sparse.issparse(matrix) else matrix)[mask]
    dense = matrix.toarray() if sparse.issparse(matrix) else matrix.copy()
    dense[~mask] = np.nan
    return dense


def frame_of(matrix: Matrix, ids: Sequence[str | None] | None, columns: list[str]) -> Any:
    """Return a matrix as a pandas frame; a sparse one stays sparse."""
    pd = extra("pandas", "tables", "Reading views from files")
    index = pd.RangeIndex(matrix.shape[0]) if ids is None else pd.Index(ids, dtype=object)
    if sparse.issparse(matrix):
        return pd.DataFrame.sparse.from_spmatrix(sparse.csc_matrix(matrix), index=index, columns=columns)
    return pd.DataFrame(matrix, index=index, columns=columns, copy=False)


def _find_ids(contents: dict[str, Any]) -> list[str] | None:
    if "sample_ids" not in contents:
        return None
    cells = np.asarray(contents["sample_ids"]).ravel().tolist()
    # MATLAB puts every text of a cell into an array of its own
    return _texts([np.ravel(cell)[0] if isinstance(cell, np.ndarray) else cell for cell in cells])


def _texts(cells: Sequence[Any]) -> list[str]:
    return [key or "" for key in as_keys(cells)]


def _demand_small(file: Path, kind: str) -> None:
    """Check the size of compressed arrays before any of them is decompressed; HDF5 is checked where it is read."""
    if kind == "npz":
        with reporting_damage(file, "a .npz file of plain arrays"), zipfile.ZipFile(file) as archive:
            demand_size(file, sum(member.file_size for member in archive.infolist()), "bytes when unpacked")
    elif not is_hdf5(file) and file.stat().st_size * _MOST_COMPRESSION > READING.limits.size:
        with reporting_damage(file, "a MATLAB file"):
            demand_size(file, sum(_unpacked_sizes(file)), "bytes when unpacked")


def _unpacked_sizes(file: Path) -> Iterator[int]:
    """Yield the size of every compressed variable of a MATLAB v5 file, decompressing a part at a time."""
    content = file.read_bytes()
    order = "<" if content[126:128] == b"IM" else ">"
    place, limit = 128, READING.limits.size
    while place + 8 <= len(content):
        kind, size = struct.unpack(order + "II", content[place : place + 8])
        if kind == 15:
            unpacker, rest, total = zlib.decompressobj(), content[place + 8 : place + 8 + size], 0
            while rest and total <= limit:
                total += len(unpacker.decompress(rest, 2**20))
                rest = unpacker.unconsumed_tail
            yield total
        place += 8 + size


def read_omics(file: Path, kind: str, wanted: list[str] | None) -> list[ViewFile]:
    """Read the matrix X of an AnnData file, or of every modality of a MuData file, keyed by sample."""
    what = "an AnnData file" if kind == "h5ad" else "a MuData file"
    demand_size(file, file.stat().st_size)
    for package in ("h5py", "anndata"):
        demand_package(package, "omics", f"Reading {what}")
    return [_omics_view(file, group) for group in read_isolated(file, kind, what, wanted)]


def _omics_view(file: Path, group: dict[str, Any]) -> ViewFile:
    name = file.stem if group["name"] is None else str(group["name"])
    ids, features = _texts(group["ids"]), [str(feature) for feature in group["features"]]
    matrix = _numbers(file, name, group["X"])
    if matrix.shape != (len(ids), len(features)):
        raise DataFileError(
            f"The view '{name}' in {file.name!r} has a matrix of shape {matrix.shape} for {len(ids)} samples and "
            f"{len(features)} features. Give a matrix with a row for each sample and a column for each feature."
        )
    features, suffix, column = unique_names(features)[0], suffix_of(file), group["column"]
    source = SourceFormat(suffix[1:], suffix, tuple(features), group["id_name"], "index")
    where = "names of the observations" if column is None else f"column '{column}' of obs"
    return ViewFile(name, file, frame_of(matrix, ids, features), True, source, (f"Sample ids are the {where}.",))
