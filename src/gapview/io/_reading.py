"""Reading views and tables from files of any format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import DataFileError, InputTypeError, extra, some
from ..utils.messages import check_choice, check_flag, counted, percent
from ..utils.types import Array
from ._dialect import unique_names
from ._sources import existing_file, kind_of
from ._table_formats import read_feather, read_parquet, read_text
from ._view_file import ViewFile
from .array_files import frame_of, read_arrays, read_npy, read_omics
from .tables import DUPLICATES, RawTable, arrow, check_id_column, check_ids, find_features, find_ids, row_numbers

_TABLES: dict[str, Callable[[Path], RawTable]] = {"text": read_text, "parquet": read_parquet, "feather": read_feather}


def read_view(path: Any, *, id_column: Any = None, encode: bool = False, duplicates: str = "raise") -> ViewFile:
    r"""Read one view from a file of any supported format.

    Tables are ``.csv``, ``.tsv`` and ``.txt`` (each also with ``.gz``), ``.parquet`` and ``.feather``. Of a text
    table the separator (comma, semicolon, tab, | or spaces), decimal mark, encoding and header are detected; thousands
    separators are not. Arrays are ``.npy``, and ``.npz`` and ``.mat`` that hold a single view; omics objects
    are ``.h5ad``, and ``.h5mu`` with a single modality. Nothing in a file is ever executed, and no file takes more
    memory than ``gapview.io.LIMITS`` allow. ``.mat``, ``.h5ad`` and ``.h5mu`` are read in a process of their own,
    which takes a second, because damaged ones can crash the libraries that read them.

    Parameters
    ----------
    path : str or path
        The file.
    id_column : str or sequence of str, optional
        Name of the column that holds the sample ids, or several names of which the first that exists is used. By
        default a column called ``id``, ``sample``, ``patient`` or the like, the index of a frame in Parquet or Feather,
        or a first column of distinct text. Ids are compared as text: 1, 1.0 and "1" are one sample, "001" is another.
    encode : bool, default=False
        Turn columns of text with few different words into columns of 0 and 1; else columns of text are left out.
    duplicates : {"raise", "first", "mean"}, default="raise"
        How to treat rows that share an id: raise an error, keep the first, or take their mean.

    Returns
    -------
    ViewFile

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gapview.io import read_view
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "blood.tsv"
    ...     _ = path.write_text("patient\tiron\tzinc\n7\t1.5\t3\n9\tNA\t4\n")
    ...     read_view(path).frame
       iron  zinc
    7   1.5   3.0
    9   NaN   4.0
    """
    views = _read_file(path, id_column, encode, duplicates)
    if len(views) > 1:
        raise DataFileError(
            f"{views[0].path.name!r} holds {len(views)} views, {some([view.name for view in views])}; one was "
            "expected. Read them with gapview.io.read_views."
        )
    return views[0]


def read_views(paths: Any, *, id_column: Any = None, encode: bool = False, duplicates: str = "raise") -> list[ViewFile]:
    r"""Read the views of several files; a file may hold more than one.

    A view has the name of its file without the suffix, or its name within a file of several views. If two names are
    equal, the name of the file with its suffix, or its folder, is put in front.

    Parameters
    ----------
    paths : path, sequence of paths, or mapping of names to paths
        The files. The keys of a mapping are the names of the views; each of its files must hold a single view.
    id_column, encode, duplicates
        As in :func:`read_view`.

    Returns
    -------
    list of ViewFile
        Join them with :func:`gapview.io.join_views`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gapview.io import join_views, read_views
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     blood, scans = pathlib.Path(folder) / "blood.csv", pathlib.Path(folder) / "scans.csv"
    ...     _ = blood.write_text("id,iron\n1,0.5\n2,0.7\n")
    ...     _ = scans.write_text("id;size\n2;1,5\n3;2,5\n")
    ...     join_views(read_views([blood, scans]))
    Views of 3 samples, 1 of them complete: 'blood' 2 × 1, 'scans' 2 × 1
    """
    if isinstance(paths, Mapping):
        settings = {"id_column": id_column, "encode": encode, "duplicates": duplicates}
        return [replace(read_view(path, **settings), name=str(name)) for name, path in paths.items()]
    if isinstance(paths, str) or hasattr(paths, "__fspath__"):
        paths = [paths]
    if not isinstance(paths, Sequence) or not paths:
        raise InputTypeError(f"paths must be one or more paths of files; got {paths!r}.")
    return _renamed([view for path in paths for view in _read_file(path, id_column, encode, duplicates)])


def _read_file(path: Any, id_column: Any, encode: bool, duplicates: str) -> list[ViewFile]:
    wanted = check_id_column(id_column)
    check_flag("encode", encode)
    check_choice("duplicates", duplicates, DUPLICATES)
    file = existing_file(path)
    kind = kind_of(file)
    if kind in _TABLES:
        return [_from_table(_TABLES[kind](file), wanted, encode, duplicates)]
    if kind == "npy":
        views = [read_npy(file)]
    elif kind in ("npz", "mat"):
        views = read_arrays(file, kind)
    else:
        views = read_omics(file, kind, wanted)
    return [_without_empty(view, duplicates, row_numbers) for view in views]


def _renamed(views: list[ViewFile]) -> list[ViewFile]:
    """Return the views with unique names."""
    for name_of in (_file_name, lambda view: f"{view.path.resolve().parent.name}/{view.name}"):
        times = Counter(view.name for view in views)
        views = [replace(view, name=name_of(view)) if times[view.name] > 1 else view for view in views]
    name, n_views = Counter(view.name for view in views).most_common(1)[0]
    if n_views > 1:
        raise DataFileError(f"The view {name!r} is given more than once. Give every file once.")
    return views


def _file_name(view: ViewFile) -> str:
    return view.path.name if view.path.name.startswith(view.name + ".") else f"{view.path.stem}.{view.name}"


def _from_table(table: RawTable, wanted: list[str] | None, encode: bool, duplicates: str) -> ViewFile:
    """Split a table into ids and features, and return a view."""
    file = table.file
    if not table.n_rows:
        raise DataFileError(f"{file.name!r} has no rows below its header. Give a file with samples, or leave it out.")
    ids = find_ids(table, wanted)
    features = find_features(table, ids.skip, encode)
    notes = [*table.notes, *ids.notes, *features.notes]
    if not features.names:
        raise DataFileError(
            f"{file.name!r} has no column of numbers, so there is nothing to compare samples by. {' '.join(notes)}"
        )
    values, keys = features.matrix(), ids.keys
    rows = np.arange(table.n_rows)
    if keys is not None and (blank := _blank_rows(table, values, keys)).any():
        notes.append(f"{counted(int(blank.sum()), 'row')} without any value left out.")
        rows = rows[~blank]
        values, keys = values[rows], [keys[row] for row in rows]
    frame = frame_of(values, keys, features.names)
    name = file.name[: -len(ids.format.suffix)]
    view = ViewFile(name, file, frame, keys is not None, ids.format, tuple(notes), features.empty)
    return _without_empty(view, duplicates, lambda some_rows: table.places([int(rows[row]) for row in some_rows]))


def _blank_rows(table: RawTable, values: Array, keys: Sequence[str | None]) -> Array:
    """Mark rows with neither an id nor any value, as spreadsheets leave them at the end."""
    blank = np.asarray([not key for key in keys])
    blank[blank] = np.isnan(values[blank]).all(axis=1)
    for column in table.columns:
        if blank.any():
            rows = arrow().array(np.flatnonzero(blank))
            blank[blank] = np.asarray(column.take(rows).is_null().to_pylist(), dtype=bool)
    return blank


def _without_empty(view: ViewFile, duplicates: str, places: Callable[[Sequence[int]], str]) -> ViewFile:
    """Return a view with unique ids and without empty columns and rows; without ids, empty rows stay."""
    notes = list(view.notes)
    frame = view.frame
    if view.keyed and (twice := check_ids(view.path, frame.index.tolist(), duplicates, places)):
        frame = _merged(view, duplicates)
        how = "the first row of each is kept" if duplicates == "first" else "the mean of their rows is taken"
        notes.append(f"{counted(len(twice), 'sample id')} occur more than once, and {how}: {some(twice)}.")
    if view.is_sparse:
        return replace(view, frame=frame, notes=tuple(notes))
    missing = np.isnan(frame.to_numpy())
    empty = missing.all(axis=0)
    if empty.all():
        raise DataFileError(f"The view '{view.name}' in {view.path.name!r} holds no number at all. Leave it out.")
    names = frame.columns[empty]
    if empty.any():
        notes.append(f"{counted(len(names), 'column')} without any number left out: {some(names)}.")
        frame, missing = frame.loc[:, ~empty], missing[:, ~empty]
    absent = missing.all(axis=1)
    if absent.any():
        notes.append(f"{counted(int(absent.sum()), 'row')} without any number: these samples lack the view.")
    rest = missing[~absent]
    if rest.any():
        cells, rows = counted(int(rest.sum()), "cell"), counted(int(rest.any(axis=1).sum()), "row")
        notes.append(f"{cells} ({percent(float(rest.mean()))}) empty, in {rows} that have other values.")
    if absent.any() and view.keyed:
        frame = frame[~absent]
    return replace(view, frame=frame, notes=tuple(notes), empty=(*view.empty, *names))


def _merged(view: ViewFile, duplicates: str) -> Any:
    frame = view.frame
    if duplicates == "first":
        return frame[~frame.index.duplicated()]
    if not view.is_sparse:
        return frame.groupby(level=0, sort=False).mean()
    codes, keys = frame.index.factorize()
    groups = sparse.csr_array((1 / np.bincount(codes)[codes], (codes, np.arange(len(codes)))))
    return frame_of(groups @ frame.sparse.to_coo().tocsr(), keys.tolist(), frame.columns.tolist())


def read_table(path: Any, *, id_column: Any = None) -> Any:
    r"""Read a table of numbers and words, such as age, stage and survival time, keyed by sample id.

    Columns of numbers are returned as floats, all others as text, with None for a missing value. Columns without any
    value are left out.

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
    file = existing_file(path)
    kind = kind_of(file)
    if kind not in _TABLES:
        raise DataFileError(f"{file.name!r} is no table. Give the covariates as .csv, .tsv, .parquet or .feather.")
    table = _TABLES[kind](file)
    ids = find_ids(table, wanted)
    if ids.keys is None:
        raise DataFileError(
            f"{file.name!r} has no column of sample ids that could be detected; it has {some(table.names, 8)}. Name "
            "the column of ids (id_column, --id)."
        )
    check_ids(file, ids.keys, "raise", table.places)
    numbers = find_features(table, ids.skip, encode=False)
    known = dict(zip(numbers.names, numbers.columns, strict=True))
    columns: dict[str, Any] = {}
    for position, name in enumerate(unique_names(table.names)[0]):
        if name in known:
            columns[name] = known[name]
        elif position not in ids.skip and name not in numbers.empty:
            cells = [None if cell is None else str(cell) for cell in table.cells(position)]
            columns[name] = np.array(cells, dtype=object)
    if not columns:
        raise DataFileError(f"{file.name!r} has no column with values besides the ids. Give another table.")
    pandas = extra("pandas", "tables", "Reading covariates")
    return pandas.DataFrame(columns, index=pandas.Index(ids.keys, dtype=object))
