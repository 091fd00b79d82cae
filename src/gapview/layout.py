"""How a problem is cut into blocks of samples."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from array_api_compat import array_namespace

from .compute import engine_for
from .problem import Problem
from .views import Array

__all__ = ["Layout", "Piece"]


@dataclass(frozen=True)
class Piece:
    """One view in one block of samples."""

    part: slice  # of the codes of the view
    places: Any  # where their samples stand in the block: a slice if they stand together, else their numbers
    degrees: Array
    tied: Array  # 1 if the sample has codes in at least two views, else 0
    any_tied: bool
    shares: Array  # one by the number of codes of the sample

    def of(self, values: Array) -> Array:
        """Return for every code what belongs to its sample, of values with a column for each sample of the block."""
        if isinstance(self.places, slice):
            return values[:, self.places]
        return array_namespace(values).take(values, self.places, axis=1)  # type: ignore[no-any-return]


class Layout:
    """Blocks of samples that stay in cache, and stripes of blocks in which partial sums are made.

    The number of stripes does not depend on the number of threads, so that neither does the rounding.

    Parameters
    ----------
    problem : Problem
        The data.
    n_stripes : int
        Most stripes.
    """

    def __init__(self, problem: Problem, n_stripes: int) -> None:
        self.problem = problem
        xp = array_namespace(problem.degrees)
        row_bytes = problem.degrees.itemsize * sum(t.n_features for t in problem.terms if t.smoothed is not None)
        n_rows = engine_for(problem.degrees).rows_at_a_time(row_bytes)
        edges = [*range(0, problem.n_samples, n_rows), problem.n_samples]
        where = xp.asarray(edges, dtype=problem.rows.dtype, device=problem.rows.device)
        self.blocks = [slice(*pair) for pair in pairwise(edges)]
        self.edges = [xp.searchsorted(problem.rows[term.part], where).tolist() for term in problem.terms]
        count = -(-len(self.blocks) // n_stripes)
        self.stripes = [range(i, min(i + count, len(self.blocks))) for i in range(0, len(self.blocks), count)]
        counts = xp.astype(problem.n_codes, problem.degrees.dtype)
        self.tied = xp.astype(counts >= 2, counts.dtype)
        self.n_tied = counts * self.tied
        self.shares = 1 / xp.clip(counts, 1, None)

    def part(self, view: int, block: int) -> slice:
        """Return which codes of a view belong to the samples of a block."""
        return slice(self.edges[view][block], self.edges[view][block + 1])

    def pieces(self, block: int) -> list[Piece]:
        """Return what the views have in a block."""
        samples = self.blocks[block]
        pieces = []
        for k, term in enumerate(self.problem.terms):
            part = self.part(k, block)
            stacked = slice(term.part.start + part.start, term.part.start + part.stop)
            places = _together(self.problem.rows[stacked] - samples.start)
            tied, shares = self.tied[samples][places], self.shares[samples][places]
            pieces.append(Piece(part, places, self.problem.degrees[stacked], tied, bool((tied != 0).any()), shares))
        return pieces


def _together(places: Array) -> Any:
    """Write ascending numbers without a gap as a slice, which costs no copy."""
    if not len(places):
        return slice(0)
    first, last = int(places[0]), int(places[-1])
    return slice(first, last + 1) if last - first + 1 == len(places) else places
