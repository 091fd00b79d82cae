"""One pass over the data for all runs at once: the block that yields new codes yields its share of HᵀP.

Codes stand in columns, one for each sample. What belongs to a sample, its degree and its ties, then meets the codes
along the rows of memory, and the bases of several runs, one below the other, make one matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from .compute import Each
from .layout import Layout, Piece
from .problem import Problem
from .runs import Run, Stack
from .steps import code_step, objective_value
from .views import Array

__all__ = ["Sweep"]

_N_STRIPES = 32  # pieces in which partial sums are made; a fixed number, so that threads do not change the rounding


class Sweep:
    """Passes over the data of one problem.

    Parameters
    ----------
    problem : Problem
        The data.
    n_rounds : int
        How many turns codes and consensus take in a pass.
    each : callable
        Carries out a round of work, see :mod:`gapview.compute`.
    """

    def __init__(self, problem: Problem, n_rounds: int, each: Each) -> None:
        self.problem, self.n_rounds, self.each = problem, n_rounds, each
        self.xp = xp = array_namespace(problem.degrees)
        self.layout = Layout(problem, _N_STRIPES)
        self.shares = 1 / xp.astype(xp.clip(problem.n_codes, 1), problem.degrees.dtype)

    def correlate(self, stack: Stack) -> list[Array]:
        """Return (HᵀP)ᵀ for every view."""

        def work(stripe: range) -> list[Array]:
            return _summed(self._shares(stack, block) for block in stripe)

        return self._correlations(stack, self.each(work, self.layout.stripes))

    def iterate(self, stack: Stack) -> tuple[list[Array], list[float]]:
        """Do the steps that follow the bases, in place; return (HᵀP)ᵀ for every view, and a value for every run."""
        bases = [self.xp.concat([run.bases[k] for run in stack.runs]) for k in range(len(self.problem.terms))]
        # A sparse view is multiplied as a whole
        wholes = [
            None if term.smoothed is not None else term.project(basis).T
            for term, basis in zip(self.problem.terms, bases, strict=True)
        ]

        def work(stripe: range) -> tuple[list[Array], Any]:
            shares, values = [], []
            with np.errstate(over="ignore", invalid="ignore"):  # found where its results arrive, and said in words
                for block in stripe:
                    pieces = self.layout.pieces(block)
                    projected = [
                        basis @ term.block(piece.part).T if whole is None else whole[:, piece.part]
                        for term, basis, whole, piece in zip(self.problem.terms, bases, wholes, pieces, strict=True)
                    ]
                    values.append([self._step(stack, run, block, pieces, projected) for run in stack.runs])
                    shares.append(self._shares(stack, block))
            return _summed(shares), [sum(of_run) for of_run in zip(*values, strict=True)]

        results = self.each(work, self.layout.stripes)
        values = [float(sum(of_run)) for of_run in zip(*(values for _, values in results), strict=True)]
        return self._correlations(stack, [shares for shares, _ in results]), values

    def _step(self, stack: Stack, run: Run, block: int, pieces: list[Piece], projected: list[Array]) -> Any:
        """Bring codes and consensus of one run up to date in one block; return its share of the objective."""
        weights, samples = run.weights, self.layout.blocks[block]
        own = [each[run.rows] for each in projected]
        ties = [weights.consensus * piece.tied if piece.any_tied else None for piece in pieces]
        masses = [p.degrees if tie is None else p.degrees + tie for p, tie in zip(pieces, ties, strict=True)]
        consensus = stack.consensus[run.rows, samples]
        for _ in range(self.n_rounds):
            before = consensus
            codes = [
                code_step(seen, None if tie is None else tie * piece.of(before), mass, weights.sparsity)
                for seen, piece, tie, mass in zip(own, pieces, ties, masses, strict=True)
            ]
            consensus = self.xp.zeros_like(before)
            for piece, code in zip(pieces, codes, strict=True):
                consensus[:, piece.places] += code
            consensus *= self.shares[samples]  # Eq. (15)
        value = 0.0
        for k, (code, piece, tie) in enumerate(zip(codes, pieces, ties, strict=True)):
            stack.codes[k][run.rows, piece.part] = code
            pulled = (before, consensus) if tie is None else (piece.of(before), piece.of(consensus))
            value = value + objective_value(code, piece.degrees, tie, *pulled)
        stack.consensus[run.rows, samples] = consensus  # only now: what was before is a part of it
        return value

    def _shares(self, stack: Stack, block: int) -> list[Array]:
        """Return what one block adds to (HᵀP)ᵀ, for every view whose H is written out."""
        shares = []
        for k, (term, codes) in enumerate(zip(self.problem.terms, stack.codes, strict=True)):
            if term.smoothed is not None:
                part = self.layout.part(k, block)
                shares.append(codes[:, part] @ term.block(part))
        return shares

    def _correlations(self, stack: Stack, of_stripes: Sequence[list[Array]]) -> list[Array]:
        dense = iter(_summed(of_stripes))
        return [
            next(dense) if term.smoothed is not None else term.correlate(codes.T).T
            for term, codes in zip(self.problem.terms, stack.codes, strict=True)
        ]


def _summed(parts: Any) -> list[Array]:
    """Add up lists of arrays, one by one, in order."""
    totals: list[Array] = []
    for part in parts:
        totals = [total + share for total, share in zip(totals, part, strict=True)] if totals else list(part)
    return totals
