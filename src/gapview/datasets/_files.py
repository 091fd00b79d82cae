"""Views from files: ``.npz`` of numpy, ``.mat`` of MATLAB in both its formats."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.io import loadmat
from scipy.io.matlab import MatReadError

from ..errors import DataFileError, InputError, MissingExtraError, some
from ..views import Array, Views
from ._dataset import Dataset

__all__ = ["load_views"]

_LABEL_KEYS = (
    "y",
    "gt",
    "truth",
    "gnd",
    "label",
    "labels",
    "truelabel",
    "target",
    "truelabels",
    "groundtruth",
    "class",
)


def load_views(path: Any, *, views: Sequence[int | str] | None = None) -> Dataset:
    """Load views from a ``.npz`` or ``.mat`` file.

    A ``.npz`` holds ``view_0``, ``view_1``, …, and may hold ``y`` (groups), ``mask`` (samples × views, 1 = present),
    ``view_names``, ``sample_ids`` and ``folds``; nothing in it is ever unpickled. A ``.mat`` file, older (v5) or newer
    (v7.3, HDF5), holds the views as a cell array such as ``X``, or as several matrices that share a number of samples,
    and may hold the groups as a vector such as ``Y`` or ``gt``. Matrices that hold samples in columns are turned.

    Parameters
    ----------
    path : str or path
        The file.
    views : sequence of int or str, optional
        Positions or names of the views to take, in this order; by default all. The paper's Caltech7 is
        ``load_views("Caltech101-7.mat", views=[4, 5])``.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from gapview.datasets import load_views
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "two.npz"
    ...     np.savez(path, view_0=np.eye(4), view_1=np.ones((4, 2)), y=[0, 0, 1, 1])
    ...     load_views(path).views
    Views of 4 samples, 4 of them complete: 'view_0' 4 × 4, 'view_1' 4 × 2
    """
    file = Path(path)
    if not file.is_file():
        raise DataFileError(f"There is no file {str(file)!r}. Give the path of a .npz or .mat file.")
    readers = {".npz": _read_npz, ".mat": _read_mat}
    if file.suffix.lower() not in readers:
        raise DataFileError(
            f"{file.name!r} is neither .npz nor .mat; load_views reads these two. Read other files with pandas."
        )
    contents = readers[file.suffix.lower()](file)
    found = _find_views(contents, file)
    names = list(found)
    if views is not None:
        names = [_chosen(choice, names, file) for choice in views]
    target = _find_target(contents)
    mask = contents.get("mask")
    if mask is not None:
        mask = np.asarray(mask)[:, [list(found).index(name) for name in names]]
    whole = Views({name: found[name] for name in names}, mask=mask, sample_ids=contents.get("sample_ids"))
    if target is not None and len(target) != whole.n_samples:
        raise DataFileError(f"{file.name!r} holds {len(target)} labels for {whole.n_samples} samples.")
    description = str(contents.get("source", file.name))
    folds = contents.get("folds")
    return Dataset(file.stem, whole, target, description, None if folds is None else np.asarray(folds))


def _read_npz(file: Path) -> dict[str, Any]:
    try:
        with np.load(file, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except (ValueError, OSError, zipfile.BadZipFile, EOFError, KeyError) as error:
        raise DataFileError(
            f"{file.name!r} cannot be read as a .npz file of plain arrays: {error}. Objects are never unpickled; "
            "save matrices with numpy.savez."
        ) from None


def _read_mat(file: Path) -> dict[str, Any]:
    with file.open("rb") as stream:
        is_hdf5 = stream.read(520)[-8:] == b"\x89HDF\r\n\x1a\n" or _begins_as_hdf5(file)
    if is_hdf5:
        return _read_mat73(file)
    try:
        contents = loadmat(file)
    except (
        ValueError,
        OSError,
        TypeError,
        KeyError,
        IndexError,
        EOFError,
        NotImplementedError,
        MatReadError,
    ) as error:
        raise DataFileError(f"{file.name!r} cannot be read as a MATLAB file: {error}.") from None
    return {key: value for key, value in contents.items() if not key.startswith("__")}


def _begins_as_hdf5(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(8) == b"\x89HDF\r\n\x1a\n"


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
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise DataFileError(f"{file.name!r} cannot be read as a MATLAB v7.3 file: {error}.") from None


def _read_sparse(node: Any) -> Any:
    shape = (int(node.attrs["MATLAB_sparse"]), len(node["jc"]) - 1)
    if "data" not in node:
        return sparse.csc_array(shape)
    return sparse.csc_array((node["data"][()], node["ir"][()], node["jc"][()]), shape=shape)


def _find_views(contents: Mapping[str, Any], file: Path) -> dict[str, Any]:
    named = [f"view_{k}" for k in range(len(contents)) if f"view_{k}" in contents]
    if named:
        names = [str(name) for name in np.asarray(contents.get("view_names", named)).ravel()]
        names = names if len(names) == len(named) else named
        return {name: contents[key] for name, key in zip(names, named, strict=True)}
    cells = {key: value for key, value in contents.items() if _is_cell_of_matrices(value)}
    if len(cells) == 1:
        matrices = list(next(iter(cells.values())).ravel())
        pairs = {f"view_{k}": matrix for k, matrix in enumerate(matrices)}
    elif not cells:
        pairs = {key: value for key, value in contents.items() if _is_matrix(value) and key not in ("mask", "folds")}
    else:
        raise DataFileError(
            f"{file.name!r} holds several cell arrays that could be the views: {some(cells)}. Keep one of them."
        )
    if not pairs:
        raise DataFileError(
            f"{file.name!r} holds no views. Expected view_0, view_1, …, or (.mat) a cell array of matrices such as "
            f"X, or several matrices; got {some(contents) or 'nothing'}."
        )
    return _samples_in_rows(pairs, _find_target(contents), file)


def _samples_in_rows(pairs: dict[str, Any], target: Array | None, file: Path) -> dict[str, Any]:
    n_samples = len(target) if target is not None else _shared_length(pairs, file)
    turned = {}
    for name, matrix in pairs.items():
        if n_samples not in matrix.shape:
            raise DataFileError(
                f"The matrix {name!r} in {file.name!r} is {matrix.shape[0]} × {matrix.shape[1]}; neither is the "
                f"number of samples, {n_samples}."
            )
        turned[name] = matrix if matrix.shape[0] == n_samples else matrix.T
    return turned


def _shared_length(pairs: dict[str, Any], file: Path) -> int:
    shapes = [matrix.shape for matrix in pairs.values()]
    shared = set(shapes[0]).intersection(*shapes[1:])
    if len(shared) != 1 and len({shape[0] for shape in shapes}) == 1:
        return int(shapes[0][0])
    if len(shared) != 1:
        raise DataFileError(
            f"The matrices in {file.name!r} share no single number of samples: {', '.join(map(str, shapes))}. "
            "Keep the matrices of the views alone, and a vector of labels."
        )
    return int(shared.pop())


def _is_matrix(value: Any) -> bool:
    if sparse.issparse(value):
        return True
    return isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "iufb" and min(value.shape) > 1


def _is_cell_of_matrices(value: Any) -> bool:
    if not (isinstance(value, np.ndarray) and value.dtype == object and value.size):
        return False
    return all(sparse.issparse(item) or getattr(item, "ndim", 0) == 2 for item in value.ravel())


def _find_target(contents: Mapping[str, Any]) -> Array | None:
    for key, value in contents.items():
        array = np.asarray(value) if not sparse.issparse(value) else value.toarray()
        if key.lower() in _LABEL_KEYS and array.dtype.kind in "iufbUS" and array.size == max(array.shape, default=0):
            _, codes = np.unique(array.ravel(), return_inverse=True)
            return np.asarray(codes)
    return None


def _chosen(choice: int | str, names: list[str], file: Path) -> str:
    if isinstance(choice, str) and choice in names:
        return choice
    if isinstance(choice, int | np.integer) and -len(names) <= choice < len(names):
        return names[choice]
    raise InputError(f"{file.name!r} has no view {choice!r}; it has {len(names)}: {some(names, 10)}.")
