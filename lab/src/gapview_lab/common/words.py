"""Settings, rates and differences as text, the same on pages and in figures."""

from __future__ import annotations

from collections.abc import Sequence

from gapview.utils.messages import NO_BREAK, joined, number

__all__ = ["rates_text", "setting_text", "signed"]


def rates_text(rates: Sequence[float]) -> str:
    """Write paired rates as a list of shares."""
    return joined([f"{rate:g}" for rate in rates])


def setting_text(setting: dict[str, object]) -> str:
    """Return a setting as text, without the suffix that all names of weights share, and without breaks in a pair.

    >>> " ".join(setting_text({"consensus_weight": 100.0, "sparsity_weight": 1e-05}).split())
    'consensus 100, sparsity 10⁻⁵'
    """
    shown = []
    for name, value in setting.items():
        text = number(value) if isinstance(value, int | float) else str(value)
        shown.append(f"{name.removesuffix('_weight').replace('_', ' ')}{NO_BREAK}{text}")
    return ", ".join(shown) or "nothing to set"


def signed(value: float, digits: int = 1) -> str:
    """Return a difference with its sign; a difference that rounds to 0 has none.

    >>> signed(1.84), signed(-0.26), signed(-0.04)
    ('+1.8', '−0.3', '0.0')
    """
    text = f"{abs(value):.{digits}f}"
    if float(text) == 0:
        return text
    return ("+" if value > 0 else "−") + text
