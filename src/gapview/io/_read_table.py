"""Tables of what else is known of samples: numbers and words, keyed by sample id."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DataFileError, some
from ..utils.extras import extra
from ._columns import find_features
from ._names import distinct
from ._reading import TABLES
from ._sources import existing, kind_of
from .ids import check_id_column, demand_ids, find_ids, repeated

__all__ = ["read_table"]


def read_table(path: Any, *, id_column: Any = None) -> Any:
    r"""Read a table of numbers and words, such as age, stage and survival time, keyed by sample id.

    Columns of numbers are numbers; all others stay the words that they hold, with None where there is nothing. Columns
    without any value are left out.

    Parameters
    ----------
    path : str or path
        A file that ends in ``.csv``, ``.tsv``, ``.txt`` (each also ``.gz``), ``.parquet`` or ``.feather``.
    id_column : str or sequence of str, optional
        Name of the column that holds the sample ids, as in :func:`read_view`.

    Returns
    -------
    pandas.DataFrame
        Its index holds the ids, as text.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gapview.io import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "clinic.csv"
    ...     _ = path.write_text("patient,age,stage\n7,61,II\n9,48,\n")
    ...     read_table(path)
        age stage
    7  61.0    II
    9  48.0  None
    """
    wanted = check_id_column(id_column)
    file = existing(path)
    kind = kind_of(file)
    if kind not in TABLES:
        raise DataFileError(f"{file.name!r} is no table. Give the covariates as .csv, .tsv, .parquet or .feather.")
    table = TABLES[kind](file)
    ids = find_ids(table, wanted)
    if ids.keys is None:
        raise DataFileError(
            f"{file.name!r} has no column of sample ids that could be found; it has {some(table.names, 8)}. Name the "
            "column of ids (id_column, --id)."
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
    return pandas.DataFrame(columns, index=pandas.Index(ids.keys, dtype=object))


def _words(cells: list[Any]) -> Any:
    words = np.empty(len(cells), dtype=object)
    words[:] = [None if cell is None else str(cell) for cell in cells]
    return words
