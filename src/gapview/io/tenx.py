"""Count matrices of 10x Genomics: HDF5 files of CellRanger (``.h5``) and folders with ``matrix.mtx``."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataFileError, some
from ..utils.messages import counted
from ._sources import demand_size, matrix_files, stem_of
from ._view_file import SourceFormat, ViewFile
from .array_files import matrix_view
from .isolated import demand_package, read_isolated

_WHAT = "a count matrix of 10x Genomics"
_SHORT = {"Gene Expression": "rna", "Antibody Capture": "prot", "Peaks": "atac"}  # as in muon


def read_10x(file: Path, kind: str) -> list[ViewFile]:
    """Read a count matrix; every type of features, such as genes and antibodies, is a view."""
    if kind == "10x":
        demand_package("h5py", "omics", f"Reading {_WHAT}")
        found = read_isolated(file, kind, _WHAT)
    else:
        parts = _parts(file)
        for part in parts:
            demand_size(part, part.stat().st_size)
        found = read_isolated(parts[0], kind, _WHAT, parts=[os.path.abspath(part) for part in parts])
    return [view for one in found for view in _views(file, one)]


def _parts(path: Path) -> tuple[Path, Path, Path]:
    """Return the files of matrix, barcodes and features, which have the same beginning of their names."""
    found = matrix_files(path) if os.path.isdir(path) else [path]
    if len(found) > 1:
        raise DataFileError(
            f"{str(path)!r} holds {len(found)} matrices: {some([file.name for file in found])}. "
            "Give one of these files."
        )
    (matrix,) = found
    begin = matrix.name[: matrix.name.lower().rfind("matrix.mtx")] if "matrix.mtx" in matrix.name.lower() else None
    others = []
    for names in (("barcodes.tsv",), ("features.tsv", "genes.tsv")):
        wanted = [f"{begin or ''}{name}{packed}" for name in names for packed in ("", ".gz")]
        there = [matrix.parent / name for name in wanted if (matrix.parent / name).is_file()]
        if not there:
            raise DataFileError(
                f"{matrix.name!r} needs a file of names beside it: one of {', '.join(wanted)}. Put it into the folder "
                f"{str(matrix.parent)!r}."
            )
        others.append(there[0])
    return matrix, others[0], others[1]


def _views(file: Path, one: dict[str, Any]) -> list[ViewFile]:
    n_features = len(one["ids"])
    kinds = one["kinds"] if len(one["kinds"]) == n_features else ["Gene Expression"] * n_features
    matrix, barcodes = one["X"], one["barcodes"]
    names = _unique(one["names"], one["ids"])
    if matrix.shape != (len(barcodes), n_features):
        raise DataFileError(
            f"{file.name!r} has a matrix of shape {matrix.shape} for {len(barcodes)} barcodes and {n_features} "
            "features. Get it again."
        )
    types = list(dict.fromkeys(kinds))
    found = []
    for kind in types:
        place = np.flatnonzero(np.asarray(kinds) == kind)
        name = _SHORT.get(kind, kind) if len(types) > 1 else one["genome"] or stem_of(file)
        source = SourceFormat("h5ad", ".h5ad", id_name="barcode", id_place="index")
        part = matrix[:, place] if len(types) > 1 else matrix
        note = f"Count matrix of 10x Genomics: {counted(len(place), 'feature')} of type '{kind}'."
        columns = [names[k] for k in place]
        found.append(matrix_view(file, name, part, barcodes, columns, source, "barcodes", (note,)))
    return found


def _unique(names: list[str], ids: list[str]) -> list[str]:
    """Return the names of features, with the id behind a name that several of them have."""
    times = Counter(names)
    return [name if times[name] == 1 else f"{name} ({key})" for name, key in zip(names, ids, strict=True)]
