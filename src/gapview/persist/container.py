"""The file itself: a prefix of fixed size, a header in JSON, and blocks of plain bytes.

    64 bytes   magic (12), format (4), length of the header (8), length of the file (8), SHA-256 (32)
    header     JSON, filled up with blanks; lists the lengths of the blocks and holds their SHA-256
    blocks     one after the other, each filled up with zeros

The first checksum covers the rest of the prefix and the header, the second the blocks: the header can be verified
without the blocks, and every byte of the file is covered. Lengths are compared with the length of the file before
anything is read into memory. Nothing is compressed, so that a file needs no more memory than its length.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..errors import DataFileError, GapviewError, InputTypeError, MissingExtraError
from ..utils.packing import demand, from_json, to_json
from ..utils.types import Array

FORMAT = 1

_MAGIC = b"\x89GAPVIEW\r\n\x1a\n"  # contains line ends, so that a transfer as text is detected
_PREFIX = struct.Struct("<12sIQQ32s")
_UNSIGNED = 32  # bytes of the prefix before its checksum
_STEP = 64
_MOST_HEADER = 2**24  # bytes; real headers have a few thousand
_CUT_OFF = "it was cut off while it was being read"
_AGAIN = "Copy or download the file again, or save the model again."


def check_path(path: Any, expected: str = "path must be the path of a model file") -> Path:
    """Return a path, or raise unless it can be the name of a file or folder; ``expected`` begins the message."""
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise InputTypeError(f"{expected}, as text or a pathlib.Path; got {path!r}.")
    if not os.fspath(path) or "\0" in os.fspath(path):
        raise DataFileError(f"No file or folder can be called {os.fspath(path)!r}.")
    return Path(path)


def pieces(header: dict[str, Any], blocks: Sequence[Array]) -> list[Any]:
    """Return the content of a file in pieces, without a copy of the blocks."""
    digest = hashlib.sha256()
    body: list[Any] = [piece for block in blocks for piece in (block, bytes(-len(block) % _STEP))]
    for piece in body:
        digest.update(piece)
    text = to_json({**header, "blocks": [len(block) for block in blocks], "sha256": digest.hexdigest()})
    text += b" " * (-len(text) % _STEP)
    if len(text) > _MOST_HEADER:
        raise DataFileError(f"The settings of the model are too long to be saved: {len(text)} bytes as JSON.")
    length = _PREFIX.size + len(text) + sum(len(piece) for piece in body)
    start = _PREFIX.pack(_MAGIC, FORMAT, len(text), length, b"")[:_UNSIGNED]
    return [start, hashlib.sha256(start + text).digest(), text, *body]


@contextmanager
def opened(path: Any) -> Iterator[BinaryIO]:
    """Open a model file; raise any error while it is read as a DataFileError that names the file."""
    file = check_path(path)
    if not os.path.isfile(file):
        raise DataFileError(f"There is no file {str(file)!r}. Give the path of a file that model.save has written.")
    try:
        with file.open("rb") as stream:
            yield stream
    except (DataFileError, MissingExtraError):
        raise
    except OSError as error:
        raise DataFileError(f"Cannot read {str(file)!r}: {error.strerror or error}") from None
    except Exception as error:  # a forged file can cause any error
        reason = str(error)
        if not isinstance(error, ValueError | GapviewError):
            reason = f"its parts are not those of a model ({type(error).__name__}: {error})"
        raise DataFileError(f"{file.name!r} cannot be read as a model file: {reason.rstrip('.')}. {_AGAIN}") from None


def read_header(stream: BinaryIO) -> dict[str, Any]:
    """Read and check the prefix and the header."""
    name, size = repr(os.path.basename(stream.name)), os.fstat(stream.fileno()).st_size
    start = stream.read(_PREFIX.size)
    if not start or start[: len(_MAGIC)] != _MAGIC[: len(start)]:
        raise DataFileError(f"{name} is not a model file of gapview. Give a file that model.save has written.")
    if len(start) < _PREFIX.size:
        raise _cut_off(name, size)
    _, version, header_length, length, checksum = _PREFIX.unpack(start)
    if version > FORMAT:
        raise DataFileError(
            f"{name} has format {version} of a newer gapview; this one reads formats up to {FORMAT}. Update gapview: "
            "pip install --upgrade gapview"
        )
    if length > size:
        raise _cut_off(name, size, length)
    is_whole = length == size and header_length <= min(_MOST_HEADER, length - _PREFIX.size)
    demand(is_whole, "its length is not the one in its header")
    text = _exactly(stream, header_length)
    digest = hashlib.sha256(start[:_UNSIGNED] + text).digest()
    demand(digest == checksum, "it is damaged: the checksum of its header is wrong")
    demand(version >= 1, "there is no format 0")
    header: dict[str, Any] = from_json(text)
    lengths = header.get("blocks") if isinstance(header, dict) else None
    are_listed = isinstance(lengths, list) and all(type(each) is int and each >= 0 for each in lengths)
    demand(are_listed, "its header does not list its blocks")
    total = sum(each + -each % _STEP for each in header["blocks"])
    demand(total == length - _PREFIX.size - header_length, "its blocks do not have the lengths in its header")
    return header


def read_blocks(stream: BinaryIO, header: dict[str, Any]) -> list[Array]:
    """Read all blocks, and verify their checksum."""
    digest = hashlib.sha256()
    blocks = []
    for length in header["blocks"]:
        block = np.empty(length, dtype=np.uint8)
        n_read = stream.readinto(block)  # type: ignore[attr-defined]
        demand(n_read == length, _CUT_OFF)
        digest.update(block.data)
        digest.update(_exactly(stream, -length % _STEP))
        blocks.append(block)
    demand(digest.hexdigest() == header.get("sha256"), "it is damaged: the checksum of its contents is wrong")
    return blocks


def _exactly(stream: BinaryIO, length: int) -> bytes:
    found = stream.read(length)
    demand(len(found) == length, _CUT_OFF)
    return found


def _cut_off(name: str, size: int, length: int | None = None) -> DataFileError:
    of = "" if length is None else f" of {length}"
    return DataFileError(f"{name} is cut off: it has {size}{of} bytes. {_AGAIN}")
