"""Reading Parquet and Feather files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import _limits
from ._sources import damaged, demand_size, suffix_of
from ._table import Table, arrow
from ._view_file import SourceFormat

__all__ = ["read_feather", "read_parquet"]


def read_parquet(file: Path) -> Table:
    """Read a Parquet file; its sizes are checked before anything is unpacked."""
    parquet = arrow("parquet")
    demand_size(file, file.stat().st_size)
    with damaged(file, "a Parquet file"), parquet.ParquetFile(file) as opened:
        about = opened.metadata
        groups = [about.row_group(number) for number in range(about.num_row_groups)]
        _demand_sizes(file, about.num_rows, about.num_columns)
        demand_size(file, sum(group.total_byte_size for group in groups), "bytes when unpacked")
        table = opened.read()
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
        table = arrow("feather").read_table(file, memory_map=False) if old else _read_batches(pa, file)
        _demand_sizes(file, table.num_rows, table.num_columns)
        table.validate(full=True)  # offsets of a damaged file would lead outside its memory
    return _table(file, table, "feather", None)


def _read_batches(pa: Any, file: Path) -> Any:
    with pa.OSFile(str(file), "rb") as stream:
        reader = pa.ipc.open_file(stream)
        batches, n_rows = [], 0
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            n_rows += batch.num_rows
            _demand_sizes(file, n_rows, batch.num_columns)
            batches.append(batch)
        return pa.Table.from_batches(batches, reader.schema)


def _demand_sizes(file: Path, n_rows: int, n_columns: int) -> None:
    demand_size(file, n_columns, "columns", _limits.LIMITS.columns)
    demand_size(file, n_rows * n_columns, "cells", _limits.LIMITS.cells)


def _table(file: Path, table: Any, kind: str, compression: str | None) -> Table:
    names = [str(name) for name in table.column_names]
    source = SourceFormat(kind, suffix_of(file), tuple(names), compression=compression)
    columns = [_decoded(column) for column in table.columns]
    return Table(file, names, columns, table.num_rows, source, index=_index(table, names))


def _index(table: Any, names: list[str]) -> int | None:
    """Find the column that was the index of a pandas frame; one of row numbers alone is not stored as a column."""
    try:
        listed = (table.schema.pandas_metadata or {}).get("index_columns", [])
    except Exception:  # the remarks of pandas are JSON, and may be damaged while the table is not
        return None
    own = [name for name in listed if isinstance(name, str) and name in names]
    return names.index(own[0]) if len(listed) == len(own) == 1 else None


def _decoded(column: Any) -> Any:
    """Write categories out as their values."""
    pa = arrow()
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
