"""The contents of files: a frame of numbers in each of the formats that are read."""

from __future__ import annotations

import csv
import gzip
import io
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.io import savemat

from ..errors import some
from ..utils.extras import extra
from ..utils.types import Array
from ._dialect import BYTE_ORDER_MARKS
from ._table import arrow
from ._view_file import ViewFile

__all__ = ["WRITERS"]


def _text(view: ViewFile, frame: Any, extras: dict[str, Array], notes: list[str]) -> bytes:
    """Write a text table in the dialect of the file."""
    source = view.format
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, delimiter=source.separator, lineterminator=source.newline)
    empty = "NA" if source.separator == " " else ""
    names = [*frame.columns, *extras]
    if source.header == "line":
        writer.writerow([*([source.id_name or ""] if view.keyed else []), *names])
    elif source.header == "short":
        writer.writerow(names)
    else:
        notes.append(
            f"{view.path.name!r} has no header; the last column(s) are {some(names[len(names) - len(extras) :])}."
        )
    columns = [_digits(frame.iloc[:, place].to_numpy(), source.decimal, empty) for place in range(frame.shape[1])]
    columns += [_digits(values, source.decimal, empty) for values in extras.values()]
    keys = [frame.index.astype(str).tolist()] if view.keyed else []
    writer.writerows(zip(*keys, *columns, strict=True))
    content = _encoded(stream.getvalue(), source.encoding, notes)
    return gzip.compress(content, mtime=0) if source.compression == "gzip" else content


def _digits(values: Array, decimal: str, empty: str) -> list[str]:
    """Write numbers with as few digits as read back the same; words as they are."""
    if values.dtype.kind not in "fiu":
        return [empty if value is None or value != value else str(value) for value in values.tolist()]
    if values.dtype == np.float32:
        texts = [str(value) for value in values]  # numpy knows how few digits a single number needs
    else:
        texts = [repr(value) for value in values.tolist()]
    texts = [empty if text == "nan" else text.removesuffix(".0") for text in texts]
    return texts if decimal == "." else [text.replace(".", decimal) for text in texts]


def _encoded(text: str, encoding: str, notes: list[str]) -> bytes:
    mark = BYTE_ORDER_MARKS.get(encoding, b"")
    try:
        return mark + text.encode("utf-8" if encoding == "utf-8-sig" else encoding)
    except UnicodeEncodeError:  # an id from a file in another encoding
        notes.append("Written in UTF-8, since Windows-1252 has no signs for some of the names.")
        return BYTE_ORDER_MARKS["utf-8-sig"] + text.encode()


def _table(view: ViewFile, frame: Any, extras: dict[str, Array], notes: list[str]) -> bytes:
    """Write Parquet or Feather, with the ids where and as they were."""
    pandas = extra("pandas", "tables", "Writing tables")
    source = view.format
    full = frame.assign(**extras)
    if view.keyed:
        keys = [str(key) for key in frame.index]
        whole = source.id_type == "integer" and all(key.lstrip("+-").isdigit() for key in keys)
        name = None if source.id_name == "__index_level_0__" else source.id_name
        ids = pandas.Index([int(key) for key in keys] if whole else keys, name=name)
        full = full.set_axis(ids, axis=0)
        if source.id_place == "column":
            full = full.reset_index()
    else:
        full = full.reset_index(drop=True)
    table = arrow().Table.from_pandas(full)
    sink = io.BytesIO()
    if source.kind == "parquet":
        arrow("parquet").write_table(table, sink, compression=source.compression)
    else:
        arrow("feather").write_feather(table, sink)
    return sink.getvalue()


def _npy(view: ViewFile, frame: Any, extras: dict[str, Array], notes: list[str]) -> bytes:
    sink = io.BytesIO()
    matrix = np.column_stack([frame.to_numpy(), *extras.values()])
    np.save(sink, matrix.astype(frame.to_numpy().dtype, copy=False), allow_pickle=False)
    if extras:
        notes.append(f"The last column(s) of the array are {some(extras)}.")
    return sink.getvalue()


def _named_arrays(view: ViewFile, frame: Any, extras: dict[str, Array]) -> dict[str, Any]:
    matrix = (
        sparse.csc_array(frame.sparse.to_coo()) if view.is_sparse and view.format.kind == "mat" else frame.to_numpy()
    )
    named = {"view_0": matrix, "view_names": np.asarray([view.name]), **extras}
    if view.keyed:
        named["sample_ids"] = np.asarray([str(key) for key in frame.index])
    return named


def _npz(view: ViewFile, frame: Any, extras: dict[str, Array], notes: list[str]) -> bytes:
    sink = io.BytesIO()
    np.savez(sink, **_named_arrays(view, frame, extras))
    return sink.getvalue()


def _mat(view: ViewFile, frame: Any, extras: dict[str, Array], notes: list[str]) -> bytes:
    sink = io.BytesIO()
    named = _named_arrays(view, frame, extras)
    texts = {
        name: np.asarray(values, dtype=object) for name, values in named.items() if name in ("view_names", "sample_ids")
    }
    savemat(sink, {**named, **texts}, do_compression=True)
    return sink.getvalue()


def _omics(view: ViewFile, frame: Any, extras: dict[str, Array], notes: list[str]) -> bytes:
    """Write an AnnData, or a MuData with one modality."""
    anndata, pandas = extra("anndata", "omics", "Writing .h5ad files"), extra("pandas", "tables", "Writing tables")
    matrix = sparse.csr_array(frame.sparse.to_coo()) if view.is_sparse else frame.to_numpy()
    obs = pandas.DataFrame(extras, index=pandas.Index([str(key) for key in frame.index], name=view.format.id_name))
    data = anndata.AnnData(matrix, obs=obs, var=pandas.DataFrame(index=list(map(str, frame.columns))))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = Path(folder) / f"view{view.format.suffix}"
        if view.format.kind == "h5mu":
            extra("mudata", "omics", "Writing .h5mu files").MuData({view.name: data}).write(file)
        else:
            data.write_h5ad(file)
        return file.read_bytes()


WRITERS: dict[str, Callable[[ViewFile, Any, dict[str, Array], list[str]], bytes]] = {
    "text": _text,
    "parquet": _table,
    "feather": _table,
    "npy": _npy,
    "npz": _npz,
    "mat": _mat,
    "h5ad": _omics,
    "h5mu": _omics,
}
