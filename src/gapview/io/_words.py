"""What a cell of text can stand for: a number, nothing, true or false, a date."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = [
    "FALSE_WORDS",
    "MISSING_WORDS",
    "TRUE_WORDS",
    "as_booleans",
    "as_numbers",
    "is_missing",
    "is_number",
    "looks_like_dates",
    "looks_like_thousands",
]

_MISSING = ("", "na", "n/a", "nan", "null", "?", "-", "#n/a")
MISSING_WORDS = sorted({form for word in _MISSING for form in (word, word.upper(), word.capitalize())} | {"NaN", "N/a"})
TRUE_WORDS = ["true", "True", "TRUE"]
FALSE_WORDS = ["false", "False", "FALSE"]

_NUMBER = {
    mark: re.compile(rf"[+-]?(?:[0-9]+(?:[{mark}][0-9]*)?|[{mark}][0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?inf(?:inity)?", re.I)
    for mark in (".", ",", ".,")
}
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:[.,][0-9]{3})+")
_DATE = re.compile(
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2}))(?:[T ]\d{1,2}:\d{2}(?::\d{2})?\S*)?"
)


def is_missing(cell: str | None) -> bool:
    """Tell whether a cell is empty or says so."""
    return cell is None or cell.strip().lower() in _MISSING


def is_number(cell: str, mark: str = ".,") -> bool:
    """Tell whether a cell is a number, written with any of the given decimal marks."""
    return _NUMBER[mark].fullmatch(cell.strip()) is not None


def as_numbers(cells: Sequence[str], mark: str) -> list[float] | None:
    """Read cells as numbers with a decimal mark; None if one of them is none."""
    if not all(is_number(cell, mark) for cell in cells):
        return None
    return [float(cell.replace(",", ".")) for cell in cells]


def looks_like_thousands(cells: Sequence[str]) -> bool:
    """Tell whether all marks in cells stand where marks of thousands do: ``1,234`` is either 1.234 or 1234."""
    marked = [cell for cell in cells if "," in cell or "." in cell]
    return bool(marked) and all(_THOUSANDS.fullmatch(cell) for cell in marked)


def as_booleans(cells: Sequence[str]) -> list[float] | None:
    """Read true and false as 1 and 0; None if a cell says something else."""
    words = {cell.lower() for cell in cells}
    return [float(cell.lower() == "true") for cell in cells] if words <= {"true", "false"} else None


def looks_like_dates(cells: Sequence[str]) -> bool:
    """Tell whether all cells are dates."""
    return all(_DATE.fullmatch(cell) for cell in cells)
