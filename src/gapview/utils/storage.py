"""Writing files so that they are complete or absent, and locking folders."""

from __future__ import annotations

import csv
import io
import os
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import DataFileError

try:
    import fcntl
except ImportError:  # Windows: files are still complete, but folders are not locked
    fcntl = None  # type: ignore[assignment]


def write_whole(path: Path, content: bytes | Iterable[Any]) -> None:
    """Write a file, given at once or in pieces; at any moment either the old or the complete new file exists."""
    temporary = path.parent / f".{path.name}.{secrets.token_hex(6)}"
    try:
        # Not through tempfile, whose files other users cannot read
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as error:
        raise DataFileError(f"Cannot write to the folder {str(path.parent)!r}: {error.strerror}.") from None
    try:
        with os.fdopen(handle, "wb") as stream:
            pieces: Iterable[Any] = [content] if isinstance(content, bytes) else content
            for piece in pieces:
                stream.write(piece)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise DataFileError(f"Cannot write {str(path)!r}: {error.strerror}. What was there is untouched.") from None
        raise


def sync_folder(path: Path) -> None:
    """Flush the names in a folder to disk, so that they survive a power cut, if the system can do that."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def lock_folder(path: Path, *, wait: bool = False) -> int | None:
    """Lock a folder against other processes that lock it; closing the handle or ending the process releases it.

    Returns None where the system has no such locks.

    Raises
    ------
    BlockingIOError
        If another process holds the lock and ``wait`` is False.
    """
    if fcntl is None:
        return None
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        os.close(handle)
        if isinstance(error, BlockingIOError):
            raise
        return None  # some network disks cannot lock folders
    return handle


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV file by :func:`write_whole`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_whole(path, text.getvalue().encode())


def make_folder(path: Path) -> Path:
    """Create a folder for results, or raise an error with the reason."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataFileError(
            f"Cannot make the folder {str(path)!r}: {error.strerror}. Choose another folder for the results."
        ) from None
    return path
