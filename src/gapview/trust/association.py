"""Association of the groups with a known partition of the samples: batches, patterns of missing views, categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from ..persist.registry import storable_record
from ..utils.messages import counted, p_value, shorten
from ..utils.shown import Shown, Table
from ..utils.types import Array

SIGNIFICANT = 0.05
WEAK = 0.1  # Cramér's V of a weak association
STRONG = 0.5  # Cramér's V of a large effect (Cohen 1988), and the same for the excess of a group in one part
CERTAIN = 0.01  # p-value below which a strong association is reported as an explanation of the groups
N_TABLES = 999
BATCH, MISSING_VIEWS = "batch", "missing views"
_CELLS_AT_A_TIME = 2_000_000
_ENOUGH = 5.0  # expected samples in every cell for the chi-square approximation
_N_LISTED = 3  # groups in a sentence

_VERBS = (
    "are not significantly associated with",
    "are very weakly associated with",
    "are associated with",
    "are largely explained by",
)
_FACTORS = {BATCH: "batch", MISSING_VIEWS: "which views a sample lacks"}
_PARTS = {BATCH: "batch", MISSING_VIEWS: "pattern"}
_ADVICE = {
    BATCH: "Differences between the batches may have made the groups, or the batches hold different kinds of samples; "
    "these data cannot separate the two. Compare the groups within one batch, or correct the batches before the fit.",
    MISSING_VIEWS: "Either views are missing for a reason that is related to the groups, or samples were grouped "
    "because they lack the same views. Compare the groups within one pattern of missing views.",
}


# -- two partitions ----------------------------------------------------------------------------------------------------


@storable_record
@dataclass(frozen=True)
class Association:
    """Association between two partitions of the same samples.

    Attributes
    ----------
    statistic, degrees : float, int
        Pearson's chi-square and its degrees of freedom.
    strength : float
        Cramér's V with bias correction (Bergsma 2013): 0, independent; 1, one partition determines the other.
    p_value : float
        Probability of a statistic at least as large if the two are independent.
    n_tables : int
        Number of random tables with the same margins for the p-value; 0 if it is from the chi-square distribution.

    Examples
    --------
    >>> from gapview.trust import associate
    >>> associate([0, 0, 0, 1, 1, 1] * 10, [0, 0, 0, 1, 1, 1] * 10).strength
    1.0
    """

    statistic: float
    degrees: int
    strength: float
    p_value: float
    n_tables: int

    @property
    def level(self) -> int:
        """0 for no significant association, 1 for a very weak one, 2 for a stronger one, 3 for a strong and sure one.

        The thresholds: p < 0.05; V ≥ 0.1; V ≥ 0.5 and p < 0.01.
        """
        if self.p_value >= SIGNIFICANT:
            return 0
        return 1 if self.strength < WEAK else 2 + (self.strength >= STRONG and self.p_value < CERTAIN)

    @property
    def figures(self) -> str:
        """The figures with their usual names."""
        drawn = f" from {self.n_tables} random tables" if self.n_tables else ""
        return (
            f"Cramér’s V = {self.strength:.2f}, χ² = {self.statistic:.3g}, df = {self.degrees}, "
            f"{p_value(self.p_value)}{drawn}"
        )


def associate(rows: Any, columns: Any) -> Association | None:
    """Test whether two partitions of the same samples are associated.

    The p-value is from the chi-square distribution if every cell has an expected count of at least five; otherwise
    from 999 random tables with the same margins, which is a permutation test.

    Parameters
    ----------
    rows, columns : array-like of shape (n_samples,)
        Codes of the parts.

    Returns
    -------
    Association or None
        None if one of the two has a single part.

    Examples
    --------
    >>> from gapview.trust import associate
    >>> associate([0, 0, 1, 1] * 20, [0, 1, 0, 1] * 20).p_value
    1.0
    """
    return _of_table(stats.contingency.crosstab(rows, columns).count)


def _of_table(counts: Array) -> Association | None:
    """Test a table of counts without empty rows and columns."""
    if min(counts.shape) < 2:
        return None
    tested = stats.chi2_contingency(counts, correction=False)
    statistic, expected = float(tested.statistic), tested.expected_freq
    from_distribution = bool(expected.min() >= _ENOUGH)
    found = float(tested.pvalue) if from_distribution else _drawn(statistic, counts, expected)
    strength = _strength(statistic, counts)
    return Association(statistic, int(tested.dof), strength, found, 0 if from_distribution else N_TABLES)


def _strength(statistic: float, counts: Array) -> float:
    n_samples, (n_rows, n_columns) = int(counts.sum()), counts.shape
    by_chance = (n_rows - 1) * (n_columns - 1) / (n_samples - 1)
    shape = [size - (size - 1) ** 2 / (n_samples - 1) for size in (n_rows, n_columns)]
    room = min(shape) - 1
    return float(np.sqrt(min(max(statistic / n_samples - by_chance, 0.0) / room, 1.0))) if room > 0 else 0.0


def _drawn(statistic: float, counts: Array, expected: Array) -> float:
    """Return the share of random tables with the same margins that have a statistic at least as large."""
    random_tables = stats.random_table(counts.sum(axis=1), counts.sum(axis=0))
    state = np.random.RandomState(0)
    at_a_time = max(1, min(N_TABLES, _CELLS_AT_A_TIME // counts.size))
    n_as_large = 0
    for begin in range(0, N_TABLES, at_a_time):
        tables = random_tables.rvs(min(at_a_time, N_TABLES - begin), random_state=state)
        differing = (np.square(tables - expected) / expected).sum(axis=(1, 2))
        n_as_large += int((differing >= statistic * (1 - 1e-9)).sum())  # up to rounding
    return (1 + n_as_large) / (1 + N_TABLES)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for multiple testing (Holm 1979), which controls the family-wise error rate.

    Parameters
    ----------
    p_values : sequence of floats
        The p-values of the tests.

    Returns
    -------
    list of floats
        In the order of ``p_values``, at most 1.

    Examples
    --------
    >>> from gapview.trust import holm
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    factors = len(p_values) - np.arange(len(p_values))
    adjusted: Any = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * np.asarray(p_values)[order]), 1.0)
    return [float(value) for value in adjusted]


# -- groups and a known partition --------------------------------------------------------------------------------------


@storable_record
@dataclass(frozen=True)
class GroupShare:
    """The part, such as a batch, in which one group is over-represented most.

    Attributes
    ----------
    group, n_samples : int
        The label of the group, and the number of its samples that were tested.
    part : str
        Name of the part: that with the largest standardised residual.
    share, expected : float
        Share of the group, and of all samples, that is in the part.
    adjusted : float
        Hypergeometric p-value, times the number of parts, adjusted for the number of groups (Holm).

    Examples
    --------
    >>> from gapview.trust import group_association
    >>> group_association([0] * 10 + [1] * 10, ["a"] * 9 + ["b"] * 11, "batch").groups[0].share
    0.9
    """

    group: int
    n_samples: int
    part: str
    share: float
    expected: float
    adjusted: float

    @property
    def is_explained(self) -> bool:
        """Whether most of the group is in the part: at least half of the way from the expected share to all of it."""
        return self.adjusted < CERTAIN and self.share - self.expected >= STRONG * (1 - self.expected)


@storable_record
@dataclass(frozen=True, repr=False)
class GroupAssociation(Shown):
    """Association of the groups with batches or with patterns of missing views; see :func:`group_association`.

    Attributes
    ----------
    factor : {"batch", "missing views"}
        What the groups were compared with.
    n_samples, n_parts : int
        Number of samples tested, and of batches or patterns.
    association : Association
        Test of all groups together.
    groups : tuple of GroupShare
        Test of every group.

    Examples
    --------
    >>> from gapview.trust import group_association
    >>> found = group_association([0] * 30 + [1] * 30, ["a"] * 30 + ["b"] * 30, "batch")
    >>> found.is_warning, found.association.strength
    (True, 1.0)
    """

    factor: str
    n_samples: int
    n_parts: int
    association: Association
    groups: tuple[GroupShare, ...]

    @property
    def explained(self) -> tuple[GroupShare, ...]:
        """The groups that lie mostly in one part."""
        return tuple(group for group in self.groups if group.is_explained)

    @property
    def is_warning(self) -> bool:
        """Whether a fit warns of it.

        The groups together are largely explained by the factor, or some groups are: any group for batches, which a user
        has asked for; groups with at least half of the samples for missing views, which are tested in every fit.
        """
        n_least = 1 if self.factor == BATCH else STRONG * self.n_samples
        return self.association.level == 3 or sum(one.n_samples for one in self.explained) >= n_least

    @property
    def sentence(self) -> str:
        """The result of the test of all groups in one sentence, with its figures."""
        verb, by = _VERBS[self.association.level], _FACTORS[self.factor]
        if self.explained and self.association.level < 3:
            verb, by = _VERBS[2], f"{by}, and some of them are largely explained by it"
        parts = counted(self.n_parts, _PARTS[self.factor])
        return f"The groups {verb} {by} ({self.association.figures}; {counted(self.n_samples, 'sample')}, {parts})."

    @property
    def group_sentence(self) -> str:
        """A sentence about the largest groups that lie mostly in one part; empty if there are none."""
        listed = [
            f"{one.share:.0%} of group {one.group} ({counted(one.n_samples, 'sample')}) are in "
            f"{shorten(one.part, 40)!r}, {one.expected:.0%} of all samples"
            for one in sorted(self.explained, key=lambda one: -one.n_samples)[:_N_LISTED]
        ]
        n_more = len(self.explained) - len(listed)
        more = f"; {counted(n_more, 'more group')} likewise" if n_more else ""
        return f"{'; '.join(listed)}{more}." if listed else ""

    @property
    def warning(self) -> str:
        """The result with its meaning and what to do, the text of the warning of a fit."""
        return " ".join(filter(None, (self.sentence, self.group_sentence, self.advice)))

    def _shown_as(self) -> Table:
        """Return the test of all groups, and of each."""
        columns = ("group", "samples", "most over-represented", "share", "of all samples", "adjusted p")
        rows = [tuple(vars(one).values()) for one in self.groups]
        return Table(self.sentence, columns, rows, [self.group_sentence] if self.group_sentence else [])

    @property
    def advice(self) -> str:
        """What an association can mean, and what to do."""
        return _ADVICE[self.factor]


def group_association(labels: Any, parts: Sequence[str | None], factor: str) -> GroupAssociation | None:
    """Test all groups together, and every group, for association with a known partition of the samples.

    All groups together: chi-square test and Cramér's V, see :func:`associate`. Every group: the share of its samples
    in the part in which it is over-represented most, with a hypergeometric test against all other samples, times the
    number of parts and adjusted for the number of groups (Holm).

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Group of every sample.
    parts : sequence of str or None
        Batch, or pattern of missing views, of every sample; None where it is not known.
    factor : {"batch", "missing views"}
        What the parts are, for the wording of the result.

    Returns
    -------
    GroupAssociation or None
        None if the samples with a known part are in one group or one part.

    Examples
    --------
    >>> from gapview.trust import group_association
    >>> found = group_association([0] * 30 + [1] * 30, ["a", "b"] * 30, "batch")
    >>> found.is_warning
    False
    >>> found.sentence[:59]
    'The groups are not significantly associated with batch (Cra'
    """
    place: dict[str, int] = {}
    codes = np.array([-1 if part is None else place.setdefault(part, len(place)) for part in parts], dtype=np.intp)
    return _association_of(np.asarray(labels)[codes >= 0], codes[codes >= 0], list(place), factor)


def missing_views_association(labels: Any, mask: Array, views: Sequence[str]) -> GroupAssociation | None:
    """Test all groups together, and every group, for association with the views that samples lack.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Group of every sample.
    mask : bool array of shape (n_samples, n_views)
        True where a sample has a view.
    views : sequence of str
        Names of the views.

    Returns
    -------
    GroupAssociation or None
        As of :func:`group_association`.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.trust.association import missing_views_association
    >>> mask = np.array([[True, True], [True, False]] * 30)
    >>> missing_views_association([0, 1] * 30, mask, ["blood", "scans"]).association.strength
    1.0
    """
    patterns, codes = count_patterns(mask)
    return _association_of(np.asarray(labels), codes, [pattern.name(views) for pattern in patterns], MISSING_VIEWS)


def _association_of(groups: Array, codes: Array, names: Sequence[str], factor: str) -> GroupAssociation | None:
    """Test groups for association with parts given as codes, each of which is the code of a sample."""
    numbers, own = np.unique(groups, return_inverse=True)
    shape = len(numbers), len(names)
    counts = np.bincount(own.ravel() * len(names) + codes, minlength=shape[0] * shape[1]).reshape(shape)
    association = _of_table(counts)
    if association is None:
        return None
    total, sizes, margins = counts.sum(), counts.sum(axis=1), counts.sum(axis=0)
    expected = np.outer(sizes, margins) / total
    variance = expected * np.outer(1 - sizes / total, 1 - margins / total)
    most = ((counts - expected) / np.sqrt(variance)).argmax(axis=1)
    inside = counts[np.arange(len(sizes)), most]
    p_values = stats.hypergeom.sf(inside - 1, total, margins[most], sizes)
    adjusted = holm(np.minimum(p_values * len(margins), 1.0).tolist())
    shares = tuple(
        GroupShare(int(number), int(size), names[part], float(n / size), float(margins[part] / total), p)
        for number, size, part, n, p in zip(numbers, sizes, most, inside, adjusted, strict=True)
    )
    return GroupAssociation(factor, int(total), len(margins), association, shares)


# -- missing views -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pattern:
    """A set of views that some samples have, and no others."""

    present: tuple[bool, ...]
    n_samples: int

    def name(self, views: Sequence[str]) -> str:
        """Return the names of the views that are present."""
        if all(self.present):
            return "all views" if len(views) > 1 else shorten(views[0])
        having = [shorten(name, 40) for name, has in zip(views, self.present, strict=True) if has]
        return f"only {having[0]}" if len(having) == 1 else ", ".join(having)


def count_patterns(mask: Array) -> tuple[tuple[Pattern, ...], Array]:
    """Return the patterns of missing views, the most frequent first, and the pattern of every sample.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.trust.association import count_patterns
    >>> patterns, codes = count_patterns(np.array([[True, True], [True, False], [True, True]]))
    >>> [pattern.name(["blood", "scans"]) for pattern in patterns], codes.tolist()
    (['all views', 'only blood'], [0, 1, 0])
    """
    codes = np.zeros(len(mask), dtype=np.intp)
    for present in mask.T:  # numbered without gaps after every view, in time that grows with the samples alone
        codes = 2 * codes + present
        codes = (np.cumsum(np.bincount(codes) > 0) - 1)[codes]
    counts = np.bincount(codes)
    kinds = np.empty((len(counts), mask.shape[1]), dtype=bool)
    kinds[codes] = mask
    # Equally frequent patterns are ordered by their number of views
    order = sorted(range(len(kinds)), key=lambda i: (-counts[i], -kinds[i].sum(), tuple(~kinds[i])))
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    return tuple(Pattern(tuple(kinds[i].tolist()), int(counts[i])) for i in order), place[codes]
