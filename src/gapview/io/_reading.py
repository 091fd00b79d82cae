"""Reading views and tables from files of any format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import DataFileError, InputTypeError, extra, some
from ..utils.messages import check_choice, check_flag, counted, numbered, percent
from ..utils.types import Array
from ..views.id_patterns import note_on_rewrite, read_pattern, rewrite_all
from ..views.keys import as_keys
from ..views.numerals import check_marks, undecided
from ..views.orientation import read_orientation
from ..views.places import Places, read_places
from ..views.reading import TRANSPOSED, Reading
from ..views.tables import (
    IdColumn,
    check_dropped,
    check_id_column,
    demand_digits,
    find_id_columns,
    is_unnamed,
    may_be_row_numbers,
    own_columns,
    read_drop,
    report_row_numbers,
)
from ._dialect import unique_names
from ._sources import decodable, existing_file, kind_of, stem_of
from ._table_formats import described, read_feather, read_parquet, read_text
from ._view_file import ViewFile
from .array_files import frame_of, read_arrays, read_npy, read_omics
from .r_files import read_r
from .tables import DUPLICATES, RawTable, arrow, check_ids, find_features, row_numbers
from .tenx import read_10x
from .workbooks import read_workbook

_TABLES: dict[str, Callable[[Path], RawTable]] = {"text": read_text, "parquet": read_parquet, "feather": read_feather}


def read_view(
    path: Any,
    *,
    id_column: Any = None,
    id_pattern: Any = None,
    orient: str | None = None,
    drop: Any = None,
    encode: bool = False,
    duplicates: str = "raise",
    decimal: str | None = None,
    thousands: str | None = None,
    sheet: Any = None,
    layer: Any = None,
    obsm: Any = None,
    raw: Any = False,
) -> ViewFile:
    r"""Read one view from a file of any supported format.

    Tables are ``.csv``, ``.tsv`` and ``.txt`` (each also with ``.gz`` or ``.zst``), ``.parquet``, ``.feather``, a sheet
    of a workbook (Excel: ``.xlsx``, ``.xlsm``, ``.xlsb``, ``.xls``; ``.ods``) and a data frame of R (``.rds``,
    ``.rda``, ``.RData``). Of a text table the separator (comma, semicolon, tab, | or spaces), decimal mark, thousands
    separators, encoding and header are detected; of a sheet the header, below lines of title. Numbers such as ``1,234``
    are refused if nothing in the file shows what the comma stands for. Arrays are ``.npy``, ``.npz`` and ``.mat``, and
    matrices of R, also sparse ones. Omics objects are ``.h5ad``, ``.h5mu``, and count matrices of 10x Genomics:
    ``.h5``, or a folder with ``matrix.mtx``, ``barcodes.tsv`` and ``features.tsv`` (each also ``.gz``). Sparse matrices
    stay sparse.

    No code in a file is executed, and :class:`gapview.io.Limits` bound the memory that it takes. Files other than text,
    Parquet, Feather and numpy files are read in a process of their own, which takes a second, because damaged ones can
    crash the libraries that read them.

    Parameters
    ----------
    path : str or path
        The file.
    id_column : str, sequence of str or False, optional
        Name of the column that holds the sample ids, or several names of which the first that exists is used; False
        if there are no ids, and rows are matched by their position. By default the column is detected, for all files
        together: see :class:`gapview.Views`.
    id_pattern : str or callable, optional
        How ids are rewritten, as in :class:`gapview.Views`.
    orient : {"samples", "features"}, optional
        What the rows of the file are, as in :class:`gapview.Views`.
    drop : str or sequence of str, optional
        Names of columns to leave out.
    encode : bool, default=False
        Turn columns of text with few different words into columns of 0 and 1; else columns of text are left out.
    duplicates : {"raise", "first", "mean"}, default="raise"
        How to treat rows that share an id: raise an error, keep the first, or take their mean.
    decimal, thousands : {",", "."}, optional
        What the mark in numbers such as ``1,234`` stands for, in files whose other numbers do not show it: a decimal
        mark (``decimal=","`` reads 1.234) or a thousands separator (``thousands=","`` reads 1234).
    sheet : str, optional
        Name of the sheet of a workbook. By default visible sheets with numbers are views; others are noted.
    layer, obsm, raw : optional
        The matrix of ``.h5ad`` and ``.h5mu`` that is read in place of ``X``, as in :class:`gapview.Views`.

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
    marks, places = check_marks(decimal, thousands), read_places(layer, obsm, raw)
    options = Options(id_column, id_pattern, orient, drop, encode, places, duplicates, marks, sheet)
    views = read_sources(open_files([(None, path)], options), options)
    if len(views) > 1:
        raise DataFileError(
            f"{views[0].path.name!r} holds {len(views)} views, {some([view.name for view in views])}; one was "
            "expected. Read them with gapview.io.read_views."
        )
    return views[0]


def read_views(
    paths: Any,
    *,
    id_column: Any = None,
    id_pattern: Any = None,
    orient: Any = None,
    drop: Any = None,
    encode: bool = False,
    duplicates: str = "raise",
    decimal: str | None = None,
    thousands: str | None = None,
    sheet: Any = None,
    layer: Any = None,
    obsm: Any = None,
    raw: Any = False,
) -> list[ViewFile]:
    r"""Read the views of several files; a file may hold more than one.

    A view has the name of its file without the suffix, or its name within a file of several views. If two names are
    equal, the name of the file with its suffix, or its folder, is put in front.

    Parameters
    ----------
    paths : path, sequence of paths, or mapping of names to paths
        The files. The keys of a mapping are the names of the views; each of its files must hold a single view. An item
        of a sequence may be a pair of a name and a path.
    id_column, encode, duplicates, decimal, thousands
        As in :func:`read_view`.
    id_pattern, orient, drop, layer, obsm, raw
        As in :func:`read_view`, or a dict with one for each of some views.
    sheet : str, sequence of str or dict, optional
        Names of the sheets that are read of every workbook; a dict has these for each of some files or views.

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
    if isinstance(paths, str) or hasattr(paths, "__fspath__"):
        paths = [paths]
    if isinstance(paths, Mapping):
        pairs: list[tuple[str | None, Any]] = [(str(name), path) for name, path in paths.items()]
    elif isinstance(paths, Sequence) and paths:
        pairs = [item if isinstance(item, tuple) and len(item) == 2 else (None, item) for item in paths]
    else:
        raise InputTypeError(f"paths must be one or more paths of files; got {paths!r}.")
    marks, places = check_marks(decimal, thousands), read_places(layer, obsm, raw)
    options = Options(id_column, id_pattern, orient, drop, encode, places, duplicates, marks, sheet)
    return read_sources(open_files(pairs, options), options)


@dataclass(frozen=True)
class Options(Reading):
    """The parameters of :func:`read_views`: those of :class:`gapview.Views`, and some of files alone."""

    duplicates: str = "raise"
    decimal: str | None = None  # the mark where nothing in a file decides it
    sheet: Any = None  # names of sheets of workbooks


@dataclass(frozen=True)
class OpenedView:
    """One view of a file before its ids are determined: a table, or a view of a file that declares its ids."""

    name: str
    path: Path
    content: RawTable | ViewFile
    is_named: bool = False  # the user gave the name


def open_files(pairs: Sequence[tuple[str | None, Any]], options: Options) -> list[OpenedView]:
    """Return the views of files, each given by the name of its view, if any, and its path; names are unique."""
    wanted = check_id_column(options.id_column)
    check_flag("encode", options.encode)
    check_choice("duplicates", options.duplicates, DUPLICATES)
    twice = [name for name, count in Counter(name for name, _ in pairs if name is not None).items() if count > 1]
    if twice:
        raise DataFileError(f"The view name {twice[0]!r} is given more than once. Give every view its own name.")
    sheets = _read_sheets(options.sheet)
    sources = [source for name, path in pairs for source in _open(name, path, wanted, options.places, sheets)]
    _check_parts(sources, options.places, sheets)
    return _renamed([replace(source, name=decodable(source.name)) for source in sources])


def read_sources(sources: Sequence[OpenedView], options: Options) -> list[ViewFile]:
    """Read opened views; the columns of ids are chosen for all tables together."""
    wanted = check_id_column(options.id_column)
    names = [source.name for source in sources]
    transposed = dict(zip(names, read_orientation(options.orient, names), strict=True))
    tables = {source.name: source.content for source in sources if isinstance(source.content, RawTable)}
    drop = dict(zip(names, read_drop(options.drop, names), strict=True))
    known = {name: table.names for name, table in tables.items()}
    known |= {one.name: one.content.frame.columns.tolist() for one in sources if isinstance(one.content, ViewFile)}
    joined = {name: table for name, table in tables.items() if not transposed[name]}
    ids = dict(zip(joined, find_id_columns(list(joined.values()), wanted), strict=True))
    for name in tables.keys() - joined.keys():
        ids[name] = find_id_columns([tables[name]], None)[0].of_features()
        if ids[name].position is not None:
            known[name] = [*known[name], *map(str, tables[name].cells(ids[name].position or 0))]
    check_dropped(drop, known)
    patterns = dict(zip(names, read_pattern(options.id_pattern, names), strict=True))
    read = [_view(one, ids.get(one.name), transposed[one.name], drop[one.name], options) for one in sources]
    keys = {view.name: view.frame.index.tolist() for view, _ in read if view.keyed and patterns[view.name]}
    rewritten = rewrite_all(keys, patterns)
    views = []
    for view, places in read:
        if note := note_on_rewrite(keys.get(view.name, []), rewritten.get(view.name, [])):
            frame = view.frame.set_axis(rewritten[view.name], axis=0)
            view = replace(view, frame=frame, notes=(*view.notes, note))
        views.append(_without_empty(view, options.duplicates, places))
    if wanted is None and not tables and not any(transposed.values()):
        _report_row_numbers([view for view in views if view.keyed])
    return views


def _report_row_numbers(views: Sequence[ViewFile]) -> None:
    """Warn if the names of observations of all omics files may be row numbers of larger ones."""
    ids = [view.frame.index.tolist() for view in views]
    has_no_name = all(view.format.id_name in (None, "_index", "index") for view in views)
    if has_no_name and all(map(may_be_row_numbers, ids)):
        report_row_numbers([repr(view.path.name) for view in views], [set(own) for own in ids])


def _open(
    name: str | None, path: Any, wanted: Any, places: Places, sheets: Mapping[str, list[str]]
) -> list[OpenedView]:
    """Return the views of a file."""
    file = existing_file(path)
    kind, wanted = kind_of(file), wanted if isinstance(wanted, list) else None
    stem, own = decodable(stem_of(file)), (name, file.name, stem_of(file))
    found: Sequence[tuple[str, RawTable | ViewFile]]
    if kind in _TABLES:
        found = [(stem, _TABLES[kind](file))]
    elif kind == "excel":
        found = read_workbook(file, next((sheets[one] for one in (*own, "") if one is not None and one in sheets), ()))
        found = [(stem, found[0][1])] if len(found) == 1 else found
    elif kind == "r":
        found = read_r(file)
        found = [(stem, found[0][1])] if len(found) == 1 else found
    else:
        found = [(view.name, view) for view in _read_matrices(file, kind, wanted, places, own)]
    if name is not None and len(found) > 1:
        raise DataFileError(
            f"{file.name!r} holds {len(found)} views, {some([other for other, _ in found])}, and cannot have the one "
            f"name {name!r}. Give the file without a name{', or name one of its sheets' * (kind == 'excel')}."
        )
    for _, content in found:
        if isinstance(content, RawTable) and not content.n_rows:
            raise DataFileError(
                f"{content.title} has no rows below its header. Give a file with samples, or leave it out."
            )
    return [OpenedView(name or other, file, content, name is not None) for other, content in found]


def _read_matrices(
    file: Path, kind: str, wanted: list[str] | None, places: Places, own: Sequence[str | None]
) -> list[ViewFile]:
    """Return the views of a file of arrays or of omics objects; ``own`` holds the names of the file."""
    if kind == "npy":
        return [read_npy(file, wanted)]
    if kind in ("npz", "mat"):
        return read_arrays(file, kind, wanted)
    if kind in ("10x", "10x_folder"):
        return read_10x(file, kind)
    return read_omics(file, kind, wanted, {"": places.of(*own)} if kind == "h5ad" else {"": "X", **places.of_view})


def _read_sheets(sheet: Any) -> dict[str, list[str]]:
    """Return the names of sheets for each file or view, under the empty name those for all others."""
    given = sheet if isinstance(sheet, Mapping) else {} if sheet is None else {"": sheet}
    found = {str(key): [names] if isinstance(names, str) else names for key, names in given.items()}
    for names in found.values():
        if (
            not isinstance(names, list | tuple)
            or not names
            or not all(isinstance(name, str) and name for name in names)
        ):
            raise InputTypeError(
                f"sheet must be the name of a sheet, several of them, or a dict of these; got {sheet!r}."
            )
    return {key: list(names) for key, names in found.items()}


def _check_parts(sources: Sequence[OpenedView], places: Places, sheets: Mapping[str, list[str]]) -> None:
    """Raise an error for sheets and matrices of files that are not among those read."""
    of_kind: dict[str, list[OpenedView]] = {"excel": [], "omics": []}
    for source in sources:
        kind = source.content.format.kind
        of_kind.get("omics" if kind in ("h5ad", "h5mu") else kind, []).append(source)
    if sheets and not of_kind["excel"]:
        raise DataFileError("sheet (--sheet) names a sheet of a workbook, and no file is one. Leave it out.")
    places.demand_omics(bool(of_kind["omics"]))
    for names, kind, what in ((list(sheets), "excel", "sheet"), (places.names, "omics", "layer, obsm and raw")):
        known = {name for one in of_kind[kind] for name in (one.name, one.path.name, stem_of(one.path), "")}
        if unknown := [name for name in names if name not in known]:
            raise DataFileError(
                f"{what} is given for {some(unknown)}; such files and views are {some(sorted(known - {''}), 10)}."
            )


def _view(
    source: OpenedView,
    ids: IdColumn | None,
    is_transposed: bool,
    drop: frozenset[str],
    options: Options,
) -> tuple[ViewFile, Callable[[Sequence[int]], str]]:
    """Return one view with its ids, and a function that names samples as places in the file."""
    table = source.content
    places: Callable[[Sequence[int]], str] = row_numbers
    if isinstance(table, RawTable):
        view, places = _from_table(source.name, table, ids or IdColumn(None), drop, options)
    else:
        view = replace(table, name=source.name)
        if drop:
            view = replace(view, frame=view.frame.drop(columns=drop & set(view.frame.columns)))
        if options.id_column is False and view.keyed:
            view = replace(view, keyed=False, frame=view.frame.reset_index(drop=True))
    if is_transposed:
        view, places = _transposed(view), _column_numbers
        view = replace(view, frame=view.frame.drop(columns=drop & set(view.frame.columns)))
    orient = options.orient.get(source.name) if isinstance(options.orient, Mapping) else options.orient
    return replace(view, orient=orient), places


def _transposed(view: ViewFile) -> ViewFile:
    """Return a view that stands in its file with a row for each feature and a column for each sample."""
    frame = view.frame
    if view.format.header == "none":
        raise DataFileError(
            f"{view.path.name!r} has no header, so its columns have no sample ids. A table with features in rows needs "
            "a header with the ids of the samples."
        )
    features = unique_names([str(key) for key in frame.index])[0] if view.keyed else numbered(len(frame))
    keyed = view.format.kind not in ("npy", "npz", "mat")
    values = frame.sparse.to_coo().T if view.is_sparse else frame.to_numpy().T
    ids = as_keys(list(map(str, frame.columns))) if keyed else None
    notes = (*view.notes, TRANSPOSED)
    source = replace(view.format, columns=tuple(features), id_name="id" if keyed else None)
    source = replace(source, id_place="column" if keyed else "none", id_type="text", header="line")
    return replace(view, frame=frame_of(values, ids, features), keyed=keyed, format=source, notes=notes, empty=())


def _column_numbers(columns: Sequence[int]) -> str:
    return f"column(s) {some([column + 1 for column in columns])}"


def _renamed(views: list[OpenedView]) -> list[OpenedView]:
    """Return the views with unique names."""
    for name_of in (_file_name, lambda view: f"{view.path.resolve().parent.name}/{view.name}"):
        times = Counter(view.name for view in views)
        views = [
            replace(view, name=name_of(view)) if times[view.name] > 1 and not view.is_named else view for view in views
        ]
    name, n_views = Counter(view.name for view in views).most_common(1)[0]
    if n_views > 1:
        raise DataFileError(f"The view {name!r} is given more than once. Give every file once.")
    return views


def _file_name(view: OpenedView) -> str:
    return view.path.name if view.path.name.startswith(view.name + ".") else f"{view.path.stem}.{view.name}"


def _from_table(
    name: str, table: RawTable, ids: IdColumn, drop: frozenset[str], options: Options
) -> tuple[ViewFile, Callable[[Sequence[int]], str]]:
    """Split a table into ids and features; return a view, and a function that names rows as places in the file."""
    file = table.file
    own = own_columns(table, [k for k in range(len(table.names)) if k not in ids.skip])
    skip = ids.skip | own | {k for k, column in enumerate(table.names) if column in drop}
    features = find_features(table, skip, options.encode, options.decimal)
    for column, example in features.undecided.items():
        raise DataFileError(undecided(file.name, column, example))
    features.warn(table.title)
    notes = [*table.notes, *ids.notes, *features.notes]
    source = table.format
    if any(source.decimal in example for example in features.grouped.values()):  # the mark separates thousands
        source = replace(source, decimal="." if source.decimal == "," else ",")
        notes[0] = described(source) if source.kind == "text" else notes[0]
    if own:
        notes.append(f"Left out, since gapview has written it: {some([table.names[k] for k in sorted(own)])}.")
    if not features.names:
        raise DataFileError(
            f"{file.name!r} has no column of numbers, so there is nothing to compare samples by. {' '.join(notes)}"
        )
    values = features.matrix()
    cells = None if ids.position is None else table.cells(ids.position)
    keys = None if cells is None else as_keys(cells)
    if ids.position is not None and cells is not None:
        bits = {"halffloat": 11, "float": 24}.get(str(table.columns[ids.position].type), 53)
        demand_digits(table.title, cells, bits)
    rows = np.arange(table.n_rows)
    if keys is not None and (blank := _blank_rows(table, values, keys)).any():
        notes.append(f"{counted(int(blank.sum()), 'row')} without any value left out.")
        rows = rows[~blank]
        values, keys = values[rows], [keys[row] for row in rows]
    if ids.position is not None and cells is not None:
        whole = all(isinstance(cell, int) and not isinstance(cell, bool) for cell in cells if cell is not None)
        place = "index" if ids.position == table.index else "column"
        id_type = "integer" if whole else "text"
        source = replace(source, id_name=table.names[ids.position], id_place=place, id_type=id_type)
    frame = frame_of(values, keys, features.names)
    view = ViewFile(name, file, frame, keys is not None, source, tuple(notes), features.empty, tuple(features.encoded))
    return view, lambda some_rows: table.places([int(rows[row]) for row in some_rows])


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
    name = "" if is_unnamed(view.format.id_name or "") else f" '{view.format.id_name}'"
    where = f" in its index{name}" if view.format.id_place == "index" else ""
    if view.keyed and (twice := check_ids(view.path, frame.index.tolist(), duplicates, places, where)):
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


def read_table(path: Any, *, id_column: Any = None, sheet: str | None = None) -> Any:
    r"""Read a table of numbers and words, such as age, stage and survival time, keyed by sample id.

    Columns of numbers are returned as floats, all others as text, with None for a missing value. Columns without any
    value are left out.

    Parameters
    ----------
    path : str or path
        A file that ends in ``.csv``, ``.tsv``, ``.txt`` (each also ``.gz`` or ``.zst``), ``.parquet``, ``.feather``,
        ``.xlsx`` (also ``.xls``, ``.ods``), ``.rds`` or ``.rda``.
    id_column : str or sequence of str, optional
        Name of the column that holds the sample ids, as in :func:`read_view`.
    sheet : str, optional
        Name of the sheet of a workbook with several.

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
    table = _only_table(file, kind_of(file), sheet)
    (ids,) = find_id_columns([table], wanted)
    if ids.position is None:
        raise DataFileError(
            f"{file.name!r} has no column of sample ids that could be detected; it has {some(table.names, 8)}. Name "
            "the column of ids (id_column, --id)."
        )
    keys = as_keys(table.cells(ids.position))
    check_ids(file, keys, "raise", table.places)
    skip = {ids.position}  # other columns with a value of its own for each row are words here
    numbers = find_features(table, skip, encode=False)
    known = dict(zip(numbers.names, numbers.columns, strict=True))
    columns: dict[str, Any] = {}
    for position, name in enumerate(unique_names(table.names)[0]):
        if name in known:
            columns[name] = known[name]
        elif position not in skip and name not in numbers.empty:
            cells = [None if cell is None else str(cell) for cell in table.cells(position)]
            columns[name] = np.array(cells, dtype=object)
    if not columns:
        raise DataFileError(f"{file.name!r} has no column with values besides the ids. Give another table.")
    pandas = extra("pandas", "tables", "Reading covariates")
    return pandas.DataFrame(columns, index=pandas.Index(keys, dtype=object))


def _only_table(file: Path, kind: str, sheet: str | None) -> RawTable:
    """Return the table of a file of covariates."""
    if sheet is not None and kind != "excel":
        raise DataFileError(f"sheet (--sheet) names a sheet of a workbook, and {file.name!r} is none. Leave it out.")
    if kind in _TABLES:
        return _TABLES[kind](file)
    found: Sequence[tuple[str, RawTable | ViewFile]] = []
    if kind == "excel":
        found = read_workbook(file, _read_sheets(sheet).get("", ()))
    elif kind == "r":
        found = read_r(file)
    tables = [(name, table) for name, table in found if isinstance(table, RawTable)]
    if not tables:
        raise DataFileError(
            f"{file.name!r} is no table. Give the covariates as .csv, .tsv, .parquet, .feather, .xlsx or .rds."
        )
    if len(tables) > 1:
        advice = "Name a sheet (sheet, --sheet)" if kind == "excel" else "Save one of them alone"
        raise DataFileError(
            f"{file.name!r} holds {len(tables)} tables: {some([name for name, _ in tables])}. {advice}."
        )
    return tables[0][1]
