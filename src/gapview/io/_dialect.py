"""How a text table is written, found out from its first lines: encoding, separator, decimal mark, header."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ..errors import DataFileError
from . import _limits
from ._header import COLUMNS_LOOKED_AT, Header, find_header
from ._sources import demand_size
from ._words import is_missing, is_number

__all__ = ["BYTE_ORDER_MARKS", "Dialect", "as_utf8", "find_dialect", "line_too_long", "records", "spaces_to_tabs"]

BYTE_ORDER_MARKS = {"utf-8-sig": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
_CHUNK = 2**22
_SPACES = re.compile(rb'("(?:[^"]|"")*")|^[ \t]+|[ \t]+(?=\r?$)|[ \t]+', re.MULTILINE)
_HEAD_RECORDS = 100
_HEAD_LINES = 5  # that a head has at least, unless the file has fewer
_WORTH_OF_SPACES = 0.95  # of two readings that fit equally well, one by a mark is likelier than one by spaces


@dataclass(frozen=True)
class Dialect:
    """How a text table is written."""

    separator: str  # as the parser is told: a tab, for white space that was turned into tabs
    spaces: bool
    decimal: str
    newline: str
    n_columns: int
    header: Header
    body: int = 0  # bytes before the first row, counted after white space was turned into tabs


def as_utf8(content: bytes, file: Path) -> tuple[bytes, str]:
    """Turn a text into UTF-8 without a mark, and name the encoding it came in."""
    for encoding, mark in BYTE_ORDER_MARKS.items():
        if content.startswith(mark):
            codec = "utf-8" if encoding == "utf-8-sig" else encoding
            text = _recoded(content[len(mark) :], codec)
            break
    else:
        encoding, text = "utf-8", _recoded(content, "utf-8")
        if text is None:
            encoding, text = "cp1252", _recoded(content, "cp1252")
    if text is None or b"\0" in text:
        raise DataFileError(
            f"{file.name!r} is not a text: its bytes are neither UTF-8, nor Windows-1252, nor UTF-16 with a byte order "
            "mark. Save the table as CSV in UTF-8."
        )
    return text, encoding


def _recoded(content: bytes, codec: str) -> bytes | None:
    # In parts: a long text with a single rare character would take four bytes for each of its letters
    decoder = codecs.getincrementaldecoder(codec)()
    parts = []
    try:
        for start in range(0, len(content), _CHUNK):
            part = decoder.decode(content[start : start + _CHUNK])
            if codec != "utf-8":
                parts.append(part.encode("utf-8", "strict"))
        decoder.decode(b"", final=True)
    except UnicodeError:
        return None
    return content if codec == "utf-8" else b"".join(parts)


def spaces_to_tabs(content: bytes) -> bytes:
    """Put one tab for white space between fields; fields in quotes stay as they are."""
    return _SPACES.sub(
        lambda match: match[1] or (b"" if _at_edge(match, content) else b"\t"),
        content,
    )


def _at_edge(match: re.Match[bytes], content: bytes) -> bool:
    before, after = match.start() - 1, match.end()
    return before < 0 or content[before] in b"\r\n" or after == len(content) or content[after] in b"\r\n"


def records(content: bytes, separator: str, limit: int | None = None) -> list[tuple[int, list[str]]]:
    """Split a text into records, each with the number of the line it ends in; empty lines are passed over."""
    reader = csv.reader(io.TextIOWrapper(io.BytesIO(content), "utf-8", "ignore", newline=""), delimiter=separator)
    found = []
    for record in reader:
        if record:
            found.append((reader.line_num, record))
        if limit is not None and len(found) == limit:
            break
    return found


def find_dialect(content: bytes, file: Path) -> Dialect:
    """Find out how a table in UTF-8 is written."""
    head, start, told = _head_of(content, file)
    readings = [(separator, False) for separator in (told or ",;\t|")]
    if not told and not _cut_by_a_mark(head):
        readings.append(("\t", True))
    best, best_score = None, (-1.0, 0)
    for separator, spaces in readings:
        text = spaces_to_tabs(head) if spaces else head
        split = _split(text, separator)
        score = _score(split, spaces)
        if split and score > best_score:
            best, best_score = (separator, spaces, split, text), score
    if best is None:
        raise DataFileError(
            f"{file.name!r} is not a table: no separator (comma, semicolon, tab, |, spaces) cuts it into fields of at "
            f"most {_limits.LIMITS.field:,} characters. Check its quotes, or save it anew as CSV."
        )
    separator, spaces, split, text = best
    demand_size(file, max(len(fields) for _, fields in split), "columns", _limits.LIMITS.columns)
    header = find_header([fields for _, fields in split])
    lines = split[header.n_records - 1][0] if header.n_records else 0
    offset = sum(len(line) for line in text.splitlines(keepends=True)[:lines])
    newline = "\r\n" if b"\r\n" in head else "\n"
    cells = [cell for _, fields in split[header.n_records :] for cell in fields[:COLUMNS_LOOKED_AT]]
    return Dialect(separator, spaces, _decimal(cells, separator), newline, len(header.names), header, start + offset)


def _cut_by_a_mark(head: bytes) -> bool:
    """Tell whether a mark cuts every line, names included, into the same number of fields: then spaces are text."""
    for mark in ",;\t|":
        fields = [record for _, record in _split(head, mark) or []]
        sizes = {len(record) for record in fields}
        if len(sizes) == 1 and max(sizes) > 1 and not any(is_number(cell) for cell in fields[0]):
            return True
    return False


def _head_of(content: bytes, file: Path) -> tuple[bytes, int, str]:
    """Return the first whole lines, the bytes before them, and the separator that a line for Excel names."""
    told = re.match(rb"sep=([\t;,|])[ \t]*(?:\r\n|\r|\n)", content[:16], re.I)
    start = told.end() if told else 0
    limits = _limits.LIMITS
    size = limits.head
    while (
        start + size < len(content) and size < limits.line and _line_ends(content[start : start + size]) < _HEAD_LINES
    ):
        size *= 4
    head = content[start : start + size]
    if start + size < len(content):
        head = head[: max(head.rfind(b"\n"), head.rfind(b"\r")) + 1]
        if not head:
            raise line_too_long(file)
    if not head.strip():
        raise DataFileError(f"{file.name!r} holds no text but empty lines. Give a file with a header and rows.")
    return head, start, told[1].decode() if told else ""


def _line_ends(part: bytes) -> int:
    return max(part.count(b"\n"), part.count(b"\r"))


def line_too_long(file: Path) -> DataFileError:
    """Say that a line is longer than the limit."""
    return DataFileError(
        f"{file.name!r} has a line of more than {_limits.LIMITS.line:,} bytes, the most that is read. Check that it is "
        "a table and that its quotes are closed; give very wide tables as .npy, .npz or .h5ad."
    )


def _split(head: bytes, separator: str) -> list[tuple[int, list[str]]]:
    try:
        return records(head, separator, _HEAD_RECORDS)
    except csv.Error:  # a field too long: not the separator
        return []


def _score(split: list[tuple[int, list[str]]], spaces: bool) -> tuple[float, int]:
    """Say how well a separator cuts the lines into equally many fields, and how many of these are numbers."""
    rows = [fields for _, fields in split]
    if not rows:
        return (-1.0, 0)
    body = rows[1:] or rows
    usual, times = Counter(map(len, body)).most_common(1)[0]
    cells = [
        cell
        for fields in body
        for cell in (fields[1:COLUMNS_LOOKED_AT] if usual > 1 else fields)
        if not is_missing(cell)
    ]
    numbers = sum(map(is_number, cells)) / max(1, len(cells))
    fits = {0: 1.0, 1: 0.9}.get(usual - len(rows[0]), 0.5)
    return (times / len(body)) * (0.1 + numbers) * fits * (_WORTH_OF_SPACES if spaces else 1.0), usual


def _decimal(cells: list[str], separator: str) -> str:
    commas = sum("," in cell and is_number(cell, ",") for cell in cells)
    points = sum("." in cell and is_number(cell, ".") for cell in cells)
    return "," if separator != "," and commas > points else "."
