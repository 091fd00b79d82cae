"""Features with few values, such as mutations and categories: one column for each value, with a weight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from scipy import sparse

from ..errors import InputError, some
from ..scaling import BlockedRows, is_small_sparse
from ..utils.messages import number
from ..utils.types import Array, Matrix

_MOST_LEVELS = 50


@dataclass(frozen=True)
class Levels:
    """Values of features, each a column of the encoded view.

    A feature of two values has one column, for the value other than 0, or without a 0 for the rarer one. Other features
    have a column for each value. The weight of a column is log((1 + n) / (1 + d)) for a value of d among n samples, so
    that a value of most samples counts little.
    """

    owners: Array  # feature that every column belongs to, in ascending order
    values: Array  # value that it marks
    weights: Array
    rest: Array  # of each feature the value without a column; NaN if each has one

    def encode(self, name: str, matrix: Matrix, only_two: bool) -> Matrix:
        """Return rows as weights of the values that they have; values not known from the fit have no column."""
        if is_small_sparse(matrix):
            matrix = matrix.toarray()
        if only_two:
            self._check(name, matrix)
        weights = self.weights.astype(matrix.dtype)
        if not sparse.issparse(matrix):
            return (matrix[:, self.owners] == self.values.astype(matrix.dtype)) * weights
        columns = sparse.csc_array(matrix)[:, self.owners]
        n_stored = np.diff(columns.indptr)
        is_level = columns.data == np.repeat(self.values, n_stored).astype(matrix.dtype)
        encoded = sparse.csc_array((is_level * np.repeat(weights, n_stored), columns.indices, columns.indptr))
        encoded.resize(columns.shape)
        return sparse.csr_array(encoded)

    def _check(self, name: str, matrix: Matrix) -> None:
        """Raise an error if a feature has a value besides the two of training, unless it had only one there."""
        two = self.weights > 0
        owners, rest, values = self.owners[two], self.rest[self.owners[two]], self.values[two]
        if sparse.issparse(matrix):
            columns = sparse.csc_array(matrix)[:, owners]
            n_stored = np.diff(columns.indptr)
            found = columns.data
            owners, rest, values = (np.repeat(part, n_stored) for part in (owners, rest, values))
        else:
            found = matrix[:, owners]
        known = (found == values.astype(found.dtype)) | (found == rest.astype(found.dtype))
        if not known.all():
            place = np.argwhere(~known)[0]
            value, column = float(found[tuple(place)]), place[-1]
            raise InputError(
                f"View '{name}' has kind='binary', and feature {owners[column]} has the values {number(rest[column])} "
                f"and {number(values[column])} in training; got {number(value)}. Give the same codes as in training."
            )

    def decode(self, encoded: Matrix) -> Matrix:
        """Return weighted columns as values: of two values the mean by their shares, of others the most likely one."""
        rows = encoded.toarray() if sparse.issparse(encoded) else encoded
        shares = np.clip(rows / np.where(self.weights > 0, self.weights, 1.0), 0, 1)
        found = np.broadcast_to(self.rest, (len(rows), len(self.rest))).copy()
        single = ~np.isnan(self.rest[self.owners])
        place = self.owners[single]
        found[:, place] += shares[:, single] * (self.values[single] - self.rest[place])
        for feature in np.flatnonzero(np.isnan(self.rest)):
            own = np.flatnonzero(self.owners == feature)
            found[:, feature] = self.values[own[shares[:, own].argmax(axis=1)]]
        found = found.astype(encoded.dtype)
        return sparse.csr_array(found) if sparse.issparse(encoded) else found


def fit_levels(rows: BlockedRows, *, only_two: bool) -> Levels:
    """Find the values of every feature and their frequencies.

    Raises
    ------
    InputError
        If a feature has too many values, or values that are not whole numbers.
    """
    most = 2 if only_two else _MOST_LEVELS
    known = rows.reduce(partial(_levels_of, most=most), partial(_united, most=most))
    _check_levels(rows.name, known, only_two)
    owners = np.repeat(np.arange(len(known)), [len(levels) for levels in known])
    values = np.concatenate(known)
    counts = rows.reduce(partial(_count, owners, values), sum)
    keep, rest = np.ones(len(owners), dtype=bool), np.full(len(known), np.nan)
    starts = np.concatenate([[0], np.cumsum([len(levels) for levels in known])])
    for feature, levels in enumerate(known):
        if len(levels) <= 2:
            # 0 means absence; else the more frequent value, and of equal ones the first
            frequency = np.where(levels == 0, np.inf, counts[starts[feature] : starts[feature + 1]])
            usual = int(np.argmax(frequency))
            rest[feature] = levels[usual]
            keep[starts[feature] + usual] = len(levels) == 1
    if not values[keep & np.isnan(rest[owners])].all() and rows.reduce(_is_large_sparse, any):
        raise InputError(
            f"View '{rows.name}' is sparse, and kind='categorical' would make it dense: 0 is one of the categories. "
            "Code the categories from 1 on, or pass the view as a dense array (.toarray()) if it fits into memory."
        )
    weights = np.log((1 + rows.shape[0]) / (1 + counts))
    return Levels(owners[keep], values[keep], weights[keep], rest)


def _is_large_sparse(block: Matrix) -> bool:
    return sparse.issparse(block) and not is_small_sparse(block)


def _levels_of(block: Matrix, *, most: int) -> list[Array]:
    """Return the different values of every column, at most one more than ``most``."""
    return [np.unique(column)[: most + 1].astype(np.float64) for column in _columns(block)]


def _columns(block: Matrix) -> Iterator[Array]:
    """Yield the values of every column; of a sparse matrix those above 0, and one zero if there is any."""
    if not sparse.issparse(block):
        yield from np.asarray(block).T
        return
    whole = sparse.csc_array(block)
    whole.eliminate_zeros()
    for begin, end in pairwise(whole.indptr):
        yield np.append(whole.data[begin:end], [0.0] * int(end - begin < whole.shape[0]))


def _united(parts: Sequence[list[Array]], *, most: int) -> list[Array]:
    return [np.unique(np.concatenate(own))[: most + 1] for own in zip(*parts, strict=True)]


def _count(owners: Array, values: Array, block: Matrix) -> Array:
    """Return how many rows have each value."""
    rows = block.toarray() if sparse.issparse(block) and is_small_sparse(block) else block
    if not sparse.issparse(rows):
        rows = np.asarray(rows)
        return np.array([(rows[:, j] == rows.dtype.type(value)).sum() for j, value in zip(owners, values, strict=True)])
    whole, found = sparse.csc_array(rows), np.zeros(len(owners), dtype=np.int64)
    for c, (owner, value) in enumerate(zip(owners, values, strict=True)):
        stored = whole.data[whole.indptr[owner] : whole.indptr[owner + 1]]
        found[c] = (stored == stored.dtype.type(value)).sum() + (value == 0) * (whole.shape[0] - len(stored))
    return found


def _check_levels(name: str, known: list[Array], only_two: bool) -> None:
    most = 2 if only_two else _MOST_LEVELS
    many = [feature for feature, levels in enumerate(known) if len(levels) > most]
    if many:
        allowed, other = ("two values", "'categorical', or 'continuous'")
        if not only_two:
            allowed, other = f"at most {most} values", "'continuous'"
        raise InputError(
            f"View '{name}' has kind='{'binary' if only_two else 'categorical'}', which needs features of {allowed}; "
            f"{len(many):,} of {len(known):,} have more: those at {some(many)}. Leave them out, or use kind={other} "
            "for the view."
        )
    odd = [] if only_two else [j for j, levels in enumerate(known) if len(levels) > 2 and (levels % 1).any()]
    if odd:
        raise InputError(
            f"View '{name}' has kind='categorical', which needs whole numbers as codes of categories; the features at "
            f"{some(odd)} have fractions. Use kind='continuous' for measured values."
        )
