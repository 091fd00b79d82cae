"""Tables and matrices of files of R: ``.rds``, ``.rda`` and ``.RData``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataFileError
from ..utils.messages import numbered
from ._sources import stem_of, suffix_of
from ._view_file import SourceFormat, ViewFile
from .array_files import matrix_view
from .isolated import demand_package, read_isolated
from .tables import RawTable, arrow


def read_r(file: Path) -> list[tuple[str, RawTable | ViewFile]]:
    """Return the data frames and matrices of a file by name; other objects are noted in the first."""
    arrow()
    demand_package("rdata", "r", "Reading files of R")
    objects = read_isolated(file, "r", "a file of R")
    names = [one["name"] or stem_of(file) for one in objects]
    is_read = [one["kind"] == "matrix" or (one["kind"] == "table" and bool(one["columns"])) for one in objects]
    skipped = [
        f"'{name}' ({one.get('class', 'empty')})"
        for name, one, read in zip(names, objects, is_read, strict=True)
        if not read
    ]
    listed = ", ".join(skipped[:10]) + ", …" * (len(skipped) > 10)
    if not any(is_read):
        raise DataFileError(
            f"{file.name!r} holds no data frame and no matrix{f': {listed}' if skipped else ''}. In R, save the table "
            "itself: saveRDS(as.data.frame(x), 'x.rds')."
        )
    notes = [f"Objects of the file left out: {listed}."] if skipped else []
    found: list[tuple[str, RawTable | ViewFile]] = []
    for name, one, read in zip(names, objects, is_read, strict=True):
        if read:
            found.append((name, (_table if one["kind"] == "table" else _matrix)(file, name, one, notes)))
            notes = []
    return found


def _table(file: Path, name: str, one: dict[str, Any], notes: list[str]) -> RawTable:
    """Return a data frame; its row names, if there are any, are its first column."""
    names = [str(column or "") for column in one["names"]]
    columns = [_column(file, cells) for cells in one["columns"]]
    index = None
    if one["rows"] is not None:
        names, columns, index = ["row.names", *names], [arrow().array(one["rows"], arrow().string()), *columns], 0
    lengths = {len(column) for column in columns}
    if len(lengths) != 1 or len(names) != len(columns):
        raise DataFileError(f"{file.name!r} is damaged: the columns of '{name}' differ in length. Get it again.")
    source = SourceFormat("r", suffix_of(file), tuple(names))
    columns = arrow().table(columns, names=numbered(len(names))).columns
    return RawTable(file, names, columns, lengths.pop(), source, index=index, notes=["Data frame of R.", *notes])


def _column(file: Path, cells: Any) -> Any:
    pa = arrow()
    if isinstance(cells, np.ndarray) and cells.ndim == 1:
        return pa.array(cells, mask=np.isnan(cells)) if cells.dtype.kind == "f" else pa.array(cells)
    if isinstance(cells, list):
        return pa.array(cells, pa.string())
    raise DataFileError(
        f"{file.name!r} has a data frame with a column of lists or matrices. In R, put these into columns of their own."
    )


def _matrix(file: Path, name: str, one: dict[str, Any], notes: list[str]) -> ViewFile:
    rows = None if one["rows"] is None else [str(key or "") for key in one["rows"]]
    columns = None if one["columns"] is None else [str(column or "") for column in one["columns"]]
    source = SourceFormat(
        "r", suffix_of(file), id_name="row.names", id_place="index", header="none" if columns is None else "line"
    )
    return matrix_view(file, name, one["X"], rows, columns, source, "names of the rows", ("Matrix of R.", *notes))
