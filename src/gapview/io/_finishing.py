"""From the parts of a file to a view: ids from features, rows that share an id, what holds nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import DataFileError, some
from ..utils.types import Array
from ..utils.words import counted, percent
from ._arrays import frame_of
from ._columns import find_features
from ._sources import suffix_of
from ._table import Table, arrow
from ._view_file import ViewFile
from .ids import demand_ids, find_ids, repeated

__all__ = ["finished", "from_table"]

_Places = Callable[[Sequence[int]], str]


def from_table(table: Table, wanted: list[str] | None, encode: bool, duplicates: str) -> ViewFile:
    """Tell ids from features, and make a frame of numbers."""
    file = table.file
    if not table.n_rows:
        raise DataFileError(f"{file.name!r} has no rows below its header. Give a file with samples, or leave it out.")
    ids = find_ids(table, wanted)
    features = find_features(table, ids.skip, encode)
    notes = [*table.notes, *ids.notes, *features.told()]
    if not features.names:
        raise DataFileError(
            f"{file.name!r} has no column of numbers, so there is nothing to compare samples by. {' '.join(notes)}"
        )
    values, keys = features.matrix(table.n_rows), ids.keys
    rows = np.arange(table.n_rows)
    if keys is not None and (blank := _blank_rows(table, values, keys)).any():
        notes.append(f"{counted(int(blank.sum()), 'row')} without any value left out.")
        rows = rows[~blank]
        values, keys = values[rows], [keys[row] for row in rows]
    source = replace(
        table.format,
        id_name=None if ids.position is None else table.names[ids.position],
        id_place=ids.place,
        id_type=ids.kind,
    )
    frame = frame_of(values, keys, features.names)
    name = file.name[: -len(suffix_of(file))]
    view = ViewFile(name, file, frame, keys is not None, source, tuple(notes), features.empty)
    return finished(view, duplicates, lambda some_rows: table.places([int(rows[row]) for row in some_rows]))


def _blank_rows(table: Table, values: Array, keys: Sequence[str | None]) -> Array:
    """Find rows with neither an id nor any value, as spreadsheets leave them at the end."""
    blank = np.asarray([not key for key in keys])
    blank[blank] = np.isnan(values[blank]).all(axis=1)
    for column in table.columns:
        if blank.any():
            rows = arrow().array(np.flatnonzero(blank))
            blank[blank] = np.asarray(column.take(rows).is_null().to_pylist(), dtype=bool)
    return blank


def finished(view: ViewFile, duplicates: str, places: _Places) -> ViewFile:
    """Settle rows that share an id, and drop what holds nothing."""
    notes = list(view.notes)
    frame = view.frame
    if view.keyed:
        keys = frame.index.tolist()
        demand_ids(view.path, keys, places)
        twice = repeated(view.path, keys, duplicates, places)
        if twice:
            frame = _merged(view, duplicates)
            how = "the first row of each is kept" if duplicates == "first" else "the mean of their rows is taken"
            notes.append(f"{counted(len(twice), 'sample id')} came more than once, and {how}: {some(twice)}.")
    if view.is_sparse:
        return replace(view, frame=frame, notes=tuple(notes))
    kept = _without_nothing(view, frame, notes)
    empty = (*view.empty, *frame.columns.difference(kept.columns, sort=False))
    return replace(view, frame=kept, notes=tuple(notes), empty=empty)


def _merged(view: ViewFile, duplicates: str) -> Any:
    frame = view.frame
    if duplicates == "first":
        return frame[~frame.index.duplicated()]
    if not view.is_sparse:
        return frame.groupby(level=0, sort=False).mean()
    codes, keys = frame.index.factorize()
    groups = sparse.csr_array((1 / np.bincount(codes)[codes], (codes, np.arange(len(codes)))))
    return frame_of(groups @ frame.sparse.to_coo().tocsr(), keys.tolist(), frame.columns.tolist())


def _without_nothing(view: ViewFile, frame: Any, notes: list[str]) -> Any:
    """Drop columns without any number and, where ids tell which are left, such rows; say how many cells are empty."""
    holes = np.isnan(frame.to_numpy())
    empty = holes.all(axis=0)
    if empty.all():
        raise DataFileError(f"The view '{view.name}' in {view.path.name!r} holds no number at all. Leave it out.")
    if empty.any():
        notes.append(
            f"{counted(int(empty.sum()), 'column')} without any number left out: {some(frame.columns[empty])}."
        )
        frame, holes = frame.loc[:, ~empty], holes[:, ~empty]
    absent = holes.all(axis=1)
    if absent.any():
        notes.append(f"{counted(int(absent.sum()), 'row')} without any number: these samples lack the view.")
    partial = int((holes.any(axis=1) & ~absent).sum())
    if partial:
        missing = int(holes[~absent].sum())
        share = percent(missing / holes[~absent].size)
        notes.append(
            f"{counted(missing, 'cell')} ({share}) empty, in {counted(partial, 'row')} that have other values."
        )
    return frame[~absent] if absent.any() and view.keyed else frame
