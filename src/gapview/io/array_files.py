"""Reading ``.npz`` and ``.mat`` files, and finding views, labels and masks among their arrays."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import DataFileError, some
from ..utils.types import Array, Matrix
from ._sources import is_hdf5, reporting_damage
from .isolated import demand_package, read_isolated

_LABELS = ("y", "gt", "gnd", "truth", "groundtruth", "label", "labels", "truelabel", "truelabels", "target", "class")
_NOT_VIEWS = (*_LABELS, "mask", "folds", "sample_ids", "view_names")


def read_npz(file: Path) -> dict[str, Any]:
    """Read the arrays of a ``.npz`` file; nothing in it is ever unpickled."""
    advice = "Objects are never unpickled; save matrices with numpy.savez."
    with (
        reporting_damage(file, "a .npz file of plain arrays", advice),
        warnings.catch_warnings(action="ignore"),  # of damage, which is reported
        file.open("rb") as stream,  # numpy leaves damaged files open
    ):
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


def read_mat(file: Path) -> dict[str, Any]:
    """Read the variables of a MATLAB file of either format, in a process of its own."""
    kind, what = ("mat73", "a MATLAB v7.3 file") if is_hdf5(file) else ("mat", "a MATLAB file")
    if kind == "mat73":
        demand_package("h5py", "matlab", f"Reading {what}")
    return dict(read_isolated(file, kind, what))


def find_views(contents: Mapping[str, Any], target: Array | None, file: Path) -> dict[str, Any]:
    """Return the views in the contents of a file, by name."""
    numbered = sorted((int(match[1]), key) for key in contents if (match := re.fullmatch(r"view_(\d+)", key)))
    if numbered:
        pairs = {key: contents[key] for _, key in numbered}
    else:
        pairs = _samples_in_rows(_unnumbered(contents, file), target, file)
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
    names = [_text(name) for name in np.asarray(contents["view_names"]).ravel()]
    if len(names) != len(keys) or len(set(names)) < len(names):
        raise DataFileError(
            f"view_names in {file.name!r} must give a unique name to each of the {len(keys)} views, {some(keys)}; "
            f"got {some(names, 10) or 'none'}. Correct view_names, or leave it out."
        )
    return names


def _text(name: Any) -> str:
    # MATLAB puts every text of a cell into an array of its own, and pads the rows of a matrix of text with spaces
    return str(name.item() if isinstance(name, np.ndarray) and name.size == 1 else name).strip()


def find_mask(contents: Mapping[str, Any], found: list[str], names: list[str], file: Path) -> Array | None:
    """Return the columns of the mask for the chosen views, or None; its rows are checked by ``Views``."""
    if "mask" not in contents:
        return None
    mask = _dense(contents["mask"])
    if mask.ndim != 2 or mask.shape[1] != len(found):
        raise DataFileError(
            f"mask in {file.name!r} must have one row for each sample and one column for each of the {len(found)} "
            f"views, {some(found)}; got shape {mask.shape}. Correct the mask, or leave it out."
        )
    return np.asarray(mask[:, [found.index(name) for name in names]])


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


def find_target(contents: Mapping[str, Any], file: Path) -> Array | None:
    """Return the group labels in the contents of a file, recoded to 0, 1, 2, …, or None."""
    for key in contents:
        if key.lower() not in _LABELS:  # before the value is loaded: a view can be large
            continue
        value = contents[key]
        if getattr(value, "ndim", 0) not in (1, 2) or value.dtype.kind not in "iufbUS":
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
