"""Mistakes in text files: separators, marks of thousands and decimals, headers and encodings."""

from __future__ import annotations

import csv
from collections.abc import Callable

import numpy as np

from .mistakes_oracle import TEXTS
from .mistakes_register import ALARM, KEYED, SAME, TEXT, mutation
from .mistakes_tables import NotApplicable, Records, SampleTable, TableProblem

__all__: list[str] = []  # importing this module registers the mutations

OTHERS = ("tsv", "semicolon")  # files in which a comma does not separate fields


# -- separators and marks --------------------------------------------------------------------------------------------


@mutation("separators", SAME, KEYED, ("csv",))
def other_separator(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write every file with another separator."""
    for table in problem.tables:
        table.form.separator = str(rng.choice([";", "\t", "|"]))


@mutation("separators", SAME, TEXT, OTHERS)
def decimal_comma(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write decimal commas."""
    for table in problem.tables:
        table.form.decimal = ","


@mutation("separators", SAME, TEXT, OTHERS)
def decimal_comma_one(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write decimal commas in one of the files."""
    problem.one(rng).form.decimal = ","


@mutation("separators", ALARM, TEXT, ("csv", "csv.gz"))
def decimal_comma_quoted(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write decimal commas in quotes in a file separated by commas."""
    problem.one(rng).form.decimal = ","


@mutation("separators", ALARM, TEXT, ("csv",))
def decimal_comma_unquoted(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write decimal commas without quotes in a file separated by commas."""
    table = problem.one(rng)
    table.form.decimal, table.form.separator = ",", ";"
    table.form.edit_bytes = lambda content: content.replace(b";", b",")


@mutation("separators", ALARM, KEYED, OTHERS)
def marks_mixed(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write a decimal comma in part of the rows, as if two files had been put together."""
    table = problem.one(rng)
    half = set(rng.choice(table.n_rows, table.n_rows // 3, replace=False).tolist())
    _spell(table, range(len(table.columns)), lambda value, row: repr(value).replace(".", "," if row in half else "."))


def _spell(table: SampleTable, columns: range | list[int], spell: Callable[[float, int], str]) -> None:
    """Write the cells of some columns as text."""
    for j in columns:
        name, cells = table.columns[j]
        table.columns[j] = (name, [spell(value, row) for row, value in enumerate(cells)])


def _counts(problem: TableProblem, rng: np.random.Generator, low: float, high: float) -> tuple[SampleTable, list[int]]:
    """Turn the values of one table into whole numbers from ``low`` to ``high``; return it and some columns."""
    table = problem.one(rng)
    values = problem.truth[table.view]
    bottom, top = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    spread = iter([*zip(bottom, top, strict=True)])
    stored = {}
    for (name, cells), (least, most) in zip(table.columns, spread, strict=True):
        if most == least:
            raise NotApplicable("a constant column")
        stored[name] = (np.array(cells) - least) / (most - least)
    whole = np.round(low + (values - bottom) / (top - bottom) * (high - low))
    if len(np.unique(whole[~np.isnan(whole[:, 0])], axis=0)) < len(table.samples):
        raise NotApplicable("rows are no longer distinct")
    problem.truth[table.view] = whole
    table.columns = [(name, np.round(low + share * (high - low)).tolist()) for name, share in stored.items()]
    n_columns = len(table.columns)
    some = n_columns if rng.random() < 0.5 else int(rng.integers(1, 4))
    return table, rng.choice(n_columns, some, replace=False).tolist()


@mutation("separators", ALARM, TEXT, OTHERS)
def thousands_comma(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write counts above 1,000 with commas between thousands."""
    table, columns = _counts(problem, rng, 1000, 99_000)
    _spell(table, columns, lambda value, row: f"{int(value):,}")


@mutation("separators", ALARM, TEXT, OTHERS)
def thousands_comma_some(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write counts with commas between thousands; some counts are small."""
    table, columns = _counts(problem, rng, 0, 40_000)
    _spell(table, columns, lambda value, row: f"{int(value):,}")


@mutation("separators", ALARM, TEXT, TEXTS)
def thousands_millions(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write counts with commas between thousands and millions, in quotes where needed."""
    table, columns = _counts(problem, rng, 0, 9_000_000)
    _spell(table, columns, lambda value, row: f"{int(value):,}")


@mutation("separators", ALARM, TEXT, ("semicolon",))  # elsewhere 1.234 is one and a fraction
def thousands_point(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write counts with points between thousands in all columns."""
    table, _ = _counts(problem, rng, 1000, 99_000)
    _spell(table, range(len(table.columns)), lambda value, row: f"{int(value):,}".replace(",", "."))


@mutation("separators", ALARM, TEXT, TEXTS)
def thousands_space(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write counts with spaces or apostrophes between thousands."""
    table, columns = _counts(problem, rng, 0, 99_000)
    mark = str(rng.choice([" ", "'", "\u00a0", "\u202f"]))
    _spell(table, columns, lambda value, row: f"{int(value):,}".replace(",", mark))


@mutation("separators", SAME, KEYED, TEXTS)
def all_quoted(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write every field in quotes."""
    for table in problem.tables:
        table.form.quoting = csv.QUOTE_ALL


@mutation("separators", SAME, KEYED, TEXTS)
def separators_behind(problem: TableProblem, rng: np.random.Generator) -> None:
    """End every line with a separator, and the file with empty lines."""
    table = problem.one(rng)
    table.form.edit_records = lambda records: [[*record, ""] for record in records]
    table.form.edit_bytes = lambda content: content + b"\n\n"


# -- header ----------------------------------------------------------------------------------------------------------


@mutation("header", ALARM, TEXT, TEXTS)
def header_lost(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write one file without its header."""
    table = problem.one(rng)
    table.form.header, problem.features[table.view] = False, None


@mutation("header", ALARM, ("integer", "zeros"), TEXTS)
def header_lost_all(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write all files, with ids of numbers, without headers."""
    for table in problem.tables:
        table.form.header, problem.features[table.view] = False, None
        table.place = "first"  # elsewhere, nobody could detect ids of numbers without a name


@mutation("header", ALARM, TEXT, TEXTS)
def header_lost_first_row_missing(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write one file without its header; its first row holds no values."""
    header_lost(problem, rng)
    table = next(own for own in problem.tables if not own.form.header)
    table.columns = [(name, ["NA", *cells[1:]]) for name, cells in table.columns]
    problem.truth[table.view][table.samples[0]] = np.nan


@mutation("header", ALARM, TEXT, TEXTS)
def first_row_missing(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write no values into the first row of one file: the sample lacks the view."""
    table = problem.one(rng)
    if table.samples[0] not in table.samples[problem.shared_rows(table)]:
        raise NotApplicable("the sample has no other view")
    table.columns = [(name, ["NA", *cells[1:]]) for name, cells in table.columns]
    problem.truth[table.view][table.samples[0]] = np.nan


@mutation("header", ALARM, KEYED, TEXTS)
def header_repeated(problem: TableProblem, rng: np.random.Generator) -> None:
    """Repeat the header within one file, as if two files had been put together."""
    table = problem.one(rng)
    place = int(rng.integers(2, table.n_rows))
    table.form.edit_records = lambda records: [*records[:place], records[0], *records[place:]]


@mutation("header", ALARM, KEYED, TEXTS)
def title_above(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write lines of remarks above the header of one file."""
    lines = ["Export of 3 March", "", "# made by the laboratory, building 7; see the protocol"]
    problem.one(rng).form.above = lines[: int(rng.integers(1, 4))]


@mutation("header", ALARM, KEYED, TEXTS)
def units_below(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write a line of units below the header of one file."""
    problem.one(rng).form.edit_records = lambda records: [
        records[0], ["", *["mg/l"] * (len(records[0]) - 1)], *records[1:]
    ]  # fmt: skip


@mutation("header", ALARM, KEYED, TEXTS)
def total_below(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write a line of sums below the rows of one file, without an id."""
    table = problem.one(rng)
    if table.place == "later":
        raise NotApplicable("the ids are not in front")

    def add(records: Records) -> Records:
        return [*records, ["", *(f"{sum(map(float, cells)):.6g}" for cells in zip(*rows(records), strict=True))]]

    def rows(records: Records) -> list[list[str]]:
        return [record[1:] for record in records[1:]]

    table.form.edit_records = add


# -- encodings -------------------------------------------------------------------------------------------------------


def _encoded(encoding: str, mark: bytes = b"") -> Callable[[TableProblem, np.random.Generator], None]:
    def change(problem: TableProblem, rng: np.random.Generator) -> None:
        table = problem.one(rng)
        if not table.id_name.isascii():
            raise NotApplicable("the encoding lacks the characters of a name")
        table.form.encoding, table.form.edit_bytes = encoding, lambda content: mark + content

    change.__name__ = f"encoding_{encoding.replace('-', '_')}{'_marked' if mark else ''}"
    return change


for _encoding in ("cp1252", "utf-16"):
    mutation("encodings", SAME, ("name",), TEXTS)(_encoded(_encoding))
for _encoding in ("utf-16-le", "mac_roman", "cp850"):
    mutation("encodings", ALARM, ("name",), TEXTS)(_encoded(_encoding))
mutation("encodings", SAME, ("name", "barcode", "integer"), TEXTS)(_encoded("utf-8", b"\xef\xbb\xbf"))


@mutation("encodings", ALARM, ("name",), TEXTS)
def byte_of_latin_1(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write one id of a file in UTF-8 in Latin-1."""
    table = problem.one(rng)
    shared = [str((table.ids or [""])[row]) for row in problem.shared_rows(table)]
    key = next((key for key in shared if not key.isascii()), None)
    if key is None or not table.id_name.isascii():
        raise NotApplicable("no id with an accent")
    table.form.edit_bytes = lambda content: content.replace(key.encode(), key.encode("latin-1"))


@mutation("encodings", SAME, KEYED, TEXTS)
def lines_of_windows(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write ends of lines as Windows does."""
    problem.one(rng).form.newline = "\r\n"
