"""The rows of views: missing and incomplete ones, selections by reference, and samples to try parameters on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse
from sklearn.impute import KNNImputer
from sklearn.utils.random import sample_without_replacement

from ..compute.arrays import host, is_on_device, is_tensor, like, row_blocks
from ..errors import InputError, some
from ..utils.types import Array, Matrix

PARTIAL_ROWS = ("raise", "fill", "drop")
MOST_LACKING = 0.2  # share of the features that a new sample may lack
_FILL_NEIGHBORS = 5
_FAR_FROM_ONE = 60  # as a power of 2: beyond it, squares leave single precision
LARGE = 2**27  # bytes: smaller selections are copied
N_TRIED = 5000  # more samples would raise the cost without changing the choice
TRIED_PER_CLUSTER = 20
N_OF_EVERY_VIEW = 50  # the least number of samples drawn with each view, if as many have it
_MANY = 10**7  # samples up to which all of them are permuted


def dense(matrix: Matrix) -> Array:
    """Return a matrix as a dense array, which shares the memory of a dense one."""
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)


def count_missing_cells(values: Matrix) -> Array:
    """Return the number of NaN in every row."""
    if not sparse.issparse(values):
        parts = [host((values[block] != values[block]).sum(axis=1)) for block in row_blocks(values)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.intp)
    holes = sparse.csr_array((np.isnan(values.data), values.indices, values.indptr), shape=values.shape)
    return np.asarray(holes.sum(axis=1)).ravel().astype(np.intp)


def row_summary(values: Matrix) -> Array:
    """Return two numbers per row: NaN twice if it is missing, NaN first if it has gaps, infinity last if it has any.

    All other numbers are 0. Checking the summary of a view for gaps, infinities and missing rows gives the same results
    and messages as checking the view.
    """
    gaps = count_missing_cells(values)
    summary = np.zeros((values.shape[0], 2))
    summary[gaps > 0, 0] = np.nan
    summary[gaps == values.shape[1]] = np.nan
    summary[np.isinf(values).any(axis=1), 1] = np.inf
    return summary


def demand_finite(name: str, values: Matrix, ids: Array) -> None:
    """Raise an error on infinities, with their number and the first samples."""
    numbers = values.data if sparse.issparse(values) else values
    xp = array_namespace(numbers)
    blocks = [slice(None)] if sparse.issparse(values) else row_blocks(values)
    if 0 in numbers.shape or not any(bool(xp.any(xp.isinf(numbers[block]))) for block in blocks):
        return
    values, numbers = host(values), host(numbers)
    where = values.tocoo().row[np.isinf(numbers)] if sparse.issparse(values) else np.nonzero(np.isinf(values))[0]
    rows = np.unique(where)
    raise InputError(
        f"View '{name}' contains infinity (inf) in {len(rows)} row(s), first for the sample(s) {some(ids[rows])}. "
        "Values must be finite, and below 1.8e308: replace infinities by NaN for a missing value, or by a number."
    )


def complete_rows(name: str, values: Matrix, policy: str, ids: Array, reference: Matrix | None) -> tuple[Matrix, Array]:
    """Fill, drop or refuse rows that have some but not all values.

    Returns the remaining rows and, for every given row, whether it remains.
    """
    partial = count_missing_cells(values) > 0
    keep = np.ones(len(partial), dtype=bool)
    if not partial.any():
        return values, keep
    if policy == "raise":
        raise InputError(
            f"View '{name}' has {int(partial.sum())} row(s) of {len(partial)} with some but not all values missing "
            f"(NaN), first for the sample(s) {some(ids[partial])}. A row of NaN alone is a missing view; for rows with "
            "gaps choose partial_rows='fill' (gaps are filled from the nearest rows of the same view) or "
            "partial_rows='drop' (the view counts as missing for these samples)."
        )
    if policy == "drop":
        return values[like(~partial, values)], ~partial
    return like(_filled(name, host(values), reference), values), keep


def _filled(name: str, values: Matrix, reference: Matrix | None) -> Matrix:
    """Return values with gaps filled from the nearest rows of the reference or, without one, of the view itself."""
    rows = dense(values)
    source = rows if reference is None else dense(reference)
    empty = np.flatnonzero(np.isnan(source).all(axis=0))
    if empty.size:
        raise InputError(
            f"View '{name}' has {empty.size} feature(s) without a single value, in the column(s) {some(empty)}: "
            "no value exists to fill them from. Drop these columns."
        )
    nearest = nearest_imputed(rows, source, _FILL_NEIGHBORS)
    filled = np.where(np.isnan(rows), nearest, rows).astype(values.dtype, copy=False)
    return sparse.csr_array(filled) if sparse.issparse(values) else filled


def nearest_imputed(rows: Array, donors: Array, n_neighbors: int) -> Array:
    """Return rows whose gaps (NaN) are filled with the mean of the nearest donors that have the feature."""
    unit = unit_for_squares(donors, rows)
    imputer = KNNImputer(n_neighbors=n_neighbors).fit(np.ldexp(donors, -unit))
    return np.asarray(np.ldexp(imputer.transform(np.ldexp(rows, -unit)), unit))


def unit_for_squares(*arrays: Array) -> int:
    """Return the power of 2 by which to divide values so that their squares neither overflow nor vanish; mostly 0.

    Division by a power of 2 is exact. NaN are ignored.
    """
    _, exponent = np.frexp(max(np.nanmax(np.abs(array), initial=0.0) for array in arrays))
    return int(exponent) if abs(int(exponent)) > _FAR_FROM_ONE else 0


@dataclass(frozen=True)
class SelectedRows:
    """A selection of rows of a large matrix, by reference."""

    whole: Matrix
    rows: Array

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return len(self.rows), int(self.whole.shape[1])

    @property
    def dtype(self) -> Any:
        """Type of the values."""
        return self.whole.dtype

    @property
    def device(self) -> Any:
        """Device that holds the values."""
        return self.whole.device

    def __getitem__(self, part: slice) -> Matrix:
        """Return a slice of the rows as a new matrix."""
        return self.whole[like(self.rows[part], self.whole)]

    def copied(self) -> Matrix:
        """Return all rows as a new matrix."""
        return self[:]


class HostRows(SelectedRows):
    """A selection of rows of a large tensor on a device, copied to the host when they are asked for."""

    @property
    def dtype(self) -> Any:
        """Type of the values."""
        return host(self.whole[:0]).dtype

    def __getitem__(self, part: slice) -> Array:
        """Return a slice of the rows as a new array of NumPy."""
        return host(super().__getitem__(part))  # type: ignore[no-any-return]

    def copied(self) -> Array:
        """Return all rows as a new array of NumPy, without a copy of all on the device."""
        rows = np.empty(self.shape, dtype=self.dtype)
        for block in row_blocks(self):
            rows[block] = self[block]
        return rows

    def __reduce__(self) -> Any:
        return np.asarray, (self.copied(),)  # files can be read without the device


def select_rows(matrix: Matrix, rows: Array) -> Any:
    """Return rows of a matrix or of a selection, by reference if they are large."""
    if not isinstance(matrix, SelectedRows):
        matrix = SelectedRows(matrix, np.arange(matrix.shape[0]))
    lazily = replace(matrix, rows=matrix.rows[rows])
    size = 0 if sparse.issparse(matrix.whole) else len(lazily.rows) * matrix.shape[1] * matrix.dtype.itemsize
    return lazily if size >= LARGE else lazily.copied()


def moved_rows(held: Any, place: Any) -> Any:
    """Return rows on the device of a tensor: as they are if they are there, else as a tensor."""
    if is_tensor(held[:0]) and held.device == place.device:
        return held
    if not isinstance(held, SelectedRows):
        return like(held, place)
    moved = like(held[:0], place).new_empty(held.shape)
    for block in row_blocks(held):  # without a copy of all rows on the host
        moved[block] = like(held[block], place)
    return moved


def host_rows(held: Any) -> Any:
    """Return rows as arrays of NumPy; many rows on a device when they are asked for."""
    if not is_tensor(held[:0]):
        return held
    if not is_on_device(held[:0]) or held.shape[0] * held.shape[1] * held.dtype.itemsize < LARGE:
        return host(held[:])
    return HostRows(*(held.whole, held.rows) if isinstance(held, SelectedRows) else (held, np.arange(len(held))))


# -- samples to try parameters on ---------------------------------------------------------------------------


def n_to_try(n_clusters: int) -> int:
    """Return the number of samples on which parameters for ``n_clusters`` clusters are tried."""
    return max(N_TRIED, TRIED_PER_CLUSTER * n_clusters)


def draw_samples(n_samples: int, n_wanted: int, seed: int, rare_rows: Callable[[Array], Iterable[Array]]) -> Array:
    """Draw samples without replacement, some of them with each view, in ascending order; all if there are no more.

    Parameters
    ----------
    n_samples : int
        Number of samples to draw from.
    n_wanted : int
        Number of samples to draw; those added for rare views come on top.
    seed : int
        Random seed.
    rare_rows : callable
        Takes the samples drawn so far, in ascending order. Returns all samples that have the view, for each view that
        fewer than ``N_OF_EVERY_VIEW`` of those drawn have.
    """
    if n_samples <= n_wanted:
        return np.arange(n_samples)
    source = np.random.RandomState(seed)
    order = source.permutation(n_samples) if n_samples <= _MANY else None
    first = sample_without_replacement(n_samples, n_wanted, random_state=source) if order is None else order[:n_wanted]
    added = [_first_of(rows, order, source) for rows in rare_rows(np.sort(first))]
    return np.unique(np.concatenate([first, *added]))


def _first_of(rows: Array, order: Array | None, source: np.random.RandomState) -> Array:
    if order is None:
        return source.permutation(rows)[:N_OF_EVERY_VIEW]
    having = np.zeros(len(order), dtype=bool)
    having[rows] = True
    return np.asarray(order[having[order]][:N_OF_EVERY_VIEW])


def draw_from(mask: Array, n_wanted: int, seed: int) -> Array:
    """Draw samples by :func:`draw_samples`, from the mask of samples × views."""

    def rare_rows(drawn: Array) -> list[Array]:
        return [np.flatnonzero(mask[:, k]) for k in np.flatnonzero(mask[drawn].sum(axis=0) < N_OF_EVERY_VIEW)]

    return draw_samples(len(mask), n_wanted, seed, rare_rows)
