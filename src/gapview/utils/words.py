"""Text for messages, pages and figures: numbers, counts, times, lists and unique names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import count

NO_BREAK = "\u00a0"
_SPELLED = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven"}
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def counted(n_items: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "row"), counted(1200, "row"), counted(2, "category"), counted(3, "way")
    ('1 row', '1,200 rows', '2 categories', '3 ways')
    """
    changes = noun.endswith("y") and noun[-2:-1] not in "aeou"
    plural = noun[:-1] + "ies" if changes else noun + "s"
    return f"{n_items:,} {noun if n_items == 1 else plural}"


def spelled(integer: int) -> str:
    """Return a small number as a word.

    >>> spelled(3), spelled(30)
    ('three', '30')
    """
    return _SPELLED.get(integer, str(integer))


def joined(items: Sequence[str], word: str = "and") -> str:
    """Return a list in words.

    >>> joined(["a"]), joined(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {word} {items[-1]}" if items else ""


def percent(share: float) -> str:
    """Return a share in per cent; a small share is not rounded to zero.

    >>> percent(0.256), percent(0.0001), percent(0.0)
    ('25.6 %', 'under 0.1 %', '0 %')
    """
    if 0 < share < 0.0005:
        return "under 0.1 %"
    return f"{100 * share:.1f} %" if share else "0 %"


def shorten(text: str, longest: int = 80) -> str:
    """Return a long name with its middle replaced by an ellipsis.

    >>> shorten("a very long name", 9)
    'a ve…name'
    """
    if len(text) <= longest:
        return text
    half = (longest - 1) // 2
    return f"{text[:half]}…{text[len(text) - half :]}"


def duration(seconds: float) -> str:
    """Return a duration in words.

    >>> duration(7.2), duration(95), duration(3 * 3600 + 120)
    ('7 s', '1 min 35 s', '3 h 2 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def number(value: float) -> str:
    """Return a number as text, with a power of ten if it is very small or large.

    >>> number(100.0), number(1e-05), number(0.003), number(3e-05), number(0.0)
    ('100', '10⁻⁵', '0.003', '3·10⁻⁵', '0')
    """
    if not math.isfinite(value) or value == 0 or 1e-3 <= abs(value) < 1e4:
        return f"{value:.3g}" if abs(value) < 1e3 else f"{value:g}"
    digits, power = f"{value:.1e}".split("e")
    digits = digits.removesuffix(".0")
    raised = "10" + _superscript(int(power))
    return raised if digits == "1" else f"{digits}·{raised}".replace("-", "−")


def _superscript(power: int) -> str:
    return str(power).translate(_RAISED)


def powers(values: Sequence[float]) -> list[str]:
    """Return powers of ten with superscript digits, and other numbers as :func:`number` does.

    >>> powers([0.01, 1.0, 30.0])
    ['10⁻²', '10⁰', '30']
    """
    return [_power(value) for value in values]


def _power(value: float) -> str:
    power = math.log10(value) if value > 0 else 0.5
    return f"10{_superscript(round(power))}" if math.isclose(power, round(power), abs_tol=1e-9) else number(value)


def numbered(n_columns: int) -> list[str]:
    """Return ``column_1``, ``column_2`` and so on, as names for columns without names."""
    return [f"column_{number}" for number in range(1, n_columns + 1)]


def free_name(name: str, taken: set[str], mark: str = "_") -> str:
    """Return the name, or the name with a mark and the first number from 2 that makes it unique."""
    return next(free for k in count(1) if (free := f"{name}{mark}{k}" if k > 1 else name) not in taken)
