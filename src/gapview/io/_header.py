"""The header of a text table: whether there is one, over how many lines, and the names in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

from ..errors import some
from ..utils.names import numbered
from ..utils.words import counted
from ._names import looks_like_id
from ._words import is_missing, is_number

__all__ = ["COLUMNS_LOOKED_AT", "Header", "find_header"]

_LINES_ABOVE = 20
COLUMNS_LOOKED_AT = 200  # these many tell a header from numbers; a wide table has a thousand times as many


@dataclass(frozen=True)
class Header:
    """The names of the columns, and how they stand in the file."""

    names: list[str]
    kind: str  # "line"; "short": the first column has no name at all; "none"
    n_records: int  # records before the first row
    notes: list[str] = field(default_factory=list)


def find_header(rows: list[list[str]]) -> Header:
    """Find the header among the first records of a table."""
    notes: list[str] = []
    usual = Counter(map(len, rows[1:] or rows)).most_common(1)[0][0]
    skipped = _lines_above(rows, usual)
    if skipped:
        notes.append(f"{counted(skipped, 'line')} above the header passed over, beginning with {rows[0][0][:40]!r}.")
    first, body = rows[skipped], rows[skipped + 1 :]
    glance = [row[:COLUMNS_LOOKED_AT] for row in rows[skipped:]]
    if not _is_header(glance[0], glance[1:]):
        notes.append(
            "The file has no header: its first line holds numbers. The columns are named column_1, column_2, …"
        )
        return Header(numbered(usual), "none", skipped, notes)
    names, kind = _fitted([name.strip() for name in first], body, usual)
    more = _further_header(glance[1:])
    if more:
        notes.append(f"A second header line, {some(body[0], 4)}, holds no numbers and is left out.")
        names = _joined(names, body[0])
    return Header(names, kind, skipped + 1 + more, notes)


def _lines_above(rows: list[list[str]], usual: int) -> int:
    """Count the lines of title or remarks above a header, which have other numbers of fields, or only one filled."""
    for place, row in enumerate(rows[:_LINES_ABOVE]):
        filled = sum(not is_missing(cell) for cell in row)
        if usual - 1 <= len(row) <= usual + 1 and filled > 1:
            glance = [row[:COLUMNS_LOOKED_AT] for row in rows[place:]]
            return place if len(glance) > 1 and _is_header(glance[0], glance[1:]) else 0
    return 0


def _number_columns(body: list[list[str]]) -> list[int]:
    """Find the columns most of whose cells are numbers."""
    found = []
    for column in range(max(map(len, body), default=0)):
        cells = [row[column] for row in body if column < len(row) and not is_missing(row[column])]
        if cells and sum(map(is_number, cells)) > len(cells) / 2:
            found.append(column)
    return found


def _is_header(first: list[str], body: list[list[str]]) -> bool:
    columns = [column for column in _number_columns(body) if column < len(first)]
    numbers = [column for column in columns if is_number(first[column])]
    if not columns:  # nothing to compare with: a line of numbers alone is no header
        return not all(is_number(cell) or is_missing(cell) for cell in first)
    if len(numbers) <= len(columns) / 2:
        return True
    if looks_like_id(first[0]) or not first[0].strip() or (0 in columns and 0 not in numbers):
        return True
    return _counts_up([first[column].strip() for column in numbers], body, columns)


def _counts_up(cells: list[str], body: list[list[str]], columns: list[int]) -> bool:
    """Tell whether numbers in the first line are names: 0, 1, 2, …, or whole ones over columns of fractions."""
    if not all(cell.isdigit() for cell in cells) or len(cells) < 2:
        return False
    whole = [int(cell) for cell in cells]
    if all(after - before == 1 for before, after in pairwise(whole)) and whole[0] in (0, 1):
        return True
    fractions = all(any(not row[c].strip().isdigit() for row in body if c < len(row)) for c in columns)
    return len(set(whole)) == len(whole) > 2 and fractions


def _fitted(names: list[str], body: list[list[str]], usual: int) -> tuple[list[str], str]:
    """Fit the header to the rows: row names without a header, separators at the end of lines."""
    if len(names) == usual - 1:
        if all(not row[-1].strip() for row in body if len(row) == usual):
            return [*names, ""], "line"
        return ["", *names], "short"
    if len(names) == usual + 1 and not names[-1]:
        return names[:-1], "line"
    return names, "line"


def _further_header(body: list[list[str]]) -> int:
    """Count the records below the header that belong to it: units, or the second level of a pandas frame."""
    if len(body) < 3:
        return 0
    columns = [column for column in _number_columns(body[1:]) if column < len(body[0])]
    texts = [column for column in columns if not is_missing(body[0][column]) and not is_number(body[0][column])]
    numbers = [column for column in columns if is_number(body[0][column])]
    if not columns or numbers or len(texts) <= len(columns) / 2:
        return 0
    names_of_levels = looks_like_id(body[1][0]) and all(not cell.strip() for cell in body[1][1:])
    return 2 if names_of_levels else 1


def _joined(names: list[str], second: list[str]) -> list[str]:
    """Where names repeat, as over two levels, the second line tells them apart."""
    times = Counter(names)
    second = [*second, *[""] * len(names)]
    return [
        f"{name}_{below.strip()}" if times[name] > 1 and below.strip() else name
        for name, below in zip(names, second, strict=False)
    ]
