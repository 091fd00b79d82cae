"""Numbers, counts, times and lists in words: the same in messages, on pages and in figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

NO_BREAK = "\u00a0"
_SPELLED = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven"}
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def counted(count: int, noun: str) -> str:
    """Write a number with its noun.

    >>> counted(1, "row"), counted(1200, "row"), counted(2, "category"), counted(3, "way")
    ('1 row', '1,200 rows', '2 categories', '3 ways')
    """
    changes = noun.endswith("y") and noun[-2:-1] not in "aeou"
    plural = noun[:-1] + "ies" if changes else noun + "s"
    return f"{count:,} {noun if count == 1 else plural}"


def spelled(count: int) -> str:
    """Write a small number as a word.

    >>> spelled(3), spelled(30)
    ('three', '30')
    """
    return _SPELLED.get(count, str(count))


def joined(items: Sequence[str], word: str = "and") -> str:
    """Write a list.

    >>> joined(["a"]), joined(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {word} {items[-1]}" if items else ""


def percent(share: float) -> str:
    """Write a share in per cent, so that little is not shown as nothing.

    >>> percent(0.256), percent(0.0001), percent(0.0)
    ('25.6 %', 'under 0.1 %', '0 %')
    """
    if 0 < share < 0.0005:
        return "under 0.1 %"
    return f"{100 * share:.1f} %" if share else "0 %"


def duration(seconds: float) -> str:
    """Write a span of time.

    >>> duration(7.2), duration(95), duration(3 * 3600 + 120)
    ('7 s', '1 min 35 s', '3 h 2 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def number(value: float) -> str:
    """Write a number plainly, or with a power of ten where it is very small or large.

    >>> number(100.0), number(1e-05), number(0.003), number(3e-05), number(0.0)
    ('100', '10⁻⁵', '0.003', '3·10⁻⁵', '0')
    """
    if not math.isfinite(value) or value == 0 or 1e-3 <= abs(value) < 1e4:
        return f"{value:.3g}" if abs(value) < 1e3 else f"{value:g}"
    digits, power = f"{value:.1e}".split("e")
    digits = digits.removesuffix(".0")
    raised = "10" + superscript(int(power))
    return raised if digits == "1" else f"{digits}·{raised}".replace("-", "−")


def superscript(power: int) -> str:
    """Write a power as raised digits."""
    return str(power).translate(_RAISED)


def powers(values: Sequence[float]) -> list[str]:
    """Write powers of ten as such, and other numbers plainly.

    >>> powers([0.01, 1.0, 30.0])
    ['10⁻²', '10⁰', '30']
    """
    return [_power(value) for value in values]


def _power(value: float) -> str:
    power = math.log10(value) if value > 0 else 0.5
    return f"10{superscript(round(power))}" if math.isclose(power, round(power), abs_tol=1e-9) else number(value)


def numbered(count: int) -> list[str]:
    """Name columns that have no names, counted from 1 as people do."""
    return [f"column_{number}" for number in range(1, count + 1)]


def free_name(name: str, taken: set[str]) -> str:
    """Return the name, or the name with the first number that makes it new."""
    number = 2
    new = name
    while new in taken:
        new = f"{name}_{number}"
        number += 1
    return new
