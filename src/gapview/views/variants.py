"""Other ways to write a sample id: another text encoding, look-alike letters, lost accents, dates, thousands marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

from .id_patterns import LOOK_ALIKES, fold

_ENCODINGS = (  # (written, read)
    ("utf-8", "cp1252"),
    ("utf-8", "latin-1"),
    ("utf-8", "mac_roman"),
    ("mac_roman", "latin-1"),
    ("mac_roman", "cp1252"),
    ("cp1252", "mac_roman"),
    ("cp850", "cp1252"),
    ("cp1252", "cp850"),
    ("cp1252", "utf-8"),
    ("utf-8", "ascii"),
)
_GERMAN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "å": "aa", "Å": "Aa"})
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DATE = re.compile(r"(\d{4}|\d{1,2})([-./])(\d{1,2})\2(\d{4}|\d{1,2})([T ]00:00(:00(\.0+)?)?Z?)?")
# Ways to write a date: order, separator, and the way itself
_DATES = (
    *(("ymd", mark, f"{{y}}{mark}{{m}}{mark}{{d}}") for mark in "-./"),
    ("ymd", "", "{y}{m:0>2}{d:0>2}"),
    *(("dmy", mark, f"{{d}}{mark}{{m}}{mark}{{{year}}}") for mark in "-./" for year in ("y", "short")),
    *(("mdy", mark, f"{{m}}{mark}{{d}}{mark}{{{year}}}") for mark in "-/" for year in ("y", "short")),
    *(("dmy", "", f"{{d}}{mark}{{month}}{mark}{{y}}") for mark in ("", "-")),
)


class Variant(NamedTuple):
    """A way in which two ids of one sample may differ.

    Attributes
    ----------
    what : str
        What differs, as "accents".
    needed : re.Pattern
        What an id must have to be written in another way.
    of : callable
        Returns the other ways to write an id.
    is_weak : bool
        Whether two ids that one view has both are taken as different samples.
    is_possible : callable
        Returns whether ids can differ so at all, from the text of all of them.
    """

    what: str
    needed: re.Pattern[str]
    of: Callable[[str], Iterator[str]]
    is_weak: bool
    is_possible: Callable[[str], bool] = lambda text: True


def _in_other_encodings(key: str) -> Iterator[str]:
    """Yield the text as read in a wrong encoding, and the text that gives the id if read in a wrong encoding."""
    for written, read in _ENCODINGS:
        try:
            shown = key.encode(written).decode(read, "replace")
        except UnicodeEncodeError:
            shown = key
        yield shown
        if "\ufffd" in shown:
            yield shown.replace("\ufffd", "?")
        with suppress(UnicodeError):
            yield key.encode(read).decode(written)


def _without_look_alikes(key: str) -> Iterator[str]:
    yield key.translate(LOOK_ALIKES)


def _without_accents(key: str) -> Iterator[str]:
    yield fold(key)
    yield fold(key, only_accents=True)
    yield fold(key.translate(_GERMAN))


def _other_dates(key: str) -> Iterator[str]:
    """Yield the other ways to write a date.

    A date such as 01/05/2020 has two readings. The other order of day and month with the same separator, 05/01/2020, is
    then left out: it is another day of the same way of writing.
    """
    found = _DATE.fullmatch(key)
    if found is None:
        return
    first, mark, middle, last = found.groups()[:4]
    if len(first) == 4:
        readings = [("ymd", first, middle, last)]
    else:
        readings = [("dmy", last, middle, first), *([("mdy", last, first, middle)] if mark != "." else [])]
    readings = [each for each in readings if len(each[1]) == 4 and 0 < int(each[2]) < 13 and 0 < int(each[3]) < 32]
    for order, year, month, day in readings:
        for own, sign, way in _DATES:
            if len(readings) == 1 or own in (order, "ymd") or sign != mark:
                for width in (1, 2):
                    m, d = (f"{int(part):0{width}d}" for part in (month, day))
                    yield way.format(y=year, m=m, d=d, short=year[2:], month=_MONTHS[int(month) - 1])


def _without_thousands_marks(key: str) -> Iterator[str]:
    if re.fullmatch(r"[+-]?[1-9]\d{0,2}(\.\d{3})+", key):
        yield key.replace(".", "")


def _with_other_separators(key: str) -> Iterator[str]:
    for mark in "-._/":
        yield _SEPARATOR.sub(mark, key)


_SEPARATORS = "-._/:\u2010\u2011\u2012\u2013\u2014\u2015"
_SEPARATOR = re.compile(rf"(?<=\w)[{_SEPARATORS}](?=\w)")


def _has_several_separators(text: str) -> bool:
    return sum(mark in text for mark in _SEPARATORS) > 1


_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
VARIANTS = (
    Variant("the text encoding", _NOT_ASCII, _in_other_encodings, False),
    Variant("look-alike letters", _NOT_ASCII, _without_look_alikes, False),
    Variant("accents", _NOT_ASCII, _without_accents, True),
    Variant("the format of dates", re.compile(r"\d[-./]\d\d?[-./]\d"), _other_dates, True),
    Variant("separators", _SEPARATOR, _with_other_separators, True, _has_several_separators),
    Variant("thousands separators", re.compile(r"\d\.\d{3}"), _without_thousands_marks, True),
)
