"""Measures of the values of a view: exact ones from blocks of rows, others from a sample of rows; groups of values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse

from ..compute.arrays import host, is_on_device, like
from ..utils.types import Array, Matrix
from .cells import SelectedRows, dense

_BLOCK_CELLS = 2**17
_DEVICE_CELLS = 2**25
_SAMPLE_CELLS = 2**18
_SAMPLE_ROWS = (300, 2000)  # least and most
_SCALE_COLUMNS = 2000  # from which the scale of a row is estimated
_COLUMN_ROWS = 500  # of the sample, for divisions and medians of columns
_COLUMNS_AT_A_TIME = 128
_TINY = 1e-8  # share of the largest value of a column below which a value counts as zero

_ODD = np.uint64(0x9E3779B97F4A7C15)

# Two groups of values, on a logarithmic scale
_LEAST_SHARE = 0.03  # of the values, in the smaller group
_LEAST_COUNT = 3
_SAME_SPREAD = 0.05  # standard deviations below it are taken as equal


# -- exact -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnFacts:
    """Exact facts on every column of a view."""

    low: Array
    high: Array
    n_zeros: Array
    n_integers: Array  # zeros included
    digest: Array  # equal for equal columns

    @classmethod
    def of(cls, view: Any) -> ColumnFacts:
        """Compute the facts from blocks of rows; a sparse view stays sparse."""
        is_there = is_on_device(view[:0])
        parts = list(_tensor_facts(view)) if is_there else [_block_facts(*block) for block in blocks(view)]
        together = {"low": np.min, "high": np.max}
        xp = array_namespace(parts[0].low)
        found = {each.name: host(xp.stack([getattr(part, each.name) for part in parts])) for each in fields(cls)}
        return cls(**{name: together.get(name, np.sum)(values, axis=0) for name, values in found.items()})


def blocks(view: Any) -> Iterator[tuple[Matrix, Array]]:
    """Yield blocks of rows, and a random weight for each row."""
    n_rows, n_columns = view.shape
    source = np.random.RandomState(0)
    step = n_rows if sparse.issparse(view) else max(1, _BLOCK_CELLS // n_columns)
    for begin in range(0, n_rows, step):
        rows = view if sparse.issparse(view) else host(view[begin : begin + step])
        yield rows, source.randint(1, 2**63, size=rows.shape[0]).astype(np.uint64)


def _block_facts(rows: Matrix, weights: Array) -> ColumnFacts:
    if sparse.issparse(rows):
        whole = rows.tocsc()
        whole.sum_duplicates()
        is_fraction = sparse.csc_array((whole.data != np.rint(whole.data), whole.indices, whole.indptr), whole.shape)
        n_zeros = whole.shape[0] - np.asarray((whole != 0).sum(axis=0)).ravel()
        n_integers = whole.shape[0] - np.asarray(is_fraction.astype(np.int64).sum(axis=0)).ravel()
        low, high = (dense(part).ravel() for part in (whole.min(axis=0), whole.max(axis=0)))
        bits = sparse.csc_array((_bits(whole.data), whole.indices, whole.indptr), whole.shape)
        return ColumnFacts(low, high, n_zeros, n_integers, np.asarray(bits.T @ weights).ravel())
    n_integers = (rows == np.rint(rows)).sum(axis=0)
    digest = (_bits(rows) * weights[:, None]).sum(axis=0, dtype=np.uint64)
    return ColumnFacts(rows.min(axis=0), rows.max(axis=0), (rows == 0).sum(axis=0), n_integers, digest)


def _tensor_facts(view: Any) -> Iterator[ColumnFacts]:
    """Yield the facts on blocks of rows on a device, computed there; digests are those of arrays, as signed numbers."""
    xp, source = array_namespace(view[:0]), np.random.RandomState(0)
    odd, step = int(_ODD.astype(np.int64)), max(1, _DEVICE_CELLS // view.shape[1])
    for begin in range(0, view.shape[0], step):
        rows = view[begin : begin + step]
        weights = like(source.randint(1, 2**63, size=len(rows)), rows)
        n_zeros, n_integers = ((rows == other).sum(axis=0) for other in (0, rows.round()))
        bits = (xp.astype(rows, xp.float64) + 0.0).view(xp.int64)
        bits ^= (bits >> 32) & 0xFFFFFFFF
        bits *= odd
        bits ^= (bits >> 29) & (2**35 - 1)
        bits *= weights[:, None]
        yield ColumnFacts(xp.min(rows, axis=0), xp.max(rows, axis=0), n_zeros, n_integers, bits.sum(axis=0))


def _bits(values: Array) -> Array:
    """Return a hash of the bits of numbers: 0 for a zero of either sign."""
    bits = np.ascontiguousarray(values.astype(np.float64) + 0.0).view(np.uint64)
    bits ^= bits >> np.uint64(32)  # small whole numbers differ in their highest bits only, which a product would lose
    bits *= _ODD
    bits ^= bits >> np.uint64(29)
    return bits


# -- a sample of rows ---------------------------------------------------------------------------------------------


def sample_rows(view: Any, most: int = _SAMPLE_ROWS[1]) -> Array:
    """Return a random sample of the rows of a view as a dense float64 array; all rows if there are few."""
    n_rows, n_columns = view.shape
    n_wanted = min(most, max(_SAMPLE_ROWS[0], _SAMPLE_CELLS // n_columns))
    if n_rows > n_wanted:
        chosen = np.sort(np.random.RandomState(0).choice(n_rows, n_wanted, replace=False))
        rows = view[chosen if isinstance(view, SelectedRows) else like(chosen, view)]
    else:
        rows = view[:]
    return dense(host(rows)).astype(np.float64)


def log_sizes(values: Array) -> Array:
    """Return the logarithms of absolute values; NaN for zeros and for values that are zero but for rounding."""
    sizes = np.abs(values)
    sizes[~(sizes > _TINY * np.nanmax(sizes, axis=0, initial=0.0))] = np.nan
    return np.asarray(np.log(sizes, out=sizes))


def column_medians(sizes: Array) -> Array:
    """Return the median of every column without NaN; NaN for a column of nothing but NaN."""
    ordered = np.sort(sizes, axis=0)
    counts = (ordered == ordered).sum(axis=0)
    places = np.maximum(counts - 1, 0)
    columns = np.arange(ordered.shape[1])
    return np.asarray((ordered[places // 2, columns] + ordered[(places + 1) // 2, columns]) / 2)


def some_columns(n_columns: int) -> Array:
    """Return the columns from which the scale of a row is estimated: all, or evenly spaced ones."""
    return np.unique(np.linspace(0, n_columns - 1, min(n_columns, _SCALE_COLUMNS)).astype(np.intp))


def some_rows(n_rows: int) -> Array:
    """Return the rows from which the values of single columns are compared: all, or random ones."""
    if n_rows <= _COLUMN_ROWS:
        return np.arange(n_rows)
    return np.sort(np.random.RandomState(1).choice(n_rows, _COLUMN_ROWS, replace=False))


def row_scales(sizes: Array) -> tuple[Array, Array, Array]:
    """Return three quantiles of every row of logarithms over the medians of their columns: 0.5, 0.2 and 0.8.

    Rows of nothing but NaN are left out.
    """
    ordered = np.sort(np.ascontiguousarray(sizes.T), axis=0)
    counts = (ordered == ordered).sum(axis=0)
    ordered, places = ordered[:, counts > 0], counts[counts > 0] - 1
    rows = np.arange(len(places))
    middle = (ordered[places // 2, rows] + ordered[(places + 1) // 2, rows]) / 2
    low, high = (ordered[np.floor(places * share).astype(np.intp), rows] for share in (0.2, 0.8))
    return middle, low, high


# -- raw counts -----------------------------------------------------------------------------------------------------


_LIBRARIES_APART = 1.3  # between the 95th and the 5th percentile of the totals of rows
_EVENED = 5  # factor by which logarithms raise the effective number of features
_LEAST_RAW = (20, 50)  # rows and columns


@dataclass(frozen=True)
class RawCounts:
    """Counts whose totals differ between rows, and whose variance lies in few columns unless logarithms are taken."""

    ratio: float  # 95th over 5th percentile of the totals
    n_raw: float  # effective number of columns of the rows at unit length
    n_log: float  # the same after log-CPM


def raw_counts(sample: Array) -> RawCounts | None:
    """Return measures of counts that should be normalised, None if it would change little.

    The effective number of columns is (Σ vⱼ)² / Σ vⱼ² of their variances vⱼ. Word counts, images and binary values
    gain less than a factor of two by logarithms; sequencing counts gain 10 to 100, because a few columns hold most of
    the counts. Values must be whole and not negative.
    """
    sums = sample.sum(axis=1)
    rows, sums = sample[sums > 0], sums[sums > 0]
    if len(rows) < _LEAST_RAW[0] or rows.shape[1] < _LEAST_RAW[1]:
        return None
    low, high = np.quantile(sums, [0.05, 0.95])
    if not high >= _LIBRARIES_APART * low:
        return None
    logs = np.log1p(rows * (1e6 / sums[:, None]))
    n_raw, n_log = (_n_effective(values) for values in (rows, logs))
    return RawCounts(float(high / low), n_raw, n_log) if 0 < _EVENED * n_raw <= n_log else None


def _n_effective(rows: Array) -> float:
    variances = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).var(axis=0)
    squares = float(np.square(variances).sum())
    return float(variances.sum() ** 2 / squares) if squares > 0 else 0.0


# -- two groups ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TwoGroups:
    """The best division of every column of logarithms into two groups, lower and upper."""

    n_lower: Array
    n_upper: Array
    shift: Array  # difference of the medians: the logarithm of the factor between the groups
    cut: Array  # values above it are in the upper group
    gap: Array  # between the largest of the lower and the smallest of the upper group
    width: Array  # the larger of the ranges of the groups
    spread: Array  # the larger of the robust standard deviations of the groups
    spread_ratio: Array  # the larger over the smaller one
    between: Array  # values in the middle half between the medians plus 1, over the size of the smaller group

    def separated(self, least_factor: float, least_distance: float, most_between: float) -> Array:
        """Return which columns have two groups that differ by a factor, with almost no values between them."""
        distance = self.shift / np.maximum(self.spread, _SAME_SPREAD)
        far = (self.shift >= np.log(least_factor)) & (distance >= least_distance)
        return np.asarray(far & (self.between <= most_between))


def two_groups(logs: Array) -> TwoGroups:
    """Divide every column into the two groups with the largest variance between them (Otsu); NaN are left out."""
    parts = [
        _divided(logs[:, begin : begin + _COLUMNS_AT_A_TIME]) for begin in range(0, logs.shape[1], _COLUMNS_AT_A_TIME)
    ]
    names = [each.name for each in fields(TwoGroups)]
    return TwoGroups(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def _divided(logs: Array) -> TwoGroups:
    ordered, columns = np.sort(logs, axis=0), np.arange(logs.shape[1])
    counts = (ordered == ordered).sum(axis=0)
    centred = np.nan_to_num(ordered - np.nan_to_num(ordered[0]))
    sums = np.cumsum(centred, axis=0)
    n_lower = np.arange(1, len(ordered) + 1)[:, None]
    n_upper = counts - n_lower
    least = np.maximum(_LEAST_COUNT, np.ceil(_LEAST_SHARE * counts))
    is_allowed = (n_lower >= least) & (n_upper >= least)
    means = sums / n_lower, (sums[-1] - sums) / np.maximum(n_upper, 1)
    variance = np.where(is_allowed, n_lower * n_upper * (means[1] - means[0]) ** 2, -1.0)
    last = variance.argmax(axis=0)  # of the lower group
    is_divided = variance[last, columns] > 0

    def at(place: Array) -> Array:
        return np.asarray(ordered[np.clip(place, 0, len(ordered) - 1), columns])

    def quantile(begin: Array | int, count: Array, share: float) -> Array:
        return at(begin + np.floor((count - 1) * share).astype(np.intp))

    first, n_rest = last + 1, np.maximum(counts - last - 1, 1)
    lower, upper = quantile(0, first, 0.5), quantile(first, n_rest, 0.5)
    ends = ((0, first), (first, n_rest))
    spreads = np.stack([(quantile(start, n, 0.84) - quantile(start, n, 0.16)) / 2 for start, n in ends])
    shift = np.where(is_divided, upper - lower, 0.0)
    inside = (ordered > lower + shift / 4) & (ordered < upper - shift / 4)
    floored = np.maximum(spreads, _SAME_SPREAD)
    return TwoGroups(
        n_lower=first,
        n_upper=n_rest,
        shift=shift,
        cut=(at(last) + at(first)) / 2,
        gap=np.where(is_divided, at(first) - at(last), 0.0),
        width=np.maximum(at(last) - at(last * 0), at(counts - 1) - at(first)),
        spread=spreads.max(axis=0),
        spread_ratio=floored.max(axis=0) / floored.min(axis=0),
        between=(inside.sum(axis=0) + 1) / np.minimum(first, n_rest),
    )
