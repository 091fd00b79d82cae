"""A table of what else is known of the samples: age, stage, survival time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataFileError, some
from ..files._columns import find_features
from ..files._ids import demand_ids, find_ids, repeated
from ..files._names import distinct
from ..files._reading import _TABLES
from ..files._sources import existing, extra, kind_of
from ..files._view_file import counted
from ..views import Views
from ._console import Say

__all__ = ["read_covariates"]


def read_covariates(path: Path, id_columns: Sequence[str], views: Views, say: Say) -> Any:
    """Read a table of numbers and words, keyed by the ids of the samples of a model.

    Columns of numbers are numbers; all others stay the words that they hold, with None where there is nothing.
    """
    file = existing(path)
    kind = kind_of(file)
    if kind not in _TABLES:
        raise DataFileError(f"{file.name!r} is no table. Give the covariates as .csv, .tsv, .parquet or .feather.")
    table = _TABLES[kind](file)
    ids = find_ids(table, list(id_columns) or None)
    if ids.keys is None:
        raise DataFileError(
            f"{file.name!r} has no column of sample ids that could be found; it has {some(table.names, 8)}. Name the "
            "column of ids (--id)."
        )
    demand_ids(file, ids.keys, table.places)
    repeated(file, ids.keys, "raise", table.places)
    numbers = find_features(table, ids.skip, encode=False)
    known = dict(zip(numbers.names, numbers.columns, strict=True))
    columns = {
        name: known[name] if name in known else _words(table.cells(position))
        for position, name in enumerate(distinct(table.names)[0])
        if position not in ids.skip and name not in numbers.empty
    }
    if not columns:
        raise DataFileError(f"{file.name!r} has no column with values besides the ids. Give another table.")
    pandas = extra("pandas", "tables", "Reading covariates")
    return _keyed(pandas.DataFrame(columns, index=pandas.Index(ids.keys, dtype=object)), file, views, say)


def _words(cells: list[Any]) -> Any:
    words = np.empty(len(cells), dtype=object)
    words[:] = [None if cell is None else str(cell) for cell in cells]
    return words


def _others(count: int) -> str:
    return f"; {counted(count, 'row')} of other samples left out" if count else ""


def _keyed(frame: Any, file: Path, views: Views, say: Say) -> Any:
    """Keep the rows of samples that the model knows."""
    own = dict.fromkeys(str(key) for key in views.sample_ids.tolist())
    common = [key for key in frame.index if key in own]
    if not common:
        raise DataFileError(
            f"{file.name!r} has no sample of the model: it has ids such as {some(frame.index, 3)}, the model such as "
            f"{some(list(own), 3)}. Name the column of ids (--id), or write the ids in the same way."
        )
    say(
        "Table",
        f"{file.name}: {counted(frame.shape[1], 'column')} for {len(common):,} of the {views.n_samples:,} samples "
        f"of the model{_others(len(frame) - len(common))}.",
    )
    return frame.loc[common]
