"""The parameter ``id_pattern``: rewriting sample ids so that those of different views match."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError, ParameterError, ParameterTypeError, described, some
from ..utils.messages import counted, warn_user

LONGEST = 1000  # characters of a pattern
NAMED = {
    "spaces": "[\\s\\u00ad\\u200b-\\u200f\\u2060\\ufeff]+=>",  # removes white space and invisible characters
    "hyphens": "[\\u2010-\\u2015\\u2212\\ufe58\\ufe63\\uff0d]=>-",  # writes all dashes as "-"
    "zeros": r"(?<!\d)(?<!\d\.)0+(?=\d)=>",  # removes leading zeros of every number
    "separators": r"[-._/:\s]+=>-",  # writes . _ / : and white space as "-"
}
# Cyrillic and Greek letters that look like Latin ones
LOOK_ALIKES = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеѕіјорсухһԁԛԝ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧονι",
    "ABESIJKMHOPCTYXaesijopcyxhdqw" + "ABEZHIKMNOPTYXovi",
)
_LETTERS = str.maketrans(
    {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th"}
    | {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ı": "i", "ħ": "h", "Ħ": "H"}
)
_ALLOWED = (
    "a regular expression (the id becomes its first group, or its match), 'PATTERN=>TEXT' (replaces every match), "
    "'lower', 'nfc', 'nfkc', 'ascii', 'spaces', 'hyphens', 'zeros', 'separators', a function from id to id, a list of "
    "these, or a dict from view to one of these"
)


@dataclass(frozen=True)
class IdPattern:
    """One rewrite of ids: the pattern as the user gave it, and the function that rewrites one id.

    Calling it with a list of ids returns the new ids. An id that does not match gives None.
    """

    given: Any
    of: Callable[[str], str | None]

    def __call__(self, keys: Sequence[str]) -> list[str | None]:
        """Return the rewritten ids, and None where an id does not match."""
        return list(map(self.of, keys))


def read_pattern(given: Any, names: Sequence[str]) -> list[IdPattern | None]:
    """Return the rewrite of ids of each view, or None for views whose ids stay as they are.

    Parameters
    ----------
    given : None, str, callable, list of these, or dict from view name to one of these
        The parameter ``id_pattern``. A regular expression keeps its first group, or its whole match if it has no group.
        ``"PATTERN=>TEXT"`` replaces every match; the last ``=>`` separates the two. ``"lower"``, ``"nfc"``,
        ``"nfkc"``, ``"ascii"``, ``"spaces"``, ``"hyphens"``, ``"zeros"`` and ``"separators"`` are named rewrites. A
        callable receives one id and returns one id. A list is applied in order.
    names : sequence of str
        The names of the views.

    Examples
    --------
    >>> rna, protein = read_pattern({"rna": "^TCGA-..-...."}, ["rna", "protein"])
    >>> rna(["TCGA-A6-2672-01A"]), protein
    (['TCGA-A6-2672'], None)
    """
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in names]
        if unknown:
            raise ParameterError(
                f"id_pattern (--id-pattern) names views that do not exist: {some(unknown)}. "
                f"The views are {some(names)}."
            )
        return [None if given.get(name) is None else _compiled(given[name]) for name in names]
    pattern = None if given is None else _compiled(given)
    return [pattern for _ in names]


def read_options(texts: Sequence[str], names: Sequence[str]) -> list[str] | dict[str, list[str]] | None:
    """Return the value of ``id_pattern`` for the values of ``--id-pattern``: ``PATTERN`` or ``VIEW=PATTERN``.

    A view that several options concern gets their patterns in the order of the command line.

    Examples
    --------
    >>> read_options(["lower", "nfc"], ["rna", "protein"])
    ['lower', 'nfc']
    >>> read_options(["lower", "rna=-01a$=>"], ["rna", "protein"])
    {'rna': ['lower', '-01a$=>'], 'protein': ['lower']}
    """
    if not any(_is_for_one_view(text, names) for text in texts):
        return list(texts) or None
    per_view: dict[str, list[str]] = {}
    for text in texts:
        view, _, pattern = text.partition("=")
        own = _is_for_one_view(text, names)
        for name in [view] if own else names:
            per_view.setdefault(name, []).append(pattern if own else text)
    return per_view


def _is_for_one_view(text: str, names: Sequence[str]) -> bool:
    view, sign, pattern = text.partition("=")
    return bool(sign) and view in names and not pattern.startswith(">")


def _compiled(given: Any) -> IdPattern:
    if isinstance(given, IdPattern):
        return given
    if isinstance(given, str):
        return IdPattern(given, _of_text(given))
    if isinstance(given, list | tuple):
        if not given:
            raise ParameterError("id_pattern is an empty list. Leave it out if the ids are to stay as they are.")
        steps = [_compiled(each) for each in given]
        return steps[0] if len(steps) == 1 else IdPattern(list(given), _chain([step.of for step in steps]))
    if callable(given):
        return IdPattern(given, _of_function(given))
    raise ParameterTypeError(f"id_pattern must be {_ALLOWED}; got {described(given)}.")


def _of_text(text: str) -> Callable[[str], str | None]:
    if text == "lower":
        return str.casefold
    if text == "ascii":
        return fold
    if text in ("nfc", "nfkc"):
        form: Any = text.upper()
        return lambda key: unicodedata.normalize(form, key)
    text = NAMED.get(text, text)
    if not text:
        raise ParameterError("id_pattern (--id-pattern) is empty. Leave it out if the ids are to stay as they are.")
    if len(text) > LONGEST:
        raise ParameterError(
            f"id_pattern (--id-pattern) has {len(text):,} characters; at most {LONGEST:,} are allowed. "
            "In Python, a function from id to id can do more."
        )
    pattern, sign, replacement = text.rpartition("=>")
    try:
        if sign:
            expression = re.compile(pattern)
            expression.sub(replacement, "")  # raises an error for an invalid replacement
            return lambda key: expression.sub(replacement, key)
        expression = re.compile(text)
    except (re.error, IndexError, OverflowError, RecursionError) as error:
        raise ParameterError(
            f"id_pattern (--id-pattern) {text!r} is not a valid regular expression: {error}. "
            "Characters such as . ( [ + * have a special meaning; a backslash before them removes it."
        ) from None
    group = 1 if expression.groups else 0

    def part(key: str) -> str | None:
        found = expression.search(key)
        return None if found is None else found.group(group)

    return part


def fold(key: str, *, only_accents: bool = False) -> str:
    """Return an id without accents; other letters that are or look like Latin ones become those, if wanted.

    Examples
    --------
    >>> fold("Müller"), fold("Søren")
    ('Muller', 'Soren')
    """
    if key.isascii():
        return key
    if not only_accents:
        key = key.translate(_LETTERS).translate(LOOK_ALIKES)
    parts = unicodedata.normalize("NFD", key)
    return unicodedata.normalize("NFC", "".join(part for part in parts if not "\u0300" <= part <= "\u036f"))


def _of_function(function: Callable[[str], Any]) -> Callable[[str], str | None]:
    def call(key: str) -> str | None:
        try:
            new = function(key)
        except Exception as error:
            raise InputError(
                f"The function given as id_pattern raised {type(error).__name__} for the id {key!r}: {error}"
            ) from error
        if new is not None and not isinstance(new, str):
            raise ParameterTypeError(
                f"The function given as id_pattern must return text; for {key!r} it returned {described(new)}."
            )
        return new

    return call


def _chain(steps: Sequence[Callable[[str], str | None]]) -> Callable[[str], str | None]:
    def chained(key: str) -> str | None:
        new: str | None = key
        for step in steps:
            new = None if new is None else step(new)
        return new

    return chained


def rewrite(view_name: str, keys: Sequence[str], pattern: IdPattern | None) -> list[str]:
    """Return the ids of one view after its rewrite.

    Ids that do not match or become empty are an error, and so are different ids that become equal.
    """
    if pattern is None:
        return list(keys)
    shown = "" if callable(pattern.given) else f" {pattern.given!r}"
    new = pattern(keys)
    bad = [key for key, to in zip(keys, new, strict=True) if to is None or not to.strip()]
    if bad:
        raise InputError(
            f"id_pattern (--id-pattern){shown} does not match {counted(len(bad), 'id')} of the {len(keys):,} of view "
            f"'{view_name}', or leaves nothing of them: {some(bad)}. Give a pattern that matches every id, or one of "
            "the form 'PATTERN=>TEXT', which changes only the ids that match."
        )
    done = [to.strip() for to in new if to is not None]
    if len(set(done)) < len(done):
        _refuse_merged(view_name, keys, done, shown)
    return done


def _refuse_merged(view_name: str, keys: Sequence[str], new: Sequence[str], shown: str) -> None:
    """Raise an error if different ids become equal; ids that were equal before are not the concern of a rewrite."""
    before: dict[str, dict[str, None]] = {}
    for key, to in zip(keys, new, strict=True):
        before.setdefault(to, {})[key] = None
    merged = {to: list(old) for to, old in before.items() if len(old) > 1}
    if merged:
        listed = "; ".join(f"{some(old, 3)} become {to!r}" for to, old in list(merged.items())[:3])
        raise InputError(
            f"id_pattern (--id-pattern){shown} makes different ids of view '{view_name}' equal, in "
            f"{counted(len(merged), 'case')}: {listed}. Give a pattern that keeps them apart, or remove the samples "
            "that are not needed."
        )


def rewrite_all(keys_by_view: Mapping[str, Sequence[str]], given: Any) -> dict[str, list[str]]:
    """Return the ids of every view after ``id_pattern``; a pattern that changes no id of any view gives a warning."""
    own = {name: given.get(name) for name in keys_by_view} if isinstance(given, Mapping) else given
    patterns = dict(zip(keys_by_view, read_pattern(own, list(keys_by_view)), strict=True))
    new = {name: rewrite(name, keys, patterns[name]) for name, keys in keys_by_view.items()}
    _report_idle(patterns, {name for name, keys in keys_by_view.items() if list(keys) != new[name]})
    return new


def note_on_rewrite(keys: Sequence[str], new: Sequence[str]) -> str | None:
    """Return a sentence on the ids that a rewrite has changed, or None if there are none."""
    pairs = [(one, other) for one, other in zip(keys, new, strict=True) if one != other]
    if not pairs:
        return None
    return (
        f"{counted(len(pairs), 'sample id')} rewritten, as requested: {pairs[0][0]!r} to {pairs[0][1]!r}, for instance."
    )


def _report_idle(patterns: Mapping[str, IdPattern | None], changed: Collection[str]) -> None:
    """Warn of patterns that change no id of any view.

    Parameters
    ----------
    patterns : mapping of str to IdPattern or None
        The rewrite of each view with ids.
    changed : collection of str
        The views with an id that was changed.
    """
    used = [step for name in changed for step in _steps(patterns[name])]
    idle = [
        name
        for name, pattern in patterns.items()
        if pattern is not None and name not in changed and not any(step in used for step in _steps(pattern))
    ]
    if idle:
        warn_user(
            f"id_pattern (--id-pattern) changes no sample id of {some(idle)}; it can be left out there, or the pattern "
            "is not the one that was meant."
        )


def _steps(pattern: IdPattern | None) -> list[Any]:
    given = None if pattern is None else pattern.given
    return given if isinstance(given, list) else [given]
