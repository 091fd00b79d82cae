"""Numbers as people write them, the same on pages and in figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["number", "powers", "superscript"]

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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
