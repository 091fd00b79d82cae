"""One pass over the data for all runs at once: the block that yields new codes yields its share of HᵀP.

Codes stand in columns, one for each sample. What belongs to a sample, its degree and its ties, then meets the codes
along the rows of memory, and the bases of several runs, one below the other, make one matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from .compute import Each, engine_for
from .layout import Layout, Piece
from .problem import Problem
from .runs import Stack, Weights
from .steps import code_step, codes_value, consensus_value
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
        self.xp = array_namespace(problem.degrees)
        self.layout = Layout(problem, _N_STRIPES)
        self.contiguous = engine_for(problem.degrees).contiguous

    def correlate(self, stack: Stack) -> list[Array]:
        """Return (HᵀP)ᵀ for every view."""

        def work(stripe: range) -> list[Array]:
            return _summed(self._shares(stack, block) for block in stripe)

        return self._correlations(stack, self.each(work, self.layout.stripes))

    def iterate(self, stack: Stack) -> tuple[list[Array], list[float]]:
        """Do the steps that follow the bases, in place; return (HᵀP)ᵀ for every view, and a value for every run."""
        bases = [self.xp.concat([run.bases[k] for run in stack.runs]).T for k in range(len(self.problem.terms))]
        # A sparse view is multiplied as a whole
        wholes = [
            None if term.smoothed is not None else term.project(basis.T).T
            for term, basis in zip(self.problem.terms, bases, strict=True)
        ]
        alike = stack.alike()

        def work(stripe: range) -> tuple[list[Array], Array]:
            shares, values = [], []
            with np.errstate(over="ignore", invalid="ignore"):  # found where its results arrive, and said in words
                for block in stripe:
                    pieces = self.layout.pieces(block)
                    # HUᵀ turned over is faster than UHᵀ
                    projected = [
                        self.contiguous((term.block(piece.part) @ basis).T) if whole is None else whole[:, piece.part]
                        for term, basis, whole, piece in zip(self.problem.terms, bases, wholes, pieces, strict=True)
                    ]
                    steps = [self._step(stack, *group, block, pieces, projected) for group in alike]
                    values.append(self.xp.concat(steps))
                    shares.append(self._shares(stack, block))
            return _summed(shares), sum(values)

        results = self.each(work, self.layout.stripes)
        components = sum(values for _, values in results)
        values = [float(self.xp.sum(components[run.rows])) for run in stack.runs]
        return self._correlations(stack, [shares for shares, _ in results]), values

    def _step(
        self, stack: Stack, weights: Weights, rows: slice, block: int, pieces: list[Piece], projected: list[Array]
    ) -> Any:
        """Bring codes and consensus of runs with the same penalties up to date in one block.

        Returns the share of every component in the objective, which is a sum over samples in the type of the codes, in
        double precision.
        """
        samples = self.layout.blocks[block]
        any_tied = any(piece.any_tied for piece in pieces)
        own = [each[rows] for each in projected]
        codes = [code[rows, piece.part] for code, piece in zip(stack.codes, pieces, strict=True)]
        ties = [weights.consensus * piece.tied if piece.any_tied else None for piece in pieces]
        masses = [p.degrees if tie is None else p.degrees + tie for p, tie in zip(pieces, ties, strict=True)]
        consensus: Any = self._mean(codes, pieces, samples) if any_tied else None  # else nobody asks for it
        for _ in range(self.n_rounds if any_tied else 1):
            before = consensus
            codes = [
                code_step(seen, None if tie is None else tie * piece.of(before), mass, weights.sparsity)
                for seen, piece, tie, mass in zip(own, pieces, ties, masses, strict=True)
            ]
            consensus = self._mean(codes, pieces, samples) if any_tied else None
        value = self.xp.zeros(len(codes[0]), dtype=self.xp.float64, device=codes[0].device)
        for k, (code, piece, tie) in enumerate(zip(codes, pieces, ties, strict=True)):
            stack.codes[k][rows, piece.part] = code
            value += codes_value(code, piece.degrees, tie, None if tie is None else piece.of(consensus))
        if any_tied:
            value += weights.consensus * consensus_value(before, consensus, self.layout.n_tied[samples])
        return value

    def _mean(self, codes: list[Array], pieces: list[Piece], samples: slice) -> Any:
        """Eq. (15): for every sample of a block the mean of its codes."""
        n_samples = samples.stop - samples.start
        whole = [code for code in codes if code.shape[1] == n_samples]
        if whole:
            total = sum(whole[1:], start=whole[0]) * self.layout.shares[samples]
        else:
            shape = (len(codes[0]), n_samples)
            total = self.xp.zeros(shape, dtype=codes[0].dtype, device=codes[0].device)
        for piece, code in zip(pieces, codes, strict=True):
            if code.shape[1] < n_samples:
                total[:, piece.places] += code * piece.shares
        return total

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
