"""Kinds of views: their names, the kind that the values of a view suggest, and what a user gives for each view."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ParameterError, some
from ..utils.messages import check_choice, check_integer, shown
from ..utils.types import Array

KINDS = ("counts", "proteins", "binary", "categorical", "methylation", "compositional", "continuous")
AUTO = "auto"

_LEAST_FEATURES = 3  # from which shares of a whole, or many features of two values, are recognised
_MOST_PROTEINS = 1000
_LEAST_COUNTED, _LARGE_COUNT, _MEANS_APART, _GROWING = 10, 100, 10.0, 0.9  # of counts, by their means and variances
_PROTEIN = re.compile(r"(^|[^a-z])(adts?|prots?|proteins?|antibod(y|ies)|cite|surface)([^a-z]|$)", re.IGNORECASE)
_METHYLATION = re.compile(r"(^|[^a-z])(dna)?(meth|methyl|methylation|dnam|cpgs?|betas?)([^a-z]|$)", re.IGNORECASE)
_PROBE = re.compile(r"(cg|ch\.\d+\.)\d{6,}")
_SAME_TOTAL = 1e-3  # relative difference of the totals of rows


def kind_per_view(kind: Any, names: Sequence[str]) -> list[str | None]:
    """Return the kind of each view, None where none is given; "auto" stays.

    Parameters
    ----------
    kind : str, None, or list or dict of these
        For all views, one for each in their order, or by the names of some of them.
    names : sequence of str
        Names of the views.

    Examples
    --------
    >>> from gapview.views.kinds import kind_per_view
    >>> kind_per_view({"rna": "counts"}, ["rna", "scans"])
    ['counts', None]
    """
    kinds = _per_view("kind", kind, names, f"one of {', '.join(map(repr, (*KINDS, AUTO)))}")
    for name, one in zip(names, kinds, strict=True):
        check_kind(f"kind of '{name}'", one)
    return kinds


def top_per_view(n_top: Any, names: Sequence[str]) -> list[int | None]:
    """Return for each view the number of features to keep, None for all."""
    counts = _per_view("n_top_features", n_top, names, "a whole number from 1 on")
    for name, one in zip(names, counts, strict=True):
        check_integer(f"n_top_features of '{name}'", one, low=1, also=[None])
    return [None if one is None else int(one) for one in counts]


def check_kind(parameter: str, kind: Any) -> None:
    """Raise an error unless a value is the name of a kind, "auto" or None."""
    check_choice(parameter, kind, (*KINDS, AUTO, None))


def is_for_each(given: Any) -> bool:
    """Return whether a parameter is given for each view, and not once for all."""
    return isinstance(given, Mapping | list | tuple)


def _per_view(parameter: str, given: Any, names: Sequence[str], allowed: str) -> list[Any]:
    if not is_for_each(given):
        return [given] * len(names)
    expected = f"{parameter} must be {allowed}, in a list with one for each of the {len(names)} views, or in a dict"
    if isinstance(given, Mapping):
        unknown = [str(name) for name in given if name not in names]
        if unknown:
            raise ParameterError(
                f"{expected} by their names; no view is named {some(unknown)}: there are {some(names)}."
            )
        return [given.get(name) for name in names]
    if len(given) != len(names):
        raise ParameterError(f"{expected} by their names; got {shown(given)}.")
    return list(given)


def proposed_kind(name: str, features: Array | None, sample: Array, looks: str) -> str | None:
    """Return the kind that the values and the name of a view suggest; None if no kind would change them.

    Parameters
    ----------
    name : str
        Name of the view.
    features : array of str, optional
        Names of its features.
    sample : array of shape (n_rows, n_features)
        Some of its rows.
    looks : str
        What the values look like, see :class:`gapview.views.ViewDescription`.
    """
    totals, n_features = np.nansum(sample, axis=1), sample.shape[1]
    same_totals = n_features >= _LEAST_FEATURES and bool(
        np.ptp(totals) <= _SAME_TOTAL * np.abs(totals).max() and totals.min() > 0
    )
    if looks == "counts" or (looks == "integers" and _vary_as_counts(sample)):
        return "proteins" if n_features <= _MOST_PROTEINS and _PROTEIN.search(name) else "counts"
    if _has_two_values(sample):
        return "categorical" if same_totals and looks == "binary" else "binary"
    if looks == "shares" and (_METHYLATION.search(name) or _are_probes(features)):
        return "methylation"
    if looks in ("shares", "real") and np.nanmin(sample) >= 0 and same_totals:
        return "compositional"
    return None


def _vary_as_counts(sample: Array) -> bool:
    """Return whether whole numbers are large, and features of a larger mean vary more, over a wide range of means."""
    if sample.shape[1] < _LEAST_COUNTED or np.nanmin(sample) < 0 or np.nanmax(sample) < _LARGE_COUNT:
        return False
    means, variances = np.nanmean(sample, axis=0), np.nanvar(sample, axis=0)
    varies = variances > 0
    logs = np.log(np.stack([means[varies], variances[varies]]))
    if logs.shape[1] < _LEAST_COUNTED or np.ptp(np.quantile(logs[0], [0.05, 0.95])) < np.log(_MEANS_APART):
        return False
    return bool(np.corrcoef(logs)[0, 1] >= _GROWING)


def _has_two_values(sample: Array) -> bool:
    """Return whether there are several features, each of at most two values, of which one is 0."""
    if sample.shape[1] < _LEAST_FEATURES or np.nanmin(sample) != 0:
        return False
    largest = np.nanmax(sample, axis=0)
    return bool(((sample == 0) | (sample == largest) | np.isnan(sample)).all())


def _are_probes(features: Array | None) -> bool:
    some_names = [] if features is None else [str(each) for each in features[:200]]
    return bool(some_names) and sum(bool(_PROBE.match(each)) for each in some_names) >= 0.9 * len(some_names)


def kind_option(name: str, kind: str) -> str:
    """Return how a kind is given, for proposals: as a parameter and on the command line.

    Examples
    --------
    >>> from gapview.views.kinds import kind_option
    >>> kind_option("rna", "counts")
    "kind={'rna': 'counts'} (on the command line: --kind rna=counts)"
    """
    return f"kind={{{name!r}: {kind!r}}} (on the command line: {kind_argument(name, kind)})"


def kind_argument(name: str, kind: str) -> str:
    """Return the option of the command line that gives a kind, quoted for a shell."""
    return shlex.join(["--kind", f"{name}={kind}"])
