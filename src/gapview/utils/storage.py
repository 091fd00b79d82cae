"""Writing files so that they are complete or absent, tables that spreadsheets can open, and locking folders."""

from __future__ import annotations

import csv
import io
import os
import re
import secrets
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import DataFileError

try:
    import fcntl
except ImportError:  # Windows: files are still complete, but folders are not locked
    fcntl = None  # type: ignore[assignment]


TEMPORARY = re.compile(r"\.gapview-[0-9a-f]{12}")  # names of files that are being written
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")  # beginnings of formulas, and escaped ones
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def write_whole(path: Path, content: bytes | Iterable[Any]) -> None:
    """Write a file, given at once or in pieces; at any moment either the old or the complete new file exists.

    A link stays, and its target is written. A file that is replaced keeps its permissions. Anything but a regular file
    is refused.
    """
    target, replaced = find_target(path)
    # A name of fixed length: one made from the name of the file could be too long. Not through tempfile, whose files
    # other users cannot read
    temporary = target.parent / f".gapview-{secrets.token_hex(6)}"
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if replaced else 0o666)
    except OSError as error:
        raise DataFileError(f"Cannot write to the folder {str(target.parent)!r}: {error.strerror}.") from None
    try:
        with os.fdopen(handle, "wb") as stream:
            pieces: Iterable[Any] = [content] if isinstance(content, bytes) else content
            for piece in pieces:
                stream.write(piece)
            stream.flush()
            os.fsync(stream.fileno())
        if replaced is not None:
            keep_permissions(temporary, replaced)
        temporary.replace(target)
        sync_folder(target.parent)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise DataFileError(f"Cannot write {str(path)!r}: {error.strerror}. What was there is untouched.") from None
        raise


def find_target(path: Path) -> tuple[Path, os.stat_result | None]:
    """Return the file to write, which is the target of a link, and its status, None if it does not exist.

    Raises
    ------
    DataFileError
        If it is no regular file, or cannot be reached.
    """
    try:
        target = Path(os.path.realpath(path)) if path.is_symlink() else path
        status = target.stat()
    except FileNotFoundError:
        return target, None
    except OSError as error:  # a name that is too long, links in a circle, a folder that may not be entered
        raise DataFileError(f"Cannot write {str(path)!r}: {error.strerror}.") from None
    if not stat.S_ISREG(status.st_mode):
        kind = next((kind for is_kind, kind in _KINDS if is_kind(status.st_mode)), "no regular file")
        raise DataFileError(f"Cannot write {str(path)!r}: it is {kind}. Give the name of a file.")
    return target, status


def keep_permissions(new: Path, status: os.stat_result) -> None:
    """Give a file the permissions of the one it replaces, and its owner and group where that is allowed."""
    if hasattr(os, "chown"):
        with suppress(OSError):
            os.chown(new, status.st_uid, status.st_gid)
    new.chmod(stat.S_IMODE(status.st_mode) & 0o777)


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


def table_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """Return a table as CSV in UTF-8; bytes of names that are no UTF-8 are escaped."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode(errors="backslashreplace")


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV file by :func:`write_whole`."""
    write_whole(path, table_text(header, rows))


def escape_formula(text: str) -> str:
    """Return a text that a spreadsheet does not run as a formula: with an apostrophe in front where it would be.

    Numbers stay as they are. :func:`unescape_formula` returns the original text.

    Examples
    --------
    >>> from gapview.utils.storage import escape_formula
    >>> [escape_formula(text) for text in ("=cmd|' /C calc'!A0", "-5", "+a", "'-5", "s1")]
    ["'=cmd|' /C calc'!A0", '-5', "'+a", "''-5", 's1']
    """
    is_safe = not _FORMULA.match(text) or _NUMBER.fullmatch(text)
    return text if is_safe else f"'{text}"


def unescape_formula(text: str) -> str:
    """Return a text without the apostrophe that :func:`escape_formula` has put in front.

    Examples
    --------
    >>> from gapview.utils.storage import unescape_formula
    >>> [unescape_formula(text) for text in ("'=1+1", "-5", "''-5", "'s1")]
    ['=1+1', '-5', "'-5", "'s1"]
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def make_folder(path: Path) -> Path:
    """Create a folder for results, or raise an error with the reason."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataFileError(
            f"Cannot make the folder {str(path)!r}: {error.strerror}. Choose another folder for the results."
        ) from None
    return path
