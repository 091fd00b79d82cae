"""Views that stay in their files: what the door for data has to know of them, found out block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ParameterError
from ...utils.types import Array
from ...views import Views, demand_enough, is_constant
from ...views.cells import count_missing_cells, row_digest
from ...views.containers import named_views
from ...views.core import read
from ._source import MappedFile, SourceMatrix, is_mapped, mapped_file

__all__ = ["DiskViews", "all_mapped", "read_mapped"]

_BLOCK_BYTES = 2**20


class DiskViews(Views):
    """Views whose matrices are read from the user's files, row by row as they are needed."""

    workspace: Any  # the DiskWorkspace of the fit

    def on_host(self) -> Views:
        """Return the same samples without the workspace of the fit; their matrices are still read when asked for."""
        views = self._like(self.matrices, self.mask, self.sample_ids)
        views.__dict__.pop("workspace", None)
        return views


def all_mapped(data: Any) -> bool:
    """Tell whether every view is a memory map of a file."""
    if isinstance(data, Views):
        return False
    pairs, _, _ = named_views(data)
    return bool(pairs) and all(is_mapped(view) for _, view in pairs)


def read_mapped(data: Any, mask: Any, partial_rows: str, n_clusters: int) -> DiskViews:
    """Read which rows of memory maps are present, and check them as all training data are checked.

    Every view is first read once into a digest of two columns, which is checked instead of the view.
    """
    pairs, _, outer = named_views(data)
    files = [mapped_file(name, view) for name, view in pairs]
    digests = [_digest(file) for file in files]
    stand_in: Any = dict(zip([name for name, _ in pairs], digests, strict=True))
    stand_in = {"dict": stand_in, "list": digests, "single": digests[0]}[outer]
    if partial_rows == "fill":
        _demand_no_gaps(read(stand_in, mask, None, None, None))
    known = Views(stand_in, mask=mask, partial_rows=partial_rows)
    views = DiskViews.__new__(DiskViews)
    views.__dict__.update(known.__dict__)
    views.matrices = tuple(SourceMatrix(file, known.rows(k)) for k, file in enumerate(files))
    constant = (is_constant(matrix, lambda rows: rows.blocks(_BLOCK_BYTES)) for matrix in views.matrices)
    demand_enough(views, constant, n_clusters)
    return views


def _digest(file: MappedFile) -> Array:
    """Return the digest of all rows of a file, read block by block."""
    digest = np.empty((file.shape[0], 2))
    step = max(1, _BLOCK_BYTES // file.row_bytes)
    for begin in range(0, len(digest), step):
        block = digest[begin : begin + step]
        block[:] = row_digest(file.read(begin, begin + len(block)))
    return digest


def _demand_no_gaps(digested: Views) -> None:
    for name, digest in zip(digested.names, digested.matrices, strict=True):
        n_partial = int((count_missing_cells(digest) > 0).sum())
        if n_partial:
            raise ParameterError(
                f"View '{name}' has {n_partial} row(s) with some but not all values, and partial_rows='fill' needs the "
                "whole view in memory, which memory_budget does not allow. Use partial_rows='drop', or fill the gaps "
                "in the file first."
            )
