"""Reading the tables and matrices of a file of R, in the process of ``reader``, which loads this file.

``rdata`` parses the file into R objects. Data frames, matrices, sparse matrices of the package Matrix and named lists
of these are returned; nothing in the file is executed.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from scipy import sparse

from gapview.utils.refusals import check_size

_PART = 2**20
_MOST_DEPTH = 3  # of nested lists
_OPENERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}


def read_r(request: dict[str, Any]) -> list[Any]:
    """Return the tables and matrices of a file, and the other objects in it by name and class."""
    from rdata.parser import RObjectType, parse_data

    parsed = parse_data(_content(request["file"], request["size"])).object
    if parsed.info.type == RObjectType.LIST:  # several objects with names, as save() writes them
        return [one for name, value in _pairs(parsed) for one in _objects(name, value, request)]
    return list(_objects(None, parsed, request))


def _content(file: str, most: int) -> bytes:
    """Return all bytes of a file, decompressed within a limit."""
    with open(file, "rb") as stream:
        head = stream.read(8)
    content = bytearray()
    opener = next((opener for begin, opener in _OPENERS.items() if head.startswith(begin)), open)
    with opener(file, "rb") as stream:
        while part := stream.read(_PART):
            content += part
            check_size(os.path.basename(file), len(content), "bytes or more when unpacked", most, "size")
    return bytes(content)


def _objects(name: str | None, value: Any, request: dict[str, Any], depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield what one object holds; the items of a list have their own names."""
    kind, attributes = value.info.type.name, _attributes(value)
    classes = _texts(attributes["class"]) if "class" in attributes else []
    if kind == "VEC" and "data.frame" in classes:
        yield {"name": name, "kind": "table", **_table(value, attributes)}
    elif kind in ("REAL", "INT", "LGL") and len(shape := _shape(attributes)) == 2:
        check_size(os.path.basename(request["file"]), shape[0] * shape[1], "cells", request["cells"])
        matrix = _numbers(value).reshape(shape, order="F")
        yield {"name": name, "kind": "matrix", "X": matrix, **_dimnames(attributes.get("dimnames"))}
    elif kind == "S4" and (matrix := _sparse(classes, attributes)) is not None:
        yield {"name": name, "kind": "matrix", "X": matrix, **_dimnames(attributes.get("Dimnames"))}
    elif kind == "VEC" and "names" in attributes and not classes and depth < _MOST_DEPTH:
        for own, item in zip(_texts(attributes["names"]), value.value, strict=True):
            yield from _objects(own or None, item, request, depth + 1)
    else:
        yield {"name": name, "kind": "other", "class": classes[0] if classes else _KINDS.get(kind, kind.lower())}


_KINDS = {"REAL": "vector", "INT": "vector", "LGL": "vector", "STR": "vector of text", "VEC": "list", "CLO": "function"}


def _table(value: Any, attributes: dict[str, Any]) -> dict[str, Any]:
    """Return a data frame: its columns, and its row names unless they only number the rows."""
    names = _texts(attributes["names"]) if "names" in attributes else []
    rows = attributes.get("row.names")
    has_names = rows is not None and rows.info.type.name == "STR"
    return {
        "names": names,
        "columns": [_column(column) for column in value.value],
        "rows": _texts(rows) if has_names else None,
    }


def _column(value: Any) -> Any:
    """Return a column as an array of numbers, as a list of texts, or None if it is neither."""
    kind, attributes = value.info.type.name, _attributes(value)
    classes = _texts(attributes["class"]) if "class" in attributes else []
    if "dim" in attributes:
        return None
    if "factor" in classes:
        levels = _texts(attributes["levels"])
        return [None if code != code else levels[int(code) - 1] for code in _numbers(value).tolist()]
    if kind in ("REAL", "INT", "LGL"):
        numbers = _numbers(value)
        if "Date" in classes or "POSIXct" in classes:
            unit = timedelta(days=1) if "Date" in classes else timedelta(seconds=1)
            begin = datetime(1970, 1, 1, tzinfo=UTC)
            return [None if number != number else str((begin + number * unit).date()) for number in numbers.tolist()]
        return numbers
    return _texts(value) if kind == "STR" else None


def _numbers(value: Any) -> Any:
    """Return a vector of numbers; whole numbers stay whole if none is missing."""
    hidden, array = np.ma.getmaskarray(value.value), np.ma.getdata(value.value)
    if hidden.any():
        array = np.where(hidden, np.nan, array)
    return array if array.dtype.kind in "if" else array.astype(np.float64)


def _texts(value: Any) -> list[Any]:
    """Return a vector as texts, None where one is missing."""
    if value.info.type.name != "STR":
        return [str(item) for item in _numbers(value).tolist()]
    return [_text(item) for item in value.value]


def _text(item: Any) -> str | None:
    if item.value is None:
        return None
    try:
        return str(item.value.decode())
    except UnicodeDecodeError:
        return str(item.value.decode("latin-1"))


def _shape(attributes: dict[str, Any]) -> tuple[int, ...]:
    return tuple(int(size) for size in _numbers(attributes["dim"])) if "dim" in attributes else ()


def _dimnames(value: Any) -> dict[str, Any]:
    """Return the names of rows and columns of a matrix, None where there are none."""
    parts = value.value if value is not None and value.info.type.name == "VEC" else [None, None]
    names = [_texts(part) if part is not None and part.info.type.name == "STR" else None for part in parts]
    return dict(zip(("rows", "columns"), names, strict=True))


def _sparse(classes: list[Any], attributes: dict[str, Any]) -> Any:
    """Return a sparse matrix of the package Matrix: dgCMatrix and its relatives, else None."""
    name = classes[0] if classes else ""
    if name[:2] not in ("dg", "lg", "ng") or name[2:] not in ("CMatrix", "RMatrix", "TMatrix"):
        return None
    n_rows, n_columns = (int(size) for size in _numbers(attributes["Dim"]))
    own = {slot: _numbers(attributes[slot]) for slot in ("i", "j", "p", "x") if slot in attributes}
    n_values = len(own["i"] if "i" in own else own["j"])
    values = np.asarray(own.get("x", np.ones(n_values)), dtype=np.float64)
    if name[2] == "T":
        return sparse.coo_array((values, (own["i"], own["j"])), shape=(n_rows, n_columns)).tocsr()
    if name[2] == "C":
        return sparse.csc_array((values, own["i"], own["p"]), shape=(n_rows, n_columns))
    return sparse.csr_array((values, own["j"], own["p"]), shape=(n_rows, n_columns))


def _attributes(value: Any) -> dict[str, Any]:
    return dict(_pairs(value.attributes)) if value.attributes is not None else {}


def _pairs(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of a pairlist."""
    while node is not None and node.info.type.name == "LIST":
        tag = node.tag.referenced_object if node.tag is not None and node.tag.info.type.name == "REF" else node.tag
        yield ("" if tag is None else _text(tag.value) or ""), node.value[0]
        node = node.value[1]
