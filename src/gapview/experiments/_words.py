"""Numbers and lists in words, the same on the page and in the figures."""

from __future__ import annotations

from collections.abc import Sequence

from ..report._numbers import number, superscript

__all__ = [
    "NO_BREAK",
    "counted",
    "duration",
    "joined",
    "number",
    "rates_text",
    "setting_text",
    "signed",
    "spelled",
    "superscript",
]

NO_BREAK = "\u00a0"
_LISTED = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven"}


def signed(value: float, digits: int = 1) -> str:
    """Write a difference with its sign; what rounds to nothing has none.

    >>> signed(1.84), signed(-0.26), signed(-0.04)
    ('+1.8', '−0.3', '0.0')
    """
    text = f"{abs(value):.{digits}f}"
    if float(text) == 0:
        return text
    return ("+" if value > 0 else "−") + text


def joined(items: Sequence[str], word: str = "and") -> str:
    """Write a list.

    >>> joined(["a"]), joined(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {word} {items[-1]}" if items else ""


def counted(count: int, noun: str) -> str:
    """Write how many there are of something.

    >>> counted(1, "fold"), counted(5, "fold")
    ('1 fold', '5 folds')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def spelled(count: int) -> str:
    """Write a small number as a word."""
    return _LISTED.get(count, str(count))


def rates_text(rates: Sequence[float]) -> str:
    """Write paired rates as a list of shares."""
    return joined([f"{rate:g}" for rate in rates])


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


def setting_text(setting: dict[str, object]) -> str:
    """Write a setting without the word that all names of weights share; a name and its value stay on one line.

    >>> " ".join(setting_text({"consensus_weight": 100.0, "sparsity_weight": 1e-05}).split())
    'consensus 100, sparsity 10⁻⁵'
    """
    shown = []
    for name, value in setting.items():
        text = number(value) if isinstance(value, int | float) else str(value)
        shown.append(f"{name.removesuffix('_weight').replace('_', ' ')}{NO_BREAK}{text}")
    return ", ".join(shown) or "nothing to set"
