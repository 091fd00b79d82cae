"""Products of a tall block with a few columns, in pieces that BLAS multiplies as they lie.

BLAS copies large matrices into an order of its own before it multiplies them. With a few columns there is hardly more
work than that copy. OpenBLAS leaves it out for small products, and is then up to twice as fast; other libraries lose
nothing, since a piece is still long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

__all__ = ["inner", "product"]

_SMALL = 1_000_000  # rows × columns × depth, up to which OpenBLAS multiplies without a copy
_FEWEST_ROWS = 8  # of a piece; with fewer, calls cost more than the copy
_FEWEST_ADDED = 100  # the same where the products of pieces have to be added up


def product(rows: Array, basis: Array) -> Array:
    """Return rows · basis, for a block of many rows and a basis of few columns."""
    count = _rows_of_a_piece(rows, basis.shape[1], _FEWEST_ROWS)
    if not count:
        return np.asarray(rows @ basis)
    whole = len(rows) // count * count
    result = np.empty((len(rows), basis.shape[1]), dtype=np.result_type(rows, basis))
    np.matmul(_pieces(rows[:whole], count), basis, out=_pieces(result[:whole], count))
    np.matmul(rows[whole:], basis, out=result[whole:])
    return result


def inner(codes: Array, rows: Array) -> Array:
    """Return codes · rows, for few codes that each have a number for every one of many rows."""
    count = _rows_of_a_piece(rows, len(codes), _FEWEST_ADDED)
    if not count:
        return np.asarray(codes @ rows)
    whole = len(rows) // count * count
    of_pieces = codes[:, :whole].reshape(len(codes), -1, count).transpose(1, 0, 2)
    total: Array = np.matmul(of_pieces, _pieces(rows[:whole], count)).sum(axis=0)
    if whole < len(rows):
        total += codes[:, whole:] @ rows[whole:]
    return total


def _rows_of_a_piece(rows: Array, n_columns: int, fewest: int) -> int:
    """Say how many rows to multiply at a time; 0 if all at once."""
    n_pieces = -(-rows.shape[0] * rows.shape[1] * n_columns // _SMALL)
    count = len(rows) // max(n_pieces, 1)
    return count if n_pieces > 1 and count >= fewest and rows.flags.c_contiguous else 0


def _pieces(rows: Array, count: int) -> Array:
    return rows.reshape(-1, count, rows.shape[1])
