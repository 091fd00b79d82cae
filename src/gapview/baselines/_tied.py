"""Codes of several views tied by a consensus: the loop that DCNMF and GPMVC share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from scipy import sparse

from ..utils.types import Array
from ._nonnegative import inner, settled


class Tied(Protocol):
    """Codes of some samples with the bases that belong to them, drawn to a consensus of all such blocks."""

    @property
    def rows(self) -> Array:
        """The samples that have codes here."""

    @property
    def ties(self) -> Array:
        """How firmly the code of each of them is drawn to the consensus."""

    def advance(self, codes: Array, bases: list[Array], target: Array, careful: bool) -> float:
        """Update the factors in place towards ``target``; return the value of the block without its ties.

        A step that is not careful is the one in print and may raise the value; a careful one may not.
        """


def descend(
    blocks: Sequence[Tied],
    codes: list[Array],
    bases: list[list[Array]],
    n_samples: int,
    max_iter: int,
    tol: float,
    *,
    lag: int = 1,
) -> tuple[Array, list[float]]:
    """Alternate between the blocks and their consensus, on the lists of factors in place.

    Returns
    -------
    consensus, objective
        The mean codes of every sample, and the objective after every round; it never rises.
    """
    rows = [block.rows for block in blocks]
    consensus = mean_codes(codes, rows, n_samples)
    own = [np.inf] * len(blocks)  # each block's value without its ties, which the consensus changes
    careful = [False] * len(blocks)
    objective: list[float] = []
    for _ in range(max_iter):
        for b, block in enumerate(blocks):
            target = consensus[block.rows]
            before = own[b] + _tie_value(block, codes[b], target)
            start = codes[b].copy(), [basis.copy() for basis in bases[b]]
            own[b] = block.advance(codes[b], bases[b], target, careful[b])
            if not careful[b] and own[b] + _tie_value(block, codes[b], target) > before:
                careful[b] = True
                codes[b], bases[b] = start
                own[b] = block.advance(codes[b], bases[b], target, True)
        consensus = mean_codes(codes, rows, n_samples)
        ties = (_tie_value(block, code, consensus[block.rows]) for block, code in zip(blocks, codes, strict=True))
        objective.append(sum(own) + sum(ties))
        if settled(objective, tol, lag):
            break
    return consensus, objective


def mean_codes(codes: Sequence[Array], rows: Sequence[Array], n_samples: int) -> Array:
    """Average the codes of every sample over the sets it is in."""
    total = np.zeros((n_samples, codes[0].shape[1]), dtype=codes[0].dtype)
    for code, row in zip(codes, rows, strict=True):
        total[row] += code
    counts = np.bincount(np.concatenate(rows), minlength=n_samples)
    return np.asarray(total / counts[:, None].astype(total.dtype))


def _tie_value(block: Tied, codes: Array, target: Array) -> float:
    apart = codes - target
    return inner(block.ties[:, None] * apart, apart)


def roughness(graph: sparse.csr_array, degrees: Array, codes: Array) -> float:
    """Return tr(PᵀLP), L = diag(degrees) − W: how much the codes of neighbours differ."""
    return max(inner(degrees[:, None] * codes - graph @ codes, codes), 0.0)
