"""Tables from the sheets of workbooks of Excel (``.xlsx``, ``.xlsb``, ``.xls``) and OpenDocument (``.ods``)."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataFileError, some
from ..utils.messages import counted, numbered, warn_user
from ..utils.types import Array
from ..views.numerals import is_numeral
from ._dialect import HEAD_RECORDS, find_header, is_missing
from ._sources import MEMORY, MEMORY_PER_BYTE, demand_size, reporting_damage
from ._view_file import SourceFormat
from .isolated import demand_package, read_isolated
from .tables import RawTable, arrow

_LARGEST_WHOLE = 2**53
_WHAT = "a workbook"


def read_workbook(file: Path, sheets: Sequence[str] = ()) -> list[tuple[str, RawTable]]:
    """Return the tables of a workbook by the names of their sheets; sheets that hold none are noted in the first.

    Parameters
    ----------
    file : Path
        The workbook.
    sheets : sequence of str
        The sheets that are read. By default all visible sheets that hold a table with numbers.
    """
    arrow()
    demand_package("python_calamine", "excel", "Reading workbooks")
    size = _unpacked_size(file)
    demand_size(file, size, "bytes when unpacked")
    memory = MEMORY_PER_BYTE * size + MEMORY
    found = read_isolated(file, "workbook", _WHAT, sheets=list(sheets), most_memory=memory)
    tables: list[tuple[str, RawTable]] = []
    skipped: list[str] = []
    for sheet in found:
        table = None if "skipped" in sheet else _table(file, sheet)
        reason = sheet.get("skipped", "holds no table of numbers")
        if table is not None and (sheets or _has_numbers(table)):
            tables.append((sheet["name"], table))
        elif sheets:
            raise DataFileError(f"The sheet {sheet['name']!r} of {file.name!r} {reason}. Name another sheet.")
        else:
            skipped.append(f"'{sheet['name']}' ({reason})")
    if not tables:
        listed = f": {', '.join(skipped)}" if skipped else ""
        raise DataFileError(f"{file.name!r} has no sheet with a table of numbers{listed}. Name a sheet that has one.")
    if skipped:
        tables[0][1].notes.append(f"{counted(len(skipped), 'sheet')} of the workbook left out: {', '.join(skipped)}.")
    return tables


def _unpacked_size(file: Path) -> int:
    if not zipfile.is_zipfile(file):  # .xls is not compressed
        return file.stat().st_size
    with reporting_damage(file, _WHAT), zipfile.ZipFile(file) as archive:
        return sum(member.file_size for member in archive.infolist())


class _Cells:
    """The cells of a sheet: numbers in a matrix, all others as texts at positions."""

    def __init__(self, sheet: dict[str, Any]) -> None:
        self.values: Array = sheet["values"]
        self.kinds: list[dict[int, str]] = [{} for _ in range(self.values.shape[1])]
        self.texts: list[dict[int, str]] = [{} for _ in range(self.values.shape[1])]
        for row, column, text, kind in zip(
            sheet["rows"].tolist(), sheet["columns"].tolist(), sheet["texts"], sheet["kinds"], strict=True
        ):
            if not is_missing(text):
                self.texts[column][row], self.kinds[column][row] = text, kind

    def written(self, row: int, column: int) -> str:
        """Return a cell as text, with a decimal point that cannot be a thousands separator."""
        text = self.texts[column].get(row)
        if text is not None:
            return text
        value = self.values[row, column]
        if np.isnan(value):
            return ""
        if value == int(value) and abs(value) < _LARGEST_WHOLE:
            return str(int(value))
        digits = repr(float(value))
        return digits if "e" in digits else f"{digits}0"

    def column(self, column: int, first: int) -> Any:
        """Return the cells of a column from a row on as an array of pyarrow: numbers, truth values or texts."""
        pa = arrow()
        values = self.values[first:, column]
        texts = {row: text for row, text in self.texts[column].items() if row >= first}
        kinds = {self.kinds[column][row] for row in texts}
        missing = np.isnan(values)
        if not texts:
            whole = values[~missing]
            if whole.size and (whole == np.round(whole)).all() and (abs(whole) < _LARGEST_WHOLE).all():
                return pa.array(np.where(missing, 0, values).astype(np.int64), mask=missing)
            return pa.array(values, mask=missing)
        if kinds == {"b"} and missing.all():
            return pa.array([None if row not in texts else texts[row] == "True" for row in _rows(self, first)])
        return pa.array([self.written(row, column) or None for row in _rows(self, first)], pa.string())


def _rows(cells: _Cells, first: int) -> range:
    return range(first, len(cells.values))


def _table(file: Path, sheet: dict[str, Any]) -> RawTable | None:
    """Return the table of a sheet, below lines of title or remarks; None if it has no rows below a header."""
    cells = _Cells(sheet)
    n_rows, n_columns = cells.values.shape
    head = [[cells.written(row, column) for column in range(n_columns)] for row in range(min(n_rows, HEAD_RECORDS))]
    if not any(any(row) for row in head):
        return None
    names, header, first, notes = find_header(head)
    if n_rows <= first:
        return None
    name, top = sheet["name"], sheet["top"]
    _warn_of_dates(file, name, cells, first, header)
    columns = [cells.column(column, first) for column in range(n_columns)]
    source = SourceFormat("excel", ".xlsx", tuple(names), header=header, sheet=name)
    return RawTable(
        file, names, arrow().table(columns, names=numbered(n_columns)).columns, n_rows - first, source,
        lines=lambda: [top + row + 1 for row in range(first, n_rows)],
        notes=[f"Sheet '{name}' of a workbook.", *notes],
    )  # fmt: skip


def _warn_of_dates(file: Path, name: str, cells: _Cells, first: int, header: str) -> None:
    """Warn of dates among the names of columns, or of rows: spreadsheets make them from some names of genes."""
    named = [kinds.get(row) for kinds in cells.kinds for row in range(first)] if header != "none" else []
    top = [cells.texts[k][row] for k, kinds in enumerate(cells.kinds) for row in range(first) if kinds.get(row) == "d"]
    left = [cells.texts[0][row] for row, kind in cells.kinds[0].items() if row >= first and kind == "d"]
    for found, others, what in ((top, named, "columns"), (left, list(cells.kinds[0].values()), "rows")):
        if found and 0 < 2 * len(found) < sum(kind is not None for kind in others):
            warn_user(
                f"{file.name!r} (sheet '{name}') has {counted(len(found), 'date')} among the names of its {what}, such "
                f"as {some(found, 3)}. Spreadsheets turn names such as MARCH1 and SEPT2 into dates: correct them."
            )


def _has_numbers(table: RawTable) -> bool:
    """Return whether a column holds numbers in most of its cells."""
    for position, column in enumerate(table.columns):
        if column.null_count == len(column):
            continue
        if table.kind(position) == "numbers":
            return True
        cells = [cell for cell in table.cells(position) if cell is not None]
        if 2 * sum(is_numeral(str(cell)) for cell in cells) > len(cells):
            return True
    return False
