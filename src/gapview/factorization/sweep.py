"""One pass over the data for all runs at once: the block that yields new codes yields its share of HᵀP.

Codes stand in columns, one for each sample. What belongs to a sample, its degree and its ties, then meets the codes
along the rows of memory, and the bases of several runs, one below the other, make one matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from ..compute import Each, engine_for
from ..utils.types import Array
from .blocks import Layout, Piece
from .problem import Problem, ViewTerm
from .runs import Stack, Weights
from .steps import code_step, codes_value, consensus_value, ties_value

__all__ = ["Sweep", "summed"]

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
        self.engine = engine_for(problem.degrees)

    def correlate(self, stack: Stack) -> list[Array]:
        """Return (HᵀP)ᵀ for every view."""

        def work(stripe: range) -> list[Array]:
            return summed(self._shares(stack, block) for block in stripe)

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
                    pieces, n_codes = self.layout.pieces(block)
                    projected = [
                        self._projected(term, basis, piece.part) if whole is None else whole[:, piece.part]
                        for term, basis, whole, piece in zip(self.problem.terms, bases, wholes, pieces, strict=True)
                    ]
                    steps = [self._step(stack, *group, pieces, n_codes, projected) for group in alike]
                    values.append(self.xp.concat(steps))
                    shares.append(self._shares(stack, block))
            return summed(shares), sum(values)

        results = self.each(work, self.layout.stripes)
        components = sum(values for _, values in results)
        values = [float(self.xp.sum(components[run.rows])) for run in stack.runs]
        return self._correlations(stack, [shares for shares, _ in results]), values

    def _projected(self, term: ViewTerm, basis: Array, part: slice) -> Array:
        """Return UHᵀ for some codes of a view: HUᵀ turned over, which is faster."""
        return self.engine.contiguous(self.engine.product(term.block(part), basis).T)  # type: ignore[no-any-return]

    def _step(
        self, stack: Stack, weights: Weights, rows: slice, pieces: list[Piece], n_codes: Array, projected: list[Array]
    ) -> Any:
        """Bring codes of runs with the same penalties up to date in one block, and its tied samples to their consensus.

        Returns the share of every component in the objective, which is a sum over samples in the type of the codes, in
        double precision.
        """
        own = [each[rows] for each in projected]
        codes = [code[rows, piece.part] for code, piece in zip(stack.codes, pieces, strict=True)]
        masses = [piece.degrees + weights.consensus * piece.tied for piece in pieces]
        consensus = _mean(codes, pieces, n_codes)
        for _ in range(self.n_rounds if consensus is not None else 1):
            before = consensus
            codes = [
                code_step(_drawn(seen, before, piece, weights.consensus), mass, weights.sparsity)
                for seen, piece, mass in zip(own, pieces, masses, strict=True)
            ]
            consensus = _mean(codes, pieces, n_codes)
        value = self.xp.zeros(len(codes[0]), dtype=self.xp.float64, device=codes[0].device)
        for stacked, code, piece in zip(stack.codes, codes, pieces, strict=True):
            stacked[rows, piece.part] = code
            value += codes_value(code, piece.degrees)
            if consensus is not None:
                value += weights.consensus * ties_value(_at(code, piece.own), _at(consensus, piece.ties))
        if before is not None and consensus is not None:
            value += weights.consensus * consensus_value(before, consensus, n_codes)
        return value

    def _shares(self, stack: Stack, block: int) -> list[Array]:
        """Return what one block adds to (HᵀP)ᵀ, for every view whose H is written out."""
        shares = []
        for k, (term, codes) in enumerate(zip(self.problem.terms, stack.codes, strict=True)):
            if term.smoothed is not None:
                part = self.layout.part(k, block)
                shares.append(self.engine.inner(codes[:, part], term.block(part)))
        return shares

    def _correlations(self, stack: Stack, of_stripes: Sequence[list[Array]]) -> list[Array]:
        dense = iter(summed(of_stripes))
        return [
            next(dense) if term.smoothed is not None else term.correlate(codes.T).T
            for term, codes in zip(self.problem.terms, stack.codes, strict=True)
        ]


def summed(parts: Any) -> list[Array]:
    """Add up lists of arrays, one by one, in order."""
    totals: list[Array] = []
    for part in parts:
        totals = [total + share for total, share in zip(totals, part, strict=True)] if totals else list(part)
    return totals


def _mean(codes: list[Array], pieces: list[Piece], n_codes: Array) -> Array | None:
    """Eq. (15): for every tied sample of a block the mean of its codes. None if there are none."""
    if not len(n_codes):
        return None
    xp = array_namespace(n_codes)
    total = xp.zeros((len(codes[0]), len(n_codes)), dtype=n_codes.dtype, device=n_codes.device)
    for code, piece in zip(codes, pieces, strict=True):
        total[:, piece.ties] += _at(code, piece.own)
    total /= n_codes
    return total  # type: ignore[no-any-return]


def _drawn(projected: Array, consensus: Array | None, piece: Piece, weight: float) -> Array:
    """Return UHᵀ with λ1 times its consensus added to every tied code of a piece."""
    if consensus is not None and piece.back is not None:
        return projected + _at(consensus, piece.back) * (weight * piece.tied)
    drawn = array_namespace(projected).asarray(projected, copy=True)
    if consensus is not None:
        drawn[:, piece.own] += weight * consensus[:, piece.ties]
    return drawn  # type: ignore[no-any-return]


def _at(values: Array, columns: Any) -> Array:
    """Take some columns; a slice costs no copy."""
    if isinstance(columns, slice):
        return values[:, columns]
    return array_namespace(values).take(values, columns, axis=1)  # type: ignore[no-any-return]
