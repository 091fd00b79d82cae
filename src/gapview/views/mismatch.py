"""Sample ids that do not match between two views: the rewrite that makes most of them equal."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from heapq import nsmallest
from typing import Any

from ..utils.messages import counted, joined
from .id_patterns import NAMED, read_pattern

QUOTES = "[\"'`\\u2018-\\u201f\\u00b4]=>"
# Changes of form of both sides: name, pattern, and what an id must have to be changed
FORMS = (
    ("white space or invisible characters", "spaces", NAMED["spaces"].removesuffix("=>")),
    ("the Unicode form", "nfkc", r"[^\x00-\x7f]"),
    ("look-alike hyphens", "hyphens", NAMED["hyphens"].removesuffix("=>-")),
    ("quotation marks", QUOTES, QUOTES.removesuffix("=>")),
    ("case", "lower", r"[A-Z\u0080-\uffff]"),
    ("leading zeros", "zeros", NAMED["zeros"].removesuffix("=>")),
    ("look-alike letters", "ascii", r"[\u0370-\u03ff\u0400-\u052f]"),
    ("accents", "ascii", r"[\u00c0-\u024f\u0300-\u036f\u1e00-\u1eff]"),
    ("decimal places", r"^(\d+)\.0+$=>\1", r"\d\.0+(?!\d)"),
)
_NO_SEPARATORS = r"[-._/:\s]+=>"
_SEPARATED = (("separators", "separators", r"[-._/:\s]"), ("separators", _NO_SEPARATORS, r"[-._/:\s]"))
_SEPARATORS = "-._/: "
_SHARE = 0.2  # of the ids of the smaller side that have no counterpart
_N_SAMPLED = 2000  # ids from which cuts are derived
_N_SEARCHED = 5000  # ids of each side that the rewrites are tried on
_LONGEST_ID = 100


@dataclass(frozen=True)
class Proposal:
    """A rewrite that makes ids of two views equal.

    Attributes
    ----------
    what : str
        What differs, as "case" or "the ending '-01A'".
    n_pairs : int
        The number of samples that both views have after the rewrite and not before.
    examples : tuple of (left id, right id)
        Some of these, as they were before.
    pattern : str, list or dict
        The value of ``id_pattern`` that performs the rewrite.
    text : str
        A sentence of advice with an example, the parameter and the command-line option.
    short : str
        The same without the example.
    """

    what: str
    n_pairs: int
    examples: tuple[tuple[str, str], ...]
    pattern: Any
    text: str
    short: str


@dataclass(frozen=True)
class _Candidate:
    what: str
    left: tuple[str, ...]  # patterns of the left side, in order
    right: tuple[str, ...]
    is_form: bool = False  # only the form of the ids differs: one pair is enough
    n_needed: int = 3


@dataclass(frozen=True)
class _Sides:
    """The ids of both sides, and those that only one side has."""

    left: list[str]
    right: list[str]
    only_left: list[str]
    only_right: list[str]
    n_shared: int

    @classmethod
    def of(cls, left: list[str], right: list[str]) -> _Sides:
        lefts, rights = set(left), set(right)
        only_left = [key for key in left if key not in rights]
        only_right = [key for key in right if key not in lefts]
        return cls(left, right, only_left, only_right, len(lefts & rights))


def explain_mismatch(
    left: Sequence[str],
    right: Sequence[str],
    names: tuple[str, str] = ("left", "right"),
    *,
    partial: bool = False,
) -> Proposal | None:
    """Return the rewrite that makes most ids of two views equal one to one, or None.

    Single rewrites are tried first, then two of them. No rewrite is returned that merges ids within a view.

    Parameters
    ----------
    left, right : sequence of str
        The ids of two views. Each is unique.
    names : tuple of str
        The names of the two views, for ``pattern`` and ``text``.
    partial : bool, default=False
        Whether other ids match as they are. Then only one side is shortened, and rewrites that change nothing but the
        form (case, leading zeros and so on) are left to :func:`~gapview.views.ids.report_similar`.

    Examples
    --------
    >>> proposal = explain_mismatch(["S1-01A", "S2-01A", "S3-01A"], ["S1", "S2", "S3"], ("rna", "protein"))
    >>> proposal.what, proposal.n_pairs, proposal.pattern
    ("the ending '-01A'", 3, {'rna': '-01A$=>'})
    """
    full = sides = _Sides.of(list(left), list(right))
    if max(len(sides.only_left), len(sides.only_right)) > _N_SEARCHED:
        sides = _Sides.of(_first_in_order(sides.only_left), _first_in_order(sides.only_right))
    candidate = _search(sides, partial) if sides.only_left and sides.only_right else None
    best = None if candidate is None else _best(full, [candidate])
    return None if best is None else _proposal(full, names, *best)


def _first_in_order(keys: list[str]) -> list[str]:
    """Return the first ids in an order that does not depend on case, separators or leading zeros.

    The first of two sides are then mostly the same samples, although their ids differ.
    """
    text = re.sub(r"(?<!\d)0+(?=\d)", "", re.sub(r"[-._/:\s]+", "", "\x00".join(keys).lower()))
    return [key for _, key in nsmallest(_N_SEARCHED, zip(text.split("\x00"), keys, strict=True))]


def _search(sides: _Sides, partial: bool) -> _Candidate | None:
    """Return the rewrite, or the two rewrites, that make most ids equal."""
    smaller = min(len(sides.only_left), len(sides.only_right))
    effective = [c for c in _forms(sides) if _rewritten(sides, c) is not None]
    best = _best(sides, [*(c for c in effective if not (partial and c.is_form)), *_shortenings(sides, partial)])
    if best is not None and best[1] >= 0.9 * smaller:
        return best[0]
    better = _best(sides, [c for c in _combined(sides, effective, partial) if not (partial and c.is_form)])
    if better is not None and (best is None or better[1] > 1.2 * best[1]):
        best = better
    return None if best is None else best[0]


def _combined(sides: _Sides, forms: Sequence[_Candidate], partial: bool) -> Iterator[_Candidate]:
    """Yield two rewrites one after the other, and all changes of form followed by one rewrite."""
    every = [candidate for candidate in forms if candidate.left != (_NO_SEPARATORS,)]
    firsts = list(forms)
    if len(every) > 1:
        firsts.append(reduce(_then, every))
    for first in firsts:
        changed = _rewritten(sides, first)
        if changed is not None:
            after = _Sides.of(*changed)
            yield from (_then(first, second) for second in _forms(after) if second.what not in first.what)
            yield from (_then(first, second) for second in _shortenings(after, partial))


def _then(first: _Candidate, second: _Candidate) -> _Candidate:
    return _Candidate(
        f"{first.what} and {second.what}",
        first.left + second.left,
        first.right + second.right,
        first.is_form and second.is_form,
        max(first.n_needed, second.n_needed),
    )


def _best(sides: _Sides, candidates: Sequence[_Candidate]) -> tuple[_Candidate, int] | None:
    """Return the candidate that adds most shared ids; the first of several that add the same number."""
    best: tuple[_Candidate, int] | None = None
    smaller = min(len(sides.only_left), len(sides.only_right))
    for candidate in candidates:
        changed = _rewritten(sides, candidate)
        if changed is None:
            continue
        gain = len(set(changed[0]).intersection(changed[1])) - sides.n_shared
        if (best is None or gain > best[1]) and _is_clear(sides, candidate, changed, gain, smaller):
            best = candidate, gain
            if gain == smaller:
                break
    return best


def _is_clear(
    sides: _Sides, candidate: _Candidate, changed: tuple[list[str], list[str]], gain: int, smaller: int
) -> bool:
    """Return whether enough ids become equal: a clear share of all that do not match, or half of those changed."""
    if candidate.is_form:
        return gain > 0
    if gain < (min(smaller, 3) if candidate.n_needed == 3 else candidate.n_needed):
        return False
    if gain >= _SHARE * smaller or candidate.left == ("separators",):
        return True
    n_left, n_right = (
        sum(1 for old, new in zip(*each, strict=True) if old != new)
        for each in ((sides.left, changed[0]), (sides.right, changed[1]))
    )
    return 2 * gain >= max(n_left, n_right)


def _rewritten(sides: _Sides, candidate: _Candidate) -> tuple[list[str], list[str]] | None:
    """Return the ids of both sides after a rewrite, or None if it merges ids of one side or changes nothing."""
    left, right = _applied(sides.left, candidate.left), _applied(sides.right, candidate.right)
    if len(set(left)) < len(set(sides.left)) or len(set(right)) < len(set(sides.right)):
        return None
    return None if left == sides.left and right == sides.right else (left, right)


def _applied(keys: list[str], patterns: tuple[str, ...]) -> list[str]:
    if not patterns:
        return keys
    [pattern] = read_pattern(list(patterns), ["-"])
    assert pattern is not None
    return [key if new is None else new for key, new in zip(keys, pattern(keys), strict=True)]


# -- candidates ------------------------------------------------------------------------------------------------


def _forms(sides: _Sides) -> Iterator[_Candidate]:
    """Yield the changes of form that change an id of one side only."""
    texts = "\x00".join(sides.only_left), "\x00".join(sides.only_right)
    for what, pattern, needed in (*FORMS, *_SEPARATED):
        if any(re.search(needed, text) for text in texts):
            is_form = pattern not in ("separators", _NO_SEPARATORS)
            if pattern == "separators":
                what = _which_separators(*texts)
            yield _Candidate(what, (pattern,), (pattern,), is_form)


def _which_separators(left: str, right: str) -> str:
    """Return which separators differ, if each side has one kind."""
    kinds = [{character for character in _SEPARATORS if character in text} for text in (left, right)]
    if all(len(kind) == 1 for kind in kinds) and kinds[0] != kinds[1]:
        return f"{kinds[0].pop()!r} in place of {kinds[1].pop()!r}"
    return "separators"


def _shortenings(sides: _Sides, partial: bool) -> Iterator[_Candidate]:
    """Yield rewrites that remove a part of the ids of one side; unless partial, also those of both sides."""
    for what, pattern, n_needed in _cuts(sides.only_left, set(sides.only_right), partial):
        yield _Candidate(what, (pattern,), (), n_needed=n_needed)
        yield _Candidate(what, (pattern,), (pattern,), n_needed=n_needed)  # some ids of the right side are cut already
    for what, pattern, n_needed in _cuts(sides.only_right, set(sides.only_left), partial):
        yield _Candidate(what, (), (pattern,), n_needed=n_needed)
        yield _Candidate(what, (pattern,), (pattern,), n_needed=n_needed)
    if not partial:
        yield from _cuts_of_both(sides)


def _cuts(keys: list[str], others: set[str], partial: bool) -> Iterator[tuple[str, str, int]]:
    """Yield the cuts by which most of a sample of ids become one of the others, and the number of ids they need."""
    votes: Counter[tuple[str, str, int, str]] = Counter()
    sampled = _sampled(keys)
    for key in sampled:
        for k in range(1, min(len(key), _LONGEST_ID)):
            if key[k:] in others and not key[:k].isdigit():
                votes["beginning", key[:k], 0, ""] += 1
                if key[k - 1] in _SEPARATORS:
                    votes["head", key[k - 1], key[:k].count(key[k - 1]), ""] += 1
            if key[:k] in others and not key[k:].isdigit():
                votes["ending", key[k:], 0, ""] += 1
                if key[k] in _SEPARATORS:
                    votes["tail", key[k], key[:k].count(key[k]), ""] += 1
                    field = key[k + 1 :].split(key[k], 1)[0]
                    votes["field", key[k], key[:k].count(key[k]), field] += 1
                    votes["last", key[k], key[k:].count(key[k]), ""] += 1
    chosen: Counter[str] = Counter()
    for (kind, text, number, field), n_votes in votes.most_common(50):
        if chosen[kind] < 2 and (n_votes >= 0.1 * len(sampled) or n_votes >= 3):
            chosen[kind] += 1
            inner = text[-1] if kind == "beginning" else text[0]
            yield *_cut(kind, text, number, field), 6 if partial and inner.isalpha() and text != "X" else 3


def _cut(kind: str, text: str, number: int = 0, field: str = "") -> tuple[str, str]:
    """Return the name and the pattern of a cut."""
    if kind == "beginning":
        return f"the beginning {text!r}", f"^{_escaped(text)}=>"
    if kind == "ending":
        return f"the ending {text!r}", f"{_escaped(text)}$=>"
    sign, other = _escaped(text), f"[^{text}]*"
    if kind == "head":
        return f"the part before the {_ordinal(number)} {text!r}", f"^(?:{other}{sign}){{{number}}}=>"
    if kind == "last":
        return (f"the part after the last {text!r}" if number == 1 else f"the last {number} parts after {text!r}"), (
            f"(?:{sign}{other}){{{number}}}$=>"
        )
    before = f"(?:{other}{sign}){{{number}}}" if number else ""
    what = f"the part after the {_ordinal(number + 1)} {text!r}"
    if field:
        return f"{what} where it begins with {field!r}", f"^({before}{other}){sign}{_escaped(field)}(?:{sign}.*)?$=>\\1"
    return what, f"^({before}{other}){sign}.*=>\\1"


def _cuts_of_both(sides: _Sides) -> Iterator[_Candidate]:
    """Yield rewrites that remove a part on each side: different beginnings or endings, or all but the first fields."""
    for kind, find in (("ending", _endings), ("beginning", _beginnings)):
        for one in find(sides.only_left):
            for other in find(sides.only_right):
                if re.sub(r"\d+", "", one) != re.sub(r"\d+", "", other):  # 'p1_' and 'p2_' are parts of names
                    cuts = _cut(kind, one)[1], _cut(kind, other)[1]
                    yield _Candidate(f"the {kind}s {one!r} and {other!r}", (cuts[0],), (cuts[1],))
    for sign in _SEPARATORS:
        fields = [max((key.count(sign) for key in _sampled(keys)), default=0) for keys in _onlies(sides)]
        for number in range(min(*fields, 8) - 1, -1, -1):
            what, pattern = _cut("tail", sign, number)
            yield _Candidate(what, (pattern,), (pattern,))


def _onlies(sides: _Sides) -> tuple[list[str], list[str]]:
    return sides.only_left, sides.only_right


def _endings(keys: list[str]) -> list[str]:
    return _common(keys, (r"[-._/: ][^-._/: ]+$", r"(?:[-._/: ][^-._/: ]+){2}$", r"(?<=\d)[A-Za-z]+$"))


def _beginnings(keys: list[str]) -> list[str]:
    return _common(keys, (r"^[^-._/: ]+[-._/: ]", r"^(?:[^-._/: ]+[-._/: ]){2}", r"^[A-Za-z]+(?=\d)"))


def _common(keys: list[str], expressions: Sequence[str]) -> list[str]:
    """Return the matches that at least half of a sample of ids have."""
    sampled = _sampled(keys)
    found: list[str] = []
    for expression in expressions:
        matches = Counter(match.group() for key in sampled if (match := re.search(expression, key)))
        found += [text for text, count in matches.most_common(1) if 2 * count >= len(sampled)]
    return found


def _sampled(keys: list[str]) -> list[str]:
    return keys[:: max(1, len(keys) // _N_SAMPLED)]


def _escaped(text: str) -> str:
    return re.sub(r"([.^$*+?{}()\[\]\\|])", r"\\\1", text)


def _ordinal(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}th")


# -- advice ----------------------------------------------------------------------------------------------------


def _proposal(sides: _Sides, names: tuple[str, str], candidate: _Candidate, n_pairs: int) -> Proposal:
    left = dict(zip(_applied(sides.only_left, candidate.left), sides.only_left, strict=True))
    right = dict(zip(_applied(sides.only_right, candidate.right), sides.only_right, strict=True))
    examples = tuple((left[key], right[key]) for key in left if key in right)[:3]
    value, options = _as_parameter(names, candidate)
    listed = joined([f"{one!r} and {other!r}" for one, other in examples[:1]])
    shown = f"for instance {listed}" if examples else "after the rewrite"
    found = f"{counted(n_pairs, 'id')} of both match but for {candidate.what}"
    advice = f"if these are the same samples, give id_pattern={value!r} (on the command line: {options})."
    text, short = f"{found}, {shown}: {advice}", f"{found}: {advice}"
    return Proposal(candidate.what, n_pairs, examples, value, text, short)


def _as_parameter(names: tuple[str, str], candidate: _Candidate) -> tuple[Any, str]:
    """Return the value of id_pattern that performs a rewrite, and the options of the command line."""
    common = [one for one, other in zip(candidate.left, candidate.right, strict=False) if one == other]
    own = {
        name: list(steps[len(common) :])
        for name, steps in zip(names, (candidate.left, candidate.right), strict=True)
        if len(steps) > len(common)
    }
    options = [*common, *(f"{name}={step}" for name, steps in own.items() for step in steps)]
    if not own:
        value = _single(common)
    elif not common:
        value = {name: _single(steps) for name, steps in own.items()}
    else:
        value = {name: _single(common + own.get(name, [])) for name in names}
    return value, " ".join(map(option, options))


def _single(steps: list[str]) -> Any:
    return steps[0] if len(steps) == 1 else steps


def option(pattern: str) -> str:
    """Return the command-line option that gives a pattern."""
    return f"--id-pattern {shlex.quote(pattern)}"
