"""Sample ids as text, so that ids of tables, frames and files of any type can be compared."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

# A whole number, also one that a program wrote as a float: 7.0, 7.000000 or 7,00. Three zeros may be thousands.
_WHOLE = re.compile(r"([+-]?[0-9]+)(?:[.,](?:0{1,2}|0{4,}))?")
_SCIENTIFIC = re.compile(r"[+-]?[0-9](\.[0-9]+)?[eE]\+[0-9]{1,2}")  # as R and spreadsheets write 100000: 1e+05


def as_keys(cells: Iterable[Any]) -> list[str | None]:
    """Return ids as text: 1, 1.0, '1' and '1e+00' are the same sample; '001', '1,000' and '1e5' stay unchanged.

    Numbers written as text are only rewritten if all ids are whole numbers.

    >>> as_keys([7, 8.0, None]), as_keys(["1e+05", "7.0"]), as_keys(["1,000", "007"])
    (['7', '8', None], ['100000', '7'], ['1,000', '007'])
    """
    keys = [None if cell is None else _key(cell) for cell in cells]
    if all(key is None or is_whole(key) for key in keys):
        return [None if key is None else _plain(key) for key in keys]
    return keys


def is_whole(key: str) -> bool:
    """Return whether an id is a whole number, however it is written."""
    if _WHOLE.fullmatch(key):
        return True
    return _SCIENTIFIC.fullmatch(key) is not None and Decimal(key) == Decimal(key).to_integral_value()


def with_lost_digits(cells: Sequence[Any], bits: int = 53) -> list[Any]:
    """Return the ids that are floats too large to hold every whole number, so that several ids may have become one.

    Parameters
    ----------
    cells : sequence
        The ids as they are stored, or as text.
    bits : int, default=53
        Bits of the mantissa of the floats.
    """
    most = 2**bits
    return [cell for cell in cells if _is_float(cell) and abs(float(cell)) >= most]


def with_rounded_digits(cells: Sequence[Any]) -> list[str]:
    """Return the ids in scientific notation with a fraction, as 1.23457e+09: their last digits are rounded away."""
    found = (_SCIENTIFIC.fullmatch(cell) if isinstance(cell, str) and "+" in cell else None for cell in cells)
    return [match[0] for match in found if match and match[1]]


def _is_float(cell: Any) -> bool:
    if isinstance(cell, float):
        return True
    return isinstance(cell, str) and cell[-1:] == "0" and "." in cell and _WHOLE.fullmatch(cell) is not None


def _plain(key: str) -> str:
    match = _WHOLE.fullmatch(key)
    return match[1] if match else str(int(Decimal(key)))


def _key(cell: Any) -> str:
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace").strip()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime.datetime) and cell == cell and cell.time() == datetime.time():
        return str(cell.date())
    return str(cell).strip()
