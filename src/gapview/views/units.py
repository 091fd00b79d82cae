"""Values in other units: groups of rows or of values of a feature that differ by a factor, and new samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..utils.messages import counted, ignoring, number, percent
from ..utils.types import Array
from .codes import CODE_PROPOSAL, code_text, find_new_codes
from .measures import TwoGroups, column_medians, log_sizes, row_scales, sample_rows, some_columns, some_rows, two_groups

_LEAST_ROWS = 10
_LEAST_COLUMNS = 3  # from which the scale of a row can be estimated

# Rows: their scale is a median over features, so that small factors are detected where there are many
_MANY_COLUMNS = 10
_ROW_FACTOR, _ROW_FACTOR_OF_FEW, _ROW_DISTANCE, _ROW_BETWEEN = 2.3, 8.0, 4.0, 0.15
_PART_FACTOR, _PART_DISTANCE, _PART_BETWEEN = 50.0, 5.0, 0.1  # where a fifth of the values of a row differ
_OUTLIER_FACTOR, _OUTLIER_FACTOR_OF_FEW = 8.0, 30.0  # of any number of rows, with no other row between
_N_POLISHES = 3  # medians of columns and rows in turn: with few values, the median of a column may be in either unit
_LEAST_COARSE, _MOST_DECIMALS = 3, 7  # rows with fewer decimals than others, and decimals of these
# Features: natural groups of samples often differ by small factors
_FACTOR, _BETWEEN, _CLEAR_FACTOR, _CLEAR_BETWEEN = 8.0, 0.1, 200.0, 0.25
_DISTANCE, _SPREAD_RATIO = 4.0, 2.0
_LEAST_IN_GROUP = 8
_LEAST_LEVELS = 4  # different values in each group
_GAP, _GAP_WIDTHS = 100.0, 1.5  # between groups of any size, as a factor and over the logarithmic range of each group
_MOST_COLUMNS = 0.2  # share of the features that may be divided, each in other rows
_SAME_POWER = 1e-6
_OF_OTHER_SAMPLES, _MOST_COMPARED = 0.2, 20  # share of the other features that differ; features that are examined
_SAME_FACTOR = 1.0  # largest difference of logarithms

# New samples
_NEW_FACTOR = 3.0  # beyond the scales of all training samples
_SHIFT_FACTOR, _NEW_QUANTILES = 100.0, (0.1, 0.3, 0.5, 0.7, 0.9)  # between all quantiles of the scales
_OUTSIDE = 0.5  # share of the values
_NEGATIVE = 0.2  # share of the features
_FRACTIONS = 0.2  # share of the values other than 0

_CHECK = "Check the units of the {what}, and convert them."


def unit_findings(
    sample: Array, named: Callable[[Any], str], n_samples: int, *, are_counts: bool
) -> list[tuple[str, str, bool]]:
    """Return texts, proposals and whether they are warnings, on values of a view that may be in other units.

    Detected are rows whose values differ from those of all others by a factor of at least 2.3 (8 for counts and for
    fewer than ten features), and features whose values fall into two groups that differ by a factor of at least 8. The
    groups must be separated: with a large spread within them, only larger factors are detected.

    Parameters
    ----------
    sample : array of shape (n_rows, n_features)
        Some rows of the view; NaN are left out.
    named : callable
        Returns the names of columns for a message.
    n_samples : int
        Number of samples that have the view.
    are_counts : bool
        Whether the values are counts, of which totals differ between samples by nature.
    """
    if len(sample) < _LEAST_ROWS:
        return []
    about = "about " if len(sample) < n_samples else ""
    sizes = log_sizes(sample.copy())
    rows = some_rows(len(sample))
    found = _row_findings(sample, sizes, rows, about, are_counts)
    return found or _column_findings(sample[rows], sizes[rows], named, about if len(rows) == len(sample) else "about ")


def _row_findings(
    sample: Array, sizes: Array, rows: Array, about: str, are_counts: bool
) -> list[tuple[str, str, bool]]:
    if sizes.shape[1] < _LEAST_COLUMNS:
        return []
    columns = some_columns(sizes.shape[1])
    part = sizes[:, columns]
    part = part - column_medians(part[rows])
    is_known = (part == part).any(axis=1)
    part = part[is_known]
    if len(part) < _LEAST_ROWS:
        return []
    is_wide = part.shape[1] >= _MANY_COLUMNS
    middle, low, high = row_scales(part)
    factor = _ROW_FACTOR if is_wide and not are_counts else _ROW_FACTOR_OF_FEW
    groups = two_groups(middle[:, None])
    is_wide_spread = groups.shift[0] >= np.log(_ROW_FACTOR_OF_FEW)
    for _ in range(_N_POLISHES if is_wide_spread else 0):
        middle = row_scales(part - column_medians(part - middle[:, None]))[0]
        groups = two_groups(middle[:, None])
    if groups.separated(factor, _ROW_DISTANCE, _ROW_BETWEEN)[0]:
        return [_row_finding(groups, "most", about)]
    for scales in (low, high) if is_wide else ():
        groups = two_groups(scales[:, None])
        if groups.separated(_PART_FACTOR, _PART_DISTANCE, _PART_BETWEEN)[0]:
            return [_row_finding(groups, "many", about)]
    factor = _OUTLIER_FACTOR if is_wide and not are_counts else _OUTLIER_FACTOR_OF_FEW
    found = _outlying_rows(np.sort(middle), factor, about)
    return _coarse_rows(sample[is_known][:, columns], middle, about) if not found and is_wide_spread else found


def _row_finding(groups: TwoGroups, which: str, about: str) -> tuple[str, str, bool]:
    n_lower, n_upper = int(groups.n_lower[0]), int(groups.n_upper[0])
    text = (
        f"in {about}{percent(min(n_lower, n_upper) / (n_lower + n_upper))} of the samples, {which} values are "
        f"{'larger' if n_upper <= n_lower else 'smaller'} than in all others, by a factor of about "
        f"{_factor(groups.shift[0])}."
    )
    return text, _CHECK.format(what="samples"), True


def _outlying_rows(scales: Array, factor: float, about: str) -> list[tuple[str, str, bool]]:
    gaps = np.diff(scales)
    widest = int(gaps.argmax())
    if gaps[widest] < np.log(factor):
        return []
    n_lower, n_upper = widest + 1, len(gaps) - widest
    text = (
        f"in {about}{counted(min(n_lower, n_upper), 'sample')}, most values are "
        f"{'larger' if n_upper <= n_lower else 'smaller'} than in all others, by a factor of "
        f"{_factor(gaps[widest])} or more."
    )
    return [(text, _CHECK.format(what="samples"), True)]


def _coarse_rows(values: Array, scales: Array, about: str) -> list[tuple[str, str, bool]]:
    """Find rows that are larger than most others and have fewer decimals: in whole numbers, multiples of 100."""
    sizes = np.where(values == 0, np.nan, np.abs(values))
    cells = sizes[sizes == sizes]
    cells = cells[:: 1 + len(cells) // 5000]
    decimals = next((k for k in range(_MOST_DECIMALS) if _are_whole(cells * 10.0**k).mean() > 0.5), None)
    if decimals is None:
        return []
    is_coarse = (_are_whole(sizes * 10.0 ** (decimals - 2)) | (sizes != sizes)).all(axis=1)
    is_coarse &= np.fmax.reduce(sizes, axis=1) > np.fmin.reduce(sizes, axis=1)
    if not _LEAST_COARSE <= is_coarse.sum() <= len(values) / 2:
        return []
    shift = np.median(scales[is_coarse]) - np.median(scales[~is_coarse])
    if shift < np.log(_OUTLIER_FACTOR_OF_FEW):
        return []
    text = (
        f"in {about}{counted(int(is_coarse.sum()), 'sample')}, most values are larger than in the others, by a factor "
        f"of about {_factor(shift)}, and have fewer decimals or are multiples of 100."
    )
    return [(text, _CHECK.format(what="samples"), True)]


def _are_whole(values: Array) -> Array:
    """Return which values are whole numbers but for rounding in single precision."""
    return np.asarray(np.abs(values - np.rint(values)) <= np.minimum(1e-7 * values, 0.05))


def _column_findings(
    sample: Array, sizes: Array, named: Callable[[Any], str], about: str
) -> list[tuple[str, str, bool]]:
    n_features, whole = sample.shape[1], sample
    varying = np.flatnonzero(np.fmax.reduce(sizes) - np.fmin.reduce(sizes) >= np.log(_FACTOR))
    if not len(varying):
        return []
    sample, sizes = sample[:, varying], sizes[:, varying]
    groups = two_groups(sizes)
    is_divided = groups.separated(_FACTOR, _DISTANCE, _BETWEEN)
    is_divided |= groups.separated(_CLEAR_FACTOR, _DISTANCE, _CLEAR_BETWEEN)
    is_divided &= np.minimum(groups.n_lower, groups.n_upper) >= _LEAST_IN_GROUP
    is_divided &= groups.spread_ratio <= _SPREAD_RATIO
    is_apart = (groups.gap >= np.log(_GAP)) & (groups.gap >= _GAP_WIDTHS * groups.width)
    columns = [
        c
        for c in np.flatnonzero(is_divided | is_apart)
        if _has_levels(sample[:, c], sizes[:, c], groups.cut[c], is_apart=is_apart[c])
    ]
    if not columns:
        return []
    n_smaller, n_both = (pick([groups.n_lower[columns], groups.n_upper[columns]], axis=0) for pick in (np.min, np.sum))
    features = f"{counted(len(columns), 'feature')} ({named(varying[columns])})"
    text = (
        f"the values of {features} fall into two groups that differ by a factor of about "
        f"{_factor(np.median(groups.shift[columns]))}, the smaller one with {about}"
        f"{percent(float(np.median(n_smaller / n_both)))} of the samples."
    )
    is_clear = len(columns) <= max(1, _MOST_COLUMNS * n_features)
    is_clear = is_clear or _are_in_same_rows(sizes[:, columns], groups.cut[columns])
    others = np.delete(whole, varying[columns], axis=1)
    is_clear &= not all(
        _are_other_samples(others, sizes[:, c] > groups.cut[c], groups.shift[c]) for c in columns[:_MOST_COMPARED]
    )
    return [(text, _CHECK.format(what="features"), is_clear)]


def _are_other_samples(others: Array, is_upper: Array, shift: float) -> bool:
    """Return whether other features differ between two groups of rows, too, as they do between kinds of samples.

    Features that differ by the same factor may be in other units, too, and are left out.
    """
    if not others.shape[1] or is_upper.all() or not is_upper.any():
        return False
    upper, lower = others[is_upper], others[~is_upper]
    empty = ignoring("Mean of empty slice"), ignoring("Degrees of freedom <= 0 for slice")
    with np.errstate(invalid="ignore", divide="ignore"), empty[0], empty[1]:
        means = np.nanmean(upper, axis=0), np.nanmean(lower, axis=0)
        spread = np.sqrt((np.nanvar(upper, axis=0) + np.nanvar(lower, axis=0)) / 2)
        differs = np.abs(means[0] - means[1]) > spread
        differs &= ~(np.abs(np.abs(np.log(np.abs(means[0] / means[1]))) - shift) < _SAME_FACTOR)
    return bool(differs.sum() >= max(_LEAST_COLUMNS, _OF_OTHER_SAMPLES * others.shape[1]))


def _are_in_same_rows(sizes: Array, cuts: Array) -> bool:
    """Return whether columns are divided in the same rows; the upper group of one may be the lower one of another."""
    known, upper = sizes == sizes, sizes > cuts
    signs = np.where(known, np.where(upper, 1.0, -1.0), 0.0)
    signs *= np.where(signs.T @ signs[:, 0] < 0, -1.0, 1.0)
    agree = signs * np.where(signs.sum(axis=1) >= 0, 1.0, -1.0)[:, None]
    return bool((agree[known] > 0).mean() >= 0.95)


def _has_levels(values: Array, sizes: Array, cut: float, *, is_apart: bool) -> bool:
    """Return whether both groups have several values; whole numbers in other units have a common divisor.

    Of groups that are far apart, one may have a single value: that of most samples of the other one, times a power of
    ten.
    """
    known = sizes == sizes
    lower, upper = values[known & (sizes <= cut)], values[known & (sizes > cut)]
    fewer, more = sorted([len(np.unique(lower)), len(np.unique(upper))])
    if is_apart and fewer == 1 and more > 1:
        power = np.log10(np.median(np.abs(upper)) / np.median(np.abs(lower)))
        return bool(abs(power - np.rint(power)) < _SAME_POWER)
    if fewer < (2 if is_apart else _LEAST_LEVELS):
        return False
    if (values[known] != np.rint(values[known])).any() or np.abs(values[known]).max() > 2**53:
        return True
    return bool(np.gcd.reduce(np.abs(upper).astype(np.int64)) >= _FACTOR)


def _factor(shift: float) -> str:
    factor = float(f"{np.exp(min(shift, 700.0)):.2g}")
    return f"{factor:,.2g}" if factor < 100 else f"{factor:,.0f}" if factor < 1e6 else number(factor)


# -- new samples -------------------------------------------------------------------------------------------------------


def compare(new: Any, trained: Any) -> dict[str, str]:
    """Return messages on views of new samples whose values are unlike those of the training samples.

    Detected are codes for missing values far outside the range of training, values that differ by a factor from all
    training samples, values outside the range of training for most features, and negative values or fractions where
    there were none. Smaller differences are not detected.

    Parameters
    ----------
    new : Views
        New samples, with the views and features of training.
    trained : Views
        The training samples.

    Returns
    -------
    dict of str
        The difference and a proposal, for each view that is unlike training.
    """
    found = {}
    parts = zip(trained.names, new.in_parts(), trained.in_parts(), trained.feature_names, strict=True)
    for name, given, known, features in parts:
        if given.shape[0] and known.shape[0] >= _LEAST_ROWS:
            with np.errstate(over="ignore", invalid="ignore"):  # values near the largest number that a type holds
                what = _unlike(given, sample_rows(known, 1000), features)
            if what:
                found[name] = what
    return found


def _unlike(given: Any, known: Array, features: Array | None) -> str | None:
    """Return how a view of new samples differs from that of training, and a proposal; None if it does not."""
    columns, codes = find_new_codes(given, known)
    if len(codes):
        text = code_text(np.unique(codes), len(codes), np.unique(columns), features)
        return f"{text} outside the range of training. {CODE_PROPOSAL}"
    columns = some_columns(known.shape[1])
    what = _difference(sample_rows(given, 500)[:, columns], known[:, columns])
    proposal = "Check the units, and whether logarithms or a scaling were applied to one of them only."
    return f"{what}. {proposal}" if what else None


def _difference(given: Array, known: Array) -> str | None:
    """Return how new values differ from known ones; None if they do not differ clearly."""
    low, high = known.min(axis=0), known.max(axis=0)
    width = high - low
    varies = width > 0
    if not varies.any():
        return None
    given, known, low, high, width = (part[..., varies] for part in (given, known, low, high, width))
    sizes = log_sizes(known.copy())
    medians = column_medians(sizes)
    scales, new_scales = row_scales(sizes - medians)[0], row_scales(_logs(given) - medians)[0]
    if len(scales) and len(new_scales):
        middle = np.median(new_scales)
        beyond = max(middle - scales.max(), scales.min() - middle)
        shifts = np.subtract(*(np.quantile(each, _NEW_QUANTILES) for each in (new_scales, scales)))
        is_shifted = len(new_scales) >= _LEAST_ROWS and max(shifts.min(), -shifts.max()) >= np.log(_SHIFT_FACTOR)
        if beyond >= np.log(_NEW_FACTOR) or is_shifted:
            factor = abs(middle - np.median(scales))
            return f"most values are {'larger' if middle > 0 else 'smaller'} by a factor of about {_factor(factor)}"
    if low.min() >= 0 and (given < 0).any(axis=0).mean() >= _NEGATIVE:
        return f"{percent((given < 0).mean())} of the values are negative, and none was in training"
    is_fraction = (given != np.rint(given))[given != 0]
    if (known == np.rint(known)).all() and is_fraction.any() and is_fraction.mean() >= _FRACTIONS:
        return f"{percent(is_fraction.mean())} of the values other than 0 are fractions, and none was in training"
    outside = ((given < low - width) | (given > high + width)).mean()
    if outside >= _OUTSIDE:
        return f"{percent(outside)} of the values are far outside the range of training"
    return None


def _logs(values: Array) -> Array:
    with np.errstate(divide="ignore"):
        logs = np.log(np.abs(values))
    logs[~np.isfinite(logs)] = np.nan
    return np.asarray(logs)
