"""Reading text tables, Parquet and Feather files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import DataFileError, some
from ..utils.storage import unescape_formula
from ._dialect import MISSING_WORDS, as_utf8, find_dialect, line_too_long, records, spaces_to_tabs
from ._sources import READING, content_of, damaged, demand_size, head_of, packing_of, reporting_damage, suffix_of
from ._view_file import SourceFormat
from .isolated import read_isolated
from .tables import RawTable, arrow


def read_text(file: Path) -> RawTable:
    """Read a text table of any dialect."""
    arrow()
    content, encoding = as_utf8(content_of(file), file)
    source, begin, head, notes = find_dialect(content, file)
    source = replace(source, encoding=encoding, compression=packing_of(file) or None)
    content = spaces_to_tabs(content) if source.separator == " " else content
    table = _parse(content, begin, source, file)
    demand_size(file, table.num_rows * table.num_columns, "cells", READING.limits.cells)
    lines = cache(lambda: [line for line, _ in _records(content, begin, source)])
    names, notes = list(map(unescape_formula, source.columns)), [described(source), *notes]

    def parse_texts(*positions: int) -> list[Any]:
        return list(_parse(content, begin, source, file, positions).columns)

    parse_one = cache(parse_texts)  # the texts of many columns would take too much memory to keep
    return RawTable(
        file, names, table.columns, table.num_rows, source,
        texts=lambda *positions: (parse_one if len(positions) == 1 else parse_texts)(*positions),
        head=head, lines=lines, notes=notes,
    )  # fmt: skip


def _delimiter(source: SourceFormat) -> str:
    """Return the separator for the parser: white space was turned into tabs."""
    return "\t" if source.separator == " " else source.separator


_NARROW = 10_000  # columns; pyarrow keeps the words for missing values for each column, so wide tables get few words


def _parse(content: bytes, begin: int, source: SourceFormat, file: Path, only: Sequence[int] = ()) -> Any:
    """Parse all columns of the rows, or ``only`` some of them as text."""
    pa, tables = arrow(), arrow("csv")
    names = [str(column) for column in range(len(source.columns))]
    as_text = {names[position]: pa.string() for position in only}
    body = pa.py_buffer(content).slice(begin)
    if not body.size:
        return pa.table({name: pa.nulls(0) for name in as_text or names})
    narrow = len(names) <= _NARROW
    block_size, quoted = min(READING.limits.line, body.size + 1), content.find(b'"', begin) >= 0
    reading = tables.ReadOptions(column_names=names, block_size=block_size, use_threads=False)
    parsing = tables.ParseOptions(delimiter=_delimiter(source), newlines_in_values=quoted)
    converting = tables.ConvertOptions(
        null_values=[word for word in MISSING_WORDS if narrow or word.encode() in content],
        strings_can_be_null=True,
        true_values=["true", "True", "TRUE"],
        false_values=["false", "False", "FALSE"],
        decimal_point=source.decimal,
        include_columns=list(as_text),
        column_types=as_text,
    )
    with reporting_damage(file, "a text table"):
        try:
            return tables.read_csv(pa.BufferReader(body), reading, parsing, converting)
        except pa.ArrowInvalid as error:
            if "straddl" in str(error):
                raise line_too_long(file) from None
            raise _ragged(content, begin, source, file, str(error)) from None


def _ragged(content: bytes, begin: int, source: SourceFormat, file: Path, cause: str) -> DataFileError:
    """Return the error that names the lines with other numbers of fields than the header."""
    expected = len(source.columns)
    wrong: list[tuple[int, int]] = []
    try:
        rows = _records(content, begin, source)
        wrong.extend((line, len(fields)) for line, fields in rows if len(fields) != expected)
    except csv.Error as error:
        cause = str(error)
    if not wrong:
        return damaged(file, "a text table", cause, "Check its quotes.")
    line, n_fields = wrong[0]
    named = {"\t": "tabs", " ": "white space"}.get(source.separator, f"'{source.separator}'")
    return DataFileError(
        f"{file.name!r} has rows of unequal length: {expected} fields (separated by {named}) were expected, "
        f"line {line} has {n_fields}; {len(wrong)} such row(s), in line(s) "
        f"{some([line for line, _ in wrong])}. Fill in or remove what is missing or too much there; put "
        "quotes around fields that contain the separator, and close all quotes."
    )


def _records(content: bytes, begin: int, source: SourceFormat) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows below the header, each with the number of its last line in the file."""
    return records(content[begin:], _delimiter(source), len(content[:begin].splitlines()))


def described(source: SourceFormat) -> str:
    """Return a sentence on the format of a text table."""
    marks = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "|", " ": "spaces"}
    names = {"utf-8": "UTF-8", "utf-8-sig": "UTF-8 with a byte order mark", "cp1252": "Windows-1252"}
    packed = f", packed with {source.compression}" if source.compression else ""
    point = "comma" if source.decimal == "," else "point"
    encoding = names.get(source.encoding, "UTF-16")
    return f"Text table with {marks[source.separator]} between fields and a decimal {point}, in {encoding}{packed}."


_BATCH = 2**16  # rows
_BYTES_PER_CELL = 16


def read_parquet(file: Path) -> RawTable:
    """Read a Parquet file; its sizes are checked before anything is unpacked."""
    parquet = arrow("parquet")
    with reporting_damage(file, "a Parquet file"):
        # Texts are read as dictionaries until their total length is checked: one of a megabyte may stand in every row
        texts = [field.name for field in parquet.read_schema(file) if _is_text(field.type)]
        with parquet.ParquetFile(file, read_dictionary=texts) as opened:
            about = opened.metadata
            groups = [about.row_group(number) for number in range(about.num_row_groups)]
            _demand_sizes(file, about.num_rows, about.num_columns)
            demand_size(file, sum(group.total_byte_size for group in groups), "bytes when unpacked")
            table = _from_batches(file, opened.iter_batches(_BATCH), opened.schema_arrow)
        # Only after reading, which refuses unknown codecs: asking for the name of one ends the process
        codec = groups[0].column(0).compression if groups and about.num_columns else "SNAPPY"
    return _table(file, table, "parquet", {"UNCOMPRESSED": "none"}.get(codec, codec.lower()))


def read_feather(file: Path) -> RawTable:
    """Read a Feather file batch by batch, so that its size is checked before all of it is in memory."""
    pa = arrow()
    with reporting_damage(file, "a Feather file"):
        if head_of(file).startswith(b"FEA1"):
            # Offsets of version 1 are not checked by pyarrow: it is converted to version 2 in another process
            source = pa.BufferReader(pa.py_buffer(read_isolated(file, "feather", "a Feather file")))
        else:
            source = pa.OSFile(str(file), "rb")
        with source as stream:
            reader = pa.ipc.open_file(stream)
            batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
            table = _from_batches(file, batches, reader.schema)
    return _table(file, table, "feather", None)


def _from_batches(file: Path, batches: Iterable[Any], schema: Any) -> Any:
    """Build a table from batches, counting each of them: the size that a file declares may be wrong."""
    found, n_rows, n_bytes = [], 0, 0
    for batch in batches:
        n_rows, n_bytes = n_rows + batch.num_rows, n_bytes + batch.nbytes
        _demand_sizes(file, n_rows, batch.num_columns)
        demand_size(file, n_bytes, "bytes or more when unpacked", _BYTES_PER_CELL * READING.limits.cells)
        found.append(batch)
    table = arrow().Table.from_batches(found, schema)
    _demand_sizes(file, table.num_rows, table.num_columns)
    table.validate(full=True)  # in a damaged file, text need not be UTF-8, and offsets may lead outside its memory
    return table


def _is_text(kind: Any) -> bool:
    types = arrow().types
    return any(is_one(kind) for is_one in (types.is_string, types.is_large_string, types.is_binary))


def _demand_sizes(file: Path, n_rows: int, n_columns: int) -> None:
    demand_size(file, n_columns, "columns", READING.limits.columns)
    demand_size(file, n_rows * n_columns, "cells", READING.limits.cells)


def _table(file: Path, table: Any, kind: str, compression: str | None) -> RawTable:
    names = [str(name) for name in table.column_names]
    source = SourceFormat(kind, suffix_of(file), tuple(names), compression=compression)
    columns = [_decoded(file, column) for column in table.columns]
    return RawTable(file, names, columns, table.num_rows, source, index=_index(table, names))


def _index(table: Any, names: list[str]) -> int | None:
    """Return the position of the index of a pandas frame; a default index is not stored as a column."""
    try:
        listed = (table.schema.pandas_metadata or {}).get("index_columns", [])
    except Exception:  # the metadata of pandas are JSON, and may be damaged while the table is not
        return None
    own = [name for name in listed if isinstance(name, str) and name in names]
    return names.index(own[0]) if len(listed) == len(own) == 1 else None


def _decoded(file: Path, column: Any) -> Any:
    """Return a column of categories as a column of values, if these are not too long in total."""
    pa, compute = arrow(), arrow("compute")
    if not pa.types.is_dictionary(column.type):
        return column
    if _is_text(column.type.value_type):
        lengths = (compute.binary_length(part.dictionary).cast(pa.int64()).take(part.indices) for part in column.chunks)
        demand_size(file, sum(compute.sum(part).as_py() or 0 for part in lengths), "bytes of text")
    return column.cast(column.type.value_type)
