"""Files on disk, written whole or not at all."""

from __future__ import annotations

import csv
import io
import os
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .errors import DataFileError

__all__ = ["make_folder", "write_table", "write_whole"]


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that at any moment either the old or the complete new one is there."""
    temporary = path.parent / f".{path.name}.{secrets.token_hex(6)}"
    try:
        # Not through tempfile, whose files nobody else can read
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as error:
        raise DataFileError(f"Cannot write to the folder {str(path.parent)!r}: {error.strerror}.") from None
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise DataFileError(f"Cannot write {str(path)!r}: {error.strerror}. What was there is untouched.") from None
        raise


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV file, whole or not at all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_whole(path, text.getvalue().encode())


def make_folder(path: Path) -> Path:
    """Make a folder for results, or say why that is not possible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataFileError(
            f"Cannot make the folder {str(path)!r}: {error.strerror}. Choose another folder for the results."
        ) from None
    return path
