"""Sample ids: rewriting them, the links between views, and ids that may name the same sample."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import combinations

from ..errors import InputError
from ..utils.messages import counted, joined, percent, warn_user
from .id_patterns import NAMED, IdPattern, read_options, read_pattern, rewrite, rewrite_all
from .mismatch import FORMS, QUOTES, Proposal, explain_mismatch, option
from .variants import VARIANTS

__all__ = [
    "IdPattern",
    "Proposal",
    "check_links",
    "explain_mismatch",
    "read_options",
    "read_pattern",
    "report_similar",
    "rewrite",
    "rewrite_all",
]

_N_NEEDED = 3  # shared samples that link two large views
_THIN = 0.1  # of the samples of the smaller view: fewer give a warning
_N_CLASSIFIED = 1000  # pairs of similar ids whose difference is determined


# -- links -----------------------------------------------------------------------------------------------------


def check_links(
    keys_by_view: Mapping[str, Sequence[str]], columns_by_view: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Raise an error unless shared samples link all views; give a warning for links of few samples.

    Two views are linked by at least ``min(3, ceil(n / 10))`` shared samples, n being the size of the smaller one. All
    views must form one connected graph of links. Views without samples are left out. ``columns_by_view`` serves the
    message only: views with the same columns may be parts of one view.
    """
    sets = {name: set(keys) for name, keys in keys_by_view.items() if len(keys)}
    groups = {name: {name} for name in sets}  # views that are linked
    thin: list[tuple[float, str, str, int]] = []
    for one, other in combinations(sets, 2):
        if groups[one] is groups[other]:
            continue
        n_shared, smaller = len(sets[one] & sets[other]), min(len(sets[one]), len(sets[other]))
        if n_shared >= _THIN * smaller and _links(n_shared, smaller):
            _unite(groups, one, other)
        elif _links(n_shared, smaller):
            thin.append((n_shared / smaller, one, other, n_shared))
    for share, one, other, n_shared in sorted(thin, key=lambda link: -link[0]):
        if groups[one] is not groups[other]:
            _unite(groups, one, other)
            smaller_name = min(one, other, key=lambda name: len(sets[name]))
            warn_user(
                f"The views '{one}' and '{other}' have only {counted(n_shared, 'sample')} in common, {percent(share)} "
                f"of the {len(sets[smaller_name]):,} of '{smaller_name}'. Check that the ids of both name the same "
                "samples in the same way; id_pattern (--id-pattern) rewrites ids."
            )
    parts = list({id(group): group for group in groups.values()}.values())
    if len(parts) > 1:
        raise InputError(_without_link(keys_by_view, columns_by_view or {}, sets, parts))


def _links(n_shared: int, smaller: int) -> bool:
    return n_shared >= min(_N_NEEDED, -(-smaller // 10))


def _unite(groups: dict[str, set[str]], one: str, other: str) -> None:
    united = groups[one] | groups[other]
    for name in united:
        groups[name] = united


def _without_link(
    keys_by_view: Mapping[str, Sequence[str]],
    columns_by_view: Mapping[str, Sequence[str]],
    sets: Mapping[str, set[str]],
    parts: Sequence[set[str]],
) -> str:
    """Return the message for views that no shared samples link."""
    across = [
        (one, other) for one, other in combinations(sets, 2) if not any(one in part and other in part for part in parts)
    ]
    one, other = across[0]
    proposal = None
    for pair in across[:10]:
        found = explain_mismatch(keys_by_view[pair[0]], keys_by_view[pair[1]], pair)
        if found is not None and (proposal is None or found.n_pairs > proposal.n_pairs):
            proposal, (one, other) = found, pair
    n_shared = len(sets[one] & sets[other])
    smaller = min(len(sets[one]), len(sets[other]))
    if not n_shared:
        problem = f"The views '{one}' and '{other}' have no sample in common"
    else:
        problem = (
            f"The views '{one}' and '{other}' have only {counted(n_shared, 'sample')} in common; at least "
            f"{min(_N_NEEDED, -(-smaller // 10))} are needed to link them"
        )
    if len(sets) > 2:
        problem += f", and no other view links {_listed_parts(sets, parts)}"
    if proposal is None:
        listed = {name: list(keys_by_view[name])[:3] for name in (one, other)}
        advice = (
            "If these ids name the same samples, rewrite them with id_pattern (--id-pattern); if they are not the "
            "ids, name the column that holds them with id_column (--id)."
        )
    else:
        listed = {one: [pair[0] for pair in proposal.examples], other: [pair[1] for pair in proposal.examples]}
        advice = proposal.short
    columns = [set(columns_by_view.get(name) or ()) for name in (one, other)]
    if columns[0] and columns[0] == columns[1] and proposal is None:
        advice = (
            "Both have the same columns: if they are parts of one view, concatenate them first (pandas.concat). "
            + advice
        )
    shown = "; ".join(f"'{name}' has {', '.join(map(repr, keys))}, …" for name, keys in listed.items())
    return f"{problem}: {shown}. {advice}"


def _listed_parts(sets: Mapping[str, set[str]], parts: Sequence[set[str]]) -> str:
    return joined([", ".join(f"'{name}'" for name in sets if name in part) for part in parts][:4]).replace(
        " and ", " with "
    )


# -- ids that may name the same sample -------------------------------------------------------------------------


def report_similar(keys_by_view: Mapping[str, Sequence[str]]) -> list[str]:
    """Return sentences on ids that are different as text but may name the same sample.

    The first concerns ids of one or of different views that differ only by white space, invisible characters, case,
    Unicode form, hyphens, leading zeros, the format of numbers, the text encoding or look-alike letters, and ids of
    different views that differ only by accents, the format of dates or thousands separators. The second concerns ids of
    two views that differ by a beginning, an ending or separators, while other ids match. Without such ids the list is
    empty.
    """
    views = list(keys_by_view.values())
    distinct: dict[str, None] = {}
    for number, keys in enumerate(views):
        if not number or keys != views[0]:
            distinct.update(dict.fromkeys(keys))
    sentences = []
    pairs = _similar(list(distinct), [set(keys) for keys in views])
    if pairs:
        sentences.append(_on_forms(keys_by_view, pairs))
    if any(len(keys) < len(distinct) for keys in views):
        paired = {key for pair in pairs for key in pair}
        sentences += _on_affixes(
            {
                name: [key for key in keys if key not in paired] if paired else keys
                for name, keys in keys_by_view.items()
            }
        )
    return sentences


def _similar(keys: list[str], sets: Sequence[set[str]]) -> dict[tuple[str, str], str]:
    """Return the pairs of different ids of which a variant of one has the plain form of the other.

    The value is what differs. It is empty for pairs with the same plain form.
    """
    plain = _plain(keys) if keys else []
    first: dict[str, str] = {}
    pairs: dict[tuple[str, str], str] = {}
    for form, key in zip(plain, keys, strict=True):
        if first.setdefault(form, key) != key:
            pairs[first[form], key] = ""
    text = "\n".join(keys)
    for what, needed, variants_of, is_weak, is_possible in VARIANTS:
        if not needed.search(text) or not is_possible(text):
            continue
        variants = [
            (variant, form, key)
            for form, key in zip(plain, keys, strict=True)
            if needed.search(key) and not (is_weak and all(key in own for own in sets))
            for variant in set(variants_of(key))
        ]
        found = _plain([variant for variant, _, _ in variants]) if variants else []
        for form, (_, own, key) in zip(found, variants, strict=True):
            other = first.get(form)
            if other is None or form == own or (key, other) in pairs or (other, key) in pairs:
                continue
            if not (is_weak and any(key in view and other in view for view in sets)):
                pairs[key, other] = what
    return pairs


def _plain(keys: list[str]) -> list[str]:
    """Return ids without the differences that do not tell samples apart; all ids are rewritten as one text."""
    text = "\x00".join(keys).lower()
    if text.count("\x00") != len(keys) - 1:
        text = "\x00".join(key.replace("\x00", "") for key in keys).lower()
    if text.isascii():
        text = "".join(text.split())
    else:
        for _ in range(2):  # some dashes appear only in the normal form, and others are lost in it
            text = unicodedata.normalize("NFKC", re.sub(_HYPHENS, "-", text)).casefold()
        text = re.sub(_SPACES, "", text)
    if not text.isascii() or any(sign in text for sign in "\"'`"):
        text = re.sub(QUOTES.removesuffix("=>"), "", text)
    return _ZEROS.sub("", _NUMBERS.sub(lambda found: _as_number(found.group()), "\x00" + text)).split("\x00")[1:]


_HYPHENS = NAMED["hyphens"].removesuffix("=>-")
_SPACES = NAMED["spaces"].removesuffix("=>")
# Both begin with one fixed character, for which re searches fast
_ZEROS = re.compile(r"0(?<!\d0)(?<!\d\.0)0*(?=\d)")
_NUMBERS = re.compile(
    r"\x00(?:\+\d+|\+?\d+\.\d*(?:e[+-]?\d{1,2})?|\+?\d+e[+-]?\d{1,2}|\+?\d{1,3}(?:,\d{3})+)(?=\x00|$)", re.IGNORECASE
)


def _as_number(text: str) -> str:
    """Return a number without exponent, thousands separators and final zeros; text begins with the separator of ids."""
    plain = "\x00" + format(Decimal(text[1:].replace(",", "")), "f")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def _differences(one: str, other: str) -> list[str]:
    """Return the names of the differences in form between two ids."""
    for what, pattern, _ in FORMS:
        [change] = read_pattern(pattern, ["-"])
        assert change is not None
        if change.of(one) == change.of(other):
            return [what if what != "decimal places" else "the format of numbers"]
    if any(_NUMBERS.fullmatch("\x00" + key) for key in (one, other)):
        return ["the format of numbers"]
    found = []
    for what, pattern, _ in FORMS:
        [change] = read_pattern(pattern, ["-"])
        assert change is not None
        if one != other and (change.of(one), change.of(other)) != (one, other):
            found.append(what)
            one, other = change.of(one) or one, change.of(other) or other
    return found


def _on_forms(keys_by_view: Mapping[str, Sequence[str]], pairs: Mapping[tuple[str, str], str]) -> str:
    classified = list(pairs.items())[:_N_CLASSIFIED]
    kinds: Counter[str] = Counter(
        kind for pair, what in classified for kind in ([what] if what else _differences(*pair))
    )
    sets = {name: set(keys) for name, keys in keys_by_view.items()}
    examples = joined([_shown(pair, sets) for pair, _ in classified[:3]])
    patterns = list(dict.fromkeys(pattern for what, pattern, _ in FORMS if kinds[what]))
    if kinds["separators"]:
        has_dashes = any(re.search(_HYPHENS, key) for pair, _ in classified for key in pair)
        patterns = [*patterns, *(["hyphens"] if has_dashes and "hyphens" not in patterns else []), "separators"]
    if _makes_equal(patterns, [pair for pair, _ in classified]) and _keeps_apart(keys_by_view, patterns):
        value = patterns[0] if len(patterns) == 1 else patterns
        advice = f"give id_pattern={value!r} (on the command line: {' '.join(map(option, patterns))})"
    else:
        advice = "correct the ids in the data, so that each sample has one id, or give id_pattern (--id-pattern)"
    verb = "pair of sample ids differs" if len(pairs) == 1 else "pairs of sample ids differ"
    return (
        f"{len(pairs):,} {verb} only by {joined([kind for kind, _ in kinds.most_common()])}, and each id is taken as a "
        f"sample of its own: {examples}. If they name the same samples, {advice}."
    )


def _makes_equal(patterns: list[str], pairs: Sequence[tuple[str, str]]) -> bool:
    """Return whether the rewrite makes the ids of every pair equal."""
    if not patterns:
        return False
    [change] = read_pattern(patterns, ["-"])
    assert change is not None
    return all(change.of(one) == change.of(other) for one, other in pairs)


def _shown(pair: tuple[str, str], sets: Mapping[str, set[str]]) -> str:
    """Return two ids with the views that have them; characters that do not show are escaped."""
    homes = [next(name for name, keys in sets.items() if key in keys) for key in pair]
    both = next((name for name, keys in sets.items() if pair[0] in keys and pair[1] in keys), None)
    texts = [repr(key) for key in pair]
    if any(unicodedata.normalize("NFC", key) != key for key in pair):
        texts = [ascii(key) for key in pair]
    if both is not None:
        return f"{texts[0]} and {texts[1]} (both in '{both}')"
    return f"{texts[0]} (in '{homes[0]}') and {texts[1]} (in '{homes[1]}')"


def _keeps_apart(keys_by_view: Mapping[str, Sequence[str]], patterns: list[str]) -> bool:
    """Return whether the rewrite merges no ids within a view."""
    try:
        for name, keys in keys_by_view.items():
            rewrite(name, keys, read_pattern(patterns, ["-"])[0])
    except InputError:
        return False
    return True


def _on_affixes(keys_by_view: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield a sentence on the two views in which most ids differ by a beginning, an ending or separators."""
    sets = {name: set(keys) for name, keys in keys_by_view.items()}
    best: tuple[Proposal, str, str] | None = None
    for one, other in combinations(keys_by_view, 2):
        n_shared = len(sets[one] & sets[other])
        smaller = min(len(sets[one]), len(sets[other])) - n_shared
        if smaller < _N_NEEDED or (best is not None and smaller <= best[0].n_pairs):
            continue
        proposal = explain_mismatch(keys_by_view[one], keys_by_view[other], (one, other), partial=True)
        if (
            proposal is not None
            and proposal.n_pairs >= _N_NEEDED
            and (best is None or proposal.n_pairs > best[0].n_pairs)
        ):
            best = proposal, one, other
    if best is not None:
        proposal, one, other = best
        yield f"Sample ids that only one of '{one}' and '{other}' has may name the same samples: {proposal.text}"
