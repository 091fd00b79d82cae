"""Detecting what a cell or the name of a column stands for, and the dialect of a text table from its first lines."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path

from ..errors import DataFileError, some
from ..utils.messages import counted, free_name, numbered
from ._sources import READING, demand_size, suffix_of
from ._view_file import SourceFormat

BYTE_ORDER_MARKS = {"utf-8-sig": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
_CHUNK = 2**22
_SPACES = re.compile(rb'("(?:[^"]|"")*")|[ \t]+')
_HEAD_RECORDS = 100
_HEAD_LINES = 5  # the least number of lines in a head, unless the file has fewer
_WEIGHT_OF_SPACES = 0.95  # of two dialects that fit equally well, one with a mark is likelier than one with spaces
_LINES_ABOVE = 20
_COLUMNS_INSPECTED = 200  # enough to tell a header from numbers; a wide table has a thousand times as many

_MISSING = ("", "na", "n/a", "nan", "null", "?", "-", "#n/a")
MISSING_WORDS = sorted({form for word in _MISSING for form in (word, word.upper(), word.capitalize())} | {"NaN", "N/a"})

_NUMBER = {
    mark: re.compile(rf"[+-]?(?:[0-9]+(?:[{mark}][0-9]*)?|[{mark}][0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?inf(?:inity)?", re.I)
    for mark in (".", ",", ".,")
}
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:[.,][0-9]{3})+")
_DATE = re.compile(
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2}))(?:[T ]\d{1,2}:\d{2}(?::\d{2})?\S*)?"
)


def is_missing(cell: str | None) -> bool:
    """Return whether a cell is empty or holds a word for a missing value."""
    return cell is None or cell.strip().lower() in _MISSING


def is_number(cell: str, mark: str = ".,") -> bool:
    """Return whether a cell is a number, written with any of the given decimal marks."""
    return _NUMBER[mark].fullmatch(cell.strip()) is not None


def as_numbers(cells: Sequence[str], mark: str) -> list[float] | None:
    """Return cells as numbers with a decimal mark; None if one of them is not a number."""
    if not all(is_number(cell, mark) for cell in cells):
        return None
    return [float(cell.replace(",", ".")) for cell in cells]


def looks_like_thousands(cells: Sequence[str]) -> bool:
    """Return whether all marks in cells stand where thousands separators do: ``1,234`` is either 1.234 or 1234."""
    marked = [cell for cell in cells if "," in cell or "." in cell]
    return bool(marked) and all(_THOUSANDS.fullmatch(cell) for cell in marked)


def as_booleans(cells: Sequence[str]) -> list[float] | None:
    """Return true and false as 1 and 0; None if a cell holds anything else."""
    words = {cell.lower() for cell in cells}
    return [float(cell.lower() == "true") for cell in cells] if words <= {"true", "false"} else None


def looks_like_dates(cells: Sequence[str]) -> bool:
    """Return whether all cells are dates."""
    return all(_DATE.fullmatch(cell) for cell in cells)


# Without spaces, underscores and the like; the second list only counts for columns without repeats
_ID_NAMES = {
    *("id", "ids", "uid", "uuid", "guid", "sid", "pid", "eid", "mrn", "sample", "samples", "sampleid", "sampleids"),
    *("samplename", "samplecode", "patient", "patientid", "patientno", "subject", "subjectid", "participant"),
    *("participantid", "individual", "individualid", "person", "personid", "caseid", "donor", "donorid", "specimenid"),
    *("recordid", "barcode", "cellid", "rowid", "rowname", "rownames", "obsnames", "sampleno", "samplenumber"),
}
_WEAK_ID_NAMES = {"index", "case", "name", "key", "cell", "specimen", "row", "code", "no", "nr", "number", "accession"}


def looks_like_id(name: str, *, weak: bool = False) -> bool:
    """Return whether a column has a name that is common for sample ids."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    return plain in (_WEAK_ID_NAMES if weak else _ID_NAMES)


def is_unnamed(name: str) -> bool:
    """Return whether a column has no name, or the one that pandas gives to such a column or index."""
    return not name or re.fullmatch(r"Unnamed: \d+|__index_level_\d+__", name) is not None


def unique_names(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return unique names for all columns, and the names that occurred more than once."""
    taken = set(names)
    seen: set[str] = set()
    found, repeated = [], []
    for number, name in enumerate(names, 1):
        new = name or f"column_{number}"
        if name and name in seen:
            repeated.append(name)
        if new in seen or (not name and new in taken):
            new = free_name(new, taken | seen)
        seen.add(new)
        found.append(new)
    return found, repeated


# -- the dialect -----------------------------------------------------------------------------------------------------


def as_utf8(content: bytes, file: Path) -> tuple[bytes, str]:
    """Return a text in UTF-8 without a byte order mark, and its original encoding."""
    marked = [encoding for encoding, mark in BYTE_ORDER_MARKS.items() if content.startswith(mark)]
    for encoding in marked or ["utf-8", "cp1252"]:
        text = _recoded(content[len(BYTE_ORDER_MARKS.get(encoding, b"")) :], encoding.removesuffix("-sig"))
        if text is not None:
            break
    if text is None or b"\0" in text:
        raise DataFileError(
            f"{file.name!r} is not a text: its bytes are neither UTF-8, nor Windows-1252, nor UTF-16 with a byte order "
            "mark. Save the table as CSV in UTF-8."
        )
    return text, encoding


def _recoded(content: bytes, codec: str) -> bytes | None:
    # In parts: as a str, a long text with a single rare character takes four bytes per letter
    chunks = (content[start : start + _CHUNK] for start in range(0, len(content), _CHUNK))
    parts = (part.encode() for part in codecs.iterdecode(chunks, codec))
    try:
        return b"".join(parts)
    except UnicodeError:
        return None


def spaces_to_tabs(content: bytes) -> bytes:
    """Return the text with one tab for white space between fields; fields in quotes stay unchanged."""

    def at_edge(match: re.Match[bytes]) -> bool:
        before, after = match.start() - 1, match.end()
        return before < 0 or content[before] in b"\r\n" or after == len(content) or content[after] in b"\r\n"

    return _SPACES.sub(lambda match: match[1] or (b"" if at_edge(match) else b"\t"), content)


def records(content: bytes, separator: str, n_lines_before: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a text, each with the number of its last line; empty lines are skipped."""
    reader = csv.reader(io.TextIOWrapper(io.BytesIO(content), "utf-8", "ignore", newline=""), delimiter=separator)
    return ((n_lines_before + reader.line_num, record) for record in reader if record)


def find_dialect(content: bytes, file: Path) -> tuple[SourceFormat, int, list[str]]:
    """Return the format of a table in UTF-8, the number of bytes before its first row, and notes on its header.

    The bytes are counted after white space was turned into tabs, if the separator is white space.
    """
    head, start, named = _head_of(content, file)
    readings = [(mark, head, _split(head, mark)) for mark in (named or ",;\t|")]
    if not named and not any(_splits_every_line(rows) for _, _, rows in readings):
        tabbed = spaces_to_tabs(head)
        readings.append((" ", tabbed, _split(tabbed, "\t")))
    separator, text, split = max(readings, key=lambda reading: _score(reading[2], reading[0]))
    if not split:
        raise DataFileError(
            f"{file.name!r} is not a table: no separator (comma, semicolon, tab, |, spaces) cuts it into fields of at "
            f"most {READING.limits.field:,} characters. Check its quotes, or save it again as CSV."
        )
    demand_size(file, max(len(fields) for _, fields in split), "columns", READING.limits.columns)
    names, kind, n_records, notes = _find_header([fields for _, fields in split])
    lines = split[n_records - 1][0] if n_records else 0
    offset = sum(len(line) for line in text.splitlines(keepends=True)[:lines])
    decimal = _decimal([cell for _, fields in split[n_records:] for cell in fields[:_COLUMNS_INSPECTED]], separator)
    newline = "\r\n" if b"\r\n" in head else "\n"
    source = SourceFormat(
        "text", suffix_of(file), tuple(names), separator=separator, decimal=decimal, newline=newline, header=kind
    )
    return source, start + offset, notes


def _splits_every_line(split: list[tuple[int, list[str]]]) -> bool:
    """Return whether a mark splits every line, names included, into equally many fields: then spaces are text."""
    sizes = {len(fields) for _, fields in split}
    return len(sizes) == 1 and max(sizes) > 1 and not any(map(is_number, split[0][1]))


def _head_of(content: bytes, file: Path) -> tuple[bytes, int, str]:
    """Return the first complete lines, the number of bytes before them, and the separator in a line for Excel."""
    named = re.match(rb"sep=([\t;,|])[ \t]*(?:\r\n|\r|\n)", content[:16], re.I)
    start = named.end() if named else 0
    size, most = READING.limits.head, min(READING.limits.line, len(content) - start)
    head = content[start : start + size]
    while size < most and max(head.count(b"\n"), head.count(b"\r")) < _HEAD_LINES:
        size *= 4
        head = content[start : start + size]
    if start + size < len(content):
        head = head[: max(head.rfind(b"\n"), head.rfind(b"\r")) + 1]
        if not head:
            raise line_too_long(file)
    if not head.strip():
        raise DataFileError(f"{file.name!r} holds no text but empty lines. Give a file with a header and rows.")
    return head, start, named[1].decode() if named else ""


def line_too_long(file: Path) -> DataFileError:
    """Return the error that a line is longer than the limit."""
    return DataFileError(
        f"{file.name!r} has a line of more than {READING.limits.line:,} bytes, the most that is read. Check that it is "
        "a table and that its quotes are closed; give very wide tables as .npy, .npz or .h5ad."
    )


def _split(head: bytes, separator: str) -> list[tuple[int, list[str]]]:
    try:
        return list(islice(records(head, separator), _HEAD_RECORDS))
    except csv.Error:  # a field too long: not the separator
        return []


def _score(split: list[tuple[int, list[str]]], separator: str) -> tuple[float, int]:
    """Return how well a separator splits lines into equally many fields with many numbers, and how many fields."""
    rows = [fields for _, fields in split]
    if not rows:
        return (-1.0, 0)
    body = rows[1:] or rows
    usual, times = Counter(map(len, body)).most_common(1)[0]
    inspected = slice(1, _COLUMNS_INSPECTED) if usual > 1 else slice(None)
    cells = [cell for fields in body for cell in fields[inspected] if not is_missing(cell)]
    numbers = sum(map(is_number, cells)) / max(1, len(cells))
    fits = {0: 1.0, 1: 0.9}.get(usual - len(rows[0]), 0.5)
    return (times / len(body)) * (0.1 + numbers) * fits * (_WEIGHT_OF_SPACES if separator == " " else 1.0), usual


def _decimal(cells: list[str], separator: str) -> str:
    commas = sum("," in cell and is_number(cell, ",") for cell in cells)
    points = sum("." in cell and is_number(cell, ".") for cell in cells)
    return "," if separator != "," and commas > points else "."


def _find_header(rows: list[list[str]]) -> tuple[list[str], str, int, list[str]]:
    """Return the names of the columns, the kind of header, the number of records before the first row, and notes.

    The kind is that of ``SourceFormat.header``.
    """
    notes: list[str] = []
    usual = Counter(map(len, rows[1:] or rows)).most_common(1)[0][0]
    skipped = _lines_above(rows, usual)
    if skipped:
        notes.append(f"{counted(skipped, 'line')} above the header skipped, beginning with {rows[0][0][:40]!r}.")
    first, body = rows[skipped], rows[skipped + 1 :]
    inspected = [row[:_COLUMNS_INSPECTED] for row in rows[skipped:]]
    if not _is_header(inspected[0], inspected[1:]):
        notes.append(
            "The file has no header: its first line holds numbers. The columns are named column_1, column_2, …"
        )
        return numbered(usual), "none", skipped, notes
    names, kind = _fitted([name.strip() for name in first], body, usual)
    more = _further_header(inspected[1:])
    if more:
        notes.append(f"A second header line, {some(body[0], 4)}, holds no numbers and is left out.")
        names = _joined(names, body[0])
    return names, kind, skipped + 1 + more, notes


def _lines_above(rows: list[list[str]], usual: int) -> int:
    """Count the lines of title or remarks above a header: those with other numbers of fields, or only one filled."""
    for place, row in enumerate(rows[:_LINES_ABOVE]):
        filled = sum(not is_missing(cell) for cell in row)
        if usual - 1 <= len(row) <= usual + 1 and filled > 1:
            inspected = [row[:_COLUMNS_INSPECTED] for row in rows[place:]]
            return place if len(inspected) > 1 and _is_header(inspected[0], inspected[1:]) else 0
    return 0


def _number_columns(body: list[list[str]]) -> list[int]:
    """Return the columns in which most cells are numbers."""
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
    """Return whether numbers in the first line are names: 0, 1, 2, …, or integers above columns of fractions."""
    if not all(cell.isdigit() for cell in cells) or len(cells) < 2:
        return False
    whole = [int(cell) for cell in cells]
    if all(after - before == 1 for before, after in pairwise(whole)) and whole[0] in (0, 1):
        return True
    fractions = all(any(not row[c].strip().isdigit() for row in body if c < len(row)) for c in columns)
    return len(set(whole)) == len(whole) > 2 and fractions


def _fitted(names: list[str], body: list[list[str]], usual: int) -> tuple[list[str], str]:
    """Return names that fit the rows and the kind of header: row names may lack one, lines may end in separators."""
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
    """Return names in which repeated ones, as over two levels, are completed by the second line."""
    times = Counter(names)
    below = [cell.strip() for cell in second] + [""] * len(names)
    return [f"{name}_{word}" if times[name] > 1 and word else name for name, word in zip(names, below, strict=False)]
