"""From files to views: the public readers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import DataFileError, InputTypeError, some
from ..utils.parameters import check_choice, check_flag
from ._arrays import read_arrays, read_npy
from ._finishing import finished, from_table
from ._frames import read_feather, read_parquet
from ._omics import read_h5ad, read_h5mu
from ._sources import existing, kind_of
from ._table import Table
from ._text import read_text
from ._view_file import ViewFile
from .ids import DUPLICATES, check_id_column

__all__ = ["TABLES", "read_view", "read_views"]

TABLES: dict[str, Callable[[Path], Table]] = {"text": read_text, "parquet": read_parquet, "feather": read_feather}


def read_view(path: Any, *, id_column: Any = None, encode: bool = False, duplicates: str = "raise") -> ViewFile:
    r"""Read one view from a file, whatever the file's kind.

    Tables are ``.csv``, ``.tsv`` and ``.txt`` (each also with ``.gz``), ``.parquet`` and ``.feather``. Of a text
    table the separator (comma, semicolon, tab, | or spaces), decimal mark, encoding and header are found out; marks
    of thousands are not guessed. Arrays are ``.npy``, and ``.npz`` and ``.mat`` that hold a single view; omics objects
    are ``.h5ad``, and ``.h5mu`` with a single modality. Nothing in a file is ever executed, and no file takes more
    memory than ``gapview.io.LIMITS`` allow. ``.mat``, ``.h5ad`` and ``.h5mu`` are read in a process of their own,
    which takes a second: damaged ones crash the libraries that read them.

    Parameters
    ----------
    path : str or path
        The file.
    id_column : str or sequence of str, optional
        Name of the column that holds the sample ids, or several names of which the first that is there is taken. By
        default a column called ``id``, ``sample``, ``patient`` or the like, the index of a frame in Parquet or Feather,
        or a first column of distinct text. Ids are compared as text: 1, 1.0 and "1" are one sample, "001" is another.
    encode : bool, default=False
        Turn columns of text with few different words into columns of 0 and 1; else columns of text are left out.
    duplicates : {"raise", "first", "mean"}, default="raise"
        What to do with rows that share an id: refuse them, keep the first, or take their mean.

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
    views = _read_file(path, check_id_column(id_column), encode, duplicates)
    if len(views) > 1:
        raise DataFileError(
            f"{views[0].path.name!r} holds {len(views)} views, {some([view.name for view in views])}; one was "
            "expected. Read them with gapview.io.read_views."
        )
    return views[0]


def read_views(paths: Any, *, id_column: Any = None, encode: bool = False, duplicates: str = "raise") -> list[ViewFile]:
    r"""Read the views of several files; a file may hold more than one.

    A view is called as its file is, without the ending, or as it is called in a file of several. Where two would have
    the same name, the name of the file with its ending, or its folder, is put in front.

    Parameters
    ----------
    paths : path, sequence of paths, or mapping of names to paths
        The files. The keys of a mapping are the names of the views; each of its files must hold a single view.
    id_column, encode, duplicates
        As in :func:`read_view`.

    Returns
    -------
    list of ViewFile
        Join them with :func:`join_views`.

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
    wanted = check_id_column(id_column)
    if isinstance(paths, Mapping):
        settings = {"id_column": id_column, "encode": encode, "duplicates": duplicates}
        return [replace(read_view(path, **settings), name=str(name)) for name, path in paths.items()]
    if isinstance(paths, str) or hasattr(paths, "__fspath__"):
        paths = [paths]
    if not isinstance(paths, Sequence) or not paths:
        raise InputTypeError(f"paths must be one or more paths of files; got {paths!r}.")
    return _renamed([view for path in paths for view in _read_file(path, wanted, encode, duplicates)])


def _read_file(path: Any, wanted: list[str] | None, encode: bool, duplicates: str) -> list[ViewFile]:
    check_flag("encode", encode)
    check_choice("duplicates", duplicates, DUPLICATES)
    file = existing(path)
    kind = kind_of(file)
    if kind in TABLES:
        return [from_table(TABLES[kind](file), wanted, encode, duplicates)]
    if kind == "npy":
        views = [read_npy(file)]
    elif kind in ("npz", "mat"):
        views = read_arrays(file, kind)
    else:
        views = [read_h5ad(file, wanted)] if kind == "h5ad" else read_h5mu(file, wanted)
    return [finished(view, duplicates, _rows) for view in views]


def _rows(rows: Sequence[int]) -> str:
    return f"row(s) {some([row + 1 for row in rows])}"


def _renamed(views: list[ViewFile]) -> list[ViewFile]:
    """Give every view a name of its own."""
    for name_of in (_file_name, _folder_name):
        times = Counter(view.name for view in views)
        views = [replace(view, name=name_of(view)) if times[view.name] > 1 else view for view in views]
    times = Counter(view.name for view in views)
    twice = [view.name for view in views if times[view.name] > 1]
    if twice:
        raise DataFileError(f"The view {twice[0]!r} is given more than once. Give every file once.")
    return views


def _file_name(view: ViewFile) -> str:
    return view.path.name if view.path.name.startswith(view.name + ".") else f"{view.path.stem}.{view.name}"


def _folder_name(view: ViewFile) -> str:
    return f"{view.path.resolve().parent.name}/{view.name}"
