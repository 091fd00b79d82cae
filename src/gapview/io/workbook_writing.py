"""Writing tables into the sheets of an Excel workbook."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import DataFileError, extra
from ..utils.messages import free_name
from ..utils.storage import escape_formula, unescape_formula

_ROWS, _COLUMNS = 1_048_576, 16_384  # of a sheet
_LONGEST_NAME, _FORBIDDEN = 31, str.maketrans(dict.fromkeys(r"[]:*?/\'", "_"))
_LONGEST_TEXT = 32_767  # characters of a cell


def workbook_content(sheets: Mapping[str, Iterable[Sequence[Any]]]) -> bytes:
    """Return an Excel workbook with a sheet for each table, given as rows of numbers and texts, the header first.

    Texts stay texts: none becomes a formula, a link or a number, and those that look like a formula are marked so that
    they also stay texts when the cell is edited.
    """
    xlsxwriter = extra("xlsxwriter", "excel", "Writing workbooks")
    sink = io.BytesIO()
    book = xlsxwriter.Workbook(sink, {"in_memory": True, "strings_to_urls": False, "strings_to_formulas": False})
    as_text = book.add_format({"quote_prefix": True})
    taken: set[str] = set()
    for name, rows in sheets.items():
        title = free_name(name.translate(_FORBIDDEN)[: _LONGEST_NAME - 4] or "sheet", taken)
        taken.add(title)
        sheet = book.add_worksheet(title)
        for row, cells in enumerate(rows):
            if row >= _ROWS or len(cells) > _COLUMNS:
                raise DataFileError(
                    f"The table {name!r} does not fit into a sheet of Excel, which has {_ROWS:,} rows and {_COLUMNS:,} "
                    "columns. Write it as .csv."
                )
            for column, cell in enumerate(cells):
                if isinstance(cell, str):
                    looks_like_formula = escape_formula(cell) != cell
                    sheet.write_string(row, column, cell[:_LONGEST_TEXT], as_text if looks_like_formula else None)
                elif cell is not None and math.isfinite(cell):
                    sheet.write_number(row, column, cell)
        sheet.freeze_panes(1, 1)
    book.close()
    return sink.getvalue()


def typed_table(text: str) -> list[list[Any]]:
    """Return the rows of a CSV table of gapview, with numbers in the columns of numbers; the first holds ids."""
    header, *rows = csv.reader(io.StringIO(text))
    columns = [list(column) for column in zip(*rows, strict=True)]
    typed: list[list[Any]] = [[unescape_formula(cell) for cell in columns[0]] if columns else []]
    for column in columns[1:]:
        try:
            typed.append([float(cell) if cell else None for cell in column])
        except ValueError:
            typed.append([unescape_formula(cell) for cell in column])
    return [header, *map(list, zip(*typed, strict=True))]
