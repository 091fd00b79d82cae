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
from ..utils.messages import counted, free_name, numbered, warn_user
from ..views.numerals import Marks, is_number, is_numeral
from ..views.tables import looks_like_id
from ._sources import READING, demand_size, most_columns, suffix_of
from ._view_file import SourceFormat

BYTE_ORDER_MARKS = {"utf-8-sig": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
_CHUNK = 2**22
# A letter in UTF-8, or else a byte of another encoding
_BEYOND_ASCII = re.compile(rb"([\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})|[\x80-\xff]")
_MOST_LETTERS = 10_000  # inspected to tell encodings apart
_RARE = (
    10  # times as many other bytes as letters in UTF-8 make a text in Windows-1252, where some pairs look like UTF-8
)
# Letters in UTF-8 that were read as Windows-1252 (Ã¼ for ü, Â° for °, â€™ for an apostrophe), again in UTF-8
_GARBLED = re.compile(
    "\u00c3[\u0080-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013-\u203a\u20ac\u2122]"
    "|\u00c2[\u00a0-\u00bf]|\u00e2\u20ac"
)
_SPACES = re.compile(rb'("(?:[^"]|"")*")|[ \t]+')
HEAD_RECORDS = 100
_HEAD_LINES = 5  # the least number of lines in a head, unless the file has fewer
_WEIGHT_OF_SPACES = 0.95  # of two dialects that fit equally well, one with a mark is likelier than one with spaces
_LINES_ABOVE = 20
_SHORT_SCALE, _LONG_SCALE = 4, 8  # numbers in a header: see _is_scale
_COLUMNS_INSPECTED = 200  # enough to tell a header from numbers; a wide table has a thousand times as many

_ERRORS = ("#n/a", "#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!")  # of formulas
MISSING = ("", "na", "n/a", "nan", "null", "?", "-", *_ERRORS)
MISSING_WORDS = sorted({form for word in MISSING for form in (word, word.upper(), word.capitalize())} | {"NaN", "N/a"})


def is_missing(cell: str | None) -> bool:
    """Return whether a cell is empty or holds a word for a missing value."""
    return cell is None or cell.strip().lower() in MISSING


def as_booleans(cells: Sequence[str]) -> list[float] | None:
    """Return true and false as 1 and 0; None if a cell holds anything else."""
    words = {cell.lower() for cell in cells}
    return [float(cell.lower() == "true") for cell in cells] if words <= {"true", "false"} else None


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
    """Return a text in UTF-8 without a byte order mark, and its original encoding; warn of garbled letters."""
    marked = [encoding for encoding, mark in BYTE_ORDER_MARKS.items() if content.startswith(mark)]
    for encoding in marked or ["utf-8", "cp1252"]:
        text = _recoded(content[len(BYTE_ORDER_MARKS.get(encoding, b"")) :], encoding.removesuffix("-sig"))
        if text is not None:
            break
        if encoding.startswith("utf-8"):
            _demand_one_encoding(content, file)
    if text is None or b"\0" in text:
        raise DataFileError(
            f"{file.name!r} is not a text: its bytes are neither UTF-8, nor Windows-1252, nor UTF-16 with a byte order "
            "mark. Save the table as CSV in UTF-8."
        )
    if not text.isascii() and (garbled := _garbled(text)):
        warn_user(
            f"{file.name!r} has letters that were saved in one encoding and read in another, such as {garbled!r}. Ids "
            "with such letters match no other file: save the original table again as CSV in UTF-8."
        )
    return text, encoding


def _garbled(text: bytes) -> str | None:
    """Return a field with letters in UTF-8 that were read as Windows-1252, or None."""
    for start in range(0, len(text), _CHUNK):
        part = text[start : start + _CHUNK]
        if not part.isascii() and (match := _GARBLED.search(decoded := part.decode(errors="ignore"))):
            near = decoded[max(0, match.start() - 20) : match.end() + 20]
            return next((field for field in re.split(r'[\s,;|"]+', near) if match[0] in field), match[0])
    return None


def _demand_one_encoding(content: bytes, file: Path) -> None:
    """Raise an error on a text in UTF-8 with bytes of another encoding among its letters, and name their lines."""
    found = list(islice(_BEYOND_ASCII.finditer(content), _MOST_LETTERS))
    wrong = [match.start() for match in found if match[1] is None]
    if _RARE * (len(found) - len(wrong)) < len(wrong):
        return
    lines = dict.fromkeys(content.count(b"\n", 0, place) + 1 for place in wrong[:10])
    raise DataFileError(
        f"{file.name!r} is a text in UTF-8, except for {counted(len(wrong), 'byte')} of another encoding in line(s) "
        f"{some(lines)}. Correct the letters there, or save the table again as CSV in UTF-8."
    )


def _recoded(content: bytes, codec: str) -> bytes | None:
    if codec == "utf-8" and content.isascii():
        return content
    # In parts: as a str, a long text with a single rare character takes four bytes per letter
    chunks = (content[start : start + _CHUNK] for start in range(0, len(content), _CHUNK))
    decoded = codecs.iterdecode(chunks, codec)
    try:
        if codec == "utf-8":
            return content if all(part is not None for part in decoded) else None
        return b"".join(part.encode() for part in decoded)
    except UnicodeError:
        return None


def spaces_to_tabs(content: bytes) -> bytes:
    """Return the text with one tab for white space between fields; fields in quotes stay unchanged."""
    return b"".join(map(_with_tabs, _whole_lines(content)))


def _whole_lines(content: bytes) -> Iterator[bytes]:
    """Yield the text in parts that end with a line and with no quotes open, so that little is in memory twice."""
    start, end = 0, _CHUNK
    while start < len(content):
        end = content.find(b"\n", end) + 1 or len(content)
        if end == len(content) or content.count(b'"', start, end) % 2 == 0:
            yield content[start:end]
            start = end
        end += _CHUNK


def _with_tabs(content: bytes) -> bytes:
    def at_edge(match: re.Match[bytes]) -> bool:
        before, after = match.start() - 1, match.end()
        return before < 0 or content[before] in b"\r\n" or after == len(content) or content[after] in b"\r\n"

    return _SPACES.sub(lambda match: match[1] or (b"" if at_edge(match) else b"\t"), content)


def records(content: bytes, separator: str, n_lines_before: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a text, each with the number of its last line; empty lines are skipped."""
    reader = csv.reader(io.TextIOWrapper(io.BytesIO(content), "utf-8", "ignore", newline=""), delimiter=separator)
    return ((n_lines_before + reader.line_num, record) for record in reader if record)


def find_dialect(content: bytes, file: Path) -> tuple[SourceFormat, int, list[list[str]], list[str]]:
    """Return the format of a table in UTF-8, the bytes before its first row, its first rows, and notes on its header.

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
    demand_size(file, max(len(fields) for _, fields in split), "columns", most_columns(len(content)))
    names, kind, n_records, notes = find_header([fields for _, fields in split])
    lines = split[n_records - 1][0] if n_records else 0
    offset = sum(len(line) for line in text.splitlines(keepends=True)[:lines])
    rows = [fields[:_COLUMNS_INSPECTED] for _, fields in split[n_records:]]
    decimal = _decimal([cell for fields in rows for cell in fields], separator)
    newline = "\r\n" if b"\r\n" in head else "\n"
    source = SourceFormat(
        "text", suffix_of(file), tuple(names), separator=separator, decimal=decimal, newline=newline, header=kind
    )
    return source, start + offset, rows, notes


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
        return list(islice(records(head, separator), HEAD_RECORDS))
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
    """Return the likelier decimal mark: that of unambiguous numbers, or else the more frequent one."""
    if separator == ",":
        return "."
    marks = Marks()
    marks.add(cells)
    if len(marks.decimal) == 1:
        return min(marks.decimal)
    commas = sum("," in cell and is_number(cell, ",") for cell in cells)
    points = sum("." in cell and is_number(cell, ".") for cell in cells)
    return "," if commas > points else "."


def find_header(rows: list[list[str]]) -> tuple[list[str], str, int, list[str]]:
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
        filled = sum(bool(cell.strip()) for cell in row)
        if usual - 1 <= len(row) <= usual + 1 and filled > 1:
            inspected = [row[:_COLUMNS_INSPECTED] for row in rows[place:]]
            # Below a line with one filled field, numbers are no names: that line may be a sample without values
            named = any(not is_number(cell) and not is_missing(cell) for cell in inspected[0][1:])
            return place if named and len(inspected) > 1 and _is_header(inspected[0], inspected[1:]) else 0
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
    words = [column for column in columns if column not in numbers and not is_missing(first[column])]
    if not columns:  # nothing to compare with: a line of numbers alone is no header
        return not all(is_number(cell) or is_missing(cell) for cell in first)
    if looks_like_id(first[0]) or 0 in words or (words and len(words) >= len(numbers)):
        return True
    cells = [first[column].strip() for column in numbers]
    if not first[0].strip() and cells and all(cell.isdigit() for cell in cells):  # pandas names columns 0, 1, 2, …
        return True
    return _counts_up(cells, body, columns) or _is_scale(first, body, numbers)


def _counts_up(cells: list[str], body: list[list[str]], columns: list[int]) -> bool:
    """Return whether numbers in the first line are names: 0, 1, 2, …, or integers above columns of fractions."""
    if not all(map(_is_digits, cells)) or len(cells) < 2:
        return False
    whole = [int(float(cell)) for cell in cells]
    if all(after - before == 1 for before, after in pairwise(whole)) and whole[0] in (0, 1):
        return True
    fractions = all(any(not _is_digits(row[c]) for row in body if c < len(row)) for c in columns)
    return len(set(whole)) == len(whole) > 2 and fractions


def _is_digits(cell: str) -> bool:
    """Return whether a cell holds digits alone, or as a program writes a whole number as a float: 700.0."""
    return cell.strip().removesuffix(".0").isdigit()


def _is_scale(first: list[str], body: list[list[str]], columns: list[int]) -> bool:
    """Return whether numbers in the first line are names of a scale, as the wavelengths of a spectrum.

    They increase or decrease, which the values of the rows do not. Few numbers may do so by chance: then the first
    field must be empty, as pandas writes it above row names.
    """
    if len(columns) < (_SHORT_SCALE if not first[0].strip() else _LONG_SCALE):
        return False
    return _is_monotonic(first, columns) and not any(_is_monotonic(row, columns) for row in body)


def _is_monotonic(row: list[str], columns: list[int]) -> bool:
    cells = [row[column].strip().replace(",", ".") for column in columns if column < len(row)]
    if len(cells) < len(columns) or not all(map(is_number, cells)):
        return False
    steps = [after - before for before, after in pairwise(map(float, cells))]
    return all(step > 0 for step in steps) or all(step < 0 for step in steps)


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
    texts = [column for column in columns if not is_missing(body[0][column]) and not is_numeral(body[0][column])]
    numbers = [column for column in columns if is_numeral(body[0][column])]
    if not columns or numbers or len(texts) <= len(columns) / 2:
        return 0
    names_of_levels = looks_like_id(body[1][0]) and all(not cell.strip() for cell in body[1][1:])
    return 2 if names_of_levels else 1


def _joined(names: list[str], second: list[str]) -> list[str]:
    """Return names in which repeated ones, as over two levels, are completed by the second line."""
    times = Counter(names)
    below = [cell.strip() for cell in second] + [""] * len(names)
    return [f"{name}_{word}" if times[name] > 1 and word else name for name, word in zip(names, below, strict=False)]
