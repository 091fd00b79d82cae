"""Growth of time with the number of samples: fitted exponents, by phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gapview.utils.types import Array

__all__ = ["Growth", "Power", "fit_power"]

_MEASURABLE = 1e-3  # seconds; below, a phase is noise


@dataclass(frozen=True)
class Power:
    """seconds = factor · nᵉˣᵖᵒⁿᵉⁿᵗ."""

    exponent: float
    factor: float

    def at(self, sizes: Any) -> Array:
        """Return the seconds at these numbers of samples."""
        return self.factor * np.asarray(sizes, dtype=np.float64) ** self.exponent


def fit_power(sizes: Sequence[float], seconds: Sequence[float]) -> Power | None:
    """Fit a power of n to times by least squares of their logarithms; None where fewer than two can be measured.

    Examples
    --------
    >>> from gapview_lab.speed import fit_power
    >>> power = fit_power([100, 200, 400], [1.0, 4.0, 16.0])
    >>> round(power.exponent, 6), round(float(power.at(800)), 3)
    (2.0, 64.0)
    """
    pairs = [(n, t) for n, t in zip(sizes, seconds, strict=True) if t >= _MEASURABLE]
    if len({n for n, _ in pairs}) < 2:
        return None
    logs = np.log(np.array(pairs))
    exponent, offset = np.polyfit(logs[:, 0], logs[:, 1], 1)
    return Power(float(exponent), float(np.exp(offset)))


@dataclass(frozen=True)
class Growth:
    """Times of one method at growing sizes, smallest first."""

    method: str
    sizes: tuple[int, ...]
    totals: tuple[float, ...]
    phases: dict[str, tuple[float, ...]]

    def power(self, phase: str = "total") -> Power | None:
        """Return how a phase grows, or the total."""
        return fit_power(self.sizes, self.totals if phase == "total" else self.phases[phase])

    def excess(self) -> dict[str, float]:
        """Return the seconds at the largest size beyond linear growth from the smallest, largest first.

        These are what an exponent other than 1 is made of; a phase that grows less has a negative one.
        """
        times = self.sizes[-1] / self.sizes[0]
        beyond = {name: seconds[-1] - times * seconds[0] for name, seconds in self.phases.items()}
        return dict(sorted(beyond.items(), key=lambda pair: -pair[1]))
