"""Views from files: ``.npz`` of numpy, ``.mat`` of MATLAB in both its formats."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataFileError, InputError, InputTypeError, some
from ..io.array_contents import find_mask, find_target, find_views
from ..io.array_files import read_mat, read_npz
from ..views import Views
from ._dataset import Dataset, chosen_views

__all__ = ["load_views"]


def load_views(path: Any, *, views: Sequence[int | str] | None = None) -> Dataset:
    """Load views from a ``.npz`` or ``.mat`` file.

    A ``.npz`` holds ``view_0``, ``view_1``, … (counted from any number, taken in the order of the numbers), and may
    hold ``y`` (groups), ``mask`` (samples × views, 1 = present), ``view_names``, ``sample_ids`` and ``folds``; nothing
    in it is ever unpickled. A ``.mat`` file, older (v5) or newer (v7.3, HDF5), holds the views as a cell array such as
    ``X``, or as several matrices that share a number of samples, and may hold the groups under a name such as ``Y`` or
    ``gt``. Matrices that hold samples in columns are turned.

    The groups are a vector with one label for each sample, or a matrix of 0 and 1 with one column for each group. In
    ``target`` they are recoded to 0, 1, 2, … in the sorted order of the labels.

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
    if not isinstance(path, str | os.PathLike):
        raise InputTypeError(f"path must be the path of a .npz or .mat file; got {path!r}.")
    file = Path(path)
    if not os.path.isfile(file):  # Path.is_file raises for names that no file can have
        raise DataFileError(f"There is no file {str(file)!r}. Give the path of a .npz or .mat file.")
    readers = {".npz": read_npz, ".mat": read_mat}
    if file.suffix.lower() not in readers:
        raise DataFileError(
            f"{file.name!r} is neither .npz nor .mat; load_views reads these two. Read other files with pandas."
        )
    contents = readers[file.suffix.lower()](file)
    target = find_target(contents, file)
    found = find_views(contents, target, file)
    names = list(found)
    if views is not None:
        names = chosen_views(views, lambda choice: _chosen(choice, list(found), file))
    mask = find_mask(contents, list(found), names, file)
    whole = Views({name: found[name] for name in names}, mask=mask, sample_ids=contents.get("sample_ids"))
    if target is not None and len(target) != whole.n_samples:
        raise DataFileError(f"{file.name!r} holds {len(target)} labels for {whole.n_samples} samples.")
    description = str(contents.get("source", file.name))
    folds = contents.get("folds")
    return Dataset(file.stem, whole, target, description, None if folds is None else np.asarray(folds))


def _chosen(choice: Any, names: list[str], file: Path) -> str:
    if isinstance(choice, str) and choice in names:
        return choice
    is_position = isinstance(choice, int | np.integer) and not isinstance(choice, bool)
    if is_position and -len(names) <= choice < len(names):
        return names[int(choice)]
    raise InputError(f"{file.name!r} has no view {choice!r}; it has {len(names)}: {some(names, 10)}.")
