"""Order of clinical categories: stages, TNM, grades and words such as low and high, detected from their texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_NOT_ASSESSED = frozenset(["x", "tx", "nx", "mx", "gx", "gb", "stage x", "grade x", "not assessed", "indeterminate"])
_ROMAN = {"i": 1.0, "ii": 2.0, "iii": 3.0, "iv": 4.0, "v": 5.0}
_LETTERS = "abcd"
_STAGE = re.compile(
    r"(?P<prefix>(?:(?:pathologic(?:al)?|clinical|ajcc|figo|tumou?r|who|stage|grade)\W*)*)"
    r"(?P<value>iv|v|i{1,3}|[0-9])\s?(?P<letter>[a-d]?)(?P<number>[0-9]?)(?P<more>\s?/.*|\s?nos)?"
)
_TNM = re.compile(
    r"[cpyrau]{0,3}(?P<kind>[tnmg])\s?(?P<value>is|[0-4]|a)\s?(?P<letter>mi|[a-d]?)[0-9iv]*(?P<more>\s?\(.*\))?"
)
# Words of equal rank stand together; words of the column, such as "risk" in "low risk", are ignored
_SCALES: tuple[tuple[frozenset[str], ...], ...] = tuple(
    tuple(frozenset(words.split(", ")) for words in scale)
    for scale in (
        (
            "negative, neg, none, absent",
            "very low, minimal",
            "low, weak, mild, slight, small",
            "medium, intermediate, moderate, mid, normal",
            "high, strong, severe, marked, large",
            "very high, very strong, very severe, extreme",
        ),
        ("well", "moderately, moderate", "poorly, poor", "undifferentiated, anaplastic"),
        ("mss", "msi l", "msi h"),
        ("never", "former", "current"),
    )
)
_Key = tuple[float, ...]


def order_levels(levels: Iterable[str]) -> dict[str, float]:
    """Return the rank of every level, lowest first, NaN for those that stand for no assessment (NX); or an empty dict.

    It is empty if the levels have no order that is known: stages ("Stage IIA", "IV"), TNM and grades ("T1", "pN2a",
    "G3"), and words ("low", "Intermediate risk", "CIMP.High").

    Examples
    --------
    >>> from gapview.report.clustering.levels import order_levels
    >>> order_levels(["Stage IV", "Stage I", "Stage IIA"])
    {'Stage I': 0.0, 'Stage IIA': 1.0, 'Stage IV': 2.0}
    >>> list(order_levels(["high", "low", "medium"])), order_levels(["red", "low"])
    (['low', 'medium', 'high'], {})
    """
    given = list(dict.fromkeys(levels))
    plain = {level: " ".join(level.lower().split()) for level in given}
    unknown = [level for level in given if plain[level] in _NOT_ASSESSED]
    known = [level for level in given if level not in unknown]
    for keys in (_stages([plain[one] for one in known]), _tnm([plain[one] for one in known]), *_words(known)):
        if keys is not None and len(set(keys)) > 1:
            places = {key: float(place) for place, key in enumerate(sorted(set(keys)))}
            ranked = sorted(zip(keys, known, strict=True))
            return {level: places[key] for key, level in ranked} | dict.fromkeys(unknown, float("nan"))
    return {}


def _stages(texts: Sequence[str]) -> list[_Key] | None:
    """Return keys of stages such as "stage iiia", "iv" and "grade 2"; None if a text is none."""
    found = [_STAGE.fullmatch(text) for text in texts]
    if not found or not all(
        one and (one["prefix"] or not one["value"].isdigit() or one["value"] == "0") for one in found
    ):
        return None
    return [
        (
            float(one["value"]) if one["value"].isdigit() else _ROMAN[one["value"]],
            _LETTERS.find(one["letter"]) + 1.0 if one["letter"] else 0.0,
            float(one["number"] or 0) + (0.5 if one["more"] and "/" in one["more"] else 0.0),
        )
        for one in found
        if one
    ]


def _tnm(texts: Sequence[str]) -> list[_Key] | None:
    """Return keys of one of T, N, M and G; None if a text is none, or if they differ in the letter."""
    found = [_TNM.fullmatch(text) for text in texts]
    if not all(found) or len({one["kind"] for one in found if one}) != 1:
        return None
    values = {"a": 0.3, "is": 0.6}  # between T0 and T1
    letters = {"": 0.0, "mi": 0.5} | {letter: place + 1.0 for place, letter in enumerate(_LETTERS)}
    return [
        (
            values[one["value"]] if one["value"] in values else float(one["value"]),
            letters[one["letter"]],
            float(bool(one["more"])),
        )
        for one in found
        if one
    ]


def _words(levels: Sequence[str]) -> list[list[_Key] | None]:
    """Return for every scale the keys of the levels, after words that all of them share; None if one is not in it."""
    split = [re.findall(r"[a-z]+", level.lower()) for level in levels]
    shared = set.intersection(*map(set, split)) if split else set()
    shared |= {"differentiated", "grade"}
    phrases = [" ".join(word for word in words if word not in shared) for words in split]
    if any(re.search(r"[0-9]", level) for level in levels):
        return []
    return [_ranks(phrases, scale) or _ranks([" ".join(words) for words in split], scale) for scale in _SCALES]


def _ranks(phrases: Sequence[str], scale: Sequence[frozenset[str]]) -> list[_Key] | None:
    place = {word: float(i) for i, words in enumerate(scale) for word in words}
    return [(place[phrase],) for phrase in phrases] if all(phrase in place for phrase in phrases) else None
