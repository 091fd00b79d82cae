"""Numbers and dates as text: decimal marks, thousands separators, and what a file shows about them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import ParameterError

_NUMBER = {
    mark: re.compile(rf"[+-]?(?:[0-9]+(?:[{mark}][0-9]*)?|[{mark}][0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?inf(?:inity)?", re.I)
    for mark in (".", ",", ".,")
}
_OTHER = {".": ",", ",": "."}
_NAMES = {".": "point", ",": "comma"}
SPACES = "'\u2019 \u00a0\u2009\u202f"  # apostrophes and spaces: thousands separators that are never decimal marks
SEPARATORS = (",", ".", SPACES)
_REMOVED = str.maketrans("", "", SPACES)
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}([.,])[0-9]{3}(?:\1[0-9]{3})*")
ONE_GROUP = r"^\s*[+-]?[1-9][0-9]{0,2}[.,][0-9]{3}\s*$"  # for RE2: 1,234 is either 1.234 or 1234

_DATE = re.compile(
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2}))(?:[T ]\d{1,2}:\d{2}(?::\d{2})?\S*)?"
)


# A number with something before or behind it: <0.5, (1.5), $3, 12 %, 1.5 mg/l, 1.5D+03
_PLAIN = r"[+-]?[0-9]+(?:[.,][0-9]+)*"
_QUANTITY = re.compile(
    rf"[<>\u2264\u2265~(]=? ?{_PLAIN}\)?|[$\u20ac\u00a3\u00a5] ?{_PLAIN}|{_PLAIN} ?[%\u2030\u20ac$\u00b0*]|"
    rf"{_PLAIN} [a-zA-Z\u00b5\u03bc\u00b0%][a-zA-Z0-9/^*\u00b2\u00b3]{{0,9}}|{_PLAIN}[dD][+-]?[0-9]+|"
    r"[+-]?[0-9]+[.,][0-9]+ ?[a-zA-Z\u00b5\u03bc%]{1,6}"
)


def _grouped(separator: str, decimal: str) -> re.Pattern[str]:
    """Return the pattern of a number that may have thousands separators and a decimal mark."""
    groups = rf"[1-9][0-9]{{0,2}}([{separator}])[0-9]{{3}}(?:\1[0-9]{{3}})*"
    return re.compile(rf"[+-]?{groups}(?P<fraction>[{decimal}][0-9]*)?(?:[eE][+-]?[0-9]+)?")


_GROUPED = {
    (mark, decimal): _grouped(mark, decimal) for mark, decimal in ((",", "."), (".", ","), *((SPACES, d) for d in ".,"))
}


def is_number(cell: str, mark: str = ".,") -> bool:
    """Return whether a cell is a number, written with any of the given decimal marks."""
    return _NUMBER[mark].fullmatch(cell.strip()) is not None


def is_numeral(cell: str) -> bool:
    """Return whether a cell is a number, with or without thousands separators."""
    return is_number(cell) or any(pattern.fullmatch(cell.strip()) for pattern in _GROUPED.values())


def looks_like_dates(cells: Sequence[str]) -> bool:
    """Return whether all cells are dates."""
    return all(_DATE.fullmatch(cell) for cell in cells)


def looks_like_quantities(cells: Sequence[str]) -> bool:
    """Return whether most cells are numbers with a sign of comparison, a currency, a percent sign or a unit.

    >>> looks_like_quantities(["<0.5", "12 %", "1.5 mg/l"]), looks_like_quantities(["12A", "1.5-b", "S 12"])
    (True, False)
    """
    return 2 * sum(_QUANTITY.fullmatch(cell) is not None for cell in cells) > len(cells)


def as_numbers(cells: Sequence[str], mark: str) -> list[float] | None:
    """Return cells as numbers with a decimal mark; None if one of them is not a number."""
    if not all(is_number(cell, mark) for cell in cells):
        return None
    return [float(cell.replace(",", ".")) for cell in cells]


def without_separators(cells: Sequence[str], separator: str) -> list[float] | None:
    """Return cells as numbers, some of them with this thousands separator; None if one is not a number."""
    decimals = [_OTHER[separator]] if separator in _OTHER else [".", ","]
    for decimal in decimals:
        pattern = _GROUPED[separator, decimal]
        if all(pattern.fullmatch(cell) or is_number(cell, decimal) for cell in cells):
            plain = (cell.translate(_REMOVED).replace(_OTHER[decimal], "") for cell in cells)
            return [float(cell.replace(",", ".")) for cell in plain]
    return None


def group_mark(cells: Iterable[str]) -> str | None:
    """Return the mark of a column whose marks all stand where thousands separators do; else None.

    >>> group_mark(["1,234", "56"]), group_mark(["1,234", "5,6"])
    (',', None)
    """
    marked = [cell for cell in cells if "," in cell or "." in cell]
    found = {match[1] if (match := _THOUSANDS.fullmatch(cell)) else None for cell in marked}
    return found.pop() if len(found) == 1 else None


@dataclass
class Marks:
    """The marks that unambiguous numbers of a file show to be decimal marks, or to be thousands separators."""

    decimal: set[str] = field(default_factory=set)
    thousands: set[str] = field(default_factory=set)

    def add(self, cells: Iterable[Any]) -> None:
        """Add what the numbers among cells show: ``1,5`` and ``0,123`` a decimal comma, ``1,234,567`` thousands."""
        for cell in cells:
            if not isinstance(cell, str) or not ("," in cell or "." in cell):
                continue
            text = cell.strip()
            for mark, other in _OTHER.items():
                if mark not in text:
                    continue
                if is_number(text, mark):
                    if not _THOUSANDS.fullmatch(text):
                        self.decimal.add(mark)
                elif (match := _GROUPED[other, mark].fullmatch(text)) and match["fraction"]:
                    self.decimal.add(mark)
                    self.thousands.add(other)
                elif _THOUSANDS.fullmatch(text):  # more than one group, or it would be a number
                    self.thousands.add(mark)
                elif _GROUPED[SPACES, mark].fullmatch(text):
                    self.decimal.add(mark)

    def settles(self, mark: str) -> bool:
        """Return whether ``mark`` is shown to be the decimal mark, and nothing contradicts it."""
        return mark in self.decimal and mark not in self.thousands and _OTHER[mark] not in self.decimal

    def reading(self, mark: str, separator: str, given: str | None) -> str | None:
        """Return how to read a column such as ``1,234``: "decimal", "thousands", or None if nothing decides it.

        Parameters
        ----------
        mark : {",", "."}
            The only mark in the numbers of the column.
        separator : str
            Mark between the fields of the file. Beside anything but semicolons, a point is a decimal mark unless the
            file shows otherwise; semicolons are common where the comma is the decimal mark.
        given : str or None
            The decimal mark named by the user, for files that do not show theirs.
        """
        if self.settles(mark):
            return "decimal"
        if mark not in self.decimal and (mark in self.thousands or _OTHER[mark] in self.decimal):
            return "thousands"
        if given is not None:
            return "decimal" if given == mark else "thousands"
        shown = mark in self.decimal or mark in self.thousands
        return "decimal" if mark == "." and separator != ";" and not shown else None


def check_marks(decimal: Any, thousands: Any) -> str | None:
    """Return the decimal mark that the user named, directly or by naming the thousands separator."""
    for name, mark in (("decimal", decimal), ("thousands", thousands)):
        if mark is not None and mark not in (",", "."):
            raise ParameterError(f"{name} must be ',' or '.', or None; got {mark!r}.")
    if decimal is not None and decimal == thousands:
        raise ParameterError(f"decimal and thousands must be different marks; both are {decimal!r}.")
    return decimal if thousands is None else _OTHER[thousands]


def undecided(file: str, column: str, example: str) -> str:
    """Return the message that nothing decides whether a mark is decimal or separates thousands."""
    mark = "," if "," in example else "."
    return (
        f"Column '{column}' of {file!r} has numbers such as '{example}'. Nothing in the file decides whether the "
        f"{_NAMES[mark]} is a decimal mark or separates thousands. Give decimal='{mark}' to read "
        f"{example.replace(',', '.')}, or thousands='{mark}' to read {example.replace(mark, '')}."
    )
