"""Files as bytes: what kind of file it is by name and by contents, and reading it within the limits."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import DataFileError, GapviewError, InputTypeError
from . import _limits
from .reader._words import too_large

__all__ = ["content_of", "damaged", "demand_size", "existing", "kind_of", "suffix_of"]

_KINDS = {
    ".csv": "text",
    ".tsv": "text",
    ".txt": "text",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".npy": "npy",
    ".npz": "npz",
    ".mat": "mat",
    ".h5ad": "h5ad",
    ".h5mu": "h5mu",
}
_EXPECTED = "Expected .csv, .tsv or .txt (each also .gz), .parquet, .feather, .npy, .npz, .mat, .h5ad or .h5mu"

# What files of other kinds begin with: bytes, what it is, and what to do. A name must not say one thing and the
# contents another.
_SIGNS = (
    (b"PAR1", "a Parquet file", "Rename it to end in .parquet."),
    (b"ARROW1", "a Feather file", "Rename it to end in .feather."),
    (b"FEA1", "a Feather file", "Rename it to end in .feather."),
    (b"\x93NUMPY", "an array of numpy", "Rename it to end in .npy."),
    (b"PK\x03\x04", "a zip archive (.npz, or a workbook of a spreadsheet)", "Save a workbook as .csv first."),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", "Rename it to end in .h5ad, .h5mu or .mat, whichever it is."),
    (b"MATLAB 5.0", "a MATLAB file", "Rename it to end in .mat."),
    (b"\x1f\x8b", "a file packed with gzip", "Rename a packed table to end in .csv.gz; unpack others."),
    (b"\xd0\xcf\x11\xe0", "an old workbook of a spreadsheet", "Save it as .csv first."),
    (b"BZh9", "a file packed with bzip2", "Unpack it first."),
    (b"\xfd7zXZ", "a file packed with xz", "Unpack it first."),
    (b"\x28\xb5\x2f\xfd", "a file packed with zstd", "Unpack it first."),
    (b"%PDF-", "a PDF document", "Give the table as .csv."),
)
_OWN_SIGNS = {
    "parquet": (b"PAR1",),
    "feather": (b"ARROW1", b"FEA1"),
    "npy": (b"\x93NUMPY",),
    "npz": (b"PK\x03\x04", b"PK\x05\x06"),
    "mat": (b"MATLAB 5.0", b"MATLAB 7.3", b"\x89HDF\r\n\x1a\n"),
    "h5ad": (b"\x89HDF\r\n\x1a\n",),
    "h5mu": (b"\x89HDF\r\n\x1a\n", b"MuData"),
}
_CONTROLS = {*range(9), *range(14, 32)}


@contextmanager
def damaged(file: Path, what: str) -> Iterator[None]:
    """Turn whatever a library raises on a damaged file into one plain error."""
    try:
        yield
    except GapviewError:
        raise
    except Exception as error:  # any of the layers can break: compression, headers, sizes, text
        said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise DataFileError(f"{file.name!r} cannot be read as {what}: {said}. Save it anew, or get it again.") from None


def existing(path: Any) -> Path:
    """Demand the path of a file that is there."""
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise InputTypeError(f"path must be the path of a file; got {path!r}.")
    file = Path(path)
    if os.path.isdir(file):
        raise DataFileError(f"{str(file)!r} is a folder. Give the files in it, one for each view.")
    if not os.path.isfile(file):  # Path.is_file raises for names that no file can have
        raise DataFileError(f"There is no file {str(file)!r}. Check its name and folder.")
    return file


def suffix_of(file: Path) -> str:
    """Return the end of a file's name that says what it is, in lower case: ``.csv.gz``."""
    ends = [end.lower() for end in file.suffixes[-2:]]
    return "".join(ends) if len(ends) == 2 and ends[1] == ".gz" else "".join(ends[-1:])


def kind_of(file: Path) -> str:
    """Tell the kind of a file by its name, and refuse one whose contents are of another."""
    suffix = suffix_of(file)
    packed = suffix.endswith(".gz")
    kind = _KINDS.get(suffix.removesuffix(".gz"))
    if kind is None or (packed and kind != "text"):
        raise DataFileError(f"{file.name!r} does not end as a file that can be read. {_EXPECTED}.")
    head = _head(file)
    if not head:
        raise DataFileError(f"{file.name!r} is empty: it has 0 bytes. Give a file with a header and rows.")
    wanted = (b"\x1f\x8b",) if packed else _OWN_SIGNS.get(kind, ())
    if any(head.startswith(sign) or head[512:].startswith(sign) for sign in wanted):
        return kind
    for sign, what, advice in _SIGNS:
        # The header of a table may begin with such letters; it has no control characters
        if head.startswith(sign) and (wanted or _CONTROLS.intersection(head)):
            raise DataFileError(f"{file.name!r} ends in {suffix}, but its contents are those of {what}. {advice}")
    if wanted and kind != "mat":  # MATLAB's oldest format has no sign
        raise DataFileError(
            f"{file.name!r} ends in {suffix}, but its contents are not of that kind: it begins with {head[:8]!r}. "
            "Rename it to what it is, or get it again."
        )
    return kind


def _head(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(520 + 16)
    except OSError as error:
        raise DataFileError(f"{str(file)!r} cannot be opened: {error.strerror}.") from None


def demand_size(file: Path, size: int, what: str = "bytes", limit: int | None = None) -> None:
    """Refuse what is larger than the limits."""
    limit = _limits.LIMITS.size if limit is None else limit
    if size > limit:
        raise DataFileError(too_large(file.name, size, what, limit))


def content_of(file: Path) -> bytes:
    """Read all bytes of a file, unpacked, within the limits."""
    demand_size(file, file.stat().st_size)
    with damaged(file, "a file packed with gzip" if suffix_of(file).endswith(".gz") else "a file"):
        if not suffix_of(file).endswith(".gz"):
            return file.read_bytes()
        parts, total = [], 0
        try:
            with gzip.open(file) as stream:
                while part := stream.read(2**20):
                    total += len(part)
                    demand_size(file, total, "bytes or more when unpacked")
                    parts.append(part)
        except (EOFError, zlib.error):
            raise DataFileError(f"{file.name!r} is cut off or damaged: it cannot be unpacked. Get it again.") from None
        return b"".join(parts)
