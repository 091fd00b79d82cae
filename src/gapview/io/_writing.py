"""Writing a completed view in the format of the file it came from."""

from __future__ import annotations

import csv
import gzip
import io
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse
from scipy.io import savemat

from ..errors import DataFileError, InputError, InputTypeError, extra, some
from ..utils.messages import free_name
from ..utils.storage import escape_formula, write_whole
from ..utils.types import Array
from ..views.numerals import Marks, group_mark
from ._dialect import BYTE_ORDER_MARKS
from ._sources import suffix_of
from ._view_file import ViewFile
from .tables import arrow
from .workbook_writing import workbook_content


def _write_text(view: ViewFile, frame: Any, extras: dict[str, Array], notes: list[str], sink: BinaryIO) -> None:
    """Write a text table in the dialect of the file."""
    source = view.format
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, delimiter=source.separator, lineterminator=source.newline)
    empty = "NA" if source.separator == " " else ""
    names = [escape_formula(str(name)) for name in (*frame.columns, *extras)]
    if source.header == "line":
        writer.writerow([*([source.id_name or ""] if view.keyed else []), *names])
    elif source.header == "short":
        writer.writerow(names)
    columns = [_digits(frame.iloc[:, place].to_numpy(), source.decimal, empty) for place in range(frame.shape[1])]
    columns += [_digits(values, source.decimal, empty) for values in extras.values()]
    if source.decimal == "," or source.separator == ";":
        columns = _unambiguous(columns)
    keys = [[escape_formula(str(key)) for key in frame.index]] if view.keyed else []
    writer.writerows(zip(*keys, *columns, strict=True))
    content = _encoded(stream.getvalue(), source.encoding, notes)
    if source.compression == "gzip":
        content = gzip.compress(content, mtime=0)
    elif source.compression == "zstd":
        content = arrow().Codec("zstd").compress(content, asbytes=True)
    sink.write(content)


def _digits(values: Array, decimal: str, empty: str) -> list[str]:
    """Return numbers with the fewest digits that read back the same, and words unchanged."""
    if values.dtype.kind not in "fiu":
        return [empty if value is None or value != value else str(value) for value in values.tolist()]
    # str of a NumPy float32 has the digits of single precision; its Python float has those of double precision
    texts = [str(value) for value in (values if values.dtype == np.float32 else values.tolist())]
    # A column of -0 would be read as one of integers, which have no sign of zero
    texts = [empty if text == "nan" else text if text == "-0.0" else text.removesuffix(".0") for text in texts]
    return texts if decimal == "." else [text.replace(".", decimal) for text in texts]


def _unambiguous(columns: list[list[str]]) -> list[list[str]]:
    """Return the columns, with a further zero if all fractions have three digits and so could be thousands."""
    marks = Marks()
    for column in columns:
        for text in column:
            marks.add([text])
            if marks.decimal:
                return columns
    return [[f"{text}0" if group_mark([text]) else text for text in column] for column in columns]


def _encoded(text: str, encoding: str, notes: list[str]) -> bytes:
    mark = BYTE_ORDER_MARKS.get(encoding, b"")
    try:
        return mark + text.encode("utf-8" if encoding == "utf-8-sig" else encoding)
    except UnicodeEncodeError:  # an id from a file in another encoding
        notes.append("Written in UTF-8, since Windows-1252 lacks some characters of the names.")
        return BYTE_ORDER_MARKS["utf-8-sig"] + text.encode()


def _write_table(view: ViewFile, frame: Any, extras: dict[str, Array], notes: list[str], sink: BinaryIO) -> None:
    """Write a Parquet or Feather file, with the ids in the same place and type as before."""
    pandas = extra("pandas", "tables", "Writing tables")
    source = view.format
    full = frame.assign(**extras)
    if view.keyed:
        keys = _typed_keys(view, frame)
        name = None if source.id_name == "__index_level_0__" else source.id_name
        ids = pandas.Index(keys, name=name)
        full = full.set_axis(ids, axis=0)
        if source.id_place == "column":
            full = full.reset_index()
    else:
        full = full.reset_index(drop=True)
    table = arrow().Table.from_pandas(full)
    if source.kind == "parquet":
        arrow("parquet").write_table(table, sink, compression=source.compression)
    else:
        arrow("feather").write_feather(table, sink)


def _typed_keys(view: ViewFile, frame: Any) -> list[Any]:
    """Return the ids as whole numbers if the file had such, else as text."""
    keys = [str(key) for key in frame.index]
    whole = view.format.id_type == "integer" and all(key.lstrip("+-").isdigit() for key in keys)
    return [int(key) for key in keys] if whole else keys


def _write_excel(view: ViewFile, frame: Any, extras: dict[str, Array], notes: list[str], sink: BinaryIO) -> None:
    """Write a workbook with one sheet, of the name it had."""
    columns = [frame.iloc[:, place].tolist() for place in range(frame.shape[1])]
    columns += [values.tolist() for values in extras.values()]
    header = list(map(str, (*frame.columns, *extras)))
    if view.keyed:
        columns, header = [_typed_keys(view, frame), *columns], [view.format.id_name or "", *header]
    rows = [header] if view.format.header != "none" else []
    sink.write(workbook_content({view.format.sheet or view.name: [*rows, *zip(*columns, strict=True)]}))


def _write_r(view: ViewFile, frame: Any, extras: dict[str, Array], notes: list[str], sink: BinaryIO) -> None:
    """Write a data frame of R, with the ids as row names or in the column where they were."""
    rdata, pandas = extra("rdata", "r", "Writing files of R"), extra("pandas", "tables", "Writing tables")
    full = pandas.DataFrame(frame.to_numpy(), columns=list(map(str, frame.columns))).assign(**extras)
    if view.keyed and view.format.id_place == "index":
        full.index = pandas.Index([str(key) for key in frame.index], dtype=object)
    elif view.keyed:
        full.insert(0, view.format.id_name or "id", _typed_keys(view, frame))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        file = Path(folder) / "view"
        if view.format.suffix == ".rds":
            rdata.write_rds(file, full)
        else:
            rdata.write_rda(file, {view.name: full})
        sink.write(file.read_bytes())


def _write_npy(view: ViewFile, frame: Any, extras: dict[str, Array], notes: list[str], sink: BinaryIO) -> None:
    np.save(sink, frame.to_numpy(), allow_pickle=False)


def _write_arrays(view: ViewFile, frame: Any, extras: dict[str, Array], notes: list[str], sink: BinaryIO) -> None:
    """Write a ``.npz`` or ``.mat`` file, in which only the latter keeps a sparse matrix sparse."""
    in_matlab = view.format.kind == "mat"
    text = object if in_matlab else str
    matrix = sparse.csc_array(frame.sparse.to_coo()) if view.is_sparse and in_matlab else frame.to_numpy()
    named = {"view_0": matrix, "view_names": np.asarray([view.name], dtype=text), **extras}
    if view.keyed:
        named["sample_ids"] = np.asarray([str(key) for key in frame.index], dtype=text)
    if in_matlab:
        savemat(sink, named, do_compression=True)
    else:
        np.savez(sink, **named)


def _write_omics(view: ViewFile, frame: Any, extras: dict[str, Array], notes: list[str], sink: BinaryIO) -> None:
    """Write an AnnData file, or a MuData file with one modality."""
    anndata, pandas = extra("anndata", "omics", "Writing .h5ad files"), extra("pandas", "tables", "Writing tables")
    matrix = sparse.csr_array(frame.sparse.to_coo()) if view.is_sparse else frame.to_numpy()
    obs = pandas.DataFrame(extras, index=pandas.Index([str(key) for key in frame.index], name=view.format.id_name))
    data = anndata.AnnData(matrix, obs=obs, var=pandas.DataFrame(index=list(map(str, frame.columns))))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        file = Path(folder) / f"view{view.format.suffix}"
        if view.format.kind == "h5mu":
            extra("mudata", "omics", "Writing .h5mu files").MuData({view.name: data}).write(file)
        else:
            data.write_h5ad(file)
        sink.write(file.read_bytes())


_WRITERS = {
    "text": _write_text,
    "npy": _write_npy,
    "excel": _write_excel,
    "r": _write_r,
    **dict.fromkeys(("parquet", "feather"), _write_table),
    **dict.fromkeys(("npz", "mat"), _write_arrays),
    **dict.fromkeys(("h5ad", "h5mu"), _write_omics),
}


@dataclass(frozen=True)
class WrittenView:
    """The file that was written, and the names of the extra columns in it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from gapview.io import WrittenView
    >>> WrittenView(Path("full.csv"), {"recovered": "recovered_2"}).extra_columns["recovered"]
    'recovered_2'
    """

    path: Path  # the file
    extra_columns: dict[str, str]  # requested name: name in the file
    notes: tuple[str, ...] = ()  # differences from the format of the file that was read


def write_like(view: ViewFile, frame: Any, path: Any, extra_columns: Mapping[str, Any] | None = None) -> WrittenView:
    r"""Write a frame of numbers in the format of the file that a view was read from.

    Separator, decimal mark, encoding, compression, header and the place of the ids are those of the file. Numbers are
    written with the fewest digits that read back the same. Columns of the file that hold no numbers are not written.
    The file is replaced in one step, so that an interruption leaves no incomplete file.

    Parameters
    ----------
    view : ViewFile
        The view that was read.
    frame : pandas.DataFrame
        The numbers to write: the columns of the view, for any samples.
    path : str or path
        The file to write. Its name must end as that of the view's file, ``view.format.suffix``.
    extra_columns : mapping of str to array-like, optional
        Further columns behind the others, one value for each row: for instance ``{"recovered": rows}``, with True for
        the rows that are not measured. True and False are written as 1 and 0. A number is added to a name that exists.
        In ``.npz`` and ``.mat`` they are arrays of their own, in ``.h5ad`` and ``.h5mu`` columns of ``obs``; in
        ``.npy`` and in text tables without a header they are left out.

    Returns
    -------
    WrittenView

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gapview.io import read_view, write_like
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "blood.csv"
    ...     _ = path.write_text("id;iron\ns1;1,50\ns2;2\n")
    ...     blood = read_view(path)
    ...     written = write_like(blood, blood.frame, path.with_name("full.csv"), {"recovered": [False, True]})
    ...     print(written.path.read_text())
    id;iron;recovered
    s1;1,5;0
    s2;2;1
    <BLANKLINE>
    """
    file = Path(path)
    if suffix_of(file) != view.format.suffix:
        raise DataFileError(
            f"The view '{view.name}' is written in the format it was read in, so the name of its file must "
            f"end in {view.format.suffix}; got {file.name!r}."
        )
    frame = _checked(view, frame)
    extras, names = _extras(view, frame, extra_columns or {})
    notes: list[str] = []
    if extras and (view.format.kind == "npy" or view.format.header == "none"):
        notes.append(f"{file.name!r} has no names of columns: {some(extras)} left out.")
        extras, names = {}, {}
    _WRITERS[view.format.kind](view, frame, extras, notes, sink := io.BytesIO())
    write_whole(file, sink.getvalue())
    return WrittenView(file, names, tuple(notes))


def _checked(view: ViewFile, frame: Any) -> Any:
    if not hasattr(frame, "columns") or not hasattr(frame, "index"):
        raise InputTypeError(f"frame must be a pandas frame; got an object of type {type(frame).__name__}.")
    features = view.frame.columns.tolist()
    if sorted(map(str, frame.columns)) != sorted(features):
        wrong = [name for name in frame.columns if name not in set(features)]
        lacking = [name for name in features if name not in set(frame.columns)]
        raise InputError(
            f"frame must have the {len(features)} columns of the view '{view.name}'; it lacks "
            f"{some(lacking) or 'none'} and has these other columns: {some(wrong) or 'none'}."
        )
    return frame[features]


def _extras(view: ViewFile, frame: Any, wanted: Mapping[str, Any]) -> tuple[dict[str, Array], dict[str, str]]:
    """Check the extra columns; return them under unique names, and these names by the requested ones."""
    taken = {*map(str, view.format.columns), *map(str, frame.columns), str(view.format.id_name)}
    extras, names = {}, {}
    for name, given in wanted.items():
        values = np.asarray(given)
        if values.shape != (len(frame),):
            raise InputError(
                f"The column {name!r} must have one value for each of the {len(frame)} rows; got {values.shape}."
            )
        names[name] = free_name(str(name), taken)
        taken.add(names[name])
        extras[names[name]] = values.astype(np.int64) if values.dtype == bool else values
    return extras, names
