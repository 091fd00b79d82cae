"""Reading Parquet and Feather files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from . import _limits
from ._sources import damaged, demand_size, suffix_of
from ._table import Table, arrow
from ._view_file import SourceFormat
from .isolated import read_apart

__all__ = ["read_feather", "read_parquet"]

_BATCH = 2**16  # rows
_BYTES_PER_CELL = 16


def read_parquet(file: Path) -> Table:
    """Read a Parquet file; its sizes are checked before anything is unpacked."""
    parquet = arrow("parquet")
    demand_size(file, file.stat().st_size)
    with damaged(file, "a Parquet file"), parquet.ParquetFile(file) as opened:
        about = opened.metadata
        texts = [field.name for field in opened.schema_arrow if _is_text(field.type)]
    # Texts stay numbered until it is known how long they are when written out: one of a megabyte may come in every row
    with damaged(file, "a Parquet file"), parquet.ParquetFile(file, read_dictionary=texts) as opened:
        groups = [about.row_group(number) for number in range(about.num_row_groups)]
        _demand_sizes(file, about.num_rows, about.num_columns)
        demand_size(file, sum(group.total_byte_size for group in groups), "bytes when unpacked")
        table = _gathered(arrow(), file, opened.iter_batches(_BATCH), opened.schema_arrow)
        table.validate(full=True)  # text of a damaged file need not be UTF-8
        # Asked for only now: a codec that pyarrow does not know would end the process, and reading refuses it
        codec = groups[0].column(0).compression if groups and about.num_columns else "SNAPPY"
    return _table(file, table, "parquet", {"UNCOMPRESSED": "none"}.get(codec, codec.lower()))


def read_feather(file: Path) -> Table:
    """Read a Feather file, batch by batch so that its size is known before all of it is in memory."""
    pa = arrow()
    demand_size(file, file.stat().st_size)
    with damaged(file, "a Feather file"):
        with file.open("rb") as stream:
            old = stream.read(4) == b"FEA1"
        # Of the first version, what stands where is not checked when it is read: only elsewhere, and written anew
        content = pa.py_buffer(read_apart(file, "feather", "a Feather file")) if old else str(file)
        table = _read_batches(pa, file, content)
        _demand_sizes(file, table.num_rows, table.num_columns)
        table.validate(full=True)  # offsets of a damaged file would lead outside its memory
    return _table(file, table, "feather", None)


def _read_batches(pa: Any, file: Path, content: Any) -> Any:
    with pa.OSFile(content, "rb") if isinstance(content, str) else pa.BufferReader(content) as stream:
        reader = pa.ipc.open_file(stream)
        batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
        return _gathered(pa, file, batches, reader.schema)


def _gathered(pa: Any, file: Path, batches: Iterable[Any], schema: Any) -> Any:
    """Make a table of batches, each counted as soon as it is there: what a file says of its size may be wrong."""
    found, n_rows, n_bytes = [], 0, 0
    for batch in batches:
        n_rows, n_bytes = n_rows + batch.num_rows, n_bytes + batch.nbytes
        _demand_sizes(file, n_rows, batch.num_columns)
        demand_size(file, n_bytes, "bytes or more when unpacked", _BYTES_PER_CELL * _limits.LIMITS.cells)
        found.append(batch)
    return pa.Table.from_batches(found, schema)


def _is_text(kind: Any) -> bool:
    types = arrow().types
    return any(is_one(kind) for is_one in (types.is_string, types.is_large_string, types.is_binary))


def _demand_sizes(file: Path, n_rows: int, n_columns: int) -> None:
    demand_size(file, n_columns, "columns", _limits.LIMITS.columns)
    demand_size(file, n_rows * n_columns, "cells", _limits.LIMITS.cells)


def _table(file: Path, table: Any, kind: str, compression: str | None) -> Table:
    names = [str(name) for name in table.column_names]
    source = SourceFormat(kind, suffix_of(file), tuple(names), compression=compression)
    columns = [_decoded(file, column) for column in table.columns]
    return Table(file, names, columns, table.num_rows, source, index=_index(table, names))


def _index(table: Any, names: list[str]) -> int | None:
    """Find the column that was the index of a pandas frame; one of row numbers alone is not stored as a column."""
    try:
        listed = (table.schema.pandas_metadata or {}).get("index_columns", [])
    except Exception:  # the remarks of pandas are JSON, and may be damaged while the table is not
        return None
    own = [name for name in listed if isinstance(name, str) and name in names]
    return names.index(own[0]) if len(listed) == len(own) == 1 else None


def _decoded(file: Path, column: Any) -> Any:
    """Write categories out as their values, if these are not too long."""
    pa, compute = arrow(), arrow("compute")
    if not pa.types.is_dictionary(column.type):
        return column
    if _is_text(column.type.value_type):
        total = 0
        for chunk in column.chunks:
            lengths = compute.binary_length(chunk.dictionary).cast(pa.int64()).take(chunk.indices)
            total += compute.sum(lengths).as_py() or 0
        demand_size(file, total, "bytes of text")
    return column.cast(column.type.value_type)
