"""Reading count matrices of 10x Genomics, in the process of ``reader``, which loads this file.

They hold a column for each barcode (cell); a view has a row for each.
"""

from __future__ import annotations

import gzip
import io
import os
from typing import Any

import numpy as np
from scipy import sparse

from gapview.utils.refusals import Refused, check_size

_PART = 2**20


def read_hdf5(archive: Any, name: str, cells: int) -> list[Any]:
    """Return the matrices of a HDF5 file of CellRanger: of version 3 one, of version 2 one for each genome."""
    import h5py

    groups = [key for key in archive if isinstance(archive[key], h5py.Group) and set(archive[key]) >= _PARTS]
    if not groups:
        raise Refused(
            f"{name!r} is no count matrix of 10x Genomics: it has no group with {', '.join(sorted(_PARTS))}. If it is "
            "an AnnData, MuData or MATLAB file, rename it to end in .h5ad, .h5mu or .mat."
        )
    return [_read_group(archive[key], key, len(groups) > 1, name, cells) for key in groups]


_PARTS = {"barcodes", "data", "indices", "indptr", "shape"}


def _read_group(group: Any, key: str, is_one_of_several: bool, name: str, cells: int) -> dict[str, Any]:
    check_size(name, group["data"].size, "cells", cells)
    n_features, n_barcodes = (int(size) for size in group["shape"][()])
    values = (group["data"][()], group["indices"][()], group["indptr"][()])
    features = group.get("features")
    ids = _texts(group["genes"] if features is None else features["id"])
    names = _texts(group["gene_names"] if features is None else features["name"])
    kinds = _texts(features["feature_type"]) if features is not None and "feature_type" in features else []
    return {
        "genome": key if is_one_of_several else None,
        "barcodes": _texts(group["barcodes"]),
        "X": sparse.csr_array(values, shape=(n_barcodes, n_features)),  # barcodes are stored one after the other
        "ids": ids,
        "names": names,
        "kinds": kinds,
    }


def _texts(dataset: Any) -> list[str]:
    return [item.decode("utf-8", "replace") if isinstance(item, bytes) else str(item) for item in dataset[()].ravel()]


def read_folder(request: dict[str, Any]) -> list[Any]:
    """Return the matrix of a folder: a matrix in the Matrix Market format and tables of barcodes and features."""
    from scipy.io import mmread

    matrix_file, barcodes_file, features_file = request["parts"]
    barcodes = [line.split("\t")[0] for line in _lines(barcodes_file, request["size"])]
    rows = [line.split("\t") for line in _lines(features_file, request["size"])]
    content = _content(matrix_file, request["size"])
    _check_matrix_market(content, os.path.basename(matrix_file), request["cells"], (len(rows), len(barcodes)))
    matrix = mmread(io.BytesIO(content))
    return [
        {
            "genome": None,
            "barcodes": barcodes,
            "X": sparse.csr_array(matrix.T) if sparse.issparse(matrix) else np.asarray(matrix).T,
            "ids": [row[0] for row in rows],
            "names": [row[1] if len(row) > 1 else row[0] for row in rows],
            "kinds": [row[2] for row in rows] if rows and all(len(row) > 2 for row in rows) else [],
        }
    ]


def _check_matrix_market(content: bytes, name: str, cells: int, shape: tuple[int, int]) -> None:
    """Refuse a matrix of another shape than its names, or with more values than are read or are there."""
    if not content.startswith(b"%%MatrixMarket"):
        raise Refused(f"{name!r} is no matrix in the Matrix Market format: it does not begin with %%MatrixMarket.")
    lines = io.BytesIO(content)
    sizes = next((line for line in lines if line.strip() and not line.startswith(b"%")), b"").split()
    n_rows, n_columns, n_values = [int(size) for size in (*sizes, b"0")[:3]]
    if (n_rows, n_columns) != shape:
        raise Refused(
            f"{name!r} has {n_rows:,} rows and {n_columns:,} columns, but there are {shape[0]:,} features and "
            f"{shape[1]:,} barcodes in the files beside it. Get the files of one matrix."
        )
    n_stored = n_values if b"coordinate" in content[:200].lower() else n_rows * n_columns
    check_size(name, n_stored, "cells", cells)
    if n_stored > len(content):
        raise Refused(f"{name!r} is cut off or damaged: it declares {n_stored:,} values and is shorter. Get it again.")


def _lines(file: str, most: int) -> list[str]:
    return _content(file, most).decode("utf-8", "replace").splitlines()


def _content(file: str, most: int) -> bytes:
    """Return all bytes of a file, decompressed within a limit."""
    content = bytearray()
    opener: Any = gzip.open if file.lower().endswith(".gz") else open
    with opener(file, "rb") as stream:
        while part := stream.read(_PART):
            content += part
            check_size(os.path.basename(file), len(content), "bytes or more when unpacked", most, "size")
    return bytes(content)
