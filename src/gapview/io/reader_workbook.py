"""Reading the cells of a workbook, in the process of ``reader``, which loads this file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from gapview.utils.refusals import Refused, check_size

_TEXT, _TRUTH, _DATE = "tbd"


def read_workbook(request: dict[str, Any]) -> list[Any]:
    """Return the sheets of a workbook in their order: numbers as a matrix, all other cells as texts with positions.

    A hidden sheet, a chart and an empty sheet are named, with the reason why they are not read, unless they are asked
    for by name.
    """
    from python_calamine import CalamineWorkbook, PasswordError, SheetTypeEnum, SheetVisibleEnum

    name = os.path.basename(request["file"])
    try:
        book = CalamineWorkbook.from_path(request["file"])
    except PasswordError:
        raise Refused(f"{name!r} is protected by a password. Save it without one.") from None
    wanted = _find(name, book.sheet_names, request["sheets"])
    found: list[Any] = []
    for about in book.sheets_metadata:
        if wanted and about.name not in wanted:
            continue
        if about.typ != SheetTypeEnum.WorkSheet:
            found.append({"name": about.name, "skipped": "holds no cells"})
        elif not wanted and about.visible != SheetVisibleEnum.Visible:
            found.append({"name": about.name, "skipped": "is hidden"})
        else:
            sheet = book.get_sheet_by_name(about.name)
            check_size(name, sheet.width, "columns", request["columns"], "columns")
            check_size(name, sheet.width * sheet.height, "cells", request["cells"])
            cells = {"skipped": "is empty"} if sheet.start is None else _read_cells(sheet)
            found.append({"name": about.name, **cells})
    return found


def _find(name: str, there: list[str], wanted: list[str]) -> set[str]:
    """Return the wanted sheets; upper and lower case count only where both occur."""
    found = set()
    for sheet in wanted:
        alike = [one for one in there if one.strip().casefold() == sheet.strip().casefold()]
        exact = [one for one in there if one == sheet] or alike
        if len(exact) != 1:
            listed = ", ".join(map(repr, there[:20]))
            raise Refused(f"{name!r} has no sheet {sheet!r}; it has {listed}. Name one of these.")
        found.add(exact[0])
    return found


def _read_cells(sheet: Any) -> dict[str, Any]:
    top, width = sheet.start[0], sheet.width
    values = np.full((sheet.end[0] - top + 1, width), np.nan)
    rows: list[int] = []
    columns: list[int] = []
    texts: list[str] = []
    kinds: list[str] = []
    for place, cells in enumerate(sheet.iter_rows()):
        row = place - top
        for column, cell in enumerate(cells):
            if type(cell) is float or type(cell) is int:
                values[row, column] = cell
            elif cell != "":  # an error such as #N/A is empty, too
                rows.append(row)
                columns.append(column)
                texts.append(cell if isinstance(cell, str) else str(cell))
                kinds.append(_TEXT if isinstance(cell, str) else _TRUTH if isinstance(cell, bool) else _DATE)
    return {
        "top": top,
        "values": values,
        "rows": np.asarray(rows, dtype=np.int64),
        "columns": np.asarray(columns, dtype=np.int64),
        "texts": texts,
        "kinds": "".join(kinds),
    }
