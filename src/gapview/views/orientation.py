"""Orientation of tables: samples in rows or features in rows, the parameter ``orient`` and the check for mistakes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from shlex import quote
from typing import Any

from ..errors import InputError, ParameterError, ParameterTypeError, described, some
from ..utils.messages import check_choice, joined

_CHOICES = ("samples", "features")
_N_SAMPLED = 1000  # names that are looked at
_N_OVERLAP, _SHARE = 3, 0.2  # columns that are ids of another view
_SAME = 0.5  # share of columns that two views have in common


def read_orientation(given: Any, names: Sequence[str]) -> list[bool]:
    """Return for each view whether its features are in rows, from the parameter ``orient``.

    ``orient`` is None, "samples", "features" or a dict from view to one of these; other views have samples in rows.

    Examples
    --------
    >>> read_orientation({"rna": "features"}, ["rna", "protein"])
    [True, False]
    """
    return [_orientations(given, names).get(name) == "features" for name in names]


def stated_orientation(given: Any, names: Sequence[str]) -> set[str]:
    """Return the names of the views whose orientation is given; these are not checked."""
    return set(_orientations(given, names))


def read_transpose(texts: Sequence[str], names: Sequence[str]) -> str | dict[str, str] | None:
    """Return the value of ``orient`` for the values of ``--transpose``: names of views, "all" or "none".

    Examples
    --------
    >>> read_transpose(["all"], ["rna", "protein"]), read_transpose(["rna"], ["rna", "protein"])
    ('features', {'rna': 'features'})
    >>> read_transpose(["none"], ["rna", "protein"])
    'samples'
    """
    words = {word for word in ("all", "none") if word in texts and word not in names}
    if words and len(set(texts)) > 1:
        raise ParameterError(f"--transpose {sorted(words)[0]} concerns every view. Give it alone, or name the views.")
    if words:
        return "features" if "all" in words else "samples"
    return dict.fromkeys(texts, "features") or None


def _orientations(given: Any, names: Sequence[str]) -> dict[str, str]:
    if given is None:
        return {}
    if isinstance(given, str):
        check_choice("orient", given, _CHOICES)
        return dict.fromkeys(names, given)
    if not isinstance(given, Mapping):
        raise ParameterTypeError(
            f"orient must be 'samples', 'features' or a dict from view to one of these; got {described(given)}."
        )
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ParameterError(
            f"orient (--transpose) names views that do not exist: {some(unknown)}. The views are {some(names)}."
        )
    for name, value in given.items():
        if value is not None:
            check_choice(f"orient[{name!r}]", value, _CHOICES)
    return {name: value for name, value in given.items() if value is not None}


# -- the check -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Table:
    name: str
    ids: list[str]
    columns: list[str]
    id_set: set[str]
    column_set: set[str]
    index_looks: _Looks
    column_looks: _Looks
    counts_columns: bool  # the names of the columns are only numbers of columns

    @classmethod
    def of(cls, name: str, ids: Sequence[str] | None, columns: Sequence[str] | None) -> _Table:
        rows, heads = list(ids or ()), list(columns or ())
        return cls(name, rows, heads, set(rows), set(heads), _Looks.of(rows), _Looks.of(heads), _is_range(heads))


def check_orientation(
    ids_by_view: Mapping[str, Sequence[str] | None],
    columns_by_view: Mapping[str, Sequence[str] | None],
    stated: Collection[str] = (),
) -> None:
    """Raise an error for views that hold features in rows and samples in columns.

    This is taken as certain if the columns of a view are ids of another view and its own ids are not; if views have
    the same columns but no ids in common, and their ids or columns look like it; or if the columns of a view look like
    samples while its ids look like features.

    Parameters
    ----------
    ids_by_view, columns_by_view : mapping from view name to names, or None
        The ids of the rows and the names of the columns, as text. None: the view has none.
    stated : collection of str
        Views whose orientation the user gave; these are not refused.
    """
    tables = {name: _Table.of(name, ids, columns_by_view.get(name)) for name, ids in ids_by_view.items()}
    turned: dict[str, str] = {}
    free = [table for table in tables.values() if table.name not in stated]
    for table in free:
        if _looks_turned(table):
            turned[table.name] = (
                f"in '{table.name}' the columns look like samples ({_shown(table.columns)}), and the rows "
                + (f"do not ({_shown(table.ids)})" if table.ids else "have no ids")
            )
    for table in free:
        other = next((each for each in tables.values() if _has_ids_of(table, each, tables)), None)
        if other is not None and table.name not in turned and other.name not in turned:
            common = other.id_set & table.column_set
            turned[table.name] = (
                f"{len(common)} columns of '{table.name}' are ids of '{other.name}' "
                f"({_shown([key for key in table.columns if key in common])}), while its rows are {_shown(table.ids)}"
            )
    turned = turned or _all_turned(free)
    if not turned:
        turned = {
            table.name: f"in '{table.name}' the rows look like features ({_shown(table.ids)}), and the columns do not "
            f"({_shown(table.columns)})"
            for table in free
            if _has_features_in_rows(table)
        }
    if turned:
        raise InputError(_message(turned, list(ids_by_view)))


def _message(turned: Mapping[str, str], names: Sequence[str]) -> str:
    every = len(turned) == len(names)
    value: Any = "features" if every else dict.fromkeys(turned, "features")
    keep: Any = "samples" if every else dict.fromkeys(turned, "samples")
    options = (
        "--transpose all" if every and len(names) > 1 else " ".join(f"--transpose {quote(name)}" for name in turned)
    )
    first, *others = dict.fromkeys(turned.values())
    listed = first + ("; likewise in the others" if others else "")
    return (
        f"Rows must be samples, but {joined([repr(name) for name in turned])} "
        f"{'seems' if len(turned) == 1 else 'seem'} to have features in rows and samples in columns: {listed}. "
        f"Give orient={value!r} (on the command line: {options}) to transpose. Give orient={keep!r} (on the command "
        "line: --transpose none) if the rows are the samples."
    )


def _shown(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:3])) + (", …" if len(names) > 3 else "")


def _has_ids_of(table: _Table, other: _Table, tables: Mapping[str, _Table]) -> bool:
    """Return whether the columns of a view are ids of another view, and are not its features."""
    if table is other or not table.columns or not other.ids:
        return False
    ids, columns = other.id_set, table.column_set
    common = len(ids & columns)
    if common < max(_N_OVERLAP, _SHARE * min(len(ids), len(columns))):
        return False
    if table.counts_columns and table.index_looks.feature < 0.5:
        return False
    if 2 * common < min(len(ids), len(columns)) and all(name.isdigit() for name in table.columns):
        return False  # some numbers occur in both by chance
    if len(ids & table.id_set) >= common:  # links or similarities between samples
        return False
    if table.column_looks.sample < 0.5 and (other.index_looks.feature >= 0.5 or table.column_looks.feature >= 0.5):
        return False  # the other view has features in rows
    votes = [each.id_set for each in tables.values() if each is not table and each is not other]
    with_rows = sum(len(each & table.id_set) >= _N_OVERLAP for each in votes)
    with_columns = sum(len(each & columns) >= _N_OVERLAP for each in votes)
    return with_columns >= with_rows


def _looks_turned(table: _Table) -> bool:
    """Return whether the columns look like samples and the rows do not, or look like features."""
    rows, columns = table.index_looks, table.column_looks
    if len(table.columns) < 3 or columns.feature > 0.2 or rows.sample > 0.2:
        return False
    if columns.certain_sample >= 0.9 and len(table.columns) >= 5:
        return True
    return columns.sample >= 0.5 and rows.feature >= 0.5 and len(table.ids) >= 3


def _has_features_in_rows(table: _Table) -> bool:
    """Return whether the rows have names that samples do not have, and the columns other names."""
    if len(table.ids) < 5 or len(table.columns) < 3 or table.counts_columns or table.column_looks.feature > 0.2:
        return False
    return sum(bool(_CERTAIN_FEATURE.fullmatch(name)) for name in table.ids) >= 0.9 * len(table.ids)


def _all_turned(free: Sequence[_Table]) -> dict[str, str]:
    """Return the views that have the same columns and no ids in common, if the names look like it."""
    found: dict[str, str] = {}
    for one, other in combinations(free, 2):
        common = len(one.column_set & other.column_set)
        smaller = min(len(one.column_set), len(other.column_set))
        if common < max(_N_OVERLAP, _SAME * smaller) or not one.ids or not other.ids:
            continue
        if not one.id_set.isdisjoint(other.id_set) or one.counts_columns or other.counts_columns:
            continue
        sampled = max(one.column_looks.sample, other.column_looks.sample)
        named = max(one.index_looks.feature, other.index_looks.feature)
        columns_are_features = max(one.column_looks.feature, other.column_looks.feature) >= 0.5
        rows_are_samples = max(one.index_looks.sample, other.index_looks.sample) >= 0.5
        if columns_are_features or rows_are_samples or _same_shape(one.ids, other.ids):
            continue
        if sampled >= 0.5 or named >= 0.5 or _is_of_one_shape(one.columns):
            for table in (one, other):
                found.setdefault(
                    table.name,
                    f"'{one.name}' and '{other.name}' have {common} columns in common ({_shown(one.columns)}) and no "
                    f"id ({_shown(one.ids)}; {_shown(other.ids)})",
                )
    return found


# -- what names look like --------------------------------------------------------------------------------------


# Names that samples have and features do not
_CERTAIN_SAMPLES = (
    r"TCGA[-.][A-Z0-9]{2}[-.][A-Z0-9]{4}(?:[-.].*)?",
    r"GSM\d{3,}(?:[_.].*)?|[SED]R[RSX]\d{5,}(?:[_.].*)?|SAM(?:N|EA|D)\d{5,}",
    r"GTEX-[A-Z0-9]+.*|TARGET-\d\d-.*|CPTAC-.*|ACH-\d{6}|(?:HG|NA)\d{5}",
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    r"(?:.*[_#:-])?[ACGT]{10,20}-\d+(?:[-_].*)?",  # cells
    r"(?:patient|pat|participant|donor)[ _.:-]*\d+\w?",
)
_LIKELY_SAMPLES = (
    r"(?:sample|samp|smp|subject|subj|sub|individual|ind|person|proband|case|control|ctrl|mouse|rat|animal|tumou?r|"
    r"normal|biopsy|specimen|replicate|rep|cell|pt|pid|sid|id|wt|ko|treated|untreated|cohort\w*)[ _.:-]*\d+\w?",
    r"(?-i:[SP])[ _.:-]?\d+[A-Za-z]?",
)
_FEATURES = (
    r"ENS[A-Z]*[GTPE]\d{6,}(?:\.\d+)?(?:_.*)?",
    r"(?:cg|ch\.\d+\.)\d{5,}\w?|rs\d{3,}(?:_\w+)?|(?:ILMN_|A_\d\d_P)\d+|\d{3,}(?:_[a-z])?_at|\d{4,}_[a-z]_at",
    r"(?:hsa|mmu|rno|dme)-(?:mir|let|miR)-.*|mir-?\d+\w*(?:-\w+)*|let-7.*|MIMAT\d+",
    r"(?:\d{1,2}|[XY])[pq]\d{1,2}(?:\.\d+)?|chr(?:\d{1,2}|[XYM])[:_-]\d+.*",
    r"[NX][MRP]_\d{5,}(?:\.\d+)?|GO:\d{7}|HMDB\d{5,}|(?:LOC|LINC)\d+(?:\.\d+)?|R-HSA-\d+|(?:ko|hsa)\d{5}|PF\d{5}",
    r"(?:gene|feature|feat|probe|protein|prot|peptide|metabolite|mz|otu|asv|snp|cpg|mirna|transcript|pathway|factor|"
    r"component|pc|dim|umap|tsne|lv|var|variable|column|col|pixel|px|band|wavelength|word|term|topic|bin|peak)"
    r"[ _.:-]*\d+(?:\.\d+)?",
    r"(?-i:[VF])\d+",
    r"cd\d+[a-z]*(?:[-_/.].*)?|.*[-_.]p[STY]\d+.*|phospho.*",
    r"(?:[OPQ]\d[A-Z][A-Z0-9]{2}\d|[OPQ]\d[A-Z0-9][A-Z][A-Z0-9]\d|[A-NR-Z]\d[A-Z][A-Z0-9]{2}\d)(?:-\d+)?",  # UniProt
    r"[dkpcofgs]__.*",  # ranks of a taxonomy
)
_SYMBOL = re.compile(
    r"[A-Z][A-Z0-9]*(?:[-._@][A-Z0-9]+)*|C\d+orf\d+|[A-Z][a-z]+[a-z0-9]*(?:-[a-z0-9]+)*|\d+[A-Z][A-Z0-9-]*"
)


def _one_of(expressions: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{each})" for each in expressions), re.IGNORECASE)


_CERTAIN, _LIKELY, _FEATURE = map(_one_of, (_CERTAIN_SAMPLES, _LIKELY_SAMPLES, _FEATURES))
# Samples may be called F12, or CD12 for a disease
_CERTAIN_FEATURE = _one_of([each for each in _FEATURES if not each.startswith(("(?-i:[VF])", "cd"))])


@dataclass(frozen=True)
class _Looks:
    """The shares of names that look like samples for certain, like samples, and like features."""

    certain_sample: float = 0.0
    sample: float = 0.0
    feature: float = 0.0

    @classmethod
    def of(cls, names: list[str]) -> _Looks:
        names = names[:: max(1, len(names) // _N_SAMPLED)]
        if not names:
            return cls()
        certain = sum(bool(_CERTAIN.fullmatch(name)) for name in names) / len(names)
        likely = sum(bool(_LIKELY.fullmatch(name)) for name in names) / len(names)
        feature = sum(bool(_FEATURE.fullmatch(name)) for name in names) / len(names)
        if certain + likely < 0.5 and _are_symbols(names):
            return cls(certain, certain, 1.0)
        return cls(certain, certain + likely, feature)


def _are_symbols(names: list[str]) -> bool:
    """Return whether most names look like symbols of genes: of various lengths and letters, some with a number."""
    symbols = [name for name in names if _SYMBOL.fullmatch(name)]
    if len(names) < 5 or len(symbols) < 0.8 * len(names):
        return False
    letters = {re.sub(r"[\d._-]+", "", name) for name in symbols}
    numbered = sum(any(map(str.isdigit, name)) for name in symbols)
    [(_, most)] = Counter(map(len, symbols)).most_common(1)
    return (
        len(letters) >= 0.3 * len(symbols)
        and 0.2 * len(symbols) <= numbered <= 0.9 * len(symbols)
        and most <= 0.6 * len(symbols)
        and sum(map(len, symbols)) <= 12 * len(symbols)
    )


def _is_range(names: list[str]) -> bool:
    """Return whether the names are 0, 1, 2, … or 1, 2, 3, …, as for columns without names."""
    return bool(names) and names[0] in ("0", "1") and names == [str(int(names[0]) + k) for k in range(len(names))]


def _shape(name: str) -> str:
    return re.sub(r"[A-Za-z]+", "a", re.sub(r"\d+", "9", name))


def _shapes(names: Sequence[str]) -> Counter[str]:
    return Counter(map(_shape, names[:: max(1, len(names) // _N_SAMPLED)]))


def _same_shape(ids: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether the ids of two views are built alike, as those of two sets of samples."""
    one, other = _shapes(ids), _shapes(others)
    total = sum(one.values())
    return sum(count for shape, count in one.items() if shape in other) >= 0.5 * total


def _is_of_one_shape(names: Sequence[str]) -> bool:
    """Return whether nearly all names are built alike and have a number, as ids of samples."""
    shapes = _shapes(names)
    [(shape, count)] = shapes.most_common(1)
    return "9" in shape and count >= 0.9 * sum(shapes.values())
