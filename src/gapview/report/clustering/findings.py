"""What to believe: the answer of the report in remarks of one line each."""

from __future__ import annotations

import math

from ...trust import GroupAssociation
from ...trust.assessment import small_groups
from ...utils.messages import NO_BREAK, joined, percent, shorten
from ..page import Findings, State
from .samples import DOUBTFUL
from .summary import Summary, p_value, share

_VALID = 0.75  # mean Jaccard similarity from which on Hennig (2007) calls groups valid
_MANY = 0.2  # share of samples of low confidence that is remarkable
_Remark = tuple[State, str, str]


def findings(summary: Summary) -> Findings:
    """Return whether the groups can be believed: structure, stability, views, confidence, gaps, batches and data."""
    n_groups = sum(group.n_samples > 0 for group in summary.groups)
    remarks = [_structure(summary, n_groups)]
    if n_groups > 1:
        remarks += [*_stability(summary), *_views(summary), _confidence(summary), *_small(summary)]
    remarks += [_missing(summary, n_groups), *_batches(summary), *_data(summary)]
    return Findings(tuple((state, term, _kept_together(text)) for state, term, text in remarks))


def _kept_together(text: str) -> str:
    """Return a text whose figures are not divided at the end of a line."""
    return text.replace(" = ", f"{NO_BREAK}={NO_BREAK}").replace(" %", f"{NO_BREAK}%")


def _structure(summary: Summary, n_groups: int) -> _Remark:
    found = summary.assessment
    if found is None or math.isnan(found.p_value):
        known = "one group" if n_groups == 1 else "not tested against data without groups"
        return "open", "Structure:", f"{known}."
    sentences = found.sentences()
    if n_groups == 1:
        best = "the best division into several cannot be distinguished from divisions of data without groups"
        return (
            "open",
            "Structure:",
            f"One group was chosen because {best} (p = {found.p_value:.2g}, parametric bootstrap). {sentences[1]}",
        )
    if found.has_structure:
        return "good", "There are groups.", sentences[0]
    return "bad", "There may be no groups.", f"{sentences[0]} Do not interpret the groups without other evidence."


def _stability(summary: Summary) -> list[_Remark]:
    found = summary.assessment
    if found is None or math.isnan(found.p_value):
        return []
    unstable = found.unstable_groups if found.has_structure else []
    text = " ".join(found.sentences()[1 : 2 + bool(unstable)])
    if unstable or not found.has_structure:
        return [("doubtful", "Some groups are unstable." if unstable else "Stability is no evidence.", text)]
    if found.stability < _VALID:
        return [("doubtful", "They are stable in part.", text)]
    return [("good", "They are stable.", text)]


def _views(summary: Summary) -> list[_Remark]:
    found = summary.assessment
    if found is None or math.isnan(found.agreement_p_value):
        return []
    agree = found.agreement_p_value <= found.alpha
    term = "The views agree." if agree else "The views do not agree."
    much = "more" if agree else "not significantly more"
    text = (
        f"They have {much} neighbours in common than by chance (p = {found.agreement_p_value:.2g}, permutation test)."
    )
    return [("good" if agree else "doubtful", term, text)]


def _confidence(summary: Summary) -> _Remark:
    n_doubtful = sum(group.n_doubtful for group in summary.groups)
    if summary.doubt is not None and not summary.is_calibrated:
        return "open", "Confidence:", "it does not support the groups, since it takes them as given."
    part = n_doubtful / summary.n_samples
    some = f"{n_doubtful:,} of the samples ({percent(part)}) have" if n_doubtful else "None of the samples has"
    text = f"{some} a confidence below {DOUBTFUL:g}."
    return (
        ("good", "The samples are assigned clearly.", text)
        if part <= _MANY
        else ("doubtful", "Many samples are in doubt.", text)
    )


def _small(summary: Summary) -> list[_Remark]:
    text = small_groups(summary.labels)
    return [] if text is None else [("doubtful", "Small groups:", text)]


def _missing(summary: Summary, n_groups: int) -> _Remark:
    gaps, n_views = summary.gaps, len(summary.views)
    if n_views == 1:
        return "good", "Missing views:", "there is one view."
    lacking = summary.n_samples - summary.n_complete
    if not lacking:
        return "good", "No views are missing.", f"All samples have all {n_views} views."
    some_of = "at least one of the" if n_views > 2 else "one of the"
    text = f"{lacking:,} samples ({percent(lacking / summary.n_samples)}) lack {some_of} {n_views} views."
    if gaps.tested is None:
        return "open", "Missing views:", text
    state: State = "bad" if gaps.tested.is_warning else "doubtful" if gaps.tested.association.level > 1 else "good"
    term = "Missing views do not explain the groups." if state == "good" else "The groups depend on missing views."
    return state, term, f"{text} {_association(gaps.tested)}"


def _batches(summary: Summary) -> list[_Remark]:
    tested = summary.batches
    if tested is None:
        return []
    state: State = "bad" if tested.is_warning else "doubtful" if tested.association.level > 1 else "good"
    term = "Batches do not explain the groups." if state == "good" else "The groups depend on batches."
    return [(state, term, _association(tested))]


def _association(tested: GroupAssociation) -> str:
    found = tested.association
    return f"Association: Cramér’s V = {share(found.strength)}, {p_value(found.p_value)}."


def _data(summary: Summary) -> list[_Remark]:
    doubtful = dict.fromkeys(shorten(one.view, 40) for one in summary.description.findings if one.is_warning)
    if not doubtful:
        return []
    return [
        ("bad", "Check the data first.", f"Remarks on {joined(list(doubtful)[:8])} are in “What the data look like”.")
    ]
