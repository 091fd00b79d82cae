"""How much memory a fit may take, as people say it."""

from __future__ import annotations

import re
from numbers import Real
from typing import Any

from ...errors import ParameterError, ParameterTypeError

__all__ = ["in_words", "read_budget"]

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_TEXT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([kmgt]?)(i?)b\s*", re.IGNORECASE)
_ALLOWED = "None, a finite number of bytes above 0, or text such as '2GB' or '500 MiB'"


def read_budget(budget: Any) -> int | None:
    """Read a memory budget: bytes as a number, or text with a unit; None is no budget.

    Examples
    --------
    >>> from gapview.backends.disk import read_budget
    >>> read_budget("2GB"), read_budget("1.5 GiB"), read_budget(5e8), read_budget(None)
    (2000000000, 1610612736, 500000000, None)
    """
    if budget is None:
        return None
    if isinstance(budget, str):
        found = _TEXT.fullmatch(budget)
        number = float(found[1]) * (1024 if found[3] else 1000) ** _POWERS[found[2].lower()] if found else 0.0
    elif isinstance(budget, Real) and not isinstance(budget, bool):
        number = float(budget)
    else:
        raise ParameterTypeError(f"memory_budget must be {_ALLOWED}; got {budget!r}.")
    if not 1 <= number < float("inf"):  # NaN fails every comparison and ends here too
        raise ParameterError(f"memory_budget must be {_ALLOWED}; got {budget!r}.")
    return int(number)


def in_words(n_bytes: float) -> str:
    """Say a number of bytes with two digits and a unit, rounded up.

    Examples
    --------
    >>> from gapview.backends.disk._budget import in_words
    >>> in_words(31_000_000_000), in_words(1_210_000), in_words(812)
    ('31 GB', '1.3 MB', '812 bytes')
    """
    size, units = float(n_bytes), ["bytes", "kB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:
        size, units = size / 1000, units[1:]
    if units[0] == "bytes" or size >= 10:
        return f"{-int(-size // 1)} {units[0]}"
    return f"{-int(-size * 10 // 1) / 10:g} {units[0]}"
