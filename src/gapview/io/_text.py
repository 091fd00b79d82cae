"""Reading text tables: comma, semicolon, tab, | or spaces between fields, decimal points or commas."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import DataFileError, some
from . import _limits
from ._dialect import Dialect, as_utf8, find_dialect, line_too_long, records, spaces_to_tabs
from ._sources import content_of, damaged, demand_size, suffix_of
from ._table import Table, arrow
from ._view_file import SourceFormat
from ._words import FALSE_WORDS, MISSING_WORDS, TRUE_WORDS

__all__ = ["read_text"]


def read_text(file: Path) -> Table:
    """Read a text table, finding out how it is written."""
    arrow()
    content, encoding = as_utf8(content_of(file), file)
    dialect = find_dialect(content, file)
    content = spaces_to_tabs(content) if dialect.spaces else content
    table = _parse(content, dialect, file)
    demand_size(file, table.num_rows * table.num_columns, "cells", _limits.LIMITS.cells)
    header = dialect.header
    suffix = suffix_of(file)
    source = SourceFormat(
        kind="text",
        suffix=suffix,
        columns=tuple(header.names),
        compression="gzip" if suffix.endswith(".gz") else None,
        separator=" " if dialect.spaces else dialect.separator,
        decimal=dialect.decimal,
        encoding=encoding,
        newline=dialect.newline,
        header=header.kind,
    )
    return Table(
        file,
        header.names,
        table.columns,
        table.num_rows,
        source,
        written=cache(lambda position: _parse(content, dialect, file, position).column(0).to_pylist()),
        lines=cache(lambda: _lines(content, dialect)),
        notes=[_described(source), *header.notes],
    )


def _parse(content: bytes, dialect: Dialect, file: Path, only: int | None = None) -> Any:
    """Parse the rows; ``only`` one column of them, as it is written."""
    pa, tables = arrow(), arrow("csv")
    names = [str(column) for column in range(dialect.n_columns)]
    chosen = [] if only is None else [names[only]]
    body = pa.py_buffer(content).slice(dialect.body)
    if not body.size:
        return pa.table([pa.nulls(0)] * len(names if only is None else chosen), names=names if only is None else chosen)
    with damaged(file, "a text table"):
        try:
            return tables.read_csv(
                pa.BufferReader(body),
                read_options=tables.ReadOptions(
                    column_names=names, block_size=min(_limits.LIMITS.line, body.size + 1), use_threads=False
                ),
                parse_options=tables.ParseOptions(
                    delimiter=dialect.separator, newlines_in_values=content.find(b'"', dialect.body) >= 0
                ),
                convert_options=tables.ConvertOptions(
                    null_values=MISSING_WORDS,
                    strings_can_be_null=True,
                    true_values=TRUE_WORDS,
                    false_values=FALSE_WORDS,
                    decimal_point=dialect.decimal,
                    include_columns=chosen,
                    column_types=dict.fromkeys(chosen, pa.string()),
                ),
            )
        except pa.ArrowInvalid as error:
            if "straddl" in str(error):
                raise line_too_long(file) from None
            raise _ragged(content, dialect, file, str(error)) from None


def _ragged(content: bytes, dialect: Dialect, file: Path, said: str) -> DataFileError:
    """Name the lines whose number of fields is not that of the header."""
    wrong = []
    try:
        for line, fields in records(content[dialect.body :], dialect.separator):
            if len(fields) != dialect.n_columns:
                wrong.append((line, len(fields)))
    except csv.Error as error:
        said = str(error)
    if not wrong:
        return DataFileError(f"{file.name!r} cannot be read as a text table: {said}. Check its quotes.")
    before = _lines_before(content, dialect)
    line, n_fields = wrong[0]
    named = {"\t": "white space" if dialect.spaces else "tabs"}.get(dialect.separator, f"'{dialect.separator}'")
    return DataFileError(
        f"{file.name!r} has rows of unequal length: {dialect.n_columns} fields (separated by {named}) were expected, "
        f"line {before + line} has {n_fields}; {len(wrong)} such row(s), in line(s) "
        f"{some([before + line for line, _ in wrong])}. Fill in or remove what is missing or too much there; put "
        "quotes around fields that contain the separator, and close all quotes."
    )


def _lines(content: bytes, dialect: Dialect) -> list[int]:
    before = _lines_before(content, dialect)
    return [before + line for line, _ in records(content[dialect.body :], dialect.separator)]


def _lines_before(content: bytes, dialect: Dialect) -> int:
    return len(content[: dialect.body].splitlines())


def _described(source: SourceFormat) -> str:
    marks = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "|", " ": "spaces"}
    names = {"utf-8": "UTF-8", "utf-8-sig": "UTF-8 with a byte order mark", "cp1252": "Windows-1252"}
    packed = ", packed with gzip" if source.compression else ""
    point = "comma" if source.decimal == "," else "point"
    encoding = names.get(source.encoding, "UTF-16")
    return f"Text table with {marks[source.separator]} between fields and a decimal {point}, in {encoding}{packed}."
