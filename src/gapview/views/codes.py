"""Values that look like codes for missing ones, such as -999: of a view, and of new samples."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import some
from ..utils.messages import counted, joined, shorten
from ..utils.types import Array, Matrix
from .measures import ColumnFacts, blocks

_CODES = sorted(
    {sign * int(digit * n) for digit in "789" for n in (3, 4, 5, 6) for sign in (1, -1)}
    | {sign * (10**n - back) for n in (3, 4, 5) for back in (2, 3) for sign in (1, -1)}
    | {-1, -9, -8, -88, -99, 99, -32768, 32767, 65535, -(2**31), 2**31 - 1}
)
_FRACTIONS = (-99.9, -999.9, -9999.9, -999.25, -9.99, -99.99, -999.99, -1e20, 1e20, -1e30, 1e30)
_LEAST_CODED = 3  # values
_CODE_LEVELS = 10  # different other values of a column, for a code that is not far from them
_SMALL_CODE, _LARGE_CODE = 8, 99
_MOST_NAMED = 5

CODE_PROPOSAL = (
    "Replace the code by NaN and choose partial_rows='fill' or partial_rows='drop', unless it is a measured value."
)


def names_of(columns: Any, features: Array | None) -> str:
    """Return the names, or the positions, of columns for a message."""
    if features is None:
        return some([int(column) for column in columns], _MOST_NAMED)
    return some([shorten(str(features[column]), 40) for column in columns], _MOST_NAMED)


def code_text(codes: Any, n_coded: int, columns: Array, features: Array | None, about: str = "") -> str:
    """Return the beginning of a sentence on codes, with the number of values and the features."""
    written = [
        str(int(code)) if code == np.rint(code) and abs(code) < 1e16 else f"{code:.6g}" for code in sorted(codes)
    ]
    return (
        f"{joined(written)} looks like a code for missing values: "
        f"{counted(n_coded, 'value')}{about} in {counted(len(columns), 'feature')} ({names_of(columns, features)}), far"
    )


def _codes(dtype: Any) -> Array:
    """Return all codes as numbers of a type have them."""
    return np.unique(np.array([*_CODES, *_FRACTIONS], dtype=dtype)).astype(np.float64)


def find_codes(sample: Array, facts: ColumnFacts, n_samples: int) -> dict[float, Array]:
    """Return values that look like codes for missing ones, with the columns that contain them.

    A code occurs several times. It is isolated: as far from the other values as these are from each other, the only
    negative value among many different ones, or a repeated whole number among fractions that are not repeated.
    """
    codes = _codes(facts.low.dtype)
    ends = np.isin(facts.low, codes) | np.isin(facts.high, codes)
    fractional = facts.n_integers < n_samples / 2
    found = defaultdict(list)
    for column in np.flatnonzero(ends | fractional):
        values = sample[:, column]
        whole = values if ends[column] else values[(values == np.rint(values)) & (np.abs(values) >= _LARGE_CODE)]
        for code in np.intersect1d(whole, codes) if len(whole) else ():
            if _is_isolated(values, float(code), codes):
                found[float(code)].append(column)
    counts = {code: int((sample[:, columns] == code).sum()) for code, columns in found.items()}
    return {code: np.array(columns) for code, columns in found.items() if counts[code] >= _LEAST_CODED}


def _is_isolated(values: Array, code: float, codes: Array) -> bool:
    others, counts = np.unique(values[~np.isin(values, codes)], return_counts=True)
    if len(others) < 2 or (0 < code < 100 and (values == code).sum() < 2):
        return False
    gap = max(others[0] - code, code - others[-1])
    if gap >= others[-1] - others[0] and (abs(code) >= _SMALL_CODE or len(others) >= _CODE_LEVELS):
        return True
    if code < 0 <= others[0] and len(others) >= _CODE_LEVELS:
        return abs(code) >= _SMALL_CODE or bool(others[-1] >= _CODE_LEVELS)
    is_repeated = (values == code).sum() >= max(_LEAST_CODED, 3 * counts.max())
    return bool(is_repeated and abs(code) >= _LARGE_CODE)


def find_new_codes(given: Any, known: Array) -> tuple[Array, Array]:
    """Return the cells of new samples that look like codes for missing values: their columns and their values.

    A code is beyond the values of training by more than their range, or is negative where no value of training was. In
    its column, most values that far outside are codes. A positive code among whole numbers occurs at least three times.

    Parameters
    ----------
    given : matrix
        One view of the new samples.
    known : array of shape (n_rows, n_features)
        The same view of some training samples.
    """
    low, high = known.min(axis=0), known.max(axis=0)
    never_negative = bool(low.min() >= 0)
    least = np.zeros_like(low) if never_negative else low - (high - low)
    parts = [_outside(rows, least, high + (high - low)) for rows, _ in blocks(given)]
    columns, values = (np.concatenate(each) for each in zip(*parts, strict=True))
    codes = _codes(values.dtype)
    is_coded = np.isin(values, codes if never_negative else codes[np.abs(codes) >= _SMALL_CODE])
    n_coded, n_outside = (np.bincount(each, minlength=len(low)) for each in (columns[is_coded], columns))
    is_coded &= (2 * n_coded >= n_outside)[columns]
    is_doubtful = is_coded & (values > 0) & (known == np.rint(known)).all(axis=0)[columns]
    if is_doubtful.sum() < _LEAST_CODED:
        is_coded &= ~is_doubtful
    return columns[is_coded], values[is_coded]


def _outside(rows: Matrix, least: Array, most: Array) -> tuple[Array, Array]:
    """Return the columns and the values of the cells outside limits; zeros of a sparse matrix are left out."""
    if sparse.issparse(rows):
        cells = rows.tocoo()
        columns, values = cells.coords[1], cells.data
        is_outside = (values < least[columns]) | (values > most[columns])
        return columns[is_outside], values[is_outside]
    is_outside = (rows < least) | (rows > most)
    return np.nonzero(is_outside)[1], rows[is_outside]
