"""The problem of views that do not fit into memory: H = AᵀX, made some columns at a time and kept on disk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...factorization import problem as in_memory
from ...factorization.problem import Problem, SampleWeights, ViewTerm, demand_finite
from ...utils.types import Array
from ._scratch import Scratch, ScratchMatrix

__all__ = ["build_problem"]


def build_problem(
    features: Sequence[ScratchMatrix],
    graphs: Sequence[SampleWeights],
    targets: Sequence[Array],
    n_samples: int,
    scratch: Scratch,
) -> Problem:
    """Set up the problem as :func:`gapview.factorization.problem.build_problem` does, from scaled views in tiles.

    Columns of H come from the same columns of X, so that every tile is a problem of its own; all of a view share their
    degrees, and the constant term is the sum of theirs.
    """
    terms, shared, constant, begin = [], [], 0.0, 0
    for matrix, graph, target in zip(features, graphs, targets, strict=True):
        smoothed = None
        for tile in matrix.tiles:
            columns, of_view, share = _tile(matrix.columns(tile), graph, target, n_samples)
            if smoothed is None:
                smoothed = scratch.matrix((len(columns), matrix.shape[1]), matrix.dtype, matrix.width)
            smoothed.write_columns(tile, columns)
            constant += share
            del columns  # before the next ones are made
        assert smoothed is not None
        part = slice(begin, begin + len(smoothed))
        terms.append(ViewTerm(part, matrix.shape[1], scratch.row_by_row(smoothed)))  # type: ignore[arg-type]
        shared.append(of_view)
        begin = part.stop
    rows, degrees, n_codes = zip(*shared, strict=True)
    demand_finite(np.isfinite(constant), degrees[0].dtype)
    return Problem(tuple(terms), np.concatenate(rows), np.concatenate(degrees), np.sum(n_codes, axis=0), constant)


def _tile(
    columns: Array, graph: SampleWeights, target: Array, n_samples: int
) -> tuple[Array, tuple[Array, Array, Array], float]:
    """Return some columns of H, what all of them share, and their part of the constant term."""
    problem = in_memory.build_problem([columns], [graph], [target], n_samples)
    smoothed = problem.terms[0].smoothed
    assert smoothed is not None
    return smoothed, (problem.rows, problem.degrees, problem.n_codes), problem.constant
