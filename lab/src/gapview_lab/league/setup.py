"""The options of a league."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .data import Source
from .entrants import Entrant

__all__ = ["Setup"]


@dataclass(frozen=True)
class Setup:
    """The options of a league."""

    sources: Sequence[Source]
    entrants: Sequence[Entrant]
    n_seeds: int
    tuned: bool
    time_limit: float
    left_out: Sequence[str]  # data and methods that could not take part, and why
