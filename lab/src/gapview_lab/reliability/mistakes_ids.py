"""Mistakes in sample ids: the same id written in different ways, missing and repeated ids."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .mistakes_oracle import INTERFACES
from .mistakes_register import ALARM, KEYED, MUTATIONS, TEXT, Change, Mutation, mutation
from .mistakes_tables import NotApplicable, TableProblem

__all__: list[str] = []  # importing this module registers the mutations


# -- the same id, written in different ways --------------------------------------------------------------------------


def _changed_dashes(key: str, to: str) -> str:
    return key.translate({ord(mark): to for mark in "-." if mark != to})


def _recoded(key: str, wrong: str, right: str) -> str:
    return key.encode(wrong).decode(right, "replace")


def _without_accents(key: str) -> str:
    return "".join(one for one in unicodedata.normalize("NFD", key) if not unicodedata.combining(one))


_PUNCTUATED = ("barcode", "uuid", "name")
# name: (kinds of ids, rewrite, whether one or two changed ids are tried, too)
REWRITES: dict[str, tuple[Sequence[str], Callable[[Any], Any], bool]] = {
    "suffix": (KEYED, lambda key: f"{key}-01A", False),
    "suffix_number": (TEXT, lambda key: f"{key}_1", False),
    "prefix": (KEYED, lambda key: f"S_{key}", False),
    "prefix_x": (("integer", "uuid", "zeros"), lambda key: f"X{key}", False),
    "prefix_path": (TEXT, lambda key: f"data/{key}", False),
    "dots": (_PUNCTUATED, lambda key: _changed_dashes(key, "."), False),
    "underscores": (_PUNCTUATED, lambda key: _changed_dashes(key, "_"), False),
    "no_dashes": (_PUNCTUATED, lambda key: _changed_dashes(key, ""), False),
    "case": (TEXT, lambda key: key.upper() if key.islower() else key.lower(), True),
    "space_behind": (TEXT, lambda key: f"{key} ", True),
    "space_no_break": (TEXT, lambda key: f"\u00a0{key}", True),
    "space_inside": (_PUNCTUATED, lambda key: _changed_dashes(key, " - "), False),
    "decomposed": (("name",), lambda key: unicodedata.normalize("NFD", key), True),
    "zero_width": (TEXT, lambda key: f"{key[:2]}\u200b{key[2:]}", True),
    "byte_order_mark": (TEXT, lambda key: f"\ufeff{key}", True),
    "hyphen_look_alike": (_PUNCTUATED, lambda key: _changed_dashes(key, "\u2010"), True),
    "en_dash": (_PUNCTUATED, lambda key: _changed_dashes(key, "\u2013"), True),
    "full_width": (("person",), lambda key: "".join(chr(ord(one) + 0xFEE0) for one in key), True),
    "cyrillic": (("person",), lambda key: key.replace("P", "\u0420"), False),
    "zeros_lost": (("zeros",), lambda key: str(int(key)), True),
    "zeros_lost_number": (("zeros",), int, False),
    "zeros_added": (("integer",), lambda key: f"{key:06d}", True),
    "float_number": (("integer",), float, False),
    "float_text": (("integer",), lambda key: f"{key}.0", False),
    "number_as_text": (("integer",), str, False),
    "scientific": (("round",), lambda key: f"{key:.6g}", True),
    "thousands_comma": (("integer", "round"), lambda key: f"{key:,}", True),
    "thousands_point": (("integer", "round"), lambda key: f"{key:,}".replace(",", "."), True),
    "apostrophe": (("integer", "zeros"), lambda key: f"'{key}", False),
    "quotes": (TEXT, lambda key: f"'{key}'", False),
    "date_format": (("date",), lambda key: f"{key[8:]}.{key[5:7]}.{key[:4]}", False),
    "date_time": (("date",), lambda key: f"{key} 00:00:00", False),
    "mojibake": (("name",), lambda key: _recoded(key, "utf-8", "cp1252"), True),
    "mac_roman": (("name",), lambda key: _recoded(key, "mac_roman", "latin-1"), True),
    "accents_lost": (("name",), _without_accents, True),
    "cut_short": (("barcode", "uuid"), lambda key: key[:8], False),
    "above_2_53": (("huge",), float, False),
}


def _rewrite(rewrite: Callable[[Any], Any], amount: str) -> Change:
    def change(problem: TableProblem, rng: np.random.Generator) -> None:
        table = problem.one(rng)
        shared = problem.shared_rows(table)
        if amount == "all":
            rows = np.arange(table.n_rows)
        elif amount == "part":
            rows = rng.choice(shared, max(4, int(rng.uniform(0.1, 0.5) * len(shared))), replace=False)
        else:
            rows = rng.choice(shared, int(rng.integers(1, 3)), replace=False)
        before = list(table.ids or ())
        table.ids = [rewrite(key) if row in set(rows.tolist()) else key for row, key in enumerate(before)]
        if all(str(table.ids[row]) == str(before[row]) for row in shared) and table.ids == before:
            raise NotApplicable("no id has changed")
        problem.note_ids()

    return change


for _name, (_kinds, _function, _also_few) in REWRITES.items():
    for _amount in ("all", "part", "few") if _also_few else ("all", "part"):
        _full = f"id_{_name}_{_amount}"
        MUTATIONS[_full] = Mutation(_full, "ids", ALARM, _rewrite(_function, _amount), _kinds, INTERFACES)


@mutation("ids")
def ids_missing(problem: TableProblem, rng: np.random.Generator) -> None:
    """Remove some ids of one table."""
    table = problem.one(rng)
    for row in rng.choice(table.n_rows, 3, replace=False).tolist():
        assert table.ids is not None
        table.ids[row] = None


# -- repeated rows ---------------------------------------------------------------------------------------------------


@mutation("duplicates")
def rows_repeated(problem: TableProblem, rng: np.random.Generator) -> None:
    """Repeat some rows of one table."""
    table = problem.one(rng)
    more = rng.choice(table.n_rows, int(rng.integers(1, 6)), replace=False)
    table.take(rng.permutation([*range(table.n_rows), *more.tolist()]))


@mutation("duplicates")
def table_repeated(problem: TableProblem, rng: np.random.Generator) -> None:
    """Repeat all rows of one table, as if two files had been put together."""
    table = problem.one(rng)
    table.take([*range(table.n_rows), *range(table.n_rows)])


@mutation("duplicates")
def ids_repeated(problem: TableProblem, rng: np.random.Generator) -> None:
    """Give some rows of one table the id of another row."""
    table = problem.one(rng)
    rows = rng.permutation(table.n_rows)[: 2 * int(rng.integers(1, 4))]
    assert table.ids is not None
    for one, other in rows.reshape(-1, 2).tolist():
        table.ids[one] = table.ids[other]
