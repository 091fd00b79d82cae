"""Numbers and results in words."""

from __future__ import annotations

import math

from ...trust import FeatureEffect
from ...utils.messages import NO_BREAK, counted, joined, percent, spelled
from .covariates import Comparison
from .groups import DOUBTFUL, Association, Gaps, GroupFacts
from .summary import Summary

_LONGEST = 80  # characters of a name that are shown
_SIGNIFICANT = 0.05
_WEAK = 0.1  # Cramér's V of a weak association
_TINY = 0.001
_MOST_GROUPS = 200  # in one table


def share(value: float) -> str:
    """Return a number from 0 to 1 with two digits, a dash for NaN."""
    return "–" if math.isnan(value) else f"{value:.2f}".replace("-", "−")


def rounded(value: float) -> str:
    """Return a number of any size with three digits, a dash for NaN."""
    if math.isnan(value):
        return "–"
    text = f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"
    return text.replace("-", "−")


def p_value(value: float) -> str:
    """Return a p-value, as an upper bound if it is very small."""
    return f"p < {_TINY}".replace(" ", NO_BREAK) if value < _TINY else f"p{NO_BREAK}={NO_BREAK}{bare_p(value)}"


def bare_p(value: float) -> str:
    """Return a p-value for a column of a table."""
    if math.isnan(value):
        return "–"
    return f"<{NO_BREAK}{_TINY}" if value < _TINY else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def group_name(number: int) -> str:
    """Return the name of a group."""
    return f"group{NO_BREAK}{number}"


def shorten(text: str, longest: int = _LONGEST) -> str:
    """Return a long name with its middle replaced by an ellipsis."""
    if len(text) <= longest:
        return text
    half = (longest - 1) // 2
    return f"{text[:half]}…{text[len(text) - half :]}"


def signed(value: float) -> str:
    """Return an effect with its sign and one digit."""
    return ("+" if value > 0 else "−") + ("∞" if math.isinf(value) else f"{abs(value):.1f}")


def feature_name(effect: FeatureEffect, longest: int) -> str:
    """Return the name of a feature, or its position if it has none."""
    return shorten(effect.feature, longest) if isinstance(effect.feature, str) else f"feature {effect.feature}"


def pattern_name(summary: Summary, number: int) -> str:
    """Return the names of the views of a pattern."""
    names, present = [view.name for view in summary.views], summary.gaps.patterns[number].present
    if all(present):
        return "all views" if len(names) > 1 else shorten(names[0])
    having = [shorten(name, 40) for name, has in zip(names, present, strict=True) if has]
    return f"only {having[0]}" if len(having) == 1 else ", ".join(having)


def shown_groups(summary: Summary) -> list[GroupFacts]:
    """Return all groups, or the largest if there are too many for a table."""
    if len(summary.groups) <= _MOST_GROUPS:
        return list(summary.groups)
    largest = sorted(summary.groups, key=lambda group: -group.n_samples)[:_MOST_GROUPS]
    return sorted(largest, key=lambda group: group.number)


def answer(summary: Summary) -> tuple[str, ...]:
    """Return one sentence about the groups, and one about confidence and missing views."""
    sizes = sorted(group.n_samples for group in summary.groups if group.n_samples)
    samples = counted(summary.n_samples, "sample")
    if len(sizes) == 1:
        first = f"All {samples} are in one group."
    else:
        range_of = f"{sizes[0]:,} each" if sizes[0] == sizes[-1] else f"{sizes[0]:,} to {sizes[-1]:,}"
        first = f"The {samples} fall into {len(sizes)} groups of {range_of}."
    n_doubtful = sum(group.n_doubtful for group in summary.groups)
    some = f"{n_doubtful:,} of them ({percent(n_doubtful / summary.n_samples)}) have"
    doubt = f"{some if n_doubtful else 'None of them has'} a confidence below {DOUBTFUL:g}"
    gaps, views = summary.gaps, spelled(len(summary.views))
    if len(summary.views) == 1:
        missing = "there is one view"
    elif len(gaps.patterns) == 1 and summary.n_complete:
        missing = f"no sample lacks any of the {views} views"
    else:
        lacking = summary.n_samples - summary.n_complete
        missing = f"{lacking:,} ({percent(lacking / summary.n_samples)}) lack one of the {views} views"
        missing += " at least" if len(summary.views) > 2 else ""
        if gaps.association is not None:
            words = ("is not significantly associated", "is only weakly associated", "is associated")
            missing += f", and which ones they lack {words[_relation(gaps.association)]} with their group"
            missing += " (see below)" if _relation(gaps.association) == 2 else ""
    return first, f"{doubt}; {missing}."


def _relation(association: Association) -> int:
    """Return 0 for no significant association, 1 for a very weak one, 2 for a stronger one."""
    if association.p_value >= _SIGNIFICANT:
        return 0
    return 2 if association.strength >= _WEAK else 1


def strength_word(value: float, steps: tuple[float, float, float] = (_WEAK, 0.3, 0.5)) -> str:
    """Return a word for the size of an effect, by the usual thresholds."""
    words = ("very weakly", "weakly", "moderately", "strongly")
    return words[sum(value >= step for step in steps)]


def gap_sentence(gaps: Gaps, n_views: int) -> tuple[str, ...]:
    """Return sentences about the association of missing views with the groups."""
    if n_views == 1:
        return ("There is one view, and every sample has it.",)
    if len(gaps.patterns) == 1:
        return ("All samples have the same views: missing views cannot be associated with the groups.",)
    found = gaps.association
    if found is None:
        return ("There is one group only: missing views cannot be associated with the groups.",)
    drawn = f"; {found.n_tables} random tables" if found.n_tables else ""
    figures = f"Cramér’s V {share(found.strength)}, {p_value(found.p_value)}{drawn}"
    if _relation(found) == 0:
        return (
            f"Which views a sample lacks is not significantly associated with its group ({figures}). A weak "
            "association may still exist.",
        )
    if _relation(found) == 1:
        return (
            f"Which views a sample lacks is very weakly associated with its group ({figures}): more than by chance, "
            "but too little to explain the groups.",
        )
    driving = [gap.view for gap in gaps.views if gap.adjusted < _SIGNIFICANT]
    which = f" Views that contribute: {joined([shorten(name) for name in driving[:8]])}." if driving else ""
    return (
        f"Which views a sample lacks is {strength_word(found.strength)} associated with its group ({figures}).{which}",
        "Either the views are missing for a reason that is related to the groups, such as tests of severe cases only; "
        "or the method has grouped samples because they lack the same views. Compare groups within one pattern of "
        "missing views, on the map or in the data, before you use them.",
    )


def comparison_sentence(one: Comparison) -> str:
    """Return a sentence about the differences between the groups in one column."""
    figures = f"{p_value(one.p_value)}, {p_value(one.adjusted)} after Holm’s correction"
    if one.kind == "survival":
        found, word = f"log-rank test, chi-square {rounded(one.statistic)}", "significantly"
    elif one.kind == "numbers":
        found = f"Kruskal-Wallis test, ε² {share(one.strength)}"
        word = strength_word(one.strength, (0.01, 0.08, 0.26))
    else:
        how = f"chi-square by {one.n_tables} random tables" if one.n_tables else "chi-square test"
        found, word = f"{how}, Cramér’s V {share(one.strength)}", strength_word(one.strength)
    related = f"differ {word}" if one.adjusted < _SIGNIFICANT else "do not differ significantly"
    return f"The groups {related}: {found}; {figures}; {counted(one.n_samples, 'sample')}."
