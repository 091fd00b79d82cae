"""What the values of views look like: ranges, kinds of values, findings with proposals. Nothing is changed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from ..errors import extra
from ..utils.messages import counted, number, percent
from ..utils.shown import Shown, Table
from ..utils.types import Array
from .cells import unit_for_squares
from .codes import CODE_PROPOSAL, code_text, find_codes, names_of
from .kinds import kind_option, proposed_kind
from .measures import ColumnFacts, RawCounts, raw_counts, sample_rows, some_rows
from .units import unit_findings

_FEW_LEVELS = 20
_COUNT_TAIL = 8  # largest count of a column over the median of its positive counts
_LONG_TAIL = 50
_SCALES_APART = 100
_LOG_HIGH = (4, 30)  # largest value on a logarithmic scale

_LOG_CPM = (
    "Give {option}, or normalise them: np.log1p(1e6 * X / X.sum(axis=1, keepdims=True)), log-CPM, or scanpy's "
    "pp.normalize_total and pp.log1p. Otherwise the groups follow the few features with the largest counts."
)

_BATCH = "batch plate run site center centre lane donor hospital scanner institution chip slide operator instrument"
_OUTCOME = "label labels class target group cluster survival death dead status event outcome diagnosis os pfs dfs y"
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@dataclass(frozen=True)
class Finding:
    """Something about the values of a view that a user should know, and what to do about it."""

    view: str  # name of the view
    kind: str  # such as "counts", "missing codes", "units"
    text: str  # what was found
    proposal: str  # what to do about it
    is_warning: bool = False  # whether the result is doubtful unless something is done

    def __str__(self) -> str:
        return f"View '{self.view}': {self.text} {self.proposal}"

    @property
    def sentences(self) -> str:
        """What was found and what to do, without the name of the view."""
        return f"{self.text[:1].upper()}{self.text[1:]} {self.proposal}"


@dataclass(frozen=True)
class ViewDescription:
    """What the values of one view look like."""

    name: str
    n_samples: int  # that have the view
    n_features: int
    low: float
    high: float
    median: float  # of a sample of rows
    share_zeros: float
    share_integers: float
    kind: str  # "binary", "integers", "counts", "log", "shares", "standardised", "real" or "empty"
    findings: tuple[Finding, ...] = ()
    proposed_kind: str | None = None  # the value of ``kind`` of an estimator that suits the view; None: none is needed

    def settled(self) -> ViewDescription:
        """Return the description without the findings and the proposal that a kind settles."""
        findings = tuple(finding for finding in self.findings if finding.kind not in ("counts", "raw counts"))
        return replace(self, findings=findings, proposed_kind=None)

    def __str__(self) -> str:
        size = f"{self.name}: {counted(self.n_samples, 'sample')} × {counted(self.n_features, 'feature')}"
        if self.kind == "empty":
            return size
        size += f", {_KINDS[self.kind]}"
        if self.kind != "binary":
            size += f" from {number(self.low)} to {number(self.high)}, median {number(self.median)}"
        return size + (f", {percent(self.share_zeros)} zeros" if self.share_zeros else "")


_KINDS = {
    "binary": "values 0 and 1",
    "integers": "whole numbers",
    "counts": "counts",
    "log": "values on a logarithmic scale",
    "shares": "numbers",
    "standardised": "standardised values",
    "real": "numbers",
}


@dataclass(frozen=True, repr=False)
class Description(Shown):
    """What the values of views look like; built by :meth:`gapview.Views.describe`.

    Printed, it has one line for each view, and one for each finding.

    Attributes
    ----------
    views : tuple of ViewDescription
        One for each view: range, median, share of zeros and of whole numbers, kind of values, findings, and
        ``proposed_kind``.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview import Views
    >>> blood = np.random.RandomState(0).normal(50, 5, size=(40, 3)).round(1)
    >>> blood[[3, 8, 20, 31], 1] = -999
    >>> found = Views({"blood": blood}).describe()
    >>> found.views[0].low, found.views[0].kind
    (-999.0, 'real')
    >>> [finding.kind for finding in found.warnings]
    ['missing codes']
    """

    views: tuple[ViewDescription, ...]

    @property
    def proposed_kinds(self) -> dict[str, str]:
        """The value of ``kind`` of an estimator that suits each view, for views that need one."""
        return {view.name: view.proposed_kind for view in self.views if view.proposed_kind is not None}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, in the order of the views."""
        return tuple(finding for view in self.views for finding in view.findings)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that make a result doubtful unless something is done about them."""
        return tuple(finding for finding in self.findings if finding.is_warning)

    def with_kinds(self, kinds: Sequence[str | None]) -> Description:
        """Return the description without the findings that the kinds given for some views settle.

        Parameters
        ----------
        kinds : sequence of str or None
            The kind of each view.

        Examples
        --------
        >>> import numpy as np
        >>> from gapview import Views
        >>> cells = np.random.RandomState(0).negative_binomial(0.4, 0.02, size=(200, 40))
        >>> found = Views({"cells": cells}).describe()
        >>> [finding.kind for finding in found.findings], found.with_kinds(["counts"]).findings
        (['counts'], ())
        """
        pairs = zip(self.views, kinds, strict=True)
        return Description(tuple(view if kind is None else view.settled() for view, kind in pairs))

    def _shown_as(self) -> Table:
        """Return a row for every view, and the findings."""
        columns = ("view", "samples", "features", "lowest", "median", "highest", "zeros", "values", "proposed kind")
        names = ("name", "n_samples", "n_features", "low", "median", "high", "share_zeros", "kind", "proposed_kind")
        rows = [tuple(getattr(view, name) for name in names) for view in self.views]
        return Table("Values of the views", columns, rows, str(self).split("\n")[len(self.views) :])

    def __str__(self) -> str:
        marks = [f"{'Warning' if each.is_warning else 'Note'}: {each}" for each in self.findings]
        return "\n".join([*map(str, self.views), *marks])

    def to_frame(self) -> Any:
        """Return a pandas frame with a row for each view; findings are counted.

        Examples
        --------
        >>> import numpy as np
        >>> from gapview import Views
        >>> float(Views({"scans": np.arange(12.0).reshape(4, 3)}).describe().to_frame().loc["scans", "high"])
        11.0
        """
        pandas = extra("pandas", "tables", "A frame of the description")
        columns = [each.name for each in fields(ViewDescription) if each.name not in ("name", "findings")]
        rows = [[getattr(view, name) for name in columns] for view in self.views]
        frame = pandas.DataFrame(rows, columns=columns, index=[view.name for view in self.views])
        frame["n_findings"] = [len(view.findings) for view in self.views]
        frame["n_warnings"] = [sum(each.is_warning for each in view.findings) for view in self.views]
        return frame

    def to_dict(self) -> list[dict[str, Any]]:
        """Return plain dicts, one for each view, as ``run.json`` holds them."""
        return [asdict(view) for view in self.views]


def describe(views: Any) -> Description:
    """Describe the values of views; see :meth:`gapview.Views.describe`."""
    parts = zip(views.names, views.in_parts(), views.feature_names, strict=True)
    with np.errstate(over="ignore", invalid="ignore"):  # values near the largest number that a type holds
        return Description(tuple(_describe_view(name, view, features) for name, view, features in parts))


@dataclass(frozen=True)
class _Measured:
    """One view as its findings see it."""

    name: str
    features: Array | None
    n_samples: int
    facts: ColumnFacts
    sample: Array  # some of the rows; codes for missing are NaN once they are found
    kind: str

    def named(self, columns: Any) -> str:
        """Return the names, or the positions, of columns for a message."""
        return names_of(columns, self.features)

    @property
    def proposed(self) -> str | None:
        """The kind that the values suggest."""
        return proposed_kind(self.name, self.features, self.sample, self.kind)

    def finding(self, kind: str, text: str, proposal: str, *, is_warning: bool = False) -> Finding:
        return Finding(self.name, kind, text, proposal, is_warning)


def _describe_view(name: str, view: Any, features: Array | None) -> ViewDescription:
    n_samples, n_features = int(view.shape[0]), int(view.shape[1])
    if not n_samples or not n_features:
        return ViewDescription(name, n_samples, n_features, np.nan, np.nan, np.nan, 0.0, 0.0, "empty")
    facts, sample = ColumnFacts.of(view), sample_rows(view)
    n_cells = n_samples * n_features
    measured = _Measured(name, features, n_samples, facts, sample, "")
    codes = find_codes(sample, facts, n_samples)
    without = replace(measured, sample=_without(sample, codes)) if codes else measured
    without = replace(without, kind=_kind_of(without))
    found = _code_findings(measured, codes) + [
        Finding(name, "units", text, proposal, is_warning)
        for text, proposal, is_warning in unit_findings(
            without.sample, without.named, n_samples, are_counts=without.kind == "counts"
        )
    ]
    for check in _CHECKS:
        found += check(without)
    return ViewDescription(
        name,
        n_samples,
        n_features,
        float(facts.low.min()),
        float(facts.high.max()),
        float(np.median(sample[some_rows(len(sample))])),
        float(facts.n_zeros.sum()) / n_cells,
        float(facts.n_integers.sum()) / n_cells,
        without.kind,
        tuple(sorted(found, key=lambda finding: not finding.is_warning)),
        without.proposed,
    )


# -- codes for missing values ------------------------------------------------------------------------------------------


def _without(sample: Array, codes: dict[float, Array]) -> Array:
    cleaned = sample.copy()
    for code, columns in codes.items():
        part = cleaned[:, columns]
        part[part == code] = np.nan
        cleaned[:, columns] = part
    return cleaned


def _code_findings(view: _Measured, codes: dict[float, Array]) -> list[Finding]:
    if not codes:
        return []
    columns = np.unique(np.concatenate(list(codes.values())))
    n_coded = sum(int((view.sample[:, places] == code).sum()) for code, places in codes.items())
    about = " of the rows looked at" if len(view.sample) < view.n_samples else ""
    text = f"{code_text(codes, n_coded, columns, view.features, about)} from all other values."
    return [view.finding("missing codes", text, CODE_PROPOSAL, is_warning=True)]


# -- kinds of values ---------------------------------------------------------------------------------------------------


def _kind_of(view: _Measured) -> str:
    sample, n_cells = view.sample, view.n_samples * view.sample.shape[1]
    low, high = np.nanmin(sample), np.nanmax(sample)
    are_integers = int(view.facts.n_integers.sum()) == n_cells
    if are_integers and low >= 0 and high <= 1:
        return "binary"
    if are_integers:
        many = low >= 0 and high >= _FEW_LEVELS
        return "counts" if many and (_has_tail_of_counts(view) or _raw(view) is not None) else "integers"
    if low >= 0 and high <= 1:
        return "shares"
    if _is_log_of_counts(sample) or _has_range_of_logs(sample):
        return "log"
    means, deviations = np.nanmean(sample, axis=0), _deviations(sample)
    is_standard = (np.abs(means) < 0.2) & (np.abs(deviations - 1) < 0.2)
    return "standardised" if is_standard.mean() >= 0.9 else "real"


def _has_tail_of_counts(view: _Measured) -> bool:
    """Return whether a few values are much larger than the others, of their feature or, among many zeros, of all."""
    positive = view.sample[view.sample > 0]
    are_mostly_zero = len(positive) <= view.sample.size / 2
    return _tail(view.sample) >= _COUNT_TAIL or bool(
        are_mostly_zero and positive.max() >= _COUNT_TAIL * np.median(positive)
    )


def _raw(view: _Measured) -> RawCounts | None:
    return None if np.isnan(view.sample).any() else raw_counts(view.sample)


def _deviations(sample: Array) -> Array:
    """Return the standard deviation of every column, from some of the rows."""
    sample = sample[some_rows(len(sample))]
    unit = unit_for_squares(sample)
    return np.asarray(np.ldexp(np.nanstd(np.ldexp(sample, -unit), axis=0), unit))


def _tail(sample: Array) -> float:
    """Return the largest value of a column over the median of its positive values, in the median column."""
    ratios = []
    for column in sample.T[:: max(1, sample.shape[1] // 100)]:
        positive = column[column > 0]
        if len(positive) >= 5:
            ratios.append(positive.max() / np.median(positive))
    return float(np.median(ratios)) if ratios else 0.0


def _is_log_of_counts(sample: Array) -> bool:
    """Return whether the values are log(1 + count), with any base of 2, e or 10, also of counts scaled in each row."""
    rows = sample[:200]
    if np.nanmin(rows) < 0 or np.nanmax(rows) > _LOG_HIGH[1] or not (rows > 0).any():
        return False
    for base in (np.e, 2.0, 10.0):
        raw = np.power(base, rows) - 1
        positive = np.where(raw > 0, raw, np.inf)
        ratios = raw / np.minimum(positive.min(axis=1, keepdims=True), np.finfo(float).max)
        for counts in (raw, ratios):
            shown = counts[(counts > 1.5) & (counts < 1000)]
            if len(shown) >= 20 and (np.abs(shown - np.rint(shown)) <= 1e-3 * shown).mean() >= 0.99:
                return True
    return False


def _has_range_of_logs(sample: Array) -> bool:
    """Return whether values have the range of logarithms, without long tails or with a spread that does not grow."""
    high = np.nanmax(sample)
    if sample.shape[1] < 50 or not _LOG_HIGH[0] <= high <= _LOG_HIGH[1] or np.nanmin(sample) < -high:
        return False
    means, deviations = np.nanmean(sample, axis=0), _deviations(sample)
    if np.median(means) < 1 or means.std() == 0 or deviations.std() == 0:
        return False
    if np.nanmedian(sample) >= 3 and _tail(sample) <= 2.5:
        return True
    ranks = [np.argsort(np.argsort(values)) for values in (means, deviations)]
    return bool(np.corrcoef(ranks[0], ranks[1])[0, 1] <= 0.3)


def _kind_findings(view: _Measured) -> list[Finding]:
    if view.kind == "counts" and (found := _raw(view)) is not None:
        text = (
            f"the values look like raw counts: the totals of the samples differ by a factor of {found.ratio:.1f} (5th "
            f"to 95th percentile), and about {found.n_raw:.0f} of {view.sample.shape[1]:,} features hold most of the "
            f"variance, {found.n_log:.0f} after log-CPM."
        )
        proposal = _LOG_CPM.format(option=kind_option(view.name, view.proposed or "counts"))
        return [view.finding("raw counts", text, proposal, is_warning=True)]
    if view.kind == "counts":
        text = "the values look like counts: whole numbers from 0 on, few large ones."
        option = kind_option(view.name, view.proposed or "counts")
        return [view.finding("counts", text, f"Consider {option} or np.log1p, so that large counts do not dominate.")]
    if view.kind == "log":
        return [view.finding("log", "the values look like logarithms already.", "Do not take the logarithm again.")]
    is_positive = view.kind == "real" and np.nanmin(view.sample) >= 0 and np.nanmax(view.sample) > 100
    if is_positive and view.sample.shape[1] >= 10 and _tail(view.sample) >= _LONG_TAIL:
        text = "the values are not negative, and a few are much larger than all others of their feature."
        return [view.finding("skewed", text, "Consider np.log1p, so that they do not dominate.")]
    return []


def _scale_findings(view: _Measured) -> list[Finding]:
    deviations = _deviations(view.sample)
    deviations = deviations[deviations > 0]
    if view.kind in ("counts", "binary", "log", "standardised") or len(deviations) < 2:
        return []
    smallest, largest = np.quantile(deviations, [0.05, 0.95], method="nearest")
    if largest / smallest < _SCALES_APART:
        return []
    text = f"the features have very different scales: standard deviations from {number(smallest)} to {number(largest)}."
    proposal = "Choose scale='standard', which gives all features the same weight, or scale='auto'."
    return [view.finding("scales", text, proposal)]


# -- columns -----------------------------------------------------------------------------------------------------------


def _repeated_columns(view: _Measured) -> list[Finding]:
    facts = view.facts
    is_constant = facts.low == facts.high
    found = []
    if is_constant.any() and view.n_samples > 1:
        columns = np.flatnonzero(is_constant)
        verb = "has" if len(columns) == 1 else "have"
        text = f"{counted(len(columns), 'feature')} of {is_constant.size:,} {verb} the same value in all samples: "
        proposal = "Leave constant features out: they do not distinguish samples."
        found.append(view.finding("constant", text + view.named(columns) + ".", proposal))
    groups = defaultdict(list)
    for column in np.flatnonzero(~is_constant):
        groups[facts.digest[column], facts.low[column], facts.high[column]].append(column)
    repeats = [columns for columns in groups.values() if len(columns) > 1]
    if repeats:
        extra_ones = sorted(column for columns in repeats for column in columns[1:])
        first = "; ".join(f"{view.named(columns)}" for columns in repeats[:3])
        verb = "repeats" if len(extra_ones) == 1 else "repeat"
        text = f"{counted(len(extra_ones), 'feature')} {verb} another one exactly. The same values have: {first}"
        text += f", and {counted(len(repeats) - 3, 'more set')}." if len(repeats) > 3 else "."
        found.append(view.finding("duplicates", text, "Leave the repeats out, unless they should have more weight."))
    return found


def _named_columns(view: _Measured) -> list[Finding]:
    """Find columns that look like batches or outcomes by their names and number of levels."""
    most = max(2, min(_FEW_LEVELS, len(view.sample) // 4))
    few = np.flatnonzero(_n_levels(view.sample[:100]) <= most)
    few = few[_n_levels(view.sample[:, few]) <= most]
    found = []
    if view.features is not None:
        words = {int(column): _words(str(view.features[column])) for column in range(len(view.features))}
        outcomes = [c for c in words if (words[c] & set(_OUTCOME.split()) and c in few) or _is_time_of_event(words[c])]
        batches = [c for c in words if words[c] & set(_BATCH.split()) and c in few and c not in outcomes]
        limit = max(3, len(words) // 20)  # more of them are ordinary features
        if 0 < len(outcomes) <= limit:
            text = f"{_are(outcomes, 'look', view)} like a result or a known group of the samples."
            proposal = f"Leave {_it(outcomes)} out: groups found from outcomes agree with them by construction."
            found.append(view.finding("outcome", text, proposal))
        if 0 < len(batches) <= limit:
            text = f"{_are(batches, 'look', view)} like a batch or an origin of the samples."
            it = _it(batches)
            found.append(view.finding("batch", text, f"Leave {it} out, and compare {it} with the groups afterwards."))
        few = np.array([column for column in few if column not in (*outcomes, *batches)], dtype=np.intp)
    levels = [c for c in few if view.facts.n_integers[c] == view.n_samples and view.facts.low[c] < view.facts.high[c]]
    n_whole = int((view.facts.n_integers == view.n_samples).sum())
    if levels and n_whole <= 0.2 * view.sample.shape[1] and view.n_samples >= 20:
        text = f"{_are(levels, 'hold', view)} few whole numbers, while other features are measured values."
        proposal = "If these are codes of categories or batches, leave them out or encode them as columns of 0 and 1."
        found.append(view.finding("levels", text, proposal))
    return found


def _are(columns: Any, verb: str, view: _Measured) -> str:
    one = len(columns) == 1
    return f"the feature{'' if one else 's'} {view.named(columns)} {verb}{'s' if one else ''}"


def _it(columns: Any) -> str:
    return "it" if len(columns) == 1 else "them"


def _n_levels(sample: Array) -> Array:
    ordered = np.sort(sample, axis=0)
    return np.asarray(1 + (np.diff(ordered, axis=0) > 0).sum(axis=0))


def _words(name: str) -> set[str]:
    """Return the words of a name in lower case: 'os.time' and 'OSTime' have the words os and time."""
    return {word.lower() for word in _WORD.findall(name)}


def _is_time_of_event(words: set[str]) -> bool:
    times, events = {"time", "days", "months", "years", "mo"}, {"survival", "death", "event", "os", "pfs", "dfs"}
    return bool(words & times and words & events) or "survival" in words


_CHECKS: tuple[Callable[[_Measured], list[Finding]], ...] = (
    _kind_findings,
    _scale_findings,
    _repeated_columns,
    _named_columns,
)
