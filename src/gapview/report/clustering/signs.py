"""What groups look like, on the map and in figures."""

from __future__ import annotations

from .._blocks import Shape, Sign
from ..style import MORE_COLORS, SERIES

__all__ = ["group_sign"]

# Grey comes last: it says least
_COLORS = (*((one.color, one.dark) for one in SERIES[1:]), *MORE_COLORS, (SERIES[0].color, SERIES[0].dark))
# As many as share no divisor with the number of colours, so that both together repeat as late as possible
_SHAPES: tuple[Shape, ...] = ("circle", "square", "triangle", "diamond", "plus", "cross", "wedge")


def group_sign(number: int) -> Sign:
    """Return the colour and the shape of a group; the first 77 all differ."""
    return Sign(*_COLORS[number % len(_COLORS)], _SHAPES[number % len(_SHAPES)])
