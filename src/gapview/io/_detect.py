"""Detecting what the text of a cell or the name of a column stands for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..utils.messages import free_name

_MISSING = ("", "na", "n/a", "nan", "null", "?", "-", "#n/a")
MISSING_WORDS = sorted({form for word in _MISSING for form in (word, word.upper(), word.capitalize())} | {"NaN", "N/a"})

_NUMBER = {
    mark: re.compile(rf"[+-]?(?:[0-9]+(?:[{mark}][0-9]*)?|[{mark}][0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?inf(?:inity)?", re.I)
    for mark in (".", ",", ".,")
}
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:[.,][0-9]{3})+")
_DATE = re.compile(
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2}))(?:[T ]\d{1,2}:\d{2}(?::\d{2})?\S*)?"
)


def is_missing(cell: str | None) -> bool:
    """Return whether a cell is empty or holds a word for a missing value."""
    return cell is None or cell.strip().lower() in _MISSING


def is_number(cell: str, mark: str = ".,") -> bool:
    """Return whether a cell is a number, written with any of the given decimal marks."""
    return _NUMBER[mark].fullmatch(cell.strip()) is not None


def as_numbers(cells: Sequence[str], mark: str) -> list[float] | None:
    """Return cells as numbers with a decimal mark; None if one of them is not a number."""
    if not all(is_number(cell, mark) for cell in cells):
        return None
    return [float(cell.replace(",", ".")) for cell in cells]


def looks_like_thousands(cells: Sequence[str]) -> bool:
    """Return whether all marks in cells stand where thousands separators do: ``1,234`` is either 1.234 or 1234."""
    marked = [cell for cell in cells if "," in cell or "." in cell]
    return bool(marked) and all(_THOUSANDS.fullmatch(cell) for cell in marked)


def as_booleans(cells: Sequence[str]) -> list[float] | None:
    """Return true and false as 1 and 0; None if a cell holds anything else."""
    words = {cell.lower() for cell in cells}
    return [float(cell.lower() == "true") for cell in cells] if words <= {"true", "false"} else None


def looks_like_dates(cells: Sequence[str]) -> bool:
    """Return whether all cells are dates."""
    return all(_DATE.fullmatch(cell) for cell in cells)


# Without spaces, underscores and the like; the second list only counts for columns without repeats
_ID_NAMES = {
    *("id", "ids", "uid", "uuid", "guid", "sid", "pid", "eid", "mrn", "sample", "samples", "sampleid", "sampleids"),
    *("samplename", "samplecode", "patient", "patientid", "patientno", "subject", "subjectid", "participant"),
    *("participantid", "individual", "individualid", "person", "personid", "caseid", "donor", "donorid", "specimenid"),
    *("recordid", "barcode", "cellid", "rowid", "rowname", "rownames", "obsnames", "sampleno", "samplenumber"),
}
_WEAK_ID_NAMES = {"index", "case", "name", "key", "cell", "specimen", "row", "code", "no", "nr", "number", "accession"}


def looks_like_id(name: str, *, weak: bool = False) -> bool:
    """Return whether a column has a name that is common for sample ids."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    return plain in (_WEAK_ID_NAMES if weak else _ID_NAMES)


def is_unnamed(name: str) -> bool:
    """Return whether a column has no name, or the one that pandas gives to such a column or index."""
    return not name or re.fullmatch(r"Unnamed: \d+|__index_level_\d+__", name) is not None


def unique_names(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return unique names for all columns, and the names that occurred more than once."""
    taken = set(names)
    seen: set[str] = set()
    found, repeated = [], []
    for number, name in enumerate(names, 1):
        new = name or f"column_{number}"
        if name and name in seen:
            repeated.append(name)
        if new in seen or (not name and new in taken):
            new = free_name(new, taken | seen)
        seen.add(new)
        found.append(new)
    return found, repeated
