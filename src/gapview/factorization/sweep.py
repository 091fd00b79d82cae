"""One pass over the data for all runs at once: every block of samples gets new codes, and adds to HᵀP.

Codes are stored one column per sample. Values per sample, such as degrees and ties, are then applied along contiguous
rows, and the bases of several runs, one below the other, need one matrix product.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from ..compute.engine import Each, engine_for
from ..utils.types import Array
from .loop import LoopState, Run, Solution, Weights, iterate, new_runs
from .problem import Problem, ViewTerm
from .steps import code_step, codes_value, consensus_value, ties_value

_N_STRIPES = 32  # partial sums; a fixed number, so that threads do not change the rounding
_CACHED_CODES, _CACHED_SHARE = 2**20, 1 / 16  # up to so many codes, or such a share of H, pieces are cached
_PIECE_BYTES = 32  # at most, for every code
# Samples with several views need many more steps between the products. Larger blocks need fewer calls, which saves more
# than a better use of the cache
_LARGER = 4


@dataclass(frozen=True)
class Piece:
    """One view in one block of samples."""

    # Positions are slices where they are consecutive, and index arrays elsewhere
    part: slice  # of the codes of the view
    places: Any  # positions of their samples in the block
    degrees: Array
    tied: Array  # 1 if the sample has codes in at least two views, else 0
    own: Any  # positions of the tied codes in this part
    ties: Any  # positions of their samples among the tied samples of the block
    back: Array | None  # for every code the position of its tied sample, any if it has none; None if both are slices


class Layout:
    """Blocks of samples that fit in the cache, and stripes of blocks over which partial sums are computed.

    The number of stripes, and so the rounding, does not depend on the number of threads.

    Parameters
    ----------
    problem : Problem
        The data.
    n_stripes : int
        Most stripes.
    most_rows : int, optional
        Most samples in a block, if work on them needs much memory.
    """

    def __init__(self, problem: Problem, n_stripes: int, most_rows: int | None = None) -> None:
        self.problem = problem
        xp = array_namespace(problem.degrees)
        row_bytes = problem.degrees.itemsize * sum(t.n_features for t in problem.terms if t.smoothed is not None)
        is_in_memory = all(isinstance(term.smoothed, np.ndarray) for term in problem.terms)
        larger = _LARGER if len(problem.terms) > 1 and is_in_memory else 1
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
        share = _CACHED_SHARE * row_bytes * n_codes / len(problem.terms)
        self._is_cached = n_codes <= _CACHED_CODES or n_codes * _PIECE_BYTES <= share
        self._cache: dict[int, tuple[list[Piece], Array]] = {}

    def part(self, view: int, block: int) -> slice:
        """Return the codes of a view that belong to the samples of a block."""
        return slice(self.edges[view][block], self.edges[view][block + 1])

    def pieces(self, block: int) -> tuple[list[Piece], Array]:
        """Return the piece of every view in a block, and the number of codes of every tied sample in it."""
        found = self._cache.get(block) or self._computed_pieces(block)
        if self._is_cached:
            self._cache[block] = found
        return found

    def _computed_pieces(self, block: int) -> tuple[list[Piece], Array]:
        xp = array_namespace(self.problem.degrees)
        samples = self.blocks[block]
        tied = self.tied[samples]
        numbers = xp.cumulative_sum(xp.astype(tied, xp.int64)) - 1  # positions of tied samples among those of the block
        pieces = []
        for k, term in enumerate(self.problem.terms):
            part = self.part(k, block)
            stacked = slice(term.part.start + part.start, term.part.start + part.stop)
            places = self.problem.rows[stacked] - samples.start
            mine = tied[places]
            ties = numbers[places[mine]]
            degrees = self.problem.degrees[stacked]
            own, theirs = _as_slice(xp.nonzero(mine)[0]), _as_slice(ties)
            are_slices = isinstance(own, slice) and isinstance(theirs, slice)
            back = None if are_slices else xp.clip(numbers[places], 0, None)
            pieces.append(Piece(part, _as_slice(places), degrees, xp.astype(mine, degrees.dtype), own, theirs, back))
        return pieces, xp.astype(self.problem.n_codes[samples][tied], self.problem.degrees.dtype)


def _as_slice(places: Array) -> Any:
    """Return ascending positions as a slice if they are consecutive: it needs no copy."""
    if not len(places):
        return slice(0)
    first, last = int(places[0]), int(places[-1])
    return slice(first, last + 1) if last - first + 1 == len(places) else places


class ArraySweep:
    """The passes over a problem in arrays, in this process.

    Parameters
    ----------
    problem : Problem
        The data.
    codes : list of arrays
        The codes of every view: a row for each component of each run, a column for each code.
    each : callable
        Applies a function to a sequence of items, see :mod:`gapview.compute`.
    record : StateRecord, optional
        Where the state of the loop is recorded.
    """

    def __init__(self, problem: Problem, codes: list[Array], each: Each, record: Any = None) -> None:
        self.problem, self.codes, self.each, self.record = problem, codes, each, record
        self.constant, self.dtype = problem.constant, problem.degrees.dtype
        self.xp = array_namespace(problem.degrees)
        self.layout = Layout(problem, _N_STRIPES)
        self.engine = engine_for(problem.degrees)

    def correlate(self) -> list[Array]:
        """Return (HᵀP)ᵀ for every view."""

        def work(stripe: range) -> list[Array]:
            return summed(self._shares(block) for block in stripe)

        return self._correlations(self.each(work, self.layout.stripes))

    def iterate(self, runs: Sequence[Run]) -> tuple[list[Array], list[float]]:
        """Update the codes in place; return (HᵀP)ᵀ for every view, and the objective of every run.

        The objective lacks its constant term.
        """
        bases = [self.xp.concat([run.bases[k] for run in runs]).T for k in range(len(self.problem.terms))]
        # H of a sparse view is not stored, and cannot be cut into blocks
        wholes = [
            None if term.smoothed is not None else term.project(basis.T).T
            for term, basis in zip(self.problem.terms, bases, strict=True)
        ]
        alike = _alike(runs)

        def work(stripe: range) -> tuple[list[Array], Array]:
            shares, values = [], []
            with np.errstate(over="ignore", invalid="ignore"):  # demand_finite reports overflow in its results
                for block in stripe:
                    pieces, n_codes = self.layout.pieces(block)
                    projected = [
                        self._projected(term, basis, piece.part) if whole is None else whole[:, piece.part]
                        for term, basis, whole, piece in zip(self.problem.terms, bases, wholes, pieces, strict=True)
                    ]
                    steps = [self._step(*group, pieces, n_codes, projected) for group in alike]
                    values.append(self.xp.concat(steps))
                    shares.append(self._shares(block))
            return summed(shares), sum(values)

        results = self.each(work, self.layout.stripes)
        components = sum(values for _, values in results)
        values = [float(self.xp.sum(components[run.rows])) for run in runs]
        return self._correlations([shares for shares, _ in results]), values

    def solution(self, run: Run) -> Solution:
        """Return the solution of one run, with one row per sample."""
        codes = [self.engine.contiguous(stacked[run.rows].T) for stacked in self.codes]
        bases = list(run.bases)  # none in a block of a cluster
        for k, term in enumerate(self.problem.terms):
            if term.directions is not None:
                bases[k] = bases[k] @ term.directions.T
        return run.solution(bases, codes, mean_codes(self.problem, codes))

    def keep(self, runs: Sequence[Run]) -> None:
        """Discard the codes of all other runs."""
        self.codes = [self.xp.concat([stacked[run.rows] for run in runs], axis=0) for stacked in self.codes]

    def resume(self, runs: list[Run]) -> LoopState | None:
        """Return the recorded state of the loop of these runs; None if there is none."""
        if self.record is None or self.record.last is None:
            return None
        self.codes = self.record.last["codes"]
        return LoopState.from_dict(self.record.last, runs)

    def save(self, state: LoopState) -> None:
        """Record the state of the loop, or skip it if the last record is recent."""
        if self.record is not None:
            # The codes are no copy, and change with the next iteration
            self.record.save(lambda: state.to_dict() | {"codes": self.codes if state.active else []})

    def _projected(self, term: ViewTerm, basis: Array, part: slice) -> Array:
        """Return UHᵀ for some codes of a view, as the transpose of HUᵀ, which is faster."""
        return self.engine.contiguous(self.engine.product(term.block(part), basis).T)  # type: ignore[no-any-return]

    def _step(self, weights: Weights, rows: slice, pieces: list[Piece], n_codes: Array, projected: list[Array]) -> Any:
        """Update the codes of runs with the same penalties in one block.

        Returns what every component adds to the objective: sums over samples in the type of the codes, as float64.
        """
        own = [each[rows] for each in projected]
        codes = [code[rows, piece.part] for code, piece in zip(self.codes, pieces, strict=True)]
        masses = [piece.degrees + weights.consensus * piece.tied for piece in pieces]
        before = tied_consensus(codes, pieces, n_codes)
        codes = [
            code_step(_drawn(seen, before, piece, weights.consensus), mass, weights.sparsity)
            for seen, piece, mass in zip(own, pieces, masses, strict=True)
        ]
        consensus = tied_consensus(codes, pieces, n_codes)
        value = self.xp.zeros(len(codes[0]), dtype=self.xp.float64, device=codes[0].device)
        for stacked, code, piece in zip(self.codes, codes, pieces, strict=True):
            stacked[rows, piece.part] = code
            value += codes_value(code, piece.degrees)
            if consensus is not None:
                value += weights.consensus * ties_value(columns_of(code, piece.own), columns_of(consensus, piece.ties))
        if before is not None and consensus is not None:
            value += weights.consensus * consensus_value(before, consensus, n_codes)
        return value

    def _shares(self, block: int) -> list[Array]:
        """Return what one block adds to (HᵀP)ᵀ, for every view whose H is stored."""
        shares = []
        for k, (term, codes) in enumerate(zip(self.problem.terms, self.codes, strict=True)):
            if term.smoothed is not None:
                part = self.layout.part(k, block)
                shares.append(self.engine.inner(codes[:, part], term.block(part)))
        return shares

    def _correlations(self, of_stripes: Sequence[list[Array]]) -> list[Array]:
        dense = iter(summed(of_stripes))
        return [
            next(dense) if term.smoothed is not None else term.correlate(codes.T).T
            for term, codes in zip(self.problem.terms, self.codes, strict=True)
        ]


def mean_codes(problem: Problem, codes: list[Array]) -> Array:
    """Return the mean code of every sample, zero for samples without codes."""
    xp = array_namespace(problem.degrees)
    shape = (problem.n_samples, codes[0].shape[1])
    consensus = xp.zeros(shape, dtype=codes[0].dtype, device=codes[0].device)
    for term, code in zip(problem.terms, codes, strict=True):
        if len(code) == problem.n_samples:
            consensus += code  # no copy, unlike indexing
        else:
            consensus[problem.rows[term.part], :] += code
    consensus /= xp.astype(xp.clip(problem.n_codes, 1, None), consensus.dtype)[:, None]
    return consensus  # type: ignore[no-any-return]


def _alike(runs: Sequence[Run]) -> list[tuple[Weights, slice]]:
    """Return the penalties of neighbouring runs that have the same ones, with the rows of all these runs."""
    together = [list(group) for _, group in groupby(runs, key=lambda run: run.weights)]
    return [(own[0].weights, slice(own[0].rows.start, own[-1].rows.stop)) for own in together]


def summed(parts: Any) -> list[Array]:
    """Return the sums of lists of arrays, added in order."""
    totals: list[Array] = []
    for part in parts:
        totals = [total + share for total, share in zip(totals, part, strict=True)] if totals else list(part)
    return totals


def tied_consensus(codes: list[Array], pieces: list[Piece], n_codes: Array) -> Array | None:
    """Return the mean code of every tied sample of a block, Eq. (15); None if there are no tied samples."""
    if not len(n_codes):
        return None
    xp = array_namespace(n_codes)
    total = xp.zeros((len(codes[0]), len(n_codes)), dtype=n_codes.dtype, device=n_codes.device)
    for code, piece in zip(codes, pieces, strict=True):
        total[:, piece.ties] += columns_of(code, piece.own)
    total /= n_codes
    return total  # type: ignore[no-any-return]


def _drawn(projected: Array, consensus: Array | None, piece: Piece, weight: float) -> Array:
    """Return UHᵀ plus λ1 times the consensus for every tied code of a piece."""
    if consensus is not None and piece.back is not None:
        return projected + columns_of(consensus, piece.back) * (weight * piece.tied)
    drawn = array_namespace(projected).asarray(projected, copy=True)
    if consensus is not None:
        drawn[:, piece.own] += weight * consensus[:, piece.ties]
    return drawn  # type: ignore[no-any-return]


def columns_of(values: Array, columns: Any) -> Array:
    """Return some columns; a slice needs no copy."""
    if isinstance(columns, slice):
        return values[:, columns]
    return array_namespace(values).take(values, columns, axis=1)  # type: ignore[no-any-return]


@contextmanager
def array_sweep(problem: Problem, starts: Iterable[Sequence[Array]], record: Any = None) -> Iterator[ArraySweep]:
    """Open the passes over a problem in arrays; starts from an iterator are discarded once they are copied.

    ``record``, a :class:`gapview.persist.checkpoints.StateRecord`, stores the state of the loop from time to time.
    """
    xp, given = array_namespace(problem.degrees), list(starts)
    codes = [xp.concat([start[k].T for start in given], axis=0) for k in range(len(problem.terms))]
    given.clear()
    n_operations = 4 * len(codes[0]) * sum(len(problem.rows[t.part]) * t.n_features for t in problem.terms)
    with engine_for(problem.degrees).working(n_operations) as each:
        yield ArraySweep(problem, codes, each, record)


def solve_together(
    problem: Problem, weights: Sequence[Weights], starts: Iterable[Sequence[Array]], max_iter: int, tol: float
) -> list[Solution]:
    """Run Algorithm 1 from several starts, with penalties for each, in the same passes over the data.

    Every run gives the result of :func:`solve`, up to rounding, and stops in the same iteration.
    """
    given = list(starts)
    runs = new_runs(weights, [start[0].shape[1] for start in given])
    with array_sweep(problem, given) as sweep:
        ended = iterate(sweep, runs, max_iter, tol)
    return [ended[place] for place in range(len(runs))]


def solve(problem: Problem, weights: Weights, start: Sequence[Array], max_iter: int, tol: float) -> Solution:
    """Run Algorithm 1 from the given codes, one array per view; see :func:`iterate`."""
    return solve_together(problem, [weights], [start], max_iter, tol)[0]
