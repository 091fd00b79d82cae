"""Views from arrays (``.npy``, ``.npz``, ``.mat``) and omics objects (``.h5ad``, ``.h5mu``)."""

from __future__ import annotations

import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

from ..errors import DataFileError, extra, some
from ..utils.messages import numbered
from ..utils.types import Array, Matrix
from ..views.containers import is_missing
from ..views.keys import as_keys
from ..views.tables import counts_rows, demand_digits
from ._dialect import unique_names
from ._sources import READING, decodable, demand_size, is_hdf5, reporting_damage, suffix_of
from ._view_file import SourceFormat, ViewFile
from .isolated import demand_package, read_isolated

_MOST_COMPRESSION = 1032  # the largest factor that deflate can reach
_LABELS = ("y", "gt", "gnd", "truth", "groundtruth", "label", "labels", "truelabel", "truelabels", "target", "class")
_NOT_VIEWS = (*_LABELS, "mask", "folds", "sample_ids", "view_names")


def read_npy(file: Path, wanted: list[str] | None = None) -> ViewFile:
    """Read a single array of numpy: rows are samples. It has no ids, so a wanted column of ids is an error."""
    if wanted:
        raise DataFileError(
            f"{file.name!r} has no column {some(wanted)} to take the sample ids from: a .npy file holds numbers only. "
            "Save ids and numbers with numpy.savez(…, view_0=…, sample_ids=…), or as a table."
        )
    with _opened(file, "an array of numpy") as stream:
        array = np.lib.format.read_array(stream, allow_pickle=False)
    notes = ["An array without sample ids: rows are matched by their position."]
    return _array_view(file, decodable(file.stem), array, None, None, notes)


@contextmanager
def _opened(file: Path, what: str, *advice: str) -> Iterator[BinaryIO]:
    """Open a file for numpy, which warns of damage and leaves damaged files open; report the damage as an error."""
    with reporting_damage(file, what, *advice), warnings.catch_warnings(action="ignore"), file.open("rb") as stream:
        yield stream


def read_arrays(file: Path, kind: str, wanted: list[str] | None = None) -> list[ViewFile]:
    """Read the views of a ``.npz`` or ``.mat`` file, with the ids in ``sample_ids`` or in a wanted vector."""
    contents, found, target, mask = read_contents(file, kind)
    vector = next((name for name in wanted or ["sample_ids"] if name in contents), None)
    if wanted and vector is None:
        raise DataFileError(
            f"{file.name!r} has no array {some(wanted)} to take the sample ids from; it has {some(contents, 8)}. Name "
            "one of these."
        )
    ids = _texts(file, _cells(contents[vector])) if vector else None
    notes = [] if target is None else ["Labels of groups in the file are left out."]
    if ids is None:
        notes.append("The file has no sample ids: rows are matched by their position.")
    names = [decodable(file.stem)] if len(found) == 1 else list(found)
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
    demand_size(file, _n_cells(values), "cells", READING.limits.cells)
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


def frame_of(
    matrix: Matrix, ids: Sequence[str | None] | None, columns: list[str], purpose: str = "Reading views from files"
) -> Any:
    """Return a matrix as a pandas frame, numbered if there are no ids; a sparse one stays sparse."""
    pd = extra("pandas", "tables", purpose)
    index = pd.RangeIndex(matrix.shape[0]) if ids is None else pd.Index(ids, dtype=object)
    if sparse.issparse(matrix):
        return pd.DataFrame.sparse.from_spmatrix(sparse.csc_matrix(matrix), index=index, columns=columns)
    return pd.DataFrame(matrix, index=index, columns=columns, copy=False)


def _texts(file: Path, cells: Sequence[Any]) -> list[str]:
    demand_digits(repr(file.name), cells)
    return [key or "" for key in as_keys(cells)]


def _cells(array: Any) -> list[Any]:
    """Return the values of a vector; MATLAB puts every text of a cell into an array of its own."""
    cells = np.asarray(array).ravel().tolist()
    return [next(iter(cell.ravel().tolist()), None) if isinstance(cell, np.ndarray) else cell for cell in cells]


def _demand_small(file: Path, kind: str) -> None:
    """Check the size of compressed arrays before any of them is decompressed; HDF5 is checked where it is read."""
    if kind == "npz" and zipfile.is_zipfile(file):
        with reporting_damage(file, "a .npz file of plain arrays"), zipfile.ZipFile(file) as archive:
            demand_size(file, sum(member.file_size for member in archive.infolist()), "bytes when unpacked")
    elif kind == "mat" and not is_hdf5(file) and file.stat().st_size * _MOST_COMPRESSION > READING.limits.size:
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


def read_omics(file: Path, kind: str, wanted: list[str] | None, places: Mapping[str, str]) -> list[ViewFile]:
    """Read a matrix of an AnnData file, or of every modality of a MuData file, keyed by sample.

    ``places`` holds where the matrix of a modality stands, and under the empty name where all others do.
    """
    what = "an AnnData file" if kind == "h5ad" else "a MuData file"
    for package in ("h5py", "anndata"):
        demand_package(package, "omics", f"Reading {what}")
    views = []
    for group in read_isolated(file, kind, what, wanted, places=dict(places)):
        name, column = decodable(file.stem) if group["name"] is None else str(group["name"]), group["column"]
        where = "names of the observations" if column is None else f"column '{column}' of obs"
        source = SourceFormat(kind, suffix_of(file), id_name=group["id_name"], id_place="index")
        place = places.get(group["name"] or "", places.get("", "X"))
        notes = () if place == "X" else (f"The matrix is {place.removesuffix('/X')} of the AnnData.",)
        features = [str(feature) for feature in group["features"]]
        views.append(
            matrix_view(file, name, group["X"], group["ids"], features, source, where, notes, may_count=column is None)
        )
    return views


def read_obs(file: Path, column: str, wanted: Sequence[str] = ()) -> tuple[dict[str, Any], list[str]]:
    """Read a column of ``obs`` of an AnnData or MuData file, by sample; return it with the columns that there are.

    Parameters
    ----------
    file : Path
        The file, which ends in .h5ad or .h5mu.
    column : str
        Name of the column, of the whole file or of modalities.
    wanted : sequence of str, optional
        Columns that may hold the sample ids, as in :func:`gapview.io.read_view`.

    Raises
    ------
    DataFileError
        If modalities have different values for a sample.
    """
    for package in ("h5py", "anndata"):
        demand_package(package, "omics", f"Reading obs of {file.name!r}")
    found: dict[str, Any] = {}
    columns: list[str] = []
    for group in read_isolated(file, file.suffix[1:].lower(), "an omics file", wanted, obs=column):
        columns += group["columns"]
        for key, value in zip(map(str, group["ids"]), group["values"], strict=True):
            if not is_missing(value) and found.setdefault(key, value) != value:
                raise DataFileError(
                    f"{file.name!r} has two values of {column!r} for the sample {key!r}: {found[key]!r} and {value!r}. "
                    "Give the right one with --covariates."
                )
    return found, list(dict.fromkeys(columns))


def matrix_view(
    file: Path,
    name: str,
    values: Any,
    ids: Sequence[Any] | None,
    features: list[str] | None,
    source: SourceFormat,
    where: str,
    notes: Sequence[str] = (),
    *,
    may_count: bool = True,
) -> ViewFile:
    """Return a view of a matrix with names of rows and columns, if it has them.

    ``where`` says where the ids stand. Ids that only number the rows are none, if ``may_count``.
    """
    matrix = _numbers(file, name, values)
    features = numbered(matrix.shape[1]) if features is None else unique_names(features)[0]
    keys = None if ids is None else _texts(file, ids)
    n_rows = matrix.shape[0] if keys is None else len(keys)
    if matrix.shape != (n_rows, len(features)):
        raise DataFileError(
            f"The view '{name}' in {file.name!r} has a matrix of shape {matrix.shape} for {n_rows} samples and "
            f"{len(features)} features. Give a matrix with a row for each sample and a column for each feature."
        )
    source = replace(source, columns=tuple(features))
    if keys is not None and not (may_count and counts_rows(keys)):  # AnnData numbers samples without names
        notes = (*notes, f"Sample ids are the {where}.")
        return ViewFile(name, file, frame_of(matrix, keys, features), True, source, notes)
    reason = "The matrix has no names of rows" if keys is None else f"The {where} only number them"
    source = replace(source, id_name=None, id_place="none")
    notes = (*notes, f"{reason}: rows are matched by their position.")
    return ViewFile(name, file, frame_of(matrix, None, features), False, source, notes)


# -- the contents of .npz and .mat files ----------------------------------------------------------------------------


def read_contents(file: Path, kind: str) -> tuple[dict[str, Any], dict[str, Any], Array | None, Array | None]:
    """Return all arrays in a ``.npz`` or ``.mat`` file, and among them the views, the labels and the mask.

    Sizes are checked before anything is decompressed.
    """
    demand_size(file, file.stat().st_size)
    _demand_small(file, kind)
    contents = _read_npz(file) if kind == "npz" else _read_mat(file)
    target = _find_target(contents, file)
    found = _find_views(contents, target, file)
    for matrix in found.values():
        demand_size(file, _n_cells(matrix), "cells", READING.limits.cells)
    return contents, found, target, _find_mask(contents, list(found), file)


def _n_cells(matrix: Any) -> int:
    """Return the number of values that a matrix holds: of a sparse one the stored ones, or the rows or columns."""
    return max(matrix.nnz, *matrix.shape) if sparse.issparse(matrix) else int(np.size(matrix))


def _read_npz(file: Path) -> dict[str, Any]:
    """Read the arrays of a ``.npz`` file; nothing in it is ever unpickled."""
    advice = "Objects are never unpickled; save matrices with numpy.savez."
    with _opened(file, "a .npz file of plain arrays", advice) as stream:
        archive = np.load(stream, allow_pickle=False)
        if isinstance(archive, np.ndarray):  # numpy detects the format from the contents
            raise DataFileError(
                f"{file.name!r} cannot be read as a .npz file: it holds a single array, as numpy.save writes it. "
                "Save all views into one file with numpy.savez."
            )
        with archive:
            return {key: _demand_text(archive[key]) for key in archive.files}


def _demand_text(array: Any) -> Any:
    """Return the array; raise an error if it holds text of characters that do not exist."""
    if getattr(array, "dtype", None) is not None and array.dtype.kind == "U":
        np.char.encode(array, "utf-8")
    return array


def _read_mat(file: Path) -> dict[str, Any]:
    """Read the variables of a MATLAB file of either format, in a process of its own."""
    kind, what = ("mat73", "a MATLAB v7.3 file") if is_hdf5(file) else ("mat", "a MATLAB file")
    if kind == "mat73":
        demand_package("h5py", "matlab", f"Reading {what}")
    return dict(read_isolated(file, kind, what))


def _find_views(contents: Mapping[str, Any], target: Array | None, file: Path) -> dict[str, Any]:
    """Return the views in the contents of a file, by name."""
    order = sorted((int(match[1]), key) for key in contents if (match := re.fullmatch(r"view_(\d+)", key)))
    pairs = {key: contents[key] for _, key in order} or _samples_in_rows(_unnumbered(contents, file), target, file)
    names = _find_names(contents, list(pairs), file)
    return dict(zip(names, pairs.values(), strict=True))


def _unnumbered(contents: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """Return the matrices of the only cell array of matrices, or else all matrices."""
    cells = {key: value for key, value in contents.items() if _is_cell_of_matrices(value)}
    if len(cells) > 1:
        raise DataFileError(
            f"{file.name!r} holds several cell arrays that could be the views: {some(cells)}. Keep one of them."
        )
    if cells:
        return {f"view_{k}": matrix for k, matrix in enumerate(next(iter(cells.values())).ravel())}
    pairs = {key: value for key, value in contents.items() if _is_matrix(value) and key.lower() not in _NOT_VIEWS}
    if not pairs:
        raise DataFileError(
            f"{file.name!r} holds no views. Expected view_0, view_1, …, or (.mat) a cell array of matrices such as "
            f"X, or several matrices; got {some(contents) or 'nothing'}."
        )
    return pairs


def _find_names(contents: Mapping[str, Any], keys: list[str], file: Path) -> list[str]:
    if "view_names" not in contents:
        return keys
    names = [str(name).strip() for name in _cells(contents["view_names"])]  # MATLAB pads text with spaces
    if len(names) != len(keys) or len(set(names)) < len(names):
        raise DataFileError(
            f"view_names in {file.name!r} must give a unique name to each of the {len(keys)} views, {some(keys)}; "
            f"got {some(names, 10) or 'none'}. Correct view_names, or leave it out."
        )
    return names


def _find_mask(contents: Mapping[str, Any], found: list[str], file: Path) -> Array | None:
    """Return the mask, with a column for each view, or None; its rows are checked by ``Views``."""
    if "mask" not in contents:
        return None
    mask = _dense(contents["mask"])
    if mask.ndim != 2 or mask.shape[1] != len(found):
        raise DataFileError(
            f"mask in {file.name!r} must have one row for each sample and one column for each of the {len(found)} "
            f"views, {some(found)}; got shape {mask.shape}. Correct the mask, or leave it out."
        )
    return mask


def _samples_in_rows(pairs: dict[str, Any], target: Array | None, file: Path) -> dict[str, Any]:
    """Transpose matrices that hold samples in columns."""
    n_samples = len(target) if target is not None else _shared_length(pairs, file)
    for name, matrix in pairs.items():
        if n_samples not in matrix.shape:
            raise DataFileError(
                f"The matrix {name!r} in {file.name!r} is {matrix.shape[0]} × {matrix.shape[1]}; neither is the "
                f"number of samples, {n_samples}."
            )
    return {name: matrix if matrix.shape[0] == n_samples else matrix.T for name, matrix in pairs.items()}


def _shared_length(pairs: dict[str, Any], file: Path) -> int:
    shapes = [matrix.shape for matrix in pairs.values()]
    shared = set(shapes[0]).intersection(*shapes[1:])
    if len(shared) == 1:
        return int(shared.pop())
    if len({shape[0] for shape in shapes}) == 1:
        return int(shapes[0][0])
    raise DataFileError(
        f"The matrices in {file.name!r} share no single number of samples: {', '.join(map(str, shapes))}. "
        "Keep the matrices of the views alone, and a vector of labels."
    )


def _is_matrix(value: Any) -> bool:
    if sparse.issparse(value):
        return True
    return isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "iufb" and min(value.shape) > 1


def _is_cell_of_matrices(value: Any) -> bool:
    if not (isinstance(value, np.ndarray) and value.dtype == object and value.size):
        return False
    return all(sparse.issparse(item) or getattr(item, "ndim", 0) == 2 for item in value.ravel())


def _find_target(contents: Mapping[str, Any], file: Path) -> Array | None:
    """Return the group labels in the contents of a file, recoded to 0, 1, 2, …, or None."""
    for key, value in contents.items():
        n_axes = getattr(value, "ndim", 0)
        if key.lower() not in _LABELS or n_axes not in (1, 2) or value.dtype.kind not in "iufbUS":
            continue
        labels = _labels(value)
        if labels is None:
            raise DataFileError(
                f"{key!r} in {file.name!r} has a name for labels, but its shape is {value.shape}. Expected a vector "
                "with one label for each sample, or a matrix of 0 and 1 with one 1 for each sample. If it is a view, "
                "save it under another name, such as view_0."
            )
        return np.asarray(np.unique(labels, return_inverse=True)[1])
    return None


def _labels(value: Matrix) -> Array | None:
    """Return labels from a vector, or from a matrix that marks the group of every sample by a 1; else None."""
    if max(value.shape) == np.prod(value.shape):
        return _dense(value).ravel()
    stored = value.data if sparse.issparse(value) else value
    if value.dtype.kind in "US" or not np.isin(stored, (0, 1)).all():
        return None
    for axis in (1, 0):  # samples in rows, or in columns
        if (np.asarray(value.sum(axis=axis)) == 1).all():
            return np.asarray(value.argmax(axis=axis)).ravel()
    return None


def _dense(value: Any) -> Array:
    return np.asarray(value.toarray() if sparse.issparse(value) else value)
