"""How a problem is cut into blocks of samples."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from ..compute import engine_for
from ..utils.types import Array
from .problem import Problem

__all__ = ["Layout", "Piece"]


_KEPT_CODES, _KEPT_SHARE = 2**20, 1 / 16  # up to which, or up to which share of H, pieces are kept from pass to pass
_PIECE_BYTES = 32  # at most, for every code
# Samples with several views take many more steps between the products. In larger blocks their calls cost less, and
# that is more than the cache would save
_LARGER = 4


@dataclass(frozen=True)
class Piece:
    """One view in one block of samples."""

    part: slice  # of the codes of the view
    places: Any  # where their samples stand in the block: a slice if they stand together, else their numbers
    degrees: Array
    tied: Array  # 1 if the sample has codes in at least two views, else 0
    own: Any  # which of the codes are tied: a slice or numbers
    ties: Any  # which of the tied samples of the block they belong to: a slice or numbers
    back: Array | None  # for every code its tied sample, any if it has none; None where slices tell


class Layout:
    """Blocks of samples that stay in cache, and stripes of blocks in which partial sums are made.

    The number of stripes does not depend on the number of threads, so that neither does the rounding.

    Parameters
    ----------
    problem : Problem
        The data.
    n_stripes : int
        Most stripes.
    most_rows : int, optional
        Most samples in a block, if what is made of them takes much room.
    """

    def __init__(self, problem: Problem, n_stripes: int, most_rows: int | None = None) -> None:
        self.problem = problem
        xp = array_namespace(problem.degrees)
        row_bytes = problem.degrees.itemsize * sum(t.n_features for t in problem.terms if t.smoothed is not None)
        larger = _LARGER if len(problem.terms) > 1 and _is_in_memory(problem) else 1
        n_rows = engine_for(problem.degrees).rows_at_a_time(row_bytes // larger)
        n_rows = n_rows if most_rows is None else min(n_rows, most_rows)
        edges = [*range(0, problem.n_samples, n_rows), problem.n_samples]
        where = xp.asarray(edges, dtype=problem.rows.dtype, device=problem.rows.device)
        self.blocks = [slice(*pair) for pair in pairwise(edges)]
        self.edges = [xp.searchsorted(problem.rows[term.part], where).tolist() for term in problem.terms]
        count = -(-len(self.blocks) // n_stripes)
        self.stripes = [range(i, min(i + count, len(self.blocks))) for i in range(0, len(self.blocks), count)]
        self.tied = problem.n_codes >= 2
        n_codes = len(problem.rows)
        share = _KEPT_SHARE * row_bytes * n_codes / len(problem.terms)
        is_kept = n_codes <= _KEPT_CODES or n_codes * _PIECE_BYTES <= share
        self._kept: dict[int, tuple[list[Piece], Array]] | None = {} if is_kept else None

    def part(self, view: int, block: int) -> slice:
        """Return which codes of a view belong to the samples of a block."""
        return slice(self.edges[view][block], self.edges[view][block + 1])

    def pieces(self, block: int) -> tuple[list[Piece], Array]:
        """Return what the views have in a block, and the number of codes of every tied sample in it."""
        if self._kept is None:
            return self._made(block)
        if block not in self._kept:
            self._kept[block] = self._made(block)
        return self._kept[block]

    def _made(self, block: int) -> tuple[list[Piece], Array]:
        xp = array_namespace(self.problem.degrees)
        samples = self.blocks[block]
        tied = self.tied[samples]
        numbers = xp.cumulative_sum(xp.astype(tied, xp.int64)) - 1  # of a tied sample among those of the block
        pieces = []
        for k, term in enumerate(self.problem.terms):
            part = self.part(k, block)
            stacked = slice(term.part.start + part.start, term.part.start + part.stop)
            places = self.problem.rows[stacked] - samples.start
            mine = tied[places]
            ties = numbers[places[mine]]
            degrees = self.problem.degrees[stacked]
            own, theirs = _together(xp.nonzero(mine)[0]), _together(ties)
            together = isinstance(own, slice) and isinstance(theirs, slice)
            back = None if together else xp.clip(numbers[places], 0, None)
            of_codes = xp.astype(mine, degrees.dtype)
            pieces.append(Piece(part, _together(places), degrees, of_codes, own, theirs, back))
        return pieces, xp.astype(self.problem.n_codes[samples][tied], self.problem.degrees.dtype)


def _is_in_memory(problem: Problem) -> bool:
    return all(isinstance(term.smoothed, np.ndarray) for term in problem.terms)


def _together(places: Array) -> Any:
    """Write ascending numbers without a gap as a slice, which costs no copy."""
    if not len(places):
        return slice(0)
    first, last = int(places[0]), int(places[-1])
    return slice(first, last + 1) if last - first + 1 == len(places) else places
